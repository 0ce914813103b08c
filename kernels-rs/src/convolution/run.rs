//! The call for convolution.

use super::columns::{Lattice, im2col};
use crate::Queue;
use crate::axes::widest;
use crate::gemm::Gemm;
use crate::gemm::epilogue::Bias;
use crate::rowwise::plan::queue;
use kernel_dsl::compiler::hir::Constant;
use kernel_dsl::{Element, Float, GenericArgument, Number};
use runtime::{BufferView, BufferViewMut, Error};
use std::ops::Range;

pub use epilogue::ChannelBias;

#[kernel_dsl::device]
mod epilogue {
    use crate::gemm::epilogue::Epilogue;
    use kernel_dsl::prelude::*;

    /// A bias for each row, for a product whose rows are channels: x + bias.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    pub struct ChannelBias {
        /// One element for each row.
        pub bias: View<f32, 1>,
    }

    impl Epilogue for ChannelBias {
        fn apply<const V: usize>(&self, mut x: [f32; V], at: [usize; 3]) -> [f32; V] {
            for i in unroll(0..V) {
                x[i] += self.bias[at[1]];
            }
            x
        }
    }
}

/// The default of [`Convolution::at_once`], in bytes.
const DEFAULT_PART_BYTES: usize = 256 << 20;

/// Convolution over depth, height and width in the sense of neural networks, without flipping the
/// kernel:
///
/// ```text
///   y[n, o, a, b, c] = Σ x[n, ch, a·s₀ + i·d₀ − p₀, b·s₁ + j·d₁ − p₁, c·s₂ + k·d₂ − p₂] · W[o, ch, i, j, k] + bias[o]      0 outside of x
/// ```
///
/// x is [sample, channel, depth, height, width], and W is
/// [out, channel, kernel depth, kernel height, kernel width], with any extents. The last stride is
/// 1 and x's other strides are arbitrary; W has no gaps. Images have a depth of 1. Sums are
/// computed in `f32` for any storage format, in the order and with the error bound of [`Gemm`]. The
/// documentation of [`Gemm`] on infinities, NaNs and overflowing sums applies, too. Zeros outside
/// of x are also multiplied: a weight of ∞ or NaN makes windows at the edge NaN.
///
/// ```
/// # fn main() -> Result<(), runtime::Error> {
/// use kernels_rs::convolution::Convolution;
/// let device = runtime::Device::cpu();
/// // A row of 4 pixels, in patches of 2; two numbers a patch.
/// let x = device.upload(&[1.0f32, 2.0, 3.0, 4.0])?;
/// let weight = device.upload(&[1.0f32, 1.0, 10.0, -10.0])?;
/// let mut y = device.zeros::<f32>(4)?;
/// let (x, weight) = (x.view([1, 1, 1, 1, 4])?, weight.view([2, 1, 1, 1, 2])?);
/// Convolution::new().stride([1, 1, 2]).run_tokens(&device, &x, &weight, None, &mut y.view_mut([1, 2, 2])?)?;
/// assert_eq!(y.download()?, [3.0, -10.0, 7.0, -10.0]);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub struct Convolution {
    stride: [usize; 3],
    padding: [usize; 3],
    dilation: [usize; 3],
    at_once: usize,
}

impl Default for Convolution {
    fn default() -> Convolution {
        Convolution::new()
    }
}

/// The maximum number of elements of a padded axis, so that no index in the kernel overflows.
const MAX_AXIS: usize = 1 << 31;

impl Convolution {
    /// Returns a convolution with stride 1, without padding and dilation.
    pub const fn new() -> Convolution {
        Convolution { stride: [1; 3], padding: [0; 3], dilation: [1; 3], at_once: DEFAULT_PART_BYTES }
    }

    /// Sets the distance between windows, in elements, along depth, height and width. No distance
    /// may be 0.
    pub const fn stride(self, stride: [usize; 3]) -> Convolution {
        Convolution { stride, ..self }
    }

    /// Sets the number of zeros at both ends of each axis of x.
    pub const fn padding(self, padding: [usize; 3]) -> Convolution {
        Convolution { padding, ..self }
    }

    /// Sets the distance between elements of a window.
    pub const fn dilation(self, dilation: [usize; 3]) -> Convolution {
        Convolution { dilation, ..self }
    }

    /// Sets the maximum size of the part of the matrix of windows that is made at once, in bytes. A
    /// single window may exceed it. The default is 256 MB.
    pub const fn at_once(self, bytes: usize) -> Convolution {
        Convolution { at_once: bytes, ..self }
    }

    /// Returns the number of windows along each axis: ⌊(n + 2·padding − dilation·(kernel − 1) − 1)
    /// / stride⌋ + 1, or 0 if none fits.
    pub fn windows(self, volume: [usize; 3], kernel: [usize; 3]) -> [usize; 3] {
        let along = |d: usize| {
            let reach = self.dilation[d].saturating_mul(kernel[d].saturating_sub(1)).saturating_add(1);
            let room = volume[d].saturating_add(self.padding[d].saturating_mul(2));
            let steps = room.checked_sub(reach).and_then(|left| left.checked_div(self.stride[d]));
            steps.map_or(0, |steps| steps + 1)
        };
        [0, 1, 2].map(along)
    }

    /// Queues y ← the convolution of x. y is [sample, out, windows of depth, height, width],
    /// without gaps in its spatial axes. The optional bias has one number for each of `out`.
    ///
    /// # Errors
    /// Returns an error if extents do not match, a stride is 0, W has gaps, or y overlaps another
    /// operand. Also returns an error if a buffer belongs to another device, or memory is
    /// insufficient.
    pub fn run<T: Float + GenericArgument, O: Float + GenericArgument>(
        self,
        on: &impl Queue,
        x: &BufferView<'_, T, 5>,
        weight: &BufferView<'_, T, 5>,
        bias: Option<&BufferView<'_, f32, 1>>,
        y: &mut BufferViewMut<'_, O, 5>,
    ) -> Result<(), Error> {
        let (count, [samples, out, ..]) = (self.count_windows(x, weight, bias)?, y.extents());
        let [_, channels, kernel @ ..] = weight.extents();
        let (windows, depth) = (product(&count), channels * product(&kernel));
        if y.extents() != [x.extents()[0], weight.extents()[0], count[0], count[1], count[2]] {
            return Err(refused_operand(x, format!("y has extents {:?}; the windows have {count:?}", y.extents())));
        }
        let mut y = y.reborrow().strided().reshaped([samples, out, windows])?.side_by_side()?;
        if y.extents().contains(&0) {
            return Ok(());
        }
        let add = |a: &BufferView<'_, T, 3>, b: &BufferView<'_, T, 3>, c: &mut BufferViewMut<'_, O, 3>, gemm: Gemm| {
            match bias {
                Some(bias) => {
                    // SAFETY: the bias has an element for each row of the product. The launch
                    // records it as read, and is queued before its borrow ends.
                    let product = || unsafe { gemm.run_with(on, a, b, c, ChannelBias { bias: bias.detached() }) };
                    on.reading(bias, product)
                }
                None => gemm.run(on, a, b, c),
            }
        };
        if let Some(x) = self.elements(x, weight)? {
            return add(&self.weights(weight, samples)?, &x, &mut y, Gemm::new());
        }
        let fit = (self.at_once / size_of::<T>() / depth.max(1)).max(1);
        for some in pieces(samples, (fit / windows).max(1)) {
            let weight = self.weights(weight, some.len())?;
            for part in pieces(windows, fit) {
                let shape = [some.len(), part.len(), depth];
                let mut columns = on.scratch::<T>(shape.iter().product())?;
                let first = some.start * windows + part.start;
                let rows = shape[0] * shape[1];
                self.columns(on, x, kernel, first, &mut columns.view_mut([rows, depth])?)?;
                let y = y
                    .reborrow()
                    .slice(some.clone())?
                    .strided()
                    .permuted([2, 1, 0])?
                    .slice(part)?
                    .permuted([2, 1, 0])?;
                add(&weight, &columns.view(shape)?, &mut y.side_by_side()?, Gemm::new().transpose_b())?;
            }
        }
        Ok(())
    }

    /// Queues y ← the convolution of x, with y as [sample, window, out]: one token for each window,
    /// as a vision tower expects. Windows are counted through depth, height and width; y's rows
    /// have a constant distance.
    ///
    /// # Errors
    /// Returns the errors of [`run`](Convolution::run).
    pub fn run_tokens<T: Float + GenericArgument, O: Float + GenericArgument>(
        self,
        on: &impl Queue,
        x: &BufferView<'_, T, 5>,
        weight: &BufferView<'_, T, 5>,
        bias: Option<&BufferView<'_, f32, 1>>,
        y: &mut BufferViewMut<'_, O, 3>,
    ) -> Result<(), Error> {
        let (count, [samples, windows, out]) = (self.count_windows(x, weight, bias)?, y.extents());
        let [_, channels, kernel @ ..] = weight.extents();
        let depth = channels * product(&kernel);
        if y.extents() != [x.extents()[0], product(&count), weight.extents()[0]] {
            return Err(refused_operand(x, format!("y has extents {:?}; the windows have {count:?}", y.extents())));
        }
        if y.extents().contains(&0) {
            return Ok(());
        }
        let add = |a: &BufferView<'_, T, 3>, b: &BufferView<'_, T, 3>, c: &mut BufferViewMut<'_, O, 3>, gemm: Gemm| {
            match bias {
                Some(bias) => {
                    // SAFETY: the bias has an element for each column of the product. The launch
                    // records it as read, and is queued before its borrow ends.
                    let product = || unsafe { gemm.run_with(on, a, b, c, Bias { bias: bias.detached() }) };
                    on.reading(bias, product)
                }
                None => gemm.run(on, a, b, c),
            }
        };
        if let Some(x) = self.elements(x, weight)? {
            return add(&x, &self.weights(weight, samples)?, y, Gemm::new().transpose_a().transpose_b());
        }
        let weight = self.weights(weight, 1)?;
        let mut y = y.reborrow().strided().reshaped([samples * windows, out])?;
        for some in pieces(samples * windows, (self.at_once / size_of::<T>() / depth.max(1)).max(1)) {
            let (rows, first) = (some.len(), some.start);
            let mut columns = on.scratch::<T>(rows * depth)?;
            self.columns(on, x, kernel, first, &mut columns.view_mut([rows, depth])?)?;
            let (of_rows, others) = y.split_at(rows)?;
            y = others;
            let mut of_rows = of_rows.reshaped([1, rows, out])?.side_by_side()?;
            add(&columns.view([1, rows, depth])?, &weight, &mut of_rows, Gemm::new().transpose_b())?;
        }
        Ok(())
    }

    /// Queues cols ← the windows of x,
    /// [windows, channel · kernel depth · kernel height · kernel width]. Windows are counted
    /// through samples, depth, height and width; the first row is window `first`.
    ///
    /// # Errors
    /// Returns an error if the rows of cols have another length or exceed the number of windows, or
    /// if a stride is 0. Also returns an error if the arrays overlap, or a buffer belongs to
    /// another device.
    pub fn columns<T: Number + GenericArgument>(
        self,
        on: &impl Queue,
        x: &BufferView<'_, T, 5>,
        kernel: [usize; 3],
        first: usize,
        cols: &mut BufferViewMut<'_, T, 2>,
    ) -> Result<(), Error> {
        let [samples, channels, volume @ ..] = x.extents();
        self.check_extents(x, kernel)?;
        let windows = self.windows(volume, kernel);
        let ([rows, depth], all) = (cols.extents(), samples.saturating_mul(product(&windows)));
        if first > all || rows > all - first || depth != channels * product(&kernel) {
            let why = format!(
                "{rows} rows of {depth} from window {first} on exceed the {all} windows of {channels} × {kernel:?}"
            );
            return Err(refused_operand(x, why));
        }
        let inside = self.padding == [0; 3];
        let whole = |wide: usize| {
            inside
                && self.dilation[2] == 1
                && kernel[2].is_multiple_of(wide)
                && self.stride[2].is_multiple_of(wide)
                && x.aligned(wide)
                && cols.aligned(wide)
        };
        let wide = std::iter::successors(Some(widest(size_of::<T>())), |wide| Some(wide / 2));
        let wide = wide.take_while(|wide| *wide > 1).find(|wide| whole(*wide)).unwrap_or(1);
        let numbers = |of: [usize; 3]| of.map(|n| n as u32);
        let lattice = Lattice {
            kernel: numbers(kernel),
            stride: numbers(self.stride),
            padding: numbers(self.padding),
            dilation: numbers(self.dilation),
            windows: numbers(windows),
        };
        let constants = [T::CONSTANT, Constant::Bool(inside), Constant::Usize(wide as u32)];
        let call = im2col::<T, false, 1>::call(x, lattice, first, cols);
        // SAFETY: rows are existing windows, and columns are their elements. Without padding all
        // elements are in x; with padding the kernel checks.
        unsafe { queue(on, &call, &constants) }
    }

    /// Rejects shapes whose indices would overflow the kernel's counters.
    fn check_extents<T: Element>(self, x: &BufferView<'_, T, 5>, kernel: [usize; 3]) -> Result<(), Error> {
        let [_, _, volume @ ..] = x.extents();
        let small = |d: usize| {
            let padded = self.padding[d].checked_mul(2).and_then(|both| both.checked_add(volume[d]));
            let reach = self.dilation[d].checked_mul(kernel[d]);
            [padded, reach, Some(self.stride[d])].into_iter().all(|n| n.is_some_and(|n| n < MAX_AXIS))
        };
        if self.stride.contains(&0) {
            return Err(refused_operand(x, "a stride is 0".into()));
        }
        let all = (0..3).all(small);
        if all {
            Ok(())
        } else {
            Err(refused_operand(x, format!("{self:?} with a kernel of {kernel:?} reaches beyond 2³¹ elements")))
        }
    }

    /// Checks that the operands match, and returns the number of windows.
    fn count_windows<T: Element>(
        self,
        x: &BufferView<'_, T, 5>,
        weight: &BufferView<'_, T, 5>,
        bias: Option<&BufferView<'_, f32, 1>>,
    ) -> Result<[usize; 3], Error> {
        let ([_, channels, volume @ ..], [out, of_channels, kernel @ ..]) = (x.extents(), weight.extents());
        self.check_extents(x, kernel)?;
        if of_channels != channels {
            return Err(refused_operand(x, format!("the weights have {of_channels} channels")));
        }
        match bias.map(|bias| bias.extents()) {
            Some([n]) if n != out => Err(refused_operand(x, format!("the bias has {n} elements; expected {out}"))),
            _ => Ok(self.windows(volume, kernel)),
        }
    }

    /// Returns x as [sample, channel, element], if a window is a single element and x has no gaps.
    fn elements<'v, T: Element>(
        self,
        x: &BufferView<'v, T, 5>,
        weight: &BufferView<'_, T, 5>,
    ) -> Result<Option<BufferView<'v, T, 3>>, Error> {
        let ([samples, channels, volume @ ..], [_, _, kernel @ ..]) = (x.extents(), weight.extents());
        if (self.stride, self.padding, kernel) != ([1; 3], [0; 3], [1; 3]) {
            return Ok(None);
        }
        let elements = x.strided().reshaped([samples, channels, product(&volume)]);
        elements.ok().map(|x| x.side_by_side()).transpose()
    }

    /// Returns the weights as a matrix with the given number of products per row.
    fn weights<'v, T: Element>(
        self,
        weight: &BufferView<'v, T, 5>,
        samples: usize,
    ) -> Result<BufferView<'v, T, 3>, Error> {
        let [out, channels, kernel @ ..] = weight.extents();
        let depth = channels * product(&kernel);
        weight.strided().reshaped([1, out, depth])?.broadcast([samples, out, depth])?.side_by_side()
    }
}

fn product(extents: &[usize; 3]) -> usize {
    extents.iter().product()
}

/// Splits 0 to `all` into pieces of at most `each`.
fn pieces(all: usize, each: usize) -> impl Iterator<Item = Range<usize>> {
    (0..all).step_by(each.max(1)).map(move |from| from..from.saturating_add(each).min(all))
}

/// Returns the error for an operand that does not match x.
fn refused_operand<T: Element>(x: &BufferView<'_, T, 5>, why: String) -> Error {
    crate::operand::refused_operand::<T, 5>([x.extents(), x.strides()], why)
}
