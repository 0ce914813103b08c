//! NVIDIA's assembler takes every PTX snapshot, and the checked form of every kernel, for sm_61.
//!
//! It is no part of the project, so a machine without it sees the snapshots skipped, and how to have them assembled.
//! Where `KERNELS_REQUIRE_PTXAS` is set, as in CI, that is a failure.

use kernel_dsl::compiler::Target;
use kernel_dsl::compiler::hir::{Instance, serial};
use kernel_dsl::compiler::lower::checked::checked;
use kernels_rs::command::ptxas::Ptxas;
use std::process::ExitCode;
use tests::Snapshot;

/// What brings it.
const COMMAND: &str = "tests/get-ptxas";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.iter().any(|a| a == "--list") {
        return ExitCode::SUCCESS;
    }
    let filters: Vec<_> = arguments.iter().filter(|a| !a.starts_with('-')).collect();
    let chosen = |name: &str| filters.is_empty() || filters.iter().any(|f| name.contains(f.as_str()));
    let snapshots = match tests::ptx_snapshots() {
        Ok(all) if !all.is_empty() => all,
        Ok(_) => return failed("there are no snapshots of PTX"),
        Err(e) => return failed(&format!("the snapshots of PTX cannot be read: {e}")),
    };
    let all = match checked_forms() {
        Ok(checked) => snapshots.into_iter().chain(checked),
        Err(e) => return failed(&e),
    };
    let required = std::env::var_os("KERNELS_REQUIRE_PTXAS").is_some_and(|value| !value.is_empty());
    let ptxas = Ptxas::find().filter(Ptxas::takes_sm_61);

    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    for snapshot in all.filter(|s| chosen(&s.name)) {
        let outcome = match &ptxas {
            Some(ptxas) => match ptxas.assemble(&snapshot.ptx) {
                Ok(()) => {
                    passed += 1;
                    "ok".to_string()
                }
                Err(said) => {
                    failed += 1;
                    format!("FAILED\n{said}")
                }
            },
            None if required => {
                failed += 1;
                format!("FAILED: no ptxas that knows sm_61; `{COMMAND}` brings it")
            }
            None => {
                skipped += 1;
                format!("skipped: no ptxas that knows sm_61; `{COMMAND}` brings it")
            }
        };
        println!("ptxas -arch=sm_61 {} ... {outcome}", snapshot.name);
    }
    println!("{passed} passed, {failed} failed, {skipped} skipped");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The checked form of every declared instance, as a launch on a GPU compiles it.
fn checked_forms() -> Result<Vec<Snapshot>, String> {
    let mut all = Vec::new();
    for artifact in kernel_dsl::kernels() {
        let program = serial::program(artifact.hir).map_err(|e| e.to_string())?;
        for declared in artifact.instances {
            let instance = Instance(declared.constants.to_vec());
            let form = checked(&program, &instance, Target::SM_61).and_then(|form| form.ptx());
            let ptx = form.map_err(|e| format!("the checked form of {} does not compile: {e}", declared.name))?;
            all.push(Snapshot { name: format!("{}, checked", declared.name), ptx });
        }
    }
    Ok(all)
}

fn failed(message: &str) -> ExitCode {
    println!("{message}");
    ExitCode::FAILURE
}
