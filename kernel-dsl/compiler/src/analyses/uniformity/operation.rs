//! The transfer function of each operation: facts about results from facts about operands.

use super::fact::{ALL_LANES, UniformityFact, WARPS};
use super::threads::{ThreadNumbers, gcd};
use super::verdict::{Cause, CauseStep, CausedVerdict, UniformScope, UniformityVerdict, Verdicts};
use crate::hash::FastMap;
use crate::ir::eval;
use crate::ir::{
    AccessPlace, Binary, CachePolicy, Guard, Inst, Kernel, Location, Op, SharedLayout, Shuffle, Special, Type, Value,
};
use crate::ptx::inline::Effect;
use crate::scalar::Scalar;

/// Facts about values, and the origin of some of them.
pub(super) struct UniformityFacts<'k> {
    kernel: &'k Kernel,
    by_value: Vec<UniformityFact>,
    /// Values received from the lane whose index is this lane's index XOR a constant, with that
    /// constant.
    exchanged: FastMap<Value, (Value, u8)>,
    /// The operands of sums.
    sums: FastMap<Value, (Value, Value)>,
}

impl<'k> UniformityFacts<'k> {
    pub fn new(kernel: &'k Kernel) -> UniformityFacts<'k> {
        let by_value = vec![UniformityFact::undefined(); kernel.values.len()];
        UniformityFacts { kernel, by_value, exchanged: FastMap::default(), sums: FastMap::default() }
    }

    pub fn of(&self, value: Value) -> &UniformityFact {
        &self.by_value[value.0 as usize]
    }

    /// Sets the fact about a value. An existing cause is kept, so that traces end.
    pub fn set(&mut self, value: Value, mut fact: UniformityFact) {
        if self.kernel.block.most_threads() <= 32 {
            fact.settle_only_warp();
        }
        let old = &mut self.by_value[value.0 as usize];
        fact.base = keep(old.base, fact.base);
        fact.varies = keep(old.varies, fact.varies);
        *old = fact;
    }

    /// Returns whether the value is an unsigned integer of at most 32 bits.
    pub fn is_small(&self, value: Value) -> bool {
        is_small(self.kernel.ty(value))
    }

    /// Sets the facts of the results of an operation without regions that does not access a local.
    pub fn inst(&mut self, inst: &Inst) {
        let at = inst.location;
        let fact = match &inst.op {
            Op::Constant(bits) => UniformityFact::constant(*bits),
            Op::Parameter(_) => UniformityFact::undefined(),
            Op::Special(special) => self.special(*special, at),
            Op::Binary(op, a, b) => self.binary(*op, *a, *b, inst),
            Op::Unary(op, a) => self.unary_fact(*a, at, |ty, bits| eval::unary(*op, ty, bits)),
            Op::Bitcast(a) => self.unary_fact(*a, at, |_, bits| Some(bits)),
            Op::Cast(a) => self.cast(*a, inst),
            Op::Compare(op, a, b) => {
                let (ty, merged) = (self.kernel.ty(*a).scalar(), self.independent_lane_bits(&[*a, *b]));
                self.binary_fact(*a, *b, at, |a, b| Some(u64::from(eval::compare(*op, ty?, a, b)))).unwrap_or_else(
                    || {
                        let all = self.joined_verdicts(&[*a, *b], at);
                        // The operands may differ between threads in the same way, so that the
                        // comparison is uniform.
                        let [a, b] = [*a, *b].map(|v| self.of(v).verdicts());
                        let verdicts = Verdicts::by_scope(|s| match (a.at(s).verdict, b.at(s).verdict) {
                            (UniformityVerdict::Varies, UniformityVerdict::Varies) => all.at_best_unknown().at(s),
                            _ => all.at(s),
                        });
                        UniformityFact::opaque_without(merged, verdicts)
                    },
                )
            }
            Op::Select { condition, yes, no } => self.select(*condition, *yes, *no, at),
            Op::Load { place, policy, guard, .. } => self.load(place, *policy, guard.as_ref(), at),
            Op::Atomic { .. } => UniformityFact::opaque(memory(at)),
            // The result depends on the thread or on time in an unknown way.
            Op::Inline { code, .. } if code.effect() != Effect::None => UniformityFact::opaque(memory(at)),
            Op::Shuffle { mode, value, selector, width } => self.shuffle(*mode, *value, *selector, *width, inst),
            Op::Vote { value, .. } | Op::Reduce(_, value) => {
                let verdicts = self.joined_verdicts(&[*value], at);
                UniformityFact::opaque_without(ALL_LANES | self.of(*value).independent_lane_bits(), verdicts)
            }
            op => {
                let mut operands = Vec::new();
                op.for_each_operand(|v| operands.push(v));
                self.opaque(&operands, at)
            }
        };
        for result in &inst.results {
            self.set(*result, fact.clone());
        }
    }

    /// Returns the joined verdicts of `values`, traced as operands of a computation.
    pub fn joined_verdicts(&self, values: &[Value], at: Location) -> Verdicts {
        let verdicts = values.iter().map(|v| self.of(*v).verdicts().with_cause(CauseStep::From(*v), at));
        verdicts.fold(Verdicts::UNIFORM, Verdicts::join)
    }

    fn opaque(&self, values: &[Value], at: Location) -> UniformityFact {
        UniformityFact::opaque_without(self.independent_lane_bits(values), self.joined_verdicts(values, at))
    }

    /// Returns the bits of the lane index that none of `values` depends on.
    fn independent_lane_bits(&self, values: &[Value]) -> u8 {
        values.iter().fold(ALL_LANES | WARPS, |merged, v| merged & self.of(*v).independent_lane_bits())
    }

    /// Returns a fact of the form m·U + tₙ that is computed from `values`.
    fn affine_fact(
        &self,
        multiple: u64,
        threads: ThreadNumbers,
        base: Verdicts,
        values: &[Value],
        at: Location,
    ) -> UniformityFact {
        let varies = Verdicts::by_scope(|scope| {
            if threads.are_equal_in(scope) {
                return Verdicts::UNIFORM.at(scope);
            }
            let from = values.iter().find(|v| !self.of(**v).threads.are_equal_in(scope)).or(values.first());
            let hop = from.map_or(CauseStep::Memory, |v| CauseStep::From(*v));
            CausedVerdict::because(UniformityVerdict::Varies, Cause { hop, location: at })
        });
        let of_base = UniformityFact::opaque(base).independent_lane_bits();
        let merged = self.independent_lane_bits(values) | threads.independent_lane_bits() & of_base;
        UniformityFact { multiple, threads, base, varies, merged }
    }

    fn special(&self, special: Special, at: Location) -> UniformityFact {
        let varies =
            CausedVerdict::because(UniformityVerdict::Varies, Cause { hop: CauseStep::Index(special), location: at });
        match special {
            Special::Grid(_) => UniformityFact::undefined(),
            Special::BlockDim(axis) => match self.kernel.block.extent(axis) {
                Some(n) => UniformityFact::constant(n.into()),
                // The extent is a multiple of its known divisor.
                None => {
                    UniformityFact { multiple: self.kernel.block.divisor(axis).into(), ..UniformityFact::undefined() }
                }
            },
            Special::Block(_) => {
                let mut base = Verdicts::UNIFORM;
                base.set(UniformScope::Grid, varies);
                UniformityFact::opaque(base)
            }
            Special::Thread(axis) => {
                let threads = ThreadNumbers::index(self.kernel, axis);
                let agree =
                    Verdicts::by_scope(|s| if threads.are_equal_in(s) { Verdicts::UNIFORM.at(s) } else { varies });
                UniformityFact::known(threads, agree)
            }
        }
    }

    /// Returns the fact about a number computed from a known one.
    fn unary_fact(&self, a: Value, at: Location, f: impl Fn(Scalar, u64) -> Option<u64>) -> UniformityFact {
        let fact = self.of(a);
        let known = self.kernel.ty(a).scalar().filter(|_| fact.is_known());
        match known.and_then(|ty| fact.threads.map(|bits| f(ty, bits))) {
            Some(threads) => self.affine_fact(0, threads, Verdicts::UNIFORM, &[a], at),
            None => self.opaque(&[a], at),
        }
    }

    /// Returns the fact about a number computed from two known ones.
    fn binary_fact(
        &self,
        a: Value,
        b: Value,
        at: Location,
        f: impl Fn(u64, u64) -> Option<u64>,
    ) -> Option<UniformityFact> {
        let (x, y) = (self.of(a), self.of(b));
        if !x.is_known() || !y.is_known() {
            return None;
        }
        let threads = x.threads.zip(&y.threads, f)?;
        Some(self.affine_fact(0, threads, Verdicts::UNIFORM, &[a, b], at))
    }

    fn cast(&self, a: Value, inst: &Inst) -> UniformityFact {
        let (fact, at) = (self.of(a), inst.location);
        let types = self.kernel.ty(a).scalar().zip(self.kernel.ty(inst.results[0]).scalar());
        let Some((from, to)) = types else { return self.opaque(&[a], at) };
        if !fact.is_known() && unsigned(self.kernel.ty(a)) && unsigned(Type::Scalar(to)) && from.bits() <= to.bits() {
            let base = fact.base.with_cause(CauseStep::From(a), at);
            return self.affine_fact(fact.multiple, fact.threads.clone(), base, &[a], at);
        }
        self.unary_fact(a, at, |_, bits| eval::cast(from, to, bits))
    }

    fn binary(&mut self, op: Binary, a: Value, b: Value, inst: &Inst) -> UniformityFact {
        let (at, ty) = (inst.location, self.kernel.ty(a).scalar());
        if op == Binary::Add {
            self.sums.insert(inst.results[0], (a, b));
        }
        if let Some(known) = ty.and_then(|ty| self.binary_fact(a, b, at, |a, b| eval::binary(op, ty, a, b))) {
            return known;
        }
        let mut fact = self.opaque(&[a, b], at);
        if let Some(distance) = self.step_of_a_butterfly(op, a, b) {
            return UniformityFact::opaque_without(fact.merged | distance, fact.base);
        }
        if let Some(fact) = ty.and_then(|ty| self.arithmetic(op, ty, a, b, at)) {
            return fact;
        }
        let constant = |v: Value| self.of(v).common_number().is_some();
        if matches!(op, Binary::Div | Binary::Shr | Binary::WrappingShr)
            || op == Binary::And && (constant(a) || constant(b))
        {
            // Different operands may give equal results.
            fact.base = fact.base.at_best_unknown();
        }
        fact
    }

    /// Computes m·U + tₙ for an operation whose result has that form too. `usize` does not wrap;
    /// other types may.
    fn arithmetic(&self, op: Binary, ty: Scalar, a: Value, b: Value, at: Location) -> Option<UniformityFact> {
        let (x, y) = (self.of(a), self.of(b));
        let made = |multiple, threads, base: [Verdicts; 2]| {
            let [p, q] = base;
            let base = p.with_cause(CauseStep::From(a), at).join(q.with_cause(CauseStep::From(b), at));
            Some(self.affine_fact(multiple, threads, base, &[a, b], at))
        };
        if !unsigned(Type::Scalar(ty)) {
            return None;
        }
        match op {
            Binary::Add | Binary::Sub if ty == Scalar::Usize => {
                let f = if op == Binary::Add { i64::checked_add } else { i64::checked_sub };
                let threads = x.threads.zip(&y.threads, |a, b| f(a as i64, b as i64).map(|n| n as u64))?;
                made(gcd(x.multiple, y.multiple), threads, [x.base, y.base])
            }
            Binary::Mul if ty == Scalar::Usize => {
                let (by, of) = match (x.common_number(), y.common_number()) {
                    (_, Some(by)) => (by, x),
                    (Some(by), _) => (by, y),
                    // Both operands are multiples of known numbers.
                    _ if x.threads.common_number() == Some(0) && y.threads.common_number() == Some(0) => {
                        return made(x.multiple.checked_mul(y.multiple)?, ThreadNumbers::Same(0), [x.base, y.base]);
                    }
                    _ => return None,
                };
                let threads = of.threads.map(|n| (n as i64).checked_mul(by as i64).map(|n| n as u64))?;
                made(of.multiple.checked_mul(by)?, threads, [x.base, y.base])
            }
            Binary::Div => quotient(x, y.common_number()?).and_then(|(m, threads)| made(m, threads, [x.base, y.base])),
            Binary::Shr | Binary::WrappingShr => {
                let by = 1u64.checked_shl(y.common_number()? as u32 & (ty.bits() - 1))?;
                quotient(x, by).and_then(|(m, threads)| made(m, threads, [x.base, y.base]))
            }
            // The remainder does not depend on U.
            Binary::Rem => {
                let threads = remainder(x, y.common_number()?)?;
                made(0, threads, [Verdicts::UNIFORM; 2])
            }
            Binary::And => {
                let (of, mask) = match (x.common_number(), y.common_number()) {
                    (_, Some(mask)) => (x, mask),
                    (Some(mask), _) => (y, mask),
                    _ => return None,
                };
                let power = |low: u64| low.checked_add(1).filter(|n| n.is_power_of_two());
                if let Some(by) = power(mask) {
                    return made(0, remainder(of, by)?, [Verdicts::UNIFORM; 2]);
                }
                if let Some(by) = power(!mask & ty.mask()) {
                    let rest = remainder(of, by)?;
                    let threads = of.threads.zip(&rest, |n, rest| Some(n.wrapping_sub(rest)))?;
                    return made(of.multiple, threads, [x.base, y.base]);
                }
                None
            }
            _ => None,
        }
    }

    /// Returns the bit of the lane index by which two partner lanes differ, if `op` is a butterfly
    /// step. In such a step, one operand is the other operand as received from the partner lane.
    fn step_of_a_butterfly(&self, op: Binary, a: Value, b: Value) -> Option<u8> {
        // The lane computes op(a, b), and its partner op(b, a): equal results, if `op` commutes.
        let from = |exchanged: Value, own: Value| {
            self.exchanged.get(&exchanged).filter(|(source, _)| *source == own).map(|(_, distance)| *distance)
        };
        if op.commutes() { from(b, a).or_else(|| from(a, b)) } else { None }
    }

    /// Returns the fact about a selection between `yes` and `no`.
    pub fn select(&self, condition: Value, yes: Value, no: Value, at: Location) -> UniformityFact {
        let (which, y, n) = (self.of(condition), self.of(yes), self.of(no));
        match which.common_number() {
            Some(0) => return n.with_cause(CauseStep::From(no), at),
            Some(_) => return y.with_cause(CauseStep::From(yes), at),
            None if yes == no => return y.with_cause(CauseStep::From(yes), at),
            None => {}
        }
        if which.is_known() && y.is_known() && n.is_known() {
            let yes_there = which.threads.zip(&y.threads, |c, y| Some(if c != 0 { y } else { 0 }));
            let no_there = which.threads.zip(&n.threads, |c, n| Some(if c != 0 { 0 } else { n }));
            let both = yes_there.zip(no_there).and_then(|(y, n)| y.zip(&n, |y, n| Some(y | n)));
            if let Some(threads) = both {
                return self.affine_fact(0, threads, Verdicts::UNIFORM, &[condition, yes, no], at);
            }
        }
        let chosen =
            y.with_cause(CauseStep::From(yes), at).or(&n.with_cause(CauseStep::From(no), at), self.is_small(yes));
        let chosen = chosen.tainted(which.verdicts().with_cause(CauseStep::From(condition), at));
        UniformityFact { merged: chosen.merged | self.independent_lane_bits(&[condition, yes, no]), ..chosen }
    }

    /// Returns the fact about a load. Read-only memory gives equal values for equal addresses.
    /// Other memory is unknown.
    fn load(&self, place: &AccessPlace, policy: CachePolicy, guard: Option<&Guard>, at: Location) -> UniformityFact {
        let mut values = Vec::new();
        match place {
            AccessPlace::Global { base, dims, .. } | AccessPlace::Dynamic { base, dims, .. } => {
                values.push(*base);
                for dim in dims {
                    values.push(dim.index);
                    values.extend(dim.stride);
                }
            }
            AccessPlace::Address { base, .. } => values.push(*base),
            AccessPlace::Shared { indices, .. } => values.extend(indices.iter().copied()),
        }
        values.extend(place.element_offset().iter().flat_map(|w| w.indices.iter().map(|step| step.index)));
        if let Some(guard) = guard {
            values.push(guard.condition);
            values.extend(guard.otherwise.iter().copied());
        }
        let verdicts = self.joined_verdicts(&values, at);
        let exchanged = match place {
            AccessPlace::Shared { array, .. } => self.kernel.shared[array.0 as usize].layout == SharedLayout::Exchange,
            _ => false,
        };
        // Lowering puts barriers between the stores to this array and the loads from it.
        if exchanged {
            // Within a block, all loads of an element give the same value.
            let mut fact = UniformityFact::opaque_without(self.independent_lane_bits(&values), verdicts);
            fact.base.set(UniformScope::Grid, memory(at).at(UniformScope::Grid));
            return fact;
        }
        if let AccessPlace::Shared { .. } | AccessPlace::Dynamic { .. } = place {
            return UniformityFact::opaque(memory(at));
        }
        UniformityFact::opaque(Verdicts::by_scope(|scope| match (policy, verdicts.at(scope).verdict) {
            (CachePolicy::ReadOnly, UniformityVerdict::Uniform) => verdicts.at(scope),
            _ => memory(at).at(scope),
        }))
    }

    fn shuffle(&mut self, mode: Shuffle, value: Value, selector: Value, width: u32, inst: &Inst) -> UniformityFact {
        let at = inst.location;
        let (merged, selected) = (self.of(value).independent_lane_bits(), self.of(selector).independent_lane_bits());
        if merged & ALL_LANES == ALL_LANES {
            // All lanes have the same value, so the source lane does not matter.
            return self.of(value).with_cause(CauseStep::From(value), at);
        }
        let within = (width - 1) as u8 & ALL_LANES;
        let one = selected & ALL_LANES == ALL_LANES;
        let merged = match mode {
            Shuffle::Index | Shuffle::Broadcast if one => merged | within,
            Shuffle::Xor => {
                if let Some(distance) =
                    self.of(selector).common_number().filter(|d| d.is_power_of_two() && *d <= u64::from(within))
                {
                    self.exchanged.insert(inst.results[0], (value, distance as u8));
                }
                // The source lane differs in these bits for every receiving lane.
                if one { merged } else { 0 }
            }
            _ => 0,
        };
        UniformityFact::opaque_without(merged & (selected | ALL_LANES), self.joined_verdicts(&[value, selector], at))
    }

    /// Returns the uniformity of the number of iterations of a loop from `start` to `end`.
    pub fn trip_count_uniformity(&self, [start, end, step]: [Value; 3], at: Location) -> Verdicts {
        let ty = self.kernel.ty(start).scalar().unwrap_or(Scalar::Usize);
        let [from, to, by] = [start, end, step].map(|v| self.of(v));
        let verdicts_of = |v: Value| self.of(v).verdicts().with_cause(CauseStep::Trips(v), at);
        let all = verdicts_of(start).join(verdicts_of(end)).join(verdicts_of(step));
        if from.is_known() && to.is_known() && by.is_known() {
            let length = from.threads.zip(&to.threads, |from, to| {
                let gap = eval::integer(ty, to) - eval::integer(ty, from);
                u64::try_from(gap.max(0)).ok()
            });
            let trips = length.and_then(|l| l.zip(&by.threads, |l, by| (by > 0).then(|| l.div_ceil(by))));
            if let Some(trips) = trips {
                return Verdicts::by_scope(|s| if trips.are_equal_in(s) { Verdicts::UNIFORM.at(s) } else { all.at(s) });
            }
        }
        // The range is i to i + n.
        let beyond = self.sums.get(&end).and_then(|(a, b)| match (*a == start, *b == start) {
            (true, _) => Some(*b),
            (_, true) => Some(*a),
            _ => None,
        });
        if let Some(length) = beyond.filter(|_| ty == Scalar::Usize) {
            return verdicts_of(length).join(verdicts_of(step));
        }
        // Both bounds may vary by the same amount, so that their distance is uniform.
        Verdicts::by_scope(|s| match (from.verdicts().at(s).verdict, to.verdicts().at(s).verdict) {
            (UniformityVerdict::Varies, UniformityVerdict::Varies) => all.at_best_unknown().at(s),
            _ => all.at(s),
        })
    }

    /// Returns the fact about the index of a loop, compared between threads in the same iteration.
    pub fn index(&self, start: Value, step: Value, at: Location) -> UniformityFact {
        let (from, by) = (self.of(start), self.of(step));
        let verdicts = self.joined_verdicts(&[start, step], at);
        match by.common_number().filter(|_| self.is_small(start)) {
            Some(by) if by > 0 => {
                let base = from.base.with_cause(CauseStep::From(start), at);
                self.affine_fact(gcd(from.multiple, by), from.threads.clone(), base, &[start], at)
            }
            _ => UniformityFact::opaque(verdicts),
        }
    }
}

/// Returns unknown verdicts with memory as their cause.
fn memory(at: Location) -> Verdicts {
    Verdicts::all(CausedVerdict::because(UniformityVerdict::Unknown, Cause { hop: CauseStep::Memory, location: at }))
}

/// Returns `by` as a signed number if it divides m, so that U contributes no remainder.
fn divisor(fact: &UniformityFact, by: u64) -> Option<i64> {
    i64::try_from(by).ok().filter(|d| *d > 0 && fact.multiple.is_multiple_of(by))
}

/// Returns m·U + tₙ divided by `by`, rounded down.
fn quotient(fact: &UniformityFact, by: u64) -> Option<(u64, ThreadNumbers)> {
    let divisor = divisor(fact, by)?;
    let threads = fact.threads.map(|n| Some((n as i64).div_euclid(divisor) as u64))?;
    Some((fact.multiple / by, threads))
}

/// Returns the remainder of m·U + tₙ divided by `by`.
fn remainder(fact: &UniformityFact, by: u64) -> Option<ThreadNumbers> {
    let divisor = divisor(fact, by)?;
    fact.threads.map(|n| Some((n as i64).rem_euclid(divisor) as u64))
}

/// Returns the new verdicts, with the old causes of those that did not change.
fn keep(old: Verdicts, new: Verdicts) -> Verdicts {
    Verdicts::by_scope(|scope| {
        let (old, new) = (old.at(scope), new.at(scope));
        if old.verdict == new.verdict { old } else { new }
    })
}

/// Returns whether all values of a type are non-negative and equal to their bits.
fn unsigned(ty: Type) -> bool {
    ty.scalar().is_some_and(|s| s.is_integer() && !s.is_signed())
}

/// Returns whether a type is an unsigned integer of at most 32 bits. Sums of such integers cannot
/// overflow the 64-bit arithmetic of facts.
pub(super) fn is_small(ty: Type) -> bool {
    unsigned(ty) && ty.scalar().is_some_and(|s| s.bits() <= 32)
}
