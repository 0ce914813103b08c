//! Shared arrays that a kernel chooses at run time: `swap` of handles, and arrays of handles.

use super::every_target;
use super::values::{check, wide};
use kernel_dsl::prelude::*;
use kernel_dsl::{Kernel, host};
use runtime::interpreter::Check;
use runtime::testing::Input;
use runtime::{Device, Error};

/// Averages each element with its successor, `steps` times, from one array into the other.
#[device]
pub fn swapped_of(x: View<f32, 1>, mut y: ViewMut<f32, 1>, steps: u32) {
    let i = thread::x();
    let mut from = Shared::<f32, 1>::new([64]);
    let mut to = Shared::<f32, 1>::new([64]);
    from[i] = x[i];
    block::sync();
    for _ in 0..steps {
        to[i] = 0.5 * (from[i] + from[(i + 1) % 64]);
        block::sync();
        std::mem::swap(&mut from, &mut to);
    }
    y[i] = from[i];
}

#[kernel(block = 64, grid = 1)]
#[requires(x.len() == 64, y.len() == 64)]
pub fn swapped(x: View<f32, 1>, y: ViewMut<f32, 1>, steps: u32) {
    swapped_of(x, y, steps);
}

/// Computes the same through an array of handles, whose rows are padded.
#[device]
pub fn indexed_of(x: View<f32, 1>, mut y: ViewMut<f32, 1>, steps: u32) {
    let i = thread::x();
    let a = Shared::<f32, 2>::padded([8, 8]);
    let b = Shared::<f32, 2>::padded([8, 8]);
    let buffers = [a, b];
    let mut first = buffers[0];
    first[(i % 8, i / 8)] = x[i];
    block::sync();
    for k in 0..steps as usize {
        let (from, mut to, next) = (buffers[k % 2], [a, b][(k + 1) % 2], (i + 1) % 64);
        to[(i % 8, i / 8)] = 0.5 * (from[(i % 8, i / 8)] + from[(next % 8, next / 8)]);
        block::sync();
    }
    y[i] = buffers[steps as usize % 2][(i % 8, i / 8)];
}

#[kernel(block = 64, grid = 1)]
#[requires(x.len() == 64, y.len() == 64)]
pub fn indexed(x: View<f32, 1>, y: ViewMut<f32, 1>, steps: u32) {
    indexed_of(x, y, steps);
}

/// Rotates three arrays of words, one of which has other elements and stays, by assignments that
/// depend on the thread's warp.
#[device]
pub fn rotated_of(x: View<f32, 1>, mut y: ViewMut<f32, 1>, steps: u32) {
    let i = thread::x();
    let mut arrays = [Shared::<u32, 1>::new([64]), Shared::<u32, 1>::new([64]), Shared::<u32, 1>::new([64])];
    let mut other = Shared::<f32, 1>::new([64]);
    other[i] = x[i];
    for k in unroll(0..3) {
        arrays[k][i] = x[i] as u32 + 100 * k as u32;
    }
    block::sync();
    let [mut a, mut b, mut c] = arrays;
    for k in 0..steps {
        if k % 2 == 0 || i < 32 {
            (a, b, c) = (b, c, a);
        }
    }
    y[i] = (a[63 - i] + 3 * b[i ^ 1] + 7 * c[i]) as f32 + other[i ^ 2];
}

#[kernel(block = 64, grid = 1)]
#[requires(x.len() == 64, y.len() == 64)]
pub fn rotated(x: View<f32, 1>, y: ViewMut<f32, 1>, steps: u32) {
    rotated_of(x, y, steps);
}

fn input() -> Vec<f32> {
    (0..64).map(|i| (i * 37 % 64) as f32).collect()
}

fn averaged(steps: u32) -> Vec<f32> {
    (0..steps).fold(input(), |v, _| (0..64).map(|i| 0.5 * (v[i] + v[(i + 1) % 64])).collect())
}

fn rotated_reference(steps: u32) -> Vec<f32> {
    let x = input();
    let of = |i: usize| {
        let rotations = (0..steps).filter(|k| k % 2 == 0 || i < 32).count();
        let row = |k: usize, i: usize| x[i] + 100.0 * ((k + rotations) % 3) as f32;
        row(0, 63 - i) + 3.0 * row(1, i ^ 1) + 7.0 * row(2, i) + x[i ^ 2]
    };
    (0..64).map(of).collect()
}

fn switches_agree(gpu: Option<&Device>) {
    type Body = fn(View<f32, 1>, ViewMut<f32, 1>, u32);
    type Reference = fn(u32) -> Vec<f32>;
    let kernels: [(_, Body, Reference); 3] = [
        (swapped::ARTIFACT, swapped_of, averaged),
        (indexed::ARTIFACT, indexed_of, averaged),
        (rotated::ARTIFACT, rotated_of, rotated_reference),
    ];
    for (artifact, body, expected) in kernels {
        for steps in [0, 1, 2, 7] {
            let (x, expected) = (input(), expected(steps));
            let inputs = vec![Input::view(&x, [64]), Input::view(&[0f32; 64], [64]), Input::scalar(steps)];
            check(artifact, &[], gpu, inputs, vec![(1, wide(&expected))]);
            let mut y = vec![0f32; 64];
            // SAFETY: each thread writes its own element, and the vectors outlive the run.
            unsafe {
                let (x, y) = (View::host(&x, [64]), ViewMut::host(&mut y, [64]));
                host::run([1, 1, 1], [64, 1, 1], || body(x, y, steps));
            }
            assert_eq!(y, expected, "{}", artifact.name);
        }
        every_target::assemble(artifact);
    }
}

agreements! {
    shared_arrays_switch gpu_shared_arrays_switch switches_agree
}

/// Violates a rule of shared memory through chosen arrays: BUG is 1 for a missing barrier, 2 for an
/// array that is not written, and 3 for an index past the last array.
#[kernel(block = 64, grid = 1, instances(BUG = 0 | 1 | 2 | 3))]
#[requires(x.len() == 64, y.len() == 64)]
pub fn misused<const BUG: usize>(x: &[f32], y: &mut [f32], rotations: u32) {
    let i = thread::x();
    let mut a = Shared::<f32, 1>::new([64]);
    let mut b = Shared::<f32, 1>::new([64]);
    let mut both = [Shared::<f32, 1>::new([64]), Shared::<f32, 1>::new([64])];
    (a[i], both[0][i], both[1][i]) = (x[i], x[i], x[i]);
    if BUG != 2 {
        b[i] = -x[i];
    }
    if BUG != 1 {
        block::sync();
    }
    for _ in 0..rotations {
        std::mem::swap(&mut a, &mut b);
    }
    let k = if BUG == 3 { rotations as usize + 1 } else { 0 };
    y[i] = a[63 - i] + both[k][63 - i];
}

#[test]
fn the_oracle_checks_arrays_that_switch() {
    let device = Device::cpu();
    let x = device.upload(&input()).unwrap();
    let mut y = device.zeros::<f32>(64).unwrap();
    let checks = [None, Some(Check::SharedRace), Some(Check::UninitializedShared), Some(Check::OutOfBounds)];
    let results = [
        misused::<0>::launch(&device, &x, &mut y, 1),
        misused::<1>::launch(&device, &x, &mut y, 1),
        misused::<2>::launch(&device, &x, &mut y, 1),
        misused::<3>::launch(&device, &x, &mut y, 1),
    ];
    for (result, expected) in results.into_iter().zip(checks) {
        match (result, expected) {
            (Ok(()), None) => {}
            (Err(Error::Violation(report)), Some(expected)) => {
                assert!(report.findings.iter().any(|finding| finding.check == expected), "{report}");
            }
            (result, expected) => panic!("{result:?}, expected {expected:?}"),
        }
    }
}
