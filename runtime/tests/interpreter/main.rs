//! The interpreter against plain Rust: values of every operation, and control flow of diverging
//! warps. Each check has a kernel that violates it and one that does not.

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
