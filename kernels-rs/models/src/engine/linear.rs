//! Products of activations with a matrix in any format of a file that kernels read.

use super::operand::{ActivationForm, ActivationOperand, refused_operand};
use crate::file::TensorFormat;
use kernel_dsl::half::{bf16, f16};
use kernel_dsl::prelude::*;
use kernel_dsl::{Float, GenericArgument};
use kernels_rs::activation::fast_swiglu;
use kernels_rs::gemm::Gemm;
use kernels_rs::gemm::epilogue::{Bias, Epilogue, Identity};
use kernels_rs::quant::Weights;
use kernels_rs::rowwise::Norm;
use kernels_rs::{LaunchStruct, Queue};
use runtime::{BufferView, BufferViewMut, Device, DeviceBuffer, Error};
use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

/// Returns `x`. [`convert`] maps this function over elements of different types.
#[device(value)]
fn identity(x: f32) -> f32 {
    x
}

/// Queues y ← x, with elements converted to the type of y.
pub(super) fn convert<X: Float + GenericArgument, Y: Float + GenericArgument, const R: usize>(
    on: &impl Queue,
    x: BufferView<'_, X, R>,
    y: BufferViewMut<'_, Y, R>,
) -> Result<(), Error> {
    kernels_rs::elementwise::map(on, identity {}, x.strided(), y.strided())
}

/// The matrix of one tensor, or of several in the same format.
#[derive(Debug)]
enum Matrix {
    Blocks(Weights),
    Dense(DenseMatrix),
}

/// A matrix that is not block-quantized: its elements, row by row.
#[derive(Debug)]
pub(super) enum DenseMatrix {
    F32(Arc<DeviceBuffer<f32>>),
    F16(Arc<DeviceBuffer<f16>>),
    Bf16(Arc<DeviceBuffer<bf16>>),
}

/// The largest number of rows of x for which a product with a block-quantized matrix adds in an
/// order that depends only on the matrix. `kernels_rs::quant` has one kernel for up to 8 rows.
pub(super) const MAX_FIXED_ORDER_ROWS: usize = 8;

/// Splits `rows` rows into consecutive ranges of at most `chunk_rows` rows, which is at least 1.
pub(super) fn row_ranges(rows: usize, chunk_rows: usize) -> impl Iterator<Item = Range<usize>> {
    (0..rows).step_by(chunk_rows).map(move |first| first..rows.min(first.saturating_add(chunk_rows)))
}

/// Calls `run` for chunks of up to `chunk_rows` rows of x, and the same rows of y.
pub(super) fn in_row_chunks(
    chunk_rows: usize,
    x: &BufferView<'_, f32, 2>,
    y: &mut BufferViewMut<'_, f32, 2>,
    mut run: impl FnMut(&BufferView<'_, f32, 2>, &mut BufferViewMut<'_, f32, 2>) -> Result<(), Error>,
) -> Result<(), Error> {
    row_ranges(x.extents()[0], chunk_rows)
        .try_for_each(|rows| run(&x.slice(rows.clone())?, &mut y.reborrow().slice(rows)?))
}

/// Rows of a matrix in the format of a file.
#[derive(Debug)]
pub struct FileRows<'a> {
    /// The format of the elements.
    pub format: TensorFormat,
    /// The numbers of rows and of columns.
    pub extents: [usize; 2],
    /// The bytes of all rows, one after another.
    pub bytes: &'a [u8],
}

/// A linear layer: y ← x·Wᵀ + bias. W may consist of parts whose rows have different formats.
#[derive(Debug)]
pub struct LinearLayer {
    /// The parts of W in order, and the number of rows of each.
    parts: Vec<(Matrix, usize)>,
    columns: usize,
    rows: usize,
    bias: Option<Arc<DeviceBuffer<f32>>>,
}

/// Reads elements of `N` bytes each, by `number`.
pub(super) fn read_elements<T, const N: usize>(bytes: &[u8], number: impl Fn([u8; N]) -> T) -> Vec<T> {
    bytes.chunks_exact(N).map(|bytes| number(std::array::from_fn(|i| bytes[i]))).collect()
}

impl LinearLayer {
    /// Uploads a matrix, whose rows are those of `parts` in order. `bias` has an element for each
    /// row.
    ///
    /// # Errors
    /// If parts differ in columns, `bytes` or `bias` has another length than the extents, there are
    /// no kernels for a format, or memory runs out.
    pub fn new(device: &Device, parts: &[FileRows<'_>], bias: Option<&[f32]>) -> crate::Result<LinearLayer> {
        let columns = parts.first().map_or(0, |part| part.extents[1]);
        let mut made = Vec::new();
        for FileRows { format, extents: [rows, part_columns], bytes } in parts {
            let refused = |problem: String| crate::Error::tensor("a matrix", &format.to_string(), problem);
            let length = format.bytes(*part_columns as u64, (rows * part_columns) as u64);
            if *part_columns != columns || length != Some(bytes.len() as u64) {
                let found = format!("found {rows} rows of {part_columns} elements in {} bytes", bytes.len());
                let problem = format!("{found}; expected {columns} elements a row, in whole blocks");
                return Err(refused(problem));
            }
            let matrix = match (format, format.quant_format()) {
                (_, Some(format)) => {
                    let file = device.upload(bytes)?;
                    let view = file.view([*rows, bytes.len() / rows.max(&1)])?;
                    Matrix::Blocks(Weights::from_blocks(device, format, &view)?)
                }
                (TensorFormat::F32, _) => {
                    Matrix::Dense(DenseMatrix::F32(Arc::new(device.upload(&read_elements(bytes, f32::from_le_bytes))?)))
                }
                (TensorFormat::F16, _) => {
                    Matrix::Dense(DenseMatrix::F16(Arc::new(device.upload(&read_elements(bytes, f16::from_le_bytes))?)))
                }
                (TensorFormat::BF16, _) => Matrix::Dense(DenseMatrix::Bf16(Arc::new(
                    device.upload(&read_elements(bytes, bf16::from_le_bytes))?,
                ))),
                _ => return Err(refused("there are no kernels for the format".to_owned())),
            };
            made.push((matrix, *rows));
        }
        let rows = made.iter().map(|(_, rows)| rows).sum();
        if let Some(bias) = bias.filter(|bias| bias.len() != rows) {
            let problem = format!("expected {rows} elements, one for each row of the matrix; found {}", bias.len());
            return Err(crate::Error::tensor("a matrix", "bias", problem));
        }
        let bias = bias.map(|bias| device.upload(bias)).transpose()?.map(Arc::new);
        Ok(LinearLayer { parts: made, columns, rows, bias })
    }

    /// Returns the number of rows, which is that of elements of y, and the number of columns, which
    /// is that of elements of x.
    pub fn extents(&self) -> [usize; 2] {
        [self.rows, self.columns]
    }

    /// Queues y ← x·Wᵀ + bias as [`run`](LinearLayer::run) does. With `exact`, each row of y has
    /// the bits of a product with that row of x alone.
    ///
    /// # Errors
    /// If extents do not match, or memory runs out.
    pub fn run_with_exactness(
        &self,
        on: &impl Queue,
        exact: bool,
        x: &BufferView<'_, f32, 2>,
        y: &mut BufferViewMut<'_, f32, 2>,
    ) -> Result<(), Error> {
        let is_blocks = |(matrix, _): &(Matrix, usize)| matches!(matrix, Matrix::Blocks(_));
        let chunk_rows = match exact {
            false => usize::MAX,
            true if self.parts.iter().all(is_blocks) => MAX_FIXED_ORDER_ROWS,
            true => 1,
        };
        in_row_chunks(chunk_rows, x, y, |x, y| self.run(on, x, y))
    }

    /// Queues y ← x·Wᵀ + bias. x is `[tokens, columns]`, and y is `[tokens, rows]`.
    ///
    /// # Errors
    /// If extents do not match, or memory runs out.
    pub fn run(
        &self,
        on: &impl Queue,
        x: &BufferView<'_, f32, 2>,
        y: &mut BufferViewMut<'_, f32, 2>,
    ) -> Result<(), Error> {
        self.products_of_parts(on, &ActivationOperand::F32(*x), y)
    }

    /// Returns the form in which the product reads the activations of `tokens` tokens.
    ///
    /// The form is F32 with `exact`, and if parts need different forms: each part then converts x
    /// itself. The form is also F32 for one token and quantized matrices, because the kernel of
    /// that product quantizes x.
    pub(super) fn form(&self, tokens: usize, exact: bool) -> ActivationForm {
        let mut forms = self.parts.iter().map(|(matrix, _)| match matrix {
            Matrix::Blocks(_) if tokens > 1 => ActivationForm::Quantized,
            Matrix::Blocks(_) | Matrix::Dense(DenseMatrix::F32(_)) => ActivationForm::F32,
            Matrix::Dense(DenseMatrix::F16(_)) => ActivationForm::F16,
            Matrix::Dense(DenseMatrix::Bf16(_)) => ActivationForm::Bf16,
        });
        let first = forms.next().filter(|first| !exact && forms.all(|form| form == *first));
        first.unwrap_or(ActivationForm::F32)
    }

    /// Queues y ← x·Wᵀ + bias as [`run_with_exactness`](LinearLayer::run_with_exactness) does. x
    /// has the [`form`](LinearLayer::form) for its number of tokens.
    ///
    /// # Errors
    /// If extents or the form do not match, or memory runs out.
    pub(super) fn product(
        &self,
        on: &impl Queue,
        exact: bool,
        x: &ActivationOperand<'_>,
        y: &mut BufferViewMut<'_, f32, 2>,
    ) -> Result<(), Error> {
        match x {
            ActivationOperand::F32(x) => self.run_with_exactness(on, exact, x, y),
            x => self.products_of_parts(on, x, y),
        }
    }

    /// Queues the product with each part, which writes its columns of y.
    fn products_of_parts(
        &self,
        on: &impl Queue,
        x: &ActivationOperand<'_>,
        y: &mut BufferViewMut<'_, f32, 2>,
    ) -> Result<(), Error> {
        let bias = self.bias.as_ref().map(|bias| on.share(bias)).transpose()?;
        let mut at = 0;
        for (matrix, rows) in &self.parts {
            let range = at..at + rows;
            at = range.end;
            // Only the first axis can be sliced, so the columns of y become the first axis.
            let y = y.reborrow().strided().permuted([1, 0])?.slice(range.clone())?.permuted([1, 0])?;
            let mut y = y.side_by_side()?;
            let bias = bias.as_ref().map(|bias| bias.view([self.rows])?.slice(range)).transpose()?;
            match (matrix, x) {
                (Matrix::Blocks(weights), x) => match bias {
                    // SAFETY: this epilogue accesses nothing.
                    None => unsafe { blocks_product(on, weights, x, &mut y, Identity)? },
                    Some(bias) => on.reading(&bias, || {
                        // SAFETY: the launch is noted as a reader of the bias and queued before the
                        // borrow ends. The bias has an element for each row of the weights.
                        unsafe { blocks_product(on, weights, x, &mut y, Bias { bias: bias.detached() }) }
                    })?,
                },
                (Matrix::Dense(DenseMatrix::F32(w)), ActivationOperand::F32(x)) => dense_product(on, x, w, bias, y)?,
                (Matrix::Dense(DenseMatrix::F16(w)), ActivationOperand::F16(x)) => dense_product(on, x, w, bias, y)?,
                (Matrix::Dense(DenseMatrix::Bf16(w)), ActivationOperand::Bf16(x)) => dense_product(on, x, w, bias, y)?,
                (Matrix::Dense(DenseMatrix::F16(w)), ActivationOperand::F32(x)) => {
                    product_in_16_bits(on, x, w, bias, y)?
                }
                (Matrix::Dense(DenseMatrix::Bf16(w)), ActivationOperand::F32(x)) => {
                    product_in_16_bits(on, x, w, bias, y)?
                }
                (matrix, x) => return Err(mismatch(matrix, x)),
            }
        }
        Ok(())
    }
}

/// The maximum number of tokens for which a norm and the next product are one kernel, if the matrix
/// is not block-quantized. Each thread block computes the norms again. On an H100, a 2B model in
/// bf16 generates 742 tokens per second for 2 sequences with such kernels, and 703 with separate
/// ones. With 4 sequences these rates are 1,211 and 1,300, with 8 sequences 1,616 and 2,517.
pub(super) const MAX_FUSED_TOKENS: usize = 2;

impl LinearLayer {
    /// Returns the matrix if the layer has one part, which is not block-quantized.
    pub(super) fn dense_matrix(&self) -> Option<&DenseMatrix> {
        match &self.parts[..] {
            [(Matrix::Dense(numbers), _)] => Some(numbers),
            _ => None,
        }
    }
}

impl DenseMatrix {
    /// Queues y ← norm(x)·Wᵀ + bias. W is `self`, and `layer` is the layer of W, with its bias and
    /// extents.
    pub(super) fn run_normed(
        &self,
        on: &impl Queue,
        norm: Norm<'_, f32>,
        layer: &LinearLayer,
        x: &BufferView<'_, f32, 2>,
        y: &mut BufferViewMut<'_, f32, 2>,
    ) -> Result<(), Error> {
        let bias = layer.bias.as_ref().map(|bias| on.share(bias)).transpose()?;
        let bias = bias.as_ref().map(|bias| bias.view([layer.rows])).transpose()?;
        let extents = layer.extents();
        match self {
            DenseMatrix::F32(w) => norm.project(on, x, &on.share(w)?.view(extents)?, bias.as_ref(), y),
            DenseMatrix::F16(w) => norm.project(on, x, &on.share(w)?.view(extents)?, bias.as_ref(), y),
            DenseMatrix::Bf16(w) => norm.project(on, x, &on.share(w)?.view(extents)?, bias.as_ref(), y),
        }
    }

    /// Queues y ← silu(a)·b, where a and b are the halves of norm(x)·Wᵀ, and W is `self`.
    fn run_gated<O: Float + GenericArgument>(
        &self,
        on: &impl Queue,
        norm: Norm<'_, f32>,
        x: &BufferView<'_, f32, 2>,
        y: &mut BufferViewMut<'_, O, 2>,
    ) -> Result<(), Error> {
        let ([_, inner], [_, width]) = (y.extents(), x.extents());
        let extents = [2 * inner, width];
        match self {
            DenseMatrix::F32(w) => norm.project_gated(on, fast_swiglu {}, x, &on.share(w)?.view(extents)?, y),
            DenseMatrix::F16(w) => norm.project_gated(on, fast_swiglu {}, x, &on.share(w)?.view(extents)?, y),
            DenseMatrix::Bf16(w) => norm.project_gated(on, fast_swiglu {}, x, &on.share(w)?.view(extents)?, y),
        }
    }

    /// Queues y ← y + x·Wᵀ. W is `self`, and x has the same format.
    pub(super) fn add(
        &self,
        on: &impl Queue,
        x: &ActivationOperand<'_>,
        y: &mut BufferViewMut<'_, f32, 2>,
    ) -> Result<(), Error> {
        match (self, x) {
            (DenseMatrix::F32(w), ActivationOperand::F32(x)) => add_product(on, x, w, y),
            (DenseMatrix::F16(w), ActivationOperand::F16(x)) => add_product(on, x, w, y),
            (DenseMatrix::Bf16(w), ActivationOperand::Bf16(x)) => add_product(on, x, w, y),
            (numbers, x) => Err(mismatch(numbers, x)),
        }
    }

    /// Queues x ← x + g·Wᵀ, where W is `self`. g = silu(a)·b has `inner` elements for each token. a
    /// and b are the halves of norm(x)·Vᵀ, and V is `gate_and_up`.
    pub(super) fn add_gated(
        &self,
        on: &impl Queue,
        norm: Norm<'_, f32>,
        gate_and_up: &DenseMatrix,
        inner: usize,
        x: &mut BufferViewMut<'_, f32, 2>,
    ) -> Result<(), Error> {
        match self {
            DenseMatrix::F32(w) => add_gated(on, norm, gate_and_up, inner, w, x),
            DenseMatrix::F16(w) => add_gated(on, norm, gate_and_up, inner, w, x),
            DenseMatrix::Bf16(w) => add_gated(on, norm, gate_and_up, inner, w, x),
        }
    }
}

/// Queues x ← x + g·Wᵀ as [`DenseMatrix::add_gated`] does, with W = `w`.
fn add_gated<T: Float + GenericArgument>(
    on: &impl Queue,
    norm: Norm<'_, f32>,
    gate_and_up: &DenseMatrix,
    inner: usize,
    w: &Arc<DeviceBuffer<T>>,
    x: &mut BufferViewMut<'_, f32, 2>,
) -> Result<(), Error> {
    let [n, _] = x.extents();
    let mut gated = on.scratch::<T>(n * inner)?;
    gate_and_up.run_gated(on, norm, &x.reborrow().shared(), &mut gated.view_mut([n, inner])?)?;
    add_product(on, &gated.view([n, inner])?, w, x)
}

/// Returns the error for an operand in a form that the matrix does not read.
fn mismatch(matrix: &impl Debug, x: &ActivationOperand<'_>) -> Error {
    refused_operand(format!("the matrix does not read activations in this form: {matrix:?}, {x:?}"))
}

/// Queues y ← epilogue(x·Wᵀ) with block-quantized weights, for x in `f32` or quantized.
///
/// # Safety
/// The requirements of [`Weights::product_with`] apply.
unsafe fn blocks_product<E: Epilogue + LaunchStruct>(
    on: &impl Queue,
    weights: &Weights,
    x: &ActivationOperand<'_>,
    y: &mut BufferViewMut<'_, f32, 2>,
    epilogue: E,
) -> Result<(), Error> {
    match x {
        // SAFETY: the caller promises that the epilogue's accesses are valid.
        ActivationOperand::F32(x) => unsafe { weights.product_with(on, x, y, epilogue) },
        // SAFETY: as above.
        ActivationOperand::Quantized(x) => unsafe { weights.product_of_with(on, x, y, epilogue) },
        x => Err(mismatch(weights, x)),
    }
}

/// Queues y ← y + x·Wᵀ.
fn add_product<T: Float + GenericArgument>(
    on: &impl Queue,
    x: &BufferView<'_, T, 2>,
    w: &Arc<DeviceBuffer<T>>,
    y: &mut BufferViewMut<'_, f32, 2>,
) -> Result<(), Error> {
    let ([n, columns], [_, rows]) = (x.extents(), y.extents());
    let w = on.share(w)?;
    let mut y = y.reborrow().strided().reshaped([1, n, rows])?.side_by_side()?;
    let x = x.strided().reshaped([1, n, columns])?.side_by_side()?;
    Gemm::new().transpose_b().beta(1.0).run(on, &x, &w.view([1, rows, columns])?, &mut y)
}

/// Queues y ← x·Wᵀ + bias with weights of 16 bits: converts x to their format, then multiplies.
fn product_in_16_bits<T: Float + GenericArgument>(
    on: &impl Queue,
    x: &BufferView<'_, f32, 2>,
    w: &Arc<DeviceBuffer<T>>,
    bias: Option<BufferView<'_, f32, 1>>,
    y: BufferViewMut<'_, f32, 2>,
) -> Result<(), Error> {
    let extents @ [n, columns] = x.extents();
    let mut converted = on.scratch::<T>(n * columns)?;
    convert(on, *x, converted.view_mut(extents)?)?;
    dense_product(on, &converted.view(extents)?, w, bias, y)
}

/// Queues y ← x·Wᵀ + bias with weights that are not block-quantized.
fn dense_product<T: Float + GenericArgument>(
    on: &impl Queue,
    x: &BufferView<'_, T, 2>,
    w: &Arc<DeviceBuffer<T>>,
    bias: Option<BufferView<'_, f32, 1>>,
    y: BufferViewMut<'_, f32, 2>,
) -> Result<(), Error> {
    let ([n, columns], [_, rows]) = (x.extents(), y.extents());
    let x = x.strided().reshaped([1, n, columns])?.side_by_side()?;
    let w = on.share(w)?;
    let w = w.view([1, rows, columns])?;
    let mut y = y.strided().reshaped([1, n, rows])?.side_by_side()?;
    let gemm = Gemm::new().transpose_b();
    match bias {
        None => gemm.run(on, &x, &w, &mut y),
        Some(bias) => on.reading(&bias, || {
            // SAFETY: as for block-quantized weights.
            unsafe { gemm.run_with(on, &x, &w, &mut y, Bias { bias: bias.detached() }) }
        }),
    }
}
