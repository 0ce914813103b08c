//! Which values are uniform across the threads of a scope, and where threads are converged.
//!
//! For each value and each point of control there is a [`Verdict`] for each scope: grid, block,
//! warp. A parameter is uniform across the grid, and a block's index across the block.
//! `thread::y()` is uniform across the warp where a row of the block is a warp. A result of uniform
//! operands is uniform. `threads` adds what an analysis of dependences misses: `thread::x() / 32`
//! is uniform across a warp.
//!
//! A load that may see writes is [`Verdict::Unknown`]. A load of read-only memory is as uniform as
//! its address. The result of an exchange between lanes is uniform across a warp where all lanes
//! receive the same value: a vote, a shuffle from one lane, a butterfly.
//!
//! Control is as uniform as its conditions (`flow`). An early `return`, `break` or `continue`
//! counts as a condition around everything that it skips.

mod fact;
mod flow;
mod locals;
mod operation;
mod threads;
mod verdict;
mod ways;

pub use fact::WARPS;
pub use verdict::{UniformScope, Verdict};
pub use ways::{Branch, branches};

use crate::ir::{Inst, Kernel, Location, Value};
use flow::Flow;
use verdict::{Cause, Hop};

/// Hops of a trace at most; each is there for a line to read.
const MAX_EXPLANATION_STEPS: usize = 64;

/// Whether threads may store what others load, with nothing between.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Races {
    Possible,
    /// What threads load together from one place is one value.
    None,
}

/// What is known of a kernel's values and of its control.
pub struct Uniformity<'k> {
    flow: Flow<'k>,
}

/// One step of a trace, from what was asked back to where threads begin to differ.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// What happens there.
    pub what: Happening,
    /// The Rust where it does.
    pub location: Location,
}

/// What makes threads differ, or passes on that they do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Happening {
    /// The index of a thread or block is read.
    Index,
    /// Memory is read.
    Memory,
    /// A value is computed from what differs, or becomes a variable's.
    Computed,
    /// A condition differs, and so which way threads go.
    Branch,
    /// A loop's range differs, and so how often threads run it.
    Trips,
    /// Threads leave: the others are alone from there on.
    Left,
}

impl<'k> Uniformity<'k> {
    /// Analyses a kernel: one that verifies, as lowered or after passes.
    pub fn new(kernel: &'k Kernel) -> Uniformity<'k> {
        Uniformity::assuming(kernel, Races::Possible)
    }

    /// Analyses a kernel in which what threads do in memory is ordered, by barriers or fences,
    /// wherever it matters.
    pub fn without_races(kernel: &'k Kernel) -> Uniformity<'k> {
        Uniformity::assuming(kernel, Races::None)
    }

    fn assuming(kernel: &'k Kernel, races: Races) -> Uniformity<'k> {
        let mut flow = Flow::new(kernel, races);
        flow.run();
        Uniformity { flow }
    }

    /// Returns whether all threads of the scope that define `value` at the same point, in the same
    /// iteration, have the same.
    pub fn of(&self, value: Value, scope: UniformScope) -> Verdict {
        self.flow.facts.of(value).verdicts().at(scope).verdict
    }

    /// Returns the widest scope in which `value` is proven to be the same.
    pub fn scope_of(&self, value: Value) -> UniformScope {
        let all = [UniformScope::Grid, UniformScope::Block, UniformScope::Warp];
        all.into_iter().find(|s| self.of(value, *s) == Verdict::Uniform).unwrap_or(UniformScope::Lane)
    }

    /// What `value` is in each thread of a block, by linear index, where it follows from that and
    /// constants alone: in the largest block that there may be, of which a smaller one has the
    /// first.
    pub fn numbers(&self, value: Value) -> Option<Vec<u64>> {
        self.flow.facts.numbers(value)
    }

    /// Returns the bits of the lane's index that `value` does not depend on, and [`WARPS`] where it
    /// does not on the warp's: threads of a block that differ in these alone, and come to its
    /// definition together, have the same.
    pub fn indifferent(&self, value: Value) -> u8 {
        self.flow.facts.of(value).merged()
    }

    /// Returns whether all threads of the scope come to `inst` together: an instruction of this
    /// very kernel that has an effect or holds regions. `None` for others, and where control does
    /// not come at all.
    pub fn control_at(&self, inst: &Inst, scope: UniformScope) -> Option<Verdict> {
        self.flow.control.get(&std::ptr::from_ref(inst).addr()).map(|verdicts| verdicts.at(scope).verdict)
    }

    /// Returns the steps from the divergence at `inst` back to its root. Empty where control is
    /// uniform.
    pub fn why(&self, inst: &Inst, scope: UniformScope) -> Vec<Step> {
        let entry = self.flow.control.get(&std::ptr::from_ref(inst).addr()).map(|verdicts| verdicts.at(scope));
        let mut steps: Vec<Step> = Vec::new();
        let mut next = entry.and_then(|e| e.cause());
        while let Some(cause) = next.filter(|_| steps.len() < MAX_EXPLANATION_STEPS) {
            steps.push(Step { what: happening(cause), location: cause.location });
            next = match cause.hop {
                Hop::Index(_) | Hop::Memory => None,
                Hop::From(value) | Hop::Branch(value) | Hop::Trips(value) => {
                    self.flow.facts.of(value).verdicts().at(scope).cause()
                }
                Hop::Left(why) => self.flow.leaving.get(why as usize).copied(),
            };
        }
        steps
    }
}

fn happening(cause: Cause) -> Happening {
    match cause.hop {
        Hop::Index(_) => Happening::Index,
        Hop::Memory => Happening::Memory,
        Hop::From(_) => Happening::Computed,
        Hop::Branch(_) => Happening::Branch,
        Hop::Trips(_) => Happening::Trips,
        Hop::Left(_) => Happening::Left,
    }
}
