//! Launches on several host threads: each thread runs some of the blocks on separate copies of the
//! memory.
//!
//! Blocks that do not communicate have the same effect in every order. So each thread can start
//! from the launch's initial memory. Each interpreter decides for which launches this is valid, and
//! merges what the threads have stored.

use crate::GridShape;
use std::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::thread::{self, available_parallelism};

/// The smallest work for which it is worth starting threads, in warp instructions: about a
/// millisecond. Each instruction of a loop's body counts once.
const MIN_INSTRUCTIONS: u64 = 1 << 15;

/// The maximum number of threads. Each has a copy of the memory that the launch may write.
const MAX_THREADS: usize = 16;

/// The maximum size of all copies, in bytes.
const MAX_COPIED_BYTES: usize = 1 << 30;

/// The work of a launch, for choosing the number of threads.
#[derive(Clone, Copy, Debug)]
pub struct SplitLimits {
    /// The shape of the launch.
    pub grid: GridShape,
    /// The number of instructions of the code.
    pub instructions: usize,
    /// The size of each thread's copies, in bytes.
    pub copied: usize,
    /// The largest number of threads; `None` for the number of cores.
    pub threads: Option<NonZeroUsize>,
}

impl SplitLimits {
    /// Returns the number of threads; `None` if one thread runs the launch.
    fn threads(self) -> Option<usize> {
        let (blocks, warps) = (self.grid.block_count(), u64::from(self.grid.warp_count()));
        if warps.saturating_mul(blocks).saturating_mul(self.instructions as u64) < MIN_INSTRUCTIONS {
            return None;
        }
        let blocks = usize::try_from(blocks).unwrap_or(MAX_THREADS);
        let most =
            self.threads.map_or(MAX_THREADS, NonZeroUsize::get).min(blocks).min(MAX_COPIED_BYTES / self.copied.max(1));
        if most < 2 {
            return None;
        }
        let threads = match self.threads {
            Some(_) => most,
            None => most.min(available_parallelism().map_or(1, NonZeroUsize::get)),
        };
        (threads >= 2).then_some(threads)
    }
}

/// A thread's copies, by buffer: its bytes, or `None` if the launch does not write the buffer.
pub type BufferCopies = Vec<Option<Vec<u8>>>;

/// Runs a launch on several threads. `copies` makes the copies of one thread, and `run` runs the
/// given blocks on them. Returns the result of each thread with its copies, or `None` if one thread
/// must run the launch.
pub fn run<T: Send>(
    demand: SplitLimits,
    copies: impl Fn() -> BufferCopies,
    run: impl Fn(&mut dyn Iterator<Item = u64>, &mut BufferCopies) -> T + Sync,
) -> Option<(Vec<T>, Vec<BufferCopies>)> {
    let threads = demand.threads()?;
    let mut copies: Vec<BufferCopies> = (0..threads).map(|_| copies()).collect();
    let (run, blocks) = (&run, demand.grid.block_count());
    let parts = thread::scope(|scope| {
        let workers = copies.iter_mut().enumerate();
        let workers = workers
            .map(|(number, copies)| scope.spawn(move || run(&mut block_numbers(blocks, number, threads), copies)));
        let workers: Vec<_> = workers.collect();
        workers.into_iter().map(|worker| worker.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    });
    Some((parts, copies))
}

/// Returns whether `conflict` holds for a pair of parts.
pub fn any_pair<T>(parts: &[T], conflict: impl Fn(&T, &T) -> bool) -> bool {
    parts.iter().enumerate().any(|(i, one)| parts[..i].iter().any(|other| conflict(one, other)))
}

/// Returns the blocks of thread `number` of `threads`: every `threads`-th one, because neighboring
/// blocks have similar work. Under a causal mask, for example, the last blocks have the most.
fn block_numbers(blocks: u64, number: usize, threads: usize) -> impl Iterator<Item = u64> {
    (0..blocks).skip(number).step_by(threads)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_block_runs_once() {
        let mut all: Vec<u64> = (0..3).flat_map(|number| block_numbers(10, number, 3)).collect();
        all.sort_unstable();
        assert_eq!(all, (0..10).collect::<Vec<u64>>());
    }
}
