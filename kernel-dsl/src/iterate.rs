//! Loop directives: functions around the iterator of a `for` that select how the loop is compiled.
//!
//! A `for` of a kernel runs over `start..end` or `start..=end` of any integer type, optionally with
//! `.step_by(n)` (32- and 64-bit integers) and `.rev()`, in either order. A `for` also runs over
//! [`block::share`](crate::block::share), [`block::stride`](crate::block::stride),
//! [`grid::stride`](crate::grid::stride), and the elements of a register array, which is always
//! unrolled. Without a directive the compiler chooses the unroll factor.
//!
//! An inclusive range may end at the largest value of its type. Where the compiler cannot exclude
//! that end, a 32-bit range is counted in 64 bits, and a 64-bit range by the numbers of its
//! indices. A constant end and an end such as `n % 8` keep the narrower counter. The end of a range
//! of `usize` must be below the largest value: the compiler rejects that value as a constant, and
//! the oracle reports an overflow as an error.
//!
//! In a half-open range, the index plus the step must not exceed the type:
//! `(250u8..255).step_by(10)` is rejected, and the oracle reports such loops over wider types.
//!
//! `.enumerate()` comes last, after `unroll_by::<F>(…)`. The loop then counts, and computes each
//! index by a multiplication and an addition. Counts are `usize`: only the first 2³² − 1 indices of
//! a range are visited.

/// Copies the loop's body for each iteration: `for i in unroll(0..4)`.
///
/// Start, end and step must be constant in every instance of the kernel. The index is a constant in
/// each copy, so an array indexed by it stays in registers. No instruction of the loop itself
/// remains.
pub fn unroll<I: IntoIterator>(iterator: I) -> I::IntoIter {
    iterator.into_iter()
}

/// Keeps one copy of the loop's body for any iteration count: `for t in rolled(0..tiles)`.
///
/// Use it for a long body, and where registers are worth more than loads in flight. In PTX: an
/// index in a register, a comparison, a branch, and `.pragma "nounroll"`, which stops ptxas from
/// unrolling loops without barriers by four. CUDA C's `#pragma unroll 1` does the same. Addresses
/// that depend on the index are computed from it, in two instructions an access; no address stays
/// in a register.
pub fn rolled<I: IntoIterator>(iterator: I) -> I::IntoIter {
    iterator.into_iter()
}

/// Makes `F` copies of the loop's body: `for k in unroll_by::<4>(0..n)`.
///
/// Use it for loops too long to unroll fully, or with a variable length. `F` copies of the body run
/// in sequence while `F` iterations remain. At most `F − 1` further copies, each after a
/// comparison, run the remainder. There is no remainder if start, end and step are constant and `F`
/// divides the number of iterations. ptxas makes no further copies.
///
/// Suppose that start is a constant, and that `F` times the step is a constant multiple of a power
/// of two. The index modulo that power is then a constant in each copy, also in the remainder. With
/// `buffers[k % 2]` in a loop from 0, unrolled by 2, the array stays in registers. The body is
/// compiled twice: declare arrays in shared memory before the loop.
pub fn unroll_by<const F: usize>(range: impl IntoIterator<Item = usize>) -> impl Iterator<Item = usize> {
    const { assert!(F > 0, "the unroll factor must be at least 1") }
    range.into_iter()
}
