//! Weights of 8 and 4 bits on the device, and products with them.

use super::blocks::{Q4Block, Q8Block, dequantise, quantise_q4, quantise_q8, repack_q4, repack_q8, repack_rows};
use super::blockwise::gemm_quantised;
use super::gemv::gemv_quantised;
use crate::Queue;
use crate::gemm::Fused;
use crate::gemm::epilogue::{Epilogue, Identity};
use kernel_dsl::half::f16;
use kernel_dsl::launcher::{Argument, ViewArgument};
use kernel_dsl::{Float, GenericArgument};
use runtime::{BufferView, BufferViewMut, Device, DeviceBuffer, Error};

/// What weights are stored as.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// Blocks of 32 bytes with a scale in `f16`: 8.5 bits a weight.
    Q8,
    /// Blocks of 32 numbers of four bits with a scale in `f16`: 4.5 bits a weight.
    Q4,
    /// Bytes with a scale in `f32` for each row.
    Rows,
}

/// A matrix of weights, [N, K], as planes: its integers with a row at every multiple of 16 bytes, its scales apart.
///
/// K needs not be a multiple of 32: what fills a row's last block is zeros.
///
/// ```
/// # fn main() -> Result<(), runtime::Error> {
/// use kernels_rs::quant::Weights;
/// let device = runtime::Device::cpu();
/// // Two rows of 32 weights, one activation of each sign.
/// let w = device.upload(&(0..64).map(|i| (i % 8) as f32).collect::<Vec<_>>())?;
/// let x = device.upload(&(0..32).map(|i| if i < 2 { 1.0 - 2.0 * i as f32 } else { 0.0 }).collect::<Vec<f32>>())?;
/// let weights = Weights::quantise_q8(&device, &w.view([2, 32])?)?;
/// let mut y = device.zeros::<f32>(2)?;
/// weights.product(&device, &x.view([1, 32])?, &mut y.view_mut([1, 2])?)?;
/// // Row · x is 0 − 1; q is 18 where it stands for 1, and the unit 7 / 127.
/// assert!(y.download()?.iter().all(|y| (y + 1.0).abs() < 0.01));
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Weights {
    format: Format,
    rows: usize,
    cols: usize,
    quanta: DeviceBuffer<i8>,
    d: DeviceBuffer<f16>,
    scales: DeviceBuffer<f32>,
}

impl Weights {
    /// From a file's blocks, [N, K / 32].
    ///
    /// # Errors
    /// Where memory is short, or the blocks are another device's.
    pub fn from_q8(on: &impl Queue, blocks: &BufferView<'_, Q8Block, 2>) -> Result<Weights, Error> {
        let [rows, n] = blocks.extents();
        let mut to = Weights::new(on.device(), Format::Q8, [rows, 32 * n])?;
        let (mut quanta, mut d) = to.planes_mut()?;
        // SAFETY: the launch compares the extents, and the kernel stays within them, as the oracle says (`kernels check`).
        unsafe { repack_q8::launch_unchecked(on, blocks, &mut quanta, &mut d) }?;
        Ok(to)
    }

    /// From a file's blocks, [N, K / 32].
    ///
    /// # Errors
    /// As for [`from_q8`](Weights::from_q8).
    pub fn from_q4(on: &impl Queue, blocks: &BufferView<'_, Q4Block, 2>) -> Result<Weights, Error> {
        let [rows, n] = blocks.extents();
        let mut to = Weights::new(on.device(), Format::Q4, [rows, 32 * n])?;
        let (mut quanta, mut d) = to.planes_mut()?;
        // SAFETY: as in `from_q8`.
        unsafe { repack_q4::launch_unchecked(on, blocks, &mut quanta, &mut d) }?;
        Ok(to)
    }

    /// From bytes, [N, K], and what a unit of each row stands for.
    ///
    /// # Errors
    /// As for [`from_q8`](Weights::from_q8). That there is a scale for each row is looked at where a product is queued.
    pub fn from_rows(
        on: &impl Queue,
        rows: &BufferView<'_, i8, 2>,
        scales: DeviceBuffer<f32>,
    ) -> Result<Weights, Error> {
        let mut to = Weights { scales, ..Weights::new(on.device(), Format::Rows, rows.extents())? };
        let (mut quanta, _) = to.planes_mut()?;
        // SAFETY: as in `from_q8`.
        unsafe { repack_rows::launch_unchecked(on, rows, &mut quanta) }?;
        Ok(to)
    }

    /// Quantises each 32 numbers of a row by their largest magnitude: d is that / 127, rounded to `f16`.
    ///
    /// # Errors
    /// As for [`from_q8`](Weights::from_q8).
    pub fn quantise_q8<T: Float + GenericArgument>(
        on: &impl Queue,
        w: &BufferView<'_, T, 2>,
    ) -> Result<Weights, Error> {
        let mut to = Weights::new(on.device(), Format::Q8, w.extents())?;
        let (mut quanta, mut d) = to.planes_mut()?;
        eight_bits(on, w, &mut quanta, &mut d)?;
        Ok(to)
    }

    /// Quantises each 32 numbers of a row by the one of the largest magnitude, which becomes −8: d is that / −8, rounded to `f16`.
    ///
    /// # Errors
    /// As for [`from_q8`](Weights::from_q8).
    pub fn quantise_q4<T: Float + GenericArgument>(
        on: &impl Queue,
        w: &BufferView<'_, T, 2>,
    ) -> Result<Weights, Error> {
        let mut to = Weights::new(on.device(), Format::Q4, w.extents())?;
        let (mut quanta, mut d) = to.planes_mut()?;
        // SAFETY: as in `from_q8`.
        unsafe { quantise_q4::<T>::launch_unchecked(on, w, &mut quanta, &mut d) }?;
        Ok(to)
    }

    /// What they are stored as.
    #[must_use]
    pub fn format(&self) -> Format {
        self.format
    }

    /// N and K.
    #[must_use]
    pub fn extents(&self) -> [usize; 2] {
        [self.rows, self.cols]
    }

    /// Their numbers, [N, K]: d·q, exact in `f32`. Of [`Format::Rows`] this is an error.
    ///
    /// # Errors
    /// Where `to` has other extents or overlaps, or is another device's.
    pub fn dequantise<T: Float + GenericArgument>(
        &self,
        on: &impl Queue,
        to: &mut BufferViewMut<'_, T, 2>,
    ) -> Result<(), Error> {
        let (quanta, d) = self.planes()?;
        // SAFETY: as in `from_q8`.
        unsafe {
            match self.format {
                Format::Q4 => dequantise::<T, 4>::launch_unchecked(on, &quanta, &d, to),
                Format::Q8 | Format::Rows => dequantise::<T, 8>::launch_unchecked(on, &quanta, &d, to),
            }
        }
    }

    /// Queues Y ← X·Wᵀ: X is [M, K], Y is [M, N].
    ///
    /// Each 32 numbers of a row of X are quantised to 8 bits by their largest magnitude A: what is multiplied differs from X by at most A / 254, and
    /// the product with a row by at most Σ A·|w| / 254. The sums of 32 products are exact; they are added in `f32`. Up to 8 rows are quantised
    /// in the product's own kernel; more are quantised before, by a launch and memory of their own.
    ///
    /// # Errors
    /// Where the extents do not belong together, Y overlaps X, a buffer is another device's, or memory is short.
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
    pub unsafe fn product_with<T: Float + GenericArgument, E: Epilogue + Fused>(
        &self,
        on: &impl Queue,
        x: &BufferView<'_, T, 2>,
        y: &mut BufferViewMut<'_, T, 2>,
        epilogue: E,
    ) -> Result<(), Error> {
        match self.format {
            Format::Q8 => self.by_rows::<T, E, 8, true>(on, x, y, epilogue),
            Format::Q4 => self.by_rows::<T, E, 4, true>(on, x, y, epilogue),
            Format::Rows => self.by_rows::<T, E, 8, false>(on, x, y, epilogue),
        }
    }

    fn by_rows<T: Float + GenericArgument, E: Epilogue + Fused, const BITS: usize, const BLOCKS: bool>(
        &self,
        on: &impl Queue,
        x: &BufferView<'_, T, 2>,
        y: &mut BufferViewMut<'_, T, 2>,
        epilogue: E,
    ) -> Result<(), Error> {
        // Few rows of weights are shared among more warps.
        let narrow = self.rows < 32 * on.device().facts().multiprocessors as usize;
        match (y.extents()[0], narrow) {
            (0..=1, true) => self.few::<T, E, BITS, BLOCKS, 1, 1, 4096>(on, x, y, epilogue),
            (0..=1, false) => self.few::<T, E, BITS, BLOCKS, 1, 4, 4096>(on, x, y, epilogue),
            (2, _) => self.few::<T, E, BITS, BLOCKS, 2, 4, 4096>(on, x, y, epilogue),
            (3..=4, _) => self.few::<T, E, BITS, BLOCKS, 4, 2, 2048>(on, x, y, epilogue),
            (5..=8, _) => self.few::<T, E, BITS, BLOCKS, 8, 2, 2048>(on, x, y, epilogue),
            _ => self.many::<T, E, BITS, BLOCKS>(on, x, y, epilogue),
        }
    }

    fn few<
        T: Float + GenericArgument,
        E: Epilogue + Fused,
        const BITS: usize,
        const BLOCKS: bool,
        const R: usize,
        const W: usize,
        const PIECE: usize,
    >(
        &self,
        on: &impl Queue,
        x: &BufferView<'_, T, 2>,
        y: &mut BufferViewMut<'_, T, 2>,
        epilogue: E,
    ) -> Result<(), Error> {
        let (w, d) = self.planes()?;
        let scales = &self.scales;
        // SAFETY: the launch compares the extents, and the kernel stays within them whatever its numbers are stored as, as the oracle says of
        // `f32` and `f16` (`kernels check`). What the epilogue does is the caller's promise.
        unsafe {
            if quads(x) {
                gemv_quantised::<T, T, E, BITS, BLOCKS, R, W, PIECE, 4>::launch_unchecked(
                    on, x, &w, &d, scales, y, epilogue,
                )
            } else {
                gemv_quantised::<T, T, E, BITS, BLOCKS, R, W, PIECE, 1>::launch_unchecked(
                    on, x, &w, &d, scales, y, epilogue,
                )
            }
        }
    }

    fn many<T: Float + GenericArgument, E: Epilogue + Fused, const BITS: usize, const BLOCKS: bool>(
        &self,
        on: &impl Queue,
        x: &BufferView<'_, T, 2>,
        y: &mut BufferViewMut<'_, T, 2>,
        epilogue: E,
    ) -> Result<(), Error> {
        let (rows, wide) = (x.extents()[0], self.cols.next_multiple_of(32));
        let mut qx = on.device().alloc::<i8>(rows * wide)?;
        let mut dx = on.device().alloc::<f32>(rows * wide / 32)?;
        let pitch = [wide.max(32), 1];
        eight_bits(on, x, &mut qx.view_strided_mut([rows, wide], pitch)?, &mut dx.view_mut([rows, wide / 32])?)?;
        let (w, d) = self.planes()?;
        // SAFETY: as in `few`.
        unsafe {
            gemm_quantised::<T, E, BITS, BLOCKS>::launch_unchecked(
                on,
                &qx.view_strided([rows, wide], pitch)?,
                &dx.view([rows, wide / 32])?,
                &w,
                &d,
                &self.scales,
                y,
                epilogue,
            )
        }
    }

    /// Planes for numbers of these extents.
    fn new(device: &Device, format: Format, [rows, cols]: [usize; 2]) -> Result<Weights, Error> {
        let blocks = rows * cols.div_ceil(32);
        let quanta = device.alloc(blocks * format.bytes())?;
        let d = device.alloc(if format == Format::Rows { 0 } else { blocks })?;
        Ok(Weights { format, rows, cols, quanta, d, scales: device.alloc(0)? })
    }

    /// Extents of the two planes, and the first one's strides.
    fn shapes(&self) -> ([usize; 2], [usize; 2], [usize; 2]) {
        let blocks = self.cols.div_ceil(32);
        let bytes = blocks * self.format.bytes();
        let scales = if self.format == Format::Rows { [0, 0] } else { [self.rows, blocks] };
        ([self.rows, bytes], [bytes.max(32), 1], scales)
    }

    fn planes(&self) -> Result<(BufferView<'_, i8, 2>, BufferView<'_, f16, 2>), Error> {
        let (extents, strides, scales) = self.shapes();
        Ok((self.quanta.view_strided(extents, strides)?, self.d.view(scales)?))
    }

    fn planes_mut(&mut self) -> Result<(BufferViewMut<'_, i8, 2>, BufferViewMut<'_, f16, 2>), Error> {
        let (extents, strides, scales) = self.shapes();
        Ok((self.quanta.view_strided_mut(extents, strides)?, self.d.view_mut(scales)?))
    }
}

impl Format {
    /// Bytes of 32 numbers.
    fn bytes(self) -> usize {
        if self == Format::Q4 { 16 } else { 32 }
    }
}

/// Rows of numbers to Q8 planes.
fn eight_bits<T: Float + GenericArgument, D: Float + GenericArgument>(
    on: &impl Queue,
    x: &BufferView<'_, T, 2>,
    quanta: &mut BufferViewMut<'_, i8, 2>,
    d: &mut BufferViewMut<'_, D, 2>,
) -> Result<(), Error> {
    // SAFETY: as in `Weights::from_q8`.
    unsafe {
        if quads(x) {
            quantise_q8::<T, D, 4>::launch_unchecked(on, x, quanta, d)
        } else {
            quantise_q8::<T, D, 1>::launch_unchecked(on, x, quanta, d)
        }
    }
}

/// Whether rows begin and end at multiples of four elements.
fn quads<T>(x: &BufferView<'_, T, 2>) -> bool
where
    T: kernel_dsl::Element,
{
    let Argument::Memory(memory) = x.argument() else { return false };
    memory.address().is_multiple_of(4 * size_of::<T>() as u64)
        && x.strides()[0].is_multiple_of(4)
        && x.extents()[1].is_multiple_of(4)
}
