//! (9) y = f(x) over any 16-bit float (or f32), any `#[device]` function; 16 bytes a thread and step.
//!
use super::support::{agree, assemble};
use super::wide;
use kernel_dsl::prelude::*;
use runtime::testing::{Bound, Checker, Expected, Input};

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

pub fn test(checker: &Checker) {
    let n = 1003;
    let x: Vec<f32> = (0..n).map(|i| i as f32 / 64.0 - 8.0).collect();
    let y: Vec<f32> = x.iter().map(|x| silu(*x)).collect();
    let inputs = vec![Input::slice(&x), Input::slice(&vec![0f32; n])];
    agree::<map<f32, silu, 4>>(checker, "f32", inputs, &[Expected::new(1, wide(&y), Bound::Exact)]);

    let halves: Vec<f16> = x.iter().map(|x| f16::from_f32(*x)).collect();
    let y: Vec<f32> = halves.iter().map(|x| f16::from_f32(silu(x.to_f32())).to_f32()).collect();
    let inputs = vec![Input::slice(&halves), Input::slice(&vec![f16::ZERO; n])];
    agree::<map<f16, silu, 8>>(checker, "f16", inputs, &[Expected::new(1, wide(&y), Bound::Exact)]);
    assemble::<map<f32, silu, 4>>();

    type Own = Float16<4, 7>;
    let own: Vec<Own> = x.iter().map(|x| Own::from_f32(*x)).collect();
    let y: Vec<f32> = own.iter().map(|x| Own::from_f32(silu(x.to_f32())).to_f32()).collect();
    let inputs = vec![Input::slice(&own), Input::slice(&vec![Own::default(); n])];
    agree::<map<Own, silu, 8>>(checker, "Float16<4, 7>", inputs, &[Expected::new(1, wide(&y), Bound::Exact)]);
    assemble::<map<Own, silu, 8>>();

    let (a, b) = (vec![1.0f32; 70], vec![f16::from_f32(2.0); 70]);
    let gated = f16::from_f32(gate(1.0, 2.0)).to_f32();
    let inputs = vec![Input::slice(&a), Input::slice(&b), Input::slice(&[f16::ZERO; 70])];
    let expected = [Expected::new(2, wide(&[gated; 70]), Bound::Exact)];
    agree::<map2<f32, f16, gate>>(checker, "two types", inputs, &expected);
    assemble::<map2<f32, f16, gate>>();
}
