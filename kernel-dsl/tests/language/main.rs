//! Tests of the language on the host: numbers and their functions, kernels that rustc compiles, and
//! what the macros declare.

mod f64;
mod half;
mod host;
mod kernels;
mod math;
#[path = "../ulp/mod.rs"]
mod ulp;
