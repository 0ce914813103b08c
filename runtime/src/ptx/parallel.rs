//! A launch over the cores of this machine ([`cores`](crate::cores)).
//!
//! Blocks run in order unless nobody can tell the difference. So a kernel whose blocks may wait for one another, or which reads
//! a clock, runs on one thread. Of the others each thread keeps which words it has loaded and stored: where one has
//! stored what another has touched, or anything was found, all that they did is thrown away, and the launch runs in order.

use super::code::{Code, Kind};
use super::machine::{Machine, Setting};
use super::memory::Buffer;
use super::touched::Touched;
use super::{Checks, Options, Program, Statistics};
use crate::cores::{Copies, Demand, block_numbers, each, merge};

/// What a thread did.
struct Part {
    statistics: Statistics,
    /// Whether it found nothing.
    quiet: bool,
    /// By buffer, what it has touched.
    touched: Vec<Option<Box<Touched>>>,
}

/// Runs the launch over several threads. `None` if it has to run on one; then nothing has happened to the buffers.
pub fn run(program: &Program, setting: &Setting, buffers: &mut [Buffer<'_>], options: Options) -> Option<Statistics> {
    if !is_deaf(&program.code, options.checks) {
        return None;
    }
    let warps = setting.threads.iter().product::<u32>().div_ceil(32);
    let demand = Demand {
        blocks: setting.blocks(),
        instructions: setting.blocks().saturating_mul(warps.into()).saturating_mul(program.code.insts.len() as u64),
        // Each word is told apart, too.
        copied: buffers.iter().filter_map(Buffer::copied).map(|bytes| 2 * bytes.len()).sum(),
        threads: options.threads,
    };
    let threads = demand.threads()?;
    let mut copies: Vec<Copies> =
        (0..threads).map(|_| buffers.iter().map(|buffer| buffer.copied().map(<[u8]>::to_vec)).collect()).collect();
    let shared = &*buffers;
    let parts: Vec<Part> = each(&mut copies, |number, copies| {
        let own = shared.iter().zip(copies).map(|(buffer, copy)| buffer.over(copy));
        let mut machine = Machine::new(program, setting, own.collect(), options);
        machine.run(block_numbers(setting.blocks(), number, threads));
        Part {
            statistics: machine.statistics,
            quiet: machine.findings.is_empty(),
            touched: machine.memory.buffers.into_iter().map(|buffer| buffer.touched).collect(),
        }
    });
    let statistics = parts.iter().fold(Statistics::default(), |all, part| all.and(part.statistics));
    let quiet = parts.iter().all(|part| part.quiet);
    if !quiet || meet(&parts) {
        return None;
    }
    for (i, buffer) in buffers.iter_mut().enumerate() {
        if let Some(bytes) = buffer.written() {
            merge(bytes, i, &copies);
        }
    }
    Some(statistics)
}

/// Whether a block cannot be told of another but by what it loads.
fn is_deaf(code: &Code, checks: Checks) -> bool {
    let tells = |kind: &Kind| matches!(kind, Kind::Atomic(_) | Kind::Clock { .. } | Kind::Copy(_));
    // Which buffers hold what comes of an approximation is kept for all of a launch.
    let marks = checks == Checks::All && !code.bounds.is_empty();
    !code.ordered && !marks && !code.insts.iter().any(|inst| tells(&inst.kind))
}

/// Whether one thread has stored what another has touched.
fn meet(parts: &[Part]) -> bool {
    let mut pairs = parts.iter().enumerate().flat_map(|(i, one)| parts[..i].iter().map(move |other| (one, other)));
    pairs.any(|(one, other)| {
        let both = one.touched.iter().zip(&other.touched);
        both.filter_map(|(a, b)| a.as_ref().zip(b.as_ref())).any(|(a, b)| a.conflicts(b))
    })
}
