//! Launches kernels of the zoo without checks, as a user's program would, for external tools that
//! observe them.
//!
//! `sanitizer/README.md` describes the use.

use crate::{Bug, bugs};
use runtime::{Device, Result};

/// Environment variable that names the bug to launch.
const NAMED: &str = "ZOO_BUG";

/// Returns the bug of this name, or a message that lists the names.
fn named(name: &str) -> std::result::Result<&'static Bug, String> {
    let names = || bugs().map(|bug| bug.artifact.name).collect::<Vec<_>>().join(", ");
    bugs()
        .find(|bug| bug.artifact.name == name)
        .ok_or_else(|| format!("there is no bug `{name}`; there are {}", names()))
}

/// Launches one of the two kernels of a bug, unchecked.
fn launch(device: &Device, bug: &Bug, mended: bool) -> Result<()> {
    let specimen = bug.specimen(mended);
    // SAFETY: the oracle finds no fault in a corrected twin. The CPU device checks every access of
    // a bug. On a GPU, only the test that is made for it launches a bug, and
    // its process runs nothing else.
    unsafe { specimen.prepared.launch_bare(device, &specimen.case) }
}

#[test]
fn bugs_and_twins_are_launched_by_name() {
    let device = Device::cpu();
    let bug = named("guard_off_by_one").expect("a bug of the zoo");
    launch(&device, bug, true).expect("the twin is correct");
    let reported = launch(&device, bug, false).expect_err("the CPU device checks every launch").to_string();
    assert!(reported.contains("out-of-bounds"), "{reported}");
    let unknown = named("no_such_bug").err().expect("no bug has that name");
    assert!(unknown.starts_with("there is no bug `no_such_bug`; there are guard_off_by_one, no_guard, "), "{unknown}");
}

#[test]
fn the_list_for_the_sanitizer_names_bugs() {
    let list = include_str!("sanitizer/bugs");
    for line in list.lines() {
        let (tool, name) = line.split_once(' ').unwrap_or_else(|| panic!("`{line}` is not a tool and a bug"));
        assert!(["memcheck", "initcheck", "racecheck", "synccheck"].contains(&tool), "unknown tool `{tool}`");
        named(name).unwrap_or_else(|e| panic!("{e}"));
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_twins_run_bare() {
    let device = Device::cuda(0).unwrap();
    for bug in bugs() {
        launch(&device, bug, true).unwrap_or_else(|e| panic!("{}: {e}", bug.artifact.name));
    }
}

/// Launches the bug that `ZOO_BUG` names, if it is set. The external tool judges the launch.
#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_the_named_bug_runs_bare() {
    let Some(name) = std::env::var_os(NAMED) else { return };
    let bug = named(&name.to_string_lossy()).unwrap_or_else(|e| panic!("{e}"));
    if let Err(error) = launch(&Device::cuda(0).unwrap(), bug, false) {
        println!("the driver says: {error}");
    }
}
