//! Comparisons: `==`, `!=`, `<`, `<=`, `>` and `>=`.
//!
//! Numbers and `bool` are compared as values; tuples, arrays and options part by part, in order. A
//! reference is compared as the value that it names.
//! Structs and enums are compared in the same way if they derive `PartialEq` or `PartialOrd`. The
//! `eq` of an `impl PartialEq` in a `#[device] mod` becomes a call. Monomorphization finds the
//! impls that types within other types need.

use super::checker::{FunctionChecker, OperatorClass, OperatorOperands};
use super::operator::dereferenced;
use super::types::{Ty, TypeIndex, UnknownKind};
use crate::hir::{DerivedComparisons, Expr, ExprKind, StructId, TypeId};
use crate::ir::{self, Comparison};
use crate::syntax::{self, SpanPair};

/// The name of the trait whose `eq` a device type may implement.
const EQUALITY: &str = "PartialEq";

impl FunctionChecker<'_> {
    /// Checks `a comparison b`.
    pub(super) fn comparison(
        &mut self,
        comparison: Comparison,
        a: &syntax::Expr,
        b: &syntax::Expr,
        mark: SpanPair,
    ) -> ExprKind {
        let mut left = self.expr(a, None);
        let mut ty = TypeIndex(left.ty.0);
        let mut checked = None;
        if let Ty::Reference { .. } = self.table.get(ty) {
            let mut right = self.expr(b, None);
            // `&a == &b` compares the values. Both sides have equally many `&`.
            while let (Ty::Reference { to, .. }, Ty::Reference { to: other, .. }) =
                (self.table.get(ty).clone(), self.table.get(TypeIndex(right.ty.0)).clone())
            {
                (left, right, ty) = (dereferenced(left, to), dereferenced(right, other), to);
            }
            checked = Some(right);
        }
        let unknown = matches!(self.table.get(ty), Ty::Unknown(UnknownKind::Any));
        let impls = match comparison.is_order() || unknown {
            true => Vec::new(),
            false => self.operator_impls(EQUALITY, ty),
        };
        let right = match (checked, &impls[..]) {
            (Some(right), _) => right,
            (None, []) => self.expr(b, Some(ty)),
            (None, [at]) if self.is_nominal(ty) && !self.derives(ty, comparison) => {
                let wanted = self.operand_of(*at, EQUALITY, ty);
                self.expr(b, Some(wanted))
            }
            (None, _) => self.expr(b, None),
        };
        let of_right = TypeIndex(right.ty.0);
        if let Some(at) = impls.into_iter().find(|at| self.takes(*at, EQUALITY, ty, of_right)) {
            let equal = self.equality_call(at, left, right, mark);
            return match comparison {
                Comparison::Ne => ExprKind::Unary(ir::Unary::Not, Box::new(equal)),
                _ => equal.kind,
            };
        }
        self.coerce(of_right, ty, b.mark);
        self.comparable(ty, comparison, mark);
        ExprKind::Compare(comparison, Box::new(left), Box::new(right))
    }

    /// Returns the call of the `eq` of an impl.
    fn equality_call(&mut self, at: usize, left: Expr, right: Expr, mark: SpanPair) -> Expr {
        let arguments = [left, right].map(|e| {
            let (to, span) = (TypeIndex(e.ty.0), e.span);
            let ty = self.table.add(Ty::Reference { to, mutable: false });
            Expr { kind: ExprKind::Reference(Box::new(e)), ty: TypeId(ty.0), span }
        });
        let (kind, ty) = self.operator_call(at, EQUALITY, arguments.into());
        Expr { kind, ty: TypeId(ty.0), span: mark.span }
    }

    /// Reports an error if values of the type cannot be compared.
    pub(super) fn comparable(&mut self, ty: TypeIndex, comparison: Comparison, mark: SpanPair) {
        if let Some(way_out) = self.incomparable(ty, comparison, mark) {
            let name = self.named(ty);
            self.report(mark, format!("this operator does not apply to `{name}`: {way_out}"));
        }
    }

    /// Returns what to do about a type whose values cannot be compared; `None` for other types.
    fn incomparable(&mut self, ty: TypeIndex, comparison: Comparison, mark: SpanPair) -> Option<String> {
        match self.table.get(ty).clone() {
            Ty::Unknown(UnknownKind::Any) => {
                self.operands.push(OperatorOperands { ty, of: OperatorClass::Comparison(comparison), mark });
                None
            }
            Ty::Scalar(_) | Ty::Unit | Ty::Never | Ty::Wrong => None,
            Ty::Unknown(UnknownKind::Integer | UnknownKind::Float) => None,
            // rustc finds a missing bound.
            Ty::Parameter(_) | Ty::Projection { .. } => None,
            Ty::Tuple(parts) => parts.into_iter().find_map(|part| self.incomparable(part, comparison, mark)),
            Ty::Array(element, _) => self.incomparable(element, comparison, mark),
            Ty::Option(inner) | Ty::Reference { to: inner, .. } => self.incomparable(inner, comparison, mark),
            Ty::Struct(id, arguments) if self.derives(ty, comparison) => {
                self.incomparable_field(id, &arguments, comparison, mark)
            }
            Ty::Enum(id, arguments) if self.derives(ty, comparison) => {
                let data = self.environment.items.enums[id.0 as usize].data?;
                self.incomparable_field(data, &arguments, comparison, mark)
            }
            Ty::Struct(..) | Ty::Enum(..) => self.without_derive(ty, comparison),
            _ => Some(format!("values of type `{}` have no comparisons on the device", self.named(ty))),
        }
    }

    fn incomparable_field(
        &mut self,
        id: StructId,
        arguments: &[TypeIndex],
        comparison: Comparison,
        mark: SpanPair,
    ) -> Option<String> {
        let fields = self.field_types(id, arguments);
        fields.into_iter().find_map(|(_, field)| self.incomparable(field, comparison, mark))
    }

    /// Returns what to do about a struct or enum that does not derive a comparison; `None` if an
    /// impl of the device supplies it.
    fn without_derive(&mut self, ty: TypeIndex, comparison: Comparison) -> Option<String> {
        let name = self.named(ty);
        if comparison.is_order() {
            return Some(format!("write `#[derive(PartialOrd)]` on `{name}`, below `#[device]`"));
        }
        let impls = self.operator_impls(EQUALITY, ty);
        let supplied = impls.into_iter().any(|at| self.takes(at, EQUALITY, ty, ty));
        (!supplied).then(|| {
            format!(
                "write `#[derive(PartialEq)]` on `{name}`, below `#[device]`, or `impl PartialEq` in its `#[device] mod`"
            )
        })
    }

    /// Returns whether a struct or enum derives a comparison.
    fn derives(&self, ty: TypeIndex, comparison: Comparison) -> bool {
        let items = &self.environment.items;
        let derived = match self.table.get(ty) {
            Ty::Struct(id, _) => items.struct_of(*id).derived,
            Ty::Enum(id, _) => items.enums[id.0 as usize].derived,
            _ => DerivedComparisons::default(),
        };
        derived.has(comparison)
    }
}
