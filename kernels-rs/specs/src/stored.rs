//! What an instance's constants say, and values in the format that it stores.

use kernel_dsl::Float;
use kernel_dsl::compiler::Scalar;
use kernel_dsl::compiler::hir::{Constant, Instance};
use kernel_dsl::half::{bf16, f16};
use runtime::testing::{Draw, Extreme, Input, Random};

/// The instance's numbers and truths in order.
pub(super) fn numbers(instance: &Instance) -> Vec<usize> {
    let number = |c: &Constant| match c {
        Constant::Usize(n) => Some(*n as usize),
        Constant::Bool(b) => Some(usize::from(*b)),
        _ => None,
    };
    instance.0.iter().filter_map(number).collect()
}

/// The instance's scalar types in order.
pub(super) fn scalars(instance: &Instance) -> Vec<Scalar> {
    let scalar = |c: &Constant| if let Constant::Scalar(s) = c { Some(*s) } else { None };
    instance.0.iter().filter_map(scalar).collect()
}

/// What the arrays are stored as; the last one, where they differ.
pub(super) fn stored(instance: &Instance) -> Scalar {
    scalars(instance).last().copied().unwrap_or(Scalar::F32)
}

/// Ordinary values stored as `stored`: `elements` of them, seen by `strides`.
pub(super) fn drawn<const R: usize>(
    random: &mut Random,
    stored: Scalar,
    elements: usize,
    extents: [usize; R],
    strides: [usize; R],
) -> Input {
    match stored {
        Scalar::F16 => Input::strided(&random.values::<f16>(elements), extents, strides),
        Scalar::Bf16 => Input::strided(&random.values::<bf16>(elements), extents, strides),
        Scalar::I8 => Input::strided(&random.values::<i8>(elements), extents, strides),
        _ => Input::strided(&random.values::<f32>(elements), extents, strides),
    }
}

/// A matrix of `columns` values at the extremes of what is stored as `stored`: a row for each of
/// `all`, `pitch` elements apart.
pub(super) fn extreme_rows(
    random: &mut Random,
    stored: Scalar,
    all: &[Extreme],
    columns: usize,
    pitch: usize,
) -> Input {
    match stored {
        Scalar::F16 => Extreme::rows::<f16>(all, random, columns, pitch),
        Scalar::Bf16 => Extreme::rows::<bf16>(all, random, columns, pitch),
        _ => Extreme::rows::<f32>(all, random, columns, pitch),
    }
}

/// Values stored as `stored`, of which many are at the ends of the format, infinite or NaN: what is
/// moved and not computed with.
pub(super) fn specials<const R: usize>(
    random: &mut Random,
    stored: Scalar,
    elements: usize,
    extents: [usize; R],
    strides: [usize; R],
) -> Input {
    match stored {
        Scalar::F16 => Input::strided(&random.special_values::<f16>(elements), extents, strides),
        Scalar::Bf16 => Input::strided(&random.special_values::<bf16>(elements), extents, strides),
        Scalar::I8 => Input::strided(&random.special_values::<i8>(elements), extents, strides),
        _ => Input::strided(&random.special_values::<f32>(elements), extents, strides),
    }
}

/// An array stored as `stored` whose index along `axis` selects the extreme ([`Extreme::array`]).
pub(super) fn extreme<const R: usize>(
    random: &mut Random,
    all: &[Extreme],
    stored: Scalar,
    axis: usize,
    extents: [usize; R],
    strides: [usize; R],
) -> Input {
    match stored {
        Scalar::F16 => Extreme::array::<f16, R>(all, random, axis, extents, strides),
        Scalar::Bf16 => Extreme::array::<bf16, R>(all, random, axis, extents, strides),
        _ => Extreme::array::<f32, R>(all, random, axis, extents, strides),
    }
}

/// A matrix with one row for each extreme, stored as `stored`; NaNs between rows.
pub(super) fn extremes(random: &mut Random, all: &[Extreme], stored: Scalar, cols: usize, pitch: usize) -> Input {
    extreme(random, all, stored, 0, [all.len(), cols], [pitch, 1])
}

/// As [`drawn`], with the value that `at` has for some elements, by their number.
pub(super) fn drawn_but<const R: usize>(
    random: &mut Random,
    stored: Scalar,
    elements: usize,
    extents: [usize; R],
    strides: [usize; R],
    at: impl Fn(usize) -> Option<f32>,
) -> Input {
    fn values<T: Draw + Float>(random: &mut Random, n: usize, at: impl Fn(usize) -> Option<f32>) -> Vec<T> {
        random.values::<T>(n).into_iter().enumerate().map(|(i, x)| at(i).map_or(x, T::from_f32)).collect()
    }
    match stored {
        Scalar::F16 => Input::strided(&values::<f16>(random, elements, at), extents, strides),
        Scalar::Bf16 => Input::strided(&values::<bf16>(random, elements, at), extents, strides),
        _ => Input::strided(&values::<f32>(random, elements, at), extents, strides),
    }
}

/// What must be written and not read: NaNs stored as `stored`.
pub(super) fn unread<const R: usize>(
    stored: Scalar,
    elements: usize,
    extents: [usize; R],
    strides: [usize; R],
) -> Input {
    match stored {
        Scalar::F16 => Input::strided(&vec![f16::NAN; elements], extents, strides),
        Scalar::Bf16 => Input::strided(&vec![bf16::NAN; elements], extents, strides),
        _ => Input::strided(&vec![f32::NAN; elements], extents, strides),
    }
}

/// What the last rounding adds, to what is stored, of a value that is off by `off` already.
pub(super) fn at_rest(stored: Scalar, value: f64, off: f64) -> f64 {
    match stored {
        // 11 bits, and 2⁻²⁴ the least subnormal.
        Scalar::F16 => 1.001 * (value.abs() + off) / f64::from(1 << 11) + 2f64.powi(-25),
        // 8 bits, and the exponents of `f32`.
        Scalar::Bf16 => 1.001 * (value.abs() + off) / f64::from(1 << 8) + 2f64.powi(-134),
        _ => 0.0,
    }
}
