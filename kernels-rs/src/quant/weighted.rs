//! Products with weights in blocks.

use super::activations::quantize_activations;
use super::few::gemv_blocks;
use super::formats::device::BlockFormat;
use super::many::{add_parts, gemm_blocks};
use super::plan::{GemvBlock, QuantCosts, QuantExtents, QuantPlan, QuantTile, group_rows, plan};
use super::tuned::WeightedShape;
use super::weights::{QueuedPlanes, Weights};
use crate::LaunchStruct;
use crate::access::WholeRows;
use crate::activation::swiglu;
use crate::dispatch::dispatch;
use crate::gemm::epilogue::{Epilogue, Identity};
use crate::operand::ArrayOperand;
use crate::queue::LibraryCall;
use crate::rowwise::plan::queue;
use crate::rowwise::{Added, Norm};
use crate::tuned::{TunableShape, TunedPlans};
use crate::with_format;
use crate::{Queue, QueueMemory};
use kernel_dsl::compiler::hir::Constant;
use kernel_dsl::{DeviceFn, Float, GenericArgument};
use runtime::{BufferView, BufferViewMut, Error};

impl Weights {
    /// Queues Y ← X·Wᵀ: X is [M, K], Y is [M, N].
    ///
    /// Each 32 numbers of a row of X are quantized to 8 bits by their largest magnitude A, or by
    /// 2⁻¹²⁰ if that is larger. A quantized number differs from that of X by at most A / 254, and
    /// the product with a row by at most Σ A·|w| / 254. A NaN counts as 0, and an infinity makes
    /// its row of Y NaN. The sums of 32 products, or of 16 with a separate scale, are exact; they
    /// are added in `f32`. The product of both scales is rounded first, to a multiple of 2⁻¹⁴⁹ if
    /// it is below 2⁻¹²⁶. A single row is quantized in the product's own kernel. Several rows are
    /// quantized by a separate launch, whose result is in scratch memory. [`Activations`] keep that
    /// result for several products of the same rows.
    ///
    /// # Errors
    /// Returns an error if extents differ, Y overlaps X, a buffer belongs to another device, or
    /// memory is insufficient.
    pub fn product<T: Float + GenericArgument>(
        &self,
        on: &impl Queue,
        x: &BufferView<'_, T, 2>,
        y: &mut BufferViewMut<'_, T, 2>,
    ) -> Result<(), Error> {
        // SAFETY: this epilogue accesses nothing.
        unsafe { self.product_with(on, x, y, Identity) }
    }

    /// Queues Y ← epilogue(X·Wᵀ). The epilogue sees Y as a batch of one matrix.
    ///
    /// # Safety
    /// The requirements of [`Gemm::run_with`](crate::gemm::Gemm::run_with) apply.
    ///
    /// # Errors
    /// Returns the errors of [`product`](Weights::product).
    pub unsafe fn product_with<T: Float + GenericArgument, E: Epilogue + LaunchStruct>(
        &self,
        on: &impl Queue,
        x: &BufferView<'_, T, 2>,
        y: &mut BufferViewMut<'_, T, 2>,
        epilogue: E,
    ) -> Result<(), Error> {
        // SAFETY: the caller guarantees that the epilogue stays within its views.
        unsafe { self.product_by(on, self.plan(on, x.extents()[0]), x, y, epilogue) }
    }

    /// Queues Y ← epilogue(X·Wᵀ), computed by a given plan.
    ///
    /// # Safety
    /// The requirements of [`Gemm::run_with`](crate::gemm::Gemm::run_with) apply.
    ///
    /// # Errors
    /// Returns the errors of [`product`](Weights::product), and an error if the plan cannot compute
    /// the rows of X.
    pub unsafe fn product_by<T: Float + GenericArgument, E: Epilogue + LaunchStruct>(
        &self,
        on: &impl Queue,
        plan: QuantPlan,
        x: &BufferView<'_, T, 2>,
        y: &mut BufferViewMut<'_, T, 2>,
        epilogue: E,
    ) -> Result<(), Error> {
        let ([rows, _], [of_y, cols]) = (x.extents(), self.extents());
        x.expected("x", [rows, cols], "a number for each column of the weights")?;
        y.expected("y", [rows, of_y], "a row for each row of x, with a number for each row of the weights")?;
        match plan {
            QuantPlan::Few(block) if rows == 1 => {
                suitable(plan, rows, y)?;
                let dense = on.scratch::<i32>(0)?;
                let rows = SingleRows { x: *x, chosen: 1, experts: dense.view([0])? };
                with_format!(self.format(), F => self.queue_single_rows::<T, E, F>(on, block, rows, y, epilogue))
            }
            plan => {
                let x = Activations::quantize(on, x)?;
                // SAFETY: the caller guarantees that the epilogue stays within its views.
                unsafe { self.product_with_plan(on, plan, &x, y, epilogue) }
            }
        }
    }

    /// Queues Y ← X·Wᵀ of quantized activations, as [`product`](Weights::product) does.
    ///
    /// # Errors
    /// Returns the errors of [`product`](Weights::product).
    pub fn product_of<T: Float + GenericArgument>(
        &self,
        on: &impl Queue,
        x: &Activations,
        y: &mut BufferViewMut<'_, T, 2>,
    ) -> Result<(), Error> {
        // SAFETY: this epilogue accesses nothing.
        unsafe { self.product_of_with(on, x, y, Identity) }
    }

    /// Queues Y ← epilogue(X·Wᵀ) of quantized activations. The epilogue sees Y as a batch of one
    /// matrix.
    ///
    /// # Safety
    /// The requirements of [`Gemm::run_with`](crate::gemm::Gemm::run_with) apply.
    ///
    /// # Errors
    /// Returns the errors of [`product`](Weights::product).
    pub unsafe fn product_of_with<T: Float + GenericArgument, E: Epilogue + LaunchStruct>(
        &self,
        on: &impl Queue,
        x: &Activations,
        y: &mut BufferViewMut<'_, T, 2>,
        epilogue: E,
    ) -> Result<(), Error> {
        // SAFETY: the caller guarantees that the epilogue stays within its views.
        // Plans of a single row are for floats.
        let plan = if x.rows == 1 { QuantPlan::few(self.format(), 1) } else { self.plan(on, x.rows) };
        // SAFETY: as above.
        unsafe { self.product_with_plan(on, plan, x, y, epilogue) }
    }

    /// Sets the table of measured plans, which `kernels tune weights --write FILE` writes, instead
    /// of the table that the library is compiled with. For a device and shape in the table,
    /// products use the plan there. A table of costs decides for all others.
    #[must_use]
    pub fn tuned(mut self, plans: &'static TunedPlans<WeightedShape>) -> Weights {
        self.tuned = Some(plans);
        self
    }

    /// Returns how products of `rows` rows of floats are computed on a device.
    pub fn plan(&self, on: &impl Queue, rows: usize) -> QuantPlan {
        let ([cols, k], format, device) = (self.extents(), self.format(), on.device());
        let tuned = self.tuned.unwrap_or_else(WeightedShape::built_in);
        let measured = match tuned.is_empty() {
            true => None,
            false => tuned.plan(device.name(), WeightedShape { m: rows, n: cols, k, format }),
        };
        let extents = QuantExtents { rows, cols, k };
        measured.unwrap_or_else(|| plan(&QuantCosts::P40, format, extents, device.facts().multiprocessors as usize))
    }

    /// Queues Y ← epilogue(X·Wᵀ) of quantized activations, computed by a given plan.
    ///
    /// # Safety
    /// The requirements of [`Gemm::run_with`](crate::gemm::Gemm::run_with) apply.
    ///
    /// # Errors
    /// Returns the errors of [`product`](Weights::product), and an error if the plan cannot compute
    /// the rows of X.
    pub unsafe fn product_with_plan<T: Float + GenericArgument, E: Epilogue + LaunchStruct>(
        &self,
        on: &impl Queue,
        plan: QuantPlan,
        x: &Activations,
        y: &mut BufferViewMut<'_, T, 2>,
        epilogue: E,
    ) -> Result<(), Error> {
        let [of_y, cols] = self.extents();
        y.expected(
            "y",
            [x.rows, of_y],
            "a row for each of the activations, with a number for each row of the weights",
        )?;
        if x.cols != cols {
            let why =
                format!("the activations have {} columns, but the weights have {cols}; both must be equal", x.cols);
            return Err(y.refused_operand(why));
        }
        let dense = on.scratch::<i32>(0)?;
        let rows = ActivationRows { x, experts: dense.view([0])?, tiles: dense.view([0])?, whole: true };
        suitable(plan, x.rows, y)?;
        with_format!(self.format(), F => match plan {
            QuantPlan::Few(block) => self.queue_few_rows::<T, E, F>(on, block, &rows, y, epilogue),
            QuantPlan::Tiles(tile, splits) => self.tiles::<T, E, F>(on, tile, splits, &rows, y, epilogue),
        })
    }

    /// Queues products of single rows; each block quantizes its row.
    pub(super) fn queue_single_rows<
        T: Float + GenericArgument,
        E: Epilogue + LaunchStruct,
        F: BlockFormat + GenericArgument,
    >(
        &self,
        on: &impl Queue,
        block: GemvBlock,
        SingleRows { x, chosen, experts }: SingleRows<'_, T>,
        y: &mut BufferViewMut<'_, T, 2>,
        epilogue: E,
    ) -> Result<(), Error> {
        let lent = self.borrow_planes::<F>(on)?;
        let (words, halves, scales) = lent.views()?;
        let (bytes, factors) = (on.scratch::<i32>(0)?, on.scratch::<f32>(0)?);
        let (bytes, factors) = (bytes.view([0, 0])?, factors.view([0, 0])?);
        let v = if x.rows_are_whole(4) { 4 } else { 1 };
        let GemvBlock { columns, threads, piece, ahead } = block;
        let numbers = [1, columns, threads, piece, ahead, v, columns, 1].map(|n| Constant::Usize(n as u32));
        let types = [F::CONSTANT, T::CONSTANT, T::CONSTANT, E::CONSTANT, Constant::Bool(true)];
        let constants: Vec<_> = types.into_iter().chain(numbers).collect();
        let call = gemv_blocks::<F, T, T, E, true, 1, 4, 512, 4096, 1, 4, 4, 1>::call(
            x, chosen, bytes, factors, words, halves, lent.units, scales, experts, y, epilogue,
        );
        // SAFETY: the launch compares the extents, and the kernel's accesses stay within them for
        // any storage format. The oracle checks that for `f32` and `f16` (`kernels check`). The
        // caller guarantees that the epilogue stays within its views.
        unsafe { queue(on, &call, &constants) }
    }

    /// Queues products of groups of up to 8 rows.
    pub(super) fn queue_few_rows<
        T: Float + GenericArgument,
        E: Epilogue + LaunchStruct,
        F: BlockFormat + GenericArgument,
    >(
        &self,
        on: &impl Queue,
        block: GemvBlock,
        rows: &ActivationRows<'_>,
        y: &mut BufferViewMut<'_, T, 2>,
        epilogue: E,
    ) -> Result<(), Error> {
        let lent = self.borrow_planes::<F>(on)?;
        let (words, halves, scales) = lent.views()?;
        let none = on.scratch::<f32>(0)?;
        let (bytes, factors) = rows.x.views()?;
        // Groups are as equal as possible, or consist of all rows of an expert's group.
        let group = if rows.whole { group_rows(rows.x.rows).max(1) } else { rows.x.room };
        let GemvBlock { columns, threads, piece, ahead } = block;
        let numbers = [group, columns, threads, piece, ahead, 4, group * columns, rows.x.room];
        let numbers = numbers.map(|n| Constant::Usize(n as u32));
        let types = [F::CONSTANT, f32::CONSTANT, T::CONSTANT, E::CONSTANT, Constant::Bool(false)];
        let constants: Vec<_> = types.into_iter().chain(numbers).collect();
        let call = gemv_blocks::<F, f32, T, E, false, 1, 4, 256, 2048, 1, 4, 4, 1>::call(
            none.view([0, 0])?,
            1,
            bytes,
            factors,
            words,
            halves,
            lent.units,
            scales,
            rows.experts,
            y,
            epilogue,
        );
        // SAFETY: as in `queue_single_rows`.
        unsafe { queue(on, &call, &constants) }
    }

    /// Queues products of tiles, with K in `splits` parts.
    pub(super) fn tiles<T: Float + GenericArgument, E: Epilogue + LaunchStruct, F: BlockFormat + GenericArgument>(
        &self,
        on: &impl Queue,
        tile: QuantTile,
        splits: usize,
        rows: &ActivationRows<'_>,
        y: &mut BufferViewMut<'_, T, 2>,
        epilogue: E,
    ) -> Result<(), Error> {
        let (lent, [m, n]) = (self.borrow_planes::<F>(on)?, y.extents());
        if splits == 1 || m * n == 0 {
            return self.parts::<T, E, F>(on, (tile, 1), &lent, rows, y, epilogue);
        }
        let mut parts = on.scratch::<f32>(splits * m * n)?;
        let mut of_parts = parts.view_mut([splits * m, n])?;
        self.parts::<f32, Identity, F>(on, (tile, splits), &lent, rows, &mut of_parts, Identity)?;
        let parts = parts.view([splits * m, n])?;
        dispatch!(let V: usize = if y.rows_are_whole(4) { 4 } else { 1 }, of [1, 4];
            // SAFETY: as in `queue_single_rows`.
            unsafe { add_parts::<T, E, V>::launch_unchecked(&LibraryCall(on), parts, splits, y, epilogue) })
    }

    /// Queues products of tiles, a matrix for each part of K.
    fn parts<T: Float + GenericArgument, E: Epilogue + LaunchStruct, F: BlockFormat + GenericArgument>(
        &self,
        on: &impl Queue,
        (tile, splits): (QuantTile, usize),
        lent: &QueuedPlanes,
        rows: &ActivationRows<'_>,
        y: &mut BufferViewMut<'_, T, 2>,
        epilogue: E,
    ) -> Result<(), Error> {
        let (words, halves, scales) = lent.views()?;
        let (bytes, factors) = rows.x.views()?;
        dispatch!(let EXPERTS: bool = !rows.whole;
        let [BM: usize, Q: usize, T_: usize, V: usize] = match (tile, y.rows_are_whole(4)) {
            (QuantTile::T16x128, true) => [16, 2, 64, 4],
            (QuantTile::T16x128, false) => [16, 2, 64, 1],
            (QuantTile::T32x128, true) => [32, 1, 128, 4],
            (QuantTile::T32x128, false) => [32, 1, 128, 1],
            (QuantTile::T64x128, true) => [64, 1, 256, 4],
            (QuantTile::T64x128, false) => [64, 1, 256, 1],
        };
        // SAFETY: as in `queue_single_rows`; `place_routes` writes only existing groups to tiles.
        unsafe {
            gemm_blocks::<F, T, E, BM, V, EXPERTS, Q, T_>::launch_unchecked(
                &LibraryCall(on),
                bytes,
                factors,
                words,
                halves,
                lent.units,
                scales,
                rows.experts,
                rows.tiles,
                rows.x.rows,
                splits,
                y,
                epilogue,
            )
        })
    }
}

/// Checks that a plan can compute rows of Y.
fn suitable<T: kernel_dsl::Element>(plan: QuantPlan, rows: usize, y: &BufferViewMut<'_, T, 2>) -> Result<(), Error> {
    match plan.unsuitable(rows) {
        None => Ok(()),
        Some(why) => Err(y.refused_operand(format!("`{plan}` cannot compute {rows} rows: {why}"))),
    }
}

/// Rows of floats that are multiplied one by one.
pub(super) struct SingleRows<'a, T: kernel_dsl::Element> {
    pub(super) x: BufferView<'a, T, 2>,
    /// The rows of Y for each row of X.
    pub(super) chosen: usize,
    /// The number of an expert for each row of Y, or nothing.
    pub(super) experts: BufferView<'a, i32, 1>,
}

/// Rows of activations, and the matrix that multiplies them.
pub(super) struct ActivationRows<'a> {
    pub(super) x: &'a Activations,
    /// The number of an expert for each group of rows, or nothing.
    pub(super) experts: BufferView<'a, i32, 1>,
    /// The first group of each tile of an expert's rows, or nothing.
    pub(super) tiles: BufferView<'a, i32, 1>,
    /// Whether the rows may be divided into other groups.
    pub(super) whole: bool,
}

/// Activations as bytes with a scale for each 32 numbers, for products with any weights that have
/// the same number of columns.
#[derive(Debug)]
pub struct Activations {
    rows: usize,
    cols: usize,
    /// Rows of a group.
    room: usize,
    /// Units of a row.
    units: usize,
    bytes: QueueMemory<i32>,
    factors: QueueMemory<f32>,
}

impl Activations {
    /// Queues the quantization of `x`, [rows, K], as [`Weights::product`] does it.
    ///
    /// # Errors
    /// Returns an error if memory is insufficient, or `x` belongs to another device.
    pub fn quantize<T: Float + GenericArgument>(
        on: &impl Queue,
        x: &BufferView<'_, T, 2>,
    ) -> Result<Activations, Error> {
        let (rows, none) = (x.extents()[0], on.scratch::<i32>(0)?);
        Activations::quantize_ordered(on, x, rows, rows.next_power_of_two().min(8), &none.view([0])?, 1)
    }

    /// Queues the quantization of f(a, b), elements of two matrices: the gate of a network before
    /// its last product, such as [`swiglu`](fn@swiglu). The results are those of [`map2`] in `f32`
    /// and [`quantize`](Activations::quantize), bit for bit, with one launch less.
    ///
    /// [`map2`]: crate::elementwise::map2
    ///
    /// # Errors
    /// Returns an error if extents differ, memory is insufficient, or an operand belongs to another
    /// device.
    pub fn quantize_gated<F: DeviceFn<(f32, f32), Output = f32>, T: Float + GenericArgument>(
        on: &impl Queue,
        _f: F,
        a: &BufferView<'_, T, 2>,
        b: &BufferView<'_, T, 2>,
    ) -> Result<Activations, Error> {
        b.expected("b", a.extents(), "the extents of a")?;
        let (rows, none) = (a.extents()[0], on.scratch::<i32>(0)?);
        let mut made = Activations::with_room(on, a.extents(), rows.next_power_of_two().min(8))?;
        let room = made.room;
        let (bytes, factors) = made.views_mut()?;
        let v = if a.rows_are_whole(4) && b.rows_are_whole(4) { 4 } else { 1 };
        dispatch!(let V: usize = v, of [1, 4];
        // SAFETY: as in `Weights::from_blocks`.
        unsafe {
            quantize_activations::<T, F, true, V>::launch_unchecked(
                &LibraryCall(on), a, b, none.view([0])?, 1, room, bytes, factors,
            )?;
        });
        Ok(made)
    }

    /// Queues the quantization of a norm of x, and z ← x + residual if requested: the norm before a
    /// product. For `f32`, the results are those of [`Norm::run_added`] and
    /// [`quantize`](Activations::quantize), bit for bit; numbers of 16 bits may be added in another
    /// order. Rows of whole accesses of four elements take one launch, others two.
    ///
    /// # Errors
    /// Returns the errors of [`Norm::run_added`].
    pub fn quantize_norm<T: Float + GenericArgument, W: Float + GenericArgument>(
        on: &impl Queue,
        norm: Norm<'_, W>,
        x: &BufferView<'_, T, 2>,
        mut added: Added<'_, '_, T>,
    ) -> Result<Activations, Error> {
        let [rows, cols] = x.extents();
        let mut made = Activations::with_room(on, [rows, cols], rows.next_power_of_two().min(8))?;
        let room = made.room;
        let (bytes, factors) = made.views_mut()?;
        if norm.quantize_units(on, x, &mut added, room, bytes, factors)? {
            return Ok(made);
        }
        let mut y = on.scratch::<f32>(rows * cols)?;
        norm.run_added(on, x, added, &mut y.view_mut([rows, cols])?, None)?;
        Activations::quantize(on, &y.view([rows, cols])?)
    }

    /// Allocates activations of rows and columns, in groups of `room` rows.
    fn with_room(on: &impl Queue, [rows, cols]: [usize; 2], room: usize) -> Result<Activations, Error> {
        // Whole blocks of 256 numbers suit every format.
        let (groups, units) = (rows.div_ceil(room), cols.div_ceil(256).max(1) * 8);
        let (bytes, factors) = (on.scratch(groups * 8 * room * units)?, on.scratch(groups * 4 * room * units)?);
        Ok(Activations { rows, cols, room, units, bytes, factors })
    }

    /// Queues the quantization of `rows` rows in groups of `room`: row i is row `order[i]` /
    /// `chosen` of `x`, or row i where there is no order.
    pub(super) fn quantize_ordered<T: Float + GenericArgument>(
        on: &impl Queue,
        x: &BufferView<'_, T, 2>,
        rows: usize,
        room: usize,
        order: &BufferView<'_, i32, 1>,
        chosen: usize,
    ) -> Result<Activations, Error> {
        let mut made = Activations::with_room(on, [rows, x.extents()[1]], room)?;
        let none = on.scratch::<T>(0)?;
        let none = none.view([0, 0])?;
        let (bytes, factors) = made.views_mut()?;
        dispatch!(let V: usize = if x.rows_are_whole(4) { 4 } else { 1 }, of [1, 4];
        // SAFETY: as in `Weights::from_blocks`.
        unsafe {
            quantize_activations::<T, swiglu, false, V>::launch_unchecked(
                &LibraryCall(on), x, none, *order, chosen, room, bytes, factors,
            )?;
        });
        Ok(made)
    }

    /// Returns the number of rows and of columns.
    #[must_use]
    pub fn extents(&self) -> [usize; 2] {
        [self.rows, self.cols]
    }

    /// Returns the extents and strides of the bytes and of the factors. Explicit strides keep rows
    /// aligned even if there are no rows.
    fn layout(&self) -> [[[usize; 2]; 2]; 2] {
        let (groups, units) = (self.rows.div_ceil(self.room), self.room * self.units);
        [8 * units, 4 * units].map(|row| [[groups, row], [row, 1]])
    }

    fn views(&self) -> Result<(BufferView<'_, i32, 2>, BufferView<'_, f32, 2>), Error> {
        let [[bytes, of_bytes], [factors, of_factors]] = self.layout();
        Ok((self.bytes.view_strided(bytes, of_bytes)?, self.factors.view_strided(factors, of_factors)?))
    }

    fn views_mut(&mut self) -> Result<(BufferViewMut<'_, i32, 2>, BufferViewMut<'_, f32, 2>), Error> {
        let [[bytes, of_bytes], [factors, of_factors]] = self.layout();
        Ok((self.bytes.view_strided_mut(bytes, of_bytes)?, self.factors.view_strided_mut(factors, of_factors)?))
    }
}
