//! Analyses of a kernel before it runs: proofs of mistakes, and estimates of cost.
//!
//! An analysis reads one instance for one target and changes nothing.
//!
//! # Meaning
//!
//! These analyses read IR as lowered, where each instruction has its source line.
//!
//! * [`uniformity`] computes which values all threads of a warp, block or grid share, and where
//!   threads are converged. The pass that places tables uses it too.
//! * [`approximate`] computes which arguments and decisions approximate results reach. The analysis
//!   runs the first phases of the pipeline on a copy of the kernel, so that loops are unrolled and
//!   variables are values.
//! * `convergence` rejects collective operations that not all threads reach.
//! * `limits` rejects kernels that cannot be launched: more parameters than an entry has space for.
//!
//! # Cost
//!
//! These analyses read later forms: IR with unrolled loops and places
//! ([`with_places`](crate::passes::with_places)), IR after all passes, or PTX.
//!
//! * [`lanes`] computes the 32 values that a variable has across a warp, up to a common part.
//!   Lowering uses it to choose the pitch of a shared array.
//! * [`memory`] counts bank conflicts and sectors of each access.
//! * [`bounds`] proves which accesses are in bounds, where indices are polynomials.
//! * [`occupancy`] computes how many blocks fit on a multiprocessor, and what limits their number.
//! * [`mix`] counts PTX instructions by [class](crate::ptx::cost).
//! * [`slow`] reports operations that are legal on the target and slow there.
//!
//! # Acceptance
//!
//! An analysis rejects a kernel only for a proven mistake. Where the outcome depends on memory, or
//! on arithmetic that is not tracked, the kernel compiles, and the oracle checks each run.
//! [`accept`] runs the analyses that can reject a kernel; [`driver`](crate::driver) calls it after
//! lowering.
//! [`lower`](crate::lower::lower) alone rejects none of these mistakes: tests of the oracle use it
//! to run a wrong kernel.

pub mod approximate;
pub mod bounds;
mod convergence;
pub mod lanes;
mod limits;
pub mod memory;
pub mod mix;
pub mod occupancy;
pub mod slow;
pub mod uniformity;

use crate::error::Errors;
use crate::ir::Kernel;

/// IR as lowered, in which no analysis proves a mistake. Only [`accept`] makes it.
#[derive(Clone, PartialEq, Debug)]
pub struct Accepted(Kernel);

impl std::ops::Deref for Accepted {
    type Target = Kernel;
    fn deref(&self) -> &Kernel {
        &self.0
    }
}

impl From<Accepted> for Kernel {
    fn from(Accepted(kernel): Accepted) -> Kernel {
        kernel
    }
}

/// Rejects a kernel as lowered in which an analysis proves a mistake.
pub fn accept(kernel: Kernel) -> Result<Accepted, Errors> {
    let mut errors = limits::exceeded(&kernel);
    errors.extend(convergence::divergent_operations(&kernel));
    if errors.is_empty() { Ok(Accepted(kernel)) } else { Err(Errors(errors)) }
}
