//! Tests of the oracle options of `kernels check` and `kernels trace`, and of the output with them.

use serde_json::Value;
use std::process::{Command, Output};

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_all-kernels")).args(arguments).output().unwrap()
}

/// Runs the command, and returns the exit code and the JSON that it prints.
fn json(arguments: &[&str]) -> (Option<i32>, Value) {
    let output = run(arguments);
    let text = String::from_utf8_lossy(&output.stdout);
    let parsed = serde_json::from_str(&text);
    (output.status.code(), parsed.unwrap_or_else(|e| panic!("{e}: {text}{}", String::from_utf8_lossy(&output.stderr))))
}

/// Runs a command that must exit with code 2, and returns its stderr.
fn refused(arguments: &[&str]) -> String {
    let output = run(arguments);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{text}");
    text
}

#[test]
fn output_of_a_check_has_its_options() {
    let line = ["check", "elementwise::saxpy", "--device", "cpu", "--json"];
    let (code, plain) = json(&line);
    assert_eq!((code, &plain["verdict"], &plain["schedule"]), (Some(0), &"pass".into(), &"in-order".into()));
    assert_eq!((&plain["without"], &plain["seed"]), (&Value::Array(Vec::new()), &1.into()));
    let more =
        ["--order", "seeded:3", "--orders", "2", "--without", "warp-race,misaligned", "--fill", "0xff", "--seed", "4"];
    let (code, output) = json(&[&line[..], &more].concat());
    assert_eq!((code, &output["verdict"], &output["schedule"]), (Some(0), &"pass".into(), &"seeded:3".into()));
    assert_eq!(output["without"], Value::from(vec!["misaligned", "warp-race"]));
    let instance = &output["instances"][0];
    assert_eq!((&instance["verdict"], &instance["seed"]), (&"pass".into(), &4.into()));
    let text = run(&["check", "elementwise::saxpy", "--device", "cpu", "--only", "race"]);
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.contains("\nnot checked, and no GPU is used: out-of-bounds, misaligned, "), "{text}");
}

#[test]
fn named_checks_are_enabled() {
    let line = ["check", "elementwise::saxpy", "--device", "cpu", "--only", "nan-produced", "--json"];
    let (code, output) = json(&line);
    let warning = &output["instances"][0]["warnings"][0];
    assert_eq!((code, &warning["findings"][0]["check"]), (Some(0), &"nan-produced".into()), "{output}");
    // The trace of the same case reports the same findings.
    let case = warning["case"].as_str().unwrap();
    let (code, trace) = json(&["trace", "elementwise::saxpy", "--case", case, "--only", "nan-produced", "--json"]);
    assert_eq!((code, trace["case"].as_str()), (Some(0), Some(case)));
    assert_eq!(trace["report"]["findings"], warning["findings"]);
    // Without the option there is no such warning.
    let (_, output) = json(&["check", "elementwise::saxpy", "--device", "cpu", "--json"]);
    assert_eq!(output["instances"][0]["warnings"], Value::Array(Vec::new()));
}

#[test]
fn denied_warnings_are_failures() {
    let line = ["check", "elementwise::saxpy", "--device", "cpu", "--only", "nan-produced", "--deny-warnings"];
    let (code, output) = json(&[&line[..], &["--json"]].concat());
    assert_eq!((code, &output["verdict"]), (Some(1), &"fail".into()));
    let failure = &output["instances"][0]["failures"][0]["failure"];
    assert_eq!((&failure["kind"], &failure["report"]["verdict"]), (&"warned".into(), &"pass".into()), "{failure}");
    let output = run(&line);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("the oracle warns: warning[nan-produced]: "), "{text}");
    assert_eq!(text.matches("warning[").count(), 1, "{text}");
}

#[test]
fn invalid_launch_options_are_rejected() {
    let output = refused(&["run", "none.ptx", "--grid", "1,65536"]);
    assert!(output.contains("a grid has at most 65535 blocks in y"), "{output}");
    for error in ["nan", "0", "-1", "some"] {
        let output = refused(&["check", "elementwise::saxpy", &format!("--cancellation={error}")]);
        assert!(output.contains("expected a relative error above 0, such as 1e-3"), "{output}");
    }
    let output = refused(&["trace", "elementwise::saxpy", "--case", "0"]);
    assert!(output.contains("saxpy has no case `0`; those of seed 1:\n  1: "), "{output}");
}

#[test]
fn too_little_fuel_fails_at_the_loop() {
    let line = ["check", "gemm::matmul", "--device", "cpu", "--json", "--fuel", "20"];
    let (code, all) = json(&line);
    assert_eq!((code, &all["verdict"], &all["not_tried"]), (Some(1), &"fail".into(), &0.into()));
    let instances = all["instances"].as_array().unwrap();
    assert!(instances.len() > 1, "{all}");
    let failures = instances[0]["failures"].as_array().unwrap();
    assert!(failures.len() > 1, "{all}");
    let (case, failure) = (&failures[0], &failures[0]["failure"]);
    assert_eq!((&case["verdict"], &failure["kind"]), (&"fail".into(), &"stopped".into()));
    assert_eq!(failure["why"]["reported"], "fuel-exhausted");
    let report = &failure["report"];
    assert_eq!((&report["verdict"], &report["schedule"]), (&"fail".into(), &"in-order".into()));
    assert!(report["findings"][0]["place"]["file"].as_str().unwrap().ends_with("gemm.rs"), "{report}");
    // With the option, the first failure ends the check.
    let (code, first) = json(&[&line[..], &["--stop-at-first"]].concat());
    assert_eq!((code, &first["failed"], &first["not_tried"]), (Some(1), &1.into(), &(instances.len() - 1).into()));
    assert_eq!(first["instances"][0]["failures"].as_array().unwrap().len(), 1);
}

#[test]
fn trace_runs_with_its_options() {
    let (code, output) = json(&["trace", "elementwise::saxpy", "--order", "reversed", "--without", "race", "--json"]);
    let report = &output["report"];
    assert_eq!((code, &report["schedule"], &report["verdict"]), (Some(0), &"reversed".into(), &"pass".into()));
    assert_eq!(output["seed"], 1);
    let output = run(&["trace", "matmul::<16>", "--fuel", "20"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("error[fuel-exhausted]: the block reached its limit of 20 warp instructions"), "{text}");
}

#[test]
fn misspelled_names_get_a_suggestion() {
    for command in ["check", "trace"] {
        let output = refused(&[command, "elementwise::saxpy", "--only", "shard-race"]);
        assert!(output.contains("unknown check `shard-race`; did you mean `shared-race`?"), "{output}");
        let output = refused(&[command, "elementwise::saxpy", "--order", "sideways"]);
        assert!(output.contains("expected in-order, reversed, seeded:N"), "{output}");
    }
}
