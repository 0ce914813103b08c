//! Mutations of right programs: each makes one mistake, or a change that may be right.
//!
//! A mutation is applied in two walks: the first counts the places for its class, and the second
//! changes one of them.

mod class;
mod expression;
mod item;
mod names;
mod replacement;
mod statement;
mod visit;

pub use class::{MUTATIONS, MutationClass};

use crate::support::Random;
use names::ProgramNames;
use syn::Token;
use syn::punctuated::Punctuated;
use syn::visit_mut::VisitMut;

/// Returns a copy of `program` with one mutation of the class; `None` if the program has no place
/// for it.
pub fn mutate(program: &syn::File, mutation: MutationClass, random: &mut Random) -> Option<syn::File> {
    let names = ProgramNames::of(program);
    let mut count = program.clone();
    let mut mutator = Mutator { mutation, target: usize::MAX, seen: 0, names: &names, random };
    mutator.visit_file_mut(&mut count);
    let seen = mutator.seen;
    if seen == 0 {
        return None;
    }
    let mut mutant = program.clone();
    let target = random.below(seen);
    Mutator { mutation, target, seen: 0, names: &names, random }.visit_file_mut(&mut mutant);
    Some(mutant)
}

/// Applies a mutation at the place numbered `target`, and counts the places.
struct Mutator<'a> {
    mutation: MutationClass,
    target: usize,
    seen: usize,
    names: &'a ProgramNames,
    random: &'a mut Random,
}

impl Mutator<'_> {
    /// Returns whether this is the place to mutate.
    fn hit(&mut self, mutation: MutationClass) -> bool {
        if mutation != self.mutation {
            return false;
        }
        self.seen += 1;
        self.seen == self.target.wrapping_add(1)
    }

    fn one_of<'t, T>(&mut self, all: &'t [T]) -> Option<&'t T> {
        match all.len() {
            0 => None,
            n => Some(&all[self.random.below(n)]),
        }
    }
}

/// Returns the list without its element `at`.
fn removed<T: Clone, P: Default>(all: &Punctuated<T, P>, at: usize) -> Punctuated<T, P> {
    all.iter().enumerate().filter(|(i, _)| *i != at).map(|(_, part)| part.clone()).collect()
}

/// Returns `mut` where there is none, and the other way round.
fn toggled(mutability: Option<Token![mut]>) -> Option<Token![mut]> {
    match mutability {
        Some(_) => None,
        None => Some(Default::default()),
    }
}
