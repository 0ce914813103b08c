//! A matrix in any format of a file, times activations.

use crate::file::Format;
use kernel_dsl::half::{bf16, f16};
use kernel_dsl::prelude::*;
use kernel_dsl::{Float, GenericArgument};
use kernels_rs::Queue;
use kernels_rs::gemm::Gemm;
use kernels_rs::gemm::epilogue::Bias;
use kernels_rs::quant::{self, Weights};
use runtime::{BufferView, BufferViewMut, Device, DeviceBuffer, Error};
use std::ops::Range;
use std::sync::Arc;

/// Returns `x`: the conversion between formats of numbers.
#[device(value)]
fn same(x: f32) -> f32 {
    x
}

/// Queues y ← x, converted.
pub(super) fn convert<X: Float + GenericArgument, Y: Float + GenericArgument, const R: usize>(
    on: &impl Queue,
    x: BufferView<'_, X, R>,
    y: BufferViewMut<'_, Y, R>,
) -> Result<(), Error> {
    kernels_rs::elementwise::map(on, same {}, x.strided(), y.strided())
}

/// The matrix of one tensor, or of several with one format.
#[derive(Debug)]
enum Matrix {
    Blocks(Weights),
    F32(Arc<DeviceBuffer<f32>>),
    F16(Arc<DeviceBuffer<f16>>),
    Bf16(Arc<DeviceBuffer<bf16>>),
}

/// Returns the kernels' name of a format of blocks.
pub(super) fn blocks(format: Format) -> Option<quant::Format> {
    Some(match format {
        Format::Q4_0 => quant::Format::Q4_0,
        Format::Q4_1 => quant::Format::Q4_1,
        Format::Q5_0 => quant::Format::Q5_0,
        Format::Q5_1 => quant::Format::Q5_1,
        Format::Q8_0 => quant::Format::Q8_0,
        Format::Q2_K => quant::Format::Q2K,
        Format::Q3_K => quant::Format::Q3K,
        Format::Q4_K => quant::Format::Q4K,
        Format::Q5_K => quant::Format::Q5K,
        Format::Q6_K => quant::Format::Q6K,
        Format::IQ4_NL => quant::Format::Iq4Nl,
        Format::IQ4_XS => quant::Format::Iq4Xs,
        Format::MXFP4 => quant::Format::Mxfp4,
        _ => return None,
    })
}

/// Products of up to so many rows with blocks add in one order, which depends only on the matrix.
pub(super) const ALIKE: usize = 8;

/// Returns ranges of up to `at_once` rows, at least 1, in order.
pub(super) fn pieces(rows: usize, at_once: usize) -> impl Iterator<Item = Range<usize>> {
    (0..rows).step_by(at_once).map(move |first| first..rows.min(first.saturating_add(at_once)))
}

/// Passes up to `at_once` rows of x and y after another to `run`.
pub(super) fn in_pieces(
    at_once: usize,
    x: &BufferView<'_, f32, 2>,
    y: &mut BufferViewMut<'_, f32, 2>,
    mut run: impl FnMut(&BufferView<'_, f32, 2>, &mut BufferViewMut<'_, f32, 2>) -> Result<(), Error>,
) -> Result<(), Error> {
    pieces(x.extents()[0], at_once).try_for_each(|rows| run(&x.slice(rows.clone())?, &mut y.reborrow().slice(rows)?))
}

/// Rows of a matrix as a file has them.
#[derive(Debug)]
pub struct Rows<'a> {
    /// The format of the numbers.
    pub format: Format,
    /// Rows and columns.
    pub extents: [usize; 2],
    /// The bytes of all rows.
    pub bytes: &'a [u8],
}

/// y ← x·Wᵀ + bias, where W may have rows of several formats, one part after another.
#[derive(Debug)]
pub struct Linear {
    /// Matrices and their rows.
    parts: Vec<(Matrix, usize)>,
    columns: usize,
    rows: usize,
    bias: Option<Arc<DeviceBuffer<f32>>>,
}

/// Reads numbers of `N` bytes.
pub(super) fn numbers<T, const N: usize>(bytes: &[u8], number: impl Fn([u8; N]) -> T) -> Vec<T> {
    bytes.chunks_exact(N).map(|bytes| number(std::array::from_fn(|i| bytes[i]))).collect()
}

impl Linear {
    /// Uploads a matrix. All parts have equal columns; there is a bias for each row of all parts,
    /// or none.
    ///
    /// # Errors
    /// If parts differ in columns, a format has no kernels, or memory is short.
    pub fn new(device: &Device, parts: &[Rows<'_>], bias: Option<&[f32]>) -> crate::Result<Linear> {
        let columns = parts.first().map_or(0, |part| part.extents[1]);
        let mut made = Vec::new();
        for Rows { format, extents: [rows, of_part], bytes } in parts {
            let refused = |problem: String| crate::Error::tensor("a matrix", &format.to_string(), problem);
            let length = format.bytes(*of_part as u64, (rows * of_part) as u64);
            if *of_part != columns || length != Some(bytes.len() as u64) {
                let problem = format!("[{rows}, {of_part}] in {} bytes, beside {columns} columns", bytes.len());
                return Err(refused(problem));
            }
            let matrix = match (format, blocks(*format)) {
                (_, Some(format)) => {
                    let file = device.upload(bytes)?;
                    let view = file.view([*rows, bytes.len() / rows.max(&1)])?;
                    Matrix::Blocks(Weights::from_blocks(device, format, &view)?)
                }
                (Format::F32, _) => Matrix::F32(Arc::new(device.upload(&numbers(bytes, f32::from_le_bytes))?)),
                (Format::F16, _) => Matrix::F16(Arc::new(device.upload(&numbers(bytes, f16::from_le_bytes))?)),
                (Format::BF16, _) => Matrix::Bf16(Arc::new(device.upload(&numbers(bytes, bf16::from_le_bytes))?)),
                _ => return Err(refused("there are no kernels for the format".to_owned())),
            };
            made.push((matrix, *rows));
        }
        let rows = made.iter().map(|(_, rows)| rows).sum();
        if let Some(bias) = bias.filter(|bias| bias.len() != rows) {
            let problem = format!("a bias of {} numbers for {rows} rows", bias.len());
            return Err(crate::Error::tensor("a matrix", "bias", problem));
        }
        let bias = bias.map(|bias| device.upload(bias)).transpose()?.map(Arc::new);
        Ok(Linear { parts: made, columns, rows, bias })
    }

    /// Returns rows and columns: the numbers of y and of x.
    pub fn extents(&self) -> [usize; 2] {
        [self.rows, self.columns]
    }

    /// Queues y ← x·Wᵀ + bias as [`run`](Linear::run) does. With `exact`, each row of y has the
    /// bits of a product of that row alone.
    ///
    /// # Errors
    /// If extents do not match, or memory is short.
    pub fn run_as(
        &self,
        on: &impl Queue,
        exact: bool,
        x: &BufferView<'_, f32, 2>,
        y: &mut BufferViewMut<'_, f32, 2>,
    ) -> Result<(), Error> {
        let is_blocks = |(matrix, _): &(Matrix, usize)| matches!(matrix, Matrix::Blocks(_));
        let at_once = match exact {
            false => usize::MAX,
            true if self.parts.iter().all(is_blocks) => ALIKE,
            true => 1,
        };
        in_pieces(at_once, x, y, |x, y| self.run(on, x, y))
    }

    /// Queues y ← x·Wᵀ + bias: x is `[tokens, columns]`, y `[tokens, rows]`.
    ///
    /// # Errors
    /// If extents do not match, or memory is short.
    pub fn run(
        &self,
        on: &impl Queue,
        x: &BufferView<'_, f32, 2>,
        y: &mut BufferViewMut<'_, f32, 2>,
    ) -> Result<(), Error> {
        let n = x.extents()[0];
        let bias = self.bias.as_ref().map(|bias| on.share(bias)).transpose()?;
        let mut at = 0;
        for (matrix, rows) in &self.parts {
            let range = at..at + rows;
            at = range.end;
            // Columns of y become the first axis, to slice them.
            let y = y.reborrow().strided().permuted([1, 0])?.slice(range.clone())?.permuted([1, 0])?;
            let mut y = y.side_by_side()?;
            let bias = bias.as_ref().map(|bias| bias.view([self.rows])?.slice(range)).transpose()?;
            match matrix {
                Matrix::Blocks(weights) => match bias {
                    None => weights.product(on, x, &mut y)?,
                    Some(bias) => on.reading(&bias, || {
                        // SAFETY: the launch is noted as a reader of the bias and queued before the
                        // borrow ends. The bias has a number for each row of the weights.
                        unsafe { weights.product_with(on, x, &mut y, Bias { bias: bias.detached() }) }
                    })?,
                },
                Matrix::F32(w) => dense(on, &x.strided().reshaped([1, n, self.columns])?.side_by_side()?, w, bias, y)?,
                Matrix::F16(w) => narrow(on, x, w, bias, y)?,
                Matrix::Bf16(w) => narrow(on, x, w, bias, y)?,
            }
        }
        Ok(())
    }
}

/// Queues a product with weights of 16 bits, for which x is converted.
fn narrow<T: Float + GenericArgument>(
    on: &impl Queue,
    x: &BufferView<'_, f32, 2>,
    w: &Arc<DeviceBuffer<T>>,
    bias: Option<BufferView<'_, f32, 1>>,
    y: BufferViewMut<'_, f32, 2>,
) -> Result<(), Error> {
    let [n, columns] = x.extents();
    let mut converted = on.scratch::<T>(n * columns)?;
    convert(on, *x, converted.view_mut([n, columns])?)?;
    dense(on, &converted.view([1, n, columns])?, w, bias, y)
}

/// Queues y ← x·Wᵀ + bias with weights that are numbers.
fn dense<T: Float + GenericArgument>(
    on: &impl Queue,
    x: &BufferView<'_, T, 3>,
    w: &Arc<DeviceBuffer<T>>,
    bias: Option<BufferView<'_, f32, 1>>,
    y: BufferViewMut<'_, f32, 2>,
) -> Result<(), Error> {
    let ([_, n, columns], [_, rows]) = (x.extents(), y.extents());
    let w = on.share(w)?;
    let w = w.view([1, rows, columns])?;
    let mut y = y.strided().reshaped([1, n, rows])?.side_by_side()?;
    let gemm = Gemm::new().transpose_b();
    match bias {
        None => gemm.run(on, x, &w, &mut y),
        Some(bias) => on.reading(&bias, || {
            // SAFETY: as for weights in blocks.
            unsafe { gemm.run_with(on, x, &w, &mut y, Bias { bias: bias.detached() }) }
        }),
    }
}
