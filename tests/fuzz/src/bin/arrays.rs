//! Compiles generated kernels that index register arrays, and prints each that fails:
//! `cargo run --release -p fuzz --bin arrays -- 100000 0` compiles
//! those of the seeds from 0. Exits with code 1 if one fails.

#[path = "../../../../kernel-dsl/compiler/tests/frontend/generated/mod.rs"]
mod generated;
#[path = "../../../../kernel-dsl/compiler/tests/frontend/support.rs"]
mod support;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// The number of failures after which no further program is compiled.
const MAX_FAILURES: u64 = 10;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).map(|a| a.parse::<u64>().expect("a count, and a first seed"));
    let (count, first) = (arguments.next().unwrap_or(100_000), arguments.next().unwrap_or(0));
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
    let (start, failed) = (Instant::now(), AtomicU64::new(0));
    let work = |thread: u64| {
        let mut outcomes = BTreeMap::new();
        for seed in (first + thread..first + count).step_by(threads as usize) {
            match generated::run(seed) {
                Ok(outcome) => *outcomes.entry(outcome).or_insert(0u64) += 1,
                Err(said) => {
                    println!("{said}\n");
                    failed.fetch_add(1, Ordering::Relaxed);
                }
            }
            if failed.load(Ordering::Relaxed) >= MAX_FAILURES {
                break;
            }
        }
        outcomes
    };
    let mut outcomes = BTreeMap::new();
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads)
            .map(|thread| {
                scope.spawn({
                    let work = &work;
                    move || work(thread)
                })
            })
            .collect();
        for outcome in running.into_iter().flat_map(|thread| thread.join().expect("panics are caught")) {
            *outcomes.entry(outcome.0).or_insert(0u64) += outcome.1;
        }
    });
    let failed = failed.into_inner();
    println!(
        "{count} kernels from seed {first} in {:.0} s: {outcomes:?}, {failed} failed",
        start.elapsed().as_secs_f64()
    );
    ExitCode::from(u8::from(failed > 0))
}
