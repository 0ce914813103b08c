//! Tests of the checked form of faulty kernels.
//!
//! The checked form reports the first finding of the oracle, stores exactly the bytes that the
//! oracle stores, and never accesses memory outside the buffers.

mod wrong;

use kernel_dsl::compiler::hir::Instance;
use kernel_dsl::compiler::ir::record::WORDS;
use kernel_dsl::compiler::lower::checked::{CheckedKernel, MODERATE_ARGUMENT_LIMIT, checked};
use kernel_dsl::compiler::{Target, ir, lower, passes};
use kernel_dsl::{Artifact, Kernel};
use runtime::interpreter::{self, ArgumentBytes, Binding, Check, Finding, Launch, Options, Outcome, Program};
use runtime::{Device, Error};

/// An argument with its memory.
#[derive(Clone)]
enum Argument {
    Number(u32),
    Memory { words: Vec<f32>, extents: Vec<u32>, strides: Vec<u32> },
}

fn slice(n: usize) -> Argument {
    view(&[n as u32], &[1], n)
}

/// Returns `n` elements of memory as a view of these extents and strides.
fn view(extents: &[u32], strides: &[u32], n: usize) -> Argument {
    let words = (0..n).map(|i| i as f32 + 0.5).collect();
    Argument::Memory { words, extents: extents.to_vec(), strides: strides.to_vec() }
}

/// Runs a kernel. A record is appended if the kernel takes one more argument than `arguments` has.
fn run(kernel: &ir::Kernel, grid: u32, arguments: &[Argument]) -> (Outcome, [u32; WORDS], Vec<Argument>) {
    let (mut arguments, mut record) = (arguments.to_vec(), [0u32; WORDS]);
    let mut bindings: Vec<Binding> = arguments
        .iter_mut()
        .map(|argument| match argument {
            Argument::Number(n) => Binding::Scalar((*n).into()),
            Argument::Memory { words, extents, strides } => Binding::Memory {
                bytes: ArgumentBytes::Exclusive(bytes(words)),
                extents: extents.clone(),
                strides: strides.clone(),
            },
        })
        .collect();
    let takes = kernel.parameters.iter().map(|p| p.argument + 1).max().unwrap_or(0) as usize;
    if takes > bindings.len() {
        let bytes = ArgumentBytes::Exclusive(bytes(&mut record));
        bindings.push(Binding::Memory { bytes, extents: vec![WORDS as u32], strides: vec![1] });
    }
    let launch = Launch { grid: [grid, 1, 1], block: None, arguments: bindings, options: Options::default() };
    let outcome = Program::decode(kernel).unwrap().run(launch).unwrap();
    (outcome, record, arguments)
}

/// Returns 32-bit numbers as bytes.
fn bytes<T: Copy>(words: &mut [T]) -> &mut [u8] {
    const { assert!(size_of::<T>() == 4) };
    // SAFETY: `T` is f32 or u32, which have no padding and accept any bytes.
    unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), size_of_val(words)) }
}

fn contents(arguments: &[Argument]) -> Vec<Vec<u32>> {
    let of = |argument: &Argument| match argument {
        Argument::Number(n) => vec![*n],
        Argument::Memory { words, .. } => words.iter().map(|w| w.to_bits()).collect(),
    };
    arguments.iter().map(of).collect()
}

fn seen_by_both(finding: &&Finding) -> bool {
    matches!(finding.check, Check::OutOfBounds | Check::UsizeOverflow | Check::LoopStep | Check::Assertion)
}

/// Compares the checked form with the oracle, and returns the finding of both.
fn agreed(artifact: &'static Artifact, grid: u32, arguments: &[Argument]) -> Option<Finding> {
    let program = artifact.program().unwrap();
    let instance = Instance::default();
    let bare = lower::lower(&program, &instance, Target::SM_61).unwrap();
    let form: CheckedKernel = checked(&program, &instance, Target::SM_61).unwrap();
    ir::verify::verify(&form.kernel).unwrap();
    let (oracle, _, expected) = run(&bare, grid, arguments);
    let first = oracle.report.findings.iter().find(seen_by_both).cloned();
    let optimized = passes::optimize(form.kernel.clone()).unwrap();
    let decided = form.optimized().unwrap();
    let is_moderate = |argument: &Argument| match argument {
        Argument::Number(n) => *n <= MODERATE_ARGUMENT_LIMIT,
        Argument::Memory { extents, strides, .. } => {
            extents.iter().chain(strides).all(|n| *n <= MODERATE_ARGUMENT_LIMIT)
        }
    };
    let moderate =
        arguments.iter().all(is_moderate).then(|| form.clone().with_arguments_up_to(MODERATE_ARGUMENT_LIMIT));
    let moderate = moderate.map(|form| form.optimized().unwrap());
    for kernel in [&form.kernel, &optimized, &decided].into_iter().chain(moderate.as_deref()) {
        let (own, record, left) = run(kernel, grid, arguments);
        assert_eq!(
            own.report.findings.iter().find(seen_by_both),
            None,
            "the checked form has its own fault:\n{kernel}"
        );
        let reported = interpreter::reported(&form, &record).map(|report| report.findings[0].clone());
        // The record has neither the number of occurrences nor the element of the memory.
        let comparable = first.clone().map(|mut f| {
            f.count = 1;
            f.object.iter_mut().for_each(|o| o.element = None);
            f
        });
        assert_eq!(reported, comparable, "{kernel}");
        assert_eq!(contents(&left), contents(&expected), "{kernel}");
    }
    let ptx = form.ptx().unwrap();
    assert!(ptx.contains(".version 5.0\n"), "{ptx}");
    first
}

#[track_caller]
fn says(finding: Option<Finding>, message: &str, line: &str, thread: [u32; 3]) {
    let finding = finding.expect("the kernel is faulty");
    assert_eq!(finding.message, message);
    let text = include_str!("checked/wrong.rs").lines().nth(finding.place.line as usize - 1).unwrap();
    assert!(text.contains(line), "{text}");
    assert_eq!(finding.thread.thread, thread);
}

#[test]
fn an_index_off_by_one_is_reported() {
    let found = agreed(wrong::off_by_one::ARTIFACT, 2, &[slice(40)]);
    says(found, "index 40 is out of bounds of `y`, which has 40 elements", "y[i] = 1.0", [8, 0, 0]);
}

#[test]
fn correct_kernels_report_nothing() {
    for n in [0, 1, 31, 32, 33, 64] {
        assert_eq!(agreed(wrong::right::ARTIFACT, 2, &[slice(n), slice(n)]), None);
    }
}

#[test]
fn loop_with_a_step_of_zero_is_not_entered() {
    let found = agreed(wrong::stepped::ARTIFACT, 1, &[Argument::Number(0), slice(40)]);
    says(found, "the loop steps by 0: a step must be above zero", "thread::x()..y.len()", [0, 0, 0]);
    let found = agreed(wrong::stepped_wide::ARTIFACT, 1, &[Argument::Number(0), slice(40)]);
    assert_eq!(found.map(|finding| finding.check), Some(Check::LoopStep));
    for step in [1, 3, 40, 1000] {
        assert_eq!(agreed(wrong::stepped::ARTIFACT, 1, &[Argument::Number(step), slice(40)]), None);
        assert_eq!(agreed(wrong::stepped_wide::ARTIFACT, 1, &[Argument::Number(step), slice(40)]), None);
    }
    // The step is negative as a signed 32-bit number.
    let found = agreed(wrong::stepped_wide::ARTIFACT, 1, &[Argument::Number(u32::MAX), slice(40)]);
    assert!(found.is_some_and(|finding| finding.message.contains("the loop steps by -1")));
}

#[test]
fn loop_ends_before_its_index_wraps() {
    let arguments = [Argument::Number(1 << 30), slice(32)];
    assert_eq!(agreed(wrong::ranges_to_the_end::ARTIFACT, 1, &arguments), None);
    let program = wrong::ranges_to_the_end::ARTIFACT.program().unwrap();
    let form = checked(&program, &Instance::default(), Target::SM_61).unwrap();
    let (own, _, left) = run(&form.kernel, 1, &arguments);
    // The loop ends by itself, without a limit of the interpreter.
    assert!(own.report.findings.is_empty(), "{}", own.report);
    assert_eq!(contents(&left)[1], [4411.0f32.to_bits(); 32]);
}

#[test]
fn indices_into_many_arrays_are_checked() {
    assert_eq!(agreed(wrong::in_six_arrays::ARTIFACT, 1, &[Argument::Number(1), slice(32)]), None);
    let program = wrong::in_six_arrays::ARTIFACT.program().unwrap();
    let form = checked(&program, &Instance::default(), Target::SM_61).unwrap();
    let (own, record, _) = run(&form.kernel, 1, &[Argument::Number(2), slice(32)]);
    assert!(own.report.findings.is_empty(), "{}", own.report);
    let report = interpreter::reported(&form, &record).expect("the access is out of bounds");
    assert_eq!(report.findings[0].check, Check::OutOfBounds, "{report}");
}

#[test]
fn loop_that_moves_a_view_may_end_early() {
    for width in [1, 2, 5] {
        let arguments = [view(&[10, 32], &[32, 1], 320), Argument::Number(width), slice(32)];
        assert_eq!(agreed(wrong::running::ARTIFACT, 1, &arguments), None);
    }
}

#[test]
fn negative_indices_are_reported() {
    let found = agreed(wrong::before::ARTIFACT, 1, &[slice(32), slice(32)]);
    says(found, "`0 - 1` overflows `usize`", "x[i - 1]", [0, 0, 0]);
    let found = agreed(wrong::wrapped::ARTIFACT, 1, &[slice(32), slice(32)]);
    says(found, "index 4294967295 is out of bounds of `x`, which has 32 elements", "x[i.wrapping_sub(1)]", [0, 0, 0]);
}

#[test]
fn an_index_that_wraps_into_bounds_is_reported() {
    // The product 4 × 2³⁰ is 0 in 32 bits. The overflow is reported, and the store goes to the
    // wrapped index.
    let found = agreed(wrong::scaled::ARTIFACT, 1, &[Argument::Number(1 << 30), slice(32)]);
    says(found, "`4 * 1073741824` overflows `usize`", "y[i * step]", [4, 0, 0]);
    let found = agreed(wrong::added::ARTIFACT, 1, &[Argument::Number(u32::MAX), slice(32)]);
    says(found, "`1 + 4294967295` overflows `usize`", "y[i + from]", [1, 0, 0]);
    let found = agreed(wrong::added::ARTIFACT, 1, &[Argument::Number(1), slice(32)]);
    says(found, "index 32 is out of bounds of `y`, which has 32 elements", "y[i + from]", [31, 0, 0]);
}

#[test]
fn indices_beyond_shared_arrays_are_reported() {
    let found = agreed(wrong::beyond_shared::ARTIFACT, 1, &[slice(32)]);
    says(found, "index 32 is out of bounds of `tile`, which has 32 elements", "tile[thread::x() + 1]", [31, 0, 0]);
    let found = agreed(wrong::beyond_row::ARTIFACT, 1, &[slice(32)]);
    says(found, "index (0, 8) is out of bounds of `tile`, which is 4 × 8", "tile[(thread::x() / 9", [8, 0, 0]);
}

#[test]
fn failed_assertions_are_reported() {
    let numbers = [Argument::Number(7), slice(40)];
    let found = agreed(wrong::asserted::ARTIFACT, 1, &numbers);
    says(
        found,
        "`x < 20.0` does not hold: element 20 is above 7 (0x7), true (left: 20.5, right: 20.0)",
        "assert!(x <",
        [20, 0, 0],
    );
    let found = agreed(wrong::asserted::ARTIFACT, 1, &[Argument::Number(7), slice(20)]);
    assert_eq!(found, None);
    let found = agreed(wrong::asserted_wide::ARTIFACT, 1, &[Argument::Number(3), slice(32)]);
    let values = "(left: 18446744056529682435, right: 12884901888)";
    says(found, &format!("`!wide << 32 | low as u64 == wide << 32` does not hold {values}"), "assert_eq!", [0, 0, 0]);
    let found = agreed(wrong::panics::ARTIFACT, 1, &[Argument::Number(9), slice(32)]);
    says(found, "thread 9 of -9 at 9.5", "panic!", [9, 0, 0]);
}

#[test]
fn unchecked_form_has_no_trace_of_assertions() {
    let [plain, asserted] = [wrong::twice::ARTIFACT, wrong::twice_asserted::ARTIFACT].map(|artifact| {
        let kernel = lower::lower(&artifact.program().unwrap(), &Instance::default(), Target::SM_61).unwrap();
        passes::optimize(kernel).unwrap().body.insts.len()
    });
    assert_eq!(plain, asserted);
    assert!(!wrong::twice_asserted::PTX.contains("trap"));
    assert!(!wrong::twice_asserted::PTX.contains("bra"), "{}", wrong::twice_asserted::PTX);
    assert!(wrong::kept::PTX.contains("trap;"), "{}", wrong::kept::PTX);
    assert_eq!(wrong::kept::PTX.matches("trap;").count(), 1, "a `debug_assert!` is not kept");
}

#[test]
fn indices_beyond_tables_are_reported() {
    let found = agreed(wrong::beyond_table::ARTIFACT, 1, &[Argument::Number(3), slice(32)]);
    assert_eq!(found, None);
    let found = agreed(wrong::beyond_table::ARTIFACT, 1, &[Argument::Number(9), slice(32)]);
    says(found, "index 8 is out of bounds of `SQUARES`, which has 8 elements", "SQUARES[i % n]", [8, 0, 0]);
    let found = agreed(wrong::beyond_table::ARTIFACT, 1, &[Argument::Number(8), slice(32)]);
    says(found, "index (3, 3) is out of bounds of `ROWS`, which is 4 × 3", "ROWS[i % 4]", [3, 0, 0]);
}

#[test]
fn a_column_beyond_its_row_is_reported() {
    let found = agreed(wrong::column::ARTIFACT, 1, &[view(&[4, 8], &[10, 1], 38)]);
    says(found, "index (0, 8) is out of bounds of `y`, which is 4 × 8", "y[(i / 8, i % 8 + 1)]", [7, 0, 0]);
}

#[test]
fn views_moved_out_of_bounds_are_reported() {
    let found = agreed(wrong::far_row::ARTIFACT, 1, &[Argument::Number(2), view(&[4, 32], &[32, 1], 128), slice(32)]);
    assert_eq!(found, None);
    let found =
        agreed(wrong::far_offset::ARTIFACT, 1, &[Argument::Number(7), view(&[4, 32], &[32, 1], 128), slice(32)]);
    says(found, "index (0, 0) is out of bounds of `x`, which is 0 × 32", "moved[(0, i)]", [0, 0, 0]);
}

#[test]
fn loops_whose_index_wraps_end() {
    let found =
        agreed(wrong::stepping::ARTIFACT, 1, &[Argument::Number(u32::MAX), Argument::Number(1 << 31), slice(32)]);
    says(found, "`2147483648 + 2147483648` overflows `usize`", "for k in", [0, 0, 0]);
    assert_eq!(agreed(wrong::stepping::ARTIFACT, 1, &[Argument::Number(32), Argument::Number(5), slice(32)]), None);
}

/// Returns the number of places where the optimized form of a kernel, for arguments up to
/// `largest`, records violations, and its PTX.
fn recorded(artifact: &'static Artifact, largest: u32) -> (usize, String) {
    let form = checked(&artifact.program().unwrap(), &Instance::default(), Target::SM_61).unwrap();
    let form = form.with_arguments_up_to(largest);
    (form.optimized().unwrap().to_string().matches("record_violation").count(), form.ptx().unwrap())
}

#[test]
fn conditions_that_the_contract_decides_are_not_checked() {
    let (x, y) = (view(&[3, 136], &[136, 1], 408), view(&[3, 136], &[136, 1], 408));
    assert_eq!(agreed(wrong::promised::ARTIFACT, 3, &[x, y]), None);
    let (places, ptx) = recorded(wrong::promised::ARTIFACT, u32::MAX);
    // Only the step of the loop may wrap.
    assert_eq!(places, 1, "{ptx}");
    assert!(ptx.contains("ld.global.nc.v4.f32") && ptx.contains("st.global.v4.f32"), "{ptx}");
    let (x, y) = (view(&[3, 136], &[137, 1], 411), view(&[3, 136], &[137, 1], 411));
    assert_eq!(agreed(wrong::unaligned::ARTIFACT, 3, &[x, y]), None);
    let (places, ptx) = recorded(wrong::unaligned::ARTIFACT, u32::MAX);
    assert_eq!(places, 1, "{ptx}");
    assert!(!ptx.contains(".v2.f32") && !ptx.contains(".v4.f32"), "{ptx}");
    // Below an extent of at most half of the numbers, the step does not wrap.
    for kernel in [wrong::promised::ARTIFACT, wrong::unaligned::ARTIFACT] {
        assert_eq!(recorded(kernel, MODERATE_ARGUMENT_LIMIT).0, 0);
    }
}

#[test]
fn vectors_at_indices_from_arrays_stay_whole() {
    let views = || [view(&[3, 136], &[136, 1], 408), view(&[3, 136], &[136, 1], 408)];
    assert_eq!(agreed(wrong::by_arrays::ARTIFACT, 3, &views()), None);
    let (_, ptx) = recorded(wrong::by_arrays::ARTIFACT, u32::MAX);
    assert!(ptx.contains("ld.global.nc.v4.f32") && ptx.contains("st.global.v4.f32"), "{ptx}");
    // Every second of these vectors begins at 8 bytes after a multiple of 16.
    let (_, ptx) = recorded(wrong::by_arrays_of_pairs::ARTIFACT, u32::MAX);
    assert!(ptx.contains("ld.global.nc.v2.f32") && !ptx.contains(".v4.f32"), "{ptx}");
}

#[test]
fn sums_that_may_wrap_prove_nothing() {
    let slices = || [slice(32), slice(32)];
    let run = |from: u32| {
        let [x, y] = slices();
        agreed(wrong::wraps_into_bounds::ARTIFACT, 1, &[Argument::Number(from), x, y])
    };
    assert_eq!(run(5), None);
    assert_eq!(run(32), None);
    // Thread 1 wraps to 0, which is below the extent; the other index is not.
    let found = run(u32::MAX);
    says(found, "`1 + 4294967295` overflows `usize`", "i + from <", [1, 0, 0]);
}

#[test]
fn quotients_that_are_rounded_up_are_those_of_the_grid() {
    for n in [1usize, 31, 32, 33, 64] {
        let blocks = n.div_ceil(32) as u32;
        assert_eq!(agreed(wrong::last_block_alone::ARTIFACT, blocks, &[slice(n)]), None);
        assert_eq!(agreed(wrong::last_block::ARTIFACT, blocks, &[Argument::Number(0), slice(n)]), None);
        let found = agreed(wrong::last_block::ARTIFACT, blocks, &[Argument::Number(1), slice(n)]);
        assert_eq!(found.map(|finding| finding.check), Some(Check::OutOfBounds));
    }
    let found = agreed(wrong::last_block::ARTIFACT, 1, &[Argument::Number(u32::MAX), slice(40)]);
    assert_eq!(found.map(|finding| finding.check), Some(Check::UsizeOverflow));
    for largest in [MODERATE_ARGUMENT_LIMIT, u32::MAX] {
        assert_eq!(recorded(wrong::last_block_alone::ARTIFACT, largest).0, 0);
    }
}

#[test]
fn quotients_by_zero_have_no_facts() {
    for n in [1, 2, 7, 8, 31, u32::MAX] {
        assert_eq!(agreed(wrong::divided_by_one_or_more::ARTIFACT, 1, &[Argument::Number(n), slice(20)]), None);
        assert_eq!(agreed(wrong::divided_by::ARTIFACT, 1, &[Argument::Number(n), slice(32)]), None);
    }
    assert_eq!(recorded(wrong::divided_by_one_or_more::ARTIFACT, u32::MAX).0, 0);
    let found = agreed(wrong::divided_by::ARTIFACT, 1, &[Argument::Number(0), slice(32)]);
    assert_eq!(found.map(|finding| finding.check), Some(Check::OutOfBounds));
}

#[test]
fn blocks_in_groups_of_rows_are_within_the_grid() {
    for [rows, cols] in [[1u32, 1], [4, 8], [5, 9], [12, 24], [17, 40], [23, 7]] {
        let y = || view(&[rows, cols], &[cols, 1], (rows * cols) as usize);
        let blocks = rows.div_ceil(4) * cols.div_ceil(8);
        assert_eq!(agreed(wrong::grouped::ARTIFACT, blocks, &[y()]), None);
        assert_eq!(agreed(wrong::grouped_by::ARTIFACT, blocks, &[Argument::Number(2), y()]), None);
    }
    assert_eq!(recorded(wrong::grouped::ARTIFACT, MODERATE_ARGUMENT_LIMIT).0, 0);
    // The third row of blocks would be the fourth.
    let y = view(&[12, 24], &[24, 1], 12 * 24);
    let found = agreed(wrong::grouped_by::ARTIFACT, 9, &[Argument::Number(4), y]);
    assert_eq!(found.map(|finding| finding.check), Some(Check::UsizeOverflow));
}

#[test]
fn one_of_several_requirements_is_enough() {
    for n in [0, 1, 2, 31] {
        for x in [0, 1, n, 2 * n] {
            assert_eq!(agreed(wrong::picked::ARTIFACT, 1, &[slice(x), slice(n)]), None);
        }
    }
    assert_eq!(recorded(wrong::picked::ARTIFACT, MODERATE_ARGUMENT_LIMIT).0, 0);
    assert_eq!(agreed(wrong::picked_of_many::ARTIFACT, 1, &[slice(40), slice(20)]), None);
    let found = agreed(wrong::picked_of_many::ARTIFACT, 1, &[slice(1), slice(20)]);
    assert_eq!(found.map(|finding| finding.check), Some(Check::OutOfBounds));
}

#[test]
fn differences_and_products_may_be_less_than_an_operand() {
    for n in [32, 40, 64] {
        assert_eq!(agreed(wrong::less_than_operands::ARTIFACT, 1, &[slice(n)]), None);
    }
}

#[test]
fn grids_that_a_device_function_chooses_are_known() {
    for (copies, blocks) in [(0, 2), (1, 2), (2, 2), (3, 6), (5, 10)] {
        let arguments = || [Argument::Number(copies), slice(40)];
        assert_eq!(agreed(wrong::in_chosen_grid::ARTIFACT, blocks, &arguments()), None);
        let found = agreed(wrong::beyond_chosen_grid::ARTIFACT, blocks, &arguments());
        assert_eq!(found.map(|finding| finding.check), (copies > 2).then_some(Check::OutOfBounds));
    }
    assert_eq!(recorded(wrong::in_chosen_grid::ARTIFACT, MODERATE_ARGUMENT_LIMIT).0, 0);
}

#[test]
fn rows_of_a_folded_grid_are_known() {
    for [rows, columns] in [[1, 40], [5, 40], [7, 32], [9, 100]] {
        let y = || [view(&[rows, columns], &[columns, 1], (rows * columns) as usize)];
        let blocks = columns.div_ceil(32) * rows;
        assert_eq!(agreed(wrong::in_folded_grid::ARTIFACT, blocks, &y()), None);
        let found = agreed(wrong::beyond_folded_grid::ARTIFACT, blocks, &y());
        assert_eq!(found.map(|finding| finding.check), (rows > 4).then_some(Check::OutOfBounds));
    }
    assert_eq!(recorded(wrong::in_folded_grid::ARTIFACT, MODERATE_ARGUMENT_LIMIT).0, 0);
}

#[test]
fn inverted_bits_are_bounded() {
    for n in [0, 7, 30, 60] {
        assert_eq!(agreed(wrong::by_inverted_bit::ARTIFACT, 1, &[Argument::Number(n), slice(64)]), None);
    }
    assert_eq!(recorded(wrong::by_inverted_bit::ARTIFACT, MODERATE_ARGUMENT_LIMIT).0, 0);
    assert_eq!(agreed(wrong::by_high_inverted_bit::ARTIFACT, 1, &[Argument::Number(10), slice(62)]), None);
    let found = agreed(wrong::by_high_inverted_bit::ARTIFACT, 1, &[Argument::Number(60), slice(62)]);
    assert_eq!(found.map(|finding| finding.check), Some(Check::OutOfBounds));
}

/// Checks grids whose branches divide: a fact that follows from a division holds in its own branch
/// only.
#[test]
fn facts_of_one_branch_of_a_grid_hold_there_alone() {
    let found = agreed(wrong::first_of_maybe_none::ARTIFACT, 1, &[slice(0)]);
    assert_eq!(found.map(|finding| finding.check), Some(Check::OutOfBounds));
    assert_eq!(agreed(wrong::first_of_maybe_none::ARTIFACT, 1, &[slice(300)]), None);
    let found = agreed(wrong::multiplied_beyond::ARTIFACT, 1, &[Argument::Number(1 << 20), slice(40)]);
    assert_eq!(found.map(|finding| finding.check), Some(Check::UsizeOverflow));
    assert_eq!(agreed(wrong::multiplied_beyond::ARTIFACT, 1, &[Argument::Number(80000), slice(40)]), None);
}

#[test]
fn repeated_violations_are_recorded_once() {
    for from in [1, 40, u32::MAX] {
        let found = agreed(wrong::repeated::ARTIFACT, 1, &[Argument::Number(from), slice(32)]);
        assert!(found.is_some());
    }
    assert_eq!(agreed(wrong::repeated::ARTIFACT, 1, &[Argument::Number(0), slice(32)]), None);
    // One report serves the sum and the index of the load.
    assert_eq!(recorded(wrong::repeated::ARTIFACT, u32::MAX).0, 1);
}

#[test]
fn a_finding_in_a_device_function_has_its_caller() {
    let found = agreed(wrong::caller::ARTIFACT, 1, &[slice(16), slice(32)]);
    assert_eq!(found.as_ref().unwrap().place.callers.len(), 1);
    says(found, "index 16 is out of bounds of `x`, which has 16 elements", "x[i]", [16, 0, 0]);
}

/// Launches the checked form of a faulty kernel on a device, and returns the report and the memory.
fn launch(device: &Device) -> (interpreter::Report, Vec<f32>) {
    let mut y = device.upload(&[0.5f32; 40]).unwrap();
    let Err(Error::Violation(report)) = wrong::off_by_one::launch(device, &mut y) else {
        panic!("the launch reports a finding")
    };
    (*report, y.download().unwrap())
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_reports_what_the_oracle_reports() {
    let (gpu, cpu) = (Device::cuda(0).unwrap(), Device::cpu());
    // The second launch checks that the device is usable and that the record is reused.
    for _ in 0..2 {
        let (report, left) = launch(&gpu);
        let (expected, same) = launch(&cpu);
        println!("{report}");
        let mut first = expected.findings[0].clone();
        (first.count, first.object.as_mut().unwrap().element) = (1, None);
        assert_eq!(report.findings, [first]);
        assert_eq!(left, same);
    }
    let (x, mut y) = (gpu.upload(&[1.0f32; 40]).unwrap(), gpu.zeros::<f32>(40).unwrap());
    wrong::right::launch(&gpu, &x, &mut y).unwrap();
    assert_eq!(y.download().unwrap(), [2.0; 40]);
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_survives_addresses_far_outside() {
    let gpu = Device::cuda(0).unwrap();
    let mut y = gpu.upload(&[0.5f32; 32]).unwrap();
    let Err(Error::Violation(report)) = wrong::added::launch(&gpu, 1 << 31, &mut y) else { panic!("a finding") };
    println!("{report}");
    assert_eq!(report.findings[0].check, Check::OutOfBounds);
    assert_eq!(y.download().unwrap(), [0.5; 32]);
    let Err(Error::Violation(report)) = wrong::scaled::launch(&gpu, 1 << 30, &mut y) else { panic!("a finding") };
    println!("{report}");
    let Err(Error::Violation(report)) = wrong::beyond_table::launch(&gpu, 9, &mut y) else { panic!("a finding") };
    // Lanes fail different checks behind one branch: the launch keeps the report of any of them.
    let messages = [
        "index 8 is out of bounds of `SQUARES`, which has 8 elements",
        "index (3, 3) is out of bounds of `ROWS`, which is 4 × 3",
    ];
    assert!(messages.contains(&&*report.findings[0].message), "{report}");
    let (x, mut y) = (gpu.upload(&[1.0f32; 32]).unwrap(), gpu.upload(&[0.5f32; 32]).unwrap());
    assert!(matches!(wrong::wrapped::launch(&gpu, &x, &mut y), Err(Error::Violation(_))));
    assert_eq!(y.download().unwrap()[0], 0.0);
}
