//! Tests of kernels that access memory out of bounds or do not end: the reported errors, the state
//! of the device, and continued work.
//!
//! A device is lost for the whole process, so that these tests run one at a time.

mod kept;
mod lost;
mod profiles;
mod watched;

use kernel_dsl::compiler::lock::Lock;
use kernel_dsl::prelude::*;
use runtime::doctor::{self, DriverFinding};
use std::sync::MutexGuard;

/// Computes y ← x + 1.
#[kernel(block = 128, grid = y.len().div_ceil(128))]
#[requires(x.len() == y.len())]
pub fn next(x: &[u32], y: &mut [u32]) {
    let i = grid::index();
    if i < y.len() {
        y[i] = x[i] + 1;
    }
}

/// Stores 32 GiB beyond the end of the buffer.
#[kernel(block = 32, grid = 1)]
pub fn far_beyond(y: &mut [u64]) {
    y[0xffff_0000 + thread::index()] = 1;
}

/// Runs `rounds` × `rounds` iterations; for a million the kernel practically never ends.
#[kernel(block = 32, grid = 1)]
pub fn iterate(rounds: u32, y: &mut [u32]) {
    let i = thread::index();
    let mut sum = y[i];
    for _ in rolled(0..rounds) {
        for _ in rolled(0..rounds) {
            sum = sum.wrapping_mul(3).wrapping_add(1);
        }
    }
    y[i] = sum;
}

/// Locks the device for one test of this process.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Lock<()> = Lock::new(());
    ALONE.lock()
}

/// Returns whether the driver's device is a GPU. The driver on the CPU is slower, and runs one
/// kernel after the other.
fn is_gpu() -> bool {
    matches!(doctor::examine().driver, DriverFinding::Found { on_cpu: false, .. })
}

/// Runs the test `name` in a child process, if it would leave this process without a device, and
/// returns whether it did.
fn elsewhere(name: &str) -> bool {
    const CHILD: &str = "KERNELS_FAULTS_CHILD";
    if !is_gpu() || std::env::var_os(CHILD).is_some() {
        return false;
    }
    let program = std::env::current_exe().expect("this program");
    let child = std::process::Command::new(program).args(["--ignored", "--exact", name]).env(CHILD, "1").output();
    let output = child.expect("this program can be run again");
    assert!(output.status.success(), "{name}:\n{}", String::from_utf8_lossy(&output.stdout));
    true
}
