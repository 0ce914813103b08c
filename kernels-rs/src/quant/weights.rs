//! Weights of 8 and 4 bits on the device.

use super::blocks::{Q4Block, Q8Block, dequantize, quantize_q4, repack_q4, repack_q8, repack_rows};
use super::weighted::eight_bits;
use crate::operand::Operand;
use crate::queue::{Queue, Shared};
use kernel_dsl::half::f16;
use kernel_dsl::{Float, GenericArgument};
use runtime::{BufferView, BufferViewMut, Device, DeviceBuffer, Error};
use std::sync::Arc;

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

/// A matrix of weights, [N, K], as planes: its integers with a row at every multiple of 16 bytes,
/// its scales apart.
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
/// let weights = Weights::quantize_q8(&device, &w.view([2, 32])?)?;
/// let mut y = device.zeros::<f32>(2)?;
/// weights.product(&device, &x.view([1, 32])?, &mut y.view_mut([1, 2])?)?;
/// // Row · x is 0 − 1; q is 18 where it stands for 1, and the unit 7 / 127.
/// assert!(y.download()?.iter().all(|y| (y + 1.0).abs() < 0.01));
/// # Ok(()) }
/// ```
///
/// They are made on a device or a stream. Products with them can be recorded: the graph shares
/// their memory.
#[derive(Debug)]
pub struct Weights {
    format: Format,
    rows: usize,
    cols: usize,
    quanta: Arc<DeviceBuffer<i8>>,
    d: Arc<DeviceBuffer<f16>>,
    scales: Arc<DeviceBuffer<f32>>,
}

impl Weights {
    /// From a file's blocks, [N, K / 32].
    ///
    /// # Errors
    /// Where memory is short, or the blocks are another device's.
    pub fn from_q8(on: &impl Queue, blocks: &BufferView<'_, Q8Block, 2>) -> Result<Weights, Error> {
        let [rows, n] = blocks.extents();
        Weights::made(on.device(), Format::Q8, [rows, 32 * n], |quanta, d| {
            // SAFETY: the launch compares the extents, and the kernel stays within them, as the
            // oracle says (`kernels check`).
            unsafe { repack_q8::launch_unchecked(on, blocks, quanta, d) }
        })
    }

    /// From a file's blocks, [N, K / 32].
    ///
    /// # Errors
    /// As for [`from_q8`](Weights::from_q8).
    pub fn from_q4(on: &impl Queue, blocks: &BufferView<'_, Q4Block, 2>) -> Result<Weights, Error> {
        let [rows, n] = blocks.extents();
        Weights::made(on.device(), Format::Q4, [rows, 32 * n], |quanta, d| {
            // SAFETY: as in `from_q8`.
            unsafe { repack_q4::launch_unchecked(on, blocks, quanta, d) }
        })
    }

    /// From bytes, [N, K], and what a unit of each row stands for.
    ///
    /// # Errors
    /// As for [`from_q8`](Weights::from_q8), and where there is not a scale for each row.
    pub fn from_rows(
        on: &impl Queue,
        rows: &BufferView<'_, i8, 2>,
        scales: DeviceBuffer<f32>,
    ) -> Result<Weights, Error> {
        scales.view([scales.len()])?.expected("scales", [rows.extents()[0]], "one for each row of the weights")?;
        let made = Weights::made(on.device(), Format::Rows, rows.extents(), |quanta, _| {
            // SAFETY: as in `from_q8`.
            unsafe { repack_rows::launch_unchecked(on, rows, quanta) }
        });
        Ok(Weights { scales: Arc::new(scales), ..made? })
    }

    /// Quantizes each 32 numbers of a row by their largest magnitude A: d is A / 127, rounded to
    /// `f16`.
    ///
    /// What the format does not hold, as in llama.cpp: A above 127 · 65504 ≈ 8.3·10⁶, and infinity,
    /// make d infinite, and numbers of the block come back infinite or NaN. Below A = 127 · 2⁻¹⁴ ≈
    /// 0.0078, d is subnormal, and below 127 · 2⁻²⁵ ≈ 3.8·10⁻⁶ it is 0, as all numbers of the block
    /// then are. A NaN becomes 0.
    ///
    /// # Errors
    /// As for [`from_q8`](Weights::from_q8).
    pub fn quantize_q8<T: Float + GenericArgument>(
        on: &impl Queue,
        w: &BufferView<'_, T, 2>,
    ) -> Result<Weights, Error> {
        Weights::made(on.device(), Format::Q8, w.extents(), |quanta, d| eight_bits(on, w, quanta, d))
    }

    /// Quantizes each 32 numbers of a row by the one of the largest magnitude A, which becomes −8:
    /// d is that / −8, rounded to `f16`.
    ///
    /// What the format does not hold, as in llama.cpp: A above 8 · 65504 ≈ 5.2·10⁵, and infinity,
    /// make d infinite, and numbers of the block come back infinite or NaN. Below A = 8 · 2⁻¹⁴ ≈
    /// 4.9·10⁻⁴, d is subnormal, and below 8 · 2⁻²⁵ ≈ 2.4·10⁻⁷ it is 0, as all numbers of the block
    /// then are. A NaN becomes 0.
    ///
    /// # Errors
    /// As for [`from_q8`](Weights::from_q8).
    pub fn quantize_q4<T: Float + GenericArgument>(
        on: &impl Queue,
        w: &BufferView<'_, T, 2>,
    ) -> Result<Weights, Error> {
        Weights::made(on.device(), Format::Q4, w.extents(), |quanta, d| {
            // SAFETY: as in `from_q8`.
            unsafe { quantize_q4::<T>::launch_unchecked(on, w, quanta, d) }
        })
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
    /// Where `to` has other extents, or is another device's.
    pub fn dequantize<T: Float + GenericArgument>(
        &self,
        on: &impl Queue,
        to: &mut BufferViewMut<'_, T, 2>,
    ) -> Result<(), Error> {
        to.expected("to", self.extents(), "a number for each of the weights")?;
        if self.format == Format::Rows {
            let why = "the weights are bytes with a scale for each row; `Affine::dequantize` dequantizes those";
            return Err(to.refused(why.into()));
        }
        let lent = self.lend(on)?;
        let (quanta, d, _) = lent.views()?;
        // SAFETY: as in `from_q8`.
        unsafe {
            match self.format {
                Format::Q4 => dequantize::<T, 4>::launch_unchecked(on, quanta, d, to),
                Format::Q8 | Format::Rows => dequantize::<T, 8>::launch_unchecked(on, quanta, d, to),
            }
        }
    }

    /// Planes for numbers of these extents, as `fill` leaves them. A row has a block at least: of
    /// no numbers it is zeros.
    fn made(
        device: &Device,
        format: Format,
        [rows, cols]: [usize; 2],
        fill: impl FnOnce(BufferViewMut<'_, i8, 2>, BufferViewMut<'_, f16, 2>) -> Result<(), Error>,
    ) -> Result<Weights, Error> {
        let shape = Weights::shape(format, [rows, cols]);
        let [quanta, d] = shape.map(|extents| extents.iter().product());
        let (mut quanta, mut d) = (device.zeros(quanta)?, device.zeros(d)?);
        if cols > 0 {
            let [by_quanta, by_d] = shape.map(by_rows);
            fill(quanta.view_strided_mut(shape[0], by_quanta)?, d.view_strided_mut(shape[1], by_d)?)?;
        }
        let (quanta, d, scales) = (Arc::new(quanta), Arc::new(d), Arc::new(device.alloc(0)?));
        Ok(Weights { format, rows, cols, quanta, d, scales })
    }

    /// Extents of the plane of integers and of that of scales.
    fn shape(format: Format, [rows, cols]: [usize; 2]) -> [[usize; 2]; 2] {
        let blocks = padded(cols) / 32;
        match format {
            Format::Q8 => [[rows, 32 * blocks], [rows, blocks]],
            Format::Q4 => [[rows, 16 * blocks], [rows, blocks]],
            Format::Rows => [[rows, 32 * blocks], [0, 0]],
        }
    }

    /// The planes, for launches that are queued on `on`.
    pub(super) fn lend(&self, on: &impl Queue) -> Result<Lent, Error> {
        Ok(Lent {
            shape: Weights::shape(self.format, [self.rows, self.cols]),
            quanta: on.share(&self.quanta)?,
            d: on.share(&self.d)?,
            scales: on.share(&self.scales)?,
            rows: self.scales.len(),
        })
    }
}

/// Strides of a plane, one that has no rows among them: the kernels want rows at multiples of 16
/// bytes in any case.
fn by_rows([_, cols]: [usize; 2]) -> [usize; 2] {
    [cols, 1]
}

/// Numbers of a row as the planes have them: whole blocks, and one at least.
pub(super) fn padded(cols: usize) -> usize {
    cols.next_multiple_of(32).max(32)
}

/// The planes of weights while launches are queued that read them.
pub(super) struct Lent {
    shape: [[usize; 2]; 2],
    quanta: Shared<i8>,
    d: Shared<f16>,
    scales: Shared<f32>,
    rows: usize,
}

/// Integers, scales of blocks, scales of rows.
type Planes<'a> = (BufferView<'a, i8, 2>, BufferView<'a, f16, 2>, BufferView<'a, f32, 1>);

impl Lent {
    pub(super) fn views(&self) -> Result<Planes<'_>, Error> {
        let ([quanta, d], [by_quanta, by_d]) = (self.shape, self.shape.map(by_rows));
        Ok((
            self.quanta.view_strided(quanta, by_quanta)?,
            self.d.view_strided(d, by_d)?,
            self.scales.view([self.rows])?,
        ))
    }
}
