//! One kernel on all executors, and its PTX through ptxas.

use kernel_dsl::Kernel;
use kernel_dsl::compiler::hir::Instance;
use runtime::Device;
use runtime::testing::{Case, Checker, Expected, Input, Prepared};

/// The interpreter alone, or a GPU too.
pub fn checker(gpu: bool) -> Checker {
    Checker::new(gpu.then(|| Device::cuda(0).expect("an NVIDIA GPU")))
}

/// Runs the kernel as lowered, after all passes, and on the checker's GPU: all must leave the same bits, and the oracle
/// must find no fault; and these must be the expected ones.
pub fn agree<K: Kernel>(checker: &Checker, name: &str, inputs: Vec<Input>, expected: &[Expected]) {
    agree_case::<K>(checker, &Case::new(name, inputs), expected);
}

/// The same of a case, which may say the size of the block.
pub fn agree_case<K: Kernel>(checker: &Checker, case: &Case, expected: &[Expected]) {
    let instance = Instance(K::CONSTANTS.to_vec());
    let prepared = Prepared::compile(K::ARTIFACT, &instance).unwrap();
    let result = checker.case(&prepared, case, |_| expected.to_vec());
    assert!(result.is_ok(), "{}, {}: {}", instance.name(K::ARTIFACT.name), case.name, result.unwrap_err());
}

/// Assembles the kernel's PTX for each target.
pub fn assemble<K: Kernel>() {
    super::every_target::assemble(K::ARTIFACT);
}
