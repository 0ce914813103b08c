//! Kernels of the zoo launched bare, as a user's own program would: for tools that look on from outside. `sanitizer/README.md` says how.

use crate::{Bug, bugs};
use runtime::{Device, Result};

/// Names the bug that is launched.
const NAMED: &str = "ZOO_BUG";

/// The bug of that name, or what there is instead.
fn named(name: &str) -> std::result::Result<&'static Bug, String> {
    let names = || bugs().map(|bug| bug.artifact.name).collect::<Vec<_>>().join(", ");
    bugs()
        .find(|bug| bug.artifact.name == name)
        .ok_or_else(|| format!("there is no bug `{name}`; there are {}", names()))
}

/// Launches one of the two kernels, of which nothing is checked.
fn launch(device: &Device, bug: &Bug, mended: bool) -> Result<()> {
    let specimen = bug.specimen(mended);
    // SAFETY: of a twin, since the oracle finds nothing wrong with it. What a bug does to memory is the whole process's loss: none other
    // than a test for it launches one on a GPU, and the CPU device checks every access.
    unsafe { specimen.prepared.launch_bare(device, &specimen.case) }
}

#[test]
fn bugs_and_twins_are_launched_by_name() {
    let device = Device::cpu();
    let bug = named("guard_off_by_one").expect("a bug of the zoo");
    launch(&device, bug, true).expect("nothing is wrong with the twin");
    let told = launch(&device, bug, false).expect_err("the CPU device checks whatever it launches").to_string();
    assert!(told.contains("out-of-bounds"), "{told}");
    let unknown = named("no_such_bug").err().expect("none of that name");
    assert!(unknown.starts_with("there is no bug `no_such_bug`; there are guard_off_by_one, no_guard, "), "{unknown}");
}

#[test]
fn the_list_for_the_sanitizer_names_bugs() {
    let list = include_str!("sanitizer/bugs");
    for line in list.lines() {
        let (tool, name) = line.split_once(' ').unwrap_or_else(|| panic!("`{line}` is no tool and bug"));
        assert!(["memcheck", "initcheck", "racecheck", "synccheck"].contains(&tool), "`{tool}` is no tool");
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

/// Launches the bug that the environment names, and nothing if it names none: what comes of the launch is for others to say.
#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_the_named_bug_runs_bare() {
    let Some(name) = std::env::var_os(NAMED) else { return };
    let bug = named(&name.to_string_lossy()).unwrap_or_else(|e| panic!("{e}"));
    if let Err(error) = launch(&Device::cuda(0).unwrap(), bug, false) {
        println!("the driver says: {error}");
    }
}
