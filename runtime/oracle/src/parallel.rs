//! Execution of a launch on the cores of this machine ([`runtime_simt::split`]).
//!
//! Blocks without atomic operations cannot communicate: a load of a value that another block has
//! stored is a race. The results of all threads are discarded, and the launch runs in order on one
//! thread, if:
//!
//! - a thread has a finding, or a value that a second run must trace;
//! - threads race with each other;
//! - the threads together have not written every output that the kernel declares.
//!
//! A report therefore does not depend on the number of cores. Without shadow memory
//! ([`Checks::Values`], [`Checks::Accesses`]) races are not detected; a kernel with races then
//! keeps the store of one of its blocks.

use crate::code::Inst;
use crate::machine::memory::Buffer;
use crate::machine::nonfinite::StoredNonFinite;
use crate::machine::outputs::is_covered;
use crate::machine::shadow::Shadow;
use crate::machine::{LaunchConstants, Machine};
use crate::{Checks, Options, Program, Statistics};
use runtime_simt::split::{self, BufferCopies, SplitLimits};

/// The results of one thread.
struct ThreadResults {
    statistics: Statistics,
    /// Whether the thread has a finding, or a value that a second run must trace.
    found: bool,
    /// The shadow memory of each buffer.
    shadows: Vec<Shadow>,
}

/// Runs the launch on several threads. Returns `None` if it must run on one; the buffers are
/// unchanged then.
pub fn run(
    program: &Program,
    setting: &LaunchConstants,
    buffers: &mut [Buffer<'_>],
    options: &Options,
    stored: StoredNonFinite,
) -> Option<Statistics> {
    let demand = demand(program, setting, buffers, options)?;
    let shared = &*buffers;
    let copies = || shared.iter().map(Buffer::copied).collect();
    let (parts, copies): (Vec<ThreadResults>, _) = split::run(demand, copies, |blocks, copies| {
        let own = shared.iter().zip(copies).map(|(buffer, copy)| buffer.over(copy));
        let mut machine = Machine::new(program, setting, own.collect(), options, None);
        machine.stored = stored;
        machine.run(blocks);
        ThreadResults {
            statistics: machine.statistics,
            found: !machine.findings.is_empty() || machine.stored == StoredNonFinite::NonFinite || machine.undefined,
            shadows: machine.buffers.into_iter().map(|buffer| buffer.shadow).collect(),
        }
    })?;
    let statistics = parts.iter().fold(Statistics::default(), |all, part| all.plus(part.statistics));
    let quiet = parts.iter().all(|part| !part.found);
    let covered = |(i, buffer): (usize, &Buffer<'_>)| {
        let shadows: Vec<_> = parts.iter().map(|part| &part.shadows[i]).collect();
        options.checks < Checks::All || is_covered(buffer, &shadows)
    };
    if !quiet || setting.budget.is_spent() || split::any_pair(&parts, races) || !buffers.iter().enumerate().all(covered)
    {
        setting.budget.renew();
        options.recount_blocks();
        return None;
    }
    for (i, buffer) in buffers.iter_mut().enumerate() {
        if let Some(bytes) = buffer.written() {
            merge(bytes, i, &copies);
            for part in &parts {
                buffer.contract.uninit = part.shadows[i].unwritten_of(&buffer.contract.uninit);
            }
        }
    }
    Some(statistics)
}

/// Returns the work of a launch, or `None` if its blocks must run in order.
fn demand(
    program: &Program,
    setting: &LaunchConstants,
    buffers: &[Buffer<'_>],
    options: &Options,
) -> Option<SplitLimits> {
    let code = &program.code;
    // Only these instructions can observe the order of blocks or a clock. A record keeps the first
    // report, and printed lines have an order. A load of another block's store needs no rule: it is
    // a race, or finds the element uninitialized in the thread's copy.
    let alone = |inst: &Inst| {
        matches!(inst, Inst::Atomic(_) | Inst::Inline(_) | Inst::RecordViolation(_) | Inst::Log(_) | Inst::GridSync)
    };
    if code.insts.iter().any(alone) {
        return None;
    }
    Some(SplitLimits {
        grid: setting.grid,
        instructions: code.insts.len(),
        copied: buffers.iter().filter(|b| b.mutable).map(|b| b.bytes.get().len()).sum(),
        threads: options.threads,
    })
}

/// Returns whether blocks of two threads race.
fn races(one: &ThreadResults, other: &ThreadResults) -> bool {
    one.shadows.iter().zip(&other.shadows).any(|(a, b)| a.conflicts(b))
}

/// Merges into `bytes`, the content of buffer `buffer`, the bytes that each thread has changed; the
/// last thread wins. The launch borrows the buffers, so that nothing else has changed them.
fn merge(bytes: &mut [u8], buffer: usize, copies: &[BufferCopies]) {
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
    fn changes_of_all_copies_are_merged() {
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
}
