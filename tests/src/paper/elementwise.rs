//! (9) y = f(x) over any 16-bit float (or f32), with any `#[device]` function; 16 bytes per thread
//! and iteration.
use super::trial::{Trial, is, trials, wide};
use kernel_dsl::compiler::hir::Instance;
use kernel_dsl::prelude::*;
use runtime::testing::{Bound, Expected, Input};

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

/// Maps two inputs of different types.
#[kernel(block = 256, grid = y.len().div_ceil(256), instances(A = f32 | f16, T = f16 | bf16, F = gate), writes(y = once))]
#[requires(a.len() == y.len(), b.len() == y.len())]
pub fn map2<A: Float, T: Float, F: DeviceFn<(f32, f32), Output = f32>>(a: &[A], b: &[T], y: &mut [T]) {
    let i = grid::index();
    if i < y.len() {
        y[i] = T::from_f32(F::call((a[i].to_f32(), b[i].to_f32())));
    }
}

trials!(map<f32, silu, 4>, |instance| {
    fn of<T: Float>() -> Vec<Trial> {
        // The second case takes more than one iteration of the grid.
        let trial = |n: usize| {
            let x: Vec<T> = (0..n).map(|i| T::from_f32((i % 1003) as f32 / 64.0 - 8.0)).collect();
            let y: Vec<f32> = x.iter().map(|x| T::from_f32(silu(x.to_f32())).to_f32()).collect();
            let inputs = [Input::slice(&x), Input::slice(&vec![T::default(); x.len()])];
            Trial::new(format!("{n} elements"), inputs, [Expected::new(1, wide(&y), Bound::Exact)])
        };
        [1003, 30_003].into_iter().map(trial).collect()
    }
    match () {
        () if is::<f16>(instance, 0) => of::<f16>(),
        () if is::<bf16>(instance, 0) => of::<bf16>(),
        () if is::<Float16<4, 7>>(instance, 0) => of::<Float16<4, 7>>(),
        () => of::<f32>(),
    }
});

trials!(map2<f32, f16, gate>, |instance: &Instance| {
    fn of<A: Float, T: Float>() -> Vec<Trial> {
        let a: Vec<A> = (0..600).map(|i| A::from_f32((i % 64) as f32 / 8.0 - 4.0)).collect();
        let b: Vec<T> = (0..600).map(|i| T::from_f32((i % 7) as f32 - 3.0)).collect();
        let both = a.iter().zip(&b);
        let gated: Vec<f32> = both.map(|(a, b)| T::from_f32(gate(a.to_f32(), b.to_f32())).to_f32()).collect();
        let inputs = [Input::slice(&a), Input::slice(&b), Input::slice(&[T::default(); 600])];
        vec![Trial::new("two types", inputs, [Expected::new(2, wide(&gated), Bound::Exact)])]
    }
    match (is::<f16>(instance, 0), is::<f16>(instance, 1)) {
        (true, true) => of::<f16, f16>(),
        (true, false) => of::<f16, bf16>(),
        (false, true) => of::<f32, f16>(),
        (false, false) => of::<f32, bf16>(),
    }
});
