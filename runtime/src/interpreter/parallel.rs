//! A launch over the cores of this machine: each thread runs some of the blocks, on memory of its own.
//!
//! Blocks without atomic operations cannot tell one another anything: where one loads what another has stored, they race.
//! So each thread begins with what the launch began with, and in the end the bytes that each has changed are brought
//! together. If a thread has found anything, or threads race with one another, all that is thrown away, and the launch
//! runs in order on one thread: what a report says does not depend on how many cores there are. Without
//! shadow memory ([`Checks::Values`], [`Checks::Accesses`]) races are not seen; then a kernel that has some leaves what one
//! of its blocks stored.

use super::code::Inst;
use super::machine::{Machine, Setting};
use super::memory::Buffer;
use super::provenance::Stored;
use super::shadow::Shadow;
use super::watch::Watch;
use super::{Options, Program, Statistics};
use std::panic::resume_unwind;
use std::thread::{self, available_parallelism};

/// Instructions that a launch must have, each counted once a warp, for threads to be worth their start: about a
/// millisecond of them. Turns of loops are not known, and count once.
const WORTH: u64 = 1 << 15;

/// Threads at most: each has a copy of what the launch may write.
const MOST: usize = 16;

/// Bytes of all copies at most.
const COPIED: usize = 1 << 30;

/// What a thread did.
struct Part {
    statistics: Statistics,
    /// Whether it found anything, or anything to look for.
    found: bool,
    /// By buffer.
    shadows: Vec<Shadow>,
}

/// Runs the launch over several threads. `None` if it has to run on one; then nothing has happened to the buffers.
pub fn run(
    program: &Program,
    setting: &Setting,
    buffers: &mut [Buffer<'_>],
    options: &Options,
    stored: Stored,
) -> Option<Statistics> {
    let threads = threads(program, setting, buffers, options)?;
    let mut copies: Vec<Vec<Option<Vec<u8>>>> =
        (0..threads).map(|_| buffers.iter().map(Buffer::copied).collect()).collect();
    let parts: Vec<Part> = thread::scope(|scope| {
        let shared = &*buffers;
        let workers = copies.iter_mut().enumerate().map(|(first, copies)| {
            scope.spawn(move || {
                let own = shared.iter().zip(copies).map(|(buffer, copy)| buffer.over(copy));
                let mut machine = Machine::new(program, setting, own.collect(), options, Watch::Nobody);
                machine.stored = stored;
                // In turns, since neighbouring blocks are alike: the last ones of a causal mask have the most to do.
                machine.run((0..setting.blocks()).skip(first).step_by(threads));
                Part {
                    statistics: machine.statistics,
                    found: !machine.findings.is_empty() || machine.stored == Stored::Strange,
                    shadows: machine.buffers.into_iter().map(|buffer| buffer.shadow).collect(),
                }
            })
        });
        let workers: Vec<_> = workers.collect();
        workers.into_iter().map(|worker| worker.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    });
    let statistics = parts.iter().fold(Statistics::default(), |all, part| all.and(part.statistics));
    let quiet = parts.iter().all(|part| !part.found) && statistics.warp_instructions <= options.fuel;
    if !quiet || setting.budget.is_spent() || race(&parts) {
        setting.budget.renew();
        return None;
    }
    for (i, buffer) in buffers.iter_mut().enumerate() {
        if let Some(bytes) = buffer.written() {
            let copies: Vec<&[u8]> = copies.iter().filter_map(|copies| copies[i].as_deref()).collect();
            merge(bytes, &copies);
        }
    }
    Some(statistics)
}

/// How many threads run a launch; `None` if one does.
fn threads(program: &Program, setting: &Setting, buffers: &[Buffer<'_>], options: &Options) -> Option<usize> {
    let code = &program.code;
    // An order of blocks and clocks is something that a kernel may see by these alone; a record keeps what came first; and
    // what all of a launch owes to a buffer, no part of it does.
    let alone = |inst: &Inst| matches!(inst, Inst::Atomic(_) | Inst::Inline(_) | Inst::Report(_));
    let work = setting.warps().saturating_mul(setting.blocks()).saturating_mul(code.insts.len() as u64);
    let owed = buffers.iter().any(|buffer| buffer.duty.is_owed());
    if work < WORTH || owed || code.insts.iter().any(alone) {
        return None;
    }
    let most = options.threads.map_or(MOST, |threads| threads.get());
    let blocks = usize::try_from(setting.blocks()).unwrap_or(MOST);
    let copied: usize = buffers.iter().filter(|b| b.mutable).map(|b| b.bytes.get().len()).sum();
    let threads = most.min(blocks).min(COPIED / copied.max(1));
    if threads < 2 {
        return None;
    }
    let threads = match options.threads {
        Some(_) => threads,
        None => threads.min(available_parallelism().map_or(1, |cores| cores.get())),
    };
    (threads >= 2).then_some(threads)
}

/// Whether blocks of different threads race.
fn race(parts: &[Part]) -> bool {
    let mut pairs = parts.iter().enumerate().flat_map(|(i, one)| parts[..i].iter().map(move |other| (one, other)));
    pairs.any(|(one, other)| one.shadows.iter().zip(&other.shadows).any(|(a, b)| a.conflicts(b)))
}

/// Gives `bytes` what each of `copies` of it has changed, and where several have, what the last did.
fn merge(bytes: &mut [u8], copies: &[&[u8]]) {
    const CHUNK: usize = 64;
    for (i, bytes) in bytes.chunks_mut(CHUNK).enumerate() {
        let mut before = [0; CHUNK];
        let before = &mut before[..bytes.len()];
        before.copy_from_slice(bytes);
        for copy in copies {
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
        merge(&mut merged, &[&a, &b]);
        assert_eq!(merged, both);
        let mut none: [u8; 0] = [];
        merge(&mut none, &[&[], &[]]);
    }
}
