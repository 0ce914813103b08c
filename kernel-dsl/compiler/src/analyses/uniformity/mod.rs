//! An analysis of which values are uniform across the threads of a scope, and where threads are
//! converged.
//!
//! For each value and each point of control there is a [`UniformityVerdict`] for each scope: grid,
//! block, warp. A parameter is uniform across the grid, and a block's index across the block.
//! `thread::y()` is uniform across the warp where a row of the block is a warp. A result of uniform
//! operands is uniform. `threads` finds uniform values that an analysis of dependences misses:
//! `thread::x() / 32` is uniform across a warp.
//!
//! A load that may see writes is [`UniformityVerdict::Unknown`]. A load of read-only memory is as
//! uniform as its address. The result of an exchange between lanes is uniform across a warp where
//! all lanes receive the same value: a vote, a shuffle from one lane, a butterfly.
//!
//! Control is as uniform as its conditions (`flow`). An early `return`, `break` or `continue`
//! counts as a condition around everything that it skips.

mod branches;
mod fact;
mod flow;
mod locals;
mod operation;
mod threads;
mod verdict;

pub use branches::{Branch, branches};
pub use verdict::{UniformScope, UniformityVerdict};

use crate::ir::{Inst, Kernel, Location, Value};
use flow::UniformityState;
use verdict::{Cause, CauseStep};

/// Maximum number of steps in a trace, as a person can read it line by line.
const MAX_EXPLANATION_STEPS: usize = 64;

/// Uniformity of a kernel's values and of its control flow.
pub struct Uniformity<'k> {
    flow: UniformityState<'k>,
}

/// Step of a trace, from the queried value back to the point where threads begin to differ.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DivergenceStep {
    /// Event of the step.
    pub what: UniformityEvent,
    /// Location in the Rust source.
    pub location: Location,
}

/// Event that makes threads differ, or passes a difference on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UniformityEvent {
    /// The index of a thread or block is read.
    Index,
    /// Memory is read.
    Memory,
    /// A value is computed from differing values, or assigned to a variable.
    Computed,
    /// A condition differs, so threads take different paths.
    Branch,
    /// A loop's range differs, so threads run different numbers of iterations.
    Trips,
    /// Some threads leave, and the others continue without them.
    Left,
}

impl<'k> Uniformity<'k> {
    /// Analyzes a kernel that passes verification, as lowered or after passes.
    pub fn new(kernel: &'k Kernel) -> Uniformity<'k> {
        let mut flow = UniformityState::new(kernel);
        flow.run();
        Uniformity { flow }
    }

    /// Returns whether `value` is the same in all threads of the scope that define it at the same
    /// point, in the same iteration.
    pub fn of(&self, value: Value, scope: UniformScope) -> UniformityVerdict {
        self.flow.facts.of(value).verdicts().at(scope).verdict
    }

    /// Returns the widest scope across which `value` is proven to be uniform.
    pub fn scope_of(&self, value: Value) -> UniformScope {
        let all = [UniformScope::Grid, UniformScope::Block, UniformScope::Warp];
        all.into_iter().find(|s| self.of(value, *s) == UniformityVerdict::Uniform).unwrap_or(UniformScope::Lane)
    }

    /// Returns whether all threads of the scope reach `inst` together. `inst` is an instruction of
    /// the analyzed kernel with an effect or with regions. Returns `None` for others and for
    /// unreachable code.
    pub fn control_at(&self, inst: &Inst, scope: UniformScope) -> Option<UniformityVerdict> {
        self.flow.control.get(&std::ptr::from_ref(inst).addr()).map(|verdicts| verdicts.at(scope).verdict)
    }

    /// Returns the steps from the divergence at `inst` back to its root. Empty where control is
    /// uniform.
    pub fn why(&self, inst: &Inst, scope: UniformScope) -> Vec<DivergenceStep> {
        let entry = self.flow.control.get(&std::ptr::from_ref(inst).addr()).map(|verdicts| verdicts.at(scope));
        let mut steps: Vec<DivergenceStep> = Vec::new();
        let mut next = entry.and_then(|e| e.cause());
        while let Some(cause) = next.filter(|_| steps.len() < MAX_EXPLANATION_STEPS) {
            steps.push(DivergenceStep { what: event(cause), location: cause.location });
            next = match cause.hop {
                CauseStep::Index(_) | CauseStep::Memory => None,
                CauseStep::From(value) | CauseStep::Branch(value) | CauseStep::Trips(value) => {
                    self.flow.facts.of(value).verdicts().at(scope).cause()
                }
                CauseStep::Left(why) => self.flow.leaving.get(why as usize).copied(),
            };
        }
        steps
    }
}

fn event(cause: Cause) -> UniformityEvent {
    match cause.hop {
        CauseStep::Index(_) => UniformityEvent::Index,
        CauseStep::Memory => UniformityEvent::Memory,
        CauseStep::From(_) => UniformityEvent::Computed,
        CauseStep::Branch(_) => UniformityEvent::Branch,
        CauseStep::Trips(_) => UniformityEvent::Trips,
        CauseStep::Left(_) => UniformityEvent::Left,
    }
}
