//! [`Op::Cast`](kernel_dsl::compiler::ir::Op::Cast): Rust's `as` between every two scalar types that have it, and `f16`
//! to and from `f32`.

use super::frame::{LANES, Row, Word};
use super::lanes::versions;
use kernel_dsl::compiler::{Scalar, half};

versions! {
    /// `to` ← `a` as the type `into`. Registers are given by row; `to` lies above `a`.
    fn cast(rows: &mut [Row], from: Scalar, into: Scalar, to: u32, a: u32);
}

/// Whether there is a cast between the types.
pub fn exists(from: Scalar, into: Scalar) -> bool {
    match (from, into) {
        (Scalar::F16, Scalar::F32) | (Scalar::F32, Scalar::F16) => true,
        _ if from.is_half() || into.is_half() => from == into,
        (_, Scalar::Bool) => from == Scalar::Bool,
        (Scalar::Bool, _) => into.is_integer(),
        _ => true,
    }
}

#[inline(always)]
fn map<A: Word, T: Word>(rows: &mut [Row], to: u32, a: u32, f: impl Fn(A) -> T) {
    let (operands, results) = rows.split_at_mut(to as usize);
    let a = A::lanes(operands, a as usize);
    let to = T::lanes_mut(results, 0);
    for l in 0..LANES {
        to[l] = f(a[l]);
    }
}

#[inline(always)]
fn cast(rows: &mut [Row], from: Scalar, into: Scalar, to: u32, a: u32) {
    // $word is what the lane holds, $load how to see the source type in it.
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
                // Only from the type itself: `bool` is 0 or 1 already.
                Scalar::Bool | Scalar::F16 | Scalar::Bf16 | Scalar::Custom(_) => map(rows, to, a, |w: u32| w),
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
        Scalar::U64 => from!(u64, w => w),
        Scalar::F32 => from!(u32, w => f32::from_bits(w)),
        Scalar::F64 => from!(u64, w => f64::from_bits(w)),
    }
}
