//! The alignment of a view's rows, which limits the access width.

use kernel_dsl::Element;
use runtime::{BufferView, BufferViewMut};

/// A view with rows of neighboring elements.
pub(crate) trait RowView {
    /// Returns whether all rows begin at multiples of `n` elements.
    fn begins_at(&self, n: usize) -> bool;

    /// Returns the number of elements of a row.
    fn row_len(&self) -> usize;
}

macro_rules! row_views {
    ($($View:ident)*) => {$(
        impl<T: Element, const R: usize> RowView for $View<'_, T, R> {
            fn begins_at(&self, n: usize) -> bool {
                self.aligned(n)
            }

            fn row_len(&self) -> usize {
                self.extents()[R - 1]
            }
        }
    )*};
}
row_views!(BufferView BufferViewMut);

/// Returns whether all rows of a view begin at multiples of `n` elements.
pub(crate) fn rows_begin_at(view: &impl RowView, n: usize) -> bool {
    view.begins_at(n)
}

/// Returns whether all rows of a view begin and end at multiples of `n` elements.
pub(crate) fn rows_are_whole(view: &impl RowView, n: usize) -> bool {
    view.begins_at(n) && view.row_len().is_multiple_of(n)
}
