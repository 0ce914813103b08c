//! Patterns: binding, matching, and `match` as a chain of branches.

use super::lowerer::Lowerer;
use super::lowerer::maybe_const::MaybeConst;
use super::lowerer::value::{LoweredPlace, Storage, Val};
use crate::Scalar;
use crate::hir::{self, Arm, Expr, ExprKind, Pattern, TypeId};
use crate::ir::{self, Binary, Comparison, Op, Type};
use crate::source::Span;

impl<'h> Lowerer<'h> {
    /// Binds the names of `pattern` to the parts of a matching value.
    pub(super) fn bind(&mut self, pattern: &'h Pattern, ty: TypeId, value: Val) {
        match pattern {
            Pattern::Ignore | Pattern::Value(_) | Pattern::Range { .. } | Pattern::None => {}
            Pattern::Any(patterns) => self.bind_alternatives(patterns, ty, &value),
            Pattern::Local(id) => self.bind_local(*id, value),
            Pattern::Named(id, inner) => {
                self.bind_local(*id, value.clone());
                self.bind(inner, ty, value);
            }
            Pattern::Parts(patterns) => {
                for (pattern, (ty, part)) in patterns.iter().zip(self.parts_of(value, ty)) {
                    self.bind(pattern, ty, part);
                }
            }
            Pattern::Some(inner) => {
                if let (Val::Option(_, value), hir::Type::Option(ty)) = (value, self.ty(ty)) {
                    self.bind(inner, *ty, *value);
                }
            }
            Pattern::Borrowed(id, inner) => {
                if self.is_mutable_reference(*id) || !self.storable(ty) {
                    let span = self.function().locals[id.0 as usize].span;
                    self.error_with_help(
                        span,
                        "a pattern of a reference cannot bind a place in memory, or a handle",
                        "match the value that the reference names, `match *x`, and assign the whole value",
                    );
                    return;
                }
                let place = self.temporary_place(ty, value.clone());
                self.bind_local(*id, Val::Reference(place));
                self.bind(inner, ty, value);
            }
            Pattern::Dereference(inner) => {
                let (Val::Reference(place), hir::Type::Reference { to, .. }) = (value, self.ty(ty)) else { return };
                match &place {
                    LoweredPlace::Registers(storage) if self.binds_mutably(inner) => {
                        self.bind_places(inner, *to, storage);
                    }
                    place => {
                        let value = self.read(place, *to);
                        self.bind(inner, *to, value);
                    }
                }
            }
        }
    }

    /// Binds the names of alternatives to the parts of a value that one of them matches: those of
    /// the first alternative that matches.
    fn bind_alternatives(&mut self, patterns: &'h [Pattern], ty: TypeId, value: &Val) {
        let mut variables = Vec::new();
        patterns.iter().take(1).for_each(|pattern| pattern.variables(&mut |id| variables.push(id)));
        for id in variables {
            let local = &self.function().locals[id.0 as usize];
            let (of, span) = (local.ty, local.span);
            // A name for a reference becomes a reference to a copy of the value.
            let copied = match *self.ty(of) {
                hir::Type::Reference { to, mutable } => {
                    if mutable || !self.storable(to) {
                        self.error_with_help(
                            span,
                            "alternatives of a pattern cannot bind a place that is written, or a handle",
                            "write one arm for each alternative",
                        );
                        continue;
                    }
                    Some(to)
                }
                _ => None,
            };
            let chosen = self.chosen(patterns, ty, value, id, (copied.unwrap_or(of), span));
            let chosen = match copied {
                Some(to) => Val::Reference(self.temporary_place(to, chosen)),
                None => chosen,
            };
            self.bind_local(id, chosen);
        }
    }

    /// Lowers the value of variable `id` in the first of `patterns` that matches. `of` is the type
    /// of the value, and the declaration of the variable.
    fn chosen(
        &mut self,
        patterns: &'h [Pattern],
        ty: TypeId,
        value: &Val,
        id: hir::LocalId,
        of: (TypeId, Span),
    ) -> Val {
        let Some((first, rest)) = patterns.split_first() else { return Val::Unit };
        let test = if rest.is_empty() { None } else { self.test(first, ty, value) };
        match test {
            None => self.variable_in(first, ty, value, id, of).unwrap_or(Val::Unit),
            Some(test) => self.choose_of(
                of.0,
                of.1,
                test,
                |l| l.variable_in(first, ty, value, id, of).unwrap_or(Val::Unit),
                |l| l.chosen(rest, ty, value, id, of),
            ),
        }
    }

    /// Lowers the value of variable `id` where `pattern` matches; `None` if the pattern does not
    /// bind the variable. The value of a name for a reference is that of its target.
    fn variable_in(
        &mut self,
        pattern: &'h Pattern,
        ty: TypeId,
        value: &Val,
        id: hir::LocalId,
        of: (TypeId, Span),
    ) -> Option<Val> {
        match pattern {
            Pattern::Ignore | Pattern::Value(_) | Pattern::Range { .. } | Pattern::None => None,
            Pattern::Local(own) | Pattern::Named(own, _) if *own == id => Some(match value {
                Val::Reference(place) => self.read(place, of.0),
                value => value.clone(),
            }),
            Pattern::Borrowed(own, _) if *own == id => Some(value.clone()),
            Pattern::Local(_) => None,
            Pattern::Named(_, inner) | Pattern::Borrowed(_, inner) => self.variable_in(inner, ty, value, id, of),
            Pattern::Parts(patterns) => {
                let parts = self.parts_of(value.clone(), ty);
                patterns.iter().zip(parts).find_map(|(p, (ty, part))| self.variable_in(p, ty, &part, id, of))
            }
            Pattern::Any(patterns) => {
                patterns.iter().any(|p| p.binds_variable(id)).then(|| self.chosen(patterns, ty, value, id, of))
            }
            Pattern::Some(inner) => match (value, self.ty(ty)) {
                (Val::Option(_, value), hir::Type::Option(ty)) => self.variable_in(inner, *ty, value, id, of),
                _ => None,
            },
            Pattern::Dereference(inner) => {
                let (Val::Reference(place), hir::Type::Reference { to, .. }) = (value, self.ty(ty)) else {
                    return None;
                };
                let value = self.read(place, *to);
                self.variable_in(inner, *to, &value, id, of)
            }
        }
    }

    /// Binds the names of `pattern` to the places of the parts of a matching variable.
    fn bind_places(&mut self, pattern: &'h Pattern, ty: TypeId, storage: &Storage) {
        match (pattern, self.ty(ty), storage) {
            (Pattern::Borrowed(id, inner), ..) => {
                self.bind_local(*id, Val::Reference(LoweredPlace::Registers(storage.clone())));
                self.bind_places(inner, ty, storage);
            }
            (Pattern::Parts(patterns), hir::Type::Tuple(types), Storage::Tuple(parts)) => {
                for (pattern, (ty, part)) in patterns.iter().zip(types.iter().zip(parts)) {
                    self.bind_places(pattern, *ty, part);
                }
            }
            (Pattern::Parts(patterns), hir::Type::Array(element, _), _) => {
                for (i, pattern) in patterns.iter().enumerate() {
                    let at = self.index(i as u32);
                    let part = self.element(storage, at);
                    self.bind_places(pattern, *element, &part);
                }
            }
            (Pattern::Some(inner), hir::Type::Option(ty), Storage::Tuple(parts)) if parts.len() == 2 => {
                self.bind_places(inner, *ty, &parts[1]);
            }
            _ => {
                let value = self.read_storage(storage, ty);
                self.bind(pattern, ty, value);
            }
        }
    }

    fn is_mutable_reference(&self, id: hir::LocalId) -> bool {
        matches!(self.ty(self.function().locals[id.0 as usize].ty), hir::Type::Reference { mutable: true, .. })
    }

    /// Returns whether a pattern binds a name to a place that is written.
    fn binds_mutably(&self, pattern: &Pattern) -> bool {
        match pattern {
            Pattern::Borrowed(id, inner) => self.is_mutable_reference(*id) || self.binds_mutably(inner),
            Pattern::Parts(parts) => parts.iter().any(|part| self.binds_mutably(part)),
            Pattern::Some(inner) => self.binds_mutably(inner),
            _ => false,
        }
    }

    /// Returns the parts of a tuple or array, with their types.
    fn parts_of(&mut self, value: Val, ty: TypeId) -> Vec<(TypeId, Val)> {
        match (value, self.ty(ty)) {
            (Val::Tuple(parts), hir::Type::Tuple(types)) => types.iter().copied().zip(parts).collect(),
            (Val::Array(storage), hir::Type::Array(element, size)) => {
                let part = |lowerer: &mut Self, i| {
                    let i = lowerer.index(i);
                    let place = lowerer.element(&storage, i);
                    (*element, lowerer.peek_storage(&place, *element))
                };
                (0..self.size(*size)).map(|i| part(self, i)).collect()
            }
            (Val::Shared(handle), hir::Type::Array(element, size)) => {
                let part = |lowerer: &mut Self, i| {
                    let i = lowerer.index(i);
                    (*element, lowerer.shared_at(&handle, i))
                };
                (0..self.size(*size)).map(|i| part(self, i)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Lowers the test that `value` matches; `None` if every value does.
    fn test(&mut self, pattern: &'h Pattern, ty: TypeId, value: &Val) -> Option<MaybeConst> {
        match pattern {
            Pattern::Ignore | Pattern::Local(_) => None,
            Pattern::Named(_, inner) | Pattern::Borrowed(_, inner) => self.test(inner, ty, value),
            Pattern::Value(e) => {
                let (scalar, value) = (self.scalar_type(ty), scalar(value)?);
                let wanted = self.pattern_constant(e);
                Some(match (scalar, wanted.bits) {
                    (Scalar::Bool, Some(1)) => value,
                    (Scalar::Bool, Some(_)) => self.negate_test(value),
                    _ => self.compare(Comparison::Eq, scalar, value, wanted),
                })
            }
            Pattern::Range { low, high, closed } => {
                let (scalar, value) = (self.scalar_type(ty), scalar(value)?);
                let mut test = None;
                if let Some(low) = low {
                    let low = self.pattern_constant(low);
                    // No unsigned value is less than 0.
                    if low.bits != Some(0) || scalar.is_signed() || scalar.is_float() {
                        test = Some(self.compare(Comparison::Ge, scalar, value, low));
                    }
                }
                if let Some(high) = high {
                    let high = self.pattern_constant(high);
                    let below = if *closed { Comparison::Le } else { Comparison::Lt };
                    let below = self.compare(below, scalar, value, high);
                    test = self.join_tests(Binary::And, test, Some(below));
                }
                test
            }
            Pattern::Any(patterns) => {
                let mut any = None;
                for pattern in patterns {
                    let test = self.test(pattern, ty, value)?;
                    any = self.join_tests(Binary::Or, any, Some(test));
                }
                any
            }
            Pattern::Parts(patterns) => {
                let mut all = None;
                for (pattern, (ty, part)) in patterns.iter().zip(self.parts_of(value.clone(), ty)) {
                    let test = self.test(pattern, ty, &part);
                    all = self.join_tests(Binary::And, all, test);
                }
                all
            }
            Pattern::None => match value {
                Val::Option(some, _) => Some(self.negate_test(*some)),
                _ => None,
            },
            Pattern::Some(inner) => {
                let (Val::Option(some, value), hir::Type::Option(ty)) = (value, self.ty(ty)) else { return None };
                if self.storable(*ty) || is_irrefutable(inner) {
                    let test = self.test(inner, *ty, value);
                    return self.join_tests(Binary::And, Some(*some), test);
                }
                // The target of a reference is read only if the reference exists.
                Some(self.where_holds(*some, |l| l.test(inner, *ty, value)))
            }
            Pattern::Dereference(inner) => {
                let (Val::Reference(place), hir::Type::Reference { to, .. }) = (value, self.ty(ty)) else {
                    return None;
                };
                if is_irrefutable(inner) {
                    return None;
                }
                let value = self.read(place, *to);
                self.test(inner, *to, &value)
            }
        }
    }

    fn join_tests(&mut self, op: Binary, a: Option<MaybeConst>, b: Option<MaybeConst>) -> Option<MaybeConst> {
        match (a, b) {
            (Some(a), Some(b)) => Some(self.binary(op, Scalar::Bool, a, b)),
            (a, b) => a.or(b),
        }
    }

    pub(super) fn negate_test(&mut self, a: MaybeConst) -> MaybeConst {
        let value = self.builder.scalar(Op::Unary(ir::Unary::Not, a.value), Scalar::Bool);
        MaybeConst::new(value, a.bits.map(|b| b ^ 1))
    }

    /// Lowers a number in a pattern. The sign is part of the number, so that `MIN` does not
    /// overflow.
    fn pattern_constant(&mut self, e: &'h Expr) -> MaybeConst {
        let ty = self.scalar_type(e.ty);
        if let ExprKind::Unary(ir::Unary::Neg, operand) = &e.kind
            && let ExprKind::Literal(bits) = operand.kind
            && !ty.is_float()
        {
            let bits = bits.wrapping_neg() & ty.mask();
            return MaybeConst::new(self.builder.constant(ty, bits), Some(bits));
        }
        self.scalar(e)
    }

    /// Lowers `condition && test`; the test runs only if the condition holds.
    fn where_holds(&mut self, condition: MaybeConst, test: impl FnOnce(&mut Self) -> Option<MaybeConst>) -> MaybeConst {
        let types = [Type::Scalar(Scalar::Bool)];
        let (then, _) = self.arm(Some(&types), |l| {
            let yes = MaybeConst::unknown(l.builder.constant(Scalar::Bool, 1));
            Val::Scalar(test(l).unwrap_or(yes))
        });
        let (otherwise, _) =
            self.arm(Some(&types), |l| Val::Scalar(MaybeConst::unknown(l.builder.constant(Scalar::Bool, 0))));
        let results = self.builder.emit(Op::If { condition: condition.value, then, otherwise }, types);
        MaybeConst::unknown(results[0])
    }

    pub(super) fn cases(&mut self, e: &'h Expr, value: &'h Expr, arms: &'h [Arm]) -> Val {
        let of = self.expr(value);
        self.arms(e, value.ty, &of, arms)
    }

    /// Lowers the first of `arms` that matches. The last arm matches without a test, because rustc
    /// has checked that the arms are exhaustive.
    fn arms(&mut self, e: &'h Expr, ty: TypeId, value: &Val, arms: &'h [Arm]) -> Val {
        let Some((arm, rest)) = arms.split_first() else { return Val::Unit };
        self.at(e.span);
        let test = if rest.is_empty() { None } else { self.test(&arm.pattern, ty, value) };
        let condition = match (test, arm.guard.as_ref().filter(|_| !rest.is_empty())) {
            (None, None) => {
                self.bind(&arm.pattern, ty, value.clone());
                return self.expr(&arm.body);
            }
            (Some(test), None) => test,
            (None, Some(guard)) => {
                self.bind(&arm.pattern, ty, value.clone());
                self.scalar(guard)
            }
            (Some(test), Some(guard)) => self.where_holds(test, |l| {
                l.bind(&arm.pattern, ty, value.clone());
                Some(l.scalar(guard))
            }),
        };
        self.at(e.span);
        self.choose(
            e,
            condition,
            |l| {
                l.bind(&arm.pattern, ty, value.clone());
                l.expr(&arm.body)
            },
            |l| l.arms(e, ty, value, rest),
        )
    }

    /// Lowers `let pattern = value else { otherwise };`
    pub(super) fn let_else(&mut self, span: Span, pattern: &'h Pattern, value: &'h Expr, otherwise: &'h hir::Block) {
        let of = self.expr(value);
        self.at(span);
        if let Some(test) = self.test(pattern, value.ty, &of) {
            self.builder.enter([]);
            let then = self.builder.leave();
            self.builder.enter([]);
            self.block(otherwise);
            if !self.builder.ended() {
                // No jump ended the block, so its end is unreachable, as after an endless loop.
                self.builder.effect(Op::Return);
            }
            let otherwise = self.builder.leave();
            self.at(span);
            self.builder.effect(Op::If { condition: test.value, then, otherwise });
        }
        self.bind(pattern, value.ty, of);
    }
}

/// Returns whether a pattern matches all values.
fn is_irrefutable(pattern: &Pattern) -> bool {
    match pattern {
        Pattern::Ignore | Pattern::Local(_) => true,
        Pattern::Named(_, inner) | Pattern::Borrowed(_, inner) | Pattern::Dereference(inner) => is_irrefutable(inner),
        Pattern::Parts(parts) => parts.iter().all(is_irrefutable),
        _ => false,
    }
}

fn scalar(value: &Val) -> Option<MaybeConst> {
    match value {
        Val::Scalar(k) => Some(*k),
        _ => None,
    }
}
