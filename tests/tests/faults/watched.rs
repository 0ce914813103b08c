//! Tests of kernels that do not end, with a time limit.

use super::{alone, elsewhere, is_gpu, iterate, next};
use runtime::{Device, Error, LossCause};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Time limit for kernels that do not end.
const LIMIT: Duration = Duration::from_millis(5);
/// Time limit for kernels that end, on a busy machine too.
const HANG_LIMIT: Duration = Duration::from_secs(600);

/// Returns a number of rounds that takes much longer than the time limit. The kernel still ends,
/// because a driver may wait for it before it creates another context, or runs kernels one after
/// the other.
fn many() -> u32 {
    if is_gpu() { 20_000 } else { 1000 }
}

fn works(device: &Device) {
    let (x, mut y) = (device.upload(&[1u32; 100]).unwrap(), device.zeros(100).unwrap());
    next::launch(device, &x, &mut y).unwrap();
    assert_eq!(y.download().unwrap(), [2; 100]);
}

#[test]
fn cpu_stops_at_an_interrupt() {
    let device = Device::cpu();
    let mut y = device.zeros(32).unwrap();
    let ended = AtomicBool::new(false);
    let error = thread::scope(|scope| {
        scope.spawn(|| {
            // An interrupt before the launch begins does not stop it.
            while !ended.load(Ordering::Relaxed) {
                device.interrupt();
                thread::sleep(Duration::from_millis(1));
            }
        });
        let launched = iterate::launch(&device, 1 << 20, &mut y);
        ended.store(true, Ordering::Relaxed);
        launched.unwrap_err()
    });
    let said = error.to_string();
    assert!(matches!(error, Error::Violation(_)), "{said}");
    assert!(said.contains("the launch was interrupted"), "{said}");
    works(&device);
}

#[test]
fn cpu_stops_at_the_time_limit() {
    let device = Device::cpu();
    device.set_watchdog_timeout(Some(LIMIT));
    let mut y = device.zeros(32).unwrap();
    let start = Instant::now();
    let error = iterate::launch(&device, 1 << 20, &mut y).unwrap_err();
    assert!(start.elapsed() < Duration::from_secs(60));
    let said = error.to_string();
    assert!(matches!(error, Error::Violation(_)), "{said}");
    assert!(said.contains("the launch reached its time limit of 5ms and was stopped"), "{said}");
    assert!(said.contains("in rolled(0..rounds)"), "{said}");
    device.set_watchdog_timeout(None);
    works(&device);
    // On a stream, the next wait returns the error.
    let mut y = device.zeros(32).unwrap();
    device.set_watchdog_timeout(Some(LIMIT));
    let stream = device.stream().unwrap();
    iterate::launch(&stream, 1 << 20, &mut y).unwrap();
    assert!(stream.wait().unwrap_err().to_string().contains("time limit of 5ms"));
    stream.wait().unwrap();
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_waits_until_the_time_limit() {
    let _alone = alone();
    if elsewhere("watched::gpu_waits_until_the_time_limit") {
        return;
    }
    let device = Device::cuda(0).unwrap();
    device.set_watchdog_timeout(Some(HANG_LIMIT));
    works(&device);
    let (stream, other) = (device.stream().unwrap(), device.stream().unwrap());
    let (mut y, mut z) = (device.zeros(32).unwrap(), device.zeros(32).unwrap());
    // The launches take time, but less than the limit.
    for _ in 0..20 {
        iterate::launch(&stream, 5, &mut y).unwrap();
    }
    stream.wait().unwrap();
    iterate::launch(&other, 1, &mut z).unwrap();
    other.wait().unwrap();
    iterate::launch(&stream, many(), &mut y).unwrap();
    device.set_watchdog_timeout(Some(LIMIT));
    iterate::launch(&other, 1, &mut z).unwrap();
    let error = stream.wait().unwrap_err();
    let said = error.to_string();
    let Error::Lost(loss) = error else { panic!("{said}") };
    let LossCause::TimeLimit { waiting_for, limit } = loss.cause() else { panic!("{said}") };
    assert_eq!(waiting_for, "iterate in 1 × 1 × 1 blocks of 32 × 1 × 1 threads");
    assert_eq!(*limit, LIMIT);
    assert!(said.contains("did not complete within the time limit of 5ms"), "{said}");
    // Later calls do not wait for the kernel. Memory that it may still write is not released, and
    // nothing else is.
    assert_eq!(y.download().unwrap_err().to_string(), said);
    assert_eq!(other.wait().unwrap_err().to_string(), said);
    drop((y, z, stream, other, device));
    works(&Device::cuda(0).unwrap());
}

/// Checks that work submitted without a limit may take longer than a limit set later, in total and
/// for each launch.
#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_does_not_limit_earlier_work() {
    let _alone = alone();
    let device = Device::cuda(0).unwrap();
    let (stream, other) = (device.stream().unwrap(), device.stream().unwrap());
    let (mut y, mut z) = (device.zeros(32).unwrap(), device.zeros(32).unwrap());
    for limit in [LIMIT, 2 * LIMIT] {
        for _ in 0..8 {
            iterate::launch(&stream, many() / 4, &mut y).unwrap();
            iterate::launch(&other, many() / 4, &mut z).unwrap();
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
fn gpu_limits_every_kind_of_wait() {
    let _alone = alone();
    if elsewhere("watched::gpu_limits_every_kind_of_wait") {
        return;
    }
    type Wait = fn(&Device, &runtime::Stream, &mut runtime::DeviceBuffer<u32>) -> runtime::Result<()>;
    let waits: [(&str, Wait); 5] = [
        ("a download", |_, _, y| y.download().map(drop)),
        ("an upload", |_, _, y| y.copy_from(&[1; 32])),
        ("an event", |_, stream, _| stream.record()?.wait()),
        ("a launch on the device", |device, _, y| iterate::launch(device, 1, y)),
        ("more work than a stream queues", |_, stream, y| {
            (0..600).try_for_each(|_| iterate::launch(stream, 1, &mut *y))
        }),
    ];
    for (name, wait) in waits {
        let device = Device::cuda(0).unwrap();
        device.set_watchdog_timeout(Some(HANG_LIMIT));
        let stream = device.stream().unwrap();
        let mut y = device.zeros(32).unwrap();
        // The kernel is loaded first, so that the limit does not expire while it loads.
        iterate::launch(&stream, 1, &mut y).unwrap();
        stream.wait().unwrap();
        iterate::launch(&stream, many(), &mut y).unwrap();
        device.set_watchdog_timeout(Some(LIMIT));
        let error = wait(&device, &stream, &mut y).unwrap_err();
        assert!(error.to_string().contains("the time limit of"), "{name}: {error}");
        assert!(device.lost().is_some(), "{name}");
    }
}

/// Checks that a graph can be dropped while another kernel does not end: releasing its memory does
/// not wait.
#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_drops_graphs_beside_an_endless_kernel() {
    let _alone = alone();
    if elsewhere("watched::gpu_drops_graphs_beside_an_endless_kernel") {
        return;
    }
    let device = Device::cuda(0).unwrap();
    device.set_watchdog_timeout(Some(HANG_LIMIT));
    let (stream, other) = (device.stream().unwrap(), device.stream().unwrap());
    let mut y = device.zeros(32).unwrap();
    // The kernel is loaded first, so that the limit does not expire while it loads.
    iterate::launch(&other, 1, &mut y).unwrap();
    other.wait().unwrap();
    let recording = device.record();
    let sums = recording.own(device.zeros(32).unwrap()).unwrap();
    iterate::launch(&recording, 1, sums).unwrap();
    let mut graph = recording.finish().unwrap();
    graph.replay(&stream).unwrap();
    stream.wait().unwrap();
    iterate::launch(&other, many(), &mut y).unwrap();
    drop(graph);
    device.set_watchdog_timeout(Some(LIMIT));
    let error = other.wait().unwrap_err();
    assert!(error.to_string().contains("the time limit of"), "{error}");
}
