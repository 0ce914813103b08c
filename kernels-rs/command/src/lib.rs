//! The command `kernels`, over all kernels that the program links.
//!
//! Another crate provides the command for its own kernels with one line in `main`:
//!
//! ```no_run
//! fn main() -> std::process::ExitCode {
//!     kernels_rs_command::main()
//! }
//! ```
//!
//! The program must use the crate that holds the kernels (`use my_kernels as _;` is enough), or the
//! linker leaves it out. `check` needs test cases for each kernel: register them with
//! [`runtime::register!`].
//!
//! Results go to stdout, errors to stderr. The exit code is 0 on success. It is 1 if a check or a
//! compilation failed, or if a kernel could not be checked. It is 2 if the command could not be
//! carried out, for example because a named kernel does not exist.
//!
//! # Output of `check --json`
//!
//! ```text
//! verdict          "pass"; "fail" if an instance fails; "unsupported" if none fails and one is unsupported, or if there is none
//! device, reason   the device compared with, and why it was chosen
//! seed             seed of the shapes and values: --seed
//! schedule         the order in which the oracle ran: --order
//! without[]        the disabled checks
//! passed, failed, unsupported, not_tried     numbers of instances
//! seconds
//! instances[]      instance, file, line, verdict, seed, cases (their number), executors[], assembled, seconds, problem
//!                  failures[]   case, verdict, failure: its kind, with the values, and the report if an executor made one
//!                  logs[]       case, text: the lines of `log!`
//!                  warnings[]   case: the first one; cases: their number; a report of the oracle with one finding
//!                  allowed[]    check, place, reason, count
//!                  unreached[]  gap, place, code: what no case reaches; null without --coverage
//!                  decisions[]  in words
//! ```
//!
//! A failure has a `kind`: "stopped" (executor, why, error in words, report), "differ",
//! "prints_differ", "order_dependent" (schedule, mismatch), "warned" (report), "wrong", "rejected",
//! "no_tolerance", "outside", "incomplete". The oracle's report is a
//! [`Report`](runtime::interpreter::Report), documented in
//! [`report`](runtime::interpreter::report). `trace --json` prints the case, the seed, the thread's
//! [`Trace`](runtime::interpreter::Trace), and the report of the whole launch.

#[cfg(feature = "library")]
use kernels_rs_specs as _;

mod bench;
mod cache;
mod cases;
mod check;
mod did_you_mean;
mod doctor;
mod emit_lines;
mod estimate;
pub mod examine;
mod forms;
pub mod golden;
mod inspect;
mod lines;
mod list;
mod listing;
mod machine;
mod name;
mod new;
mod oracle_args;
mod ordered_parallel;
mod progress;
mod report;
mod run;
mod show;
mod statistics;
mod summary;
mod text_file;
mod trace;
mod unrolling;

pub use kernels_rs_estimate::{nvdisasm, ptxas, sass};

use clap::{Parser, Subcommand};
use kernel_dsl::compiler::{Errors, Target};
use serde::Serialize;
use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

/// Lists, shows, examines, checks and measures the GPU kernels of this program, and runs kernels of
/// PTX files.
///
/// Kernels are named as in Rust. A kernel that is generic over constants has an instance for each
/// choice of constants; quote its name in a shell: 'matmul::<16>'.
#[derive(Parser)]
#[command(
    name = "kernels",
    version,
    after_help = "Exit codes: 0 success; 1 a check or a compilation failed, or could not be made; 2 the command could not be carried out."
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    List(list::List),
    Show(show::Show),
    Report(report::InstanceSummary),
    Inspect(inspect::Inspect),
    Check(check::Check),
    Run(run::Run),
    Trace(trace::Trace),
    Bench(bench::Bench),
    Estimate(estimate::Estimate),
    Cache(cache::CacheArgs),
    Doctor(doctor::Doctor),
    New(new::New),
}

/// Result of a command that was carried out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Outcome {
    Good,
    /// The command ran, and a check failed or was not possible.
    Bad,
}

/// Error that kept a command from being carried out.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Name(#[from] name::Error),
    #[error("cannot compile {instance} for {target}:\n{source}")]
    Compile { instance: String, target: Target, source: Errors },
    #[error("{ptxas} rejects the PTX of {instance}: {said}")]
    Assembler { instance: String, ptxas: String, said: String },
    #[error(
        "machine code requires NVIDIA's tools, and {missing} is not found on PATH nor in target/tools; \
         the CUDA toolkit up to 12.9 has both, and `tests/get-nvdisasm` of kernels-rs fetches them. \
         `show --ptx` and `report` without `--unroll` do not need them"
    )]
    NoTools { missing: String },
    #[error(transparent)]
    Run(#[from] run::Error),
    #[error(transparent)]
    Case(#[from] cases::Error),
    #[error("cannot follow a thread in the case `{case}`: {source}")]
    Trace { case: String, source: Box<runtime::Error> },
    #[error("cannot measure {instance} in the case {case}: {source}")]
    Profile { instance: String, case: String, source: Box<runtime::Error> },
    #[error(transparent)]
    New(#[from] new::Error),
    #[error(transparent)]
    Inspect(#[from] inspect::Error),
    #[cfg(feature = "library")]
    #[error("unknown format of weights `{name}`; the formats are {}", .known.join(", "))]
    Format { name: String, known: Vec<&'static str> },
    #[error("cannot use {device}: {source}; `--device cpu` needs no GPU")]
    NoDevice { device: String, source: Box<runtime::Error> },
    #[error(transparent)]
    Device(runtime::Error),
    #[error("cannot use the cache in {}: {source}", .folder.display())]
    Cache { folder: std::path::PathBuf, source: io::Error },
    #[cfg(feature = "library")]
    #[error("{peer}, the baseline of the measurement: {said}")]
    Peer { peer: &'static str, said: String },
    #[error(transparent)]
    UnknownDevice(#[from] kernels_rs_estimate::device::Error),
    #[error(transparent)]
    Estimate(#[from] kernels_rs_estimate::estimate::Error),
    #[cfg(feature = "library")]
    #[error("unknown kernel `{name}`; `kernels bench --suite {name}` measures the suite of that name")]
    Suite { name: String },
    #[error("cannot save to {}: {source}", .path.display())]
    Save { path: std::path::PathBuf, source: io::Error },
    #[error("cannot use the measurements in {}: {why}", .path.display())]
    Measured { path: std::path::PathBuf, why: String },
    #[error("cannot write to stdout: {0}")]
    Output(#[from] io::Error),
}

impl Error {
    fn exit_code(&self) -> ExitCode {
        match self {
            Error::Run(e) if e.is_of_the_file() => ExitCode::FAILURE,
            Error::Name(name::Error::Hir { .. }) => ExitCode::FAILURE,
            Error::Name(_)
            | Error::Run(_)
            | Error::Case(_)
            | Error::NoDevice { .. }
            | Error::Device(_)
            | Error::Cache { .. }
            | Error::UnknownDevice(_)
            | Error::Estimate(_)
            | Error::Measured { .. }
            | Error::Save { .. }
            | Error::NoTools { .. } => ExitCode::from(2),
            #[cfg(feature = "library")]
            Error::Format { .. } | Error::Peer { .. } | Error::Suite { .. } => ExitCode::from(2),
            Error::Trace { .. } | Error::Profile { .. } | Error::Inspect(_) | Error::New(_) => ExitCode::from(2),
            Error::Compile { .. } | Error::Assembler { .. } | Error::Output(_) => ExitCode::FAILURE,
        }
    }

    /// Returns whether the reader closed the pipe, as `head` does.
    fn is_closed_pipe(&self) -> bool {
        matches!(self, Error::Output(e) if e.kind() == io::ErrorKind::BrokenPipe)
    }
}

/// Runs the command that the program's arguments name.
pub fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(e) => {
            // Help goes to stdout and is not an error. A failure to print it cannot be reported.
            let _ = e.print();
            return ExitCode::from(u8::try_from(e.exit_code()).unwrap_or(2));
        }
    };
    let mut out = io::BufWriter::new(io::stdout());
    let outcome = match arguments.command {
        Command::List(list) => list.run(&mut out),
        Command::Show(show) => show.run(&mut out),
        Command::Report(report) => report.run(&mut out),
        Command::Inspect(inspect) => inspect.run(&mut out),
        Command::Check(check) => check.run(&mut out),
        Command::Run(run) => run.run(&mut out),
        Command::Trace(trace) => trace.run(&mut out),
        Command::Bench(bench) => bench.run(&mut out),
        Command::Estimate(estimate) => estimate.run(&mut out),
        Command::Cache(cache) => cache.run(&mut out),
        Command::Doctor(doctor) => doctor.run(&mut out),
        Command::New(new) => new.run(&mut out),
    };
    match outcome.and_then(|outcome| Ok(out.flush().map(|()| outcome)?)) {
        Ok(Outcome::Good) => ExitCode::SUCCESS,
        Ok(Outcome::Bad) => ExitCode::FAILURE,
        Err(e) if e.is_closed_pipe() => ExitCode::SUCCESS,
        Err(e) => {
            // Not `eprintln!`, which panics if stderr is closed.
            let _ = writeln!(io::stderr(), "error: {e}");
            e.exit_code()
        }
    }
}

/// Returns the number and the noun, plural unless the number is 1: `1 slot`, `2 slots`.
fn counted(n: impl Copy + fmt::Display + PartialEq + From<u8>, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1.into() { "" } else { "s" })
}

/// Prints a value as JSON, followed by a newline.
fn json(out: &mut dyn Write, value: &impl Serialize) -> Result<(), Error> {
    serde_json::to_writer_pretty(&mut *out, value).map_err(io::Error::from)?;
    Ok(writeln!(out)?)
}
