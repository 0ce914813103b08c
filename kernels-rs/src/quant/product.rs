//! The call of a product of integers.

use super::igemm::{Output, igemm};
use super::sums::{sum_columns, sum_rows};
use crate::LaunchStruct;
use crate::Queue;
use crate::access::WholeRows;
use crate::gemm::epilogue::{Epilogue, Identity};
use crate::operand::{ArrayOperand, COUNTER_OVERRUN};
use crate::queue::LibraryCall;
use kernel_dsl::{Element, GenericArgument};
use runtime::{BufferView, BufferViewMut, Error};

/// Matrices of signed bytes q with the value scale · (q − zero), the affine quantization of
/// Jacob et al. (*Quantization and Training of Neural Networks for Efficient
/// Integer-Arithmetic-Only Inference*, 2018, section 2.1).
///
/// There is one scale and zero point for all, or one for each row of op(A) or column of op(B). The
/// matrices of a batch share these numbers, or each matrix has its own, in order. The default scale
/// is 1, and the default zero point 0. Scales and zero points do not vary along K.
#[derive(Clone, Copy, Debug)]
pub struct Quantized<'a> {
    values: BufferView<'a, i8, 3>,
    scale: Option<BufferView<'a, f32, 1>>,
    zero: Option<BufferView<'a, i32, 1>>,
}

impl<'a> Quantized<'a> {
    /// Takes the integers, a batch of matrices, [batch, rows, columns], without scales and zero
    /// points.
    #[must_use]
    pub fn new(values: BufferView<'a, i8, 3>) -> Quantized<'a> {
        Quantized { values, scale: None, zero: None }
    }

    /// Sets the scales: one for all, one for each row of op(A) or column of op(B), or these for
    /// each matrix of the batch, in order.
    #[must_use]
    pub fn scale(self, scale: BufferView<'a, f32, 1>) -> Quantized<'a> {
        Quantized { scale: Some(scale), ..self }
    }

    /// Sets the zero points: one for all, one for each row of op(A) or column of op(B), or these
    /// for each matrix of the batch, in order.
    #[must_use]
    pub fn zero(self, zero: BufferView<'a, i32, 1>) -> Quantized<'a> {
        Quantized { zero: Some(zero), ..self }
    }
}

/// C ← op(A)·op(B) of signed bytes, summed exactly in 32 bits by `dp4a`.
///
/// op(X) is X or its transpose. C is [batch, M, N]. A is [batch, M, K], or [batch, K, M] if it is
/// transposed. B is [batch, K, N], or [batch, N, K] if it is transposed, which is the usual form of
/// weights and the fastest. The last stride is 1. Other strides are arbitrary, and 0 in A and B if
/// a batch shares one matrix. Any extent may be 0. A batch of more than 65,535 products may take at
/// most 2³¹ − 1 blocks of threads; each product takes at least one. K is at most 2³² − 4096.
///
/// | C | what is written |
/// |---|---|
/// | `i32` | Σ (a − zₐ)·(b − z_b), modulo 2³²: exact if K is at most 2¹⁷ and there are no zero points. Scales are ignored |
/// | `f32`, `f16` | epilogue(sₐ·s_b·Σ), the scales multiplied first: three roundings with that of Σ to `f32`, which is exact up to 2²⁴; one more to `f16` |
/// | `i8` | epilogue(sₐ·s_b·Σ) times 1 / scale of the output, rounded to even, plus its zero point, saturated |
///
/// The product sₐ·s_b is rounded first. If the product overflows `f32`, C is ±∞, or NaN for 0·∞; a
/// subnormal product has lost bits. An infinite or NaN scale has the results of `f32` arithmetic.
/// As `i8`, an infinity saturates and a NaN becomes the byte 0.
///
/// Reads have 16 bytes if the address, the strides and K of every matrix with K along its rows are
/// multiples of 16 bytes. Reads have 4 bytes if these are multiples of 4, and M and N too;
/// otherwise single bytes. Declared forms are part of the program. Other forms are compiled on
/// first use, which takes some milliseconds.
///
/// ```
/// # fn main() -> Result<(), runtime::Error> {
/// use kernels_rs::quant::{Igemm, Quantized};
/// let device = runtime::Device::cpu();
/// let a = device.upload(&[1i8, -2, 3, 4])?;
/// let b = device.upload(&[5i8, 6, 7, -128])?;
/// let (a, b) = (a.view([1, 2, 2])?, b.view([1, 2, 2])?);
/// let mut c = device.zeros::<i32>(4)?;
/// Igemm::new().run(&device, Quantized::new(a), Quantized::new(b), &mut c.view_mut([1, 2, 2])?)?;
/// assert_eq!(c.download()?, [-9, 262, 43, -494]);
///
/// // The rows of A have scales 0.5 and 0.25, and zero points 0 and 1.
/// let (scale, zero) = (device.upload(&[0.5f32, 0.25])?, device.upload(&[0, 1])?);
/// let mut c = device.zeros::<f32>(4)?;
/// let a = Quantized::new(a).scale(scale.view([2])?).zero(zero.view([2])?);
/// Igemm::new().run(&device, a, Quantized::new(b), &mut c.view_mut([1, 2, 2])?)?;
/// assert_eq!(c.download()?, [-4.5, 131.0, 7.75, -93.0]);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, PartialEq, Debug)]
#[must_use]
pub struct Igemm {
    transpose_a: bool,
    transpose_b: bool,
    scale: f32,
    zero: i32,
}

impl Default for Igemm {
    fn default() -> Igemm {
        Igemm::new()
    }
}

impl Igemm {
    /// Makes the product C ← A·B.
    pub const fn new() -> Igemm {
        Igemm { transpose_a: false, transpose_b: false, scale: 1.0, zero: 0 }
    }

    /// Declares that A is transposed: [batch, K, M].
    pub const fn transpose_a(self) -> Igemm {
        Igemm { transpose_a: true, ..self }
    }

    /// Declares that B is transposed: [batch, N, K].
    pub const fn transpose_b(self) -> Igemm {
        Igemm { transpose_b: true, ..self }
    }

    /// Sets the value of a byte q of C: `scale` · (q − `zero`), with a normal scale above 0.
    pub const fn output(self, scale: f32, zero: i32) -> Igemm {
        Igemm { scale, zero, ..self }
    }

    /// Queues the product.
    ///
    /// # Errors
    /// Rejects extents that differ or exceed the limits above, and a scale of the output that is
    /// not a normal number above 0. Rejects a C that overlaps an input, and buffers of another
    /// device. Fails if there is no memory for the sums of rows and columns, which zero points
    /// need.
    pub fn run<C: Output + GenericArgument>(
        self,
        on: &impl Queue,
        a: Quantized<'_>,
        b: Quantized<'_>,
        c: &mut BufferViewMut<'_, C, 3>,
    ) -> Result<(), Error> {
        // SAFETY: this epilogue accesses nothing.
        unsafe { self.run_with(on, a, b, c, Identity) }
    }

    /// Queues the product with an epilogue, which receives the elements before they are rounded to
    /// the type of C. For `i32` the epilogue is not called.
    ///
    /// # Safety
    /// The requirements of [`Gemm::run_with`](crate::gemm::Gemm::run_with) apply.
    ///
    /// # Errors
    /// Returns the errors of [`run`](Igemm::run).
    pub unsafe fn run_with<C: Output + GenericArgument, E: Epilogue + LaunchStruct>(
        self,
        on: &impl Queue,
        a: Quantized<'_>,
        b: Quantized<'_>,
        c: &mut BufferViewMut<'_, C, 3>,
        epilogue: E,
    ) -> Result<(), Error> {
        let [batch, m, n] = c.extents();
        let [_, rows, cols] = a.values.extents();
        let (k, of_a) = if self.transpose_a { (rows, [batch, rows, m]) } else { (cols, [batch, m, cols]) };
        a.values.expected("A", of_a, "a matrix for each of C; op(A) has the rows of C")?;
        let of_b = if self.transpose_b { [batch, n, k] } else { [batch, k, n] };
        b.values.expected(
            "B",
            of_b,
            "a matrix for each of C; op(B) has the columns of C, and a row for each column of op(A)",
        )?;
        for (name, of, each, lines) in [("A", a, m, "row of op(A)"), ("B", b, n, "column of op(B)")] {
            check_list(&format!("the scales of {name}"), of.scale, each, batch, lines)?;
            check_list(&format!("the zero points of {name}"), of.zero, each, batch, lines)?;
        }
        // Numbers are multiplied by the inverse of the scale.
        if !(self.scale.is_normal() && self.scale > 0.0) {
            let why = format!("the scale of the output is {:?}; it must be a normal number above 0", self.scale);
            return Err(c.refused_operand(why));
        }
        let width = self.width(a, b, c);
        match (width, self.transpose_a, self.transpose_b) {
            (AccessWidth::Quads, false, false) => self.chosen::<C, E, 16, false, false>(on, a, b, c, epilogue),
            (AccessWidth::Quads, false, true) => self.chosen::<C, E, 16, false, true>(on, a, b, c, epilogue),
            (AccessWidth::Quads, true, false) => self.chosen::<C, E, 16, true, false>(on, a, b, c, epilogue),
            (AccessWidth::Quads, true, true) => self.chosen::<C, E, 16, true, true>(on, a, b, c, epilogue),
            (AccessWidth::Words, false, false) => self.chosen::<C, E, 4, false, false>(on, a, b, c, epilogue),
            (AccessWidth::Words, false, true) => self.chosen::<C, E, 4, false, true>(on, a, b, c, epilogue),
            (AccessWidth::Words, true, false) => self.chosen::<C, E, 4, true, false>(on, a, b, c, epilogue),
            (AccessWidth::Words, true, true) => self.chosen::<C, E, 4, true, true>(on, a, b, c, epilogue),
            (AccessWidth::Bytes, false, false) => self.bytewise::<C, E, false, false>(on, a, b, c, epilogue),
            (AccessWidth::Bytes, false, true) => self.bytewise::<C, E, false, true>(on, a, b, c, epilogue),
            (AccessWidth::Bytes, true, false) => self.bytewise::<C, E, true, false>(on, a, b, c, epilogue),
            (AccessWidth::Bytes, true, true) => self.bytewise::<C, E, true, true>(on, a, b, c, epilogue),
        }
    }

    /// Returns the widest access that all matrices allow. If K runs down the columns of a matrix,
    /// four bytes of a row are read at once.
    fn width<C: Output>(self, a: Quantized<'_>, b: Quantized<'_>, c: &BufferViewMut<'_, C, 3>) -> AccessWidth {
        let fours = a.values.rows_are_whole(4) && b.values.rows_are_whole(4) && c.rows_are_whole(4);
        let quads =
            (self.transpose_a || a.values.rows_are_whole(16)) && (!self.transpose_b || b.values.rows_are_whole(16));
        match (fours, quads) {
            (true, true) => AccessWidth::Quads,
            (true, false) => AccessWidth::Words,
            (false, _) => AccessWidth::Bytes,
        }
    }

    fn chosen<
        C: Output + GenericArgument,
        E: Epilogue + LaunchStruct,
        const V: usize,
        const TA: bool,
        const TB: bool,
    >(
        self,
        on: &impl Queue,
        a: Quantized<'_>,
        b: Quantized<'_>,
        c: &mut BufferViewMut<'_, C, 3>,
        epilogue: E,
    ) -> Result<(), Error> {
        let [batch, m, n] = c.extents();
        let tiles = batch * m.div_ceil(128) * n.div_ceil(128);
        // Large tiles pay only if there are two for each multiprocessor, which runs two at once.
        if m <= 64 || tiles < 2 * on.device().facts().multiprocessors as usize {
            self.launched::<C, E, 64, 128, 2, 2, V, TA, TB, 128, 1, 2>(on, a, b, c, epilogue)
        } else {
            self.launched::<C, E, 128, 128, 2, 2, V, TA, TB, 256, 1, 1>(on, a, b, c, epilogue)
        }
    }

    fn bytewise<C: Output + GenericArgument, E: Epilogue + LaunchStruct, const TA: bool, const TB: bool>(
        self,
        on: &impl Queue,
        a: Quantized<'_>,
        b: Quantized<'_>,
        c: &mut BufferViewMut<'_, C, 3>,
        epilogue: E,
    ) -> Result<(), Error> {
        self.launched::<C, E, 64, 64, 1, 2, 1, TA, TB, 128, 1, 1>(on, a, b, c, epilogue)
    }

    fn launched<
        C: Output + GenericArgument,
        E: Epilogue + LaunchStruct,
        const BM: usize,
        const BN: usize,
        const QM: usize,
        const QN: usize,
        const V: usize,
        const TA: bool,
        const TB: bool,
        const T: usize,
        const LA: usize,
        const LB: usize,
    >(
        self,
        on: &impl Queue,
        a: Quantized<'_>,
        b: Quantized<'_>,
        c: &mut BufferViewMut<'_, C, 3>,
        epilogue: E,
    ) -> Result<(), Error> {
        let [batch, m, n] = c.extents();
        a.values.countable(a.values.extents()[if TA { 1 } else { 2 }], COUNTER_OVERRUN)?;
        let tiles = m.div_ceil(BM).saturating_mul(n.div_ceil(BN));
        c.check_grid([tiles, batch, 1], format_args!("{batch} products of {m} × {n} elements"))?;
        let (no_scale, no_zero) = (on.scratch::<f32>(0)?, on.scratch::<i32>(0)?);
        let (no_scale, no_zero) = (no_scale.view([0])?, no_zero.view([0])?);
        let (of_a, of_b) =
            (if b.zero.is_some() { [batch, m] } else { [0; 2] }, if a.zero.is_some() { [batch, n] } else { [0; 2] });
        let mut sums_a = on.scratch::<i32>(of_a.iter().product())?;
        let mut sums_b = on.scratch::<i32>(of_b.iter().product())?;
        if b.zero.is_some() {
            queue_sums(on, &a.values, !TA, &mut sums_a.view_mut(of_a)?)?;
        }
        if a.zero.is_some() {
            queue_sums(on, &b.values, TB, &mut sums_b.view_mut(of_b)?)?;
        }
        // SAFETY: the launch compares all extents, and the kernel accesses elements within them:
        // the oracle ran it at and around every edge of its tiles (`kernels check`). The caller is
        // responsible for the epilogue.
        unsafe {
            igemm::<C, E, BM, BN, QM, QN, V, TA, TB, T, LA, LB>::launch_unchecked(
                &LibraryCall(on),
                a.values,
                a.scale.unwrap_or(no_scale),
                a.zero.unwrap_or(no_zero),
                sums_a.view(of_a)?,
                b.values,
                b.scale.unwrap_or(no_scale),
                b.zero.unwrap_or(no_zero),
                sums_b.view(of_b)?,
                c,
                1.0 / self.scale,
                self.zero as f32,
                epilogue,
            )
        }
    }
}

/// Rejects numbers that are neither one for all, nor one for each of the `each` lines of a matrix
/// or of every matrix. Also rejects an empty list, which the kernel would treat as absent.
fn check_list<T: Element>(
    name: &str,
    given: Option<BufferView<'_, T, 1>>,
    each: usize,
    batch: usize,
    line: &str,
) -> Result<(), Error> {
    let Some(list) = given else { return Ok(()) };
    let [n] = list.extents();
    let all = each.saturating_mul(batch);
    if n == 1 || n == each || n == all {
        return Ok(());
    }
    Err(list.refused_operand(format!(
        "{name} are {n}; expected 1 for all, {each} for one per {line}, or {all} for one per {line} of every matrix"
    )))
}

/// The width of the accesses to all matrices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum AccessWidth {
    /// 16 bytes along K.
    Quads,
    /// 4 bytes.
    Words,
    /// Single bytes.
    Bytes,
}

/// Queues the sums of each row, or each column, of a batch of matrices.
fn queue_sums(
    on: &impl Queue,
    of: &BufferView<'_, i8, 3>,
    rows: bool,
    to: &mut BufferViewMut<'_, i32, 2>,
) -> Result<(), Error> {
    // SAFETY: the launch compares the extents, and the kernels access elements within them, as the
    // oracle verifies.
    unsafe {
        match (rows, of.rows_are_whole(16), of.rows_are_whole(4)) {
            (true, true, _) => sum_rows::<16>::launch_unchecked(&LibraryCall(on), of, to),
            (true, false, _) => sum_rows::<1>::launch_unchecked(&LibraryCall(on), of, to),
            (false, _, true) => sum_columns::<4>::launch_unchecked(&LibraryCall(on), of, to),
            (false, _, false) => sum_columns::<1>::launch_unchecked(&LibraryCall(on), of, to),
        }
    }
}
