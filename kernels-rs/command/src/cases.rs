//! Selection of the case on which an instance is examined, among those that `check` runs.

use clap::Args;
use kernel_dsl::Artifact;
use kernel_dsl::compiler::hir::Instance;
use runtime::testing::{Case, KernelSpec, Random, bench_cases, generated, kernel_specs};
use std::cmp::Reverse;

/// Options that select a case of an instance.
#[derive(Args)]
pub(super) struct CaseOptions {
    /// The case to run: its number, counted from 1, or part of its name; the largest by default
    #[arg(long, value_name = "CASE")]
    case: Option<String>,
    /// Seed of the cases' shapes and values
    #[arg(long, default_value_t = 1, value_parser = seed_arg)]
    seed: u64,
}

/// Reads the value of `--seed`.
pub(super) fn seed_arg(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("expected a whole number from 0 to {}", u64::MAX))
}

/// Error returned when no such case exists.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("no test cases are registered for {instance}; add them with `runtime::register!`")]
    NoSpec { instance: String },
    #[error("{instance} has no cases of seed {seed}: {why}")]
    Panicked { instance: String, seed: u64, why: String },
    #[error("{instance} has no case `{wanted}`; those of seed {seed}:{}", list(.names))]
    NoCase { instance: String, wanted: String, seed: u64, names: Vec<String> },
}

fn list(names: &[String]) -> String {
    names.iter().zip(1..).map(|(name, number)| format!("\n  {number}: {name}")).collect()
}

/// Returns the specs of a kernel. Artifacts are compared by path, because constants that refer
/// to one artifact may have several addresses.
pub(super) fn of_kernel(artifact: &Artifact) -> impl Iterator<Item = &'static KernelSpec> {
    let path = (artifact.module, artifact.name);
    kernel_specs().into_iter().filter(move |spec| (spec.artifact.module, spec.artifact.name) == path)
}

impl CaseOptions {
    /// Returns the selected cases, the largest first; there is at least one.
    pub(super) fn of(&self, artifact: &Artifact, instance: &Instance) -> Result<Vec<Case>, Error> {
        self.choose(artifact, instance, of_kernel(artifact).map(|spec| spec.cases))
    }

    /// Returns the selected cases for an estimate: those for measurements, or else those of
    /// `check`.
    pub(super) fn of_estimate(&self, artifact: &Artifact, instance: &Instance) -> Result<Vec<Case>, Error> {
        match self.of_bench(artifact, instance) {
            Err(Error::NoCase { .. }) => self.of(artifact, instance),
            selected => selected,
        }
    }

    /// Returns the selected cases for measurements, as [`of`](CaseOptions::of) does.
    pub(super) fn of_bench(&self, artifact: &Artifact, instance: &Instance) -> Result<Vec<Case>, Error> {
        let path = (artifact.module, artifact.name);
        let registered = bench_cases().into_iter().filter(|bench| (bench.artifact.module, bench.artifact.name) == path);
        let registered: Vec<_> = registered.map(|bench| bench.cases).collect();
        match registered.is_empty() {
            true => self.of(artifact, instance),
            false => self.choose(artifact, instance, registered.into_iter()),
        }
    }

    fn choose(
        &self,
        artifact: &Artifact,
        instance: &Instance,
        sources: impl Iterator<Item = fn(&Instance, &mut Random) -> Vec<Case>>,
    ) -> Result<Vec<Case>, Error> {
        let name = || artifact.instance_name(&instance.0);
        let mut cases = Vec::new();
        for source in sources {
            let panicked = |why| Error::Panicked { instance: name(), seed: self.seed, why };
            cases.extend(generated(source, instance, self.seed).map_err(panicked)?);
        }
        if cases.is_empty() {
            return Err(Error::NoSpec { instance: name() });
        }
        let Some(wanted) = &self.case else {
            cases.sort_by_key(|case| Reverse(case.value_count()));
            return Ok(cases);
        };
        let names: Vec<_> = cases.iter().map(|case| case.name.clone()).collect();
        // A number above the number of cases may be part of a name, such as 64. `0` matches no
        // name: it is more likely a mistaken index. Neither does an empty text.
        let number = wanted.parse().ok().and_then(|n: usize| n.checked_sub(1)).filter(|n| *n < cases.len());
        let named = || names.iter().position(|name| !matches!(&wanted[..], "0" | "") && name.contains(wanted.as_str()));
        match number.or_else(named) {
            Some(n) => Ok(vec![cases.swap_remove(n)]),
            None => Err(Error::NoCase { instance: name(), wanted: wanted.clone(), seed: self.seed, names }),
        }
    }

    /// Returns whether a case was given on the command line.
    pub(super) fn is_given(&self) -> bool {
        self.case.is_some()
    }

    pub(super) fn seed(&self) -> u64 {
        self.seed
    }
}
