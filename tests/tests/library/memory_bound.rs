//! Tests of memory-bound calls (copies, element-wise functions, reductions and others), on the CPU
//! and on a GPU, against plain Rust.

mod arrays;
mod counted;
mod counters;
mod moved;
mod reduced;
mod rotated;
