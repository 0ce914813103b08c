//! The call for products, which checks the shapes, chooses the kernel and sums the parts.

use super::epilogue::{Epilogue, Identity};
use super::gemv::{gemv_n, gemv_t};
use super::plan::{GemmCosts, GemmPlan, GemmTile, GemvWidth, ProductShape, gemv_t_columns, plan};
use super::tiled::{gemm, sum_splits};
use crate::dispatch::dispatch;
use crate::fold::MAX_ALONG;
use crate::operand::{ArrayOperand, COUNTER_OVERRUN};
use crate::queue::LibraryCall;
use crate::tuned::{TunableShape, TunedPlans};
use crate::{LaunchStruct, Queue};
use kernel_dsl::{Float, GenericArgument};
use runtime::{BufferView, BufferViewMut, Error};

/// Matrix products C ← α·op(A)·op(B) + β·C, of single matrices or batches. Elements are stored as
/// `f32`, `f16`, `bf16` or a caller-defined format, and computed in `f32`. C may be stored in
/// another format than A and B.
///
/// op(X) is X or its transpose. C is [batch, M, N]. A is [batch, M, K], or [batch, K, M] if
/// transposed, and B is [batch, K, N] or [batch, N, K]. A single matrix is a batch of one. The last
/// stride is 1 and the others are arbitrary; a batch stride of 0 in A or B shares one matrix. Any
/// extent may be 0: without products C becomes β·C. As for every kernel, no view has more than 2³²
/// − 1 elements; K is at most 2³² − 4096. A batch of more than 65,535 products takes several
/// launches.
///
/// Each element is Σ aᵢ·bᵢ, computed by fused multiply-adds; then α·Σ, rounded; then a fused
/// multiply-add with β·C; and one more rounding if C is stored in less than `f32`. C is not read if
/// β is 0; A and B are read for every α. The order of the sum depends on the shape, on the
/// transposes, on the device's number of multiprocessors and on its tuned plans: results are
/// deterministic on one device. Without the last rounding and without underflow, an element is
/// within |α|·γ(K + 34)·Σ|aᵢ·bᵢ| + u·|element| of the exact value. Here γ(n) = n·u/(1 − n·u) and u
/// = 2⁻²⁴ (Higham, *Accuracy and Stability of Numerical Algorithms*, section 3.1).
///
/// Infinities and NaNs of A and B give the results of the formula, for every α: a NaN in row i of A
/// makes row i of C NaN, and 0 · ∞ is NaN. Gaps between rows may contain anything. If |α|·Σ|aᵢ·bᵢ|
/// is beyond 3.4·10³⁸, an element may be ±∞ or NaN although the sum is finite, because terms are
/// added in `f32`. Subnormal inputs and results are kept, with an error of at most 2⁻¹⁵⁰ per
/// rounding. An `f16` beyond ±65,504 is stored as ±∞.
///
/// The kernels are [`gemm`] with three tiles, whole or split along K, and for up to 8 rows
/// [`gemv_n`] and [`gemv_t`]. A table of their costs decides, unless a plan was measured for the
/// device and the shape ([`tuned`](Gemm::tuned)). The kernels access four elements at
/// once if all extents, strides and start addresses are multiples of four elements, and one
/// otherwise. The declared instances, `f32` and most of `f16`, are compiled into the program. Other
/// formats are compiled on first use, which takes some milliseconds.
///
/// ```
/// # fn main() -> Result<(), runtime::Error> {
/// use kernels_rs::gemm::Gemm;
/// let device = runtime::Device::cpu();
/// let a = device.upload(&[1.0f32, 2.0, 3.0, 4.0])?;
/// let b = device.upload(&[5.0f32, 6.0, 7.0, 8.0])?;
/// let mut c = device.zeros::<f32>(4)?;
/// Gemm::new().run(&device, &a.view([1, 2, 2])?, &b.view([1, 2, 2])?, &mut c.view_mut([1, 2, 2])?)?;
/// assert_eq!(c.download()?, [19.0, 22.0, 43.0, 50.0]);
/// Gemm::new().transpose_b().alpha(2.0).run(&device, &a.view([1, 2, 2])?, &b.view([1, 2, 2])?, &mut c.view_mut([1, 2, 2])?)?;
/// assert_eq!(c.download()?, [34.0, 46.0, 78.0, 106.0]);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, PartialEq, Debug)]
#[must_use]
pub struct Gemm {
    alpha: f32,
    beta: f32,
    transpose_a: bool,
    transpose_b: bool,
    costs: GemmCosts,
    tuned: Option<&'static TunedPlans<ProductShape>>,
    plan: Option<GemmPlan>,
}

impl Default for Gemm {
    fn default() -> Gemm {
        Gemm::new()
    }
}

impl Gemm {
    /// Returns a call for C ← A·B.
    pub const fn new() -> Gemm {
        Gemm {
            alpha: 1.0,
            beta: 0.0,
            transpose_a: false,
            transpose_b: false,
            costs: GemmCosts::H200,
            tuned: None,
            plan: None,
        }
    }

    /// Sets the factor of the product.
    pub const fn alpha(self, alpha: f32) -> Gemm {
        Gemm { alpha, ..self }
    }

    /// Sets the factor of the previous contents of C.
    pub const fn beta(self, beta: f32) -> Gemm {
        Gemm { beta, ..self }
    }

    /// Declares that A is given as [batch, K, M].
    pub const fn transpose_a(self) -> Gemm {
        Gemm { transpose_a: true, ..self }
    }

    /// Declares that B is given as [batch, N, K].
    pub const fn transpose_b(self) -> Gemm {
        Gemm { transpose_b: true, ..self }
    }

    /// Sets the costs of the kernels, if they were measured on the device
    /// (`kernels bench --suite plan`). The costs decide which kernel is used.
    pub const fn costs(self, costs: GemmCosts) -> Gemm {
        Gemm { costs, ..self }
    }

    /// Sets the table of measured plans, which `kernels tune gemm --write FILE` writes, instead of
    /// [`ProductShape::built_in`](TunableShape::built_in). For a device and shape in the table,
    /// products of `f32` use the plan there. [`costs`](Gemm::costs) decides for all others.
    pub const fn tuned(self, plans: &'static TunedPlans<ProductShape>) -> Gemm {
        Gemm { tuned: Some(plans), ..self }
    }

    /// Sets how the product is computed, instead of the plan that [`tuned`](Gemm::tuned) and
    /// [`costs`](Gemm::costs) choose.
    pub const fn plan(self, plan: GemmPlan) -> Gemm {
        Gemm { plan: Some(plan), ..self }
    }

    /// Returns how this call computes `batch` products of `f32` of the extents M, N and K on a
    /// device.
    pub fn chosen(self, on: &impl Queue, batch: usize, [m, n, k]: [usize; 3]) -> GemmPlan {
        self.chosen_for(on, batch, [m, n, k], true)
    }

    /// Returns the plan for elements of `f32`, for which there are tuned plans, or of another type.
    fn chosen_for(self, on: &impl Queue, batch: usize, [m, n, k]: [usize; 3], of_f32: bool) -> GemmPlan {
        if let Some(plan) = self.plan {
            return plan;
        }
        let device = on.device();
        let Gemm { transpose_a, transpose_b, .. } = self;
        let tuned = self.tuned.unwrap_or_else(ProductShape::built_in);
        let shape = ProductShape { batch, m, n, k, transpose_a, transpose_b };
        if of_f32
            && !tuned.is_empty()
            && let Some(plan) = tuned.plan(device.name(), shape)
        {
            return plan;
        }
        plan(&self.costs, shape, device.facts().multiprocessors)
    }

    /// Queues the product.
    ///
    /// # Errors
    /// Returns an error if extents do not match or exceed the limits above, or if C overlaps A or
    /// B. Also returns an error if a buffer belongs to another device, or memory for the parts of a
    /// split product is insufficient.
    pub fn run<T: Float + GenericArgument, O: Float + GenericArgument>(
        self,
        on: &impl Queue,
        a: &BufferView<'_, T, 3>,
        b: &BufferView<'_, T, 3>,
        c: &mut BufferViewMut<'_, O, 3>,
    ) -> Result<(), Error> {
        // SAFETY: this epilogue accesses no memory.
        unsafe { self.run_with(on, a, b, c, Identity) }
    }

    /// Queues C ← epilogue(α·op(A)·op(B) + β·C), with the same kernels. With an epilogue other than
    /// [`Identity`] they are compiled on first use, which takes some milliseconds.
    ///
    /// # Safety
    /// The kernels run without checks. For every element of C, the epilogue must access memory
    /// within its views only; the views must be alive and not be written meanwhile. A
    /// [`Bias`](super::epilogue::Bias) needs an element for each column, and a
    /// [`Residual`](super::epilogue::Residual) the extents of C. On the CPU an access out of bounds
    /// is an error in any case.
    ///
    /// # Errors
    /// Returns the errors of [`run`](Gemm::run).
    pub unsafe fn run_with<T: Float + GenericArgument, O: Float + GenericArgument, E: Epilogue + LaunchStruct>(
        self,
        on: &impl Queue,
        a: &BufferView<'_, T, 3>,
        b: &BufferView<'_, T, 3>,
        c: &mut BufferViewMut<'_, O, 3>,
        epilogue: E,
    ) -> Result<(), Error> {
        let [batch, m, n] = c.extents();
        let [_, rows, cols] = a.extents();
        let k = if self.transpose_a { rows } else { cols };
        let of_a = if self.transpose_a { [batch, k, m] } else { [batch, m, k] };
        let of_b = if self.transpose_b { [batch, n, k] } else { [batch, k, n] };
        a.expected("a", of_a, "a matrix for each of c; op(A) has the rows of c")?;
        b.expected(
            "b",
            of_b,
            "a matrix for each of c; op(B) has the columns of c, and a row for each column of op(A)",
        )?;
        let of_f32 = T::CONSTANT == f32::CONSTANT && O::CONSTANT == f32::CONSTANT;
        let plan = self.chosen_for(on, batch, [m, n, k], of_f32);
        if let Some(why) = plan.unsuitable(self.transpose_a, self.transpose_b) {
            return Err(c.refused_operand(format!("{plan:?} does not apply: {why}")));
        }
        a.countable(k, COUNTER_OVERRUN)?;
        let fours = [a.extents()[2], b.extents()[2], n, k].iter().all(|n| n % 4 == 0)
            && a.aligned(4)
            && b.aligned(4)
            && c.aligned(4);
        dispatch!(let V: usize = if fours { 4 } else { 1 }, of [1, 4];
        let TA: bool = self.transpose_a;
        let TB: bool = self.transpose_b;
        for first in (0..batch).step_by(MAX_ALONG) {
            let some = first..batch.min(first + MAX_ALONG);
            let (a, b, mut c) = (a.slice(some.clone())?, b.slice(some.clone())?, c.reborrow().slice(some)?);
            self.planned::<T, O, V, TA, TB, E>(plan, on, &a, &b, &mut c, first, epilogue)?;
        });
        Ok(())
    }

    /// Queues a product by the kernels for one combination of access and transposition. There are
    /// at most [`MAX_ALONG`] matrices. The epilogue counts them from `first`.
    #[allow(clippy::too_many_arguments, reason = "the operands and the queue")]
    fn planned<
        T: Float + GenericArgument,
        O: Float + GenericArgument,
        const V: usize,
        const TA: bool,
        const TB: bool,
        E: Epilogue + LaunchStruct,
    >(
        self,
        plan: GemmPlan,
        on: &impl Queue,
        a: &BufferView<'_, T, 3>,
        b: &BufferView<'_, T, 3>,
        c: &mut BufferViewMut<'_, O, 3>,
        first: usize,
        epilogue: E,
    ) -> Result<(), Error> {
        let Gemm { alpha, beta, .. } = self;
        let bytes = size_of::<T>();
        match plan {
            GemmPlan::Tiles(tile, 1) => tiled::<T, O, V, TA, TB, E>(tile, on, alpha, a, b, beta, c, 1, first, epilogue),
            GemmPlan::Tiles(tile, splits) => {
                let [batch, m, n] = c.extents();
                let shape = [batch * splits, m, n];
                let mut parts = on.scratch::<f32>(shape.iter().product())?;
                tiled::<T, f32, V, TA, TB, Identity>(
                    tile,
                    on,
                    1.0,
                    a,
                    b,
                    0.0,
                    &mut parts.view_mut(shape)?,
                    splits,
                    first,
                    Identity,
                )?;
                let parts = &parts.view(shape)?;
                // SAFETY: as for the kernels of a few rows, below.
                unsafe {
                    sum_splits::<O, E, V>::launch_unchecked(
                        &LibraryCall(on),
                        alpha,
                        parts,
                        splits,
                        beta,
                        c,
                        first,
                        epilogue,
                    )
                }
            }
            GemmPlan::GemvN(rows, lanes) => {
                dispatch!(let [ROWS: usize, LANES: usize, STEPS_AHEAD: usize, THREADS: usize] = match (rows, lanes) {
                    // Elements of two bytes need more threads to have as many bytes in flight.
                    (1, GemvWidth::Columns32) if bytes == 2 => [1, 8, 8, 512],
                    (1, GemvWidth::Columns32) => [1, 8, 16, 256],
                    (1, GemvWidth::Columns16) => [1, 4, 8, 256],
                    (2, GemvWidth::Columns32) => [2, 8, 8, 256],
                    (2, GemvWidth::Columns16) => [2, 4, 4, 256],
                    (4, GemvWidth::Columns32) => [4, 8, 8, 256],
                    (4, GemvWidth::Columns16) => [4, 4, 4, 256],
                    (_, GemvWidth::Columns32) => [8, 8, 4, 256],
                    (_, GemvWidth::Columns16) => [8, 4, 4, 256],
                };
                // SAFETY: the launch compares all extents with one another, and the kernel accesses
                // elements within them only, whatever their type. The oracle ran the kernel in
                // `f32` and `f16` at and around every edge of its tiles (`kernels check`). The
                // caller guarantees that the epilogue stays within its views.
                unsafe {
                    gemv_n::<T, T, O, E, ROWS, LANES, STEPS_AHEAD, THREADS, V>::launch_unchecked(
                        &LibraryCall(on), alpha, a, b, beta, c, first, epilogue,
                    )
                })
            }
            GemmPlan::GemvT(rows) => {
                let eights = |x: &BufferView<'_, T, 3>| x.extents()[2].is_multiple_of(8) && x.aligned(8);
                // An access of 16 bytes takes four or eight elements.
                dispatch!(let [W: usize, P: usize] = match bytes {
                    2 if eights(a) && eights(b) => [8, 8],
                    4 if V == 4 => [4, 4],
                    _ => [1, 4],
                };
                dispatch!(let [ROWS: usize, COLS: usize] = match rows {
                    1 => [1, gemv_t_columns(1)],
                    2 => [2, gemv_t_columns(2)],
                    4 => [4, gemv_t_columns(4)],
                    _ => [8, gemv_t_columns(8)],
                };
                // SAFETY: as for `GemmPlan::GemvN`.
                unsafe { gemv_t::<T, T, O, E, ROWS, COLS, W, P>::launch_unchecked(&LibraryCall(on), alpha, a, b, beta, c, first, epilogue) }))
            }
        }
    }
}

/// Launches `gemm` with one of its tiles.
#[allow(clippy::too_many_arguments, reason = "the arguments of the kernel and the queue")]
fn tiled<
    T: Float + GenericArgument,
    O: Float + GenericArgument,
    const V: usize,
    const TA: bool,
    const TB: bool,
    E: Epilogue + LaunchStruct,
>(
    tile: GemmTile,
    on: &impl Queue,
    alpha: f32,
    a: &BufferView<'_, T, 3>,
    b: &BufferView<'_, T, 3>,
    beta: f32,
    c: &mut BufferViewMut<'_, O, 3>,
    splits: usize,
    first: usize,
    epilogue: E,
) -> Result<(), Error> {
    // With 2-byte elements, a tile of twice the depth needs no more registers for loads in flight.
    // But if B is transposed on its way, multiplications would wait for one another's registers.
    let deep = size_of::<T>() <= 2 && !TB;
    dispatch!(let [BM: usize, BN: usize, BK: usize, QM: usize, QN: usize, THREADS: usize, LA: usize, LB: usize] = match (tile, deep) {
        (GemmTile::T128x128, true) => [128, 128, 16, 2, 2, 256, 2, 2],
        (GemmTile::T128x128, false) => [128, 128, 8, 2, 2, 256, 1, 1],
        (GemmTile::T64x128, _) => [64, 128, 8, 2, 2, 128, 1, 2],
        (GemmTile::T16x128, _) => [16, 128, 32, 1, 1, 128, 1, 8],
    };
    // SAFETY: as in `planned`.
    unsafe {
        gemm::<T, T, O, E, BM, BN, BK, QM, QN, V, TA, TB, THREADS, LA, LB>::launch_unchecked(
            &LibraryCall(on), alpha, a, b, beta, c, splits, first, epilogue,
        )
    })
}
