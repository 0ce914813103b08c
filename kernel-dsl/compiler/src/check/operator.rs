//! Operators that device types implement.
//!
//! The impl of an operator is an impl without a trait, whose function has a name that no method can
//! have ([`hir::operator_function`]). An operator becomes a call of that function.

use super::checker::FunctionChecker;
use super::types::{Ty, TypeIndex, UnknownKind};
use crate::hir::{self, Expr, ExprKind, FunctionId, TypeId};
use crate::ir;
use crate::language;
use crate::syntax::{self, SpanPair};

/// Returns the value of type `to` that a reference names.
pub(super) fn dereferenced(reference: Expr, to: TypeIndex) -> Expr {
    match reference.kind {
        ExprKind::Reference(place) => *place,
        _ => {
            let span = reference.span;
            Expr { kind: ExprKind::Dereference(Box::new(reference)), ty: TypeId(to.0), span }
        }
    }
}

/// The meaning of an operator.
pub(super) enum Overloaded {
    /// A call of the function of an impl.
    Call(ExprKind, TypeIndex),
    /// The built-in operator, with the right operand if it has been checked.
    BuiltIn(Option<Expr>),
}

impl FunctionChecker<'_> {
    /// Returns whether the type gets operators only from impls.
    pub(super) fn is_nominal(&self, ty: TypeIndex) -> bool {
        let ty = match *self.table.get(ty) {
            Ty::Reference { to, .. } => to,
            _ => ty,
        };
        matches!(self.table.get(ty), Ty::Struct(..) | Ty::Enum(..) | Ty::Tuple(_) | Ty::Array(..))
    }

    /// Returns the number that a reference names; other operands stay. The operators of Rust take
    /// numbers and references to numbers.
    pub(super) fn number_operand(&self, operand: Expr) -> Expr {
        match *self.table.get(TypeIndex(operand.ty.0)) {
            Ty::Reference { to, .. }
                if matches!(
                    self.table.get(to),
                    Ty::Scalar(_) | Ty::Unknown(UnknownKind::Integer | UnknownKind::Float)
                ) =>
            {
                dereferenced(operand, to)
            }
            _ => operand,
        }
    }

    /// Checks `-operand` or `!operand` of a type that has the operator only through an impl.
    pub(super) fn overloaded_unary(
        &mut self,
        of_trait: &'static str,
        operand: Expr,
        mark: SpanPair,
    ) -> (ExprKind, TypeIndex) {
        match self.operator_impls(of_trait, TypeIndex(operand.ty.0))[..] {
            [at, ..] => self.operator_call(at, of_trait, vec![operand]),
            [] => {
                self.no_impl(of_trait, TypeIndex(operand.ty.0), mark);
                (ExprKind::Tuple(Vec::new()), self.wrong())
            }
        }
    }

    /// Checks an operator whose left operand is `left`; `assigns` for `left += right`. Either
    /// operand may have a type that has the operator only through an impl.
    pub(super) fn overloaded(
        &mut self,
        operator: ir::Binary,
        assigns: bool,
        left: &Expr,
        right: &syntax::Expr,
        mark: SpanPair,
    ) -> Overloaded {
        let ty = TypeIndex(left.ty.0);
        let Some([plain, assigning]) = language::traits_of(operator) else { return Overloaded::BuiltIn(None) };
        let of_trait = if assigns { assigning } else { plain };
        let nominal = self.is_nominal(ty);
        // The type of a closure's parameter follows later, and shifts take any integer on the
        // right.
        let built_in = match self.table.get(ty) {
            Ty::Unknown(UnknownKind::Any) => true,
            _ => !nominal && (assigns || matches!(operator, ir::Binary::Shl | ir::Binary::Shr)),
        };
        if built_in {
            return Overloaded::BuiltIn(None);
        }
        let impls = self.operator_impls(of_trait, ty);
        if impls.is_empty() && !nominal {
            return Overloaded::BuiltIn(None);
        }
        let operand = match impls[..] {
            [at] if nominal => {
                let wanted = self.operand_of(at, of_trait, ty);
                self.expr_of_type(right, wanted)
            }
            _ => {
                let operand = self.expr(right, (!nominal).then_some(ty));
                if nominal { operand } else { self.number_operand(operand) }
            }
        };
        let of_right = TypeIndex(operand.ty.0);
        if !nominal && !self.is_nominal(of_right) {
            self.coerce(of_right, ty, right.mark);
            return Overloaded::BuiltIn(Some(operand));
        }
        let fitting = match impls[..] {
            [at] if nominal => Some(at),
            _ => impls.into_iter().find(|at| self.takes(*at, of_trait, ty, of_right)),
        };
        let Some(at) = fitting else {
            self.no_impl(of_trait, if nominal { ty } else { of_right }, mark);
            return Overloaded::Call(ExprKind::Tuple(Vec::new()), self.wrong());
        };
        let first = match assigns {
            false => left.clone(),
            true => {
                let reference = self.table.add(Ty::Reference { to: ty, mutable: true });
                let kind = ExprKind::Reference(Box::new(left.clone()));
                Expr { kind, ty: TypeId(reference.0), span: left.span }
            }
        };
        let wanted = self.operand_of(at, of_trait, ty);
        self.coerce(of_right, wanted, right.mark);
        let (kind, ty) = self.operator_call(at, of_trait, vec![first, operand]);
        Overloaded::Call(kind, ty)
    }

    /// Checks `base[index]` of a type that has indices only through an impl. Returns `None` for
    /// other types.
    pub(super) fn selected(
        &mut self,
        base: &Expr,
        index: &syntax::Expr,
        mark: SpanPair,
    ) -> Option<(ExprKind, TypeIndex)> {
        let ty = TypeIndex(base.ty.0);
        if !matches!(self.table.get(ty), Ty::Struct(..) | Ty::Enum(..)) {
            return None;
        }
        let impls = self.operator_impls("Index", ty);
        let index_mark = index.mark;
        let index = match impls[..] {
            [at] => {
                let wanted = self.operand_of(at, "Index", ty);
                self.expr_of_type(index, wanted)
            }
            _ => self.expr(index, None),
        };
        let of_index = TypeIndex(index.ty.0);
        let Some(at) = impls.into_iter().find(|at| self.takes(*at, "Index", ty, of_index)) else {
            let name = self.named(ty);
            let message =
                format!("`{name}` cannot be indexed: write `impl Index` for this index in its `#[device] mod`");
            self.report(mark, message);
            return Some((ExprKind::Tuple(Vec::new()), self.wrong()));
        };
        let wanted = self.operand_of(at, "Index", ty);
        self.coerce(of_index, wanted, index_mark);
        Some(self.selected_by(at, "Index", base.clone(), index))
    }

    /// Returns the element that the function of an impl of `Index` or `IndexMut` selects.
    fn selected_by(&mut self, at: usize, of_trait: &str, base: Expr, index: Expr) -> (ExprKind, TypeIndex) {
        let (to, span) = (TypeIndex(base.ty.0), base.span);
        let reference = self.table.add(Ty::Reference { to, mutable: of_trait == "IndexMut" });
        let base = Expr { kind: ExprKind::Reference(Box::new(base)), ty: TypeId(reference.0), span };
        let (call, returns) = self.operator_call(at, of_trait, vec![base, index]);
        let Ty::Reference { to, .. } = *self.table.get(returns) else {
            // rustc reports a function that returns something else.
            return (ExprKind::Tuple(Vec::new()), self.wrong());
        };
        let call = Expr { kind: call, ty: TypeId(returns.0), span };
        (ExprKind::Dereference(Box::new(call)), to)
    }

    /// Makes `place` writable if an `impl Index` selects it: the selection then uses `IndexMut`.
    /// Returns false for other places.
    pub(super) fn selected_mutably(&mut self, place: &mut Expr, mark: SpanPair) -> bool {
        let ExprKind::Dereference(call) = &place.kind else { return false };
        let ExprKind::Call { function, arguments, .. } = &call.kind else { return false };
        let (function, [Expr { kind: ExprKind::Reference(base), .. }, index]) = (*function, &arguments[..]) else {
            return false;
        };
        let (mut base, index) = ((**base).clone(), index.clone());
        let (ty, of_index) = (TypeIndex(base.ty.0), TypeIndex(index.ty.0));
        if !self.operator_impls("Index", ty).into_iter().any(|at| self.operator_of(at, "Index") == function) {
            return false;
        }
        self.assignable(&mut base, mark);
        let impls = self.operator_impls("IndexMut", ty);
        let Some(at) = impls.into_iter().find(|at| self.takes(*at, "IndexMut", ty, of_index)) else {
            let name = self.named(ty);
            let message =
                format!("cannot write to an element of `{name}`: write `impl IndexMut` in its `#[device] mod`");
            self.report(mark, message);
            return true;
        };
        place.kind = self.selected_by(at, "IndexMut", base, index).0;
        true
    }

    /// Returns the impls of an operator whose type may be `of`.
    pub(super) fn operator_impls(&self, of_trait: &str, of: TypeIndex) -> Vec<usize> {
        let name = hir::operator_function(of_trait);
        let impls = self.environment.items.impls.iter().enumerate();
        let named = impls.filter(|(_, each)| each.of_trait.is_none() && each.functions.iter().any(|(n, _)| *n == name));
        named.filter(|(_, each)| self.may_be(each, of)).map(|(at, _)| at).collect()
    }

    /// Returns the function of an impl of an operator.
    fn operator_of(&self, at: usize, of_trait: &str) -> FunctionId {
        let name = hir::operator_function(of_trait);
        let functions = &self.environment.items.impls[at].functions;
        let found = functions.iter().find(|(n, _)| *n == name);
        found.expect("the impl was selected by its function").1.function()
    }

    /// Returns whether an impl takes operands of these types. Nothing is inferred if it does not.
    pub(super) fn takes(&mut self, at: usize, of_trait: &str, left: TypeIndex, right: TypeIndex) -> bool {
        let before = self.table.clone();
        let wanted = self.operand_of(at, of_trait, left);
        let takes = self.table.clone().unify(wanted, right);
        if !takes {
            self.table = before;
        }
        takes
    }

    /// Returns the type of the right operand of an impl for the type `of`.
    pub(super) fn operand_of(&mut self, at: usize, of_trait: &str, of: TypeIndex) -> TypeIndex {
        let function = self.operator_of(at, of_trait);
        let environment = self.environment;
        let generics = self.of_impl(&environment.items.impls[at], of);
        let generics = generics.unwrap_or_default();
        let operand = self.parameters(function, &generics).get(1).copied().unwrap_or_else(|| self.wrong());
        match *self.table.get(operand) {
            // `eq` borrows its operands.
            Ty::Reference { to, .. } if of_trait == "PartialEq" => to,
            _ => operand,
        }
    }

    /// Returns the call of the function of an impl.
    pub(super) fn operator_call(&mut self, at: usize, of_trait: &str, arguments: Vec<Expr>) -> (ExprKind, TypeIndex) {
        let function = self.operator_of(at, of_trait);
        let environment = self.environment;
        let each = &environment.items.impls[at];
        let of_reference = matches!(each.types[each.for_type.0 as usize], hir::Type::Reference { .. });
        let of = match self.table.get(TypeIndex(arguments[0].ty.0)) {
            Ty::Reference { to, .. } if !of_reference => *to,
            _ => TypeIndex(arguments[0].ty.0),
        };
        let generics = self.of_impl(each, of).unwrap_or_default();
        self.call_of(function, &generics, arguments)
    }

    fn no_impl(&mut self, of_trait: &str, ty: TypeIndex, mark: SpanPair) {
        let name = self.named(ty);
        let way_out = match self.table.get(ty) {
            Ty::Struct(..) | Ty::Enum(..) => {
                format!(": write `impl {of_trait}` for these operands in its `#[device] mod`")
            }
            Ty::Reference { .. } => ": name its value with `*`".to_string(),
            _ => String::new(),
        };
        self.report(mark, format!("this operator does not apply to `{name}`{way_out}"));
    }
}
