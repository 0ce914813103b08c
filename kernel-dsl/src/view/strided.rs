//! Views whose last stride need not be 1: a column, a transposed matrix, every other element.

use super::{HOST, View, ViewMut};
use crate::atomic::{Atomic, AtomicInteger, atomics};
use crate::element::Element;
use crate::layout::{Layout, Position};
use crate::wide::Space;
use std::ops::IndexMut;
use std::ptr::NonNull;

/// An array of rank `R` (1 to 5) in global memory that nobody writes during the launch, of any strides.
///
/// As a parameter of a kernel, `a: Strided<f32, 2>`, it becomes 2R + 1 parameters of the PTX entry: an address, R extents and
/// R strides. It is read as a [`View`] is, an element at a time: what is loaded at once must lie side by side.
#[derive(Clone, Copy, Debug)]
pub struct Strided<T: Element, const R: usize> {
    /// The first element. `None`: made by `at` past the end, so that it has none.
    pub(super) first: Option<NonNull<T>>,
    pub(super) layout: Layout<R>,
    /// Whose memory it is, as [`Memory::device`](crate::launcher::Memory::device) says.
    pub(super) device: u64,
}

/// An array of rank `R` (1 to 5) in global memory that is this launch's alone to read and write, of any strides.
///
/// As a [`ViewMut`]: `mut c: StridedMut<f32, 2>` assigns to its elements. A launch refuses one in which two indices name one
/// element.
#[derive(Clone, Copy, Debug)]
pub struct StridedMut<T: Element, const R: usize> {
    /// The first element. `None`: made by `at` past the end, so that it has none.
    pub(super) first: Option<NonNull<T>>,
    pub(super) layout: Layout<R>,
    /// Whose memory it is, as [`Memory::device`](crate::launcher::Memory::device) says.
    pub(super) device: u64,
}

// SAFETY: a view gives `&T` to memory that, by the duty of `Strided::host`, nobody writes while the view is used; `T` is
// `Send` and `Sync` as an `Element`.
unsafe impl<T: Element, const R: usize> Send for Strided<T, R> {}
// SAFETY: as above.
unsafe impl<T: Element, const R: usize> Sync for Strided<T, R> {}
// SAFETY: that the threads which share the memory do not race is the duty that `StridedMut::host` lays on its caller.
unsafe impl<T: Element, const R: usize> Send for StridedMut<T, R> {}
// SAFETY: as above.
unsafe impl<T: Element, const R: usize> Sync for StridedMut<T, R> {}

macro_rules! transposed {
    ($Strided:ident) => {
        impl<T: Element> $Strided<T, 2> {
            /// The same elements with rows for columns: element (i, j) is what was (j, i). Nothing is loaded, and nothing
            /// computed.
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
        // SAFETY: the element is inside the memory that the view was made over, and by the duty of `StridedMut::host` no
        // other reference to it is in use.
        unsafe { self.element(at.indices()).as_mut() }
    }
}

atomics!(StridedMut, Space::Global);

impl<T: Element, const R: usize> Strided<T, R> {
    /// A view of host memory of these extents and strides, for a kernel under [`host::run`](crate::host::run).
    ///
    /// # Safety
    /// As for [`View::host`].
    ///
    /// # Panics
    /// Where `elements` ends before the last element.
    #[track_caller]
    pub unsafe fn host(elements: &[T], shape: [usize; R], strides: [usize; R]) -> Self {
        let layout = host_layout(elements.len(), shape, strides);
        Strided { first: Some(NonNull::from(elements).cast()), layout, device: HOST }
    }
}

impl<T: Element, const R: usize> StridedMut<T, R> {
    /// A view of host memory of these extents and strides, for a kernel under [`host::run`](crate::host::run).
    ///
    /// # Safety
    /// As for [`ViewMut::host`], and no two indices name one element.
    ///
    /// # Panics
    /// Where `elements` ends before the last element.
    #[track_caller]
    pub unsafe fn host(elements: &mut [T], shape: [usize; R], strides: [usize; R]) -> Self {
        let layout = host_layout(elements.len(), shape, strides);
        StridedMut { first: Some(NonNull::from(elements).cast()), layout, device: HOST }
    }
}

#[track_caller]
fn host_layout<const R: usize>(elements: usize, shape: [usize; R], strides: [usize; R]) -> Layout<R> {
    let layout = Layout::strided(shape, strides);
    assert!(layout.span() <= elements, "a view that reaches over {} of {elements} elements", layout.span());
    layout
}

/// What shared memory is filled from: any view.
pub trait Source<T: Element, const R: usize>: Copy + sealed::Sealed {
    /// Its extents.
    #[doc(hidden)]
    fn extents(self) -> [usize; R];
    /// An element that lies inside.
    #[doc(hidden)]
    fn read(self, at: [usize; R]) -> T;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! sources {
    ($($View:ident)*) => {$(
        impl<T: Element, const R: usize> sealed::Sealed for $View<T, R> {}
        impl<T: Element, const R: usize> Source<T, R> for $View<T, R> {
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
