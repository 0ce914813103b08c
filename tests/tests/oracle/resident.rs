//! Blocks that wait for later blocks of a launch that is not cooperative. All blocks of a small
//! launch are sure to be resident at once, so such a wait ends on every executor.

use super::support::{AlignedMemory, checks, lowered_instance};
use kernel_dsl::Artifact;
use kernel_dsl::Kernel;
use kernel_dsl::compiler::hir::{Constant, Instance};
use kernel_dsl::prelude::*;
use runtime::Device;
use runtime::interpreter::{
    ArgumentBytes, Binding, Check, Checks, Launch, Options, Outcome, Preemption, Program, Report, Schedule,
};
use runtime::testing::{Bound, Case, Checker, Expected, Input, KernelSpec, Random};

/// The number of flags, and of elements that blocks exchange.
const N: usize = 64;

/// A reference in plain Rust.
type ReferenceFunction = fn(&Instance, &[Input]) -> Vec<Expected>;

/// The largest number of blocks that are sure to be resident at once.
const RESIDENT: u32 = 16;

/// Passes a number from the last block to the first.
#[kernel(block = 32, grid = y.len(), instances(FENCED = true | false))]
#[requires(flags.len() == 64, sent.len() == 64, y.len() <= 32)]
fn passes_to_the_first<const FENCED: bool>(flags: &mut [u32], sent: &mut [f32], y: &mut [f32]) {
    let b = block::x();
    if thread::x() == 0 {
        let mut number = b as f32;
        if b + 1 == y.len() {
            sent[0] = 0.5;
            if FENCED {
                fence::grid();
            }
            flags.exchange(0, 1);
        } else if b == 0 {
            while flags.fetch_or(0, 0) == 0 {}
            if FENCED {
                fence::grid();
            }
            number = sent[0];
        }
        y[b] = number;
    }
}

/// Takes the number of the next block, several times, with a barrier of all blocks in memory.
#[kernel(block = 64, grid = y.len())]
#[requires(flags.len() == 64, sent.len() == 64, y.len() <= 32)]
fn meets_in_memory(flags: &mut [u32], sent: &mut [f32], y: &mut [f32]) {
    let (b, n) = (block::x(), y.len());
    let next = if b + 1 == n { 0 } else { b + 1 };
    if thread::x() == 32 {
        sent[b] = b as f32;
    }
    for round in rolled(1..6) {
        block::sync();
        if thread::x() == 0 {
            fence::grid();
            flags.fetch_add(0, 1);
            while flags.fetch_or(0, 0) < (round * n) as u32 {}
            fence::grid();
        }
        block::sync();
        let (from, to) = if round % 2 == 1 { (0, 32) } else { (32, 0) };
        if thread::x() == 32 {
            sent[to + b] = 2.0 * sent[from + next] + 1.0;
        }
    }
    if thread::x() == 32 {
        y[b] = sent[32 + b];
    }
}

/// Adds up the blocks' numbers from the last block to the first. If not `FREE`, the last block
/// waits for the first.
#[kernel(block = 32, grid = y.len(), instances(FREE = true | false))]
#[requires(flags.len() == 64, sent.len() == 64, y.len() <= 32)]
fn ring<const FREE: bool>(flags: &mut [u32], sent: &mut [f32], y: &mut [f32]) {
    let b = block::x();
    let next = if b + 1 == y.len() { 0 } else { b + 1 };
    if thread::x() == 0 {
        let mut sum = b as f32;
        if next != 0 || !FREE {
            while flags.fetch_or(next, 0) == 0 {}
            fence::grid();
            sum += sent[next];
        }
        sent[b] = sum;
        fence::grid();
        flags.exchange(b, 1);
        y[b] = sum;
    }
}

/// Waits as `ring` does, with a barrier of the block in the loop.
#[kernel(block = 64, grid = y.len(), instances(FREE = true | false))]
#[requires(flags.len() == 64, sent.len() == 64, y.len() <= 32)]
fn ring_of_whole_blocks<const FREE: bool>(flags: &mut [u32], sent: &mut [f32], y: &mut [f32]) {
    let mut seen = Shared::<u32, 1>::new([1]);
    let b = block::x();
    let next = if b + 1 == y.len() { 0 } else { b + 1 };
    let mut waits = next != 0 || !FREE;
    while waits {
        block::sync();
        if thread::x() == 0 {
            seen[0] = flags.fetch_or(next, 0);
            fence::grid();
        }
        block::sync();
        waits = seen[0] == 0;
    }
    if thread::x() == 32 {
        let mut sum = b as f32;
        if next != 0 || !FREE {
            sum += sent[next];
        }
        sent[b] = sum;
        fence::grid();
        flags.exchange(b, 1);
        y[b] = sum;
    }
}

/// Waits as `ring` does, and counts the polls, so that no state repeats.
#[kernel(block = 32, grid = y.len(), instances(FREE = true | false))]
#[requires(flags.len() == 64, sent.len() == 64, y.len() <= 32)]
fn ring_that_counts<const FREE: bool>(flags: &mut [u32], sent: &mut [f32], y: &mut [f32]) {
    let b = block::x();
    let next = if b + 1 == y.len() { 0 } else { b + 1 };
    if thread::x() == 0 {
        let (mut sum, mut polls) = (b as f32, 1u32);
        if next != 0 || !FREE {
            while flags.fetch_or(next, 0) == 0 {
                polls = polls.wrapping_add(1);
            }
            fence::grid();
            sum += sent[next];
        }
        sent[b] = if polls == 0 { 0.0 } else { sum };
        fence::grid();
        flags.exchange(b, 1);
        y[b] = sum;
    }
}

/// Waits as `ring` does, by loads.
#[kernel(block = 32, grid = y.len(), instances(FREE = true | false))]
#[requires(flags.len() == 64, sent.len() == 64, y.len() <= 32)]
fn ring_of_loads<const FREE: bool>(flags: &mut [u32], sent: &mut [f32], y: &mut [f32]) {
    let b = block::x();
    let next = if b + 1 == y.len() { 0 } else { b + 1 };
    if thread::x() == 0 {
        let mut sum = b as f32;
        if next != 0 || !FREE {
            while flags.load_acquire(next) == 0 {}
            sum += sent[next];
        }
        sent[b] = sum;
        flags.store_release(b, 1);
        y[b] = sum;
    }
}

/// Waits as `ring` does, where lanes that do not wait continue.
#[kernel(target = sm_70, block = 32, grid = y.len(), instances(FREE = true | false))]
#[requires(flags.len() == 64, sent.len() == 64, y.len() <= 32)]
fn ring_on_volta<const FREE: bool>(flags: &mut [u32], sent: &mut [f32], y: &mut [f32]) {
    let b = block::x();
    let next = if b + 1 == y.len() { 0 } else { b + 1 };
    if thread::x() == 3 {
        let mut sum = b as f32;
        if next != 0 || !FREE {
            while flags.fetch_or(next, 0) == 0 {}
            fence::grid();
            sum += sent[next];
        }
        sent[b] = sum;
        fence::grid();
        flags.exchange(b, 1);
        y[b] = sum;
    }
}

/// Waits for a later block in blocks of 1024 threads.
#[kernel(block = 1024, grid = y.len())]
#[requires(flags.len() == 64, sent.len() == 64, y.len() <= 32)]
fn large_blocks(flags: &mut [u32], sent: &mut [f32], y: &mut [f32]) {
    let b = block::x();
    if thread::x() == 0 {
        if b + 1 == y.len() {
            flags.exchange(0, 1);
        } else {
            while flags.fetch_or(0, 0) == 0 {}
        }
        y[b] = sent[b];
    }
}

/// Computes a NaN in the first block before that block waits, and stores the NaN afterwards.
#[kernel(block = 32, grid = y.len())]
#[requires(flags.len() == 64, sent.len() == 64, y.len() <= 32)]
fn nan_across_a_wait(flags: &mut [u32], sent: &mut [f32], y: &mut [f32]) {
    let b = block::x();
    let root = (sent[b] - if b == 0 { 1.0 } else { 0.0 }).sqrt();
    if thread::x() == 0 {
        if b == 0 {
            while flags.fetch_or(0, 0) == 0 {}
        } else if b + 1 == y.len() {
            flags.exchange(0, 1);
        }
        y[b] = root;
    }
}

/// Repeats a loop that does not poll, in a kernel with atomic operations.
#[kernel(block = 32, grid = y.len())]
#[requires(flags.len() == 64, sent.len() == 64, y.len() <= 32)]
fn stands_alone(flags: &mut [u32], sent: &mut [f32], y: &mut [f32]) {
    let mut i = 0;
    while i < 8 {
        if sent[i] != 0.0 {
            i += 1;
        }
    }
    if thread::x() == 0 {
        flags.fetch_add(0, 1);
        y[block::x()] = 1.0;
    }
}

/// Returns the kernels whose waits end, each with its constant.
fn kernels() -> Vec<(&'static Artifact, Option<bool>)> {
    vec![
        (passes_to_the_first::<true>::ARTIFACT, Some(true)),
        (meets_in_memory::ARTIFACT, None),
        (ring::<true>::ARTIFACT, Some(true)),
        (ring_of_whole_blocks::<true>::ARTIFACT, Some(true)),
        (ring_that_counts::<true>::ARTIFACT, Some(true)),
        (ring_of_loads::<true>::ARTIFACT, Some(true)),
        (ring_on_volta::<true>::ARTIFACT, Some(true)),
    ]
}

fn instance(constant: Option<bool>) -> Instance {
    Instance(constant.map(Constant::Bool).into_iter().collect())
}

/// Returns what the kernel stores to `y` in a launch of `blocks` blocks.
fn expected(kernel: &str, blocks: usize) -> Vec<f64> {
    let numbers: Vec<f64> = (0..blocks).map(|b| b as f64).collect();
    match kernel {
        "passes_to_the_first" => (0..blocks).map(|b| if b == 0 && blocks > 1 { 0.5 } else { b as f64 }).collect(),
        "meets_in_memory" => (0..blocks).map(|b| 32.0 * numbers[(b + 5) % blocks] + 31.0).collect(),
        _ => (0..blocks).map(|b| numbers[b..].iter().sum()).collect(),
    }
}

/// Runs a kernel on `blocks` blocks and zeros. Returns the outcome and `y`.
fn run(artifact: &Artifact, constant: Option<bool>, blocks: u32, options: Options) -> (Outcome, Vec<f32>) {
    let program = Program::decode(&lowered_instance(artifact, &instance(constant))).unwrap();
    let mut memory = [(); 3].map(|()| AlignedMemory::new(|_| 0.0));
    let outcome = program.run(launch(&mut memory, blocks, options)).unwrap();
    (outcome, memory[2].values()[..blocks as usize].to_vec())
}

fn launch(memory: &mut [AlignedMemory; 3], blocks: u32, options: Options) -> Launch<'_> {
    let extents = [N as u32, N as u32, blocks];
    let arguments = memory.iter_mut().zip(extents).map(|(memory, extent)| Binding::Memory {
        bytes: ArgumentBytes::Exclusive(&mut memory.0[..4 * extent as usize]),
        extents: vec![extent],
        strides: vec![],
    });
    Launch { grid: [blocks, 1, 1], block: None, arguments: arguments.collect(), options }
}

/// Returns the line of the only finding.
#[track_caller]
fn line_of_livelock(report: &Report) -> String {
    assert_eq!(checks(report), [Check::Livelock], "{report}");
    let place = &report.findings[0].place;
    let source = &report.sources[place.source];
    source.text[(place.line - source.line) as usize].trim().to_string()
}

#[test]
fn blocks_of_a_small_launch_may_wait_for_later_blocks() {
    let orders = [Schedule::InOrder, Schedule::Reversed, Schedule::Seeded(3)];
    let interleaved = [1, 2].map(|seed| Schedule::Preempted(Preemption::random(seed, 50)));
    for (artifact, constant) in kernels() {
        for blocks in [2, 4, RESIDENT] {
            let expected = expected(artifact.name, blocks as usize);
            for schedule in orders.into_iter().chain(interleaved) {
                for tier in [Checks::Values, Checks::Accesses, Checks::All] {
                    let options = Options { checks: tier, schedule, ..Options::default() };
                    let (outcome, y) = run(artifact, constant, blocks, options);
                    let name = format!("{} of {blocks} blocks {schedule}, {tier:?}", artifact.name);
                    assert!(outcome.report.findings.is_empty(), "{name}: {}", outcome.report);
                    assert_eq!(y.iter().map(|y| f64::from(*y)).collect::<Vec<_>>(), expected, "{name}");
                }
            }
        }
    }
}

fn cases(_: &Instance, _: &mut Random) -> Vec<Case> {
    let case = |blocks: usize| {
        let inputs = [Input::slice(&[0u32; N]), Input::slice(&[0f32; N]), Input::slice(&vec![0f32; blocks])];
        Case::new(format!("{blocks} blocks"), inputs)
    };
    [2, 4, RESIDENT as usize].map(case).into()
}

/// Checks the results on the oracle, on the PTX interpreter, and in other orders of the blocks.
#[test]
fn every_executor_agrees_on_blocks_that_wait() {
    fn reference(kernel: &str, inputs: &[Input]) -> Vec<Expected> {
        let expected = expected(kernel, inputs[2].values().len());
        let any = |argument| Expected::new(argument, vec![0.0; N], Bound::Each(vec![f64::INFINITY; N]));
        vec![any(0), any(1), Expected::new(2, expected, Bound::Exact)]
    }
    let references: [ReferenceFunction; 3] = [
        |_, inputs| reference("passes_to_the_first", inputs),
        |_, inputs| reference("meets_in_memory", inputs),
        |_, inputs| reference("ring", inputs),
    ];
    for (i, (artifact, constant)) in kernels().into_iter().enumerate() {
        let spec = KernelSpec { artifact, cases, reference: references[i.min(2)] };
        let report = Checker::new(None).check(&spec, &instance(constant), 1);
        assert!(report.passed() && report.warnings.is_empty(), "{report}");
    }
}

#[test]
fn a_deadlock_of_resident_blocks_is_a_livelock() {
    let rings = [
        (ring::<false>::ARTIFACT, "while flags.fetch_or(next, 0) == 0 {}"),
        (ring_of_whole_blocks::<false>::ARTIFACT, "while waits {"),
        (ring_that_counts::<false>::ARTIFACT, "while flags.fetch_or(next, 0) == 0 {"),
        (ring_of_loads::<false>::ARTIFACT, "while flags.load_acquire(next) == 0 {}"),
        (ring_on_volta::<false>::ARTIFACT, "while flags.fetch_or(next, 0) == 0 {}"),
    ];
    for (artifact, line) in rings {
        for checks in [Checks::Values, Checks::All] {
            let (outcome, _) = run(artifact, Some(false), 4, Options { checks, ..Options::default() });
            assert_eq!(line_of_livelock(&outcome.report), line);
            let finding = &outcome.report.findings[0];
            let (name, message) = (artifact.name, &finding.message);
            assert!(message.starts_with("a deadlock: this loop waits for element "), "{name}: {}", outcome.report);
            assert!(message.ends_with("and no thread that can still run changes it"), "{name}: {message}");
            let instructions = outcome.statistics.warp_instructions;
            assert!(instructions < 1 << 23, "{name}: found after {instructions} instructions");
        }
    }
}

#[test]
fn a_loop_without_a_poll_is_reported_before_other_blocks_run() {
    let (outcome, _) = run(stands_alone::ARTIFACT, None, 4, Options::default());
    assert_eq!(line_of_livelock(&outcome.report), "while i < 8 {");
    assert_eq!(outcome.statistics.blocks, 1);
}

#[test]
fn launches_that_may_not_be_resident_are_reported() {
    let (outcome, _) = run(ring::<true>::ARTIFACT, Some(true), RESIDENT + 1, Options::default());
    assert_eq!(line_of_livelock(&outcome.report), "while flags.fetch_or(next, 0) == 0 {}");
    assert_eq!(
        outcome.report.findings[0].message,
        "a deadlock: this loop waits for element 1 of `flags`, which is 0, and the 16 blocks that could change it \
         have not begun, and need not begin before this one ends: only up to 16 blocks of this size are sure to be \
         resident at once"
    );
    // Six multiprocessors hold one block of 1024 threads each.
    let (outcome, _) = run(large_blocks::ARTIFACT, None, 6, Options::default());
    assert!(outcome.report.findings.is_empty(), "{}", outcome.report);
    let (outcome, _) = run(large_blocks::ARTIFACT, None, 7, Options::default());
    assert_eq!(line_of_livelock(&outcome.report), "while flags.fetch_or(0, 0) == 0 {}");
    assert!(outcome.report.findings[0].message.contains("only up to 6 blocks"), "{}", outcome.report);
    // A cooperative launch holds all its blocks.
    let options = Options { cooperative: true, ..Options::default() };
    let (outcome, _) = run(large_blocks::ARTIFACT, None, 7, options);
    assert!(outcome.report.findings.is_empty(), "{}", outcome.report);
}

#[test]
fn races_of_waiting_blocks_are_reported() {
    for schedule in [Schedule::InOrder, Schedule::Reversed] {
        let options = Options { schedule, ..Options::default() };
        let (outcome, _) = run(passes_to_the_first::<false>::ARTIFACT, Some(false), 4, options);
        assert_eq!(checks(&outcome.report), [Check::GlobalRace], "{schedule}: {}", outcome.report);
    }
}

#[test]
fn values_are_followed_across_a_wait() {
    let (outcome, y) = run(nan_across_a_wait::ARTIFACT, None, 4, Options::default());
    assert!(y[0].is_nan());
    assert_eq!(checks(&outcome.report), [Check::NanProduced], "{}", outcome.report);
    let finding = &outcome.report.findings[0];
    assert_eq!(finding.produced.as_ref().expect("an operation").operation, "`(-1.0).sqrt()`");
    assert_eq!((finding.thread.block, finding.thread.thread), ([0; 3], [0; 3]));
}

#[test]
fn the_cpu_device_runs_blocks_that_wait() -> runtime::Result<()> {
    let device = Device::cpu();
    let (mut flags, mut sent) = (device.zeros::<u32>(N)?, device.zeros::<f32>(N)?);
    let mut y = device.alloc::<f32>(4)?;
    ring::<true>::launch(&device, &mut flags, &mut sent, &mut y)?;
    assert_eq!(y.download()?, [6.0, 6.0, 5.0, 3.0]);
    Ok(())
}

/// Traces and profiles launches whose blocks wait.
#[test]
fn launches_with_waits_are_observed() {
    let program = Program::decode(&lowered_instance(ring::<true>::ARTIFACT, &instance(Some(true)))).unwrap();
    let mut memory = [(); 3].map(|()| AlignedMemory::new(|_| 0.0));
    let (outcome, trace) = program.trace(launch(&mut memory, 4, Options::default()), [0; 3], [0; 3], 1 << 20).unwrap();
    assert!(outcome.report.findings.is_empty(), "{}", outcome.report);
    assert!(trace.to_string().contains("sum = 6.0"), "{trace}");
    let mut memory = [(); 3].map(|()| AlignedMemory::new(|_| 0.0));
    let (outcome, _) = program.profile(launch(&mut memory, 4, Options::default())).unwrap();
    assert!(outcome.report.findings.is_empty(), "{}", outcome.report);
    assert_eq!(memory[2].values()[..4], [6.0, 6.0, 5.0, 3.0]);
}
