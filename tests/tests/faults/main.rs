//! Kernels that leave their memory or do not end: what is said of them, what becomes of the device, and how work goes on.
//!
//! Where a device is lost, it is lost to all of the process: these tests take turns.

mod kept;
mod lost;
mod profiles;
mod watched;

use kernel_dsl::prelude::*;
use runtime::doctor::{self, DriverFinding};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// y ← x + 1
#[kernel(block = 128, grid = y.len().div_ceil(128))]
#[requires(x.len() == y.len())]
pub fn next(x: &[u32], y: &mut [u32]) {
    let i = grid::index();
    if i < y.len() {
        y[i] = x[i] + 1;
    }
}

/// Wrong: it writes 32 GiB beyond the end.
#[kernel(block = 32, grid = 1)]
pub fn far_beyond(y: &mut [u64]) {
    y[0xffff_0000 + thread::index()] = 1;
}

/// It takes a turn for each of `rounds` × `rounds`, which for a million is as good as never to end.
#[kernel(block = 32, grid = 1)]
pub fn turns(rounds: u32, y: &mut [u32]) {
    let i = thread::index();
    let mut sum = y[i];
    for _ in rolled(0..rounds) {
        for _ in rolled(0..rounds) {
            sum = sum.wrapping_mul(3).wrapping_add(1);
        }
    }
    y[i] = sum;
}

/// Whoever opens the device, alone in this process.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether the driver's device is one: the driver on the CPU takes its time, and runs one kernel after the other.
fn is_gpu() -> bool {
    matches!(doctor::examine().driver, DriverFinding::Found { on_cpu: false, .. })
}

/// Runs the test of that name in a process of its own, and tells so, where the process would have no device any more afterwards.
fn elsewhere(name: &str) -> bool {
    const CHILD: &str = "KERNELS_FAULTS_CHILD";
    if !is_gpu() || std::env::var_os(CHILD).is_some() {
        return false;
    }
    let program = std::env::current_exe().expect("this program");
    let child = std::process::Command::new(program).args(["--ignored", "--exact", name]).env(CHILD, "1").output();
    let output = child.expect("this program again");
    assert!(output.status.success(), "{name}:\n{}", String::from_utf8_lossy(&output.stdout));
    true
}
