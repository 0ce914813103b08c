//! A kernel that is generic over its element type and over a function: y = f(x).
//!
//! ```text
//! cargo run --release -p kernels-rs --example elementwise
//! ```
//!
//! Each thread moves 16 bytes an iteration, whatever the type: `f32`, `f16`, `bf16`, or a format of
//! the user's own, here 4 bits of exponent and 7 of mantissa. The function is a type parameter, is
//! inlined, and is plain Rust, so that the host can call it as well.

use kernel_dsl::prelude::*;
use runtime::Device;
use std::error::Error;

/// Computes x · sigmoid(x).
#[device(value)]
pub fn silu(x: f32) -> f32 {
    x / (1.0 + math::exp(-x))
}

/// Computes silu(a) · b.
#[device(value)]
pub fn gate(a: f32, b: f32) -> f32 {
    silu(a) * b
}

/// Computes y[i] = f(x[i]).
#[kernel(
    block = 256, grid = device::waves(8, y.len().div_ceil(N)),
    instances(T = f32 | f16 | bf16 | Float16<4, 7>, F = silu),
    derived(N = 16 / size_of::<T>()),
    writes(y = once),
)]
#[requires(x.len() == y.len(), x.aligned(N), y.aligned(N))]
pub fn map<T: Float, F: DeviceFn<(f32,), Output = f32>, const N: usize>(x: &[T], y: &mut [T]) {
    let whole = y.len() / N;
    let first = grid::index();
    for i in (first..whole).step_by(grid::threads()) {
        y.store(N * i, x.load::<N>(N * i).map(|v| T::from_f32(F::call((v.to_f32(),)))));
    }
    let tail = N * whole + first;
    if tail < y.len() {
        y[tail] = T::from_f32(F::call((x[tail].to_f32(),)));
    }
}

/// Computes y[i] = f(a[i], b[i]), for inputs of different types.
#[kernel(block = 256, grid = y.len().div_ceil(256), instances(A = f32 | f16, T = f16 | bf16, F = gate), writes(y = once))]
#[requires(a.len() == y.len(), b.len() == y.len())]
pub fn map2<A: Float, T: Float, F: DeviceFn<(f32, f32), Output = f32>>(a: &[A], b: &[T], y: &mut [T]) {
    let i = grid::index();
    if i < y.len() {
        y[i] = T::from_f32(F::call((a[i].to_f32(), b[i].to_f32())));
    }
}

/// Maps and gates 1000 elements, and compares with the same functions on the host.
pub fn main() -> Result<(), Box<dyn Error>> {
    let n = 1000;
    let x: Vec<f32> = (0..n).map(|i| (i % 64) as f32 / 8.0 - 4.0).collect();
    let halves: Vec<f16> = x.iter().map(|x| f16::from_f32(*x)).collect();
    let device = Device::best()?;

    let on_x = device.upload(&x)?;
    let mut y = device.zeros::<f32>(n)?;
    map::<f32, silu, 4>::launch(&device, &on_x, &mut y)?;
    let y = y.download()?;
    assert!(y.iter().zip(&x).all(|(y, x)| y.to_bits() == silu(*x).to_bits()));
    println!("silu of f32: {:.4?} …, bit for bit as on the host", &y[..4]);

    let on_halves = device.upload(&halves)?;
    let mut y = device.zeros::<f16>(n)?;
    map2::<f32, f16, gate>::launch(&device, &on_x, &on_halves, &mut y)?;
    let y = y.download()?;
    let expected = |i: usize| f16::from_f32(gate(x[i], halves[i].to_f32()));
    assert!((0..n).all(|i| y[i].to_bits() == expected(i).to_bits()));
    println!("silu(f32) · f16: {:.4?} …", &y[..4]);
    Ok(())
}
