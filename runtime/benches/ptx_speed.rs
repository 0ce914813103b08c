//! Measures the PTX interpreter: fused multiply-adds per second in the matrix product with 16×16
//! tiles of kernels-rs, from its PTX. Measures each level of checking, on all cores and on one.
//!
//! `cargo bench -p runtime --bench ptx_speed -- [SIZE [LEVEL]]`. The first argument is the size of
//! the matrices; the second one selects a single level.

use kernel_dsl::compiler::ptx::parse;
use runtime::interpreter::Bytes;
use runtime::ptx::{Argument, Checks, Launch, Options, Program, Value};
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

const TILE: u32 = 16;

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|a| a != "--bench");
    let n: usize = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(256);
    let module = parse(include_str!("../tests/ptx/matmul_16.ptx")).unwrap_or_else(|e| panic!("{e}"));
    let program = Program::decode(&module, "matmul_16").unwrap_or_else(|e| panic!("{e}"));
    let values = |factor: usize| (0..n * n).map(|i| (i * factor % 1000) as f32 / 500.0 - 1.0).collect::<Vec<f32>>();
    let (a, b, mut c) = (values(7919), values(104_729), vec![0.0f32; n * n]);
    let blocks = (n as u32).div_ceil(TILE);
    println!("{n}×{n} matrix product, {TILE}×{TILE} tiles, from PTX");
    let only = arguments.next();
    let levels = [Checks::Values, Checks::All].into_iter();
    let levels = levels.filter(|level| only.as_ref().is_none_or(|only| format!("{level:?}") == *only));
    for (checks, threads) in levels.flat_map(|level| [(level, None), (level, NonZeroUsize::new(1))]) {
        let mut best = Duration::MAX;
        let mut statistics = None;
        for _ in 0..5 {
            let buffers = vec![
                Argument { name: "a".into(), bytes: Bytes::Shared(bytemuck::cast_slice(&a)) },
                Argument { name: "b".into(), bytes: Bytes::Shared(bytemuck::cast_slice(&b)) },
                Argument { name: "c".into(), bytes: Bytes::Exclusive(bytemuck::cast_slice_mut(&mut c)) },
            ];
            let matrix = |buffer| {
                let n = Value::Bits(n as u64);
                [Value::Address { buffer, offset: 0 }, n.clone(), n.clone(), n]
            };
            let launch = Launch {
                grid: [blocks, blocks, 1],
                block: [TILE, TILE, 1],
                dynamic_shared: 0,
                buffers,
                parameters: (0..3).flat_map(matrix).collect(),
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
