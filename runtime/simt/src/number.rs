//! Scalars of every type, converted from their bits to `f64` and to text.

use kernel_dsl_compiler::{Scalar, half};

/// Formats a scalar's value in Rust's syntax.
pub fn value(ty: Scalar, bits: u64) -> String {
    match ty {
        Scalar::F16 => format!("{:?}", half::f16_to_f32(bits as u16)),
        Scalar::Bf16 => format!("{:?}", half::bf16_to_f32(bits as u16)),
        Scalar::Custom(format) => format!("{:?}", format.decode(bits as u16)),
        Scalar::F32 => format!("{:?}", f32::from_bits(bits as u32)),
        Scalar::F64 => format!("{:?}", f64::from_bits(bits)),
        Scalar::I64 => (bits as i64).to_string(),
        Scalar::U64 => bits.to_string(),
        _ => to_f64(ty, bits).to_string(),
    }
}

/// Formats a scalar: its value, and the bits of a float.
pub fn show(ty: Scalar, bits: u64) -> String {
    let value = value(ty, bits);
    match ty.bits() {
        16 if ty.is_half() => format!("{value} ({bits:#06x})"),
        32 if ty.is_float() => format!("{value} ({bits:#010x})"),
        64 if ty.is_float() => format!("{value} ({bits:#018x})"),
        _ => value,
    }
}

/// Formats a scalar in short: its value, and the bits of a NaN.
pub fn short(ty: Scalar, bits: u64) -> String {
    let value = value(ty, bits);
    if value == "NaN" { show(ty, bits) } else { value }
}

/// Returns a scalar's value as `f64`.
pub fn to_f64(ty: Scalar, bits: u64) -> f64 {
    let unused = 64 - ty.bits();
    match ty {
        Scalar::F16 => f64::from(half::f16_to_f32(bits as u16)),
        Scalar::Bf16 => f64::from(half::bf16_to_f32(bits as u16)),
        Scalar::Custom(format) => f64::from(format.decode(bits as u16)),
        Scalar::F32 => f64::from(f32::from_bits(bits as u32)),
        Scalar::F64 => f64::from_bits(bits),
        _ if ty.is_signed() => ((bits << unused) as i64 >> unused) as f64,
        _ => (bits & ty.mask()) as f64,
    }
}
