//! A crate outside the workspace, with a kernel of its own, builds without a warning and passes its tests.

use std::path::Path;
use std::process::Command;

#[test]
fn a_crate_of_somebody_elses() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["test", "--offline", "--lib"])
        .current_dir(here.join("outside"))
        .env("CARGO_TARGET_DIR", here.join("../target/outside"))
        // What the run of this test was given is not meant for another workspace.
        .env_remove("RUSTFLAGS")
        .output()
        .expect("cargo runs");
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{stdout}{stderr}");
    assert!(stdout.contains("3 passed"), "{stdout}");
}
