//! Tests of kernels whose block size the launch decides.
//!
//! Each runs on each executor in blocks of several sizes. The results are compared with the same
//! kernel compiled by rustc, and with a kernel of one fixed block size.

use super::support::{agree_case, assemble, checker};
use kernel_dsl::compiler::hir::Instance;
use kernel_dsl::prelude::*;
use kernel_dsl::{Kernel, host};
use runtime::testing::{Bound, Case, Checker, Expected, Input, KernelSpec, Random};
use runtime::{Device, Error};

/// Declares a function, the same kernel for blocks of any size, and the same kernel for blocks of
/// one size.
macro_rules! witnessed {
    ($name:ident, $fixed:ident<$n:ident>, $block:expr, $size:expr, instances($($instances:tt)*), [$($condition:tt)*], ($($parameters:tt)*) $body:block) => {
        mod $fixed {
            use super::*;
            pub fn plain($($parameters)*) $body
            #[kernel(block = $size, grid = 2, instances($($instances)*))]
            #[requires($($condition)*)]
            pub fn $fixed<const $n: usize>($($parameters)*) $body
        }
        #[kernel(block = $block, grid = 2)]
        #[requires($($condition)*)]
        pub fn $name($($parameters)*) $body
    };
}

#[device]
fn join(a: (f32, u32), b: (f32, u32)) -> (f32, u32) {
    if b.0 > a.0 || (b.0 == a.0 && b.1 < a.1) { b } else { a }
}

/// Composes maps v ↦ m · v + c, first a, then b: associative, and not commutative.
#[device]
fn compose(a: (u32, u32), b: (u32, u32)) -> (u32, u32) {
    (b.0.wrapping_mul(a.0), b.0.wrapping_mul(a.1).wrapping_add(b.1))
}

witnessed! {
    together, together_fixed<N>, 32..=1024, N, instances(N = 32 | 96 | 160 | 1024),
    [x.len() == 2 * block::threads(), floats.len() == 7 * x.len(), whole.len() == 8 * x.len()],
    (x: &[f32], mut floats: ViewMut<f32, 1>, mut whole: ViewMut<u32, 1>) {
        let i = grid::index();
        let mut v = x[i];
        for _ in rolled(0..2) {
            let (best, place) = block::reduce((v, i as u32), join);
            let sums = block::reduce([v, 0.5], |a, b| [a[0] + b[0], a[1] + b[1]]);
            let (floor, total) = block::scan(v, 0.0, |a, b| a + b);
            let (map, all) = block::scan((v as u32 | 1, i as u32), (1, 0), compose);
            let composed = block::reduce((v as u32 | 1, i as u32), compose);
            let there = block::broadcast((v, i), block::threads() - 7);
            let parts = [block::sum(v), block::max(v), block::min(-v), best, sums[0] + sums[1], floor, total];
            for k in unroll(0..7) {
                floats[7 * i + k] = parts[k];
            }
            let counts = [
                place,
                map.1,
                all.1.wrapping_mul(2) + (composed.0 == all.0 && composed.1 == all.1) as u32,
                there.1 as u32 + there.0 as u32,
                block::count(v > 100.0) as u32,
                block::all(v > 1.0) as u32 * 2 + block::any(v > 280.0) as u32,
                (warp::index() * 1000 + warp::count() * 50 + warp::lane()) as u32,
                (warp::group::<8>().index() + block::dim_x() + grid::threads()) as u32,
            ];
            for k in unroll(0..8) {
                whole[8 * i + k] = counts[k];
            }
            v += 0.25;
        }
    }
}

witnessed! {
    planes, planes_fixed<N>, (4, 8, 1..=7), (4, 8, N), instances(N = 1 | 5),
    [x.len() == 2 * block::threads(), floats.len() == 2 * x.len(), whole.len() == 3 * x.len()],
    (x: &[f32], mut floats: ViewMut<f32, 1>, mut whole: ViewMut<u32, 1>) {
        let i = grid::index();
        // A plane of the tile belongs to one warp.
        if warp::index() == 0 {
            floats[2 * i] = warp::sum(x[i]);
        } else {
            floats[2 * i] = warp::max(x[i]);
        }
        floats[2 * i + 1] = block::scan(x[i], 0.0, |a, b| a + b).0;
        whole[3 * i] = (thread::x() + 10 * thread::y() + 100 * thread::z()) as u32;
        whole[3 * i + 1] = (block::dim_z() * block::dim_y() + warp::group::<4>().lane()) as u32;
        whole[3 * i + 2] = block::count(thread::z() > 0) as u32;
    }
}

witnessed! {
    shares, shares_fixed<N>, (24..=200).step_by(8), N, instances(N = 24 | 104),
    [from.rows() == 20, from.cols() == 35, floats.len() == 2 * 700, whole.len() == 2 * 700],
    (from: View<f32, 2>, mut floats: ViewMut<f32, 1>, mut whole: ViewMut<u32, 1>) {
        let tile = Shared::<f32, 2>::padded([20, 33]);
        let ahead = Shared::<f32, 2>::new([7, 9]);
        let coming = ahead.copy_async(from.offset((3, 30)));
        tile.fill(2.0);
        block::sync();
        tile.copy_from(from.offset((2, 4)));
        coming.wait();
        block::sync();
        if block::x() == 0 {
            for [r, c] in block::share([20, 33]) {
                floats[r * 33 + c] = tile[(r, c)] + ahead[(r % 7, c % 9)];
            }
            for i in block::stride(700) {
                whole[i] = i as u32;
            }
        }
        for i in grid::stride(700) {
            whole[700 + i] = (i / block::threads()) as u32;
            floats[700 + i] = from[(i / 35, i % 35)];
        }
    }
}

/// Outputs of a launch.
type Outputs = (Vec<f32>, Vec<u32>);

/// Runs a kernel of open block size on all executors, in blocks of this extent, and compares with
/// the expected outputs.
fn same<K: Kernel>(checker: &Checker, block: usize, x: Input, (floats, whole): &Outputs) {
    let zeros = (vec![0f32; floats.len()], vec![0u32; whole.len()]);
    let expected = [
        Expected::new(1, floats.iter().map(|v| f64::from(*v)).collect(), Bound::Exact),
        Expected::new(2, whole.iter().map(|v| f64::from(*v)).collect(), Bound::Exact),
    ];
    let inputs = [x, Input::view(&zeros.0, [floats.len()]), Input::view(&zeros.1, [whole.len()])];
    agree_case::<K>(checker, &Case::new("values", inputs).with_block(block), &expected);
}

/// Returns the outputs of the kernel as rustc compiled it.
fn plain(size: [usize; 3], sizes: [usize; 2], kernel: impl Fn(ViewMut<f32, 1>, ViewMut<u32, 1>) + Sync) -> Outputs {
    let (mut floats, mut whole) = (vec![0f32; sizes[0]], vec![0u32; sizes[1]]);
    // SAFETY: the vectors outlive the run, and nothing else accesses them meanwhile. Each thread
    // writes its own elements.
    unsafe {
        let (f, w) = (ViewMut::host(&mut floats, [sizes[0]]), ViewMut::host(&mut whole, [sizes[1]]));
        host::run([2, 1, 1], size, || kernel(f, w));
    }
    (floats, whole)
}

/// Launches `$fixed`, whose block has one size, on the CPU.
macro_rules! fixed {
    ($device:expr, $kernel:ty, $x:expr, $sizes:expr) => {{
        let device = $device;
        let (mut f, mut w) =
            (device.upload(&vec![0f32; $sizes[0]]).unwrap(), device.upload(&vec![0u32; $sizes[1]]).unwrap());
        <$kernel>::launch(device, $x, f.view_mut([$sizes[0]]).unwrap(), w.view_mut([$sizes[1]]).unwrap()).unwrap();
        (f.download().unwrap(), w.download().unwrap())
    }};
}

fn values(n: usize) -> Vec<f32> {
    let mut random = Random::new(n as u64);
    (0..n).map(|_| random.below(2000) as f32 / 7.0).collect()
}

fn all_together(checker: &Checker) {
    let device = Device::cpu();
    for threads in [32, 64, 96, 160, 224, 320] {
        let x = values(2 * threads);
        let expected = plain([threads, 1, 1], [7 * x.len(), 8 * x.len()], |f, w| together_fixed::plain(&x, f, w));
        same::<together>(checker, threads, Input::slice(&x), &expected);
    }
    macro_rules! as_fixed {
        ($($n:literal)*) => {$({
            let x = values(2 * $n);
            let expected = fixed!(&device, together_fixed::together_fixed<$n>, &device.upload(&x).unwrap(), [7 * x.len(), 8 * x.len()]);
            same::<together>(checker, $n, Input::slice(&x), &expected);
        })*};
    }
    as_fixed!(32 96 160 1024);
    assemble::<together>();
}

fn planes_and_shares(checker: &Checker) {
    let device = Device::cpu();
    for z in [1, 2, 3, 5, 7] {
        let x = values(2 * 32 * z);
        let expected = plain([4, 8, z], [2 * x.len(), 3 * x.len()], |f, w| planes_fixed::plain(&x, f, w));
        same::<planes>(checker, z, Input::slice(&x), &expected);
    }
    let x = values(2 * 32 * 5);
    let expected =
        fixed!(&device, planes_fixed::planes_fixed<5>, &device.upload(&x).unwrap(), [2 * x.len(), 3 * x.len()]);
    same::<planes>(checker, 5, Input::slice(&x), &expected);
    assemble::<planes>();
    for threads in [24, 64, 104, 200] {
        let x = values(700);
        // SAFETY: the vector outlives the run, which only reads it.
        let view = || unsafe { View::host(&x, [20, 35]) };
        let expected = plain([threads, 1, 1], [1400, 1400], |f, w| shares_fixed::plain(view(), f, w));
        same::<shares>(checker, threads, Input::view(&x, [20, 35]), &expected);
    }
    let x = values(700);
    let buffer = device.upload(&x).unwrap();
    let expected = fixed!(&device, shares_fixed::shares_fixed<104>, buffer.view([20, 35]).unwrap(), [1400, 1400]);
    same::<shares>(checker, 104, Input::view(&x, [20, 35]), &expected);
    assemble::<shares>();
}

/// Computes y[row] = Σ x[row], with one block of any size per row.
#[kernel(block = x.cols().next_multiple_of(32).clamp(32, 256), grid = x.rows())]
#[requires(y.len() == x.rows())]
pub fn row_sums(x: View<f32, 2>, y: &mut [f32]) {
    let mut sum = 0.0;
    for i in block::stride(x.cols()) {
        sum += x[(block::x(), i)];
    }
    let sum = block::sum(sum);
    if thread::index() == 0 {
        y[block::x()] = sum;
    }
}

/// Doubles one element per thread, for any block size.
#[kernel(block = 1..=1000, grid = x.len().div_ceil(block::threads()))]
#[requires(y.len() == x.len(), block::threads() % 4 == 0 || block::dim_x() < 4)]
pub fn doubled(x: &[f32], y: &mut [f32]) {
    let i = grid::index();
    if i < x.len() {
        y[i] = 2.0 * x[i];
    }
}

/// Reverses a block of whole warps, as its condition requires, with shared memory of the block's
/// size.
#[kernel(block = 1..=1000, grid = 1)]
#[requires(block::threads() % 32 == 0, x.len() == block::threads(), y.len() == x.len())]
pub fn reversed(x: &[f32], y: &mut [f32]) {
    let mut s = Shared::<f32, 1>::dynamic([x.len()]);
    let i = thread::index();
    s[i] = warp::shuffle_xor(x[i], 1);
    block::sync();
    y[i] = s[block::threads() - 1 - i];
}

fn by_argument(checker: &Checker) {
    for columns in [0usize, 1, 32, 33, 250, 1000] {
        let x: Vec<f32> = (0..3 * columns).map(|i| (i % 19) as f32).collect();
        let sums = (0..3).map(|r| x[r * columns..][..columns].iter().map(|v| f64::from(*v)).sum()).collect();
        let inputs = [Input::view(&x, [3, columns]), Input::slice(&[0f32; 3])];
        agree_case::<row_sums>(checker, &Case::new("rows", inputs), &[Expected::new(1, sums, Bound::Exact)]);
    }
    assemble::<row_sums>();
    let x = values(333);
    for threads in [1, 2, 4, 100, 1000] {
        let case = Case::new("doubled", [Input::slice(&x), Input::slice(&[0f32; 333])]).with_block(threads);
        let twice = x.iter().map(|v| f64::from(2.0 * v)).collect();
        agree_case::<doubled>(checker, &case, &[Expected::new(1, twice, Bound::Exact)]);
    }
    for threads in [32, 96, 992] {
        let x = values(threads);
        let case = Case::new("reversed", [Input::slice(&x), Input::slice(&vec![0f32; threads])]).with_block(threads);
        let back = (0..threads).map(|i| f64::from(x[(threads - 1 - i) ^ 1])).collect();
        agree_case::<reversed>(checker, &case, &[Expected::new(1, back, Bound::Exact)]);
    }
    assemble::<reversed>();
}

#[test]
fn one_ptx_text_serves_all_block_sizes() {
    let ptx = together::PTX;
    assert!(ptx.contains(".maxntid 1024, 1, 1") && !ptx.contains(".reqntid") && ptx.contains("%ntid.x"), "{ptx}");
    assert!(ptx.contains("block 32..=1024 by 32 x 1 x 1: 32 to 1024 threads"), "{ptx}");
}

#[test]
fn collectives_agree_with_blocks_of_one_size() {
    all_together(&checker(false));
}

#[test]
fn planes_copies_and_shares_agree_with_blocks_of_one_size() {
    planes_and_shares(&checker(false));
}

#[test]
fn arguments_decide_sizes() {
    by_argument(&checker(false));
}

/// Triples one element per thread, for any block size.
#[kernel(block = 32..=1024, grid = 2)]
#[requires(y.len() == x.len())]
pub fn tripled(x: &[f32], y: &mut [f32]) {
    for i in grid::stride(x.len()) {
        y[i] = 3.0 * x[i];
    }
}

/// Checks that cases without a size run in the smallest blocks, the largest, and some between.
#[test]
fn check_covers_several_sizes() {
    let cases = |_: &Instance, random: &mut Random| {
        vec![Case::new("n = 700", [Input::slice(&random.values::<f32>(700)), Input::slice(&[0f32; 700])])]
    };
    let reference = |_: &Instance, inputs: &[Input]| {
        let tripled = inputs[0].values().into_iter().map(|x| 3.0 * x).collect();
        vec![Expected::new(1, tripled, Bound::Relative(2f64.powi(-24)))]
    };
    let spec = KernelSpec { artifact: tripled::ARTIFACT, cases, reference };
    let report = checker(false).check(&spec, &Instance::default(), 1);
    assert!(report.passed(), "{report}");
    let names: Vec<_> = report.cases.iter().map(|case| case.case.as_str()).collect();
    assert_eq!(names, ["n = 700, block 32", "n = 700, block 544", "n = 700, block 1024"]);
}

#[test]
fn invalid_sizes_are_rejected() {
    let device = Device::cpu();
    let x = device.upload(&[1f32; 64]).unwrap();
    let mut y = device.upload(&[0f32; 64]).unwrap();
    let words = |outcome: Result<(), Error>| outcome.unwrap_err().to_string();
    assert!(reversed::launch(&device, 64, &x, &mut y).is_ok());
    assert_eq!(
        words(reversed::launch(&device, 48, &x, &mut y)),
        "cannot launch reversed:\n  requires `block::threads() % 32 == 0`: block::threads() is 48\n  \
         requires `x.len() == block::threads()`: x.len() is 64, block::threads() is 48"
    );
    assert_eq!(
        words(doubled::launch(&device, 1001, &x, &mut y)),
        "cannot launch doubled:\n  block: expected 1 to 1000 threads in x, given 1001"
    );
    let (mut f, mut w) = (device.upload(&[0f32; 896]).unwrap(), device.upload(&[0u32; 512]).unwrap());
    let outcome = together::launch(&device, 40, &x, f.view_mut([896]).unwrap(), w.view_mut([512]).unwrap());
    let expected = "block: expected 32 to 1024 threads in x, in steps of 32, given 40";
    assert!(words(outcome).contains(expected));
    let launched = planes::launch(&device, 8, &x, f.view_mut([896]).unwrap(), w.view_mut([512]).unwrap());
    assert!(words(launched).contains("block: expected 1 to 7 threads in z, given 8"));
}

/// Stores out of bounds in the last thread of each block.
#[kernel(block = (8, 4..=128), grid = 2)]
pub fn beyond(y: &mut [f32]) {
    let last = thread::index() + 1 == block::threads();
    y[if last { y.len() } else { thread::index() }] = 1.0;
}

#[test]
fn findings_name_thread_and_warp() {
    let device = Device::cpu();
    let mut y = device.upload(&[0f32; 1024]).unwrap();
    let text = beyond::launch(&device, 9, &mut y).unwrap_err().to_string();
    assert!(text.contains("thread [7, 8, 0] of block [0, 0, 0] (warp 2, lane 7)"), "{text}");
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_agrees_for_blocks_of_all_sizes() {
    let checker = checker(true);
    all_together(&checker);
    planes_and_shares(&checker);
    by_argument(&checker);
}
