//! Checks that crates outside the workspace, with their own kernels, build without a warning and
//! pass their tests.
//!
//! One crate has fifteen lines. Two others depend on each other: one holds device items, the other
//! kernels that use them.

use std::path::Path;
use std::process::Command;

/// Runs cargo in the outside workspace and returns its output.
fn cargo(arguments: &[&str]) -> String {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .arg(arguments[0])
        .arg("--offline")
        .args(&arguments[1..])
        .current_dir(here.join("outside"))
        .env("CARGO_TARGET_DIR", here.join("../target/outside"))
        // The flags of this test's own build must not affect the other workspace.
        .env_remove("RUSTFLAGS")
        .output()
        .expect("cargo runs");
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{stdout}{stderr}");
    assert!(!stderr.contains("warning"), "{stderr}");
    stdout.into_owned()
}

#[test]
fn outside_crates_build_and_pass_their_tests() {
    let tests = cargo(&["test", "--workspace", "--lib", "--tests"]);
    for (passed, crates) in [("4 passed", 2), ("1 passed", 1)] {
        assert_eq!(tests.matches(passed).count(), crates, "{tests}");
    }
    // Runs the command of kernels-rs from a program of one line, which links the crate's kernels.
    let listed = cargo(&["run", "--package", "images", "--", "list", "-v"]);
    let checked =
        cargo(&["run", "--package", "images", "--", "check", "tone", "box_blur", "extents", "--device", "cpu"]);
    assert!(listed.contains("convolve<Gray16, Sharpen>"), "{listed}");
    assert!(checked.contains("11 instances") && checked.contains("11 pass"), "{checked}");
}
