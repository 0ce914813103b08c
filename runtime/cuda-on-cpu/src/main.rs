//! Runs a program with cuda-on-cpu in place of NVIDIA's driver:
//! `cuda-on-cpu [OPTION…] PROGRAM [ARGUMENT…]`.

use cuda_on_cpu::{stage, stand_ins};
use std::env;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::process::{Command, ExitCode};

/// The variable that puts compilers before the program.
const COMPILERS: &str = "CUDA_ON_CPU_COMPILERS";

/// The variable of the log.
const LOG: &str = "CUDA_ON_CPU_LOG";

/// The exit code if an option is wrong. The program was not started.
const WRONG_OPTION: u8 = 2;

/// A request of the command line.
enum Invocation {
    /// `--help`.
    Help,
    /// `--version`.
    Version,
    /// The settings by variable, then the program and its arguments; empty if no program is given.
    Run(Vec<(String, String)>, Vec<OsString>),
}

fn main() -> ExitCode {
    let own = env::args_os().next().unwrap_or_default();
    if let Some(code) = stand_ins::tools::run(stage::program_name(&own), env::args_os().skip(1)) {
        return code;
    }
    let (settings, words) = match invocation(env::args_os().skip(1)) {
        Ok(Invocation::Help) => return usage(ExitCode::SUCCESS),
        Ok(Invocation::Version) => {
            println!("cuda-on-cpu {}", env!("CARGO_PKG_VERSION"));
            return ExitCode::SUCCESS;
        }
        Ok(Invocation::Run(_, words)) if words.is_empty() => return usage(ExitCode::from(WRONG_OPTION)),
        Ok(Invocation::Run(settings, words)) => (settings, words),
        Err(why) => {
            eprintln!("cuda-on-cpu: {why}");
            return ExitCode::from(WRONG_OPTION);
        }
    };
    let setting = |name: &str| {
        let option = settings.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.clone());
        option.or_else(|| env::var(name).ok())
    };
    let wrong = cuda_on_cpu::invalid_settings(setting);
    if !wrong.is_empty() {
        wrong.iter().for_each(|line| eprintln!("cuda-on-cpu: {line}"));
        return ExitCode::from(WRONG_OPTION);
    }
    let folder = match stage::folder() {
        Ok(folder) => folder,
        Err(e) => {
            eprintln!("cuda-on-cpu: {e}");
            return ExitCode::FAILURE;
        }
    };
    let (program, arguments) = (&words[0], &words[1..]);
    let mut command = Command::new(program);
    command.args(arguments).envs(stage::environment(&folder));
    if setting(COMPILERS).as_deref() == Some("on") {
        match env::current_exe().and_then(|own| stage::compilers(&folder, &own)) {
            Ok(path) => _ = command.env("PATH", path),
            Err(e) => {
                eprintln!("cuda-on-cpu: the stand-ins of compilers cannot be placed in {}: {e}", folder.display());
                return ExitCode::FAILURE;
            }
        }
    }
    if setting(LOG).is_none() {
        command.env(LOG, "stderr");
    }
    command.envs(settings);
    match run(&mut command) {
        Ok(code) => code,
        Err(e) => {
            eprintln!("cuda-on-cpu: {} cannot be run: {e}", program.display());
            // The exit codes of shells.
            ExitCode::from(if e.kind() == ErrorKind::NotFound { 127 } else { 126 })
        }
    }
}

/// Prints the usage, and returns the exit code.
fn usage(code: ExitCode) -> ExitCode {
    println!("usage: cuda-on-cpu [OPTION…] PROGRAM [ARGUMENT…]\n");
    if let Ok(folder) = stage::folder() {
        println!("or put this folder first in {}: {}\n", stage::LIBRARY_PATH, folder.display());
    }
    for (name, meaning) in cuda_on_cpu::VARIABLES {
        println!("{name:28} {meaning}");
    }
    println!(
        "\nEach variable has an option: --on-finding=continue, or --on-finding continue, for\n\
         CUDA_ON_CPU_ON_FINDING=continue. Other options are --help and --version. A wrong option or value\n\
         gives exit code 2, and the program is not started. Without CUDA_ON_CPU_LOG, the command logs to\n\
         stderr; a program that loads the library without the command has no log."
    );
    code
}

/// Splits the arguments: options come before the program. A value follows an equals sign, or is the
/// next argument.
fn invocation(arguments: impl Iterator<Item = OsString>) -> Result<Invocation, String> {
    let mut arguments = arguments.peekable();
    let mut settings = Vec::new();
    while let Some(option) = arguments.next_if(|a| a.as_encoded_bytes().starts_with(b"-") && a != "-") {
        let option = option.to_string_lossy().into_owned();
        match option.as_str() {
            "--" => break,
            "--help" | "-h" => return Ok(Invocation::Help),
            "--version" | "-V" => return Ok(Invocation::Version),
            _ => {}
        }
        let (name, value) = match option.split_once('=') {
            Some((name, value)) => (name, Some(value.to_string())),
            None => (option.as_str(), None),
        };
        let Some(variable) = variable(name) else {
            return Err(format!("there is no option `{name}`; --help lists them"));
        };
        let next = || arguments.next().map(|value| value.to_string_lossy().into_owned());
        let Some(value) = value.or_else(next) else {
            return Err(format!("the option `{name}` has no value; --help lists the values"));
        };
        settings.push((variable, value));
    }
    Ok(Invocation::Run(settings, arguments.collect()))
}

/// Returns the variable that an option sets, such as `--on-finding`.
fn variable(option: &str) -> Option<String> {
    let variable = format!("CUDA_ON_CPU_{}", option.strip_prefix("--")?.to_uppercase().replace('-', "_"));
    cuda_on_cpu::VARIABLES.iter().any(|(known, _)| *known == variable).then_some(variable)
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
