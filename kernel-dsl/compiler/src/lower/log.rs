//! `log!`: a line of C's `printf` on every executor.
//!
//! The line begins with the block and the thread. Values are promoted as C promotes them: small
//! integers to 32 bits, floats to `f64`. A float has the digits that identify its value, 9 of an
//! `f32` or a float of 16 bits and 17 of an `f64`. The sign of a NaN is dropped, because it differs
//! between executors.

use super::double_word::{shown_words, with_words};
use super::lowerer::Lowerer;
use super::lowerer::maybe_const::MaybeConst;
use super::lowerer::value::Val;
use crate::Scalar;
use crate::assertion::{MessagePart, Style, pieces};
use crate::hir::Expr;
use crate::ir::{Comparison, MAX_LOG_VALUES, Op, Special, Value, Values};
use crate::source::Span;

/// The start of a line, with the indices of the block and the thread.
const START: &str = "block [%u, %u, %u], thread [%u, %u, %u]: ";

impl<'h> Lowerer<'h> {
    pub(super) fn log(&mut self, span: Span, message: &str, values: &'h [Expr]) -> Val {
        let (mut shown, mut doubles) = (Vec::new(), Vec::new());
        for value in values {
            let (k, ty) = (self.scalar(value), self.scalar_type(value.ty));
            doubles.push(k.high.is_some());
            let ty = if k.high.is_some() { Scalar::U64 } else { ty };
            shown.extend(shown_words(k).map(|word| (word, ty)));
        }
        self.at(span);
        if shown.len() > MAX_LOG_VALUES {
            let given = shown.len();
            let message =
                format!("`log!` prints at most {MAX_LOG_VALUES} values, and this one has {given}, two for each `u128`");
            self.error_with_help(span, message, "write two `log!`");
            return Val::Unit;
        }
        let message = &with_words(message, &doubles);
        let mut printed = Values::new();
        for special in [Special::Block, Special::Thread] {
            for axis in 0..3 {
                let index = match special(axis) {
                    Special::Thread(axis) => self.thread(axis),
                    block => self.special(block),
                };
                printed.push(self.builder.scalar(Op::Cast(index.value), Scalar::U32));
            }
        }
        let mut format = START.to_string();
        let mut shown = shown.into_iter();
        for piece in pieces(message).unwrap_or_default() {
            match piece {
                MessagePart::Text(text) => format.push_str(&text.replace('%', "%%")),
                MessagePart::Value { style, .. } => {
                    let Some((value, ty)) = shown.next() else { continue };
                    let (value, conversion) = self.printf_conversion(value, ty, style.unwrap_or(Style::Decimal));
                    printed.push(value);
                    format.push_str(&conversion);
                }
            }
        }
        format.push('\n');
        self.builder.effect(Op::Log { format: format.into(), values: printed });
        Val::Unit
    }

    /// Returns a value as `printf` takes it, with its conversion.
    fn printf_conversion(&mut self, value: Value, ty: Scalar, style: Style) -> (Value, String) {
        if ty == Scalar::Bool {
            return (value, "%s".into());
        }
        let wide = ty.bits() == 64;
        let long = if wide { "ll" } else { "" };
        if style != Style::Decimal {
            let prefix = if style == Style::PrefixedHexadecimal { "0x" } else { "" };
            let bits = match ty.bits() {
                8 => Scalar::U8,
                16 => Scalar::U16,
                32 => Scalar::U32,
                _ => Scalar::U64,
            };
            let value = match ty {
                ty if ty.is_integer() => self.promoted(value, ty, bits),
                _ => self.builder.scalar(Op::Bitcast(value), bits),
            };
            let promoted = if wide { Scalar::U64 } else { Scalar::U32 };
            return (self.promoted(value, bits, promoted), format!("{prefix}%{long}x"));
        }
        if ty.is_integer() {
            let (promoted, letter) = match (ty.is_signed(), wide) {
                (true, false) => (Scalar::I32, 'd'),
                (true, true) => (Scalar::I64, 'd'),
                (false, false) => (Scalar::U32, 'u'),
                (false, true) => (Scalar::U64, 'u'),
            };
            return (self.promoted(value, ty, promoted), format!("%{long}{letter}"));
        }
        let digits = if ty == Scalar::F64 { 17 } else { 9 };
        let (value, ty) = match ty.is_half() {
            true => (self.widen(ty, MaybeConst::unknown(value)).value, Scalar::F32),
            false => (value, ty),
        };
        let double = self.promoted(value, ty, Scalar::F64);
        let is_nan = self.builder.compare(Comparison::Ne, double, double);
        let nan = self.builder.constant(Scalar::F64, f64::NAN.to_bits());
        (self.select_value(Scalar::F64, is_nan, nan, double), format!("%.{digits}g"))
    }

    fn promoted(&mut self, value: Value, from: Scalar, to: Scalar) -> Value {
        if from == to { value } else { self.builder.scalar(Op::Cast(value), to) }
    }
}
