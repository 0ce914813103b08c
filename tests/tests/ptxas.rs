//! NVIDIA's assembler takes every PTX snapshot, and every kernel, bare and checked, made for each target; and refuses each with a
//! `.version` before the one that it has, which is therefore the lowest.
//!
//! Most kernels are the same text for all targets but for `.version` and `.target`. Such a text is assembled for the first target
//! and for one of the later ones, each in turn; `EVERY_TARGET=1` asks them all.
//!
//! It is no part of the project, so a machine without it sees the modules skipped, and how to have them assembled.
//! Where `KERNELS_REQUIRE_PTXAS` is set, as in CI, that is a failure.

use kernel_dsl::compiler::hir::Instance;
use kernel_dsl::compiler::lower::checked::checked;
use kernel_dsl::compiler::{Target, compile};
use kernel_dsl::{Artifact, Declared};
use kernels_rs_command::ptxas::Ptxas;
use runtime::testing::on_every_core;
use std::process::ExitCode;

/// What brings it.
const COMMAND: &str = "tests/get-ptxas";

/// The versions of PTX up to the first that knows all our targets, from the manual's table of releases.
const VERSIONS: [&str; 17] = [
    "4.3", "5.0", "6.0", "6.1", "6.2", "6.3", "6.4", "6.5", "7.0", "7.1", "7.2", "7.3", "7.4", "7.5", "7.6", "7.7",
    "7.8",
];

/// What is assembled.
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
        Ok(_) => return failed("there are no snapshots of PTX"),
        Err(e) => return failed(&format!("the snapshots of PTX cannot be read: {e}")),
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
                (Outcome::Skipped, format!("skipped: {ptxas} does not know the target"))
            }
            Some(ptxas) => match assemble(ptxas, module) {
                Ok(()) => (Outcome::Passed, "ok".to_string()),
                Err(said) => (Outcome::Failed, format!("FAILED\n{said}")),
            },
            None if required => (Outcome::Failed, format!("FAILED: no ptxas that knows sm_61; `{COMMAND}` brings it")),
            None => (Outcome::Skipped, format!("skipped: no ptxas that knows sm_61; `{COMMAND}` brings it")),
        };
        println!("ptxas -arch={} {} ... {said}", module.target, module.name);
        outcome
    });
    let count = |of| outcomes.iter().filter(|outcome| **outcome == of).count();
    let [passed, failed, skipped] = [Outcome::Passed, Outcome::Failed, Outcome::Skipped].map(count);
    println!("{passed} passed, {failed} failed, {skipped} skipped");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Whether the module is taken as it is, and refused in the version of PTX before.
fn assemble(ptxas: &Ptxas, module: &Module) -> Result<(), String> {
    ptxas.assemble(&module.ptx, module.target)?;
    let line = module.ptx.lines().find(|line| line.starts_with(".version ")).ok_or("it has no `.version`")?;
    let version = VERSIONS.iter().position(|v| line == format!(".version {v}"));
    let before =
        version.and_then(|i| i.checked_sub(1)).ok_or_else(|| format!("`{line}` is no version that we know"))?;
    let older = module.ptx.replace(line, &format!(".version {}", VERSIONS[before]));
    match ptxas.assemble(&older, module.target) {
        Ok(_) => Err(format!("it has `{line}`, and {} would do", VERSIONS[before])),
        Err(_) => Ok(()),
    }
}

/// A declared instance, which has this place among all, for each later target, and its checked form, as a launch on a GPU compiles
/// it, for each.
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
    let mut all = asked(bare, turn);
    // The library's are among the snapshots.
    all.retain(|module| module.target != artifact.target);
    all.extend(asked(forms, turn));
    Ok(all)
}

/// Of one kernel's modules for each target in turn, those that are assembled.
fn asked(modules: Vec<Module>, turn: usize) -> Vec<Module> {
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
