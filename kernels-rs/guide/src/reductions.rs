#![doc = include_str!(concat!(env!("OUT_DIR"), "/05_reductions.md"))]

use kernel_dsl::compiler::hir::Instance;
use kernel_dsl::prelude::*;
use runtime::Device;
use runtime::testing::{Bound, Case, Expected, Input, Random};

/// Sums over a warp in five steps: each lane adds the value of the lane 16, 8, 4, 2 and 1 away.
#[kernel(block = 32, grid = 1)]
#[requires(x.len() == 32)]
pub fn butterfly(x: &mut [u32]) {
    let lane = warp::lane();
    let mut value = x[lane];
    for step in unroll(0..5) {
        value += warp::shuffle_xor(value, 16 >> step);
    }
    x[lane] = value;
}

/// Runs the exchange on the numbers from 0 to 31.
pub fn exchange() -> runtime::Result<()> {
    let device = Device::cpu();
    let mut x = device.upload(&Vec::from_iter(0..32u32))?;
    butterfly::launch(&device, &mut x)?;
    println!("{:?} …", &x.download()?[..6]);
    Ok(())
}

/// Stores in `sums` the sum of each block's part of x, by a tree in shared memory.
#[kernel(block = 256, grid = sums.len())]
#[requires(!sums.is_empty())]
pub fn sum_by_tree(x: &[f32], sums: &mut [f32]) {
    let mut part = Shared::<f32, 1>::new([256]);
    let t = thread::x();
    let mut sum = 0.0;
    for i in grid::stride(x.len()) {
        sum += x[i];
    }
    part[t] = sum;
    block::sync();
    for step in unroll(0..8) {
        let half = 128 >> step;
        if t < half {
            part[t] += part[t + half];
        }
        block::sync();
    }
    if t == 0 {
        sums[block::x()] = part[0];
    }
}

/// Stores in `sums` the sum of each block's part of x, by the built-in reduction.
#[kernel(block = 256, grid = sums.len())]
#[requires(!sums.is_empty())]
pub fn sum_by_warps(x: &[f32], sums: &mut [f32]) {
    let mut sum = 0.0;
    for i in grid::stride(x.len()) {
        sum += x[i];
    }
    let sum = block::sum(sum);
    if thread::x() == 0 {
        sums[block::x()] = sum;
    }
}

/// Adds all elements of x to `total`, in any order.
#[kernel(block = 256, grid = x.len().div_ceil(1024).max(1))]
#[requires(total.len() == 1)]
pub fn sum_atomically(x: &[u32], total: &mut [u32]) {
    let mut sum = 0u32;
    for i in grid::stride(x.len()) {
        sum = sum.wrapping_add(x[i]);
    }
    let sum = block::reduce(sum, |a, b| a.wrapping_add(b));
    if thread::x() == 0 {
        total.fetch_add(0, sum);
    }
}

runtime::register!(sum_by_tree, numbers, sums);
runtime::register!(sum_by_warps, numbers, sums);

fn numbers(_: &Instance, random: &mut Random) -> Vec<Case> {
    let case = |n: usize| {
        let x = Input::slice(&random.values::<f32>(n));
        Case::new(format!("{n} elements"), [x, Input::uninitialized::<f32, 1>([2])])
    };
    [0, 1, 511, 4096].map(case).into()
}

/// Adds in f64. A sum of n numbers in any order has an error of at most n·2⁻²⁴ of the sum of the
/// magnitudes.
fn sums(_: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let x = inputs[0].values();
    let of = |block: usize| x.iter().enumerate().filter(move |(i, _)| i / 256 % 2 == block).map(|(_, x)| *x);
    let sums = [0, 1].map(|block| of(block).sum::<f64>());
    let bounds = [0, 1].map(|block| x.len() as f64 * 2f64.powi(-24) * of(block).map(f64::abs).sum::<f64>());
    vec![Expected::new(1, sums.into(), Bound::Each(bounds.into()))]
}

/// Prints what both sums execute on 4096 elements.
pub fn two_sums() -> runtime::Result<()> {
    count::<sum_by_tree>("sum_by_tree")?;
    count::<sum_by_warps>("sum_by_warps")
}

fn count<K: kernel_dsl::Kernel>(name: &str) -> runtime::Result<()> {
    let none = Instance::default();
    let Some(case) = numbers(&none, &mut Random::new(1)).pop() else { return Ok(()) };
    let Some(profile) = crate::profile::<K>(&none, &case)? else { return Ok(()) };
    let instructions: u64 = profile.lines.iter().map(|line| line.instructions).sum();
    let barriers = K::ARTIFACT.instances[0].ptx.matches("bar.sync").count();
    println!("{name}: {instructions} warp instructions, barriers in the code: {barriers}");
    Ok(())
}
