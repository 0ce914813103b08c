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

/// The least magnitude by which a block is quantized, 2⁻¹²⁰: 127 over it is finite, and it over 127
/// normal.
#[device]
const MIN_MAGNITUDE: f32 = 7.523_164e-37;

/// Returns four of 32 numbers that eight lanes hold as bytes, by the largest magnitude among them,
/// A: the scale is A / 127, and q is x·(127 / A), to the nearest, ties to even, as llama.cpp's Q8_0
/// but for ties. All lanes of the warp call it.
///
/// NaN becomes 0, and counts for nothing in A. An A below 2⁻¹²⁰ counts as 2⁻¹²⁰: numbers that small
/// are off by 2⁻¹²⁸ at most. Of an infinite A the scale is ∞ and each byte 0.
#[device]
pub fn quantize_quad(x: [f32; 4]) -> Quad {
    let top = x[0].abs().max(x[1].abs()).max(x[2].abs().max(x[3].abs()));
    // Of nothing but NaN, too.
    let top = warp::group::<8>().max(top).max(MIN_MAGNITUDE);
    let inverse = 127.0 / top;
    Quad { q: x.map(|x| (x * inverse).round_ties_even() as i8), scale: top / 127.0 }
}

/// Returns the unit of which `steps` make `range`, neither negative: at least so much, where the
/// unit is subnormal, that they do not make less.
#[device]
pub fn unit(range: f32, steps: f32) -> f32 {
    let unit = range / steps;
    // 2⁻¹⁴⁹ more.
    if unit < f32::MIN_POSITIVE && unit * steps < range { unit + 1e-45 } else { unit }
}
