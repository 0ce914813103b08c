//! Rotary embedding as one calls it.

use super::kernels::{rotate, rotate_in_place};
use crate::axes::{together, widest};
use crate::operand::{Operand, refused};
use crate::{Memory, Queue};
use kernel_dsl::{Float, GenericArgument};
use runtime::{BufferView, BufferViewMut, Error};

/// Pairs of a head at most.
const MOST_PAIRS: usize = 256;

/// Which numbers of a head are a pair.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Layout {
    /// Pair i is numbers i and i + pairs: GPT-NeoX, Llama, Qwen.
    Halves,
    /// Pair i is numbers 2·i and 2·i + 1: GPT-J, and RoFormer itself.
    Interleaved,
}

/// Rotary position embedding: the frequencies of the pairs, on a device or in a graph, and how pairs lie in a head.
///
/// Of a head of d numbers the first 2 · pairs are turned, and the others stay (partial rotary embedding). A pair's angle is the token's position, as
/// `f32`, times the pair's frequency, rounded once; sine and cosine are [`math::sin_cos`](kernel_dsl::math::sin_cos)'s. So an angle θ is off by at most 2·u·θ, u = 2⁻²⁴, the same as where models
/// are trained in `f32`.
///
/// Any extent may be 0. A call takes at most 2³¹ − 1 tokens.
/// A pair with a NaN becomes NaN. One with an ∞ becomes what the formula gives: ±∞, or NaN of 0 · ∞ and of ∞ − ∞. A pair whose |a| + |b| is beyond
/// 3.4·10³⁸ may become ±∞. What is not turned is copied, bit for bit. Subnormal numbers are kept.
///
/// ```
/// # fn main() -> Result<(), runtime::Error> {
/// use kernels_rs::rotary::{Layout, Rotary};
/// let device = runtime::Device::cpu();
/// // Heads of 4 numbers, all turned.
/// let rotary = Rotary::new(&device, Layout::Halves, &Rotary::frequencies(10_000.0, 4))?;
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
    layout: Layout,
    frequencies: Memory<f32>,
    axes: Memory<u32>,
    /// One more than the largest axis.
    rows: usize,
}

impl Rotary {
    /// The frequencies base^(−2i / n) of n / 2 pairs, n numbers of a head (Su and others, section 3.2.2): computed in `f64` and rounded.
    pub fn frequencies(base: f64, n: usize) -> Vec<f32> {
        (0..n / 2).map(|i| base.powf(-2.0 * i as f64 / n as f64) as f32).collect()
    }

    /// The axis of each pair where axis k has `sections[k]` pairs, one section after the other: Qwen2-VL's (time, height, width), 16, 24 and 24
    /// of 64 pairs.
    pub fn sections(sections: &[usize]) -> Vec<u32> {
        sections.iter().zip(0..).flat_map(|(n, axis)| std::iter::repeat_n(axis, *n)).collect()
    }

    /// The axis of each pair where axes take turns, and those that have had their `sections[k]` pairs leave theirs to axis 0: Qwen3-VL's (time, height, width), 24,
    /// 20 and 20 of 64 pairs.
    pub fn sections_in_turns(sections: &[usize]) -> Vec<u32> {
        let (axes, pairs) = (sections.len().max(1), sections.iter().sum());
        let axis = |pair: usize| match (pair % axes, pair / axes) {
            (axis, turn) if sections.get(axis).is_some_and(|n| turn < *n) => axis as u32,
            _ => 0,
        };
        (0..pairs).map(axis).collect()
    }

    /// The embedding with a frequency for each pair, at most 256 of them, and one position a token.
    ///
    /// # Errors
    /// Where there are more than 256 frequencies, or memory on the device is short.
    pub fn new(on: &impl Queue, layout: Layout, frequencies: &[f32]) -> Result<Rotary, Error> {
        Rotary::with_axes(on, layout, frequencies, &vec![0; frequencies.len()])
    }

    /// The same with several positions a token: pair i goes by the one in row `axes[i]` of the positions.
    ///
    /// # Errors
    /// Where there is not an axis for each frequency, there are more than 256 of them, or memory on the device is short.
    pub fn with_axes(on: &impl Queue, layout: Layout, frequencies: &[f32], axes: &[u32]) -> Result<Rotary, Error> {
        let (pairs, of_axes) = (frequencies.len(), axes.len());
        if pairs > MOST_PAIRS || of_axes != pairs {
            let why = format!(
                "there are {pairs} frequencies and {of_axes} axes: each pair has one of each, and there are {MOST_PAIRS} pairs at most"
            );
            return Err(refused::<f32, 1>([[pairs], [1]], why));
        }
        let rows = axes.iter().max().map_or(0, |axis| *axis as usize + 1);
        let (frequencies, axes) = (on.device().upload(frequencies)?, on.device().upload(axes)?);
        Ok(Rotary { layout, frequencies: on.keep(frequencies)?, axes: on.keep(axes)?, rows })
    }

    /// y ← x turned. Both are [tokens, heads, head size], with a last stride of 1 and the others free, so that x may be the queries' part of one matrix of queries,
    /// keys and values; positions are [axes, tokens]. Computed in `f32`, and rounded once.
    ///
    /// # Errors
    /// Where the extents do not belong together, a head has fewer numbers than the pairs, a pair's axis is none of the positions', the arrays overlap,
    /// or a buffer is another device's.
    pub fn run<X: Float + GenericArgument>(
        &self,
        on: &impl Queue,
        x: &BufferView<'_, X, 3>,
        positions: &BufferView<'_, u32, 2>,
        y: &mut BufferViewMut<'_, X, 3>,
    ) -> Result<(), Error> {
        y.expected("y", x.extents(), "as x is")?;
        self.fits(x.layout(), positions)?;
        let (axes, frequencies) =
            (self.axes.view([self.axes.len()])?, self.frequencies.view([self.frequencies.len()])?);
        // So that where one token or one head lies apart from no other does not matter.
        let (of_x, of_y) = (x.extents(), y.extents());
        x.startable([of_x[0], 1, 1], format_args!("{} tokens", of_x[0]))?;
        let x = &x.strided().reshaped(of_x)?.side_by_side()?;
        let y = &mut y.reborrow().strided().reshaped(of_y)?.side_by_side()?;
        let wide = self.width(x)?.min(self.width(&y.reborrow().shared())?);
        macro_rules! by {
            ($halves:literal, $v:literal, $tokens:literal) => {
                // SAFETY: the launch compares all extents with one another and the axes with the positions' rows, and the kernel reads and writes what lies
                // within them: the oracle ran it at and around every edge (`kernels check`).
                unsafe { rotate::<X, $halves, $v, $tokens>::launch_unchecked(on, x, positions, self.rows, &axes, &frequencies, y) }
            };
        }
        match (self.layout, wide, self.tokens::<X>(x.extents()[1])) {
            (Layout::Halves, 4, 2) => by!(true, 4, 2),
            (Layout::Halves, 4, _) => by!(true, 4, 1),
            (Layout::Halves, ..) => by!(true, 1, 1),
            (Layout::Interleaved, 4, 2) => by!(false, 4, 2),
            (Layout::Interleaved, 4, _) => by!(false, 4, 1),
            (Layout::Interleaved, ..) => by!(false, 1, 1),
        }
    }

    /// x ← x turned, as [`run`](Rotary::run).
    ///
    /// # Errors
    /// As for [`run`](Rotary::run).
    pub fn run_in_place<X: Float + GenericArgument>(
        &self,
        on: &impl Queue,
        positions: &BufferView<'_, u32, 2>,
        x: &mut BufferViewMut<'_, X, 3>,
    ) -> Result<(), Error> {
        self.fits(x.layout(), positions)?;
        let (axes, frequencies) =
            (self.axes.view([self.axes.len()])?, self.frequencies.view([self.frequencies.len()])?);
        // As in `run`.
        let of_x = x.extents();
        x.startable([of_x[0], 1, 1], format_args!("{} tokens", of_x[0]))?;
        let x = &mut x.reborrow().strided().reshaped(of_x)?.side_by_side()?;
        let wide = self.width(&x.reborrow().shared())?;
        macro_rules! by {
            ($halves:literal, $v:literal, $tokens:literal) => {
                // SAFETY: as in `run`.
                unsafe {
                    rotate_in_place::<X, $halves, $v, $tokens>::launch_unchecked(
                        on,
                        positions,
                        self.rows,
                        &axes,
                        &frequencies,
                        x,
                    )
                }
            };
        }
        match (self.layout, wide, self.tokens::<X>(x.extents()[1])) {
            (Layout::Halves, 4, 2) => by!(true, 4, 2),
            (Layout::Halves, 4, _) => by!(true, 4, 1),
            (Layout::Halves, ..) => by!(true, 1, 1),
            (Layout::Interleaved, 4, 2) => by!(false, 4, 2),
            (Layout::Interleaved, 4, _) => by!(false, 4, 1),
            (Layout::Interleaved, ..) => by!(false, 1, 1),
        }
    }

    /// Tokens of a block: two where half its threads have all of a token's pieces, and those are of 8 bytes.
    /// Rejects heads that are too short for the pairs, and positions that are too few.
    fn fits(&self, [[tokens, _, head], _]: [[usize; 3]; 2], positions: &BufferView<'_, u32, 2>) -> Result<(), Error> {
        let (pairs, axes) = (self.frequencies.len(), positions.extents()[0].max(self.rows));
        positions.expected("positions", [axes, tokens], "a row for each axis, with a number for each token of x")?;
        if 2 * pairs > head {
            return Err(positions.refused(format!(
                "heads of x are {head} numbers, and {pairs} frequencies are for {} at least",
                2 * pairs
            )));
        }
        Ok(())
    }

    fn tokens<X: Float>(&self, heads: usize) -> usize {
        if size_of::<X>() == 2 && heads * self.frequencies.len() / 4 <= 128 { 2 } else { 1 }
    }

    /// Numbers that are turned at once. Of 16 bits no more than 4: more blocks hide more than wider accesses.
    fn width<X: Float>(&self, x: &BufferView<'_, X, 3>) -> Result<usize, Error> {
        let wide = widest(size_of::<X>()).min(4);
        let [tokens, heads, size] = x.extents();
        let whole = self.frequencies.len().is_multiple_of(wide)
            && together(&x.strided().reshaped([1, tokens, heads, size])?, wide);
        Ok(if whole { wide } else { 1 })
    }
}
