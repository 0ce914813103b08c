//! The PTX interpreter: runs the PTX text that a GPU runs, and reports its errors.
//!
//! # What is independent of the oracle
//!
//! The oracle (crate `runtime-oracle`, `runtime::interpreter`) runs the compiler's own IR.
//! Arithmetic, control flow and the detection of violations are written twice, so that a mistake in
//! one interpreter cannot hide in the other. The documentation of [`runtime_simt`] lists all that
//! the interpreters share.
//!
//! This interpreter also runs PTX that other compilers made.
//!
//! # How it runs
//!
//! [`Program::decode`] decodes one entry to flat code. Decoding inlines calls and resolves operands
//! to places. Functions that can call themselves are called with a stack (`call`). The device
//! provides `vprintf`, `malloc`, `free` and `__assertfail` (`service`). Each instruction becomes a
//! closure over rows of 32 lanes (`body`), with its modifiers resolved. Decoding rejects unknown
//! instructions by name: nothing is skipped silently. [`Program::run`] runs a launch. Blocks run
//! one after the other. Where the results are the same, they run in parallel on several cores
//! (`parallel`). In a cooperative or preempted launch, blocks run interleaved (`cooperative`). The
//! warps of a block alternate, and a warp runs in lockstep. Diverged lanes run and reconverge by
//! one of two policies ([`BranchPolicy`]); a legal program gives the same results under both. No
//! lanes reconverge at a `ret`, an `exit` or a `trap` (`structure`).
//!
//! Every instruction of sm_61 runs, except some forms on textures and surfaces: cubes, multiple
//! samples, comparisons with a depth, separate samplers, formatted accesses to surfaces
//! (`texture`), and `istypep`. Decoding also rejects calls of functions that neither the module nor
//! the device defines.
//!
//! ```text
//! ptx::Module ─ decode ─▶ code ─▶ machine ─▶ warp ─▶ body ─▶ arithmetic      values
//!                          │                 ├─▶ flow (structure)            which lanes run next
//!                          │                 ├─▶ access ─▶ memory            loads, stores, atomics
//!                          │                 └─▶ cooperate                   shuffles, votes, matches
//!                          └─ sites ─▶ report (runtime-simt)                findings
//! ```
//!
//! Inline PTX (`ptx!(…)`) is decoded here too (`inline`), and the oracle runs it at its position
//! in the kernel's IR. So the semantics of PTX are implemented once.
//!
//! # Values
//!
//! Arithmetic follows the manual bit for bit, in every rounding mode. A computed NaN of 16 or 32
//! bits has one bit pattern per format, and a NaN of 64 bits keeps a payload. With `.ftz`, a result
//! becomes a zero if it is below the least normal number after rounding with an unbounded exponent.
//! Instructions without a rounding modifier round to nearest and are never contracted. An
//! approximation gives the true value, rounded, which is one of the results that the manual allows.
//! Memory is sequentially consistent. A warp's atomics execute in order of ascending lanes.
//!
//! # Approximations
//!
//! An approximation has many allowed results. Values that depend on one are marked with the
//! instruction and its published bound. The mark propagates through registers, shuffles and memory:
//! per buffer as a whole, and per address in shared memory. [`Outcome::approximate`] lists the
//! buffers that hold such values. A condition or an address that depends on an approximation is a
//! warning, because a GPU may take another path there.
//!
//! [`approximations`] has the errors of the interpreter and of a card, measured on all operands of
//! 32 bits.
//!
//! # Unspecified values and the card
//!
//! [`unspecified`] lists operands for which the manual specifies no result, and what sm_61 machine
//! code returns for them. [`differences`] compares the interpreter with a card on every pure
//! computation of the instruction table, and explains each difference.
//!
//! # Checks
//!
//! A check has the name of the oracle's check for the same rule. The oracle's other checks follow
//! from the language, or need its types. In PTX:
//!
//! - `out-of-bounds`: an access outside the buffer or variable from which its address was computed.
//!   Buffers are so far apart that no 32-bit index, times 8 bytes, reaches another buffer.
//! - `unfinished-copy`: a load from the destination of a copy to shared memory (`cp.async`) before
//!   the copy's thread has waited for it.
//! - `uninitialized-buffer`: a load from, or an atomic operation on, a byte that nothing has
//!   written. The owner of the memory states which bytes were written, by
//!   [`Resident::initialized`]. The load is reported, and executed all the same.
//! - `global-race` and `shared-race`: a plain store and another access to the same byte by two
//!   warps, without an order between the two. [`Options::races`] enables these checks. Nothing is
//!   reported for lanes of one warp, or where an order could exist. Strong accesses of two blocks
//!   race if one of them has the scope `.cta`. The launch must not write memory that `ld.global.nc`
//!   or `ldu` loads, in any order.
//! - `divergent-barrier`: a barrier that cannot complete, or an invalid number or thread count of a
//!   barrier.
//! - `divergent-warp`: a shuffle, vote, match, reduction or warp barrier with contradictory member
//!   masks. Masks may differ between lanes. Each lane must be in its own mask. All lanes of this
//!   mask that have not ended must execute the instruction together, with the same mask.
//! - `wrong-space`, `partly-uninitialized`, `approximate`, `trap` and `assertion`, which only PTX
//!   has, are documented at [`Check`].
//!
//! # Undefined values
//!
//! Uninitialized registers, quotients by zero, and values that a shuffle reads from an inactive
//! lane are undefined (`undefined-value`). So are the elements of a vector load that nothing has
//! written, if other elements were written. Undefined values propagate through computations. The
//! interpreter reports an undefined value only in an address, a condition or a store. So a
//! speculated division with an unused result is not a mistake.

mod access;
mod arithmetic;
mod async_copy;
mod body;
mod call;
mod code;
mod cooperate;
mod cooperative;
mod decode;
mod division;
mod flow;
mod global;
mod halves;
mod initialized;
#[doc(hidden)]
pub mod inline;
mod launch;
mod machine;
mod memory;
#[doc(hidden)]
pub mod observe;
mod parallel;
pub mod printf;
mod program;
mod races;
mod refused;
#[doc(hidden)]
pub mod registers;
mod repetition;
pub mod resident;
mod rows;
mod run;
mod sample;
mod service;
mod slice;
mod structure;
pub mod texture;
mod touched;
pub mod unspecified;
mod warp;

#[doc = include_str!("approximations.md")]
pub mod approximations {}

#[doc = include_str!("differences.md")]
pub mod differences {}

#[doc(hidden)]
pub use call::is_stack_overflow;
pub use decode::{decode_inline, shared_bytes_of};
pub use flow::BranchPolicy;
pub use initialized::InitializedBytes;
pub use kernel_dsl_compiler::oracle::CheckSet;
pub use launch::{BufferArgument, Checks, Grid, Launch, Mismatch, Options, Outcome, ParameterValue, RunFailure};
pub use program::Program;
pub use refused::{RefusedInstruction, Unsupported};
pub use resident::{DeviceMemory, Resident, ResidentModule};
pub use runtime_simt::report::{CodeLocation, Finding, PtxInstruction, Report, Verdict};
pub use runtime_simt::{ArgumentBytes, Check, Preemption, Schedule, Severity, Statistics, Thread};
pub use service::Heap;
