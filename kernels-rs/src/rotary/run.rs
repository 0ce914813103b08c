//! The calls for rotary embedding.

use super::kernels::{MAX_PAIRS, rotate, rotate_in_place};
use crate::axes::{pieces_are_contiguous, widest};
use crate::dispatch::dispatch;
use crate::operand::{ArrayOperand, refused_operand};
use crate::queue::LibraryCall;
use crate::{Queue, QueueMemory};
use kernel_dsl::{Float, GenericArgument};
use runtime::{BufferView, BufferViewMut, Error};

/// The elements of a head that form a pair.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PairLayout {
    /// Pair i is elements i and i + pairs: GPT-NeoX, Llama, Qwen.
    Halves,
    /// Pair i is elements 2·i and 2·i + 1: GPT-J, and RoFormer itself.
    Interleaved,
}

/// Rotary position embedding (Su and others, 2021): the frequencies of the pairs, on a device or in
/// a graph, and the layout of pairs in a head.
///
/// The first 2 · pairs elements of a head are rotated, and the others are copied (partial rotary
/// embedding). A pair's angle is the token's position, as `f32`, times the pair's frequency,
/// rounded once; sine and cosine are those of [`math::sin_cos`](kernel_dsl::math::sin_cos).
/// Positions are the bits of `i32`: -1 is `u32::MAX`.
/// Therefore the error of an angle θ is at most 2·u·θ, u = 2⁻²⁴, as in models trained in `f32`.
///
/// Any extent may be 0. A call has at most 2³¹ − 1 tokens. A pair with a NaN becomes NaN. A pair
/// with an ∞ becomes the result of the formula: ±∞, or NaN for 0 · ∞ and for ∞ − ∞. A pair may
/// become ±∞ if |a| + |b| exceeds 3.4·10³⁸. Elements that are not rotated are copied bit for bit.
/// Subnormal numbers are kept.
///
/// ```
/// # fn main() -> Result<(), runtime::Error> {
/// use kernels_rs::rotary::{PairLayout, Rotary};
/// let device = runtime::Device::cpu();
/// // Heads of 4 numbers, all rotated.
/// let rotary = Rotary::new(&device, PairLayout::Halves, &Rotary::frequencies(10_000.0, 4))?;
/// let x = device.upload(&[1.0f32, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0])?;
/// let positions = device.upload(&[0u32, 1])?;
/// let mut y = device.zeros::<f32>(8)?;
/// rotary.run(&device, &x.view([2, 1, 4])?, &positions.view([1, 2])?, &mut y.view_mut([2, 1, 4])?)?;
/// let y = y.download()?;
/// assert_eq!(y[..4], [1.0, 0.0, 0.0, 1.0]);
/// assert_eq!(y[4..].iter().map(|x| (x * 100.0).round()).collect::<Vec<_>>(), [54.0, -1.0, 84.0, 100.0]);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Rotary {
    layout: PairLayout,
    frequencies: QueueMemory<f32>,
    axes: QueueMemory<u32>,
    /// The largest axis plus one.
    rows: usize,
}

impl Rotary {
    /// Returns the frequencies base^(−2i / n) of n / 2 pairs of a head of n elements (Su and
    /// others, section 3.2.2). The frequencies are computed in `f64` and rounded.
    pub fn frequencies(base: f64, n: usize) -> Vec<f32> {
        (0..n / 2).map(|i| base.powf(-2.0 * i as f64 / n as f64) as f32).collect()
    }

    /// Returns the axis of each pair, where axis k has `sections[k]` consecutive pairs: Qwen2-VL's
    /// (time, height, width), with 16, 24 and 24 of 64 pairs.
    pub fn sections(sections: &[usize]) -> Vec<u32> {
        sections.iter().zip(0..).flat_map(|(n, axis)| std::iter::repeat_n(axis, *n)).collect()
    }

    /// Returns the axis of each pair, where axes alternate. After `sections[k]` pairs of axis k,
    /// axis 0 takes its place: Qwen3-VL's (time, height, width), with 24, 20 and 20 of 64 pairs.
    pub fn interleaved_sections(sections: &[usize]) -> Vec<u32> {
        let (axes, pairs) = (sections.len().max(1), sections.iter().sum());
        let axis = |pair: usize| match (pair % axes, pair / axes) {
            (axis, pair) if sections.get(axis).is_some_and(|n| pair < *n) => axis as u32,
            _ => 0,
        };
        (0..pairs).map(axis).collect()
    }

    /// Returns the embedding with a frequency for each pair, at most 256, and one position per
    /// token.
    ///
    /// # Errors
    /// Returns an error if there are more than 256 frequencies, or memory on the device is
    /// insufficient.
    pub fn new(on: &impl Queue, layout: PairLayout, frequencies: &[f32]) -> Result<Rotary, Error> {
        Rotary::with_axes(on, layout, frequencies, &vec![0; frequencies.len()])
    }

    /// Returns the embedding with several positions per token: pair i uses row `axes[i]` of the
    /// positions.
    ///
    /// # Errors
    /// Returns an error if there is not one axis for each frequency, or there are more than 256
    /// frequencies. Also returns an error if memory on the device is insufficient.
    pub fn with_axes(on: &impl Queue, layout: PairLayout, frequencies: &[f32], axes: &[u32]) -> Result<Rotary, Error> {
        let (pairs, of_axes) = (frequencies.len(), axes.len());
        if pairs > MAX_PAIRS || of_axes != pairs {
            let why = format!(
                "{pairs} frequencies and {of_axes} axes are given; each pair needs one of each, and there are at most {MAX_PAIRS} pairs"
            );
            return Err(refused_operand::<f32, 1>([[pairs], [1]], why));
        }
        let rows = axes.iter().max().map_or(0, |axis| *axis as usize + 1);
        let (frequencies, axes) = (on.device().upload(frequencies)?, on.device().upload(axes)?);
        Ok(Rotary { layout, frequencies: on.keep(frequencies)?, axes: on.keep(axes)?, rows })
    }

    /// Copies y ← x with rotated pairs. Both are [tokens, heads, head size], with a last stride of
    /// 1 and arbitrary others. Therefore x may be the queries' part of one matrix of queries, keys
    /// and values. Positions are [axes, tokens]. Results are computed in `f32` and rounded once.
    ///
    /// # Errors
    /// Returns an error if extents do not match, a head is too short for the pairs, or a pair's
    /// axis does not exist. Also returns an error if the arrays overlap, or a buffer belongs to
    /// another device.
    pub fn run<X: Float + GenericArgument>(
        &self,
        on: &impl Queue,
        x: &BufferView<'_, X, 3>,
        positions: &BufferView<'_, u32, 2>,
        y: &mut BufferViewMut<'_, X, 3>,
    ) -> Result<(), Error> {
        y.expected("y", x.extents(), "the extents of x")?;
        self.check_heads(x.layout(), positions)?;
        let (axes, frequencies) =
            (self.axes.view([self.axes.len()])?, self.frequencies.view([self.frequencies.len()])?);
        // Normalizes the strides of axes of one token or one head, which have no meaning.
        let (of_x, of_y) = (x.extents(), y.extents());
        x.check_grid([of_x[0], 1, 1], format_args!("{} tokens", of_x[0]))?;
        let x = &x.strided().reshaped(of_x)?.side_by_side()?;
        let y = &mut y.reborrow().strided().reshaped(of_y)?.side_by_side()?;
        let wide = self.width(x)?.min(self.width(&y.reborrow().shared())?);
        let tokens = self.tokens::<X>(x.extents()[1]);
        dispatch!(let HALVES: bool = self.layout == PairLayout::Halves; let [V: usize, TOKENS: usize] = match (wide, tokens) {
            (4, 2) => [4, 2],
            (4, _) => [4, 1],
            _ => [1, 1],
        };
        // SAFETY: the launch compares all extents with one another and the axes with the rows of
        // the positions, and the kernel accesses elements within them only. The oracle ran the
        // kernel at and around every edge (`kernels check`).
        unsafe {
            rotate::<X, HALVES, V, TOKENS>::launch_unchecked(&LibraryCall(on), x, positions, self.rows, axes, frequencies, y)
        })
    }

    /// Rotates the pairs of x in place, as [`run`](Rotary::run) does.
    ///
    /// # Errors
    /// Returns the errors of [`run`](Rotary::run).
    pub fn run_in_place<X: Float + GenericArgument>(
        &self,
        on: &impl Queue,
        positions: &BufferView<'_, u32, 2>,
        x: &mut BufferViewMut<'_, X, 3>,
    ) -> Result<(), Error> {
        self.check_heads(x.layout(), positions)?;
        let (axes, frequencies) =
            (self.axes.view([self.axes.len()])?, self.frequencies.view([self.frequencies.len()])?);
        // Normalizes strides as in `run`.
        let of_x = x.extents();
        x.check_grid([of_x[0], 1, 1], format_args!("{} tokens", of_x[0]))?;
        let x = &mut x.reborrow().strided().reshaped(of_x)?.side_by_side()?;
        let wide = self.width(&x.reborrow().shared())?;
        let tokens = self.tokens::<X>(x.extents()[1]);
        dispatch!(let HALVES: bool = self.layout == PairLayout::Halves; let [V: usize, TOKENS: usize] = match (wide, tokens) {
            (4, 2) => [4, 2],
            (4, _) => [4, 1],
            _ => [1, 1],
        };
        // SAFETY: as in `run`.
        unsafe {
            rotate_in_place::<X, HALVES, V, TOKENS>::launch_unchecked(&LibraryCall(on), positions, self.rows, axes, frequencies, x)
        })
    }

    /// Rejects heads that are too short for the pairs, and positions with another number of tokens
    /// than x or too few axes.
    fn check_heads(
        &self,
        [[tokens, _, head], _]: [[usize; 3]; 2],
        positions: &BufferView<'_, u32, 2>,
    ) -> Result<(), Error> {
        let (pairs, axes) = (self.frequencies.len(), positions.extents()[0].max(self.rows));
        positions.expected("positions", [axes, tokens], "a row for each axis, with a number for each token of x")?;
        if 2 * pairs > head {
            return Err(positions.refused_operand(format!(
                "heads of x have {head} elements; {pairs} frequencies need at least {}",
                2 * pairs
            )));
        }
        Ok(())
    }

    /// Returns the number of tokens per block: two if half of its threads suffice for a token's
    /// pieces, and a piece has 8 bytes.
    fn tokens<X: Float>(&self, heads: usize) -> usize {
        if size_of::<X>() == 2 && heads * self.frequencies.len() / 4 <= 128 { 2 } else { 1 }
    }

    /// Returns the number of elements that are rotated at once. For 16 bits the number is at most
    /// 4: more blocks hide more latency than wider accesses.
    fn width<X: Float>(&self, x: &BufferView<'_, X, 3>) -> Result<usize, Error> {
        let wide = widest(size_of::<X>()).min(4);
        let [tokens, heads, size] = x.extents();
        let whole = self.frequencies.len().is_multiple_of(wide)
            && pieces_are_contiguous(&x.strided().reshaped([1, tokens, heads, size])?, wide);
        Ok(if whole { wide } else { 1 })
    }
}
