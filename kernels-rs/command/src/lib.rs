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
//! Results go to stdout, errors to stderr. Exit code 0 means success. Exit code 1 means that a
//! check or a compilation failed, or that a kernel could not be checked. Exit code 2 means that the
//! command could not be carried out, for example because a named kernel does not exist.
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
//! instances[]      instance, file, line, verdict, seed, cases (their number), executors[], assembled, seconds, problem,
//!                  referenced: whether the reference states the contents of an output
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
mod error;
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
mod output;
mod progress;
mod report;
mod run;
mod show;
mod source_place;
mod statistics;
mod text_file;
mod trace;
#[cfg(feature = "library")]
mod tune;
mod unrolling;

pub use kernels_rs_estimate::{nvdisasm, ptxas, sass};

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use error::CommandOutcome;
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
struct KernelsArguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    List(list::ListArgs),
    Show(show::ShowArgs),
    Report(report::ReportArgs),
    Inspect(inspect::InspectArgs),
    Check(check::CheckArgs),
    Run(run::RunArgs),
    Trace(trace::TraceArgs),
    Bench(bench::BenchArgs),
    Estimate(estimate::EstimateArgs),
    #[cfg(feature = "library")]
    Tune(tune::TuneArgs),
    Cache(cache::CacheArgs),
    Doctor(doctor::DoctorArgs),
    New(new::NewArgs),
}

/// Runs the command that the program's arguments name.
pub fn main() -> ExitCode {
    // Without this, clap takes the -1 of `--fuel -1` for an unknown option.
    let command = KernelsArguments::command().mut_subcommands(|command| command.allow_negative_numbers(true));
    let arguments = match command.try_get_matches().and_then(|matches| KernelsArguments::from_arg_matches(&matches)) {
        Ok(arguments) => arguments,
        Err(e) => {
            // Help goes to stdout and is not an error. A failure to print it cannot be reported.
            let _ = e.print();
            return ExitCode::from(u8::try_from(e.exit_code()).unwrap_or(2));
        }
    };
    if let Ok(folder) = std::env::current_dir() {
        runtime::interpreter::report::show_paths_from(&folder);
    }
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
        #[cfg(feature = "library")]
        Command::Tune(tune) => tune.run(&mut out),
        Command::Cache(cache) => cache.run(&mut out),
        Command::Doctor(doctor) => doctor.run(&mut out),
        Command::New(new) => new.run(&mut out),
    };
    match outcome.and_then(|outcome| Ok(out.flush().map(|()| outcome)?)) {
        Ok(CommandOutcome::Success) => ExitCode::SUCCESS,
        Ok(CommandOutcome::Failure) => ExitCode::FAILURE,
        Err(e) if e.is_closed_pipe() => ExitCode::SUCCESS,
        Err(e) => {
            // Not `eprintln!`, which panics if stderr is closed.
            let _ = writeln!(io::stderr(), "error: {e}");
            e.exit_code()
        }
    }
}
