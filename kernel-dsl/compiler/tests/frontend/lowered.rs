//! Valid programs, and their IR as lowered.

use crate::support::{Crate, KERNELS, library};
use kernel_dsl_compiler::hir::serial;
use kernel_dsl_compiler::{emit, ir, lower, passes};

/// Compares the IR of each kernel of `text` with a snapshot of its name. The IR must satisfy the
/// verifier, pass all passes, and be the same when it is made from serialized HIR.
fn snapshots(text: &str) {
    let all = Crate::parse(text).expect("the file is Rust").with(&library());
    for function in all.kernels() {
        let program = all.program(function);
        // Two instances show the differences between instances.
        for declared in program.launch.instances.iter().take(2) {
            let instance = &declared.arguments;
            let name = instance.entry(&function.name());
            let kernel =
                lower::lower(&program, instance, program.launch.target).unwrap_or_else(|e| panic!("{name}: {e}"));
            ir::verify::verify(&kernel).unwrap_or_else(|e| panic!("{name}: {e}\n{kernel}"));
            let text = kernel.to_string();
            insta::assert_snapshot!(name.clone(), kernel.to_string());
            let parsed: ir::Kernel = text.parse().unwrap_or_else(|fault| panic!("{name}: {fault}\n{text}"));
            assert_eq!(without_comments(&parsed.to_string()), without_comments(&text), "{name}, parsed");

            let stored = serial::program(&serial::encode_program(&program)).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert_eq!(lower::lower(&stored, instance, program.launch.target).as_ref(), Ok(&kernel), "{name}, stored");
            let ptx = |kernel| {
                let kernel = passes::optimize(kernel).unwrap_or_else(|e| panic!("{name}: {e}"));
                let module = emit::emit(&kernel).unwrap_or_else(|e| panic!("{name}: {e}")).to_string();
                // Comments that quote the source.
                module.lines().filter(|line| !line.contains("//")).collect::<Vec<_>>().join("\n")
            };
            assert_eq!(ptx(parsed), ptx(kernel), "{name}, parsed");
        }
    }
}

/// Returns the lines of the IR without the quoted source, which the parser skips.
fn without_comments(text: &str) -> Vec<&str> {
    text.lines().filter(|line| !line.trim_start().starts_with("//")).collect()
}

#[test]
fn kernels_lower_to_the_accepted_ir() {
    KERNELS.into_iter().for_each(snapshots);
}

#[test]
fn values_lower_to_the_accepted_ir() {
    snapshots(include_str!("lowered/values.rs"));
}

#[test]
fn control_flow_lowers_to_the_accepted_ir() {
    snapshots(include_str!("lowered/control.rs"));
}

#[test]
fn cases_lower_to_the_accepted_ir() {
    snapshots(include_str!("lowered/cases.rs"));
}

#[test]
fn closures_lower_to_the_accepted_ir() {
    snapshots(include_str!("lowered/closures.rs"));
}

#[test]
fn collectives_lower_to_the_accepted_ir() {
    snapshots(include_str!("lowered/collectives.rs"));
}

#[test]
fn combined_constructs_lower_to_the_accepted_ir() {
    snapshots(include_str!("lowered/gaps.rs"));
}

#[test]
fn iteration_lowers_to_the_accepted_ir() {
    snapshots(include_str!("lowered/iterate.rs"));
}

#[test]
fn functions_lower_to_the_accepted_ir() {
    snapshots(include_str!("lowered/functions.rs"));
}

#[test]
fn memory_accesses_lower_to_the_accepted_ir() {
    snapshots(include_str!("lowered/memory.rs"));
}

/// Checks that a kernel near the unroll limit has a checked form, which is longer, within the limit
/// of checked forms.
#[test]
fn kernels_near_the_unroll_limit_have_a_checked_form() {
    let text = "
        #[kernel(block = 32, grid = 1)]
        fn unrolled(mut y: ViewMut<f32, 2>) {
            for i in unroll(0..30_000) {
                y[(thread::x() + i, 4 * i)] = 1.0;
            }
        }";
    let all = Crate::parse(text).unwrap();
    assert_eq!(crate::damage::compile(&all, &all.functions[0]), "compiled");
}
