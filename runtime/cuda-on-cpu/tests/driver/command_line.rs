//! The command line of `cuda-on-cpu`.

use super::common;
use std::process::{Command, Output};

/// Runs `cuda-on-cpu` without settings from the environment.
fn run(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cuda-on-cpu"));
    cuda_on_cpu::VARIABLES.iter().for_each(|(name, _)| _ = command.env_remove(name));
    command.args(arguments).output().unwrap()
}

fn error(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn wrong_options_start_no_program() {
    let rules = common::folder("command_line").join("rules");
    std::fs::write(&rules, "shared-rase k\n").unwrap();
    let rules = format!("--suppressions={}", rules.display());
    for option in [
        "--checks=al",
        "--error-exitcode=256",
        "--on-finding=cont",
        "--leak-check=ful",
        "--capability=9.9",
        "--fail=xx",
        "--suppressions=no/such/file",
        "--json=no/such/folder/file",
        "--check=all",
        "-x",
        &rules,
    ] {
        let output = run(&[option, "echo", "started"]);
        assert_eq!(output.status.code(), Some(2), "{option}");
        assert!(output.stdout.is_empty() && error(&output).starts_with("cuda-on-cpu: "), "{option}");
    }
    assert!(error(&run(&["--checks"])).contains("`--checks` has no value"));
}

#[test]
fn values_follow_an_equals_sign_or_a_space() {
    let script = "echo $CUDA_ON_CPU_CHECKS $CUDA_ON_CPU_LEAK_CHECK $CUDA_ON_CPU_LOG";
    let output = run(&["--checks", "all", "--leak-check=full", "--", "sh", "-c", script]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "all full stderr\n");
    let output = run(&["--log=off", "sh", "-c", script]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "off\n");
}

#[test]
fn usage_version_and_exit_codes_are_conventional() {
    for option in ["--help", "-h"] {
        let output = run(&[option]);
        assert!(common::expect_good(&output).contains("CUDA_ON_CPU_CHECKS"));
    }
    assert_eq!(common::expect_good(&run(&["--version"])), format!("cuda-on-cpu {}\n", env!("CARGO_PKG_VERSION")));
    assert_eq!(run(&[]).status.code(), Some(2));
    assert_eq!(run(&["no-such-program"]).status.code(), Some(127));
    assert_eq!(run(&["sh", "-c", "exit 7"]).status.code(), Some(7));
}
