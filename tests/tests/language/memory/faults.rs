//! Faults of kernels, reported at their lines.

use kernel_dsl::Kernel;
use kernel_dsl::compiler::hir::{Constant, Instance};
use kernel_dsl::compiler::{Target, compile};
use kernel_dsl::prelude::*;
use runtime::Device;

#[kernel(block = 32, grid = 1)]
fn misaligned(x: &[f32], y: &mut [f32]) {
    let v: [f32; 4] = x.load(thread::x() * 4 + 1);
    y[thread::x()] = v[0];
}

#[kernel(block = 32, grid = 1)]
fn beyond(x: &[f32], y: &mut [f32]) {
    let v: [f32; 4] = x.load(thread::x() * 4);
    y[thread::x()] = v[0];
}

#[kernel(block = 32, grid = 2)]
fn plain_and_atomic(x: &[f32], y: &mut [f32]) {
    y.fetch_add(0, x[0]);
    if thread::x() == 0 {
        y[1] = y[0];
    }
}

#[kernel(block = 64, grid = 1)]
fn atomic_and_plain(x: &[f32], y: &mut [f32]) {
    let mut s = Shared::<u32, 1>::new([1]);
    if thread::x() == 0 {
        s[0] = 0;
    }
    s.fetch_add(0, 1);
    block::sync();
    y[thread::x()] = s[0] as f32 + x[0];
}

#[kernel(block = 32, grid = 1)]
fn nothing_there(x: &[f32], y: &mut [f32]) {
    let s = Shared::<u32, 1>::new([4]);
    y[thread::x()] = s.fetch_add(1, 1) as f32 + x[0];
}

#[kernel(block = 32, grid = 1, instances(N = 4, P = 36))]
fn shaped<const N: usize, const P: usize>(y: &mut [f32]) {
    let tile = Shared::<f32, 2>::with_pitch([32, 32], P);
    tile.fill(0.0);
    block::sync();
    y.store(0, tile.load::<N>((1, 0)));
}

/// Rejects accesses that are invalid for an instance.
#[test]
fn invalid_accesses_are_rejected() {
    let refused = |n, pitch| {
        let program = shaped::<4, 36>::ARTIFACT.program().unwrap();
        let instance = Instance(vec![Constant::Usize(n), Constant::Usize(pitch)]);
        compile(&program, &instance, Target::SM_61).map(drop).map_err(|e| e.to_string())
    };
    assert_eq!(refused(4, 36), Ok(()));
    assert_eq!(refused(2, 34), Ok(()));
    let odd = refused(3, 36).unwrap_err();
    assert!(odd.contains("an access must have 1, 2, 4, 8 or 16 elements, not 3"), "{odd}");
    let pitch = refused(8, 33).unwrap_err();
    assert!(
        pitch.contains("accesses of 4 elements are not aligned in all rows of `tile`, whose pitch is 33 elements"),
        "{pitch}"
    );
}

#[track_caller]
fn report(outcome: Result<(), runtime::Error>, parts: &[&str]) {
    let text = outcome.expect_err("the kernel is faulty").to_string();
    for part in parts {
        assert!(text.contains(part), "no `{part}` in:\n{text}");
    }
}

type Floats = runtime::DeviceBuffer<f32>;

#[test]
fn faults_are_reported() {
    let device = Device::cpu();
    type Launched<'l> = &'l dyn Fn(&Device, &Floats, &mut Floats) -> Result<(), runtime::Error>;
    let run = |launch: Launched, n| {
        let (x, mut y) = (device.upload(&vec![1f32; n]).unwrap(), device.upload(&[0f32; 64]).unwrap());
        launch(&device, &x, &mut y)
    };
    let line = "let v: [f32; 4] = x.load(thread::x() * 4 + 1);";
    report(run(&|d, x, y| misaligned::launch(d, x, y), 256), &["misaligned", line, "not aligned to 16 bytes"]);
    report(run(&|d, x, y| beyond::launch(d, x, y), 126), &["out-of-bounds", "elements 124..128", "126 elements"]);
    report(
        run(&|d, x, y| plain_and_atomic::launch(d, x, y), 1),
        &["global-race", "changes it atomically", "y[1] = y[0];", "y.fetch_add(0, x[0]);"],
    );
    report(
        run(&|d, x, y| atomic_and_plain::launch(d, x, y), 1),
        &["shared-race", "changes, atomically,", "stores it", "s.fetch_add(0, 1);"],
    );
    report(run(&|d, x, y| nothing_there::launch(d, x, y), 1), &["uninitialized-shared", "s.fetch_add(1, 1)"]);
}
