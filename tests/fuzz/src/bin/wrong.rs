//! Compares rustc and our checker on wrong programs, and prints each disagreement:
//! `cargo run --release -p fuzz --bin wrong -- 5000 0` compares the mutants of the numbers from 0.
//! Exits with code 1 if rustc refuses a program that our checker accepts.

use fuzz::wrong::{VerdictComparison, compare, seeds};
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Instant;

/// The number of mutants in one crate of rustc.
const BATCH: u64 = 500;

fn run() -> Result<bool, String> {
    let mut arguments = std::env::args().skip(1).map(|a| a.parse::<u64>().map_err(|e| format!("{a}: {e}")));
    let count = arguments.next().unwrap_or(Ok(1000))?;
    let first = arguments.next().unwrap_or(Ok(0))?;
    let folder = std::env::temp_dir().join(format!("kernels-wrong-{}", std::process::id()));
    let witness = fuzz::wrong::witness::RustcWitness::new(&folder)?;
    let start = Instant::now();
    // A panic of the compiler is a verdict.
    std::panic::set_hook(Box::new(|_| {}));
    let right = seeds::right(&witness)?;
    println!("{} right programs", right.len());
    let mut all = VerdictComparison::default();
    for from in (first..first + count).step_by(BATCH as usize) {
        let found = compare(&witness, &right, from..(from + BATCH).min(first + count))?;
        for disagreement in found.missed.iter().chain(&found.strict) {
            println!("{disagreement}");
        }
        all.accepted += found.accepted;
        all.refused += found.refused;
        all.missed.extend(found.missed);
        all.strict.extend(found.strict);
        all.limits.extend(found.limits);
    }
    let mut codes = BTreeMap::<&str, usize>::new();
    for missed in &all.missed {
        *codes.entry(missed.rustc.as_ref().map_or("", |error| &error.code)).or_default() += 1;
    }
    println!(
        "{count} numbers from {first} in {:.0} s: {} mutants refused by both, {} accepted by both, {} refused by \
         rustc alone {codes:?}, {} by our checker alone, and {} more because of a limit of the language",
        start.elapsed().as_secs_f64(),
        all.refused,
        all.accepted,
        all.missed.len(),
        all.strict.len(),
        all.limits.len(),
    );
    std::fs::remove_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    Ok(all.missed.is_empty())
}

fn main() -> ExitCode {
    match run() {
        Ok(agrees) => ExitCode::from(u8::from(!agrees)),
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
