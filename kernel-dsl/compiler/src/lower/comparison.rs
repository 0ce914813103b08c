//! Comparisons of values with parts.
//!
//! All parts are compared, and predicates combine the results. The parts are in registers already,
//! so a branch would save nothing. Only the `eq` of an impl is called in a branch: in Rust the
//! function runs only if its operands exist and the parts before are equal.

use super::lowerer::Lowerer;
use super::lowerer::maybe_const::{MaybeConst, known_compare};
use super::lowerer::value::{LoweredPlace, Storage, Val};
use crate::Scalar;
use crate::hir::{FunctionId, Type, TypeId};
use crate::ir::{self, Comparison, Op};
use crate::source::Span;

/// The result of an order if the values are equal: what the parts that follow decide.
#[derive(Clone, Copy)]
enum TieResult {
    /// Nothing follows: false for `<` and `>`, true for `<=` and `>=`.
    Known(bool),
    Value(MaybeConst),
}

impl<'h> Lowerer<'h> {
    /// Lowers a comparison of two values of type `ty`.
    pub(super) fn compare_values(
        &mut self,
        span: Span,
        comparison: Comparison,
        ty: TypeId,
        a: &Val,
        b: &Val,
    ) -> MaybeConst {
        if self.names_places(ty) {
            let [a, b] = [a, b].map(|value| self.targets(ty, value, None));
            return self.compare_targets(span, comparison, ty, &a, &b);
        }
        self.compare_targets(span, comparison, ty, a, b)
    }

    /// Returns whether values of a type contain references.
    pub(super) fn names_places(&self, ty: TypeId) -> bool {
        match self.ty(ty) {
            Type::Reference { .. } => true,
            Type::Tuple(parts) => parts.iter().any(|part| self.names_places(*part)),
            Type::Array(part, _) | Type::Option(part) => self.names_places(*part),
            _ => false,
        }
    }

    /// Lowers a value with the target of each reference in its place. A target in memory is read
    /// where `guard` and the options around it hold.
    fn targets(&mut self, ty: TypeId, value: &Val, guard: Option<MaybeConst>) -> Val {
        match (self.ty(ty), value) {
            (Type::Reference { to, .. }, Val::Reference(place)) => {
                let target = match (place, guard) {
                    (LoweredPlace::Memory { place, mem_layout, policy }, Some(guard)) => {
                        let zeros = self.zeros(mem_layout);
                        self.load_mem_layout(place, mem_layout, *to, *policy, Some((guard, &zeros)))
                    }
                    (place, _) => self.read(place, *to),
                };
                self.targets(*to, &target, guard)
            }
            (Type::Option(inner), Val::Option(some, value)) => {
                let guard = match guard {
                    Some(guard) => self.binary(ir::Binary::And, Scalar::Bool, guard, *some),
                    None => *some,
                };
                Val::Option(*some, Box::new(self.targets(*inner, value, Some(guard))))
            }
            (Type::Tuple(types), Val::Tuple(parts)) => {
                Val::Tuple(types.iter().zip(parts).map(|(ty, part)| self.targets(*ty, part, guard)).collect())
            }
            _ => value.clone(),
        }
    }

    /// Lowers a comparison of values whose references [`Lowerer::targets`] has replaced.
    fn compare_targets(&mut self, span: Span, comparison: Comparison, ty: TypeId, a: &Val, b: &Val) -> MaybeConst {
        let (strict, equal) = match comparison {
            Comparison::Eq | Comparison::Ne => {
                let mut so_far = None;
                self.equal_parts(span, comparison, ty, [a, b], &mut so_far);
                return so_far.unwrap_or_else(|| self.truth(comparison == Comparison::Eq));
            }
            Comparison::Lt => (Comparison::Lt, false),
            Comparison::Le => (Comparison::Lt, true),
            Comparison::Gt => (Comparison::Gt, false),
            Comparison::Ge => (Comparison::Gt, true),
        };
        match self.ordered(strict, ty, a, b, TieResult::Known(equal)) {
            TieResult::Known(holds) => self.truth(holds),
            TieResult::Value(holds) => holds,
        }
    }

    /// Lowers `==` or `!=`. `so_far` is the result for the parts before: whether all are equal, or
    /// whether one differs.
    fn equal_parts(
        &mut self,
        span: Span,
        comparison: Comparison,
        ty: TypeId,
        [a, b]: [&Val; 2],
        so_far: &mut Option<MaybeConst>,
    ) {
        let decided = u64::from(comparison == Comparison::Ne);
        if so_far.is_some_and(|k| k.bits == Some(decided)) {
            return;
        }
        if let Some(function) = self.monomorphic.equality(ty) {
            let result = self.equality_call(span, comparison, function, ty, [a, b], *so_far);
            *so_far = Some(result);
            return;
        }
        let calls = self.monomorphic.calls_equality(ty);
        match (self.ty(ty), a, b) {
            (Type::Reference { to, .. }, ..) => self.equal_parts(span, comparison, *to, [a, b], so_far),
            (Type::Scalar(scalar), Val::Scalar(a), Val::Scalar(b)) => {
                let result = self.compare(comparison, *scalar, *a, *b);
                self.add_result(comparison, result, so_far);
            }
            (Type::Tuple(types), Val::Tuple(a), Val::Tuple(b))
                if calls && let Some(variants) = self.monomorphic.variants(ty) =>
            {
                let (Val::Scalar(tag), Val::Scalar(other)) = (&a[0], &b[0]) else { return };
                let tags = self.compare(comparison, Scalar::I32, *tag, *other);
                self.add_result(comparison, tags, so_far);
                for (value, fields) in variants {
                    let value = self.number(Scalar::I32, u64::from(value as u32));
                    let present = self.compare(Comparison::Eq, Scalar::I32, *tag, value);
                    self.equal_where(span, comparison, present, so_far, |l, so_far| {
                        for i in fields {
                            l.equal_parts(span, comparison, types[i], [&a[i], &b[i]], so_far);
                        }
                    });
                }
            }
            (Type::Tuple(types), Val::Tuple(a), Val::Tuple(b)) => {
                for (ty, (a, b)) in types.iter().zip(a.iter().zip(b)) {
                    self.equal_parts(span, comparison, *ty, [a, b], so_far);
                }
            }
            (Type::Array(element, size), Val::Array(a), Val::Array(b)) => {
                for i in 0..self.size(*size) {
                    let [a, b] = self.elements_at([a, b], *element, i);
                    self.equal_parts(span, comparison, *element, [&a, &b], so_far);
                }
            }
            (Type::Option(inner), Val::Option(some, a), Val::Option(other, b)) => {
                let flags = self.compare(comparison, Scalar::Bool, *some, *other);
                self.add_result(comparison, flags, so_far);
                if calls {
                    self.equal_where(span, comparison, *some, so_far, |l, so_far| {
                        l.equal_parts(span, comparison, *inner, [a, b], so_far);
                    });
                    return;
                }
                let values = self.compare_targets(span, comparison, *inner, a, b);
                // The values count only if both exist. The flags have decided the result if one
                // exists.
                let result = match comparison {
                    Comparison::Ne => self.binary(ir::Binary::And, Scalar::Bool, *some, values),
                    _ => {
                        let none = self.negate_test(*some);
                        self.binary(ir::Binary::Or, Scalar::Bool, none, values)
                    }
                };
                self.add_result(comparison, result, so_far);
            }
            // Control does not reach this point, or the type has one value.
            _ => {}
        }
    }

    /// Reads element `i` of two arrays.
    fn elements_at(&mut self, arrays: [&Storage; 2], element: TypeId, i: u32) -> [Val; 2] {
        let i = self.index(i);
        arrays.map(|array| {
            let place = self.element(array, i);
            self.peek_storage(&place, element)
        })
    }

    /// Compares parts in a branch, which runs only if `present` holds and the parts before are
    /// equal.
    fn equal_where(
        &mut self,
        span: Span,
        comparison: Comparison,
        present: MaybeConst,
        so_far: &mut Option<MaybeConst>,
        compare_parts: impl FnOnce(&mut Self, &mut Option<MaybeConst>),
    ) {
        let equal_so_far = comparison == Comparison::Eq;
        let Some(before) = *so_far else { return };
        let undecided = if equal_so_far { before } else { self.negate_test(before) };
        match (present.bits, undecided.bits) {
            (Some(0), _) | (_, Some(0)) => {}
            (Some(_), _) => compare_parts(self, so_far),
            (None, _) => {
                let condition = self.binary(ir::Binary::And, Scalar::Bool, present, undecided);
                let types = [ir::Type::Scalar(Scalar::Bool)];
                let (then, _) = self.arm(Some(&types), |l| {
                    let mut within = Some(l.truth(equal_so_far));
                    compare_parts(l, &mut within);
                    Val::Scalar(within.unwrap_or(before))
                });
                let (otherwise, _) = self.arm(Some(&types), |_| Val::Scalar(before));
                self.at(span);
                let results = self.builder.emit(Op::If { condition: condition.value, then, otherwise }, types);
                *so_far = Some(MaybeConst::unknown(results[0]));
            }
        }
    }

    /// Adds the result for a part to the result for the parts before.
    fn add_result(&mut self, comparison: Comparison, result: MaybeConst, so_far: &mut Option<MaybeConst>) {
        let neutral = u64::from(comparison == Comparison::Eq);
        *so_far = Some(match *so_far {
            Some(before) if before.bits != Some(neutral) => {
                let op = if comparison == Comparison::Eq { ir::Binary::And } else { ir::Binary::Or };
                self.binary(op, Scalar::Bool, before, result)
            }
            _ => result,
        });
    }

    /// Lowers a call of the `eq` of an impl, which runs only if the parts before are equal.
    fn equality_call(
        &mut self,
        span: Span,
        comparison: Comparison,
        function: FunctionId,
        ty: TypeId,
        values: [&Val; 2],
        so_far: Option<MaybeConst>,
    ) -> MaybeConst {
        let differs = comparison == Comparison::Ne;
        let call = |l: &mut Self| {
            let places = values.map(|value| Val::Reference(l.temporary_place(ty, value.clone())));
            let equal = l.inline(span, function, places.into());
            // A function that does not return has no value.
            let equal = equal.scalar().unwrap_or_else(|| l.truth(false));
            if differs { l.negate_test(equal) } else { equal }
        };
        let Some(before) = so_far.filter(|k| k.bits.is_none()) else { return call(self) };
        let types = [ir::Type::Scalar(Scalar::Bool)];
        let (called, _) = self.arm(Some(&types), |l| Val::Scalar(call(l)));
        let (decided, _) = self.arm(Some(&types), |l| Val::Scalar(l.truth(differs)));
        self.at(span);
        let (then, otherwise) = if differs { (decided, called) } else { (called, decided) };
        let results = self.builder.emit(Op::If { condition: before.value, then, otherwise }, types);
        MaybeConst::unknown(results[0])
    }

    /// Lowers `<` or `>` of values, if `rest` is the result where the values are equal. The first
    /// parts that are not equal decide, and parts without an order, such as a NaN, make the result
    /// false.
    fn ordered(&mut self, strict: Comparison, ty: TypeId, a: &Val, b: &Val, rest: TieResult) -> TieResult {
        match (self.ty(ty), a, b) {
            (Type::Reference { to, .. }, ..) => self.ordered(strict, *to, a, b, rest),
            (Type::Scalar(scalar), Val::Scalar(a), Val::Scalar(b)) => {
                TieResult::Value(self.ordered_scalars(strict, *scalar, *a, *b, rest))
            }
            (Type::Tuple(types), Val::Tuple(a), Val::Tuple(b)) => {
                let parts = types.iter().zip(a.iter().zip(b)).rev();
                parts.fold(rest, |rest, (ty, (a, b))| self.ordered(strict, *ty, a, b, rest))
            }
            (Type::Array(element, size), Val::Array(a), Val::Array(b)) => {
                (0..self.size(*size)).rev().fold(rest, |rest, i| {
                    let [a, b] = self.elements_at([a, b], *element, i);
                    self.ordered(strict, *element, &a, &b, rest)
                })
            }
            (Type::Option(inner), Val::Option(some, a), Val::Option(other, b)) => {
                // `None` is less than `Some`. Where the flags are equal, the values decide if they
                // exist.
                let values = match self.ordered(strict, *inner, a, b, rest) {
                    TieResult::Known(holds) => self.truth(holds),
                    TieResult::Value(holds) => holds,
                };
                let none = self.negate_test(*some);
                let chosen = match rest {
                    TieResult::Known(false) => self.binary(ir::Binary::And, Scalar::Bool, *some, values),
                    TieResult::Known(true) => self.binary(ir::Binary::Or, Scalar::Bool, none, values),
                    TieResult::Value(rest) => {
                        let values = self.binary(ir::Binary::And, Scalar::Bool, *some, values);
                        let rest = self.binary(ir::Binary::And, Scalar::Bool, none, rest);
                        self.binary(ir::Binary::Or, Scalar::Bool, values, rest)
                    }
                };
                TieResult::Value(self.ordered_scalars(strict, Scalar::Bool, *some, *other, TieResult::Value(chosen)))
            }
            _ => rest,
        }
    }

    fn ordered_scalars(
        &mut self,
        strict: Comparison,
        ty: Scalar,
        a: MaybeConst,
        b: MaybeConst,
        rest: TieResult,
    ) -> MaybeConst {
        match rest {
            TieResult::Known(false) => self.compare(strict, ty, a, b),
            TieResult::Known(true) => {
                let or_equal = if strict == Comparison::Lt { Comparison::Le } else { Comparison::Ge };
                self.compare(or_equal, ty, a, b)
            }
            TieResult::Value(rest) => {
                let decided = self.compare(strict, ty, a, b);
                let equal = self.compare(Comparison::Eq, ty, a, b);
                let rest = self.binary(ir::Binary::And, Scalar::Bool, equal, rest);
                self.binary(ir::Binary::Or, Scalar::Bool, decided, rest)
            }
        }
    }

    /// Lowers an order of `bool`, in which `false` is less than `true`.
    pub(super) fn bool_order(&mut self, comparison: Comparison, a: MaybeConst, b: MaybeConst) -> MaybeConst {
        let bits = known_compare(comparison, Scalar::Bool, a, b);
        let (op, negated, other) = match comparison {
            Comparison::Gt => (ir::Binary::And, b, a),
            Comparison::Ge => (ir::Binary::Or, b, a),
            Comparison::Le => (ir::Binary::Or, a, b),
            _ => (ir::Binary::And, a, b),
        };
        let negated = self.negate_test(negated);
        let result = self.binary(op, Scalar::Bool, negated, other);
        MaybeConst { bits, ..result }
    }
}
