//! Products with weights in blocks.

use super::activations::quantize_activations;
use super::few::gemv_blocks;
use super::formats::device::BlockFormat;
use super::many::gemm_blocks;
use super::weights::{Format, Weights, with_format};
use crate::Passed;
use crate::access::rows_are_whole;
use crate::gemm::epilogue::{Epilogue, Identity};
use crate::operand::Operand;
use crate::{Memory, Queue};
use kernel_dsl::{Float, GenericArgument};
use runtime::{BufferView, BufferViewMut, Error};

impl Weights {
    /// Queues Y ← X·Wᵀ: X is [M, K], Y is [M, N].
    ///
    /// Each 32 numbers of a row of X are quantized to 8 bits by their largest magnitude A, or by
    /// 2⁻¹²⁰ where that is larger. What is multiplied differs from X by at most A / 254, and the
    /// product with a row by at most Σ A·|w| / 254. A NaN counts as 0, and an infinity makes its
    /// row of Y NaN. The sums of 32 products, or of 16 with a scale of their own, are exact; they
    /// are added in `f32`. A product of both scales is rounded before that, to a multiple of 2⁻¹⁴⁹
    /// if it is below 2⁻¹²⁶. A single row is quantized in the product's own kernel; more are
    /// quantized before, by a launch and memory of their own.
    ///
    /// # Errors
    /// Where the extents do not belong together, Y overlaps X, a buffer is another device's, or
    /// memory is short.
    pub fn product<T: Float + GenericArgument>(
        &self,
        on: &impl Queue,
        x: &BufferView<'_, T, 2>,
        y: &mut BufferViewMut<'_, T, 2>,
    ) -> Result<(), Error> {
        // SAFETY: this epilogue accesses nothing.
        unsafe { self.product_with(on, x, y, Identity) }
    }

    /// Queues Y ← epilogue(X·Wᵀ), where Y is the one matrix of a batch.
    ///
    /// # Safety
    /// As for [`Gemm::run_with`](crate::gemm::Gemm::run_with).
    ///
    /// # Errors
    /// As for [`product`](Weights::product).
    pub unsafe fn product_with<T: Float + GenericArgument, E: Epilogue + Passed>(
        &self,
        on: &impl Queue,
        x: &BufferView<'_, T, 2>,
        y: &mut BufferViewMut<'_, T, 2>,
        epilogue: E,
    ) -> Result<(), Error> {
        let ([rows, _], [of_y, cols]) = (x.extents(), self.extents());
        x.expected("x", [rows, cols], "a number for each column of the weights")?;
        y.expected("y", [rows, of_y], "a row for each of x, with a number for each row of the weights")?;
        with_format!(self.format(), F => self.by_rows::<T, E, F>(on, x, y, epilogue))
    }

    fn by_rows<T: Float + GenericArgument, E: Epilogue + Passed, F: BlockFormat + GenericArgument>(
        &self,
        on: &impl Queue,
        x: &BufferView<'_, T, 2>,
        y: &mut BufferViewMut<'_, T, 2>,
        epilogue: E,
    ) -> Result<(), Error> {
        let ([m, k], [n, _]) = (x.extents(), self.extents());
        let multiprocessors = on.device().facts().multiprocessors as usize;
        // Few rows of weights are shared among more warps.
        let narrow = n < 32 * multiprocessors;
        // Units of few registers: two of them in flight for each row of weights, and four rows
        // beside four of activations.
        let light = matches!(self.format(), Format::Q4_0 | Format::Iq4Nl | Format::Iq4Xs | Format::Mxfp4);
        let heavy = matches!(self.format(), Format::Q3K | Format::Q6K);
        // Tiles of many rows, once they are enough to share.
        let tiles = m.div_ceil(64) * n.div_ceil(128);
        if m >= 128 || m > 32 && tiles >= multiprocessors {
            return self.many::<T, E, F>(on, x, y, epilogue);
        }
        // Groups of up to 8 rows, as equal as can be.
        match m.div_ceil(m.div_ceil(8).max(1)) {
            0..=1 if narrow => self.one::<T, E, F, 2, 256, 4096, 2>(on, x, y, epilogue),
            0..=1 if light && k > 4096 => self.one::<T, E, F, 4, 512, 8192, 2>(on, x, y, epilogue),
            0..=1 if light => self.one::<T, E, F, 4, 512, 4096, 2>(on, x, y, epilogue),
            0..=1 => self.one::<T, E, F, 4, 512, 4096, 1>(on, x, y, epilogue),
            2 if light => self.few::<T, E, F, 2, 4, 8, 2>(on, x, y, epilogue),
            2 => self.few::<T, E, F, 2, 3, 6, 2>(on, x, y, epilogue),
            3 if light => self.few::<T, E, F, 3, 4, 12, 4>(on, x, y, epilogue),
            3 => self.few::<T, E, F, 3, 3, 9, 4>(on, x, y, epilogue),
            4 if light => self.few::<T, E, F, 4, 4, 16, 4>(on, x, y, epilogue),
            4 => self.few::<T, E, F, 4, 3, 12, 4>(on, x, y, epilogue),
            5 => self.few::<T, E, F, 5, 3, 15, 8>(on, x, y, epilogue),
            6 => self.few::<T, E, F, 6, 3, 18, 8>(on, x, y, epilogue),
            7 => self.few::<T, E, F, 7, 3, 21, 8>(on, x, y, epilogue),
            // Units of the most registers.
            _ if heavy => self.few::<T, E, F, 8, 2, 16, 8>(on, x, y, epilogue),
            _ => self.few::<T, E, F, 8, 3, 24, 8>(on, x, y, epilogue),
        }
    }

    /// Queues a product of a row, which each block quantizes for itself.
    fn one<
        T: Float + GenericArgument,
        E: Epilogue + Passed,
        F: BlockFormat + GenericArgument,
        const W: usize,
        const THREADS: usize,
        const PIECE: usize,
        const AHEAD: usize,
    >(
        &self,
        on: &impl Queue,
        x: &BufferView<'_, T, 2>,
        y: &mut BufferViewMut<'_, T, 2>,
        epilogue: E,
    ) -> Result<(), Error> {
        let lent = self.lend::<F>(on)?;
        let (words, halves, scales) = lent.views()?;
        let (bytes, factors) = (on.scratch::<i32>(0)?, on.scratch::<f32>(0)?);
        let (bytes, factors) = (bytes.view([0, 0])?, factors.view([0, 0])?);
        // SAFETY: the launch compares the extents, and the kernel stays within them whatever its
        // numbers are stored as, as the oracle says of `f32` and `f16` (`kernels check`). What the
        // epilogue does is the caller's promise.
        unsafe {
            if rows_are_whole(x, 4) {
                gemv_blocks::<F, T, T, E, true, 1, W, THREADS, PIECE, AHEAD, 4, W, 1>::launch_unchecked(
                    on, x, bytes, factors, words, halves, lent.units, scales, y, epilogue,
                )
            } else {
                gemv_blocks::<F, T, T, E, true, 1, W, THREADS, PIECE, AHEAD, 1, W, 1>::launch_unchecked(
                    on, x, bytes, factors, words, halves, lent.units, scales, y, epilogue,
                )
            }
        }
    }

    /// Queues a product of groups of `R` rows, with room for `ROOM`: `N` is R · W.
    fn few<
        T: Float + GenericArgument,
        E: Epilogue + Passed,
        F: BlockFormat + GenericArgument,
        const R: usize,
        const W: usize,
        const N: usize,
        const ROOM: usize,
    >(
        &self,
        on: &impl Queue,
        x: &BufferView<'_, T, 2>,
        y: &mut BufferViewMut<'_, T, 2>,
        epilogue: E,
    ) -> Result<(), Error> {
        let lent = self.lend::<F>(on)?;
        let (words, halves, scales) = lent.views()?;
        let none = on.scratch::<f32>(0)?;
        let staged = Staged::new(on, x, [R, ROOM], lent.units)?;
        let (bytes, factors) = staged.views()?;
        // SAFETY: as in `one`.
        unsafe {
            gemv_blocks::<F, f32, T, E, false, R, W, 256, 2048, 1, 4, N, ROOM>::launch_unchecked(
                on,
                none.view([0, 0])?,
                bytes,
                factors,
                words,
                halves,
                lent.units,
                scales,
                y,
                epilogue,
            )
        }
    }

    /// Queues a product of tiles of 64 rows.
    fn many<T: Float + GenericArgument, E: Epilogue + Passed, F: BlockFormat + GenericArgument>(
        &self,
        on: &impl Queue,
        x: &BufferView<'_, T, 2>,
        y: &mut BufferViewMut<'_, T, 2>,
        epilogue: E,
    ) -> Result<(), Error> {
        let lent = self.lend::<F>(on)?;
        let (words, halves, scales) = lent.views()?;
        let staged = Staged::new(on, x, [64, 64], lent.units)?;
        let (bytes, factors) = staged.views()?;
        // SAFETY: as in `one`.
        unsafe {
            if rows_are_whole(&*y, 4) {
                gemm_blocks::<F, T, E, 4>::launch_unchecked(
                    on, bytes, factors, words, halves, lent.units, scales, y, epilogue,
                )
            } else {
                gemm_blocks::<F, T, E, 1>::launch_unchecked(
                    on, bytes, factors, words, halves, lent.units, scales, y, epilogue,
                )
            }
        }
    }
}

/// Activations that were quantized for a product.
struct Staged {
    groups: usize,
    /// Units of a group, with room for its rows.
    units: usize,
    bytes: Memory<i32>,
    factors: Memory<f32>,
}

impl Staged {
    /// Queues the quantization of `x` in groups of `rows` rows with room for `room`.
    fn new<T: Float + GenericArgument>(
        on: &impl Queue,
        x: &BufferView<'_, T, 2>,
        [rows, room]: [usize; 2],
        units: usize,
    ) -> Result<Staged, Error> {
        let (groups, units) = (x.extents()[0].div_ceil(rows), room * units);
        let mut bytes = on.scratch::<i32>(groups * 8 * units)?;
        let mut factors = on.scratch::<f32>(groups * 4 * units)?;
        let (to_bytes, to_factors) = (bytes.view_mut([groups, 8 * units])?, factors.view_mut([groups, 4 * units])?);
        // SAFETY: as in `Weights::from_blocks`.
        unsafe {
            if rows_are_whole(x, 4) {
                quantize_activations::<T, 4>::launch_unchecked(on, x, rows, room, to_bytes, to_factors)?;
            } else {
                quantize_activations::<T, 1>::launch_unchecked(on, x, rows, room, to_bytes, to_factors)?;
            }
        }
        Ok(Staged { groups, units, bytes, factors })
    }

    fn views(&self) -> Result<(BufferView<'_, i32, 2>, BufferView<'_, f32, 2>), Error> {
        Ok((self.bytes.view([self.groups, 8 * self.units])?, self.factors.view([self.groups, 4 * self.units])?))
    }
}
