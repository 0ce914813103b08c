//! Shaped borrows of a buffer, for the views of kernels.
//!
//! Invariant: a [`ViewLayout`] exists only for a buffer that contains all elements that it reaches.

mod rearranged;

use crate::hazard::{AccessSet, BufferAccess, HazardTracker, SubrangeTracker};
use crate::{DeviceBuffer, Error, Result};
use kernel_dsl::launcher::{
    ArgumentMemory, ArgumentShape, DimensionNumbers, SliceArgument, SliceMutArgument, StridedArgument,
    StridedMutArgument, ViewArgument, ViewMutArgument,
};
use kernel_dsl::{Argument, Element};
use std::marker::PhantomData;
use std::ops::Range;

/// The largest number of dimensions of a view.
const MAX_RANK: usize = 5;

/// The position of a view's elements in its buffer, in elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ViewLayout<const R: usize> {
    start: usize,
    extents: [usize; R],
    strides: [usize; R],
}

impl<const R: usize> ViewLayout<R> {
    const RANK: () = assert!(R >= 1 && R <= MAX_RANK, "a view has rank 1 to 5");

    /// Makes the layout of all `len` elements, row-major.
    pub fn row_major<T: Element>(len: usize, extents: [usize; R]) -> Result<ViewLayout<R>> {
        let () = Self::RANK;
        let mut strides = [1; R];
        for d in (0..R - 1).rev() {
            // Saturation occurs only if the product of the extents differs from `len`, or is 0 and
            // no stride is used.
            strides[d] = usize::saturating_mul(strides[d + 1], extents[d + 1]);
        }
        let layout = ViewLayout { start: 0, extents, strides };
        let product = extents.iter().try_fold(1usize, |n, e| n.checked_mul(*e));
        match product {
            _ if extents.contains(&0) && len == 0 => Ok(ViewLayout { strides: [1; R], ..layout }),
            Some(n) if n == len => Ok(layout),
            Some(n) => Err(layout.refused::<T>(len, format!("the extents have {n} elements"))),
            None => Err(layout.refused::<T>(len, "the number of elements overflows".into())),
        }
    }

    /// Makes a layout with any strides, the last 1.
    pub fn strided<T: Element>(len: usize, extents: [usize; R], strides: [usize; R]) -> Result<ViewLayout<R>> {
        let () = Self::RANK;
        if strides[R - 1] != 1 {
            let layout = ViewLayout { start: 0, extents, strides };
            return Err(layout.refused::<T>(len, "the last stride must be 1".into()));
        }
        ViewLayout::with_strides::<T>(len, 0, extents, strides)
    }

    /// Makes a layout with any strides, with the first element at `start`.
    pub fn with_strides<T: Element>(
        len: usize,
        start: usize,
        extents: [usize; R],
        strides: [usize; R],
    ) -> Result<ViewLayout<R>> {
        let () = Self::RANK;
        let layout = ViewLayout { start, extents, strides };
        let reach = reach(&extents, &strides);
        if start > len || reach > (len - start) as u128 {
            let from = if start == 0 { String::new() } else { format!(" from element {start} on") };
            return Err(layout.refused::<T>(len, format!("the view spans {reach} elements{from}")));
        }
        Ok(layout)
    }

    /// Returns the layout if each index names a different element.
    pub fn check_distinct<T: Element>(self, len: usize) -> Result<ViewLayout<R>> {
        match are_distinct(&self.extents, &self.strides) {
            true => Ok(self),
            false => Err(self.refused::<T>(len, "two indices of the writable view select the same element".into())),
        }
    }

    /// Returns the address of the first element: in the buffer, or at its end.
    fn address<T: Element>(&self, origin: ViewOrigin<'_>) -> u64 {
        origin.address + (self.start * size_of::<T>()) as u64
    }

    /// Returns the elements whose outermost index is in `range`.
    fn outermost<T: Element>(&self, range: Range<usize>) -> Result<ViewLayout<R>> {
        let () = Self::RANK;
        // A slice of all rows, which calls of the library make for each launch, costs nothing.
        if range == (0..self.extents[0]) {
            return Ok(*self);
        }
        if range.start > range.end || range.end > self.extents[0] {
            return Err(self.refused::<T>(
                self.extents[0],
                format!("the range {}..{} exceeds the outermost index", range.start, range.end),
            ));
        }
        let mut part = *self;
        part.extents[0] = range.len();
        // An empty part keeps the start: the first element of an empty range may lie beyond the
        // buffer.
        if reach(&part.extents, &part.strides) > 0 {
            part.start += range.start * self.strides[0];
        }
        Ok(part)
    }

    fn split_at<T: Element>(&self, at: usize) -> Result<(ViewLayout<R>, ViewLayout<R>)> {
        Ok((self.outermost::<T>(0..at)?, self.outermost::<T>(at.min(self.extents[0])..self.extents[0])?))
    }

    fn refused<T: Element>(&self, len: usize, why: String) -> Error {
        Error::View { element: T::TYPE, len, extents: self.extents.to_vec(), strides: self.strides.to_vec(), why }
    }
}

/// Returns whether each index names a different element.
pub(crate) fn are_distinct(extents: &[usize], strides: &[usize]) -> bool {
    let mut dims: Vec<_> = extents.iter().zip(strides).filter(|(n, _)| **n > 1).collect();
    dims.sort_by_key(|(_, stride)| **stride);
    // Indices are distinct if each stride exceeds the reach of all smaller strides.
    let mut reach = 0usize;
    let are_distinct = dims.into_iter().all(|(n, stride)| {
        let exceeds = *stride > reach;
        reach = reach.saturating_add((n - 1).saturating_mul(*stride));
        exceeds
    });
    are_distinct || extents.contains(&0)
}

/// Returns the number of elements from the first to the last that a shape reaches, gaps included.
pub fn reach(extents: &[usize], strides: &[usize]) -> u128 {
    let last = extents.iter().zip(strides).map(|(n, s)| n.saturating_sub(1) as u128 * *s as u128);
    if extents.contains(&0) { 0 } else { last.fold(1, u128::saturating_add) }
}

impl ViewLayout<1> {
    /// Makes the layout of all `len` elements.
    pub fn contiguous(len: usize) -> ViewLayout<1> {
        ViewLayout { start: 0, extents: [len], strides: [1] }
    }

    /// Makes the layout of the elements of `range`.
    pub fn range<T: Element>(len: usize, range: Range<usize>) -> Result<ViewLayout<1>> {
        let layout = ViewLayout { start: range.start, extents: [range.len()], strides: [1] };
        let why = if range.start > range.end {
            "ends before it starts"
        } else if range.end > len {
            "exceeds its length"
        } else {
            return Ok(layout);
        };
        Err(layout.refused::<T>(len, format!("the range {}..{} {why}", range.start, range.end)))
    }
}

/// The memory of a view: a buffer, or a slot of a recording.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ViewOrigin<'a> {
    /// The identity of the memory's device: [`ArgumentMemory::device`].
    pub device: u64,
    /// The address of the element from which layouts count.
    pub address: u64,
    /// The tracker of accesses to the memory.
    pub tracker: AccessTracker<'a>,
}

/// The tracker of accesses to memory.
#[derive(Clone, Copy, Debug)]
pub(crate) enum AccessTracker<'a> {
    /// No tracker.
    Untracked,
    /// The tracker of a whole buffer, which is borrowed entirely.
    Whole(&'a HazardTracker),
    /// The tracker for the owner of a part; other code may own other parts.
    Part(&'a SubrangeTracker),
}

impl<'a> ViewOrigin<'a> {
    /// Restricts the tracker to that of a part.
    fn part(self) -> ViewOrigin<'a> {
        match self.tracker {
            AccessTracker::Whole(uses) => ViewOrigin { tracker: AccessTracker::Part(uses.parts()), ..self },
            AccessTracker::Untracked | AccessTracker::Part(_) => self,
        }
    }
}

/// A borrow of a buffer with a shape, to read.
macro_rules! shared {
    ($(#[$doc:meta])* $View:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $View<'a, T: Element, const R: usize> {
            origin: ViewOrigin<'a>,
            layout: ViewLayout<R>,
            borrow: PhantomData<&'a DeviceBuffer<T>>,
        }

        impl<'a, T: Element, const R: usize> $View<'a, T, R> {
            /// Makes a view. The layout reaches only elements within the memory of the origin,
            /// which is borrowed for `'a`.
            pub(crate) fn new(origin: ViewOrigin<'a>, layout: ViewLayout<R>) -> Self {
                $View { origin, layout, borrow: PhantomData }
            }
        }
        shaped!($View);
    };
}

/// A borrow of a buffer with a shape, to write.
macro_rules! exclusive {
    ($(#[$doc:meta])* $View:ident) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $View<'a, T: Element, const R: usize> {
            origin: ViewOrigin<'a>,
            layout: ViewLayout<R>,
            exclusive: PhantomData<&'a mut DeviceBuffer<T>>,
        }

        impl<'a, T: Element, const R: usize> $View<'a, T, R> {
            /// Makes a view, borrowed exclusively.
            pub(crate) fn new(origin: ViewOrigin<'a>, layout: ViewLayout<R>) -> Self {
                $View { origin, layout, exclusive: PhantomData }
            }

            /// Returns a view of the same elements for the lifetime of this borrow.
            pub fn reborrow(&mut self) -> $View<'_, T, R> {
                $View::new(self.origin, self.layout)
            }
        }
        shaped!($View);
    };
}

macro_rules! shaped {
    ($View:ident) => {
        impl<T: Element, const R: usize> $View<'_, T, R> {
            /// Returns the extents in elements, outermost first.
            pub fn extents(&self) -> [usize; R] {
                self.layout.extents
            }

            /// Returns the distance in elements between neighboring indices, outermost first.
            pub fn strides(&self) -> [usize; R] {
                self.layout.strides
            }

            /// Returns the elements whose outermost index is in `range`. The outermost index of the
            /// result counts from the start of `range`.
            ///
            /// # Errors
            /// If `range` exceeds the outermost extent.
            pub fn slice(self, range: Range<usize>) -> Result<Self> {
                Ok($View::new(self.origin, self.layout.outermost::<T>(range)?))
            }

            /// Splits the view into the elements whose outermost index is below `at`, and the
            /// others. The two views share no element.
            ///
            /// # Errors
            /// If `at` exceeds the outermost extent.
            pub fn split_at(self, at: usize) -> Result<(Self, Self)> {
                let (low, high) = self.layout.split_at::<T>(at)?;
                let origin = self.origin.part();
                Ok(($View::new(origin, low), $View::new(origin, high)))
            }
        }
    };
}

shared! {
    /// A buffer's elements as an array of rank `R`, for a kernel to read. The view is an argument
    /// for `View<T, R>`, and for `&[T]` if the rank is 1.
    BufferView
}
exclusive! {
    /// A buffer's elements as an array of rank `R`, for a kernel to write. The view is an argument
    /// for `ViewMut<T, R>`, and for `&mut [T]` if the rank is 1.
    BufferViewMut
}
shared! {
    /// A buffer's elements as an array of rank `R` with any strides, for a kernel to read. The view
    /// is an argument for `Strided<T, R>`, which also takes any [`BufferView`].
    BufferStrided
}
exclusive! {
    /// A buffer's elements as an array of rank `R` with any strides, for a kernel to write. The
    /// view is an argument for `StridedMut<T, R>`, which also takes any [`BufferViewMut`].
    BufferStridedMut
}

macro_rules! aligned {
    ($($View:ident)*) => {$(
        impl<T: Element, const R: usize> $View<'_, T, R> {
            /// Returns whether a kernel can access `n` elements at once: the address of the first
            /// element and all strides except the last are multiples of `n` elements.
            #[inline]
            pub fn aligned(&self, n: usize) -> bool {
                self.layout.address::<T>(self.origin).is_multiple_of((n * size_of::<T>()) as u64)
                    && self.layout.strides[..R - 1].iter().all(|stride| stride.is_multiple_of(n))
            }
        }
    )*};
}
aligned!(BufferView BufferViewMut);

macro_rules! transposed {
    ($View:ident) => {
        impl<T: Element> $View<'_, T, 2> {
            /// Returns the same elements with rows and columns exchanged.
            pub fn transposed(self) -> Self {
                let ViewLayout { start, extents: [rows, columns], strides: [by_row, by_column] } = self.layout;
                let layout = ViewLayout { start, extents: [columns, rows], strides: [by_column, by_row] };
                $View { layout, ..self }
            }
        }
    };
}
transposed!(BufferStrided);
transposed!(BufferStridedMut);

impl<'a, T: Element, const R: usize> BufferView<'a, T, R> {
    /// Returns the same elements as an array with any strides.
    pub fn strided(self) -> BufferStrided<'a, T, R> {
        BufferStrided::new(self.origin, self.layout)
    }
}

impl<'a, T: Element, const R: usize> BufferViewMut<'a, T, R> {
    /// Returns the same elements as an array with any strides.
    pub fn strided(self) -> BufferStridedMut<'a, T, R> {
        BufferStridedMut::new(self.origin, self.layout)
    }
}

impl<T: Element, const R: usize> BufferView<'_, T, R> {
    /// Returns the identity of the view's memory.
    pub(crate) fn device_id(&self) -> u64 {
        self.origin.device
    }

    /// Returns the access of a read of the view.
    pub(crate) fn access(&self) -> AccessSet<'_> {
        match self.origin.tracker {
            AccessTracker::Untracked => AccessSet::default(),
            AccessTracker::Whole(uses) => AccessSet::default().and(BufferAccess::Read(uses.parts())),
            AccessTracker::Part(parts) => AccessSet::default().and(BufferAccess::Read(parts)),
        }
    }
}

macro_rules! detached {
    ($View:ident $Held:ident) => {
        impl<T: Element, const R: usize> $View<'_, T, R> {
            /// Returns the kernel's form of the view, without the borrow: for a struct that a
            /// kernel takes by value.
            ///
            /// # Safety
            /// While the result, or a view made from it, is passed to a launch, the buffer is alive
            /// and no other code writes it. On the host the result is dereferenced only if the
            /// buffer is the CPU's.
            pub unsafe fn detached(&self) -> kernel_dsl::$Held<T, R> {
                let (origin, layout) = (self.origin, &self.layout);
                let address = layout.address::<T>(origin);
                // SAFETY: the layout reaches only initialized elements of the buffer; the caller
                // guarantees the rest.
                unsafe { kernel_dsl::$Held::on_device(origin.device, address, layout.extents, layout.strides) }
            }
        }
    };
}
detached!(BufferView View);
detached!(BufferStrided Strided);

fn memory<'a, T: Element, const R: usize>(
    origin: ViewOrigin<'a>,
    layout: &ViewLayout<R>,
    shape: ArgumentShape,
    mutable: bool,
) -> Argument<'a> {
    let address = layout.address::<T>(origin);
    // SAFETY: the layout reaches only initialized elements of the buffer. Callers borrow the buffer
    // for 'a, exclusively if `mutable`: all of it, or a part, which its tracker records. The
    // tracker is the buffer's own.
    let memory = unsafe {
        let memory = ArgumentMemory::new(T::TYPE, origin.device, address, shape, mutable);
        match origin.tracker {
            AccessTracker::Untracked => memory,
            AccessTracker::Whole(uses) => memory.owned_by(uses),
            AccessTracker::Part(parts) => memory.owned_by(parts),
        }
    };
    Argument::Memory(memory)
}

/// Returns the extents or strides of a layout as an argument has them.
fn wide(numbers: &[usize]) -> DimensionNumbers {
    let mut wide = [0; MAX_RANK];
    for (wide, n) in wide.iter_mut().zip(numbers) {
        *wide = *n as u64;
    }
    DimensionNumbers::from_buf_and_len(wide, numbers.len())
}

fn view<const R: usize>(layout: &ViewLayout<R>) -> ArgumentShape {
    ArgumentShape::View { extents: wide(&layout.extents), strides: wide(&layout.strides) }
}

fn strided<const R: usize>(layout: &ViewLayout<R>) -> ArgumentShape {
    ArgumentShape::Strided { extents: wide(&layout.extents), strides: wide(&layout.strides) }
}

fn slice(layout: &ViewLayout<1>) -> ArgumentShape {
    ArgumentShape::Slice(layout.extents[0] as u64)
}

impl<'a, T: Element, const R: usize> ViewArgument<'a, T, R> for BufferView<'a, T, R> {
    fn argument(self) -> Argument<'a> {
        memory::<T, R>(self.origin, &self.layout, view(&self.layout), false)
    }
}

impl<'a, T: Element, const R: usize> ViewArgument<'a, T, R> for &BufferView<'a, T, R> {
    fn argument(self) -> Argument<'a> {
        memory::<T, R>(self.origin, &self.layout, view(&self.layout), false)
    }
}

impl<'a, T: Element, const R: usize> ViewArgument<'a, T, R> for &'a BufferViewMut<'_, T, R> {
    fn argument(self) -> Argument<'a> {
        memory::<T, R>(self.origin, &self.layout, view(&self.layout), false)
    }
}

impl<'a, T: Element, const R: usize> ViewMutArgument<'a, T, R> for BufferViewMut<'a, T, R> {
    fn argument(self) -> Argument<'a> {
        memory::<T, R>(self.origin, &self.layout, view(&self.layout), true)
    }
}

impl<'a, T: Element, const R: usize> ViewMutArgument<'a, T, R> for &'a mut BufferViewMut<'_, T, R> {
    fn argument(self) -> Argument<'a> {
        memory::<T, R>(self.origin, &self.layout, view(&self.layout), true)
    }
}

macro_rules! cast {
    ($($View:ident)*) => {$(
        impl<'a, T: Element> $View<'a, T, 1> {
            /// Returns the same bytes as elements of another type.
            ///
            /// # Errors
            /// If the bytes do not start at a multiple of the alignment of `U`, or their number is
            /// not a multiple of its size.
            pub fn cast<U: Element>(self) -> Result<$View<'a, U, 1>> {
                let (origin, layout) = recast::<T, U>(self.origin, &self.layout)?;
                Ok($View::new(origin, layout))
            }
        }
    )*};
}
cast!(BufferView BufferViewMut);

macro_rules! shared_of {
    ($($View:ident $Shared:ident)*) => {$(
        impl<'a, T: Element, const R: usize> $View<'a, T, R> {
            /// Returns the same elements for reading, for the lifetime of the exclusive borrow.
            pub fn shared(self) -> $Shared<'a, T, R> {
                $Shared::new(self.origin, self.layout)
            }
        }
    )*};
}
shared_of!(BufferViewMut BufferView BufferStridedMut BufferStrided);

/// Recasts a layout. Every bit pattern is a value of every [`Element`], and none has padding.
fn recast<'a, T: Element, U: Element>(
    origin: ViewOrigin<'a>,
    layout: &ViewLayout<1>,
) -> Result<(ViewOrigin<'a>, ViewLayout<1>)> {
    let (address, [len]) = (layout.address::<T>(origin), layout.extents);
    // The elements are in the buffer, so the product does not overflow.
    let bytes = len * size_of::<T>();
    let refused = |why| Err(Error::Cast { from: T::TYPE, to: U::TYPE, len, why });
    let align = U::TYPE.device_align();
    if !bytes.is_multiple_of(size_of::<U>()) {
        return refused(format!("{bytes} bytes are not a multiple of its size, {}", size_of::<U>()));
    }
    if bytes > 0 && !address.is_multiple_of(u64::from(align)) {
        return refused(format!("they begin at {address:#x}, which is not aligned to {align}"));
    }
    let layout = ViewLayout { start: 0, extents: [bytes / size_of::<U>()], strides: [1] };
    Ok((ViewOrigin { address, ..origin }, layout))
}

/// Implements the arguments for `Strided` and `StridedMut`.
macro_rules! strided_arguments {
    ($($trait:ident $mutable:literal: $($View:ty)*;)*) => {$($(
        impl<'a, T: Element, const R: usize> $trait<'a, T, R> for $View {
            fn argument(self) -> Argument<'a> {
                memory::<T, R>(self.origin, &self.layout, strided(&self.layout), $mutable)
            }
        }
    )*)*};
}
strided_arguments! {
    StridedArgument false: BufferView<'a, T, R> &BufferView<'a, T, R> &'a BufferViewMut<'_, T, R>
        BufferStrided<'a, T, R> &BufferStrided<'a, T, R> &'a BufferStridedMut<'_, T, R>;
    StridedMutArgument true: BufferViewMut<'a, T, R> &'a mut BufferViewMut<'_, T, R>
        BufferStridedMut<'a, T, R> &'a mut BufferStridedMut<'_, T, R>;
}

impl<'a, T: Element> SliceArgument<'a, T> for BufferView<'a, T, 1> {
    fn argument(self) -> Argument<'a> {
        memory::<T, 1>(self.origin, &self.layout, slice(&self.layout), false)
    }
}

impl<'a, T: Element> SliceMutArgument<'a, T> for BufferViewMut<'a, T, 1> {
    fn argument(self) -> Argument<'a> {
        memory::<T, 1>(self.origin, &self.layout, slice(&self.layout), true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error_text<const R: usize>(layout: Result<ViewLayout<R>>) -> String {
        layout.unwrap_err().to_string()
    }

    #[test]
    fn a_whole_view_is_row_major() {
        assert_eq!(ViewLayout::row_major::<f32>(24, [2, 3, 4]).unwrap().strides, [12, 4, 1]);
        assert_eq!(ViewLayout::row_major::<f32>(0, [usize::MAX, 0, usize::MAX]).unwrap().strides, [1, 1, 1]);
    }

    #[test]
    fn a_whole_view_has_the_size_of_its_buffer() {
        assert_eq!(
            error_text(ViewLayout::row_major::<f32>(14, [3, 5])),
            "cannot view a buffer of 14 f32 as extents [3, 5], strides [5, 1]: the extents have 15 elements"
        );
        assert!(error_text(ViewLayout::row_major::<f32>(14, [usize::MAX, 2])).contains("number of elements overflows"));
        assert!(ViewLayout::row_major::<f32>(1, [0, 3]).is_err());
    }

    #[test]
    fn a_strided_view_ends_inside_its_buffer() {
        assert!(ViewLayout::strided::<f32>(18, [3, 2], [8, 1]).is_ok());
        assert!(error_text(ViewLayout::strided::<f32>(17, [3, 2], [8, 1])).contains("the view spans 18 elements"));
        assert!(error_text(ViewLayout::strided::<f32>(99, [3, 2], [1, 8])).contains("last stride must be 1"));
        assert!(ViewLayout::strided::<f32>(99, [usize::MAX; 2], [usize::MAX, 1]).is_err());
        assert!(ViewLayout::strided::<f32>(0, [0, 2], [8, 1]).is_ok());
    }

    #[test]
    fn views_to_write_have_distinct_elements() {
        let distinct = |extents, strides| ViewLayout::strided::<f32>(100, extents, strides)?.check_distinct::<f32>(100);
        assert!(distinct([3, 2, 4], [8, 4, 1]).is_ok());
        assert!(distinct([3, 1, 4], [4, 0, 1]).is_ok());
        assert!(distinct([2, 3, 4], [4, 8, 1]).is_ok());
        assert!(error_text(distinct([3, 2, 4], [4, 4, 1])).contains("two indices"));
        assert!(distinct([3, 2, 4], [8, 3, 1]).is_err());
    }

    #[test]
    fn parts_lie_inside_their_view() {
        let whole = ViewLayout::row_major::<f32>(24, [4, 6]).unwrap();
        let (low, high) = whole.split_at::<f32>(1).unwrap();
        assert_eq!((low.start, low.extents, high.start, high.extents), (0, [1, 6], 6, [3, 6]));
        let part = high.outermost::<f32>(1..3).unwrap();
        assert_eq!((part.start, part.extents, part.strides), (12, [2, 6], [6, 1]));
        assert_eq!(high.outermost::<f32>(3..3).unwrap().extents, [0, 6]);
        assert!(error_text(high.outermost::<f32>(2..4)).contains("range 2..4 exceeds the outermost index"));
        assert!(whole.split_at::<f32>(5).is_err());
        assert!(whole.split_at::<f32>(4).is_ok());
    }

    #[test]
    fn reinterpreted_views_are_checked_for_size_and_alignment() {
        let at = |address| ViewOrigin { device: 0, address, tracker: AccessTracker::Untracked };
        let cast = |address, len| recast::<u8, f32>(at(address), &ViewLayout::range::<u8>(len, 0..len).unwrap());
        assert_eq!(cast(256, 12).unwrap().1.extents, [3]);
        assert_eq!(
            cast(256, 13).unwrap_err().to_string(),
            "cannot view 13 u8 as f32: 13 bytes are not a multiple of its size, 4"
        );
        assert!(cast(258, 12).unwrap_err().to_string().contains("aligned to 4"));
        assert_eq!(cast(1, 0).unwrap().1.extents, [0]);
        let part = ViewLayout::range::<u8>(16, 4..12).unwrap();
        let (origin, layout) = recast::<u8, f32>(at(256), &part).unwrap();
        assert_eq!((origin.address, layout.start, layout.extents), (260, 0, [2]));
    }

    #[test]
    fn a_range_lies_inside_its_buffer() {
        assert_eq!(ViewLayout::range::<f32>(9, 2..9).unwrap().extents, [7]);
        assert!(ViewLayout::range::<f32>(9, 9..9).is_ok());
        assert!(error_text(ViewLayout::range::<f32>(9, 2..10)).contains("range 2..10 exceeds"));
        #[expect(clippy::reversed_empty_ranges)]
        let backwards = ViewLayout::range::<f32>(9, 3..2);
        assert!(backwards.is_err());
    }
}
