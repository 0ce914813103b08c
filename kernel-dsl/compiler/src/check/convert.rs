//! Conversions of Rust's library: `from` and `into` of numbers, and their bytes.
//!
//! Each conversion is a cast, or shifts and casts.

use super::{
    FunctionChecker, NumberConversion,
    types::{Ty, TypeIndex, UnknownKind},
};
use crate::Scalar;
use crate::hir::{self, Block, Expr, ExprKind, Intrinsic, Pattern, Statement, TypeId};
use crate::ir::Binary;
use crate::syntax::{self, SpanPair};

/// The order of the bytes of a number.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ByteOrder {
    /// The least significant byte is first, as in memory.
    Little,
    Big,
}

/// Returns the order that the name of a method states: `to_le_bytes`, `from_be`.
pub(super) fn byte_order(name: &str, before: &str, after: &str) -> Option<ByteOrder> {
    match name.strip_prefix(before)?.strip_suffix(after)? {
        "le" => Some(ByteOrder::Little),
        "be" => Some(ByteOrder::Big),
        _ => None,
    }
}

/// Returns whether Rust's library has an impl of `From` between two numbers or `bool`. Such an impl
/// keeps each value on every platform, so that a `usize` counts as 16 bits.
fn has_from(to: Scalar, from: Scalar) -> bool {
    if to == from {
        return true;
    }
    match (from, to) {
        (_, Scalar::Bool) | (Scalar::Usize, _) => false,
        _ if from.is_half() => false,
        (Scalar::Bool, _) => true,
        (_, Scalar::Usize) => matches!(from, Scalar::U8 | Scalar::U16),
        _ if to.is_float() => {
            let digits = if to == Scalar::F32 { 24 } else { 53 };
            from == Scalar::F32 || from.is_integer() && from.bits() < digits
        }
        _ if from.is_float() || (!to.is_signed() && from.is_signed()) => false,
        _ => from.bits() < to.bits(),
    }
}

/// Returns the unsigned integer with the bits of a number; `None` if its bytes differ between host
/// and device, or have no methods.
fn bits_of(scalar: Scalar) -> Option<Scalar> {
    Some(match scalar {
        Scalar::U8 | Scalar::I8 => Scalar::U8,
        Scalar::U16 | Scalar::I16 => Scalar::U16,
        Scalar::U32 | Scalar::I32 | Scalar::F32 => Scalar::U32,
        Scalar::U64 | Scalar::I64 | Scalar::F64 => Scalar::U64,
        Scalar::U128 => Scalar::U128,
        _ => return None,
    })
}

impl FunctionChecker<'_> {
    /// Checks `u32::from(x)`, where `to` is the type of the result.
    pub(super) fn number_from(&mut self, to: Scalar, value: &syntax::Expr, mark: SpanPair) -> (ExprKind, TypeIndex) {
        let ty = self.table.scalar(to);
        let value = self.expr(value, None);
        let value = self.number_operand(value);
        let from = TypeIndex(value.ty.0);
        let kind = match self.table.get(from) {
            Ty::Scalar(from) if from.is_half() && to.is_float() => convert(value),
            Ty::Scalar(_) | Ty::Unknown(UnknownKind::Integer | UnknownKind::Float) if !to.is_half() => {
                self.conversions.push(NumberConversion { from, to: ty, mark });
                ExprKind::Cast(Box::new(value))
            }
            Ty::Wrong => ExprKind::Tuple(Vec::new()),
            _ => {
                let from = self.named(from);
                self.report(mark, format!("`{to}::from` takes a number in kernels, not `{from}`: write a function"));
                ExprKind::Tuple(Vec::new())
            }
        };
        (kind, ty)
    }

    /// Checks `x.into()` of a number. The context gives the type.
    pub(super) fn number_into(&mut self, value: Expr, mark: SpanPair) -> (ExprKind, TypeIndex) {
        let to = self.table.unknown();
        self.conversions.push(NumberConversion { from: TypeIndex(value.ty.0), to, mark });
        (ExprKind::Cast(Box::new(value)), to)
    }

    /// Reports each conversion that Rust's library lacks. An integer literal without another type
    /// is an `i32`, and a float literal an `f64`.
    pub(super) fn check_conversions(&mut self) {
        for NumberConversion { from, to, mark } in std::mem::take(&mut self.conversions) {
            let to = match self.table.get(to) {
                Ty::Scalar(scalar) if !scalar.is_half() => *scalar,
                Ty::Unknown(_) | Ty::Wrong => continue,
                _ => {
                    let name = self.named(to);
                    self.report(
                        mark,
                        format!("`into` of a number gives an integer or a float of 32 or 64 bits in kernels, not `{name}`: call a function of `{name}`"),
                    );
                    continue;
                }
            };
            let from = match self.table.get(from) {
                Ty::Scalar(scalar) => *scalar,
                Ty::Unknown(UnknownKind::Integer) => Scalar::I32,
                Ty::Unknown(UnknownKind::Float) => Scalar::F64,
                _ => continue,
            };
            if !has_from(to, from) {
                let why = format!("`{to}` has no `From<{from}>`, because some values would change: write `as {to}`");
                self.report(mark, why);
            }
        }
    }

    /// Checks `x.to_le_bytes()` or `x.to_be_bytes()`; `None` if the type has no such method.
    pub(super) fn bytes_of_number(
        &mut self,
        value: Expr,
        scalar: Scalar,
        order: ByteOrder,
        mark: SpanPair,
    ) -> Option<(ExprKind, TypeIndex)> {
        let bits = bits_of(scalar)?;
        let count = bits.bits() / 8;
        let span = mark.span;
        let at = |kind, ty: TypeIndex| Expr { kind, ty: TypeId(ty.0), span };
        let (byte, word) = (self.table.scalar(Scalar::U8), self.table.scalar(bits));
        let word_of = if scalar.is_float() { bitcast(value) } else { ExprKind::Cast(Box::new(value)) };
        let kept = self.declare_temporary("number", word);
        let mut bytes = Vec::new();
        for i in 0..count {
            let mut part = at(ExprKind::Local(kept), word);
            if i > 0 {
                let amount = self.amount(8 * i, mark);
                part = at(ExprKind::Binary(Binary::Shr, Box::new(part), Box::new(amount)), word);
            }
            bytes.push(at(ExprKind::Cast(Box::new(part)), byte));
        }
        if order == ByteOrder::Big {
            bytes.reverse();
        }
        let size = self.table.add(Ty::Size(hir::Size::Known(count)));
        let array = self.table.add(Ty::Array(byte, size));
        let bound = Statement::Let { pattern: Pattern::Local(kept), value: Some(at(word_of, word)), span };
        let value = Some(Box::new(at(ExprKind::Array(bytes), array)));
        Some((ExprKind::Block(Block { statements: vec![bound], value }), array))
    }

    /// Checks `u32::from_le_bytes(bytes)` or `u32::from_be_bytes(bytes)`; `None` if the type has no
    /// such function.
    pub(super) fn number_of_bytes(
        &mut self,
        scalar: Scalar,
        bytes: &syntax::Expr,
        order: ByteOrder,
        mark: SpanPair,
    ) -> Option<(ExprKind, TypeIndex)> {
        let bits = bits_of(scalar)?;
        let count = bits.bits() / 8;
        let span = mark.span;
        let at = |kind, ty: TypeIndex| Expr { kind, ty: TypeId(ty.0), span };
        let (byte, word, ty) = (self.table.scalar(Scalar::U8), self.table.scalar(bits), self.table.scalar(scalar));
        let usize = self.table.scalar(Scalar::Usize);
        let size = self.table.add(Ty::Size(hir::Size::Known(count)));
        let array = self.table.add(Ty::Array(byte, size));
        let bytes = self.expr_of_type(bytes, array);
        let kept = self.declare_temporary("bytes", array);
        let mut joined: Option<Expr> = None;
        for i in 0..count {
            let index = if order == ByteOrder::Little { i } else { count - 1 - i };
            let index = Box::new(at(self.literal(super::Literal::Integer(index.into(), mark)), usize));
            let base = Box::new(at(ExprKind::Local(kept), array));
            let element = at(ExprKind::Index { base, index }, byte);
            let part = at(ExprKind::Cast(Box::new(element)), word);
            joined = Some(match joined {
                None => part,
                Some(before) => {
                    let amount = self.amount(8 * i, mark);
                    let part = at(ExprKind::Binary(Binary::Shl, Box::new(part), Box::new(amount)), word);
                    at(ExprKind::Binary(Binary::Or, Box::new(before), Box::new(part)), word)
                }
            });
        }
        let joined = joined?;
        let value = if scalar.is_float() { bitcast(joined) } else { ExprKind::Cast(Box::new(joined)) };
        let bound = Statement::Let { pattern: Pattern::Local(kept), value: Some(bytes), span };
        Some((ExprKind::Block(Block { statements: vec![bound], value: Some(Box::new(at(value, ty))) }), ty))
    }

    /// Returns the amount of a shift.
    fn amount(&mut self, bits: u32, mark: SpanPair) -> Expr {
        let ty = self.table.scalar(Scalar::U32);
        let kind = self.literal(super::Literal::Integer(bits.into(), mark));
        Expr { kind, ty: TypeId(ty.0), span: mark.span }
    }
}

fn convert(value: Expr) -> ExprKind {
    ExprKind::Intrinsic { intrinsic: Intrinsic::Convert, arguments: vec![value] }
}

fn bitcast(value: Expr) -> ExprKind {
    ExprKind::Intrinsic { intrinsic: Intrinsic::Bitcast, arguments: vec![value] }
}
