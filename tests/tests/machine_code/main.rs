//! Tests of the PTX of the library's kernels, and of the machine code that ptxas makes of it.

mod budgets;
mod compilers;
mod ptx;
mod sass;
