//! Tests of this project's CUDA backend on the library: devices, buffers, checked and unchecked
//! launches, `doctor`. `.ci/run` also runs all GPU tests of the workspace on it.
#![cfg(target_os = "linux")]

mod common;

use common::inside;
use kernels_rs::saxpy;
use runtime::doctor::{DriverFinding, examine};
use runtime::{Device, Error};

#[test]
fn doctor_reports_the_emulated_driver() {
    inside("doctor_reports_the_emulated_driver", &[("CUDA_ON_CPU_MEMORY", "3G")], || {
        let findings = examine();
        assert!(matches!(findings.driver, DriverFinding::Found { on_cpu: true, .. }), "{findings:?}");
        let device = &findings.devices[0];
        assert!(device.supported && device.info.as_ref().unwrap().memory_bytes == 3 << 30);
        assert!(findings.best.unwrap().reason.contains("emulated device: the driver is cuda-on-cpu"));
    });
}

#[test]
fn kernels_run_checked_and_unchecked() {
    inside("kernels_run_checked_and_unchecked", &[], || {
        let device = Device::cuda(0).unwrap();
        let cpu = Device::cpu();
        for n in [1, 255, 256, 1000] {
            let (x, y): (Vec<f32>, Vec<f32>) = (0..n).map(|i| (i as f32 * 0.1, i as f32)).unzip();
            let run = |device: &Device, bare: bool| {
                let (dx, mut dy) = (device.upload(&x).unwrap(), device.upload(&y).unwrap());
                if bare {
                    // SAFETY: both buffers have n elements.
                    unsafe { saxpy::launch_unchecked(device, 2.0, &dx, &mut dy).unwrap() };
                } else {
                    saxpy::launch(device, 2.0, &dx, &mut dy).unwrap();
                }
                dy.download().unwrap()
            };
            let expected: Vec<f32> = x.iter().zip(&y).map(|(x, y)| 2f32.mul_add(*x, *y)).collect();
            assert_eq!(run(&device, false), expected);
            assert_eq!(run(&device, true), expected);
            assert_eq!(run(&cpu, false), expected);
        }
    });
}

#[test]
fn errors_are_returned() {
    inside("errors_are_returned", &[], || {
        let device = Device::cuda(0).unwrap();
        assert!(matches!(device.zeros::<u8>(1 << 50).unwrap_err(), Error::OutOfMemory { free: Some(_), .. }));
        assert!(matches!(Device::cuda(1).unwrap_err(), Error::NoSuchDevice { ordinal: 1, count: 1 }));
        let data: Vec<u64> = (0..10_000).collect();
        assert_eq!(device.upload(&data).unwrap().download().unwrap(), data);
    });
}
