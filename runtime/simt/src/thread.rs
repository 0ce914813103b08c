//! The identity of a thread in reports.

use serde::Serialize;
use std::fmt;

/// A thread of a launch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Thread {
    /// Block index in x, y, z.
    pub block: [u32; 3],
    /// Thread index in its block in x, y, z.
    pub thread: [u32; 3],
    /// The index of the warp in the block.
    pub warp: u32,
    /// The index of the lane in the warp.
    pub lane: u32,
}

impl fmt::Display for Thread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Thread { block, thread, warp, lane } = self;
        write!(f, "thread {thread:?} of block {block:?} (warp {warp}, lane {lane})")
    }
}
