//! Uninitialized buffers of the CPU device: loads of elements before their first write.

use kernel_dsl::prelude::*;
use runtime::interpreter::{Check, Report};
use runtime::{Device, Error};

/// Computes y ← y + x.
#[kernel(block = 64, grid = y.len().div_ceil(64))]
#[requires(x.len() == y.len())]
fn accumulated(x: &[f32], y: &mut [f32]) {
    let i = grid::index();
    if i < y.len() {
        y[i] += x[i];
    }
}

/// Computes y ← x.
#[kernel(block = 64, grid = y.len().div_ceil(64))]
#[requires(x.len() == y.len())]
fn copied(x: &[f32], y: &mut [f32]) {
    let i = grid::index();
    if i < y.len() {
        y[i] = x[i];
    }
}

/// Stores 1 to every third element of y.
#[kernel(block = 64, grid = y.len().div_ceil(64))]
fn thirds(y: &mut [f32]) {
    let i = grid::index();
    if i < y.len() && i % 3 == 0 {
        y[i] = 1.0;
    }
}

/// Counts the blocks in y[0].
#[kernel(block = 32, grid = 4)]
fn blocks(y: &mut [u32]) {
    if thread::x() == 0 {
        y.fetch_add(0, 1);
    }
}

fn report(result: runtime::Result<()>) -> Report {
    match result {
        Err(Error::Violation(report)) => *report,
        other => panic!("{other:?}"),
    }
}

/// Checks that a launch was rejected for `count` uninitialized loads of the buffer `name`, from
/// element `first` on.
#[track_caller]
fn assert_uninitialized(result: runtime::Result<()>, name: &str, first: i64, count: u64) {
    let report = report(result);
    let [finding] = &report.findings[..] else { panic!("{report}") };
    let object = finding.object.as_ref().unwrap();
    assert_eq!(
        (finding.check, &object.name[..], object.element, finding.count),
        (Check::UninitializedBuffer, name, Some(first), count),
        "{report}"
    );
}

#[test]
fn loads_of_unwritten_elements_are_reported() -> runtime::Result<()> {
    let device = Device::cpu();
    let x = device.upload(&[1.0f32; 100])?;
    let mut y = device.alloc::<f32>(100)?;
    assert_uninitialized(accumulated::launch(&device, &x, &mut y), "y", 0, 100);
    // A buffer allocated with `zeros` is initialized.
    let mut y = device.zeros::<f32>(100)?;
    accumulated::launch(&device, &x, &mut y)?;
    assert_eq!(y.download()?, [1.0; 100]);
    // An uninitialized input is reported too.
    let x = device.alloc::<f32>(100)?;
    assert_uninitialized(accumulated::launch(&device, &x, &mut y), "x", 0, 100);
    let mut y = device.alloc::<u32>(1)?;
    let report = report(blocks::launch(&device, &mut y));
    assert_eq!(report.findings[0].check, Check::UninitializedBuffer, "{report}");
    Ok(())
}

#[test]
fn writes_by_launches_and_by_the_host_initialize() -> runtime::Result<()> {
    let device = Device::cpu();
    let (x, mut y) = (device.upload(&[1.0f32; 100])?, device.alloc::<f32>(100)?);
    copied::launch(&device, &x, &mut y)?;
    accumulated::launch(&device, &x, &mut y)?;
    let mut z = device.alloc::<f32>(100)?;
    z.copy_from(&[3.0; 100])?;
    accumulated::launch(&device, &z, &mut y)?;
    assert_eq!(y.download()?, [5.0; 100]);
    let stream = device.stream()?;
    let mut z = device.alloc::<f32>(100)?;
    stream.fill_zero(&mut z)?;
    accumulated::launch(&stream, &x, &mut z)?;
    stream.wait()
}

#[test]
fn elements_are_tracked_individually() -> runtime::Result<()> {
    let device = Device::cpu();
    let x = device.upload(&[1.0f32; 100])?;
    let mut y = device.alloc::<f32>(100)?;
    thirds::launch(&device, &mut y)?;
    assert_uninitialized(accumulated::launch(&device, &x, &mut y), "y", 1, 66);
    // The rejected launch has stored to all elements.
    accumulated::launch(&device, &x, &mut y)?;
    // A view writes part of a buffer.
    let mut y = device.alloc::<f32>(100)?;
    let half = device.upload(&[1.0f32; 50])?;
    copied::launch(&device, &half, y.range_mut(25..75)?)?;
    accumulated::launch(&device, &half, y.range_mut(25..75)?)?;
    assert_uninitialized(accumulated::launch(&device, &half, y.range_mut(0..50)?), "y", 0, 25);
    assert_uninitialized(copied::launch(&device, y.range(50..100)?, &mut device.zeros::<f32>(50)?), "x", 25, 25);
    Ok(())
}

#[test]
fn reused_memory_is_tracked_anew() -> runtime::Result<()> {
    let device = Device::cpu();
    drop(device.alloc::<f32>(100)?);
    let x = device.upload(&[1.0f32; 100])?;
    let mut y = device.zeros::<f32>(100)?;
    accumulated::launch(&device, &x, &mut y)
}

/// Runs enough blocks for several cores.
#[test]
fn loads_are_checked_on_several_cores() -> runtime::Result<()> {
    const N: usize = 1 << 18;
    let device = Device::cpu();
    let x = device.upload(&vec![1.0f32; N])?;
    let mut y = device.alloc::<f32>(N)?;
    copied::launch(&device, &x, &mut y)?;
    accumulated::launch(&device, &x, &mut y)?;
    let mut z = device.alloc::<f32>(N)?;
    thirds::launch(&device, &mut z)?;
    assert_uninitialized(accumulated::launch(&device, &z, &mut y), "x", 1, (N - N.div_ceil(3)) as u64);
    Ok(())
}
