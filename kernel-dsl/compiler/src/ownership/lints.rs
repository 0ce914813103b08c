//! The lints that rustc denies: numbers that do not fit, arithmetic that certainly overflows or
//! divides by zero, and constant indices beyond the end of an array.
//!
//! The known values are those of rustc's lint: literals, and variables that are assigned once.

use super::part::{ExprPart, each_part};
use crate::Scalar;
use crate::hir::{Block, Expr, ExprKind, Function, LocalId, Pattern, Size, Statement, Type};
use crate::ir::{Binary, Unary};
use crate::source::Span;
use std::collections::HashMap;

/// Returns the expressions of a function that rustc's lints deny.
pub(super) fn denied(function: &Function) -> Vec<(Span, String)> {
    let mut lints = LintVisitor { function, known: HashMap::new(), found: Vec::new() };
    lints.block(&function.body);
    lints.found
}

struct LintVisitor<'f> {
    function: &'f Function,
    /// The values of variables that are assigned once.
    known: HashMap<LocalId, i128>,
    found: Vec<(Span, String)>,
}

impl<'f> LintVisitor<'f> {
    fn block(&mut self, block: &'f Block) {
        for statement in &block.statements {
            match statement {
                Statement::Let { pattern, value: Some(value), .. } => {
                    self.expr(value);
                    if let Pattern::Local(id) = pattern
                        && !self.function.locals[id.0 as usize].mutable
                        && let Some(n) = self.value(value)
                    {
                        self.known.insert(*id, n);
                    }
                }
                Statement::Let { .. } => {}
                Statement::LetElse { value, otherwise, .. } => {
                    self.expr(value);
                    self.block(otherwise);
                }
                Statement::Expr(e) | Statement::Assert { condition: e, .. } => self.expr(e),
            }
        }
        if let Some(value) = &block.value {
            self.expr(value);
        }
    }

    fn scalar(&self, e: &Expr) -> Option<Scalar> {
        match self.function.ty(e.ty) {
            Type::Scalar(scalar) => Some(*scalar),
            _ => None,
        }
    }

    fn expr(&mut self, e: &'f Expr) {
        if let ExprKind::Unary(Unary::Neg, inner) = &e.kind
            && let ExprKind::Literal(bits) = inner.kind
        {
            // The smallest number is written as the negation of a number that has no positive form.
            return self.literal(inner, u128::from(bits), true);
        }
        each_part(e, &mut |part| match part {
            ExprPart::Expr(e) => self.expr(e),
            ExprPart::Block(b) => self.block(b),
        });
        match &e.kind {
            ExprKind::Literal(bits) => self.literal(e, u128::from(*bits), false),
            ExprKind::Binary(operator, a, b) => self.arithmetic(e, *operator, a, b),
            ExprKind::Index { base, index } => {
                if let Type::Array(_, Size::Known(n)) = self.function.ty(base.ty)
                    && let Some(at) = self.value(index)
                    && at >= i128::from(*n)
                {
                    self.found.push((
                        index.span,
                        format!("the index {at} is beyond the end of this array, which has {n} elements"),
                    ));
                }
            }
            _ => {}
        }
    }

    /// Reports a literal that its type cannot hold.
    fn literal(&mut self, e: &Expr, bits: u128, negated: bool) {
        let Some(scalar) = self.scalar(e) else { return };
        if !self.is_written(e.span) {
            return;
        }
        if scalar.is_float() {
            let infinite = match scalar {
                Scalar::F32 => f32::from_bits(bits as u32).is_infinite(),
                _ => f64::from_bits(bits as u64).is_infinite(),
            };
            if infinite {
                let message =
                    format!("this number does not fit in `{scalar}`: write `{scalar}::INFINITY` if it is meant");
                self.found.push((e.span, message));
            }
        } else if scalar.is_signed() {
            let most = u128::from(scalar.mask() >> 1);
            if bits > most + u128::from(negated) {
                let message = format!(
                    "`{bits}` does not fit in `{scalar}`, whose largest number is {most}: use a wider or unsigned type"
                );
                self.found.push((e.span, message));
            }
        }
    }

    /// Returns whether the text at a place is a number, and not the name of a constant.
    fn is_written(&self, span: Span) -> bool {
        let line = self.function.source.line_text(span.line.into());
        let first = line.and_then(|line| line.chars().nth(usize::from(span.column).saturating_sub(1)));
        first.is_some_and(|c| c.is_ascii_digit())
    }

    fn arithmetic(&mut self, e: &Expr, operator: Binary, a: &Expr, b: &Expr) {
        let Some(scalar) = self.scalar(a).filter(|scalar| scalar.is_integer()) else { return };
        let right = self.value(b);
        let bits = i128::from(scalar.bits());
        match (operator, right) {
            (Binary::Div | Binary::Rem, Some(0)) => {
                self.found.push((e.span, "this divides by zero: the divisor is always 0 here".to_string()));
            }
            // The width of `usize` differs between host and device.
            (Binary::Shl | Binary::Shr, Some(by)) if scalar != Scalar::Usize && !(0..bits).contains(&by) => {
                let message = format!("a shift by {by} is out of range for `{scalar}`, which has {bits} bits");
                self.found.push((e.span, message));
            }
            (Binary::Add | Binary::Sub | Binary::Mul, Some(right)) => {
                let exact = self.value(a).and_then(|left| match operator {
                    Binary::Add => left.checked_add(right),
                    Binary::Sub => left.checked_sub(right),
                    _ => left.checked_mul(right),
                });
                if let Some(exact) = exact
                    && !fits(exact, scalar)
                {
                    let message = format!(
                        "this is {exact}, which does not fit in `{scalar}`: compute with a wider type, or use a method named `wrapping_…`"
                    );
                    self.found.push((e.span, message));
                }
            }
            _ => {}
        }
    }

    /// Returns the value of an integer expression, if it is known.
    fn value(&self, e: &Expr) -> Option<i128> {
        let scalar = self.scalar(e).filter(|scalar| scalar.is_integer() && *scalar != Scalar::U128)?;
        let value = match &e.kind {
            ExprKind::Literal(bits) => signed(*bits, scalar),
            ExprKind::Local(id) => *self.known.get(id)?,
            ExprKind::Unary(Unary::Neg, a) => self.value(a)?.checked_neg()?,
            ExprKind::Binary(operator, a, b) => {
                let (a, b) = (self.value(a)?, self.value(b)?);
                match operator {
                    Binary::Add => a.checked_add(b)?,
                    Binary::Sub => a.checked_sub(b)?,
                    Binary::Mul => a.checked_mul(b)?,
                    Binary::Div => a.checked_div(b)?,
                    Binary::Rem => a.checked_rem(b)?,
                    Binary::And => a & b,
                    Binary::Or => a | b,
                    Binary::Xor => a ^ b,
                    _ => return None,
                }
            }
            _ => return None,
        };
        fits(value, scalar).then_some(value)
    }
}

/// Returns the number that the bits of a literal represent.
fn signed(bits: u64, scalar: Scalar) -> i128 {
    let unused = 64 - scalar.bits().min(64);
    match scalar.is_signed() {
        true => i128::from((bits << unused).cast_signed() >> unused),
        false => bits.into(),
    }
}

fn fits(value: i128, scalar: Scalar) -> bool {
    let bits = if scalar == Scalar::Usize { 64 } else { scalar.bits() };
    match scalar.is_signed() {
        true => (-(1i128 << (bits - 1))..1 << (bits - 1)).contains(&value),
        false => (0..1i128 << bits).contains(&value),
    }
}
