//! Tests that passes change no value: random programs have the same stores before and after, for
//! each pass alone and for all in order.

use crate::{evaluator, generator};
use kernel_dsl_compiler::ir::Kernel;
use kernel_dsl_compiler::ir::verify::verify;
use kernel_dsl_compiler::lower::checked::CheckedKernel;
use kernel_dsl_compiler::passes::{optimize_with, pipeline};

/// Returns the seeds of the tested programs; `PASSES_SEEDS` sets their number.
pub fn seeds() -> std::ops::Range<u64> {
    0..std::env::var("PASSES_SEEDS").ok().and_then(|s| s.parse().ok()).unwrap_or(250)
}

/// Runs the kernel on several inputs.
fn run(kernel: &Kernel) -> Vec<evaluator::Trace> {
    (0..4).map(|input| evaluator::run(kernel, input)).collect()
}

#[test]
fn programs_are_well_formed_and_do_something() {
    let mut stores = 0;
    for seed in seeds() {
        let kernel = generator::kernel(seed);
        verify(&kernel).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{kernel}"));
        stores += run(&kernel).iter().map(|t| t.stores.len()).sum::<usize>();
    }
    assert!(stores as u64 > 4 * 20 * seeds().end, "{stores} stores");
}

#[test]
fn each_pass_keeps_values_alone() {
    for seed in seeds() {
        let kernel = generator::kernel(seed);
        let expected = run(&kernel);
        for pass in pipeline() {
            let mut after = kernel.clone();
            (pass.run)(&mut after).unwrap_or_else(|e| panic!("seed {seed}, {}: {e}\n{kernel}", pass.name));
            verify(&after).unwrap_or_else(|e| panic!("seed {seed}, {}: {e}\n{kernel}\n{after}", pass.name));
            let got = run(&after);
            assert!(got == expected, "seed {seed}, {}\n{kernel}\n{after}", pass.name);
        }
    }
}

#[test]
fn all_passes_keep_values_in_order() {
    for seed in seeds() {
        let kernel = generator::kernel(seed);
        let expected = run(&kernel);
        let mut before = kernel.clone();
        let done = optimize_with(kernel, |pass, after| {
            verify(after).unwrap_or_else(|e| panic!("seed {seed}, {}: {e}\n{before}\n{after}", pass.name));
            let got = run(after);
            assert!(got == expected, "seed {seed}, {}\n{before}\n{after}", pass.name);
            before = after.clone();
        });
        done.unwrap_or_else(|e| panic!("seed {seed}: {e}"));
    }
}

/// Checks that the checked form of a valid program stores what the program stores. Also checks that
/// passes preserve the stores and reports of any checked form.
#[test]
fn checked_forms_store_what_the_program_stores() {
    let mut right = 0;
    for seed in seeds() {
        let kernel = generator::kernel(seed);
        let checked = CheckedKernel::of(kernel.clone()).kernel;
        verify(&checked).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{kernel}\n{checked}"));
        let expected = run(&checked);
        for (bare, checked) in run(&kernel).into_iter().zip(&expected) {
            if checked.report.is_none() {
                assert_eq!(&bare, checked, "seed {seed}\n{kernel}");
                right += 1;
            }
        }
        let done = optimize_with(checked.clone(), |pass, after| {
            verify(after).unwrap_or_else(|e| panic!("seed {seed}, {}: {e}\n{checked}\n{after}", pass.name));
            assert!(run(after) == expected, "seed {seed}, {}\n{checked}\n{after}", pass.name);
        });
        done.unwrap_or_else(|e| panic!("seed {seed}: {e}"));
    }
    assert!(right > 0, "no program is right");
}
