//! Scalars of every type from their bits, as `f64` and in words.

use kernel_dsl::compiler::{Scalar, half};

/// A scalar in as few words as tell it from others.
pub fn short(ty: Scalar, bits: u64) -> String {
    let text = show(ty, bits);
    // The bits stand behind a float's value, and tell NaNs apart alone.
    let value = text.split_once(" (").map_or(&text[..], |(value, _)| value);
    if value == "NaN" { text } else { value.to_string() }
}

/// A scalar's value as `f64`.
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

/// A scalar in words: its value, and the bits where a float's value does not say all.
pub fn show(ty: Scalar, bits: u64) -> String {
    match ty {
        Scalar::F16 => format!("{:?} ({bits:#06x})", half::f16_to_f32(bits as u16)),
        Scalar::Bf16 => format!("{:?} ({bits:#06x})", half::bf16_to_f32(bits as u16)),
        Scalar::Custom(format) => format!("{:?} ({bits:#06x})", format.decode(bits as u16)),
        Scalar::F32 => format!("{:?} ({bits:#010x})", f32::from_bits(bits as u32)),
        Scalar::F64 => format!("{:?} ({bits:#018x})", f64::from_bits(bits)),
        Scalar::I64 => (bits as i64).to_string(),
        Scalar::U64 => bits.to_string(),
        _ => to_f64(ty, bits).to_string(),
    }
}
