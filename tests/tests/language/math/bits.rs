//! Tests that the device computes the host's bits: lowered, optimized, with checks, as PTX, and on
//! a GPU.

use super::every_target::assemble;
use super::kernels::{DOUBLE, NAN, PAIRWISE, SINGLE, several};
use kernel_dsl::compiler::hir::Instance;
use kernel_dsl::{Artifact, Kernel, math};
use runtime::Device;
use runtime::testing::{Bound, Case, Checker, Expected, Input, PreparedInstance};

/// Returns edges of the format, of the functions' intervals and ranges, with their neighbors and
/// both signs, and values of all magnitudes.
fn arguments() -> Vec<f32> {
    // Some edges are near constants that clippy knows by name.
    #[allow(clippy::approx_constant, clippy::excessive_precision)]
    let edges = [
        0.0,
        f32::from_bits(1),
        f32::MIN_POSITIVE,
        f32::MAX,
        f32::INFINITY,
        f32::NAN,
        5.9604645e-8,
        1.2207031e-4,
        0.25,
        0.33333334,
        0.34657359,
        0.5,
        0.55,
        0.70710677,
        0.78539816,
        1.0,
        1.3333334,
        1.4142135,
        1.5,
        1.5707963,
        2.0,
        3.1415927,
        3.92,
        9.01,
        17.33,
        87.336548,
        88.722839,
        89.415985,
        103.97208,
        126.0,
        128.0,
        150.0,
        4096.0,
        105615.0,
        1e10,
    ];
    let near = edges.into_iter().flat_map(|x: f32| [x.next_down(), x, x.next_up()]);
    let all = (0..500u32).map(|i| f32::from_bits(i * 4_280_007));
    near.chain(all).flat_map(|x| [x, -x]).collect()
}

fn doubles() -> Vec<f64> {
    let edges =
        [f64::MIN_POSITIVE, f64::from_bits(1), f64::MAX, 709.78, 745.13, 1022.0, 1024.0, 1647099.0, 1e22, 1e300];
    let near = edges.into_iter().flat_map(|x| [x.next_down(), x, x.next_up(), -x]);
    arguments().into_iter().map(f64::from).chain(near).collect()
}

fn words(values: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let halves = |x: f64| match x.is_nan() {
        true => [NAN; 2],
        false => [x.to_bits() as u32, (x.to_bits() >> 32) as u32],
    };
    values.into_iter().flat_map(halves).map(f64::from).collect()
}

fn word(x: f32) -> u32 {
    if x.is_nan() { NAN } else { x.to_bits() }
}

/// Runs the kernel with these inputs and an output, which must equal `expected`.
fn agree(checker: &Checker, artifact: &'static Artifact, mut inputs: Vec<Input>, expected: Vec<f64>) {
    inputs.push(Input::slice(&vec![0u32; expected.len()]));
    let expected = Expected::new(inputs.len() - 1, expected, Bound::Exact);
    let prepared =
        PreparedInstance::compile(artifact, &Instance::default()).unwrap_or_else(|e| panic!("{}: {e}", artifact.name));
    let result = checker.case(&prepared, &Case::new("edges", inputs), |_| vec![expected]);
    result.unwrap_or_else(|e| panic!("{}: {e}", artifact.name));
}

fn all(checker: &Checker) {
    let (x, wide) = (arguments(), doubles());
    for f in SINGLE {
        let of = |x: &f32| match word((f.host)(*x)) {
            NAN => [NAN; 2],
            bits => [bits, 0],
        };
        agree(checker, f.bits, vec![Input::slice(&x)], x.iter().flat_map(of).map(f64::from).collect());
    }
    for f in DOUBLE {
        agree(checker, f.bits, vec![Input::slice(&wide)], words(wide.iter().map(|x| (f.host)(*x))));
    }
    let both = x.iter().flat_map(|x| <[f32; 2]>::from(math::sin_cos(*x))).map(|y| f64::from(word(y)));
    agree(checker, several::sin_cos_bits::ARTIFACT, vec![Input::slice(&x)], both.collect());
    let both = wide.iter().flat_map(|x| <[f64; 2]>::from(math::f64::sin_cos(*x)));
    agree(checker, several::sin_cos_f64_bits::ARTIFACT, vec![Input::slice(&wide)], words(both));

    // Each value is combined with several others, so that special cases of both operands meet.
    let exponents =
        [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 3.0, -2.5, 150.25, 16777215.0, -16777216.0, f32::INFINITY, f32::NAN];
    let pairs: Vec<(f32, f32)> = x.iter().flat_map(|x| exponents.map(|y| (*x, y))).collect();
    let (bases, powers): (Vec<f32>, Vec<f32>) = pairs.iter().copied().unzip();
    for f in PAIRWISE {
        let expected = pairs.iter().map(|(x, y)| f64::from(word((f.host)(*x, *y)))).collect();
        agree(checker, f.bits, vec![Input::slice(&bases), Input::slice(&powers)], expected);
    }
    let widen = |x: Vec<f32>| -> Vec<f64> { x.into_iter().map(f64::from).collect() };
    let (bases, powers) = (widen(bases), widen(powers));
    let expected = words(bases.iter().zip(&powers).map(|(x, y)| math::f64::pow(*x, *y)));
    agree(checker, several::pow_f64_bits::ARTIFACT, vec![Input::slice(&bases), Input::slice(&powers)], expected);
}

#[test]
fn device_computes_the_bits_of_the_host() {
    all(&Checker::new(None));
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_computes_the_bits_of_the_host() {
    all(&Checker::new(Some(Device::cuda(0).expect("an NVIDIA GPU is present"))));
}

#[test]
fn ptxas_accepts_the_kernels() {
    SINGLE.iter().for_each(|f| assemble(f.plain));
    DOUBLE.iter().for_each(|f| assemble(f.plain));
    PAIRWISE.iter().for_each(|f| assemble(f.plain));
    let several = [several::sin_cos::ARTIFACT, several::pow_f64_bits::ARTIFACT];
    several.into_iter().for_each(assemble);
}
