//! Streams, events, pinned memory and the pool, on the CPU and on a GPU: what comes out is what one stream alone would leave.

mod order;
mod random;
mod sum;

use kernel_dsl::prelude::*;
use runtime::doctor::{self, DriverFinding};
use runtime::{Device, Error};
use sum::{add, added};

/// Wrong: it looks one further.
#[kernel(block = 32, grid = 1)]
#[requires(x.len() == y.len())]
pub fn beyond(x: &[u32], y: &mut [u32]) {
    let i = thread::index();
    if i < x.len() {
        y[i] = x[i + 1];
    }
}

/// Whether the driver's device is one: the driver on the CPU takes its time.
fn is_gpu() -> bool {
    matches!(doctor::examine().driver, DriverFinding::Found { on_cpu: false, .. })
}

#[test]
fn cpu_keeps_the_order() {
    order::all(&Device::cpu(), 3);
}

#[test]
fn cpu_counts_what_is_in_use() {
    let device = Device::cpu();
    order::what_is_dropped_is_not_in_use(&device);
    order::all(&device, 3);
    order::what_is_dropped_is_not_in_use(&device);
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_keeps_the_order() {
    order::all(&Device::cuda(0).unwrap(), if is_gpu() { 200_000 } else { 3 });
}

#[test]
fn cpu_serves_threads_that_do_anything() {
    random::threads(&Device::cpu(), 4, 30, 2_000);
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_serves_threads_that_do_anything() {
    let (steps, most) = if is_gpu() { (2_000, 200_000) } else { (100, 2_000) };
    random::threads(&Device::cuda(0).unwrap(), 8, steps, most);
}

#[test]
fn cpu_tells_late_what_it_would_on_a_gpu() {
    late(&Device::cpu());
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_tells_late_what_a_launch_found() {
    late(&Device::cuda(0).unwrap());
}

/// What a checked launch finds is the error of the next wait, once, and the stream goes on.
fn late(device: &Device) {
    let stream = device.stream().unwrap();
    let x = device.upload(&[1u32, 2, 3]).unwrap();
    let mut y = device.zeros(3).unwrap();
    // More than a stream keeps records for.
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
    // Another's launches are not told here.
    let other = device.stream().unwrap();
    beyond::launch(&stream, &x, &mut y).unwrap();
    other.wait().unwrap();
    add::launch(device, 1, &x, &mut y).unwrap();
    assert!(stream.wait().is_err());
    // Nor is what a stream found that is gone, whoever has its place.
    beyond::launch(&device.stream().unwrap(), &x, &mut y).unwrap();
    device.stream().unwrap().wait().unwrap();
}

/// Two cards, where there are two: each write comes before the copy that reads it and after the one that read before, whichever stream asks.
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
    // Nor does a stream know who uses what is pinned for the other card, or views of its memory.
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
fn what_belongs_to_another_device_is_refused() {
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
fn views_of_slots_are_of_no_stream() {
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
    assert_eq!(error.to_string(), "cannot copy to the device: the buffer holds 3 elements, the slice 4");
    assert!(stream.download_to(&three, &mut pinned).is_err());
    assert!(stream.copy(&three, &mut two).is_err());
    let mut nothing = device.zeros::<u32>(0).unwrap();
    stream.fill_zero(&mut nothing).unwrap();
    assert!(stream.upload::<u32>(&[]).unwrap().is_empty());
}
