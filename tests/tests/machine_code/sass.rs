//! Tests of source lines in PTX and in the machine code that ptxas makes of it, for every kernel of
//! kernels-rs and its expert examples.
//!
//! Without a ptxas and an nvdisasm (`tests/get-nvdisasm` fetches both), the tests that need them
//! are skipped, with a message.

use kernel_dsl::Artifact;
use kernel_dsl::compiler::emit::{LineDirectives, emit, emit_with, file_name};
use kernel_dsl::compiler::hir::Instance;
use kernel_dsl::compiler::passes::Optimized;
use kernel_dsl::compiler::ptx::ast::{File, Item, Location, Module, Statement};
use kernel_dsl::compiler::ptx::parse;
use kernel_dsl::compiler::{Target, driver, passes};
use kernels_rs_command::nvdisasm::Nvdisasm;
use kernels_rs_command::ptxas::Ptxas;
use kernels_rs_command::sass::{Class, Listing, SassInstruction};
use runtime::testing::on_every_core;
use serde_json::Value;
use std::collections::BTreeSet;
use std::process::{Command, Output};
use tests as _;

/// Returns the kernels, with the name and the constants of each declared instance.
fn declared() -> impl Iterator<Item = (&'static Artifact, &'static str, Instance)> {
    let kernels = kernel_dsl::kernels().into_iter();
    kernels.flat_map(|kernel| kernel.instances.iter().map(move |i| (kernel, i.name, Instance(i.constants.to_vec()))))
}

/// Returns one instance of each kernel.
fn kernels() -> impl Iterator<Item = (&'static Artifact, &'static str, Instance)> {
    let mut seen = std::collections::HashSet::new();
    declared().filter(move |(kernel, ..)| seen.insert((kernel.module, kernel.name)))
}

/// Returns one instance of each kernel, or of every 16th kernel on every change.
fn some_kernels() -> Vec<(&'static Artifact, &'static str, Instance)> {
    kernels().step_by(if tests::share::is_whole() { 1 } else { 16 }).collect()
}

fn optimized(kernel: &Artifact, instance: &Instance, target: Target) -> Optimized {
    let program = kernel.program().unwrap();
    let lowered = driver::lowered(&program, instance, target).unwrap_or_else(|e| panic!("{}: {e}", kernel.name));
    passes::optimize(lowered).unwrap_or_else(|e| panic!("{}: {e}", kernel.name))
}

fn tools() -> Option<(Ptxas, Nvdisasm)> {
    let ptxas = Ptxas::find().filter(Ptxas::takes_sm_61);
    let tools = ptxas.and_then(|ptxas| Nvdisasm::find(&ptxas).map(|nvdisasm| (ptxas, nvdisasm)));
    if tools.is_none() {
        println!("skipped: no ptxas for sm_61 with an nvdisasm; `tests/get-nvdisasm` fetches both");
    }
    tools
}

/// Returns a module's text without its source lines and without empty lines.
fn without_lines(module: &Module) -> String {
    let of_source = |line: &&str| [".file ", ".loc "].iter().any(|word| line.trim_start().starts_with(word));
    let text = module.to_string();
    text.lines().filter(|line| !of_source(line) && !line.is_empty()).map(|line| format!("{line}\n")).collect()
}

/// Compares each source line with the comment above it, and all other text with the module without
/// lines.
#[test]
fn source_lines_match_their_comments() {
    let all: Vec<_> = if tests::share::is_whole() { declared().collect() } else { kernels().collect() };
    on_every_core(&all, |(kernel, name, instance)| {
        let kernel = optimized(kernel, instance, kernel.target);
        let module = emit_with(&kernel, LineDirectives::Kept).unwrap();
        assert_eq!(parse(&module.to_string()).as_ref(), Ok(&module), "{name}");
        let files: Vec<_> =
            module.items().iter().filter_map(|i| if let Item::File(f) = i { Some(f) } else { None }).collect();
        let body = module.entries().next().unwrap().body.as_ref().unwrap();
        let mut comment = "";
        let mut lines = 0;
        for statement in body {
            match statement {
                Statement::Comment(text) => comment = text,
                Statement::Location(Location { position, inlined: None }) => {
                    let File { name: file, .. } = files.iter().find(|f| f.index == position.file).unwrap();
                    let (offset, code) = comment.split_once('+').unwrap().1.split_once(' ').unwrap();
                    let exists = kernel.sources.iter().any(|source| {
                        let line = source.line + offset.parse::<u32>().unwrap();
                        file_name(source) == *file
                            && line == position.line
                            && source
                                .text
                                .get((line - source.line) as usize)
                                .is_some_and(|text| code.contains("\\u") || text.contains(code))
                    });
                    assert!(exists, "{name}: {file}:{} is not `{comment}`", position.line);
                    lines += 1;
                }
                Statement::Location(_) => panic!("{name}: an inlined location has no function"),
                _ => {}
            }
        }
        assert!(lines > 0, "{name}");
        assert_eq!(without_lines(&module), without_lines(&emit(&kernel).unwrap()), "{name}");
    });
}

fn without_line(inst: &SassInstruction) -> SassInstruction {
    SassInstruction { line: None, ..inst.clone() }
}

#[test]
fn machine_code_is_the_same_with_source_lines() {
    let Some((ptxas, nvdisasm)) = tools() else { return };
    on_every_core(&some_kernels(), |(kernel, name, instance)| {
        let target = kernel.target;
        let kernel = optimized(kernel, instance, target);
        let ptx = |lines| emit_with(&kernel, lines).unwrap().to_string();
        let (resources, text) = nvdisasm.text(&ptxas, &ptx(LineDirectives::Kept), target).unwrap();
        let with = Listing::read(&text).unwrap();
        let without = nvdisasm.listing(&ptxas, &ptx(LineDirectives::Omitted), target).unwrap();
        let bare = |listing: &Listing| listing.instructions.iter().map(without_line).collect::<Vec<_>>();
        assert_eq!(bare(&with), bare(&without), "{name}");

        assert_eq!(Some(with.sm), Some(Some(target.sm())), "{name}");
        // The resources that ptxas reports are those in the machine code.
        assert!(text.contains(&format!("SHI_REGISTERS={}\"", resources.registers)), "{name}: {resources:?}");
        if kernel.dynamic.is_empty() {
            assert_eq!(resources.shared_bytes, kernel.shared_bytes(), "{name}");
        }
        let spills = with.instructions.iter().any(|i| matches!(Class::of(i), Class::LocalLoad | Class::LocalStore));
        assert!(!spills || resources.stack_bytes > 0, "{name}: {resources:?}");

        for (at, inst) in with.instructions.iter().enumerate() {
            assert!(inst.idle() || Class::of(inst) != Class::Other, "{name}: {inst:?}");
            let own = with.functions.keys().any(|start| *start <= at);
            let Some(line) = &inst.line else {
                assert!(own, "{name}: {inst:?} has no line");
                continue;
            };
            let exists = kernel.sources.iter().any(|source| {
                let offset = line.number.checked_sub(source.line);
                file_name(source) == line.file && offset.is_some_and(|offset| source.line_text(offset).is_some())
            });
            assert!(exists, "{name}: {line:?} belongs to no function");
        }
        // A backward jump is in a loop, and the nested loops of a loop are listed in it.
        let loops = with.loops();
        for (at, inst) in with.instructions.iter().enumerate().filter(|(_, i)| i.opcode() == "BRA") {
            let back = inst.targets.iter().any(|to| *to < at && !with.functions.keys().any(|f| *f <= at));
            let looped = loops.iter().any(|l| l.body.contains(&at));
            assert!(!back || looped, "{name}: {inst:?}");
        }
    });
}

#[test]
fn every_target_is_read() {
    let Some((ptxas, nvdisasm)) = tools() else { return };
    // Kernels with many instances are represented by the first.
    let first =
        |kernel: &Artifact, name: &str| kernel.module.starts_with("kernels_rs") && kernel.instances[0].name == name;
    let some = if tests::share::is_whole() { 1 } else { 2 };
    let kernels = kernels().filter(|(kernel, name, _)| first(kernel, name)).step_by(some);
    let kernels: Vec<_> = kernels.enumerate().collect();
    // Successive targets have nearly the same instructions, so that each kernel is tested for some
    // of them.
    let step = if tests::share::is_whole() { 2 } else { Target::ALL.len() };
    let targets: Vec<_> = Target::ALL.into_iter().filter(|target| ptxas.supports(*target)).enumerate().collect();
    let unknown = on_every_core(&targets, |&(at, target)| {
        let tested = kernels
            .iter()
            .filter(|(number, (kernel, ..))| target >= kernel.target && (number + at).is_multiple_of(step));
        let ptx: Vec<_> =
            tested.map(|(_, (kernel, _, i))| emit(&optimized(kernel, i, target)).unwrap().to_string()).collect();
        let all = nvdisasm.disassemble_all(&ptxas, ptx.iter().map(|ptx| &ptx[..]), target);
        let mut unknown = BTreeSet::new();
        for (_, listing) in all.unwrap_or_else(|e| panic!("for {target}: {e}")) {
            assert_eq!(listing.sm, Some(target.sm()));
            assert_eq!(listing.bank_conflicts().is_some(), target == Target::SM_61, "{target}");
            let other = listing.instructions.iter().filter(|inst| !inst.idle() && Class::of(inst) == Class::Other);
            unknown.extend(other.map(|inst| format!("{} for {target}", inst.name)));
        }
        unknown
    });
    let unknown: BTreeSet<_> = unknown.into_iter().flatten().collect();
    assert!(unknown.is_empty(), "unclassified instructions: {unknown:#?}");
}

/// Runs the command `kernels` with these kernels.
fn command(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_all-kernels")).args(arguments).output().unwrap()
}

fn stdout(arguments: &[&str]) -> String {
    let output = command(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Returns whether ptxas is the release of the snapshots, which depend on it in details.
fn is_release_of_snapshots() -> bool {
    match tools() {
        Some((ptxas, _)) if ptxas.release.as_deref() == Some("12.9") => true,
        Some((ptxas, _)) => {
            println!("skipped: the snapshots were made with ptxas 12.9, and this is {ptxas}");
            false
        }
        None => false,
    }
}

#[test]
fn listing_shows_machine_code_below_source_lines() {
    if is_release_of_snapshots() {
        insta::assert_snapshot!("matmul_16", stdout(&["show", "matmul::<16>", "--sass"]));
        // The same kernel on another architecture.
        insta::assert_snapshot!("transpose_sm_80", stdout(&["show", "transpose", "--sass", "--target", "sm_80"]));
    }
}

#[test]
fn listings_fit_a_terminal() {
    if tools().is_none() {
        return;
    }
    on_every_core(&some_kernels(), |(kernel, name, _)| {
        let name = format!("{}::{name}", kernel.module);
        let shown = stdout(&["show", &name, "--sass"]);
        assert!(!shown.contains('\x1b'), "a pipe has no colors");
        for line in shown.lines() {
            assert!(line.chars().count() <= 100, "{name}: {line}");
        }
        let report: Value = serde_json::from_str(&stdout(&["report", &name, "--json"])).unwrap();
        let sass = &report[0]["machine_code"]["sass"];
        let number = |value: &Value| value.as_u64().unwrap();
        assert!(number(&sass["slots"]) <= number(&sass["instructions"]), "{name}");
        let mix = |of: &Value| of["mix"].as_object().unwrap().values().map(number).sum::<u64>();
        assert_eq!(mix(sass), number(&sass["instructions"]), "{name}");
        let loops = sass["loops"].as_array().unwrap();
        assert_eq!(shown.matches("┌ loop ").count(), loops.len(), "{name}");
        for l in loops {
            assert_eq!(mix(l), number(&l["instructions"]), "{name}");
            let outside = match l["inside"].as_u64() {
                Some(outer) => &loops[outer as usize],
                None => sass,
            };
            for part in ["instructions", "slots", "bank_conflicts"] {
                assert!(number(&l[part]) <= number(&outside[part]), "{name}: {part}");
            }
        }
    });
}

#[test]
fn missing_tools_are_named() {
    let nowhere = std::env::temp_dir();
    let mut command = Command::new(env!("CARGO_BIN_EXE_all-kernels"));
    let output = command.args(["show", "saxpy", "--sass"]).env("PATH", "").current_dir(nowhere).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("a ptxas that knows sm_61 is not found on PATH nor in target/tools"), "{error}");
}
