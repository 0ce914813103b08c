//! Runs one kernel on all executors, and its PTX through ptxas.

use kernel_dsl::Kernel;
use kernel_dsl::compiler::hir::Instance;
use runtime::Device;
use runtime::testing::{Case, Checker, Expected, Input, PreparedInstance};

/// Returns a checker for the CPU's executors, and for a GPU if requested.
pub fn checker(gpu: bool) -> Checker {
    Checker::new(gpu.then(|| Device::cuda(0).expect("an NVIDIA GPU is present")))
}

/// Runs the kernel lowered, optimized, and on the checker's GPU. The results must be bit-identical
/// and equal to the expected ones, and the oracle must find no fault.
pub fn agree<K: Kernel>(checker: &Checker, name: &str, inputs: Vec<Input>, expected: &[Expected]) {
    agree_case::<K>(checker, &Case::new(name, inputs), expected);
}

/// Runs a case, which may specify the block size, as [`agree`] does.
pub fn agree_case<K: Kernel>(checker: &Checker, case: &Case, expected: &[Expected]) {
    let instance = Instance(K::CONSTANTS.to_vec());
    let prepared = PreparedInstance::compile(K::ARTIFACT, &instance).unwrap();
    let result = checker.case(&prepared, case, |_| expected.to_vec());
    assert!(result.is_ok(), "{}, {}: {}", instance.name(K::ARTIFACT.name), case.name, result.unwrap_err());
}

/// Assembles the kernel's PTX for each target.
pub fn assemble<K: Kernel>() {
    super::every_target::assemble(K::ARTIFACT);
}
