//! Tests of features that differ by target, and of fences.

use super::support::{agree, assemble, checker};
use kernel_dsl::compiler::hir::Instance;
use kernel_dsl::compiler::{Target, compile, lower};
use kernel_dsl::prelude::*;
use kernel_dsl::{Artifact, Kernel, host};
use runtime::Device;
use runtime::testing::{Bound, Case, Checker, Expected, Input, PreparedInstance, Random};

/// Stores the lanes with the same value as a lane, and the number of the target.
#[kernel(block = 64, grid = 1)]
#[requires(x.len() == 64, wide.len() == 64, out.len() == 128, sm.len() == 1)]
pub fn peers(x: &[u32], wide: &[f64], out: &mut [u32], sm: &mut [u32]) {
    let i = thread::index();
    out[i] = same(x[i]);
    out[64 + i] = if target::SM < 70 { same(wide[i] as u32) } else { warp::match_any(wide[i]) };
    if i == 0 {
        sm[0] = target::SM;
    }
}

/// Stores the lanes with the same value, with one instruction.
#[kernel(target = sm_70, block = 64, grid = 1)]
#[requires(x.len() == 64, wide.len() == 64, out.len() == 128, sm.len() == 1)]
pub fn matched(x: &[u32], wide: &[f64], out: &mut [u32], sm: &mut [u32]) {
    let i = thread::index();
    out[i] = warp::match_any(x[i]);
    out[64 + i] = warp::match_any(wide[i]);
    if i == 0 {
        sm[0] = target::SM;
    }
}

#[device]
fn same(x: u32) -> u32 {
    match target::SM {
        0..70 => {
            let mut peers = u32::MAX;
            for bit in 0..32u32 {
                let one = x >> bit & 1 == 1;
                let ones = warp::ballot(one);
                peers &= if one { ones } else { !ones };
            }
            peers
        }
        _ => warp::match_any(x),
    }
}

/// Reduces integers of 32 bits, with one instruction each from sm_80 on.
#[kernel(target = sm_80, block = 96, grid = 1)]
#[requires(signed.len() == 96, unsigned.len() == 96, out.len() == 4 * 96, indices.len() == 2 * 96)]
pub fn reductions(signed: &[i32], unsigned: &[u32], out: &mut [i32], indices: &mut [u32]) {
    let i = thread::index();
    out[4 * i] = warp::sum(signed[i]);
    out[4 * i + 1] = warp::min(signed[i]);
    out[4 * i + 2] = warp::group::<32>().max(signed[i]);
    out[4 * i + 3] = block::sum(signed[i]);
    indices[2 * i] = warp::max(unsigned[i]);
    indices[2 * i + 1] = warp::sum(i) as u32;
}

/// Computes `total[0]` ← Σ x: the last block to end adds the results of the others.
#[kernel(block = 64, grid = partial.len())]
#[requires(total.len() == 1, ended.len() == 1)]
pub fn last_block(x: &[u32], partial: &mut [u32], ended: &mut [u32], total: &mut [u32]) {
    let i = grid::index();
    let own = block::sum(if i < x.len() { x[i] } else { 0 });
    let mut before = 0u32;
    if thread::index() == 0 {
        partial[block::x()] = own;
        fence::grid();
        before = ended.fetch_add(0, 1);
        fence::grid();
    }
    if block::broadcast(before, 0) as usize + 1 == partial.len() {
        let mut all = 0;
        for k in (thread::index()..partial.len()).step_by(block::threads()) {
            all += partial[k];
        }
        let all = block::sum(all);
        if thread::index() == 0 {
            total[0] = all;
        }
    }
}

/// Computes a total without the releasing or the acquiring fence, which the oracle must report.
#[kernel(block = 32, grid = partial.len(), instances(RELEASE = true | false, ACQUIRE = true | false))]
pub fn half_fenced<const RELEASE: bool, const ACQUIRE: bool>(
    partial: &mut [u32],
    ended: &mut [u32],
    total: &mut [u32],
) {
    if thread::index() == 0 {
        partial[block::x()] = 1;
        if RELEASE {
            fence::grid();
        } else {
            fence::block();
        }
        let before = ended.fetch_add(0, 1);
        if ACQUIRE {
            fence::system();
        }
        if before as usize + 1 == partial.len() {
            let mut all = 0;
            for k in 0..partial.len() {
                all += partial[k];
            }
            total[0] = all;
        }
    }
}

/// Passes a value from each warp to the next in shared memory.
#[kernel(block = 64, grid = 1)]
#[requires(y.len() == 2)]
pub fn within_a_block(y: &mut [u32]) {
    let mut value = Shared::<u32, 1>::new([1]);
    let mut there = Shared::<u32, 1>::new([1]);
    if thread::index() == 32 {
        there[0] = 0;
    }
    block::sync();
    if thread::index() == 0 {
        value[0] = 7;
        fence::block();
        there.exchange(0, 1);
    }
    if thread::index() == 32 {
        let mut ready = 0;
        while ready == 0 {
            ready = there.fetch_add(0, 0);
        }
        fence::block();
        y[0] = value[0];
        y[1] = ready;
    }
}

/// Loads before a fence and again after it, with stores around.
#[kernel(block = 32, grid = 1)]
pub fn order(x: &[f32], y: &mut [f32]) {
    let i = thread::index();
    let a = y[i];
    y[i] = x[i];
    fence::system();
    let b = y[i];
    fence::block();
    y[i] = a + b;
}

/// Returns inputs of `peers`, and the expected lanes.
fn peers_values() -> (Vec<u32>, Vec<f64>, Vec<u32>) {
    let mut random = Random::new(5);
    let x: Vec<u32> = (0..64).map(|_| (random.below(5) as u32).wrapping_mul(0x4000_0001)).collect();
    let wide: Vec<f64> = (0..64).map(|_| f64::from(random.below(3) as u32)).collect();
    let bits = |same: &dyn Fn(usize, usize) -> bool| -> Vec<u32> {
        let lanes = |i: usize| (0..32).filter(|l| same(i, i / 32 * 32 + l)).fold(0, |m, l| m | 1 << l);
        (0..64).map(lanes).collect()
    };
    let mut expected = bits(&|i, j| x[i] == x[j]);
    expected.extend(bits(&|i, j| wide[i] == wide[j]));
    (x, wide, expected)
}

fn peers_case() -> (Case, Vec<u32>) {
    let (x, wide, expected) = peers_values();
    let inputs = vec![Input::slice(&x), Input::slice(&wide), Input::slice(&[0u32; 128]), Input::slice(&[0u32])];
    (Case::new("peers", inputs), expected)
}

fn exact(argument: usize, values: impl IntoIterator<Item = impl Into<f64>>) -> Expected {
    Expected::new(argument, values.into_iter().map(Into::into).collect(), Bound::Exact)
}

#[test]
fn branch_on_the_target_is_resolved() {
    let (case, expected) = peers_case();
    for target in Target::ALL {
        let prepared = PreparedInstance::compile_for(peers::ARTIFACT, &Instance::default(), target).unwrap();
        let expected = vec![exact(2, expected.clone()), exact(3, [target.sm()])];
        checker(false).case(&prepared, &case, |_| expected).unwrap_or_else(|e| panic!("{target}: {e}"));
    }
    assemble::<peers>();
    assemble::<matched>();
}

#[test]
fn untaken_branch_on_the_target_is_removed() {
    let program = peers::ARTIFACT.program().unwrap();
    for target in Target::ALL {
        let ptx = compile(&program, &Instance::default(), target).unwrap();
        let later = target >= Target::SM_70;
        assert_eq!(ptx.contains("match.any.sync"), later, "{ptx}");
        assert_eq!(ptx.contains("vote.sync.ballot"), !later, "{ptx}");
    }
}

#[test]
fn error_names_the_first_target_with_the_feature() {
    let program = matched::ARTIFACT.program().unwrap();
    assert!(matched::PTX.contains(".version 6.0\n.target sm_70\n"));
    let errors = lower::lower(&program, &Instance::default(), Target::SM_61).unwrap_err().to_string();
    assert!(errors.contains("`warp::match_any` requires sm_70; the kernel is compiled for sm_61"), "{errors}");
}

fn reductions_case() -> (Case, Vec<Expected>) {
    let mut random = Random::new(9);
    let signed: Vec<i32> = (0..96).map(|_| random.below(2000) as i32 - 1000).collect();
    let unsigned: Vec<u32> = (0..96).map(|_| random.below(u32::MAX as usize) as u32).collect();
    let (mut out, mut indices) = (Vec::new(), Vec::new());
    for i in 0..96 {
        let first = i / 32 * 32;
        let own = &signed[first..first + 32];
        out.extend([
            own.iter().sum(),
            *own.iter().min().unwrap(),
            *own.iter().max().unwrap(),
            signed.iter().sum::<i32>(),
        ]);
        indices.extend([*unsigned[first..first + 32].iter().max().unwrap(), (first..first + 32).sum::<usize>() as u32]);
    }
    let inputs = vec![
        Input::slice(&signed),
        Input::slice(&unsigned),
        Input::slice(&[0i32; 4 * 96]),
        Input::slice(&[0u32; 2 * 96]),
    ];
    (Case::new("reductions", inputs), vec![exact(2, out), exact(3, indices)])
}

#[test]
fn single_instruction_reductions_agree_with_the_butterfly() {
    let (case, expected) = reductions_case();
    let prepared = PreparedInstance::compile(reductions::ARTIFACT, &Instance::default()).unwrap();
    checker(false).case(&prepared, &case, |_| expected).unwrap_or_else(|e| panic!("{e}"));
    let ptx = reductions::PTX;
    assert_eq!(ptx.matches("redux.sync.").count(), 6, "{ptx}");
    assemble::<reductions>();
}

#[test]
fn overflow_of_a_single_instruction_sum_is_reported() {
    #[kernel(target = sm_80, block = 32, grid = 1)]
    fn overflowing(x: &[u32], y: &mut [u32]) {
        y[thread::x()] = warp::sum(x[thread::x()] as usize) as u32;
    }
    let device = Device::cpu();
    let mut y = device.upload(&[0u32; 32]).unwrap();
    let most = device.upload(&[u32::MAX / 32; 32]).unwrap();
    overflowing::launch(&device, &most, &mut y).unwrap();
    let above = device.upload(&[u32::MAX / 32 + 1; 32]).unwrap();
    let error = overflowing::launch(&device, &above, &mut y).unwrap_err().to_string();
    assert!(error.contains("the sum of the warp's values overflows `usize`"), "{error}");
    assert!(error.contains("y[thread::x()] = warp::sum(x[thread::x()] as usize) as u32;"), "{error}");
}

fn last_block_case() -> (Vec<u32>, Case, Vec<Expected>) {
    let x: Vec<u32> = (0..300).collect();
    let partial: Vec<u32> = x.chunks(64).map(|c| c.iter().sum()).collect();
    let inputs = vec![Input::slice(&x), Input::slice(&[0u32; 5]), Input::slice(&[0u32]), Input::slice(&[0u32])];
    let expected = vec![exact(1, partial), exact(2, [5u32]), exact(3, [x.iter().sum::<u32>()])];
    (x, Case::new("five blocks", inputs), expected)
}

fn fenced(checker: &Checker) {
    let (_, case, expected) = last_block_case();
    let prepared = PreparedInstance::compile(last_block::ARTIFACT, &Instance::default()).unwrap();
    checker.case(&prepared, &case, |_| expected).unwrap_or_else(|e| panic!("{e}"));
    agree::<within_a_block>(checker, "a block", vec![Input::slice(&[0u32; 2])], &[exact(0, [7u32, 1])]);
    let (x, y): (Vec<f32>, Vec<f32>) = (0..32).map(|i| (i as f32, 0.5)).unzip();
    let sums = x.iter().map(|x| x + 0.5);
    agree::<order>(checker, "order", vec![Input::slice(&x), Input::slice(&y)], &[exact(1, sums)]);
}

#[test]
fn fences_order_accesses_of_blocks() {
    fenced(&checker(false));
    assemble::<last_block>();
    assemble::<within_a_block>();
}

#[test]
fn one_fence_is_a_race() {
    let device = Device::cpu();
    fn run(
        device: &Device,
        artifact: &'static Artifact,
        launch: impl Fn(&Device) -> Result<u32, runtime::Error>,
    ) -> String {
        launch(device).map_or_else(|e| e.to_string(), |total| format!("{}: {total}", artifact.name))
    }
    macro_rules! outcome {
        ($release:literal, $acquire:literal) => {
            run(&device, half_fenced::<$release, $acquire>::ARTIFACT, |device| {
                let mut partial = device.upload(&[0u32; 4])?;
                let (mut ended, mut total) = (device.upload(&[0u32])?, device.upload(&[0u32])?);
                half_fenced::<$release, $acquire>::launch(device, &mut partial, &mut ended, &mut total)?;
                Ok(total.download()?[0])
            })
        };
    }
    assert_eq!(outcome!(true, true), "half_fenced: 4");
    for error in [outcome!(true, false), outcome!(false, true), outcome!(false, false)] {
        assert!(error.contains("a race: this loads element 0 of `partial`"), "{error}");
    }
}

#[test]
fn fences_compile_for_each_target() {
    let program = order::ARTIFACT.program().unwrap();
    for target in Target::ALL {
        let ptx = compile(&program, &Instance::default(), target).unwrap();
        let expected = match target.sm() {
            61 => ["membar.sys;", "membar.cta;"],
            _ => ["fence.acq_rel.sys;", "fence.acq_rel.cta;"],
        };
        // No access has moved across the fence, and no load is combined with another.
        let kept: Vec<_> = ptx
            .lines()
            .map(str::trim)
            .filter(|l| ["membar", "fence", "ld.global.f32", "st.global.f32"].iter().any(|w| l.starts_with(w)))
            .map(|l| l.split(' ').next().unwrap_or_default())
            .collect();
        let [sys, cta] = expected;
        assert_eq!(kept, ["ld.global.f32", "st.global.f32", sys, "ld.global.f32", cta, "st.global.f32"], "{ptx}");
    }
    assemble::<order>();
}

/// Runs a kernel with fences as rustc compiled it, one thread at a time.
#[test]
fn fences_work_on_the_host() {
    let mut ended = [0u32; 1];
    // SAFETY: the vector outlives the run, and the only access is atomic.
    unsafe {
        let view = ViewMut::host(&mut ended, [1]);
        host::run([2, 1, 1], [32, 1, 1], || {
            fence::grid();
            view.fetch_add(0, target::SM);
            fence::system();
            fence::block();
        });
    }
    assert_eq!(ended, [64 * 61]);
}

/// Runs `warp::match_any` as rustc compiled it.
#[test]
fn lanes_match_on_the_host() {
    let (x, _, expected) = peers_values();
    let mut out = vec![0u32; 64];
    let memory = host::SliceMut::new(&mut out);
    let body = || {
        let i = thread::index();
        memory.of_thread()[i] = warp::match_any(x[i]);
    };
    // SAFETY: each thread writes the element of its index.
    unsafe { host::run([1, 1, 1], [64, 1, 1], body) };
    drop(memory);
    assert_eq!(out, expected[..64]);
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_fences_order_accesses_of_blocks() {
    fenced(&checker(true));
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_later_targets_give_the_same_bits() {
    let checker = checker(true);
    let (case, expected) = peers_case();
    for (artifact, sm) in [(peers::ARTIFACT, 61), (matched::ARTIFACT, 70)] {
        let prepared = PreparedInstance::compile(artifact, &Instance::default()).unwrap();
        let all = vec![exact(2, expected.clone()), exact(3, [sm])];
        checker.case(&prepared, &case, |_| all).unwrap_or_else(|e| panic!("{}: {e}", artifact.name));
    }
    let (case, expected) = reductions_case();
    let prepared = PreparedInstance::compile(reductions::ARTIFACT, &Instance::default()).unwrap();
    checker.case(&prepared, &case, |_| expected).unwrap_or_else(|e| panic!("{e}"));
}
