//! Operations on whole arrays in registers.

use super::checker::FunctionChecker;
use super::types::{Ty, TypeIndex, UnknownKind};
use crate::Scalar;
use crate::hir::{Block, CallTrait, Expr, ExprKind, Intrinsic, Statement, TypeId};
use crate::language::ARRAY_METHODS;
use crate::syntax::{self, Path, SpanPair, TypeOrConst};
use proc_macro2::Ident;

/// The methods of arrays.
impl FunctionChecker<'_> {
    pub(super) fn array_method(
        &mut self,
        mut receiver: Expr,
        [element, size]: [TypeIndex; 2],
        name: &Ident,
        generics: &[TypeOrConst],
        arguments: &[syntax::Expr],
        mark: SpanPair,
    ) -> (ExprKind, TypeIndex) {
        if name == "len" || name == "map" {
            self.refuse_generics(name, generics, mark);
        }
        match name.to_string().as_str() {
            "len" if self.count("len", 0, arguments.len(), mark) => {
                let usize = self.table.scalar(Scalar::Usize);
                (intrinsic(Intrinsic::ArrayLen, vec![receiver]), usize)
            }
            "map" if self.count("map", 1, arguments.len(), mark) => {
                let (f, array) = self.filled(element, size, &arguments[0], mark);
                (intrinsic(Intrinsic::ArrayMap, vec![receiver, f]), array)
            }
            // The array must be in memory; lowering rejects others.
            "load" if self.count("load", 1, arguments.len(), mark) => {
                let at = self.indices(&arguments[0], 1);
                let loaded = self.part_of_array(element, generics);
                (intrinsic(Intrinsic::Load, vec![receiver, at]), loaded)
            }
            "store" if self.count("store", 2, arguments.len(), mark) => {
                self.assignable(&mut receiver, mark);
                let at = self.indices(&arguments[0], 1);
                let stored = self.part_of_array(element, generics);
                let values = self.expr_of_type(&arguments[1], stored);
                (intrinsic(Intrinsic::Store, vec![receiver, at, values]), self.table.add(Ty::Unit))
            }
            "swap" if self.count("swap", 2, arguments.len(), mark) => self.swap(receiver, element, arguments, mark),
            "len" | "map" | "load" | "store" | "swap" => (ExprKind::Tuple(Vec::new()), self.wrong()),
            _ => {
                arguments.iter().for_each(|e| {
                    self.expr(e, None);
                });
                let array = self.named(TypeIndex(receiver.ty.0));
                let message = match name.to_string().as_str() {
                    "iter" | "iter_mut" | "into_iter" => format!(
                        "an iterator over an array can only be that of a `for`, perhaps with `.copied()` or `.enumerate()`: write a loop, `for x in array.{name}() {{ … }}`"
                    ),
                    _ => format!(
                        "`{array}` has no method `{name}` in a kernel; its methods are {}",
                        ARRAY_METHODS.join(", ")
                    ),
                };
                self.report(SpanPair { first: name.span(), last: name.span(), ..mark }, message);
                (ExprKind::Tuple(Vec::new()), self.wrong())
            }
        }
    }

    /// Checks `array.swap(a, b)`.
    fn swap(
        &mut self,
        mut array: Expr,
        element: TypeIndex,
        arguments: &[syntax::Expr],
        mark: SpanPair,
    ) -> (ExprKind, TypeIndex) {
        self.assignable(&mut array, mark);
        let span = mark.span;
        let at = |kind, ty: TypeIndex| Expr { kind, ty: TypeId(ty.0), span };
        let (unit, usize) = (self.table.add(Ty::Unit), self.table.scalar(Scalar::Usize));
        let to = TypeIndex(array.ty.0);
        let reference = self.table.add(Ty::Reference { to, mutable: true });
        // The place and the indices are evaluated once.
        let mut statements = Vec::new();
        let array = self.keep(&mut statements, at(ExprKind::Reference(Box::new(array)), reference));
        let indices = [&arguments[0], &arguments[1]].map(|index| self.expr_of_type(index, usize));
        let [a, b] = indices.map(|index| {
            let index = self.keep(&mut statements, index);
            let base = Box::new(at(ExprKind::Dereference(Box::new(array.clone())), to));
            at(ExprKind::Index { base, index: Box::new(index) }, element)
        });
        let kept = self.keep(&mut statements, a.clone());
        let mut assign = |place: Expr, value: Expr| {
            let (place, value) = (Box::new(place), Box::new(value));
            statements.push(Statement::Expr(at(ExprKind::Assign { place, operator: None, value }, unit)));
        };
        assign(a, b.clone());
        assign(b, kept);
        (ExprKind::Block(Block { statements, value: None }), unit)
    }

    /// Returns the type of a part of an array. A generic argument is its length.
    fn part_of_array(&mut self, element: TypeIndex, generics: &[TypeOrConst]) -> TypeIndex {
        let elements = match generics {
            [n] => self.size(n),
            _ => self.table.add(Ty::Unknown(UnknownKind::Size)),
        };
        self.table.add(Ty::Array(element, elements))
    }

    /// Checks `std::array::from_fn(|i| …)`
    pub(super) fn array_from(
        &mut self,
        path: &Path,
        arguments: &[syntax::Expr],
        expected: Option<TypeIndex>,
        mark: SpanPair,
    ) -> (ExprKind, TypeIndex) {
        if !self.count("from_fn", 1, arguments.len(), mark) {
            return (ExprKind::Tuple(Vec::new()), self.wrong());
        }
        let size = match path.segments.last().map_or(&[][..], |s| &s.arguments) {
            [_, size, ..] => self.size(size),
            _ => self.table.add(Ty::Unknown(UnknownKind::Size)),
        };
        let usize = self.table.scalar(Scalar::Usize);
        let (f, array) = self.filled(usize, size, &arguments[0], mark);
        // The length may be known only from the context.
        if let Some(Ty::Array(_, wanted)) = expected.map(|id| self.table.get(id).clone()) {
            self.table.unify(size, wanted);
        }
        (intrinsic(Intrinsic::ArrayFrom, vec![f]), array)
    }

    /// Checks the function that computes each element from a value of type `from`. Returns the
    /// function and the type of the array.
    fn filled(&mut self, from: TypeIndex, size: TypeIndex, f: &syntax::Expr, mark: SpanPair) -> (Expr, TypeIndex) {
        let returns = self.table.unknown();
        let function = self.table.add(Ty::Function { parameters: vec![from], returns, calls: CallTrait::FnMut });
        let f = self.expr_of_type(f, function);
        self.no_closure(returns, "an array", mark);
        (f, self.table.add(Ty::Array(returns, size)))
    }
}

fn intrinsic(intrinsic: Intrinsic, arguments: Vec<Expr>) -> ExprKind {
    ExprKind::Intrinsic { intrinsic, arguments }
}
