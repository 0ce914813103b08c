//! Methods of integers in the conditions of a launch.

use super::evaluate::{Evaluated, fit, integer, invalid, overflow};
use crate::Scalar;
use crate::hir::Method;

/// Evaluates `method` of a receiver and its arguments. Returns the type and bits of the result.
pub(super) fn evaluate(method: Method, all: &[(Scalar, u64)]) -> Evaluated<(Scalar, u64)> {
    let Some(&(ty, bits)) = all.first() else { return invalid("calls a method without a receiver") };
    if !ty.is_integer() {
        return invalid(format!("calls a method of `{ty}` that only the device can evaluate"));
    }
    let a = integer(ty, bits);
    let argument = |i: usize| match all.get(i) {
        Some(&(other, bits)) if other.is_integer() => Ok(integer(other, bits)),
        _ => invalid("calls a method without its argument"),
    };
    let width = ty.bits();
    let (of, result) = match method {
        Method::AbsDiff => {
            let of = match ty {
                Scalar::I8 => Scalar::U8,
                Scalar::I16 => Scalar::U16,
                Scalar::I32 => Scalar::U32,
                Scalar::I64 => Scalar::U64,
                unsigned => unsigned,
            };
            (of, (a - argument(1)?).abs())
        }
        Method::Clamp => (ty, a.max(argument(1)?).min(argument(2)?)),
        Method::CountOnes => (Scalar::U32, bits.count_ones().into()),
        Method::LeadingZeros => (Scalar::U32, (bits.leading_zeros() - (64 - width)).into()),
        Method::TrailingZeros => (Scalar::U32, bits.trailing_zeros().min(width).into()),
        Method::IsPowerOfTwo => (Scalar::Bool, i128::from(bits.count_ones() == 1)),
        Method::NextPowerOfTwo => (ty, a.max(1).unsigned_abs().next_power_of_two() as i128),
        Method::Pow => (ty, a.checked_pow(argument(1)? as u32).unwrap_or(i128::MAX)),
        Method::SaturatingAdd => (ty, (a + argument(1)?).min(ty.mask().into())),
        Method::Signum => (ty, a.signum()),
        Method::DivEuclid | Method::RemEuclid => match (argument(1)?, method) {
            (0, _) => return invalid("divides by zero"),
            (b, Method::DivEuclid) => (ty, a.div_euclid(b)),
            (b, _) => (ty, a.rem_euclid(b)),
        },
        _ => return invalid("calls a method that only the device can evaluate"),
    };
    match (of, fit(of, result)) {
        (Scalar::Bool, _) => Ok((Scalar::Bool, result as u64)),
        (_, Some(bits)) => Ok((of, bits)),
        (_, None) => invalid(overflow(of, result)),
    }
}
