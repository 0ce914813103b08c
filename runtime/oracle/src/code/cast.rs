//! [`Op::Cast`](kernel_dsl_compiler::ir::Op::Cast): Rust's `as` between every two scalar types
//! that have it, and `f16` to and from `f32`.

use crate::code::frame::{LANES, LaneWord, Row};
use crate::code::lanes::versions;
use kernel_dsl_compiler::{Scalar, half};

versions! {
    /// `to` ← `a` as the type `into`. Registers are given by row; `to` lies above `a`.
    fn cast(rows: &mut [Row], from: Scalar, into: Scalar, to: u32, a: u32);
}

/// Returns whether there is a cast between the types.
pub fn exists(from: Scalar, into: Scalar) -> bool {
    match (from, into) {
        (Scalar::F16, Scalar::F32) | (Scalar::F32, Scalar::F16) => true,
        _ if from.is_half() || into.is_half() => from == into,
        (_, Scalar::Bool) => from == Scalar::Bool,
        (Scalar::Bool, _) => into.is_integer(),
        _ => true,
    }
}

/// Returns whether a cast of `bits`, a value of `from`, to integer type `into` loses information.
/// An integer loses information if neither zero nor sign extension of the result restores it. A
/// float loses information if it is NaN, or if its truncated value is out of range.
pub fn is_lossy(from: Scalar, into: Scalar, bits: u64) -> bool {
    if !into.is_integer() {
        return false;
    }
    let width = into.bits();
    let float = match from {
        Scalar::F32 => f32::from_bits(bits as u32).into(),
        Scalar::F64 => f64::from_bits(bits),
        _ if from.is_integer() && from.bits() > width => {
            // The bits cut off are zeros, or copies of the highest bit that is kept.
            let all = u64::MAX >> (64 - from.bits());
            let (cut, signs) = (all & !(u64::MAX >> (64 - width)), all & !(u64::MAX >> (65 - width)));
            return bits & cut != 0 && bits & signs != signs;
        }
        _ => return false,
    };
    let (least, behind) = match into.is_signed() {
        true => (-2f64.powi(width as i32 - 1), 2f64.powi(width as i32 - 1)),
        false => (0.0, 2f64.powi(width as i32)),
    };
    !(least..behind).contains(&float.trunc())
}

#[inline(always)]
fn map<A: LaneWord, T: LaneWord>(rows: &mut [Row], to: u32, a: u32, f: impl Fn(A) -> T) {
    let (operands, results) = rows.split_at_mut(to as usize);
    let a = A::lanes(operands, a as usize);
    let to = T::lanes_mut(results, 0);
    for l in 0..LANES {
        to[l] = f(a[l]);
    }
}

#[inline(always)]
fn cast(rows: &mut [Row], from: Scalar, into: Scalar, to: u32, a: u32) {
    // $word is the type of a lane, $load the expression for the source value.
    macro_rules! from {
        ($word:ty, $w:ident => $load:expr) => {
            match into {
                Scalar::I8 => map(rows, to, a, |$w: $word| u32::from($load as i8 as u8)),
                Scalar::I16 => map(rows, to, a, |$w: $word| u32::from($load as i16 as u16)),
                Scalar::I32 => map(rows, to, a, |$w: $word| $load as i32 as u32),
                Scalar::I64 => map(rows, to, a, |$w: $word| $load as i64 as u64),
                Scalar::U8 => map(rows, to, a, |$w: $word| u32::from($load as u8)),
                Scalar::U16 => map(rows, to, a, |$w: $word| u32::from($load as u16)),
                Scalar::U32 | Scalar::Usize => map(rows, to, a, |$w: $word| $load as u32),
                Scalar::U64 => map(rows, to, a, |$w: $word| $load as u64),
                Scalar::F32 => map(rows, to, a, |$w: $word| ($load as f32).to_bits()),
                Scalar::F64 => map(rows, to, a, |$w: $word| ($load as f64).to_bits()),
                // A cast to one of these types is from the type itself; a `bool` is 0 or 1 already.
                // The IR has no `u128`.
                Scalar::Bool | Scalar::F16 | Scalar::Bf16 | Scalar::Custom(_) | Scalar::U128 => {
                    map(rows, to, a, |w: u32| w)
                }
            }
        };
    }
    match (from, into) {
        (Scalar::F16, Scalar::F32) => return map(rows, to, a, |w: u32| half::f16_to_f32(w as u16).to_bits()),
        (Scalar::F32, Scalar::F16) => {
            return map(rows, to, a, |w: u32| u32::from(half::f16_from_f32(f32::from_bits(w))));
        }
        _ => {}
    }
    match from {
        Scalar::F16
        | Scalar::Bf16
        | Scalar::Custom(_)
        | Scalar::Bool
        | Scalar::U8
        | Scalar::U16
        | Scalar::U32
        | Scalar::Usize => {
            from!(u32, w => w)
        }
        Scalar::I8 => from!(u32, w => (w as i8)),
        Scalar::I16 => from!(u32, w => (w as i16)),
        Scalar::I32 => from!(u32, w => (w as i32)),
        Scalar::I64 => from!(u64, w => (w as i64)),
        Scalar::U64 | Scalar::U128 => from!(u64, w => w),
        Scalar::F32 => from!(u32, w => f32::from_bits(w)),
        Scalar::F64 => from!(u64, w => f64::from_bits(w)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cast with `as` and back restores the operand, truncated, where nothing is lost.
    #[test]
    fn lossy_conversions_are_detected() {
        let edges = [
            0.0, -0.0, 0.5, -0.5, -1.0, 127.0, 127.9, 128.0, -128.9, -129.0, 255.5, 256.0, 65535.0, 1e9, 3e9, 5e9,
            -1e30,
        ];
        for x in edges.into_iter().chain([f32::NAN, f32::INFINITY, 2147483648.0, -2147483648.0, 9.3e18, 1.9e19]) {
            let (bits, whole) = (u64::from(x.to_bits()), f64::from(x).trunc());
            macro_rules! held {
                ($($ty:ident $scalar:ident),*) => {$(
                    // No float is the largest 64-bit integer: larger floats lose information.
                    let back = (x as $ty) as i128 as f64 == whole && whole < ($ty::MAX as i128 + 1) as f64;
                    assert_eq!(is_lossy(Scalar::F32, Scalar::$scalar, bits), !back, "{x} as {}", stringify!($ty));
                    let wide = f64::from(x).to_bits();
                    assert_eq!(is_lossy(Scalar::F64, Scalar::$scalar, wide), !back, "{x} as {}", stringify!($ty));
                )*};
            }
            held!(i8 I8, u8 U8, i16 I16, u16 U16, i32 I32, u32 U32, i64 I64, u64 U64);
        }
        for x in
            [0i64, 1, -1, 127, 128, 255, 256, -128, -129, -256, 65535, 65536, 1 << 31, 1 << 32, -(1 << 31), i64::MIN]
        {
            let lost = |back: [i64; 2]| !back.contains(&x);
            assert_eq!(
                is_lossy(Scalar::I64, Scalar::I8, x as u64),
                lost([(x as i8).into(), (x as u8).into()]),
                "{x} as i8"
            );
            assert_eq!(
                is_lossy(Scalar::I64, Scalar::U16, x as u64),
                lost([(x as i16).into(), (x as u16).into()]),
                "{x}"
            );
            assert_eq!(
                is_lossy(Scalar::I64, Scalar::U32, x as u64),
                lost([(x as i32).into(), (x as u32).into()]),
                "{x}"
            );
            let y = x as u32;
            let back = [(y as i8) as i32 as u32, u32::from(y as u8)].contains(&y);
            assert_eq!(is_lossy(Scalar::U32, Scalar::I8, y.into()), !back, "{y} as i8");
            assert!(!is_lossy(Scalar::U32, Scalar::I32, y.into()) && !is_lossy(Scalar::I32, Scalar::F32, y.into()));
        }
    }
}
