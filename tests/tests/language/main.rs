//! Tests of the language through the real macros: results against plain Rust, bit by bit, lowered,
//! optimized, and on an NVIDIA GPU (ignored by default).

mod aliases;
mod atomics;
mod blocks;
mod collectives;
mod comparisons;
mod constructs;
mod contract;
mod cooperation;
mod enums;
#[path = "../every_target/mod.rs"]
mod every_target;
mod extents;
mod fast;
mod faults;
mod float16;
mod impls;
mod inline;
mod integers;
mod items;
mod log;
mod long_integers;
mod loops;
mod math;
mod memory;
mod methods;
mod operators;
mod order;
mod own_names;
mod patterns;
mod repeated;
mod results;
mod scalar_operators;
mod share;
mod shorthand;
mod structs;
mod support;
mod targets;
mod views;
mod witness;
