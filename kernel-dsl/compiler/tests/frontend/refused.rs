//! Invalid programs. Each is rejected by the stage that its file names, and a snapshot has the
//! complete messages.

use crate::support::{Checked, Complaint, Crate, Function, Refusal};
use kernel_dsl_compiler::{driver, passes};
use std::fmt::Write;

/// Runs all stages until one rejects the function.
fn refusal(all: &Crate, function: &Function) -> Option<Refusal> {
    let program = match all.check(function) {
        Ok(Checked::Kernel(program)) => program,
        Ok(Checked::Device(_)) => return None,
        Err(refusal) => return Some(refusal),
    };
    let mut complaints: Vec<Complaint> = Vec::new();
    for instance in &program.launch.instances {
        let done = driver::lowered(&program, &instance.arguments, program.launch.target).and_then(passes::optimize);
        if let Err(errors) = done {
            complaints.extend(Refusal::from(errors).0);
        }
    }
    (!complaints.is_empty()).then_some(Refusal(complaints))
}

/// Returns the messages for each function of `text`, under its name. Functions named `helper…`
/// exist only to be called.
fn refusals(text: &str) -> String {
    let all = Crate::parse(text).expect("the file is Rust");
    let mut out = String::new();
    for function in all.functions.iter().filter(|f| !f.name().starts_with("helper")) {
        let Some(refusal) = refusal(&all, function) else { panic!("`{}` is accepted", function.name()) };
        let _ = writeln!(out, "{}:", function.name());
        for complaint in &refusal.0 {
            out.push_str(&complaint.render(text));
        }
        out.push('\n');
    }
    out
}

#[test]
fn syntax_outside_the_language_is_refused() {
    insta::assert_snapshot!(refusals(include_str!("refused/syntax.rs")));
}

#[test]
fn invalid_attributes_are_refused() {
    insta::assert_snapshot!(refusals(include_str!("refused/attributes.rs")));
}

#[test]
fn wrong_names_types_and_mutability_are_refused() {
    insta::assert_snapshot!(refusals(include_str!("refused/check.rs")));
}

#[test]
fn invalid_instances_are_refused() {
    insta::assert_snapshot!(refusals(include_str!("refused/instances.rs")));
}

#[test]
fn arithmetic_in_16_bits_is_refused() {
    insta::assert_snapshot!(refusals(include_str!("refused/half.rs")));
}

#[test]
fn divergent_barriers_are_refused() {
    insta::assert_snapshot!(refusals(include_str!("refused/convergence.rs")));
}
