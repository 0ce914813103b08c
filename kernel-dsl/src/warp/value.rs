//! Numbers that the reductions and `match_any` accept.

use crate::element::DeviceCopy;

/// A number that `sum`, `max`, `min` and `match_any` accept: `i32`, `u32`, `i64`, `u64`, `usize`,
/// `f32` and `f64`.
#[diagnostic::on_unimplemented(
    message = "`sum`, `max`, `min` and `match_any` over lanes and threads do not support `{Self}`",
    note = "supported are `i32`, `u32`, `i64`, `u64`, `usize`, `f32` and `f64`: widen smaller integers with `as`, floats of 16 bits with `to_f32`; for other values, pass a function of two values to `reduce`"
)]
pub trait LaneNumber: DeviceCopy + sealed::Arithmetic {}

pub(crate) mod sealed {
    /// Arithmetic of the emulated operations.
    pub trait Arithmetic: Copy {
        fn sum(a: Self, b: Self) -> Self;
        fn larger(a: Self, b: Self) -> Self;
        fn smaller(a: Self, b: Self) -> Self;
        fn same(a: Self, b: Self) -> bool;
    }
}

macro_rules! integer {
    ($($t:ty)*) => {$(
        impl LaneNumber for $t {}
        impl sealed::Arithmetic for $t {
            fn sum(a: $t, b: $t) -> $t { a + b }
            fn larger(a: $t, b: $t) -> $t { a.max(b) }
            fn smaller(a: $t, b: $t) -> $t { a.min(b) }
            fn same(a: $t, b: $t) -> bool { a == b }
        }
    )*};
}
integer!(i32 u32 i64 u64 usize);

macro_rules! float {
    ($($t:ty)*) => {$(
        impl LaneNumber for $t {}
        impl sealed::Arithmetic for $t {
            fn sum(a: $t, b: $t) -> $t { a + b }
            // Rust's `max` and `min` leave the order of zeros open; `max.f32` and `min.f32` do not.
            fn larger(a: $t, b: $t) -> $t {
                if a == b { if a.is_sign_negative() { b } else { a } } else { a.max(b) }
            }
            fn smaller(a: $t, b: $t) -> $t {
                if a == b { if a.is_sign_negative() { a } else { b } } else { a.min(b) }
            }
            fn same(a: $t, b: $t) -> bool { a.to_bits() == b.to_bits() }
        }
    )*};
}
float!(f32 f64);
