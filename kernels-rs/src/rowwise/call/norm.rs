//! The calls for layer norm and RMS norm.

use super::plan::{Division, Team, kept_of_divided_norm, most_kept_of_norm, most_kept_of_norm_in_floats, queue, wide};
use super::tuned::{RowKernel, RowsShape, TeamChoice};
use crate::Queue;
use crate::operand::{ArrayOperand, check_optional};
use crate::queue::renaming_parameters;
use crate::rowwise::norm::{norm_activations, norm_divided, norm_quantized, norm_rows};
use crate::tuned::TunedPlans;
use kernel_dsl::compiler::hir::Constant;
use kernel_dsl::{Element, Float, GenericArgument};
use runtime::{BufferView, BufferViewMut, Error};

/// Layer norm (Ba, Kiros, Hinton, 2016) or RMS norm (Zhang, Sennrich, 2019) of the rows of a
/// matrix, computed in `f32` for any storage format.
///
/// ```text
///   z = x + residual
///   layer   y = (z − μ) / √(σ² + ε) · weight + bias     μ the mean of a row, σ² the mean of (z − μ)²
///   RMS     y = z / √(the mean of z² + ε) · weight + bias
/// ```
///
/// x, residual, z and y are [rows, cols], with any extents and a last stride of 1. Weight and bias
/// have one number per column. Outputs overlap no other operand. y is computed from the unrounded
/// z.
///
/// Rows of any finite z have a finite norm, up to 3.4·10³⁸ and down to subnormal numbers. If a sum
/// or a square exceeds the range of `f32`, the row is scaled by a power of two, which is exact
/// ([`moments`](crate::rowwise::moments)). A row of equal elements gives the bias, up to the
/// rounding of the mean. With an ε of 0 such a row has no norm, and gives NaN or numbers up to
/// √columns. A sum x + residual beyond 3.4·10³⁸ is ∞. A row with a NaN is NaN. A row with an ∞ is
/// NaN in a layer norm; in an RMS norm the ∞ becomes NaN, and the other elements 0 · weight + bias.
///
/// ```
/// # fn main() -> Result<(), runtime::Error> {
/// use kernels_rs::rowwise::Norm;
/// let device = runtime::Device::cpu();
/// let x = device.upload(&[3.0f32, 5.0])?;
/// let mut y = device.zeros::<f32>(2)?;
/// Norm::layer(0.0).run(&device, &x.view([1, 2])?, &mut y.view_mut([1, 2])?)?;
/// assert_eq!(y.download()?, [-1.0, 1.0]);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Norm<'a, W: Element = f32> {
    pub(super) centered: bool,
    pub(super) epsilon: f32,
    pub(super) weight: Option<&'a BufferView<'a, W, 1>>,
    pub(super) bias: Option<&'a BufferView<'a, W, 1>>,
    choice: TeamChoice,
}

/// The summand of x, and the output for the sum z: the residual stream of a transformer.
pub type Added<'a, 'b, T> = Option<(&'a BufferView<'b, T, 2>, &'a mut BufferViewMut<'b, T, 2>)>;

/// The output for each row's mean (0 for an RMS norm) and 1 / √(… + ε), [rows, 2], which the
/// gradient requires.
pub type Saved<'a, 'b> = Option<&'a mut BufferViewMut<'b, f32, 2>>;

impl Norm<'_> {
    /// Returns a layer norm; `epsilon` is added to the variance.
    pub const fn layer(epsilon: f32) -> Self {
        Norm { centered: true, epsilon, weight: None, bias: None, choice: TeamChoice::USUAL }
    }

    /// Returns an RMS norm; `epsilon` is added to the mean square.
    pub const fn rms(epsilon: f32) -> Self {
        Norm { centered: false, epsilon, weight: None, bias: None, choice: TeamChoice::USUAL }
    }

    /// Sets a weight per column, in any storage format. A bias must be set after it.
    pub const fn weight<'w, W: Element>(self, weight: &'w BufferView<'w, W, 1>) -> Norm<'w, W> {
        let Norm { centered, epsilon, choice, .. } = self;
        Norm { centered, epsilon, weight: Some(weight), bias: None, choice }
    }
}

impl<'a, W: Float + GenericArgument> Norm<'a, W> {
    /// Sets a bias per column, which is added last.
    pub const fn bias(self, bias: &'a BufferView<'a, W, 1>) -> Norm<'a, W> {
        Norm { bias: Some(bias), ..self }
    }

    /// Sets the table of measured teams, which `kernels tune rows --write FILE` writes, instead of
    /// [`RowsShape::built_in`](crate::tuned::TunableShape::built_in). The table decides for norms
    /// of `f32` without a residual.
    pub const fn tuned(self, plans: &'static TunedPlans<RowsShape>) -> Self {
        Norm { choice: TeamChoice { tuned: Some(plans), ..self.choice }, ..self }
    }

    /// Sets the threads that share a row of `f32` in [`run`](Norm::run) and
    /// [`run_added`](Norm::run_added), instead of the team that [`tuned`](Norm::tuned) and the
    /// length of the rows choose.
    pub const fn team(self, team: Team) -> Self {
        Norm { choice: TeamChoice { team: Some(team), ..self.choice }, ..self }
    }

    /// Queues y ← norm of x.
    ///
    /// # Errors
    /// Returns the errors of [`run_added`](Norm::run_added).
    pub fn run<T: Float + GenericArgument, O: Float + GenericArgument>(
        self,
        on: &impl Queue,
        x: &BufferView<'_, T, 2>,
        y: &mut BufferViewMut<'_, O, 2>,
    ) -> Result<(), Error> {
        self.run_added(on, x, None, y, None)
    }

    /// Queues z ← x + residual, if requested, y ← norm of z, and the saved statistics, if
    /// requested, in one kernel.
    ///
    /// # Errors
    /// Returns an error if extents do not match, an output overlaps another operand, or a buffer
    /// belongs to another device.
    pub fn run_added<T: Float + GenericArgument, O: Float + GenericArgument>(
        self,
        on: &impl Queue,
        x: &BufferView<'_, T, 2>,
        added: Added<'_, '_, T>,
        y: &mut BufferViewMut<'_, O, 2>,
        saved: Saved<'_, '_>,
    ) -> Result<(), Error> {
        self.check_parameters(x, &added)?;
        y.expected("y", x.extents(), "the extents of x")?;
        check_optional(saved.as_deref(), "saved", [x.extents()[0], 2], "two numbers for each row of x")?;
        let fused = added.is_some();
        let [rows, cols] = x.extents();
        let constants = [T::CONSTANT, W::CONSTANT, O::CONSTANT].into_iter();
        let constants = constants.chain([self.centered, fused].map(Constant::Bool));
        let kernel = if self.centered { RowKernel::LayerNorm } else { RowKernel::RmsNorm };
        let shape = (!fused && O::CONSTANT == f32::CONSTANT).then_some(RowsShape { rows, cols, kernel });
        let team = self.choice.team::<T>(on.device(), shape);
        let wide = self.wide(x, &added, |wide| y.aligned(wide));
        let (mut no_t, no_w, mut no_f) = (on.scratch::<T>(0)?, on.scratch::<W>(0)?, on.scratch::<f32>(0)?);
        let no_w = no_w.view([0])?;
        let (weight, bias) = (self.weight.unwrap_or(&no_w), self.bias.unwrap_or(&no_w));
        let names: &[_] = if added.is_some() { &[] } else { &[["residual", "x"]] };
        let (residual, mut z) = match added {
            Some((residual, z)) => (residual, z.reborrow()),
            None => (x, no_t.view_mut([0, 0])?),
        };
        let mut saved = match saved {
            Some(saved) => saved.reborrow(),
            None => no_f.view_mut([0, 0])?,
        };
        let renamed = renaming_parameters(names);
        if let (None, Some(division)) = (team, Division::of(on.device(), cols, kept_of_divided_norm(fused, wide))) {
            let words = division.words(rows);
            let mut links = on.counters(words)?;
            let mut links = links.words(words)?;
            let constants: Vec<_> = constants.chain(division.constants(wide)).collect();
            let call = norm_divided::<T, W, O, true, true, 64, 1, 2, 128>::call(
                self.epsilon,
                x,
                residual,
                &mut z,
                weight,
                bias,
                &mut links,
                y,
                &mut saved,
            );
            // SAFETY: the launch checks all extents against each other, and the kernel's accesses
            // stay within them.
            return unsafe { queue(on, &call, &constants) }.map_err(renamed);
        }
        let team = team.unwrap_or_else(|| Team::of(on.device(), rows, cols, most_kept_of_norm_in_floats::<T>(cols)));
        let constants = constants.chain([Constant::Bool(cols <= team.kept())]);
        let constants: Vec<_> = constants.chain(team.constants(wide)).collect();
        let call = norm_rows::<T, W, O, true, true, false, 32, 8, 1, 8, 8>::call(
            self.epsilon,
            x,
            residual,
            &mut z,
            weight,
            bias,
            y,
            &mut saved,
        );
        // SAFETY: as above.
        unsafe { queue(on, &call, &constants) }.map_err(renamed)
    }

    /// Queues the norm with y in 8 bits: an element is its byte times its row's scale, which is the
    /// row's largest magnitude / 127. The byte is rounded to nearest, ties to even; a NaN becomes
    /// 0. If the largest magnitude is ∞, all bytes are 0 and the scale is ∞. If the magnitude is
    /// subnormal, the scale is subnormal, too, with less precision.
    ///
    /// # Errors
    /// Returns the errors of [`run_added`](Norm::run_added).
    pub fn quantize<T: Float + GenericArgument>(
        self,
        on: &impl Queue,
        x: &BufferView<'_, T, 2>,
        added: Added<'_, '_, T>,
        q: &mut BufferViewMut<'_, i8, 2>,
        scales: &mut BufferViewMut<'_, f32, 1>,
    ) -> Result<(), Error> {
        self.check_parameters(x, &added)?;
        q.expected("q", x.extents(), "the extents of x")?;
        scales.expected("scales", [x.extents()[0]], "one for each row of x")?;
        let team = Team::of(on.device(), x.extents()[0], x.extents()[1], most_kept_of_norm::<T>(x.extents()[1]));
        let wide = self.wide(x, &added, |wide| q.aligned(wide));
        let (mut no_t, no_w) = (on.scratch::<T>(0)?, on.scratch::<W>(0)?);
        let no_w = no_w.view([0])?;
        let (weight, bias) = (self.weight.unwrap_or(&no_w), self.bias.unwrap_or(&no_w));
        let names: &[_] = if added.is_some() { &[] } else { &[["residual", "x"]] };
        let (residual, mut z) = match added {
            Some((residual, z)) => (residual, z.reborrow()),
            None => (x, no_t.view_mut([0, 0])?),
        };
        let types = [T::CONSTANT, W::CONSTANT, Constant::Bool(self.centered)];
        let constants: Vec<_> = types.into_iter().chain(team.constants(wide)).collect();
        let call = norm_quantized::<T, W, true, 32, 8, 1, 8, 8>::call(
            self.epsilon,
            x,
            residual,
            &mut z,
            weight,
            bias,
            q,
            scales,
        );
        // SAFETY: as above.
        unsafe { queue(on, &call, &constants) }.map_err(renaming_parameters(names))
    }

    /// Queues the norm as rows of quantized activations in groups of `room`. Returns whether the
    /// rows of all operands are whole accesses of four elements; otherwise it queues nothing.
    pub(crate) fn quantize_units<T: Float + GenericArgument>(
        self,
        on: &impl Queue,
        x: &BufferView<'_, T, 2>,
        added: &mut Added<'_, '_, T>,
        room: usize,
        bytes: BufferViewMut<'_, i32, 2>,
        factors: BufferViewMut<'_, f32, 2>,
    ) -> Result<bool, Error> {
        self.check_parameters(x, added)?;
        let [rows, cols] = x.extents();
        if !cols.is_multiple_of(4) || !self.begin(x, added, 4).into_iter().all(|begins| begins) {
            return Ok(false);
        }
        let team = Team::of(on.device(), rows, cols, most_kept_of_norm::<T>(cols));
        let (mut no_t, no_w) = (on.scratch::<T>(0)?, on.scratch::<W>(0)?);
        let no_w = no_w.view([0])?;
        let (weight, bias) = (self.weight.unwrap_or(&no_w), self.bias.unwrap_or(&no_w));
        let names: &[_] = if added.is_some() { &[] } else { &[["residual", "x"]] };
        let (residual, mut z) = match added {
            Some((residual, z)) => (*residual, z.reborrow()),
            None => (x, no_t.view_mut([0, 0])?),
        };
        let types = [T::CONSTANT, W::CONSTANT, Constant::Bool(self.centered)];
        let constants: Vec<_> = types.into_iter().chain(team.constants(4)).collect();
        let call = norm_activations::<T, W, true, 32, 8, 4, 2, 2>::call(
            self.epsilon,
            x,
            residual,
            &mut z,
            weight,
            bias,
            room,
            bytes,
            factors,
        );
        // SAFETY: as above.
        unsafe { queue(on, &call, &constants) }.map_err(renaming_parameters(names))?;
        Ok(true)
    }

    /// Rejects a weight or bias that does not have one number for each of `cols` columns.
    pub(super) fn of_columns(&self, cols: usize) -> Result<(), Error> {
        check_optional(self.weight, "weight", [cols], "a number for each column of x")?;
        check_optional(self.bias, "bias", [cols], "a number for each column of x")
    }

    /// Rejects a weight or bias that does not match x's columns, and a summand or sum that does not
    /// match x.
    fn check_parameters<T: Element>(&self, x: &BufferView<'_, T, 2>, added: &Added<'_, '_, T>) -> Result<(), Error> {
        self.of_columns(x.extents()[1])?;
        let Some((residual, z)) = added else { return Ok(()) };
        residual.expected("residual", x.extents(), "the extents of x")?;
        z.expected("z", x.extents(), "the extents of x")
    }

    /// Returns the number of elements of an access.
    fn wide<T: Float>(
        &self,
        x: &BufferView<'_, T, 2>,
        added: &Added<'_, '_, T>,
        output: impl Fn(usize) -> bool,
    ) -> usize {
        wide::<T>(x.extents()[1], |wide| {
            let mut all = self.begin(x, added, wide);
            all.push(output(wide));
            all
        })
    }

    /// Returns whether the rows of each operand begin at multiples of `wide` elements.
    fn begin<T: Float>(&self, x: &BufferView<'_, T, 2>, added: &Added<'_, '_, T>, wide: usize) -> Vec<bool> {
        let mut all = vec![x.aligned(wide)];
        for each in [self.weight, self.bias].into_iter().flatten() {
            all.push(each.aligned(wide));
        }
        if let Some((residual, z)) = added {
            all.push(residual.aligned(wide));
            all.push(z.aligned(wide));
        }
        all
    }
}
