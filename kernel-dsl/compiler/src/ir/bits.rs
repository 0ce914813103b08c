//! Integer operations of a single machine instruction beyond Rust's operators.

use crate::integer;
use crate::scalar::Scalar;
use serde::{Deserialize, Serialize};

/// An operation on integers. The module [`integer`] defines the result of each.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Bits {
    /// c + Σ aₖ·bₖ over four bytes: a and b are words, whose bytes are signed if the word is
    /// signed. c and the result are signed if a or b is.
    Dot4,
    /// c + Σ aₖ·bₖ over the two halves of a and two bytes of b; types as of `Dot4`.
    #[allow(missing_docs)]
    Dot2 { high: bool },
    /// Bytes of two words by a `u32` of selectors.
    Permute,
    /// The upper word of high:low shifted left, by a distance mod 32; all `u32`.
    FunnelLeft,
    /// The lower word of high:low shifted right, by a distance mod 32; all `u32`.
    FunnelRight,
    /// A field of an integer of 32 or 64 bits. Position and length are `u32`.
    Extract,
    /// The second operand with a field replaced by the low bits of the first. Both have 32 or 64
    /// bits; position and length are `u32`.
    Insert,
    /// The upper half of the product; integers of 32 and 64 bits.
    MultiplyHigh,
    /// The low word of the product of the low 24 bits; integers of 32 bits.
    Multiply24,
    /// The sum of two `i32`, saturated to the range of `i32`.
    SaturatingAdd,
    /// The difference of two `i32`, saturated to the range of `i32`.
    SaturatingSub,
    /// Four integers of 8 bits, or two of 16, joined to a `u32`, or to an `i32` if they are signed.
    /// The first is lowest.
    Join,
}

/// Returns whether the type is `i32` or `u32`.
fn is_word(ty: Scalar) -> bool {
    matches!(ty, Scalar::I32 | Scalar::U32)
}

impl Bits {
    /// All operations.
    pub const ALL: [Bits; 13] = [
        Bits::Dot4,
        Bits::Dot2 { high: false },
        Bits::Dot2 { high: true },
        Bits::Permute,
        Bits::FunnelLeft,
        Bits::FunnelRight,
        Bits::Extract,
        Bits::Insert,
        Bits::MultiplyHigh,
        Bits::Multiply24,
        Bits::SaturatingAdd,
        Bits::SaturatingSub,
        Bits::Join,
    ];

    /// Returns the name of the operation in the text of IR.
    pub const fn name(self) -> &'static str {
        match self {
            Bits::Dot4 => "dot4",
            Bits::Dot2 { high: false } => "dot2_low",
            Bits::Dot2 { high: true } => "dot2_high",
            Bits::Permute => "permute",
            Bits::FunnelLeft => "funnel_left",
            Bits::FunnelRight => "funnel_right",
            Bits::Extract => "extract",
            Bits::Insert => "insert",
            Bits::MultiplyHigh => "multiply_high",
            Bits::Multiply24 => "multiply_24",
            Bits::SaturatingAdd => "saturating_add",
            Bits::SaturatingSub => "saturating_sub",
            Bits::Join => "join",
        }
    }

    /// Returns the result type for operands of these types, or `None` if the operation does not
    /// take them.
    pub fn result(self, types: &[Scalar]) -> Option<Scalar> {
        let register = |ty: Scalar| ty.is_integer() && ty != Scalar::Usize && ty.bits() >= 32;
        match (self, types) {
            (Bits::Dot4 | Bits::Dot2 { .. }, &[a, b, c]) if is_word(a) && is_word(b) => {
                let sum = if a.is_signed() || b.is_signed() { Scalar::I32 } else { Scalar::U32 };
                (c == sum).then_some(sum)
            }
            (Bits::Permute, &[a, b, Scalar::U32]) if is_word(a) && a == b => Some(a),
            (Bits::FunnelLeft | Bits::FunnelRight, [Scalar::U32, Scalar::U32, Scalar::U32]) => Some(Scalar::U32),
            (Bits::Extract, &[of, Scalar::U32, Scalar::U32]) if register(of) => Some(of),
            (Bits::Insert, &[bits, into, Scalar::U32, Scalar::U32]) if register(into) && bits == into => Some(into),
            (Bits::MultiplyHigh, &[a, b]) if register(a) && a == b => Some(a),
            (Bits::Multiply24, &[a, b]) if is_word(a) && a == b => Some(a),
            (Bits::SaturatingAdd | Bits::SaturatingSub, [Scalar::I32, Scalar::I32]) => Some(Scalar::I32),
            (Bits::Join, [a, rest @ ..])
                if a.is_integer() && a.bits() * types.len() as u32 == 32 && !rest.is_empty() =>
            {
                let word = if a.is_signed() { Scalar::I32 } else { Scalar::U32 };
                rest.iter().all(|b| a == b).then_some(word)
            }
            _ => None,
        }
    }

    /// Computes the operation on operands of these types, which it must take. Operands and result
    /// are bits, zero-extended to 64.
    #[inline(always)]
    pub fn evaluate(self, types: &[Scalar], operands: &[u64]) -> Option<u64> {
        let word = |k: usize| operands[k] as u32;
        let signs = || [types[0].is_signed(), types[1].is_signed()];
        Some(match (self, operands.len()) {
            (Bits::Dot4, 3) => integer::dot4([word(0), word(1)], signs(), word(2)).into(),
            (Bits::Dot2 { high }, 3) => integer::dot2([word(0), word(1)], signs(), word(2), high).into(),
            (Bits::Permute, 3) => integer::permute(word(0), word(1), word(2)).into(),
            (Bits::FunnelLeft, 3) => integer::funnel_left(word(0), word(1), word(2)).into(),
            (Bits::FunnelRight, 3) => integer::funnel_right(word(0), word(1), word(2)).into(),
            (Bits::Extract, 3) => {
                integer::extract(operands[0], types[0].bits(), types[0].is_signed(), word(1), word(2))
            }
            (Bits::Insert, 4) => integer::insert(operands[0], operands[1], types[1].bits(), word(2), word(3)),
            (Bits::MultiplyHigh, 2) => {
                integer::multiply_high(operands[0], operands[1], types[0].bits(), types[0].is_signed())
            }
            (Bits::Multiply24, 2) => integer::multiply_24(word(0), word(1), types[0].is_signed()).into(),
            (Bits::SaturatingAdd, 2) => ((word(0) as i32).saturating_add(word(1) as i32) as u32).into(),
            (Bits::SaturatingSub, 2) => ((word(0) as i32).saturating_sub(word(1) as i32) as u32).into(),
            (Bits::Join, _) => integer::join(operands, types[0].bits()),
            _ => return None,
        })
    }
}
