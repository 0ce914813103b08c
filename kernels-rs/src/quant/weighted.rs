//! Products with weights of 8 and 4 bits.

use super::blocks::quantize_q8;
use super::blockwise::gemm_quantized;
use super::gemv::gemv_quantized;
use super::weights::{Format, Weights, padded};
use crate::Passed;
use crate::Queue;
use crate::access::rows_are_whole;
use crate::gemm::epilogue::{Epilogue, Identity};
use crate::operand::Operand;
use kernel_dsl::{Float, GenericArgument};
use runtime::{BufferView, BufferViewMut, Error};

impl Weights {
    /// Queues Y ← X·Wᵀ: X is [M, K], Y is [M, N].
    ///
    /// Each 32 numbers of a row of X are quantized to 8 bits by their largest magnitude A, or by
    /// 2⁻¹²⁰ where that is larger: what is multiplied differs from X by at most A / 254, and the
    /// product with a row by at most Σ A·|w| / 254. A NaN counts as 0, and an infinity makes its
    /// row of Y NaN. The sums of 32 products are exact; they are added in `f32`. Up to 8 rows are
    /// quantized in the product's own kernel; more are quantized before, by a launch and memory of
    /// their own.
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
        match self.format() {
            Format::Q8 => self.by_rows::<T, E, 8, true>(on, x, y, epilogue),
            Format::Q4 => self.by_rows::<T, E, 4, true>(on, x, y, epilogue),
            Format::Rows => self.by_rows::<T, E, 8, false>(on, x, y, epilogue),
        }
    }

    fn by_rows<T: Float + GenericArgument, E: Epilogue + Passed, const BITS: usize, const BLOCKS: bool>(
        &self,
        on: &impl Queue,
        x: &BufferView<'_, T, 2>,
        y: &mut BufferViewMut<'_, T, 2>,
        epilogue: E,
    ) -> Result<(), Error> {
        // Few rows of weights are shared among more warps. More columns a warp, where many rows
        // have to be quantized by each block.
        let narrow = self.extents()[0] < 32 * on.device().facts().multiprocessors as usize;
        // Of what has fewer scales, or fewer bytes, the block quantizes all of a row before it
        // begins.
        let long = x.extents()[1] > 4096 && (BITS == 4 || !BLOCKS);
        match (y.extents()[0], narrow) {
            (0..=1, true) => self.few::<T, E, BITS, BLOCKS, 1, 2, 256, 4096, 2>(on, x, y, epilogue),
            (0..=1, false) if long => self.few::<T, E, BITS, BLOCKS, 1, 4, 512, 8192, 2>(on, x, y, epilogue),
            (0..=1, false) => self.few::<T, E, BITS, BLOCKS, 1, 4, 512, 4096, 2>(on, x, y, epilogue),
            (2, _) => self.few::<T, E, BITS, BLOCKS, 2, 4, 256, 4096, 2>(on, x, y, epilogue),
            (3..=4, _) => self.few::<T, E, BITS, BLOCKS, 4, 4, 256, 2048, 1>(on, x, y, epilogue),
            // Of four bits, four columns beside eight rows are more than registers hold.
            (5..=8, _) if BITS == 4 => self.few::<T, E, BITS, BLOCKS, 8, 3, 256, 2048, 1>(on, x, y, epilogue),
            (5..=8, _) => self.few::<T, E, BITS, BLOCKS, 8, 4, 256, 2048, 1>(on, x, y, epilogue),
            _ => self.many::<T, E, BITS, BLOCKS>(on, x, y, epilogue),
        }
    }

    fn few<
        T: Float + GenericArgument,
        E: Epilogue + Passed,
        const BITS: usize,
        const BLOCKS: bool,
        const R: usize,
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
        let lent = self.lend(on)?;
        let (w, d, scales) = lent.views()?;
        // SAFETY: the launch compares the extents, and the kernel stays within them whatever its
        // numbers are stored as, as the oracle says of `f32` and `f16` (`kernels check`). What the
        // epilogue does is the caller's promise.
        unsafe {
            if rows_are_whole(x, 4) {
                gemv_quantized::<T, T, E, BITS, BLOCKS, R, W, THREADS, PIECE, AHEAD, 4>::launch_unchecked(
                    on, x, w, d, scales, y, epilogue,
                )
            } else {
                gemv_quantized::<T, T, E, BITS, BLOCKS, R, W, THREADS, PIECE, AHEAD, 1>::launch_unchecked(
                    on, x, w, d, scales, y, epilogue,
                )
            }
        }
    }

    fn many<T: Float + GenericArgument, E: Epilogue + Passed, const BITS: usize, const BLOCKS: bool>(
        &self,
        on: &impl Queue,
        x: &BufferView<'_, T, 2>,
        y: &mut BufferViewMut<'_, T, 2>,
        epilogue: E,
    ) -> Result<(), Error> {
        let (rows, wide) = (x.extents()[0], padded(self.extents()[1]));
        let mut qx = on.scratch::<i8>(rows * wide)?;
        let mut dx = on.scratch::<f32>(rows * wide / 32)?;
        eight_bits(on, x, qx.view_mut([rows, wide])?, dx.view_mut([rows, wide / 32])?)?;
        let lent = self.lend(on)?;
        let (w, d, scales) = lent.views()?;
        let (qx, dx) = (qx.view([rows, wide])?, dx.view([rows, wide / 32])?);
        // SAFETY: as in `few`.
        unsafe {
            if rows_are_whole(&*y, 4) {
                gemm_quantized::<T, E, BITS, BLOCKS, 4>::launch_unchecked(on, qx, dx, w, d, scales, y, epilogue)
            } else {
                gemm_quantized::<T, E, BITS, BLOCKS, 1>::launch_unchecked(on, qx, dx, w, d, scales, y, epilogue)
            }
        }
    }
}

/// Rows of numbers to Q8 planes.
pub(super) fn eight_bits<T: Float + GenericArgument, D: Float + GenericArgument>(
    on: &impl Queue,
    x: &BufferView<'_, T, 2>,
    quanta: BufferViewMut<'_, i8, 2>,
    d: BufferViewMut<'_, D, 2>,
) -> Result<(), Error> {
    // SAFETY: as in `Weights::from_q8`.
    unsafe {
        if rows_are_whole(x, 4) {
            quantize_q8::<T, D, 4>::launch_unchecked(on, x, quanta, d)
        } else {
            quantize_q8::<T, D, 1>::launch_unchecked(on, x, quanta, d)
        }
    }
}
