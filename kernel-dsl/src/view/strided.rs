//! Views with a stride in the last dimension too: a column, a transposed matrix, every second
//! element.

use super::{HOST, View, ViewMut};
use crate::atomic::{Atomic, AtomicInteger, atomics};
use crate::element::{Element, ScalarElement};
use crate::layout::{Position, StridedLayout};
use crate::wide::ElementSpace;
use std::ops::IndexMut;
use std::ptr::NonNull;

/// An array of rank `R` (1 to 5) in global memory with any strides, which stays unwritten during
/// the launch.
///
/// A kernel's parameter `a: Strided<f32, 2>` becomes 2R + 1 parameters of the PTX entry: an
/// address, R extents and R strides. The array is read like a [`View`], one element at a time:
/// vector loads need contiguous elements.
#[derive(Clone, Copy, Debug)]
pub struct Strided<T: Element, const R: usize> {
    /// The first element. `None` for a view that `at` made past the end.
    pub(super) first: Option<NonNull<T>>,
    pub(super) layout: StridedLayout<R>,
    /// The device that owns the memory, as
    /// [`ArgumentMemory::device`](crate::launcher::ArgumentMemory::device) returns it.
    pub(super) device: u64,
}

/// An array of rank `R` (1 to 5) in global memory with any strides, which the launch reads and
/// writes exclusively.
///
/// Like a [`ViewMut`], `mut c: StridedMut<f32, 2>` assigns to its elements. A launch rejects
/// strides that give one element two indices.
#[derive(Clone, Copy, Debug)]
pub struct StridedMut<T: Element, const R: usize> {
    /// The first element. `None` for a view that `at` made past the end.
    pub(super) first: Option<NonNull<T>>,
    pub(super) layout: StridedLayout<R>,
    /// The device that owns the memory, as
    /// [`ArgumentMemory::device`](crate::launcher::ArgumentMemory::device) returns it.
    pub(super) device: u64,
}

// SAFETY: a view gives `&T` to memory that is not written while the view is used: the caller of
// `Strided::host` guarantees it. As an `Element`, `T` is `Send` and `Sync`.
unsafe impl<T: Element, const R: usize> Send for Strided<T, R> {}
// SAFETY: as above.
unsafe impl<T: Element, const R: usize> Sync for Strided<T, R> {}
// SAFETY: the caller of `StridedMut::host` guarantees that threads sharing the memory do not race.
unsafe impl<T: Element, const R: usize> Send for StridedMut<T, R> {}
// SAFETY: as above.
unsafe impl<T: Element, const R: usize> Sync for StridedMut<T, R> {}

macro_rules! transposed {
    ($Strided:ident) => {
        impl<T: Element> $Strided<T, 2> {
            /// Returns the same elements with rows and columns exchanged: element (i, j) is the
            /// former (j, i). Nothing is loaded or computed.
            #[must_use]
            pub fn transposed(self) -> Self {
                Self { layout: self.layout.transposed(), ..self }
            }
        }
    };
}
transposed!(Strided);
transposed!(StridedMut);

impl<T: Element, const R: usize, P: Position<R>> IndexMut<P> for StridedMut<T, R> {
    #[track_caller]
    fn index_mut(&mut self, at: P) -> &mut T {
        // SAFETY: the element is inside the view's memory. The caller of `StridedMut::host`
        // guarantees that no other reference to it is in use.
        unsafe { self.element(at.indices()).as_mut() }
    }
}

atomics!(StridedMut, ElementSpace::Global);

impl<T: Element, const R: usize> Strided<T, R> {
    /// Returns a view of host memory with these extents and strides, for a kernel under
    /// [`host::run`](crate::host::run).
    ///
    /// # Safety
    /// The requirements of [`View::host`] apply.
    ///
    /// # Panics
    /// If `elements` ends before the last element.
    #[track_caller]
    pub unsafe fn host(elements: &[T], shape: [usize; R], strides: [usize; R]) -> Self {
        let layout = host_layout(elements.len(), shape, strides);
        Strided { first: Some(NonNull::from(elements).cast()), layout, device: HOST }
    }
}

impl<T: Element, const R: usize> StridedMut<T, R> {
    /// Returns a view of host memory with these extents and strides, for a kernel under
    /// [`host::run`](crate::host::run).
    ///
    /// # Safety
    /// The requirements of [`ViewMut::host`] apply. No two indices may name one element.
    ///
    /// # Panics
    /// If `elements` ends before the last element.
    #[track_caller]
    pub unsafe fn host(elements: &mut [T], shape: [usize; R], strides: [usize; R]) -> Self {
        let layout = host_layout(elements.len(), shape, strides);
        StridedMut { first: Some(NonNull::from(elements).cast()), layout, device: HOST }
    }
}

#[track_caller]
fn host_layout<const R: usize>(elements: usize, shape: [usize; R], strides: [usize; R]) -> StridedLayout<R> {
    let layout = StridedLayout::strided(shape, strides);
    assert!(layout.span() <= elements, "a view of {} elements does not fit into {elements} elements", layout.span());
    layout
}

/// A source for copies to shared memory: any view.
pub trait CopySource<T: Element, const R: usize>: Copy + sealed::Sealed {
    /// Returns the extents.
    #[doc(hidden)]
    fn extents(self) -> [usize; R];
    /// Reads an element that lies inside.
    #[doc(hidden)]
    fn read(self, at: [usize; R]) -> T;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! sources {
    ($($View:ident)*) => {$(
        impl<T: Element, const R: usize> sealed::Sealed for $View<T, R> {}
        impl<T: Element, const R: usize> CopySource<T, R> for $View<T, R> {
            fn extents(self) -> [usize; R] {
                self.layout.shape()
            }
            #[track_caller]
            fn read(self, at: [usize; R]) -> T {
                self[at]
            }
        }
    )*};
}
sources!(View ViewMut Strided StridedMut);
