//! Parts of the language through the real macros: what a kernel gives against plain Rust, bit for bit, as lowered, after
//! all passes, and (ignored where there is none) on an NVIDIA GPU.

mod blocks;
mod collectives;
mod contract;
mod cooperation;
#[path = "../every_target/mod.rs"]
mod every_target;
mod fast;
mod faults;
mod float16;
mod impls;
mod inline;
mod integers;
mod items;
mod loops;
mod methods;
mod order;
mod repeated;
mod share;
mod structs;
mod support;
mod targets;
