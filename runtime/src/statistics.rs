//! What a run of an interpreter did, in numbers.

use serde::Serialize;

/// What a run did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Statistics {
    /// Blocks begun.
    pub blocks: u64,
    /// Warps begun.
    pub warps: u64,
    /// Instructions of the interpreter, each counted once a warp.
    pub warp_instructions: u64,
    /// The same, each counted once an active lane.
    pub thread_instructions: u64,
}

impl Statistics {
    /// Of both together.
    pub(crate) fn and(self, other: Statistics) -> Statistics {
        Statistics {
            blocks: self.blocks + other.blocks,
            warps: self.warps + other.warps,
            warp_instructions: self.warp_instructions + other.warp_instructions,
            thread_instructions: self.thread_instructions + other.thread_instructions,
        }
    }
}
