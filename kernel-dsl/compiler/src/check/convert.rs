//! Conversions of Rust's library: `from` and `into` of numbers, and their bytes.
//!
//! Each conversion is a cast, or shifts and casts.

use super::checker::{FunctionChecker, Literal, NumberConversion};
use super::types::{Ty, TypeIndex, UnknownKind};
use crate::Scalar;
use crate::hir::{self, Block, Expr, ExprKind, Intrinsic, TypeId};
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
        let (byte, word, array) = self.byte_types(bits);
        let at = |kind, ty: TypeIndex| Expr { kind, ty: TypeId(ty.0), span: mark.span };
        let mut statements = Vec::new();
        let number = self.keep(&mut statements, at(reinterpreted(value, scalar), word));
        let mut bytes = Vec::new();
        for shift in (0..bits.bits()).step_by(8) {
            let part = self.shifted(Binary::Shr, number.clone(), shift, mark);
            bytes.push(at(ExprKind::Cast(Box::new(part)), byte));
        }
        if order == ByteOrder::Big {
            bytes.reverse();
        }
        let value = Some(Box::new(at(ExprKind::Array(bytes), array)));
        Some((ExprKind::Block(Block { statements, value }), array))
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
        let (byte, word, array) = self.byte_types(bits);
        let (ty, usize) = (self.table.scalar(scalar), self.table.scalar(Scalar::Usize));
        let at = |kind, ty: TypeIndex| Expr { kind, ty: TypeId(ty.0), span: mark.span };
        let bytes = self.expr_of_type(bytes, array);
        let mut statements = Vec::new();
        let bytes = self.keep(&mut statements, bytes);
        let mut joined: Option<Expr> = None;
        for shift in (0..bits.bits()).step_by(8) {
            let place = if order == ByteOrder::Little { shift } else { bits.bits() - 8 - shift };
            let index = Box::new(self.integer(place / 8, usize, mark));
            let element = at(ExprKind::Index { base: Box::new(bytes.clone()), index }, byte);
            let part = at(ExprKind::Cast(Box::new(element)), word);
            let part = self.shifted(Binary::Shl, part, shift, mark);
            joined = Some(match joined {
                None => part,
                Some(before) => at(ExprKind::Binary(Binary::Or, Box::new(before), Box::new(part)), word),
            });
        }
        let value = Some(Box::new(at(reinterpreted(joined?, scalar), ty)));
        Some((ExprKind::Block(Block { statements, value }), ty))
    }

    /// Returns the types of a byte, of a word with the bits of a number, and of the word's bytes.
    fn byte_types(&mut self, bits: Scalar) -> (TypeIndex, TypeIndex, TypeIndex) {
        let (byte, word) = (self.table.scalar(Scalar::U8), self.table.scalar(bits));
        let size = self.table.add(Ty::Size(hir::Size::Known(bits.bits() / 8)));
        (byte, word, self.table.add(Ty::Array(byte, size)))
    }

    /// Returns a number shifted by a constant number of bits.
    fn shifted(&mut self, operator: Binary, number: Expr, bits: u32, mark: SpanPair) -> Expr {
        if bits == 0 {
            return number;
        }
        let (ty, span) = (number.ty, mark.span);
        let amount = self.table.scalar(Scalar::U32);
        let amount = Box::new(self.integer(bits, amount, mark));
        Expr { kind: ExprKind::Binary(operator, Box::new(number), amount), ty, span }
    }

    /// Returns an integer of a known type.
    fn integer(&mut self, value: u32, ty: TypeIndex, mark: SpanPair) -> Expr {
        let kind = self.literal(Literal::Integer(value.into(), mark));
        Expr { kind, ty: TypeId(ty.0), span: mark.span }
    }
}

/// Returns the bits of a number as a word, or a word as the number.
fn reinterpreted(value: Expr, number: Scalar) -> ExprKind {
    match number.is_float() {
        true => ExprKind::Intrinsic { intrinsic: Intrinsic::Bitcast, arguments: vec![value] },
        false => ExprKind::Cast(Box::new(value)),
    }
}

fn convert(value: Expr) -> ExprKind {
    ExprKind::Intrinsic { intrinsic: Intrinsic::Convert, arguments: vec![value] }
}
