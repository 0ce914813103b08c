//! Runs every kernel of kernels-rs on an NVIDIA GPU, from its sm_61 PTX through the driver's JIT,
//! and compares with the interpreter bit by bit.

use kernel_dsl::compiler::hir::Instance;
use kernels_rs_specs as _;
use runtime::Device;
use runtime::testing::{Checker, Executor, kernel_specs};

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_kernels_agree_with_the_interpreter_bit_by_bit() {
    let device = Device::cuda(0).unwrap();
    let checker = Checker::new(Some(device));
    let mut checked = 0;
    for spec in kernel_specs() {
        // One instance of each kernel, with one seed: `kernels check` tests all instances.
        let more = tests::share::is_whole() && spec.artifact.instances.len() <= 2;
        for declared in spec.artifact.instances.iter().take(if more { 2 } else { 1 }) {
            for seed in 1..=if more { 3 } else { 1 } {
                let report = checker.check(spec, &Instance(declared.constants.to_vec()), seed);
                assert!(report.passed(), "{report}");
                assert!(
                    report.executors.iter().any(|e| matches!(e, Executor::Cuda(_))),
                    "{} did not run on the GPU",
                    declared.name
                );
                checked += 1;
            }
        }
    }
    assert!(checked > 0, "no kernel was linked");
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_instances_compiled_at_run_time_agree() {
    let checker = Checker::new(Some(Device::cuda(0).unwrap()));
    for (kernel, constant) in [("matmul", 5), ("matmul", 8), ("softmax", 1), ("softmax", 16)] {
        let spec = *kernel_specs().iter().find(|s| s.artifact.name == kernel).unwrap();
        let instance = Instance(vec![kernel_dsl::compiler::hir::Constant::Usize(constant)]);
        let report = checker.check(spec, &instance, 1);
        assert!(report.passed(), "{report}");
    }
}
