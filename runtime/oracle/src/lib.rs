//! The oracle: runs a kernel's IR on the CPU, one warp at a time in lockstep, and reports the
//! kernel's errors.
//!
//! # Execution
//!
//! [`Program::decode`] translates a kernel to flat code once (`code`); [`Program::run`] executes it
//! for a launch. A warp is a frame of registers, each a row of 32 lanes, and a mask of active
//! lanes. One dispatch computes a whole row in a loop that the compiler vectorizes (`lanes`). A
//! block runs each warp to a barrier or its end, then the next (`machine`). Blocks run one after
//! the other in the order of a [`Schedule`]; each core runs a share of them (`parallel`).
//!
//! Values follow the definitions of the `ir` module bit for bit, except for the payload and sign of
//! a NaN computed by arithmetic.
//!
//! # Checks
//!
//! Each [`Check`] is defined at its variant. Every access is checked against the buffer that its
//! address was computed from, wherever the address points. Races are found from the happens-before
//! order of accesses (`shadow`), not from the results of one order. An access that violates a check
//! is suppressed (a load returns 0) and the run continues, so one run reports all errors.
//! [`Checks`] selects how much is checked; disabled checks cost nothing. Bytes outside a launch's
//! buffers are never touched, with or without checks.
//!
//! ```text
//! run, parallel, record         a launch; its blocks on host threads; reports of the checked form
//!    │     └─▶ observe          trace, profile, reached, provenance, …: observers of a run
//!    ▼            │
//! machine ◀───────┘             blocks, warps, memory, races; the trait Observer
//!    ▼
//! program ─▶ decode ─▶ code     a kernel; IR to instructions; their data and arithmetic on rows
//! options, check                plain data: what a launch is given
//! report (runtime-simt)         what it returns
//! ```

pub mod check;

mod code;
mod decode;
mod machine;
mod observe;
mod options;
mod parallel;
mod program;
mod record;
mod refused;
mod run;

pub use check::{Allowance, Check, CheckSet, Coverage, DeclaredOutput, Severity, UnknownCheck};
pub use machine::interleaved::MAX_COOPERATIVE_BLOCKS;
pub use observe::profile::{self, MemoryProfile};
pub use observe::reached::{Gap, ReachedInstructions, Unreached};
pub use observe::trace::{self, Trace};
pub use options::{Binding, Checks, Deadline, Interrupt, Interrupts, Launch, Options, Outcome};
pub use program::Program;
pub use record::reported;
pub use refused::{LaunchFailure, Mismatch, TooLarge, Unsupported};
pub use report::{AccessValues, Finding, Report, Verdict};
pub use runtime_simt::{ArgumentBytes, ByteRanges, Preemption, Schedule, Statistics, UnknownOrder, report};
