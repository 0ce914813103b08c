//! Calls the CUDA driver at random, and stops at the first crash, hang, or internal error. Run it
//! where `cuda-on-cpu` is the driver:
//!
//! ```text
//! export CUDA_ON_CPU_FUEL=20000 CUDA_ON_CPU_MEMORY=256M CUDA_ON_CPU_LOG=off
//! target/release/cuda-on-cpu target/release/driver modules --count 100000 --seed 1
//! target/release/cuda-on-cpu target/release/driver calls --count 1000000 --seed 1
//! ```
//!
//! The first two variables limit a block's instructions and the device's memory: a damaged kernel
//! may loop forever, and a call may ask for any amount of memory.
//!
//! `modules` damages PTX files, loads each, and launches the kernels of what is accepted. `calls`
//! makes sequences of calls with valid, stale and foreign handles. Each prints the counts of
//! answers and the growth of the process's memory. NVIDIA's driver does not check some of these
//! arguments, so this program must not run on a GPU.

mod api;
mod calls;
mod modules;

use api::Library;
use clap::{Parser, Subcommand};
use fuzz::watch::Watch;
use std::path::PathBuf;
use std::process::exit;
use std::time::{Duration, Instant};

/// Calls the CUDA driver at random.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Loads damaged PTX files, and launches their kernels.
    Modules {
        #[command(flatten)]
        extent: Extent,
        /// The folder of PTX files and snapshots, searched with its folders.
        #[arg(long)]
        corpus: Option<PathBuf>,
    },
    /// Makes sequences of calls with any handles.
    Calls {
        #[command(flatten)]
        extent: Extent,
    },
}

/// The extent of a run.
#[derive(clap::Args, Clone, Copy)]
struct Extent {
    /// The number of files or sequences.
    #[arg(long, default_value_t = 1000)]
    count: u64,
    /// The seed of the first one. The others have the seeds that follow.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// The time limit of a file or a sequence.
const PATIENCE: Duration = Duration::from_secs(30);

/// The permitted growth of the process's memory, from a tenth of a run on.
const MAX_GROWTH: usize = 64 << 20;

/// A run: its extent, and the time limit of each trial.
struct Run {
    extent: Extent,
    watch: Watch,
}

impl Run {
    fn new(extent: Extent) -> Run {
        Run { extent, watch: Watch::start(PATIENCE) }
    }

    /// Passes each seed to `trial`.
    fn each(&self, mut trial: impl FnMut(u64)) {
        let Extent { count, seed } = self.extent;
        let (begun, mut early) = (Instant::now(), 0);
        for i in 0..count {
            trial(seed + i);
            if i == count / 10 {
                early = resident();
            }
            if i % (count / 10).max(1) == 0 {
                eprintln!("{i} of {count}, {:.0} s, {} MiB", begun.elapsed().as_secs_f64(), resident() >> 20);
            }
        }
        self.watch.end();
        let grown = resident().saturating_sub(early);
        println!("{count} from seed {seed}: {:.0} s, grown by {} KiB", begun.elapsed().as_secs_f64(), grown >> 10);
        if grown > MAX_GROWTH {
            failed(&format!("the process grew by {} MiB after a tenth of the run", grown >> 20), "");
        }
    }
}

/// Returns the bytes of the process in memory; 0 if the system does not report them.
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    text.split_whitespace().nth(1).and_then(|pages| pages.parse::<usize>().ok()).unwrap_or(0) * 4096
}

/// Prints a failure, and ends the process.
fn failed(why: &str, what: &str) -> ! {
    println!("{why}:\n{what}");
    exit(1)
}

fn main() {
    let Arguments { what } = Arguments::parse();
    let driver = Library::open();
    match what {
        What::Modules { extent, corpus } => modules::run(&Run::new(extent), &driver, corpus),
        What::Calls { extent } => calls::run(&Run::new(extent), &driver),
    }
}
