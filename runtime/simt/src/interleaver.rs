//! The scheduler of blocks that are resident at once: which warp of which block runs next.

use crate::{Preemption, Schedule};

/// The state of a warp of a resident block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WarpState {
    /// The warp can run.
    Ready,
    /// The warp polls: it can run, but has no effect until another thread changes memory.
    Idle,
    /// The warp waits or has ended.
    Waits,
}

/// A running launch of an interpreter whose blocks run interleaved.
pub trait RunningGrid {
    /// A resident block.
    type Block;

    /// Begins a block.
    fn begin(&mut self, number: u64) -> Self::Block;

    /// Returns the number of warps of a block, which may grow while the block runs.
    fn warp_count(&self, block: &Self::Block) -> usize;

    /// Returns the state of a warp.
    fn state(&self, block: &Self::Block, warp: usize) -> WarpState;

    /// Runs a warp until it waits, ends, or yields to other warps.
    fn run_warp(&mut self, block: &mut Self::Block, warp: usize);

    /// Returns whether the launch was stopped.
    fn is_stopped(&self) -> bool;

    /// Resumes warps of a block in which no warp can run, for example at a complete barrier.
    /// Returns whether the block continues.
    fn resume(&mut self, block: &mut Self::Block) -> bool;

    /// Looks at the resident blocks after a warp of one of them has run.
    fn end_turn(&mut self, _blocks: &mut [Self::Block], _block: usize, _warp: usize) {}

    /// Resumes warps when no warp of any resident block can run, or only idle warps can. Returns
    /// whether the launch continues.
    fn unblock(&mut self, blocks: &mut [Self::Block]) -> bool;
}

/// The bit in the priority of each warp that has lost its first priority.
const LOST_PRIORITY_BIT: u64 = 1 << 63;

/// Selects the next warp of a launch whose blocks run interleaved.
#[derive(Debug)]
pub struct Interleaver {
    preemption: Preemption,
    /// The largest number of blocks that are resident at once.
    resident: usize,
    /// The priority given to the last warp that lost its first priority.
    last: u64,
}

impl Interleaver {
    /// Returns the interleaver of a launch.
    pub fn new(schedule: Schedule, resident: usize) -> Interleaver {
        let preemption =
            if let Schedule::Preempted(preemption) = schedule { preemption } else { Preemption::default() };
        Interleaver { preemption, resident, last: LOST_PRIORITY_BIT }
    }

    /// Runs the blocks to their end, or until the launch is stopped. A block begins when a resident
    /// block has ended.
    pub fn run<G: RunningGrid>(&mut self, grid: &mut G, mut numbers: impl Iterator<Item = u64>) {
        let (mut blocks, mut priorities): (Vec<G::Block>, Vec<Vec<u64>>) = (Vec::new(), Vec::new());
        let mut begun = 0;
        loop {
            while blocks.len() < self.resident
                && let Some(number) = numbers.next()
            {
                let block = grid.begin(number);
                priorities.push((0..grid.warp_count(&block)).map(|w| self.preemption.priority(begun, w)).collect());
                blocks.push(block);
                begun += 1;
            }
            if blocks.is_empty() {
                return;
            }
            let mut next = self.next(grid, &blocks, &mut priorities);
            if !matches!(next, Some((WarpState::Ready, ..))) {
                if !grid.unblock(&mut blocks) || grid.is_stopped() {
                    return;
                }
                next = self.next(grid, &blocks, &mut priorities);
            }
            // Without a warp that can run even after `unblock`, the launch ends.
            let Some((_, block, warp)) = next else { return };
            grid.run_warp(&mut blocks[block], warp);
            if !grid.is_stopped() {
                grid.end_turn(&mut blocks, block, warp);
            }
            if grid.is_stopped() {
                return;
            }
            let all = 0..grid.warp_count(&blocks[block]);
            let waits = |w: usize| grid.state(&blocks[block], w) == WarpState::Waits;
            if !waits(warp) {
                self.last += 1;
                priorities[block][warp] = self.last;
            }
            if all.clone().all(waits) && !grid.resume(&mut blocks[block]) {
                blocks.remove(block);
                priorities.remove(block);
            }
            if grid.is_stopped() {
                return;
            }
        }
    }

    /// Returns the warp with the highest priority among those that can run. Returns an idle warp
    /// only if all warps that can run are idle.
    fn next<G: RunningGrid>(
        &mut self,
        grid: &G,
        blocks: &[G::Block],
        priorities: &mut [Vec<u64>],
    ) -> Option<(WarpState, usize, usize)> {
        let mut best: Option<((bool, u64), WarpState, usize, usize)> = None;
        for (b, (block, priorities)) in blocks.iter().zip(priorities).enumerate() {
            let count = grid.warp_count(block);
            priorities.truncate(count);
            while priorities.len() < count {
                self.last += 1;
                priorities.push(self.last);
            }
            for (w, priority) in priorities.iter().enumerate() {
                let state = grid.state(block, w);
                let rank = (state == WarpState::Idle, *priority);
                if state != WarpState::Waits && best.is_none_or(|(before, ..)| rank < before) {
                    best = Some((rank, state, b, w));
                }
            }
        }
        best.map(|(_, state, block, warp)| (state, block, warp))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::str::FromStr;

    /// A grid for tests: each warp runs a given number of times, and the trace lists the block and
    /// the warp of each run.
    #[derive(Default)]
    struct Counted {
        trace: Vec<(u64, usize)>,
    }

    struct Block {
        number: u64,
        left: Vec<u32>,
    }

    impl RunningGrid for Counted {
        type Block = Block;

        fn begin(&mut self, number: u64) -> Block {
            Block { number, left: vec![2, 2] }
        }

        fn warp_count(&self, block: &Block) -> usize {
            block.left.len()
        }

        fn state(&self, block: &Block, warp: usize) -> WarpState {
            if block.left[warp] > 0 { WarpState::Ready } else { WarpState::Waits }
        }

        fn run_warp(&mut self, block: &mut Block, warp: usize) {
            block.left[warp] -= 1;
            self.trace.push((block.number, warp));
        }

        fn is_stopped(&self) -> bool {
            self.trace.len() > 99
        }

        fn resume(&mut self, _: &mut Block) -> bool {
            false
        }

        fn unblock(&mut self, _: &mut [Block]) -> bool {
            false
        }
    }

    fn trace(preemption: &str, resident: usize) -> Vec<(u64, usize)> {
        let schedule = Schedule::Preempted(Preemption::from_str(preemption).unwrap());
        let mut grid = Counted::default();
        Interleaver::new(schedule, resident).run(&mut grid, 0..3);
        grid.trace
    }

    #[test]
    fn a_warp_that_leaves_the_processor_comes_last() {
        let one = trace("0", 1);
        assert_eq!(one[..4], [(0, 0), (0, 1), (0, 0), (0, 1)]);
        assert_eq!(one.len(), 12);
        let two = trace("0", 2);
        assert_eq!(two[..5], [(0, 0), (0, 1), (1, 0), (1, 1), (0, 0)]);
        assert_eq!(two.len(), 12);
    }

    #[test]
    fn seeds_give_different_orders_of_all_warps() {
        let first: std::collections::BTreeSet<_> = (1..50).map(|seed| trace(&seed.to_string(), 3)[0]).collect();
        assert_eq!(first.len(), 6);
        assert_eq!(trace("7", 3), trace("7", 3));
    }
}
