//! Calls that compute scales and zero points, and quantize with them.

use super::affine::{affine_fit, dequantize_affine, extremes, quantize_affine};
use crate::access::WholeRows;
use crate::operand::ArrayOperand;
use crate::queue::LibraryCall;
use crate::{Queue, QueueMemory};
use kernel_dsl::{Float, GenericArgument};
use runtime::{BufferView, BufferViewMut, Error};

/// The affine quantization of bytes: x ≈ scale · (q − zero), with one scale and zero point for a
/// matrix, or for each row.
///
/// A finite number of the fitted matrix is restored within half a scale and the rounding of its
/// type. A 16-bit float whose restored value exceeds the largest one becomes ∞.
///
/// | x | scale and zero point | byte | restored as |
/// |---|---|---|---|
/// | huge, up to ±`f32::MAX` | finite, even if high − low is not | as for other numbers | at most `f32::MAX` in magnitude |
/// | tiny, subnormal | at least 2⁻¹⁴⁹; a subnormal scale is rounded up | as for other numbers | as other numbers |
/// | 0, −0, nothing | 0 and 0 if all numbers are zeros | the zero point | 0 |
/// | ±∞ | is ignored | the largest or the least | as that byte |
/// | NaN | is ignored | 0 | scale · (0 − zero) |
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
    /// The difference between the values of neighboring bytes.
    pub scale: QueueMemory<f32>,
    /// The byte whose value is 0.
    pub zero: QueueMemory<i32>,
}

impl Affine {
    /// Computes one scale and zero point from the extremes of x, [rows, columns]. If `symmetric`,
    /// the zero point is 0 and the scale is the largest magnitude / 127. Otherwise the scale is the
    /// range, 0 included, / 255.
    ///
    /// # Errors
    /// Fails if memory is insufficient, or if `x` belongs to another device.
    pub fn fit<T: Float + GenericArgument>(
        on: &impl Queue,
        x: &BufferView<'_, T, 2>,
        symmetric: bool,
    ) -> Result<Affine, Error> {
        Affine::of_parts(on, x, symmetric, false)
    }

    /// Computes a scale and zero point for each row, as [`fit`](Affine::fit) does for the matrix.
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

    /// Queues q ← x / scale, rounded to even, + zero, saturated. q and x are [rows, columns].
    ///
    /// # Errors
    /// Returns an error if extents differ, or a buffer belongs to another device.
    pub fn quantize<T: Float + GenericArgument>(
        &self,
        on: &impl Queue,
        x: &BufferView<'_, T, 2>,
        q: &mut BufferViewMut<'_, i8, 2>,
    ) -> Result<(), Error> {
        q.expected("q", x.extents(), "a byte for each element of x")?;
        self.of_rows(x)?;
        let four = x.rows_are_whole(4) && q.rows_are_whole(4);
        let (scale, zero) = self.views()?;
        // SAFETY: the launch compares the extents, and the kernel's accesses stay within them for
        // any storage format. The oracle checks that for `f32` and `f16` (`kernels check`).
        unsafe {
            if four {
                quantize_affine::<T, 4>::launch_unchecked(&LibraryCall(on), x, scale, zero, q)
            } else {
                quantize_affine::<T, 1>::launch_unchecked(&LibraryCall(on), x, scale, zero, q)
            }
        }
    }

    /// Queues x ← scale · (q − zero). x and q are [rows, columns].
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
        let four = q.rows_are_whole(4) && x.rows_are_whole(4);
        let (scale, zero) = self.views()?;
        // SAFETY: as in `quantize`.
        unsafe {
            if four {
                dequantize_affine::<T, 4>::launch_unchecked(&LibraryCall(on), q, scale, zero, x)
            } else {
                dequantize_affine::<T, 1>::launch_unchecked(&LibraryCall(on), q, scale, zero, x)
            }
        }
    }

    /// Rejects a matrix with another number of rows than scales, if there are several scales.
    fn of_rows(&self, matrix: &impl ArrayOperand<2>) -> Result<(), Error> {
        let ([[rows, _], _], n, zeros) = (matrix.layout(), self.scale.len(), self.zero.len());
        if (n == 1 || n == rows) && zeros == n {
            return Ok(());
        }
        Err(matrix.refused_operand(format!(
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
        x.check_grid([rows, 1, 1], format_args!("{rows} rows"))?;
        // Enough blocks to keep memory busy, each with pieces of 1024 elements.
        let enough = 16 * on.device().facts().multiprocessors as usize;
        let parts = cols.div_ceil(1024).min(enough.div_ceil(rows.max(1))).max(1);
        let (mut lows, mut highs) = (on.scratch::<f32>(rows * parts)?, on.scratch::<f32>(rows * parts)?);
        {
            let (lows, highs) = (&mut lows.view_mut([rows, parts])?, &mut highs.view_mut([rows, parts])?);
            // SAFETY: as in `quantize`.
            unsafe {
                if x.rows_are_whole(4) {
                    extremes::<T, 4>::launch_unchecked(&LibraryCall(on), x, lows, highs)?;
                } else {
                    extremes::<T, 1>::launch_unchecked(&LibraryCall(on), x, lows, highs)?;
                }
            }
        }
        // For a single scale, the extremes of all rows are one row.
        let shape = if each { [rows, parts] } else { [1, rows * parts] };
        let n = shape[0];
        let (mut scale, mut zero) = (on.scratch(n)?, on.scratch(n)?);
        let (lows, highs) = (lows.view(shape)?, highs.view(shape)?);
        let (to_scale, to_zero) = (scale.view_mut([n])?, zero.view_mut([n])?);
        // SAFETY: as in `quantize`.
        unsafe {
            if symmetric {
                affine_fit::<true>::launch_unchecked(&LibraryCall(on), lows, highs, to_scale, to_zero)?;
            } else {
                affine_fit::<false>::launch_unchecked(&LibraryCall(on), lows, highs, to_scale, to_zero)?;
            }
        }
        Ok(Affine { scale, zero })
    }
}
