//! Reductions over rows, columns, or all of a matrix: what is combined is a [`Monoid`], of this
//! crate or another.
//!
//! [`rows`], [`columns`] and [`all`] are what to call; [`Sum`], [`Mean`], [`Max`], [`Min`],
//! [`ArgMax`], [`ArgMin`], [`Norm1`] and [`Norm2`] are here.
//!
//! ```text
//!   reduce_rows: T threads a row            reduce_parts: a block a part of a row     reduce_columns: 8 warps a strip of columns
//!   ┌─────────────────────────┐            ┌───────────┬───────────┬──────┐         ┌──32·V──┬────────┐
//!   │▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒│ → y[0]     │ block 0   │ block 1   │ …    │         │warp 0  │        │
//!   │▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒│ → y[1]     └─────┬─────┴─────┬─────┴──────┘         │warp 1  │ next   │
//!   │                         │                  ▼           ▼                      │  …     │ block  │
//!   └─────────────────────────┘             join_parts: a warp a result             └────────┴────────┘ → join_parts
//! ```
//!
//! What limits them is memory: each element is read once, in accesses of 16 bytes, four of them
//! under way in each thread, and combined in as many chains as an access has elements, so that no
//! addition waits for the one before it. Where rows are too few to fill the device, or columns are
//! summed, parts come first and are brought together by a second kernel: no atomic operation is
//! used, and the same shape on the same device combines in the same order.
//!
//! # Extreme inputs
//!
//! Elements of `f32`, `f16` and `bf16` are exact in `f32`, in which all is computed; subnormal
//! numbers count as they are, and what is subnormal is rounded to multiples of 2⁻¹⁴⁹.
//!
//! | | huge | tiny | ±∞ | NaN |
//! |---|---|---|---|---|
//! | [`Sum`] | may overflow where Σ\|x\| does | exact to 2⁻¹⁴⁹ an addition | ±∞, of both NaN | NaN |
//! | [`Norm1`] | ∞ where the norm is beyond `f32::MAX` | as a sum | ∞ | NaN |
//! | [`Mean`], [`Norm2`] | finite where the result is | as of other numbers | as a sum | NaN |
//! | [`Max`], [`Min`], [`ArgMax`], [`ArgMin`] | exact | exact | in order | the [last](crate#the-order-of-numbers) |
//!
//! # Extremes
//!
//! | | finite elements | infinities | NaN |
//! |---|---|---|---|
//! | [`Sum`], [`Norm1`] | ±∞ or NaN where Σ\|x\| is beyond 3.4·10³⁸, since the order is not told | ±∞; NaN of both signs | NaN |
//! | [`Mean`] | finite | as `Sum` | NaN |
//! | [`Norm2`] | finite where it is a number of `f32`, of tiny and of huge elements | ∞ | NaN |
//! | [`Max`], [`Min`] | exact | counted | not counted |
//! | [`ArgMax`], [`ArgMin`] | the first of equals; −0 equals 0 | counted | not counted |
//!
//! 16-bit elements are widened exactly, so that a sum of `f16` does not overflow. Subnormal sums are exact.
//!
//! # Measured
//!
//! On an H200 (driver 580.159, the PTX of sm_61 by its JIT), `kernels bench memory`, 32768 × 4096,
//! beside a copy of as many bytes read and written: sums of rows 4.44 TB/s, 1.06 ×, of columns
//! 4.09, 0.97 ×, of all 4.23, 1.01 ×; arg-max of rows 4.43, 1.06 ×; sums of rows of `f16` 4.08,
//! 1.00 ×. Of 8192 × 1024, which takes 6 to 11 µs, columns reach 0.64 × and all 0.71 ×: two
//! launches show.

// `max` and `min` take half the instructions of `clamp`, and the operand is finite.
#![allow(clippy::manual_clamp)]

pub mod kernels;
mod run;

pub use items::*;
pub use run::{Reduced, all, columns, rows};

#[kernel_dsl::device]
mod items {
    use kernel_dsl::prelude::*;

    /// How elements are combined: a value for each, an associative operation, and what is made of
    /// the last.
    ///
    /// Elements meet in an order that is fixed and not that of their places, so the operation
    /// should not depend on it, but by rounding.
    pub trait Monoid {
        /// What is combined.
        type State: Element;
        /// What comes out.
        type Out: Element;
        /// What changes nothing.
        const ZERO: Self::State;
        /// Of the element `x` at place `at`.
        fn take(x: f32, at: usize) -> Self::State;
        /// Of two parts.
        fn join(a: Self::State, b: Self::State) -> Self::State;
        /// The result over `n` elements.
        fn finish(state: Self::State, n: usize) -> Self::Out;
    }

    /// Σ x; 0 of nothing. Where Σ|x| is beyond `f32::MAX`, partial sums may overflow, and the sum
    /// is finite, infinite or NaN.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    pub struct Sum;

    impl Monoid for Sum {
        type State = f32;
        type Out = f32;
        const ZERO: f32 = 0.0;
        fn take(x: f32, _at: usize) -> f32 {
            x
        }
        fn join(a: f32, b: f32) -> f32 {
            a + b
        }
        fn finish(state: f32, _n: usize) -> f32 {
            state
        }
    }

    /// A sum, and the sum of the same numbers times 2⁻³³, which does not overflow.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    #[repr(C)]
    pub struct WideSum {
        /// The sum.
        pub sum: f32,
        /// The sum of numbers times 2⁻³³.
        pub small: f32,
    }

    /// Σ x / n; a NaN of nothing. The mean of finite numbers is finite, though their sum may not
    /// be.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    pub struct Mean;

    impl Monoid for Mean {
        type State = WideSum;
        type Out = f32;
        const ZERO: WideSum = WideSum { sum: 0.0, small: 0.0 };
        fn take(x: f32, _at: usize) -> WideSum {
            // 2⁻³³: an axis has fewer than 2³² elements.
            WideSum { sum: x, small: x * 1.164_153_2e-10 }
        }
        fn join(a: WideSum, b: WideSum) -> WideSum {
            WideSum { sum: a.sum + b.sum, small: a.small + b.small }
        }
        fn finish(state: WideSum, n: usize) -> f32 {
            if state.sum.abs() <= f32::MAX {
                state.sum / n as f32
            } else {
                // The mean of the largest numbers may round to more than these; a NaN and an
                // infinity stay.
                let mean = state.small / (n as f32 * 1.164_153_2e-10);
                if state.small.abs() <= f32::MAX { mean.max(f32::MIN).min(f32::MAX) } else { mean }
            }
        }
    }

    /// Σ |x|: the norm of absolute values.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    pub struct Norm1;

    impl Monoid for Norm1 {
        type State = f32;
        type Out = f32;
        const ZERO: f32 = 0.0;
        fn take(x: f32, _at: usize) -> f32 {
            x.abs()
        }
        fn join(a: f32, b: f32) -> f32 {
            a + b
        }
        fn finish(state: f32, _n: usize) -> f32 {
            state
        }
    }

    /// The sums of squares of numbers: as they are, times 2⁻¹⁰⁰, and times 2¹⁰⁰.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    #[repr(C)]
    pub struct Squares {
        /// The sum of x².
        pub plain: f32,
        /// The sum of (x · 2⁻¹⁰⁰)², which is finite of finite numbers.
        pub of_huge: f32,
        /// The sum of (x · 2¹⁰⁰)², in which squares of subnormal numbers are normal.
        pub of_tiny: f32,
    }

    /// √Σ x²: the Euclidean norm, which overflows where the norm itself does.
    ///
    /// Squares are added thrice, in three scales, and the root is of the sum that has kept its bits
    /// (Blue, *A portable Fortran program to find the Euclidean norm of a vector*, 1978, where each
    /// number has one of the scales).
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    pub struct Norm2;

    impl Monoid for Norm2 {
        type State = Squares;
        type Out = f32;
        const ZERO: Squares = Squares { plain: 0.0, of_huge: 0.0, of_tiny: 0.0 };
        fn take(x: f32, _at: usize) -> Squares {
            // 2⁻¹⁰⁰ and 2¹⁰⁰.
            let (huge, tiny) = (x * 7.888_609e-31, x * 1.267_650_6e30);
            Squares { plain: x * x, of_huge: huge * huge, of_tiny: tiny * tiny }
        }
        fn join(a: Squares, b: Squares) -> Squares {
            Squares { plain: a.plain + b.plain, of_huge: a.of_huge + b.of_huge, of_tiny: a.of_tiny + b.of_tiny }
        }
        fn finish(state: Squares, _n: usize) -> f32 {
            // Below 2⁻⁸⁰ squares may have lost bits.
            if state.plain < 8.271_806e-25 {
                state.of_tiny.sqrt() * 7.888_609e-31
            } else if state.plain < f32::INFINITY {
                state.plain.sqrt()
            } else {
                state.of_huge.sqrt() * 1.267_650_6e30
            }
        }
    }

    /// The largest element in the [order of all kernels](crate#the-order-of-numbers): a NaN counts
    /// as −∞, which is also the largest of nothing.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    pub struct Max;

    impl Monoid for Max {
        type State = f32;
        type Out = f32;
        const ZERO: f32 = f32::NEG_INFINITY;
        fn take(x: f32, _at: usize) -> f32 {
            x
        }
        fn join(a: f32, b: f32) -> f32 {
            a.max(b)
        }
        fn finish(state: f32, _n: usize) -> f32 {
            state
        }
    }

    /// The smallest element in the [order of all kernels](crate#the-order-of-numbers): a NaN counts
    /// as ∞, which is also the smallest of nothing.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    pub struct Min;

    impl Monoid for Min {
        type State = f32;
        type Out = f32;
        const ZERO: f32 = f32::INFINITY;
        fn take(x: f32, _at: usize) -> f32 {
            x
        }
        fn join(a: f32, b: f32) -> f32 {
            a.min(b)
        }
        fn finish(state: f32, _n: usize) -> f32 {
            state
        }
    }

    /// A value and where it is.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    #[repr(C)]
    pub struct Found {
        /// The value.
        pub value: f32,
        /// Its place; `u32::MAX` of nothing.
        pub at: u32,
    }

    /// The place of the largest element, of several the first, in the
    /// [order of all kernels](crate#the-order-of-numbers): a NaN counts as −∞. Of nothing it is
    /// `u32::MAX`.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    pub struct ArgMax;

    impl Monoid for ArgMax {
        type State = Found;
        type Out = u32;
        const ZERO: Found = Found { value: f32::NEG_INFINITY, at: u32::MAX };
        fn take(x: f32, at: usize) -> Found {
            Found { value: x.max(f32::NEG_INFINITY), at: at as u32 }
        }
        fn join(a: Found, b: Found) -> Found {
            if b.value > a.value || b.value == a.value && b.at < a.at { b } else { a }
        }
        fn finish(state: Found, _n: usize) -> u32 {
            state.at
        }
    }

    /// The place of the smallest element, of several the first, in the
    /// [order of all kernels](crate#the-order-of-numbers): a NaN counts as ∞. Of nothing it is
    /// `u32::MAX`.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    pub struct ArgMin;

    impl Monoid for ArgMin {
        type State = Found;
        type Out = u32;
        const ZERO: Found = Found { value: f32::INFINITY, at: u32::MAX };
        fn take(x: f32, at: usize) -> Found {
            Found { value: x.min(f32::INFINITY), at: at as u32 }
        }
        fn join(a: Found, b: Found) -> Found {
            if b.value < a.value || b.value == a.value && b.at < a.at { b } else { a }
        }
        fn finish(state: Found, _n: usize) -> u32 {
            state.at
        }
    }
}
