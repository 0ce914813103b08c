//! What `kernels check` and `kernels trace` are told of how the oracle is to run, and what they say then.

use serde_json::Value;
use std::process::{Command, Output};

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_paper")).args(arguments).output().unwrap()
}

/// The exit code, and what was printed as JSON.
fn json(arguments: &[&str]) -> (Option<i32>, Value) {
    let output = run(arguments);
    let text = String::from_utf8_lossy(&output.stdout);
    let parsed = serde_json::from_str(&text);
    (output.status.code(), parsed.unwrap_or_else(|e| panic!("{e}: {text}{}", String::from_utf8_lossy(&output.stderr))))
}

/// What goes to stderr with exit code 2.
fn refused(arguments: &[&str]) -> String {
    let output = run(arguments);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{text}");
    text
}

#[test]
fn a_check_says_how_it_was_made() {
    let line = ["check", "elementwise::saxpy", "--device", "cpu", "--json"];
    let (code, plain) = json(&line);
    assert_eq!((code, &plain["verdict"], &plain["schedule"]), (Some(0), &"pass".into(), &"in-order".into()));
    assert_eq!((&plain["without"], &plain["seed"]), (&Value::Array(Vec::new()), &1.into()));
    let more =
        ["--order", "seeded:3", "--orders", "2", "--without", "warp-race,misaligned", "--fill", "0xff", "--seed", "4"];
    let (code, told) = json(&[&line[..], &more].concat());
    assert_eq!((code, &told["verdict"], &told["schedule"]), (Some(0), &"pass".into(), &"seeded:3".into()));
    assert_eq!(told["without"], Value::from(vec!["misaligned", "warp-race"]));
    let instance = &told["instances"][0];
    assert_eq!((&instance["verdict"], &instance["seed"]), (&"pass".into(), &4.into()));
    let text = run(&["check", "elementwise::saxpy", "--device", "cpu", "--only", "race"]);
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.contains("\nnot checked, and no GPU is used: out-of-bounds, misaligned, "), "{text}");
}

#[test]
fn what_is_named_is_asked_for() {
    let line = ["check", "elementwise::saxpy", "--device", "cpu", "--only", "nan-produced", "--json"];
    let (code, told) = json(&line);
    let warning = &told["instances"][0]["warnings"][0];
    assert_eq!((code, &warning["findings"][0]["check"]), (Some(0), &"nan-produced".into()), "{told}");
    // The trace takes the same case, and tells the same.
    let case = warning["case"].as_str().unwrap();
    let (code, trace) = json(&["trace", "elementwise::saxpy", "--case", case, "--only", "nan-produced", "--json"]);
    assert_eq!((code, trace["case"].as_str()), (Some(0), Some(case)));
    assert_eq!(trace["report"]["findings"], warning["findings"]);
    // And nothing is said that nobody asks for.
    let (_, told) = json(&["check", "elementwise::saxpy", "--device", "cpu", "--json"]);
    assert_eq!(told["instances"][0]["warnings"], Value::Array(Vec::new()));
}

#[test]
fn warnings_are_failures_where_they_are_denied() {
    let line = ["check", "elementwise::saxpy", "--device", "cpu", "--only", "nan-produced", "--deny-warnings"];
    let (code, told) = json(&[&line[..], &["--json"]].concat());
    assert_eq!((code, &told["verdict"]), (Some(1), &"fail".into()));
    let failure = &told["instances"][0]["failures"][0]["failure"];
    assert_eq!((&failure["kind"], &failure["report"]["verdict"]), (&"warned".into(), &"pass".into()), "{failure}");
    let output = run(&line);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("the oracle warns: warning[nan-produced]: "), "{text}");
    assert_eq!(text.matches("warning[").count(), 1, "{text}");
}

#[test]
fn what_no_launch_has_is_refused() {
    let told = refused(&["run", "none.ptx", "--grid", "1,65536"]);
    assert!(told.contains("a grid has at most 65535 blocks in y"), "{told}");
    for error in ["nan", "0", "-1", "some"] {
        let told = refused(&["check", "elementwise::saxpy", &format!("--cancellation={error}")]);
        assert!(told.contains("expected a relative error above 0, such as 1e-3"), "{told}");
    }
    let told = refused(&["trace", "elementwise::saxpy", "--case", "0"]);
    assert!(told.contains("saxpy has no case `0`; those of seed 1:\n  1: "), "{told}");
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
    // Only the first.
    let (code, first) = json(&[&line[..], &["--stop-at-first"]].concat());
    assert_eq!((code, &first["failed"], &first["not_tried"]), (Some(1), &1.into(), &(instances.len() - 1).into()));
    assert_eq!(first["instances"][0]["failures"].as_array().unwrap().len(), 1);
}

#[test]
fn a_trace_runs_as_it_is_told() {
    let (code, told) = json(&["trace", "elementwise::saxpy", "--order", "reversed", "--without", "race", "--json"]);
    let report = &told["report"];
    assert_eq!((code, &report["schedule"], &report["verdict"]), (Some(0), &"reversed".into(), &"pass".into()));
    assert_eq!(told["seed"], 1);
    let output = run(&["trace", "matmul::<16>", "--fuel", "20"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("error[fuel-exhausted]: the block reached its limit of 20 warp instructions"), "{text}");
}

#[test]
fn a_wrong_name_is_told_the_right_one() {
    for command in ["check", "trace"] {
        let told = refused(&[command, "elementwise::saxpy", "--only", "shard-race"]);
        assert!(told.contains("there is no check `shard-race`; did you mean `shared-race`?"), "{told}");
        let told = refused(&[command, "elementwise::saxpy", "--order", "sideways"]);
        assert!(told.contains("there are in-order, reversed, and seeded:N"), "{told}");
    }
}
