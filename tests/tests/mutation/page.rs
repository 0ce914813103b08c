//! The page with the results of all mutants.

use super::equivalent::Equivalent;
use super::mutate::MutationCategory;
use super::trial::{Caught, Fate};
use super::{MutantResult, Row};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

const HEAD: &str = "\
# Mutants

Each kernel of kernels-rs and of its expert examples runs in one instance on its cases. One change of its lowered IR is made at a time.

- A mutant is *caught* by the first check that detects it: a check of the oracle, the verifier of the IR, the reference in plain Rust,
  or another order of blocks and warps.
- A mutant is *identical* if the compiler generates the kernel's own PTX from it. Identical mutants are not counted in the rates.
- A mutant *survives* if it is neither caught nor identical. `equivalent` lists each survivor with a reviewer's reason: the mutant is
  equivalent to the kernel, or no case detects it yet. The test fails for any other survivor.

If a survivor changes output bits in some case, its reason explains why they may change. The page also shows whether a survivor executes
more or fewer instructions than the kernel, counted for each active lane over all cases. No check or reference reports such a difference,
so the mutant counts as a survivor.

`MUTANTS=all UPDATE=1 cargo test --release -p tests --test mutation` writes this page. `MUTANTS=all` without `UPDATE` compares the page
with the results.

";

/// The expected text of the page.
pub struct Page(String);

impl Page {
    /// Writes the page for the results of all mutants.
    pub fn of(rows: &[Row], equivalent: &Equivalent) -> Page {
        Page(page(rows, equivalent))
    }

    /// Writes the page to its file.
    pub fn write(&self) {
        fs::write(path(), &self.0).expect("the page is writable");
    }

    /// Compares the file with the page.
    pub fn check(&self) {
        let written = fs::read_to_string(path()).unwrap_or_default();
        assert!(written == self.0, "{} is out of date: UPDATE=1 writes it", path().display());
    }
}

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mutation/README.md")
}

/// Returns a summary of the results, one line per instance.
pub fn summary(rows: &[Row]) -> String {
    let mut text = String::new();
    for row in rows {
        let survivors = row.tried.iter().filter(|tried| tried.survives()).count();
        let (instance, tried, mutants) = (&row.instance, row.tried.len(), row.mutants);
        let _ = writeln!(text, "{instance}: {tried} of {mutants} mutants run, {survivors} survive");
    }
    text
}

fn counted<'t, T: Ord>(
    tried: impl IntoIterator<Item = &'t MutantResult>,
    of: impl Fn(&MutantResult) -> T,
) -> Vec<(T, usize)> {
    let mut counts = BTreeMap::new();
    tried.into_iter().for_each(|tried| *counts.entry(of(tried)).or_insert(0) += 1);
    counts.into_iter().collect()
}

fn percent(part: usize, whole: usize) -> f64 {
    // Rounded down, so that 100 means all.
    (1000 * part / whole.max(1)) as f64 / 10.0
}

/// Returns a row of the table for some of the mutants.
fn part(name: &str, of: &[&MutantResult]) -> String {
    let identical = of.iter().filter(|tried| tried.fate == Fate::Identical).count();
    let survive = of.iter().filter(|tried| tried.survives()).count();
    let caught = percent(of.len() - identical - survive, of.len() - identical);
    format!("| {name} | {} | {identical} | {survive} | {caught:.1} % |\n", of.len())
}

fn page(rows: &[Row], equivalent: &Equivalent) -> String {
    let mut page = HEAD.to_string();
    page += "| kernel | mutants | by the oracle | by the verifier | by the reference | by another order | identical | survive | caught |\n";
    page += "|---|---|---|---|---|---|---|---|---|\n";
    let line = |name: &str, tried: &[&MutantResult]| {
        let of = |is: &dyn Fn(Fate) -> bool| tried.iter().filter(|tried| is(tried.fate)).count();
        let oracle = of(&|fate| matches!(fate, Fate::Caught(Caught::Check(_))));
        let others = [Caught::Verifier, Caught::Reference, Caught::Order];
        let [verifier, reference, order] = others.map(|other| of(&|fate| fate == Fate::Caught(other)));
        let (identical, survive) = (of(&|fate| fate == Fate::Identical), of(&|fate| matches!(fate, Fate::Survives(_))));
        let (all, caught) = (tried.len(), oracle + verifier + reference + order);
        let part = percent(caught, all - identical);
        format!(
            "| {name} | {all} | {oracle} | {verifier} | {reference} | {order} | {identical} | {survive} | {part:.1} % |\n"
        )
    };
    for row in rows {
        page += &line(&format!("`{}`", row.instance), &row.tried.iter().collect::<Vec<_>>());
    }
    let all: Vec<&MutantResult> = rows.iter().flat_map(|row| &row.tried).collect();
    page += &line("all", &all);
    let steers: Vec<_> = all.iter().copied().filter(|tried| tried.kind.steers()).collect();
    page += &line("all except floats in arithmetic only", &steers);
    let classic: Vec<_> = all.iter().copied().filter(|tried| tried.kind.is_classic()).collect();
    page += &line("barriers, indices, masks and comparisons only", &classic);

    page += "\n| module | mutants | identical | survive | caught |\n|---|---|---|---|---|\n";
    let mut modules = BTreeMap::<&str, Vec<&MutantResult>>::new();
    for row in rows {
        modules.entry(&row.module).or_default().extend(&row.tried);
    }
    for (module, of) in modules {
        page += &part(&format!("`{module}`"), &of);
    }

    let survivors: Vec<_> = all.iter().copied().filter(|tried| tried.survives()).collect();
    page += "\n| change | mutants | identical | survive | caught |\n|---|---|---|---|---|\n";
    for (kind, name) in MutationCategory::ALL {
        let of: Vec<_> = all.iter().copied().filter(|tried| tried.kind == kind).collect();
        page += &part(name, &of);
    }

    page += "\n| caught by | mutants |\n|---|---|\n";
    let mut by = counted(all.iter().copied(), |tried| tried.fate);
    by.sort_by_key(|(fate, count)| (std::cmp::Reverse(*count), *fate));
    for (fate, count) in by {
        if let Fate::Caught(by) = fate {
            let _ = writeln!(page, "| {by} | {count} |");
        }
    }

    page += "\n| why survivors are equivalent to the kernel | mutants | with more work | with less work |\n|---|---|---|---|\n";
    let mut reasons = BTreeMap::<String, Vec<Ordering>>::new();
    for tried in survivors {
        let Fate::Survives(beside) = tried.fate else { continue };
        let reason = equivalent.reason(&tried.name).unwrap_or_default().replace('|', "\\|");
        reasons.entry(reason).or_default().push(beside.work);
    }
    let mut reasons: Vec<_> = reasons.into_iter().collect();
    reasons.sort_by(|(a, m), (b, n)| n.len().cmp(&m.len()).then(a.cmp(b)));
    for (reason, works) in reasons {
        let of = |work: Ordering| works.iter().filter(|other| **other == work).count();
        let (more, less) = (of(Ordering::Greater), of(Ordering::Less));
        let _ = writeln!(page, "| {reason} | {} | {more} | {less} |", works.len());
    }
    page
}

/// The minimum rates of caught mutants, in percent: of all mutants, and of the changes that every
/// kernel has. Most other mutants are equivalent with other PTX. The rest are in code that tests
/// outside of the kernels' cases run, for folded grids, extreme inputs and random numbers.
const RATES: [(&str, f64); 2] = [("all", 93.0), ("barriers, indices, masks and comparisons only", 90.0)];

/// Checks the rates of the committed page, which a complete run has written.
#[test]
fn rates_of_caught_mutants_are_high() {
    let page = fs::read_to_string(path()).expect("the page is readable");
    for (name, least) in RATES {
        let head = format!("| {name} |");
        let row = page.lines().find(|line| line.starts_with(&head)).unwrap_or_else(|| panic!("no row `{name}`"));
        let caught = row.trim_end_matches([' ', '%', '|']).rsplit(' ').next().and_then(|part| part.parse::<f64>().ok());
        assert!(caught.is_some_and(|caught| caught >= least), "{row}");
    }
}
