//! Tests that run in a process of their own, in which this crate's library is the CUDA driver.

#![allow(dead_code)]

use std::env;
use std::path::PathBuf;
use std::process::{Command, Output};

/// Set where the library is the driver.
const INSIDE: &str = "CUDA_ON_CPU_TEST";

/// A process in which `program` finds the library as the driver.
pub fn command(program: &str) -> Command {
    let folder = cuda_on_cpu::stage::folder().expect("the library, which cargo builds before the tests");
    let mut command = Command::new(program);
    let others = env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let path = env::join_paths([folder].into_iter().chain(env::split_paths(&others))).unwrap();
    command.env("LD_LIBRARY_PATH", path).env("CUDA_ON_CPU_LOG", "stderr");
    for (name, _) in cuda_on_cpu::VARIABLES.iter().filter(|(name, _)| *name != "CUDA_ON_CPU_LOG") {
        command.env_remove(name);
    }
    command
}

/// Runs the test of that name again, in a process where the library is the driver: `body` there, which must end well. What it
/// printed is given.
pub fn inside(test: &str, settings: &[(&str, &str)], body: impl FnOnce()) -> Option<String> {
    if env::var_os(INSIDE).is_some() {
        body();
        return None;
    }
    let program = env::current_exe().unwrap();
    let mut command = command(program.to_str().unwrap());
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]).env(INSIDE, "1");
    settings.iter().for_each(|(name, value)| _ = command.env(name, value));
    Some(expect_good(&command.output().unwrap()))
}

/// What a process printed that ended well.
pub fn expect_good(output: &Output) -> String {
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}:\n{text}", output.status);
    text
}

/// A folder of the test's own.
pub fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Kernels, and variables of a module.
pub const PTX: &str = include_str!("kernels.ptx");
