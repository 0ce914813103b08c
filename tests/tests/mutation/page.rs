//! The page of what came of all mutants.

use super::equivalent::Equivalent;
use super::mutate::Kind;
use super::trial::{Caught, Fate};
use super::{Row, Tried, UNREVIEWED};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

const HEAD: &str = "\
# Mutants

Each kernel of kernels-rs and of `tests/src/paper`, in its first instance, with one change of its IR as lowered at a time, on the cases
of its subject. A mutant is *caught* by the first thing that notices it: a check of the oracle, the verifier of the IR, the
reference in plain Rust, or another order of blocks and warps. The *same* are compiled to the PTX of the kernel itself, and are left out of the
parts. What *survives* does the same as the kernel: `equivalent.txt` has each one with the
reason, and the test fails for any other. `MUTANTS=all UPDATE=1 cargo test --release -p tests --test mutation` writes this page, and
`MUTANTS=all` without `UPDATE` holds it against what it finds.

";

/// Holds the page against what it should be, or writes it where `UPDATE` is set.
pub fn check(rows: &[Row], equivalent: &Equivalent) {
    let page = page(rows, equivalent);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mutation/README.md");
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, page).expect("the page can be written");
    } else {
        let written = fs::read_to_string(&path).unwrap_or_default();
        assert!(written == page, "{} is not what the tests find: UPDATE=1 writes it", path.display());
    }
}

/// What came of them, a line an instance.
pub fn summary(rows: &[Row]) -> String {
    let mut text = String::new();
    for row in rows {
        let survivors = row.tried.iter().filter(|tried| tried.fate == Fate::Survives).count();
        let (instance, tried, mutants) = (&row.instance, row.tried.len(), row.mutants);
        let _ = writeln!(text, "{instance}: {tried} of {mutants} mutants tried, {survivors} survive");
    }
    text
}

fn counted<'t, T: Ord>(tried: impl IntoIterator<Item = &'t Tried>, of: impl Fn(&Tried) -> T) -> Vec<(T, usize)> {
    let mut counts = BTreeMap::new();
    tried.into_iter().for_each(|tried| *counts.entry(of(tried)).or_insert(0) += 1);
    counts.into_iter().collect()
}

fn percent(part: usize, whole: usize) -> f64 {
    // Rounded down: 100 is all.
    (1000 * part / whole.max(1)) as f64 / 10.0
}

fn page(rows: &[Row], equivalent: &Equivalent) -> String {
    let mut page = HEAD.to_string();
    if !UNREVIEWED.is_empty() {
        let names: Vec<_> = UNREVIEWED.iter().map(|name| format!("`{name}`")).collect();
        let _ =
            writeln!(page, "Not among them yet, for their survivors are still to be reviewed: {}.\n", names.join(", "));
    }
    page += "| kernel | mutants | by the oracle | by the verifier | by the reference | by another order | same | survive | caught |\n";
    page += "|---|---|---|---|---|---|---|---|---|\n";
    let line = |name: &str, tried: &[&Tried]| {
        let of = |is: &dyn Fn(Fate) -> bool| tried.iter().filter(|tried| is(tried.fate)).count();
        let oracle = of(&|fate| matches!(fate, Fate::Caught(Caught::Check(_))));
        let others = [Caught::Verifier, Caught::Reference, Caught::Order];
        let [verifier, reference, order] = others.map(|other| of(&|fate| fate == Fate::Caught(other)));
        let [same, survive] = [Fate::Same, Fate::Survives].map(|other| of(&|fate| fate == other));
        let (all, caught) = (tried.len(), oracle + verifier + reference + order);
        let part = percent(caught, all - same);
        format!(
            "| {name} | {all} | {oracle} | {verifier} | {reference} | {order} | {same} | {survive} | {part:.1} % |\n"
        )
    };
    for row in rows {
        page += &line(&format!("`{}`", row.instance), &row.tried.iter().collect::<Vec<_>>());
    }
    let all: Vec<&Tried> = rows.iter().flat_map(|row| &row.tried).collect();
    page += &line("all", &all);

    let survivors: Vec<_> = all.iter().copied().filter(|tried| tried.fate == Fate::Survives).collect();
    page += "\n| change | mutants | survive |\n|---|---|---|\n";
    for (kind, name) in Kind::ALL {
        let of = |list: &[&Tried]| list.iter().filter(|tried| tried.kind == kind).count();
        let _ = writeln!(page, "| {name} | {} | {} |", of(&all), of(&survivors));
    }

    page += "\n| caught by | mutants |\n|---|---|\n";
    let mut by = counted(all.iter().copied(), |tried| tried.fate);
    by.sort_by_key(|(fate, count)| (std::cmp::Reverse(*count), *fate));
    for (fate, count) in by {
        if let Fate::Caught(by) = fate {
            let _ = writeln!(page, "| {by} | {count} |");
        }
    }

    page += "\n| why survivors do the same as the kernel | mutants |\n|---|---|\n";
    let reason = |tried: &Tried| equivalent.reason(&tried.name).unwrap_or_default().replace('|', "\\|");
    let mut reasons = counted(survivors, reason);
    reasons.sort_by(|(a, m), (b, n)| n.cmp(m).then(a.cmp(b)));
    for (reason, count) in reasons {
        let _ = writeln!(page, "| {reason} | {count} |");
    }
    page
}
