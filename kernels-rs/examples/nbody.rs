//! Gravitational accelerations of n bodies: each block passes tiles of bodies through shared
//! memory.
//!
//! ```text
//! cargo run --release -p kernels-rs --example nbody
//! ```
//!
//! The file shows a closure that loads four numbers at once, and a loop over a tile that
//! `unroll_by` copies. `fast::rsqrt` is one instruction with the error of `math::rsqrt`, whose bits
//! agree everywhere. A body takes 14.75 issue slots on sm_61. `math::rsqrt` would take 51, and
//! NVRTC's code for CUDA C with `rsqrtf` takes 17.25. The tolerance is an upper limit for 1,000
//! bodies: each term has three such errors of 2⁻²²·⁹, and the terms add up to less than 10⁴.

use kernel_dsl::prelude::*;
use runtime::Device;
use std::error::Error;

/// The square of the distance below which the force no longer grows.
#[device]
pub const SOFTENING: f32 = 1e-3;

/// Computes the acceleration of each body from all bodies. A row is x, y, z, and the mass or 0.
#[kernel(
    block = 128,
    grid = bodies.rows().div_ceil(128),
    tolerance(accelerations(relative = 1e-5, absolute = 1e-2))
)]
#[requires(bodies.cols() == 4, accelerations.cols() == 4, accelerations.rows() == bodies.rows())]
#[requires(bodies.aligned(4), accelerations.aligned(4))]
pub fn nbody(bodies: View<f32, 2>, accelerations: ViewMut<f32, 2>) {
    let mut tile = Shared::<[f32; 4], 1>::new([128]);
    let (i, t) = (grid::index(), thread::x());
    let body = |i: usize| if i < bodies.rows() { bodies.load::<4>((i, 0)) } else { [0.0; 4] };
    let own = body(i);
    let mut sum = [0.0f32; 3];
    for first in (0..bodies.rows()).step_by(128) {
        tile[t] = body(first + t);
        block::sync();
        for j in unroll_by::<4>(0..128) {
            let other = tile[j];
            let [x, y, z] = std::array::from_fn(|k| other[k] - own[k]);
            let inverse = fast::rsqrt(x.mul_add(x, y.mul_add(y, z * z)) + SOFTENING);
            let factor = other[3] * inverse * inverse * inverse;
            sum = [factor.mul_add(x, sum[0]), factor.mul_add(y, sum[1]), factor.mul_add(z, sum[2])];
        }
        block::sync();
    }
    if i < bodies.rows() {
        accelerations.store((i, 0), [sum[0], sum[1], sum[2], 0.0]);
    }
}

/// Returns `n` bodies.
pub fn bodies(n: usize) -> Vec<f32> {
    let part = |k: usize| ((k * 7919 + 13) % 1009) as f32 / 1009.0;
    (0..4 * n).map(part).collect()
}

/// Returns the accelerations in f64.
pub fn accelerations(bodies: &[f32]) -> Vec<f64> {
    let bodies: Vec<[f64; 4]> = bodies.chunks(4).map(|b| [0, 1, 2, 3].map(|k| f64::from(b[k]))).collect();
    let of = |own: &[f64; 4]| {
        bodies.iter().fold([0.0; 4], |sum, other| {
            let way = [0, 1, 2].map(|k| other[k] - own[k]);
            let square = way.iter().map(|d| d * d).sum::<f64>() + f64::from(SOFTENING);
            let factor = other[3] / (square * square.sqrt());
            [sum[0] + factor * way[0], sum[1] + factor * way[1], sum[2] + factor * way[2], 0.0]
        })
    };
    bodies.iter().flat_map(of).collect()
}

/// Compares with plain Rust in f64.
pub fn main() -> Result<(), Box<dyn Error>> {
    let device = Device::best()?;
    let n = 300;
    let bodies = bodies(n);
    let (on_bodies, mut result) = (device.upload(&bodies)?, device.zeros::<f32>(4 * n)?);
    nbody::launch(&device, on_bodies.view([n, 4])?, result.view_mut([n, 4])?)?;
    let expected = accelerations(&bodies);
    let result = result.download()?;
    let largest = expected.iter().fold(0.0f64, |most, a| most.max(a.abs()));
    let error = result.iter().zip(&expected).map(|(a, b)| (f64::from(*a) - b).abs()).fold(0.0, f64::max);
    assert!(error < 1e-4 * largest, "{error} of {largest}");
    println!("{n} bodies, largest acceleration {largest:.1}");
    Ok(())
}
