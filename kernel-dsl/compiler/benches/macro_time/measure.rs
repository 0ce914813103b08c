//! Measures the compiler's time for the expansion of a kernel, by stage.
//!
//! The program is the same with and without optimization. Cargo builds procedural macros with the
//! profile of build scripts, which is unoptimized by default.

use crate::support::{Crate, Function, KERNELS, library};
use kernel_dsl_compiler::check::{self, ItemReference};
use kernel_dsl_compiler::hir::serial;
use kernel_dsl_compiler::{Target, analyses, emit, lower, passes, syntax};
use quote::ToTokens;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// The minimum number of runs of a stage, which is repeated until it has used its share of time.
const RUNS: usize = 15;
const SHARE: Duration = Duration::from_millis(100);

/// Median times over many runs, in milliseconds.
#[derive(Clone, PartialEq, Debug, serde::Serialize, serde::Deserialize)]
pub struct Times {
    /// The instance's name in Rust.
    pub instance: String,
    /// From tokens to checked HIR, including reading the HIR of device functions; once per kernel
    /// for all instances.
    pub front: f64,
    pub lower: f64,
    pub analyses: f64,
    pub passes: f64,
    /// Emission of PTX as text.
    pub emit: f64,
    /// All stages.
    pub total: f64,
}

/// Returns the median time of `run`, and its result.
fn time<T>(mut run: impl FnMut() -> T) -> (f64, T) {
    let begin = Instant::now();
    let mut times = Vec::new();
    loop {
        let start = Instant::now();
        let done = black_box(run());
        times.push(start.elapsed());
        if times.len() >= RUNS && begin.elapsed() >= SHARE {
            times.sort();
            return (times[times.len() / 2].as_secs_f64() * 1e3, done);
        }
    }
}

/// Returns the times of all declared instances of kernels-rs.
pub fn all() -> Vec<Times> {
    let library = library();
    let kernels = KERNELS.map(|text| Crate::parse(text).expect("the file is Rust").with(&library));
    kernels.iter().flat_map(|all| all.kernels().flat_map(move |kernel| instances(all, kernel))).collect()
}

fn instances(all: &Crate, kernel: &Function) -> Vec<Times> {
    // The output of the device functions' macros.
    let handed: Vec<(String, Vec<u8>)> = all
        .callees(&syntax::device(&kernel.item).expect("a kernel"))
        .into_iter()
        .map(|callee| (callee.path, serial::encode_library(&callee.library)))
        .collect();
    let (attribute, tokens) = (kernel.attribute.clone().unwrap_or_default(), kernel.item.to_token_stream());
    let (front, program) = time(|| {
        let item = syn::parse2(tokens.clone()).expect("a function");
        let read = syntax::kernel(attribute.clone(), &item).expect("a kernel");
        let callee = |(path, bytes): &(String, Vec<u8>)| ItemReference {
            path: path.clone(),
            library: serial::library(bytes).expect("HIR"),
        };
        let callees: Vec<_> = handed.iter().map(callee).collect();
        check::kernel(&read, &callees).expect("a right kernel").hir
    });
    let instances = program.launch.instances.iter().map(|declared| {
        let instance = &declared.arguments;
        let (lower, lowered) = time(|| lower::lower(&program, instance, Target::SM_61).expect("IR"));
        let (analyses, _) = time(|| analyses::accept(lowered.clone()).expect("a right kernel"));
        // The copy is not part of the passes, but takes only a few percent of their time, and is
        // included.
        let (passes, optimized) = time(|| passes::optimize(lowered.clone()).expect("IR"));
        let (emit, _) = time(|| emit::emit(&optimized).expect("PTX").to_string());
        let total = front + lower + analyses + passes + emit;
        Times { instance: program.instance_name(instance), front, lower, analyses, passes, emit, total }
    });
    instances.collect()
}
