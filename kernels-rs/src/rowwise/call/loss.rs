//! The calls for cross-entropy.

use super::plan::{Team, queue, wide};
use crate::Queue;
use crate::operand::ArrayOperand;
use crate::queue::renaming_parameters;
use crate::rowwise::loss::{cross_entropy, cross_entropy_backward};
use kernel_dsl::compiler::hir::Constant;
use kernel_dsl::{Float, GenericArgument};
use runtime::{BufferView, BufferViewMut, Error};

/// The number of elements that a thread takes at a time.
const ELEMENTS_PER_STEP: u32 = 8;

/// The cross-entropy of rows of logits with one label each: log Σ exp(x) − `x[label]`. With label
/// smoothing (Szegedy and others, 2016) the loss is a weighted mean of these losses over all
/// labels. A label beyond the columns, such as `u32::MAX`, is ignored: its loss and gradient are 0,
/// and its logits may be NaN.
///
/// Any finite logits give a finite loss, or ∞ if the loss exceeds 3.4·10³⁸. log Σ exp is rounded to
/// `f32`, which makes the gradient inaccurate for logits of about 10⁷ or more. A label's logit of
/// −∞ gives ∞, and so does any −∞ with smoothing. A logit of NaN or +∞ makes loss and gradient NaN.
/// If the loss of a row has a gradient of 0, the gradient of its logits is 0 for any logits.
///
/// Either extent of the logits may be 0. There are at most 2³¹ − 1 rows.
///
/// ```
/// # fn main() -> Result<(), runtime::Error> {
/// use kernels_rs::rowwise::CrossEntropy;
/// let device = runtime::Device::cpu();
/// let (logits, labels) = (device.upload(&[0.0f32, 0.0, 5.0, 1.0])?, device.upload(&[1, u32::MAX])?);
/// let (mut loss, mut log_sum) = (device.zeros::<f32>(2)?, device.zeros::<f32>(2)?);
/// let (x, labels) = (logits.view([2, 2])?, labels.view([2])?);
/// CrossEntropy::new().run(&device, &x, &labels, &mut loss.view_mut([2])?, &mut log_sum.view_mut([2])?)?;
/// assert_eq!(loss.download()?, [std::f32::consts::LN_2, 0.0]);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, PartialEq, Debug, Default)]
#[must_use]
pub struct CrossEntropy {
    smoothing: f32,
}

/// The caller's name for the kernels' `x`.
const NAMES: &[[&str; 2]] = &[["x", "logits"]];

/// The expected length of a list with an element for each row.
const OF_ROWS: &str = "a number for each row of the logits";

impl CrossEntropy {
    /// Returns a loss without label smoothing.
    pub const fn new() -> CrossEntropy {
        CrossEntropy { smoothing: 0.0 }
    }

    /// Distributes the fraction `smoothing`, from 0 to 1, of a label's weight equally over all
    /// columns.
    pub const fn smoothing(self, smoothing: f32) -> CrossEntropy {
        CrossEntropy { smoothing }
    }

    /// Queues the loss of each row, and log Σ exp of its logits, which the gradient requires.
    ///
    /// # Errors
    /// Returns an error if extents do not match, an output overlaps another operand, or a buffer
    /// belongs to another device.
    pub fn run<T: Float + GenericArgument>(
        self,
        on: &impl Queue,
        logits: &BufferView<'_, T, 2>,
        labels: &BufferView<'_, u32, 1>,
        loss: &mut BufferViewMut<'_, f32, 1>,
        log_sum: &mut BufferViewMut<'_, f32, 1>,
    ) -> Result<(), Error> {
        let [rows, cols] = logits.extents();
        labels.expected("labels", [rows], OF_ROWS)?;
        loss.expected("loss", [rows], OF_ROWS)?;
        log_sum.expected("log_sum", [rows], OF_ROWS)?;
        let wide = wide::<T>(cols, |wide| vec![logits.aligned(wide)]);
        let [threads, of_block, wide, pieces, _] = Team::of(on.device(), rows, cols, ELEMENTS_PER_STEP).constants(wide);
        let call = cross_entropy::<T, 32, 8, 1, 8>::call(self.smoothing, logits, labels, loss, log_sum);
        // SAFETY: the launch checks all extents against each other. The kernel's accesses stay
        // within them, and it reads a label's logit only if the label is a column.
        unsafe { queue(on, &call, &[T::CONSTANT, threads, of_block, wide, pieces]) }.map_err(renaming_parameters(NAMES))
    }

    /// Queues the gradient of the logits, from the logits, the results of `run`, and the gradient
    /// of each row's loss.
    ///
    /// # Errors
    /// Returns the errors of [`run`](CrossEntropy::run).
    pub fn backward<T: Float + GenericArgument>(
        self,
        on: &impl Queue,
        logits: &BufferView<'_, T, 2>,
        labels: &BufferView<'_, u32, 1>,
        log_sum: &BufferView<'_, f32, 1>,
        gradient: &BufferView<'_, f32, 1>,
        dx: &mut BufferViewMut<'_, T, 2>,
    ) -> Result<(), Error> {
        let [rows, cols] = logits.extents();
        labels.expected("labels", [rows], OF_ROWS)?;
        log_sum.expected("log_sum", [rows], OF_ROWS)?;
        gradient.expected("gradient", [rows], OF_ROWS)?;
        dx.expected("dx", [rows, cols], "the extents of the logits")?;
        logits.check_grid([rows, 1, 1], format_args!("{rows} rows"))?;
        let wide = wide::<T>(cols, |wide| vec![logits.aligned(wide), dx.aligned(wide)]);
        let pieces = (2 * ELEMENTS_PER_STEP as usize / wide).min(4);
        let constants =
            [T::CONSTANT, Constant::Usize(256), Constant::Usize(wide as u32), Constant::Usize(pieces as u32)];
        let call = cross_entropy_backward::<T, 256, 1, 4>::call(self.smoothing, logits, labels, log_sum, gradient, dx);
        // SAFETY: as above.
        unsafe { queue(on, &call, &constants) }.map_err(renaming_parameters(NAMES))
    }
}
