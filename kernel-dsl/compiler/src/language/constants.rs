//! The associated constants of the number types.

use crate::Scalar;

/// Returns the type and bits of an associated constant such as `f32::INFINITY` or
/// `core::f32::consts::PI`.
pub fn constant(path: &str) -> Option<(Scalar, u128)> {
    let path = path.strip_prefix("core::").or_else(|| path.strip_prefix("std::")).unwrap_or(path);
    let (ty, name) = path.split_once("::")?;
    let ty = Scalar::from_name(ty)?;
    let bits = match ty {
        Scalar::F32 => u64::from(float32(name)?.to_bits()),
        Scalar::F64 => float64(name)?.to_bits(),
        Scalar::F16 => half(name, [0x3C00, 0x7C00, 0x7BFF, 0x0400, 0x1400, 0x7E00])?,
        Scalar::Bf16 => half(name, [0x3F80, 0x7F80, 0x7F7F, 0x0080, 0x3C00, 0x7FC0])?,
        Scalar::Bool | Scalar::Usize => return None,
        Scalar::U128 => match name {
            "MAX" => return Some((ty, u128::MAX)),
            "MIN" => 0,
            "BITS" => return Some((Scalar::U32, ty.bits().into())),
            _ => return None,
        },
        integer => {
            let max = if integer.is_signed() { integer.mask() >> 1 } else { integer.mask() };
            match name {
                "MAX" => max,
                "MIN" => integer.mask() & !max,
                "BITS" => return Some((Scalar::U32, integer.bits().into())),
                _ => return None,
            }
        }
    };
    Some((ty, bits.into()))
}

/// Returns the bits of a constant of a 16-bit float. The array holds the values that depend on the
/// format.
fn half(name: &str, [one, infinity, max, min_positive, epsilon, nan]: [u16; 6]) -> Option<u64> {
    const NEGATIVE: u16 = 0x8000;
    Some(u64::from(match name {
        "ZERO" => 0,
        "NEG_ZERO" => NEGATIVE,
        "ONE" => one,
        "NEG_ONE" => NEGATIVE | one,
        "INFINITY" => infinity,
        "NEG_INFINITY" => NEGATIVE | infinity,
        "MAX" => max,
        "MIN" => NEGATIVE | max,
        "MIN_POSITIVE" => min_positive,
        "EPSILON" => epsilon,
        "NAN" => nan,
        _ => return None,
    }))
}

macro_rules! float_constants {
    ($name:ident, $t:ident) => {
        fn $name(name: &str) -> Option<$t> {
            use core::$t::consts::*;
            Some(match name {
                "INFINITY" => $t::INFINITY,
                "NEG_INFINITY" => $t::NEG_INFINITY,
                "NAN" => $t::NAN,
                "MAX" => $t::MAX,
                "MIN" => $t::MIN,
                "MIN_POSITIVE" => $t::MIN_POSITIVE,
                "EPSILON" => $t::EPSILON,
                "consts::PI" => PI,
                "consts::TAU" => TAU,
                "consts::E" => E,
                "consts::LN_2" => LN_2,
                "consts::LN_10" => LN_10,
                "consts::LOG2_E" => LOG2_E,
                "consts::LOG2_10" => LOG2_10,
                "consts::LOG10_E" => LOG10_E,
                "consts::LOG10_2" => LOG10_2,
                "consts::SQRT_2" => SQRT_2,
                "consts::FRAC_1_SQRT_2" => FRAC_1_SQRT_2,
                "consts::FRAC_1_PI" => FRAC_1_PI,
                "consts::FRAC_2_PI" => FRAC_2_PI,
                "consts::FRAC_2_SQRT_PI" => FRAC_2_SQRT_PI,
                "consts::FRAC_PI_2" => FRAC_PI_2,
                "consts::FRAC_PI_4" => FRAC_PI_4,
                _ => return None,
            })
        }
    };
}
float_constants!(float32, f32);
float_constants!(float64, f64);
