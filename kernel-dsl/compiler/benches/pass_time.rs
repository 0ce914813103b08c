//! How long the passes take on a register-blocked product: `cargo bench -p kernel-dsl-compiler --bench pass_time`.

#[path = "../tests/passes/examples.rs"]
#[allow(dead_code)]
mod examples;

use kernel_dsl_compiler::ir::{Kernel, Region};
use kernel_dsl_compiler::passes::{optimise, pipeline};
use std::time::{Duration, Instant};

fn size(region: &Region) -> usize {
    region.insts.iter().map(|i| 1 + i.op.regions().into_iter().map(size).sum::<usize>()).sum()
}

/// The least of several runs of the whole pipeline.
fn fastest(kernel: &Kernel) -> (Duration, usize) {
    let mut best = (Duration::MAX, 0);
    for _ in 0..50 {
        let kernel = kernel.clone();
        let start = Instant::now();
        let done = optimise(kernel).expect("the example is right");
        best = best.min((start.elapsed(), size(&done.body)));
    }
    best
}

fn main() {
    for bk in [8, 16, 64] {
        let kernel = examples::blocked(8, 8, bk);
        let (time, size) = fastest(&kernel);
        println!("8×8 accumulators, {bk} steps: {size} instructions in {time:?}");
    }
    let kernel = examples::blocked(8, 8, 64);
    let mut best = vec![(Duration::MAX, 0); pipeline().count()];
    for _ in 0..50 {
        let mut kernel = kernel.clone();
        for (pass, best) in pipeline().zip(&mut best) {
            let start = Instant::now();
            (pass.run)(&mut kernel).expect("the example is right");
            *best = (*best).min((start.elapsed(), size(&kernel.body)));
        }
    }
    for (pass, (time, size)) in pipeline().zip(best) {
        println!("  {:10} {time:?}, {size} instructions", pass.name);
    }
}
