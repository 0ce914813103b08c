//! What lanes can hand each other.

use crate::half::{bf16, f16};

/// What lanes and threads can hand each other: numbers, `bool`, and tuples, arrays and options of such values.
///
/// Each number is a shuffle of its own; one of 64 bits is two. `bool` and what is narrower than 32 bits travel in a
/// word, at the cost of a conversion before and after.
#[diagnostic::on_unimplemented(
    message = "lanes of a warp cannot exchange `{Self}`",
    note = "they exchange numbers, `bool`, and tuples, arrays and options of them"
)]
pub trait LaneValue: Copy + Send + Sync + 'static {}

/// The numbers that `sum`, `max` and `min` know: `i32`, `u32`, `i64`, `u64`, `usize`, `f32` and `f64`.
#[diagnostic::on_unimplemented(
    message = "there is no `sum`, `max` and `min` of `{Self}` over lanes and threads",
    note = "they know `i32`, `u32`, `i64`, `u64`, `usize`, `f32` and `f64`: widen smaller integers with `as`, floats of 16 bits with `to_f32`; of other values `reduce` is told what to do with two"
)]
pub trait LaneNumber: LaneValue + sealed::Arithmetic {}

pub(crate) mod sealed {
    /// What the emulated reductions do with two numbers.
    pub trait Arithmetic: Copy {
        fn sum(a: Self, b: Self) -> Self;
        fn larger(a: Self, b: Self) -> Self;
        fn smaller(a: Self, b: Self) -> Self;
    }
}

macro_rules! values {
    ($($t:ty)*) => { $(impl LaneValue for $t {})* };
}
values!(bool i8 u8 i16 u16 i32 u32 i64 u64 usize f16 bf16 f32 f64);

impl<T: LaneValue, const N: usize> LaneValue for [T; N] {}
impl<T: LaneValue> LaneValue for Option<T> {}

macro_rules! tuples {
    ($($($t:ident)*;)*) => { $(impl<$($t: LaneValue),*> LaneValue for ($($t,)*) {})* };
}
tuples! {
    A;
    A B;
    A B C;
    A B C D;
    A B C D E;
    A B C D E F;
    A B C D E F G;
    A B C D E F G H;
}

macro_rules! integer {
    ($($t:ty)*) => {$(
        impl LaneNumber for $t {}
        impl sealed::Arithmetic for $t {
            fn sum(a: $t, b: $t) -> $t { a + b }
            fn larger(a: $t, b: $t) -> $t { a.max(b) }
            fn smaller(a: $t, b: $t) -> $t { a.min(b) }
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
        }
    )*};
}
float!(f32 f64);
