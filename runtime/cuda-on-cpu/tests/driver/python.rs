//! Scripts that use the driver by ctypes, each in a separate process. The scripts assert the
//! results of NVIDIA's driver.

use super::common;
use std::path::Path;
use std::process::Command;

/// Runs a script of that name.
pub fn run(name: &str) {
    run_with(name, &[]);
}

/// Runs a script with arguments.
pub fn run_with(name: &str, arguments: &[&str]) {
    if Command::new("python3").arg("--version").output().is_err() {
        println!("note: no python3, and {name} was not run");
        return;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/driver/python").join(name);
    let mut python = common::command("python3");
    let output = python.arg(script).args(arguments).env("PYTHONDONTWRITEBYTECODE", "1").output().unwrap();
    common::expect_good(&output);
}

#[test]
fn kernels_print_allocate_and_assert() {
    run("printing.py");
}

#[test]
fn calls_work_without_a_current_context() {
    run("without_context.py");
}

#[test]
fn functions_are_found_by_base_names() {
    run("lookup.py");
}

#[test]
fn libraries_belong_to_no_context() {
    run("library.py");
}

#[test]
fn modules_are_linked() {
    run("linking.py");
}

#[test]
fn graphs_are_inspected_and_changed() {
    run("graphs.py");
}

#[test]
fn nodes_of_any_type_are_added_and_updated() {
    run("graph_nodes.py");
}

#[test]
fn kernels_wait_for_the_host() {
    run("host_waits.py");
}

#[test]
fn vectors_may_end_after_dynamic_shared_memory() {
    run("shared.py");
}

#[test]
fn vectors_may_end_after_a_buffer_if_nothing_reads_their_end() {
    run("vectors.py");
}

#[test]
fn copies_and_graphs_reach_each_device() {
    run("devices.py");
}

#[test]
fn launches_are_built_in_steps() {
    run("stepwise.py");
}

#[test]
fn textures_and_surfaces_follow_the_formulas() {
    run("textures.py");
}
