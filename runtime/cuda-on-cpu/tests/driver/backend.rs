//! Tests of this project's CUDA backend on the library: devices, buffers, checked and unchecked
//! launches, `doctor`. `.ci/run` also runs all GPU tests of the workspace on it.

use super::common::inside;
use kernel_dsl::Kernel;
use kernel_dsl::compiler::hir::{Constant, Instance};
use kernels_rs::{matmul, saxpy};
use runtime::doctor::{DriverFinding, examine};
use runtime::testing::{Bound, Case, Checker, Expected, Input, KernelSpec, Random};
use runtime::{Device, Error};
use std::thread;

#[test]
fn doctor_reports_the_emulated_driver() {
    inside!("doctor_reports_the_emulated_driver", &[("CUDA_ON_CPU_MEMORY", "3G")], || {
        let findings = examine();
        assert!(matches!(findings.driver, DriverFinding::Found { on_cpu: true, .. }), "{findings:?}");
        let device = &findings.devices[0];
        assert!(device.supported && device.info.as_ref().unwrap().memory_bytes == 3 << 30);
        assert!(findings.best.unwrap().reason.contains("emulated device: the driver is cuda-on-cpu"));
    });
}

#[test]
fn kernels_run_checked_and_unchecked() {
    inside!("kernels_run_checked_and_unchecked", &[], || {
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
    inside!("errors_are_returned", &[], || {
        let device = Device::cuda(0).unwrap();
        assert!(matches!(device.zeros::<u8>(1 << 50).unwrap_err(), Error::OutOfMemory { free: Some(_), .. }));
        assert!(matches!(Device::cuda(1).unwrap_err(), Error::NoSuchDevice { ordinal: 1, count: 1 }));
        let data: Vec<u64> = (0..10_000).collect();
        assert_eq!(device.upload(&data).unwrap().download().unwrap(), data);
    });
}

/// Returns three 5 × 5 matrices of random numbers: the factors, and the memory of their product.
fn products(_: &Instance, random: &mut Random) -> Vec<Case> {
    let mut matrix = || Input::view(&random.values::<f32>(25), [5, 5]);
    vec![Case::new("5 x 5", [matrix(), matrix(), matrix()])]
}

fn product(_: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let (a, b) = (inputs[0].values(), inputs[1].values());
    let element = |i: usize| (0..5).map(|k| a[i / 5 * 5 + k] * b[5 * k + i % 5]).sum::<f64>();
    vec![Expected::new(2, (0..25).map(element).collect(), Bound::Absolute(1e-4))]
}

/// Checks instances from several threads with one device: the driver compiles their modules in
/// parallel, and their cases take turns.
#[test]
fn threads_share_a_checker() {
    inside!("threads_share_a_checker", &[], || {
        let checker = Checker::new(Some(Device::cuda(0).unwrap()));
        let spec = KernelSpec { artifact: matmul::<16>::ARTIFACT, cases: products, reference: product };
        thread::scope(|scope| {
            for tile in [4, 8, 8, 16] {
                let (checker, spec) = (&checker, &spec);
                scope.spawn(move || {
                    let report = checker.check(spec, &Instance(vec![Constant::Usize(tile)]), 1);
                    assert!(report.passed(), "{report}");
                    assert_eq!(report.executors.len(), 6, "{report}");
                });
            }
        });
    });
}
