//! Tests of `Float16`: all codes are decoded, and `f32` of all kinds encoded, by the functions and
//! by kernels, against the values of the codes in f64.
//!
//! Encoding is tested on a sample; `FLOAT16=all` tests all 2³² values with the functions.

use super::support::{agree, assemble, checker};
use kernel_dsl::compiler::float16::{Float16Format, Float16Policy as Layout};
use kernel_dsl::prelude::*;
use runtime::Device;
use runtime::testing::{Bound, Checker, Expected, Input, Random};

/// Declares kernels that decode each code to `f32`, and encode each `f32` with both roundings.
macro_rules! layout {
    ($module:ident, $t:ty) => {
        mod $module {
            use super::*;

            #[kernel(block = 256, grid = x.len().div_ceil(256))]
            #[requires(y.len() == x.len())]
            pub fn decode(x: &[$t], y: &mut [f32]) {
                let i = grid::index();
                if i < x.len() {
                    y[i] = x[i].to_f32();
                }
            }

            #[kernel(block = 256, grid = x.len().div_ceil(256), instances(T = $t))]
            #[requires(y.len() == x.len())]
            pub fn encode<T: Float>(x: &[f32], y: &mut [T]) {
                let i = grid::index();
                if i < x.len() {
                    y[i] = T::from_f32(x[i]);
                }
            }

            pub fn test(checker: &Checker) {
                type T = $t;
                let codes: Vec<T> = (0..=u16::MAX).map(T::from_bits).collect();
                let exact = Exact::new(T::FORMAT);
                let decoded: Vec<f32> = codes.iter().map(|c| c.to_f32()).collect();
                for (code, y) in decoded.iter().enumerate() {
                    let wanted = exact.values[code & 0x7fff] as f32 * if code < 0x8000 { 1.0 } else { -1.0 };
                    assert!(same(*y, wanted), "{} {code:#06x}: {y:?}, not {wanted:?}", T::FORMAT);
                }
                let samples = samples(&exact);
                for x in &samples {
                    exact.check(*x, T::from_f32(*x).to_bits(), false);
                    exact.check(*x, T::truncate(*x).to_bits(), true);
                }

                let device = Device::cpu();
                let (x, mut y) = (device.upload(&codes).unwrap(), device.zeros::<f32>(codes.len()).unwrap());
                decode::launch(&device, &x, &mut y).unwrap();
                for (code, (given, wanted)) in y.download().unwrap().iter().zip(&decoded).enumerate() {
                    assert!(same(*given, *wanted), "{} {code:#06x}: {given:?}, not {wanted:?}", T::FORMAT);
                }
                let (x, mut y) = (device.upload(&samples).unwrap(), device.zeros::<T>(samples.len()).unwrap());
                encode::<T>::launch(&device, &x, &mut y).unwrap();
                for (x, given) in samples.iter().zip(y.download().unwrap()) {
                    assert_eq!(given.to_bits(), T::from_f32(*x).to_bits(), "{} of {x:?}", T::FORMAT);
                }

                // Compares all executors, on fewer codes because of the time.
                let some: Vec<T> = codes.iter().copied().step_by(if sampled() { 13 } else { 1 }).collect();
                let inputs = vec![Input::slice(&some), Input::slice(&vec![0f32; some.len()])];
                let wanted = some.iter().map(|c| f64::from(c.to_f32())).collect();
                agree::<decode>(checker, "decode", inputs, &[Expected::new(1, wanted, Bound::Exact)]);
                let few: Vec<f32> = samples.iter().copied().step_by(if sampled() { 9 } else { 1 }).collect();
                let inputs = vec![Input::slice(&few), Input::slice(&vec![T::default(); few.len()])];
                let wanted = few.iter().map(|x| f64::from(T::from_f32(*x).to_f32())).collect();
                agree::<encode<T>>(checker, "encode", inputs, &[Expected::new(1, wanted, Bound::Exact)]);
                assemble::<decode>();
                assemble::<encode<T>>();
            }
        }
    };
}

layout!(binary16, Float16<5, 15>);
layout!(bfloat, Float16<8, 127>);
layout!(paper, Float16<4, 7>);
layout!(finite, Float16<4, 7, Finite>);
layout!(saturating, Float16<6, 31, Saturating>);
layout!(widest, Float16<10, 511>);
layout!(wide_finite, Float16<8, 127, Finite>);
layout!(narrowest, Float16<2, 1, Saturating>);
layout!(small_ones, Float16<5, 140>);
layout!(far, Float16<9, 400, Finite>);

/// Returns whether a sample is sufficient for executors other than the IR interpreter, which runs
/// all codes.
fn sampled() -> bool {
    std::env::var_os("FLOAT16").is_none()
}

fn same(a: f32, b: f32) -> bool {
    a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
}

/// The values of the codes without a sign bit, by definition.
struct Exact {
    format: Float16Format,
    values: Vec<f64>,
    /// Number of codes of finite numbers, which are the first codes.
    numbers: usize,
}

impl Exact {
    fn new(format: Float16Format) -> Exact {
        let fraction = 15 - format.exponent();
        let value = |code: u32| {
            let (field, low) = (code >> fraction, code & ((1 << fraction) - 1));
            let highest = field == (1 << format.exponent()) - 1;
            match format.policy() {
                Layout::Ieee if highest && low == 0 => return f64::INFINITY,
                Layout::Ieee if highest => return f64::NAN,
                Layout::Finite | Layout::Saturating if code == 0x7fff => return f64::NAN,
                _ => {}
            }
            let part = f64::from(low) / f64::from(1u32 << fraction);
            let (digits, exponent) = if field == 0 { (part, 1) } else { (1.0 + part, field as i32) };
            digits * 2f64.powi(exponent - format.bias())
        };
        let values: Vec<f64> = (0..0x8000).map(value).collect();
        let numbers = values.iter().position(|v| !v.is_finite()).unwrap_or(values.len());
        Exact { format, values, numbers }
    }

    /// Returns the numbers by their codes, in ascending order.
    fn numbers(&self) -> &[f64] {
        &self.values[..self.numbers]
    }

    fn check(&self, x: f32, code: u16, truncated: bool) {
        let wanted = self.nearest(x, truncated);
        assert_eq!(code, wanted, "{} of {x:?} ({:#010x}), truncated: {truncated}", self.format, x.to_bits());
    }

    /// Returns the code for `x`, by a search in the values.
    fn nearest(&self, x: f32, truncated: bool) -> u16 {
        const NAN: u16 = 0x7fff;
        let (size, numbers) = (f64::from(x.abs()), self.numbers());
        let largest = numbers.len() - 1;
        let sign = if x.is_sign_negative() { 0x8000 } else { 0 };
        if x.is_nan() {
            return NAN;
        }
        // The two codes around x. The upper one may be one step beyond the largest finite
        // number.
        let below = numbers.partition_point(|v| *v <= size) - 1;
        let next = if below < largest { numbers[below + 1] } else { 2.0 * numbers[largest] - numbers[largest - 1] };
        let (down, up) = (size - numbers[below], next - size);
        let chosen = if truncated || down < up || down == up && below % 2 == 0 { below } else { below + 1 };
        if x.is_finite() && chosen <= largest {
            return sign | chosen as u16;
        }
        match self.format.policy() {
            Layout::Ieee => sign | (largest + 1) as u16,
            Layout::Finite => NAN,
            Layout::Saturating => sign | largest as u16,
        }
    }
}

/// Returns values at, near and between those of the codes, of all magnitudes, and non-finite
/// values.
fn samples(exact: &Exact) -> Vec<f32> {
    let mut all = vec![0.0, f32::INFINITY, f32::NAN, f32::MAX, f32::from_bits(1), f32::MIN_POSITIVE, 1.0];
    let numbers = exact.numbers();
    let step = numbers.len() / 900;
    let ends = (0..40).chain(numbers.len() - 40..numbers.len() - 1);
    for k in (0..numbers.len() - 1).step_by(step).chain(ends) {
        let (value, half) = (numbers[k] as f32, ((numbers[k] + numbers[k + 1]) / 2.0) as f32);
        all.extend([value, half, half.next_up(), half.next_down()]);
    }
    let largest = *numbers.last().unwrap() as f32;
    all.extend([largest, largest * 1.0001, largest * 1.001, largest * 2.0, largest * 1.25]);
    let mut random = Random::new(17);
    all.extend((0..2000).map(|_| f32::from_bits(random.bits() as u32)));
    all.extend(all.clone().iter().map(|x| -x));
    all
}

const ALL: [fn(&Checker); 10] = [
    binary16::test,
    bfloat::test,
    paper::test,
    finite::test,
    saturating::test,
    widest::test,
    wide_finite::test,
    narrowest::test,
    small_ones::test,
    far::test,
];

#[test]
fn all_codes_and_samples_of_f32_convert_as_defined() {
    ALL.iter().for_each(|test| test(&checker(false)));
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_all_codes_and_samples_of_f32_convert_as_defined() {
    ALL.iter().for_each(|test| test(&checker(true)));
}

/// Compares half and bfloat with the crate `half` bit by bit, and with `FLOAT16=all` all formats
/// with their definitions.
#[test]
fn half_and_bfloat_agree_with_crate_half() {
    let whole = std::env::var_os("FLOAT16").is_some_and(|v| v == "all");
    let step = if whole { 1 } else { 65_537 };
    let layouts: Vec<Exact> = [
        (5, 15, Layout::Ieee),
        (8, 127, Layout::Ieee),
        (4, 7, Layout::Finite),
        (10, 511, Layout::Ieee),
        (6, 31, Layout::Saturating),
    ]
    .map(|(exponent, bias, policy)| Exact::new(Float16Format::new(exponent, bias, policy).unwrap()))
    .into();
    let right = |x: f32| {
        if !x.is_nan() {
            assert_eq!(Float16::<5, 15>::from_f32(x).to_bits(), f16::from_f32(x).to_bits(), "{x:?}");
            assert_eq!(Float16::<8, 127>::from_f32(x).to_bits(), bf16::from_f32(x).to_bits(), "{x:?}");
        }
        for exact in &layouts {
            exact.check(x, exact.format.encode(x), false);
            exact.check(x, exact.format.truncate(x), true);
        }
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for core in 0..cores {
            let share = (0..=u32::MAX).step_by(step).skip(core).step_by(cores);
            scope.spawn(move || share.map(f32::from_bits).for_each(right));
        }
    });
}

/// Computes with arithmetic, comparisons, methods and truncation, in registers, arrays and shared
/// memory.
#[kernel(block = 64, grid = 1, instances(N = 8))]
#[requires(x.len() == 64, y.len() == 64 * N)]
fn computed<const N: usize>(x: &[Float16<4, 7, Saturating>], y: &mut [Float16<4, 7, Saturating>]) {
    let mut s = Shared::<Float16<4, 7, Saturating>, 1>::new([64]);
    let t = thread::x();
    s[t] = x[t];
    block::sync();
    let (a, b) = (x[t], s[63 - t]);
    let all = [
        a + b,
        a * b,
        a / b,
        -a,
        a.abs(),
        if a < b { a } else { b },
        a.mul_add(b, a),
        Float16::<4, 7, Saturating>::truncate(a.to_f32() * 0.3),
    ];
    for k in unroll(0..N) {
        y[N * t + k] = all[k];
    }
}

#[test]
fn arithmetic_is_rounded_f32_arithmetic() {
    type T = Float16<4, 7, Saturating>;
    let xs: Vec<T> = (0..64u16).map(|i| T::from_bits(i.wrapping_mul(1021) ^ 0x2345)).collect();
    let wanted = (0..64).flat_map(|i| {
        let (a, b) = (xs[i], xs[63 - i]);
        let least = if a < b { a } else { b };
        [a + b, a * b, a / b, -a, a.abs(), least, a.mul_add(b, a), T::truncate(a.to_f32() * 0.3)]
    });
    let wanted: Vec<f64> = wanted.map(|v| f64::from(v.to_f32())).collect();
    let inputs = vec![Input::slice(&xs), Input::slice(&[T::default(); 512])];
    agree::<computed<8>>(&checker(false), "computed", inputs, &[Expected::new(1, wanted, Bound::Exact)]);
    assert!(computed::<8>::PTX.contains("b16") || computed::<8>::PTX.contains("u16"));
}

/// Checks that IEEE half precision uses the conversions of the hardware.
#[test]
fn binary16_is_converted_by_the_hardware() {
    assert!(binary16::decode::PTX.contains("cvt.f32.f16"));
    assert!(binary16::encode::<Float16<5, 15>>::PTX.contains("cvt.rn.f16.f32"));
}
