//! Arrays in shared memory: [`Shared`].

use crate::atomic::{Atomic, AtomicInteger, atomics};
use crate::block;
use crate::element::{DeviceCopy, Element, ScalarElement};
use crate::host::context::context;
use crate::layout::{IndexShape, Position, StridedLayout};
use crate::pending::Pending;
use crate::view::CopySource;
use crate::wide::{self, ElementSpace};
use std::ops::{Index, IndexMut};
use std::ptr::NonNull;

/// A handle to an array of rank `R` (1 to 5) in the block's shared memory.
///
/// All threads of the block hold the same array. The handle is `Copy`: device functions take it by
/// value, and Rust's borrow rules do not govern accesses to elements. Accesses of two threads to
/// one element, at least one of them a write, need a [`block::sync`] between them; the oracle
/// reports a race otherwise. Contents are undefined until written.
///
/// The extents must be constant in every instance of the kernel. Each call that makes an array is
/// one array, laid out at compile time. `s[(row, col)]` reads with `ld.shared` and writes with
/// `st.shared`; declare `let mut s` to assign to elements.
///
/// ```
/// # use kernel_dsl::prelude::*;
/// fn reverse(mut v: ViewMut<f32, 1>) {
///     let mut s = Shared::<f32, 1>::new([64]);
///     s[thread::x()] = v[thread::x()];
///     block::sync();
///     v[thread::x()] = s[63 - thread::x()];
/// }
/// # let mut x: Vec<f32> = (0..64).map(|i| i as f32).collect();
/// # // SAFETY: no element is touched by two threads without a sync between, and the vector outlives the run.
/// # unsafe {
/// #     let v = ViewMut::host(&mut x, [64]);
/// #     kernel_dsl::host::run([1, 1, 1], [64, 1, 1], || reverse(v));
/// # }
/// # assert_eq!(x[0], 63.0);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Shared<T: DeviceCopy, const R: usize> {
    /// The first element. `None` for a handle that `at` made past the end.
    first: Option<NonNull<T>>,
    layout: StridedLayout<R>,
}

impl<T: DeviceCopy, const R: usize> Shared<T, R> {
    /// Makes an array with contiguous rows.
    #[must_use]
    #[track_caller]
    pub fn new(shape: [usize; R]) -> Self {
        Self::with_layout("Shared::new", StridedLayout::packed(shape))
    }

    /// Makes an array whose rows lie at the pitch with the fewest bank conflicts among the accesses
    /// that the compiler sees. The choice is deterministic, and printed in the PTX and by
    /// `kernels report`. Values do not depend on it.
    #[must_use]
    #[track_caller]
    pub fn padded(shape: [usize; R]) -> Self {
        Self::with_layout("Shared::padded", StridedLayout::packed(shape))
    }

    /// Makes an array whose rows start `pitch` elements apart; `pitch` is at least the length of a
    /// row.
    #[must_use]
    #[track_caller]
    pub fn with_pitch(shape: [usize; R], pitch: usize) -> Self {
        Self::with_layout("Shared::with_pitch", StridedLayout::with_pitch(shape, pitch))
    }

    /// Makes an array whose rows are permuted in pieces of 16 bytes, so that eight lanes with
    /// 16-byte accesses touch each bank once. This holds for eight pieces of one row, and for one
    /// column of eight rows, and needs no padding. If a row has a multiple of eight pieces, piece p
    /// of row r is stored at p XOR r mod 8; see [`Swizzle`](kernel_dsl_compiler::ir::Swizzle) for
    /// other lengths. Rows must be a multiple of 16 bytes. In PTX: one exclusive or per access.
    /// Values do not depend on it.
    #[track_caller]
    pub fn swizzled(shape: [usize; R]) -> Self {
        Self::with_layout("Shared::swizzled", StridedLayout::packed(shape))
    }

    /// Makes an array whose shape the launch evaluates. The extents are computed from the kernel's
    /// parameters and constants alone. The launch computes them too, and rejects an array larger
    /// than a block's memory. Make such an array once, outside loops. An array made in a branch
    /// also occupies its bytes from the start of the kernel. [`over`](Self::over) cannot reuse its
    /// bytes; [`cast`](Self::cast) can. In PTX: `.extern .shared`, with extents in registers.
    #[track_caller]
    pub fn dynamic(shape: [usize; R]) -> Self {
        Self::with_layout("Shared::dynamic", StridedLayout::packed(shape))
    }

    /// Makes an array of this shape on the bytes of `other`, from its first element on, for use
    /// after the last access to `other`. The contents are undefined until written, and so are those
    /// of `other` afterwards. A [`block::sync`] belongs between the uses of one and those of the
    /// other. In PTX: no code.
    ///
    /// The new array must fit into `other`; otherwise the kernel does not compile. If `other` is
    /// one of several planes, as made by [`at`](Self::at), the planes must lie a multiple of 16
    /// bytes apart.
    ///
    /// # Panics
    /// On the host, if the new array does not fit.
    #[track_caller]
    pub fn over<U: Element, const Q: usize>(other: Shared<U, Q>, shape: [usize; R]) -> Self
    where
        T: Element,
    {
        let layout = StridedLayout::packed(shape);
        let (needed, there) = (layout.span() * size_of::<T>(), other.layout.span() * size_of::<U>());
        assert!(needed <= there, "an array of {needed} bytes does not fit over one of {there} bytes");
        Shared { first: other.first.map(cast_elements), layout }
    }

    /// Returns the same bytes as elements of type `U`. The bytes of a row must be a multiple of the
    /// size of `U`. In PTX: no code.
    ///
    /// # Panics
    /// On the host, if the bytes of a row are not such a multiple. In a kernel that is a compile
    /// error.
    #[track_caller]
    pub fn cast<U: Element>(self) -> Shared<U, R>
    where
        T: Element,
    {
        let (from, to) = (size_of::<T>(), size_of::<U>());
        let Some(layout) = self.layout.cast(from, to) else {
            panic!("rows of {from}-byte elements are not a multiple of {to} bytes");
        };
        Shared { first: self.first.map(cast_elements), layout }
    }

    #[track_caller]
    fn with_layout(constructor: &'static str, layout: StridedLayout<R>) -> Self {
        let first = context(constructor).shared_array(layout.shape().into(), layout.span());
        Shared { first: Some(first), layout }
    }

    /// Returns the extent of dimension `d`, a constant below `R`.
    ///
    /// # Panics
    /// On the host, if `d` is not below `R`. In a kernel that is a compile error.
    #[must_use]
    #[track_caller]
    pub fn dim(self, d: usize) -> usize {
        assert!(d < R, "dimension {d} of a shared array of rank {R}");
        self.layout.shape()[d]
    }

    /// Copies from `source`: each element from the same index of the view, and zero where the view
    /// has none.
    ///
    /// Each thread of the block copies a share of the elements, so all threads must call the method
    /// together. The copy is not a barrier. A [`block::sync`] belongs between the copy and a use of
    /// elements that other threads copied, and between earlier uses and the copy. Thread t copies
    /// pieces t, t + threads, t + 2·threads … in row-major order, so a warp reads consecutive
    /// pieces of a row.
    ///
    /// A piece is the elements that move at once. A piece has up to 16 bytes if alignment is
    /// proven. `#[requires(x.aligned(4))]` states the alignment of the parameter `x`, and offsets
    /// by a multiple of 4 columns preserve it. Each row of the array must also consist of whole
    /// pieces, without padding chosen by the compiler. Otherwise a piece is one element.
    ///
    /// In PTX: a predicated `ld.global.nc` and a `st.shared` per piece, of `.v4`, `.v2` or one. A
    /// piece that the view's edge cuts is copied element by element, unless a condition such as
    /// `x.cols() % 4 == 0` or `x.cols() == 64` rules this out. Elements smaller than a word are
    /// copied as `.u32` words if the piece is at least a word.
    pub fn copy_from(self, source: impl CopySource<T, R>)
    where
        T: Element,
    {
        let shape = self.layout.shape();
        let elements = shape.iter().product();
        for element in (crate::thread::index()..elements).step_by(block::threads()) {
            let at = unravel(element, shape);
            let inside = (0..R).all(|d| at[d] < source.extents()[d]);
            let value = if inside { source.read(at) } else { T::zero() };
            // SAFETY: `element` returns an address in the block's memory. The caller of `host::run`
            // guarantees that no other thread uses the element meanwhile.
            unsafe { self.element(at).write(value) }
        }
    }

    /// Issues a copy from `source` as [`copy_from`](Self::copy_from) does, and returns the token to
    /// wait for.
    ///
    /// All threads of the block call the method together. The elements are undefined until the
    /// wait; for other threads, until a [`block::sync`] after the wait.
    ///
    /// From sm_80 on the copy is `cp.async` in a separate group, which bypasses registers. Accesses
    /// have the widths of [`copy_from`](Self::copy_from), at least 4 bytes. On older targets, and
    /// for smaller elements without word alignment, the copy is a predicated `ld.global.nc` here
    /// and `st.shared` at the [`wait`](Pending::wait).
    pub fn copy_async(self, source: impl CopySource<T, R>) -> Pending
    where
        T: Element,
    {
        self.copy_async_map(source, |x| x)
    }

    /// Issues a copy from `source` like [`copy_async`](Self::copy_async), as part of the group that
    /// the next [`pipeline::commit`](crate::pipeline::commit) closes. In PTX: `cp.async`, from
    /// sm_80 on, for elements that move 4, 8 or 16 bytes at once.
    #[track_caller]
    pub fn cp_async(self, source: impl CopySource<T, R>)
    where
        T: Element,
    {
        let coming = self.copy_async(source);
        crate::pipeline::begin(|| coming.wait());
    }

    /// Issues a copy like [`copy_async`](Self::copy_async) that applies `map` to each element, and
    /// to the zeros beyond the edge. The data passes through registers on every target. A `map`
    /// without captures runs at the wait. Until then the loaded elements are held in registers,
    /// packed into words: two 16-bit floats to a register. Any other `map` runs at this call.
    ///
    /// The width is that of [`copy_from`](Self::copy_from), at most 16 bytes of either type: four
    /// elements from `f16` to `f32`.
    pub fn copy_async_map<U: Element>(self, source: impl CopySource<U, R>, map: impl Fn(U) -> T) -> Pending
    where
        T: Element,
    {
        let shape = self.layout.shape();
        let elements: usize = shape.iter().product();
        let mut coming = Vec::new();
        for element in (crate::thread::index()..elements).step_by(block::threads()) {
            let at = unravel(element, shape);
            let inside = (0..R).all(|d| at[d] < source.extents()[d]);
            coming.push((at, map(if inside { source.read(at) } else { U::zero() })));
            // SAFETY: as in `copy_from`.
            unsafe { self.element(at).write(T::undefined()) }
        }
        Pending::by(move || {
            for (at, value) in coming {
                // SAFETY: as in `copy_from`.
                unsafe { self.element(at).write(value) }
            }
        })
    }

    /// Stores `value` to all elements. All threads of the block call the method together, and each
    /// stores a share, as in [`copy_from`](Self::copy_from). The call is not a barrier. In PTX: one
    /// `st.shared` per element.
    #[track_caller]
    pub fn fill(self, value: T) {
        let shape = self.layout.shape();
        let elements = shape.iter().product();
        for element in (crate::thread::index()..elements).step_by(block::threads()) {
            // SAFETY: as in `copy_from`.
            unsafe { self.element(unravel(element, shape)).write(value) }
        }
    }

    /// Loads `N` elements from `at` on in the last dimension: 1, 2, 4, 8 or 16, inferred from the
    /// array or given by turbofish. All must be inside, and the first must be aligned to the size
    /// of the `N` elements, at most 16 bytes. In PTX: accesses of up to 16 bytes, `ld.shared.v4`
    /// and `.v2`.
    ///
    /// Arrays start at such multiples. If the kernel's own pitch breaks the alignment of rows, the
    /// kernel does not compile; [`padded`](Self::padded) finds a pitch that keeps it.
    #[must_use]
    #[track_caller]
    pub fn load<const N: usize>(self, at: impl Position<R>) -> [T; N] {
        let first = self.elements(at.indices(), N);
        // SAFETY: `elements` returns elements of an initialized allocation that lives until the
        // block ends. The caller of `host::run` guarantees that no other thread writes them
        // meanwhile.
        std::array::from_fn(|i| unsafe { first.add(i).read() })
    }

    /// Writes `N` elements, inside and aligned as for [`load`](Self::load). In PTX: accesses of up
    /// to 16 bytes, `st.shared.v4` and `.v2`.
    #[track_caller]
    pub fn store<const N: usize>(self, at: impl Position<R>, values: [T; N]) {
        let first = self.elements(at.indices(), N);
        for (i, value) in values.into_iter().enumerate() {
            // SAFETY: as in `load`; the caller of `host::run` also guarantees that no reference to
            // them is in use.
            unsafe { first.add(i).write(value) }
        }
    }

    /// Returns the element at `at` if it lies inside: one load, predicated by comparisons with the
    /// extents.
    #[track_caller]
    pub fn get(self, at: impl Position<R>) -> Option<T> {
        let at = at.indices();
        let inside = at.iter().zip(self.layout.shape()).all(|(i, extent)| *i < extent);
        // SAFETY: as in `load`; the element is inside.
        inside.then(|| unsafe { self.element(at).read() })
    }

    /// Loads `N` elements from `at` on in the last dimension, with `other` for those outside:
    /// beyond the last extent, or all if another index is out of its extent. Any alignment is
    /// accepted. In PTX: one predicated load per element.
    #[track_caller]
    pub fn load_or<const N: usize>(self, at: impl Position<R>, other: T) -> [T; N] {
        wide::elements_per_access::<T>(N);
        let at = at.indices();
        std::array::from_fn(|i| self.get(wide::advance_last(at, i)).unwrap_or(other))
    }

    /// Writes those of the `N` elements that lie inside. Any alignment is accepted. In PTX: one
    /// predicated store per element.
    #[track_caller]
    pub fn store_in<const N: usize>(self, at: impl Position<R>, values: [T; N]) {
        wide::elements_per_access::<T>(N);
        let at = at.indices();
        for (i, value) in values.into_iter().enumerate() {
            let at = wide::advance_last(at, i);
            if at.iter().zip(self.layout.shape()).all(|(i, extent)| *i < extent) {
                // SAFETY: as in `store`; the element is inside.
                unsafe { self.element(at).write(value) }
            }
        }
    }

    /// Returns a pointer to the first of `n` elements after checking bounds and alignment. The
    /// check uses the index, because a padded array has another pitch on the host.
    #[track_caller]
    fn elements(&self, at: [usize; R], n: usize) -> NonNull<T> {
        let (last, at_once) = (at[R - 1], wide::elements_per_access::<T>(n));
        assert!(
            last.is_multiple_of(at_once),
            "misaligned: element {last} of a row is not a multiple of {at_once} elements"
        );
        self.element(wide::advance_last(at, n - 1));
        self.element(at)
    }

    #[track_caller]
    fn element(&self, at: [usize; R]) -> NonNull<T> {
        let Some(first) = self.first else {
            panic!("out of bounds: element {} of a shared array that `at` took past the end", IndexShape(&at));
        };
        let Some(element) = self.layout.element(at) else {
            panic!(
                "out of bounds: element {} of a shared array of {}",
                IndexShape(&at),
                IndexShape(&self.layout.shape())
            );
        };
        // SAFETY: `element` lies within the extents, so below the number of elements that the block
        // allocated; `at` moves the pointer by the distance that it subtracts from the extents.
        unsafe { first.add(element) }
    }
}

impl<T: DeviceCopy> Shared<T, 1> {
    /// Returns the number of elements.
    #[allow(clippy::len_without_is_empty, reason = "a shared array needs at least one element")]
    pub fn len(self) -> usize {
        self.layout.shape()[0]
    }
}

impl<T: DeviceCopy> Shared<T, 2> {
    /// Returns the extent of the first dimension.
    pub fn rows(self) -> usize {
        self.layout.shape()[0]
    }

    /// Returns the extent of the second dimension.
    pub fn cols(self) -> usize {
        self.layout.shape()[1]
    }
}

atomics!(Shared, ElementSpace::Shared);

/// Casts the address to elements of another type. Arrays start at multiples of the largest
/// alignment, and the compiler accepts only aligned offsets from there.
#[track_caller]
fn cast_elements<T: Element, U: Element>(first: NonNull<T>) -> NonNull<U> {
    let first = first.cast::<U>();
    assert!(first.is_aligned(), "misaligned: elements of {} bytes over an array of other elements", size_of::<U>());
    first
}

/// Returns the indices of an element counted in row-major order.
fn unravel<const R: usize>(mut element: usize, shape: [usize; R]) -> [usize; R] {
    let mut at = [0; R];
    for d in (0..R).rev() {
        at[d] = element % shape[d];
        element /= shape[d];
    }
    at
}

macro_rules! at {
    ($($rank:literal $less:literal)*) => {$(
        impl<T: DeviceCopy> Shared<T, $rank> {
            /// Returns the array at index `i` of the first dimension, one rank lower. Nothing is
            /// loaded or checked; an access through the result is out of bounds if `i` was. In PTX:
            /// a multiplication by the first stride, folded if `i` is constant.
            #[must_use]
            pub fn at(self, i: usize) -> Shared<T, $less> {
                let (element, layout) = self.layout.plane(i);
                // Wrapping, because a plane without elements may start outside the array's memory.
                let first = element.zip(self.first).and_then(|(n, p)| NonNull::new(p.as_ptr().wrapping_add(n)));
                Shared { first, layout }
            }
        }
    )*};
}
at!(2 1  3 2  4 3  5 4);

impl<T: DeviceCopy, const R: usize, P: Position<R>> Index<P> for Shared<T, R> {
    type Output = T;

    #[track_caller]
    fn index(&self, at: P) -> &T {
        // SAFETY: the element is inside an initialized allocation that lives until the block ends,
        // and no handle is kept longer. The caller of `host::run` guarantees this, and that no
        // other thread writes the element meanwhile.
        unsafe { self.element(at.indices()).as_ref() }
    }
}

impl<T: DeviceCopy, const R: usize, P: Position<R>> IndexMut<P> for Shared<T, R> {
    #[track_caller]
    fn index_mut(&mut self, at: P) -> &mut T {
        // SAFETY: as in `index`; the caller of `host::run` also guarantees that no other reference
        // to the element is in use.
        unsafe { self.element(at.indices()).as_mut() }
    }
}
