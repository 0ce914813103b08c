//! Groups of lanes: `warp::group::<W>()` and its methods.

use super::prelude::{self, On, Part};
use super::{
    Checker,
    types::{Id, Kind, Ty},
};
use crate::hir::{Expr, ExprKind, Intrinsic};
use crate::syntax::{self, Argument, Mark, Path};
use proc_macro2::Ident;
use quote::quote;

impl Checker<'_> {
    /// `warp::group::<W>()`
    pub(super) fn group(&mut self, path: &Path, arguments: &[syntax::Expr], mark: Mark) -> (ExprKind, Id) {
        let size = match path.segments.last().map_or(&[][..], |s| &s.arguments) {
            [] => self.table.add(Ty::Unknown(Kind::Size)),
            [size] => self.size(size),
            _ => {
                self.mistake(path.mark, "a group has one size: `warp::group::<8>()`");
                self.wrong()
            }
        };
        let written = path.segments.iter().map(|s| s.name.clone());
        self.called.push((quote!(#(#written)::*), quote!(warp::group), Some(size)));
        self.count("warp::group", 0, arguments.len(), mark);
        let intrinsic = Intrinsic::GroupNew;
        (ExprKind::Intrinsic { intrinsic, arguments: Vec::new() }, self.table.add(Ty::Group(size)))
    }

    /// `warp::Group<W>` as the type of a parameter.
    pub(super) fn group_type(&mut self, path: &Path) -> Id {
        let arguments: &[Argument] = path.segments.last().map_or(&[], |s| &s.arguments);
        let [size] = arguments else {
            self.mistake(path.mark, "a group names its size: `warp::Group<8>`");
            return self.wrong();
        };
        let size = self.size(size);
        self.table.add(Ty::Group(size))
    }

    pub(super) fn group_method(
        &mut self,
        receiver: Expr,
        name: &Ident,
        generics: &[Argument],
        arguments: &[syntax::Expr],
        mark: Mark,
    ) -> (ExprKind, Id) {
        let Some(method) = prelude::METHODS.iter().find(|m| m.on == On::Group && name == m.name) else {
            let message = format!("`{}` has no method `{name}` in a kernel", self.named(Id(receiver.ty.0)));
            self.mistake(Mark { first: name.span(), last: name.span(), ..mark }, message);
            return (ExprKind::Tuple(Vec::new()), self.wrong());
        };
        let same = self.table.unknown();
        let uses_same = method.parameters.contains(&Part::Same);
        match generics {
            [] => {}
            [Argument::Type(ty)] if uses_same => {
                let ty = self.ty(ty);
                self.table.unify(same, ty);
            }
            _ => self.mistake(mark, format!("`{name}` takes no such generic arguments")),
        }
        if !self.count(method.name, method.parameters.len(), arguments.len(), mark) {
            return (ExprKind::Tuple(Vec::new()), self.wrong());
        }
        let mut all = vec![receiver];
        for (part, e) in method.parameters.iter().zip(arguments) {
            let wanted = self.part(*part, same, same);
            all.push(self.wanted(e, wanted));
        }
        if uses_same {
            self.traded(same, mark);
        }
        let returns = self.part(method.returns, same, same);
        (ExprKind::Intrinsic { intrinsic: method.intrinsic, arguments: all }, returns)
    }
}
