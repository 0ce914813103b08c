//! A launch on several host threads has the results and reports of a launch on one, even if blocks
//! interact.

use crate::kit::{Run, module};
use runtime::ptx::{Check, Checks, Options, Outcome};
use std::num::NonZeroUsize;

/// Enough blocks to justify starting threads.
const BLOCKS: u32 = 8192;

/// Runs `body` on `threads` host threads, with the block in `%r1` and the address of the block's
/// word of `out` in `%d3`.
fn run(threads: usize, checks: Checks, body: &str) -> (Outcome, Vec<u64>) {
    let text = module("", &format!("mov.u32 %r1, %ctaid.x;\nmad.wide.u32 %d3, %r1, 8, %d0;\n{body}"));
    let options = Options { checks, threads: NonZeroUsize::new(threads), ..Options::default() };
    Run { blocks: BLOCKS, threads: 1, options, ..Run::default() }.of(&text, BLOCKS as usize, &[5])
}

/// Runs `body` on one host thread and on three, whose results must be equal.
fn both(checks: Checks, body: &str) -> (Outcome, Vec<u64>) {
    let alone = run(1, checks, body);
    assert!(run(3, checks, body) == alone, "{checks:?}\n{body}");
    alone
}

#[test]
fn independent_blocks_run_on_all_threads() {
    for checks in [Checks::Values, Checks::All] {
        let (outcome, out) = both(
            checks,
            "ld.global.u64 %d4, [%d1];\ncvt.u64.u32 %d5, %r1;\nmad.lo.u64 %d4, %d5, 3, %d4;\nst.global.u64 [%d3], %d4;",
        );
        assert!(outcome.report.findings.is_empty(), "{}", outcome.report);
        assert_eq!(outcome.statistics.blocks, u64::from(BLOCKS));
        assert!(out.iter().enumerate().all(|(i, word)| *word == 3 * i as u64 + 5));
    }
}

#[test]
fn a_block_changes_its_own_words() {
    let body = "ld.global.u64 %d4, [%d3];\nadd.u64 %d4, %d4, 2;\nst.global.u64 [%d3], %d4;";
    let (_, out) = both(Checks::Values, body);
    assert!(out.iter().all(|word| *word == 1), "u64::MAX + 2");
}

#[test]
fn block_loads_the_stores_of_the_previous_one() {
    let body = "setp.eq.u32 %p0, %r1, 0;\nmov.u64 %d4, 0;\n@!%p0 ld.global.u64 %d4, [%d3+-8];\nadd.u64 %d4, %d4, 1;\n\
                st.global.u64 [%d3], %d4;";
    for checks in [Checks::Values, Checks::All] {
        let (_, out) = both(checks, body);
        assert!(out.iter().enumerate().all(|(i, word)| *word == i as u64 + 1), "{checks:?}");
    }
}

#[test]
fn last_store_of_a_word_wins() {
    let (_, out) = both(Checks::Values, "cvt.u64.u32 %d4, %r1;\nst.global.u64 [%d0], %d4;");
    assert_eq!(out[0], u64::from(BLOCKS) - 1);
}

#[test]
fn blocks_that_wait_for_one_another() {
    let body = "setp.eq.u32 %p0, %r1, 0;\n@%p0 bra $go;\n$wait:\nld.volatile.global.u64 %d4, [%d3+-8];\n\
                setp.ne.u64 %p1, %d4, 7;\n@%p1 bra $wait;\n$go:\nst.volatile.global.u64 [%d3], 7;";
    let (_, out) = both(Checks::Values, body);
    assert!(out.iter().all(|word| *word == 7));
}

#[test]
fn atomic_operations_count_in_order() {
    let body = "atom.global.add.u64 %d4, [%d0], 1;\nsetp.ne.u32 %p0, %r1, 0;\n@%p0 st.global.u64 [%d3], %d4;";
    let (_, out) = both(Checks::Values, body);
    // The word is initially all ones.
    assert_eq!(out[0], u64::from(BLOCKS) - 1);
    assert!(out.iter().enumerate().skip(1).all(|(i, word)| *word == i as u64 - 1));
}

#[test]
fn a_fault_is_reported_as_on_one_thread() {
    let (outcome, _) = both(Checks::All, "setp.ge.u32 %p0, %r1, 8000;\n@%p0 st.global.u64 [%d3+1048576], %d0;");
    let found: Vec<_> = outcome.report.findings.iter().map(|f| (f.check, f.count, f.thread.block)).collect();
    assert_eq!(found, [(Check::OutOfBounds, 192, [8000, 0, 0])]);
}
