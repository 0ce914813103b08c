//! Runs the guide's experiments, and the command `kernels` for the guide's kernels.

use guide::EXPERIMENTS;
use std::process::ExitCode;

/// Ends the program without a message when the reader of stdout is gone, as in
/// `guide unguarded | head -1`. The experiments print with `println!`, which panics then.
fn end_at_closed_pipe() {
    let default = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let message = panic.payload().downcast_ref::<String>().map_or("", String::as_str);
        if message.starts_with("failed printing to stdout") && message.contains("Broken pipe") {
            std::process::exit(0);
        }
        default(panic);
    }));
}

fn main() -> ExitCode {
    end_at_closed_pipe();
    if let Ok(folder) = std::env::current_dir() {
        runtime::interpreter::report::show_paths_from(&folder);
    }
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
