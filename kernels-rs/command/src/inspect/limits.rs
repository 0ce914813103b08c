//! The limits of a kernel: lower bounds of its time from the interpreter's counts, and suggestions.
//!
//! A bound is the time that one unit of the card needs for the work of the case without a pause.
//! The largest bound limits the kernel.

use super::model::{LineIndex, RustLine};
use crate::report::{AccessReport, ReportJson, percent};
use kernel_dsl::compiler::analyses::memory::{AccessKind, Cost, SECTOR};
use runtime::interpreter::profile::{BranchCounts, MemoryProfile, RequestKind, RequestMemory, TouchedBytes};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A card whose rates the bounds use.
#[derive(Clone, Copy, Serialize)]
pub(crate) struct Card {
    pub name: &'static str,
    pub multiprocessors: u32,
    /// Boost clock in Hz.
    pub clock: f64,
    /// Rate of the memory in bytes per second.
    pub memory: f64,
}

/// Figures of NVIDIA's whitepaper on the GeForce GTX 1080.
const CARD: Card = Card { name: "GeForce GTX 1080", multiprocessors: 20, clock: 1.733e9, memory: 320e9 };
/// Name of the card among the devices of estimates.
pub(super) const CARD_KEY: &str = "gtx1080";
/// Lanes of a multiprocessor that execute `f32` instructions, each with up to two operations.
const LANES: f64 = 128.0;
/// Warp schedulers of a multiprocessor, each of which issues one instruction per cycle.
const SCHEDULERS: f64 = 4.0;

/// Work of a case, as the interpreter counts it.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct CaseWork {
    /// Operations on floats.
    pub operations: u64,
    /// Bytes of global memory that are read at least once.
    pub read: u64,
    /// Bytes of global memory that are written at least once.
    pub written: u64,
    /// Instructions that warps execute.
    pub instructions: u64,
    /// Sectors of global memory that all requests move, if no cache keeps one.
    pub sectors: u64,
    /// Passes in which shared memory serves all requests.
    pub bank_passes: u64,
}

/// Costs of a case.
#[derive(Serialize)]
pub(crate) struct CaseLimits {
    pub card: Card,
    /// Operations on floats.
    pub operations: u64,
    /// Bytes of global memory that are read or written at least once.
    pub bytes: u64,
    /// Bytes of the sectors that all requests move, if no cache keeps one.
    pub requested: u64,
    /// Operations per byte.
    pub intensity: f64,
    /// Operations per second of the card at its best.
    pub peak: f64,
    pub grid: [u32; 3],
    /// Bounds, the largest first.
    pub bounds: Vec<TimeBound>,
    /// The largest bound, in one sentence.
    pub sentence: String,
}

/// Lower bound of the time by one unit.
#[derive(Serialize)]
pub(crate) struct TimeBound {
    pub unit: &'static str,
    pub microseconds: f64,
}

impl CaseWork {
    /// Sums the counts of a case.
    pub(crate) fn of(profile: &MemoryProfile) -> CaseWork {
        let total = |memory: RequestMemory, cost: fn(u64, u32) -> u64| -> u64 {
            let of_it = profile.accesses.iter().filter(|access| access.counts.memory == memory);
            of_it.map(|access| cost(access.counts.cost, access.bytes)).sum()
        };
        CaseWork {
            operations: profile.float_operations,
            read: touched(profile, |kind| kind != RequestKind::Store),
            written: touched(profile, |kind| kind != RequestKind::Load),
            instructions: profile.lines.iter().map(|line| line.instructions).sum(),
            sectors: total(RequestMemory::Global, |cost, _| cost),
            // A request of 8 or 16 bytes per lane is served in two or four passes.
            bank_passes: total(RequestMemory::Shared, |cost, bytes| cost * u64::from(bytes / 4).max(1)),
        }
    }

    /// Returns the bytes that memory must move at least.
    pub(crate) fn bytes(&self) -> u64 {
        self.read + self.written
    }
}

impl CaseLimits {
    /// Computes the bounds from the counts of a case.
    pub(crate) fn of(profile: &MemoryProfile) -> CaseLimits {
        let work = CaseWork::of(profile);
        let (operations, bytes) = (work.operations, work.bytes());
        let cycles = f64::from(CARD.multiprocessors) * CARD.clock;
        let bound = |unit, seconds: f64| TimeBound { unit, microseconds: 1e6 * seconds };
        let mut bounds = vec![
            bound("issue slots", work.instructions as f64 / SCHEDULERS / cycles),
            bound("float arithmetic", operations as f64 / 2.0 / LANES / cycles),
            bound("shared memory", work.bank_passes as f64 / cycles),
            bound("global memory", bytes as f64 / CARD.memory),
        ];
        bounds.sort_by(|a, b| b.microseconds.total_cmp(&a.microseconds));
        let [first, second] = [&bounds[0], &bounds[1]];
        let sentence = format!(
            "Limited by {}: on a {} this case keeps the unit busy for at least {}; {} follow{} with {} of that.",
            first.unit,
            CARD.name,
            microseconds(first.microseconds),
            second.unit,
            if second.unit.ends_with('s') { "" } else { "s" },
            percent(second.microseconds / first.microseconds.max(f64::MIN_POSITIVE)),
        );
        CaseLimits {
            card: CARD,
            operations,
            bytes,
            requested: work.sectors * SECTOR as u64,
            intensity: operations as f64 / bytes.max(1) as f64,
            peak: 2.0 * LANES * cycles,
            grid: profile.launched.grid,
            bounds,
            sentence,
        }
    }
}

/// Returns the bytes from the first to the last byte of global memory that accesses of these kinds
/// touch, added over all buffers.
fn touched(profile: &MemoryProfile, counts: impl Fn(RequestKind) -> bool) -> u64 {
    let mut by_array: BTreeMap<&str, TouchedBytes> = BTreeMap::new();
    let global = profile.accesses.iter().filter(|access| access.counts.memory == RequestMemory::Global);
    for access in global.filter(|access| counts(access.kind)) {
        if let (Some(array), Some(touched)) = (&access.array, access.touched) {
            by_array.entry(array).and_modify(|all| *all = all.union(touched)).or_insert(touched);
        }
    }
    by_array.values().map(|touched| touched.end.saturating_sub(touched.first)).sum()
}

/// Formats a time: `0.3 µs`, `12 µs`, `1.2 ms`.
fn microseconds(time: f64) -> String {
    match time {
        1000.0.. => format!("{:.1} ms", time / 1000.0),
        10.0.. => format!("{time:.0} µs"),
        _ => format!("{time:.2} µs"),
    }
}

/// A suggestion at a line of Rust.
#[derive(Serialize)]
pub(crate) struct Advice {
    pub text: String,
    /// Index of the line of Rust.
    pub at: Option<usize>,
    /// Place in words: `gemm.rs:17`.
    pub place: String,
    /// Fraction of the case's instructions at the line, by which the advice is ordered.
    pub share: f64,
}

/// Occupancy in percent below which the report has a remark.
const LOW_OCCUPANCY: u32 = 50;
/// Fraction of diverging decisions above which the report has a remark.
const MANY_DIVERGE: f64 = 0.1;

/// Returns suggestions, those for the most executed lines first.
pub(super) fn advice(report: &ReportJson, lines: &[RustLine], index: &LineIndex) -> Vec<Advice> {
    let mut all: Vec<Advice> = Vec::new();
    let mut advise = |file: &str, number: u32, text: String| {
        let at = index.get(file, number);
        let short = file.rsplit('/').next().unwrap_or(file);
        let share = at.and_then(|at| lines[at].share).unwrap_or(0.0);
        // A line may hold several accesses or operations of a kind.
        if all.iter().any(|other| other.at == at && other.text == text) {
            return;
        }
        all.push(Advice { text, at, place: format!("{short}:{number}"), share });
    };
    let (first_file, first_line) = lines.first().map_or(("", 0), |line| (line.file.as_str(), line.number));
    for access in &report.accesses {
        if let Some(text) = of_access(access) {
            advise(&access.place.file, access.place.line, text);
        }
    }
    for branch in &report.branches {
        let Some(counts) = branch.measured.filter(|counts| counts.share() > MANY_DIVERGE) else { continue };
        let BranchCounts { decided, diverged } = counts;
        let text = match branch.looped {
            true => format!(
                "Lanes leave the loop before others of their warp in {diverged} of {decided} decisions: let the bound \
                 depend on the warp or block, or handle the last iteration alone."
            ),
            false => format!(
                "The lanes of a warp take different paths in {diverged} of {decided} decisions: let the condition \
                 depend on the warp or block, or compute both sides and select."
            ),
        };
        advise(&branch.place.file, branch.place.line, text);
    }
    for unrolled in report.unrolling.iter().flatten() {
        if let Some(text) = unrolled.suggestion() {
            advise(&unrolled.place.file, unrolled.place.line, text);
        }
    }
    for lint in &report.lints {
        let text = format!("{}: {}.", lint.message, lint.help);
        match &lint.place {
            Some(place) => advise(&place.file, place.line, text),
            None => advise(first_file, first_line, text),
        }
    }
    let occupancy = &report.occupancy;
    if occupancy.percent < LOW_OCCUPANCY && report.machine_code.is_some() {
        let limited: Vec<_> = occupancy.occupancy.limited_by.iter().map(|limit| limit.name()).collect();
        let text = format!(
            "Only {} of {} warps are resident, limited by {}: let each thread hide latency by independent \
             instructions, or let it use less of this resource.",
            occupancy.occupancy.warps,
            occupancy.occupancy.of,
            limited.join(" and ")
        );
        advise(first_file, first_line, text);
    }
    all.sort_by(|a, b| b.share.total_cmp(&a.share));
    all
}

/// Returns a suggestion for an access that costs more than the least possible.
fn of_access(access: &AccessReport) -> Option<String> {
    let array = access.array.as_deref().unwrap_or("memory");
    let measured = access.measured.as_ref();
    let fullest = measured.map(|measured| measured.counts.fullest);
    let what = match access.kind {
        AccessKind::Load => "load from",
        AccessKind::Store => "store to",
        AccessKind::Atomic => "atomic operation on",
    };
    match access.cost {
        Some(Cost::Shared { ways }) if ways > 1 => Some(format!(
            "The {what} `{array}` has a {ways}-way bank conflict: pad the rows, or let the lanes of a warp access \
             consecutive words."
        )),
        Some(Cost::Global { sectors, least, .. }) if sectors > least => Some(format!(
            "A warp's {what} `{array}` moves {sectors} sectors where {least} would do: let adjacent lanes access \
             adjacent elements."
        )),
        None => {
            let request = fullest.filter(|request| request.cost > request.least)?;
            let cost = match measured?.counts.memory {
                RequestMemory::Global => format!("moves {} sectors", request.cost),
                RequestMemory::Shared => format!("takes {} passes of shared memory", request.cost),
                RequestMemory::Constant => format!("takes {} passes of constant memory", request.cost),
            };
            Some(format!(
                "A warp's {what} `{array}` {cost} where {} would do, as measured in its worst request: let adjacent \
                 lanes access adjacent elements.",
                request.least
            ))
        }
        _ => None,
    }
}
