//! Crates outside the workspace, with kernels of their own, build without a warning and pass their tests: one of fifteen
//! lines, and two that belong together, of which one holds device items and the other kernels over them.

use std::path::Path;
use std::process::Command;

/// What cargo prints of the crates outside.
fn cargo(arguments: &[&str]) -> String {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .arg(arguments[0])
        .arg("--offline")
        .args(&arguments[1..])
        .current_dir(here.join("outside"))
        .env("CARGO_TARGET_DIR", here.join("../target/outside"))
        // What the run of this test was given is not meant for another workspace.
        .env_remove("RUSTFLAGS")
        .output()
        .expect("cargo runs");
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{stdout}{stderr}");
    assert!(!stderr.contains("warning"), "{stderr}");
    stdout.into_owned()
}

#[test]
fn crates_of_somebody_elses() {
    let tests = cargo(&["test", "--workspace", "--lib", "--tests"]);
    for (passed, crates) in [("4 passed", 2), ("1 passed", 1)] {
        assert_eq!(tests.matches(passed).count(), crates, "{tests}");
    }
    // The command of kernels-rs, over the kernels that a program of one line links.
    let listed = cargo(&["run", "--package", "images", "--", "list"]);
    let checked =
        cargo(&["run", "--package", "images", "--", "check", "tone", "box_blur", "extents", "--device", "cpu"]);
    assert!(listed.contains("convolve::<Gray16, Sharpen>"), "{listed}");
    assert!(checked.contains("11 instances") && checked.contains("11 pass"), "{checked}");
}
