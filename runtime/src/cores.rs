//! A launch over the cores of this machine: each thread runs some of the blocks, on memory of its own.
//!
//! Blocks that cannot tell one another anything leave the same in every order. So each thread begins with what the launch began
//! with, and in the end the bytes that each has changed are brought together. Which launches that is right for, each
//! interpreter knows for itself.

use std::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::thread::{self, available_parallelism};

/// Instructions that a launch must have, each counted once a warp, for threads to be worth their start: about a
/// millisecond of them. Turns of loops are not known, and count once.
const WORTH: u64 = 1 << 15;

/// Threads at most: each has a copy of what the launch may write.
const MOST: usize = 16;

/// Bytes of all copies at most.
const COPIED: usize = 1 << 30;

/// What a launch asks of a machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Demand {
    /// Its blocks.
    pub blocks: u64,
    /// Its instructions, each counted once a warp.
    pub instructions: u64,
    /// Bytes that each thread has for itself.
    pub copied: usize,
    /// The threads that it may have; `None` is as many as the machine has cores.
    pub threads: Option<NonZeroUsize>,
}

impl Demand {
    /// How many threads run it; `None` if one does.
    pub fn threads(self) -> Option<usize> {
        if self.instructions < WORTH {
            return None;
        }
        let blocks = usize::try_from(self.blocks).unwrap_or(MOST);
        let most = self.threads.map_or(MOST, NonZeroUsize::get).min(blocks).min(COPIED / self.copied.max(1));
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

/// By buffer, a thread's copy of its bytes, if the launch may write them.
pub(crate) type Copies = Vec<Option<Vec<u8>>>;

/// Runs `run` on a thread for each of `copies`, with its number, and gives what it returns.
pub(crate) fn each<T: Send>(copies: &mut [Copies], run: impl Fn(usize, &mut Copies) -> T + Sync) -> Vec<T> {
    let run = &run;
    thread::scope(|scope| {
        let workers = copies.iter_mut().enumerate();
        let workers: Vec<_> = workers.map(|(number, copies)| scope.spawn(move || run(number, copies))).collect();
        workers.into_iter().map(|worker| worker.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    })
}

/// The turns of thread `number` of `threads`: every so manieth block, since neighbouring blocks are alike. The last ones of a
/// causal mask have the most to do.
pub(crate) fn block_numbers(blocks: u64, number: usize, threads: usize) -> impl Iterator<Item = u64> {
    (0..blocks).skip(number).step_by(threads)
}

/// Gives buffer `buffer`, whose bytes are `bytes`, what each thread has changed of it, and where several have, what the last did.
pub(crate) fn merge(bytes: &mut [u8], buffer: usize, copies: &[Copies]) {
    const CHUNK: usize = 64;
    let copies: Vec<&[u8]> = copies.iter().filter_map(|copies| copies[buffer].as_deref()).collect();
    for (i, bytes) in bytes.chunks_mut(CHUNK).enumerate() {
        let mut before = [0; CHUNK];
        let before = &mut before[..bytes.len()];
        before.copy_from_slice(bytes);
        for copy in &copies {
            let copy = &copy[i * CHUNK..][..bytes.len()];
            if copy != before {
                let changed = bytes.iter_mut().zip(copy).zip(&*before).filter(|((_, new), old)| new != old);
                changed.for_each(|((byte, new), _)| *byte = *new);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_each_copy_changed_is_kept() {
        let original: Vec<u8> = (0..150).collect();
        let (mut a, mut b, mut both) = (original.clone(), original.clone(), original.clone());
        for (i, byte) in [(0, 200), (63, 201), (64, 202), (149, 203)] {
            (a[i], both[i]) = (byte, byte);
        }
        for (i, byte) in [(1, 210), (65, 211), (148, 212)] {
            (b[i], both[i]) = (byte, byte);
        }
        let mut merged = original.clone();
        merge(&mut merged, 1, &[vec![None, Some(a)], vec![None, Some(b)]]);
        assert_eq!(merged, both);
        let mut none: [u8; 0] = [];
        merge(&mut none, 0, &[vec![Some(Vec::new())], vec![Some(Vec::new())]]);
    }

    #[test]
    fn every_block_has_one_turn() {
        let mut all: Vec<u64> = (0..3).flat_map(|number| block_numbers(10, number, 3)).collect();
        all.sort_unstable();
        assert_eq!(all, (0..10).collect::<Vec<u64>>());
    }
}
