//! Specs of the kernels of kernels-rs: for each kernel, test cases at the edges of its tiles and a
//! reference in plain Rust.
//!
//! A program that links this crate (`use kernels_rs_specs as _;`) has them in
//! [`runtime::testing::kernel_specs`], from which `kernels check` takes them.
//!
//! References compute in `f64`. The error bounds of a reference are derived next to it, from
//! u = 2⁻²⁴, half the distance from 1 to the next `f32`. An operation rounded to nearest has an
//! error factor 1 + δ with |δ| ≤ u, and an error of 2⁻¹⁵⁰ if the result is subnormal. The rounding
//! errors of `f64` are 2⁻²⁹ times as large.

mod attention;
mod backward;
mod blocks;
mod cached;
mod convolution;
mod decode;
mod elementwise;
mod gemm;
mod gradient;
mod group;
mod histogram;
mod loss;
mod normed;
mod norms;
mod nucleus;
mod optimizer;
mod permute;
mod pieces;
mod products;
mod quant;
mod quant_affine;
mod quant_formats;
mod quant_routing;
mod reduce;
mod rotary;
mod rows;
mod rowwise;
mod sampling;
mod scan;
mod stored;

use kernel_dsl::compiler::hir::{Constant, Instance};
use runtime::testing::{Draw, Input, Random};

/// The unit roundoff of `f32`.
const U: f64 = 1.0 / (1u32 << 24) as f64;

/// The least subnormal `f32`, 2⁻¹⁴⁹.
const TINY: f64 = f32::from_bits(1) as f64;

/// Returns γₙ = n·u / (1 − n·u). A product of n factors 1 + δ or their inverses, |δ| ≤ u, is 1 + θ
/// with |θ| ≤ γₙ. The source is Higham, *Accuracy and Stability of Numerical Algorithms*, 2nd ed.,
/// lemma 3.1.
fn gamma(n: usize) -> f64 {
    let nu = n as f64 * U;
    nu / (1.0 - nu)
}

/// Returns an infinity if `f32` rounds the value to one, and otherwise the value.
fn overflowed(value: f64) -> f64 {
    let rounded = value as f32;
    if rounded.is_infinite() { f64::from(rounded) } else { value }
}

/// Returns the instance's first constant.
fn size(instance: &Instance) -> usize {
    match instance.0.first() {
        Some(Constant::Usize(n)) => *n as usize,
        _ => 1,
    }
}

/// Returns a matrix of ordinary values whose rows are `gap` elements apart, with elements beyond
/// the last row.
fn matrix(random: &mut Random, [rows, cols]: [usize; 2], gap: usize) -> Input {
    with_gaps::<f32>(&random.values(rows * (cols + gap) + gap), [rows, cols], gap)
}

/// Returns `data` as a matrix whose rows are `gap` elements apart.
fn with_gaps<T: Draw>(data: &[T], [rows, cols]: [usize; 2], gap: usize) -> Input {
    Input::strided(data, [rows, cols], [(cols + gap).max(1), 1])
}
