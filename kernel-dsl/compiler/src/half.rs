//! The codes of 16-bit floats: `f16` (IEEE binary16) and `bf16` (the upper half of an `f32`).
//!
//! Decoding is exact. Encoding rounds to nearest even, keeps subnormals, and writes every NaN as
//! [`NAN`], like the conversions of the hardware. The interpreter and the passes use these
//! functions. Emission uses `cvt` for `f16`; lowering expresses [`bf16_from_f32`] in integer
//! operations, because sm_61 has no such conversion.

/// The code of the NaN that encoding writes, in both formats.
pub const NAN: u16 = 0x7FFF;

const SIGN: u32 = 0x8000_0000;
const F32_INFINITY: u32 = 0x7F80_0000;

/// Returns the value of an `f16` code. A NaN becomes quiet.
pub const fn f16_to_f32(code: u16) -> f32 {
    let sign = (code as u32) << 16 & SIGN;
    let magnitude = code as u32 & 0x7FFF;
    let bits = match magnitude {
        0x7C01.. => magnitude << 13 | F32_INFINITY | 0x0040_0000,
        0x7C00 => F32_INFINITY,
        // The bias of the exponent changes from 15 to 127.
        0x0400.. => (magnitude << 13) + (112 << 23),
        // A subnormal is a multiple of 2⁻²⁴.
        _ => (magnitude as f32 * f32::from_bits((127 - 24) << 23)).to_bits(),
    };
    f32::from_bits(sign | bits)
}

/// Returns the code of the `f16` nearest to `x`.
pub const fn f16_from_f32(x: f32) -> u16 {
    if x.is_nan() {
        return NAN;
    }
    let sign = (x.to_bits() & SIGN) >> 16;
    let magnitude = x.to_bits() & !SIGN;
    let code = match magnitude {
        // 2¹⁶ or more.
        0x4780_0000.. => 0x7C00,
        // At least 2⁻¹⁴: 13 bits are dropped. A carry out of the fraction correctly increments the
        // exponent, up to infinity.
        0x3880_0000.. => {
            let rebased = magnitude - (112 << 23);
            (rebased + 0x0FFF + (rebased >> 13 & 1)) >> 13
        }
        // Floats from ½ are 2⁻²⁴ apart, so the sum is rounded to a multiple of that.
        _ => (f32::from_bits(magnitude) + 0.5).to_bits() - 0.5f32.to_bits(),
    };
    (sign | code) as u16
}

/// Returns the value of a `bf16` code.
pub const fn bf16_to_f32(code: u16) -> f32 {
    f32::from_bits((code as u32) << 16)
}

/// Returns the code of the `bf16` nearest to `x`.
pub const fn bf16_from_f32(x: f32) -> u16 {
    if x.is_nan() {
        return NAN;
    }
    let bits = x.to_bits();
    ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16) as u16
}
