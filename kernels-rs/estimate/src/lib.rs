//! Estimates of a kernel's time on a device that this machine lacks. An estimate is not a
//! measurement.
//!
//! ```text
//! PTX ─ ptxas ─▶ cubin ─ nvdisasm ─▶ sass::Listing + control::Encodings      what a warp issues, and when
//! PTX ─ PTX interpreter, sampled blocks ─▶ profile::BlockCounts               how often, and which memory
//!            listing + counts ─▶ path::BasicBlock                             the path of a warp
//! device::DeviceModel (devices/*.json) + path ─▶ simulate                     cycles of a multiprocessor
//! cycles × waves + launch ─▶ estimate::LaunchEstimate                         time, limiter, stalls by line
//! ```
//!
//! The disassembly names the line of the PTX for each machine instruction, and the interpreter
//! counts lines of the same PTX. So the counts need no execution of machine code. [`simulate`]
//! states what is modeled.
//!
//! An [`Estimator`] is a device of the runtime that estimates launches instead of running them.
//! Therefore all calls of the library can be estimated at any shape.

pub mod control;
pub mod device;
pub mod estimate;
mod linear_program;
pub mod nvdisasm;
pub mod path;
pub mod profile;
pub mod ptxas;
pub mod sass;
pub mod simulate;

pub use estimate::{Estimator, LaunchEstimate};
