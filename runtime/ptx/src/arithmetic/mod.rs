//! What instructions compute, as functions of bits: this interpreter's own, shared with nothing.
//!
//! `float` has IEEE arithmetic made of integers, in every rounding and format, without the processor's rounding mode.
//! `native` has what the processor's default mode computes as well, and faster; tests hold it against `float`.
//! `integer` and `bits` have integers, `convert` has `cvt`, `video` the parts of words, `approximate` the instructions that only promise a bound.

pub mod approximate;
pub mod bits;
pub mod convert;
pub mod float;
pub mod integer;
pub mod native;
pub mod video;

#[cfg(test)]
mod tests;
