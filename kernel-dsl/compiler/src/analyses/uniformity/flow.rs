//! The walk through a kernel, and what it carries along.
//!
//! Control is a tree, so the walk is one of a tree too: it keeps what is known of each local where it is, and the constructs that
//! are open. Threads part at an `If`, and at a `Break`, `Continue` or `Return` that not all of them come to; they are
//! together again where the `If` ends, or the construct that was left. In between, the `If`'s condition, or what decided who
//! left, taints control.
//!
//! Where ways of control meet, a local that was written on one of them is either of what it was; and where not all
//! threads came the same way, they do not have the same, even if each way has one number for all. Threads that leave a loop in different
//! iterations have what it had there.
//!
//! A loop is walked until nothing changes. What is known of a value only ever gets less, so that ends.

use super::fact::{Fact, settle_only_warp};
use super::operation::{Facts, is_small};
use super::verdict::{Cause, Entry, Hop, Scope, Verdict, Verdicts};
use crate::ir::{Inst, Kernel, Label, LocalId, Op, Region, Value, Values};
use crate::passes::hash::Table;

/// Arrays of at most so many elements are known element by element.
const ELEMENTS: u32 = 16;

/// What is known of each local's elements at a point: numbers of facts. Two of the same number come from the same
/// write, or the same meeting of ways.
type State = Vec<u32>;

/// Who has left each open construct, innermost last, and the kernel.
#[derive(Clone)]
struct Gone {
    constructs: Vec<Left>,
    returned: Verdicts,
}

/// Who has left a construct.
#[derive(Clone, Copy)]
struct Left {
    /// For good.
    by_break: Verdicts,
    /// Until its next iteration.
    by_continue: Verdicts,
}

impl Left {
    const NOBODY: Left = Left { by_break: Verdicts::UNIFORM, by_continue: Verdicts::UNIFORM };

    fn join(self, other: Left) -> Left {
        Left {
            by_break: self.by_break.join(other.by_break),
            by_continue: self.by_continue.join(other.by_continue),
        }
    }
}

impl Gone {
    fn join(&mut self, other: &Gone) {
        self.returned = self.returned.join(other.returned);
        for (mine, theirs) in self.constructs.iter_mut().zip(&other.constructs) {
            *mine = mine.join(*theirs);
        }
    }

    fn agrees(&self, other: &Gone) -> bool {
        let same = |(a, b): (&Left, &Left)| a.by_break.agrees(&b.by_break) && a.by_continue.agrees(&b.by_continue);
        self.returned.agrees(&other.returned) && self.constructs.iter().zip(&other.constructs).all(same)
    }
}

/// A construct that the walk is in.
struct Open {
    /// What `Break` and `Continue` name; an `If` has no name.
    label: Option<Label>,
    /// Who comes into it: an `If`'s condition, how often a loop runs.
    enters: Verdicts,
    /// Of a loop: what was known before it.
    before: Option<State>,
    /// Ways out by `Break`.
    exits: Vec<Way>,
    /// Ways to the next iteration by `Continue`.
    again: Vec<Way>,
}

/// A way to where ways meet.
struct Way {
    state: State,
    values: Values,
    /// Which threads take it, of those that came into the construct.
    who: Verdicts,
}

/// What is known at the head of a loop beside what was known before it.
#[derive(Default)]
struct Head {
    locals: Table<u32, Fact>,
    parameters: Vec<Fact>,
    left: Option<Verdicts>,
}

/// An analysis on its way.
pub(super) struct Flow<'k> {
    kernel: &'k Kernel,
    pub facts: Facts<'k>,
    /// First slot of each local, and whether each element has one.
    slots: Vec<(u32, bool)>,
    /// Whether a slot's numbers are unsigned, of at most 32 bits.
    small: Vec<bool>,
    known: Vec<Fact>,
    now: State,
    open: Vec<Open>,
    gone: Gone,
    heads: Table<Label, Head>,
    /// Control at the instructions with effects, by their address.
    pub control: Table<usize, Verdicts>,
    /// Why threads have left, for [`Hop::Left`].
    pub leaving: Vec<Cause>,
}

impl<'k> Flow<'k> {
    pub fn new(kernel: &'k Kernel) -> Flow<'k> {
        let (mut slots, mut kinds) = (Vec::new(), Vec::new());
        for local in &kernel.locals {
            let each = local.len <= ELEMENTS;
            slots.push((kinds.len() as u32, each));
            kinds.extend((0..if each { local.len } else { 1 }).map(|_| is_small(local.element)));
        }
        Flow {
            kernel,
            facts: Facts::new(kernel),
            slots,
            known: vec![Fact::undefined()],
            now: vec![0; kinds.len()],
            small: kinds,
            open: Vec::new(),
            gone: Gone { constructs: Vec::new(), returned: Verdicts::UNIFORM },
            heads: Table::default(),
            control: Table::default(),
            leaving: Vec::new(),
        }
    }

    /// Walks the whole kernel.
    pub fn run(&mut self) {
        self.region(&self.kernel.body);
    }

    /// The values of the region's `Yield`, if control comes to its end.
    fn region(&mut self, region: &'k Region) -> Option<Values> {
        for inst in &region.insts {
            if !inst.op.is_pure() && !matches!(inst.op, Op::ReadLocal { .. } | Op::WriteLocal { .. } | Op::Yield(_)) {
                let control = self.control_now();
                self.control.insert(std::ptr::from_ref(inst).addr(), control);
            }
            let goes_on = match &inst.op {
                Op::Yield(values) => return Some(values.clone()),
                Op::Break(label, values) => {
                    self.leave(*label, values, false, inst);
                    false
                }
                Op::Continue(label, values) => {
                    self.leave(*label, values, true, inst);
                    false
                }
                Op::Return => {
                    let who = self.control_now();
                    self.gone.returned = self.left(self.gone.returned, who, inst);
                    false
                }
                Op::If { condition, then, otherwise } => self.branch(*condition, then, otherwise, inst),
                Op::Block { label, body } => self.block(*label, body, inst),
                Op::Loop { label, inits, body } => self.repeat(*label, inits, body, None, inst),
                Op::For(l) => self.repeat(l.label, &l.inits, &l.body, Some([l.start, l.end, l.step]), inst),
                Op::ReadLocal { local, index } => {
                    let fact = self.read(*local, *index);
                    self.facts.set(inst.results[0], fact);
                    true
                }
                Op::WriteLocal { local, index, value } => {
                    self.write(*local, *index, *value, inst);
                    true
                }
                _ => {
                    self.facts.inst(inst);
                    true
                }
            };
            if !goes_on {
                return None;
            }
        }
        None
    }

    /// Whether threads come to this point together.
    fn control_now(&self) -> Verdicts {
        let mut all = self.since(0).join(self.gone.returned);
        if self.kernel.threads() <= 32 {
            settle_only_warp(&mut all);
        }
        all
    }

    /// Whether the threads that came into the open construct `depth` come to this point together.
    fn since(&self, depth: usize) -> Verdicts {
        let entered = self.open[depth..].iter().fold(Verdicts::UNIFORM, |all, open| all.join(open.enters));
        let left = &self.gone.constructs[depth..];
        left.iter().fold(entered, |all, left| all.join(left.by_break).join(left.by_continue))
    }

    fn push(&mut self, label: Option<Label>, enters: Verdicts, before: Option<State>, left: Left) {
        self.open.push(Open { label, enters, before, exits: Vec::new(), again: Vec::new() });
        self.gone.constructs.push(left);
    }

    fn pop(&mut self) -> (Open, Left) {
        let open = self.open.pop().expect("a construct is open");
        (open, self.gone.constructs.pop().expect("a construct is open"))
    }

    /// `left`, and now also those who leave at `inst`.
    fn left(&mut self, mut left: Verdicts, who: Verdicts, inst: &Inst) -> Verdicts {
        for scope in [Scope::Grid, Scope::Block, Scope::Warp] {
            let new = who.at(scope);
            if let Some(why) = new.cause().filter(|_| new.verdict > left.at(scope).verdict) {
                let cause = Cause { hop: Hop::Left(self.leaving.len() as u32), location: inst.location };
                self.leaving.push(why);
                left.set(scope, Entry::because(new.verdict, cause));
            }
        }
        left
    }

    /// `Break` or `Continue` (`again`).
    fn leave(&mut self, label: Label, values: &Values, again: bool, inst: &Inst) {
        let Some(depth) = self.open.iter().rposition(|o| o.label == Some(label)) else { return };
        let who = self.since(depth);
        // Of a loop that is left on the way, threads have what it had in the iteration in which they left.
        let crossed = if again { depth + 1 } else { depth };
        for i in crossed..self.open.len() {
            if let Some(before) = self.open[i].before.take() {
                let who = self.since(i);
                self.spread(&before, who);
                self.open[i].before = Some(before);
            }
        }
        let left = self.gone.constructs[depth];
        let mut told = left;
        if again {
            told.by_continue = self.left(left.by_continue, who, inst);
        } else {
            told.by_break = self.left(left.by_break, who, inst);
        }
        self.gone.constructs[depth] = told;
        let way = Way { state: self.now.clone(), values: values.clone(), who };
        let open = &mut self.open[depth];
        if again { open.again.push(way) } else { open.exits.push(way) }
    }

    fn branch(&mut self, condition: Value, then: &'k Region, otherwise: &'k Region, inst: &Inst) -> bool {
        if let Some(taken) = self.facts.of(condition).same() {
            let Some(values) = self.region(if taken != 0 { then } else { otherwise }) else { return false };
            self.pass_on(&inst.results, &values, inst);
            return true;
        }
        let parts = self.facts.of(condition).verdicts().told(Hop::Branch(condition), inst.location);
        let (before, gone) = (self.now.clone(), self.gone.clone());
        self.push(None, parts, None, Left::NOBODY);
        let first = self.region(then);
        self.pop();
        let first = (first, std::mem::replace(&mut self.now, before), std::mem::replace(&mut self.gone, gone));
        self.push(None, parts, None, Left::NOBODY);
        let second = self.region(otherwise);
        self.pop();
        self.gone.join(&first.2);
        match (first.0, second) {
            (Some(yes), Some(no)) => {
                let second = std::mem::take(&mut self.now);
                self.now = self.met(vec![first.1, second], parts);
                for ((result, yes), no) in inst.results.iter().zip(&yes).zip(&no) {
                    let fact = self.facts.select(condition, *yes, *no, inst.location);
                    self.facts.set(*result, fact);
                }
                true
            }
            (Some(values), None) => {
                self.now = first.1;
                self.pass_on(&inst.results, &values, inst);
                true
            }
            (None, Some(values)) => {
                self.pass_on(&inst.results, &values, inst);
                true
            }
            (None, None) => false,
        }
    }

    /// Results that are these values.
    fn pass_on(&mut self, results: &[Value], values: &[Value], inst: &Inst) {
        for (result, value) in results.iter().zip(values) {
            let fact = self.facts.of(*value).told(Hop::From(*value), inst.location);
            self.facts.set(*result, fact);
        }
    }

    fn block(&mut self, label: Label, body: &'k Region, inst: &Inst) -> bool {
        self.push(Some(label), Verdicts::UNIFORM, None, Left::NOBODY);
        let end = self.region(body);
        let (mut open, _) = self.pop();
        if let Some(values) = end {
            open.exits.push(Way { state: self.now.clone(), values, who: Verdicts::UNIFORM });
        }
        self.meet(open.exits, Verdicts::UNIFORM, inst)
    }

    /// The end of a construct: all its ways out become one. Whether there is any.
    fn meet(&mut self, ways: Vec<Way>, also: Verdicts, inst: &Inst) -> bool {
        let who = ways.iter().fold(also, |all, way| all.join(way.who));
        let Some((first, others)) = ways.split_first() else { return false };
        for (i, result) in inst.results.iter().enumerate() {
            let value = first.values[i];
            let mut fact = self.facts.of(value).told(Hop::From(value), inst.location);
            let one = others.iter().all(|way| way.values[i] == value);
            for other in others.iter().filter(|_| !one).map(|way| way.values[i]) {
                let small = self.facts.is_small(other);
                fact = fact.or(&self.facts.of(other).told(Hop::From(other), inst.location), small);
            }
            // A value from inside of a loop is that of the iteration in which a thread left.
            let inside = !one || matches!(inst.op, Op::Loop { .. } | Op::For(_));
            self.facts.set(*result, if inside { fact.tainted(who) } else { fact });
        }
        self.now = self.met(ways.into_iter().map(|way| way.state).collect(), who);
        true
    }

    /// A loop, walked until nothing changes; a counted one has its range.
    fn repeat(
        &mut self,
        label: Label,
        inits: &Values,
        body: &'k Region,
        range: Option<[Value; 3]>,
        inst: &Inst,
    ) -> bool {
        let at = inst.location;
        let before = self.now.clone();
        let mut head = self.heads.remove(&label).unwrap_or_default();
        let trips = range.map_or(Verdicts::UNIFORM, |range| self.facts.trips(range, at));
        let carried = usize::from(range.is_some());
        loop {
            // At the head.
            for (slot, fact) in &head.locals {
                let slot = *slot as usize;
                let fact = self.known[before[slot] as usize].or(fact, self.small[slot]);
                self.now[slot] = self.remember(fact);
            }
            if let Some([start, _, step]) = range {
                let index = self.facts.index(start, step, at);
                self.facts.set(body.parameters[0], index);
            }
            for (i, (parameter, init)) in body.parameters[carried..].iter().zip(inits).enumerate() {
                let mut fact = self.facts.of(*init).told(Hop::From(*init), at);
                if let Some(again) = head.parameters.get(i) {
                    fact = fact.or(again, self.facts.is_small(*parameter));
                }
                self.facts.set(*parameter, fact);
            }
            let at_head = self.now.clone();
            let by_break = head.left.unwrap_or(Verdicts::UNIFORM);
            let gone = self.gone.clone();
            self.push(Some(label), trips, Some(before.clone()), Left { by_break, by_continue: Verdicts::UNIFORM });

            // Through the body, and back.
            let end = self.region(body);
            let (mut open, left) = self.pop();
            if let Some(values) = end {
                let state = std::mem::take(&mut self.now);
                open.again.push(Way { state, values, who: Verdicts::UNIFORM });
            }
            let mut changed = !left.by_break.agrees(&by_break) || !self.gone.agrees(&gone);
            head.left = Some(left.by_break);
            changed |= self.back(&mut head, &at_head, open.again, &body.parameters[carried..]);
            self.now = at_head;
            if changed {
                self.now.clone_from(&before);
                continue;
            }

            // And out: a counted loop with what was known at its head, any by its breaks.
            let mut ways = open.exits;
            if range.is_some() {
                let values = body.parameters[carried..].into();
                ways.push(Way { state: self.now.clone(), values, who: trips });
            }
            let who = ways.iter().fold(trips, |all, way| all.join(way.who));
            self.heads.insert(label, head);
            let leaves = self.meet(ways, trips, inst);
            self.spread(&before, who);
            return leaves;
        }
    }

    /// Takes what comes back to the head of a loop into what is known there; whether that is less than before.
    fn back(&mut self, head: &mut Head, at_head: &State, ways: Vec<Way>, parameters: &[Value]) -> bool {
        let who = ways.iter().fold(Verdicts::UNIFORM, |all, way| all.join(way.who));
        let mut changed = false;
        for (i, parameter) in parameters.iter().enumerate() {
            let mut fact = self.facts.of(*parameter).clone();
            let first = ways.first().and_then(|way| way.values.get(i));
            let one = ways.iter().all(|way| way.values.get(i) == first);
            for value in ways.iter().filter_map(|way| way.values.get(i)) {
                let other = self.facts.of(*value).clone();
                fact = fact.or(&if one { other } else { other.tainted(who) }, self.facts.is_small(*parameter));
            }
            changed |= !fact.agrees(self.facts.of(*parameter));
            match head.parameters.get_mut(i) {
                Some(known) => *known = fact,
                None => head.parameters.push(fact),
            }
        }
        if ways.is_empty() {
            return changed;
        }
        let end = self.met(ways.into_iter().map(|way| way.state).collect(), who);
        for slot in 0..end.len() {
            if end[slot] == at_head[slot] {
                continue;
            }
            let old = &self.known[at_head[slot] as usize];
            let fact = old.or(&self.known[end[slot] as usize], self.small[slot]);
            let first = !head.locals.contains_key(&(slot as u32));
            // Until a local has a fact of the head's own, the body was walked with one of before the loop.
            if first || !fact.agrees(old) {
                changed = true;
                head.locals.insert(slot as u32, fact);
            }
        }
        changed
    }

    /// What is known where ways meet that threads took as `who` says.
    fn met(&mut self, ways: Vec<State>, who: Verdicts) -> State {
        let mut ways = ways.into_iter();
        let mut met = ways.next().unwrap_or_default();
        let others: Vec<State> = ways.collect();
        for slot in 0..met.len() {
            if others.iter().all(|other| other[slot] == met[slot]) {
                continue;
            }
            let mut fact = self.known[met[slot] as usize].clone();
            for other in &others {
                fact = fact.or(&self.known[other[slot] as usize], self.small[slot]);
            }
            met[slot] = self.remember(fact.tainted(who));
        }
        met
    }

    /// What was written since `before` is now what it was when a thread left, and who left when says `who`.
    fn spread(&mut self, before: &State, who: Verdicts) {
        if who.is_uniform() {
            return;
        }
        for slot in 0..self.now.len() {
            if self.now[slot] != before[slot] {
                let fact = self.known[self.now[slot] as usize].clone().tainted(who);
                self.now[slot] = self.remember(fact);
            }
        }
    }

    fn remember(&mut self, fact: Fact) -> u32 {
        self.known.push(fact);
        self.known.len() as u32 - 1
    }

    /// The slots that an access may mean, and whether it means one for certain.
    fn slots_of(&self, local: LocalId, index: Option<Value>) -> (std::ops::Range<usize>, bool) {
        let ((first, each), len) = (self.slots[local.0 as usize], self.kernel.locals[local.0 as usize].len);
        let first = first as usize;
        if !each {
            return (first..first + 1, false);
        }
        let at = index.map_or(Some(0), |i| self.facts.of(i).same());
        match at.filter(|at| *at < u64::from(len)) {
            Some(at) => (first + at as usize..first + at as usize + 1, true),
            None => (first..first + len as usize, len == 1),
        }
    }

    fn read(&self, local: LocalId, index: Option<Value>) -> Fact {
        let (slots, certain) = self.slots_of(local, index);
        let Some(first) = slots.clone().next() else { return Fact::undefined() };
        let fact = |slot: usize| &self.known[self.now[slot] as usize];
        if certain {
            return fact(first).clone();
        }
        // Some element: where not all of them vary, it may be one that does not. An element of an array that is known as
        // a whole may always.
        let each = self.slots[local.0 as usize].1;
        let least = |scope| slots.clone().map(|slot| fact(slot).verdicts().at(scope).verdict).min();
        let surely = |scope| each && least(scope) == Some(Verdict::Varies);
        let one = slots.clone().skip(1).fold(fact(first).clone(), |one, slot| one.or(fact(slot), self.small[slot]));
        let all = one.verdicts();
        let doubted = Verdicts::by_scope(|s| if surely(s) { all.at(s) } else { all.doubted().at(s) });
        let which = index.map_or(Verdicts::UNIFORM, |i| self.facts.of(i).verdicts().doubted());
        Fact::opaque(doubted).tainted(which)
    }

    fn write(&mut self, local: LocalId, index: Option<Value>, value: Value, inst: &Inst) {
        let (slots, certain) = self.slots_of(local, index);
        let mut fact = self.facts.of(value).told(Hop::From(value), inst.location);
        if certain {
            self.now[slots.start] = self.remember(fact);
            return;
        }
        if let Some(index) = index {
            fact = fact.tainted(self.facts.of(index).verdicts().told(Hop::From(index), inst.location));
        }
        for slot in slots {
            let either = self.known[self.now[slot] as usize].or(&fact, self.small[slot]);
            self.now[slot] = self.remember(either);
        }
    }
}
