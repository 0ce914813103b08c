//! Device functions: inlined, with the caller's places for `&mut` parameters.

use kernel_dsl::prelude::*;

#[device]
fn clamp_to(x: f32, most: f32) -> f32 {
    if x > most {
        return most;
    }
    let y = -most;
    if x < y { y } else { x }
}

#[device]
fn search(from: usize, x: &[f32]) -> (usize, bool) {
    for k in from..x.len() {
        if x[k] > 11.0 {
            return (k, true);
        }
    }
    (0, false)
}

#[device]
fn bump(value: &mut f32, by: f32) {
    *value += by;
    if *value > 10.0 {
        return;
    }
    *value *= 2.0;
}

#[device]
fn twice(value: &mut f32) {
    bump(value, 1.0);
    bump(&mut *value, 2.0);
}

#[device]
fn rotate(v: &mut [f32; 3], n: usize) -> f32 {
    let first = v[0];
    v[0] = v[1];
    v[1] = v[2];
    v[2] = first;
    if n > 5 {
        return v[0];
    }
    v[1]
}

#[device]
fn sum<const N: usize>(v: [f32; N]) -> f32 {
    let mut total = 0.0;
    for i in unroll(0..N) {
        total += v[i];
    }
    total
}

#[device]
fn consumed(mut v: [f32; 2]) -> [f32; 2] {
    v[0] += 1.0;
    v
}

#[device]
fn choose<const LARGEST: bool>(a: f32, b: f32) -> f32 {
    if LARGEST { a.max(b) } else { a.min(b) }
}

#[device]
fn read(pair: &(f32, usize)) -> f32 {
    pair.0 + pair.1 as f32
}

#[device]
fn fill(y: &mut [f32], at: usize, value: f32) {
    y[at] = value;
}

witnessed! {
    #[kernel(block = 32, grid = 1)]
    fn early_returns(n: usize, x: &[f32], y: &mut [f32]) {
        let i = thread::x();
        let (k, found) = search(i, x);
        let v = clamp_to(x[i], n as f32) + clamp_to(-x[i], 3.0);
        y[i] = if found { k as f32 } else { v };
    }

    #[kernel(block = 32, grid = 1)]
    fn mutable_parameters(n: usize, x: &[f32], y: &mut [f32]) {
        let i = thread::x();
        let mut v = [x[i], 1.0, 2.0];
        let mut t = (0.5, n);
        bump(&mut v[1], 3.0);
        bump(&mut t.0, x[i]);
        twice(&mut v[2]);
        let r = rotate(&mut v, t.1);
        bump(&mut y[i], r);
        y[i] += v[0] + 10.0 * v[1] + 100.0 * v[2] + t.0;
    }

    #[kernel(block = 32, grid = 1)]
    fn values_by_parameter(n: usize, x: &[f32], y: &mut [f32]) {
        let i = thread::x();
        let v = [x[i], 1.0];
        let mut w = consumed(v);
        let u = consumed(w);
        w[1] = 7.0;
        let t = (v[0], n);
        fill(y, i, sum(v) + 10.0 * sum(w) + 100.0 * sum::<2>(u) + sum([1.0; 5]) + read(&t));
    }

    #[kernel(block = 32, grid = 1)]
    fn generic_functions(n: usize, x: &[f32], y: &mut [f32]) {
        let i = thread::x();
        y[i] = choose::<true>(x[i], n as f32) + choose::<false>(x[i], 4.0);
    }

    #[kernel(block = 32, grid = 1)]
    fn references(n: usize, x: &[f32], y: &mut [f32]) {
        let i = thread::x();
        let (mut a, b) = (x[i], n as f32);
        let r = &mut a;
        *r += b;
        let s = &b;
        y[i] = a + *s;
    }
}

#[kernel(block = N, grid = 1, instances(N = 32, FLIP = false | true))]
fn generic<const N: usize, const FLIP: bool>(x: &[f32], y: &mut [f32]) {
    const {
        assert!(N.div_ceil(32) * 32 == N, "whole warps");
        assert!(N <= 1024 || FLIP);
    }
    let i = thread::x();
    let from = if FLIP { N - 1 - i } else { i };
    let mut v = [0.0; N];
    v[N / 2] = x[from];
    y[i] = choose::<FLIP>(v[N / 2], v[0]) + (FLIP as usize + N) as f32;
}

/// Reads `a`, which may be the written slice, without the read-only path.
#[kernel(block = 32, grid = 1)]
fn either(c: bool, x: &[f32], y: &mut [f32]) {
    let a: &[f32] = if c { x } else { y };
    let sum = a[0] + x[0];
    y[thread::x()] = sum;
}
