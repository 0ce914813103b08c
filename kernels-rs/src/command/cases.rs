//! What an instance is run on to be looked at: the cases of its kernel's subjects, those that `check` tries.

use clap::Args;
use kernel_dsl::Artifact;
use kernel_dsl::compiler::hir::Instance;
use runtime::testing::{Case, Random, Subject, subjects};
use std::cmp::Reverse;

/// Which of an instance's cases is meant.
#[derive(Args)]
pub(super) struct Wanted {
    /// The case to run it on: its number from 1, or words that are in its name; if none is said, the largest
    #[arg(long, value_name = "CASE")]
    case: Option<String>,
    /// What the cases' shapes and values are drawn from
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Why there is no such case.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("nothing says how to try {instance}: register cases for its kernel, `runtime::register!`")]
    NoSubject { instance: String },
    #[error("{instance} has no case `{wanted}`; those of seed {seed}:{}", list(.names))]
    NoCase { instance: String, wanted: String, seed: u64, names: Vec<String> },
}

fn list(names: &[String]) -> String {
    names.iter().zip(1..).map(|(name, number)| format!("\n  {number}: {name}")).collect()
}

/// The subjects of a kernel. Constants that refer to one artifact may have several addresses, so the path tells.
pub(super) fn of_kernel(artifact: &Artifact) -> impl Iterator<Item = &'static Subject> {
    let path = (artifact.module, artifact.name);
    subjects().into_iter().filter(move |subject| (subject.artifact.module, subject.artifact.name) == path)
}

impl Wanted {
    /// The cases that may be meant, the one of most numbers first; there is one at least.
    pub(super) fn of(&self, artifact: &Artifact, instance: &Instance) -> Result<Vec<Case>, Error> {
        let name = || instance.name(artifact.name);
        let mut cases: Vec<_> =
            of_kernel(artifact).flat_map(|subject| (subject.cases)(instance, &mut Random::new(self.seed))).collect();
        if cases.is_empty() {
            return Err(Error::NoSubject { instance: name() });
        }
        let Some(wanted) = &self.case else {
            let numbers = |case: &Case| case.inputs.iter().map(|input| input.values().len()).sum::<usize>();
            cases.sort_by_key(|case| Reverse(numbers(case)));
            return Ok(cases);
        };
        let names: Vec<_> = cases.iter().map(|case| case.name.clone()).collect();
        // What is no number of a case may be in a name, as 64 is; that there is no case 0, is more likely to be overlooked.
        let number = wanted.parse().ok().and_then(|n: usize| n.checked_sub(1)).filter(|n| *n < cases.len());
        let named = || names.iter().position(|name| wanted != "0" && name.contains(wanted.as_str()));
        match number.or_else(named) {
            Some(n) => Ok(vec![cases.swap_remove(n)]),
            None => Err(Error::NoCase { instance: name(), wanted: wanted.clone(), seed: self.seed, names }),
        }
    }

    /// Whether a case is asked for.
    pub(super) fn is_said(&self) -> bool {
        self.case.is_some()
    }

    pub(super) fn seed(&self) -> u64 {
        self.seed
    }
}
