//! The lines and branches that launches reach.

use crate::code::{Inst, Pc};
use crate::machine::observer::Observer;
use crate::machine::{Machine, Warp};
use crate::program::Program;
use crate::report::CodeLocation;
use runtime_simt::report::Sites;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// The instructions of a program that threads have reached in any number of launches.
#[derive(Clone, Default, Debug)]
pub struct ReachedInstructions {
    /// By instruction.
    sites: Vec<InstructionCoverage>,
}

/// Whether threads have reached an instruction, and whether its condition was true and false, if it
/// has one.
#[derive(Clone, Copy, Default, Debug)]
struct InstructionCoverage {
    ran: bool,
    held: bool,
    failed: bool,
}

/// A line or branch that no thread has reached.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Unreached {
    /// The kind of code.
    pub gap: Gap,
    /// The place in the user's Rust.
    pub place: CodeLocation,
    /// The code of the line.
    pub code: String,
}

/// The kind of code that no thread has reached.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Gap {
    /// A line.
    Line,
    /// The code after a condition that holds.
    NeverHolds,
    /// The code after a condition that does not hold.
    AlwaysHolds,
}

impl Observer for ReachedInstructions {
    fn before(&mut self, machine: &mut Machine<'_, '_>, site: Pc, warp: &Warp, mask: u32) {
        let code = &machine.program.code;
        self.sites.resize(code.insts.len(), InstructionCoverage::default());
        let seen = &mut self.sites[site as usize];
        seen.ran |= mask != 0;
        if let Inst::If { condition, .. } = code.insts[site as usize] {
            let holds = machine.simd.truth(&warp.rows, condition);
            seen.held |= mask & holds != 0;
            seen.failed |= mask & !holds != 0;
        }
    }
}

impl Program {
    /// Returns the lines and branches that are not in `reached`, in the order of the source. Code
    /// of the functions of `math::` is left out.
    pub fn unreached(&self, reached: &ReachedInstructions) -> Vec<Unreached> {
        let mut lines: BTreeMap<(String, u32), (bool, CodeLocation)> = BTreeMap::new();
        let mut conditions: BTreeMap<(String, u32, u32), (InstructionCoverage, CodeLocation)> = BTreeMap::new();
        for (site, inst) in self.code.insts.iter().enumerate() {
            let seen = reached.sites.get(site).copied().unwrap_or_default();
            let site = site as Pc;
            if !is_statement(inst) || self.is_math(site) {
                continue;
            }
            let place = self.place(site);
            let line = lines.entry((place.file.clone(), place.line)).or_insert_with(|| (false, place.clone()));
            line.0 |= seen.ran;
            if matches!(inst, Inst::If { .. }) {
                let place_of = (place.file.clone(), place.line, place.column);
                let all = &mut conditions.entry(place_of).or_insert_with(|| (InstructionCoverage::default(), place)).0;
                (all.held, all.failed) = (all.held | seen.held, all.failed | seen.failed);
            }
        }
        let never = lines.into_values().filter(|(ran, _)| !ran).map(|(_, place)| (Gap::Line, place));
        let one_sided = conditions.into_values().filter_map(|(seen, place)| match (seen.held, seen.failed) {
            (true, false) => Some((Gap::AlwaysHolds, place)),
            (false, true) => Some((Gap::NeverHolds, place)),
            _ => None,
        });
        let mut all: Vec<(Gap, CodeLocation)> = never.chain(one_sided).collect();
        all.sort_by(|(a, one), (b, other)| (&one.file, one.line, a).cmp(&(&other.file, other.line, b)));
        let unreached = all.into_iter().map(|(gap, place)| {
            let source = self.sources.get(place.source);
            let code = source.map_or("", |source| source.line_code(place.line - source.line)).trim().to_string();
            Unreached { gap, place, code }
        });
        unreached.collect()
    }
}

/// Returns whether an instruction belongs to a statement, rather than to the end of a construct.
fn is_statement(inst: &Inst) -> bool {
    use Inst::{Again, DbgValue, Else, EndIf, Enter, Exit, Leave};
    !matches!(inst, Again { .. } | Else { .. } | EndIf { .. } | Enter { .. } | Exit | Leave { .. } | DbgValue(_))
}

impl fmt::Display for Unreached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.gap {
            Gap::Line => "no case reaches",
            Gap::NeverHolds => "no case satisfies the condition of",
            Gap::AlwaysHolds => "every case satisfies the condition of",
        };
        write!(f, "{}:{}: {what} `{}`", self.place.file, self.place.line, self.code)
    }
}
