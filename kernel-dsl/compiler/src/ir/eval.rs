//! Semantics of operations on constants. Values are bits, zero-extended to 64.
//!
//! `None` means that the types do not fit, or that the IR leaves the result unspecified (division
//! by zero, the bits of a NaN). Float arithmetic is Rust's own, which is IEEE 754.

use super::{Binary, Comparison, Unary};
use crate::half;
use crate::scalar::Scalar;

/// Returns an integer's value from its bits.
pub fn integer(ty: Scalar, bits: u64) -> i128 {
    if ty.is_signed() {
        let unused = 64 - ty.bits();
        i128::from(((bits << unused) as i64) >> unused)
    } else {
        i128::from(bits)
    }
}

/// Returns the bits of an integer of type `ty`, wrapped.
fn wrap(ty: Scalar, value: i128) -> u64 {
    value as u64 & ty.mask()
}

fn f32_bits(x: f32) -> Option<u64> {
    (!x.is_nan()).then(|| u64::from(x.to_bits()))
}

fn f64_bits(x: f64) -> Option<u64> {
    (!x.is_nan()).then(|| x.to_bits())
}

/// Computes the smaller or larger value. A NaN is ignored if the other value is a number; −0 is
/// below +0.
macro_rules! extreme {
    ($a:expr, $b:expr, $max:expr) => {{
        let (a, b) = ($a, $b);
        if a.is_nan() {
            b
        } else if b.is_nan() || (a < b) != $max && a != b || a == b && a.is_sign_negative() != $max {
            a
        } else {
            b
        }
    }};
}

macro_rules! float_unary {
    ($op:expr, $x:expr, $bits:ident) => {
        match $op {
            Unary::Neg => $bits(-$x),
            Unary::Abs => $bits($x.abs()),
            Unary::Sqrt => $bits($x.sqrt()),
            Unary::Floor => $bits($x.floor()),
            Unary::Ceil => $bits($x.ceil()),
            Unary::Trunc => $bits($x.trunc()),
            Unary::RoundEven => $bits($x.round_ties_even()),
            Unary::Not | Unary::CountOnes | Unary::LeadingZeros | Unary::ReverseBits | Unary::SwapBytes => None,
        }
    };
}

/// Applies `op` to a value of type `ty`.
pub fn unary(op: Unary, ty: Scalar, bits: u64) -> Option<u64> {
    match ty {
        Scalar::F32 => float_unary!(op, f32::from_bits(bits as u32), f32_bits),
        Scalar::F64 => float_unary!(op, f64::from_bits(bits), f64_bits),
        _ => match op {
            Unary::Neg => Some(wrap(ty, -integer(ty, bits))),
            Unary::Not => Some(!bits & ty.mask()),
            Unary::Abs => Some(wrap(ty, integer(ty, bits).abs())),
            Unary::CountOnes => Some(u64::from(bits.count_ones())),
            Unary::LeadingZeros => Some(u64::from(bits.leading_zeros() - (64 - ty.bits()))),
            Unary::ReverseBits => Some(bits.reverse_bits() >> (64 - ty.bits())),
            Unary::SwapBytes => Some(bits.swap_bytes() >> (64 - ty.bits())),
            _ => None,
        },
    }
}

macro_rules! float_binary {
    ($op:expr, $a:expr, $b:expr, $bits:ident) => {{
        let (a, b) = ($a, $b);
        match $op {
            Binary::Add => $bits(a + b),
            Binary::Sub => $bits(a - b),
            Binary::Mul => $bits(a * b),
            Binary::Div => $bits(a / b),
            Binary::Rem => $bits(a % b),
            Binary::Min => $bits(extreme!(a, b, false)),
            Binary::Max => $bits(extreme!(a, b, true)),
            _ => None,
        }
    }};
}

/// Applies `op` to two values of type `ty`; for shifts the second is a `u32`.
pub fn binary(op: Binary, ty: Scalar, a: u64, b: u64) -> Option<u64> {
    match ty {
        Scalar::F32 => return float_binary!(op, f32::from_bits(a as u32), f32::from_bits(b as u32), f32_bits),
        Scalar::F64 => return float_binary!(op, f64::from_bits(a), f64::from_bits(b), f64_bits),
        _ => {}
    }
    let shift = b as u32 & (ty.bits() - 1);
    let (x, y) = (integer(ty, a), integer(ty, b));
    let least = ty.is_signed() && x == -(1i128 << (ty.bits() - 1));
    Some(match op {
        Binary::Add | Binary::WrappingAdd => wrap(ty, x + y),
        Binary::Sub | Binary::WrappingSub => wrap(ty, x - y),
        Binary::Mul | Binary::WrappingMul => wrap(ty, x.wrapping_mul(y)),
        Binary::Div | Binary::Rem if y == 0 || least && y == -1 => return None,
        Binary::Div => wrap(ty, x / y),
        Binary::Rem => wrap(ty, x % y),
        Binary::Min => wrap(ty, x.min(y)),
        Binary::Max => wrap(ty, x.max(y)),
        Binary::And => a & b,
        Binary::Or => a | b,
        Binary::Xor => a ^ b,
        Binary::Shl | Binary::WrappingShl => wrap(ty, x << shift),
        Binary::Shr | Binary::WrappingShr => wrap(ty, x >> shift),
        Binary::RotateLeft if ty.bits() == 32 => u64::from((a as u32).rotate_left(shift)),
        Binary::RotateLeft if ty.bits() == 64 => a.rotate_left(shift),
        Binary::RotateLeft => return None,
    })
}

/// Returns a · b + c, rounded once.
pub fn mul_add(ty: Scalar, a: u64, b: u64, c: u64) -> Option<u64> {
    let single = |x: u64| f32::from_bits(x as u32);
    match ty {
        Scalar::F32 => f32_bits(single(a).mul_add(single(b), single(c))),
        Scalar::F64 => f64_bits(f64::from_bits(a).mul_add(f64::from_bits(b), f64::from_bits(c))),
        _ => None,
    }
}

/// Returns whether `a op b` holds of values of type `ty`.
pub fn compare(op: Comparison, ty: Scalar, a: u64, b: u64) -> bool {
    let order = match ty {
        Scalar::F32 => f32::from_bits(a as u32).partial_cmp(&f32::from_bits(b as u32)),
        Scalar::F64 => f64::from_bits(a).partial_cmp(&f64::from_bits(b)),
        _ => Some(integer(ty, a).cmp(&integer(ty, b))),
    };
    match op {
        Comparison::Eq => order.is_some_and(|o| o.is_eq()),
        Comparison::Ne => order.is_none_or(|o| o.is_ne()),
        Comparison::Lt => order.is_some_and(|o| o.is_lt()),
        Comparison::Le => order.is_some_and(|o| o.is_le()),
        Comparison::Gt => order.is_some_and(|o| o.is_gt()),
        Comparison::Ge => order.is_some_and(|o| o.is_ge()),
    }
}

/// Converts a value as Rust's `as` does.
pub fn cast(from: Scalar, to: Scalar, bits: u64) -> Option<u64> {
    let saturate = |x: f64| {
        let (low, high) = if to.is_signed() {
            (-(1i128 << (to.bits() - 1)), (1i128 << (to.bits() - 1)) - 1)
        } else {
            (0, i128::from(to.mask()))
        };
        // `as i128` saturates too, and makes 0 of a NaN.
        wrap(to, (x as i128).clamp(low, high))
    };
    match (from, to) {
        _ if from == to => Some(bits),
        (Scalar::F16, Scalar::F32) => f32_bits(half::f16_to_f32(bits as u16)),
        (Scalar::F32, Scalar::F16) => Some(u64::from(half::f16_from_f32(f32::from_bits(bits as u32)))),
        _ if from.is_half() || to.is_half() => None,
        (Scalar::F32, Scalar::F64) => f64_bits(f64::from(f32::from_bits(bits as u32))),
        (Scalar::F64, Scalar::F32) => f32_bits(f64::from_bits(bits) as f32),
        (Scalar::F32, _) => Some(saturate(f64::from(f32::from_bits(bits as u32)))),
        (Scalar::F64, _) => Some(saturate(f64::from_bits(bits))),
        (_, Scalar::F32) => f32_bits(integer(from, bits) as f32),
        (_, Scalar::F64) => f64_bits(integer(from, bits) as f64),
        _ => Some(wrap(to, integer(from, bits))),
    }
}
