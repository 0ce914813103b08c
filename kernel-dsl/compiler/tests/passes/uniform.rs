//! Tests of proven uniformity: random programs, each run in all threads of a block, one by one.

use crate::{evaluator, generator};
use kernel_dsl_compiler::Scalar;
use kernel_dsl_compiler::analyses::uniformity::{UniformScope, Uniformity, UniformityVerdict};
use kernel_dsl_compiler::ir::build::Builder;
use kernel_dsl_compiler::ir::verify::verify;
use kernel_dsl_compiler::ir::{Binary, Comparison, Inst, Kernel, Label, Op, Region, Special, Type, Value, Values};
use kernel_dsl_compiler::passes::optimize;
use std::collections::HashMap;

fn seeds() -> std::ops::Range<u64> {
    0..std::env::var("PASSES_SEEDS").ok().and_then(|s| s.parse().ok()).unwrap_or(20)
}

fn insts<'k>(region: &'k Region, all: &mut Vec<&'k Inst>) {
    for inst in &region.insts {
        all.push(inst);
        inst.op.regions().into_iter().for_each(|region| insts(region, all));
    }
}

/// Proven and observed values.
#[derive(Default, Debug)]
struct Proven {
    values: usize,
    of_warps_alone: usize,
    places: usize,
    varying_places: usize,
}

fn check(seed: u64, kernel: &Kernel, proven: &mut Proven) {
    let uniformity = Uniformity::new(kernel);
    let [x, y, _] = kernel.block.max_extents();
    let threads: Vec<_> = (0..x * y).map(|t| evaluator::observe(kernel, seed % 5, [t % x, t / x, 0])).collect();
    let mut all = Vec::new();
    insts(&kernel.body, &mut all);
    for (scope, width) in [(UniformScope::Block, threads.len()), (UniformScope::Warp, 32)] {
        for group in threads.chunks(width) {
            let mut known: HashMap<(Value, &[u32]), u64> = HashMap::new();
            for ((value, iterations), bits) in group.iter().flat_map(|seen| &seen.values) {
                if uniformity.of(*value, scope) == UniformityVerdict::Uniform {
                    let first = *known.entry((*value, iterations)).or_insert(*bits);
                    assert_eq!(first, *bits, "seed {seed}: {value}, iterations {iterations:?}, {scope:?}\n{kernel}");
                }
            }
            proven.values += known.len();
            let alone = |v: &&(Value, &[u32])| uniformity.of(v.0, UniformScope::Block) != UniformityVerdict::Uniform;
            proven.of_warps_alone += known.keys().filter(alone).count();
        }
        for group in threads.chunks(width) {
            let mut comers: HashMap<usize, HashMap<&[u32], usize>> = HashMap::new();
            for (at, iterations) in group.iter().flat_map(|seen| &seen.reached) {
                *comers.entry(*at).or_default().entry(iterations).or_default() += 1;
            }
            for inst in &all {
                let Some(times) = comers.get(&std::ptr::from_ref(*inst).addr()) else { continue };
                let together = times.values().all(|n| *n == group.len());
                match uniformity.control_at(inst, scope) {
                    Some(UniformityVerdict::Uniform) => {
                        assert!(together, "seed {seed}: {:?}, {scope:?}\n{kernel}", inst.op);
                        proven.places += times.len();
                    }
                    Some(UniformityVerdict::Varies) => proven.varying_places += usize::from(!together),
                    _ => {}
                }
            }
        }
    }
}

#[test]
fn values_proven_uniform_are_uniform() {
    let mut proven = Proven::default();
    for seed in seeds() {
        check(seed, &generator::of_threads(seed), &mut proven);
        check(seed, &generator::kernel(seed), &mut proven);
    }
    assert!(proven.values > 10_000 && proven.of_warps_alone > 500, "{proven:?}");
    assert!(proven.places > 1000 && proven.varying_places > 100, "{proven:?}");
}

#[test]
fn values_proven_uniform_after_passes_are_uniform() {
    let mut proven = Proven::default();
    for seed in seeds() {
        let optimized = optimize(generator::of_threads(seed)).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        check(seed, &optimized, &mut proven);
    }
    assert!(proven.values > 1000, "{proven:?}");
}

/// Tests a carried value that is uniform in a block, and returns on two paths chosen by the block's
/// index. A second analysis of the loop must find nothing new.
#[test]
fn analysis_of_values_carried_by_blocks_terminates() {
    let mut b = Builder::new(generator::empty());
    let (start, block) =
        (b.scalar(Op::Parameter(8), Scalar::U32), b.scalar(Op::Special(Special::Block(0)), Scalar::Usize));
    let (label, three, one) = (Label(0), b.index(3), b.constant(Scalar::U32, 1));
    let carried = b.enter([Type::Scalar(Scalar::U32)])[0];
    let more = b.scalar(Op::Binary(Binary::Add, carried, one), Scalar::U32);
    for (condition, jump) in [
        (b.compare(Comparison::Lt, block, three), Op::Continue(label, [more].into_iter().collect())),
        (b.compare(Comparison::Eq, carried, one), Op::Break(label, Values::new())),
    ] {
        b.enter([]);
        b.effect(jump);
        let then = b.leave();
        b.enter([]);
        let otherwise = b.leave();
        b.effect(Op::If { condition, then, otherwise });
    }
    b.effect(Op::Yield([carried].into_iter().collect()));
    let body = b.leave();
    b.effect(Op::Loop { label, inits: [start].into_iter().collect(), body });
    let kernel = b.finish();
    verify(&kernel).unwrap();
    let uniformity = Uniformity::new(&kernel);
    assert_eq!(uniformity.of(carried, UniformScope::Block), UniformityVerdict::Uniform);
    assert_eq!(uniformity.of(carried, UniformScope::Grid), UniformityVerdict::Varies);
}
