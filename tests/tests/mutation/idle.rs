//! What is done for nothing: barriers between which nobody meets, zeros that are added to memory, and questions that are asked again.
//!
//! A barrier orders what threads do before it, since the barrier before, and what they do after, until the next. Where nothing of both is one
//! place of memory of which somebody writes, they need not wait. In a loop all of it counts as being on either side. Arrays in shared memory are
//! one where they share bytes; all of the global memory is one. A warp's barrier is one of fewer threads.
//!
//! An atomic addition of 0 leaves what is there, if it is there: only where that is seen from the index is it made always. Nobody else loads or stores
//! there, so that none races with what was not there before.
//!
//! `if c { … }` need not ask where all that happens inside, and all that differs behind, does so only by conditions which hold nowhere
//! but where c does; nor `if c && d { … }` for d where that is so of d.

use super::turns::Known;
use kernel_dsl::compiler::Scalar;
use kernel_dsl::compiler::ir::{
    Atomic, Binary, Comparison, Inst, Kernel, Location, Op, Place, Region, SharedId, Special, Type, Unary, Value,
    Values,
};
use std::collections::HashMap;

/// Leaves all of that out; whether there was something.
pub fn idle(kernel: &mut Kernel) -> bool {
    let before = kernel.clone();
    let mut branches = Branches { kernel: &before, known: Known::of(&before), next: 0, idle: HashMap::new() };
    branches.region(&before.body);
    let idle = branches.idle;
    let always = kernel.value(Type::Scalar(Scalar::Bool));
    if !idle.is_empty() {
        decide(&mut kernel.body, &mut 0, &idle, always);
        let constant = Inst { op: Op::Constant(1), results: Values::from_slice(&[always]), location: Location(0) };
        kernel.body.insts.insert(0, constant);
    }
    let found = without_barriers(&before, &mut kernel.body, &Met::default(), &Met::default());
    found || !idle.is_empty()
}

/// Has `always` for the conditions of branches, which their order in the text tells, or what of it is left to ask.
fn decide(region: &mut Region, next: &mut usize, idle: &HashMap<usize, Option<Value>>, always: Value) {
    for inst in &mut region.insts {
        if let Op::If { condition, .. } = &mut inst.op {
            if let Some(left) = idle.get(next) {
                *condition = left.unwrap_or(always);
            }
            *next += 1;
        }
        inst.op.regions_mut().into_iter().for_each(|inner| decide(inner, next, idle, always));
    }
}

/// Memory that threads have to do with between two barriers.
#[derive(Clone, Default)]
struct Met {
    /// Arrays in shared memory, and whether they are written.
    shared: Vec<(SharedId, bool)>,
    /// Whether global memory is read, and whether it is written; the same of shared memory whose size the launch evaluates.
    global: [bool; 2],
    dynamic: [bool; 2],
    /// What is ordered in ways that are not looked at, or goes on elsewhere.
    unknown: bool,
}

impl Met {
    fn and(mut self, other: &Met) -> Met {
        self.shared.extend(&other.shared);
        for way in 0..2 {
            self.global[way] |= other.global[way];
            self.dynamic[way] |= other.dynamic[way];
        }
        self.unknown |= other.unknown;
        self
    }

    fn is_nothing(&self) -> bool {
        let all = [self.global, self.dynamic].concat();
        self.shared.is_empty() && !self.unknown && !all.contains(&true)
    }

    /// Whether threads of which some do the one and some the other may meet.
    fn meets(&self, other: &Met, kernel: &Kernel) -> bool {
        let one = |a: SharedId, b: SharedId| {
            let [a, b] = [a, b].map(|id| &kernel.shared[id.0 as usize]);
            a.offset < b.offset + b.bytes() && b.offset < a.offset + a.bytes()
        };
        let either = |a: [bool; 2], b: [bool; 2]| a[1] && (b[0] || b[1]) || a[0] && b[1];
        let shared =
            |(a, writes): &(SharedId, bool)| other.shared.iter().any(|(b, too)| (*writes || *too) && one(*a, *b));
        !self.is_nothing()
            && !other.is_nothing()
            && (self.unknown
                || other.unknown
                || either(self.global, other.global)
                || either(self.dynamic, other.dynamic)
                || self.shared.iter().any(shared))
    }

    fn add(&mut self, place: &Place, writes: bool) {
        match place {
            Place::Shared { array, .. } => self.shared.push((*array, writes)),
            Place::Global { .. } => self.global[usize::from(writes)] = true,
            Place::Dynamic { .. } => self.dynamic[usize::from(writes)] = true,
            Place::Address { .. } => self.unknown = true,
        }
    }

    /// Of an instruction, and all that it holds.
    fn of(inst: &Inst) -> Met {
        let mut met = Met::default();
        match &inst.op {
            Op::Load { place, .. } => met.add(place, false),
            Op::Store { place, .. } | Op::MarkUndef { place, .. } | Op::Atomic { place, .. } => met.add(place, true),
            Op::LifetimeStart(array) => met.shared.push((*array, true)),
            Op::CopyAsync(_)
            | Op::CopyCommit
            | Op::CopyWait(_)
            | Op::Fence(_)
            | Op::Inline { .. }
            | Op::RecordViolation { .. } => met.unknown = true,
            _ => {}
        }
        inst.op.regions().into_iter().flat_map(|inner| &inner.insts).fold(met, |met, inst| met.and(&Met::of(inst)))
    }

    /// Of what comes up to a barrier that orders as much as `of`, and of `beyond` where there is none. `back` says from where it is looked at.
    fn up_to_barrier(insts: &[Inst], back: bool, of: &Inst, beyond: &Met) -> Met {
        let mut met = Met::default();
        for i in 0..insts.len() {
            let inst = &insts[if back { insts.len() - 1 - i } else { i }];
            if orders(inst, of) {
                return met;
            }
            let own = match &inst.op {
                // Behind a loop lies what its last turn ends with, and before it what the first begins with.
                Op::For(l)
                    if !l.body.insts.iter().any(leaves) && l.body.insts.iter().any(|inner| orders(inner, of)) =>
                {
                    Met::up_to_barrier(&l.body.insts, back, of, &Met::default())
                }
                _ => Met::of(inst),
            };
            met = met.and(&own);
        }
        met.and(beyond)
    }
}

fn is_barrier(inst: &Inst) -> bool {
    matches!(inst.op, Op::BlockSync | Op::WarpSync)
}

/// Whether it is a barrier that all come to who come to `other`.
fn orders(inst: &Inst, other: &Inst) -> bool {
    matches!(inst.op, Op::BlockSync) || matches!(inst.op, Op::WarpSync) && matches!(other.op, Op::WarpSync)
}

/// Leaves out barriers between which nobody meets; whether there was one. `before` and `after` is what threads do around the region, up to the next barriers.
fn without_barriers(kernel: &Kernel, region: &mut Region, before: &Met, after: &Met) -> bool {
    let (mut at, mut found) = (0, false);
    while let Some(inst) = region.insts.get(at) {
        let earlier = Met::up_to_barrier(&region.insts[..at], true, inst, before);
        let mut later = Met::up_to_barrier(&region.insts[at + 1..], false, inst, after);
        later.unknown |= region.insts[at + 1..].iter().take_while(|other| !orders(other, inst)).any(leaves);
        if is_barrier(inst) {
            if !earlier.meets(&later, kernel) {
                region.insts.remove(at);
                found = true;
                continue;
            }
        } else if inst.op.regions().into_iter().any(|inner| !inner.insts.is_empty()) {
            let turns = matches!(inst.op, Op::For(_) | Op::Loop { .. });
            let around = if turns { Met::of(inst) } else { Met::default() };
            let (earlier, later) = (earlier.and(&around), later.and(&around));
            for inner in region.insts[at].op.regions_mut() {
                found |= without_barriers(kernel, inner, &earlier, &later);
            }
        }
        at += 1;
    }
    found
}

/// Whether control goes elsewhere from there, but for threads that end.
fn leaves(inst: &Inst) -> bool {
    let within = |region: &Region| region.insts.iter().any(leaves);
    matches!(inst.op, Op::Break(..) | Op::Continue(..)) || inst.op.regions().into_iter().any(within)
}

/// Branches that need not ask.
struct Branches<'k> {
    kernel: &'k Kernel,
    known: Known<'k>,
    next: usize,
    /// By number: what is left of the condition, if anything is.
    idle: HashMap<usize, Option<Value>>,
}

impl<'k> Branches<'k> {
    fn region(&mut self, region: &Region) {
        for inst in &region.insts {
            if let Op::If { condition, then, otherwise } = &inst.op {
                let is_asked = !matches!(self.op(*condition), Some(Op::Constant(_)));
                let nothing = |inst: &Inst| matches!(inst.op, Op::Yield(_));
                if is_asked && otherwise.insts.iter().all(nothing) {
                    let idle =
                        self.only_adds_zero(*condition, then) || self.is_asked_again(*condition, then, otherwise);
                    let left = if idle { Some(None) } else { self.left(*condition, then, otherwise).map(Some) };
                    self.idle.extend(left.map(|left| (self.next, left)));
                }
                self.next += 1;
            }
            inst.op.regions().into_iter().for_each(|inner| self.region(inner));
        }
    }

    fn op(&self, value: Value) -> Option<&'k Op> {
        self.known.op(value)
    }

    /// What is left to ask of two conditions of which all that happens in a branch, and what it gives, asks for the other once more.
    fn left(&self, condition: Value, then: &Region, otherwise: &Region) -> Option<Value> {
        let Some((Binary::And, [a, b])) = self.parts(condition) else { return None };
        if self.is_asked_again(b, then, otherwise) {
            return Some(a);
        }
        // What is computed in a branch is not there before it.
        let outside = !matches!(self.op(condition), Some(Op::If { .. }));
        (outside && self.is_asked_again(a, then, otherwise)).then_some(b)
    }

    /// Whether a branch adds a number to what is in memory where it is not zero, and does nothing else.
    fn only_adds_zero(&self, condition: Value, then: &Region) -> bool {
        let [Inst { op: Op::Atomic { operation: Atomic::Add, place, element, values }, results, .. }, _] =
            &then.insts[..]
        else {
            return false;
        };
        let zero = |value: &Value| matches!(self.op(*value), Some(Op::Constant(0)));
        let asks = match self.op(condition) {
            Some(Op::Compare(Comparison::Gt | Comparison::Ne, n, other)) => *n == values[0] && zero(other),
            Some(Op::Compare(Comparison::Lt, other, n)) => *n == values[0] && zero(other),
            _ => false,
        };
        let unsigned = element.is_integer() && !element.is_signed();
        asks && results.is_empty() && unsigned && self.is_there(place) && !self.is_loaded_or_stored(place)
    }

    /// Whether the index of an element lies within by what it is.
    fn is_there(&self, place: &Place) -> bool {
        let Place::Global { dims, within: None, .. } = place else { return false };
        dims.iter().all(|dim| match (self.op(dim.index), self.op(dim.extent)) {
            (Some(Op::Special(Special::Thread(axis))), Some(Op::Constant(extent))) => {
                self.kernel.block.extent(*axis).is_some_and(|threads| u64::from(threads) <= *extent)
            }
            _ => self.known.end_of(dim.index) == Some(dim.extent),
        })
    }

    /// The parameter that an address is made of.
    fn origin(&self, base: Value) -> Option<u32> {
        match self.op(base)? {
            Op::Parameter(p) => Some(*p),
            Op::Offset { base, .. } => self.origin(*base),
            _ => None,
        }
    }

    /// Whether the buffer of a place may be accessed by something else than atomic operations.
    fn is_loaded_or_stored(&self, place: &Place) -> bool {
        let Place::Global { base, .. } = place else { return true };
        let Some(own) = self.origin(*base) else { return true };
        let accesses = |inst: &Inst| match &inst.op {
            Op::Load { place: Place::Global { base, .. }, .. }
            | Op::Store { place: Place::Global { base, .. }, .. } => {
                self.origin(*base).is_none_or(|origin| origin == own)
            }
            Op::CopyAsync(_) | Op::Inline { .. } => true,
            _ => false,
        };
        any(&self.kernel.body, &accesses)
    }

    /// Whether all that happens in a branch, and what it gives, asks for the condition once more.
    fn is_asked_again(&self, condition: Value, then: &Region, otherwise: &Region) -> bool {
        let mut stands = HashMap::new();
        let Some(given) = then.yielded() else { return false };
        let others = otherwise.yielded().into_iter().flatten();
        self.does_nothing(then, condition, &[], &mut stands)
            && given.iter().zip(others).all(|(a, b)| stand(&stands, *a) == stand(&stands, *b))
    }

    /// Whether a region does nothing where the condition does not hold, and those of `held` do; what values are there stands in `stands`.
    fn does_nothing(
        &self,
        region: &Region,
        condition: Value,
        held: &[Value],
        stands: &mut HashMap<Value, Value>,
    ) -> bool {
        let with = |more: Value| [held, &[more]].concat();
        let never = |more: Value| self.implied(&with(more), condition);
        for inst in &region.insts {
            match &inst.op {
                Op::Load { guard: Some(guard), .. } if never(guard.condition) => {
                    stands.extend(inst.results.iter().copied().zip(guard.otherwise.iter().copied()));
                }
                Op::Select { condition: chosen, yes, no } => {
                    let [yes, no] = [*yes, *no].map(|of| stand(stands, of));
                    if yes == no || never(*chosen) {
                        stands.insert(inst.results[0], no);
                    }
                }
                Op::If { condition: chosen, then, otherwise } => {
                    let mut ends = Vec::new();
                    let sides = [(then, with(*chosen)), (otherwise, held.to_vec())];
                    for (side, held) in sides.into_iter().skip(usize::from(never(*chosen))) {
                        if !self.does_nothing(side, condition, &held, stands) {
                            return false;
                        }
                        let Some(values) = side.yielded() else { return false };
                        ends.push(values.iter().map(|value| stand(stands, *value)).collect::<Values>());
                    }
                    for (i, result) in inst.results.iter().enumerate() {
                        if ends.iter().all(|values| values[i] == ends[0][i]) {
                            stands.insert(*result, ends[0][i]);
                        }
                    }
                }
                Op::Yield(_) => {}
                op if op.is_pure() => {}
                _ => return false,
            }
        }
        true
    }

    /// Whether a condition holds wherever all of `held` do.
    fn implied(&self, held: &[Value], condition: Value) -> bool {
        match self.parts(condition) {
            Some((Binary::And, [a, b])) => self.implied(held, a) && self.implied(held, b),
            Some((_, [a, b])) if self.implied(held, a) || self.implied(held, b) => true,
            _ => held.iter().any(|of| self.implied_by(*of, condition)),
        }
    }

    fn implied_by(&self, held: Value, condition: Value) -> bool {
        match self.parts(held) {
            Some((Binary::And, [a, b])) if self.implied_by(a, condition) || self.implied_by(b, condition) => true,
            _ => {
                let always = matches!(self.op(condition), Some(Op::Constant(1)));
                always || self.is_same(held, condition) || self.known.follows(held, condition)
            }
        }
    }

    /// What a conjunction, or an alternative, is made of.
    fn parts(&self, condition: Value) -> Option<(Binary, [Value; 2])> {
        match self.op(condition)? {
            Op::Binary(operator @ (Binary::And | Binary::Or), a, b) => Some((*operator, [*a, *b])),
            Op::Select { condition, yes, no } => self.chosen(*condition, *yes, *no),
            Op::If { condition, then, otherwise } => {
                let ends = [then.yielded()?, otherwise.yielded()?].map(Values::as_slice);
                let [[yes], [no]] = ends else { return None };
                self.chosen(*condition, *yes, *no)
            }
            _ => None,
        }
    }

    fn chosen(&self, condition: Value, yes: Value, no: Value) -> Option<(Binary, [Value; 2])> {
        match [self.op(yes), self.op(no)] {
            [Some(Op::Constant(1)), _] => Some((Binary::Or, [condition, no])),
            [_, Some(Op::Constant(0))] => Some((Binary::And, [condition, yes])),
            _ => None,
        }
    }

    /// Whether two truth values are the same comparison, or its opposite.
    fn is_same(&self, a: Value, b: Value) -> bool {
        a == b
            || match [self.op(a), self.op(b)] {
                [Some(Op::Unary(Unary::Not, a)), Some(Op::Unary(Unary::Not, b))] => self.is_same(*a, *b),
                [Some(of @ Op::Compare(..)), Some(other)] => of == other,
                _ => false,
            }
    }
}

fn stand(stands: &HashMap<Value, Value>, mut value: Value) -> Value {
    while let Some(of) = stands.get(&value) {
        value = *of;
    }
    value
}

fn any(region: &Region, is: &dyn Fn(&Inst) -> bool) -> bool {
    region.insts.iter().any(|inst| is(inst) || inst.op.regions().into_iter().any(|inner| any(inner, is)))
}
