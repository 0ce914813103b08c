//! The scheduler: which block and which warp runs next.
//!
//! Both interpreters use this loop. A block runs in *rounds*: each warp that is ready runs until it
//! waits or ends, in the order of the [`Schedule`]. After a round the interpreter resumes warps,
//! for example at a complete barrier, or ends the block. A warp that yields before it waits or ends
//! runs again in the next round.

use crate::{GridShape, Schedule};

/// A running block of an interpreter.
pub trait RunningBlock {
    /// A warp of the block.
    type Warp;

    /// Returns whether the warp can run: it has not ended and does not wait.
    fn is_ready(&self, warp: &Self::Warp) -> bool;

    /// Runs a warp that is ready, until it waits, ends or yields.
    fn run_warp(&mut self, warp: &mut Self::Warp);

    /// Returns whether the launch was stopped.
    fn is_stopped(&self) -> bool;

    /// Returns the number of the interval between barriers, which selects the order of the round.
    fn phase(&self) -> u64;

    /// Resumes warps after a round, and returns whether the block continues. The block may add
    /// warps after the first, such as lanes that run separately from their warp; a round runs them
    /// last.
    fn resume(&mut self, warps: &mut Vec<Self::Warp>) -> bool;
}

/// Selects the blocks of a launch and the warps of a block.
#[derive(Debug)]
pub struct Scheduler {
    schedule: Schedule,
    grid: GridShape,
    /// The order of the block's own warps in a round.
    order: Vec<usize>,
}

impl Scheduler {
    /// Returns the scheduler of a launch.
    pub fn new(schedule: Schedule, grid: GridShape) -> Scheduler {
        Scheduler { schedule, grid, order: vec![0; grid.warp_count() as usize] }
    }

    /// Returns the index in x, y, z of the `n`th block to run.
    pub fn block(&self, n: u64) -> [u32; 3] {
        self.grid.block(self.schedule.block(n, self.grid.block_count()))
    }

    /// Runs a block to its end, or until it is stopped.
    pub fn run_block<B: RunningBlock>(&mut self, block: &mut B, warps: &mut Vec<B::Warp>) {
        loop {
            self.schedule.warps(block.phase(), &mut self.order);
            for next in self.order.iter().copied().chain(self.order.len()..warps.len()) {
                if block.is_ready(&warps[next]) {
                    block.run_warp(&mut warps[next]);
                }
                if block.is_stopped() {
                    return;
                }
            }
            if !block.resume(warps) {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A block for tests: each warp runs a given number of rounds, and the trace lists the index of
    /// the warp of each run.
    struct Counted {
        trace: Vec<(u64, usize)>,
        phase: u64,
        limit: usize,
    }

    impl RunningBlock for Counted {
        type Warp = (usize, u32);

        fn is_ready(&self, warp: &(usize, u32)) -> bool {
            warp.1 > 0
        }

        fn run_warp(&mut self, warp: &mut (usize, u32)) {
            warp.1 -= 1;
            self.trace.push((self.phase, warp.0));
        }

        fn is_stopped(&self) -> bool {
            self.trace.len() >= self.limit
        }

        fn phase(&self) -> u64 {
            self.phase
        }

        fn resume(&mut self, warps: &mut Vec<(usize, u32)>) -> bool {
            self.phase += 1;
            if self.phase == 1 {
                warps.push((9, 1));
            }
            warps.iter().any(|warp| warp.1 > 0)
        }
    }

    fn trace(schedule: Schedule, limit: usize) -> Vec<(u64, usize)> {
        let grid = GridShape { blocks: [1; 3], threads: [96, 1, 1] };
        let mut block = Counted { trace: Vec::new(), phase: 0, limit };
        Scheduler::new(schedule, grid).run_block(&mut block, &mut vec![(0, 1), (1, 2), (2, 1)]);
        block.trace
    }

    #[test]
    fn rounds_run_ready_warps_in_the_order_of_the_schedule() {
        assert_eq!(trace(Schedule::InOrder, 99), [(0, 0), (0, 1), (0, 2), (1, 1), (1, 9)]);
        assert_eq!(trace(Schedule::Reversed, 99), [(0, 2), (0, 1), (0, 0), (1, 1), (1, 9)]);
        assert_eq!(trace(Schedule::InOrder, 2), [(0, 0), (0, 1)]);
    }
}
