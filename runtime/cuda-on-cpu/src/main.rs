//! Runs a program with cuda-on-cpu in place of NVIDIA's driver: `cuda-on-cpu PROGRAM [ARGUMENT…]`.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

/// The environment variable of the library search path.
const PATH: &str = if cfg!(windows) { "PATH" } else { "LD_LIBRARY_PATH" };

fn main() -> ExitCode {
    let folder = match cuda_on_cpu::stage::folder() {
        Ok(folder) => folder,
        Err(e) => {
            eprintln!("cuda-on-cpu: {e}");
            return ExitCode::FAILURE;
        }
    };
    let mut arguments = env::args_os().skip(1);
    let Some(program) = arguments.next() else {
        println!(
            "usage: cuda-on-cpu PROGRAM [ARGUMENT…]\n\nor put this folder first in {PATH}: {}\n",
            folder.display()
        );
        for (name, meaning) in cuda_on_cpu::VARIABLES {
            println!("{name:28} {meaning}");
        }
        return ExitCode::from(2);
    };
    match Command::new(&program).args(arguments).env(PATH, first(folder)).status() {
        Ok(status) => status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from),
        Err(e) => {
            eprintln!("cuda-on-cpu: {} cannot be run: {e}", program.display());
            ExitCode::FAILURE
        }
    }
}

/// Returns the library search path with `folder` prepended.
fn first(folder: PathBuf) -> OsString {
    let others = env::var_os(PATH).unwrap_or_default();
    let folders = [folder].into_iter().chain(env::split_paths(&others).filter(|path| !path.as_os_str().is_empty()));
    env::join_paths(folders).unwrap_or(others.clone())
}
