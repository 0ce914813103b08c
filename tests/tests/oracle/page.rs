//! The page of the checks: their definitions as they are written in the compiler, and of each a kernel that breaks it, what a
//! run prints of it, and a kernel that does not. `UPDATE=1 cargo test -p tests --test oracle` writes it anew.

use super::kernels::*;
use super::support::{Memory, run_on};
use kernel_dsl::compiler::Target;
use kernel_dsl::{Artifact, Kernel};
use runtime::interpreter::{Check, Options, Severity};
use std::fmt::Write;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../runtime/src/interpreter/checks.md");
const KERNELS: &str = include_str!("kernels.rs");
const DEFINITIONS: &str = include_str!("../../../kernel-dsl/compiler/src/oracle.rs");

/// A check, a kernel that breaks it and one that does not, each with the blocks of its grid.
struct Entry(Check, (&'static Artifact, u32), (&'static Artifact, u32));

fn entries() -> Vec<Entry> {
    macro_rules! entries {
        ($($check:ident: $wrong:ident of $a:literal, $right:ident of $b:literal;)*) => {
            vec![$(Entry(Check::$check, ($wrong::ARTIFACT, $a), ($right::ARTIFACT, $b)),)*]
        };
    }
    entries! {
        OutOfBounds: shifted of 1, shifted_inside of 1;
        Misaligned: fours_from_one of 1, fours of 1;
        UninitialisedShared: half_a_tile of 1, a_whole_tile of 1;
        UnfinishedCopy: begun_to_copy of 1, copied_ahead of 1;
        UninitialisedBuffer: adds of 1, stores_and_adds of 1;
        UnwrittenOutput: rounded_down of 1, rounded_up of 2;
        WrittenTwice: there_and_back of 1, back of 1;
        SharedRace: traded of 1, traded_in_order of 1;
        WarpRace: turned of 1, turned_in_order of 1;
        GlobalRace: without_the_block of 2, with_the_block of 2;
        StoreConflict: all_at_once of 1, one_of_them of 1;
        EqualStores: the_sum_of_all of 1, the_sum_of_all_once of 1;
        DivergentBarrier: behind_a_return of 1, before_a_return of 1;
        DivergentWarp: some_vote of 1, all_vote of 1;
        ShuffleInactive: from_an_absent_lane of 1, from_a_lane of 1;
        ShuffleSelector: beyond_the_warp of 1, within_the_warp of 1;
        UndefinedValue: half_of_an_absent_lane of 1, half_of_a_lane of 1;
        UsizeOverflow: before_the_first of 1, before_but_for_the_first of 1;
        IntegerOverflow: hashed of 1, hashed_as_meant of 1;
        DivisionByZero: parts of 1, parts_of_some of 1;
        DivisionOverflow: least_by_minus_one of 1, nearly_least_by_minus_one of 1;
        ShiftOverflow: masks of 1, masks_as_meant of 1;
        LoopStep: no_step of 1, a_step of 1;
        NanProduced: normalised of 1, normalised_but_for_zero of 1;
        InfinityProduced: exponentials of 1, exponentials_below_one of 1;
        ConversionOverflow: halves of 1, halves_in_range of 1;
        LossyCast: bytes_of of 1, bytes_of_clamped of 1;
        Cancellation: squares of 1, product_of_sums of 1;
        MachineDependent: told_by_the_clock of 1, told_by_the_lane of 1;
        Livelock: wait_and_set of 1, set_and_wait of 1;
        FuelExhausted: to_no_end of 1, to_an_end of 1;
    }
}

/// What only IR can do that no kernel's text says: the compiler refuses it before.
const REFUSED: [(Check, &str); 2] = [
    (
        Check::ReadOnlyWrite,
        "The compiler refuses a store to a `&[T]` or `View`; the oracle holds IR to it that a pass made, or a test.",
    ),
    (
        Check::UninitialisedLocal,
        "rustc refuses a variable that is read before it is written; the oracle holds IR to it that a pass made, or a test.",
    ),
];

fn options(check: Check) -> Options {
    let uninitialised = if check == Check::UninitialisedBuffer { vec![1] } else { Vec::new() };
    let cancellation = (check == Check::Cancellation).then_some(1e-3);
    let notes = check.severity(Target::SM_61) == Severity::Note;
    Options { fuel: 100_000, uninitialised, cancellation, notes, ..Options::default() }
}

/// The definition of a check: the documentation of its variant.
fn definition(check: Check) -> String {
    let (variant, mut lines) = (format!("    {check:?},"), Vec::new());
    for line in DEFINITIONS.lines().skip_while(|l| !l.starts_with("pub enum Check")) {
        match line.strip_prefix("    /// ") {
            Some(text) => lines.push(text),
            None if line == variant => return lines.join("\n"),
            None => lines.clear(),
        }
    }
    panic!("{check:?} is not documented")
}

/// The text of a kernel.
fn kernel(check: Check, which: &str) -> &'static str {
    let head = format!("// {check}: {which}\n");
    let (_, text) = KERNELS.split_once(&head).unwrap_or_else(|| panic!("no {which} kernel of {check}"));
    text.split("\n// ").next().unwrap_or_default().trim()
}

/// The report of the first finding of a check: how a kernel that breaks it is told so.
fn told(entry: &Entry) -> String {
    let Entry(check, (wrong, blocks), _) = entry;
    let (report, _) = run_on(wrong, *blocks, &Memory::new(|i| i as f32), options(*check));
    let finding = report.findings.iter().find(|f| f.check == *check);
    let finding = finding.unwrap_or_else(|| panic!("{} is not told of {check}:\n{report}", wrong.name));
    report.alone(finding).to_string()
}

fn page() -> String {
    let mut page = String::from(
        "<!-- Made by `UPDATE=1 cargo test -p tests --test oracle`. -->\n\n| check | severity | |\n|---|---|---|\n",
    );
    let severity = |check: Check| match [Target::SM_61, Target::SM_70].map(|target| check.severity(target)) {
        [Severity::Warning, Severity::Error] => "warning; from sm_70 on error",
        [Severity::Error, _] => "error",
        [Severity::Warning, _] => "warning",
        [Severity::Note, _] => "note, where a launch asks for notes",
    };
    for check in Check::ALL {
        let definition = definition(check);
        let definition = definition.replace('\n', " ");
        let end = [". ", "; ", ": "].iter().filter_map(|mark| definition.find(mark)).min();
        let first = &definition[..end.unwrap_or(definition.len())];
        writeln!(page, "| [`{check}`](#{check}) | {} | {} |", severity(check), first.trim_end_matches('.')).unwrap();
    }
    let entries = entries();
    for check in Check::ALL {
        writeln!(page, "\n# {check}\n\n`Check::{check:?}`, {}. {}", severity(check), definition(check)).unwrap();
        if let Some((_, why)) = REFUSED.iter().find(|(refused, _)| *refused == check) {
            writeln!(page, "\n{why}").unwrap();
            continue;
        }
        let entry = entries.iter().find(|e| e.0 == check).unwrap_or_else(|| panic!("no kernels of {check}"));
        let (wrong, right) = (kernel(check, "wrong"), kernel(check, "right"));
        writeln!(page, "\n```text\n{wrong}\n```\n\n```text\n{}\n```", told(entry)).unwrap();
        writeln!(page, "\nNothing is said of this one:\n\n```text\n{right}\n```").unwrap();
    }
    page
}

#[test]
fn kernels_that_do_nothing_wrong_are_not_reported() {
    for Entry(check, _, (right, blocks)) in entries() {
        let (report, _) = run_on(right, blocks, &Memory::new(|i| i as f32), options(check));
        assert!(report.findings.is_empty(), "{} ({check}):\n{report}", right.name);
    }
}

#[test]
fn the_page_shows_what_runs_print() {
    let page = page();
    if std::env::var("UPDATE").is_ok() {
        std::fs::write(PAGE, &page).unwrap();
    }
    let written = std::fs::read_to_string(PAGE).unwrap_or_default();
    let different = written.lines().zip(page.lines()).find(|(a, b)| a != b);
    assert!(written == page, "runtime/src/interpreter/checks.md is not what runs print ({different:?}): set UPDATE=1");
}
