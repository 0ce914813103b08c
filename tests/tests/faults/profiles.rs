//! Tests of profiles of streams, which measure the time of kernels.

use super::{alone, iterate, next};
use runtime::{Device, ProfiledWork};
use std::time::Duration;

/// Checks that a profile has all operations in order, with plausible times.
fn profile(device: &Device) {
    let stream = device.stream().unwrap();
    let x = device.upload(&[1u32; 1000]).unwrap();
    let mut y = device.zeros(1000).unwrap();
    next::launch(&stream, &x, &mut y).unwrap();
    stream.start_profile().unwrap();
    for _ in 0..3 {
        next::launch(&stream, &x, &mut y).unwrap();
    }
    iterate::launch(&stream, 20, &mut y).unwrap();
    stream.fill_zero(&mut y).unwrap();
    let mut pinned = device.pinned(1000).unwrap();
    stream.download_to(&x, &mut pinned).unwrap();
    let profile = stream.end_profile().unwrap();

    let kernel = |instance: &str, grid, block| ProfiledWork::Kernel { instance: instance.into(), grid, block };
    let three = kernel("next", [8, 1, 1], [128, 1, 1]);
    let expected = [
        three.clone(),
        three.clone(),
        three,
        kernel("iterate", [1, 1, 1], [32, 1, 1]),
        ProfiledWork::Fill { bytes: 4000 },
        ProfiledWork::Download { bytes: 4000 },
    ];
    let operations = profile.operations();
    assert_eq!(operations.iter().map(|timed| &timed.work).collect::<Vec<_>>(), expected.iter().collect::<Vec<_>>());
    // Operations follow one another. Clocks of GPUs have steps of half a microsecond.
    for pair in operations.windows(2) {
        assert!(pair[0].start + pair[0].time <= pair[1].start + Duration::from_micros(2), "{pair:?}");
    }
    let kernels = profile.kernels();
    assert_eq!(kernels.len(), 2);
    let next_time = kernels.iter().find(|kernel| kernel.instance == "next").unwrap();
    assert_eq!(next_time.launches, 3);
    assert!(next_time.min <= next_time.mean() && next_time.mean() <= next_time.max);
    let json: serde_json::Value = serde_json::from_str(&profile.chrome_trace()).unwrap();
    assert_eq!(json["traceEvents"].as_array().unwrap().len(), 1 + expected.len());
    // More operations than a stream keeps events for, and then none.
    stream.start_profile().unwrap();
    for _ in 0..700 {
        stream.fill_zero(&mut y).unwrap();
    }
    assert_eq!(stream.end_profile().unwrap().operations().len(), 700);
    stream.fill_zero(&mut y).unwrap();
    assert!(stream.end_profile().unwrap().operations().is_empty());
    // A stream that reuses the slot of a profiled stream is not profiled.
    stream.start_profile().unwrap();
    drop(stream);
    let stream = device.stream().unwrap();
    stream.fill_zero(&mut y).unwrap();
    assert!(stream.end_profile().unwrap().operations().is_empty());
}

#[test]
fn cpu_measures_the_time_of_kernels() {
    profile(&Device::cpu());
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_measures_the_time_of_kernels() {
    let _alone = alone();
    profile(&Device::cuda(0).unwrap());
}
