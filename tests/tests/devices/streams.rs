//! Tests of streams, events, pinned memory and the pool, on the CPU and on a GPU: results are those
//! of one stream.

mod order;
mod random;
mod sum;

use kernel_dsl::prelude::*;
use runtime::doctor::{self, DriverFinding};
use runtime::{Device, Error};
use sum::{add, added};

/// Reads one element beyond the end.
#[kernel(block = 32, grid = 1)]
#[requires(x.len() == y.len())]
pub fn beyond(x: &[u32], y: &mut [u32]) {
    let i = thread::index();
    if i < x.len() {
        y[i] = x[i + 1];
    }
}

/// Returns whether the driver's device is a GPU; the driver on the CPU is slower.
fn is_gpu() -> bool {
    matches!(doctor::examine().driver, DriverFinding::Found { on_cpu: false, .. })
}

#[test]
fn cpu_keeps_the_order() {
    order::all(&Device::cpu(), 3);
}

#[test]
fn cpu_counts_memory_in_use() {
    let device = Device::cpu();
    order::dropped_memory_is_not_in_use(&device);
    order::all(&device, 3);
    order::dropped_memory_is_not_in_use(&device);
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_keeps_the_order() {
    order::all(&Device::cuda(0).unwrap(), if is_gpu() { 200_000 } else { 3 });
}

#[test]
fn cpu_serves_threads_with_random_operations() {
    random::threads(&Device::cpu(), 4, 30, 2_000);
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_serves_threads_with_random_operations() {
    let (steps, most) = if is_gpu() { (2_000, 200_000) } else { (100, 2_000) };
    random::threads(&Device::cuda(0).unwrap(), 8, steps, most);
}

#[test]
fn cpu_reports_at_the_next_wait() {
    late(&Device::cpu());
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_reports_at_the_next_wait() {
    late(&Device::cuda(0).unwrap());
}

/// Checks that a finding of a checked launch is the error of the next wait, once, and that the
/// stream remains usable.
fn late(device: &Device) {
    let stream = device.stream().unwrap();
    let x = device.upload(&[1u32, 2, 3]).unwrap();
    let mut y = device.zeros(3).unwrap();
    // More launches than a stream has records for.
    for _ in 0..300 {
        add::launch(&stream, 1, &x, &mut y).unwrap();
        beyond::launch(&stream, &x, &mut y).unwrap();
    }
    let error = stream.wait().unwrap_err();
    assert!(matches!(error, Error::Violation(_)), "{error}");
    assert!(error.to_string().contains("index 3 is out of bounds of `x`"), "{error}");
    stream.wait().unwrap();
    add::launch(&stream, 1, &x, &mut y).unwrap();
    stream.wait().unwrap();
    // A stream does not report findings of another.
    let other = device.stream().unwrap();
    beyond::launch(&stream, &x, &mut y).unwrap();
    other.wait().unwrap();
    add::launch(device, 1, &x, &mut y).unwrap();
    assert!(stream.wait().is_err());
    // A stream does not report findings of a dropped stream whose slot it reuses.
    beyond::launch(&device.stream().unwrap(), &x, &mut y).unwrap();
    device.stream().unwrap().wait().unwrap();
}

/// Copies between two cards, if there are two. Each write precedes the copy that reads it, and
/// follows the copy that read before, for all streams.
#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_copies_between_two() {
    let first = Device::cuda(0).unwrap();
    let second = match Device::cuda(1) {
        Ok(second) => second,
        Err(Error::NoSuchDevice { .. }) => return println!("skipped: there is one device"),
        Err(other) => panic!("{other}"),
    };
    let (rounds, n) = if is_gpu() { (100u32, 5_000_000) } else { (3, 2_000) };
    let (here, there) = (first.stream().unwrap(), second.stream().unwrap());
    let mut x = first.upload(&(0..n as u32).collect::<Vec<_>>()).unwrap();
    let (mut y, mut z) = (second.zeros::<u32>(n).unwrap(), second.zeros::<u32>(n).unwrap());
    let mut w = first.zeros::<u32>(n).unwrap();
    for _ in 0..rounds {
        add::launch(&here, 2, &x, &mut w).unwrap();
        there.copy(&w, &mut y).unwrap();
        here.fill_zero(&mut w).unwrap();
        add::launch(&there, 3, &y, &mut z).unwrap();
        here.copy(&z, &mut x).unwrap();
        there.fill_zero(&mut z).unwrap();
    }
    let after = |x: u32| (0..rounds).fold(x, |x, _| added(3, added(2, x, 0), 0));
    assert_eq!(x.download().unwrap(), (0..n as u32).map(after).collect::<Vec<_>>());
    let refused = add::launch(&here, 1, &y, &mut x).unwrap_err().to_string();
    assert!(refused.contains("its memory belongs to another device"), "{refused}");
    // A stream rejects memory that is pinned for the other card, and views of its memory.
    let mut pinned = second.pinned::<u32>(n).unwrap();
    for refused in [
        here.upload_to(&mut x, &pinned).unwrap_err(),
        here.download_to(&x, &mut pinned).unwrap_err(),
        here.reads(&y.range(0..1).unwrap()).unwrap_err(),
    ] {
        assert!(matches!(refused, Error::OtherDevice { .. }), "{refused}");
    }
    there.upload_to(&mut y, &pinned).unwrap();
    there.reads(&y.range(0..1).unwrap()).unwrap();
    there.wait().unwrap();
}

#[test]
fn memory_of_another_device_is_rejected() {
    let Ok(gpu) = Device::cuda(0) else { return };
    let mut buffer = gpu.zeros::<u32>(3).unwrap();
    let stream = Device::cpu().stream().unwrap();
    let mut here = Device::cpu().zeros::<u32>(3).unwrap();
    let mut pinned = gpu.pinned::<u32>(3).unwrap();
    for error in [
        stream.fill_zero(&mut buffer).unwrap_err(),
        stream.upload_to(&mut here, &pinned).unwrap_err(),
        stream.download_to(&here, &mut pinned).unwrap_err(),
        stream.reads(&buffer.range(0..3).unwrap()).unwrap_err(),
    ] {
        assert!(matches!(error, Error::OtherDevice { .. }), "{error}");
    }
}

#[test]
fn views_of_slots_are_rejected() {
    let device = Device::cpu();
    let stream = device.stream().unwrap();
    let buffer = device.zeros::<u32>(3).unwrap();
    stream.reads(&buffer.range(0..3).unwrap()).unwrap();
    let recording = device.record();
    let slot = recording.own(buffer).unwrap();
    let error = stream.reads(&slot.range(0..3).unwrap()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the view belongs to another device or a recording, the stream to cpu (interpreter); both must be on the same device"
    );
}

#[test]
fn lengths_are_compared() {
    let device = Device::cpu();
    let stream = device.stream().unwrap();
    let (mut three, mut two) = (device.zeros::<u32>(3).unwrap(), device.zeros::<u32>(2).unwrap());
    let mut pinned = device.pinned::<u32>(4).unwrap();
    let error = stream.upload_to(&mut three, &pinned).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot copy the 4 elements of the pinned buffer to the buffer, which has 3: both must have equal lengths"
    );
    assert!(stream.download_to(&three, &mut pinned).is_err());
    assert!(stream.copy(&three, &mut two).is_err());
    let mut nothing = device.zeros::<u32>(0).unwrap();
    stream.fill_zero(&mut nothing).unwrap();
    assert!(stream.upload::<u32>(&[]).unwrap().is_empty());
}
