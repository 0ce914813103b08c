//! The calls for group norm.

use super::plan::{FewWaves, Team, queue, wide};
use crate::Queue;
use crate::operand::{ArrayOperand, check_optional, rejected};
use crate::rowwise::group::{group_norm, group_norm_backward, group_norm_channels};
use kernel_dsl::compiler::hir::Constant;
use kernel_dsl::{Element, Float, GenericArgument};
use runtime::{BufferView, BufferViewMut, Error};

/// The maximum number of elements of a matrix that a thread keeps in registers, unless few waves of
/// blocks read the rows.
const MAX_KEPT_ELEMENTS: u32 = 16;
/// The limits of blocks for rows that few waves of blocks read: of the norm, and of its gradient,
/// which keeps two matrices.
const FEW_WAVES: FewWaves = FewWaves { threads: 384, keeps: 32 };
const FEW_WAVES_OF_GRADIENT: FewWaves = FewWaves { threads: 256, keeps: 40 };

/// Group norm (Wu, He, *Group Normalization*, 2018), computed in `f32` for any storage format.
///
/// ```text
///   y = (x − μ) / √(σ² + ε) · weight[channel] + bias[channel]        μ the mean of a sample's group of channels, σ² the mean of (x − μ)²
/// ```
///
/// x and y are [sample, channel, spatial], with any extents. Channels have no gaps; strides between
/// samples are arbitrary. Arrays with more spatial axes can be
/// [reshaped](runtime::BufferStrided::reshaped). The number of channels is a multiple of the
/// groups: one group is a layer norm of the sample, and one group per channel an instance norm.
/// Weight and bias have one number per channel. Any extent may be 0; gradients of weight and bias
/// have at most 2³¹ − 1 channels.
///
/// Groups of any finite x have a finite norm. Equal elements, infinities and NaNs have the same
/// effect as in a row of a [layer norm](super::super::Norm).
///
/// ```
/// # fn main() -> Result<(), runtime::Error> {
/// use kernels_rs::rowwise::GroupNorm;
/// let device = runtime::Device::cpu();
/// let x = device.upload(&[3.0f32, 5.0, 9.0, 1.0])?;
/// let weight = device.upload(&[1.0f32, 2.0])?;
/// let mut y = device.zeros::<f32>(4)?;
/// // A sample of two channels, each a group, of two elements.
/// GroupNorm::new(2, 0.0).weight(&weight.view([2])?).run(&device, &x.view([1, 2, 2])?, &mut y.view_mut([1, 2, 2])?, None)?;
/// assert_eq!(y.download()?, [-1.0, 1.0, 2.0, -2.0]);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct GroupNorm<'a, W: Element = f32> {
    groups: usize,
    epsilon: f32,
    weight: Option<&'a BufferView<'a, W, 1>>,
    bias: Option<&'a BufferView<'a, W, 1>>,
}

impl GroupNorm<'_> {
    /// Returns a norm with `groups` groups; `epsilon` is added to the variance.
    pub const fn new(groups: usize, epsilon: f32) -> Self {
        GroupNorm { groups, epsilon, weight: None, bias: None }
    }

    /// Sets a weight per channel, in any storage format. A bias must be set after it.
    pub const fn weight<'w, W: Element>(self, weight: &'w BufferView<'w, W, 1>) -> GroupNorm<'w, W> {
        GroupNorm { groups: self.groups, epsilon: self.epsilon, weight: Some(weight), bias: None }
    }
}

impl<'a, W: Float + GenericArgument> GroupNorm<'a, W> {
    /// Sets a bias per channel, which is added last.
    pub const fn bias(self, bias: &'a BufferView<'a, W, 1>) -> GroupNorm<'a, W> {
        GroupNorm { bias: Some(bias), ..self }
    }

    /// Queues y ← group norm of x. `saved`, [sample, group, 2], receives each group's mean and 1 /
    /// √(σ² + ε), which the gradient requires.
    ///
    /// # Errors
    /// Returns an error if extents do not match, or if the channels are not a multiple of the
    /// groups or have gaps. Also returns an error if an output overlaps another operand, or a
    /// buffer belongs to another device.
    pub fn run<T: Float + GenericArgument, O: Float + GenericArgument>(
        self,
        on: &impl Queue,
        x: &BufferView<'_, T, 3>,
        y: &mut BufferViewMut<'_, O, 3>,
        saved: Option<&mut BufferViewMut<'_, f32, 3>>,
    ) -> Result<(), Error> {
        let [samples, all, spatial] = x.extents();
        self.of_channels(all)?;
        check_optional(
            saved.as_deref(),
            "saved",
            [samples, self.groups, 2],
            "two numbers for each group of each sample of x",
        )?;
        let mut y = self.rows_mut("y", x.extents(), y)?;
        let (x, channels) = self.rows(x)?;
        let wide = wide::<T>(spatial, |wide| vec![x.aligned(wide), y.aligned(wide)]);
        let team = team(on, samples * self.groups, channels * spatial, wide, FEW_WAVES);
        let (no_w, mut no_f) = (on.scratch::<W>(0)?, on.scratch::<f32>(0)?);
        let no_w = no_w.view([0])?;
        let (weight, bias) = (self.weight.unwrap_or(&no_w), self.bias.unwrap_or(&no_w));
        let mut saved = match saved {
            Some(saved) => saved.reborrow(),
            None => no_f.view_mut([0, 0, 0])?,
        };
        let types = [T::CONSTANT, W::CONSTANT, O::CONSTANT].into_iter();
        let constants: Vec<_> = types.chain(team.constants(wide)).collect();
        let call = group_norm::<T, W, O, 32, 8, 1, 8, 8>::call(
            self.epsilon,
            x,
            channels,
            spatial,
            weight,
            bias,
            &mut y,
            &mut saved,
        );
        // SAFETY: the launch checks all extents against each other, and the kernel's accesses stay
        // within them.
        unsafe { queue(on, &call, &constants) }
    }

    /// Queues dx, the gradient of x, from x, the statistics that [`run`](GroupNorm::run) saved, and
    /// dy, the gradient of y.
    ///
    /// # Errors
    /// Returns the errors of [`run`](GroupNorm::run).
    pub fn backward<T: Float + GenericArgument>(
        self,
        on: &impl Queue,
        x: &BufferView<'_, T, 3>,
        saved: &BufferView<'_, f32, 3>,
        dy: &BufferView<'_, T, 3>,
        dx: &mut BufferViewMut<'_, T, 3>,
    ) -> Result<(), Error> {
        let [samples, all, spatial] = x.extents();
        self.of_channels(all)?;
        dy.expected("dy", x.extents(), "the extents of x")?;
        saved.expected("saved", [samples, self.groups, 2], "two numbers for each group of each sample of x")?;
        let mut dx = self.rows_mut("dx", x.extents(), dx)?;
        let ((x, channels), (dy, _)) = (self.rows(x)?, self.rows(dy)?);
        let begin = |wide| vec![x.aligned(wide), dy.aligned(wide), dx.aligned(wide)];
        let wide = wide::<T>(spatial, begin);
        let team = team(on, samples * self.groups, channels * spatial, wide, FEW_WAVES_OF_GRADIENT);
        let none = on.scratch::<W>(0)?;
        let none = none.view([0])?;
        let weight = self.weight.unwrap_or(&none);
        let constants: Vec<_> = [T::CONSTANT, W::CONSTANT].into_iter().chain(team.constants(wide)).collect();
        let call = group_norm_backward::<T, W, 32, 8, 1, 8, 8>::call(x, saved, channels, spatial, weight, dy, &mut dx);
        // SAFETY: as above.
        unsafe { queue(on, &call, &constants) }
    }

    /// Queues the gradients of weight and bias, if requested: sums over samples and elements of a
    /// channel, in an order that depends on their number only.
    ///
    /// # Errors
    /// Returns the errors of [`run`](GroupNorm::run).
    pub fn backward_channels<T: Float + GenericArgument>(
        self,
        on: &impl Queue,
        x: &BufferView<'_, T, 3>,
        saved: &BufferView<'_, f32, 3>,
        dy: &BufferView<'_, T, 3>,
        dweight: Option<&mut BufferViewMut<'_, W, 1>>,
        dbias: Option<&mut BufferViewMut<'_, W, 1>>,
    ) -> Result<(), Error> {
        let [samples, all, spatial] = x.extents();
        let channels = self.of_group(all)?;
        dy.expected("dy", x.extents(), "the extents of x")?;
        saved.expected("saved", [samples, self.groups, 2], "two numbers for each group of each sample of x")?;
        check_optional(dweight.as_deref(), "dweight", [all], "a number for each channel of x")?;
        check_optional(dbias.as_deref(), "dbias", [all], "a number for each channel of x")?;
        if all == 0 {
            return Ok(());
        }
        x.check_grid([all, 1, 1], format_args!("{all} channels"))?;
        let wide = if wide::<f32>(spatial, |wide| vec![x.aligned(wide), dy.aligned(wide)]) == 4 { 4 } else { 1 };
        let (mut no_weight, mut no_bias) = (on.scratch::<W>(0)?, on.scratch::<W>(0)?);
        let mut dweight = match dweight {
            Some(dweight) => dweight.reborrow(),
            None => no_weight.view_mut([0])?,
        };
        let mut dbias = match dbias {
            Some(dbias) => dbias.reborrow(),
            None => no_bias.view_mut([0])?,
        };
        let constants = [T::CONSTANT, W::CONSTANT, Constant::Usize(wide)];
        let call = group_norm_channels::<T, W, 1>::call(x, saved, dy, channels, &mut dweight, &mut dbias);
        // SAFETY: as above.
        unsafe { queue(on, &call, &constants) }
    }

    /// Returns x as rows of groups, and the number of channels of a group.
    fn rows<'v, T: Element>(&self, x: &BufferView<'v, T, 3>) -> Result<(BufferView<'v, T, 3>, usize), Error> {
        let [samples, all, spatial] = x.extents();
        let channels = self.of_group(all)?;
        Ok((x.strided().reshaped([samples, self.groups, channels * spatial])?.side_by_side()?, channels))
    }

    /// Returns an output as rows of groups, after checking that it has the extents of x.
    fn rows_mut<'v, T: Element>(
        &self,
        name: &str,
        extents: [usize; 3],
        y: &'v mut BufferViewMut<'_, T, 3>,
    ) -> Result<BufferViewMut<'v, T, 3>, Error> {
        y.expected(name, extents, "the extents of x")?;
        let [samples, all, spatial] = extents;
        y.reborrow().strided().reshaped([samples, self.groups, self.of_group(all)? * spatial])?.side_by_side()
    }

    /// Rejects a weight or bias that does not have one number for each of `channels` channels.
    fn of_channels(&self, channels: usize) -> Result<(), Error> {
        check_optional(self.weight, "weight", [channels], "a number for each channel of x")?;
        check_optional(self.bias, "bias", [channels], "a number for each channel of x")
    }

    /// Returns the number of channels of a group, of `channels` in total.
    fn of_group(&self, channels: usize) -> Result<usize, Error> {
        if channels == 0 || self.groups > 0 && channels.is_multiple_of(self.groups) {
            return Ok(channels / self.groups.max(1));
        }
        Err(rejected(format!("{channels} channels are not divided by {} groups", self.groups)))
    }
}

/// Returns the team for rows of groups, for accesses of `wide` elements.
fn team(on: &impl Queue, rows: usize, cols: usize, wide: usize, few: FewWaves) -> Team {
    let small = Team::for_few_waves(on.device(), rows, cols, wide, few);
    small.unwrap_or_else(|| Team::of(on.device(), rows, cols, MAX_KEPT_ELEMENTS))
}
