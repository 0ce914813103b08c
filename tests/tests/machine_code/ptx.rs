//! Tests of the PTX of the declared instances of kernels-rs, as their expansions contain it.

use kernel_dsl::compiler::hir::Instance;
use kernel_dsl::compiler::lower::checked::checked;
use kernel_dsl::compiler::ptx::parse;
use kernel_dsl::compiler::{Target, compile};
use kernel_dsl::{Artifact, Declared};
use kernels_rs_specs as _;
use runtime::testing::on_every_core;

fn declared() -> Vec<(&'static Artifact, &'static Declared)> {
    let all: Vec<_> = kernel_dsl::kernels()
        .into_iter()
        .filter(|kernel| kernel.module.starts_with("kernels_rs"))
        .flat_map(|kernel| kernel.instances.iter().map(move |i| (kernel, i)))
        .collect();
    assert!(all.len() >= 6, "kernels-rs is not linked");
    all
}

fn entry(kernel: &Artifact, declared: &Declared) -> String {
    Instance(declared.constants.to_vec()).entry(kernel.name)
}

/// Returns the instances with a snapshot. Of a kernel with many instances, which differ in the
/// unroll factor only, this is the first.
fn kept() -> Vec<(&'static Artifact, &'static Declared)> {
    let few = |(kernel, declared): &(&Artifact, &Declared)| {
        kernel.instances.len() <= 2 || declared.name == kernel.instances[0].name
    };
    declared().into_iter().filter(few).collect()
}

#[test]
fn ptx_of_every_instance_is_as_accepted() {
    for (kernel, declared) in kept() {
        insta::assert_snapshot!(entry(kernel, declared), declared.ptx);
    }
}

/// Checks that no snapshot remains of a removed kernel, which would still be assembled.
#[test]
fn each_snapshot_has_an_instance() {
    let names: Vec<_> = kept().into_iter().map(|(kernel, declared)| entry(kernel, declared)).collect();
    for snapshot in tests::ptx_snapshots().expect("the snapshots") {
        assert!(names.contains(&snapshot.name), "no kernel has the instance `{}`", snapshot.name);
    }
}

/// Checks that the macro, which rustc ran, and the compiler linked here generate the same text.
#[test]
fn stored_hir_compiles_to_the_same_text() {
    on_every_core(&declared(), |(kernel, declared)| {
        let program = kernel.program().unwrap_or_else(|e| panic!("{}: {e}", declared.name));
        let again = compile(&program, &Instance(declared.constants.to_vec()), Target::SM_61);
        assert_eq!(again.as_deref(), Ok(declared.ptx), "{}", declared.name);
    });
}

/// Checks that parsing and printing reproduces the text of a kernel and of its checked form: on
/// every change, of the instances with a snapshot.
#[test]
fn each_text_parses() {
    let instances = if tests::share::is_whole() { declared() } else { kept() };
    on_every_core(&instances, |(kernel, declared)| {
        let program = kernel.program().unwrap();
        let form = checked(&program, &Instance(declared.constants.to_vec()), Target::SM_61).unwrap();
        for text in [declared.ptx, &form.ptx().unwrap()] {
            let module = parse(text).unwrap_or_else(|e| panic!("{}:\n{e}", declared.name));
            assert_eq!(module.to_string(), text);
        }
    });
}
