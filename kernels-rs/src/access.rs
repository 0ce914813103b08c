//! The alignment of a view's rows, which limits the access width.

use kernel_dsl::launcher::{Argument, ArgumentShape, ViewArgument};

/// Returns whether all rows of a view begin at multiples of `n` elements.
pub(crate) fn rows_begin_at<'a, T, const R: usize>(view: impl ViewArgument<'a, T, R>, n: usize) -> bool {
    shape_at(&view.argument(), n).is_some()
}

/// Returns whether all rows of a view begin and end at multiples of `n` elements.
pub(crate) fn rows_are_whole<'a, T, const R: usize>(view: impl ViewArgument<'a, T, R>, n: usize) -> bool {
    let argument = view.argument();
    shape_at(&argument, n).is_some_and(|extents| extents.last().is_some_and(|cols| cols.is_multiple_of(n as u64)))
}

/// Returns the extents of a view if its rows begin at multiples of `n` elements.
fn shape_at<'m>(argument: &'m Argument<'_>, n: usize) -> Option<&'m [u64]> {
    let Argument::Memory(memory) = argument else { return None };
    let ArgumentShape::View { extents, strides } = memory.shape() else { return None };
    let (_, outer) = strides.split_last()?;
    let n = n as u64;
    let begin = memory.address().is_multiple_of(n * u64::from(memory.element().bytes()));
    (begin && outer.iter().all(|stride| stride.is_multiple_of(n))).then_some(extents)
}
