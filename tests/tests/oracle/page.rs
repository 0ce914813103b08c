//! The page of the checks.
//!
//! For each check the page has its definition from the compiler, a kernel that violates it, the
//! report of a run, and a corrected kernel. Reports that do not come from a check of a run follow.
//! `UPDATE=1 cargo test -p tests --test oracle` writes the page.

use super::kernels::*;
use super::support::{AlignedMemory, lowered, run_on};
use kernel_dsl::compiler::analyses::approximate::{Approximations, DecisionKind};
use kernel_dsl::compiler::analyses::memory::accesses;
use kernel_dsl::compiler::analyses::slow::{Lint, Slow, lints};
use kernel_dsl::compiler::hir::Instance;
use kernel_dsl::compiler::{Scalar, Target, ir, passes};
use kernel_dsl::{Artifact, Kernel};
use runtime::interpreter::{Check, Options, Severity};
use runtime::testing::{Case, Checker, Expected, Failure, Input, InstanceReport, KernelSpec, Random};
use std::fmt::{Debug, Write};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../runtime/oracle/src/checks.md");
const KERNELS: &str = include_str!("kernels.rs");
const DEFINITIONS: &str = include_str!("../../../kernel-dsl/compiler/src/oracle.rs");
const APPROXIMATE: &str = include_str!("../../../kernel-dsl/compiler/src/analyses/approximate.rs");
const LINTS: &str = include_str!("../../../kernel-dsl/compiler/src/analyses/slow.rs");
const FAILURES: &str = include_str!("../../../runtime/testing/src/report.rs");

const OTHER_REPORTS: &str = "
# Other reports

The following reports are not a `Check` of a run. Decisions by approximate values and slow code are found before any run,
dependence on the order of atomic operations by several runs. The error fails `kernels check`; the warnings and notes do not.

| report | severity | when, and by which command | |
|---|---|---|---|
";

/// A check, a kernel that violates it and one that does not, each with the number of its blocks.
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
        UninitializedShared: half_a_tile of 1, a_whole_tile of 1;
        UnfinishedCopy: begun_to_copy of 1, copied_ahead of 1;
        UninitializedBuffer: adds of 1, stores_and_adds of 1;
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
        NanProduced: normalized of 1, normalized_but_for_zero of 1;
        InfinityProduced: exponentials of 1, exponentials_below_one of 1;
        ConversionOverflow: halves of 1, halves_in_range of 1;
        LossyCast: bytes_of of 1, bytes_of_clamped of 1;
        Cancellation: squares of 1, product_of_sums of 1;
        MachineDependent: told_by_the_clock of 1, told_by_the_lane of 1;
        Assertion: unsorted of 1, sorted of 1;
        Livelock: wait_and_set of 1, set_and_wait of 1;
        FuelExhausted: to_no_end of 1, to_an_end of 1;
    }
}

/// A check of IR that no source can violate, because a compiler rejects the source.
struct Refused {
    check: Check,
    why: &'static str,
    /// Rejected kernels, each before its corrected twin, separated by an empty line.
    kernels: &'static str,
    /// The compiler's errors.
    said: &'static str,
}

const REFUSED: [Refused; 2] = [
    Refused {
        check: Check::ReadOnlyWrite,
        why: "The compiler rejects a store to a `&[T]` or `View`. The oracle checks it in IR made by a pass or a test.",
        kernels: include_str!("../../../kernel-dsl/compile_fail/zoo_read_only_write.rs"),
        said: include_str!("../../../kernel-dsl/compile_fail/expected/zoo_read_only_write.stderr"),
    },
    Refused {
        check: Check::UninitializedLocal,
        why: "rustc rejects a variable that is read before it is written. The oracle checks it in IR made by a pass or a test.",
        kernels: include_str!("../../../kernel-dsl/compile_fail/zoo_uninitialized_local.rs"),
        said: include_str!("../../../kernel-dsl/compile_fail/expected/zoo_uninitialized_local.stderr"),
    },
];

impl Refused {
    /// Returns the first kernel, its error, and its corrected twin.
    fn first(&self) -> [String; 3] {
        let mut kernels = self.kernels.split("\n\n").skip(1);
        let mark = format!(" //~ {}", self.check);
        let all = [kernels.next(), self.said.split("\n\n").next(), kernels.next()];
        all.map(|text| text.unwrap_or_default().trim_end().replace(&mark, ""))
    }
}

/// A report about a kernel that is not a check of a run.
#[derive(Clone, Copy, PartialEq, Debug)]
enum OtherReport {
    /// A branch, an index or an integer depends on an approximate value.
    Decides(DecisionKind),
    /// The result depends on the order.
    Order,
    /// The code is legal and slow.
    Slow(Slow),
}

/// Returns every report with a kernel that causes it and one that does not. Reports that need ptxas
/// have no kernels.
fn other_reports() -> Vec<(OtherReport, Option<[&'static Artifact; 2]>)> {
    macro_rules! pairs {
        ($($other:expr => $wrong:ident, $right:ident;)*) => {
            vec![$(($other, Some([$wrong::ARTIFACT, $right::ARTIFACT]))),*]
        };
    }
    let mut all = pairs! {
        OtherReport::Decides(DecisionKind::Branch) => kept_by_an_approximation, kept_by_a_value;
        OtherReport::Decides(DecisionKind::Index) => at_an_approximate_power, at_a_power;
        OtherReport::Decides(DecisionKind::Integer) => approximate_thirds, thirds;
        OtherReport::Order => added_as_they_come, added_by_block;
        OtherReport::Slow(Slow::Double) => a_tenth_in_f64, a_tenth;
        OtherReport::Slow(Slow::IntegerDivision(Scalar::Usize)) => next_by_remainder, next_by_comparison;
        OtherReport::Slow(Slow::WideMultiply) => hashed_in_64_bits, hashed_in_32_bits;
        OtherReport::Slow(Slow::FloatDivision(Scalar::F32)) => divided_in_a_loop, divided_before_it;
        OtherReport::Slow(Slow::SquareRoot(Scalar::F32)) => roots_in_a_loop, a_root_after_it;
        OtherReport::Slow(Slow::SharedAtomic(Scalar::F32)) => added_as_floats, added_as_integers;
        OtherReport::Slow(Slow::BankConflict(32)) => columns_of_a_tile, columns_of_a_padded_tile;
        OtherReport::Slow(Slow::ConstantSerialization(4)) => weights_in_turns, weights_at_once;
        OtherReport::Slow(Slow::Scattered { sectors: 8, least: 4 }) => down_the_columns, along_the_rows;
        OtherReport::Slow(Slow::PartialWarp(48)) => a_warp_and_a_half, two_warps;
    };
    all.push((OtherReport::Slow(Slow::Spills { stores: 8, loads: 8 }), None));
    all
}

impl OtherReport {
    fn name(self) -> String {
        match self {
            OtherReport::Decides(decided) => format!("approximate-{}", decided.name()),
            OtherReport::Order => "order-dependent".to_string(),
            OtherReport::Slow(slow) => slow.name().to_string(),
        }
    }

    fn severity(self) -> &'static str {
        match self {
            OtherReport::Decides(_) => "warning",
            OtherReport::Order => "error",
            OtherReport::Slow(_) => "note",
        }
    }

    /// Returns when the report appears, and by which command.
    fn when(self) -> &'static str {
        match self {
            OtherReport::Decides(_) => "before any run, by `kernels check` and `kernels report`",
            OtherReport::Order => {
                "by `kernels check`, from runs in several orders of blocks, warps and lanes (`--orders` sets their number)"
            }
            OtherReport::Slow(Slow::Spills { .. }) => "by `kernels report`, if ptxas is installed",
            OtherReport::Slow(_) => "before any run, by `kernels report`",
        }
    }

    /// Returns the source that declares the report, the enum, and the variant.
    fn declared(self) -> (&'static str, &'static str, String) {
        match self {
            OtherReport::Decides(decided) => (APPROXIMATE, "DecisionKind", variant(&decided)),
            OtherReport::Order => (FAILURES, "Failure", "OrderDependent".to_string()),
            OtherReport::Slow(slow) => (LINTS, "Slow", variant(&slow)),
        }
    }

    fn definition(self) -> String {
        let (source, of, variant) = self.declared();
        let text = documented(source, of, &variant);
        match self {
            OtherReport::Decides(_) => {
                let (first, rest) = text.split_at(1);
                format!("An approximate value (`fast::`) decides {}{rest}", first.to_lowercase())
            }
            _ => text,
        }
    }

    /// Returns the text of this report for a kernel, if the kernel causes it.
    fn of(self, artifact: &'static Artifact) -> Option<String> {
        match self {
            OtherReport::Decides(decided) => {
                let kernel = lowered(artifact);
                let decisions = Approximations::of(&kernel).decisions;
                let decision = decisions.into_iter().find(|decision| decision.decided == decided)?;
                let text = decision.error(&kernel).to_string();
                assert!(
                    checked(artifact).decisions.contains(&text),
                    "{}: the check does not report {text}",
                    artifact.name
                );
                Some(text)
            }
            OtherReport::Order => {
                let report = checked(artifact);
                let (_, failure) = report.first_failure()?;
                matches!(failure, Failure::OrderDependent { .. }).then(|| report.to_string())
            }
            OtherReport::Slow(slow) => {
                let (kernel, lints) = slow_in(artifact);
                let lint = lints.iter().find(|lint| lint.slow == slow)?;
                Some(printed(&kernel, lint))
            }
        }
    }
}

/// Checks a kernel in order and in two other orders, without a reference for its results.
fn checked(artifact: &'static Artifact) -> InstanceReport {
    fn cases(_: &Instance, _: &mut Random) -> Vec<Case> {
        let x: Vec<f32> = (0..64).map(|i| i as f32).collect();
        vec![Case::new("64 elements", [Input::slice(&x), Input::slice(&[0f32; 64])])]
    }
    fn reference(_: &Instance, _: &[Input]) -> Vec<Expected> {
        Vec::new()
    }
    let spec = KernelSpec { artifact, cases, reference };
    Checker::new(None).with_orders(1).check(&spec, &Instance::default(), 1)
}

/// Returns the kernel after all passes, and the lints of slow code.
fn slow_in(artifact: &Artifact) -> (passes::Optimized, Vec<Lint>) {
    let lowered = lowered(artifact);
    let sites = accesses(&passes::with_places(lowered.clone()).unwrap());
    let kernel = passes::optimize(lowered).unwrap();
    let lints = lints(&kernel, &sites);
    (kernel, lints)
}

/// Formats a lint as `kernels report` prints it.
fn printed(kernel: &ir::Kernel, lint: &Lint) -> String {
    let Lint { slow, location, count, looped } = lint;
    let times = match (count, looped) {
        (0 | 1, false) => String::new(),
        (0 | 1, true) => " (in a loop)".to_string(),
        (n, false) => format!(" ({n} times)"),
        (n, true) => format!(" ({n} times, in a loop)"),
    };
    let mut text = format!("slow[{}]: {}{times}\n", slow.name(), slow.message(kernel.target));
    if let Some(location) = location {
        let at = kernel.locations[location.0 as usize];
        let source = &kernel.sources[at.source as usize];
        let (offset, column) = (u32::from(at.span.line), at.span.column);
        let (file, line, code) = (&source.file, source.line + offset, source.line_code(offset));
        let gutter = line.to_string().len();
        text += &format!("{:gutter$}--> {file}:{line}:{column}\n{line} | {code}\n", "");
    }
    text + "  = help: " + slow.help()
}

fn options(check: Check) -> Options {
    let uninitialized = if check == Check::UninitializedBuffer { vec![1] } else { Vec::new() };
    let cancellation = (check == Check::Cancellation).then_some(1e-3);
    let notes = check.severity(Target::SM_61) == Severity::Note;
    Options { fuel: 100_000, uninitialized, cancellation, notes, ..Options::default() }
}

/// Returns the name of a variant.
fn variant(of: &impl Debug) -> String {
    format!("{of:?}").chars().take_while(|c| c.is_alphanumeric()).collect()
}

/// Returns the variants of the enum `of`, each with its documentation.
fn variants(source: &str, of: &str) -> Vec<(String, String)> {
    let (mut all, mut lines) = (Vec::new(), Vec::new());
    let head = format!("pub enum {of} {{");
    for line in source.lines().skip_while(|line| *line != head).skip(1).take_while(|line| *line != "}") {
        let Some(item) = line.strip_prefix("    ") else { continue };
        match item.strip_prefix("/// ") {
            Some(text) => lines.push(text),
            None if item.starts_with(|c: char| c.is_uppercase()) => {
                let name: String = item.chars().take_while(|c| c.is_alphanumeric()).collect();
                all.push((name, lines.join("\n")));
                lines.clear();
            }
            None => {}
        }
    }
    all
}

/// Returns the documentation of a variant.
fn documented(source: &str, of: &str, variant: &str) -> String {
    let found = variants(source, of).into_iter().find(|(name, text)| name == variant && !text.is_empty());
    found.map(|(_, text)| text).unwrap_or_else(|| panic!("{of}::{variant} is not documented"))
}

/// Returns the definition of a check: the documentation of its variant.
fn definition(check: Check) -> String {
    documented(DEFINITIONS, "Check", &variant(&check))
}

/// Returns the first statement of a definition.
fn beginning(definition: &str) -> String {
    let definition = definition.replace('\n', " ");
    let end = [". ", "; ", ": "].iter().filter_map(|mark| definition.find(mark)).min();
    definition[..end.unwrap_or(definition.len())].trim_end_matches('.').to_string()
}

/// Returns the source of a kernel.
fn kernel(of: &str, which: &str) -> &'static str {
    let head = format!("// {of}: {which}\n");
    let (_, text) = KERNELS.split_once(&head).unwrap_or_else(|| panic!("no {which} kernel of {of}"));
    text.split("\n// ").next().unwrap_or_default().trim()
}

/// Writes a kernel that causes a report, the report, and a kernel that does not cause it.
fn shown(page: &mut String, [wrong, said, right]: [&str; 3]) {
    writeln!(page, "\n```text\n{wrong}\n```\n\n```text\n{said}\n```").unwrap();
    writeln!(page, "\nThis kernel is not reported:\n\n```text\n{right}\n```").unwrap();
}

/// Returns the report of the first finding of a check.
fn finding_report(entry: &Entry) -> String {
    let Entry(check, (wrong, blocks), _) = entry;
    let (report, _) = run_on(wrong, *blocks, &AlignedMemory::new(|i| i as f32), options(*check));
    let finding = report.findings.iter().find(|f| f.check == *check);
    let finding = finding.unwrap_or_else(|| panic!("{} does not violate {check}:\n{report}", wrong.name));
    report.alone(finding).to_string()
}

fn page() -> String {
    let mut page = String::from(
        "<!-- Made by `UPDATE=1 cargo test -p tests --test oracle`. -->\n\n| check | severity | |\n|---|---|---|\n",
    );
    let severity = |check: Check| match [Target::SM_61, Target::SM_70].map(|target| check.severity(target)) {
        [Severity::Warning, Severity::Error] => "warning; error from sm_70 on",
        [Severity::Error, _] => "error",
        [Severity::Warning, _] => "warning",
        [Severity::Note, _] => "note, if a launch requests notes",
    };
    for check in Check::ORACLE.iter().copied() {
        let first = beginning(&definition(check));
        writeln!(page, "| [`{check}`](#{check}) | {} | {first} |", severity(check)).unwrap();
    }
    let entries = entries();
    for check in Check::ORACLE.iter().copied() {
        writeln!(page, "\n# {check}\n\n`Check::{check:?}`, {}. {}", severity(check), definition(check)).unwrap();
        if let Some(refused) = REFUSED.iter().find(|refused| refused.check == check) {
            writeln!(page, "\n{}", refused.why).unwrap();
            shown(&mut page, refused.first().each_ref().map(String::as_str));
            continue;
        }
        let entry = entries.iter().find(|e| e.0 == check).unwrap_or_else(|| panic!("{check} has no kernels"));
        let name = check.to_string();
        shown(&mut page, [kernel(&name, "wrong"), &finding_report(entry), kernel(&name, "right")]);
    }
    page += OTHER_REPORTS;
    let other_reports = other_reports();
    for (other, _) in &other_reports {
        let (name, severity, when) = (other.name(), other.severity(), other.when());
        writeln!(page, "| [`{name}`](#{name}) | {severity} | {when} | {} |", beginning(&other.definition())).unwrap();
    }
    for (other, kernels) in other_reports {
        let (name, severity, when) = (other.name(), other.severity(), other.when());
        let (_, of, variant) = other.declared();
        writeln!(page, "\n# {name}\n\n`{of}::{variant}`, {severity}, reported {when}. {}", other.definition()).unwrap();
        match kernels {
            Some([wrong, _]) => {
                let said = other.of(wrong).unwrap_or_else(|| panic!("{} does not cause {name}", wrong.name));
                shown(&mut page, [kernel(&name, "wrong"), &said, kernel(&name, "right")]);
            }
            None => {
                let why = "ptxas allocates registers, so no kernel is certain to cause this report.";
                writeln!(page, "\n{why}").unwrap();
            }
        }
    }
    page
}

#[test]
fn correct_kernels_have_no_findings() {
    for Entry(check, _, (right, blocks)) in entries() {
        let (report, _) = run_on(right, blocks, &AlignedMemory::new(|i| i as f32), options(check));
        assert!(report.findings.is_empty(), "{} ({check}):\n{report}", right.name);
    }
}

#[test]
fn other_reports_do_not_appear_for_correct_kernels() {
    for (other, kernels) in other_reports() {
        let Some([wrong, right]) = kernels else { continue };
        // No run reports a finding for either kernel.
        for artifact in [wrong, right] {
            let (report, _) = run_on(artifact, 1, &AlignedMemory::new(|i| i as f32), Options::default());
            assert!(report.findings.is_empty(), "{} ({}):\n{report}", artifact.name, other.name());
        }
        let (_, slow) = slow_in(right);
        let report = checked(right);
        let quiet = match other {
            OtherReport::Decides(_) => report.decisions.is_empty(),
            // The case is incomplete only because it has no reference.
            OtherReport::Order => matches!(report.first_failure(), Some((_, Failure::Incomplete { .. }))),
            OtherReport::Slow(_) => slow.is_empty(),
        };
        assert!(quiet, "{} ({}): {report}\n{:?}\n{slow:?}", right.name, other.name(), report.decisions);
    }
}

#[test]
fn other_reports_are_complete() {
    let there = other_reports();
    for (source, of) in [(APPROXIMATE, "DecisionKind"), (LINTS, "Slow")] {
        let declared = variants(source, of);
        assert!(!declared.is_empty(), "{of}");
        for (variant, _) in declared {
            let listed = there.iter().any(|(other, _)| {
                let (_, enumeration, name) = other.declared();
                (enumeration, name) == (of, variant.clone())
            });
            assert!(listed, "{of}::{variant} is not on the page");
        }
    }
}

#[test]
fn page_is_up_to_date() {
    let page = page();
    if std::env::var("UPDATE").is_ok() {
        std::fs::write(PAGE, &page).unwrap();
    }
    let written = std::fs::read_to_string(PAGE).unwrap_or_default();
    let different = written.lines().zip(page.lines()).find(|(a, b)| a != b);
    assert!(written == page, "runtime/oracle/src/checks.md is out of date ({different:?}): set UPDATE=1");
}
