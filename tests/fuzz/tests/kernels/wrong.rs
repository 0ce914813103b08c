//! Compares rustc and our checker on a few hundred wrong programs;
//! `cargo run --release -p fuzz --bin wrong` compares thousands.

use fuzz::wrong::witness::RustcWitness;
use fuzz::wrong::{compare, seeds};
use std::path::Path;

/// The number of mutants: rustc takes a few seconds for them.
const MUTANTS: u64 = 400;

#[test]
fn rustc_and_the_checker_refuse_the_same_programs() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("wrong");
    let witness = RustcWitness::new(&folder).expect("the crate `kernel_dsl`, which this test depends on");
    let right = seeds::right(&witness).expect("rustc runs");
    assert!(right.len() >= 60, "{} programs are right", right.len());
    let found = compare(&witness, &right, 0..MUTANTS).expect("rustc runs");
    let disagreements: Vec<_> = found.missed.iter().chain(&found.strict).map(ToString::to_string).collect();
    assert!(disagreements.is_empty(), "{}", disagreements.join("\n"));
    // Most mutants are wrong, and some are right.
    assert!(found.refused > MUTANTS as usize / 2, "{} are refused", found.refused);
    assert!(found.accepted > MUTANTS as usize / 20, "{} are accepted", found.accepted);
}
