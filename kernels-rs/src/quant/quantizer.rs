//! Scales and zero points as one calls for them.

use super::affine::{affine_fit, dequantize_affine, extremes, quantize_affine};
use crate::access::rows_are_whole;
use crate::operand::Operand;
use crate::{Memory, Queue};
use kernel_dsl::{Float, GenericArgument};
use runtime::{BufferView, BufferViewMut, Error};

/// How bytes stand for numbers: x ≈ scale · (q − zero), one scale and zero point for a matrix, or
/// one for each of its rows.
///
/// A finite number of those that it was fitted to comes back within half a scale, and what is
/// rounded; of 16-bit floats as ∞, where that is beyond their largest.
///
/// | x | scale and zero point | byte | comes back as |
/// |---|---|---|---|
/// | huge, up to ±`f32::MAX` | finite, though high − low may not be | as of other numbers | at most `f32::MAX` in magnitude |
/// | tiny, subnormal | at least 2⁻¹⁴⁹; a subnormal scale is rounded up | as of other numbers | as other numbers |
/// | 0, −0, nothing | 0 and 0 where there is nothing else | the zero point | 0 |
/// | ±∞ | does not count | the largest or the least | as that |
/// | NaN | does not count | 0 | scale · (0 − zero) |
///
/// Either extent may be 0. A matrix has at most 2³¹ − 1 rows.
///
/// ```
/// # fn main() -> Result<(), runtime::Error> {
/// use kernels_rs::quant::Affine;
/// let device = runtime::Device::cpu();
/// let x = device.upload(&[-127.0f32, 3.0, 0.25, 0.5])?;
/// let rows = Affine::fit_rows(&device, &x.view([2, 2])?, true)?;
/// let mut q = device.zeros::<i8>(4)?;
/// rows.quantize(&device, &x.view([2, 2])?, &mut q.view_mut([2, 2])?)?;
/// assert_eq!(q.download()?, [-127, 3, 64, 127]);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Affine {
    /// What a unit stands for.
    pub scale: Memory<f32>,
    /// The byte that stands for 0.
    pub zero: Memory<i32>,
}

impl Affine {
    /// Returns the scale and zero point for the extremes of the whole matrix. If `symmetric`, the
    /// zero point is 0, and the scale is the largest magnitude / 127. Otherwise the scale is the
    /// range, including 0, / 255.
    ///
    /// # Errors
    /// Where memory is short, or `x` is another device's.
    pub fn fit<T: Float + GenericArgument>(
        on: &impl Queue,
        x: &BufferView<'_, T, 2>,
        symmetric: bool,
    ) -> Result<Affine, Error> {
        Affine::of_parts(on, x, symmetric, false)
    }

    /// Returns a scale for each row, by the extremes of that row, as [`fit`](Affine::fit) does.
    ///
    /// # Errors
    /// Returns the errors of [`fit`](Affine::fit).
    pub fn fit_rows<T: Float + GenericArgument>(
        on: &impl Queue,
        x: &BufferView<'_, T, 2>,
        symmetric: bool,
    ) -> Result<Affine, Error> {
        Affine::of_parts(on, x, symmetric, true)
    }

    /// Queues q ← x / scale, rounded to even, + zero, saturated.
    ///
    /// # Errors
    /// Where the extents do not belong together, or a buffer is another device's.
    pub fn quantize<T: Float + GenericArgument>(
        &self,
        on: &impl Queue,
        x: &BufferView<'_, T, 2>,
        q: &mut BufferViewMut<'_, i8, 2>,
    ) -> Result<(), Error> {
        q.expected("q", x.extents(), "a byte for each element of x")?;
        self.of_rows(x)?;
        let four = rows_are_whole(x, 4) && rows_are_whole(&*q, 4);
        let (scale, zero) = self.views()?;
        // SAFETY: the launch compares the extents, and the kernel stays within them whatever its
        // numbers are stored as, as the oracle says of `f32` and `f16` (`kernels check`).
        unsafe {
            if four {
                quantize_affine::<T, 4>::launch_unchecked(on, x, scale, zero, q)
            } else {
                quantize_affine::<T, 1>::launch_unchecked(on, x, scale, zero, q)
            }
        }
    }

    /// Queues x ← scale · (q − zero).
    ///
    /// # Errors
    /// Returns the errors of [`quantize`](Affine::quantize).
    pub fn dequantize<T: Float + GenericArgument>(
        &self,
        on: &impl Queue,
        q: &BufferView<'_, i8, 2>,
        x: &mut BufferViewMut<'_, T, 2>,
    ) -> Result<(), Error> {
        x.expected("x", q.extents(), "a number for each byte of q")?;
        self.of_rows(q)?;
        let four = rows_are_whole(q, 4) && rows_are_whole(&*x, 4);
        let (scale, zero) = self.views()?;
        // SAFETY: as in `quantize`.
        unsafe {
            if four {
                dequantize_affine::<T, 4>::launch_unchecked(on, q, scale, zero, x)
            } else {
                dequantize_affine::<T, 1>::launch_unchecked(on, q, scale, zero, x)
            }
        }
    }

    /// Rejects a matrix with another number of rows than scales, where there are several.
    fn of_rows(&self, matrix: &impl Operand<2>) -> Result<(), Error> {
        let ([[rows, _], _], n, zeros) = (matrix.layout(), self.scale.len(), self.zero.len());
        if (n == 1 || n == rows) && zeros == n {
            return Ok(());
        }
        Err(matrix.refused(format!(
            "{n} scales and {zeros} zero points are given for {rows} rows; expected one of each for all rows, or one for each row"
        )))
    }

    fn views(&self) -> Result<(BufferView<'_, f32, 1>, BufferView<'_, i32, 1>), Error> {
        Ok((self.scale.view([self.scale.len()])?, self.zero.view([self.zero.len()])?))
    }

    fn of_parts<T: Float + GenericArgument>(
        on: &impl Queue,
        x: &BufferView<'_, T, 2>,
        symmetric: bool,
        each: bool,
    ) -> Result<Affine, Error> {
        let [rows, cols] = x.extents();
        x.startable([rows, 1, 1], format_args!("{rows} rows"))?;
        // Enough blocks to keep memory busy, each with pieces of 1024 elements.
        let enough = 16 * on.device().facts().multiprocessors as usize;
        let parts = cols.div_ceil(1024).min(enough.div_ceil(rows.max(1))).max(1);
        let (mut lows, mut highs) = (on.scratch::<f32>(rows * parts)?, on.scratch::<f32>(rows * parts)?);
        {
            let (lows, highs) = (&mut lows.view_mut([rows, parts])?, &mut highs.view_mut([rows, parts])?);
            // SAFETY: as in `quantize`.
            unsafe {
                if rows_are_whole(x, 4) {
                    extremes::<T, 4>::launch_unchecked(on, x, lows, highs)?;
                } else {
                    extremes::<T, 1>::launch_unchecked(on, x, lows, highs)?;
                }
            }
        }
        // Those of a matrix are one row.
        let shape = if each { [rows, parts] } else { [1, rows * parts] };
        let n = shape[0];
        let (mut scale, mut zero) = (on.scratch(n)?, on.scratch(n)?);
        let (lows, highs) = (lows.view(shape)?, highs.view(shape)?);
        let (to_scale, to_zero) = (scale.view_mut([n])?, zero.view_mut([n])?);
        // SAFETY: as in `quantize`.
        unsafe {
            if symmetric {
                affine_fit::<true>::launch_unchecked(on, lows, highs, to_scale, to_zero)?;
            } else {
                affine_fit::<false>::launch_unchecked(on, lows, highs, to_scale, to_zero)?;
            }
        }
        Ok(Affine { scale, zero })
    }
}
