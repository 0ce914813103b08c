//! Methods that kernels need on slices beyond Rust's own.
//!
//! A kernel reads `x: &[T]` with `ld.global.nc`. A `y: &mut [T]`, which the launch owns
//! exclusively, is read with `ld.global` and written with `st.global`. Either becomes two
//! parameters of the PTX entry, an address and a length.

use crate::atomic::{Atomic, AtomicInteger, bitwise};
use crate::element::{Element, ScalarElement};
use crate::wide::{self, ElementSpace};
use std::mem::replace;

/// Methods of `&[T]` and `&mut [T]` in a kernel beyond Rust's `len` and `is_empty`. The
/// documentation is at the methods of [`View`](crate::View) and [`ViewMut`](crate::ViewMut) of rank
/// 1.
///
/// Under [`host::run`](crate::host::run) each thread has a copy of a `&mut [T]`, and elements that
/// several threads of a block change are rejected. A kernel with atomic operations runs under
/// `host::run` if it takes a `ViewMut`.
pub trait SliceExt: sealed::Sealed {
    /// The type of the elements: `T` of `&[T]`.
    type Element: Element;

    /// Returns whether the address of the first element is a multiple of `n` elements, so that `n`
    /// elements can move at once. For `#[requires(…)]`: the launch evaluates it.
    #[must_use]
    fn aligned(&self, n: usize) -> bool;

    /// Loads `N` elements from `at` on: [`View::load`](crate::View::load).
    #[must_use]
    fn load<const N: usize>(&self, at: usize) -> [Self::Element; N];

    /// Loads `N` elements, with `other` where there is no element:
    /// [`View::load_or`](crate::View::load_or).
    #[must_use]
    fn load_or<const N: usize>(&self, at: usize, other: Self::Element) -> [Self::Element; N];

    /// Writes the `N` elements from `at` on: [`ViewMut::store`](crate::ViewMut::store).
    fn store<const N: usize>(&mut self, at: usize, values: [Self::Element; N]);

    /// Stores those of the `N` elements that exist:
    /// [`ViewMut::store_in`](crate::ViewMut::store_in).
    fn store_in<const N: usize>(&mut self, at: usize, values: [Self::Element; N]);

    /// Adds atomically: [`ViewMut::fetch_add`](crate::ViewMut::fetch_add).
    fn fetch_add(&mut self, at: usize, value: Self::Element) -> Self::Element
    where
        Self::Element: Atomic;

    /// Subtracts atomically: [`ViewMut::fetch_sub`](crate::ViewMut::fetch_sub).
    fn fetch_sub(&mut self, at: usize, value: Self::Element) -> Self::Element
    where
        Self::Element: Atomic;

    /// Exchanges atomically: [`ViewMut::exchange`](crate::ViewMut::exchange).
    fn exchange(&mut self, at: usize, value: Self::Element) -> Self::Element
    where
        Self::Element: Atomic;

    /// Takes the minimum atomically: [`ViewMut::fetch_min`](crate::ViewMut::fetch_min).
    fn fetch_min(&mut self, at: usize, value: Self::Element) -> Self::Element
    where
        Self::Element: Atomic;

    /// Takes the maximum atomically: [`ViewMut::fetch_max`](crate::ViewMut::fetch_max).
    fn fetch_max(&mut self, at: usize, value: Self::Element) -> Self::Element
    where
        Self::Element: Atomic;

    /// Applies a bitwise and atomically: [`ViewMut::fetch_and`](crate::ViewMut::fetch_and).
    fn fetch_and(&mut self, at: usize, value: Self::Element) -> Self::Element
    where
        Self::Element: AtomicInteger;

    /// Applies a bitwise or atomically: [`ViewMut::fetch_or`](crate::ViewMut::fetch_or).
    fn fetch_or(&mut self, at: usize, value: Self::Element) -> Self::Element
    where
        Self::Element: AtomicInteger;

    /// Applies a bitwise exclusive or atomically:
    /// [`ViewMut::fetch_xor`](crate::ViewMut::fetch_xor).
    fn fetch_xor(&mut self, at: usize, value: Self::Element) -> Self::Element
    where
        Self::Element: AtomicInteger;

    /// Compares and exchanges atomically:
    /// [`ViewMut::compare_exchange`](crate::ViewMut::compare_exchange).
    fn compare_exchange(&mut self, at: usize, expected: Self::Element, new: Self::Element) -> Self::Element
    where
        Self::Element: AtomicInteger;

    /// Loads atomically: [`ViewMut::load_relaxed`](crate::ViewMut::load_relaxed).
    fn load_relaxed(&mut self, at: usize) -> Self::Element
    where
        Self::Element: ScalarElement;

    /// Loads atomically, before later accesses:
    /// [`ViewMut::load_acquire`](crate::ViewMut::load_acquire).
    fn load_acquire(&mut self, at: usize) -> Self::Element
    where
        Self::Element: ScalarElement;

    /// Stores atomically: [`ViewMut::store_relaxed`](crate::ViewMut::store_relaxed).
    fn store_relaxed(&mut self, at: usize, value: Self::Element)
    where
        Self::Element: ScalarElement;

    /// Stores atomically, after earlier accesses:
    /// [`ViewMut::store_release`](crate::ViewMut::store_release).
    fn store_release(&mut self, at: usize, value: Self::Element)
    where
        Self::Element: ScalarElement;

    /// Loads once: [`ViewMut::read_volatile`](crate::ViewMut::read_volatile).
    fn read_volatile(&mut self, at: usize) -> Self::Element
    where
        Self::Element: ScalarElement;

    /// Stores once: [`ViewMut::write_volatile`](crate::ViewMut::write_volatile).
    fn write_volatile(&mut self, at: usize, value: Self::Element)
    where
        Self::Element: ScalarElement;
}

/// Changes an element of a slice that `host` gave to this thread exclusively, and returns its old
/// value.
#[track_caller]
fn update<T: Element>(slice: &mut [T], at: usize, change: impl FnOnce(T) -> T) -> T {
    let new = change(slice[at]);
    replace(&mut slice[at], new)
}

impl<T: Element> SliceExt for [T] {
    type Element = T;

    fn aligned(&self, n: usize) -> bool {
        self.as_ptr().addr().is_multiple_of(n * size_of::<T>())
    }

    #[track_caller]
    fn load<const N: usize>(&self, at: usize) -> [T; N] {
        let elements = &self[at..][..N];
        wide::aligned(elements.as_ptr(), N);
        std::array::from_fn(|i| elements[i])
    }

    #[track_caller]
    fn load_or<const N: usize>(&self, at: usize, other: T) -> [T; N] {
        wide::elements_per_access::<T>(N);
        std::array::from_fn(|i| at.checked_add(i).and_then(|i| self.get(i)).copied().unwrap_or(other))
    }

    #[track_caller]
    fn store<const N: usize>(&mut self, at: usize, values: [T; N]) {
        let elements = &mut self[at..][..N];
        wide::aligned(elements.as_ptr(), N);
        elements.copy_from_slice(&values);
    }

    #[track_caller]
    fn store_in<const N: usize>(&mut self, at: usize, values: [T; N]) {
        wide::elements_per_access::<T>(N);
        let there = self.get_mut(at..).unwrap_or_default();
        there.iter_mut().zip(values).for_each(|(to, value)| *to = value);
    }

    #[track_caller]
    fn fetch_add(&mut self, at: usize, value: T) -> T
    where
        T: Atomic,
    {
        update(self, at, |x| x.sum(value, ElementSpace::Global))
    }

    #[track_caller]
    fn fetch_sub(&mut self, at: usize, value: T) -> T
    where
        T: Atomic,
    {
        update(self, at, |x| x.difference(value, ElementSpace::Global))
    }

    #[track_caller]
    fn exchange(&mut self, at: usize, value: T) -> T
    where
        T: Atomic,
    {
        update(self, at, |_| value)
    }

    #[track_caller]
    fn fetch_min(&mut self, at: usize, value: T) -> T
    where
        T: Atomic,
    {
        update(self, at, |x| x.atomic_min(value))
    }

    #[track_caller]
    fn fetch_max(&mut self, at: usize, value: T) -> T
    where
        T: Atomic,
    {
        update(self, at, |x| x.atomic_max(value))
    }

    #[track_caller]
    fn fetch_and(&mut self, at: usize, value: T) -> T
    where
        T: AtomicInteger,
    {
        update(self, at, |x| bitwise(x, value, |a, b| a & b))
    }

    #[track_caller]
    fn fetch_or(&mut self, at: usize, value: T) -> T
    where
        T: AtomicInteger,
    {
        update(self, at, |x| bitwise(x, value, |a, b| a | b))
    }

    #[track_caller]
    fn fetch_xor(&mut self, at: usize, value: T) -> T
    where
        T: AtomicInteger,
    {
        update(self, at, |x| bitwise(x, value, |a, b| a ^ b))
    }

    #[track_caller]
    fn compare_exchange(&mut self, at: usize, expected: T, new: T) -> T
    where
        T: AtomicInteger,
    {
        update(self, at, |x| if x == expected { new } else { x })
    }

    #[track_caller]
    fn load_relaxed(&mut self, at: usize) -> T
    where
        T: ScalarElement,
    {
        self[at]
    }

    #[track_caller]
    fn load_acquire(&mut self, at: usize) -> T
    where
        T: ScalarElement,
    {
        self[at]
    }

    #[track_caller]
    fn store_relaxed(&mut self, at: usize, value: T)
    where
        T: ScalarElement,
    {
        self[at] = value;
    }

    #[track_caller]
    fn store_release(&mut self, at: usize, value: T)
    where
        T: ScalarElement,
    {
        self[at] = value;
    }

    #[track_caller]
    fn read_volatile(&mut self, at: usize) -> T
    where
        T: ScalarElement,
    {
        self[at]
    }

    #[track_caller]
    fn write_volatile(&mut self, at: usize, value: T)
    where
        T: ScalarElement,
    {
        self[at] = value;
    }
}

mod sealed {
    pub trait Sealed {}
    impl<T: super::Element> Sealed for [T] {}
}
