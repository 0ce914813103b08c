//! Layouts and lifetimes of shared arrays.

use super::values::{check, wide};
use kernel_dsl::compiler::hir::Instance;
use kernel_dsl::prelude::*;
use kernel_dsl::{Kernel, host};
use runtime::Device;
use runtime::testing::{Bound, Case, Checker, Expected, Input, PreparedInstance, Random};

/// Transposes pieces of four elements: row p of y has piece p of each row of x.
#[device]
pub fn pieces_of(x: View<f32, 2>, y: ViewMut<f32, 2>) {
    let s = Shared::<f32, 2>::swizzled([32, 64]);
    for i in unroll(0..4) {
        let p = thread::x() + 128 * i;
        s.store((p / 16, p % 16 * 4), x.load::<4>((p / 16, p % 16 * 4)));
    }
    block::sync();
    for i in unroll(0..4) {
        let p = thread::x() + 128 * i;
        y.store((p / 32, p % 32 * 4), s.load::<4>((p % 32, p / 32 * 4)));
    }
}

#[kernel(block = 128, grid = 1)]
#[requires(x.rows() == 32, x.cols() == 64, y.rows() == 16, y.cols() == 128, x.aligned(4), y.aligned(4))]
pub fn pieces(x: View<f32, 2>, y: ViewMut<f32, 2>) {
    pieces_of(x, y);
}

/// Copies swizzled planes with rows of four pieces, and reads them element by element, column by
/// column.
#[device]
pub fn planes_of(x: View<f32, 3>, mut y: ViewMut<f32, 3>) {
    let s = Shared::<f32, 3>::swizzled([2, 8, 16]);
    s.copy_from(x);
    block::sync();
    let (row, col) = (thread::x() % 8, thread::x() / 8);
    for plane in 0..2 {
        y[(plane, col, row)] = s[(plane, row, col)] + s.at(plane)[(row, col)];
    }
}

#[kernel(block = 128, grid = 1)]
#[requires(y.dim(0) == 2, y.dim(1) == 16, y.dim(2) == 8)]
pub fn planes(x: View<f32, 3>, y: ViewMut<f32, 3>) {
    planes_of(x, y);
}

/// Reverses x as a whole, and each of its halves, in arrays of the launch's size.
#[device]
pub fn reversed_of(x: View<u32, 1>, mut whole: ViewMut<u32, 1>, mut halves: ViewMut<u32, 2>) {
    let n = x.len();
    let s = Shared::<u32, 1>::dynamic([n]);
    let pairs = Shared::<u32, 2>::dynamic([2, n / 2]);
    s.copy_from(x);
    for i in (thread::x()..2 * pairs.dim(1)).step_by(block::threads()) {
        pairs.store((i / (n / 2), i % (n / 2)), [x[i]]);
    }
    block::sync();
    for i in (thread::x()..s.dim(0)).step_by(block::threads()) {
        whole[i] = s[n - 1 - i];
    }
    for i in (thread::x()..n / 2).step_by(block::threads()) {
        halves[(0, i)] = pairs[(0, n / 2 - 1 - i)];
        halves[(1, i)] = pairs.at(1)[n / 2 - 1 - i];
    }
}

#[kernel(block = 64, grid = 1)]
#[requires(whole.len() == x.len(), halves.rows() == 2, halves.cols() == x.len() / 2)]
pub fn reversed(x: View<u32, 1>, whole: ViewMut<u32, 1>, halves: ViewMut<u32, 2>) {
    reversed_of(x, whole, halves);
}

/// Uses two arrays of the launch's size, one of them in a branch, and an array of constant size
/// between them.
#[device]
pub fn branched_of(x: View<u32, 1>, mut y: ViewMut<u32, 1>, turns: bool) {
    let i = thread::index();
    let mut v = x[i];
    if turns {
        let mut s = Shared::<u32, 1>::dynamic([2 * x.len() + 1]);
        s[2 * i] = v;
        block::sync();
        v = s[2 * (block::threads() - 1 - i)];
    }
    let mut own = Shared::<u32, 1>::dynamic([block::threads()]);
    own[i] = v;
    block::sync();
    y[i] = own[i ^ 1];
}

#[kernel(block = 32..=256, grid = 1)]
#[requires(x.len() == block::threads(), y.len() == x.len())]
pub fn branched(x: View<u32, 1>, y: ViewMut<u32, 1>, turns: bool) {
    branched_of(x, y, turns);
}

/// Uses a tile that lives during the call only.
#[device]
fn rotated(x: View<f32, 1>, by: usize) -> f32 {
    let mut s = Shared::<f32, 2>::new([1, 6000]);
    let i = thread::x();
    s[(0, i)] = x[i];
    block::sync();
    let v = s[(0, (i + by) % 64)];
    block::sync();
    v
}

/// Uses three arrays of at least 24,000 bytes, no two of which live at once: in branches, in
/// braces, and in a loop.
#[device]
pub fn in_turn_of(x: View<f32, 1>, mut y: ViewMut<f32, 1>, deep: u32) {
    let i = thread::x();
    let mut sum = if deep > 1 { rotated(x, 1) } else { rotated(x, 2) };
    {
        let mut own = Shared::<f32, 1>::new([9000]);
        own[i] = sum;
        block::sync();
        sum += own[63 - i];
        block::sync();
    }
    for k in 0..3 {
        let mut each = Shared::<f32, 1>::new([7000]);
        each[i] = sum;
        block::sync();
        sum += each[(i + k) % 64];
        block::sync();
    }
    let mut last = Shared::<f32, 1>::new([10_000]);
    last[i] = sum;
    block::sync();
    y[i] = last[63 - i];
}

#[kernel(block = 64, grid = 1)]
#[requires(x.len() == 64, y.len() == 64)]
pub fn in_turn(x: View<f32, 1>, y: ViewMut<f32, 1>, deep: u32) {
    in_turn_of(x, y, deep);
}

fn values(n: usize) -> Vec<f32> {
    let mut random = Random::new(n as u64);
    (0..n).map(|_| random.below(64) as f32 - 32.0).collect()
}

fn pieces_agree(gpu: Option<&Device>) {
    let x = values(32 * 64);
    let expected: Vec<f32> = (0..16 * 128).map(|i| x[i % 128 / 4 * 64 + i / 128 * 4 + i % 4]).collect();
    let inputs = vec![Input::view(&x, [32, 64]), Input::view(&vec![0f32; 16 * 128], [16, 128])];
    check(pieces::ARTIFACT, &[], gpu, inputs, vec![(1, wide(&expected))]);
    let mut y = vec![0f32; 16 * 128];
    // SAFETY: each thread writes its own elements, and the vectors outlive the run.
    unsafe {
        let (x, y) = (View::host(&x, [32, 64]), ViewMut::host(&mut y, [16, 128]));
        host::run([1, 1, 1], [128, 1, 1], || pieces_of(x, y));
    }
    assert_eq!(y, expected);
}

fn planes_agree(gpu: Option<&Device>) {
    // One column is missing, where copies give zero.
    let x = values(2 * 8 * 15);
    let at = |plane: usize, row: usize, col: usize| if col < 15 { x[(plane * 8 + row) * 15 + col] } else { 0.0 };
    let expected: Vec<f32> = (0..256).map(|i| 2.0 * at(i / 128, i % 8, i % 128 / 8)).collect();
    let inputs = vec![Input::view(&x, [2, 8, 15]), Input::view(&vec![0f32; 256], [2, 16, 8])];
    check(planes::ARTIFACT, &[], gpu, inputs, vec![(1, wide(&expected))]);
    let mut y = vec![0f32; 256];
    // SAFETY: as in `pieces_agree`.
    unsafe {
        let (x, y) = (View::host(&x, [2, 8, 15]), ViewMut::host(&mut y, [2, 16, 8]));
        host::run([1, 1, 1], [128, 1, 1], || planes_of(x, y));
    }
    assert_eq!(y, expected);
}

fn reversed_agree(gpu: Option<&Device>) {
    for n in [2usize, 6, 64, 100, 1000] {
        let x: Vec<u32> = (0..n as u32).map(|i| i * 7).collect();
        let whole: Vec<u32> = x.iter().rev().copied().collect();
        let halves: Vec<u32> = x[..n / 2].iter().rev().chain(x[n / 2..].iter().rev()).copied().collect();
        let zeros = vec![0u32; n];
        let inputs = vec![Input::view(&x, [n]), Input::view(&zeros, [n]), Input::view(&zeros, [2, n / 2])];
        let double = |v: &[u32]| v.iter().map(|x| f64::from(*x)).collect::<Vec<_>>();
        check(reversed::ARTIFACT, &[], gpu, inputs, vec![(1, double(&whole)), (2, double(&halves))]);
        let (mut left, mut right) = (zeros.clone(), zeros);
        // SAFETY: as in `pieces_agree`.
        unsafe {
            let (x, a, b) = (View::host(&x, [n]), ViewMut::host(&mut left, [n]), ViewMut::host(&mut right, [2, n / 2]));
            host::run([1, 1, 1], [64, 1, 1], || reversed_of(x, a, b));
        }
        assert_eq!((left, right), (whole, halves));
    }
}

fn in_turn_agree(gpu: Option<&Device>) {
    let x = values(64);
    for deep in [1u32, 2] {
        let by = if deep > 1 { 1 } else { 2 };
        let mut v: Vec<f32> = (0..64).map(|i| x[(i + by) % 64]).collect();
        v = (0..64).map(|i| v[i] + v[63 - i]).collect();
        for k in 0..3 {
            v = (0..64).map(|i| v[i] + v[(i + k) % 64]).collect();
        }
        v.reverse();
        let inputs = vec![Input::view(&x, [64]), Input::view(&vec![0f32; 64], [64]), Input::scalar(deep)];
        check(in_turn::ARTIFACT, &[], gpu, inputs, vec![(1, wide(&v))]);
        let mut y = vec![0f32; 64];
        // SAFETY: as in `pieces_agree`.
        unsafe {
            let (x, y) = (View::host(&x, [64]), ViewMut::host(&mut y, [64]));
            host::run([1, 1, 1], [64, 1, 1], || in_turn_of(x, y, deep));
        }
        assert_eq!(y, v);
    }
}

fn branched_agrees(gpu: Option<&Device>) {
    for n in [32usize, 96, 256] {
        let x: Vec<u32> = (0..n as u32).map(|i| i * 7 + 3).collect();
        for turns in [false, true] {
            let at = |i: usize| x[if turns { n - 1 - i } else { i }];
            let expected: Vec<u32> = (0..n).map(|i| at(i ^ 1)).collect();
            let inputs = [Input::view(&x, [n]), Input::view(&vec![0u32; n], [n]), Input::scalar(turns)];
            let prepared = PreparedInstance::compile(branched::ARTIFACT, &Instance::default()).unwrap();
            let case = Case::new("branched", inputs).with_block(n);
            let values = expected.iter().map(|v| f64::from(*v)).collect();
            let outcome =
                Checker::new(gpu.cloned()).case(&prepared, &case, |_| vec![Expected::new(1, values, Bound::Exact)]);
            assert_eq!(outcome, Ok(()));
            let mut y = vec![0u32; n];
            // SAFETY: each thread writes its own elements, and the vectors outlive the run.
            unsafe {
                let (x, y) = (View::host(&x, [n]), ViewMut::host(&mut y, [n]));
                host::run([1, 1, 1], [n, 1, 1], || branched_of(x, y, turns));
            }
            assert_eq!(y, expected);
        }
    }
}

agreements! {
    dynamic_arrays_in_branches gpu_dynamic_arrays_in_branches branched_agrees
    swizzled_pieces gpu_swizzled_pieces pieces_agree
    swizzled_planes gpu_swizzled_planes planes_agree
    arrays_of_the_launchs_size gpu_arrays_of_the_launchs_size reversed_agree
    arrays_take_turns gpu_arrays_take_turns in_turn_agree
}

#[test]
fn ptx_of_layouts_is_as_accepted() {
    insta::assert_snapshot!("swizzled", pieces::PTX);
    insta::assert_snapshot!("dynamic", reversed::PTX);
    let ptx = in_turn::PTX;
    assert!(ptx.contains("shared memory, 40000 bytes"), "{ptx}");
    [pieces::ARTIFACT, planes::ARTIFACT, reversed::ARTIFACT, in_turn::ARTIFACT]
        .into_iter()
        .for_each(super::every_target::assemble);
}

/// Launches `reversed` on arrays of `n` elements, and returns the error.
fn launched(n: usize) -> Result<(), String> {
    let device = Device::cpu();
    let x = device.upload(&vec![1u32; n]).unwrap();
    let (mut whole, mut halves) = (device.upload(&vec![0u32; n]).unwrap(), device.upload(&vec![0u32; n]).unwrap());
    let (x, mut a, mut b) = (x.view([n]).unwrap(), whole.view_mut([n]).unwrap(), halves.view_mut([2, n / 2]).unwrap());
    reversed::launch(&device, x, &mut a, &mut b).map_err(|e| e.to_string())
}

#[test]
fn excessive_shared_memory_is_rejected() {
    assert_eq!(launched(6000), Ok(()));
    let message = launched(7000).unwrap_err();
    let expected = "the block needs more than 49152 bytes of shared memory: `s` of 7000 elements 28000, `pairs` of 2 × 3500 elements 28000";
    assert!(message.contains(expected), "{message}");
}
