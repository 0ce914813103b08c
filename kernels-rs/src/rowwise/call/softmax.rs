//! The call for softmax.

use super::plan::{Division, Team, kept_of_divided_softmax, most_kept_of_softmax, queue, wide};
use super::tuned::{RowKernel, RowsShape, TeamChoice};
use crate::Queue;
use crate::operand::{ArrayOperand, check_optional};
use crate::rowwise::softmax::{softmax_divided, softmax_rows};
use crate::tuned::TunedPlans;
use kernel_dsl::compiler::hir::Constant;
use kernel_dsl::{Float, GenericArgument};
use runtime::{BufferView, BufferViewMut, Error};

/// Softmax of scale · x + bias, row by row, or its logarithm, computed in `f32` for any storage
/// format.
///
/// x and y are [rows, cols], with any extents and a last stride of 1; they do not overlap. A masked
/// element, even a NaN, counts as −∞: its result is 0, or −∞ for the logarithm. The same holds for
/// a row that is fully masked or −∞ throughout. A row with an unmasked NaN or +∞ gives NaNs.
///
/// Logits are scale · x + bias in `f32`. Any finite logits give finite results, and a logit beyond
/// ±3.4·10³⁸ is ±∞. A difference below −104 gives a probability of 0. Subnormal logits are exact.
///
/// Let d = scale · x + bias − max, D the largest |d| up to 104, and u = 2⁻²⁴. Let n be the number
/// of elements that one thread adds, about cols / 100. An element has the error factor 1 + θ
/// with |θ| ≤ (2·|d| + 2·D + 16 + n)·u, and the rounding of the storage format. Results are
/// deterministic on one device.
///
/// ```
/// # fn main() -> Result<(), runtime::Error> {
/// use kernels_rs::rowwise::Softmax;
/// let device = runtime::Device::cpu();
/// let x = device.upload(&[0.0f32, f32::NEG_INFINITY, 0.0, 0.0])?;
/// let mut y = device.zeros::<f32>(4)?;
/// Softmax::new().run(&device, &x.view([2, 2])?, &mut y.view_mut([2, 2])?)?;
/// assert_eq!(y.download()?, [1.0, 0.0, 0.5, 0.5]);
/// Softmax::new().causal(2).run(&device, &x.view([2, 2])?, &mut y.view_mut([2, 2])?)?;
/// assert_eq!(y.download()?, [1.0, 0.0, 0.5, 0.5]);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Softmax<'a> {
    pub(super) scale: f32,
    pub(super) log: bool,
    bias: Option<&'a BufferView<'a, f32, 2>>,
    keep: Option<&'a BufferView<'a, u8, 2>>,
    queries: usize,
    choice: TeamChoice,
}

impl Default for Softmax<'_> {
    fn default() -> Self {
        Softmax::new()
    }
}

impl<'a> Softmax<'a> {
    /// Returns the softmax of x, unscaled and unmasked.
    pub const fn new() -> Softmax<'a> {
        Softmax { scale: 1.0, log: false, bias: None, keep: None, queries: 0, choice: TeamChoice::USUAL }
    }

    /// Sets the factor of x. A product beyond 3.4·10³⁸ counts as ±∞.
    pub const fn scale(self, scale: f32) -> Softmax<'a> {
        Softmax { scale, ..self }
    }

    /// Selects the logarithm of the softmax.
    pub const fn log(self) -> Softmax<'a> {
        Softmax { log: true, ..self }
    }

    /// Sets the summand of scale · x, with the extents of x. A row stride of 0 shares one row; −∞
    /// masks.
    pub const fn bias(self, bias: &'a BufferView<'a, f32, 2>) -> Softmax<'a> {
        Softmax { bias: Some(bias), ..self }
    }

    /// Sets a byte for each element of x, 0 for a masked element. A row stride of 0 shares one row.
    pub const fn keep(self, keep: &'a BufferView<'a, u8, 2>) -> Softmax<'a> {
        Softmax { keep: Some(keep), ..self }
    }

    /// Sets a causal mask. Rows are the queries of consecutive sequences, `queries` each, and
    /// columns are their keys, and the last key belongs to the last query. Keys after a query's own
    /// are masked, and not read. 0 masks nothing.
    pub const fn causal(self, queries: usize) -> Softmax<'a> {
        Softmax { queries, ..self }
    }

    /// Sets the table of measured teams, which `kernels tune rows --write FILE` writes, instead of
    /// [`RowsShape::built_in`](crate::tuned::TunableShape::built_in). The table decides for `f32`
    /// without masks.
    pub const fn tuned(self, plans: &'static TunedPlans<RowsShape>) -> Softmax<'a> {
        Softmax { choice: TeamChoice { tuned: Some(plans), ..self.choice }, ..self }
    }

    /// Sets the threads that share a row of `f32`, instead of the team that
    /// [`tuned`](Softmax::tuned) and the length of the rows choose.
    pub const fn team(self, team: Team) -> Softmax<'a> {
        Softmax { choice: TeamChoice { team: Some(team), ..self.choice }, ..self }
    }

    /// Queues the softmax.
    ///
    /// # Errors
    /// Returns an error if extents do not match, there are more queries than columns, y overlaps
    /// another operand, or a buffer belongs to another device.
    pub fn run<T: Float + GenericArgument>(
        self,
        on: &impl Queue,
        x: &BufferView<'_, T, 2>,
        y: &mut BufferViewMut<'_, T, 2>,
    ) -> Result<(), Error> {
        let [rows, cols] = x.extents();
        y.expected("y", [rows, cols], "the extents of x")?;
        if self.queries > cols {
            let queries = self.queries;
            return Err(x.refused_operand(format!("the mask is causal for {queries} queries, and x has {cols} columns; x needs at least one for each query")));
        }
        check_optional(self.bias, "bias", [rows, cols], "the extents of x; a row stride of 0 repeats one row")?;
        check_optional(self.keep, "keep", [rows, cols], "the extents of x; a row stride of 0 repeats one row")?;
        let masked = self.bias.is_some() || self.keep.is_some() || self.queries > 0;
        let shape = (!masked).then_some(RowsShape { rows, cols, kernel: RowKernel::Softmax });
        let team = self.choice.team::<T>(on.device(), shape);
        let wide = wide::<T>(cols, |wide| {
            let mut all = vec![x.aligned(wide), y.aligned(wide)];
            all.extend(self.bias.map(|bias| bias.aligned(wide)));
            all.extend(self.keep.map(|keep| keep.aligned(wide)));
            all
        });
        let (no_bias, no_keep) = (on.scratch::<f32>(0)?, on.scratch::<u8>(0)?);
        let (no_bias, no_keep) = (no_bias.view([0, 0])?, no_keep.view([0, 0])?);
        let (bias, keep) = (self.bias.unwrap_or(&no_bias), self.keep.unwrap_or(&no_keep));
        let constants = [T::CONSTANT, Constant::Bool(self.log), Constant::Bool(masked)].into_iter();
        let division = Division::of(on.device(), cols, kept_of_divided_softmax(masked, wide));
        if let (None, Some(division)) = (team, division) {
            let words = division.words(rows);
            let mut links = on.counters(words)?;
            let mut links = links.words(words)?;
            let constants: Vec<_> = constants.chain(division.constants(wide)).collect();
            let call = softmax_divided::<T, false, true, 64, 1, 2, 128>::call(
                self.scale,
                x,
                bias,
                keep,
                self.queries,
                &mut links,
                y,
            );
            // SAFETY: the launch checks all extents against each other, and the kernel's accesses
            // stay within them.
            return unsafe { queue(on, &call, &constants) };
        }
        let team = team.unwrap_or_else(|| Team::of(on.device(), rows, cols, most_kept_of_softmax(masked)));
        let constants: Vec<_> = constants.chain(team.constants(wide)).collect();
        let call = softmax_rows::<T, false, false, 32, 8, 1, 8, 8>::call(self.scale, x, bias, keep, self.queries, y);
        // SAFETY: as above.
        unsafe { queue(on, &call, &constants) }
    }
}
