//! The measurement of an interpreter at each level of checking, on all cores and on one.

use runtime::interpreter::{Report, Statistics};
use std::fmt::Debug;
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

/// The size of the tiles of the product.
pub const TILE: u32 = 16;

/// Prints the rates of a matrix product of the size in the command line's first argument.
///
/// `prepare` takes the size, and returns a run of the product for a level and a number of threads.
/// The second argument selects a level.
pub fn measure<L: Copy + Debug, R>(what: &str, levels: &[L], prepare: impl FnOnce(usize) -> R)
where
    R: FnMut(L, Option<NonZeroUsize>) -> (Statistics, Report),
{
    let mut arguments = std::env::args().skip(1).filter(|a| a != "--bench");
    let n: usize = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(256);
    let mut run = prepare(n);
    println!("{n}×{n} matrix product, {TILE}×{TILE} tiles{what}");
    let only = arguments.next();
    let levels = levels.iter().filter(|level| only.as_ref().is_none_or(|only| format!("{level:?}") == *only));
    for (level, threads) in levels.flat_map(|level| [(*level, None), (*level, NonZeroUsize::new(1))]) {
        let (mut best, mut instructions) = (Duration::MAX, 0);
        for _ in 0..5 {
            let start = Instant::now();
            let (statistics, report) = run(level, threads);
            best = best.min(start.elapsed());
            assert!(report.findings.is_empty(), "{report}");
            instructions = statistics.thread_instructions;
        }
        let seconds = best.as_secs_f64();
        let rate = (n * n * n) as f64 / seconds / 1e6;
        let instructions = instructions as f64 / seconds / 1e9;
        let cores = threads.map_or("all cores", |_| "one core");
        println!(
            "{:<10} {cores:<10} {rate:>8.1} M fma/s  {instructions:>6.2} G thread instructions/s",
            format!("{level:?}")
        );
    }
}
