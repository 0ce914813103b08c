//! Tests of `fast::`: all executors and rustc compute the same substitute near the true value; a
//! GPU may differ by the documented error.

use super::support::{agree, assemble, checker};
use kernel_dsl::Kernel;
use kernel_dsl::compiler::hir::Instance;
use kernel_dsl::prelude::*;
use kernels_rs_specs as _;
use runtime::Device;
use runtime::testing::{Bound, Case, Checker, Expected, Failure, Input, PreparedInstance, Random};

/// Computes each function of x, in the order of [`exact`].
#[kernel(block = 64, grid = x.len().div_ceil(64), tolerance(y(relative = 4e-6, absolute = 4e-6)))]
#[requires(y.len() == 11 * x.len())]
fn functions(x: &[f32], y: &mut [f32]) {
    let i = grid::index();
    if i < x.len() {
        let x = x[i];
        let all = [
            fast::exp2(x),
            fast::exp(x),
            fast::log2(x),
            fast::ln(x),
            fast::rcp(x),
            fast::sqrt(x),
            fast::rsqrt(x),
            fast::sin(x),
            fast::cos(x),
            fast::tanh(x),
            fast::div(x, 3.0),
        ];
        for k in unroll(0..11) {
            y[11 * i + k] = all[k];
        }
    }
}

/// Returns the values that rustc computes.
fn host(x: f32) -> [f32; 11] {
    [
        fast::exp2(x),
        fast::exp(x),
        fast::log2(x),
        fast::ln(x),
        fast::rcp(x),
        fast::sqrt(x),
        fast::rsqrt(x),
        fast::sin(x),
        fast::cos(x),
        fast::tanh(x),
        fast::div(x, 3.0),
    ]
}

/// Returns the true values with the error bounds of the substitutes: a rounding, and the error of
/// scaling before or after.
fn exact(x: f32) -> [(f64, f64); 11] {
    let x = f64::from(x);
    const HALF: f64 = 1.0 / (1 << 24) as f64;
    let near = |y: f64, roundings: f64| (y, y.abs() * roundings * HALF);
    [
        near(x.exp2(), 1.0),
        near(x.exp(), 2.0 + 2.0 * x.abs()),
        near(x.log2(), 1.0),
        near(x.ln(), 3.0),
        near(1.0 / x, 1.0),
        near(x.sqrt(), 1.0),
        near(1.0 / x.sqrt(), 1.0),
        near(x.sin(), 1.0),
        near(x.cos(), 1.0),
        (x.tanh(), 8.0 * HALF),
        near(x / 3.0, 3.0),
    ]
}

fn arguments() -> Vec<f32> {
    let mut all = vec![0.0, 1.0, 0.5, 2.0, 3.0, 1e-3, 0.1, 10.0, 100.0, 126.0, 127.9, 1e-38, 1e38, 2.5e38, 1e-40];
    all.extend([f32::MIN_POSITIVE, f32::MAX, f32::INFINITY, f32::from_bits(1), 88.0, 104.0, 6.5, 0.7, 1.4]);
    all.extend(all.clone().iter().map(|x| -x));
    all.push(f32::NAN);
    all.extend(Random::new(3).values::<f32>(40));
    all
}

/// Returns values of moderate size, for which no result overflows or is flushed, and sines are
/// meaningful.
fn ordinary() -> Vec<f32> {
    (1..=400).map(|i| i as f32 * 0.05 + 0.003).flat_map(|x| [x, -x]).collect()
}

fn bits(x: f32) -> u32 {
    if x.is_nan() { f32::NAN.to_bits() } else { x.to_bits() }
}

fn test(checker: &Checker, xs: &[f32]) {
    let zeros = vec![0f32; 11 * xs.len()];
    let inputs = vec![Input::slice(xs), Input::slice(&zeros)];
    // The bodies are compared below, bit by bit.
    let any = xs.iter().flat_map(|x| host(*x)).map(f64::from).collect();
    agree::<functions>(checker, "functions", inputs, &[Expected::new(1, any, Bound::Exact)]);
}

#[test]
fn interpreters_agree_with_the_bodies_bit_by_bit() {
    test(&checker(false), &arguments());
    let device = Device::cpu();
    let xs = arguments();
    let (x, mut y) = (device.upload(&xs).unwrap(), device.zeros::<f32>(11 * xs.len()).unwrap());
    functions::launch(&device, &x, &mut y).unwrap();
    for (x, given) in xs.iter().zip(y.download().unwrap().chunks(11)) {
        assert_eq!(given.iter().map(|y| bits(*y)).collect::<Vec<_>>(), host(*x).map(bits), "of {x}");
    }
    assemble::<functions>();
}

#[test]
fn bodies_are_near_the_true_values() {
    for x in ordinary() {
        for (k, (given, (exact, room))) in host(x).into_iter().zip(exact(x)).enumerate() {
            let gap = (f64::from(given) - exact).abs();
            assert!(gap <= room || given.is_nan() && exact.is_nan(), "function {k} of {x}: {given}, not {exact}");
        }
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_is_within_the_declared_tolerance() {
    test(&checker(true), &ordinary());
}

/// Computes tanh, for which sm_75 and later have an instruction.
#[kernel(target = sm_75, block = 32, grid = 1, tolerance(y(relative = 1e-3)))]
fn tangent(y: &mut [f32]) {
    y[thread::x()] = fast::tanh(y[thread::x()]);
}

#[test]
fn one_instruction_is_one_instruction() {
    let count = |word: &str| functions::PTX.lines().filter(|line| line.contains(word)).count();
    // The counts are: exp2, exp and tanh; one logarithm for log2 and ln; rcp, tanh and div by a
    // constant; no other division.
    assert_eq!(["ex2.approx.ftz", "lg2.approx.ftz", "rcp.approx.ftz", "div."].map(count), [3, 1, 3, 0]);
    assert_eq!(["sqrt.approx.ftz", "rsqrt.approx.ftz", "tanh."].map(count), [2, 1, 0]);
    assert!(tangent::PTX.contains("tanh.approx.f32") && !tangent::PTX.contains("ex2"));
    let device = Device::cpu();
    let xs: Vec<f32> = (0..32).map(|i| i as f32 * 0.25 - 4.0).collect();
    let mut y = device.upload(&xs).unwrap();
    tangent::launch(&device, &mut y).unwrap();
    assert_eq!(y.download().unwrap(), xs.iter().map(|x| f64::from(*x).tanh() as f32).collect::<Vec<_>>());
    assemble::<tangent>();
}

/// Uses approximations without a tolerance; the executors on the CPU still agree.
#[kernel(block = 32, grid = 1)]
#[requires(y.len() == 32, n.len() == 32)]
fn without_tolerance(y: &mut [f32], n: &mut [i32]) {
    let i = thread::x();
    let e = fast::exp2(y[i]);
    n[i] = (e * 4.0) as i32;
    if e > 1.0 {
        y[i] = 0.5;
    } else {
        y[i] = e;
    }
}

/// Selects an element by an approximation that passes through a variable, a struct in registers,
/// shared memory and a loop.
#[kernel(block = 32, grid = 1)]
#[requires(x.len() == 32, y.len() == 32)]
fn through(x: &[f32], y: &mut [f32]) {
    let mut s = Shared::<f32, 1>::new([32]);
    let mut acc = (0.0f32, 1.0f32);
    for k in 0..x.len() {
        acc.0 += acc.1;
        acc.1 = fast::rcp(x[k]);
    }
    s[thread::x()] = acc.0;
    block::sync();
    let found = s[31 - thread::x()];
    let exact = x[thread::x()].sqrt();
    let at = if exact > 2.0 { thread::x() } else { 0 };
    y[(found as usize).min(31)] = x[at];
}

/// Passes pairs of an exact and an approximate value through a buffer, and branches on one of each.
#[kernel(block = 32, grid = 1)]
#[requires(x.len() == 32, pairs.rows() == 32, pairs.cols() == 2, y.len() == 32)]
fn pairs(x: &[f32], pairs: ViewMut<f32, 2>, y: &mut [f32]) {
    let t = thread::x();
    pairs.store((t, 0), [x[t], fast::exp2(x[t])]);
    block::sync();
    let [exact, approximate] = pairs.load::<2>((31 - t, 0));
    if exact > 1.0 {
        y[t] = 1.0;
    }
    if approximate > 1.0 {
        y[t] = 2.0;
    }
}

/// Passes approximations through unknown columns, and through shared memory reused with another
/// shape.
#[kernel(block = 32, grid = 1)]
#[requires(x.len() == 32, y.len() == 32)]
fn columns(x: &[f32], y: &mut [f32]) {
    let t = thread::x();
    let mut tile = Shared::<f32, 2>::new([32, 2]);
    let over = Shared::<f32, 1>::over(tile, [64]);
    let mut own = Shared::<f32, 2>::new([32, 2]);
    tile[(t, 1)] = fast::exp2(x[t]);
    own[(t, t % 2)] = fast::exp2(x[t]);
    block::sync();
    if tile[(31 - t, 0)] > 1.0 {
        y[t] = 1.0;
    }
    if over[2 * t] > 1.0 {
        y[t] = 2.0;
    }
    if own[(31 - t, 0)] > 1.0 {
        y[t] = 3.0;
    }
}

/// Reuses an array in registers, whose old values affect no branch, beside one that keeps
/// approximations.
#[kernel(block = 32, grid = 1)]
#[requires(x.len() == 128, y.len() == 32)]
fn used_again(x: &[f32], y: &mut [f32]) {
    let t = thread::x();
    let (mut sum, mut last) = (0.0, [0.0f32; 4]);
    for k in 0..4 {
        let mut s = [0.0f32; 4];
        for i in unroll(0..4) {
            s[i] = x[32 * i + t] + k as f32;
        }
        for i in unroll(0..4) {
            if s[i] > 1.0 {
                sum += 1.0;
            }
            s[i] = fast::exp2(s[i]);
            sum += s[i];
        }
        if last[0] > 2.0 {
            y[t] = 1.0;
        }
        last = s;
    }
    y[t] = sum;
}

fn decisions<K: Kernel>() -> Vec<(&'static str, u32)> {
    use kernel_dsl::compiler::analyses::approximate::Approximations;
    use kernel_dsl::compiler::driver;
    let program = K::ARTIFACT.program().unwrap();
    let kernel = driver::lowered(&program, &Instance(K::CONSTANTS.to_vec()), K::ARTIFACT.target).unwrap();
    let found = Approximations::of(&kernel);
    let line = |d: &kernel_dsl::compiler::analyses::approximate::Decision| {
        u32::from(kernel.locations[d.location.0 as usize].span.line)
    };
    found.decisions.iter().map(|d| (d.decided.name(), line(d))).collect()
}

#[test]
fn decisions_by_approximations_are_reported_with_their_lines() {
    assert_eq!(decisions::<without_tolerance>(), [("integer", 3), ("integer", 3), ("branch", 4)]);
    assert_eq!(decisions::<through>(), [("integer", 12), ("index", 12)]);
    assert_eq!(decisions::<functions>(), []);
}

#[test]
fn decisions_by_exact_values_are_not_reported() {
    assert_eq!(decisions::<pairs>(), [("branch", 8)], "the second element of a pair");
    assert_eq!(decisions::<columns>(), [("branch", 8), ("branch", 11), ("branch", 14)], "the column is unknown");
    assert_eq!(decisions::<used_again>(), [("branch", 15)], "a value of the iteration before");
}

/// Checks attention, whose weights are approximations. The approximations decide three branches,
/// all about values that are infinite or NaN: whether a sum is NaN, whether the warp adds again,
/// and which keys that pass skips. The largest logit, which decides all others, is exact.
#[test]
fn attention_decides_by_exact_values() {
    use kernel_dsl::compiler::analyses::approximate::{Approximations, DecisionKind};
    use kernel_dsl::compiler::driver;
    let all = kernel_dsl::kernels();
    let artifact = all.iter().find(|k| k.name == "flash_attention").expect("the kernel is linked");
    let program = artifact.program().unwrap();
    for instance in artifact.instances {
        let kernel = driver::lowered(&program, &Instance(instance.constants.to_vec()), artifact.target).unwrap();
        let found = Approximations::of(&kernel);
        assert!(!found.reached.is_empty());
        assert!(
            found.decisions.iter().all(|decision| decision.decided == DecisionKind::Branch),
            "{:?}",
            found.decisions
        );
        assert!(found.decisions.len() <= 3, "{:?}", found.decisions);
    }
}

#[test]
fn without_a_tolerance_the_cpu_compares_bits_and_a_gpu_is_rejected() {
    let xs: Vec<f32> = (0..32).map(|i| i as f32 / 8.0 - 2.0).collect();
    let prepared = PreparedInstance::compile(without_tolerance::ARTIFACT, &Instance::default()).unwrap();
    let inputs = || vec![Input::slice(&xs), Input::slice(&[0i32; 32])];
    let nothing = |inputs: &[Input]| {
        let any = |k: usize| Expected::new(k, inputs[k].values(), Bound::Absolute(f64::INFINITY));
        vec![any(0), any(1)]
    };
    checker(false).case(&prepared, &Case::new("without_tolerance", inputs()), nothing).unwrap();
    let failure = Failure::NoTolerance { argument: "y".to_string() };
    assert!(failure.to_string().contains("#[kernel(tolerance(y(relative = 1e-6)), …)]"), "{failure}");
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_without_a_tolerance_is_rejected() {
    let prepared = PreparedInstance::compile(without_tolerance::ARTIFACT, &Instance::default()).unwrap();
    let inputs = vec![Input::slice(&[0.5f32; 32]), Input::slice(&[0i32; 32])];
    let given = checker(true).case(&prepared, &Case::new("without_tolerance", inputs), |_| Vec::new());
    assert_eq!(given, Err(Failure::NoTolerance { argument: "y".to_string() }));
}
