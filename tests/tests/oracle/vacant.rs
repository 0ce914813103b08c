//! Buffers of the CPU device that were allocated, and what kernels load of them before anything is written there.

use kernel_dsl::prelude::*;
use runtime::interpreter::{Check, Report};
use runtime::{Device, Error};

/// y ← y + x
#[kernel(block = 64, grid = y.len().div_ceil(64))]
#[requires(x.len() == y.len())]
fn accumulated(x: &[f32], y: &mut [f32]) {
    let i = grid::index();
    if i < y.len() {
        y[i] += x[i];
    }
}

/// y ← x
#[kernel(block = 64, grid = y.len().div_ceil(64))]
#[requires(x.len() == y.len())]
fn copied(x: &[f32], y: &mut [f32]) {
    let i = grid::index();
    if i < y.len() {
        y[i] = x[i];
    }
}

/// Each third element of y ← 1
#[kernel(block = 64, grid = y.len().div_ceil(64))]
fn thirds(y: &mut [f32]) {
    let i = grid::index();
    if i < y.len() && i % 3 == 0 {
        y[i] = 1.0;
    }
}

/// The number of blocks in y[0].
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

/// That a launch has loaded what holds nothing: of which buffer, and so many elements, from `first` on.
#[track_caller]
fn told(result: runtime::Result<()>, name: &str, first: i64, count: u64) {
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
fn a_load_of_what_nobody_has_written_is_told() -> runtime::Result<()> {
    let device = Device::cpu();
    let x = device.upload(&[1.0f32; 100])?;
    let mut y = device.alloc::<f32>(100)?;
    told(accumulated::launch(&device, &x, &mut y), "y", 0, 100);
    // The twin begins with zeros.
    let mut y = device.zeros::<f32>(100)?;
    accumulated::launch(&device, &x, &mut y)?;
    assert_eq!(y.download()?, [1.0; 100]);
    // What is only read, too.
    let x = device.alloc::<f32>(100)?;
    told(accumulated::launch(&device, &x, &mut y), "x", 0, 100);
    let mut y = device.alloc::<u32>(1)?;
    let report = report(blocks::launch(&device, &mut y));
    assert_eq!(report.findings[0].check, Check::UninitializedBuffer, "{report}");
    Ok(())
}

#[test]
fn what_a_launch_or_the_host_writes_is_written() -> runtime::Result<()> {
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
fn each_element_for_itself() -> runtime::Result<()> {
    let device = Device::cpu();
    let x = device.upload(&[1.0f32; 100])?;
    let mut y = device.alloc::<f32>(100)?;
    thirds::launch(&device, &mut y)?;
    told(accumulated::launch(&device, &x, &mut y), "y", 1, 66);
    // That launch has stored to all of them.
    accumulated::launch(&device, &x, &mut y)?;
    // A part of a buffer is written by way of a view.
    let mut y = device.alloc::<f32>(100)?;
    let half = device.upload(&[1.0f32; 50])?;
    copied::launch(&device, &half, y.range_mut(25..75)?)?;
    accumulated::launch(&device, &half, y.range_mut(25..75)?)?;
    told(accumulated::launch(&device, &half, y.range_mut(0..50)?), "y", 0, 25);
    told(copied::launch(&device, y.range(50..100)?, &mut device.zeros::<f32>(50)?), "x", 25, 25);
    Ok(())
}

#[test]
fn memory_of_a_buffer_that_is_gone_is_another_s() -> runtime::Result<()> {
    let device = Device::cpu();
    drop(device.alloc::<f32>(100)?);
    let x = device.upload(&[1.0f32; 100])?;
    let mut y = device.zeros::<f32>(100)?;
    accumulated::launch(&device, &x, &mut y)
}

/// As many blocks as run on several cores.
#[test]
fn on_however_many_cores() -> runtime::Result<()> {
    const N: usize = 1 << 18;
    let device = Device::cpu();
    let x = device.upload(&vec![1.0f32; N])?;
    let mut y = device.alloc::<f32>(N)?;
    copied::launch(&device, &x, &mut y)?;
    accumulated::launch(&device, &x, &mut y)?;
    let mut z = device.alloc::<f32>(N)?;
    thirds::launch(&device, &mut z)?;
    told(accumulated::launch(&device, &z, &mut y), "x", 1, (N - N.div_ceil(3)) as u64);
    Ok(())
}
