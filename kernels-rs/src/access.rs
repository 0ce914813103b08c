//! The alignment of a view's rows, which limits the access width.

use kernel_dsl::Element;
use runtime::{BufferView, BufferViewMut};

/// A view with rows of neighboring elements.
pub(crate) trait WholeRows {
    /// Returns whether all rows begin and end at multiples of `n` elements.
    fn rows_are_whole(&self, n: usize) -> bool;
}

macro_rules! whole_rows {
    ($($View:ident)*) => {$(
        impl<T: Element, const R: usize> WholeRows for $View<'_, T, R> {
            fn rows_are_whole(&self, n: usize) -> bool {
                self.aligned(n) && self.extents()[R - 1].is_multiple_of(n)
            }
        }
    )*};
}
whole_rows!(BufferView BufferViewMut);
