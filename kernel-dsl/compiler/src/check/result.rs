//! `Result`, its methods in terms of `match`, and `?`.
//!
//! A `Result` is an enum with data that every function can name. Functions of different crates
//! share the enum, because its hash is a constant.

use super::checker::{FunctionChecker, Literal};
use super::environment::Environment;
use super::types::{Ty, TypeIndex, UnknownKind};
use crate::Scalar;
use crate::hir::{
    self, Arm, Block, CallTrait, DerivedComparisons, EnumId, Expr, ExprKind, Intrinsic, Pattern, Root, StructId, TypeId,
};
use crate::language::{RESULT_METHODS, RESULT_NAME};
use crate::syntax::{self, SpanPair};
use proc_macro2::Ident;

/// The hash that identifies the enum: the letters of its name.
const HASH: u64 = 0x0052_6573_756c_7400;
/// The indices of the variants, which are also their discriminants.
const OK: usize = 0;
const ERR: usize = 1;

impl Environment {
    /// Adds the enum, unless a library has it already, and its name.
    pub(super) fn add_result(&mut self) {
        let id = self.result().unwrap_or_else(|| {
            let parameter = |name: &str| hir::Generic { name: name.into(), kind: hir::GenericKind::Type(Vec::new()) };
            let field = |name: &str, ty| hir::Field { name: name.into(), ty: TypeId(ty), private_to: 0 };
            // In Rust `Ok` is less than `Err`.
            let derived = DerivedComparisons { equality: true, order: true };
            self.items.structs.push(hir::Struct {
                name: format!("data of {RESULT_NAME}"),
                hash: HASH,
                generics: vec![parameter("T"), parameter("E")],
                types: vec![hir::Type::Scalar(Scalar::I32), hir::Type::Parameter(0), hir::Type::Parameter(1)],
                fields: vec![field("tag", 0), field("Ok.0", 1), field("Err.0", 2)],
                repr_c: false,
                private_to: 0,
                copy: true,
                derived,
            });
            let data = Some(StructId(self.items.structs.len() as u32 - 1));
            let variant = |name: &str, value| hir::Variant { name: name.into(), value };
            let variants = vec![variant("Ok", OK as i32), variant("Err", ERR as i32)];
            self.items.enums.push(hir::Enum {
                name: RESULT_NAME.into(),
                hash: HASH,
                variants,
                private_to: 0,
                copy: true,
                derived,
                data,
            });
            EnumId(self.items.enums.len() as u32 - 1)
        });
        for path in [RESULT_NAME, "std::result::Result", "core::result::Result"] {
            // A device item called `Result` has the name already.
            if self.find(path).is_none() {
                self.name(path.into(), Root::Enum(id));
            }
        }
    }

    /// Returns the enum, if the items contain it.
    pub(super) fn result(&self) -> Option<EnumId> {
        let at = self.items.enums.iter().position(|item| item.hash == HASH && item.name == RESULT_NAME)?;
        Some(EnumId(at as u32))
    }
}

impl FunctionChecker<'_> {
    /// Returns the types of value and error, if a type is a `Result`.
    pub(super) fn result_parts(&self, ty: TypeIndex) -> Option<[TypeIndex; 2]> {
        match self.table.get(ty) {
            Ty::Enum(id, arguments) if Some(*id) == self.environment.result() => arguments.as_slice().try_into().ok(),
            _ => None,
        }
    }

    fn result_type(&mut self, value: TypeIndex, error: TypeIndex) -> TypeIndex {
        match self.environment.result() {
            Some(id) => self.table.add(Ty::Enum(id, vec![value, error])),
            None => self.wrong(),
        }
    }

    /// Returns `Ok(value)` or `Err(value)` of type `ty`.
    fn result_value(&mut self, ty: TypeIndex, variant: usize, value: Expr, mark: SpanPair) -> Expr {
        let fields = vec![(0, self.result_tag(variant, mark)), (variant as u32 + 1, value)];
        Expr { kind: ExprKind::Struct { fields, rest: None }, ty: TypeId(ty.0), span: mark.span }
    }

    /// Returns the pattern `Ok(inner)` or `Err(inner)`.
    fn result_pattern(&mut self, variant: usize, inner: Pattern, mark: SpanPair) -> Pattern {
        let mut parts = vec![Pattern::Value(Box::new(self.result_tag(variant, mark)))];
        parts.resize(variant + 1, Pattern::Ignore);
        parts.push(inner);
        Pattern::Parts(parts)
    }

    fn result_tag(&mut self, variant: usize, mark: SpanPair) -> Expr {
        let kind = self.literal(Literal::Integer(variant as u128, mark));
        Expr { kind, ty: TypeId(self.table.scalar(Scalar::I32).0), span: mark.span }
    }

    pub(super) fn result_method(
        &mut self,
        receiver: Expr,
        [value, error]: [TypeIndex; 2],
        name: &Ident,
        arguments: &[syntax::Expr],
        mark: SpanPair,
    ) -> (ExprKind, TypeIndex) {
        let bool = self.table.scalar(Scalar::Bool);
        let name = name.to_string();
        let wanted = match name.as_str() {
            "is_ok" | "is_err" | "ok" | "err" => 0,
            "unwrap_or" | "map" | "map_err" | "and_then" | "is_ok_and" => 1,
            "map_or" => 2,
            "unwrap" | "expect" | "unwrap_err" | "expect_err" => {
                return self.not_unwrapped("Result", "Ok", &name, mark);
            }
            _ => return self.lacks_method("Result", RESULT_METHODS, &name, mark),
        };
        if !self.count(&name, wanted, arguments.len(), mark) {
            return (ExprKind::Tuple(Vec::new()), self.wrong());
        }
        let span = mark.span;
        let at = |kind, ty: TypeIndex| Expr { kind, ty: TypeId(ty.0), span };
        // The receiver and the arguments are evaluated first, in this order, and once.
        let mut statements = Vec::new();
        let result = self.keep(&mut statements, receiver);
        let default = match name.as_str() {
            "unwrap_or" => Some(self.expr_of_type(&arguments[0], value)),
            "map_or" => Some(self.expr(&arguments[0], None)),
            _ => None,
        };
        let default = default.map(|d| self.keep(&mut statements, d));
        let (found, failure) = (self.declare_temporary("found", value), self.declare_temporary("error", error));
        let (found_value, failure_value) = (at(ExprKind::Local(found), value), at(ExprKind::Local(failure), error));
        let is = |c: &mut Self, truth: bool| {
            let literal = c.literal(Literal::Integer(u128::from(truth), mark));
            at(literal, bool)
        };
        let intrinsic = |intrinsic, arguments| ExprKind::Intrinsic { intrinsic, arguments };
        // The function argument, called with the value or the error.
        let mut called = |c: &mut Self, argument: Expr, returns: TypeIndex| {
            let parameters = vec![TypeIndex(argument.ty.0)];
            let ty = c.table.add(Ty::Function { parameters, returns, calls: CallTrait::FnOnce });
            let f = c.expr_of_type(&arguments[arguments.len() - 1], ty);
            let f = c.keep(&mut statements, f);
            at(ExprKind::CallValue { callee: Box::new(f), arguments: vec![argument] }, returns)
        };
        let (of_ok, of_err, ty) = match (name.as_str(), default) {
            ("is_ok", _) => (is(self, true), is(self, false), bool),
            ("is_err", _) => (is(self, false), is(self, true), bool),
            ("is_ok_and", _) => (called(self, found_value, bool), is(self, false), bool),
            ("ok", _) => {
                let ty = self.table.add(Ty::Option(value));
                let some = at(intrinsic(Intrinsic::Some, vec![found_value]), ty);
                (some, at(intrinsic(Intrinsic::None, Vec::new()), ty), ty)
            }
            ("err", _) => {
                let ty = self.table.add(Ty::Option(error));
                let some = at(intrinsic(Intrinsic::Some, vec![failure_value]), ty);
                (at(intrinsic(Intrinsic::None, Vec::new()), ty), some, ty)
            }
            ("unwrap_or", Some(default)) => (found_value, default, value),
            ("map_or", Some(default)) => {
                let ty = TypeIndex(default.ty.0);
                (called(self, found_value, ty), default, ty)
            }
            ("map", _) => {
                let mapped = self.table.unknown();
                let mapped_value = called(self, found_value, mapped);
                self.no_closure(mapped, "a `Result`", mark);
                let ty = self.result_type(mapped, error);
                let ok = self.result_value(ty, OK, mapped_value, mark);
                (ok, self.result_value(ty, ERR, failure_value, mark), ty)
            }
            ("map_err", _) => {
                let mapped = self.table.unknown();
                let mapped_error = called(self, failure_value, mapped);
                self.no_closure(mapped, "a `Result`", mark);
                let ty = self.result_type(value, mapped);
                let ok = self.result_value(ty, OK, found_value, mark);
                (ok, self.result_value(ty, ERR, mapped_error, mark), ty)
            }
            _ => {
                let next = self.table.unknown();
                let ty = self.result_type(next, error);
                (called(self, found_value, ty), self.result_value(ty, ERR, failure_value, mark), ty)
            }
        };
        let arms = vec![
            Arm { pattern: self.result_pattern(OK, Pattern::Local(found), mark), guard: None, body: of_ok },
            Arm { pattern: self.result_pattern(ERR, Pattern::Local(failure), mark), guard: None, body: of_err },
        ];
        let value = at(ExprKind::Match { value: Box::new(result), arms }, ty);
        (ExprKind::Block(Block { statements, value: Some(Box::new(value)) }), ty)
    }

    /// Returns `Ok(found)` and `Err(error)` for `option.ok_or(error)`, with their type.
    pub(super) fn ok_or(&mut self, found: Expr, error: Expr, mark: SpanPair) -> (Expr, Expr, TypeIndex) {
        let ty = self.result_type(TypeIndex(found.ty.0), TypeIndex(error.ty.0));
        (self.result_value(ty, OK, found, mark), self.result_value(ty, ERR, error, mark), ty)
    }

    /// Checks `value?`: a `match` that returns `None` or the error.
    pub(super) fn question(&mut self, value: &syntax::Expr, mark: SpanPair) -> (ExprKind, TypeIndex) {
        let fails = matches!(&value.kind, syntax::ExprKind::Call(path, _) if path.name().ends_with("Result::Err"));
        let value = self.expr(value, None);
        let of = TypeIndex(value.ty.0);
        // `Err(e)?` has no value, so nothing may say the type of one.
        if fails
            && let Some([inner, _]) = self.result_parts(of)
            && matches!(self.table.get(inner), Ty::Unknown(UnknownKind::Any))
            && let Ty::Enum(..) = self.table.get(self.returns)
            && self.table.unify(of, self.returns)
        {
            return (ExprKind::Return(Some(Box::new(value))), self.table.add(Ty::Never));
        }
        let (span, returns) = (mark.span, self.returns);
        let at = |kind, ty: TypeIndex| Expr { kind, ty: TypeId(ty.0), span };
        let never = self.table.add(Ty::Never);
        let (found, arms) = if let Ty::Option(inner) = *self.table.get(of) {
            let unknown = self.table.unknown();
            let wanted = self.table.add(Ty::Option(unknown));
            if !self.table.unify(returns, wanted) {
                return self.no_return(of, mark);
            }
            let found = self.declare_temporary("found", inner);
            let none = at(ExprKind::Intrinsic { intrinsic: Intrinsic::None, arguments: Vec::new() }, returns);
            let leave = at(ExprKind::Return(Some(Box::new(none))), never);
            let some = Pattern::Some(Box::new(Pattern::Local(found)));
            let arms = vec![
                Arm { pattern: some, guard: None, body: at(ExprKind::Local(found), inner) },
                Arm { pattern: Pattern::None, guard: None, body: leave },
            ];
            (inner, arms)
        } else if let Some([inner, error]) = self.result_parts(of) {
            let (unknown, returned) = (self.table.unknown(), self.table.unknown());
            let wanted = self.result_type(unknown, returned);
            if !self.table.unify(returns, wanted) {
                return self.no_return(of, mark);
            }
            if !self.table.unify(returned, error) {
                let (from, to) = (self.named(error), self.named(returned));
                self.report(
                    mark,
                    format!("`?` does not convert errors in kernels: write `.map_err(|e| …)?` to make a `{to}` of the `{from}`"),
                );
                return (ExprKind::Tuple(Vec::new()), self.wrong());
            }
            let (found, failure) = (self.declare_temporary("found", inner), self.declare_temporary("error", error));
            let failure_value = at(ExprKind::Local(failure), error);
            let failed = self.result_value(returns, ERR, failure_value, mark);
            let leave = at(ExprKind::Return(Some(Box::new(failed))), never);
            let arms = vec![
                Arm {
                    pattern: self.result_pattern(OK, Pattern::Local(found), mark),
                    guard: None,
                    body: at(ExprKind::Local(found), inner),
                },
                Arm { pattern: self.result_pattern(ERR, Pattern::Local(failure), mark), guard: None, body: leave },
            ];
            (inner, arms)
        } else {
            if *self.table.get(of) != Ty::Wrong {
                let of = self.named(of);
                self.report(mark, format!("`?` needs an `Option` or a `Result`, not `{of}`"));
            }
            return (ExprKind::Tuple(Vec::new()), self.wrong());
        };
        (ExprKind::Match { value: Box::new(value), arms }, found)
    }

    /// Reports a `?` in a function that does not return such a value.
    fn no_return(&mut self, of: TypeIndex, mark: SpanPair) -> (ExprKind, TypeIndex) {
        let (what, instead) = match self.table.get(of) {
            Ty::Option(_) => ("an `Option`", "use `match` or `let … else`, or `ok_or(error)?`"),
            _ => ("a `Result`", "use `match` or `let … else`, or `ok()?`"),
        };
        let returns = self.named(self.returns);
        self.report(
            mark,
            format!("`?` of {what} needs a function that returns one, and this one returns `{returns}`: {instead}"),
        );
        (ExprKind::Tuple(Vec::new()), self.wrong())
    }
}
