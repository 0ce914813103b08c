//! Assembles PTX with NVIDIA's assembler: snapshots, and every kernel, unchecked and checked, for
//! later targets.
//!
//! The assembler must also reject each module with the preceding `.version`, so that its `.version`
//! is the lowest possible.
//!
//! On every change, every eighth snapshot is assembled, and one instance of each kernel in one form
//! for one target, both chosen in rotation. `TESTS=all` assembles all of them for every target.
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
    // `budgets` and `kernels check` assemble most of them too.
    let step = if tests::share::is_whole() { 1 } else { 8 };
    let snapshots = snapshots.into_iter().step_by(step);
    let snapshots = snapshots.map(|s| Module { name: s.name, target: Target::SM_61, ptx: s.ptx });
    let kernels = kernel_dsl::kernels();
    let some = if tests::share::is_whole() { usize::MAX } else { 1 };
    let instances = kernels.iter().flat_map(|kernel| kernel.instances.iter().take(some).map(move |i| (*kernel, i)));
    let instances: Vec<_> = instances.enumerate().collect();
    let forms: Result<Vec<_>, String> =
        on_every_core(&instances, |(number, (kernel, declared))| forms(kernel, declared, *number))
            .into_iter()
            .collect();
    let all = match forms {
        Ok(forms) => snapshots.chain(forms.into_iter().flatten()).filter(|m| chosen(&m.name)).collect::<Vec<_>>(),
        Err(e) => return failed(&e),
    };
    let required = std::env::var_os("KERNELS_REQUIRE_PTXAS").is_some_and(|value| !value.is_empty());
    let ptxas = Ptxas::find().filter(Ptxas::takes_sm_61);

    let outcomes = on_every_core(&all, |module| {
        let (outcome, said) = match &ptxas {
            Some(ptxas) if !ptxas.supports(module.target) => {
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

/// Compiles a declared instance, unchecked and in its checked form, as a launch on a GPU would.
/// Whole tests compile both forms for each target. Other runs compile one form for one target,
/// chosen by `number`.
fn forms(artifact: &Artifact, declared: &Declared, number: usize) -> Result<Vec<Module>, String> {
    let program = artifact.program().map_err(|e| e.to_string())?;
    let instance = Instance(declared.constants.to_vec());
    let targets: Vec<_> = Target::ALL.into_iter().filter(|target| *target >= artifact.target).collect();
    // The snapshots contain the unchecked kernels of the library for the first target.
    let later = &targets[1..];
    let selected = |all: &[Target], turn: usize| match all.is_empty() {
        _ if tests::share::is_whole() => all.to_vec(),
        false if number % 2 == turn => vec![all[number / 2 % all.len()]],
        _ => Vec::new(),
    };
    let failed = |target| move |e| format!("{} does not compile for {target}: {e}", declared.name);
    let mut modules = Vec::new();
    for target in selected(later, 0) {
        let ptx = compile(&program, &instance, target).map_err(failed(target))?;
        modules.push(Module { name: declared.name.to_string(), target, ptx });
    }
    for target in selected(&targets, 1) {
        let ptx = checked(&program, &instance, target).and_then(|form| form.ptx()).map_err(failed(target))?;
        modules.push(Module { name: format!("{}, checked", declared.name), target, ptx });
    }
    Ok(modules)
}

fn failed(message: &str) -> ExitCode {
    println!("{message}");
    ExitCode::FAILURE
}
