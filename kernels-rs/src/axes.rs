//! Arrays with any strides in the normal form of the kernels: merged axes, the best order, and the
//! access width.

use kernel_dsl::Element;
use kernel_dsl::launcher::{Argument, StridedArgument, StridedMutArgument};
use runtime::{BufferStrided, BufferStridedMut, BufferView, BufferViewMut, Error};

/// The axes that a kernel iterates over, outermost first, in the memory order of the output.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Axes {
    order: [usize; 4],
    extents: [usize; 4],
}

impl Axes {
    /// Returns the axes of arrays with these extents and each array's strides; the first array is
    /// the output. Axes that are contiguous in every array are merged.
    pub fn of(extents: [usize; 4], strides: &[[usize; 4]]) -> Axes {
        let written = strides.first().copied().unwrap_or_default();
        let mut order = [0, 1, 2, 3];
        order.sort_by_key(|d| (extents[*d] != 1, std::cmp::Reverse(written[*d])));
        let mut merged: Vec<(usize, Vec<usize>)> = Vec::new();
        for d in order.into_iter().filter(|d| extents[*d] != 1) {
            let of_axis: Vec<usize> = strides.iter().map(|s| s[d]).collect();
            match merged.last_mut() {
                Some((n, outer)) if outer.iter().zip(&of_axis).all(|(o, i)| *o == i * extents[d]) => {
                    *n *= extents[d];
                    *outer = of_axis;
                }
                _ => merged.push((extents[d], of_axis)),
            }
        }
        let mut to = [1; 4];
        for (to, (n, _)) in to.iter_mut().rev().zip(merged.into_iter().rev()) {
            *to = n;
        }
        Axes { order, extents: to }
    }

    /// Returns an input with these axes.
    pub fn read<'a, T: Element>(&self, x: BufferStrided<'a, T, 4>) -> Result<BufferStrided<'a, T, 4>, Error> {
        x.permuted(self.order)?.reshaped(self.extents)
    }

    /// Returns the output with these axes.
    pub fn written<'a, T: Element>(&self, y: BufferStridedMut<'a, T, 4>) -> Result<BufferStridedMut<'a, T, 4>, Error> {
        y.permuted(self.order)?.reshaped(self.extents)
    }
}

/// Returns `extents` with leading axes of one element, up to four axes.
pub(crate) fn padded<const R: usize>(extents: [usize; R]) -> [usize; 4] {
    const { assert!(R <= 4, "arrays of rank 1 to 4") };
    let mut to = [1; 4];
    for (to, n) in to.iter_mut().rev().zip(extents.into_iter().rev()) {
        *to = n;
    }
    to
}

/// Splits the last axis into pieces of `n` adjacent elements.
pub(crate) fn in_pieces<'a, T: Element>(x: BufferStrided<'a, T, 4>, n: usize) -> Result<BufferView<'a, T, 5>, Error> {
    let [a, b, c, d] = x.extents();
    x.reshaped([a, b, c, d / n, n])?.side_by_side()
}

/// Splits the last axis of an output into pieces of `n` adjacent elements.
pub(crate) fn in_pieces_mut<'a, T: Element>(
    y: BufferStridedMut<'a, T, 4>,
    n: usize,
) -> Result<BufferViewMut<'a, T, 5>, Error> {
    let [a, b, c, d] = y.extents();
    y.reshaped([a, b, c, d / n, n])?.side_by_side()
}

/// Returns whether each piece of `n` elements along the last axis is contiguous and aligned to its
/// size.
pub(crate) fn pieces_are_contiguous<T: Element>(x: &BufferStrided<'_, T, 4>, n: usize) -> bool {
    aligned::<T>(&x.argument(), x.extents(), x.strides(), n)
}

/// Returns whether each piece of `n` elements along the last axis of an output is contiguous and
/// aligned to its size.
pub(crate) fn pieces_are_contiguous_mut<T: Element>(y: &mut BufferStridedMut<'_, T, 4>, n: usize) -> bool {
    let (extents, strides) = (y.extents(), y.strides());
    aligned::<T>(&y.argument(), extents, strides, n)
}

/// Returns whether pieces of `n` elements are aligned as the kernels require.
fn aligned<T>(argument: &Argument<'_>, extents: [usize; 4], strides: [usize; 4], n: usize) -> bool {
    let Argument::Memory(memory) = argument else { return false };
    let [outer @ .., last] = strides;
    memory.address().is_multiple_of((n * size_of::<T>()) as u64)
        && (last == 1 || n == 1)
        && extents[3].is_multiple_of(n)
        && outer.iter().all(|stride| stride.is_multiple_of(n))
}

/// Returns the number of elements of an access: 16 bytes of the widest type.
pub(crate) const fn widest(bytes: usize) -> usize {
    match bytes {
        1 => 16,
        2 => 8,
        4 => 4,
        8 => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::Axes;

    #[test]
    fn contiguous_axes_are_merged() {
        let packed = [60, 20, 5, 1];
        assert_eq!(Axes::of([2, 3, 4, 5], &[packed, packed]).extents, [1, 1, 1, 120]);
        // A broadcast row: its axes are merged, and so are the axes that repeat it.
        assert_eq!(Axes::of([2, 3, 4, 5], &[packed, [0, 0, 0, 1]]).extents, [1, 1, 24, 5]);
        assert_eq!(Axes::of([2, 3, 4, 5], &[packed, [0, 0, 5, 1]]).extents, [1, 1, 6, 20]);
        // A gap after the rows of the output.
        assert_eq!(Axes::of([2, 3, 4, 5], &[[72, 24, 6, 1], packed]).extents, [1, 1, 24, 5]);
        assert_eq!(Axes::of([1, 1, 1, 1], &[[1; 4], [1; 4]]).extents, [1; 4]);
    }

    #[test]
    fn axes_have_the_order_of_the_output() {
        let axes = Axes::of([2, 3, 4, 5], &[[1, 2, 6, 24], [60, 20, 5, 1]]);
        assert_eq!((axes.order, axes.extents), ([3, 2, 1, 0], [5, 4, 3, 2]));
        assert_eq!(Axes::of([1, 7, 1, 5], &[[9, 1, 9, 7], [9, 1, 9, 7]]).extents, [1, 1, 1, 35]);
    }
}
