//! Damages kernels at random, and stops at the first that makes the compiler panic or exceeds the
//! time limit. `cargo run --release -p fuzz --bin damaged -- 60 1` runs for 60 seconds from seed 1.

#[path = "../../../../kernel-dsl/compiler/tests/frontend/damage.rs"]
mod damage;
#[path = "../../../../kernel-dsl/compiler/tests/frontend/support.rs"]
mod support;

use damage::{Marked, PATIENCE, Random, compile, mutate};
use fuzz::watch::Watch;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::exit;
use std::time::{Duration, Instant};
use support::{Crate, KERNELS, library};

/// Files of functions, valid and invalid ones.
const FUNCTIONS: [&str; 18] = [
    KERNELS[0],
    KERNELS[1],
    KERNELS[2],
    KERNELS[3],
    include_str!("../../../../kernel-dsl/compiler/tests/frontend/lowered/cases.rs"),
    include_str!("../../../../kernel-dsl/compiler/tests/frontend/lowered/closures.rs"),
    include_str!("../../../../kernel-dsl/compiler/tests/frontend/lowered/collectives.rs"),
    include_str!("../../../../kernel-dsl/compiler/tests/frontend/lowered/control.rs"),
    include_str!("../../../../kernel-dsl/compiler/tests/frontend/lowered/functions.rs"),
    include_str!("../../../../kernel-dsl/compiler/tests/frontend/lowered/gaps.rs"),
    include_str!("../../../../kernel-dsl/compiler/tests/frontend/lowered/iterate.rs"),
    include_str!("../../../../kernel-dsl/compiler/tests/frontend/lowered/memory.rs"),
    include_str!("../../../../kernel-dsl/compiler/tests/frontend/lowered/values.rs"),
    include_str!("../../../../kernel-dsl/compile_fail/subset_check.rs"),
    include_str!("../../../../kernel-dsl/compile_fail/subset_device.rs"),
    include_str!("../../../tests/language/memory/kernels.rs"),
    include_str!("../../../tests/language/memory/ahead.rs"),
    include_str!("../../../tests/language/memory/shared.rs"),
];

/// Files of items.
const ITEMS: [&str; 6] = [
    include_str!("../../../tests/language/constructs/items.rs"),
    include_str!("../../../outside/pixel/src/format.rs"),
    include_str!("../../../outside/pixel/src/curve.rs"),
    include_str!("../../../outside/images/src/neighbors.rs"),
    include_str!("../../../outside/images/src/point.rs"),
    include_str!("../../../tests/language/items.rs"),
];

fn main() {
    let mut arguments = std::env::args().skip(1).map(|a| a.parse::<u64>().expect("seconds, and a seed"));
    let (seconds, seed) = (arguments.next().unwrap_or(60), arguments.next().unwrap_or(1));
    println!("{seconds} seconds, seed {seed}");
    let library = library();
    let read = |text: &&str| Crate::parse(text).expect("the file is Rust");
    let crates: Vec<_> = FUNCTIONS.iter().map(|text| (read(text), read(text).with(&library))).collect();
    let functions: Vec<_> = crates.iter().flat_map(|(own, all)| own.functions.iter().map(move |f| (all, f))).collect();
    let items: Vec<Marked> = ITEMS.into_iter().flat_map(Marked::all).collect();
    let watch = Watch::start(PATIENCE);
    // The panic's message is printed below, with the program.
    std::panic::set_hook(Box::new(|panic| eprintln!("{panic}")));

    let (start, mut random) = (Instant::now(), Random(seed.max(1)));
    let mut outcomes = BTreeMap::<&str, u64>::new();
    while start.elapsed() < Duration::from_secs(seconds) {
        let (text, run): (String, Box<dyn FnOnce() -> &'static str>) = match random.below(4) {
            0 => {
                let [item, other] = [0; 2].map(|_| &items[random.below(items.len())]);
                let (text, mutant) = item.mutate(other, &mut random);
                (text, Box::new(move || mutant.expand()))
            }
            _ => {
                let (all, function) = functions[random.below(functions.len())];
                let (_, other) = functions[random.below(functions.len())];
                let (text, mutant) = mutate(function, other, &mut random);
                (text, Box::new(move || mutant.map_or("not a function", |mutant| compile(all, &mutant))))
            }
        };
        watch.begin(text.clone());
        let outcome = catch_unwind(AssertUnwindSafe(run));
        watch.end();
        match outcome {
            Ok(outcome) => *outcomes.entry(outcome).or_default() += 1,
            Err(_) => {
                eprintln!("a panic for:\n{text}");
                exit(1);
            }
        }
    }
    println!("{} programs: {outcomes:?}", outcomes.values().sum::<u64>());
}
