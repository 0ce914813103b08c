//! Tests of operations of lanes and threads of which some are missing, which are reported at their
//! lines, and of correct ones.

use super::support::{agree, checker};
use kernel_dsl::Kernel;
use kernel_dsl::compiler::hir::Instance;
use kernel_dsl::prelude::*;
use runtime::testing::{Bound, Case, Expected, Input, PreparedInstance};
use runtime::{Device, DeviceBuffer};

/// Lets some warps return before a barrier. The branch depends on memory, so that only the oracle
/// can report it.
#[kernel(block = 96, grid = 1)]
fn barrier_after_a_return(x: &[f32], y: &mut [f32]) {
    if x[warp::index()] > 1.0 {
        return;
    }
    let v = warp::reduce(x[0], f32::max);
    block::sync();
    y[thread::x()] = v;
}

#[kernel(block = 96, grid = 1)]
fn collective_after_a_return(x: &[f32], y: &mut [f32]) {
    if x[warp::index()] > 1.0 {
        return;
    }
    let (before, total) = block::scan(x[0], 0.0, |a, b| a + b);
    y[thread::x()] = before + total;
}

#[kernel(block = 32, grid = 1)]
fn half_a_warp(x: &[f32], y: &mut [f32]) {
    if x[warp::lane() / 16] > 1.0 {
        y[warp::lane()] = warp::scan(x[0], |a, b| a + b);
    }
}

#[kernel(block = 32, grid = 1)]
fn overflow_in_a_closure(x: &[f32], y: &mut [f32]) {
    let sum = warp::reduce(thread::x() + (1 << 28), |a, b| a + b);
    y[thread::x()] = x[0] + sum as f32;
}

/// Exchanges from a thread that does not exist. The block has one warp, so the exchange is a
/// shuffle.
#[kernel(block = 32, grid = 1)]
fn from_no_thread(from: usize, x: &[f32], y: &mut [f32]) {
    y[thread::x()] = block::broadcast(x[0], from);
}

#[kernel(block = 32, grid = 1)]
fn from_no_lane(from: usize, x: &[f32], y: &mut [f32]) {
    y[thread::x()] = warp::broadcast(x[0], from);
}

#[kernel(block = 32, grid = 1)]
fn from_no_lane_of_a_group(from: usize, x: &[f32], y: &mut [f32]) {
    y[thread::x()] = warp::group::<8>().broadcast(x[0], from);
}

/// Sums values whose total just fits. Lanes without a partner must not be combined with themselves,
/// which would overflow.
#[kernel(block = 96, grid = 1)]
#[requires(x.len() == 96, out.len() == 4 * 96)]
fn sums_that_just_fit(x: &[u32], out: &mut [u32]) {
    let i = thread::x();
    let v = x[i] as usize;
    let (before, total) = block::scan(v, 0, |a, b| a + b);
    let whole = block::reduce(v, |a, b| a + b);
    let eight = warp::group::<8>().scan(v, |a, b| a + b);
    out[4 * i] = before as u32;
    out[4 * i + 1] = total as u32;
    out[4 * i + 2] = whole as u32;
    out[4 * i + 3] = eight as u32;
}

#[track_caller]
fn told(outcome: Result<(), runtime::Error>, parts: &[&str]) {
    let text = outcome.expect_err("the kernel is faulty").to_string();
    for part in parts {
        assert!(text.contains(part), "no `{part}` in:\n{text}");
    }
}

#[test]
fn broadcasts_from_outside_are_reported() {
    let device = Device::cpu();
    let (x, mut y) = (device.upload(&[1f32; 3]).unwrap(), device.upload(&[0f32; 32]).unwrap());
    for from in [0, 7, 8, 31, 32, 77] {
        let outcomes = [
            (from_no_thread::launch(&device, from, &x, &mut y), 32),
            (from_no_lane::launch(&device, from, &x, &mut y), 32),
            (from_no_lane_of_a_group::launch(&device, from, &x, &mut y), 8),
        ];
        for (outcome, lanes) in outcomes {
            if from < lanes {
                outcome.unwrap();
            } else {
                told(outcome, &["shuffle-selector", &format!("a broadcast from lane {from} of {lanes} lanes")]);
            }
        }
    }
}

#[test]
fn missing_threads_are_reported() {
    let device = Device::cpu();
    type Launched<'l> = &'l dyn Fn(&Device, &DeviceBuffer<f32>, &mut DeviceBuffer<f32>) -> Result<(), runtime::Error>;
    let run = |launch: Launched| {
        let (x, mut y) = (device.upload(&[1f32, 2.0, 2.0]).unwrap(), device.upload(&[0f32; 96]).unwrap());
        launch(&device, &x, &mut y)
    };
    told(run(&|d, x, y| barrier_after_a_return::launch(d, x, y)), &["divergent-barrier", "block::sync();"]);
    told(run(&|d, x, y| collective_after_a_return::launch(d, x, y)), &["divergent-barrier", "block::scan(x[0]"]);
    told(run(&|d, x, y| half_a_warp::launch(d, x, y)), &["warp::scan(x[0], |a, b| a + b)"]);
}

#[test]
fn overflow_in_a_closure_is_reported() {
    let instance = Instance(overflow_in_a_closure::CONSTANTS.to_vec());
    let prepared = PreparedInstance::compile(overflow_in_a_closure::ARTIFACT, &instance).unwrap();
    let case = Case::new("overflow", [Input::slice(&[1f32]), Input::slice(&[0f32; 32])]);
    let outcome = checker(false).case(&prepared, &case, |_| vec![Expected::new(1, vec![0.0; 32], Bound::Exact)]);
    let text = outcome.expect_err("the sum overflows").to_string();
    assert!(text.contains("usize-overflow") && text.contains("warp::reduce(thread::x()"), "{text}");
}

#[test]
fn lanes_without_a_partner_are_not_combined() {
    let x: Vec<u32> = (0..96).map(|i| if i == 0 { u32::MAX } else { 0 }).collect();
    let of = |i: usize| [if i > 0 { u32::MAX } else { 0 }, u32::MAX, u32::MAX, if i < 8 { u32::MAX } else { 0 }];
    let expected = (0..96).flat_map(of).map(f64::from).collect();
    let inputs = vec![Input::slice(&x), Input::slice(&[0u32; 4 * 96])];
    let expected = [Expected::new(1, expected, Bound::Exact)];
    agree::<sums_that_just_fit>(&checker(false), "sums that just fit", inputs, &expected);
}
