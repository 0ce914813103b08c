//! How wide the accesses to a matrix can be.

use kernel_dsl::launcher::{Argument, Shape, ViewArgument};

/// Whether all rows of a view begin and end at multiples of `n` elements.
pub fn whole<'a, T, const R: usize>(view: impl ViewArgument<'a, T, R>, n: u64) -> bool {
    let Argument::Memory(memory) = view.argument() else { return false };
    let Shape::View { extents, strides } = memory.shape() else { return false };
    let outer = strides.split_last().map_or(&[][..], |(_, outer)| outer);
    memory.address().is_multiple_of(n * u64::from(memory.element().bytes()))
        && extents.last().into_iter().chain(outer).all(|s| s.is_multiple_of(n))
}
