//! Prints the largest error of each function of `kernel_dsl::math` over all 2³² arguments.
//!
//! ```text
//! RUSTFLAGS="-C target-cpu=native" cargo run --release -p kernel-dsl --example ulp
//! ```
//! Without the flag rustc may call a library for each fused multiply-add; the figures are the same, and take longer.

#[path = "../tests/ulp/mod.rs"]
mod ulp;

use kernel_dsl::math;
use std::thread;
use ulp::{Worst, measure};

type Row = (&'static str, fn(f32) -> f32, fn(f64) -> f64);

fn main() {
    let functions: [Row; 2] = [("exp", math::exp, f64::exp), ("ln", math::ln, f64::ln)];
    println!("{:<8} {:>10} {:>16} {:>14}", "function", "ulp", "at", "not nearest");
    for (name, f, exact) in functions {
        let Worst { ulp, at, not_nearest } = everywhere(f, exact);
        println!("{name:<8} {ulp:>10.6} {at:>16e} {:>13.4}%", not_nearest as f64 / f64::powi(2.0, 32) * 100.0);
    }
}

/// All arguments, a share to each core.
fn everywhere(f: fn(f32) -> f32, exact: fn(f64) -> f64) -> Worst {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let share = |core| move || measure(f, exact, (0..=u32::MAX).skip(core).step_by(cores));
        let shares: Vec<_> = (0..cores).map(|core| scope.spawn(share(core))).collect();
        shares.into_iter().map(|s| s.join().expect("a sweep does not panic")).fold(Worst::default(), Worst::or)
    })
}
