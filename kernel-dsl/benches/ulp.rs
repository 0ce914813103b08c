//! Prints the largest error of each function of `kernel_dsl::math`, or of the named functions, over
//! all 2³² arguments. Functions of two arguments are measured over 2³² pairs.
//!
//! ```text
//! RUSTFLAGS="-C target-feature=+fma,+avx2" cargo bench -p kernel-dsl --bench ulp -- [exp sin pow …]
//! ```
//! Without the flag, rustc may call a library function for each fused multiply-add: the result is
//! the same, and the run takes longer.

#[path = "../tests/ulp/mod.rs"]
mod ulp;

use std::fmt::Display;
use std::{env, thread};
use ulp::{FUNCTIONS, PAIRWISE, Worst, measure, measure_pairs};

fn main() {
    let named: Vec<String> = env::args().skip(1).filter(|a| a != "--bench").collect();
    let wanted = |name: &str| named.is_empty() || named.iter().any(|n| n == name);
    println!("{:<8} {:>10} {:>10} {:>34} {:>14}", "function", "ulp", "stated", "at", "not nearest");
    for function in FUNCTIONS.iter().filter(|f| wanted(f.name)) {
        let all = |share, shares| measure(function, (share as u32..=u32::MAX).step_by(shares as usize));
        print(function.name, function.bound, shared(all), |at| format!("{at:e}"));
    }
    for function in PAIRWISE.iter().filter(|f| wanted(f.name)) {
        let all = |share, shares| measure_pairs(function, share, shares, 1 << 32);
        print(function.name, function.bound, shared(all), |(x, y)| format!("{x:e}, {y:e}"));
    }
}

fn print<A: Copy, D: Display>(name: &str, bound: f64, worst: Worst<A>, at: impl Fn(A) -> D) {
    let Worst { ulp, not_nearest, .. } = worst;
    let share = not_nearest as f64 / f64::powi(2.0, 32) * 100.0;
    println!("{name:<8} {ulp:>10.6} {bound:>10} {:>34} {share:>13.4}%", at(worst.at));
}

/// Runs `measure` with a share of the work on each core.
fn shared<A: Default + Send>(measure: impl Fn(u64, u64) -> Worst<A> + Sync) -> Worst<A> {
    let cores = thread::available_parallelism().map_or(1, usize::from) as u64;
    let measure = &measure;
    thread::scope(|scope| {
        let shares: Vec<_> = (0..cores).map(|core| scope.spawn(move || measure(core, cores))).collect();
        shares.into_iter().map(|s| s.join().expect("a sweep does not panic")).fold(Worst::default(), Worst::or)
    })
}
