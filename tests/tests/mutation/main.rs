//! How good the oracle and the specs of our kernels are: each kernel with one change of its IR at a time, which must be noticed.
//!
//! A mutant (`mutate`) is run by the interpreter with every check on the cases of the kernel's spec, the cheapest first, and what
//! it leaves is held against the reference. It is caught by a check, by the verifier of the IR, by the reference, or by what
//! another order of blocks leaves. Of the others some are proved to do what the kernel does in every launch (`proof`): those are no mutants.
//! What survives does the same as the kernel too, or no case tells it from that yet, and stands in `equivalent` with the reason; a survivor that does not,
//! and a line there that no survivor matches, fail the test.
//!
//! By default a sample of each kernel's mutants is tried, the same one each time. All, and the page `README.md`:
//!
//! ```text
//! MUTANTS=all cargo test --release -p tests --test mutation
//! MUTANTS=all UPDATE=1 cargo test --release -p tests --test mutation
//! MUTANTS=saxpy cargo test --release -p tests --test mutation     all of one kernel
//! MUTANTS=survivors cargo test --release -p tests --test mutation  those that survived when all were last tried, after a new case or rule
//! MUTANTS=last UPDATE=1 cargo test --release -p tests --test mutation     the page of what came of them when all were last tried
//! ```

mod equivalent;
mod folds;
mod form;
mod idle;
mod multiples;
mod mutate;
mod needed;
mod normal;
mod observed;
mod page;
mod pairs;
mod proof;
mod saved;
mod swaps;
mod threads;
mod trial;
mod turns;

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

/// Mutants of a kernel that are tried if none are asked for.
const SAMPLE: usize = if cfg!(debug_assertions) { 8 } else { 40 };

/// Mutants that are tried one after another, what noticed one before what else might notice the next: so that what notices each does not depend on how
/// many cores there are.
const STRETCH: usize = 16;

/// Which mutants are tried.
enum Wish {
    /// Some of each kernel.
    Sample,
    All,
    /// What came of all when they were last tried.
    Last,
    /// That too, and what survived then is tried anew: a new case or a new rule of the prover is for those.
    Survivors,
    /// All of the kernels whose names have that in them.
    Of(String),
}

impl Wish {
    fn from_environment() -> Wish {
        match std::env::var("MUTANTS") {
            Err(_) => Wish::Sample,
            Ok(all) if all == "all" => Wish::All,
            Ok(last) if last == "last" => Wish::Last,
            Ok(survivors) if survivors == "survivors" => Wish::Survivors,
            Ok(name) => Wish::Of(name),
        }
    }

    fn takes(&self, artifact: &Artifact, instance: &str) -> bool {
        match self {
            Wish::Of(name) => instance.contains(name.as_str()),
            Wish::All | Wish::Last | Wish::Survivors => true,
            Wish::Sample => !LONG.contains(&artifact.name),
        }
    }

    /// Whether all mutants of an instance are tried, if it is among those that are.
    fn is_whole(&self, instance: &str) -> bool {
        match self {
            Wish::Sample => false,
            Wish::All | Wish::Last | Wish::Survivors => true,
            Wish::Of(name) => instance.contains(name.as_str()),
        }
    }

    /// The distance from one mutant that is tried to the next.
    fn step(&self, mutants: usize) -> usize {
        match self {
            Wish::Sample => mutants.div_ceil(SAMPLE).max(1),
            _ => 1,
        }
    }
}

/// What came of the mutants of an instance that were tried.
struct Row {
    instance: String,
    /// The module of its kernel, without those that lie deeper.
    module: String,
    /// All there are.
    mutants: usize,
    tried: Vec<Tried>,
}

/// What came of a mutant.
struct Tried {
    name: Name,
    kind: mutate::Kind,
    fate: Fate,
}

impl Tried {
    fn survives(&self) -> bool {
        matches!(self.fate, Fate::Survives(_))
    }
}

/// A mutant's name: it outlives changes elsewhere in its file.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Name {
    instance: String,
    /// The function, and the line of it.
    site: String,
    change: String,
    /// Which of those that would have the same name, from 1.
    number: usize,
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Name { instance, site, change, number } = self;
        write!(f, "{instance} | {site} | {change}")?;
        if *number > 1 { write!(f, " #{number}") } else { Ok(()) }
    }
}

/// Kernels of which not the first declared instance is taken: that one takes long, or does less, so that less of it can be told.
const INSTANCES: &[(&str, usize)] = &[
    ("affine_fit", 1),
    ("attention", 2),
    ("attention_gradient", 4),
    ("cache_append", 1),
    ("conv3d", 1),
    ("count_shared", 1),
    ("csr_spmv", 1),
    ("decode", 1),
    ("flash_attention", 3),
    ("gemv_n", 4),
    ("gemv_normed", 3),
    ("norm_quantized", 1),
    ("rotate", 5),
    ("rotate_in_place", 2),
    ("sample", 3),
    ("sample_top", 1),
    ("sgemm", 1),
];

/// Kernels that take too long for a sample: they are tried where all are asked for, or they by name.
const LONG: &[&str] = &[
    "attention",
    "attention_gradient",
    "attention_scores",
    "decode",
    "flash_attention",
    "flash_decode",
    "gemm",
    "igemm",
    "q8_gemm",
    "sample",
    "sample_likely",
    "sample_top",
    "sgemm",
];

/// An instance of each kernel that a spec tries, those of this crate and of kernels-rs.
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

/// The mutants of a kernel, with their names. Of those that one line has many of, by unrolling and by arrays taken apart, the
/// first and the last.
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

/// `kernels_rs::gemm` of what lies in `kernels_rs::gemm::tiled`.
fn module(artifact: &Artifact) -> String {
    artifact.module.split("::").take(2).collect::<Vec<_>>().join("::")
}

/// An instance whose mutants are to be tried.
struct Open {
    bench: Bench,
    instance: String,
    module: String,
    mutants: usize,
    /// Those to try, and what is known of the others.
    wanted: Vec<(Name, Mutation)>,
    known: Vec<Tried>,
}

/// Of an instance what came of its mutants, or what is left to try.
enum Opened {
    Known(Row),
    Open(Box<Open>),
}

fn opened(spec: &'static KernelSpec, artifact: &'static Artifact, instance: &Instance, wish: &Wish) -> Opened {
    let name = instance.name(artifact.name);
    let last = || saved::load(&lowered(artifact, instance).1, &name, module(artifact));
    let mut known = Vec::new();
    match wish {
        Wish::Last => {
            let other = || panic!("{name} is not what was last tried: MUTANTS={} tries it", artifact.name);
            return Opened::Known(last().unwrap_or_else(other));
        }
        Wish::Survivors => {
            if let Some(row) = last() {
                if !row.tried.iter().any(Tried::survives) {
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
    let (mutants, step) = (wanted.len(), wish.step(wanted.len()));
    let names: BTreeSet<_> = known.iter().map(|tried| &tried.name).collect();
    wanted = wanted.into_iter().step_by(step).filter(|(name, _)| !names.contains(name)).collect();
    Opened::Open(Box::new(Open { bench, instance: name, module: module(artifact), mutants, wanted, known }))
}

/// Tries what is left of an instance, on every core.
fn row(open: Open, wish: &Wish, bar: &ProgressBar) -> Row {
    let Open { bench, instance, module, mutants, wanted, known } = open;
    bar.set_message(instance.clone());
    let stretches: Vec<_> = wanted.chunks(STRETCH).collect();
    let tried = on_every_core(&stretches, |stretch| {
        let mut keenest = 0;
        let one = |(name, mutation): &(Name, Mutation)| {
            let tried = Tried { name: name.clone(), kind: mutation.kind, fate: bench.fate(mutation, &mut keenest) };
            bar.inc(1);
            tried
        };
        stretch.iter().map(one).collect::<Vec<_>>()
    });
    let tried = tried.into_iter().flatten().chain(known).collect();
    let row = Row { instance, module, mutants, tried };
    if wish.is_whole(&row.instance) {
        saved::save(&bench.kernel, &row);
    }
    row
}

/// Rows of all instances.
fn rows(wish: &Wish) -> Vec<Row> {
    let tasks: Vec<_> = tasks()
        .into_iter()
        .filter(|(_, artifact, instance)| wish.takes(artifact, &instance.name(artifact.name)))
        .collect();
    let opened = on_every_core(&tasks, |(spec, artifact, instance)| opened(spec, artifact, instance, wish));
    let wanted = opened.iter().map(|opened| match opened {
        Opened::Known(_) => 0,
        Opened::Open(open) => open.wanted.len() as u64,
    });
    // On stderr, and hidden where that is no terminal.
    let bar = ProgressBar::new(wanted.sum());
    if let Ok(style) = ProgressStyle::with_template("{bar:24} {pos}/{len} {msg} {elapsed}") {
        bar.set_style(style);
    }
    let rows = opened.into_iter().map(|opened| match opened {
        Opened::Known(row) => row,
        Opened::Open(open) => row(*open, wish, &bar),
    });
    let rows = rows.collect();
    bar.finish_and_clear();
    rows
}

#[test]
fn every_change_of_a_kernel_is_noticed_but_for_those_that_change_nothing() {
    let wish = Wish::from_environment();
    let rows = rows(&wish);
    assert!(!rows.is_empty(), "no kernel has that name");
    let equivalent = Equivalent::read();
    let mut wrong = Vec::new();
    for Tried { name, fate, .. } in rows.iter().flat_map(|row| &row.tried) {
        match (fate, equivalent.reason(name)) {
            (Fate::Survives(beside), None) => {
                wrong.push(format!("survives{beside}, and is not in `equivalent`: {name}"));
            }
            (Fate::Survives(Beside { bits: false, .. }), Some(reason)) if !reason.contains("bits") => {
                wrong.push(format!("survives and leaves other bits, of which the reason says nothing: {name}"));
            }
            (Fate::Caught(by), Some(_)) => {
                wrong.push(format!("is in `equivalent`, and is caught by {by}: {name}"));
            }
            (Fate::Same(proof), Some(_)) => {
                wrong.push(format!("is in `equivalent`, and is proved ({proof}): {name}"));
            }
            _ => {}
        }
    }
    let tried: BTreeSet<_> = rows.iter().flat_map(|row| &row.tried).map(|tried| &tried.name).collect();
    let unknown = equivalent.names().filter(|name| wish.is_whole(&name.instance) && !tried.contains(name));
    wrong.extend(unknown.map(|name| format!("is in `equivalent`, and there is no such mutant: {name}")));
    println!("{}", page::summary(&rows));
    let page = matches!(wish, Wish::All | Wish::Last).then(|| Page::of(&rows, &equivalent));
    if let Some(page) = page.as_ref().filter(|_| std::env::var_os("UPDATE").is_some()) {
        page.write();
    }
    assert!(wrong.is_empty(), "{} mutants:\n{}", wrong.len(), wrong.join("\n"));
    if let Some(page) = page {
        page.check();
    }
}
