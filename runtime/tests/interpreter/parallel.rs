//! Checks that a launch on several host threads has the results and reports of a launch on one.

use crate::kit::{Kit, out, run_with};
use crate::tiles::{bound, matmul, matrix};
use kernel_dsl::compiler::Scalar;
use kernel_dsl::compiler::ir::{Binary, Comparison, Kernel, Special};
use runtime::interpreter::{ArgumentBytes, Check, Checks, Coverage, DeclaredOutput, Options, Outcome};
use std::num::NonZeroUsize;

/// Large enough to justify starting threads.
const N: usize = 144;

fn on(threads: usize, checks: Checks) -> Options {
    Options { checks, threads: NonZeroUsize::new(threads), ..Options::default() }
}

fn product(kernel: &Kernel, options: Options) -> (Vec<f32>, Outcome) {
    let (a, b, mut c) = (matrix(N, N, 2654435761), matrix(N, N, 2246822519), vec![f32::NAN; N * N]);
    let arguments = vec![
        bound(ArgumentBytes::Shared(bytemuck::cast_slice(&a)), N, N),
        bound(ArgumentBytes::Shared(bytemuck::cast_slice(&b)), N, N),
        bound(ArgumentBytes::Exclusive(bytemuck::cast_slice_mut(&mut c)), N, N),
    ];
    let blocks = N.div_ceil(16) as u32;
    let outcome = run_with(kernel, [blocks, blocks, 1], arguments, options);
    (c, outcome)
}

#[test]
fn values_and_statistics_are_the_same() {
    for checks in [Checks::Values, Checks::All] {
        let alone = product(&matmul(16, None), on(1, checks));
        assert!(alone.1.report.findings.is_empty());
        assert!(product(&matmul(16, None), on(2, checks)) == alone, "{checks:?}");
    }
}

#[test]
fn fault_of_some_blocks_is_reported_as_on_one_thread() {
    let alone = product(&matmul(16, Some(0)), on(1, Checks::All));
    assert!(alone.1.report.findings.iter().any(|f| f.check == Check::SharedRace));
    assert!(product(&matmul(16, Some(0)), on(2, Checks::All)) == alone);
}

#[test]
fn blocks_of_two_threads_race() {
    const BLOCKS: u32 = 8192;
    // Block b stores y[b], and loads the element of the previous block, which runs on another host
    // thread.
    let mut k = Kit::new([1, 1, 1], "y[b] = 1;\nz[b] = y[b + mask & mask];");
    let (y, z) = (k.slice("y", Scalar::U32, true), k.slice("z", Scalar::U32, true));
    let b = k.special(Special::Block(0));
    let (value, mask) = (k.b.constant(Scalar::U32, 1), k.b.index(BLOCKS - 1));
    k.at("y[b]");
    k.store(y.at(b), Scalar::U32, value);
    k.at("y[b + mask");
    let before = k.binary(Binary::WrappingAdd, b, mask);
    let before = k.binary(Binary::And, before, mask);
    let loaded = k.load(y.at(before), Scalar::U32);
    k.at("z[b]");
    k.store(z.at(b), Scalar::U32, loaded);
    let kernel = k.finish();
    let run = |threads, checks| {
        let (mut y, mut z) = (vec![0u32; BLOCKS as usize], vec![0u32; BLOCKS as usize]);
        let outcome = run_with(&kernel, [BLOCKS, 1, 1], vec![out(&mut y), out(&mut z)], on(threads, checks));
        (y, z, outcome)
    };
    let alone = run(1, Checks::All);
    assert!(alone.2.report.findings.iter().any(|f| f.check == Check::GlobalRace));
    assert!(run(2, Checks::All) == alone);
    // Without race checks, each host thread sees only the stores that its own blocks make.
    assert!(run(2, Checks::Values).1.iter().all(|loaded| *loaded == 0));
}

/// Builds y[b] = 1 except in block `left`, for a launch that declares to write each element exactly
/// once. Block 0 also stores for block `twice`.
fn writes(left: u32, twice: u32) -> Kernel {
    let mut k = Kit::new([1, 1, 1], "if b != left { y[b] = 1 }");
    let y = k.slice("y", Scalar::U32, true);
    let b = k.special(Special::Block(0));
    let (value, left, twice) = (k.b.constant(Scalar::U32, 1), k.b.index(left), k.b.index(twice));
    k.at("y[b]");
    let meant = k.b.compare(Comparison::Ne, b, left);
    k.when(meant, |k| k.store(y.at(b), Scalar::U32, value));
    let zero = k.b.index(0);
    let first = k.b.compare(Comparison::Eq, b, zero);
    k.when(first, |k| k.store(y.at(twice), Scalar::U32, value));
    let mut kernel = k.finish();
    kernel.declared.outputs.push(DeclaredOutput { index: 0, coverage: Coverage::Once });
    kernel
}

#[test]
fn output_declarations_are_checked_across_host_threads() {
    const BLOCKS: u32 = 8192;
    let run = |kernel: &Kernel, threads| {
        let mut y = vec![0u32; BLOCKS as usize];
        let outcome = run_with(kernel, [BLOCKS, 1, 1], vec![out(&mut y)], on(threads, Checks::All));
        (y, outcome)
    };
    for (kernel, found) in [
        (writes(BLOCKS, 0), vec![]),
        (writes(4711, 0), vec![Check::UnwrittenOutput]),
        (writes(BLOCKS, 4711), vec![Check::GlobalRace]),
    ] {
        let alone = run(&kernel, 1);
        let checks: Vec<_> = alone.1.report.findings.iter().map(|finding| finding.check).collect();
        assert!(
            found.iter().all(|check| checks.contains(check)) && found.is_empty() == checks.is_empty(),
            "{checks:?}"
        );
        assert!(run(&kernel, 2) == alone, "{found:?}");
    }
}
