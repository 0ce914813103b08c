//! Runs the guide's experiments, and the command `kernels` for the guide's kernels.

use guide::EXPERIMENTS;
use std::process::ExitCode;

fn main() -> ExitCode {
    let name = std::env::args().nth(1);
    let Some(name) = name else {
        println!("The experiments are:");
        for experiment in EXPERIMENTS {
            println!("  {:14} {}", experiment.name, experiment.about);
        }
        println!("Any other word is a command of `kernels`, such as `report triple`.");
        return ExitCode::SUCCESS;
    };
    match EXPERIMENTS.iter().find(|experiment| experiment.name == name) {
        Some(experiment) => match (experiment.run)() {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("error: {error}");
                ExitCode::FAILURE
            }
        },
        None => kernels_rs_command::main(),
    }
}
