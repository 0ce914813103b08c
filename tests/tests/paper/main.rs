//! Kernels that experts would write, in the language as it is: each on every executor, against plain Rust.
//!
//! Where inputs are small whole numbers, sums are exact in any order, so the comparison is too.

mod attention;
mod bitonic;
mod conv3d;
mod decode;
mod elementwise;
#[path = "../every_target/mod.rs"]
mod every_target;
mod histogram;
mod q8_gemm;
mod scan;
mod sgemm;
#[path = "../language/support.rs"]
mod support;
mod topk;

use kernel_dsl::prelude::*;
use runtime::testing::Checker;
use support::checker;

/// Small whole numbers, the same ones each time.
fn whole(n: usize, seed: u32) -> Vec<f32> {
    let mut state = seed | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        (state % 17) as f32 - 8.0
    };
    (0..n).map(|_| next()).collect()
}

/// The logarithm to base 2.
#[device]
fn log2(x: f32) -> f32 {
    math::ln(x) * std::f32::consts::LOG2_E
}

fn wide(values: &[f32]) -> Vec<f64> {
    values.iter().map(|x| f64::from(*x)).collect()
}

const ALL: [fn(&Checker); 10] = [
    sgemm::test,
    q8_gemm::test,
    attention::test,
    decode::test,
    scan::test,
    histogram::test,
    bitonic::test,
    conv3d::test,
    elementwise::test,
    topk::test,
];

#[test]
fn sgemm() {
    sgemm::test(&checker(false));
}

#[test]
fn q8_gemm() {
    q8_gemm::test(&checker(false));
}

#[test]
fn attention() {
    attention::test(&checker(false));
}

#[test]
fn decode() {
    decode::test(&checker(false));
}

#[test]
fn scan() {
    scan::test(&checker(false));
}

#[test]
fn histogram() {
    histogram::test(&checker(false));
}

#[test]
fn bitonic() {
    bitonic::test(&checker(false));
}

#[test]
fn conv3d() {
    conv3d::test(&checker(false));
}

#[test]
fn elementwise() {
    elementwise::test(&checker(false));
}

#[test]
fn topk() {
    topk::test(&checker(false));
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_paper() {
    let checker = checker(true);
    ALL.iter().for_each(|test| test(&checker));
}
