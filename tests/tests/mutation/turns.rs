//! Additions of zeros to sums, and loop iterations without an effect.
//!
//! `if c { v } else { 0 }` is v, if v is 0 wherever c does not hold. `x + 0` is x, except for x =
//! −0. A sum that begins with 0 is never −0: with rounding to nearest, two numbers add up to −0
//! only if both are −0. Therefore `if c { sum + v } else { sum }` is `sum + v`, if v is 0 wherever
//! c does not hold.
//!
//! An iteration whose index is not below `end` has no effect under two requirements. It stores only
//! under conditions which imply that the index, or the index plus a number, is below `end`. And its
//! carried values are unchanged, by selects with such conditions or by sums to which zeros are
//! added. The loop may then end at `end`, if its own end is `end` plus a constant: as in the other
//! rewrites, no compared sum has wrapped.

use kernel_dsl::compiler::ir::{Binary, Comparison, For, Inst, Kernel, Op, Region, Type, Value};
use std::collections::{HashMap, HashSet};

/// Replaces selects between a sum with and without a term by the sum, and shortens loops whose last
/// iterations have no effect. Returns whether there was one.
pub fn turns(kernel: &mut Kernel) -> bool {
    let known = Known::of(kernel);
    let mut found = Found::default();
    known.region(&kernel.body, &mut found);
    let changed = !found.stands.is_empty() || !found.ends.is_empty();
    let mut body = std::mem::take(&mut kernel.body);
    rewrite(&mut body, &found);
    kernel.body = body;
    changed
}

/// The rewrites to make.
#[derive(Default)]
struct Found {
    stands: HashMap<Value, Value>,
    /// The new end of each loop, by its index.
    ends: HashMap<Value, Value>,
}

fn rewrite(region: &mut Region, found: &Found) {
    for inst in &mut region.insts {
        if let Op::For(l) = &mut inst.op
            && let Some(end) = found.ends.get(&l.body.parameters[0])
        {
            l.end = *end;
        }
        inst.op.map_operands(|mut value| {
            while let Some(stand) = found.stands.get(&value) {
                value = *stand;
            }
            value
        });
        inst.op.regions_mut().into_iter().for_each(|inner| rewrite(inner, found));
    }
}

/// The definitions of values.
pub struct Known<'k> {
    kernel: &'k Kernel,
    /// The operation and the result index that define each value.
    made: HashMap<Value, (&'k Op, usize)>,
    /// The carried values of counted loops without `break` and `continue`: the initial value, and
    /// the yielded value.
    carried: HashMap<Value, [Value; 2]>,
    /// The end of each loop, by its index.
    ends: HashMap<Value, Value>,
}

impl<'k> Known<'k> {
    /// Collects the definitions of all values of `kernel`.
    pub fn of(kernel: &'k Kernel) -> Known<'k> {
        let mut known = Known { kernel, made: HashMap::new(), carried: HashMap::new(), ends: HashMap::new() };
        known.define(&kernel.body);
        known
    }

    fn define(&mut self, region: &'k Region) {
        for inst in &region.insts {
            self.made.extend(inst.results.iter().enumerate().map(|(i, result)| (*result, (&inst.op, i))));
            if let Op::For(l) = &inst.op {
                self.ends.insert(l.body.parameters[0], l.end);
            }
            if let Op::For(l) = &inst.op
                && let Some(ends) = ends(l)
            {
                for (i, (init, end)) in l.inits.iter().zip(ends).enumerate() {
                    self.carried.insert(l.body.parameters[i + 1], [*init, *end]);
                    self.carried.insert(inst.results[i], [*init, *end]);
                }
            }
            inst.op.regions().into_iter().for_each(|inner| self.define(inner));
        }
    }

    /// Returns the operation that defines a value.
    pub fn op(&self, value: Value) -> Option<&'k Op> {
        self.made.get(&value).map(|(op, _)| *op)
    }

    /// Returns the end of the loop with this index.
    pub fn end_of(&self, index: Value) -> Option<Value> {
        self.ends.get(&index).copied()
    }

    fn is_float(&self, value: Value) -> bool {
        matches!(self.kernel.ty(value), Type::Scalar(ty) if ty.is_float())
    }

    fn region(&self, region: &Region, found: &mut Found) {
        for inst in &region.insts {
            match &inst.op {
                Op::Select { condition, yes, no }
                    if self.only_adds_zero(*condition, *yes, *no) || self.is_zero_else(*condition, *yes, *no) =>
                {
                    found.stands.insert(inst.results[0], *yes);
                }
                Op::For(l) => {
                    if let Some(end) = self.end(l) {
                        found.ends.insert(l.body.parameters[0], end);
                    }
                }
                _ => {}
            }
            inst.op.regions().into_iter().for_each(|inner| self.region(inner, found));
        }
    }

    /// Returns whether `sum` is `from` plus a value that is 0 wherever the condition does not hold,
    /// and `from` is not −0.
    fn only_adds_zero(&self, condition: Value, sum: Value, from: Value) -> bool {
        let Some(Op::Binary(Binary::Add, a, b)) = self.op(sum) else { return false };
        let added = match (*a == from, *b == from) {
            (true, false) => *b,
            (false, true) => *a,
            _ => return false,
        };
        self.is_float(sum)
            && self.not_minus_zero(from, &mut HashSet::new())
            && self.zero_unless(added).into_iter().any(|unless| self.follows(unless, condition))
    }

    /// Returns whether a select is between 0 and a value that is 0 wherever the condition does not
    /// hold.
    fn is_zero_else(&self, condition: Value, of: Value, zero: Value) -> bool {
        matches!(self.op(zero), Some(Op::Constant(0)))
            && self.zero_unless(of).into_iter().any(|unless| self.follows(unless, condition))
    }

    /// Returns conditions each of which holds wherever the value is not +0.
    fn zero_unless(&self, value: Value) -> Vec<Value> {
        let zero = |v: &Value| matches!(self.op(*v), Some(Op::Constant(0)));
        match self.made.get(&value) {
            Some((Op::Load { guard: Some(guard), .. }, i)) if zero(&guard.otherwise[*i]) => vec![guard.condition],
            Some((Op::Select { condition, yes, no }, _)) if zero(no) => {
                let mut all = self.zero_unless(*yes);
                all.push(*condition);
                all
            }
            // The bits of 0 are the same for all types.
            Some((Op::Cast(of), _)) => self.zero_unless(*of),
            _ => Vec::new(),
        }
    }

    /// Returns whether `condition` holds wherever `from` does: they are the same, or an index that
    /// is not larger is compared with the same end.
    pub fn follows(&self, from: Value, condition: Value) -> bool {
        if from == condition {
            return true;
        }
        if let Some(Op::Binary(Binary::And, a, b)) = self.op(condition) {
            return self.follows(from, *a) && self.follows(from, *b);
        }
        if let Some(Op::Binary(Binary::And, a, b)) = self.op(from) {
            return self.follows(*a, condition) || self.follows(*b, condition);
        }
        let (Some((_, larger, end)), Some((_, index, of))) = (self.below(from, true), self.below(condition, false))
        else {
            return false;
        };
        end == of && self.reaches(larger, index)
    }

    /// Returns an integer and one that it is below, or not above, unless `strictly`.
    fn below(&self, condition: Value, strictly: bool) -> Option<(Comparison, Value, Value)> {
        let Op::Compare(comparison, a, b) = self.op(condition)? else { return None };
        let (comparison, a, b) = match comparison {
            Comparison::Gt => (Comparison::Lt, *b, *a),
            Comparison::Ge => (Comparison::Le, *b, *a),
            _ => (*comparison, *a, *b),
        };
        let is_index = matches!(self.kernel.ty(a), Type::Scalar(ty) if ty.is_integer() && !ty.is_signed());
        let fits = comparison == Comparison::Lt || comparison == Comparison::Le && !strictly;
        (is_index && fits).then_some((comparison, a, b))
    }

    /// Splits an index into a base and the sum of the added constants.
    fn apart(&self, value: Value) -> (Value, u64) {
        if let Some(Op::Binary(Binary::Add, a, b)) = self.op(value) {
            for (of, more) in [(*a, *b), (*b, *a)] {
                // A constant above half of the range represents a negative number.
                if let Some(Op::Constant(more)) = self.op(more)
                    && *more < 1 << 31
                {
                    let (of, others) = self.apart(of);
                    return (of, others + more);
                }
            }
        }
        (value, 0)
    }

    /// Returns whether `larger` is at least `index`, because its added part is at least that of
    /// `index`.
    fn reaches(&self, larger: Value, index: Value) -> bool {
        let ((a, more), (b, less)) = (self.apart(larger), self.apart(index));
        a == b && more >= less || less == 0 && self.contains(larger, index) || self.reaches_by_parts(larger, index)
    }

    /// Returns whether both are sums or products, and each operand of one is at least that of the
    /// other.
    fn reaches_by_parts(&self, larger: Value, index: Value) -> bool {
        match [self.op(larger), self.op(index)] {
            [Some(Op::Constant(larger)), Some(Op::Constant(index))] => larger >= index,
            [Some(Op::Binary(Binary::Add, a, b)), Some(Op::Binary(Binary::Add, c, d))]
            | [Some(Op::Binary(Binary::Mul, a, b)), Some(Op::Binary(Binary::Mul, c, d))] => {
                let less = |v: &Value| matches!(self.op(*v), Some(Op::Constant(bits)) if *bits >= 1 << 31);
                ![a, b, c, d].into_iter().any(less) && self.reaches(*a, *c) && self.reaches(*b, *d)
            }
            _ => false,
        }
    }

    /// Returns whether a value is the sum of this index and others, none of which is negative.
    fn contains(&self, sum: Value, index: Value) -> bool {
        let less = |v: &Value| matches!(self.op(*v), Some(Op::Constant(bits)) if *bits >= 1 << 31);
        sum == index
            || match self.op(sum) {
                Some(Op::Binary(Binary::Add, a, b)) if less(a) || less(b) => false,
                Some(Op::Binary(Binary::Add, a, b)) => self.contains(*a, index) || self.contains(*b, index),
                _ => false,
            }
    }

    /// Returns whether a float is never −0, assuming that those of `assumed` are not.
    fn not_minus_zero(&self, value: Value, assumed: &mut HashSet<Value>) -> bool {
        if !assumed.insert(value) {
            return true;
        }
        if let Some([init, end]) = self.carried.get(&value) {
            return self.not_minus_zero(*init, assumed) && self.not_minus_zero(*end, assumed);
        }
        match self.op(value) {
            Some(Op::Constant(bits)) => *bits == 0,
            Some(Op::Binary(Binary::Add, a, b)) => {
                // If the assumption fails, it must not remain.
                let mut other = assumed.clone();
                if self.not_minus_zero(*a, &mut other) {
                    *assumed = other;
                    return true;
                }
                self.not_minus_zero(*b, assumed)
            }
            Some(Op::Select { yes, no, .. }) => self.not_minus_zero(*yes, assumed) && self.not_minus_zero(*no, assumed),
            _ => false,
        }
    }

    /// Returns the end after which the iterations of a loop have no effect, if the loop's own end
    /// is that plus a constant.
    fn end(&self, l: &For) -> Option<Value> {
        let end = match self.op(l.end)? {
            Op::Binary(Binary::Add | Binary::WrappingAdd, of, more) => {
                let Op::Constant(more) = self.op(*more)? else { return None };
                (*more < 1 << 31).then_some(*of)?
            }
            _ => return None,
        };
        let turn = Turn { index: l.body.parameters[0], end };
        let ends = ends(l)?;
        let stays = l.body.parameters.iter().skip(1).zip(ends).all(|(from, to)| self.stays(*to, *from, turn));
        (stays && self.does_nothing(&l.body, turn)).then_some(end)
    }

    /// Returns whether the condition is false in an iteration beyond the end.
    fn is_before(&self, condition: Value, turn: Turn) -> bool {
        let before = |condition: &Value| self.is_before(*condition, turn);
        match self.op(condition) {
            Some(Op::Constant(bits)) => *bits == 0,
            Some(Op::Binary(Binary::And, a, b)) => before(a) || before(b),
            Some(Op::Binary(Binary::Or, a, b)) => before(a) && before(b),
            Some(Op::Compare(..)) => {
                let below = self.below(condition, true);
                below.is_some_and(|(_, index, end)| end == turn.end && self.contains(index, turn.index))
            }
            _ => self.taken(condition, turn).is_some_and(|taken| taken.iter().all(before)),
        }
    }

    /// Returns the possible values of a select in an iteration beyond the end.
    fn taken(&self, value: Value, turn: Turn) -> Option<Vec<Value>> {
        let (condition, yes, no) = match self.made.get(&value)? {
            (Op::Select { condition, yes, no }, _) => (*condition, *yes, *no),
            (Op::If { condition, then, otherwise }, i) => {
                (*condition, *then.yielded()?.get(*i)?, *otherwise.yielded()?.get(*i)?)
            }
            _ => return None,
        };
        Some(if self.is_before(condition, turn) { vec![no] } else { vec![yes, no] })
    }

    /// Returns whether an iteration beyond the end passes on `from` unchanged as `to`.
    fn stays(&self, to: Value, from: Value, turn: Turn) -> bool {
        if to == from {
            return true;
        }
        if let Some(taken) = self.taken(to, turn) {
            return taken.into_iter().all(|of| self.stays(of, from, turn));
        }
        let Some(Op::Binary(Binary::Add, a, b)) = self.op(to) else { return false };
        [(*a, *b), (*b, *a)].into_iter().any(|(sum, added)| {
            self.is_zero(added, turn)
                && (!self.is_float(to) || self.not_minus_zero(from, &mut HashSet::new()))
                && self.stays(sum, from, turn)
        })
    }

    /// Returns whether a number is +0 in an iteration beyond the end.
    fn is_zero(&self, value: Value, turn: Turn) -> bool {
        let zero = |value: &Value| self.is_zero(*value, turn);
        match self.made.get(&value) {
            Some((Op::Constant(bits), _)) => *bits == 0,
            Some((Op::Load { guard: Some(guard), .. }, i)) => {
                self.is_before(guard.condition, turn) && zero(&guard.otherwise[*i])
            }
            // The bits of 0 are the same for all types.
            Some((Op::Cast(of), _)) => zero(of),
            Some((Op::Binary(Binary::Add, a, b), _)) => zero(a) && zero(b),
            _ => self.taken(value, turn).is_some_and(|taken| taken.iter().all(zero)),
        }
    }

    /// Returns whether an iteration beyond the end, or a part of it, stores nothing and has no
    /// barrier.
    fn does_nothing(&self, region: &Region, turn: Turn) -> bool {
        region.insts.iter().all(|inst| match &inst.op {
            Op::Store { guard: Some(guard), .. } => self.is_before(*guard, turn),
            // A location beyond the end need not exist.
            Op::Load { guard: Some(guard), .. } => self.is_before(guard.condition, turn),
            Op::If { condition, otherwise, .. } if self.is_before(*condition, turn) => {
                self.does_nothing(otherwise, turn)
            }
            Op::If { then, otherwise, .. } => self.does_nothing(then, turn) && self.does_nothing(otherwise, turn),
            Op::Yield(_) => true,
            op => op.is_pure(),
        })
    }
}

/// An iteration of a loop, and an end that its index is not below.
#[derive(Clone, Copy)]
struct Turn {
    index: Value,
    end: Value,
}

/// Returns the values that each iteration of a loop yields, if all iterations reach its end.
fn ends(l: &For) -> Option<&[Value]> {
    let leaves = |inst: &Inst| leaves(inst);
    match l.body.insts.split_last()? {
        (Inst { op: Op::Yield(values), .. }, before) if !before.iter().any(leaves) => Some(values),
        _ => None,
    }
}

fn leaves(inst: &Inst) -> bool {
    matches!(inst.op, Op::Break(..) | Op::Continue(..) | Op::Return)
        || inst.op.regions().into_iter().any(|region| region.insts.iter().any(leaves))
}
