//! Generates random kernels and runs each on every executor:
//! `cargo run --release -p fuzz -- --count 100000 --seed 1`.

use clap::Parser;
use fuzz::campaign::{Campaign, Summary};
use fuzz::{found, generate, gpu::Gpu};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use kernels_rs_command::ptxas::Ptxas;
use serde::Serialize;
use std::io::IsTerminal;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

/// Generates random kernels, each correct by construction, and runs each on all executors
///
/// The executors are the interpreter on IR as lowered with every check, in other orders, after all
/// passes, and on the checked form; the PTX interpreter; ptxas; and a GPU. All must agree bit for
/// bit, and no check may report anything. A failing kernel is shrunk and written to a file that a
/// test runs.
#[derive(Parser)]
#[command(name = "fuzz", after_help = "Exit codes: 0 all agree; 1 they do not; 2 it could not be tried.")]
struct Arguments {
    /// Number of kernels
    #[arg(long, default_value_t = 2000)]
    count: u64,
    /// Seed of the first kernel; the others have the following seeds
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Also run the kernels on the first GPU, at the default level of its JIT and at -O0
    #[arg(long)]
    gpu: bool,
    /// Only compile the kernels, into all their forms, and run none
    #[arg(long, conflicts_with = "gpu")]
    compile: bool,
    /// Do not assemble the kernels, even if ptxas is found
    #[arg(long)]
    no_ptxas: bool,
    /// Number of threads; by default the number of cores
    #[arg(long)]
    threads: Option<NonZeroUsize>,
    /// Number of failures that ends the campaign
    #[arg(long, default_value_t = 8)]
    limit: usize,
    /// Folder for failing kernels; by default the folder of their test
    #[arg(long)]
    found: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    /// Print the kernel of the seed, and run nothing
    #[arg(long)]
    show: bool,
}

/// Output of `--json`.
#[derive(Serialize)]
struct FuzzReport<'s> {
    seconds: f64,
    kernels: u64,
    first_seed: u64,
    nodes: u64,
    warp_instructions: u64,
    ptxas: Option<String>,
    assembled: u64,
    gpu: Option<&'s str>,
    on_gpu: u64,
    operations_on_types: [usize; 2],
    missing: Vec<String>,
    constructs: &'s std::collections::BTreeMap<&'static str, u64>,
    wrong: Vec<(u64, String)>,
    ended: Option<&'s str>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if arguments.show {
        print!("{}", generate::kernel(arguments.seed));
        return ExitCode::SUCCESS;
    }
    let ptxas = (!arguments.no_ptxas && !arguments.compile).then(Ptxas::find).flatten().filter(Ptxas::takes_sm_61);
    let gpu = match arguments.gpu.then(Gpu::open).transpose() {
        Ok(gpu) => gpu,
        Err(why) => {
            eprintln!("error: --gpu: {why}");
            return ExitCode::from(2);
        }
    };
    let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let campaign = Campaign {
        seeds: arguments.seed..arguments.seed.saturating_add(arguments.count),
        threads: arguments.threads.map_or(cores, NonZeroUsize::get),
        ptxas: ptxas.as_ref(),
        gpu: gpu.as_ref(),
        limit: arguments.limit,
        shrinks: true,
        runs: !arguments.compile,
    };
    // A panic is reported as a failure of the kernel.
    std::panic::set_hook(Box::new(|_| {}));
    let start = Instant::now();
    let bar = bar(arguments.count);
    let summary = campaign.run(|| bar.inc(1));
    bar.finish_and_clear();
    let folder = arguments.found.unwrap_or_else(found::folder);
    for wrong in &summary.wrong {
        eprintln!("seed {}: {}\n\n{}", wrong.seed, wrong.failure, wrong.kernel);
        match found::write(&folder, wrong.seed, &wrong.kernel, &wrong.failure) {
            Ok(path) => eprintln!("written to {}\n", path.display()),
            Err(why) => eprintln!("error: {}: {why}\n", folder.display()),
        }
    }
    let gpu = gpu.as_ref().map(Gpu::name);
    match arguments.json {
        true => json(&summary, arguments.seed, start.elapsed(), ptxas.as_ref(), gpu),
        false => text(&summary, start.elapsed(), ptxas.as_ref(), gpu),
    }
    if let Some(why) = &summary.ended {
        eprintln!("error: {why}");
        return ExitCode::from(2);
    }
    if summary.wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Returns a progress bar on stderr, hidden unless stderr is a terminal.
fn bar(count: u64) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(count), ProgressDrawTarget::hidden());
    if let Ok(style) = ProgressStyle::with_template("{bar:24} {pos}/{len} kernels, {per_sec} {elapsed}") {
        bar.set_style(style);
    }
    if std::io::stderr().is_terminal() {
        bar.set_draw_target(ProgressDrawTarget::stderr());
        bar.enable_steady_tick(Duration::from_millis(200));
    }
    bar
}

fn text(summary: &Summary, elapsed: Duration, ptxas: Option<&Ptxas>, gpu: Option<&str>) {
    let Summary { count, wrong, instructions, assembled, on_gpu, spent, .. } = summary;
    println!("{} kernels in {elapsed:.1?}: {} of them wrong", count.kernels, wrong.len());
    println!("{} values and statements, {instructions} warp instructions as lowered", count.nodes);
    match ptxas {
        Some(_) => println!("{assembled} assembled by ptxas for sm_61"),
        None => println!("ptxas was not run"),
    }
    if let Some(name) = gpu {
        println!("{on_gpu} on {name}, optimized and not");
    }
    let [interpreters, assembler, device] = spent;
    println!(
        "time of all threads: {interpreters:.1?} compiler and interpreters, {assembler:.1?} ptxas, {device:.1?} GPU"
    );
    let (covered, possible) = count.covered();
    println!("{covered} of {possible} pairs of an operation and a type; occurrences of each construct:");
    for (construct, n) in &count.constructs {
        println!("{n:9}  {construct}");
    }
    let missing = count.missing();
    if !missing.is_empty() && count.kernels >= 10_000 {
        println!("not once: {}", missing.join(", "));
    }
}

fn json(summary: &Summary, seed: u64, elapsed: Duration, ptxas: Option<&Ptxas>, gpu: Option<&str>) {
    let (covered, possible) = summary.count.covered();
    let report = FuzzReport {
        seconds: elapsed.as_secs_f64(),
        kernels: summary.count.kernels,
        first_seed: seed,
        nodes: summary.count.nodes,
        warp_instructions: summary.instructions,
        ptxas: ptxas.map(ToString::to_string),
        assembled: summary.assembled,
        gpu,
        on_gpu: summary.on_gpu,
        operations_on_types: [covered, possible],
        missing: summary.count.missing(),
        constructs: &summary.count.constructs,
        wrong: summary.wrong.iter().map(|wrong| (wrong.seed, wrong.failure.to_string())).collect(),
        ended: summary.ended.as_deref(),
    };
    match serde_json::to_string_pretty(&report) {
        Ok(text) => println!("{text}"),
        Err(why) => eprintln!("error: {why}"),
    }
}
