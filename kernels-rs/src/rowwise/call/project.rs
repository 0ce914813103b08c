//! The call for a norm followed by a product. Few rows take one kernel, many rows two.

use super::Norm;
use crate::Queue;
use crate::access::WholeRows;
use crate::dispatch::dispatch;
use crate::elementwise::gate;
use crate::gemm::Gemm;
use crate::gemm::epilogue::{Bias, Epilogue, Identity};
use crate::gemm::normed::gemv_normed;
use crate::operand::ArrayOperand;
use crate::queue::{LibraryCall, renaming_parameters};
use crate::{LaunchStruct, QueueMemory};
use kernel_dsl::{DeviceFn, Float, GenericArgument};
use runtime::{BufferView, BufferViewMut, Error};

/// The maximum number of rows for which each block may normalize the rows itself: reading the
/// matrix limits the product.
const MAX_GEMV_ROWS: usize = 8;

impl<N: Float + GenericArgument> Norm<'_, N> {
    /// Queues y ← norm(x)·Wᵀ + bias. x is [rows, K] in any storage format, W is [N, K] as in
    /// checkpoints, and y is [rows, N]. The optional bias has N numbers.
    ///
    /// Up to 8 rows are one kernel, [`gemv_normed`], which rounds nothing between the two steps.
    /// The kernel reads x more often than the norm alone, but saves a launch and a round trip
    /// through memory, which limit a decoding step. For more rows, each block of the product would
    /// normalize the rows of its tile again, N / 128 times in total. Multiplications limit that
    /// loop. Therefore more rows take two kernels, and norm(x) is stored in the format of W.
    ///
    /// # Errors
    /// Returns an error if extents do not match, y overlaps another operand, a buffer belongs to
    /// another device, or memory is insufficient.
    pub fn project<X: Float + GenericArgument, W: Float + GenericArgument, O: Float + GenericArgument>(
        self,
        on: &impl Queue,
        x: &BufferView<'_, X, 2>,
        w: &BufferView<'_, W, 2>,
        bias: Option<&BufferView<'_, f32, 1>>,
        y: &mut BufferViewMut<'_, O, 2>,
    ) -> Result<(), Error> {
        match bias {
            Some(bias) => {
                bias.expected("bias", [y.extents()[1]], "a number for each column of y")?;
                // SAFETY: the bias has an element for each column. The launch records it as read,
                // and is queued before its borrow ends.
                let product = || unsafe { self.project_with(on, x, w, y, Bias { bias: bias.detached() }) };
                on.reading(bias, product)
            }
            // SAFETY: this epilogue accesses no memory.
            None => unsafe { self.project_with(on, x, w, y, Identity) },
        }
    }

    /// Queues y ← epilogue(norm(x)·Wᵀ), with an epilogue of [`Gemm`].
    ///
    /// # Safety
    /// The requirements of [`Gemm::run_with`] apply, where y is a batch of one.
    ///
    /// # Errors
    /// Returns the errors of [`project`](Norm::project).
    pub unsafe fn project_with<
        X: Float + GenericArgument,
        W: Float + GenericArgument,
        O: Float + GenericArgument,
        E: Epilogue + LaunchStruct,
    >(
        self,
        on: &impl Queue,
        x: &BufferView<'_, X, 2>,
        w: &BufferView<'_, W, 2>,
        y: &mut BufferViewMut<'_, O, 2>,
        epilogue: E,
    ) -> Result<(), Error> {
        let [rows_of_x, columns] = x.extents();
        w.expected("w", [w.extents()[0], columns], "a number for each column of x")?;
        y.expected("y", [rows_of_x, w.extents()[0]], "a row for each row of x, a column for each row of W")?;
        if rows_of_x <= MAX_GEMV_ROWS {
            // Without pairs the function is never called.
            return self.fused::<X, W, O, E, crate::activation::swiglu, false>(on, x, w, y, epilogue);
        }
        let normed = self.normed::<X, W>(on, x)?;
        let ([rows, depth], [cols, _]) = (x.extents(), w.extents());
        let w = w.strided().reshaped([1, cols, w.extents()[1]])?.side_by_side()?;
        let [m, n] = y.extents();
        let mut y = y.reborrow().strided().reshaped([1, m, n])?.side_by_side()?;
        // SAFETY: the caller guarantees that the epilogue stays within its views.
        unsafe { Gemm::new().transpose_b().run_with(on, &normed.view([1, rows, depth])?, &w, &mut y, epilogue) }
            .map_err(renaming_parameters(&[["b", "w"], ["c", "y"]]))
    }

    /// Queues y ← f(a, b), where a and b are the halves of norm(x)·Wᵀ. W is [2·N, K], the gate's
    /// rows and then the value's, and y is [rows, N]. f is [`swiglu`](crate::activation::swiglu()),
    /// [`geglu`](crate::activation::geglu()), or any other function of two numbers.
    ///
    /// Up to 8 rows are one kernel, which stores neither half. For more rows the product's halves
    /// are stored in the format of W, and [`gate`] reads them. In 16 bits these are 8 bytes per
    /// element of y, compared with 4·K operations. Two products, where the second's epilogue reads
    /// the result of the first, would move less, but each would have half as many tiles. For 512
    /// rows by 6144 columns on 30 multiprocessors they would take two times four waves of blocks;
    /// one product takes seven.
    ///
    /// # Errors
    /// Returns the errors of [`project`](Norm::project).
    pub fn project_gated<
        F: DeviceFn<(f32, f32), Output = f32>,
        X: Float + GenericArgument,
        W: Float + GenericArgument,
        O: Float + GenericArgument,
    >(
        self,
        on: &impl Queue,
        f: F,
        x: &BufferView<'_, X, 2>,
        w: &BufferView<'_, W, 2>,
        y: &mut BufferViewMut<'_, O, 2>,
    ) -> Result<(), Error> {
        let ([rows, columns], [both, _]) = (x.extents(), w.extents());
        w.expected("w", [both / 2 * 2, columns], "a number for each column of x, in an even number of rows")?;
        y.expected("y", [rows, both / 2], "a row for each row of x, a column for each two rows of W")?;
        if rows <= MAX_GEMV_ROWS {
            return self.fused::<X, W, O, Identity, F, true>(on, x, w, y, Identity);
        }
        let mut halves = on.scratch::<W>(rows * both)?;
        // SAFETY: this epilogue accesses no memory.
        unsafe { self.project_with(on, x, w, &mut halves.view_mut([rows, both])?, Identity)? };
        gate(on, f, halves.view([rows, both])?.strided(), y.reborrow().strided())
    }

    /// Queues norm(x), in the storage format of W.
    fn normed<X: Float + GenericArgument, W: Float + GenericArgument>(
        self,
        on: &impl Queue,
        x: &BufferView<'_, X, 2>,
    ) -> Result<QueueMemory<W>, Error> {
        let mut normed = on.scratch::<W>(x.extents().iter().product())?;
        self.run(on, x, &mut normed.view_mut(x.extents())?)?;
        Ok(normed)
    }

    /// Queues the product by [`gemv_normed`].
    fn fused<
        X: Float + GenericArgument,
        W: Float + GenericArgument,
        O: Float + GenericArgument,
        E: Epilogue + LaunchStruct,
        F: DeviceFn<(f32, f32), Output = f32>,
        const PAIRED: bool,
    >(
        self,
        on: &impl Queue,
        x: &BufferView<'_, X, 2>,
        w: &BufferView<'_, W, 2>,
        y: &mut BufferViewMut<'_, O, 2>,
        epilogue: E,
    ) -> Result<(), Error> {
        self.of_columns(x.extents()[1])?;
        let none = on.scratch::<N>(0)?;
        let none = none.view([0])?;
        let (weight, bias) = (self.weight.unwrap_or(&none), self.bias.unwrap_or(&none));
        // An access of 16 bytes takes four or eight elements. A thread has as many columns as its
        // registers hold.
        let width = [8, 4].into_iter().find(|n| n * size_of::<W>() == 16 && w.rows_are_whole(*n)).unwrap_or(1);
        dispatch!(let CENTERED: bool = self.centered;
            let [V: usize, P: usize, STEPS_IN_FLIGHT: usize, ROWS: usize, COLS: usize] = match (width, x.extents()[0]) {
            (8, 0 | 1) => [8, 8, 2, 1, 2],
            (8, 2) => [8, 8, 2, 2, 2],
            (8, 3 | 4) => [8, 8, 2, 4, 2],
            (8, _) => [8, 8, 2, 8, 2],
            (4, 0 | 1) => [4, 4, 4, 1, 2],
            (4, 2) => [4, 4, 4, 2, 4],
            (4, 3 | 4) => [4, 4, 4, 4, 4],
            (4, _) => [4, 4, 4, 8, 2],
            (_, 0 | 1) => [1, 4, 4, 1, 2],
            (_, 2) => [1, 4, 4, 2, 2],
            (_, 3 | 4) => [1, 4, 4, 4, 2],
            _ => [1, 4, 4, 8, 2],
        };
        // SAFETY: the launch compares all extents with one another, and the kernel accesses
        // elements within them only, whatever their type. The oracle ran the kernel in `f32` and
        // `f16` at and around every edge (`kernels check`). The caller guarantees that the epilogue
        // stays within its views.
        unsafe {
            gemv_normed::<X, N, W, O, E, F, CENTERED, PAIRED, ROWS, COLS, V, P, STEPS_IN_FLIGHT>::launch_unchecked(
                &LibraryCall(on), self.epsilon, x, weight, bias, w, y, epilogue,
            )
        })
    }
}
