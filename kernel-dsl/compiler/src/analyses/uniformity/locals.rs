//! Facts about locals at a point and where paths of control merge.

use super::fact::UniformityFact;
use super::operation::{UniformityFacts, is_small};
use super::verdict::{CauseStep, UniformityVerdict, Verdicts};
use crate::ir::{Kernel, LocalId, Location, Value};

/// Maximum length of arrays that are tracked by element.
const MAX_TRACKED_ELEMENTS: u32 = 16;

/// For each slot, the number of its fact. Equal numbers come from the same write or from the same
/// merge of paths.
pub(super) type LocalsState = Vec<u32>;

/// Locals of a kernel during the walk.
pub(super) struct Locals<'k> {
    kernel: &'k Kernel,
    /// First slot of each local, and whether each element has its own slot.
    slots: Vec<(u32, bool)>,
    /// Whether the values of each slot are unsigned integers of at most 32 bits.
    pub small: Vec<bool>,
    /// The facts that the numbers in states index.
    pub known: Vec<UniformityFact>,
    /// State at the current point.
    pub now: LocalsState,
}

impl<'k> Locals<'k> {
    pub fn new(kernel: &'k Kernel) -> Locals<'k> {
        let (mut slots, mut small) = (Vec::new(), Vec::new());
        for local in &kernel.locals {
            let each = local.len <= MAX_TRACKED_ELEMENTS;
            slots.push((small.len() as u32, each));
            small.extend((0..if each { local.len } else { 1 }).map(|_| is_small(local.element)));
        }
        Locals { kernel, slots, known: vec![UniformityFact::undefined()], now: vec![0; small.len()], small }
    }

    /// Merges the facts of paths; `uniformity` is that of the threads on them.
    pub fn merge(&mut self, paths: Vec<LocalsState>, uniformity: Verdicts) -> LocalsState {
        let mut paths = paths.into_iter();
        let mut met = paths.next().unwrap_or_default();
        let others: Vec<LocalsState> = paths.collect();
        for slot in 0..met.len() {
            if others.iter().all(|other| other[slot] == met[slot]) {
                continue;
            }
            let mut fact = self.known[met[slot] as usize].clone();
            for other in &others {
                fact = fact.or(&self.known[other[slot] as usize], self.small[slot]);
            }
            met[slot] = self.remember(fact.tainted(uniformity));
        }
        met
    }

    /// Weakens the facts written since `before`: each thread keeps the value at the time it left.
    /// `uniformity` is that of the threads that leave.
    pub fn weaken(&mut self, before: &LocalsState, uniformity: Verdicts) {
        if uniformity.is_uniform() {
            return;
        }
        for (slot, before) in before.iter().enumerate() {
            if self.now[slot] != *before {
                let fact = self.known[self.now[slot] as usize].clone().tainted(uniformity);
                self.now[slot] = self.remember(fact);
            }
        }
    }

    pub fn remember(&mut self, fact: UniformityFact) -> u32 {
        self.known.push(fact);
        self.known.len() as u32 - 1
    }

    /// Returns the slots that an access may refer to, and whether it refers to exactly one.
    fn slots_of(
        &self,
        local: LocalId,
        index: Option<Value>,
        facts: &UniformityFacts,
    ) -> (std::ops::Range<usize>, bool) {
        let ((first, each), len) = (self.slots[local.0 as usize], self.kernel.locals[local.0 as usize].len);
        let first = first as usize;
        if !each {
            return (first..first + 1, false);
        }
        let at = index.map_or(Some(0), |i| facts.of(i).common_number());
        match at.filter(|at| *at < u64::from(len)) {
            Some(at) => (first + at as usize..first + at as usize + 1, true),
            None => (first..first + len as usize, len == 1),
        }
    }

    /// Returns the fact about a read.
    pub fn read(&self, local: LocalId, index: Option<Value>, facts: &UniformityFacts) -> UniformityFact {
        let (slots, certain) = self.slots_of(local, index, facts);
        let Some(first) = slots.clone().next() else { return UniformityFact::undefined() };
        let fact = |slot: usize| &self.known[self.now[slot] as usize];
        if certain {
            return fact(first).clone();
        }
        // An access with a varying index may read any element: the result varies only if all
        // elements do. In an array that is tracked as a whole, some elements may not vary.
        let each = self.slots[local.0 as usize].1;
        let least = |scope| slots.clone().map(|slot| fact(slot).verdicts().at(scope).verdict).min();
        let surely = |scope| each && least(scope) == Some(UniformityVerdict::Varies);
        let one = slots.clone().skip(1).fold(fact(first).clone(), |one, slot| one.or(fact(slot), self.small[slot]));
        let all = one.verdicts();
        let doubted = Verdicts::by_scope(|s| if surely(s) { all.at(s) } else { all.at_best_unknown().at(s) });
        let which = index.map_or(Verdicts::UNIFORM, |i| facts.of(i).verdicts().at_best_unknown());
        UniformityFact::opaque(doubted).tainted(which)
    }

    /// Updates the facts after a write.
    pub fn write(&mut self, local: LocalId, index: Option<Value>, value: Value, at: Location, facts: &UniformityFacts) {
        let (slots, certain) = self.slots_of(local, index, facts);
        let fact = facts.of(value).with_cause(CauseStep::From(value), at);
        if certain {
            self.now[slots.start] = self.remember(fact);
            return;
        }
        let which = index.map_or(Verdicts::UNIFORM, |i| facts.of(i).verdicts().with_cause(CauseStep::From(i), at));
        for slot in slots {
            let either = self.known[self.now[slot] as usize].or(&fact, self.small[slot]);
            self.now[slot] = self.remember(either.tainted(which));
        }
    }
}
