//! Removal of operations without an effect: barriers without conflicts, additions of zero to
//! memory, and repeated conditions.
//!
//! A barrier orders accesses since the barrier before with accesses until the barrier after. If no
//! location of memory is accessed in both parts and written in one, threads need not wait. In a
//! loop, all accesses count as being on both sides. Arrays in shared memory are one object if they
//! share bytes, and so is all of the global memory. A warp barrier orders fewer threads.
//!
//! An atomic addition of 0 leaves an existing element unchanged. It is made unconditional only
//! where the index is known to be in bounds. No other instruction may load or store there, so that
//! no new race appears.
//!
//! `if c { … }` need not test c if all effects inside, and all differences after it, occur only
//! under conditions that imply c. `if c && d { … }` need not test d if this is true of d.

use super::turns::Known;
use kernel_dsl::compiler::Scalar;
use kernel_dsl::compiler::ir::{
    Atomic, Binary, Comparison, Inst, Kernel, Location, Op, Place, Region, SharedId, Special, Type, Unary, Value,
    Values,
};
use std::collections::HashMap;

/// Removes all of these, and returns whether there was one.
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

/// Replaces the conditions of branches, numbered in the order of the text, by `always` or by their
/// remaining part.
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

/// Memory that threads access between two barriers.
#[derive(Clone, Default)]
struct Met {
    /// Arrays in shared memory, and whether they are written.
    shared: Vec<(SharedId, bool)>,
    /// Whether global memory is read, and whether it is written. The next field states the same for
    /// shared memory of dynamic size.
    global: [bool; 2],
    dynamic: [bool; 2],
    /// Whether there are operations with another kind of order, or a jump.
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

    /// Returns whether threads with the one set of accesses can conflict with threads with the
    /// other set.
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

    /// Returns the accesses of an instruction, with all nested ones.
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

    /// Returns the accesses up to a barrier that orders at least as much as `of`, and `beyond` if
    /// there is none. `back` reverses the direction.
    fn up_to_barrier(insts: &[Inst], back: bool, of: &Inst, beyond: &Met) -> Met {
        let mut met = Met::default();
        for i in 0..insts.len() {
            let inst = &insts[if back { insts.len() - 1 - i } else { i }];
            if orders(inst, of) {
                return met;
            }
            let own = match &inst.op {
                // After a loop, the accesses at the end of its last iteration count; before it,
                // those at the beginning of the first.
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

/// Returns whether an instruction is a barrier that orders at least as much as `other`.
fn orders(inst: &Inst, other: &Inst) -> bool {
    matches!(inst.op, Op::BlockSync) || matches!(inst.op, Op::WarpSync) && matches!(other.op, Op::WarpSync)
}

/// Removes barriers without conflicts, and returns whether there was one. `before` and `after` are
/// the accesses around the region, up to the next barriers.
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

/// Returns whether an instruction contains a jump, other than the end of a thread.
fn leaves(inst: &Inst) -> bool {
    let within = |region: &Region| region.insts.iter().any(leaves);
    matches!(inst.op, Op::Break(..) | Op::Continue(..)) || inst.op.regions().into_iter().any(within)
}

/// Branches whose condition need not be tested.
struct Branches<'k> {
    kernel: &'k Kernel,
    known: Known<'k>,
    next: usize,
    /// The remaining part of each condition, by the number of its branch.
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

    /// Returns the other condition of a conjunction, if one of its two conditions is tested again
    /// for all effects and results of the branch.
    fn left(&self, condition: Value, then: &Region, otherwise: &Region) -> Option<Value> {
        let Some((Binary::And, [a, b])) = self.parts(condition) else { return None };
        if self.is_asked_again(b, then, otherwise) {
            return Some(a);
        }
        // A value computed in a branch is not available before it.
        let outside = !matches!(self.op(condition), Some(Op::If { .. }));
        (outside && self.is_asked_again(a, then, otherwise)).then_some(b)
    }

    /// Returns whether a branch only adds a number to memory where the number is not zero.
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

    /// Returns whether the index of an element is known to be in bounds.
    fn is_there(&self, place: &Place) -> bool {
        let Place::Global { dims, within: None, .. } = place else { return false };
        dims.iter().all(|dim| match (self.op(dim.index), self.op(dim.extent)) {
            (Some(Op::Special(Special::Thread(axis))), Some(Op::Constant(extent))) => {
                self.kernel.block.extent(*axis).is_some_and(|threads| u64::from(threads) <= *extent)
            }
            _ => self.known.end_of(dim.index) == Some(dim.extent),
        })
    }

    /// Returns the parameter from which an address is derived.
    fn origin(&self, base: Value) -> Option<u32> {
        match self.op(base)? {
            Op::Parameter(p) => Some(*p),
            Op::Offset { base, .. } => self.origin(*base),
            _ => None,
        }
    }

    /// Returns whether an operation that is not atomic may access the buffer of a place.
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

    /// Returns whether all effects and results of a branch test the condition again.
    fn is_asked_again(&self, condition: Value, then: &Region, otherwise: &Region) -> bool {
        let mut stands = HashMap::new();
        let Some(given) = then.yielded() else { return false };
        let others = otherwise.yielded().into_iter().flatten();
        self.does_nothing(then, condition, &[], &mut stands)
            && given.iter().zip(others).all(|(a, b)| stand(&stands, *a) == stand(&stands, *b))
    }

    /// Returns whether a region has no effect where the condition is false and those of `held` are
    /// true. `stands` receives the values there.
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

    /// Returns whether a condition holds wherever all of `held` do.
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

    /// Returns the operands of a conjunction or disjunction.
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

    /// Returns whether two Booleans are the same comparison or its negation.
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
