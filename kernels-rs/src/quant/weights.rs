//! Weights on the device, in every format.

use super::format::Format;
use super::formats::device::BlockFormat;
use super::formats::{self, host};
use super::repack::{dequantize, quantize_q4, quantize_q8, repack, repack_rows};
use super::tuned::WeightedShape;
use crate::access::WholeRows;
use crate::operand::ArrayOperand;
use crate::queue::{LibraryCall, Queue, SharedBuffer, renaming_parameters};
use crate::tuned::TunedPlans;
use crate::with_format;
use kernel_dsl::{Float, GenericArgument};
use runtime::{BufferView, BufferViewMut, Device, DeviceBuffer, Error};
use std::sync::Arc;

/// A matrix of weights, [N, K], as planes for accesses of 16 bytes.
///
/// K need not be a multiple of 32, except in blocks of a file. Zeros fill the last block of a row.
///
/// ```
/// # fn main() -> Result<(), runtime::Error> {
/// use kernels_rs::quant::formats::{Q4K, host};
/// use kernels_rs::quant::{Format, Weights};
/// let device = runtime::Device::cpu();
/// // Two rows of 256 weights, as a file has them, and one activation of each sign.
/// let w: Vec<f32> = (0..512).map(|i| (i % 16) as f32).collect();
/// let file = device.upload(&host::quantize::<Q4K>(&w))?;
/// let x = device.upload(&(0..256).map(|i| if i < 2 { 1.0 - 2.0 * i as f32 } else { 0.0 }).collect::<Vec<f32>>())?;
/// let weights = Weights::from_blocks(&device, Format::Q4K, &file.view([2, 144])?)?;
/// let mut y = device.zeros::<f32>(2)?;
/// weights.product(&device, &x.view([1, 256])?, &mut y.view_mut([1, 2])?)?;
/// // Row · x is 0 − 1.
/// assert!(y.download()?.iter().all(|y| (y + 1.0).abs() < 0.01));
/// # Ok(()) }
/// ```
///
/// Weights are made on a device or a stream. Products with weights can be recorded: the graph
/// shares the memory of the weights.
#[derive(Debug)]
pub struct Weights {
    format: Format,
    rows: usize,
    cols: usize,
    /// Planes of words, and of 16 bits.
    words: Arc<DeviceBuffer<u32>>,
    halves: Arc<DeviceBuffer<u16>>,
    /// A scale for each row, only for [`Format::Int8`].
    scales: Arc<DeviceBuffer<f32>>,
    /// Measured plans, instead of those that the library is compiled with.
    pub(super) tuned: Option<&'static TunedPlans<WeightedShape>>,
}

impl Weights {
    /// Makes weights of a file's blocks: a row of bytes for each row of weights.
    ///
    /// # Errors
    /// Returns an error if a row is not whole blocks, memory is insufficient, or the blocks belong
    /// to another device.
    pub fn from_blocks(on: &impl Queue, format: Format, blocks: &BufferView<'_, u8, 2>) -> Result<Weights, Error> {
        let ([rows, wide], [numbers, bytes]) = (blocks.extents(), format.block());
        if wide % bytes != 0 {
            let why =
                format!("a row has {wide} bytes, and a block of {format:?} has {bytes}: give rows of whole blocks");
            return Err(blocks.refused_operand(why));
        }
        with_format!(format, F => Weights::with_planes::<F>(on.device(), format, [rows, wide / bytes * numbers], |units, words, halves| {
            // SAFETY: the launch compares the extents, and the kernel's accesses stay within them.
            // The oracle checks that (`kernels check`).
            unsafe { repack::<F>::launch_unchecked(&LibraryCall(on), blocks, units, words, halves) }
        }))
    }

    /// Makes weights of bytes, [N, K], and a scale for each row.
    ///
    /// # Errors
    /// Returns the errors of [`from_blocks`](Weights::from_blocks), and an error if `scales` has
    /// another length than the number of rows.
    pub fn from_rows(
        on: &impl Queue,
        rows: &BufferView<'_, i8, 2>,
        scales: DeviceBuffer<f32>,
    ) -> Result<Weights, Error> {
        scales.view([scales.len()])?.expected("scales", [rows.extents()[0]], "one for each row of the weights")?;
        let made =
            Weights::with_planes::<formats::Int8>(on.device(), Format::Int8, rows.extents(), |units, words, _| {
                // SAFETY: as in `from_blocks`.
                unsafe { repack_rows::launch_unchecked(&LibraryCall(on), rows, units, words) }
            });
        Ok(Weights { scales: Arc::new(scales), ..made? })
    }

    /// Quantizes to [`Format::Q8_0`] each 32 numbers of a row by their largest magnitude A: d is
    /// A / 127, rounded to `f16`. [`host::quantize`] quantizes to all formats.
    ///
    /// The results outside of the format's range are those of llama.cpp. If A is above 127 · 65504
    /// ≈ 8.3·10⁶, or infinite, d is infinite, and the block's numbers are restored as infinite or
    /// NaN. Below A = 127 · 2⁻¹⁴ ≈ 0.0078, d is subnormal. Below 127 · 2⁻²⁵ ≈ 3.8·10⁻⁶ it is 0, and
    /// then so are all restored numbers of the block. A NaN becomes 0.
    ///
    /// # Errors
    /// Returns the errors of [`from_blocks`](Weights::from_blocks).
    pub fn quantize_q8<T: Float + GenericArgument>(
        on: &impl Queue,
        w: &BufferView<'_, T, 2>,
    ) -> Result<Weights, Error> {
        Weights::with_planes::<formats::Q8_0>(on.device(), Format::Q8_0, w.extents(), |units, words, halves| {
            // SAFETY: as in `from_blocks`.
            unsafe {
                if w.rows_are_whole(4) {
                    quantize_q8::<T, 4>::launch_unchecked(&LibraryCall(on), w, units, words, halves)
                } else {
                    quantize_q8::<T, 1>::launch_unchecked(&LibraryCall(on), w, units, words, halves)
                }
            }
        })
    }

    /// Quantizes to [`Format::Q4_0`]. Of each 32 numbers of a row, the one with the largest
    /// magnitude A becomes −8: d is this number / −8, rounded to `f16`. [`host::quantize`]
    /// quantizes to all formats.
    ///
    /// The results outside of the format's range are those of llama.cpp. If A is above 8 · 65504 ≈
    /// 5.2·10⁵, or infinite, d is infinite, and the block's numbers are restored as infinite or
    /// NaN. Below A = 8 · 2⁻¹⁴ ≈ 4.9·10⁻⁴, d is subnormal. Below 8 · 2⁻²⁵ ≈ 2.4·10⁻⁷ it is 0, and
    /// then so are all restored numbers of the block. A NaN becomes 0.
    ///
    /// # Errors
    /// Returns the errors of [`from_blocks`](Weights::from_blocks).
    pub fn quantize_q4<T: Float + GenericArgument>(
        on: &impl Queue,
        w: &BufferView<'_, T, 2>,
    ) -> Result<Weights, Error> {
        Weights::with_planes::<formats::Q4_0>(on.device(), Format::Q4_0, w.extents(), |units, words, halves| {
            // SAFETY: as in `from_blocks`.
            unsafe { quantize_q4::<T>::launch_unchecked(&LibraryCall(on), w, units, words, halves) }
        })
    }

    /// Makes weights of the [planes](Weights::planes) of other weights of this format and these
    /// extents, [N, K]. All contents of the planes are valid weights.
    ///
    /// # Errors
    /// Returns an error for [`Format::Int8`], which also has scales, and if a plane has another
    /// length than that of such weights.
    pub fn from_planes(
        format: Format,
        [rows, cols]: [usize; 2],
        words: DeviceBuffer<u32>,
        halves: DeviceBuffer<u16>,
    ) -> Result<Weights, Error> {
        let plane = words.view([words.len()])?;
        if format == Format::Int8 {
            let why = "planes of `Format::Int8` need a scale for each row: use `Weights::from_rows`";
            return Err(plane.refused_operand(why.into()));
        }
        let [wide, narrow] = with_format!(format, F => {
            let units = units::<F>(cols);
            [host::pitch::<F>(units), F::halves(units)]
        });
        let of_rows = "the number that this format stores for these rows";
        plane.expected("words", [rows.saturating_mul(wide)], of_rows)?;
        halves.view([halves.len()])?.expected("halves", [rows.saturating_mul(narrow)], of_rows)?;
        let scales = Arc::new(words.device().alloc(0)?);
        Ok(Weights { format, rows, cols, words: Arc::new(words), halves: Arc::new(halves), scales, tuned: None })
    }

    /// Returns the memory of the weights: words, and 16-bit elements.
    #[must_use]
    pub fn planes(&self) -> (&Arc<DeviceBuffer<u32>>, &Arc<DeviceBuffer<u16>>) {
        (&self.words, &self.halves)
    }

    /// Returns the format of the weights.
    #[must_use]
    pub fn format(&self) -> Format {
        self.format
    }

    /// Returns N and K, the numbers of rows and columns.
    #[must_use]
    pub fn extents(&self) -> [usize; 2] {
        [self.rows, self.cols]
    }

    /// Writes the numbers of the weights, [N, K], in `f32` as ggml's reference computes them.
    /// Weights of [`Format::Int8`] are rejected.
    ///
    /// # Errors
    /// Returns an error if `to` has other extents, or belongs to another device.
    pub fn dequantize<T: Float + GenericArgument>(
        &self,
        on: &impl Queue,
        to: &mut BufferViewMut<'_, T, 2>,
    ) -> Result<(), Error> {
        to.expected("to", self.extents(), "a number for each weight")?;
        if self.format == Format::Int8 {
            let why = "the weights are bytes with a scale for each row; `Affine::dequantize` dequantizes those";
            return Err(to.refused_operand(why.into()));
        }
        let four = to.rows_are_whole(4);
        with_format!(self.format, F => {
            let lent = self.borrow_planes::<F>(on)?;
            let (words, halves, _) = lent.views()?;
            // SAFETY: as in `from_blocks`.
            unsafe {
                if four {
                    dequantize::<F, T, 4>::launch_unchecked(&LibraryCall(on), words, halves, lent.units, to)
                } else {
                    dequantize::<F, T, 1>::launch_unchecked(&LibraryCall(on), words, halves, lent.units, to)
                }
            }
            .map_err(renaming_parameters(&[["x", "to"]]))
        })
    }

    /// Allocates planes for numbers of these extents, with the contents that `fill` gives them. A
    /// row has at least one block, which is zeros if there are no numbers.
    fn with_planes<F: BlockFormat>(
        device: &Device,
        format: Format,
        [rows, cols]: [usize; 2],
        fill: impl FnOnce(usize, BufferViewMut<'_, u32, 2>, BufferViewMut<'_, u16, 2>) -> Result<(), Error>,
    ) -> Result<Weights, Error> {
        let units = units::<F>(cols);
        let (wide, narrow) = (host::pitch::<F>(units), F::halves(units));
        let (mut words, mut halves) = (device.zeros(rows * wide)?, device.zeros(rows * narrow)?);
        if cols > 0 {
            let to = words.view_strided_mut([rows, F::words(units)], [wide, 1])?;
            fill(units, to, halves.view_mut([rows, narrow])?)?;
        }
        let (words, halves, scales) = (Arc::new(words), Arc::new(halves), Arc::new(device.alloc(0)?));
        Ok(Weights { format, rows, cols, words, halves, scales, tuned: None })
    }

    /// Returns the planes as memory that launches queued on `on` can read.
    pub(super) fn borrow_planes<F: BlockFormat>(&self, on: &impl Queue) -> Result<QueuedPlanes, Error> {
        let units = units::<F>(self.cols);
        Ok(QueuedPlanes {
            rows: self.rows,
            units,
            wide: [F::words(units), host::pitch::<F>(units)],
            narrow: F::halves(units),
            words: on.share(&self.words)?,
            halves: on.share(&self.halves)?,
            scales: on.share(&self.scales)?,
            scaled: self.scales.len(),
        })
    }
}

/// Returns the number of units of a row of `cols` numbers: complete blocks, at least one.
fn units<F: BlockFormat>(cols: usize) -> usize {
    cols.div_ceil(F::NUMBERS).max(1) * (F::NUMBERS / 32)
}

/// The planes of weights while launches that read them are queued.
pub(super) struct QueuedPlanes {
    rows: usize,
    /// Units of a row.
    pub(super) units: usize,
    /// Words of a row, and the distance of rows in words.
    wide: [usize; 2],
    narrow: usize,
    words: SharedBuffer<u32>,
    halves: SharedBuffer<u16>,
    scales: SharedBuffer<f32>,
    scaled: usize,
}

/// Words, 16-bit elements, and the scales of rows.
type BorrowedPlanes<'a> = (BufferView<'a, u32, 2>, BufferView<'a, u16, 2>, BufferView<'a, f32, 1>);

impl QueuedPlanes {
    pub(super) fn views(&self) -> Result<BorrowedPlanes<'_>, Error> {
        Ok((
            self.words.view_strided([self.rows, self.wide[0]], [self.wide[1], 1])?,
            self.halves.view([self.rows, self.narrow])?,
            self.scales.view([self.scaled])?,
        ))
    }
}
