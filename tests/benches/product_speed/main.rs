//! Measures the speed of kernels on a CPU: fused multiply-adds per second of a matrix product.
//!
//! The product uses the 16×16 tiles of kernels-rs, and runs under the oracle at each level of
//! checking, and from its PTX. The same product in OpenCL C runs on each available OpenCL device.
//!
//! ```text
//! cargo bench -p tests --features opencl --bench product_speed -- [SIZE] [--json]
//! OCL_ICD_VENDORS=/usr/lib/oclgrind/liboclgrind-rt-icd.so \
//!     cargo bench -p tests --features opencl --bench product_speed -- 64
//! ```
//!
//! The first command uses pocl if that is installed. With the second, Oclgrind is the only device,
//! at the path of Debian's package; `OCLGRIND_DATA_RACES=1` and similar variables select its
//! checks. Without the feature, or without an OpenCL library, only our interpreters run.

#[cfg(feature = "opencl")]
mod opencl;

use kernel_dsl::Kernel;
use kernel_dsl::compiler::hir::{Constant, Instance};
use kernel_dsl::compiler::ptx::parse;
use kernel_dsl::compiler::{Target, driver};
use kernels_rs::gemm::matmul;
use runtime::interpreter::{self, ArgumentBytes, Binding};
use runtime::ptx;
use serde_json::{Value, json};
use std::error::Error;
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

/// Threads of a block in each dimension.
const TILE: u32 = 16;

/// Number of runs; the fastest counts.
const RUNS: usize = 5;

/// The two factors of a product.
struct Factors {
    n: usize,
    a: Vec<f32>,
    b: Vec<f32>,
}

impl Factors {
    /// Makes factors of n × n.
    fn new(n: usize) -> Factors {
        let values = |factor: usize| (0..n * n).map(|i| (i * factor % 1000) as f32 / 500.0 - 1.0).collect();
        Factors { n, a: values(7919), b: values(104_729) }
    }

    /// Returns the number of blocks in each dimension.
    fn blocks(&self) -> u32 {
        (self.n as u32).div_ceil(TILE)
    }
}

/// The executor, its time and its result.
struct Row {
    executor: String,
    how: String,
    time: Duration,
    product: Vec<f32>,
}

/// Returns the time of the fastest of several runs.
fn fastest<E>(mut run: impl FnMut() -> Result<(), E>) -> Result<Duration, E> {
    let mut best = Duration::MAX;
    for _ in 0..RUNS {
        let start = Instant::now();
        run()?;
        best = best.min(start.elapsed());
    }
    Ok(best)
}

/// Measures the oracle.
fn oracle(factors: &Factors, rows: &mut Vec<Row>) -> Result<(), Box<dyn Error>> {
    let instance = Instance(vec![Constant::Usize(TILE)]);
    let program = matmul::<16>::ARTIFACT.program()?;
    let lowered = driver::lowered(&program, &instance, Target::SM_61).map_err(|e| e.to_string())?;
    let program = interpreter::Program::decode(&lowered)?;
    for checks in [interpreter::Checks::Values, interpreter::Checks::Accesses, interpreter::Checks::All] {
        for threads in [None, NonZeroUsize::new(1)] {
            let mut product = vec![0.0f32; factors.a.len()];
            let time = fastest(|| -> Result<(), Box<dyn Error>> {
                let launch = interpreter::Launch {
                    grid: [factors.blocks(), factors.blocks(), 1],
                    block: None,
                    arguments: vec![
                        matrix(factors.n, ArgumentBytes::Shared(bytemuck::cast_slice(&factors.a))),
                        matrix(factors.n, ArgumentBytes::Shared(bytemuck::cast_slice(&factors.b))),
                        matrix(factors.n, ArgumentBytes::Exclusive(bytemuck::cast_slice_mut(&mut product))),
                    ],
                    options: interpreter::Options { checks, threads, ..Default::default() },
                };
                program.run(launch)?.result()?;
                Ok(())
            })?;
            let cores = threads.map_or("all cores", |_| "one core");
            let how = format!("checks: {checks:?}, {cores}");
            rows.push(Row { executor: "oracle".into(), how, time, product });
        }
    }
    Ok(())
}

/// Binds a square matrix for the oracle.
fn matrix(n: usize, bytes: ArgumentBytes<'_>) -> Binding<'_> {
    Binding::Memory { bytes, extents: vec![n as u32; 2], strides: vec![n as u32] }
}

/// Binds memory for the PTX interpreter.
fn buffer<'m>(name: &str, bytes: ArgumentBytes<'m>) -> ptx::BufferArgument<'m> {
    ptx::BufferArgument { name: name.into(), bytes }
}

/// Measures the PTX interpreter on one core.
fn from_ptx(factors: &Factors, rows: &mut Vec<Row>) -> Result<(), Box<dyn Error>> {
    let program = ptx::Program::decode(&parse(matmul::<16>::PTX)?, "matmul_16")?;
    for checks in [ptx::Checks::Values, ptx::Checks::All] {
        let mut product = vec![0.0f32; factors.a.len()];
        let time = fastest(|| -> Result<(), Box<dyn Error>> {
            let numbers = |buffer| {
                let n = ptx::ParameterValue::Bits(factors.n as u64);
                [ptx::ParameterValue::Address { buffer, offset: 0 }, n.clone(), n.clone(), n]
            };
            let launch = ptx::Launch {
                grid: [factors.blocks(), factors.blocks(), 1],
                block: [TILE, TILE, 1],
                dynamic_shared: 0,
                buffers: vec![
                    buffer("a", ArgumentBytes::Shared(bytemuck::cast_slice(&factors.a))),
                    buffer("b", ArgumentBytes::Shared(bytemuck::cast_slice(&factors.b))),
                    buffer("c", ArgumentBytes::Exclusive(bytemuck::cast_slice_mut(&mut product))),
                ],
                parameters: (0..3).flat_map(numbers).collect(),
                options: ptx::Options { checks, ..Default::default() },
            };
            let report = program.run(launch)?.report;
            if report.findings.is_empty() { Ok(()) } else { Err(report.to_string().into()) }
        })?;
        rows.push(Row {
            executor: "PTX interpreter".into(),
            how: format!("checks: {checks:?}, one core"),
            time,
            product,
        });
    }
    Ok(())
}

/// Measures the OpenCL devices, and returns the errors.
fn on_opencl(factors: &Factors, rows: &mut Vec<Row>) -> Vec<String> {
    #[cfg(feature = "opencl")]
    return opencl::products(factors, rows);
    #[cfg(not(feature = "opencl"))]
    {
        let _ = (factors, rows);
        vec!["OpenCL devices are skipped: build with `--features opencl`".to_string()]
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let (mut n, mut as_json) = (256, false);
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            "--json" => as_json = true,
            // Cargo passes `--bench` to every benchmark.
            "--bench" => {}
            size => {
                n = size.parse().map_err(|_| format!("expected the size of a matrix or `--json`, found `{size}`"))?
            }
        }
    }
    let (factors, mut rows) = (Factors::new(n), Vec::new());
    oracle(&factors, &mut rows)?;
    from_ptx(&factors, &mut rows)?;
    let notes = on_opencl(&factors, &mut rows);
    let expected: Vec<u32> = rows[0].product.iter().map(|v| v.to_bits()).collect();
    let rate = |row: &Row| (n * n * n) as f64 / row.time.as_secs_f64();
    let same = |row: &Row| row.product.iter().map(|v| v.to_bits()).eq(expected.iter().copied());
    if as_json {
        let row = |row: &Row| -> Value {
            json!({ "executor": row.executor, "how": row.how, "fma_per_second": rate(row), "same_bits": same(row) })
        };
        let all: Vec<Value> = rows.iter().map(row).collect();
        println!("{:#}", json!({ "size": n, "tile": TILE, "rows": all, "notes": notes }));
        return Ok(());
    }
    println!("{n}×{n} matrix product, {TILE}×{TILE} tiles");
    for row in &rows {
        let bits = if same(row) { "" } else { "  (other bits)" };
        println!("{:<32} {:<28} {:>9.1} M fma/s{bits}", row.executor, row.how, rate(row) / 1e6);
    }
    notes.iter().for_each(|note| println!("note: {note}"));
    Ok(())
}
