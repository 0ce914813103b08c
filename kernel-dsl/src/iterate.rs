//! How a loop is to be compiled: words around the iterator of a `for`, which they hand back.
//!
//! A `for` of a kernel runs over `start..end` of any integer type, perhaps with `.step_by(n)` (integers of 32 and 64 bits)
//! and `.rev()`, in either order; over [`block::share`](crate::block::share), [`block::stride`](crate::block::stride) and
//! [`grid::stride`](crate::grid::stride); or over the elements of a register array, where it is unrolled in any case.
//! Without a word around it the compiler unrolls as it finds good. An index plus the step must not exceed the type:
//! `(250u8..255).step_by(10)` is refused, and such a loop over wider types is reported.
//!
//! `.enumerate()` comes last, and behind `unroll_by::<F>(…)`. The loop then counts the numbers, and makes an index of each by a
//! multiplication and an addition. Numbers are `usize`: of a range of more than 2³² − 1 indices, those behind have none, and are not run over.

/// A copy of the loop's body for each iteration: `for i in unroll(0..4)`.
///
/// Start, end and step must be constant in every instance of the kernel. In each copy the index is a constant, so that
/// an array indexed by it stays in registers. No instruction is left of the loop itself.
pub fn unroll<I: IntoIterator>(iterator: I) -> I::IntoIter {
    iterator.into_iter()
}

/// One copy of the loop's body, whatever the iteration count: `for t in rolled(0..tiles)`.
///
/// For a body that is long already, and where registers are worth more than loads in flight. In PTX an index in a register, a
/// compare and a branch, and `.pragma "nounroll"`: ptxas, which unrolls loops without barriers by four where it can, makes no
/// copies either. It is `#pragma unroll 1` of CUDA C. What moves with the index is then reached from it, in two instructions an
/// access, and no address stays in registers.
pub fn rolled<I: IntoIterator>(iterator: I) -> I::IntoIter {
    iterator.into_iter()
}

/// `F` copies of the loop's body at a time: `for k in unroll_by::<4>(0..n)`.
///
/// For loops that are too long to unroll, or whose length is not constant. As long as `F` iterations are left, `F` copies
/// of the body run one after the other; what is left then runs in at most `F − 1` further copies, each behind a
/// compare. Where start, end and step are constant and `F` divides the number of iterations there is no rest. ptxas is told to make
/// no further copies.
///
/// Where start is a constant and `F` times the step a constant multiple of a power of two, what the index is modulo that
/// power is a constant in each copy, of the rest too: with `buffers[k % 2]` in a loop from 0, unrolled by 2, the array
/// stays in registers. The body is compiled twice: an array in shared memory belongs before the loop.
pub fn unroll_by<const F: usize>(range: impl IntoIterator<Item = usize>) -> impl Iterator<Item = usize> {
    const { assert!(F > 0, "a loop of no copies") }
    range.into_iter()
}
