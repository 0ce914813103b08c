//! A launch over the cores of this machine ([`cores`](crate::cores)).
//!
//! Blocks without atomic operations cannot tell one another anything: where one loads what another has stored, they race.
//! If a thread has found anything, or threads race with one another, or have together not written all that the kernel declares, what they did is thrown
//! away, and the launch runs in order on one thread: what a report says does not depend on how many cores there are. Without
//! shadow memory ([`Checks::Values`], [`Checks::Accesses`]) races are not seen; then a kernel that has some leaves what one
//! of its blocks stored.

use super::code::Inst;
use super::machine::{Machine, Setting};
use super::memory::Buffer;
use super::outputs::is_covered;
use super::provenance::Stored;
use super::shadow::Shadow;
use super::watch::Watch;
use super::{Checks, Options, Program, Statistics};
use crate::cores::{Copies, Demand, block_numbers, each, merge};

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
    let mut copies: Vec<Copies> = (0..threads).map(|_| buffers.iter().map(Buffer::copied).collect()).collect();
    let shared = &*buffers;
    let parts: Vec<Part> = each(&mut copies, |number, copies| {
        let own = shared.iter().zip(copies).map(|(buffer, copy)| buffer.over(copy));
        let mut machine = Machine::new(program, setting, own.collect(), options, Watch::Nobody);
        machine.stored = stored;
        machine.run(block_numbers(setting.blocks(), number, threads));
        Part {
            statistics: machine.statistics,
            found: !machine.findings.is_empty() || machine.stored == Stored::Strange || machine.undefined,
            shadows: machine.buffers.into_iter().map(|buffer| buffer.shadow).collect(),
        }
    });
    let statistics = parts.iter().fold(Statistics::default(), |all, part| all.and(part.statistics));
    let quiet = parts.iter().all(|part| !part.found);
    let covered = |(i, buffer): (usize, &Buffer<'_>)| {
        let shadows: Vec<_> = parts.iter().map(|part| &part.shadows[i]).collect();
        options.checks < Checks::All || is_covered(buffer, &shadows)
    };
    if !quiet || setting.budget.is_spent() || race(&parts) || !buffers.iter().enumerate().all(covered) {
        setting.budget.renew();
        return None;
    }
    for (i, buffer) in buffers.iter_mut().enumerate() {
        if let Some(bytes) = buffer.written() {
            merge(bytes, i, &copies);
            for part in &parts {
                buffer.duty.uninit = part.shadows[i].unwritten_of(&buffer.duty.uninit);
            }
        }
    }
    Some(statistics)
}

/// How many threads run a launch; `None` if one does.
fn threads(program: &Program, setting: &Setting, buffers: &[Buffer<'_>], options: &Options) -> Option<usize> {
    let code = &program.code;
    // An order of blocks and clocks is something that a kernel may see by these alone; and a record keeps what came first.
    // What a block loads where only another has stored, it finds to hold nothing.
    let alone = |inst: &Inst| matches!(inst, Inst::Atomic(_) | Inst::Inline(_) | Inst::Report(_));
    if code.insts.iter().any(alone) {
        return None;
    }
    let demand = Demand {
        blocks: setting.blocks(),
        instructions: setting.warps().saturating_mul(setting.blocks()).saturating_mul(code.insts.len() as u64),
        copied: buffers.iter().filter(|b| b.mutable).map(|b| b.bytes.get().len()).sum(),
        threads: options.threads,
    };
    demand.threads()
}

/// Whether blocks of different threads race.
fn race(parts: &[Part]) -> bool {
    let mut pairs = parts.iter().enumerate().flat_map(|(i, one)| parts[..i].iter().map(move |other| (one, other)));
    pairs.any(|(one, other)| one.shadows.iter().zip(&other.shadows).any(|(a, b)| a.conflicts(b)))
}
