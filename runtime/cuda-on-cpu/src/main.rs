//! Runs a program with cuda-on-cpu in place of NVIDIA's driver:
//! `cuda-on-cpu [OPTION…] PROGRAM [ARGUMENT…]`.

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
    let mut arguments = env::args_os().skip(1).peekable();
    let mut settings = Vec::new();
    while let Some(option) = arguments.next_if(|a| a.to_str().is_some_and(|a| a.starts_with("--"))) {
        let option = option.to_string_lossy().into_owned();
        match setting(&option) {
            Some(setting) => settings.push(setting),
            None if option == "--" => break,
            None => {
                eprintln!("cuda-on-cpu: there is no option `{option}`; without arguments, the program lists them");
                return ExitCode::from(2);
            }
        }
    }
    let Some(program) = arguments.next() else {
        println!(
            "usage: cuda-on-cpu [OPTION…] PROGRAM [ARGUMENT…]\n\nor put this folder first in {PATH}: {}\n",
            folder.display()
        );
        for (name, meaning) in cuda_on_cpu::VARIABLES {
            println!("{name:28} {meaning}");
        }
        println!("\nEach variable has an option, such as --on-finding=continue for CUDA_ON_CPU_ON_FINDING=continue.");
        return ExitCode::from(2);
    };
    let mut command = Command::new(&program);
    command.args(arguments).env(PATH, first(folder)).envs(settings);
    match run(&mut command) {
        Ok(code) => code,
        Err(e) => {
            eprintln!("cuda-on-cpu: {} cannot be run: {e}", program.display());
            ExitCode::FAILURE
        }
    }
}

/// Returns the variable that an option sets, with its value: `--on-finding=stop`.
fn setting(option: &str) -> Option<(String, String)> {
    let (name, value) = option.strip_prefix("--")?.split_once('=')?;
    let variable = format!("CUDA_ON_CPU_{}", name.to_uppercase().replace('-', "_"));
    cuda_on_cpu::VARIABLES.iter().any(|(known, _)| *known == variable).then(|| (variable, value.to_string()))
}

/// Replaces this process by the program, so that signals and exit codes are the program's.
#[cfg(unix)]
fn run(command: &mut Command) -> Result<ExitCode, std::io::Error> {
    Err(std::os::unix::process::CommandExt::exec(command))
}

/// Runs the program, and returns its exit code.
#[cfg(not(unix))]
fn run(command: &mut Command) -> Result<ExitCode, std::io::Error> {
    let status = command.status()?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from))
}

/// Returns the library search path with `folder` prepended.
fn first(folder: PathBuf) -> OsString {
    let others = env::var_os(PATH).unwrap_or_default();
    let folders = [folder].into_iter().chain(env::split_paths(&others).filter(|path| !path.as_os_str().is_empty()));
    env::join_paths(folders).unwrap_or(others.clone())
}
