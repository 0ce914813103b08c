//! What is known of a kernel before it runs, and what is wrong with it for that.
//!
//! An analysis looks at IR as lowered, one instance for one target, and changes nothing. So it sees what the Rust says,
//! with calls inlined and generic constants put in, and each instruction knows the line that it came from.
//!
//! * [`uniformity`] tells what is the same for all threads of a warp, a block or the grid, and where they are together.
//! * `convergence` refuses operations that threads do together where it is proven that they may not all come.
//! * `limits` refuses what no launch could be: more parameters than an entry has room for.
//!
//! A refusal is for what is proven. Where memory decides, or arithmetic that is not followed, the kernel compiles, and
//! the oracle checks each run.
//!
//! [`lowered`] is the door for whatever is to run or to be compiled; [`lower`](crate::lower::lower) alone refuses none of
//! it. That is for those who want to see what a wrong kernel does, such as tests of the oracle.

mod convergence;
mod limits;
pub mod uniformity;

use crate::error::Errors;
use crate::hir::{Instance, Monomorphic, Program, monomorphic};
use crate::ir::Kernel;
use crate::lower::lower_monomorphic;
use crate::target::Target;

/// The instance of `program` for `target`, lowered; or all that is wrong with it, what the analyses find too.
pub fn lowered(program: &Program, instance: &Instance, target: Target) -> Result<Kernel, Errors> {
    lowered_monomorphic(&monomorphic(program, instance)?, target)
}

/// The same of a program that has been made for its instance.
pub fn lowered_monomorphic(program: &Monomorphic, target: Target) -> Result<Kernel, Errors> {
    let kernel = lower_monomorphic(program, target)?;
    accept(&kernel)?;
    Ok(kernel)
}

/// Refuses a kernel as lowered in which an analysis finds a mistake.
pub fn accept(kernel: &Kernel) -> Result<(), Errors> {
    let mut errors = limits::exceeded(kernel);
    errors.extend(convergence::apart(kernel));
    if errors.is_empty() { Ok(()) } else { Err(Errors(errors)) }
}
