//! Counters of an interpreter's run.

use serde::Serialize;

/// Counters of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Statistics {
    /// Blocks begun.
    pub blocks: u64,
    /// Warps begun.
    pub warps: u64,
    /// Instructions of the interpreter, each counted once for each warp.
    pub warp_instructions: u64,
    /// Instructions of the interpreter, each counted once for each active lane.
    pub thread_instructions: u64,
}

impl Statistics {
    /// Returns the sums of the counters of two runs.
    pub fn plus(self, other: Statistics) -> Statistics {
        Statistics {
            blocks: self.blocks + other.blocks,
            warps: self.warps + other.warps,
            warp_instructions: self.warp_instructions + other.warp_instructions,
            thread_instructions: self.thread_instructions + other.thread_instructions,
        }
    }
}
