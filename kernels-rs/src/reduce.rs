//! Reductions over rows, columns, or all of a matrix. The operation is a [`Monoid`] of this crate
//! or another.
//!
//! The entry points are [`rows`], [`columns`] and [`all`]. The operations of this crate are
//! [`Sum`], [`Mean`], [`Max`], [`Min`], [`ArgMax`], [`ArgMin`], [`Norm1`] and [`Norm2`].
//!
//! ```text
//!   reduce_rows: T threads a row            reduce_parts: a block a part of a row     reduce_columns: 8 warps a strip of columns
//!   ┌─────────────────────────┐            ┌───────────┬───────────┬──────┐         ┌──32·V──┬────────┐
//!   │▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒│ → y[0]     │ block 0   │ block 1   │ …    │         │warp 0  │        │
//!   │▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒│ → y[1]     └─────┬─────┴─────┬─────┴──────┘         │warp 1  │ next   │
//!   │                         │                  ▼           ▼                      │  …     │ block  │
//!   └─────────────────────────┘             the last block to end → y               └────────┴────────┘ → join_columns
//! ```
//!
//! The limit is memory: each element is read once, by accesses of 16 bytes, four of them in flight
//! in each thread. There is one chain of operations for each element of an access, so that no
//! addition waits for the previous one. If rows are too few to fill the device, parts are reduced
//! first. Blocks count themselves when they end, and the last one combines the parts. If columns
//! are reduced, a second kernel combines the parts. Parts are combined in a fixed order, so that
//! results are deterministic for a shape on a device.
//!
//! # Extreme inputs
//!
//! Elements of `f32`, `f16` and `bf16` are exact in `f32`, in which everything is computed.
//! Subnormal numbers are not flushed; subnormal results are multiples of 2⁻¹⁴⁹. 16-bit elements are
//! widened, so that a sum of `f16` does not overflow.
//!
//! | | huge elements | tiny elements | ±∞ | NaN |
//! |---|---|---|---|---|
//! | [`Sum`] | may be ±∞ or NaN if Σ\|x\| exceeds 3.4·10³⁸, because the order is unspecified | exact to 2⁻¹⁴⁹ per addition; subnormal sums are exact | ±∞; NaN if both signs occur | NaN |
//! | [`Norm1`] | ∞ if the norm exceeds `f32::MAX` | as `Sum` | ∞ | NaN |
//! | [`Mean`] | finite | as accurate as for other elements | as `Sum` | NaN |
//! | [`Norm2`] | finite if the norm is in the range of `f32` | as accurate as for other elements | ∞ | NaN |
//! | [`Max`], [`Min`] | exact | exact | in order | [ignored](crate#the-order-of-numbers) |
//! | [`ArgMax`], [`ArgMin`] | the first of equal elements; −0 equals 0 | exact | in order | [ignored](crate#the-order-of-numbers) |
//!
//! # Measured
//!
//! Measured on an H200 (driver 580.159, the PTX of sm_61 compiled by its JIT) by
//! `kernels bench --suite memory`. Times are in µs, and compared with a copy that reads and writes
//! the same number of bytes:
//!
//! | `f32` | 32768 × 4096 | 4096 × 4096 | 8192 × 1024 |
//! |---|---|---|---|
//! | sums of rows | 120.7, 1.06 × | 18.5, 1.03 × | 6.3, 1.11 × |
//! | sum of all, by the last of 4 blocks a multiprocessor | 123.4, 1.04 × | 20.2, 0.94 × | 8.1, 0.87 × |
//! | of 8 blocks a multiprocessor | 123.4, 1.04 × | 20.2, 0.93 × | 8.2, 0.82 × |
//! | with a second launch | 126.9, 1.01 × | 22.6, 0.84 × | 9.8, 0.70 × |
//! | sums of columns | 125.9, 1.02 × | 21.9, 0.86 × | 9.6, 0.71 × |
//! | by the last block: blocks of 1024 threads, all resident | 130.1, 0.99 × | 25.2, 0.75 × | 10.5, 0.64 × |
//! | blocks of 256 threads, two for each resident one | 141.3, 0.91 × | 28.3, 0.67 × | 16.9, 0.41 × |
//!
//! A block that counts itself waits for its stores and for an atomic operation, some 2 µs. A few
//! long blocks hide this time; columns need many blocks. Arg-max of rows of 32768 × 4096 reaches
//! 1.04 ×, and sums of rows of `f16` 1.02 ×.

// `max` and `min` take half the instructions of `clamp`, and the operand is finite.
#![allow(clippy::manual_clamp)]

pub mod kernels;
mod run;

pub use items::*;
pub use run::{Reduced, all, columns, rows};

#[kernel_dsl::device]
mod items {
    use kernel_dsl::prelude::*;

    /// A reduction: a state for each element, an associative operation on states, and a final
    /// result.
    ///
    /// The order of the operations is fixed, but is not that of the elements. Therefore the
    /// operation must be commutative up to rounding.
    pub trait Monoid {
        /// The type of the combined states.
        type State: Element;
        /// The type of the result.
        type Out: Element;
        /// The neutral element.
        const ZERO: Self::State;
        /// Returns the state of the element `x` at index `at`.
        fn take(x: f32, at: usize) -> Self::State;
        /// Combines two states.
        fn join(a: Self::State, b: Self::State) -> Self::State;
        /// Returns the result over `n` elements.
        fn finish(state: Self::State, n: usize) -> Self::Out;
    }

    /// The sum Σ x; 0 for no elements. If Σ|x| exceeds `f32::MAX`, partial sums may overflow, and
    /// the sum is finite, infinite or NaN.
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

    /// The mean Σ x / n; NaN for no elements. The mean of finite numbers is finite, although their
    /// sum may not be.
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
                // The mean of the largest `f32`s may round to more than `f32::MAX`; NaN and
                // infinities are kept.
                let mean = state.small / (n as f32 * 1.164_153_2e-10);
                if state.small.abs() <= f32::MAX { mean.max(f32::MIN).min(f32::MAX) } else { mean }
            }
        }
    }

    /// The sum of absolute values Σ |x|.
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

    /// The sums of squares at three scales: unscaled, times 2⁻¹⁰⁰, and times 2¹⁰⁰.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    #[repr(C)]
    pub struct Squares {
        /// The sum of x².
        pub plain: f32,
        /// The sum of (x · 2⁻¹⁰⁰)², which is finite for finite numbers.
        pub of_huge: f32,
        /// The sum of (x · 2¹⁰⁰)², in which squares of subnormal numbers are normal.
        pub of_tiny: f32,
    }

    /// The Euclidean norm √Σ x², without overflow unless the norm itself overflows.
    ///
    /// Squares are summed three times, at three scales, and the root is taken of a sum without
    /// overflow or underflow. The method is that of Blue, *A portable Fortran program to find the
    /// Euclidean norm of a vector*, 1978. There each number has only one of the scales.
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
            // Below 2⁻⁸⁰ squares may have lost bits to underflow.
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
    /// as −∞, which is also the result for no elements.
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
    /// as ∞, which is also the result for no elements.
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

    /// A value and its index.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    #[repr(C)]
    pub struct Found {
        /// The value.
        pub value: f32,
        /// The index; `u32::MAX` if there are no elements, or only NaNs.
        pub at: u32,
    }

    /// The index of the first largest element in the [order of all
    /// kernels](crate#the-order-of-numbers): a NaN counts as −∞. For no elements the index is
    /// `u32::MAX`.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    pub struct ArgMax;

    impl Monoid for ArgMax {
        type State = Found;
        type Out = u32;
        const ZERO: Found = Found { value: f32::NEG_INFINITY, at: u32::MAX };
        fn take(x: f32, at: usize) -> Found {
            Found { value: x, at: at as u32 }
        }
        fn join(a: Found, b: Found) -> Found {
            if b.value > a.value || b.value == a.value && b.at < a.at { b } else { a }
        }
        fn finish(state: Found, n: usize) -> u32 {
            // `join` keeps its left state if the right one is a NaN. Without an element above −∞,
            // the first is the result.
            if state.value == f32::NEG_INFINITY && n > 0 { 0 } else { state.at }
        }
    }

    /// The index of the first smallest element in the [order of all
    /// kernels](crate#the-order-of-numbers): a NaN counts as ∞. For no elements the index is
    /// `u32::MAX`.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    pub struct ArgMin;

    impl Monoid for ArgMin {
        type State = Found;
        type Out = u32;
        const ZERO: Found = Found { value: f32::INFINITY, at: u32::MAX };
        fn take(x: f32, at: usize) -> Found {
            Found { value: x, at: at as u32 }
        }
        fn join(a: Found, b: Found) -> Found {
            if b.value < a.value || b.value == a.value && b.at < a.at { b } else { a }
        }
        fn finish(state: Found, n: usize) -> u32 {
            // `join` keeps its left state if the right one is a NaN. Without an element below ∞,
            // the first is the result.
            if state.value == f32::INFINITY && n > 0 { 0 } else { state.at }
        }
    }
}
