//! Closures, and functions passed as closures.
//!
//! A closure is not a value on the device: its code is inlined at each call. As in Rust, the type
//! of a closure identifies the closure. Code that would choose a closure at run time is rejected.

use super::checker::FunctionChecker;
use super::nominal::ids;
use super::types::{Ty, TypeIndex};
use crate::Scalar;
use crate::hir::{Expr, ExprKind, LocalId, Pattern, Root, TypeId};
use crate::language;
use crate::syntax::{self, Path, SpanPair};
use proc_macro2::Ident;

impl FunctionChecker<'_> {
    /// Returns the variable in scope with this name.
    pub(super) fn variable(&self, name: &Ident) -> Option<LocalId> {
        self.scope.iter().rev().find(|(n, _)| name == n).map(|(_, id)| *id)
    }

    /// Checks `|a, b: f32| body`; `expected` is the type of the parameter that it is passed to.
    pub(super) fn closure(
        &mut self,
        parameters: &[syntax::ClosureParameter],
        returns: Option<&syntax::Type>,
        body: &syntax::Expr,
        expected: Option<TypeIndex>,
    ) -> (ExprKind, TypeIndex) {
        let hints = match expected.map(|id| self.table.get(id).clone()) {
            Some(Ty::Function { parameters: hints, .. }) if hints.len() == parameters.len() => hints,
            _ => Vec::new(),
        };
        let depth = self.scope.len();
        let (mut types, mut patterns) = (Vec::new(), Vec::new());
        for (i, p) in parameters.iter().enumerate() {
            let ty = match &p.ty {
                Some(ty) => self.ty(ty),
                None => self.table.unknown(),
            };
            if let Some(hint) = hints.get(i) {
                self.coerce(*hint, ty, p.mark);
            }
            patterns.push(self.bind(&p.pattern, ty, false, p.mark));
            types.push(ty);
        }
        let returns = match returns {
            Some(ty) => self.ty(ty),
            None => self.table.unknown(),
        };
        // `return` leaves the closure, and `break` cannot leave it.
        let (outer, loops) = (std::mem::replace(&mut self.returns, returns), std::mem::take(&mut self.loops));
        let body = self.expr_of_type(body, returns);
        (self.returns, self.loops) = (outer, loops);
        self.scope.truncate(depth);
        self.closures += 1;
        let ty = self.table.add(Ty::Closure { number: self.closures, parameters: types, returns });
        (ExprKind::Closure { parameters: patterns, body: Box::new(body) }, ty)
    }

    /// Checks the path of a device function used as a value.
    pub(super) fn function_value(&mut self, path: &Path) -> Option<(ExprKind, TypeIndex)> {
        let Root::Function(function) = self.environment.find(&path.written())? else { return None };
        let environment = self.environment;
        let callee = environment.function(function);
        self.visible(callee.private_to, || format!("`{}`", callee.name), path.mark);
        let generics = self.generic_arguments(path, callee);
        let ty = self.function_type(function, &generics);
        let generics = ids(&generics);
        Some((ExprKind::Function { function, generics }, ty))
    }

    /// Checks the path of a method of numbers used as a value, `f32::max`: the closure that calls
    /// the method.
    pub(super) fn number_function(&mut self, path: &Path) -> Option<(ExprKind, TypeIndex)> {
        let [ty, name] = path.segments.as_slice() else { return None };
        let scalar = Scalar::from_name(&ty.name.to_string())?;
        let method = language::METHODS.iter().find(|m| name.name == m.name && m.on.scalar(scalar))?;
        let same = self.table.scalar(scalar);
        let mut parameters = vec![same];
        parameters.extend(method.parameters.iter().map(|p| self.part(*p, same, same)));
        let returns = self.part(method.returns, same, same);
        let at = |kind, ty: TypeIndex| Expr { kind, ty: TypeId(ty.0), span: path.mark.span };
        let names: Vec<_> = parameters.iter().map(|ty| self.declare_temporary("number", *ty)).collect();
        let arguments = names.iter().zip(&parameters).map(|(name, ty)| at(ExprKind::Local(*name), *ty)).collect();
        let body = at(ExprKind::Intrinsic { intrinsic: method.intrinsic, arguments }, returns);
        self.closures += 1;
        let ty = self.table.add(Ty::Closure { number: self.closures, parameters, returns });
        let parameters = names.into_iter().map(Pattern::Local).collect();
        Some((ExprKind::Closure { parameters, body: Box::new(body) }, ty))
    }

    /// Checks `f(arguments)` for a variable `f`.
    pub(super) fn value_call(
        &mut self,
        variable: LocalId,
        path: &Path,
        arguments: &[syntax::Expr],
        mark: SpanPair,
    ) -> (ExprKind, TypeIndex) {
        let ty = self.locals[variable.0 as usize].ty;
        let (parameters, returns) = match self.table.get(ty).clone() {
            Ty::Closure { parameters, returns, .. } | Ty::Function { parameters, returns, .. } => (parameters, returns),
            known => {
                arguments.iter().for_each(|e| {
                    self.expr(e, None);
                });
                if known != Ty::Wrong {
                    let (name, ty) = (path.name(), self.named(ty));
                    self.report(path.mark, format!("cannot call `{name}`: it is a `{ty}`"));
                }
                return (ExprKind::Tuple(Vec::new()), self.wrong());
            }
        };
        if !self.count(&path.name(), parameters.len(), arguments.len(), mark) {
            return (ExprKind::Tuple(Vec::new()), self.wrong());
        }
        let arguments = arguments.iter().zip(parameters).map(|(e, ty)| self.expr_of_type(e, ty)).collect();
        let callee = Box::new(Expr { kind: ExprKind::Local(variable), ty: TypeId(ty.0), span: path.mark.span });
        (ExprKind::CallValue { callee, arguments }, returns)
    }

    /// Reports an error if a value of type `ty` is or contains a closure, which `holder` cannot
    /// hold.
    pub(super) fn no_closure(&mut self, ty: TypeIndex, holder: &str, mark: SpanPair) {
        if self.is_closure(ty) {
            self.report(
                mark,
                format!("{holder} cannot hold a closure or function: a closure is not a value on the device, its code is inlined at each call"),
            );
        }
    }

    /// Returns whether `a` and `b` are closures or functions with the same number of parameters.
    pub(super) fn callable_alike(&self, a: TypeIndex, b: TypeIndex) -> bool {
        let count = |id| match self.table.get(id) {
            Ty::Closure { parameters, .. } => Some(parameters.len()),
            _ => None,
        };
        count(a).is_some_and(|n| count(b) == Some(n))
    }

    pub(super) fn is_closure(&self, ty: TypeIndex) -> bool {
        match self.table.get(ty) {
            Ty::Closure { .. } | Ty::Function { .. } => true,
            Ty::Tuple(parts) => parts.iter().any(|p| self.is_closure(*p)),
            Ty::Array(element, _) | Ty::Option(element) => self.is_closure(*element),
            Ty::Reference { to, .. } => self.is_closure(*to),
            _ => false,
        }
    }
}
