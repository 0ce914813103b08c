//! The base of both interpreters: the execution of a grid, apart from the semantics of
//! instructions.
//!
//! The [PTX interpreter] and the [oracle] are independent witnesses of a kernel: a mistake in one
//! of them shows as a difference between them. Integer and floating-point arithmetic, control flow
//! within a warp, and the detection of violations are therefore written twice. The interpreters
//! share:
//!
//! - this crate,
//! - the compiler's stand-ins for approximations (`kernel_dsl_compiler::Approximation`),
//! - inline PTX: the oracle runs `ptx!(…)` by the PTX interpreter (`runtime_ptx::inline`),
//! - the format of `log!`: the oracle formats lines by `runtime_ptx::printf`.
//!
//! The PTX interpreter also shares the parser and the table of PTX instructions with the compiler.
//! Nothing else is shared. This crate has:
//!
//! - [`GridShape`]: blocks, threads and warps, their indices, and how many blocks are sure to be
//!   resident at once;
//! - [`LANES`], [`lanes_of`]: the lanes of a warp as bits of a mask;
//! - [`Schedule`]: the order of blocks, warps and lanes, which the language leaves open;
//! - [`Scheduler`]: the loop that selects the next block and warp;
//! - [`Interleaver`]: the loop for blocks that are resident at once, with [`Preemption`];
//! - [`split`]: runs a launch on several host threads, each with a copy of the memory;
//! - [`ArgumentBytes`], [`ByteRanges`]: the memory of a launch;
//! - [`Lock`], [`SharedLock`], [`WaitCondition`]: locks without poisoning, from the compiler;
//! - [`Statistics`], [`Thread`], [`number`]: the data of reports;
//! - [`report`]: the findings of a run, their collection, and their text and JSON.
//!
//! Both interpreters take their checks from one list, [`Check`].
//!
//! [PTX interpreter]: https://docs.rs/runtime-ptx
//! [oracle]: https://docs.rs/runtime-oracle

mod bytes;
mod grid;
mod interleaver;
mod lanes;
pub mod number;
pub mod preemption;
mod printed;
pub mod report;
mod schedule;
mod scheduler;
pub mod split;
mod statistics;
mod thread;

pub use bytes::{ArgumentBytes, ByteRanges};
pub use grid::{GridShape, MAX_RESIDENT_BLOCKS};
pub use interleaver::{Interleaver, RunningGrid, WarpState};
pub use kernel_dsl_compiler::lock::{Lock, SharedLock, WaitCondition};
pub use kernel_dsl_compiler::oracle::{Check, Severity};
pub use lanes::{FULL, LANES, lanes_of};
pub use preemption::{Points, Preemption};
pub use printed::{MAX_PRINTED, Printed};
pub use schedule::{Schedule, UnknownOrder};
pub use scheduler::{RunningBlock, Scheduler};
pub use statistics::Statistics;
pub use thread::Thread;
