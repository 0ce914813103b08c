//! Launches on several cores of the host ([`runtime_simt::split`]).
//!
//! Blocks run in parallel only if the result is the same as in order. A kernel runs on one thread
//! if it has fences, strong accesses, atomic operations, clock readings, `cp.async`, or accesses to
//! textures and surfaces. The same holds for a kernel with approximations, if every check is
//! enabled. Where written bytes are tracked and some are missing, the launch also runs on one
//! thread, as does a launch that looks for races.
//!
//! For other kernels each thread tracks which words it has loaded and stored. A conflict exists if
//! one thread has stored a word that another has accessed. After a conflict or a finding, the
//! results of all threads are discarded, and the launch runs in order.

use super::Statistics;
use super::code::{Code, InstructionKind};
use super::launch::{Checks, Options};
use super::machine::{LaunchSetting, Machine};
use super::memory::Buffer;
use super::program::Program;
use super::touched::TouchedWords;
use runtime_simt::split::{self, SplitLimits};

/// The result of one thread.
struct ThreadResult {
    statistics: Statistics,
    /// Whether the thread had no findings.
    quiet: bool,
    /// For each buffer, the words that the thread has accessed.
    touched: Vec<Option<Box<TouchedWords>>>,
}

/// Runs the launch on several threads. Returns `None` if the launch must run on one thread; the
/// buffers are unchanged then.
pub fn run(
    program: &Program,
    setting: &LaunchSetting,
    buffers: &mut [Buffer<'_>],
    options: Options,
) -> Option<Statistics> {
    let is_tracked = buffers.iter().any(|buffer| buffer.initialized.is_some());
    if is_tracked
        || options.races && options.checks.enables_races()
        || !communicates_only_by_loads(&program.code, options.checks)
    {
        return None;
    }
    let demand = SplitLimits {
        grid: setting.grid,
        instructions: program.code.insts.len(),
        // The tracking of accessed words also takes memory, which the factor covers.
        copied: buffers.iter().filter_map(Buffer::copied).map(|bytes| 2 * bytes.len()).sum(),
        threads: options.threads,
    };
    let shared = &*buffers;
    let copies = || shared.iter().map(|buffer| buffer.copied().map(<[u8]>::to_vec)).collect();
    let (parts, copies): (Vec<ThreadResult>, _) = split::run(demand, copies, |blocks, copies| {
        let own = shared.iter().zip(copies).map(|(buffer, copy)| buffer.over(copy));
        let mut machine = Machine::new(program, setting, own.collect(), options);
        machine.run(blocks);
        ThreadResult {
            statistics: machine.statistics,
            quiet: machine.findings.is_empty(),
            touched: machine.memory.buffers.into_iter().map(|buffer| buffer.touched).collect(),
        }
    })?;
    let statistics = parts.iter().fold(Statistics::default(), |all, part| all.plus(part.statistics));
    let quiet = parts.iter().all(|part| part.quiet);
    if !quiet || split::any_pair(&parts, conflict) {
        return None;
    }
    for (i, buffer) in buffers.iter_mut().enumerate() {
        let Some(bytes) = buffer.written() else { continue };
        for (part, copies) in parts.iter().zip(&copies) {
            if let (Some(touched), Some(copy)) = (&part.touched[i], &copies[i]) {
                touched.copy_stored(copy, bytes);
            }
        }
    }
    Some(statistics)
}

/// Returns whether blocks can communicate only through loads of words that other blocks stored.
fn communicates_only_by_loads(code: &Code, checks: Checks) -> bool {
    let communicates = |kind: &InstructionKind| {
        matches!(
            kind,
            InstructionKind::Atomic(_)
                | InstructionKind::Object(_)
                | InstructionKind::Clock { .. }
                | InstructionKind::Copy(_)
        )
    };
    // The mark of a buffer with approximate values is not merged from threads, so such a launch
    // runs in order.
    let marks = checks.is_complete() && !code.bounds.is_empty();
    !code.ordered && !marks && !code.insts.iter().any(|inst| communicates(&inst.kind))
}

/// Returns whether one thread has stored a word that the other has accessed.
fn conflict(one: &ThreadResult, other: &ThreadResult) -> bool {
    let both = one.touched.iter().zip(&other.touched);
    both.filter_map(|(a, b)| a.as_ref().zip(b.as_ref())).any(|(a, b)| a.conflicts(b))
}
