//! Weights of 8 and 4 bits on the device.

use super::blocks::{Q4Block, Q8Block, dequantise, quantise_q4, repack_q4, repack_q8, repack_rows};
use super::weighted::eight_bits;
use crate::Queue;
use kernel_dsl::half::f16;
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
                Format::Q4 => dequantise::<T, 4>::launch_unchecked(on, quanta, d, to),
                Format::Q8 | Format::Rows => dequantise::<T, 8>::launch_unchecked(on, quanta, d, to),
            }
        }
    }

    /// Planes for numbers of these extents.
    fn new(device: &Device, format: Format, [rows, cols]: [usize; 2]) -> Result<Weights, Error> {
        let blocks = rows * cols.div_ceil(32);
        let quanta = device.alloc(blocks * format.bytes())?;
        let d = device.alloc(if format == Format::Rows { 0 } else { blocks })?;
        Ok(Weights { format, rows, cols, quanta, d, scales: device.alloc(0)? })
    }

    /// What a unit of each row stands for, of [`Format::Rows`].
    pub(super) fn scales(&self) -> &DeviceBuffer<f32> {
        &self.scales
    }

    /// Extents of the two planes, and the first one's strides.
    fn shapes(&self) -> ([usize; 2], [usize; 2], [usize; 2]) {
        let blocks = self.cols.div_ceil(32);
        let bytes = blocks * self.format.bytes();
        let scales = if self.format == Format::Rows { [0, 0] } else { [self.rows, blocks] };
        ([self.rows, bytes], [bytes.max(32), 1], scales)
    }

    pub(super) fn planes(&self) -> Result<(BufferView<'_, i8, 2>, BufferView<'_, f16, 2>), Error> {
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
