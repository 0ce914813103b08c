//! Groups of lanes: `warp::group::<W>()` and its methods, and the types that lanes can exchange.

use super::checker::FunctionChecker;
use super::types::{Ty, TypeIndex, UnknownKind};
use crate::hir::{Collective as C, Expr, ExprKind, Intrinsic};
use crate::language::{self, Receiver, SignatureType};
use crate::syntax::{self, Path, SpanPair, TypeOrConst};
use proc_macro2::Ident;

impl FunctionChecker<'_> {
    /// Checks `warp::group::<W>()`
    pub(super) fn group(&mut self, path: &Path, arguments: &[syntax::Expr], mark: SpanPair) -> (ExprKind, TypeIndex) {
        let size = match path.segments.last().map_or(&[][..], |s| &s.arguments) {
            [] => self.table.add(Ty::Unknown(UnknownKind::Size)),
            [size] => self.size(size),
            _ => {
                self.report(path.mark, "expected one group size: `warp::group::<8>()`");
                self.wrong()
            }
        };
        self.confirm(path, "warp::group", &[size], false);
        self.count("warp::group", 0, arguments.len(), mark);
        let intrinsic = Intrinsic::GroupNew;
        (ExprKind::Intrinsic { intrinsic, arguments: Vec::new() }, self.table.add(Ty::Group(size)))
    }

    /// Returns the type `warp::Group<W>` of a parameter.
    pub(super) fn group_type(&mut self, path: &Path) -> TypeIndex {
        let arguments: &[TypeOrConst] = path.segments.last().map_or(&[], |s| &s.arguments);
        let [size] = arguments else {
            self.report(path.mark, "expected the group size: `warp::Group<8>`");
            return self.wrong();
        };
        let size = self.size(size);
        self.table.add(Ty::Group(size))
    }

    /// Reports an error if `operation` cannot exchange values of type `ty`.
    pub(super) fn check_exchangeable(&mut self, operation: Intrinsic, ty: TypeIndex, mark: SpanPair) {
        use Intrinsic::{OfBlock, OfGroup, OfWarp};
        let (OfWarp(collective) | OfGroup(collective) | OfBlock(collective)) = operation else { return };
        let number = matches!(collective, C::Number(_) | C::Match);
        let fits = match self.table.get(ty) {
            Ty::Scalar(s) if number => matches!(s.bits(), 32 | 64),
            Ty::Unknown(UnknownKind::Integer | UnknownKind::Float) | Ty::Wrong => true,
            _ if number => false,
            _ => self.is_exchangeable(ty),
        };
        if !fits {
            let name = self.named(ty);
            let message = match collective {
                C::Number(_) => format!(
                    "this operation supports numbers of 32 or 64 bits, not `{name}`: use `reduce`, which takes values of any type and the function that combines two"
                ),
                C::Match => format!("this operation supports numbers of 32 or 64 bits, not `{name}`"),
                _ => {
                    format!(
                        "lanes can exchange numbers, `bool`, and tuples, arrays, options and structs of them, not `{name}`"
                    )
                }
            };
            self.report(mark, message);
        }
    }

    fn is_exchangeable(&self, ty: TypeIndex) -> bool {
        match self.table.get(ty) {
            Ty::Scalar(_) | Ty::Unknown(_) | Ty::Wrong => true,
            // rustc checks the types of the parts.
            Ty::Struct(..) | Ty::Enum(..) | Ty::Parameter(_) | Ty::Projection { .. } => true,
            Ty::Tuple(parts) => parts.iter().all(|p| self.is_exchangeable(*p)),
            Ty::Array(element, _) | Ty::Option(element) => self.is_exchangeable(*element),
            _ => false,
        }
    }

    pub(super) fn group_method(
        &mut self,
        receiver: Expr,
        name: &Ident,
        generics: &[TypeOrConst],
        arguments: &[syntax::Expr],
        mark: SpanPair,
    ) -> (ExprKind, TypeIndex) {
        let Some(method) = language::METHODS.iter().find(|m| m.on == Receiver::Group && name == m.name) else {
            let message = format!("`{}` has no method `{name}` in a kernel", self.named(TypeIndex(receiver.ty.0)));
            self.report(SpanPair { first: name.span(), last: name.span(), ..mark }, message);
            return (ExprKind::Tuple(Vec::new()), self.wrong());
        };
        let same = self.table.unknown();
        let uses_same = method.parameters.contains(&SignatureType::This);
        match generics {
            [] => {}
            [TypeOrConst::Type(ty)] if uses_same => {
                let ty = self.ty(ty);
                self.table.unify(same, ty);
            }
            _ => self.report(mark, format!("`{name}` does not take these generic arguments")),
        }
        if !self.count(method.name, method.parameters.len(), arguments.len(), mark) {
            return (ExprKind::Tuple(Vec::new()), self.wrong());
        }
        let mut all = vec![receiver];
        for (part, e) in method.parameters.iter().zip(arguments) {
            let wanted = self.part(*part, same, same);
            all.push(self.expr_of_type(e, wanted));
        }
        if uses_same {
            self.check_exchangeable(method.intrinsic, same, mark);
        }
        let returns = self.part(method.returns, same, same);
        (ExprKind::Intrinsic { intrinsic: method.intrinsic, arguments: all }, returns)
    }
}
