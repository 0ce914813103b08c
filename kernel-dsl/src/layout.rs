//! Shapes, strides and indices, shared by views and [`Shared`](crate::Shared) arrays.
//!
//! Invariant: [`StridedLayout::element`] returns an offset only for an index within every extent.
//! An offset is therefore below [`StridedLayout::span`], the number of elements that the memory
//! must hold.

use std::fmt;

/// The index of an element of an array of rank `R`: a `usize` for rank 1, a tuple or an array of
/// `R` of them otherwise, outermost dimension first.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot index an array of rank {R}",
    label = "expected {R} `usize`s",
    note = "write one `usize` for rank 1, and a tuple `(row, col)` or an array `[row, col]` of {R} for higher ranks"
)]
pub trait Position<const R: usize>: Copy + sealed::Sealed {
    /// Returns the indices, outermost first.
    fn indices(self) -> [usize; R];
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for usize {}
    impl<const R: usize> Sealed for [usize; R] {}
    impl Sealed for (usize, usize) {}
    impl Sealed for (usize, usize, usize) {}
    impl Sealed for (usize, usize, usize, usize) {}
    impl Sealed for (usize, usize, usize, usize, usize) {}
}

impl Position<1> for usize {
    fn indices(self) -> [usize; 1] {
        [self]
    }
}
impl<const R: usize> Position<R> for [usize; R] {
    fn indices(self) -> [usize; R] {
        self
    }
}
impl Position<2> for (usize, usize) {
    fn indices(self) -> [usize; 2] {
        self.into()
    }
}
impl Position<3> for (usize, usize, usize) {
    fn indices(self) -> [usize; 3] {
        self.into()
    }
}
impl Position<4> for (usize, usize, usize, usize) {
    fn indices(self) -> [usize; 4] {
        self.into()
    }
}
impl Position<5> for (usize, usize, usize, usize, usize) {
    fn indices(self) -> [usize; 5] {
        self.into()
    }
}

/// The extent of each dimension, and the distance in elements between its neighboring indices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct StridedLayout<const R: usize> {
    shape: [usize; R],
    stride: [usize; R],
}

impl<const R: usize> StridedLayout<R> {
    /// Makes a layout with contiguous rows.
    #[track_caller]
    pub fn packed(shape: [usize; R]) -> Self {
        Self::with_pitch(shape, shape.last().copied().unwrap_or(0))
    }

    /// Makes a layout whose rows (the last dimension) start `pitch` elements apart. Panics if a row
    /// does not fit or the number of elements overflows.
    #[track_caller]
    pub fn with_pitch(shape: [usize; R], pitch: usize) -> Self {
        const { assert!(R >= 1 && R <= 5, "the rank of an array is 1 to 5") }
        assert!(pitch >= shape[R - 1], "a pitch of {pitch} elements is less than a row of {}", shape[R - 1]);
        let mut stride = [1; R];
        for d in (0..R - 1).rev() {
            let inner = if d + 2 == R { Some(pitch) } else { usize::checked_mul(stride[d + 1], shape[d + 1]) };
            stride[d] =
                inner.unwrap_or_else(|| panic!("an array of {} has more elements than a usize", IndexShape(&shape)));
        }
        let layout = StridedLayout { shape, stride };
        assert!(layout.checked_span().is_some(), "an array of {} has more elements than a usize", IndexShape(&shape));
        layout
    }

    /// Makes a layout with any strides whose last is 1. Panics if the last is not 1 or the number
    /// of elements overflows.
    #[track_caller]
    pub fn contiguous(shape: [usize; R], stride: [usize; R]) -> Self {
        assert!(stride[R - 1] == 1, "a view's last stride is 1, not {}", stride[R - 1]);
        Self::strided(shape, stride)
    }

    /// Makes a layout with any strides. Panics if the number of elements overflows.
    #[track_caller]
    pub fn strided(shape: [usize; R], stride: [usize; R]) -> Self {
        let layout = StridedLayout { shape, stride };
        assert!(layout.checked_span().is_some(), "an array of {} has more elements than a usize", IndexShape(&shape));
        layout
    }

    /// Returns the number of elements from the first to the last, gaps included.
    pub fn span(&self) -> usize {
        self.checked_span().expect("counted when the layout was made")
    }

    fn checked_span(&self) -> Option<usize> {
        if self.shape.contains(&0) {
            return Some(0);
        }
        let last = self
            .shape
            .iter()
            .zip(&self.stride)
            .try_fold(0, |sum: usize, (n, s)| sum.checked_add((n - 1).checked_mul(*s)?));
        last?.checked_add(1)
    }

    /// Returns the extents.
    pub fn shape(&self) -> [usize; R] {
        self.shape
    }

    /// Returns the strides.
    pub fn stride(&self) -> [usize; R] {
        self.stride
    }

    /// Returns the offset of the element at `at` if it lies within the extents.
    pub fn element(&self, at: [usize; R]) -> Option<usize> {
        let within = at.iter().zip(&self.shape).all(|(i, n)| i < n);
        within.then(|| at.iter().zip(&self.stride).map(|(i, s)| i * s).sum())
    }

    /// Returns the same bytes as elements of `to` bytes instead of `from`, or `None` if the bytes
    /// of a row are not a multiple of `to`.
    pub fn cast(&self, from: usize, to: usize) -> Option<Self> {
        let scaled = |n: usize| n.checked_mul(from).filter(|bytes| bytes.is_multiple_of(to)).map(|bytes| bytes / to);
        let mut layout = *self;
        layout.shape[R - 1] = scaled(self.shape[R - 1])?;
        for stride in &mut layout.stride[..R - 1] {
            *stride = scaled(*stride)?;
        }
        Some(layout)
    }

    /// Returns the offset of the element at `at` and the array from there on. Extents past the end
    /// are 0.
    pub fn offset(&self, at: [usize; R]) -> (usize, Self) {
        let first = at.iter().zip(&self.stride).fold(0, |sum: usize, (i, s)| sum.wrapping_add(i.wrapping_mul(*s)));
        let shape = std::array::from_fn(|d| self.shape[d].saturating_sub(at[d]));
        (first, StridedLayout { shape, stride: self.stride })
    }

    /// Returns the array at index `i` of the first dimension, with the offset of its first element;
    /// an empty array without an offset if `i` lies outside.
    pub fn plane<const Q: usize>(&self, i: usize) -> (Option<usize>, StridedLayout<Q>) {
        const { assert!(Q + 1 == R) }
        let inside = i < self.shape[0];
        let layout = StridedLayout {
            shape: std::array::from_fn(|d| if inside { self.shape[d + 1] } else { 0 }),
            stride: std::array::from_fn(|d| self.stride[d + 1]),
        };
        (inside.then(|| i * self.stride[0]), layout)
    }
}

impl StridedLayout<2> {
    /// Returns the same elements with rows and columns exchanged.
    pub fn transposed(&self) -> Self {
        let ([rows, columns], [by_row, by_column]) = (self.shape, self.stride);
        StridedLayout { shape: [columns, rows], stride: [by_column, by_row] }
    }
}

/// Extents or indices as a kernel writes them: `7`, `(4, 8)`.
pub(crate) struct IndexShape<'a>(pub &'a [usize]);

impl fmt::Display for IndexShape<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [n] = self.0 {
            return write!(f, "{n}");
        }
        for (d, n) in self.0.iter().enumerate() {
            write!(f, "{}{n}", if d == 0 { "(" } else { ", " })?;
        }
        f.write_str(")")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_count_row_by_row() {
        let l = StridedLayout::with_pitch([2, 3, 4], 5);
        assert_eq!((l.stride(), l.span()), ([15, 5, 1], 15 + 2 * 5 + 3 + 1));
        assert_eq!((l.element([1, 2, 3]), l.element([1, 3, 0])), (Some(28), None));
        assert_eq!(StridedLayout::packed([2, 0]).span(), 0);
    }

    #[test]
    fn offset_stops_at_the_end() {
        let (first, left) = StridedLayout::packed([4, 6]).offset([3, 9]);
        assert_eq!((first, left.shape()), (27, [1, 0]));
        assert_eq!(left.element([0, 0]), None);
    }

    #[test]
    fn plane_past_the_end_has_no_element() {
        let l = StridedLayout::packed([2, 3]);
        assert_eq!(l.plane::<1>(1), (Some(3), StridedLayout::packed([3])));
        assert_eq!(l.plane::<1>(2), (None, StridedLayout::packed([0])));
    }

    #[test]
    #[should_panic(expected = "more elements than a usize")]
    fn overflowing_counts_are_rejected() {
        StridedLayout::packed([usize::MAX, 2]);
    }
}
