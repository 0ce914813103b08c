//! One kernel on all executors, and its PTX through ptxas.

use kernel_dsl::Kernel;
use kernel_dsl::compiler::hir::Instance;
use kernels_rs::command::ptxas::Ptxas;
use runtime::Device;
use runtime::testing::{Case, Checker, Expected, Input, Prepared};

/// The interpreter alone, or a GPU too.
pub fn checker(gpu: bool) -> Checker {
    Checker::new(gpu.then(|| Device::cuda(0).expect("an NVIDIA GPU")))
}

/// Runs the kernel as lowered, after all passes, and on the checker's GPU: all must leave the same bits, and the oracle
/// must find no fault; and these must be the expected ones.
pub fn agree<K: Kernel>(checker: &Checker, name: &str, inputs: Vec<Input>, expected: &[Expected]) {
    let instance = Instance(K::CONSTANTS.to_vec());
    let prepared = Prepared::compile(K::ARTIFACT, &instance).unwrap();
    let result = checker.case(&prepared, &Case::new(name, inputs), |_| expected.to_vec());
    assert!(result.is_ok(), "{}, {name}: {}", instance.name(K::ARTIFACT.name), result.unwrap_err());
}

/// Assembles the PTX of each declared instance for sm_61, where a ptxas that knows it is found.
pub fn assemble<K: Kernel>() {
    let Some(ptxas) = Ptxas::find().filter(Ptxas::takes_sm_61) else {
        eprintln!("no ptxas for sm_61: `tests/get-ptxas` fetches one");
        return;
    };
    for declared in K::ARTIFACT.instances {
        ptxas.assemble(declared.ptx).unwrap_or_else(|e| panic!("{}: {e}\n{}", declared.name, declared.ptx));
    }
}
