//! Gravitational accelerations of n bodies: each block passes tiles of bodies through shared
//! memory.
//!
//! ```text
//! cargo run --release -p kernels-rs --example nbody
//! ```
//!
//! The file shows an operator of a device struct, and a loop over a tile that `unroll_by` copies.
//! `fast::rsqrt` is one instruction with the error of `math::rsqrt`, whose bits agree
//! everywhere. A body takes 14.75 issue slots on sm_61. `math::rsqrt` would take 51, and
//! NVRTC's code for CUDA C with `rsqrtf` takes 17.75. The tolerance is an upper limit for 1,000
//! bodies: each term has three such errors of 2⁻²²·⁹, and the terms add up to less than 10⁴.

use kernel_dsl::prelude::*;
use runtime::Device;
use std::error::Error;

/// Vectors of three parts.
#[device]
pub mod vector {
    use kernel_dsl::prelude::*;
    use std::ops::Sub;

    /// A vector.
    #[derive(Clone, Copy, DeviceCopy)]
    pub struct Vector {
        /// The first part.
        pub x: f32,
        /// The second part.
        pub y: f32,
        /// The third part.
        pub z: f32,
    }

    impl Sub for Vector {
        type Output = Vector;
        fn sub(self, other: Vector) -> Vector {
            Vector { x: self.x - other.x, y: self.y - other.y, z: self.z - other.z }
        }
    }

    impl Vector {
        /// Returns self + factor · other.
        pub fn plus(self, factor: f32, other: Vector) -> Vector {
            Vector {
                x: factor.mul_add(other.x, self.x),
                y: factor.mul_add(other.y, self.y),
                z: factor.mul_add(other.z, self.z),
            }
        }
        /// Returns the scalar product.
        pub fn dot(self, other: Vector) -> f32 {
            self.x.mul_add(other.x, self.y.mul_add(other.y, self.z * other.z))
        }
    }
}
use vector::Vector;

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
    let mut tile = Shared::<(Vector, f32), 1>::new([128]);
    let (i, t) = (grid::index(), thread::x());
    let body = |i: usize| {
        let [x, y, z, mass] = if i < bodies.rows() { bodies.load::<4>((i, 0)) } else { [0.0; 4] };
        (Vector { x, y, z }, mass)
    };
    let own = body(i).0;
    let mut sum = Vector { x: 0.0, y: 0.0, z: 0.0 };
    for first in (0..bodies.rows()).step_by(128) {
        tile[t] = body(first + t);
        block::sync();
        for j in unroll_by::<4>(0..128) {
            let (at, mass) = tile[j];
            let way = at - own;
            let inverse = fast::rsqrt(way.dot(way) + SOFTENING);
            sum = sum.plus(mass * inverse * inverse * inverse, way);
        }
        block::sync();
    }
    if i < bodies.rows() {
        accelerations.store((i, 0), [sum.x, sum.y, sum.z, 0.0]);
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
