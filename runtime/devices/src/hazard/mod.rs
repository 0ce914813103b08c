//! Hazard tracking: the order between operations, derived from the memory that they use.
//!
//! [`HazardTracker`] is the record of one allocation: its last write and the reads since. An
//! [`AccessSet`] is the memory of one operation. Together they order the work of several streams
//! (read after write, write after read, write after write) without explicit synchronization.

mod access;
#[cfg(test)]
mod tests;
mod tracker;

/// Atomics and locks of the tracker. `tests/loom.rs` compiles the tracker with loom's instead.
mod sync {
    pub use runtime_simt::Lock;
    pub use std::sync::MutexGuard;
    pub use std::sync::atomic::{AtomicBool, AtomicU64};
}

pub(crate) use access::{AccessSet, BufferAccess, Hazards};
pub(crate) use tracker::{HazardTracker, SubrangeTracker, TimelinePoint, WaitSet, add};
