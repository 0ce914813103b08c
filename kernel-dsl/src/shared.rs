//! Arrays in shared memory: [`Shared`].

use crate::atomic::{Atomic, AtomicInteger, atomics};
use crate::block;
use crate::element::{DeviceCopy, Element};
use crate::host::context::context;
use crate::layout::{Layout, Position, Shape};
use crate::pending::Pending;
use crate::view::Source;
use crate::wide::{self, Space};
use std::ops::{Index, IndexMut};
use std::ptr::NonNull;

/// A handle to an array of rank `R` (1 to 5) in the block's shared memory.
///
/// All threads of the block hold the same array. The handle is `Copy`: it is handed to device functions by value, and
/// borrows say nothing about who may touch an element when. Two threads may not touch one element, one of them
/// writing, without a [`block::sync`] between; the oracle reports it. Contents are undefined until written.
///
/// The extents are values that must be constant in every instance of the kernel; each call that makes an array is one
/// array, laid out at compile time. `s[(row, col)]` reads by `ld.shared` and writes by `st.shared`; declare `let mut s`
/// to assign to elements.
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
    /// The first element. `None`: made by `at` past the end, so that it has none.
    first: Option<NonNull<T>>,
    layout: Layout<R>,
}

impl<T: DeviceCopy, const R: usize> Shared<T, R> {
    /// An array whose rows lie one after another.
    #[must_use]
    #[track_caller]
    pub fn new(shape: [usize; R]) -> Self {
        Self::laid_out("Shared::new", Layout::packed(shape))
    }

    /// An array whose rows lie apart by the pitch with the fewest bank conflicts among the accesses that the compiler
    /// sees. The choice is deterministic, and printed in the PTX and in `kernels report`. Values do not depend on it.
    #[must_use]
    #[track_caller]
    pub fn padded(shape: [usize; R]) -> Self {
        Self::laid_out("Shared::padded", Layout::packed(shape))
    }

    /// An array whose rows start `pitch` elements apart; at least as many as a row has.
    #[must_use]
    #[track_caller]
    pub fn with_pitch(shape: [usize; R], pitch: usize) -> Self {
        Self::laid_out("Shared::with_pitch", Layout::with_pitch(shape, pitch))
    }

    /// An array whose rows' 16-byte pieces lie in an order of each row's own, so that eight lanes that access 16 bytes each
    /// in one row, or at one column of eight rows, ask each bank once, without room for a pad: piece p of row r is
    /// found at p XOR r mod 8, where the pieces of a row are a multiple of eight; see
    /// [`Swizzle`](kernel_dsl_compiler::ir::Swizzle) for others. Rows must be a multiple of 16 bytes. In PTX an exclusive or
    /// with a part of the row an access. Values do not depend on it.
    #[track_caller]
    pub fn swizzled(shape: [usize; R]) -> Self {
        Self::laid_out("Shared::swizzled", Layout::packed(shape))
    }

    /// An array whose shape the launch evaluates: extents are computed from the kernel's parameters and constants alone, and the
    /// launch, which computes the same, refuses one that a block has no room for. Such an array is made once, in no loop; in
    /// a branch, too, it has its bytes from the beginning. Nothing is laid [`over`](Self::over) it; [`cast`](Self::cast) is what gives its bytes another use.
    /// In PTX `.extern .shared`, and extents in registers.
    #[track_caller]
    pub fn dynamic(shape: [usize; R]) -> Self {
        Self::laid_out("Shared::dynamic", Layout::packed(shape))
    }

    /// An array of this shape on the bytes of `other`, from its first element on: where `other` is done with, and there is no room
    /// for both. What it holds is undefined until it is written, and so is `other` afterwards; a [`block::sync`] belongs between
    /// the uses of the one and those of the other. In PTX nothing.
    ///
    /// `other` must have room for it: it does not compile otherwise. Where `other` is one of several, as by
    /// [`at`](Self::at), they must lie a multiple of 16 bytes apart.
    #[track_caller]
    pub fn over<U: Element, const Q: usize>(other: Shared<U, Q>, shape: [usize; R]) -> Self
    where
        T: Element,
    {
        let layout = Layout::packed(shape);
        let (needed, there) = (layout.span() * size_of::<T>(), other.layout.span() * size_of::<U>());
        assert!(needed <= there, "an array of {needed} bytes over one of {there}");
        Shared { first: other.first.map(pun), layout }
    }

    /// The same array as elements of type `U`: the same bytes, so that a row has as many as fit, which must be a whole number. In PTX nothing.
    #[track_caller]
    pub fn cast<U: Element>(self) -> Shared<U, R>
    where
        T: Element,
    {
        let (from, to) = (size_of::<T>(), size_of::<U>());
        let Some(layout) = self.layout.cast(from, to) else {
            panic!("rows of elements of {from} bytes are no whole number of elements of {to}");
        };
        Shared { first: self.first.map(pun), layout }
    }

    #[track_caller]
    fn laid_out(constructor: &'static str, layout: Layout<R>) -> Self {
        let first = context(constructor).shared_array(layout.shape().into(), layout.span());
        Shared { first: Some(first), layout }
    }

    /// Elements in dimension `d`: a constant.
    #[must_use]
    #[track_caller]
    pub fn dim(self, d: usize) -> usize {
        assert!(d < R, "dimension {d} of a shared array of rank {R}");
        self.layout.shape()[d]
    }

    /// Copies from `source`: the element at each index of this array from the same index of the view, and zero where
    /// the view has none.
    ///
    /// The whole block copies, each thread a share of the elements, so all threads must call it together. It is no
    /// barrier: a [`block::sync`] belongs between the copy and a use of what other threads copied, and between
    /// earlier uses and the copy. Thread t takes pieces t, t + threads, t + 2·threads … in row-major order, so a
    /// warp reads consecutive pieces of a row.
    ///
    /// A piece is as many elements as move at once: up to 16 bytes, where it is sure that the view's lie so:
    /// `#[requires(x.aligned(4))]` says so of the parameter `x`, a view that moves by a multiple of 4 columns keeps
    /// it, and the array has rows of whole pieces, without a pad that the compiler is to find; else one element. In PTX a guarded
    /// `ld.global.nc` and a `st.shared` a piece, of `.v4`, `.v2` or one; a piece that the view's edge cuts goes element by
    /// element, unless a condition such as `x.cols() % 4 == 0`, or `x.cols() == 64`, says that none is cut. Elements smaller than a
    /// word go as `.u32` words where a piece makes up such.
    pub fn copy_from(self, source: impl Source<T, R>)
    where
        T: Element,
    {
        let shape = self.layout.shape();
        let elements = shape.iter().product();
        for element in (crate::thread::index()..elements).step_by(block::threads()) {
            let at = unravel(element, shape);
            let inside = (0..R).all(|d| at[d] < source.extents()[d]);
            let value = if inside { source.read(at) } else { T::zero() };
            // SAFETY: `element` gives a place in the block's memory; that no other thread uses it at this time is the
            // duty that `host::run` lays on its caller.
            unsafe { self.element(at).write(value) }
        }
    }

    /// Begins to copy from `source` as [`copy_from`](Self::copy_from) does, and gives the token that is to be waited for.
    ///
    /// All threads call it together. Until the wait, and for other threads a [`block::sync`] after it, the elements are undefined.
    ///
    /// From sm_80 on `cp.async`, a group of its own: past the registers, of as many bytes at once as
    /// [`copy_from`](Self::copy_from) moves, 4 at least. On older targets, and where elements of fewer bytes do not lie so that
    /// four move at once, guarded `ld.global.nc` here, and `st.shared` at the [`wait`](Pending::wait).
    pub fn copy_async(self, source: impl Source<T, R>) -> Pending
    where
        T: Element,
    {
        self.copy_async_map(source, |x| x)
    }

    /// Begins to copy from `source` as [`copy_async`](Self::copy_async) does, as part of the group that the next
    /// [`pipeline::commit`](crate::pipeline::commit) closes: `cp.async`, from sm_80 on, of elements that move 4, 8 or 16 bytes at
    /// once.
    #[track_caller]
    pub fn cp_async(self, source: impl Source<T, R>)
    where
        T: Element,
    {
        let coming = self.copy_async(source);
        crate::pipeline::begin(|| coming.wait());
    }

    /// The same as [`copy_async`](Self::copy_async) with `map` on the way, by registers on every target: of each element, and of zero
    /// beyond the edge. A `map` that sees nothing around it runs at the wait, where what was loaded has come, so that until
    /// then the view's elements are held, joined to words: two floats of 16 bits take one register. Any other runs here.
    ///
    /// As many elements move at once as [`copy_from`](Self::copy_from) would, but of neither type more than 16 bytes: four from
    /// `f16` to `f32`.
    pub fn copy_async_map<U: Element>(self, source: impl Source<U, R>, map: impl Fn(U) -> T) -> Pending
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

    /// Stores `value` to all elements. The whole block does it together, each thread its share, like
    /// [`copy_from`](Self::copy_from), and like it this is no barrier. In PTX a `st.shared` an element.
    #[track_caller]
    pub fn fill(self, value: T) {
        let shape = self.layout.shape();
        let elements = shape.iter().product();
        for element in (crate::thread::index()..elements).step_by(block::threads()) {
            // SAFETY: as in `copy_from`.
            unsafe { self.element(unravel(element, shape)).write(value) }
        }
    }

    /// The `N` elements from `at` on in the last dimension: 1, 2, 4, 8 or 16, as the array that is wanted says or by
    /// turbofish. All must be inside, and the first must lie at a multiple of their bytes, or of 16 bytes where they are
    /// more. In PTX accesses of up to 16 bytes, `ld.shared.v4` and `.v2`.
    ///
    /// Arrays begin at such multiples. Where rows would not, by the pitch that the kernel names, it does not compile;
    /// [`padded`](Self::padded) finds a pitch with which they do.
    #[must_use]
    #[track_caller]
    pub fn load<const N: usize>(self, at: impl Position<R>) -> [T; N] {
        let first = self.elements(at.indices(), N);
        // SAFETY: `elements` gives elements of an allocation that lives until the block has ended, all of it initialised;
        // that no other thread writes them at this time is the duty that `host::run` lays on its caller.
        std::array::from_fn(|i| unsafe { first.add(i).read() })
    }

    /// Writes `N` elements, inside and aligned as those of a [`load`](Self::load). In PTX accesses of up to 16 bytes,
    /// `st.shared.v4` and `.v2`.
    #[track_caller]
    pub fn store<const N: usize>(self, at: impl Position<R>, values: [T; N]) {
        let first = self.elements(at.indices(), N);
        for (i, value) in values.into_iter().enumerate() {
            // SAFETY: as in `load`; that no reference to them is in use is `host::run`'s caller's duty too.
            unsafe { first.add(i).write(value) }
        }
    }

    /// The element at `at`, if it lies inside: one load, guarded by comparisons with the extents.
    #[track_caller]
    pub fn get(self, at: impl Position<R>) -> Option<T> {
        let at = at.indices();
        let inside = at.iter().zip(self.layout.shape()).all(|(i, extent)| *i < extent);
        // SAFETY: as in `load`; the element is inside.
        inside.then(|| unsafe { self.element(at).read() })
    }

    /// The `N` elements from `at` on in the last dimension, and `other` for those that lie outside: beyond the last extent, or all
    /// where another index is out of its extent. At any alignment: in PTX a guarded load an element.
    #[track_caller]
    pub fn load_or<const N: usize>(self, at: impl Position<R>, other: T) -> [T; N] {
        wide::at_once::<T>(N);
        let at = at.indices();
        std::array::from_fn(|i| self.get(wide::on(at, i)).unwrap_or(other))
    }

    /// Writes those of `N` elements that lie inside, at any alignment: in PTX a guarded store an element.
    #[track_caller]
    pub fn store_in<const N: usize>(self, at: impl Position<R>, values: [T; N]) {
        wide::at_once::<T>(N);
        let at = at.indices();
        for (i, value) in values.into_iter().enumerate() {
            let at = wide::on(at, i);
            if at.iter().zip(self.layout.shape()).all(|(i, extent)| *i < extent) {
                // SAFETY: as in `store`; the element is inside.
                unsafe { self.element(at).write(value) }
            }
        }
    }

    /// The first of `n` elements that must be there, and aligned: by the index, since a padded array's pitch is another
    /// here.
    #[track_caller]
    fn elements(&self, at: [usize; R], n: usize) -> NonNull<T> {
        let (last, at_once) = (at[R - 1], wide::at_once::<T>(n));
        assert!(
            last.is_multiple_of(at_once),
            "misaligned: element {last} of a row is no multiple of {at_once} elements"
        );
        self.element(wide::on(at, n - 1));
        self.element(at)
    }

    #[track_caller]
    fn element(&self, at: [usize; R]) -> NonNull<T> {
        let Some(first) = self.first else {
            panic!("out of bounds: element {} of a shared array that `at` took past the end", Shape(&at));
        };
        let Some(element) = self.layout.element(at) else {
            panic!("out of bounds: element {} of a shared array of {}", Shape(&at), Shape(&self.layout.shape()));
        };
        // SAFETY: `element` lies within the extents, so below the number of elements that the block allocated; `at`
        // moves the pointer by what it takes from the extents.
        unsafe { first.add(element) }
    }
}

impl<T: DeviceCopy> Shared<T, 1> {
    /// Number of elements.
    #[allow(clippy::len_without_is_empty, reason = "an array without elements is of no use")]
    pub fn len(self) -> usize {
        self.layout.shape()[0]
    }
}

impl<T: DeviceCopy> Shared<T, 2> {
    /// Extent of the first dimension.
    pub fn rows(self) -> usize {
        self.layout.shape()[0]
    }

    /// Extent of the second dimension.
    pub fn cols(self) -> usize {
        self.layout.shape()[1]
    }
}

atomics!(Shared, Space::Shared);

/// The same address, of elements of another type. Arrays begin at multiples of the largest alignment there is, and what lies over another is
/// as far from there as the compiler takes.
#[track_caller]
fn pun<T: Element, U: Element>(first: NonNull<T>) -> NonNull<U> {
    let first = first.cast::<U>();
    assert!(first.is_aligned(), "misaligned: elements of {} bytes on the bytes of others", size_of::<U>());
    first
}

/// The indices of an element counted row by row.
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
            /// The array with its first index fixed at `i`, of one rank less. Nothing is loaded or checked; an access
            /// is out of bounds if `i` was. In PTX a multiplication by the first stride, a constant where `i` is.
            #[must_use]
            pub fn at(self, i: usize) -> Shared<T, $less> {
                let (element, layout) = self.layout.plane(i);
                // Wrapping: a plane without elements may start outside of the array's memory.
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
        // SAFETY: the element is inside an allocation that lives until the block has ended, past which no handle may be
        // kept; all of it is initialised when allocated; that no other thread writes the element at this time is, like
        // the former, the duty that `host::run` lays on its caller.
        unsafe { self.element(at.indices()).as_ref() }
    }
}

impl<T: DeviceCopy, const R: usize, P: Position<R>> IndexMut<P> for Shared<T, R> {
    #[track_caller]
    fn index_mut(&mut self, at: P) -> &mut T {
        // SAFETY: as in `index`; that no other reference to the element is in use is the duty that `host::run` lays on
        // its caller.
        unsafe { self.element(at.indices()).as_mut() }
    }
}
