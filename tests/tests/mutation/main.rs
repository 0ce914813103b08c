//! Mutation tests of the oracle and of the kernels' cases: each kernel runs with one change of its
//! IR at a time, which must be detected.
//!
//! The interpreter runs a mutant (`mutate`) with every check on the cases of the kernel, the
//! cheapest first, and compares its outputs with the reference. A check, the verifier of the IR,
//! the reference, or another order of blocks can detect it. Some of the other mutants have the
//! kernel's own PTX. Every other mutant survives: it is equivalent, or no case detects it yet.
//! `equivalent` lists survivors with the reason. A survivor that is not listed fails the test, and
//! so does a line without a survivor.
//!
//! By default a fixed sample of each kernel's mutants runs. All mutants, and the page `README.md`:
//!
//! ```text
//! MUTANTS=all cargo test --release -p tests --test mutation
//! MUTANTS=all UPDATE=1 cargo test --release -p tests --test mutation
//! MUTANTS=saxpy cargo test --release -p tests --test mutation      all mutants of one kernel
//! MUTANTS=survivors cargo test --release -p tests --test mutation  the survivors of the last run
//! MUTANTS=survivors:saxpy cargo test --release -p tests --test mutation   those of one kernel
//! MUTANTS=last UPDATE=1 cargo test --release -p tests --test mutation     the page from saved results
//! ```

mod equivalent;
mod mutate;
mod observed;
mod page;
mod saved;
mod trial;

use equivalent::Equivalent;
use indicatif::{ProgressBar, ProgressStyle};
use kernel_dsl::Artifact;
use kernel_dsl::compiler::hir::Instance;
use kernels_rs_specs as _;
use mutate::Mutation;
use page::Page;
use runtime::testing::{KernelSpec, kernel_specs, on_every_core};
use std::collections::{BTreeMap, BTreeSet};
use tests as _;
use trial::{Bench, Beside, Fate, lowered};

/// Number of mutants of a kernel in the default sample.
const SAMPLE: usize = if cfg!(debug_assertions) { 8 } else { 40 };

/// Number of mutants that run in sequence. A check that detected one mutant is applied first to the
/// next, so that the number of cores does not affect the result.
const STRETCH: usize = 16;

/// The selection of mutants.
enum Selection {
    /// A sample of each kernel.
    Sample,
    All,
    /// The saved results of all mutants.
    Last,
    /// The saved results of the kernels whose names contain this text, with survivors run again:
    /// for a new case.
    Survivors(String),
    /// All mutants of the kernels whose names contain this text.
    Of(String),
}

impl Selection {
    fn from_environment() -> Selection {
        match std::env::var("MUTANTS") {
            Err(_) => Selection::Sample,
            Ok(all) if all == "all" => Selection::All,
            Ok(last) if last == "last" => Selection::Last,
            Ok(name) => match name.strip_prefix("survivors") {
                Some(of) => Selection::Survivors(of.trim_start_matches(':').to_string()),
                None => Selection::Of(name),
            },
        }
    }

    fn takes(&self, artifact: &Artifact, instance: &str) -> bool {
        match self {
            Selection::Of(name) | Selection::Survivors(name) => instance.contains(name.as_str()),
            Selection::All | Selection::Last => true,
            Selection::Sample => !LONG.contains(&artifact.name),
        }
    }

    /// Returns whether all mutants of a selected instance run.
    fn is_whole(&self, instance: &str) -> bool {
        match self {
            Selection::Sample => false,
            Selection::All | Selection::Last => true,
            Selection::Of(name) | Selection::Survivors(name) => instance.contains(name.as_str()),
        }
    }

    /// Returns the distance between selected mutants.
    fn step(&self, mutants: usize) -> usize {
        match self {
            Selection::Sample => mutants.div_ceil(SAMPLE).max(1),
            _ => 1,
        }
    }
}

/// The results of the mutants of an instance.
struct Row {
    instance: String,
    /// The top-level module of the kernel.
    module: String,
    /// Number of all mutants.
    mutants: usize,
    tried: Vec<MutantResult>,
}

/// The result of a mutant.
struct MutantResult {
    name: Name,
    kind: mutate::MutationCategory,
    fate: Fate,
}

impl MutantResult {
    fn survives(&self) -> bool {
        matches!(self.fate, Fate::Survives(_))
    }
}

/// The name of a mutant, which does not depend on other parts of its file.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Name {
    instance: String,
    /// The function, and the line of it.
    site: String,
    change: String,
    /// The number among mutants that would have the same name, from 1.
    number: usize,
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Name { instance, site, change, number } = self;
        write!(f, "{instance} | {site} | {change}")?;
        if *number > 1 { write!(f, " #{number}") } else { Ok(()) }
    }
}

/// Kernels with another instance than the first declared one, which takes long or has fewer
/// features to test.
const INSTANCES: &[(&str, usize)] = &[
    ("affine_fit", 1),
    ("attention", 2),
    ("attention_gradient_kv", 3),
    ("attention_gradient_q", 2),
    ("cache_append", 1),
    ("conv3d", 1),
    ("count_shared", 1),
    ("csr_spmv", 1),
    ("decode", 1),
    ("flash_attention", 3),
    ("flash_attention_cached", 6),
    ("gemv_n", 4),
    ("gemv_normed", 3),
    ("norm_activations", 1),
    ("norm_divided", 4),
    ("norm_quantized", 1),
    ("rotate", 5),
    ("rotate_in_place", 2),
    ("sample", 3),
    ("sample_top", 1),
    ("sgemm", 1),
    ("softmax_divided", 3),
];

/// Kernels that take too long for a sample: they run if all mutants or their names are selected.
const LONG: &[&str] = &[
    "attention",
    "attention_gradient_kv",
    "attention_gradient_q",
    "attention_scores",
    "decode",
    "draw_likely",
    "flash_attention",
    "flash_attention_cached",
    "flash_decode",
    "gemm",
    "igemm",
    "likeliest_of_parts",
    "norm_activations",
    "q8_gemm",
    "sample",
    "sample_likely",
    "sample_top",
    "sgemm",
];

/// Returns an instance of each kernel with cases, of this crate and of kernels-rs.
fn tasks() -> Vec<(&'static KernelSpec, &'static Artifact, Instance)> {
    let ours =
        |artifact: &Artifact| artifact.module.starts_with("kernels_rs::") || artifact.module.starts_with("tests::");
    let task = |spec: &'static KernelSpec| {
        let artifact = spec.artifact;
        let number = INSTANCES.iter().find(|(name, _)| *name == artifact.name).map_or(0, |(_, number)| *number);
        let declared = artifact.instances.get(number)?;
        ours(artifact).then(|| (spec, artifact, Instance(declared.constants.to_vec())))
    };
    kernel_specs().into_iter().filter_map(task).collect()
}

/// Returns the mutants of a kernel with their names. If one line has many mutants of one change,
/// because of unrolling and scalarized arrays, these are the first and the last.
fn named(bench: &Bench, instance: &str) -> Vec<(Name, Mutation)> {
    let mut counts = BTreeMap::new();
    let all: Vec<_> = mutate::mutations(&bench.kernel)
        .into_iter()
        .map(|mutation| {
            let (site, change) = (bench.site(&mutation), mutation.change.to_string());
            let number = counts.entry((site.clone(), change.clone())).or_insert(0);
            *number += 1;
            (Name { instance: instance.to_string(), site, change, number: *number }, mutation)
        })
        .collect();
    let last = |name: &Name| counts.get(&(name.site.clone(), name.change.clone())).copied();
    all.into_iter().filter(|(name, _)| name.number == 1 || Some(name.number) == last(name)).collect()
}

/// Returns the first two segments of a kernel's module path, such as `kernels_rs::gemm`.
fn module(artifact: &Artifact) -> String {
    artifact.module.split("::").take(2).collect::<Vec<_>>().join("::")
}

/// An instance whose mutants must run.
struct Open {
    bench: Bench,
    instance: String,
    module: String,
    mutants: usize,
    /// The mutants to run, and the known results of the others.
    wanted: Vec<(Name, Mutation)>,
    known: Vec<MutantResult>,
}

/// The known results of an instance, or the mutants that must run.
enum Opened {
    Known(Row),
    Open(Box<Open>),
}

fn opened(
    spec: &'static KernelSpec,
    artifact: &'static Artifact,
    instance: &Instance,
    selection: &Selection,
) -> Opened {
    let name = artifact.instance_name(&instance.0);
    let last = || saved::load(&lowered(artifact, instance), &name, module(artifact));
    let mut known = Vec::new();
    match selection {
        Selection::Last => {
            let other = || panic!("{name} has changed since the last run; MUTANTS={} runs it", artifact.name);
            return Opened::Known(last().unwrap_or_else(other));
        }
        Selection::Survivors(_) => {
            if let Some(row) = last() {
                if !row.tried.iter().any(MutantResult::survives) {
                    return Opened::Known(row);
                }
                known = row.tried;
                known.retain(|tried| !tried.survives());
            }
        }
        _ => {}
    }
    let bench = Bench::new(spec, artifact, instance);
    let mut wanted = named(&bench, &name);
    let (mutants, step) = (wanted.len(), selection.step(wanted.len()));
    let names: BTreeSet<_> = known.iter().map(|tried| &tried.name).collect();
    wanted = wanted.into_iter().step_by(step).filter(|(name, _)| !names.contains(name)).collect();
    Opened::Open(Box::new(Open { bench, instance: name, module: module(artifact), mutants, wanted, known }))
}

/// Runs the remaining mutants of an instance, on all cores.
fn row(open: Open, selection: &Selection, bar: &ProgressBar) -> Row {
    let Open { bench, instance, module, mutants, wanted, known } = open;
    bar.set_message(instance.clone());
    let stretches: Vec<_> = wanted.chunks(STRETCH).collect();
    let tried = on_every_core(&stretches, |stretch| {
        let mut keenest = 0;
        let one = |(name, mutation): &(Name, Mutation)| {
            let tried =
                MutantResult { name: name.clone(), kind: mutation.kind, fate: bench.fate(mutation, &mut keenest) };
            bar.inc(1);
            tried
        };
        stretch.iter().map(one).collect::<Vec<_>>()
    });
    let tried = tried.into_iter().flatten().chain(known).collect();
    let row = Row { instance, module, mutants, tried };
    if selection.is_whole(&row.instance) {
        saved::save(&bench.kernel, &row);
    }
    row
}

/// Returns the results of all selected instances.
fn rows(selection: &Selection) -> Vec<Row> {
    let tasks: Vec<_> = tasks()
        .into_iter()
        .filter(|(_, artifact, instance)| selection.takes(artifact, &artifact.instance_name(&instance.0)))
        .collect();
    // The bar is on stderr, and hidden if that is not a terminal.
    let bar = ProgressBar::new(0);
    if let Ok(style) = ProgressStyle::with_template("{bar:24} {pos}/{len} {msg} {elapsed}") {
        bar.set_style(style);
    }
    let rows = on_every_core(&tasks, |(spec, artifact, instance)| match opened(spec, artifact, instance, selection) {
        Opened::Known(row) => row,
        Opened::Open(open) => {
            bar.inc_length(open.wanted.len() as u64);
            row(*open, selection, &bar)
        }
    });
    bar.finish_and_clear();
    rows
}

#[test]
fn every_mutant_is_detected_or_equivalent() {
    let selection = Selection::from_environment();
    let rows = rows(&selection);
    assert!(!rows.is_empty(), "no kernel matches the name");
    let equivalent = Equivalent::read();
    let mut wrong = Vec::new();
    for MutantResult { name, fate, .. } in rows.iter().flat_map(|row| &row.tried) {
        match (fate, equivalent.reason(name)) {
            (Fate::Survives(beside), None) => {
                wrong.push(format!("survives{beside}, and is not in `equivalent`: {name}"));
            }
            (Fate::Survives(Beside { bits: false, .. }), Some(reason)) if !reason.contains("bits") => {
                wrong.push(format!("survives with other bits, which the reason does not mention: {name}"));
            }
            (Fate::Caught(by), Some(_)) => {
                wrong.push(format!("is in `equivalent`, but is caught by {by}: {name}"));
            }
            (Fate::Identical, Some(_)) => {
                wrong.push(format!("is in `equivalent`, but has the kernel's PTX: {name}"));
            }
            _ => {}
        }
    }
    let tried: BTreeSet<_> = rows.iter().flat_map(|row| &row.tried).map(|tried| &tried.name).collect();
    let unknown = equivalent.names().filter(|name| selection.is_whole(&name.instance) && !tried.contains(name));
    wrong.extend(unknown.map(|name| format!("is in `equivalent`, but does not exist: {name}")));
    println!("{}", page::summary(&rows));
    let page = matches!(selection, Selection::All | Selection::Last).then(|| Page::of(&rows, &equivalent));
    if let Some(page) = page.as_ref().filter(|_| std::env::var_os("UPDATE").is_some()) {
        page.write();
    }
    assert!(wrong.is_empty(), "{} mutants:\n{}", wrong.len(), wrong.join("\n"));
    if let Some(page) = page {
        page.check();
    }
}
