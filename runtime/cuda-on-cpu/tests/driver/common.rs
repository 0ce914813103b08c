//! Helpers for tests in a separate process that uses this crate's library as the CUDA driver.

#![allow(dead_code)]

use std::env;
use std::path::PathBuf;
use std::process::{Command, Output};

/// The environment variable that is set where the library is the driver.
const INSIDE: &str = "CUDA_ON_CPU_TEST";

/// Returns a command for `program` that finds the library as the driver.
pub fn command(program: &str) -> Command {
    let folder = cuda_on_cpu::stage::folder().expect("the library, which cargo builds before the tests");
    let mut command = Command::new(program);
    command.envs(cuda_on_cpu::stage::environment(&folder)).env("CUDA_ON_CPU_LOG", "stderr");
    for (name, _) in cuda_on_cpu::VARIABLES.iter().filter(|(name, _)| *name != "CUDA_ON_CPU_LOG") {
        command.env_remove(name);
    }
    command
}

/// Runs the test of that name in this module again, as [`run_inside`] does.
macro_rules! inside {
    ($test:expr, $settings:expr, $body:expr) => {
        $crate::common::run_inside(module_path!(), $test, $settings, $body)
    };
}
pub(crate) use inside;

/// Runs a test of a module again, in a process that uses the library as the driver. The test's
/// `body` must succeed there. Returns the output of the process.
pub fn run_inside(module: &str, test: &str, settings: &[(&str, &str)], body: impl FnOnce()) -> Option<String> {
    if env::var_os(INSIDE).is_some() {
        body();
        return None;
    }
    Some(expect_good(&inside_command(module, test, settings).output().unwrap()))
}

/// Returns the command that runs a test of a module again, in a process that uses the library as
/// the driver.
fn inside_command(module: &str, test: &str, settings: &[(&str, &str)]) -> Command {
    let program = env::current_exe().unwrap();
    let mut command = command(program.to_str().unwrap());
    let (_, module) = module.split_once("::").expect("a module of the test's crate");
    command.args(["--exact", &format!("{module}::{test}"), "--nocapture", "--test-threads=1"]).env(INSIDE, "1");
    settings.iter().for_each(|(name, value)| _ = command.env(name, value));
    command
}

/// Returns the output of a process, which must have succeeded.
pub fn expect_good(output: &Output) -> String {
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}:\n{text}", output.status);
    text
}

/// Returns a folder used by this test only.
pub fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Kernels and module variables of the tests.
pub const PTX: &str = include_str!("common/kernels.ptx");
