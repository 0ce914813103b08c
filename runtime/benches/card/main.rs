//! Compares the PTX interpreter with an NVIDIA GPU.
//!
//! Every form of the instruction table runs on extreme operands, except those with a stated reason.
//! Approximate instructions run on all operands.
//!
//! ```text
//! cargo bench -p runtime --bench card -- differences FOLDER [PREFIX]
//! cargo bench -p runtime --bench card -- approximations FOLDER [PREFIX]
//! cargo bench -p runtime --bench card -- modules FOLDER
//! ```
//! `differences` writes a table of differences, each with what explains it, and a hash of the
//! card's results for each kernel; the program fails if a difference has no explanation.
//! `approximations` writes the largest error of each approximate instruction. `modules` needs no
//! GPU, and writes the PTX.

mod approximations;
mod bounds;
mod differences;
mod effects;
mod forms;
mod gpu;
mod interpret;
mod operands;

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let prefix = arguments.get(2).map_or("", String::as_str);
    let folder = Path::new(arguments.get(1).map_or(".", String::as_str));
    let done = match arguments.first().map(String::as_str) {
        Some("differences") => differences::run(folder, prefix),
        Some("approximations") => approximations::run(folder, prefix),
        Some("modules") => forms::kernels(prefix).iter().try_for_each(|kernel| {
            std::fs::write(folder.join(format!("{}.ptx", kernel.number)), kernel.text())?;
            Ok(())
        }),
        _ => Err("usage: card differences|approximations|modules FOLDER [PREFIX]".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
