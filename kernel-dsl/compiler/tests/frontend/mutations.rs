//! Valid programs, damaged token by token: the compiler must neither panic nor exceed a time limit.

use crate::damage::{Marked, PATIENCE, Random, compile, mutate};
use crate::support::{Crate, KERNELS, library};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

/// The number of damaged functions per test, most of which are still functions: a second or two
/// unoptimized.
const PROGRAMS: u32 = 4000;

/// Returns the outcome of a program, which must not panic or exceed the time limit.
fn outcome(text: &str, run: impl FnOnce() -> &'static str) -> &'static str {
    let start = Instant::now();
    let outcome = catch_unwind(AssertUnwindSafe(run));
    assert!(start.elapsed() < PATIENCE, "{:?} for:\n{text}", start.elapsed());
    outcome.unwrap_or_else(|_| panic!("a panic for:\n{text}"))
}

fn survives(texts: &[&str], seed: u64) {
    let library = library();
    let read = |text: &&str| Crate::parse(text).expect("the file is Rust");
    let crates: Vec<_> = texts.iter().map(|text| (read(text), read(text).with(&library))).collect();
    let functions: Vec<_> = crates.iter().flat_map(|(own, all)| own.functions.iter().map(move |f| (all, f))).collect();
    let mut random = Random(seed);
    let mut outcomes = BTreeMap::<&str, u32>::new();
    for _ in 0..PROGRAMS {
        let (all, function) = functions[random.below(functions.len())];
        let (_, other) = functions[random.below(functions.len())];
        let (text, mutant) = mutate(function, other, &mut random);
        let Some(mutant) = mutant else {
            *outcomes.entry("not a function").or_default() += 1;
            continue;
        };
        *outcomes.entry(outcome(&text, || compile(all, &mutant))).or_default() += 1;
    }
    println!("{outcomes:?}");
    // Damage that no program survives, or every program, would test one stage only.
    assert!(["compiled", "refused"].iter().all(|o| outcomes[o] > PROGRAMS / 40), "{outcomes:?}");
}

#[test]
fn damaged_kernels_cause_no_panic() {
    survives(&KERNELS, 1);
}

#[test]
fn damaged_constructs_cause_no_panic() {
    let texts = [
        include_str!("lowered/values.rs"),
        include_str!("lowered/control.rs"),
        include_str!("lowered/functions.rs"),
        include_str!("lowered/memory.rs"),
    ];
    survives(&texts, 2);
}

/// Inline PTX in a loop, with every operand direction.
const INLINE: &str = r##"
#[device]
fn product(a: u32, b: u32) -> (u32, u32) {
    ptx!("mul.lo.u32 {low}, {a}, {b};", "mul.hi.u32 {high}, {a}, {b};", a = in(u32) a, b = in(u32) b, low = out(u32), high = out(u32))
}

#[kernel(block = 64, grid = x.len().div_ceil(64))]
pub fn inline(x: &[u32], y: &mut [f32]) {
    let i = grid::index();
    if i < x.len() {
        let mut sum = 0;
        for k in 0..4 {
            let (low, high) = product(x[i], k as u32);
            sum = ptx!("@{p} add.u32 {d}, {d}, {a};", p = in(bool) k < 2, a = in(u32) low ^ high, d = inout(u32) sum);
        }
        ptx!("pmevent 3;");
        y[i] = ptx!("cvt.rz.f32.u32 {d}, {a};", a = in(u32) sum, d = out(f32));
    }
}
"##;

#[test]
fn damaged_inline_ptx_causes_no_panic() {
    survives(&[INLINE], 3);
}

/// Tests modules, structs, enums and constants, as the macros accept them.
#[test]
fn damaged_items_cause_no_panic() {
    let items = Marked::all(include_str!("../../../../tests/tests/language/constructs/items.rs"));
    let mut random = Random(3);
    for _ in 0..PROGRAMS / 4 {
        let [item, other] = [0; 2].map(|_| &items[random.below(items.len())]);
        let (text, mutant) = item.mutate(other, &mut random);
        outcome(&text, || mutant.expand());
    }
}
