//! Assembles PTX with NVIDIA's assembler: every snapshot, and every kernel, unchecked and checked,
//! for each target.
//!
//! The assembler must also reject each module with the preceding `.version`, so that its `.version`
//! is the lowest possible.
//!
//! Most kernels have the same text for all targets except `.version` and `.target`. The test
//! assembles such a text for the first target and for one of the later targets, chosen in rotation.
//! `EVERY_TARGET=1` assembles all of them.
//!
//! Without ptxas the modules are skipped, with a message that names the script to install it. If
//! `KERNELS_REQUIRE_PTXAS` is set, as in CI, a missing ptxas is a failure.

use kernel_dsl::compiler::hir::Instance;
use kernel_dsl::compiler::lower::checked::checked;
use kernel_dsl::compiler::{Target, compile};
use kernel_dsl::{Artifact, Declared};
use kernels_rs_command::ptxas::Ptxas;
use runtime::testing::on_every_core;
use std::process::ExitCode;

/// The script that fetches ptxas.
const COMMAND: &str = "tests/get-ptxas";

/// Versions of PTX up to the first that supports all our targets, from the manual's table of
/// releases.
const VERSIONS: [&str; 17] = [
    "4.3", "5.0", "6.0", "6.1", "6.2", "6.3", "6.4", "6.5", "7.0", "7.1", "7.2", "7.3", "7.4", "7.5", "7.6", "7.7",
    "7.8",
];

/// A module to assemble.
struct Module {
    name: String,
    target: Target,
    ptx: String,
}

#[derive(Clone, Copy, PartialEq)]
enum Outcome {
    Passed,
    Failed,
    Skipped,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.iter().any(|a| a == "--list") {
        return ExitCode::SUCCESS;
    }
    let filters: Vec<_> = arguments.iter().filter(|a| !a.starts_with('-')).collect();
    let chosen = |name: &str| filters.is_empty() || filters.iter().any(|f| name.contains(f.as_str()));
    let snapshots = match tests::ptx_snapshots() {
        Ok(all) if !all.is_empty() => all,
        Ok(_) => return failed("there are no PTX snapshots"),
        Err(e) => return failed(&format!("cannot read the PTX snapshots: {e}")),
    };
    let snapshots = snapshots.into_iter().map(|s| Module { name: s.name, target: Target::SM_61, ptx: s.ptx });
    let kernels = kernel_dsl::kernels();
    let instances = kernels.iter().flat_map(|kernel| kernel.instances.iter().map(move |declared| (*kernel, declared)));
    let instances: Vec<_> = instances.enumerate().collect();
    let forms: Result<Vec<_>, String> =
        on_every_core(&instances, |(turn, (kernel, declared))| forms(kernel, declared, *turn)).into_iter().collect();
    let all = match forms {
        Ok(forms) => snapshots.chain(forms.into_iter().flatten()).filter(|m| chosen(&m.name)).collect::<Vec<_>>(),
        Err(e) => return failed(&e),
    };
    let required = std::env::var_os("KERNELS_REQUIRE_PTXAS").is_some_and(|value| !value.is_empty());
    let ptxas = Ptxas::find().filter(Ptxas::takes_sm_61);

    let outcomes = on_every_core(&all, |module| {
        let (outcome, said) = match &ptxas {
            Some(ptxas) if !ptxas.takes(module.target) => {
                (Outcome::Skipped, format!("skipped: {ptxas} does not support the target"))
            }
            Some(ptxas) => match assemble(ptxas, module) {
                Ok(()) => (Outcome::Passed, "ok".to_string()),
                Err(said) => (Outcome::Failed, format!("FAILED\n{said}")),
            },
            None if required => (Outcome::Failed, format!("FAILED: no ptxas that supports sm_61; run `{COMMAND}`")),
            None => (Outcome::Skipped, format!("skipped: no ptxas that supports sm_61; run `{COMMAND}`")),
        };
        println!("ptxas -arch={} {} ... {said}", module.target, module.name);
        outcome
    });
    let count = |of| outcomes.iter().filter(|outcome| **outcome == of).count();
    let [passed, failed, skipped] = [Outcome::Passed, Outcome::Failed, Outcome::Skipped].map(count);
    println!("{passed} passed, {failed} failed, {skipped} skipped");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Checks that ptxas accepts the module, and rejects it with the preceding version of PTX.
fn assemble(ptxas: &Ptxas, module: &Module) -> Result<(), String> {
    ptxas.assemble(&module.ptx, module.target)?;
    let line = module.ptx.lines().find(|line| line.starts_with(".version ")).ok_or("the module has no `.version`")?;
    let version = VERSIONS.iter().position(|v| line == format!(".version {v}"));
    let before = version.and_then(|i| i.checked_sub(1)).ok_or_else(|| format!("unknown version `{line}`"))?;
    let older = module.ptx.replace(line, &format!(".version {}", VERSIONS[before]));
    match ptxas.assemble(&older, module.target) {
        Ok(_) => Err(format!("the module has `{line}`, but {} is sufficient", VERSIONS[before])),
        Err(_) => Ok(()),
    }
}

/// Compiles a declared instance for each later target, unchecked and in its checked form, as a
/// launch on a GPU compiles it. `turn` is its position among all instances.
fn forms(artifact: &Artifact, declared: &Declared, turn: usize) -> Result<Vec<Module>, String> {
    let program = artifact.program().map_err(|e| e.to_string())?;
    let instance = Instance(declared.constants.to_vec());
    let (mut bare, mut forms) = (Vec::new(), Vec::new());
    for target in Target::ALL.into_iter().filter(|target| *target >= artifact.target) {
        let failed = |e| format!("{} does not compile for {target}: {e}", declared.name);
        let ptx = compile(&program, &instance, target).map_err(failed)?;
        bare.push(Module { name: declared.name.to_string(), target, ptx });
        let ptx = checked(&program, &instance, target).and_then(|form| form.ptx()).map_err(failed)?;
        forms.push(Module { name: format!("{}, checked", declared.name), target, ptx });
    }
    let mut all = selected(bare, turn);
    // The snapshots contain the kernels of the library for this target.
    all.retain(|module| module.target != artifact.target);
    all.extend(selected(forms, turn));
    Ok(all)
}

/// Returns the modules to assemble, of one kernel's modules for each target.
fn selected(modules: Vec<Module>, turn: usize) -> Vec<Module> {
    let every = std::env::var_os("EVERY_TARGET").is_some();
    let headed = |line: &&str| [".version ", ".target "].iter().any(|of| line.starts_with(of));
    let body = |module: &Module| module.ptx.lines().filter(|line| !headed(line)).collect::<Vec<_>>().join("\n");
    let bodies: Vec<_> = modules.iter().map(body).collect();
    let new = |i: usize| i == 0 || bodies[i - 1] != bodies[i];
    let later = 1 + turn % (modules.len() - 1).max(1);
    let modules = modules.into_iter().enumerate();
    modules.filter(|(i, _)| every || new(*i) || later == *i).map(|(_, module)| module).collect()
}

fn failed(message: &str) -> ExitCode {
    println!("{message}");
    ExitCode::FAILURE
}
