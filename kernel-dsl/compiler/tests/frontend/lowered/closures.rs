//! Closures, and functions in place of closures, inlined at their calls.

use kernel_dsl::prelude::*;

#[device]
fn apply(f: impl Fn(f32) -> f32, x: f32) -> f32 {
    f(f(x))
}

#[device]
fn each<const N: usize>(mut f: impl FnMut(usize, f32), v: [f32; N]) {
    for i in unroll(0..N) {
        f(i, v[i]);
    }
}

#[device]
fn twice(f: impl Fn(f32) -> f32 + Copy, x: f32) -> f32 {
    apply(f, x) + apply(|v| f(v) + 1.0, x)
}

#[device]
fn half(x: f32) -> f32 {
    if x > 8.0 {
        return x;
    }
    x * 0.5
}

#[device]
fn scaled<const BY: usize>(x: f32) -> f32 {
    x * BY as f32
}

#[device]
fn small(x: f32) -> Option<f32> {
    if x < 8.0 { Some(x) } else { None }
}

witnessed! {
    #[kernel(block = 32, grid = 1)]
    fn closures(n: usize, x: &[f32], y: &mut [f32]) {
        let i = thread::x();
        let bias = n as f32;
        let f = |v: f32, k| v * bias + x[(i + k) % 32];
        let n = 100.0;
        let g = |(a, b): (f32, f32)| -> f32 {
            if a > b {
                return a - b;
            }
            f(a, 1) + n
        };
        let mut count = 0;
        let mut bump = |by: u32| {
            count += by;
            count
        };
        let first = bump(1);
        let second = bump(first + 2);
        let mut at = |k: usize, v: f32| y[k] = v;
        at(i, f(1.0, 2) + g((x[i], 4.0)) + second as f32);
        y[i] += count as f32;
    }

    #[kernel(block = 32, grid = 1)]
    fn closures_as_arguments(n: usize, x: &[f32], y: &mut [f32]) {
        let i = thread::x();
        let by = n as f32;
        let add = |v| v + by;
        let mut sum = 0.0;
        let mut largest = 0;
        each(
            |k, v| {
                sum += v;
                if v > 6.0 {
                    largest = k;
                }
            },
            [x[i], x[31 - i], 2.0],
        );
        y[i] = apply(add, x[i]) + apply(|v| v * v, 2.0) + twice(add, 0.5) + sum + largest as f32;
    }

    #[kernel(block = 32, grid = 1)]
    fn functions_as_arguments(n: usize, x: &[f32], y: &mut [f32]) {
        let i = thread::x();
        let a = apply(half, x[i]) + twice(scaled::<3>, n as f32);
        let b = x.get(i * n).copied().and_then(small).map(half).map_or(1.0, scaled::<2>);
        let half = |v: f32| v - 1.0;
        y[i] = a + 1000.0 * b + apply(half, 1.0);
    }

    #[kernel(block = 32, grid = 1)]
    fn closures_in_loops(n: usize, x: &[f32], y: &mut [f32]) {
        let i = thread::x();
        let mut sum = 0.0;
        'outer: for k in 0..n {
            let take = |j: usize| {
                for m in 0..j {
                    if x[(m + i) % 32] > 12.0 {
                        return None;
                    }
                }
                Some(x[(k + j) % 32])
            };
            let mut j = 0;
            while let Some(v) = take(j) {
                sum += v;
                j += 1;
                if j > k {
                    continue 'outer;
                }
            }
            sum -= 1.0;
        }
        y[i] = sum;
    }
}
