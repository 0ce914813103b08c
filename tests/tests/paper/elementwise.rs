//! (9) y = f(x) over any 16-bit float (or f32), any `#[device]` function; 16 bytes a thread and step.
//!
use kernel_dsl::prelude::*;

#[device(value)]
pub fn silu(x: f32) -> f32 {
    x / (1.0 + math::exp(-x))
}

#[device(value)]
pub fn gate(a: f32, b: f32) -> f32 {
    silu(a) * b
}

#[kernel(
    block = 256, grid = device::waves(8, y.len().div_ceil(N)),
    instances(T = f32 | f16 | bf16, F = silu),
    derived(N = 16 / size_of::<T>()),
)]
#[requires(x.len() == y.len(), x.aligned(N), y.aligned(N))]
pub fn map<T: Float, F: DeviceFn<(f32,), Output = f32>, const N: usize>(x: &[T], y: &mut [T]) {
    let whole = y.len() / N;
    for i in (grid::index()..whole).step_by(grid::threads()) {
        y.store(N * i, x.load::<N>(N * i).map(|v| T::from_f32(F::call((v.to_f32(),)))));
    }
    let tail = N * whole + grid::index();
    if tail < y.len() {
        y[tail] = T::from_f32(F::call((x[tail].to_f32(),)));
    }
}

/// Two inputs of different types.
#[kernel(block = 256, grid = y.len().div_ceil(256), instances(A = f32 | f16, T = f16 | bf16, F = gate))]
#[requires(a.len() == y.len(), b.len() == y.len())]
pub fn map2<A: Float, T: Float, F: DeviceFn<(f32, f32), Output = f32>>(a: &[A], b: &[T], y: &mut [T]) {
    let i = grid::index();
    if i < y.len() {
        y[i] = T::from_f32(F::call((a[i].to_f32(), b[i].to_f32())));
    }
}
