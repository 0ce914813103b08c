//! What is known of a kernel before it runs: what is wrong with it, and what it costs.
//!
//! An analysis looks at one instance for one target, and changes nothing. Some ask what the kernel *means*, and what no run
//! of it may do. They see IR as lowered: what the Rust says, with calls inlined and generic constants put in, where each
//! instruction knows the line that it came from.
//!
//! * [`uniformity`] tells what is the same for all threads of a warp, a block or the grid, and where they are together.
//! * [`approximate`] tells which arguments the hardware's approximations reach, and what they decide.
//! * `convergence` refuses operations that threads do together where it is proven that they may not all come.
//! * `limits` refuses what no launch could be: more parameters than an entry has room for.
//!
//! Others ask what the kernel *costs*. They see what becomes of it: IR whose loops are unrolled and whose places are places
//! still ([`with_places`](crate::passes::with_places)), IR after all passes, or the PTX.
//!
//! * [`lanes`] follows the 32 numbers that a value is in a warp, up to a part that all share. Lowering asks it, too, when it
//!   chooses a pitch.
//! * [`memory`] counts by them the conflicts of banks and the sectors of each access.
//! * [`bounds`] proves, of integers that are polynomials, which accesses lie within their buffers and arrays, and by what.
//! * [`occupancy`] tells how many blocks a multiprocessor holds, and what limits that.
//! * [`mix`] counts the instructions of the PTX by kind.
//! * [`rate`] tells how fast sm_61 executes one.
//! * [`slow`] names what is legal on the target and slow there.
//!
//! A refusal is for what is proven. Where memory decides, or arithmetic that is not followed, the kernel compiles, and
//! the oracle checks each run.
//!
//! [`accept`] runs the analyses that can reject a kernel. [`driver`](crate::driver) calls it after lowering, so that
//! nothing runs or compiles without it. [`lower`](crate::lower::lower) alone rejects none of these mistakes: tests of the
//! oracle use it to run a wrong kernel.

pub mod approximate;
pub mod bounds;
mod convergence;
pub mod lanes;
mod limits;
pub mod memory;
pub mod mix;
pub mod occupancy;
pub mod rate;
pub mod slow;
pub mod uniformity;

use crate::error::Errors;
use crate::ir::Kernel;

/// Refuses a kernel as lowered in which an analysis finds a mistake.
pub fn accept(kernel: &Kernel) -> Result<(), Errors> {
    let mut errors = limits::exceeded(kernel);
    errors.extend(convergence::apart(kernel));
    if errors.is_empty() { Ok(()) } else { Err(Errors(errors)) }
}
