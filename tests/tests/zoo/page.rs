//! The page that lists the zoo, and the check of the comparison with other tools.

use crate::{Class, bugs, refused, title};
use runtime::interpreter::Check;
use std::fmt::Write;
use std::fs;
use std::path::Path;

const HEAD: &str = "\
# A zoo of bugs

Each row is a kernel with one mistake, defined in this folder beside its corrected twin. `UPDATE=1 cargo test -p tests --test zoo`
writes this page. Without `UPDATE` the test compares the page with its results.

- *Reported at* is the line that the oracle reports. For a race it is the access that comes second when blocks and warps run in order.
- The compiler reports decisions by approximations before any run, and `kernels report` reports legal but slow code.
- Where the order of atomic operations affects the result, runs in three orders find the argument whose contents differ.
- For a kernel that does not compile, the row has the error code of rustc.
- *On a GPU* marks the bugs that the checked form reports, which is what `launch` runs on a GPU.
- *PTX* is the first report of the PTX interpreter, which executes the generated PTX and does not look for races.

Neither the oracle, nor the checked form, nor the PTX interpreter reports a twin.

";

/// Compares the page of the zoo with its results, or writes it if `UPDATE` is set.
pub fn check() {
    compare("README.md", &page(), |line| line);
}

/// Compares a page of this folder with `page`, or writes it if `UPDATE` is set. `stable` returns
/// the part of a line that does not vary between runs.
pub fn compare(name: &str, page: &str, stable: fn(&str) -> &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/zoo").join(name);
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, page).expect("the page is writable");
    } else {
        let written = fs::read_to_string(&path).unwrap_or_default();
        let same = written.lines().map(stable).eq(page.lines().map(stable));
        assert!(same, "{} is out of date: UPDATE=1 writes it", path.display());
    }
}

fn page() -> String {
    let (mut rows, mut by_checked_form, mut by_ptx) = (String::new(), 0, 0);
    for bug in bugs() {
        let specimen = bug.specimen(false);
        let report = specimen.report();
        let class = bug.class.to_string();
        let reported = specimen.reported(&report);
        let at = match bug.class {
            Class::Order(argument) => {
                let parameter = specimen.lowered.parameters.iter().find(|p| p.argument as usize == argument);
                format!("another order: `{}`", parameter.map_or("", |p| &p.name))
            }
            _ => {
                let first = report.findings.iter().find(|f| Class::Check(f.check) == bug.class);
                let first = first.map(|f| (class.clone(), f.place.file.clone(), f.place.line));
                let Some((_, file, line)) =
                    first.or_else(|| reported.into_iter().find(|(reported, ..)| *reported == class))
                else {
                    continue;
                };
                let lines = specimen.lowered.sources.iter().filter(|s| s.file == file && s.line <= line);
                let code = lines.map(|s| s.line_code(line - s.line)).find(|code| !code.is_empty()).unwrap_or_default();
                format!("`{}`", code.replace('|', "\\|"))
            }
        };
        let checked = specimen.reported_by_checked_form();
        let ptx = specimen.reported_by_ptx();
        by_checked_form += usize::from(checked);
        by_ptx += usize::from(ptx.is_some());
        let (name, title) = (bug.artifact.name, title(bug.artifact));
        let checked = if checked { "yes" } else { "" };
        let ptx = ptx.map(|check| check.to_string()).unwrap_or_default();
        let _ = writeln!(rows, "| `{name}` | {title} | {class} | {at} | {checked} | {ptx} |");
    }
    let refused = refused::all();
    for refused::Refused { name, title, class, line, code } in &refused {
        let code = code.as_deref().unwrap_or_default();
        let _ = writeln!(rows, "| `{name}` | {title} | {class} | does not compile, {code}: `{line}` | | |");
    }
    let (all, not_compiled) = (bugs().count() + refused.len(), refused.len());
    let mut page = HEAD.to_string();
    page += "| kernel | bug | class | reported at | on a GPU | PTX |\n|---|---|---|---|---|---|\n";
    page += &rows;
    let _ = writeln!(
        page,
        "\n{all} bugs: the oracle and the analyses before a run report all of them, {not_compiled} of them as compile errors. The checked \
         form reports {by_checked_form}, the PTX interpreter {by_ptx}.\n"
    );
    page += "| class | bugs |\n|---|---|\n";
    for (class, count) in classes() {
        let _ = writeln!(page, "| {class} | {count} |");
    }
    page
}

/// Returns every class with its number of bugs.
fn classes() -> Vec<(String, usize)> {
    let refused = refused::all();
    let count = |class: String| {
        let here = bugs().filter(|bug| bug.class.to_string() == class).count();
        let all = here + refused.iter().filter(|bug| bug.class == class).count();
        (class, all)
    };
    let checks = Check::ORACLE.iter().map(|check| check.to_string());
    checks.chain(Class::others().map(|class| class.to_string())).map(count).collect()
}

/// Compares `COMPARISON.md` with the zoo: each class with bugs is in one row, and the row states
/// their number.
pub fn compared() {
    let text = include_str!("COMPARISON.md");
    let rows = text.lines().filter(|line| line.starts_with("| ")).skip(1);
    let rows: Vec<Vec<&str>> = rows.map(|row| row.trim_matches('|').split('|').map(str::trim).collect()).collect();
    let names = |row: &[&str]| row[0].split(", ").map(str::to_string).collect::<Vec<_>>();
    let classes: Vec<(String, usize)> = classes().into_iter().filter(|(_, count)| *count > 0).collect();
    for (class, _) in &classes {
        let there = rows.iter().filter(|row| names(row).contains(class)).count();
        assert!(there == 1, "{class} is in {there} rows of COMPARISON.md");
    }
    for row in &rows {
        let own = names(row);
        let all: usize = classes.iter().filter(|(class, _)| own.contains(class)).map(|(_, count)| count).sum();
        let said: Vec<&str> = row[3].split(|c: char| !c.is_alphanumeric()).take(3).collect();
        let count = all.to_string();
        assert!(
            said == [count.as_str(), "of", count.as_str()],
            "COMPARISON.md states {} for {}, but there are {all}",
            row[3],
            row[0]
        );
    }
}
