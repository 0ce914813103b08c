//! The computations of instructions, as functions of bits, implemented for this interpreter only.
//!
//! - `float` has IEEE arithmetic in integers, in every rounding and format, independent of the
//!   processor's rounding mode.
//! - `native` has the operations that the processor's default mode computes as well, and faster;
//!   tests compare it with `float`.
//! - `integer` and `bits` have integer operations.
//! - `convert` has `cvt`.
//! - `lanes` has results over the lanes of a warp.
//! - `video` has operations on parts of words.
//! - `approximate` has the instructions with an error bound instead of a result.

pub mod approximate;
pub mod bits;
pub mod convert;
pub mod float;
pub mod integer;
pub mod lanes;
pub mod native;
pub mod video;

#[cfg(test)]
mod tests;
