//! `Option`, and its methods in terms of `match`.

use super::checker::{FunctionChecker, Literal};
use super::types::{Ty, TypeIndex};
use crate::Scalar;
use crate::hir::{self, Arm, Block, CallTrait, Expr, ExprKind, Intrinsic, LocalId, Pattern, Statement, TypeId};
use crate::ir;
use crate::language::OPTION_METHODS;
use crate::syntax::{self, SpanPair};
use proc_macro2::Ident;

/// The methods of options.
impl FunctionChecker<'_> {
    /// Checks `Some(x)`
    pub(super) fn some(
        &mut self,
        arguments: &[syntax::Expr],
        expected: Option<TypeIndex>,
        mark: SpanPair,
    ) -> (ExprKind, TypeIndex) {
        if !self.count("Some", 1, arguments.len(), mark) {
            return (ExprKind::Tuple(Vec::new()), self.wrong());
        }
        let hint = match expected.map(|id| self.table.get(id).clone()) {
            Some(Ty::Option(inner)) => Some(inner),
            _ => None,
        };
        let value = self.expr(&arguments[0], hint);
        let inner = TypeIndex(value.ty.0);
        self.no_closure(inner, "`Some`", mark);
        let ty = self.table.add(Ty::Option(inner));
        (intrinsic(Intrinsic::Some, vec![value]), ty)
    }

    /// Checks `None`
    pub(super) fn none(&mut self) -> (ExprKind, TypeIndex) {
        let inner = self.table.unknown();
        (intrinsic(Intrinsic::None, Vec::new()), self.table.add(Ty::Option(inner)))
    }

    /// Reports a method that would stop the thread. `whole` is the variant that has a value.
    pub(super) fn not_unwrapped(&mut self, of: &str, whole: &str, name: &str, mark: SpanPair) -> (ExprKind, TypeIndex) {
        let message = format!(
            "`{of}::{name}` is not supported in kernels: write `unwrap_or(…)`, or `let {whole}(x) = … else {{ return }};`"
        );
        self.report(mark, message);
        (ExprKind::Tuple(Vec::new()), self.wrong())
    }

    /// Reports a method that a type of Rust's prelude lacks in kernels, with those that it has.
    pub(super) fn lacks_method(
        &mut self,
        of: &str,
        methods: &[&str],
        name: &str,
        mark: SpanPair,
    ) -> (ExprKind, TypeIndex) {
        let message = format!("`{of}` has no method `{name}` in a kernel; its methods are {}", methods.join(", "));
        self.report(mark, message);
        (ExprKind::Tuple(Vec::new()), self.wrong())
    }

    pub(super) fn option_method(
        &mut self,
        receiver: Expr,
        inner: TypeIndex,
        name: &Ident,
        arguments: &[syntax::Expr],
        mark: SpanPair,
    ) -> (ExprKind, TypeIndex) {
        let bool = self.table.scalar(Scalar::Bool);
        let name = name.to_string();
        let wanted = match name.as_str() {
            "is_some" | "is_none" | "copied" => 0,
            "unwrap_or" | "map" | "and_then" | "is_some_and" | "ok_or" => 1,
            "map_or" => 2,
            "unwrap" | "expect" => return self.not_unwrapped("Option", "Some", &name, mark),
            _ => return self.lacks_method("Option", OPTION_METHODS, &name, mark),
        };
        if !self.count(&name, wanted, arguments.len(), mark) {
            return (ExprKind::Tuple(Vec::new()), self.wrong());
        }
        let span = mark.span;
        let at = |kind, ty: TypeIndex| Expr { kind, ty: TypeId(ty.0), span };
        match name.as_str() {
            "is_some" => return (intrinsic(Intrinsic::IsSome, vec![receiver]), bool),
            "is_none" => {
                let some = at(intrinsic(Intrinsic::IsSome, vec![receiver]), bool);
                return (ExprKind::Unary(ir::Unary::Not, Box::new(some)), bool);
            }
            "copied" => {
                let Ty::Reference { to, .. } = *self.table.get(inner) else {
                    let inner = self.named(inner);
                    self.report(
                        mark,
                        format!("`copied` needs an `Option` of a reference, and `{inner}` is not a reference"),
                    );
                    return (ExprKind::Tuple(Vec::new()), self.wrong());
                };
                return (intrinsic(Intrinsic::Copied, vec![receiver]), self.table.add(Ty::Option(to)));
            }
            _ => {}
        }
        // The receiver and the arguments are evaluated first, in this order, and once.
        let mut statements = Vec::new();
        let option = self.keep(&mut statements, receiver);
        let default = match name.as_str() {
            "unwrap_or" => Some(self.expr_of_type(&arguments[0], inner)),
            "map_or" | "ok_or" => Some(self.expr(&arguments[0], None)),
            _ => None,
        };
        let default = default.map(|d| self.keep(&mut statements, d));
        let found = self.declare_temporary("found", inner);
        let value = at(ExprKind::Local(found), inner);
        let mut default = default;
        let (some, result) = if name == "unwrap_or" {
            (value, inner)
        } else if name == "ok_or"
            && let Some(error) = default.take()
        {
            let (ok, failed, ty) = self.ok_or(value, error, mark);
            default = Some(failed);
            (ok, ty)
        } else {
            let returns = match (&default, name.as_str()) {
                (Some(d), _) => TypeIndex(d.ty.0),
                (None, "is_some_and") => bool,
                (None, "and_then") => {
                    let inner = self.table.unknown();
                    self.table.add(Ty::Option(inner))
                }
                (None, _) => self.table.unknown(),
            };
            let ty = self.table.add(Ty::Function { parameters: vec![inner], returns, calls: CallTrait::FnOnce });
            let f = self.expr_of_type(&arguments[arguments.len() - 1], ty);
            let f = self.keep(&mut statements, f);
            let called = at(ExprKind::CallValue { callee: Box::new(f), arguments: vec![value] }, returns);
            match name.as_str() {
                "map" => {
                    self.no_closure(returns, "an `Option`", mark);
                    let ty = self.table.add(Ty::Option(returns));
                    (at(intrinsic(Intrinsic::Some, vec![called]), ty), ty)
                }
                _ => (called, returns),
            }
        };
        let otherwise = match default {
            Some(default) => default,
            None if name == "is_some_and" => {
                let no = self.literal(Literal::Integer(0, mark));
                at(no, bool)
            }
            None => at(intrinsic(Intrinsic::None, Vec::new()), result),
        };
        let arms = vec![
            Arm { pattern: Pattern::Some(Box::new(Pattern::Local(found))), guard: None, body: some },
            Arm { pattern: Pattern::None, guard: None, body: otherwise },
        ];
        let value = at(ExprKind::Match { value: Box::new(option), arms }, result);
        (ExprKind::Block(Block { statements, value: Some(Box::new(value)) }), result)
    }

    /// Declares a variable that no name of the source refers to.
    pub(super) fn declare_temporary(&mut self, name: &str, ty: TypeIndex) -> LocalId {
        let mark = self.function_mark();
        let id = self.declare(name.into(), ty, mark);
        self.scope.pop();
        id
    }

    /// Binds the value of `e` to a new variable. Returns the variable.
    pub(super) fn keep(&mut self, statements: &mut Vec<Statement>, e: Expr) -> Expr {
        let (ty, span) = (e.ty, e.span);
        let id = self.declare_temporary("option", TypeIndex(ty.0));
        // A closure may change what it captures.
        self.locals[id.0 as usize].form.mutable = matches!(self.table.get(TypeIndex(ty.0)), Ty::Closure { .. });
        statements.push(Statement::Let { pattern: Pattern::Local(id), value: Some(e), span });
        Expr { kind: ExprKind::Local(id), ty, span }
    }

    fn function_mark(&self) -> SpanPair {
        self.function.body.mark
    }
}

fn intrinsic(intrinsic: Intrinsic, arguments: Vec<Expr>) -> hir::ExprKind {
    ExprKind::Intrinsic { intrinsic, arguments }
}
