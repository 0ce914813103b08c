//! How long the compiler works on a kernel at its expansion, stage by stage.
//!
//! The program is the same whether optimized or not: cargo builds procedural macros with the profile of build scripts,
//! which is unoptimized where a workspace does not say otherwise.

use crate::support::{Crate, Function, KERNELS, library};
use kernel_dsl_compiler::check::{self, Callee};
use kernel_dsl_compiler::hir::serial;
use kernel_dsl_compiler::{Target, analyses, emit, lower, passes, syntax};
use quote::ToTokens;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Runs of a stage: until it has had its share of time, and at least so many.
const RUNS: usize = 15;
const SHARE: Duration = Duration::from_millis(100);

/// Milliseconds, medians over many runs.
#[derive(Clone, PartialEq, Debug, serde::Serialize, serde::Deserialize)]
pub struct Times {
    /// As named in Rust.
    pub instance: String,
    /// Tokens to checked HIR, with the HIR of device functions read; once a kernel, however many instances it has.
    pub front: f64,
    pub lower: f64,
    pub analyses: f64,
    pub passes: f64,
    /// To PTX as text.
    pub emit: f64,
    /// All of it.
    pub total: f64,
}

/// The median time of `run`, and what it gave.
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

/// The declared instances of the kernels of kernels-rs.
pub fn all() -> Vec<Times> {
    let library = library();
    let kernels = KERNELS.map(|text| Crate::parse(text).expect("the file is Rust").with(&library));
    kernels.iter().flat_map(|all| all.kernels().flat_map(move |kernel| instances(all, kernel))).collect()
}

fn instances(all: &Crate, kernel: &Function) -> Vec<Times> {
    // What the macros of the device functions hand over.
    let handed: Vec<(String, Vec<u8>)> = all
        .callees(&syntax::device(&kernel.item).expect("a kernel"))
        .into_iter()
        .map(|callee| (callee.path, serial::encode_library(&callee.library)))
        .collect();
    let (attribute, tokens) = (kernel.attribute.clone().unwrap_or_default(), kernel.item.to_token_stream());
    let (front, program) = time(|| {
        let item = syn::parse2(tokens.clone()).expect("a function");
        let read = syntax::kernel(attribute.clone(), &item).expect("a kernel");
        let callee = |(path, bytes): &(String, Vec<u8>)| Callee {
            path: path.clone(),
            library: serial::library(bytes).expect("HIR"),
        };
        let callees: Vec<_> = handed.iter().map(callee).collect();
        check::kernel(&read, &callees).expect("a right kernel").hir
    });
    let instances = program.launch.instances.iter().map(|instance| {
        let (lower, lowered) = time(|| lower::lower(&program, instance, Target::SM_61).expect("IR"));
        let (analyses, _) = time(|| analyses::accept(&lowered).expect("a right kernel"));
        // A copy is no part of a pass; it is some hundredths of the time, and is left in.
        let (passes, optimized) = time(|| passes::optimize(lowered.clone()).expect("IR"));
        let (emit, _) = time(|| emit::emit(&optimized).expect("PTX").to_string());
        let total = front + lower + analyses + passes + emit;
        Times { instance: instance.name(&kernel.name()), front, lower, analyses, passes, emit, total }
    });
    instances.collect()
}
