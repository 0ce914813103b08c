//! What Rust's slices lack as kernel parameters.
//!
//! A kernel's `x: &[T]` is read by `ld.global.nc`; a `y: &mut [T]` is the launch's alone, read by `ld.global` and
//! written by `st.global`. Either becomes two parameters of the PTX entry, an address and a length.

use crate::launcher::Element;

/// Methods of `&[T]` and `&mut [T]` in a kernel beside Rust's own `len` and `is_empty`.
pub trait SliceExt: sealed::Sealed {
    /// Whether the first element's address is a multiple of `n` elements, so that `n` elements can move at once. For
    /// `#[requires(…)]`: the launch evaluates it.
    fn aligned(&self, n: usize) -> bool;
}

impl<T: Element> SliceExt for [T] {
    fn aligned(&self, n: usize) -> bool {
        self.as_ptr().addr().is_multiple_of(n * size_of::<T>())
    }
}

mod sealed {
    pub trait Sealed {}
    impl<T: super::Element> Sealed for [T] {}
}
