//! Kernels that do not end, under a limit of time.

use super::{alone, elsewhere, is_gpu, next, turns};
use runtime::{Cause, Device, Error};
use std::time::{Duration, Instant};

/// Of what does not end.
const LIMIT: Duration = Duration::from_millis(5);
/// Of what does, however busy the machine is.
const LONG: Duration = Duration::from_secs(600);

/// So many that the limit is over long before, and that the tests' process does not stay for ever where the driver waits for kernels
/// before it makes another context, or runs one kernel after the other.
fn many() -> u32 {
    if is_gpu() { 20_000 } else { 1000 }
}

fn works(device: &Device) {
    let (x, mut y) = (device.upload(&[1u32; 100]).unwrap(), device.zeros(100).unwrap());
    next::launch(device, &x, &mut y).unwrap();
    assert_eq!(y.download().unwrap(), [2; 100]);
}

#[test]
fn cpu_stops_what_takes_too_long() {
    let device = Device::cpu();
    device.set_watchdog_timeout(Some(LIMIT));
    let mut y = device.zeros(32).unwrap();
    let start = Instant::now();
    let error = turns::launch(&device, 1 << 20, &mut y).unwrap_err();
    assert!(start.elapsed() < Duration::from_secs(60));
    let said = error.to_string();
    assert!(matches!(error, Error::Violation(_)), "{said}");
    assert!(said.contains("the launch reached its time limit of 5ms and was stopped"), "{said}");
    assert!(said.contains("in rolled(0..rounds)"), "{said}");
    device.set_watchdog_timeout(None);
    works(&device);
    // On a stream it comes with the next wait.
    let mut y = device.zeros(32).unwrap();
    device.set_watchdog_timeout(Some(LIMIT));
    let stream = device.stream().unwrap();
    turns::launch(&stream, 1 << 20, &mut y).unwrap();
    assert!(stream.wait().unwrap_err().to_string().contains("time limit of 5ms"));
    stream.wait().unwrap();
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_does_not_wait_for_ever() {
    let _alone = alone();
    if elsewhere("watched::gpu_does_not_wait_for_ever") {
        return;
    }
    let device = Device::cuda(0).unwrap();
    device.set_watchdog_timeout(Some(LONG));
    works(&device);
    let (stream, other) = (device.stream().unwrap(), device.stream().unwrap());
    let (mut y, mut z) = (device.zeros(32).unwrap(), device.zeros(32).unwrap());
    // What takes its time, but not too much of it.
    for _ in 0..20 {
        turns::launch(&stream, 5, &mut y).unwrap();
    }
    stream.wait().unwrap();
    turns::launch(&other, 1, &mut z).unwrap();
    other.wait().unwrap();
    turns::launch(&stream, many(), &mut y).unwrap();
    device.set_watchdog_timeout(Some(LIMIT));
    turns::launch(&other, 1, &mut z).unwrap();
    let error = stream.wait().unwrap_err();
    let said = error.to_string();
    let Error::Lost(loss) = error else { panic!("{said}") };
    let Cause::TimeLimit { waiting_for, limit } = loss.cause() else { panic!("{said}") };
    assert_eq!(waiting_for, "turns in 1 × 1 × 1 blocks of 32 × 1 × 1 threads");
    assert_eq!(*limit, LIMIT);
    assert!(said.contains("did not complete within the time limit of 5ms"), "{said}");
    // Nobody waits for it now: memory that it still writes is not given back, nor is anything else.
    assert_eq!(y.download().unwrap_err().to_string(), said);
    assert_eq!(other.wait().unwrap_err().to_string(), said);
    drop((y, z, stream, other, device));
    works(&Device::cuda(0).unwrap());
}

/// What was submitted when there was no limit may take longer than the one that is set then, all of it and each.
#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_limits_no_work_that_came_before_the_limit() {
    let _alone = alone();
    let device = Device::cuda(0).unwrap();
    let (stream, other) = (device.stream().unwrap(), device.stream().unwrap());
    let (mut y, mut z) = (device.zeros(32).unwrap(), device.zeros(32).unwrap());
    for limit in [LIMIT, 2 * LIMIT] {
        for _ in 0..8 {
            turns::launch(&stream, many() / 4, &mut y).unwrap();
            turns::launch(&other, many() / 4, &mut z).unwrap();
        }
        device.set_watchdog_timeout(Some(limit));
        stream.wait().unwrap();
        other.wait().unwrap();
        assert!(device.lost().is_none());
        device.set_watchdog_timeout(None);
    }
    works(&device);
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_gives_up_whatever_waits() {
    let _alone = alone();
    if elsewhere("watched::gpu_gives_up_whatever_waits") {
        return;
    }
    type Wait = fn(&Device, &runtime::Stream, &mut runtime::DeviceBuffer<u32>) -> runtime::Result<()>;
    let waits: [(&str, Wait); 5] = [
        ("a download", |_, _, y| y.download().map(drop)),
        ("an upload", |_, _, y| y.copy_from(&[1; 32])),
        ("an event", |_, stream, _| stream.record()?.wait()),
        ("a launch of the device's", |device, _, y| turns::launch(device, 1, y)),
        ("work beyond what is kept", |_, stream, y| (0..600).try_for_each(|_| turns::launch(stream, 1, &mut *y))),
    ];
    for (name, wait) in waits {
        let device = Device::cuda(0).unwrap();
        device.set_watchdog_timeout(Some(LONG));
        let stream = device.stream().unwrap();
        let mut y = device.zeros(32).unwrap();
        // Loaded, so that it is not the loading that waits.
        turns::launch(&stream, 1, &mut y).unwrap();
        stream.wait().unwrap();
        turns::launch(&stream, many(), &mut y).unwrap();
        device.set_watchdog_timeout(Some(LIMIT));
        let error = wait(&device, &stream, &mut y).unwrap_err();
        assert!(error.to_string().contains("the time limit of"), "{name}: {error}");
        assert!(device.lost().is_some(), "{name}");
    }
}

/// A graph ends while a kernel runs that does not: that its memory is freed waits for nobody.
#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_ends_graphs_beside_what_does_not_end() {
    let _alone = alone();
    if elsewhere("watched::gpu_ends_graphs_beside_what_does_not_end") {
        return;
    }
    let device = Device::cuda(0).unwrap();
    device.set_watchdog_timeout(Some(LONG));
    let (stream, other) = (device.stream().unwrap(), device.stream().unwrap());
    let mut y = device.zeros(32).unwrap();
    // Loaded, so that it is not the loading that waits.
    turns::launch(&other, 1, &mut y).unwrap();
    other.wait().unwrap();
    let recording = device.record();
    let sums = recording.own(device.zeros(32).unwrap()).unwrap();
    turns::launch(&recording, 1, sums).unwrap();
    let mut graph = recording.finish().unwrap();
    graph.replay(&stream).unwrap();
    stream.wait().unwrap();
    turns::launch(&other, many(), &mut y).unwrap();
    drop(graph);
    device.set_watchdog_timeout(Some(LIMIT));
    let error = other.wait().unwrap_err();
    assert!(error.to_string().contains("the time limit of"), "{error}");
}
