//! Rust outside of the language that only the checker rejects; rustc accepts it. The first line
//! over each item describes it.
#![allow(unused)]

use kernel_dsl::prelude::*;

/// `%` of floats
#[kernel(block = 32, grid = 1)]
pub fn remainder(x: &[f32], y: &mut [f32]) {
    y[0] = x[0] % 2.0;
}

/// `usize::MAX`
#[kernel(block = 32, grid = 1)]
pub fn largest_size(y: &mut [f32]) {
    y[0] = usize::MAX as f32;
}

/// `usize::BITS`
#[kernel(block = 32, grid = 1)]
pub fn bits_of_size(y: &mut [f32]) {
    y[0] = usize::BITS as f32;
}

/// A `usize` beyond 32 bits
#[kernel(block = 32, grid = 1)]
pub fn large_size(n: usize, y: &mut [f32]) {
    if n < 0x1_0000_0000 {
        y[0] = 1.0;
    }
}

/// `u64 as usize` of arbitrary values
#[kernel(block = 32, grid = 1)]
pub fn narrowed_size(n: u64, y: &mut [f32]) {
    y[n as usize] = 1.0;
}

/// `option.unwrap()`
#[kernel(block = 32, grid = 1)]
pub fn unwrapped(x: &[f32], y: &mut [f32]) {
    y[0] = x.get(0).copied().unwrap();
}

/// `"{pair:?}"`, an array in the message of an assertion
#[kernel(block = 32, grid = 1)]
pub fn shown_whole(y: &mut [f32]) {
    let pair = [y[0], y[1]];
    assert!(pair[0] < pair[1], "{pair:?} is not sorted");
}

/// `log!("{pair:?}")`, of an array
#[kernel(block = 32, grid = 1)]
pub fn logged_whole(y: &mut [f32]) {
    let pair = [y[0], y[1]];
    log!("{pair:?}");
}

/// `option.unwrap_or_default()`
#[kernel(block = 32, grid = 1)]
pub fn or_default(x: &[f32], y: &mut [f32]) {
    y[0] = x.get(0).copied().unwrap_or_default();
}

/// `option.filter(|x| …)`, and other methods of options
#[kernel(block = 32, grid = 1)]
pub fn filtered(x: &[f32], y: &mut [f32]) {
    y[0] = x.get(0).copied().filter(|x| *x > 0.0).unwrap_or(1.0);
}

/// `x.sin()`, `x.exp()`: the host's mathematics
#[kernel(block = 32, grid = 1)]
pub fn sine(x: &[f32], y: &mut [f32]) {
    y[0] = x[0].sin();
}

/// `x.powi(n)`, `x.powf(y)`
#[kernel(block = 32, grid = 1)]
pub fn power(x: &[f32], y: &mut [f32]) {
    y[0] = x[0].powi(2);
}

/// `x.rem_euclid(y)` of floats
#[kernel(block = 32, grid = 1)]
pub fn float_remainder(x: &[f32], y: &mut [f32]) {
    y[0] = x[0].rem_euclid(2.0);
}

/// `a.checked_pow(b)`
#[kernel(block = 32, grid = 1)]
pub fn checked(x: &[u32], y: &mut [u32]) {
    y[0] = x[0].checked_pow(2).unwrap_or(0);
}

/// `a.overflowing_neg()`
#[kernel(block = 32, grid = 1)]
pub fn overflowing(x: &[u32], y: &mut [u32]) {
    let (sum, over) = x[0].overflowing_neg();
    y[0] = sum;
}

/// `a.isqrt()`, and other methods of integers
#[kernel(block = 32, grid = 1)]
pub fn integer_root(x: &[u32], y: &mut [u32]) {
    y[0] = x[0].isqrt();
}

/// `slice.iter()`
#[kernel(block = 32, grid = 1)]
pub fn iterated(x: &[f32], y: &mut [f32]) {
    for v in x.iter() {
        y[0] += *v;
    }
}

/// `for x in slice`
#[kernel(block = 32, grid = 1)]
pub fn iterated_directly(x: &[f32], y: &mut [f32]) {
    for v in x {
        y[0] += *v;
    }
}

/// `iterator.map(…)`, `sum()`: chains of iterators
#[kernel(block = 32, grid = 1)]
pub fn chained(y: &mut [f32]) {
    let s: usize = (0..4).map(|i| i * i).sum();
    y[0] = s as f32;
}

/// `iterator.zip(…)`
#[kernel(block = 32, grid = 1)]
pub fn zipped(y: &mut [f32]) {
    for (i, j) in (0..4).zip(4..8) {
        y[i] = j as f32;
    }
}

/// `slice.first()`, and other methods of slices
#[kernel(block = 32, grid = 1)]
pub fn first(x: &[f32], y: &mut [f32]) {
    y[0] = x.first().copied().unwrap_or(0.0);
}

/// `slice.swap(a, b)`
#[kernel(block = 32, grid = 1)]
pub fn swapped(y: &mut [f32]) {
    y.swap(0, 1);
}

/// `array.iter().sum()`: chains of iterators
#[kernel(block = 32, grid = 1)]
pub fn array_iterated(y: &mut [f32]) {
    let v = [1.0f32, 2.0];
    let squares = v.iter().map(|x| x * x);
    let sum: f32 = squares.sum();
    y[0] = sum;
}

/// `bool` in a buffer
#[kernel(block = 32, grid = 1)]
pub fn truths(x: &[bool], y: &mut [f32]) {
    y[0] = if x[0] { 1.0 } else { 0.0 };
}

/// `usize` in a buffer
#[kernel(block = 32, grid = 1)]
pub fn sizes(x: &[usize], y: &mut [f32]) {
    y[0] = x[0] as f32;
}

/// A tuple in a buffer
#[kernel(block = 32, grid = 1)]
pub fn tuples(x: &[(f32, u32)], y: &mut [f32]) {
    y[0] = x[0].0;
}

#[device]
#[derive(Clone, Copy, DeviceCopy)]
pub struct Unordered {
    pub key: u32,
}

/// A struct without `repr(C)` in a buffer
#[kernel(block = 32, grid = 1)]
pub fn unordered(x: &[Unordered], y: &mut [f32]) {
    y[0] = x[0].key as f32;
}

/// `&y[1..3]`: a part of a slice
#[kernel(block = 32, grid = 1)]
pub fn sliced(y: &mut [f32]) {
    let r = &y[1..3];
}

/// A kernel that returns something
#[kernel(block = 32, grid = 1)]
pub fn returning(y: &mut [f32]) -> f32 {
    y[0]
}

fn main() {}

/// A constant of the host as a pattern
#[kernel(block = 32, grid = 1)]
pub fn constant_pattern(n: usize, y: &mut [f32]) {
    y[0] = match n {
        LIMIT => 1.0,
        _ => 2.0,
    };
}
const LIMIT: usize = 3;

/// A struct as a constant in a pattern
#[device]
pub mod constants {
    #[derive(Clone, Copy, PartialEq)]
    pub struct Cell(pub u32);
    pub const ORIGIN: Cell = Cell(0);
    pub fn is_origin(cell: Cell) -> bool {
        matches!(cell, ORIGIN)
    }
}

/// A pattern of a slice
#[kernel(block = 32, grid = 1)]
pub fn slice_pattern(x: &[f32], y: &mut [f32]) {
    if let [first, .., last] = x {
        y[0] = *first + *last;
    }
}

/// `impl From` of a device type
#[device]
pub mod converted {
    #[derive(Clone, Copy)]
    pub struct Complex(pub f32, pub f32);
    impl From<f32> for Complex {
        fn from(re: f32) -> Complex {
            Complex(re, 0.0)
        }
    }
    pub fn real(x: f32) -> Complex {
        Complex::from(x)
    }
}

/// `x.into()` of a number that gives no number
#[device]
pub mod into_struct {
    #[derive(Clone, Copy)]
    pub struct Real(pub f32);
    impl From<f32> for Real {
        fn from(x: f32) -> Real {
            Real(x)
        }
    }
    pub fn real(x: f32) -> Real {
        x.into()
    }
}

/// `a.cmp(&b)`
#[kernel(block = 32, grid = 1)]
pub fn ordered(x: &[u32], y: &mut [u32]) {
    y[0] = x[0].cmp(&x[1]) as u32;
}

/// `u8::try_from(x)`
#[kernel(block = 32, grid = 1)]
pub fn narrowed(x: &[u32], y: &mut [u32]) {
    y[0] = u8::try_from(x[0]).is_ok() as u32;
}

/// `AtomicU32`, and other atomic types
#[kernel(block = 32, grid = 1)]
pub fn atomic_type(x: &[std::sync::atomic::AtomicU32], y: &mut [u32]) {
    y[0] = 1;
}
