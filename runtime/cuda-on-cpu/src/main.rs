//! Runs a program with cuda-on-cpu in place of NVIDIA's driver:
//! `cuda-on-cpu [OPTION…] PROGRAM [ARGUMENT…]`.

use cuda_on_cpu::{stage, stand_ins};
use std::env;
use std::process::{Command, ExitCode};

/// The variable that puts compilers before the program.
const COMPILERS: &str = "CUDA_ON_CPU_COMPILERS";

fn main() -> ExitCode {
    let own = env::args_os().next().unwrap_or_default();
    if let Some(code) = stand_ins::tools::run(stage::program_name(&own), env::args_os().skip(1)) {
        return code;
    }
    let folder = match stage::folder() {
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
            "usage: cuda-on-cpu [OPTION…] PROGRAM [ARGUMENT…]\n\nor put this folder first in {}: {}\n",
            stage::LIBRARY_PATH,
            folder.display()
        );
        for (name, meaning) in cuda_on_cpu::VARIABLES {
            println!("{name:28} {meaning}");
        }
        println!("\nEach variable has an option, such as --on-finding=continue for CUDA_ON_CPU_ON_FINDING=continue.");
        return ExitCode::from(2);
    };
    let mut command = Command::new(&program);
    command.args(arguments).envs(stage::environment(&folder));
    let compilers = settings.iter().rev().find(|(name, _)| name == COMPILERS).map(|(_, value)| value.clone());
    if compilers.or_else(|| env::var(COMPILERS).ok()).as_deref() == Some("on") {
        match env::current_exe().and_then(|own| stage::compilers(&folder, &own)) {
            Ok(path) => _ = command.env("PATH", path),
            Err(e) => {
                eprintln!("cuda-on-cpu: the stand-ins of compilers cannot be placed in {}: {e}", folder.display());
                return ExitCode::FAILURE;
            }
        }
    }
    command.envs(settings);
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
