//! How a loop is to be compiled: words around the iterator of a `for`, which they hand back.
//!
//! A `for` of a kernel runs over `start..end` or `(start..end).step_by(n)`. Without a word around it the compiler
//! unrolls as it finds good.

/// A copy of the loop's body for each iteration: `for i in unroll(0..4)`.
///
/// Start, end and step must be constant in every instance of the kernel. In each copy the index is a constant, so that
/// an array indexed by it stays in registers. No instruction is left of the loop itself.
pub fn unroll<I: IntoIterator>(iterator: I) -> I::IntoIter {
    iterator.into_iter()
}

/// One copy of the loop's body, whatever the iteration count: `for t in rolled(0..tiles)`.
///
/// For a body that is long already. In PTX an index in a register, a compare and a branch.
pub fn rolled<I: IntoIterator>(iterator: I) -> I::IntoIter {
    iterator.into_iter()
}
