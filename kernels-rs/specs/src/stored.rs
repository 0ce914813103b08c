//! The constants of an instance, and values in its storage format.

use kernel_dsl::Float;
use kernel_dsl::compiler::Scalar;
use kernel_dsl::compiler::hir::{Constant, Instance};
use kernel_dsl::half::{bf16, f16};
use runtime::testing::{Draw, Extreme, Input, Random};

/// Returns the instance's numbers and truth values in order.
pub(super) fn numbers(instance: &Instance) -> Vec<usize> {
    let number = |c: &Constant| match c {
        Constant::Usize(n) => Some(*n as usize),
        Constant::Bool(b) => Some(usize::from(*b)),
        _ => None,
    };
    instance.0.iter().filter_map(number).collect()
}

/// Returns the instance's scalar types in order.
pub(super) fn scalars(instance: &Instance) -> Vec<Scalar> {
    let scalar = |c: &Constant| if let Constant::Scalar(s) = c { Some(*s) } else { None };
    instance.0.iter().filter_map(scalar).collect()
}

/// Returns the storage format of the arrays: the last one if they differ.
pub(super) fn stored(instance: &Instance) -> Scalar {
    scalars(instance).last().copied().unwrap_or(Scalar::F32)
}

/// Returns ordinary values stored as `stored`: `elements` of them, viewed with `strides`.
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

/// Returns values stored as `stored`, many of them at the ends of the format, infinite or NaN, for
/// kernels that only copy.
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

/// Returns an array stored as `stored` whose index along `axis` selects the extreme
/// ([`Extreme::array`]).
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

/// Returns a matrix stored as `stored` with one row for each extreme; rows are `pitch` elements
/// apart, with NaNs between them.
pub(super) fn extremes(random: &mut Random, all: &[Extreme], stored: Scalar, cols: usize, pitch: usize) -> Input {
    extreme(random, all, stored, 0, [all.len(), cols], [pitch, 1])
}

/// Returns values as [`drawn`] does, with `at` providing some elements, by their number.
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

/// Returns `x` stored as `stored`, without gaps.
pub(super) fn rounded<const R: usize>(stored: Scalar, x: &[f32], extents: [usize; R]) -> Input {
    fn values<T: Float>(x: &[f32]) -> Vec<T> {
        x.iter().map(|x| T::from_f32(*x)).collect()
    }
    match stored {
        Scalar::F16 => Input::view(&values::<f16>(x), extents),
        Scalar::Bf16 => Input::view(&values::<bf16>(x), extents),
        _ => Input::view(x, extents),
    }
}

/// Returns NaNs stored as `stored`, for an output that must be written and not read.
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

/// Returns the error bound after the last rounding to `stored`, for a value with the error `off`.
pub(super) fn at_rest(stored: Scalar, value: f64, off: f64) -> f64 {
    match stored {
        // 11 bits; the least subnormal is 2⁻²⁴.
        Scalar::F16 => 1.001 * (value.abs() + off) / f64::from(1 << 11) + 2f64.powi(-25),
        // 8 bits, and the exponents of `f32`.
        Scalar::Bf16 => 1.001 * (value.abs() + off) / f64::from(1 << 8) + 2f64.powi(-134),
        _ => 0.0,
    }
}
