//! Tests of PTX: emission, printing, parsing, the table of instructions, control flow, inline PTX
//! and linking.

mod control;
mod emit;
mod inline;
mod link;
mod page;
mod parse;
#[path = "../ptx_support/mod.rs"]
mod ptx_support;
#[path = "../ptx_support/sample.rs"]
mod sample;
mod table;
