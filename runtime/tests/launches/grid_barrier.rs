//! Tests of the barrier of all blocks, on every executor against plain Rust, and of the reports of
//! its misuse.

use kernel_dsl::Kernel;
use kernel_dsl::compiler::hir::Instance;
use kernel_dsl::prelude::*;
use runtime::interpreter::Options;
use runtime::testing::{
    self, Bound, Case, Checker, Expected, Input, KernelSpec, PreparedInstance, Profiler, TracedThread,
};
use runtime::{Device, DeviceBuffer, Error};

/// Replaces each element by 1 plus its sum with a neighbor in the next block, `iterations` times.
/// Blocks and the grid have three dimensions.
#[kernel(cooperative, block = (8, 2, 4), grid = (2, 3, 2))]
#[requires(x.len() == 12 * 64, y.len() == x.len())]
fn passed_on(iterations: u32, x: &mut [u32], y: &mut [u32]) {
    let block = block::x() + 2 * (block::y() + 3 * block::z());
    let (i, next) = (block * 64 + thread::index(), (block + 1) % 12 * 64 + 63 - thread::index());
    for _ in 0..iterations {
        y[i] = x[next].wrapping_add(x[i]).wrapping_add(1);
        grid::sync();
        x[i] = y[next];
        grid::sync();
    }
}

/// Sums `x` in every block, with a block size that the launch chooses.
#[kernel(cooperative, block = 32..=256, grid = sums.len())]
#[requires(total.len() == sums.len())]
fn total_in_each_block(x: &[u32], sums: &mut [u32], total: &mut [u32]) {
    let mut own = 0u32;
    for i in grid::stride(x.len()) {
        own = own.wrapping_add(x[i]);
    }
    let own = block::reduce(own, |a, b| a.wrapping_add(b));
    if thread::x() == 0 {
        sums[block::x()] = own;
    }
    grid::sync();
    if thread::x() == 0 {
        let mut all = 0u32;
        for k in 0..sums.len() {
            all = all.wrapping_add(sums[k]);
        }
        total[block::x()] = all;
    }
}

/// Exchanges values between blocks without a barrier.
#[kernel(cooperative, block = 32, grid = 2)]
#[requires(x.len() == 64, y.len() == 64)]
fn without_barrier(x: &mut [u32], y: &mut [u32]) {
    x[grid::index()] = 1;
    fence::grid();
    y[grid::index()] = x[63 - grid::index()];
}

/// Ends the warps early that the data of `ends` selects, so that the compiler cannot predict them.
#[kernel(cooperative, block = 64, grid = ends.len() / 2)]
#[requires(y.len() == ends.len() * 32)]
fn early_end(ends: &[u32], y: &mut [u32]) {
    if ends[2 * block::x() + warp::index()] == 1 {
        return;
    }
    grid::sync();
    y[grid::index()] = 1;
}

/// Ends the threads early that the data of `ends` selects.
#[kernel(cooperative, block = 64, grid = ends.len() / 64)]
#[requires(y.len() == ends.len())]
fn early_end_of_lanes(ends: &[u32], y: &mut [u32]) {
    if ends[grid::index()] == 1 {
        return;
    }
    grid::sync();
    y[grid::index()] = 1;
}

/// Makes blocks wait at different places.
#[kernel(cooperative, block = 32, grid = which.len())]
#[requires(y.len() == which.len() * 32)]
fn two_places(which: &[u32], y: &mut [u32]) {
    if which[block::x()] == 1 {
        grid::sync();
        y[grid::index()] = 1;
    } else {
        grid::sync();
        y[grid::index()] = 2;
    }
}

/// Makes the warps of a block wait at different barriers.
#[kernel(cooperative, block = 64, grid = 1)]
#[requires(which.len() == 2, y.len() == 64)]
fn two_barriers(which: &[u32], y: &mut [u32]) {
    if which[warp::index()] == 1 {
        grid::sync();
        y[grid::index()] = 1;
    } else {
        block::sync();
        y[grid::index()] = 2;
    }
}

/// Divides by x, and adds 1 to the quotient in a thread of the other block.
#[kernel(cooperative, block = 32, grid = 2)]
#[requires(x.len() == 64, y.len() == 64, z.len() == 64)]
fn quotients(x: &[f32], y: &mut [f32], z: &mut [f32]) {
    let mut tile = Shared::<f32, 1>::new([32]);
    tile[thread::x()] = 0.0 / x[grid::index()];
    grid::sync();
    y[grid::index()] = tile[31 - thread::x()];
    grid::sync();
    z[grid::index()] = y[63 - grid::index()] + 1.0;
}

fn prepared<K: Kernel>() -> PreparedInstance {
    PreparedInstance::compile(K::ARTIFACT, &Instance(K::CONSTANTS.to_vec())).unwrap()
}

fn agree<K: Kernel>(checker: &Checker, case: Case, expected: Vec<Expected>) {
    let result = checker.case(&prepared::<K>(), &case, |_| expected.clone());
    assert!(result.is_ok(), "{}: {}", case.name, result.unwrap_err());
}

/// Runs kernels with correct barriers.
fn barriers(checker: &Checker) {
    let start: Vec<u32> = (0..12 * 64u32).map(|i| i.wrapping_mul(2_654_435_761)).collect();
    for iterations in [0u32, 1, 5] {
        let (mut x, mut y) = (start.clone(), vec![0u32; 12 * 64]);
        let next = |i: usize| (i / 64 + 1) % 12 * 64 + 63 - i % 64;
        for _ in 0..iterations {
            y = (0..x.len()).map(|i| x[next(i)].wrapping_add(x[i]).wrapping_add(1)).collect();
            x = (0..x.len()).map(|i| y[next(i)]).collect();
        }
        let inputs = [Input::scalar(iterations), Input::slice(&start), Input::slice(&vec![0u32; 12 * 64])];
        let case = Case::new(format!("{iterations} iterations"), inputs);
        agree::<passed_on>(checker, case, vec![Expected::exact(1, x), Expected::exact(2, y)]);
    }
    for (blocks, threads) in [(1, 32), (7, 96), (16, 256)] {
        let x = &start[..500];
        let of = |block: usize| {
            let own = (0..x.len()).filter(|i| i % (blocks * threads) / threads == block);
            own.fold(0u32, |sum, i| sum.wrapping_add(x[i]))
        };
        let sums: Vec<u32> = (0..blocks).map(of).collect();
        let total = sums.iter().fold(0u32, |sum, x| sum.wrapping_add(*x));
        let inputs = [Input::slice(x), Input::slice(&vec![0u32; blocks]), Input::slice(&vec![0u32; blocks])];
        let case = Case { block: Some(threads), ..Case::new(format!("{blocks} blocks"), inputs) };
        agree::<total_in_each_block>(
            checker,
            case,
            vec![Expected::exact(1, sums), Expected::exact(2, vec![total; blocks])],
        );
    }
}

#[test]
fn all_executors_agree() {
    barriers(&Checker::new(None));
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_agrees_on_the_barrier() {
    barriers(&Checker::new(Some(Device::cuda(0).expect("an NVIDIA GPU is present"))));
}

/// A launch with an input and an output.
type Launched = fn(&Device, &DeviceBuffer<u32>, &mut DeviceBuffer<u32>) -> Result<(), Error>;

/// Returns the report of a faulty launch on the CPU, whose output has `len` elements.
fn report(launch: Launched, x: &[u32], len: usize) -> String {
    let device = Device::cpu();
    let (x, mut y) = (device.upload(x).unwrap(), device.zeros::<u32>(len).unwrap());
    let error = launch(&device, &x, &mut y).expect_err("the kernel is faulty");
    assert!(matches!(error, Error::Violation(_)), "{error}");
    error.to_string()
}

#[track_caller]
fn assert_reports(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "no `{part}` in:\n{text}");
    }
}

#[test]
fn a_missing_barrier_is_a_race() {
    let device = Device::cpu();
    let (mut x, mut y) = (device.zeros::<u32>(64).unwrap(), device.zeros::<u32>(64).unwrap());
    let error = without_barrier::launch(&device, &mut x, &mut y).expect_err("blocks race").to_string();
    assert_reports(&error, &["error[global-race]", "`x`"]);
}

/// Checks the first thread of a block, which would signal the other blocks on a GPU, and another.
#[test]
fn a_thread_that_ends_early_is_reported() {
    for thread in [64, 75] {
        let mut ends = vec![0; 128];
        ends[thread] = 1;
        let text = report(|d, x, y| early_end_of_lanes::launch(d, x, y), &ends, 128);
        let lane = thread % 32;
        let other = format!("thread [{lane}, 0, 0] of block [1, 0, 0] (warp 0, lane {lane}) has ended");
        let message = "error[divergent-barrier]: `grid::sync()` is reached by 31 of the 32 lanes of a warp";
        assert_reports(&text, &[message, &other]);
    }
}

#[test]
fn a_block_that_ends_early_is_a_deadlock() {
    let text = report(|d, x, y| early_end::launch(d, x, y), &[0, 0, 1, 1, 0, 0], 3 * 64);
    assert_reports(
        &text,
        &[
            "error[divergent-barrier]",
            "a deadlock: a block has ended without reaching a `grid::sync()` that others wait at",
            "grid::sync();",
            "block [1, 0, 0] (warp 0, lane 0) has ended",
        ],
    );
    let text = report(|d, x, y| early_end::launch(d, x, y), &[0, 0, 0, 1, 0, 0], 3 * 64);
    assert_reports(&text, &["a warp has ended without reaching a `grid::sync()` that others wait at"]);
}

#[test]
fn different_barriers_are_reported() {
    let text = report(|d, x, y| two_places::launch(d, x, y), &[0, 1, 0], 3 * 32);
    assert_reports(&text, &["error[divergent-barrier]", "the blocks of the grid wait at different `grid::sync()`s"]);
    let text = report(|d, x, y| two_barriers::launch(d, x, y), &[0, 1], 64);
    assert_reports(&text, &["wait at different barriers, `", "`grid::sync()`", "`block::sync()`"]);
}

#[test]
fn launches_beyond_residency_are_rejected() {
    let device = Device::cpu();
    let x = device.upload(&[1u32; 8]).unwrap();
    let (mut sums, mut total) = (device.zeros::<u32>(1025).unwrap(), device.zeros::<u32>(1025).unwrap());
    let error = total_in_each_block::launch(&device, 32, &x, &mut sums, &mut total).unwrap_err().to_string();
    assert_reports(
        &error,
        &["a cooperative launch of 1025 blocks, and the CPU device holds 1024 at once", "launch fewer blocks"],
    );
}

#[test]
fn graphs_refuse_cooperative_launches() {
    let device = Device::cpu();
    let (mut x, mut y) = (device.zeros::<u32>(64).unwrap(), device.zeros::<u32>(64).unwrap());
    let recording = device.record();
    let (x, y) = (recording.lend(&mut x).unwrap(), recording.lend(&mut y).unwrap());
    let error = recording.add(without_barrier::call(x, y)).unwrap_err().to_string();
    assert_reports(&error, &["the kernel is cooperative, and a graph holds no cooperative launches"]);
}

/// Returns the case of `quotients`: x is 1 except for one element.
fn division() -> Case {
    let mut x = [1f32; 64];
    x[40] = 0.0;
    Case::new("a division by zero", [Input::slice(&x), Input::slice(&[0f32; 64]), Input::slice(&[0f32; 64])])
}

#[test]
fn origins_of_nans_pass_the_barrier() {
    let expected = |i: usize, value: f64| {
        let mut all = vec![value; 64];
        all[i] = f64::NAN;
        all
    };
    // Element 40 of x is that of thread 8 of block 1, and thread 23 stores its quotient.
    let [y, z] = [Expected::new(1, expected(55, 0.0), Bound::Exact), Expected::new(2, expected(8, 1.0), Bound::Exact)];
    agree::<quotients>(&Checker::new(None), division(), vec![y, z]);
    let spec = KernelSpec { artifact: quotients::ARTIFACT, cases: |_, _| vec![division()], reference: |_, _| vec![] };
    let report = Checker::new(None).check(&spec, &Instance(quotients::CONSTANTS.to_vec()), 1);
    let warnings: Vec<_> = report.warnings.iter().map(ToString::to_string).collect();
    assert_reports(&warnings.join("\n"), &["0.0 / x[grid::index()]"]);
}

#[test]
fn traces_and_profiles_follow_the_barrier() {
    let (artifact, instance) = (quotients::ARTIFACT, Instance(quotients::CONSTANTS.to_vec()));
    let thread = TracedThread { block: [1, 0, 0], thread: [23, 0, 0], limit: 100 };
    let (_, trace) = testing::trace(artifact, &instance, &division(), thread, Options::default()).unwrap();
    let events: Vec<_> = trace.lines.iter().flat_map(|line| &line.events).map(ToString::to_string).collect();
    assert_eq!(events.iter().filter(|event| *event == "the grid's barrier").count(), 2, "{events:?}");
    let profiler = Profiler::new(artifact, &instance, artifact.target).unwrap();
    let (outcome, profile) = profiler.run(&division()).unwrap().expect("the grid has blocks");
    assert_eq!((outcome.statistics.blocks, profile.float_operations), (2, 2 * 64));
}
