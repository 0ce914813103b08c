//! One kernel on all executors, and its PTX through ptxas.

use kernel_dsl::Kernel;
use kernel_dsl::compiler::hir::Instance;
use runtime::Device;
use runtime::testing::{Case, Checker, Expected, Input, Prepared};
use std::io::Write;
use std::process::{Command, Stdio};

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

/// Assembles the PTX of each declared instance for sm_61, where ptxas is found on PATH or in `target/tools`.
pub fn assemble<K: Kernel>() {
    let here = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/tools/ptxas");
    let ptxas = if std::path::Path::new(here).is_file() { here } else { "ptxas" };
    for declared in K::ARTIFACT.instances {
        let mut command = Command::new(ptxas);
        command.args(["-arch=sm_61", "-o", "/dev/null", "-"]).stdin(Stdio::piped()).stderr(Stdio::piped());
        let Ok(mut child) = command.spawn() else {
            eprintln!("no ptxas: `tests/get-ptxas` fetches one");
            return;
        };
        // Where it stops reading early, it says why.
        let _ = child.stdin.take().unwrap().write_all(declared.ptx.as_bytes());
        let output = child.wait_with_output().unwrap();
        assert!(
            output.status.success(),
            "{}: {}\n{}",
            declared.name,
            String::from_utf8_lossy(&output.stderr),
            declared.ptx
        );
    }
}
