//! The page that lists the zoo.

use crate::bugs;
use runtime::interpreter::Check;
use std::fmt::Write;
use std::fs;
use std::path::Path;

const HEAD: &str = "\
# A zoo of bugs

Each row is a kernel with one mistake, which stands in this folder beside its mended twin. `UPDATE=1 cargo test -p tests --test zoo`
writes this page; without `UPDATE` the test holds it against what it finds. *Told at* is the line that the oracle names; of a race, the
side that comes second when blocks and warps run in order. *On a GPU* are those that the checked form reports, which `launch` runs
there; *PTX* is what the interpreter of PTX says first, which shares no code with the oracle and looks for no races. No twin is
reported by any of the three.

";

/// Checks of which there is no bug here, and why.
const UNREACHED: &[(Check, &str)] = &[
    (Check::ReadOnlyWrite, "`&[T]` and `View` have no stores: rustc and our compiler refuse the kernel"),
    (Check::UninitialisedLocal, "rustc refuses a variable that is used before it is set"),
    (Check::UninitialisedBuffer, "asked for by a launch, not by a kernel: `tests/tests/oracle` has one"),
    (Check::MachineDependent, "what inline PTX is for where it is meant: `tests/tests/oracle` has one"),
];

/// Holds the page against what it should be, or writes it where `UPDATE` is set.
pub fn check() {
    let page = page();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/zoo/README.md");
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, page).expect("the page can be written");
    } else {
        let written = fs::read_to_string(&path).unwrap_or_default();
        assert!(written == page, "{} is not what the tests find: UPDATE=1 writes it", path.display());
    }
}

fn page() -> String {
    let (mut rows, mut by_checked_form, mut by_ptx) = (String::new(), 0, 0);
    for bug in bugs() {
        let specimen = bug.specimen(false);
        let report = specimen.report();
        let Some(finding) = report.findings.iter().find(|f| f.check == bug.check) else { continue };
        let source = report.sources.get(finding.place.source);
        let code = source.map_or("", |s| s.line_code(finding.place.line - s.line)).replace('|', "\\|");
        let checked = specimen.told_by_checked_form();
        let ptx = specimen.told_by_ptx();
        by_checked_form += usize::from(checked);
        by_ptx += usize::from(ptx.is_some());
        let (name, title, check) = (bug.artifact.name, bug.title(), bug.check);
        let checked = if checked { "yes" } else { "" };
        let ptx = ptx.map(|check| check.to_string()).unwrap_or_default();
        let _ = writeln!(rows, "| `{name}` | {title} | {check} | `{code}` | {checked} | {ptx} |");
    }
    let all = bugs().count();
    let mut page = HEAD.to_string();
    page += "| kernel | bug | class | told at | on a GPU | PTX |\n|---|---|---|---|---|---|\n";
    page += &rows;
    let _ = writeln!(
        page,
        "\n{all} bugs: the oracle tells all of them, the checked form {by_checked_form}, the interpreter of PTX {by_ptx}.\n"
    );
    page += "| class | bugs | |\n|---|---|---|\n";
    for check in Check::ALL {
        let count = bugs().filter(|bug| bug.check == check).count();
        let why = UNREACHED.iter().find(|(unreached, _)| *unreached == check).map_or("", |(_, why)| why);
        let _ = writeln!(page, "| {check} | {count} | {why} |");
    }
    page
}
