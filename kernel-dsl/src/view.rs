//! Arrays in global memory, as a kernel sees them: [`View`] to read, [`ViewMut`] to read and write; [`Strided`] and
//! [`StridedMut`] where neighbours in the last dimension do not lie side by side.
//!
//! A view is a pointer with extents and strides, and moves like one. It is `Copy` and carries no lifetime, so that it
//! can be handed to device functions and kept in variables freely; whoever makes one for the host vouches for the
//! memory (see `host`). Every access is checked against the extents.

mod strided;

pub use strided::{Source, Strided, StridedMut};

use crate::atomic::{Atomic, AtomicInteger, atomics};
use crate::element::Element;
use crate::launcher::{self, Argument, Memory, ValueArgument};
use crate::layout::{Layout, Position, Shape};
use crate::wide::{self, Space};
use std::ops::{Index, IndexMut};
use std::ptr::NonNull;

/// An array of rank `R` (1 to 5) in global memory that nobody writes during the launch.
///
/// The last dimension is contiguous; the others have strides. As a parameter of a kernel it is written without a
/// lifetime, `a: View<f32, 2>`, and becomes 2R parameters of the PTX entry: an address, R extents and R − 1 strides.
///
/// `a[(row, col)]` reads an element: `ld.global.nc`, the read-only path.
#[derive(Clone, Copy, Debug)]
pub struct View<T: Element, const R: usize> {
    /// The first element. `None`: made by `at` past the end, so that it has none.
    first: Option<NonNull<T>>,
    layout: Layout<R>,
    /// Whose memory it is, as [`Memory::device`] says.
    device: u64,
}

/// An array of rank `R` (1 to 5) in global memory that is this launch's alone to read and write.
///
/// Declare the parameter `mut c: ViewMut<f32, 2>` to assign to its elements. All threads hold the same array: two
/// threads may not touch one element, one of them writing, without a [`block::sync`](crate::block::sync) between.
///
/// `c[(row, col)]` reads by `ld.global` and writes by `st.global`.
#[derive(Clone, Copy, Debug)]
pub struct ViewMut<T: Element, const R: usize> {
    /// The first element. `None`: made by `at` past the end, so that it has none.
    first: Option<NonNull<T>>,
    layout: Layout<R>,
    /// Whose memory it is, as [`Memory::device`] says.
    device: u64,
}

// SAFETY: a view gives `&T` to memory that, by the duty of `View::host`, nobody writes while the view is used; `T` is
// `Send` and `Sync` as an `Element`.
unsafe impl<T: Element, const R: usize> Send for View<T, R> {}
// SAFETY: as above.
unsafe impl<T: Element, const R: usize> Sync for View<T, R> {}
// SAFETY: that the threads which share the memory do not race is the duty that `ViewMut::host` lays on its caller.
unsafe impl<T: Element, const R: usize> Send for ViewMut<T, R> {}
// SAFETY: as above.
unsafe impl<T: Element, const R: usize> Sync for ViewMut<T, R> {}

/// The device whose memory is the host's.
const HOST: u64 = 0;

/// What all views have.
macro_rules! view {
    ($View:ident $mutable:literal $layout:ident $Shape:ident) => {
        impl<T: Element, const R: usize> $View<T, R> {
            /// A view of memory at `address` of the device that calls itself `device`, for a struct that a kernel takes by
            /// value. Buffers of crate `runtime` make it.
            ///
            /// # Safety
            /// While this view, or any made from it, is passed to a launch, all elements that the extents and strides reach over
            /// lie in one live allocation of that device, initialised; nobody writes them, and where it is a `ViewMut` nobody
            /// else reads them. On the host it is dereferenced only if `device` is the host's, 0, and `address` one of a
            /// pointer valid for that.
            ///
            /// # Panics
            /// Where the elements cannot be counted, or the last stride has to be 1 and is not.
            pub unsafe fn on_device(device: u64, address: u64, shape: [usize; R], strides: [usize; R]) -> Self {
                let first = std::ptr::with_exposed_provenance_mut(address as usize);
                Self { first: NonNull::new(first), layout: Layout::$layout(shape, strides), device }
            }
        }

        impl<T: Element, const R: usize> ValueArgument for $View<T, R> {
            fn arguments(self, list: &mut Vec<Argument<'_>>) {
                let wide = |numbers: [usize; R]| numbers.iter().map(|n| *n as u64).collect();
                let shape = launcher::Shape::$Shape {
                    extents: wide(self.layout.shape()),
                    strides: wide(self.layout.stride()),
                };
                let address = self.first.map_or(0, |first| first.as_ptr().expose_provenance() as u64);
                // SAFETY: whoever made the view vouched for the memory.
                list.push(Argument::Memory(unsafe { Memory::new(T::TYPE, self.device, address, shape, $mutable) }));
            }
        }

        impl<T: Element, const R: usize> $View<T, R> {
            /// Elements in dimension `d`, which must be a constant below `R`. A parameter of the PTX entry, or a
            /// subtraction from one after [`offset`](Self::offset).
            #[must_use]
            #[track_caller]
            pub fn dim(self, d: usize) -> usize {
                assert!(d < R, "dimension {d} of a view of rank {R}");
                self.layout.shape()[d]
            }

            /// Elements from one index of dimension `d`, a constant below `R`, to the next.
            #[must_use]
            #[track_caller]
            pub fn stride(self, d: usize) -> usize {
                assert!(d < R, "dimension {d} of a view of rank {R}");
                self.layout.stride()[d]
            }

            /// The same array seen from `at` on: the pointer moves, the extents shrink, and are 0 past the end. Nothing
            /// is loaded. In PTX `mad.wide.u32` by the strides, and `sub` with saturation for the extents that are
            /// used.
            #[must_use]
            pub fn offset(self, at: impl Position<R>) -> Self {
                let (elements, layout) = self.layout.offset(at.indices());
                // Wrapping: the pointer may leave the memory, but then an extent is 0 and no element is accessed.
                let moved = self.first.map(|p| p.as_ptr().wrapping_add(elements));
                Self { first: moved.and_then(NonNull::new), layout, ..self }
            }

            /// The element at `at`, if it lies inside. One load, guarded by the comparisons with the extents: the
            /// threads outside load nothing.
            #[must_use]
            pub fn get(self, at: impl Position<R>) -> Option<T> {
                let at = at.indices();
                let inside = at.iter().zip(self.layout.shape()).all(|(i, extent)| *i < extent);
                // SAFETY: as in `index`: the element lies within the extents.
                inside.then(|| unsafe { *self.element(at).as_ref() })
            }

            /// The same view, of whose elements each is read once: its loads ask the caches to drop what they brought first. In PTX
            /// `ld.global.cs`. A wish, and no more.
            pub fn streaming(self) -> Self {
                self
            }

            /// The same view, read by way of the second cache alone: neither by the read-only path nor by the first cache, which what else the
            /// kernel reads has for itself then. In PTX `ld.global.cg`. A wish, as [`streaming`](Self::streaming) is.
            pub fn coherent(self) -> Self {
                self
            }

            /// Whether there are no elements.
            #[must_use]
            pub fn is_empty(self) -> bool {
                self.layout.shape().contains(&0)
            }

            #[track_caller]
            fn element(&self, at: [usize; R]) -> NonNull<T> {
                let Some(first) = self.first else {
                    panic!("out of bounds: element {} of a view that `at` took past the end", Shape(&at));
                };
                let Some(element) = self.layout.element(at) else {
                    panic!("out of bounds: element {} of a view of {}", Shape(&at), Shape(&self.layout.shape()));
                };
                // SAFETY: `element` lies within the extents, so within the memory that the view was made over: `offset`
                // and `at` move the pointer by what they take from the extents.
                unsafe { first.add(element) }
            }
        }

        impl<T: Element> $View<T, 1> {
            /// Number of elements.
            #[must_use]
            pub fn len(self) -> usize {
                self.layout.shape()[0]
            }
        }

        impl<T: Element> $View<T, 2> {
            /// Elements in dimension 0.
            #[must_use]
            pub fn rows(self) -> usize {
                self.layout.shape()[0]
            }

            /// Elements in dimension 1.
            #[must_use]
            pub fn cols(self) -> usize {
                self.layout.shape()[1]
            }
        }

        view!($View 2 1);
        view!($View 3 2);
        view!($View 4 3);
        view!($View 5 4);

        impl<T: Element, const R: usize, P: Position<R>> Index<P> for $View<T, R> {
            type Output = T;

            #[track_caller]
            fn index(&self, at: P) -> &T {
                // SAFETY: the element is inside the memory that the view was made over, which is initialised, and alive
                // and free of races by the duty of `host`.
                unsafe { self.element(at.indices()).as_ref() }
            }
        }
    };
    ($View:ident $rank:literal $less:literal) => {
        impl<T: Element> $View<T, $rank> {
            /// The array with its first index fixed at `i`, of one rank less. Nothing is loaded or checked; where `i`
            /// was out of bounds, it is empty. In PTX `mad.wide.u32` by the first stride.
            #[must_use]
            pub fn at(self, i: usize) -> $View<T, $less> {
                let (element, layout) = self.layout.plane(i);
                let first = element.zip(self.first).and_then(|(n, p)| NonNull::new(p.as_ptr().wrapping_add(n)));
                $View { first, layout, device: self.device }
            }
        }
    };
}
view!(View false contiguous View);
view!(ViewMut true contiguous View);
view!(Strided false strided Strided);
view!(StridedMut true strided Strided);

/// What views have whose last stride is 1.
macro_rules! contiguous {
    ($View:ident $Strided:ident) => {
        impl<T: Element, const R: usize> $View<T, R> {
            /// Whether the first element's address and all strides but the last are multiples of `n` elements, so that
            /// `n` elements can move at once. For `#[requires(…)]`: the launch evaluates it.
            #[must_use]
            pub fn aligned(self, n: usize) -> bool {
                let address = self.first.map_or(0, |p| p.addr().get());
                address.is_multiple_of(n * size_of::<T>())
                    && self.layout.stride()[..R - 1].iter().all(|s| s.is_multiple_of(n))
            }

            /// A view without elements.
            pub(crate) fn nothing() -> Self {
                Self { first: None, layout: Layout::packed([0; R]), device: HOST }
            }

            /// The same array as one of any strides. Nothing is loaded.
            #[must_use]
            pub fn strided(self) -> $Strided<T, R> {
                $Strided { first: self.first, layout: self.layout, device: self.device }
            }
        }

        /// Several elements at once, from `at` on in the last dimension: `N` is 1, 2, 4, 8 or 16, as the array that is wanted
        /// says or by turbofish.
        impl<T: Element, const R: usize> $View<T, R> {
            /// `N` elements. All must be inside, and the first must lie at a multiple of their bytes, or of 16 bytes where they
            /// are more: say so by `requires(x.aligned(n))`, and step by such multiples. In PTX accesses of up to
            /// 16 bytes, `ld.global.v4` and `.v2`.
            #[must_use]
            #[track_caller]
            pub fn load<const N: usize>(self, at: impl Position<R>) -> [T; N] {
                let first = self.elements(at.indices(), N);
                wide::aligned(first.as_ptr(), N);
                // SAFETY: `elements` gives elements inside the memory that the view was made over, which is initialised, and
                // alive and free of races by the duty of `host`.
                std::array::from_fn(|i| unsafe { first.add(i).read() })
            }

            /// `N` elements, and `other` for those that lie outside: beyond the last extent, or all where another index is
            /// out of its extent. At any alignment: in PTX a guarded load an element.
            #[must_use]
            #[track_caller]
            pub fn load_or<const N: usize>(self, at: impl Position<R>, other: T) -> [T; N] {
                wide::at_once::<T>(N);
                std::array::from_fn(|i| {
                    let element = self.layout.element(wide::on(at.indices(), i)).zip(self.first);
                    // SAFETY: the element lies within the extents; else as in `load`.
                    element.map_or(other, |(n, first)| unsafe { first.add(n).read() })
                })
            }

            /// The first of `n` elements that must be there.
            #[track_caller]
            fn elements(&self, at: [usize; R], n: usize) -> NonNull<T> {
                self.element(wide::on(at, n - 1));
                self.element(at)
            }
        }
    };
}
contiguous!(View Strided);
contiguous!(ViewMut StridedMut);

impl<T: Element, const R: usize, P: Position<R>> IndexMut<P> for ViewMut<T, R> {
    #[track_caller]
    fn index_mut(&mut self, at: P) -> &mut T {
        // SAFETY: the element is inside the memory that the view was made over, and by the duty of `ViewMut::host` no
        // other reference to it is in use.
        unsafe { self.element(at.indices()).as_mut() }
    }
}

/// Several elements at once, from `at` on in the last dimension: `N` is 1, 2, 4, 8 or 16, as the array says.
impl<T: Element, const R: usize> ViewMut<T, R> {
    /// Writes `N` elements, all inside and aligned as those of a [`load`](Self::load). In PTX accesses of up to 16 bytes,
    /// `st.global.v4` and `.v2`.
    #[track_caller]
    pub fn store<const N: usize>(self, at: impl Position<R>, values: [T; N]) {
        let first = self.elements(at.indices(), N);
        wide::aligned(first.as_ptr(), N);
        for (i, value) in values.into_iter().enumerate() {
            // SAFETY: `elements` gives elements inside the memory that the view was made over, and by the duty of
            // `ViewMut::host` no reference to them is in use.
            unsafe { first.add(i).write(value) }
        }
    }

    /// Writes those of `N` elements that lie inside, and drops the others. At any alignment: in PTX a guarded store an
    /// element.
    #[track_caller]
    pub fn store_in<const N: usize>(self, at: impl Position<R>, values: [T; N]) {
        wide::at_once::<T>(N);
        for (i, value) in values.into_iter().enumerate() {
            if let Some((n, first)) = self.layout.element(wide::on(at.indices(), i)).zip(self.first) {
                // SAFETY: the element lies within the extents; else as in `store`.
                unsafe { first.add(n).write(value) }
            }
        }
    }
}

atomics!(ViewMut, Space::Global);

impl<T: Element, const R: usize> View<T, R> {
    /// A view of host memory, row-major without gaps, for a kernel under [`host::run`](crate::host::run).
    ///
    /// # Safety
    /// While this view, or any made from it, is used, `elements` must stay alive and unwritten.
    ///
    /// # Panics
    /// Where `elements` has fewer elements than `shape`.
    #[track_caller]
    pub unsafe fn host(elements: &[T], shape: [usize; R]) -> Self {
        let layout = host_layout(elements.len(), shape);
        View { first: Some(NonNull::from(elements).cast()), layout, device: HOST }
    }
}

impl<T: Element, const R: usize> ViewMut<T, R> {
    /// A view of host memory, row-major without gaps, for a kernel under [`host::run`](crate::host::run).
    ///
    /// # Safety
    /// While this view, or any made from it, is used, `elements` must stay alive, and be accessed through such views
    /// only. Two threads that use them may not access one element without a barrier between if one of them writes, and
    /// a reference to an element may not be in use when another access to that element is made: what a kernel without
    /// races does.
    ///
    /// # Panics
    /// Where `elements` has fewer elements than `shape`.
    #[track_caller]
    pub unsafe fn host(elements: &mut [T], shape: [usize; R]) -> Self {
        let layout = host_layout(elements.len(), shape);
        ViewMut { first: Some(NonNull::from(elements).cast()), layout, device: HOST }
    }
}

#[track_caller]
fn host_layout<const R: usize>(elements: usize, shape: [usize; R]) -> Layout<R> {
    let layout = Layout::packed(shape);
    assert!(layout.span() <= elements, "a view of {} over {elements} elements", Shape(&shape));
    layout
}
