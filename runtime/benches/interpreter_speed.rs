//! Measures the interpreter: fused multiply-adds per second in a matrix product with 16×16 tiles in
//! shared memory. Measures each level of checking, on all cores and on one.
//!
//! `cargo bench -p runtime --bench interpreter_speed -- [SIZE [LEVEL]]`. The first argument is the
//! size of the matrices; the second one selects a single level.

use runtime::interpreter::{Bytes, Checks, Launch, Options, Program};
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

#[allow(dead_code)]
#[path = "../tests/interpreter/kit.rs"]
mod kit;
#[path = "../tests/interpreter/tiles.rs"]
mod tiles;

const TILE: u32 = 16;

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|a| a != "--bench");
    let n: usize = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(256);
    let program = Program::decode(&tiles::matmul(TILE, None)).unwrap_or_else(|e| panic!("{e}"));
    let (a, b, mut c) = (tiles::matrix(n, n, 2654435761), tiles::matrix(n, n, 2246822519), vec![0.0f32; n * n]);
    let blocks = (n as u32).div_ceil(TILE);
    println!("{n}×{n} matrix product, {TILE}×{TILE} tiles");
    let only = arguments.next();
    let levels = [Checks::Values, Checks::Accesses, Checks::All].into_iter();
    let levels = levels.filter(|level| only.as_ref().is_none_or(|only| format!("{level:?}") == *only));
    for (checks, threads) in levels.flat_map(|level| [(level, None), (level, NonZeroUsize::new(1))]) {
        let mut best = Duration::MAX;
        let mut statistics = None;
        for _ in 0..5 {
            let arguments = vec![
                tiles::bound(Bytes::Shared(bytemuck::cast_slice(&a)), n, n),
                tiles::bound(Bytes::Shared(bytemuck::cast_slice(&b)), n, n),
                tiles::bound(Bytes::Exclusive(bytemuck::cast_slice_mut(&mut c)), n, n),
            ];
            let launch = Launch {
                grid: [blocks, blocks, 1],
                block: None,
                arguments,
                options: Options { checks, threads, ..Options::default() },
            };
            let start = Instant::now();
            let outcome = program.run(launch).unwrap_or_else(|e| panic!("{e}"));
            best = best.min(start.elapsed());
            assert!(outcome.report.findings.is_empty(), "{}", outcome.report);
            statistics = Some(outcome.statistics);
        }
        let seconds = best.as_secs_f64();
        let rate = (n * n * n) as f64 / seconds / 1e6;
        let instructions = statistics.map_or(0.0, |s| s.thread_instructions as f64) / seconds / 1e9;
        let cores = threads.map_or("all cores", |_| "one core");
        println!(
            "{:<10} {cores:<10} {rate:>8.1} M fma/s  {instructions:>6.2} G thread instructions/s",
            format!("{checks:?}")
        );
    }
}
