//! Expressions.

use super::checker::{ArithmeticOperands, FunctionChecker, Literal, OperatorClass, OperatorOperands};
use super::operator::Overloaded;
use super::types::{Ty, TypeIndex, UnknownKind};
use crate::Scalar;
use crate::assertion::Assertion;
use crate::hir::{self, Builtin, Expr, ExprKind, Intrinsic, TypeId};
use crate::ir;
use crate::language;
use crate::ptx::inline;
use crate::syntax::{self, SpanPair, Unary};

impl FunctionChecker<'_> {
    /// Checks an expression that must have type `wanted`.
    pub(super) fn expr_of_type(&mut self, e: &syntax::Expr, wanted: TypeIndex) -> Expr {
        let expr = self.expr(e, Some(wanted));
        self.coerce(TypeIndex(expr.ty.0), wanted, e.mark);
        expr
    }

    /// Checks an expression; `expected` is the type that the context expects, as a hint.
    pub(super) fn expr(&mut self, e: &syntax::Expr, expected: Option<TypeIndex>) -> Expr {
        self.masks &= matches!(e.kind, syntax::ExprKind::Cast(..));
        let outer = std::mem::replace(&mut self.current, e.mark);
        let (kind, ty) = self.kind(e, expected);
        self.current = outer;
        Expr { kind, ty: TypeId(ty.0), span: e.mark.span }
    }

    fn kind(&mut self, e: &syntax::Expr, expected: Option<TypeIndex>) -> (ExprKind, TypeIndex) {
        use syntax::ExprKind as E;
        match &e.kind {
            E::Integer(n, suffix) => {
                let ty = match suffix {
                    Some(s) => self.table.scalar(*s),
                    None => self.table.add(Ty::Unknown(UnknownKind::Integer)),
                };
                (self.literal(Literal::Integer(*n, e.mark)), ty)
            }
            E::Float(x, suffix) => {
                let ty = match suffix {
                    Some(s) => self.table.scalar(*s),
                    None => self.table.add(Ty::Unknown(UnknownKind::Float)),
                };
                (self.literal(Literal::Float(*x)), ty)
            }
            E::Bool(b) => {
                let literal = self.literal(Literal::Integer(u128::from(*b), e.mark));
                (literal, self.table.scalar(Scalar::Bool))
            }
            E::Path(path) => self.path(path),
            E::Unary(operator, operand) => self.unary(*operator, operand, expected, e.mark),
            E::Binary(operator, a, b) => self.binary(*operator, a, b, e.mark),
            E::Assign { place, operator, value } => self.assign(place, *operator, value, e.mark),
            E::Destructure { into, value } => self.destructure(into, value, e.mark),
            E::Cast(value, ty) => self.cast(value, ty, e.mark),
            E::Call(path, arguments) => self.call(path, arguments, expected, e.mark),
            E::Method { receiver, name, generics, arguments } => {
                self.method(receiver, name, generics, arguments, e.mark)
            }
            E::Index(base, index) => self.index(base, index),
            E::Field(base, field) => self.field(base, field, e.mark),
            E::Struct { path, fields, rest } => self.struct_literal(path, fields, rest.as_deref(), expected),
            E::Inline { source, values } => self.inline(source, values),
            E::Log { message, values } => {
                let values = self.shown("`log!`", values);
                (ExprKind::Log { message: message.clone(), values }, self.table.add(Ty::Unit))
            }
            E::Assertion { assertion, condition, message, values } => {
                self.assertion(*assertion, condition.as_deref(), message, values)
            }
            E::Tuple(parts) if parts.is_empty() => (ExprKind::Tuple(Vec::new()), self.table.add(Ty::Unit)),
            E::Tuple(parts) => {
                let hints = match expected.map(|id| self.table.get(id).clone()) {
                    Some(Ty::Tuple(hints)) if hints.len() == parts.len() => hints.into_iter().map(Some).collect(),
                    _ => vec![None; parts.len()],
                };
                let parts: Vec<_> = parts.iter().zip(hints).map(|(p, hint)| self.expr(p, hint)).collect();
                let types = parts.iter().map(|p| TypeIndex(p.ty.0)).collect();
                (ExprKind::Tuple(parts), self.table.add(Ty::Tuple(types)))
            }
            E::Array(parts) => {
                let element = self.table.unknown();
                let parts: Vec<_> = parts.iter().map(|p| self.expr_of_type(p, element)).collect();
                self.no_closure(element, "an array", e.mark);
                let size = self.table.add(Ty::Size(hir::Size::Known(parts.len() as u32)));
                (ExprKind::Array(parts), self.table.add(Ty::Array(element, size)))
            }
            E::Repeat(value, size) => {
                let value = self.expr(value, None);
                self.no_closure(TypeIndex(value.ty.0), "an array", e.mark);
                let size = self.size(size);
                let ty = self.table.add(Ty::Array(TypeIndex(value.ty.0), size));
                (ExprKind::Repeat(Box::new(value)), ty)
            }
            E::Reference { mutable, place } => {
                let mut inner = self.expr(place, None);
                if *mutable {
                    self.assignable(&mut inner, place.mark);
                }
                let ty = self.table.add(Ty::Reference { to: TypeIndex(inner.ty.0), mutable: *mutable });
                (ExprKind::Reference(Box::new(inner)), ty)
            }
            E::Range { .. } => {
                self.report(e.mark, "in a kernel, a range can appear only in a `for`: write `for i in a..b { … }`; for a part of a slice, add its start to each index");
                (ExprKind::Tuple(Vec::new()), self.wrong())
            }
            E::If { condition, then, otherwise } => self.branch(condition, then, otherwise.as_deref(), expected),
            E::Match { value, arms } => self.cases(value, arms, expected),
            E::Closure { parameters, returns, body } => self.closure(parameters, returns.as_ref(), body, expected),
            E::Block(b) => {
                let (block, ty) = self.block(b, expected);
                (ExprKind::Block(block), ty)
            }
            E::Labeled { label, body } => self.labeled(label, body, expected),
            E::Loop { label, body } => self.endless(label, body),
            E::While { label, condition, body } => self.while_loop(label, condition, body),
            E::For { label, pattern, iterator, body } => self.for_loop(label, pattern, iterator, body),
            E::Break { label, value } => self.break_loop(label, value.as_deref(), e.mark),
            E::Continue { label } => self.continue_loop(label, e.mark),
            E::Return(value) => {
                let returns = self.returns;
                let value = match value {
                    Some(v) => Some(Box::new(self.expr_of_type(v, returns))),
                    None => {
                        let unit = self.table.add(Ty::Unit);
                        self.coerce(unit, returns, e.mark);
                        None
                    }
                };
                (ExprKind::Return(value), self.table.add(Ty::Never))
            }
            E::Try(value) => self.question(value, e.mark),
            E::Refused => (ExprKind::Tuple(Vec::new()), self.wrong()),
        }
    }

    /// Checks `ptx!`: the values must have the declared types of the operands.
    fn inline(&mut self, source: &inline::InlineSource, values: &[syntax::Expr]) -> (ExprKind, TypeIndex) {
        let inputs = source.inputs().zip(values);
        let arguments = inputs
            .map(|(operand, value)| {
                let ty = self.table.scalar(operand.ty);
                self.expr_of_type(value, ty)
            })
            .collect();
        let outputs: Vec<TypeIndex> = source.outputs().map(|o| self.table.scalar(o.ty)).collect();
        let ty = match outputs[..] {
            [] => self.table.add(Ty::Unit),
            [one] => one,
            _ => self.table.add(Ty::Tuple(outputs)),
        };
        (ExprKind::Inline { source: source.clone(), arguments }, ty)
    }

    /// Checks an assertion: `bool` where it has a condition, and values that a report can show.
    fn assertion(
        &mut self,
        assertion: Assertion,
        condition: Option<&syntax::Expr>,
        message: &str,
        values: &[syntax::Expr],
    ) -> (ExprKind, TypeIndex) {
        let bool = self.table.scalar(Scalar::Bool);
        let condition = condition.map(|c| Box::new(self.expr_of_type(c, bool)));
        let shown = self.shown("the message of an assertion", values);
        let ty = if condition.is_some() { Ty::Unit } else { Ty::Never };
        let kind = ExprKind::Assertion { assertion, condition, message: message.to_string(), values: shown };
        (kind, self.table.add(ty))
    }

    /// Checks the values that a message shows: numbers and `bool`. `place` names the message in
    /// errors.
    fn shown(&mut self, place: &str, values: &[syntax::Expr]) -> Vec<Expr> {
        let mut shown = Vec::with_capacity(values.len());
        for value in values {
            let e = self.expr(value, None);
            let ty = TypeIndex(e.ty.0);
            let fits = matches!(
                self.table.get(ty),
                Ty::Scalar(_) | Ty::Unknown(_) | Ty::Parameter(_) | Ty::Projection { .. } | Ty::Wrong | Ty::Never
            ) || self.is_discriminant(ty);
            if !fits {
                let name = self.named(ty);
                self.report(value.mark, format!("{place} shows numbers and `bool`, not `{name}`: show its parts"));
            }
            shown.push(e);
        }
        shown
    }

    pub(super) fn literal(&mut self, literal: Literal) -> ExprKind {
        self.literals.push(literal);
        ExprKind::Literal(self.literals.len() as u64 - 1)
    }

    fn path(&mut self, path: &syntax::Path) -> (ExprKind, TypeIndex) {
        if let Some(name) = path.single() {
            let name = name.to_string();
            if let Some((_, id)) = self.scope.iter().rev().find(|(n, _)| *n == name) {
                return (ExprKind::Local(*id), self.locals[id.0 as usize].ty);
            }
            let constant = self.generics.iter().enumerate().find_map(|(i, g)| match g.kind {
                hir::GenericKind::Constant(ty) if g.name == name => Some((i, ty)),
                _ => None,
            });
            if let Some((i, ty)) = constant {
                return (ExprKind::Generic(i as u32), self.table.scalar(ty));
            }
            if name == "None" {
                return self.none();
            }
            if let Some(value) = self.item_value(path) {
                return value;
            }
            self.report(path.mark, format!("no variable or generic constant `{name}` in scope"));
            return (ExprKind::Tuple(Vec::new()), self.wrong());
        }
        if let Some(path) = self.of_number(path) {
            return self.path(&path);
        }
        let name = path.name();
        if name == "Option::None" {
            return self.none();
        }
        if let Some(value) = self.item_value(path) {
            return value;
        }
        if let Some(found) = self.associated(path) {
            return self.associated_value(found, path);
        }
        if name == "target::SM" {
            let kind = ExprKind::Intrinsic { intrinsic: Intrinsic::TargetSm, arguments: Vec::new() };
            return (kind, self.table.scalar(Scalar::U32));
        }
        if let Some(function) = self.number_function(path) {
            return function;
        }
        if let Some((ty, bits)) = language::constant(&name) {
            let kind = match ty {
                Scalar::F32 => {
                    let single = f32::from_bits(bits as u32);
                    Literal::Float(syntax::FloatLiteral { single, double: f64::from(single) })
                }
                Scalar::F64 => {
                    let double = f64::from_bits(bits as u64);
                    Literal::Float(syntax::FloatLiteral { single: double as f32, double })
                }
                _ => Literal::Integer(bits, path.mark),
            };
            return (self.literal(kind), self.table.scalar(ty));
        }
        if let Some(found) = self.of_device_trait(path) {
            return self.associated_value(found, path);
        }
        let message = match name.as_str() {
            "usize::MAX" | "usize::MIN" | "usize::BITS" => {
                format!(
                    "`{name}` differs between host and device: `usize` has 32 bits on the device. Write `u32::{}`",
                    &name[7..]
                )
            }
            _ if path.is_builtin() && self.is_function(path) => {
                format!("`{name}` cannot be passed as a closure: write a closure that calls it, `|x| …`")
            }
            _ => format!("`{name}` is not a constant that kernels support"),
        };
        self.report(path.mark, message);
        (ExprKind::Tuple(Vec::new()), self.wrong())
    }

    /// Checks the path of a device function, constant or unit struct.
    fn item_value(&mut self, path: &syntax::Path) -> Option<(ExprKind, TypeIndex)> {
        if let Some(hir::Root::Constant(function)) = self.environment.find(&path.written()) {
            let environment = self.environment;
            let callee = environment.function(function);
            self.visible(callee.private_to, || format!("`{}`", callee.name), path.mark);
            let ty = self.instantiate(&callee.types, callee.returns, &[]);
            return Some((ExprKind::Call { function, generics: Vec::new(), arguments: Vec::new() }, ty));
        }
        self.function_value(path).or_else(|| self.unit_struct(path))
    }

    /// Returns whether a built-in path is a function, and not an unknown constant.
    fn is_function(&self, path: &syntax::Path) -> bool {
        let last = &path.segments[path.segments.len() - 1].name;
        let of_a_number = Scalar::from_name(&path.segments[0].name.to_string()).is_some();
        !of_a_number || language::METHODS.iter().any(|m| last == m.name)
    }

    fn unary(
        &mut self,
        operator: Unary,
        operand: &syntax::Expr,
        expected: Option<TypeIndex>,
        mark: SpanPair,
    ) -> (ExprKind, TypeIndex) {
        let hint = if operator == Unary::Dereference { None } else { expected };
        let mut operand = self.expr(operand, hint);
        if operator != Unary::Dereference {
            operand = self.number_operand(operand);
        }
        let ty = TypeIndex(operand.ty.0);
        let of_trait = match operator {
            Unary::Neg => Some("Neg"),
            Unary::Not => Some("Not"),
            Unary::Dereference => None,
        };
        if let Some(of_trait) = of_trait.filter(|_| self.is_nominal(ty)) {
            return self.overloaded_unary(of_trait, operand, mark);
        }
        let known = self.table.get(ty).clone();
        let operand = Box::new(operand);
        match operator {
            Unary::Neg => {
                let fits = match known {
                    Ty::Scalar(s) => s.is_float() || s.is_half() || s.is_signed(),
                    Ty::Parameter(_) | Ty::Projection { .. } => self.implements(ty, Builtin::Float),
                    Ty::Unknown(UnknownKind::Integer) => {
                        self.negated.push((ty, mark));
                        true
                    }
                    Ty::Unknown(UnknownKind::Float) | Ty::Wrong | Ty::Never => true,
                    _ => false,
                };
                if !fits {
                    self.report_negation(ty, mark);
                }
                (ExprKind::Unary(ir::Unary::Neg, operand), ty)
            }
            Unary::Not => {
                let fits = match known {
                    Ty::Scalar(s) => s.is_integer() || s == Scalar::Bool,
                    Ty::Parameter(_) | Ty::Projection { .. } => self.implements(ty, Builtin::Integer),
                    Ty::Unknown(UnknownKind::Integer) | Ty::Wrong | Ty::Never => true,
                    _ => false,
                };
                if !fits {
                    let name = self.named(ty);
                    self.report(mark, format!("`!` applies to integers and `bool`, not to `{name}`"));
                }
                (ExprKind::Unary(ir::Unary::Not, operand), ty)
            }
            Unary::Dereference => match known {
                Ty::Reference { to, .. } => (ExprKind::Dereference(operand), to),
                Ty::Wrong => (ExprKind::Dereference(operand), ty),
                // The type depends on an expression that is already reported.
                Ty::Unknown(UnknownKind::Any) if !self.diagnostics.is_empty() => {
                    (ExprKind::Dereference(operand), self.wrong())
                }
                _ => {
                    let name = self.named(ty);
                    let message = match known {
                        Ty::Unknown(UnknownKind::Any) => {
                            "the type that `*` applies to is not known here: write it, as in `|x: &f32| *x`".to_string()
                        }
                        Ty::Slice { .. } => format!(
                            "`*` does not apply to `{name}` here: pass the slice itself, without `&*` or `&mut *`"
                        ),
                        _ => format!("`{name}` is not a reference"),
                    };
                    self.report(mark, message);
                    (ExprKind::Tuple(Vec::new()), self.wrong())
                }
            },
        }
    }

    fn binary(
        &mut self,
        operator: syntax::Binary,
        a: &syntax::Expr,
        b: &syntax::Expr,
        mark: SpanPair,
    ) -> (ExprKind, TypeIndex) {
        let bool = self.table.scalar(Scalar::Bool);
        match operator {
            syntax::Binary::AndAlso => {
                (ExprKind::AndAlso(Box::new(self.expr_of_type(a, bool)), Box::new(self.expr_of_type(b, bool))), bool)
            }
            syntax::Binary::OrElse => {
                (ExprKind::OrElse(Box::new(self.expr_of_type(a, bool)), Box::new(self.expr_of_type(b, bool))), bool)
            }
            syntax::Binary::Compare(comparison) => (self.comparison(comparison, a, b, mark), bool),
            syntax::Binary::Arithmetic(operator) => {
                let small =
                    |e: &syntax::Expr| matches!(e.kind, syntax::ExprKind::Integer(n, _) if n <= u128::from(u32::MAX));
                // `x as usize & 255` selects bits explicitly.
                self.masks = operator == ir::Binary::And && small(b);
                let a = self.expr(a, None);
                let a = self.number_operand(a);
                let ty = TypeIndex(a.ty.0);
                let b = match self.overloaded(operator, false, &a, b, mark) {
                    Overloaded::Call(kind, ty) => return (kind, ty),
                    Overloaded::BuiltIn(Some(b)) => b,
                    Overloaded::BuiltIn(None) => self.right(operator, b, ty),
                };
                self.arithmetic(operator, ty, mark);
                (ExprKind::Binary(operator, Box::new(a), Box::new(b)), ty)
            }
        }
    }

    /// Checks the right operand of an operator whose left one has type `left`.
    fn right(&mut self, operator: ir::Binary, b: &syntax::Expr, left: TypeIndex) -> Expr {
        if !matches!(operator, ir::Binary::Shl | ir::Binary::Shr) {
            let mark = b.mark;
            let b = self.expr(b, Some(left));
            let b = self.number_operand(b);
            self.coerce(TypeIndex(b.ty.0), left, mark);
            return b;
        }
        let amount = self.expr(b, None);
        let amount = self.number_operand(amount);
        if let syntax::ExprKind::Integer(n, _) = b.kind {
            self.shifts.push((left, n, b.mark));
        }
        let ty = TypeIndex(amount.ty.0);
        let fits = match self.table.get(ty) {
            Ty::Scalar(s) => s.is_integer(),
            Ty::Unknown(UnknownKind::Integer) | Ty::Wrong => true,
            _ => false,
        };
        if !fits {
            let name = self.named(ty);
            self.report(b.mark, format!("a shift amount must be an integer, found `{name}`"));
        }
        amount
    }

    fn arithmetic(&mut self, operator: ir::Binary, ty: TypeIndex, mark: SpanPair) {
        use ir::Binary::*;
        let allowed = match operator {
            And | Or | Xor => ArithmeticOperands::IntegersAndBools,
            Shl | Shr => ArithmeticOperands::Integers,
            _ => ArithmeticOperands::IntegersAndFloats,
        };
        let float = matches!(self.table.get(ty), Ty::Unknown(UnknownKind::Float))
            || self.table.as_scalar(ty).is_some_and(Scalar::is_float);
        if matches!(self.table.get(ty), Ty::Parameter(_) | Ty::Projection { .. }) {
            let divides = self.implements(ty, Builtin::Float) || self.implements(ty, Builtin::Integer);
            if operator == Rem || operator == Div && !divides {
                let name = self.named(ty);
                let sign = if operator == Rem { "%" } else { "/" };
                self.report(mark, format!("`{sign}` does not apply to `{name}`, whose bounds do not include it"));
                return;
            }
        }
        if operator == Rem && self.table.as_scalar(ty).is_some_and(Scalar::is_half) {
            self.report(mark, "`%` of floats is not supported in kernels");
            return;
        }
        if operator == Rem && float {
            self.report(
                mark,
                "`%` of floats is not supported in kernels: `a - b * (a / b).trunc()` is close to it where a / b is small",
            );
            return;
        }
        self.operands(ty, allowed, mark);
    }

    pub(super) fn operands(&mut self, ty: TypeIndex, allowed: ArithmeticOperands, mark: SpanPair) {
        let floats = allowed == ArithmeticOperands::IntegersAndFloats;
        let fits = match self.table.get(ty) {
            Ty::Scalar(Scalar::Bool) => allowed == ArithmeticOperands::IntegersAndBools,
            Ty::Scalar(s) => floats || s.is_integer(),
            Ty::Parameter(_) | Ty::Projection { .. } => {
                self.implements(ty, if floats { Builtin::Number } else { Builtin::Integer })
            }
            Ty::Unknown(UnknownKind::Integer) | Ty::Wrong | Ty::Never => true,
            Ty::Unknown(UnknownKind::Float) => floats,
            // Perhaps a closure's parameter, whose type follows from a call.
            Ty::Unknown(UnknownKind::Any) => {
                self.operands.push(OperatorOperands { ty, of: OperatorClass::Arithmetic(allowed), mark });
                true
            }
            _ => false,
        };
        if !fits {
            let name = self.named(ty);
            let way_out = match self.table.get(ty) {
                Ty::Struct(..) => ": apply it to the fields",
                Ty::Tuple(_) | Ty::Array(..) => ": apply it to the elements",
                Ty::Parameter(_) | Ty::Projection { .. } if floats => {
                    ": write the bound `Number`, `Float` or `Integer`"
                }
                Ty::Parameter(_) | Ty::Projection { .. } => ": write the bound `Integer`",
                _ => "",
            };
            self.report(mark, format!("this operator does not apply to `{name}`{way_out}"));
        }
    }

    fn assign(
        &mut self,
        place: &syntax::Expr,
        operator: Option<syntax::Binary>,
        value: &syntax::Expr,
        mark: SpanPair,
    ) -> (ExprKind, TypeIndex) {
        let unit = self.table.add(Ty::Unit);
        let place_mark = place.mark;
        let mut place = self.expr(place, None);
        let ty = TypeIndex(place.ty.0);
        self.assignable(&mut place, place_mark);
        let (operator, value) = match operator {
            None => (None, self.expr_of_type(value, ty)),
            Some(syntax::Binary::Arithmetic(operator)) => {
                if let Overloaded::Call(kind, _) = self.overloaded(operator, true, &place, value, mark) {
                    return (kind, unit);
                }
                let value = self.right(operator, value, ty);
                self.arithmetic(operator, ty, mark);
                (Some(operator), value)
            }
            Some(_) => unreachable!("only arithmetic operators assign"),
        };
        (ExprKind::Assign { place: Box::new(place), operator, value: Box::new(value) }, unit)
    }

    /// Reports an error if `place` is not writable. An element that an `impl Index` selects becomes
    /// the one that `impl IndexMut` selects.
    pub(super) fn assignable(&mut self, place: &mut Expr, mark: SpanPair) {
        if self.selected_mutably(place, mark) {
            return;
        }
        let variable = |checker: &mut Self, id: hir::LocalId, what: &str| {
            let v = &checker.locals[id.0 as usize];
            if !v.form.mutable && !v.form.unset {
                let name = v.name.clone();
                checker.report(mark, format!("{what} `{name}`, which is not declared `mut`"));
            }
        };
        match &mut place.kind {
            ExprKind::Local(id) => {
                self.locals[id.0 as usize].assigned = true;
                variable(self, *id, "cannot assign to")
            }
            ExprKind::Field { base, .. } => self.assignable(base, mark),
            ExprKind::Dereference(reference) => {
                if let Ty::Reference { mutable: false, .. } = self.table.get(TypeIndex(reference.ty.0)) {
                    self.report(mark, "cannot assign through a `&` reference: make it `&mut`");
                }
            }
            ExprKind::Index { base, .. } => match self.table.get(TypeIndex(base.ty.0)).clone() {
                Ty::Slice { mutable: true, .. } | Ty::Wrong => {}
                Ty::Slice { mutable: false, .. } => {
                    self.report(mark, "cannot write to a `&[T]`: declare the parameter `&mut [T]`")
                }
                Ty::View { mutable: false, strided, .. } => {
                    let [name, other] = [false, true].map(|mutable| hir::view_name(mutable, strided));
                    self.report(mark, format!("cannot write to a `{name}`: declare the parameter `{other}`"))
                }
                Ty::View { .. } | Ty::Shared { .. } => {
                    if let ExprKind::Local(id) = base.kind {
                        variable(self, id, "cannot write to the elements of");
                    }
                }
                _ => self.assignable(base, mark),
            },
            _ => {
                if !matches!(self.table.get(TypeIndex(place.ty.0)), Ty::Wrong) {
                    self.report(mark, "cannot assign to this expression: only to a variable or an element");
                }
            }
        }
    }

    fn cast(&mut self, value: &syntax::Expr, ty: &syntax::Type, mark: SpanPair) -> (ExprKind, TypeIndex) {
        let meant = std::mem::take(&mut self.masks);
        let inner = self.expr(value, None);
        let to = self.ty(ty);
        let from = TypeIndex(inner.ty.0);
        // A literal without a suffix takes the type of the cast, if that is a number of the same
        // kind.
        if let (Ty::Unknown(kind @ (UnknownKind::Integer | UnknownKind::Float)), Ty::Scalar(s)) =
            (self.table.get(from).clone(), self.table.get(to).clone())
            && is_literal(value)
            && ((kind == UnknownKind::Integer && s.is_integer()) || (kind == UnknownKind::Float && s.is_float()))
        {
            self.table.unify(from, to);
        }
        if let Some(half) = [to, from].into_iter().filter_map(|id| self.table.as_scalar(id)).find(|s| s.is_half()) {
            self.report(mark, format!("`as` does not support `{half}`: write `x.to_f32()` and `{half}::from_f32(x)`"));
            return (ExprKind::Cast(Box::new(inner)), to);
        }
        let fits = match (self.table.get(from).clone(), self.table.get(to).clone()) {
            (Ty::Wrong, _) | (_, Ty::Wrong) => true,
            (Ty::Unknown(UnknownKind::Integer | UnknownKind::Float), Ty::Scalar(to)) => to != Scalar::Bool,
            (Ty::Enum(..), Ty::Scalar(to)) => self.is_discriminant(from) && to.is_integer(),
            (Ty::Scalar(from), Ty::Scalar(to)) => {
                if matches!(from, Scalar::U64 | Scalar::I64 | Scalar::U128)
                    && to == Scalar::Usize
                    && !meant
                    && !masked(value, from)
                {
                    self.report(
                        mark,
                        "`usize` has 32 bits on the device: select the bits explicitly, as in `(x & 0xffff_ffff) as usize`",
                    );
                }
                match (from, to) {
                    (Scalar::Bool, to) => to.is_integer() || to == Scalar::Bool,
                    (_, Scalar::Bool) => false,
                    _ => true,
                }
            }
            _ => false,
        };
        if !fits {
            let (from, to) = (self.named(from), self.named(to));
            self.report(mark, format!("`{from}` cannot be cast to `{to}`"));
        }
        (ExprKind::Cast(Box::new(inner)), to)
    }

    fn index(&mut self, base: &syntax::Expr, index: &syntax::Expr) -> (ExprKind, TypeIndex) {
        let mark = base.mark;
        let base = self.expr(base, None);
        let base = self.dereferenced(base);
        let ty = TypeIndex(base.ty.0);
        if let Some(selected) = self.selected(&base, index, mark) {
            return selected;
        }
        let (element, rank) = match self.table.get(ty).clone() {
            Ty::Slice { element, .. } => (element, 1),
            Ty::View { element, rank, .. } | Ty::Shared { element, rank } => (element, rank),
            Ty::Array(element, _) => (element, 1),
            Ty::Wrong => (ty, 1),
            _ => {
                let name = self.named(ty);
                self.report(mark, format!("`{name}` cannot be indexed"));
                (self.wrong(), 1)
            }
        };
        let index = Box::new(self.indices(index, rank));
        // An index with an error may have been meant to select several elements, so their type is
        // unknown.
        let element = if *self.table.get(TypeIndex(index.ty.0)) == Ty::Wrong { self.wrong() } else { element };
        (ExprKind::Index { base: Box::new(base), index }, element)
    }

    /// Checks `rank` indices: a `usize`, a tuple or an array of them.
    pub(super) fn indices(&mut self, e: &syntax::Expr, rank: u32) -> Expr {
        let usize = self.table.scalar(Scalar::Usize);
        if rank == 1 && !matches!(e.kind, syntax::ExprKind::Array(_)) {
            return self.expr_of_type(e, usize);
        }
        let tuple = self.table.add(Ty::Tuple(vec![usize; rank as usize]));
        let size = self.table.add(Ty::Size(hir::Size::Known(rank)));
        let array = self.table.add(Ty::Array(usize, size));
        let index = self.expr(e, Some(tuple));
        match self.table.get(TypeIndex(index.ty.0)) {
            Ty::Array(..) => self.coerce(TypeIndex(index.ty.0), array, e.mark),
            _ => self.coerce(TypeIndex(index.ty.0), tuple, e.mark),
        };
        index
    }

    /// Dereferences `e`, if it is a reference.
    pub(super) fn dereferenced(&mut self, e: Expr) -> Expr {
        match self.table.get(TypeIndex(e.ty.0)).clone() {
            Ty::Reference { to, .. } => {
                let span = e.span;
                self.dereferenced(Expr { kind: ExprKind::Dereference(Box::new(e)), ty: TypeId(to.0), span })
            }
            _ => e,
        }
    }

    fn field(&mut self, base: &syntax::Expr, member: &syntax::Member, mark: SpanPair) -> (ExprKind, TypeIndex) {
        let base = self.expr(base, None);
        let base = self.dereferenced(base);
        let ty = TypeIndex(base.ty.0);
        if let Ty::Struct(id, _) = *self.table.get(ty) {
            self.visible_field(id, &member.to_string(), mark);
        }
        let (field, part) = self.part_of(ty, member).unwrap_or_else(|| {
            let name = self.named(ty);
            self.report(mark, format!("`{name}` has no field `.{member}`"));
            (0, self.wrong())
        });
        (ExprKind::Field { base: Box::new(base), field }, part)
    }
}

/// Returns whether an expression of type `ty` certainly has at most 32 bits: `x & mask` with a
/// literal and, for unsigned types, `x >> n` and `x % n`.
fn masked(e: &syntax::Expr, ty: Scalar) -> bool {
    use ir::Binary::{And, Rem, Shr};
    let small = |e: &syntax::Expr| matches!(e.kind, syntax::ExprKind::Integer(n, _) if n <= u128::from(u32::MAX));
    match &e.kind {
        syntax::ExprKind::Integer(..) => small(e),
        syntax::ExprKind::Binary(syntax::Binary::Arithmetic(And), a, b) => small(a) || small(b),
        syntax::ExprKind::Binary(syntax::Binary::Arithmetic(Rem), _, b) => !ty.is_signed() && small(b),
        syntax::ExprKind::Binary(syntax::Binary::Arithmetic(Shr), _, b) if !ty.is_signed() => {
            matches!(b.kind, syntax::ExprKind::Integer(n, _) if n >= 32)
        }
        _ => false,
    }
}

/// Returns whether an expression is a literal, perhaps with a unary operator.
fn is_literal(e: &syntax::Expr) -> bool {
    match &e.kind {
        syntax::ExprKind::Integer(..) | syntax::ExprKind::Float(..) => true,
        syntax::ExprKind::Unary(_, of) => is_literal(of),
        _ => false,
    }
}
