//! Wrong programs: right ones with a mistake. rustc and our checker must refuse the same.
//!
//! A kernel from a string is compiled without rustc, so our checker alone refuses its mistakes.
//! Each program here is a mutant of a right one. rustc compiles the mutants as modules of one
//! crate, with the items of `kernel_dsl` that run on the host. Our verdict is that of
//! [`standalone`](kernel_dsl_compiler::source_file::standalone) and of the stages after it.
//!
//! ```text
//! seeds ─ mutate ─▶ mutant ─┬─▶ witness: rustc, all mutants in one crate ─┐
//!                           └─▶ verdict: source_file, lowering, passes   ─┴─▶ disagreements
//! ```

pub mod mutate;
pub mod seeds;
pub mod verdict;
pub mod witness;

use crate::support::Random;
use mutate::{MUTATIONS, MutationClass};
use std::fmt;
use verdict::{CheckerRefusal, refusal};
use witness::{RustcError, RustcWitness};

/// A mutant.
pub struct Mutant {
    /// The number that it was made from.
    pub seed: u64,
    /// The class of its mutations.
    pub mutation: MutationClass,
    /// The program.
    pub program: syn::File,
}

impl Mutant {
    /// Returns the mutant of a number: of one of the right programs, with one mutation, or with two
    /// for each fourth.
    pub fn of(seed: u64, right: &[syn::File]) -> Option<Mutant> {
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        random.below(2);
        let program = &right[random.below(right.len())];
        let first = MUTATIONS[random.below(MUTATIONS.len())];
        let mut mutant = mutate::mutate(program, first, &mut random)?;
        if seed.is_multiple_of(4) {
            let second = MUTATIONS[random.below(MUTATIONS.len())];
            mutant = mutate::mutate(&mutant, second, &mut random).unwrap_or(mutant);
        }
        // A tree can have a text that is no Rust, such as `-` before a block.
        let text = text(&mutant);
        let program = syn::parse_str(&text).ok()?;
        Some(Mutant { seed, mutation: first, program })
    }
}

/// Returns the text of a program.
pub fn text(program: &syn::File) -> String {
    quote::ToTokens::to_token_stream(program).to_string()
}

/// A program on which rustc and our checker disagree.
pub struct Disagreement {
    /// The number of the mutant.
    pub seed: u64,
    /// The class of its mutations.
    pub mutation: MutationClass,
    /// The error of rustc.
    pub rustc: Option<RustcError>,
    /// Our error.
    pub ours: Option<CheckerRefusal>,
    /// The program.
    pub text: String,
}

impl fmt::Display for Disagreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Disagreement { seed, mutation, rustc, ours, text } = self;
        writeln!(f, "mutant {seed}, {mutation:?}")?;
        match rustc {
            Some(error) => writeln!(f, "rustc: {} {}", error.code, error.message)?,
            None => writeln!(f, "rustc accepts it")?,
        }
        match ours {
            Some(refusal) => writeln!(f, "ours: {}: {}", refusal.stage, refusal.message)?,
            None => writeln!(f, "our checker accepts it")?,
        }
        writeln!(f, "{text}")
    }
}

/// The result of comparing mutants.
#[derive(Default)]
pub struct VerdictComparison {
    /// The mutants that both accept.
    pub accepted: usize,
    /// The mutants that both refuse.
    pub refused: usize,
    /// The mutants that only rustc refuses.
    pub missed: Vec<Disagreement>,
    /// The mutants that only our checker refuses, for a reason that is no limit of the language.
    pub strict: Vec<Disagreement>,
    /// The mutants that only our checker refuses, because of a limit of the language.
    pub limits: Vec<Disagreement>,
}

/// Compares the verdicts on the mutants of these numbers.
///
/// # Errors
/// A message, if rustc does not run.
pub fn compare(
    witness: &RustcWitness,
    right: &[syn::File],
    seeds: impl IntoIterator<Item = u64>,
) -> Result<VerdictComparison, String> {
    let mutants: Vec<Mutant> = seeds.into_iter().filter_map(|seed| Mutant::of(seed, right)).collect();
    let programs: Vec<syn::File> = mutants.iter().map(|mutant| mutant.program.clone()).collect();
    let errors = witness.errors(&programs)?;
    let mut comparison = VerdictComparison::default();
    for (Mutant { seed, mutation, program }, rustc) in mutants.into_iter().zip(errors) {
        let text = text(&program);
        let ours = refusal(&text);
        let list = match (&rustc, &ours) {
            (None, None) => {
                comparison.accepted += 1;
                continue;
            }
            (Some(_), Some(_)) => {
                comparison.refused += 1;
                continue;
            }
            (Some(_), None) => &mut comparison.missed,
            (None, Some(refusal)) if refusal.is_limit() => &mut comparison.limits,
            (None, Some(_)) => &mut comparison.strict,
        };
        list.push(Disagreement { seed, mutation, rustc, ours, text });
    }
    Ok(comparison)
}
