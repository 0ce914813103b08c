//! Tests of `#[kernel(contract)]`: a sum that contains a product is rounded once, on every
//! executor, and other sums are not affected.

use super::support::{agree, assemble, checker};
use kernel_dsl::prelude::*;
use runtime::testing::{Bound, Checker, Expected, Input, Random};

/// Computes a·b + c with two roundings, also if the calling kernel contracts.
#[device]
fn apart(a: f32, b: f32, c: f32) -> f32 {
    a * b + c
}

#[kernel(block = 64, grid = x.len().div_ceil(64), contract)]
#[requires(y.len() == x.len(), z.len() == x.len(), out.len() == 10 * x.len())]
fn contracted(x: &[f32], y: &[f32], z: &[f32], out: &mut [f32]) {
    let i = grid::index();
    if i < x.len() {
        let (a, b, c) = (x[i], y[i], z[i]);
        let named = a * b;
        let closure = |c: f32| c + a * b;
        let mut plus = c;
        plus += a * b;
        let mut minus = c;
        minus -= a * b;
        let all = [
            a * b + c,
            a * b - c,
            c + a * b,
            c - a * b,
            a * b + b * c,
            plus,
            minus,
            named + c,
            closure(c),
            apart(a, b, c),
        ];
        for k in unroll(0..10) {
            out[10 * i + k] = all[k];
        }
    }
}

fn expected(a: f32, b: f32, c: f32) -> [f32; 10] {
    [
        a.mul_add(b, c),
        a.mul_add(b, -c),
        a.mul_add(b, c),
        (-a).mul_add(b, c),
        a.mul_add(b, b * c),
        a.mul_add(b, c),
        (-a).mul_add(b, c),
        a * b + c,
        a.mul_add(b, c),
        a * b + c,
    ]
}

fn test(checker: &Checker) {
    let mut random = Random::new(9);
    let mut x = random.values::<f32>(200);
    let mut y = random.values::<f32>(200);
    let mut z = random.values::<f32>(200);
    // Operands for which the rounding of the product is the whole result.
    for k in 0..50 {
        let (a, b) = (1.0 + k as f32 * 1.1920929e-7, 1.0 - k as f32 * 5.9604645e-8);
        (x[k], y[k], z[k]) = (a, b, -(a * b));
    }
    let wanted: Vec<f64> = (0..200).flat_map(|i| expected(x[i], y[i], z[i])).map(f64::from).collect();
    assert!((1..50).any(|i| expected(x[i], y[i], z[i])[0] != expected(x[i], y[i], z[i])[7]));
    let out = vec![0f32; 2000];
    let inputs = vec![Input::slice(&x), Input::slice(&y), Input::slice(&z), Input::slice(&out)];
    agree::<contracted>(checker, "contracted", inputs, &[Expected::new(3, wanted, Bound::Exact)]);
}

#[test]
fn product_in_a_sum_is_rounded_once() {
    test(&checker(false));
    assemble::<contracted>();
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_product_in_a_sum_is_rounded_once() {
    test(&checker(true));
}

/// Computes the same sums without the attribute.
#[kernel(block = 32, grid = 1)]
#[requires(y.len() == 32, x.len() == 32)]
fn plain(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    y[i] = x[i] * x[i] + y[i];
}

#[test]
fn default_does_not_contract() {
    assert!(!plain::PTX.contains("fma"));
}
