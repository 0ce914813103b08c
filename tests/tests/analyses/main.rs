//! Tests of the compiler's analyses of kernels, against measurements of the interpreter.

mod memory_costs;
mod profile;
mod reach;
mod uniform;
