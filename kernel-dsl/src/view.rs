//! Arrays in global memory: [`View`] to read, [`ViewMut`] to read and write, [`Strided`] and
//! [`StridedMut`] with a stride in the last dimension too.
//!
//! A view is a pointer with extents and strides, and moves like a pointer. A view is `Copy` and has
//! no lifetime, so device functions take it by value and variables keep it. The caller that makes a
//! view on the host guarantees that its memory is valid (see `host`). Every access is checked
//! against the extents.

mod strided;

pub use strided::{CopySource, Strided, StridedMut};

use crate::atomic::{Atomic, AtomicInteger, atomics};
use crate::element::{DeviceCopy, Element, ScalarElement};
use crate::launcher::{self, Argument, ArgumentMemory, ValueArgument};
use crate::layout::{IndexShape, Position, StridedLayout};
use crate::wide::{self, ElementSpace};
use std::ops::{Index, IndexMut};
use std::ptr::NonNull;

/// An array of rank `R` (1 to 5) in global memory that stays unwritten during the launch.
///
/// The last dimension is contiguous; the others have strides. A kernel's parameter has no lifetime,
/// `a: View<f32, 2>`. The parameter becomes 2R parameters of the PTX entry: an address, R extents
/// and R − 1 strides.
///
/// `a[(row, col)]` reads an element with `ld.global.nc`, through the read-only path.
#[derive(Clone, Copy, Debug)]
pub struct View<T: Element, const R: usize> {
    /// The first element. `None` for a view that `at` made past the end.
    first: Option<NonNull<T>>,
    layout: StridedLayout<R>,
    /// The device that owns the memory, as [`ArgumentMemory::device`] returns it.
    device: u64,
}

/// An array of rank `R` (1 to 5) in global memory that the launch reads and writes exclusively.
///
/// Declare the parameter as `mut c: ViewMut<f32, 2>` to assign to its elements. All threads hold
/// the same array. Accesses of two threads to one element, at least one of them a write, need a
/// [`block::sync`](crate::block::sync) between them.
///
/// `c[(row, col)]` reads with `ld.global` and writes with `st.global`.
#[derive(Clone, Copy, Debug)]
pub struct ViewMut<T: Element, const R: usize> {
    /// The first element. `None` for a view that `at` made past the end.
    first: Option<NonNull<T>>,
    layout: StridedLayout<R>,
    /// The device that owns the memory, as [`ArgumentMemory::device`] returns it.
    device: u64,
}

// SAFETY: a view gives `&T` to memory that is not written while the view is used: the caller of
// `View::host` guarantees it. As an `Element`, `T` is `Send` and `Sync`.
unsafe impl<T: Element, const R: usize> Send for View<T, R> {}
// SAFETY: as above.
unsafe impl<T: Element, const R: usize> Sync for View<T, R> {}
// SAFETY: the caller of `ViewMut::host` guarantees that threads sharing the memory do not race.
unsafe impl<T: Element, const R: usize> Send for ViewMut<T, R> {}
// SAFETY: as above.
unsafe impl<T: Element, const R: usize> Sync for ViewMut<T, R> {}

/// The device number of host memory.
const HOST: u64 = 0;

/// Methods of all views.
macro_rules! view {
    ($View:ident $mutable:literal $layout:ident $Shape:ident) => {
        impl<T: Element, const R: usize> $View<T, R> {
            /// Returns a view of memory at `address` of device `device`, for a struct that a kernel
            /// takes by value. Buffers of crate `runtime` call it.
            ///
            /// # Safety
            /// All elements that the extents and strides span lie in one live, initialized
            /// allocation of that device. This holds while the view, or a view made from it, is
            /// passed to a launch. No other code writes them; for a `ViewMut`, no other code reads
            /// them either. On the host the view is dereferenced only if `device` is 0, the host,
            /// and `address` comes from a pointer valid for these accesses.
            ///
            /// # Panics
            /// If the number of elements overflows, or if the last stride must be 1 and is not.
            pub unsafe fn on_device(device: u64, address: u64, shape: [usize; R], strides: [usize; R]) -> Self {
                let first = std::ptr::with_exposed_provenance_mut(address as usize);
                Self { first: NonNull::new(first), layout: StridedLayout::$layout(shape, strides), device }
            }
        }

        impl<T: Element, const R: usize> ValueArgument for $View<T, R> {
            fn arguments(self, list: &mut Vec<Argument<'_>>) {
                let wide = |numbers: [usize; R]| numbers.iter().map(|n| *n as u64).collect();
                let shape = launcher::ArgumentShape::$Shape {
                    extents: wide(self.layout.shape()),
                    strides: wide(self.layout.stride()),
                };
                let address = self.first.map_or(0, |first| first.as_ptr().expose_provenance() as u64);
                // SAFETY: the caller that made the view guaranteed that the memory is valid.
                list.push(Argument::Memory(unsafe { ArgumentMemory::new(T::TYPE, self.device, address, shape, $mutable) }));
            }
        }

        impl<T: Element, const R: usize> $View<T, R> {
            /// Returns the extent of dimension `d`, a constant below `R`. In PTX: a parameter of
            /// the entry, or a subtraction from one after [`offset`](Self::offset).
            ///
            /// # Panics
            /// On the host, if `d` is not below `R`. In a kernel that is a compile error.
            #[must_use]
            #[track_caller]
            pub fn dim(self, d: usize) -> usize {
                assert!(d < R, "dimension {d} of a view of rank {R}");
                self.layout.shape()[d]
            }

            /// Returns the distance in elements between neighboring indices of dimension `d`, a
            /// constant below `R`.
            ///
            /// # Panics
            /// On the host, if `d` is not below `R`. In a kernel that is a compile error.
            #[must_use]
            #[track_caller]
            pub fn stride(self, d: usize) -> usize {
                assert!(d < R, "dimension {d} of a view of rank {R}");
                self.layout.stride()[d]
            }

            /// Returns the array from `at` on: the pointer moves, and the extents shrink, to 0 past
            /// the end. Nothing is loaded. In PTX: `mad.wide.u32` by the strides, and a saturating
            /// `sub` for each extent that is used.
            #[must_use]
            pub fn offset(self, at: impl Position<R>) -> Self {
                let (elements, layout) = self.layout.offset(at.indices());
                // Wrapping: the pointer may leave the memory, but then an extent is 0 and no
                // element is accessed.
                let moved = self.first.map(|p| p.as_ptr().wrapping_add(elements));
                Self { first: moved.and_then(NonNull::new), layout, ..self }
            }

            /// Returns the element at `at` if it lies inside. One load, predicated by comparisons
            /// with the extents: threads outside load nothing.
            #[must_use]
            pub fn get(self, at: impl Position<R>) -> Option<T> {
                let at = at.indices();
                let inside = at.iter().zip(self.layout.shape()).all(|(i, extent)| *i < extent);
                // SAFETY: as in `index`: the element lies within the extents.
                inside.then(|| unsafe { *self.element(at).as_ref() })
            }

            /// Marks the data as streamed, for elements that are read once: evict-first. In PTX:
            /// `ld.global.cs`. A hint.
            pub fn streaming(self) -> Self {
                self
            }

            /// Makes loads bypass the L1 cache and the read-only path: they are cached in L2 alone,
            /// and L1 keeps the kernel's other data. In PTX: `ld.global.cg`. A hint, like
            /// [`streaming`](Self::streaming).
            pub fn bypass_l1(self) -> Self {
                self
            }

            /// Returns whether the view has no elements.
            #[must_use]
            pub fn is_empty(self) -> bool {
                self.layout.shape().contains(&0)
            }

            #[track_caller]
            fn element(&self, at: [usize; R]) -> NonNull<T> {
                let Some(first) = self.first else {
                    panic!("out of bounds: element {} of a view that `at` took past the end", IndexShape(&at));
                };
                let Some(element) = self.layout.element(at) else {
                    panic!("out of bounds: element {} of a view of {}", IndexShape(&at), IndexShape(&self.layout.shape()));
                };
                // SAFETY: `element` lies within the extents, so within the view's memory: `offset`
                // and `at` move the pointer by the distance that they subtract from the extents.
                unsafe { first.add(element) }
            }
        }

        impl<T: Element> $View<T, 1> {
            /// Returns the number of elements.
            #[must_use]
            pub fn len(self) -> usize {
                self.layout.shape()[0]
            }
        }

        impl<T: Element> $View<T, 2> {
            /// Returns the extent of dimension 0.
            #[must_use]
            pub fn rows(self) -> usize {
                self.layout.shape()[0]
            }

            /// Returns the extent of dimension 1.
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
                // SAFETY: the element is inside the view's memory, which is initialized, alive and
                // free of races as the caller of `host` guarantees.
                unsafe { self.element(at.indices()).as_ref() }
            }
        }
    };
    ($View:ident $rank:literal $less:literal) => {
        impl<T: Element> $View<T, $rank> {
            /// Returns the array at index `i` of the first dimension, one rank lower. Nothing is
            /// loaded or checked; the result is empty if `i` is out of bounds. In PTX:
            /// `mad.wide.u32` by the first stride.
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

/// Methods of views whose last stride is 1.
macro_rules! contiguous {
    ($View:ident $Strided:ident) => {
        impl<T: Element, const R: usize> $View<T, R> {
            /// Returns whether the address of the first element and all strides except the last are
            /// multiples of `n` elements, so that `n` elements can move at once. For
            /// `#[requires(…)]`: the launch evaluates it.
            #[must_use]
            pub fn aligned(self, n: usize) -> bool {
                let address = self.first.map_or(0, |p| p.addr().get());
                address.is_multiple_of(n * size_of::<T>())
                    && self.layout.stride()[..R - 1].iter().all(|s| s.is_multiple_of(n))
            }

            /// Returns a view without elements.
            pub(crate) fn empty() -> Self {
                Self { first: None, layout: StridedLayout::packed([0; R]), device: HOST }
            }

            /// Returns the same array with a stride in every dimension. Nothing is loaded.
            #[must_use]
            pub fn strided(self) -> $Strided<T, R> {
                $Strided { first: self.first, layout: self.layout, device: self.device }
            }
        }

        /// Accesses to several elements from `at` on in the last dimension. `N` is 1, 2, 4, 8 or
        /// 16, inferred from the array or given by turbofish.
        impl<T: Element, const R: usize> $View<T, R> {
            /// Loads `N` elements. All must be inside. The first must be aligned to the size of the
            /// `N` elements, at most 16 bytes: state it by `requires(x.aligned(n))`, and step by
            /// such multiples. In PTX: accesses of up to 16 bytes, `ld.global.v4` and `.v2`.
            #[must_use]
            #[track_caller]
            pub fn load<const N: usize>(self, at: impl Position<R>) -> [T; N] {
                let first = self.elements(at.indices(), N);
                wide::aligned(first.as_ptr(), N);
                // SAFETY: `elements` returns elements inside the view's memory, which is
                // initialized, alive and free of races as the caller of `host` guarantees.
                std::array::from_fn(|i| unsafe { first.add(i).read() })
            }

            /// Loads `N` elements, with `other` for those outside: beyond the last extent, or all
            /// if another index is out of its extent. Any alignment is accepted. In PTX: one
            /// predicated load per element.
            #[must_use]
            #[track_caller]
            pub fn load_or<const N: usize>(self, at: impl Position<R>, other: T) -> [T; N] {
                wide::elements_per_access::<T>(N);
                std::array::from_fn(|i| {
                    let element = self.layout.element(wide::advance_last(at.indices(), i)).zip(self.first);
                    // SAFETY: the element lies within the extents; otherwise as in `load`.
                    element.map_or(other, |(n, first)| unsafe { first.add(n).read() })
                })
            }

            /// Returns a pointer to the first of `n` elements after checking that all are inside.
            #[track_caller]
            fn elements(&self, at: [usize; R], n: usize) -> NonNull<T> {
                self.element(wide::advance_last(at, n - 1));
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
        // SAFETY: the element is inside the view's memory. The caller of `ViewMut::host` guarantees
        // that no other reference to the element is in use.
        unsafe { self.element(at.indices()).as_mut() }
    }
}

/// Stores of several elements from `at` on in the last dimension. `N` is 1, 2, 4, 8 or 16, the
/// array's length.
impl<T: Element, const R: usize> ViewMut<T, R> {
    /// Writes `N` elements, inside and aligned as for [`load`](Self::load). In PTX: accesses of up
    /// to 16 bytes, `st.global.v4` and `.v2`.
    #[track_caller]
    pub fn store<const N: usize>(self, at: impl Position<R>, values: [T; N]) {
        let first = self.elements(at.indices(), N);
        wide::aligned(first.as_ptr(), N);
        for (i, value) in values.into_iter().enumerate() {
            // SAFETY: `elements` returns elements inside the view's memory. The caller of
            // `ViewMut::host` guarantees that no reference to them is in use.
            unsafe { first.add(i).write(value) }
        }
    }

    /// Writes those of the `N` elements that lie inside and drops the others. Any alignment is
    /// accepted. In PTX: one predicated store per element.
    #[track_caller]
    pub fn store_in<const N: usize>(self, at: impl Position<R>, values: [T; N]) {
        wide::elements_per_access::<T>(N);
        for (i, value) in values.into_iter().enumerate() {
            if let Some((n, first)) = self.layout.element(wide::advance_last(at.indices(), i)).zip(self.first) {
                // SAFETY: the element lies within the extents; otherwise as in `store`.
                unsafe { first.add(n).write(value) }
            }
        }
    }
}

atomics!(ViewMut, ElementSpace::Global);

macro_rules! device_copy {
    ($($View:ident)*) => {$(
        impl<T: Element, const R: usize> DeviceCopy for $View<T, R> {
            fn undefined() -> Self { $View::empty() }
            fn zero() -> Self { $View::empty() }
        }
    )*};
}
device_copy!(View ViewMut);

impl<T: Element, const R: usize> View<T, R> {
    /// Returns a view of host memory, row-major without gaps, for a kernel under
    /// [`host::run`](crate::host::run).
    ///
    /// # Safety
    /// While this view, or a view made from it, is used, `elements` must stay alive and unwritten.
    ///
    /// # Panics
    /// If `elements` is shorter than `shape` requires.
    #[track_caller]
    pub unsafe fn host(elements: &[T], shape: [usize; R]) -> Self {
        let layout = host_layout(elements.len(), shape);
        View { first: Some(NonNull::from(elements).cast()), layout, device: HOST }
    }
}

impl<T: Element, const R: usize> ViewMut<T, R> {
    /// Returns a view of host memory, row-major without gaps, for a kernel under
    /// [`host::run`](crate::host::run).
    ///
    /// # Safety
    /// While this view, or a view made from it, is used, `elements` must stay alive and be accessed
    /// through such views only. Accesses of two threads to one element, at least one of them a
    /// write, need a barrier between them. A reference to an element may not be in use during
    /// another access to that element. A kernel without races meets these conditions.
    ///
    /// # Panics
    /// If `elements` is shorter than `shape` requires.
    #[track_caller]
    pub unsafe fn host(elements: &mut [T], shape: [usize; R]) -> Self {
        let layout = host_layout(elements.len(), shape);
        ViewMut { first: Some(NonNull::from(elements).cast()), layout, device: HOST }
    }
}

#[track_caller]
fn host_layout<const R: usize>(elements: usize, shape: [usize; R]) -> StridedLayout<R> {
    let layout = StridedLayout::packed(shape);
    assert!(layout.span() <= elements, "a view of {} over {elements} elements", IndexShape(&shape));
    layout
}
