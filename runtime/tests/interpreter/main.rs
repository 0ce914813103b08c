//! The interpreter against plain Rust: values of every operation, control flow of diverging warps, and each check on a
//! kernel that breaks it and one that does not.

mod arithmetic;
mod bytes;
mod checks;
mod control;
mod fused;
mod kit;
mod matmul;
mod memory;
mod parallel;
mod reference;
mod rendering;
mod shadow;
mod shifts;
mod tiles;
