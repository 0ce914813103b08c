//! Rounding of numbers to integers.

use kernel_dsl::prelude::*;

/// Four numbers converted to bytes, with their scale.
#[device]
#[derive(Clone, Copy)]
pub struct Quad {
    /// The bytes.
    pub q: [i8; 4],
    /// The scale of the 32 numbers that eight lanes hold.
    pub scale: f32,
}

/// The minimum of the magnitude that determines a block's scale, 2⁻¹²⁰: 127 / 2⁻¹²⁰ is finite, and
/// 2⁻¹²⁰ / 127 is a normal number.
#[device]
const MIN_MAGNITUDE: f32 = 7.523_164e-37;

/// Quantizes four of 32 numbers that eight lanes hold. Let A be their largest magnitude: the scale
/// is A / 127, and q is x·(127 / A), rounded to nearest, ties to even. llama.cpp's Q8_0 differs for
/// ties only. All lanes of the warp call it.
///
/// NaN becomes 0 and does not affect A. An A below 2⁻¹²⁰ counts as 2⁻¹²⁰, so that small numbers
/// have an error of at most 2⁻¹²⁸. For an infinite A the scale is ∞ and each byte is 0.
#[device]
pub fn quantize_quad(x: [f32; 4]) -> Quad {
    let top = x[0].abs().max(x[1].abs()).max(x[2].abs().max(x[3].abs()));
    // The minimum also applies if all numbers are NaN.
    let top = warp::group::<8>().max(top).max(MIN_MAGNITUDE);
    let inverse = 127.0 / top;
    Quad { q: x.map(|x| (x * inverse).round_ties_even() as i8), scale: top / 127.0 }
}

/// Returns range / steps, for numbers that are not negative. If the quotient is subnormal, it is
/// rounded such that `steps` times the result is at least `range`.
#[device]
pub fn unit(range: f32, steps: f32) -> f32 {
    let unit = range / steps;
    // Adds the least subnormal, which gives the next larger number.
    if unit < f32::MIN_POSITIVE && unit * steps < range { unit + 1e-45 } else { unit }
}
