//! The calls for gradients of softmax and norms.

use super::plan::{Team, queue, wide};
use super::{Norm, Softmax};
use crate::Queue;
use crate::operand::{ArrayOperand, check_optional};
use crate::queue::LibraryCall;
use crate::rowwise::backward::{norm_backward, norm_columns, norm_columns_sum, softmax_backward};
use kernel_dsl::compiler::hir::Constant;
use kernel_dsl::{Float, GenericArgument};
use runtime::{BufferView, BufferViewMut, Error};

/// The maximum number of elements of each of two matrices that a thread keeps.
const MAX_KEPT_ELEMENTS: u32 = 8;

/// The minimum number of rows of a slab, and the maximum number of slabs.
const SLAB: usize = 64;
const SLABS: usize = 256;

impl Softmax<'_> {
    /// Queues dx, the gradient of x, from y = softmax of scale · x + bias, or its logarithm, and
    /// dy, the gradient of y. Masked elements get 0. The gradient of the bias is dx / scale.
    ///
    /// Where y is 0, or −∞ for the logarithm, dx is 0 and dy is ignored: it may be NaN. Another NaN
    /// or ∞ in dy makes the rest of its row NaN or ∞. Finite gradients may do so, too, if the sum
    /// of their magnitudes in a row exceeds 3.4·10³⁸.
    ///
    /// # Errors
    /// Returns an error if extents differ, dx overlaps y or dy, or a buffer belongs to another
    /// device.
    pub fn backward<T: Float + GenericArgument>(
        self,
        on: &impl Queue,
        y: &BufferView<'_, T, 2>,
        dy: &BufferView<'_, T, 2>,
        dx: &mut BufferViewMut<'_, T, 2>,
    ) -> Result<(), Error> {
        let [rows, cols] = y.extents();
        dy.expected("dy", [rows, cols], "the extents of y")?;
        dx.expected("dx", [rows, cols], "the extents of y")?;
        let wide = wide::<T>(cols, |wide| vec![y.aligned(wide), dy.aligned(wide), dx.aligned(wide)]);
        let constants = [T::CONSTANT, Constant::Bool(self.log)].into_iter();
        let constants: Vec<_> =
            constants.chain(Team::of(on.device(), rows, cols, MAX_KEPT_ELEMENTS).constants(wide)).collect();
        let call = softmax_backward::<T, false, 32, 8, 1, 8, 8>::call(self.scale, y, dy, dx);
        // SAFETY: the launch checks all extents against each other, and the kernel's accesses stay
        // within them.
        unsafe { queue(on, &call, &constants) }
    }
}

/// Rejects saved statistics of z, or a gradient of y, that do not match the extents of z.
fn of_rows<T: Float>(
    z: &BufferView<'_, T, 2>,
    saved: &BufferView<'_, f32, 2>,
    dy: &BufferView<'_, T, 2>,
) -> Result<(), Error> {
    saved.expected("saved", [z.extents()[0], 2], "two numbers for each row of z")?;
    dy.expected("dy", z.extents(), "the extents of z")
}

impl<W: Float + GenericArgument> Norm<'_, W> {
    /// Queues dz, the gradient of z, from z, the statistics that [`run_added`](Norm::run_added)
    /// saved, and dy, the gradient of y. dz is also the gradient of x and of the residual, whose
    /// sum is z.
    ///
    /// Any finite z is supported, with one exception: a row with a saved factor of ∞ (a deviation
    /// below 2⁻¹²⁸ with an ε of 0) has no finite gradient. A NaN or ∞ in z or dy makes its row NaN.
    /// Finite gradients may do so, too, if the sum of their magnitudes in a row exceeds 3.4·10³⁸.
    ///
    /// # Errors
    /// Returns an error if extents do not match, dz overlaps another operand, or a buffer belongs
    /// to another device.
    pub fn backward<T: Float + GenericArgument>(
        self,
        on: &impl Queue,
        z: &BufferView<'_, T, 2>,
        saved: &BufferView<'_, f32, 2>,
        dy: &BufferView<'_, T, 2>,
        dz: &mut BufferViewMut<'_, T, 2>,
    ) -> Result<(), Error> {
        let [rows, cols] = z.extents();
        self.of_columns(cols)?;
        dz.expected("dz", [rows, cols], "the extents of z")?;
        of_rows(z, saved, dy)?;
        let wide = wide::<T>(cols, |wide| {
            let all = [z.aligned(wide), dy.aligned(wide), dz.aligned(wide)];
            all.into_iter().chain(self.weight.map(|weight| weight.aligned(wide))).collect()
        });
        let none = on.scratch::<W>(0)?;
        let none = none.view([0])?;
        let types = [T::CONSTANT, W::CONSTANT, Constant::Bool(self.centered)].into_iter();
        let constants: Vec<_> =
            types.chain(Team::of(on.device(), rows, cols, MAX_KEPT_ELEMENTS).constants(wide)).collect();
        let weight = self.weight.unwrap_or(&none);
        let call = norm_backward::<T, W, true, 32, 8, 1, 8, 8>::call(z, saved, weight, dy, dz);
        // SAFETY: as above.
        unsafe { queue(on, &call, &constants) }
    }

    /// Queues the gradients of weight and bias, if requested: sums over the rows, in an order that
    /// depends on their number only.
    ///
    /// # Errors
    /// Returns the errors of [`backward`](Norm::backward), and an error if memory for partial sums
    /// is insufficient.
    pub fn backward_columns<T: Float + GenericArgument>(
        self,
        on: &impl Queue,
        z: &BufferView<'_, T, 2>,
        saved: &BufferView<'_, f32, 2>,
        dy: &BufferView<'_, T, 2>,
        dweight: Option<&mut BufferViewMut<'_, W, 1>>,
        dbias: Option<&mut BufferViewMut<'_, W, 1>>,
    ) -> Result<(), Error> {
        let [rows, cols] = z.extents();
        of_rows(z, saved, dy)?;
        check_optional(dweight.as_deref(), "dweight", [cols], "a number for each column of z")?;
        check_optional(dbias.as_deref(), "dbias", [cols], "a number for each column of z")?;
        let slab = rows.div_ceil(SLABS).max(SLAB);
        let shape = [rows.div_ceil(slab), 2, cols];
        let mut parts = on.scratch::<f32>(shape.iter().product())?;
        let quads = cols.is_multiple_of(4) && [z.aligned(4), dy.aligned(4)].into_iter().all(|begins| begins);
        let constants = [T::CONSTANT, Constant::Usize(if quads { 4 } else { 1 })];
        let mut written = parts.view_mut(shape)?;
        let call = norm_columns::<T, 1>::call(z, saved, dy, slab, &mut written);
        // SAFETY: as above; every part is written.
        unsafe { queue(on, &call, &constants) }?;
        let (mut no_weight, mut no_bias) = (on.scratch::<W>(0)?, on.scratch::<W>(0)?);
        let mut dweight = match dweight {
            Some(dweight) => dweight.reborrow(),
            None => no_weight.view_mut([0])?,
        };
        let mut dbias = match dbias {
            Some(dbias) => dbias.reborrow(),
            None => no_bias.view_mut([0])?,
        };
        // SAFETY: as above.
        unsafe {
            norm_columns_sum::<W>::launch_unchecked(&LibraryCall(on), parts.view(shape)?, &mut dweight, &mut dbias)
        }
    }
}
