//! Arrays in shared memory: constructors, and methods that change the element type.

use super::checker::{FunctionChecker, Literal};
use super::types::{Ty, TypeIndex};
use crate::Scalar;
use crate::hir::{self, CallTrait, Expr, ExprKind, Intrinsic, TypeId};
use crate::language::{self, MAX_SHARED_RANK, SharedParameter};
use crate::syntax::{self, Path, SpanPair, TypeOrConst};
use proc_macro2::Ident;

impl FunctionChecker<'_> {
    /// Checks `Shared::<f32, 2>::new(shape)` and the other constructors.
    pub(super) fn shared(
        &mut self,
        path: &Path,
        arguments: &[syntax::Expr],
        expected: Option<TypeIndex>,
        mark: SpanPair,
    ) -> (ExprKind, TypeIndex) {
        let [first, last] = path.segments.as_slice() else {
            unreachable!("the prelude matched the path by its two segments")
        };
        let name = last.name.to_string();
        let Some(made) = language::SHARED_CONSTRUCTORS.iter().find(|s| s.name == name) else {
            let known: Vec<_> = language::SHARED_CONSTRUCTORS.iter().map(|s| format!("`{}`", s.written)).collect();
            let message = match known.split_last() {
                Some((last, others)) => format!("{} and {last}", others.join(", ")),
                None => String::new(),
            };
            self.report(path.mark, format!("`Shared` has no function `{name}`; its functions are {message}"));
            return (ExprKind::Tuple(Vec::new()), self.wrong());
        };
        let found = match (first.arguments.is_empty(), expected.map(|id| self.table.get(id).clone())) {
            (true, Some(Ty::Shared { element, rank })) => Some((element, rank)),
            _ => self.element_and_rank(&first.arguments, path.mark, "Shared"),
        };
        let Some((element, rank)) = found else { return (ExprKind::Tuple(Vec::new()), self.wrong()) };
        if !(1..=MAX_SHARED_RANK).contains(&rank) {
            self.report(path.mark, format!("the rank of a `Shared` must be 1 to {}", MAX_SHARED_RANK));
            return (ExprKind::Tuple(Vec::new()), self.wrong());
        }
        if !self.count(&format!("Shared::{name}"), made.parameters.len(), arguments.len(), mark) {
            return (ExprKind::Tuple(Vec::new()), self.wrong());
        }
        let usize = self.table.scalar(Scalar::Usize);
        let mut all = Vec::new();
        for (parameter, e) in made.parameters.iter().zip(arguments) {
            all.push(match parameter {
                SharedParameter::Shape => {
                    let size = self.table.add(Ty::Size(hir::Size::Known(rank)));
                    let shape = self.table.add(Ty::Array(usize, size));
                    self.expr_of_type(e, shape)
                }
                SharedParameter::Pitch => self.expr_of_type(e, usize),
                SharedParameter::ReusedArray => {
                    let under = self.expr(e, None);
                    let ty = TypeIndex(under.ty.0);
                    if !matches!(self.table.get(ty), Ty::Shared { .. } | Ty::Wrong) {
                        let given = self.named(ty);
                        self.report(e.mark, format!("`{name}` takes a `Shared`, found `{given}`"));
                    }
                    under
                }
            });
        }
        let ty = self.table.add(Ty::Shared { element, rank });
        (ExprKind::Intrinsic { intrinsic: made.intrinsic, arguments: all }, ty)
    }

    /// Checks `s.cast::<U>()` and `s.copy_async_map(view, f)`.
    pub(super) fn shared_method(
        &mut self,
        receiver: Expr,
        name: &Ident,
        generics: &[TypeOrConst],
        arguments: &[syntax::Expr],
        mark: SpanPair,
    ) -> (ExprKind, TypeIndex) {
        let wrong = |checker: &mut Self| (ExprKind::Tuple(Vec::new()), checker.wrong());
        let Ty::Shared { element, rank } = *self.table.get(TypeIndex(receiver.ty.0)) else { return wrong(self) };
        if name == "cast" {
            if !self.count("cast", 0, arguments.len(), mark) {
                return wrong(self);
            }
            let [TypeOrConst::Type(to)] = generics else {
                self.report(mark, "`cast` needs the target element type: `s.cast::<u32>()`");
                return wrong(self);
            };
            let to = self.ty(to);
            let ty = self.table.add(Ty::Shared { element: to, rank });
            return (ExprKind::Intrinsic { intrinsic: Intrinsic::SharedCast, arguments: vec![receiver] }, ty);
        }
        if !self.count("copy_async_map", 2, arguments.len(), mark) {
            return wrong(self);
        }
        let view = self.expr(&arguments[0], None);
        let from = match *self.table.get(TypeIndex(view.ty.0)) {
            Ty::View { element, rank: of, .. } if of == rank => element,
            Ty::Wrong => return wrong(self),
            _ => {
                let given = self.named(TypeIndex(view.ty.0));
                self.report(
                    arguments[0].mark,
                    format!("expected a `View` of rank {rank} to copy from, found `{given}`"),
                );
                return wrong(self);
            }
        };
        let function = self.table.add(Ty::Function { parameters: vec![from], returns: element, calls: CallTrait::Fn });
        let map = self.expr_of_type(&arguments[1], function);
        let arguments = vec![receiver, view, map];
        (ExprKind::Intrinsic { intrinsic: Intrinsic::CopyAsyncMap, arguments }, self.table.add(Ty::Pending))
    }

    /// Checks `pipeline::wait::<N>()`
    pub(super) fn pipeline_wait(
        &mut self,
        path: &Path,
        arguments: &[syntax::Expr],
        mark: SpanPair,
    ) -> (ExprKind, TypeIndex) {
        let unit = self.table.add(Ty::Unit);
        let size = match path.segments.last().map_or(&[][..], |s| &s.arguments) {
            [size] => self.size(size),
            _ => {
                self.report(
                    path.mark,
                    "`pipeline::wait` needs the number of groups that may still be in flight: `pipeline::wait::<1>()`",
                );
                return (ExprKind::Tuple(Vec::new()), unit);
            }
        };
        let kind = match *self.table.get(size) {
            Ty::Size(hir::Size::Known(n)) => self.literal(Literal::Integer(n.into(), mark)),
            Ty::Size(hir::Size::Generic(i)) => ExprKind::Generic(i),
            _ => return (ExprKind::Tuple(Vec::new()), unit),
        };
        self.confirm(path, "pipeline::wait", &[size], false);
        self.count("pipeline::wait", 0, arguments.len(), mark);
        let usize = self.table.scalar(Scalar::Usize);
        let groups = Expr { kind, ty: TypeId(usize.0), span: mark.span };
        (ExprKind::Intrinsic { intrinsic: Intrinsic::PipelineWait, arguments: vec![groups] }, unit)
    }
}
