//! Tests that the fuzzer detects faults: each fault is planted in the emitted PTX of every kernel,
//! as a faulty compiler or instruction table would produce it. The fuzzer must detect each fault
//! within a given number of kernels.

use fuzz::compile::Frontend;
use fuzz::generate;
use fuzz::run;

/// A fault: the original text, its replacement, and the number of kernels within which it must be
/// detected.
struct Planted {
    text: &'static str,
    instead: &'static str,
    within: u64,
}

const fn planted(text: &'static str, instead: &'static str, within: u64) -> Planted {
    Planted { text, instead, within }
}

/// The number of kernels that an unoptimized build tries.
const PROGRAMS: u64 = 480;

const ALL: &[Planted] = &[
    // Comparisons with a wrong operator or sign.
    planted("setp.lt.u32", "setp.le.u32", 80),
    planted("setp.lt.s32", "setp.lt.u32", 80),
    planted("setp.gt.f32", "setp.gtu.f32", 1000),
    planted("setp.neu.f32", "setp.ne.f32", 80),
    planted("max.s32", "max.u32", 80),
    planted("min.f32", "max.f32", 80),
    // Integers.
    planted("shr.s32", "shr.u32", 80),
    planted("mul.hi.u32", "mul.lo.u32", 80),
    planted("rem.s32", "div.s32", 80),
    planted("sub.u32", "add.u32", 80),
    planted("clz.b32", "popc.b32", 80),
    planted("cvt.s32.s8", "cvt.u32.u8", 80),
    // Floats: rounding and subnormals.
    planted("add.rn.f32", "add.rn.ftz.f32", 1000),
    planted("fma.rn.f32", "fma.rz.f32", 80),
    planted("mul.rn.f64", "mul.rz.f64", 1000),
    planted("sqrt.rn.f32", "sqrt.rz.f32", 1000),
    planted("div.rn.f64", "div.rm.f64", 1000),
    planted("cvt.rn.f32.f64", "cvt.rz.f32.f64", 1000),
    planted("cvt.rn.f16.f32", "cvt.rz.f16.f32", PROGRAMS),
    planted("cvt.rzi.s32.f32", "cvt.rni.s32.f32", 1000),
    planted("cvt.rn.f32.u64", "cvt.rn.f32.s64", 1000),
    // Memory, and operations of several threads.
    planted("ld.global.nc.s8", "ld.global.nc.u8", PROGRAMS),
    planted("bar.sync 0;", "", 80),
    planted("shfl.sync.up", "shfl.sync.down", 80),
    planted("vote.sync.any", "vote.sync.all", 80),
    planted("red.global.max.u32", "red.global.add.u32", PROGRAMS),
];

#[test]
fn each_planted_mistake_is_found() {
    let frontend = Frontend::default();
    // Rare faults need many kernels, too many for an unoptimized build.
    let tried = |diagnostic: &&Planted| !cfg!(debug_assertions) || diagnostic.within <= PROGRAMS;
    let mut open: Vec<&Planted> = ALL.iter().filter(tried).collect();
    let mut missed = Vec::new();
    for seed in 1.. {
        if open.is_empty() {
            break;
        }
        let text = generate::kernel(seed).to_string();
        let good = run::test(&frontend, &text, seed).unwrap_or_else(|failure| panic!("{seed}: {failure}\n{text}"));
        open.retain(|diagnostic| {
            let ptx = good.compiled.ptx.replace(diagnostic.text, diagnostic.instead);
            let found = ptx != good.compiled.ptx && run::agrees(&good, &ptx).is_err();
            if found {
                println!("{} for {}: found in kernel {seed}", diagnostic.instead, diagnostic.text);
            } else if seed >= diagnostic.within {
                missed.push(format!("{} for {}, within {}", diagnostic.instead, diagnostic.text, diagnostic.within));
            }
            !found && seed < diagnostic.within
        });
    }
    assert!(missed.is_empty(), "not found:\n{}", missed.join("\n"));
}
