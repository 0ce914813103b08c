//! How numbers become integers.

use kernel_dsl::prelude::*;

/// Four numbers as bytes, and what a unit stands for.
#[device]
#[derive(Clone, Copy)]
pub struct Quad {
    /// The bytes.
    pub q: [i8; 4],
    /// Of the 32 numbers that eight lanes hold.
    pub scale: f32,
}

/// Four of 32 numbers that eight lanes hold, by the largest magnitude among them, A: the scale is A / 127, and q is x·(127 / A), to the nearest, ties
/// to even, as llama.cpp's Q8_0 but for ties. Of zeros the scale is 0; NaN becomes 0. Below A = 127 / `f32::MAX` the quotient
/// overflows, and all but zeros become ±127. All lanes of the warp call it.
#[device]
pub fn quantise_quad(x: [f32; 4]) -> Quad {
    let top = x[0].abs().max(x[1].abs()).max(x[2].abs().max(x[3].abs()));
    // Of nothing but NaN, 0.
    let top = warp::group::<8>().max(top).max(0.0);
    // Of zeros ∞: 0 · ∞ is NaN, which becomes 0.
    let inverse = 127.0 / top;
    Quad { q: x.map(|x| (x * inverse).round_ties_even() as i8), scale: top / 127.0 }
}
