//! Tests of the documentation of kernels-rs that states the results of extreme inputs: a check for
//! each row of each table, and for sentences, in every storage format.

mod sentences;

use kernel_dsl::half::{bf16, f16};
use kernel_dsl::prelude::*;
use kernel_dsl::{Element, GenericArgument};
use kernels_rs::QueueMemory;
use kernels_rs::activation::{self, fast_gelu_tanh, fast_silu, gelu, gelu_tanh, silu};
use kernels_rs::elementwise::map;
use kernels_rs::histogram::histogram;
use kernels_rs::optimizer::AdamW;
use kernels_rs::quant::Affine;
use kernels_rs::reduce::{self, ArgMax, ArgMin, Max, Mean, Min, Norm1, Norm2, Reduced, Sum};
use kernels_rs::rowwise::{CrossEntropy, GroupNorm, Norm, Softmax};
use kernels_rs::sampling::Sample;
use runtime::Device;
use runtime::testing::{Draw, Extreme, Random};

/// A storage format.
trait Stored: Float + Draw + Element + GenericArgument {}
impl<T: Float + Draw + Element + GenericArgument> Stored for T {}

/// The first cell of a row, and a check of the row in each storage format.
type Row = (&'static str, &'static [fn(&Device)]);

/// A call on the values of a row.
type Call<T> = fn(&Device, &[T]) -> Vec<f64>;

/// A table of the documentation.
struct Table {
    /// The text of the source file.
    source: &'static str,
    /// The first cell of the table's head.
    head: &'static str,
    rows: &'static [Row],
}

macro_rules! row {
    ($first:literal, $check:ident) => {
        ($first, &[$check::<f32>, $check::<f16>, $check::<bf16>])
    };
}

const TABLES: &[Table] = &[
    Table {
        source: include_str!("../../../kernels-rs/src/rowwise.rs"),
        head: "inputs of a row",
        rows: &[
            row!("finite, up to ±3.4·10³⁸", finite_rows),
            row!("subnormal", subnormal_rows),
            row!("all equal", equal_rows),
            row!("−∞", rows_with_negative_infinity),
            row!("+∞", rows_with_infinity),
            row!("NaN", rows_with_nan),
            row!("NaN in masked or ignored elements", masked_nan),
        ],
    },
    Table {
        source: include_str!("../../../kernels-rs/src/reduce.rs"),
        head: "",
        rows: &[
            row!("[`Sum`]", sums),
            row!("[`Norm1`]", sums_of_magnitudes),
            row!("[`Mean`]", means),
            row!("[`Norm2`]", norms),
            row!("[`Max`], [`Min`]", ends),
            row!("[`ArgMax`], [`ArgMin`]", places),
        ],
    },
    Table {
        source: include_str!("../../../kernels-rs/src/activation.rs"),
        head: "x",
        rows: &[
            row!("NaN", activations_of_nan),
            row!("+∞", activations_of_infinity),
            row!("large, to 3.4·10³⁸", activations_of_the_largest),
            row!("subnormal", activations_of_subnormals),
            row!("−3.4·10³⁸, −∞", activations_of_the_lowest),
        ],
    },
    Table {
        source: include_str!("../../../kernels-rs/src/sampling/call.rs"),
        head: "logits",
        rows: &[
            row!("finite, of any size", finite_logits),
            row!("some −∞ or NaN", logits_below_all),
            row!("some ∞", infinite_logits),
            row!("no columns", no_logits),
        ],
    },
    Table {
        source: include_str!("../../../kernels-rs/src/sampling/call.rs"),
        head: "temperature",
        rows: &[
            row!("0, and below `f32::MIN_POSITIVE`", no_temperature),
            row!("`f32::MIN_POSITIVE` to `f32::MAX`", finite_temperatures),
            row!("∞", infinite_temperature),
        ],
    },
    Table {
        source: include_str!("../../../kernels-rs/src/histogram/run.rs"),
        head: "keys",
        rows: &[
            ("`u8`, `u32`", &[keys_themselves]),
            ("`f32` x in `range`", &[keys_in_range]),
            ("`f32` outside `range`, ±∞, NaN", &[keys_without_bin]),
        ],
    },
    Table {
        source: include_str!("../../../kernels-rs/src/quant/quantizer.rs"),
        head: "x",
        rows: &[
            row!("huge, up to ±`f32::MAX`", bytes_of_huge_numbers),
            row!("tiny, subnormal", bytes_of_tiny_numbers),
            row!("0, −0, nothing", bytes_of_zeros),
            row!("±∞", bytes_of_infinities),
            row!("NaN", bytes_of_nan),
        ],
    },
    Table {
        source: include_str!("../../../kernels-rs/src/optimizer.rs"),
        head: "g",
        rows: &[
            row!("±0, with m = v = 0", gradients_of_zero),
            row!("subnormal or tiny", tiny_gradients),
            row!("above 1.8·10¹⁹/√(1 − β₂)", huge_gradients),
            row!("±∞", infinite_gradients),
            row!("NaN", gradients_of_nan),
        ],
    },
];

/// Returns the first cells of the table with this head.
fn first_cells<'s>(source: &'s str, head: &str) -> Vec<&'s str> {
    let cell = |line: &'s str| {
        let line = line.trim_start().trim_start_matches("//!").trim_start_matches("///").trim_start();
        Some(line.strip_prefix('|')?.split('|').next()?.trim())
    };
    let lines: Vec<Option<&str>> = source.lines().map(cell).collect();
    let is_head = |i: &usize| lines[*i] == Some(head) && lines.get(i + 1) == Some(&Some("---"));
    let start = (0..lines.len()).find(is_head).unwrap_or_else(|| panic!("no table begins with `{head}`"));
    lines[start + 2..].iter().map_while(|cell| *cell).collect()
}

#[test]
fn each_row_of_the_documented_tables_holds() {
    let device = Device::cpu();
    for Table { source, head, rows } in TABLES {
        let tested: Vec<&str> = rows.iter().map(|(first, _)| *first).collect();
        assert_eq!(first_cells(source, head), tested, "the table that begins with `{head}`");
        for (first, checks) in *rows {
            println!("{head}: {first}");
            checks.iter().for_each(|check| check(&device));
        }
    }
}

/// Columns of a row.
const COLUMNS: usize = 24;

fn stored<T: Stored>(values: &[f32]) -> Vec<T> {
    values.iter().map(|x| T::from_f32(*x)).collect()
}

fn wide<T: Stored>(values: &[T]) -> Vec<f64> {
    values.iter().map(|x| f64::from(x.to_f32())).collect()
}

fn row_of<T: Stored>(extreme: Extreme) -> Vec<T> {
    extreme.fill(&mut Random::new(5), COLUMNS)
}

/// Returns the relative error of a result in this format.
fn error<T: Stored>() -> f64 {
    if size_of::<T>() == 4 { 2e-5 } else { 1e-2 }
}

/// Runs a call from a matrix of one row to another.
fn matrix<T: Stored>(
    device: &Device,
    x: &[T],
    call: impl Fn(&runtime::BufferView<'_, T, 2>, &mut runtime::BufferViewMut<'_, T, 2>) -> Result<(), runtime::Error>,
) -> Vec<f64> {
    let (on, mut y) = (device.upload(x).unwrap(), device.upload(&vec![T::from_f32(7.0); x.len()]).unwrap());
    call(&on.view([1, x.len()]).unwrap(), &mut y.view_mut([1, x.len()]).unwrap()).unwrap();
    wide(&y.download().unwrap())
}

fn softmax<T: Stored>(device: &Device, x: &[T]) -> Vec<f64> {
    matrix(device, x, |x, y| Softmax::new().run(device, x, y))
}

fn normed<T: Stored>(device: &Device, norm: Norm<'_>, x: &[T]) -> Vec<f64> {
    matrix(device, x, |x, y| norm.run(device, x, y))
}

fn group<T: Stored>(device: &Device, epsilon: f32, x: &[T]) -> Vec<f64> {
    let (on, mut y) = (device.upload(x).unwrap(), device.upload(x).unwrap());
    let shape = [1, 2, x.len() / 2];
    GroupNorm::new(1, epsilon).run(device, &on.view(shape).unwrap(), &mut y.view_mut(shape).unwrap(), None).unwrap();
    wide(&y.download().unwrap())
}

fn loss<T: Stored>(device: &Device, x: &[T], label: u32) -> f64 {
    let (on, label) = (device.upload(x).unwrap(), device.upload(&[label]).unwrap());
    let (mut loss, mut log_sum) = (device.upload(&[7f32]).unwrap(), device.upload(&[7f32]).unwrap());
    let (mut loss_view, mut log_view) = (loss.view_mut([1]).unwrap(), log_sum.view_mut([1]).unwrap());
    let (x, label) = (on.view([1, x.len()]).unwrap(), label.view([1]).unwrap());
    CrossEntropy::new().run(device, &x, &label, &mut loss_view, &mut log_view).unwrap();
    loss.download().unwrap()[0].into()
}

fn all(values: &[f64], holds: impl Fn(f64) -> bool) -> bool {
    values.iter().all(|x| holds(*x))
}

/// Returns whether two numbers are equal within a relative error, or both NaN.
fn near(got: f64, expected: f64, error: f64) -> bool {
    got == expected || got.is_nan() && expected.is_nan() || (got - expected).abs() <= error * expected.abs()
}

fn finite_rows<T: Stored>(device: &Device) {
    for extreme in Extreme::finite() {
        let x = row_of::<T>(*extreme);
        let probabilities = softmax(device, &x);
        assert!(all(&probabilities, |p| (0.0..=1.0).contains(&p)), "{extreme:?}: {probabilities:?}");
        let values = wide(&x);
        let max = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let exact = max - values[0] + values.iter().map(|x| (x - max).exp()).sum::<f64>().ln();
        let got = loss(device, &x, 0);
        // log Σ exp is rounded to `f32` before the logit is subtracted.
        let off = 1e-5 + 2f64.powi(-23) * (max.abs() + exact.abs());
        let is_right = if exact > f64::from(f32::MAX) { got == f64::INFINITY } else { (got - exact).abs() <= off };
        assert!(is_right, "{extreme:?}: a loss of {got}, not {exact}");
        let all_norms =
            [normed(device, Norm::layer(1e-5), &x), normed(device, Norm::rms(1e-5), &x), group(device, 1e-5, &x)];
        assert!(all_norms.iter().all(|y| all(y, f64::is_finite)), "{extreme:?}: {all_norms:?}");
    }
}

fn subnormal_rows<T: Stored>(device: &Device) {
    let x = row_of::<T>(Extreme::Subnormal);
    assert!(all(&softmax(device, &x), |p| near(p, 1.0 / COLUMNS as f64, error::<T>())));
    assert!(near(loss(device, &x, 0), (COLUMNS as f64).ln(), 1e-5));
    // The format's numbers times a power of two, which is exact.
    let scale = 2f32.powi(if T::SCALAR == kernel_dsl::compiler::Scalar::F16 { 20 } else { 100 });
    let larger: Vec<T> = x.iter().map(|x| T::from_f32(x.to_f32() * scale)).collect();
    let calls: [Call<T>; 3] = [
        |device, x| normed(device, Norm::layer(0.0), x),
        |device, x| normed(device, Norm::rms(0.0), x),
        |device, x| group(device, 0.0, x),
    ];
    for run in calls {
        let (tiny, large) = (run(device, &x), run(device, &larger));
        for (x, y) in tiny.into_iter().zip(large) {
            assert!((x - y).abs() <= error::<T>() * y.abs().max(0.1), "{x} of subnormal numbers, {y} of larger ones");
        }
    }
}

fn equal_rows<T: Stored>(device: &Device) {
    let x = stored::<T>(&[1.5; COLUMNS]);
    assert!(all(&softmax(device, &x), |p| near(p, 1.0 / COLUMNS as f64, error::<T>())));
    assert!(near(loss(device, &x, 3), (COLUMNS as f64).ln(), 1e-5));
    assert!(all(&normed(device, Norm::layer(1e-5), &x), |y| y.abs() < 1e-3));
    assert!(all(&group(device, 1e-5, &x), |y| y.abs() < 1e-3));
    assert!(all(&normed(device, Norm::layer(0.0), &x), f64::is_nan));
    assert!(all(&group(device, 0.0, &x), f64::is_nan));
    for epsilon in [0.0, 1e-5] {
        assert!(all(&normed(device, Norm::rms(epsilon), &x), |y| near(y, 1.0, error::<T>())));
    }
}

/// Checks norms of a row with one infinity, at column 2.
fn norms_with_infinity<T: Stored>(device: &Device, x: &[T]) {
    assert!(all(&normed(device, Norm::layer(1e-5), x), f64::is_nan));
    assert!(all(&group(device, 1e-5, x), f64::is_nan));
    for (i, y) in normed(device, Norm::rms(1e-5), x).into_iter().enumerate() {
        assert!(if i == 2 { y.is_nan() } else { y == 0.0 }, "element {i} is {y}");
    }
}

fn with_one<T: Stored>(x: f32) -> Vec<T> {
    let mut values = [1.0, 2.0, 0.0, 4.0].repeat(6);
    values[2] = x;
    stored(&values)
}

fn rows_with_negative_infinity<T: Stored>(device: &Device) {
    let x = with_one::<T>(f32::NEG_INFINITY);
    let probabilities = softmax(device, &x);
    assert!(probabilities[2] == 0.0 && near(probabilities.iter().sum(), 1.0, error::<T>()), "{probabilities:?}");
    assert!(all(&softmax(device, &row_of::<T>(Extreme::AllNegativeInfinity)), |p| p == 0.0));
    assert_eq!(loss(device, &x, 2), f64::INFINITY);
    assert!(loss(device, &x, 0).is_finite());
    norms_with_infinity(device, &x);
}

fn rows_with_infinity<T: Stored>(device: &Device) {
    let x = with_one::<T>(f32::INFINITY);
    assert!(all(&softmax(device, &x), f64::is_nan));
    assert!(loss(device, &x, 0).is_nan() && loss(device, &x, 2).is_nan());
    norms_with_infinity(device, &x);
}

fn rows_with_nan<T: Stored>(device: &Device) {
    let x = with_one::<T>(f32::NAN);
    let results = [
        softmax(device, &x),
        vec![loss(device, &x, 0), loss(device, &x, 2)],
        normed(device, Norm::layer(1e-5), &x),
        normed(device, Norm::rms(1e-5), &x),
        group(device, 1e-5, &x),
    ];
    assert!(results.iter().all(|y| all(y, f64::is_nan)), "{results:?}");
}

fn masked_nan<T: Stored>(device: &Device) {
    let x = with_one::<T>(f32::NAN);
    let keep: Vec<u8> = (0..COLUMNS).map(|i| u8::from(i != 2)).collect();
    let keep = device.upload(&keep).unwrap();
    let keep = keep.view([1, COLUMNS]).unwrap();
    let masked = matrix(device, &x, |x, y| Softmax::new().keep(&keep).run(device, x, y));
    let without = softmax(device, &with_one::<T>(f32::NEG_INFINITY));
    assert_eq!(masked, without);
    assert_eq!(loss(device, &x, u32::MAX), 0.0);
}

fn reduced<T: Stored, M: Reduced>(device: &Device, monoid: M, x: &[T]) -> M::Out {
    let on = device.upload(x).unwrap();
    let mut y = device.zeros::<M::Out>(1).unwrap();
    reduce::rows(device, monoid, &on.view([1, x.len()]).unwrap(), &mut y.view_mut([1]).unwrap()).unwrap();
    y.download().unwrap()[0]
}

/// Checks a reduction to a float with every extreme. A result beyond the range of `f32` is ∞.
/// `is_open` returns whether the documentation leaves the result open.
fn of_extremes<T: Stored, M: Reduced<Out = f32> + Copy>(
    device: &Device,
    monoid: M,
    exact: fn(&[f64]) -> f64,
    is_open: fn(&[f64]) -> bool,
) {
    for extreme in Extreme::ALL {
        let x = row_of::<T>(extreme);
        let values = wide(&x);
        let (got, expected) = (f64::from(reduced(device, monoid, &x)), exact(&values));
        let size: f64 = values.iter().map(|x| x.abs()).fold(0.0, f64::max);
        // The error is relative to the largest element, and subnormal sums are exact.
        let off = 1e-5 * size + 2f64.powi(-149);
        let beyond = expected.abs() > f64::from(f32::MAX) && got == expected.signum() * f64::INFINITY;
        let is_right = near(got, expected, 1e-5) || (got - expected).abs() <= off || beyond || is_open(&values);
        assert!(is_right, "{} of {extreme:?}: {got}, not {expected}", std::any::type_name::<M>());
    }
}

fn magnitudes(x: &[f64]) -> f64 {
    x.iter().map(|x| x.abs()).sum()
}

fn sums<T: Stored>(device: &Device) {
    of_extremes::<T, Sum>(
        device,
        Sum,
        |x| x.iter().sum(),
        |x| magnitudes(x) > f64::from(f32::MAX) && magnitudes(x).is_finite(),
    );
}

fn sums_of_magnitudes<T: Stored>(device: &Device) {
    of_extremes::<T, Norm1>(device, Norm1, magnitudes, |_| false);
}

fn means<T: Stored>(device: &Device) {
    of_extremes::<T, Mean>(device, Mean, |x| x.iter().sum::<f64>() / x.len() as f64, |_| false);
    for extreme in Extreme::finite() {
        assert!(reduced(device, Mean, &row_of::<T>(*extreme)).is_finite(), "{extreme:?}");
    }
}

fn norms<T: Stored>(device: &Device) {
    // The elements are scaled, so that no square leaves the range of f64 either.
    let exact = |x: &[f64]| {
        let max = x.iter().map(|x| x.abs()).fold(0.0, f64::max);
        let is_nan = x.iter().any(|x| x.is_nan());
        let scaled = || max * x.iter().map(|x| (x / max) * (x / max)).sum::<f64>().sqrt();
        if is_nan {
            f64::NAN
        } else if max == 0.0 || max.is_infinite() {
            max
        } else {
            scaled()
        }
    };
    of_extremes::<T, Norm2>(device, Norm2, exact, |_| false);
}

/// Returns the number that a NaN counts as.
fn ordered(x: f64, of_nan: f64) -> f64 {
    if x.is_nan() { of_nan } else { x }
}

fn ends<T: Stored>(device: &Device) {
    for extreme in Extreme::ALL {
        let x = row_of::<T>(extreme);
        let max = wide(&x).into_iter().map(|x| ordered(x, f64::NEG_INFINITY)).fold(f64::NEG_INFINITY, f64::max);
        let min = wide(&x).into_iter().map(|x| ordered(x, f64::INFINITY)).fold(f64::INFINITY, f64::min);
        assert_eq!(f64::from(reduced(device, Max, &x)), max, "{extreme:?}");
        assert_eq!(f64::from(reduced(device, Min, &x)), min, "{extreme:?}");
    }
}

fn places<T: Stored>(device: &Device) {
    for extreme in Extreme::ALL {
        let x = row_of::<T>(extreme);
        let first = |of_nan: f64, sign: f64| {
            let values: Vec<f64> = wide(&x).into_iter().map(|x| sign * ordered(x, of_nan)).collect();
            let best = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            values.iter().position(|x| *x == best).unwrap()
        };
        assert_eq!(reduced(device, ArgMax, &x) as usize, first(f64::NEG_INFINITY, 1.0), "{extreme:?}");
        assert_eq!(reduced(device, ArgMin, &x) as usize, first(f64::INFINITY, -1.0), "{extreme:?}");
    }
}

/// Computes the sigmoid, as a function for `map`.
#[device(value)]
fn sigmoid(x: f32) -> f32 {
    activation::sigmoid(x)
}

/// Checks the sigmoid of x, and the other functions.
fn activations<T: Stored>(device: &Device, x: &[T], of_sigmoid: f64, of_others: impl Fn(f64) -> f64) {
    let n = x.len();
    let on = device.upload(x).unwrap();
    let mut y = device.upload(x).unwrap();
    // The least positive number of the format.
    let least = if T::SCALAR == kernel_dsl::compiler::Scalar::F16 { 2f64.powi(-24) } else { 2f64.powi(-133) };
    macro_rules! check {
        ($f:ident, $expected:expr) => {
            map(device, $f {}, on.view([n]).unwrap().strided(), y.view_mut([n]).unwrap().strided()).unwrap();
            for (x, y) in wide(x).into_iter().zip(wide(&y.download().unwrap())) {
                let expected: f64 = $expected(x);
                let is_near = near(y, expected, 1e-2) || (y - expected).abs() <= least;
                assert!(is_near, "{} of {x} is {y}, not {expected}", stringify!($f));
            }
        };
    }
    check!(sigmoid, |_| of_sigmoid);
    check!(silu, of_others);
    check!(gelu, of_others);
    check!(gelu_tanh, of_others);
    check!(fast_silu, of_others);
    check!(fast_gelu_tanh, of_others);
}

fn activations_of_nan<T: Stored>(device: &Device) {
    activations(device, &row_of::<T>(Extreme::AllNan), f64::NAN, |_| f64::NAN);
}

fn activations_of_infinity<T: Stored>(device: &Device) {
    activations(device, &stored::<T>(&[f32::INFINITY]), 1.0, |_| f64::INFINITY);
}

fn activations_of_the_largest<T: Stored>(device: &Device) {
    activations(device, &row_of::<T>(Extreme::HugePositive), 1.0, |x| x);
}

fn activations_of_subnormals<T: Stored>(device: &Device) {
    activations(device, &row_of::<T>(Extreme::Subnormal), 0.5, |x| x / 2.0);
}

fn activations_of_the_lowest<T: Stored>(device: &Device) {
    activations(device, &row_of::<T>(Extreme::Lowest), 0.0, |_| 0.0);
    activations(device, &row_of::<T>(Extreme::AllNegativeInfinity), 0.0, |_| 0.0);
}

/// Rows of equal logits that are drawn from.
const DRAWS: usize = 64;

fn tokens<T: Stored>(device: &Device, sample: Sample, logits: &[T]) -> Vec<u32> {
    let x = device.upload(&logits.repeat(DRAWS)).unwrap();
    let mut tokens = device.upload(&[77; DRAWS]).unwrap();
    sample.run(device, &x.view([DRAWS, logits.len()]).unwrap(), &mut tokens.view_mut([DRAWS]).unwrap()).unwrap();
    tokens.download().unwrap()
}

fn finite_logits<T: Stored>(device: &Device) {
    for extreme in Extreme::finite() {
        let drawn = tokens(device, Sample::new(3), &row_of::<T>(*extreme));
        assert!(drawn.iter().all(|token| (*token as usize) < COLUMNS), "{extreme:?}: {drawn:?}");
    }
    let small: Vec<f32> = (0..COLUMNS).map(|i| (i % 7) as f32).collect();
    let large: Vec<f32> = small.iter().map(|x| x + 64.0).collect();
    let [small, large] = [small, large].map(|x| tokens(device, Sample::new(3), &stored::<T>(&x)));
    assert_eq!(small, large);
}

fn logits_below_all<T: Stored>(device: &Device) {
    let (nan, low) = (f32::NAN, f32::NEG_INFINITY);
    assert_eq!(tokens(device, Sample::new(3), &stored::<T>(&[nan, low, 1.0, nan])), [2; DRAWS]);
    assert_eq!(tokens(device, Sample::new(3), &stored::<T>(&[nan, low, low, nan])), [0; DRAWS]);
}

fn infinite_logits<T: Stored>(device: &Device) {
    let high = f32::INFINITY;
    assert_eq!(tokens(device, Sample::new(3), &stored::<T>(&[1.0, high, 5.0, high])), [1; DRAWS]);
}

fn no_logits<T: Stored>(device: &Device) {
    assert_eq!(tokens(device, Sample::new(3), &stored::<T>(&[])), [u32::MAX; DRAWS]);
}

fn no_temperature<T: Stored>(device: &Device) {
    let logits = stored::<T>(&[1.0, 3.0, 3.0, 2.0]);
    for temperature in [0.0, 1e-40] {
        let sample = Sample::new(3).temperature(temperature);
        for sample in [sample, sample.top_k(2), sample.top_p(0.5)] {
            assert_eq!(tokens(device, sample, &logits), [1; DRAWS], "temperature {temperature}");
        }
    }
}

fn finite_temperatures<T: Stored>(device: &Device) {
    let (least, most) = (Sample::new(3).temperature(f32::MIN_POSITIVE), Sample::new(3).temperature(f32::MAX));
    assert_eq!(tokens(device, least, &stored::<T>(&[-1.0, 0.0])), [1; DRAWS]);
    assert_eq!(tokens(device, least, &row_of::<T>(Extreme::Lowest)[..2]).iter().max(), Some(&1));
    let largest = T::LARGEST_FINITE as f32;
    let mut drawn = tokens(device, most, &stored::<T>(&[largest, -largest]));
    drawn.sort_unstable();
    drawn.dedup();
    assert_eq!(drawn, [0, 1]);
}

fn infinite_temperature<T: Stored>(device: &Device) {
    let largest = T::LARGEST_FINITE as f32;
    let logits = stored::<T>(&[largest, f32::NEG_INFINITY, -largest, f32::NAN]);
    let sample = Sample::new(3).temperature(f32::INFINITY);
    for sample in [sample, sample.top_k(3)] {
        let mut drawn = tokens(device, sample, &logits);
        assert!((16..=48).contains(&drawn.iter().filter(|token| **token == 0).count()), "{drawn:?}");
        drawn.sort_unstable();
        drawn.dedup();
        assert_eq!(drawn, [0, 2]);
    }
}

fn counts(device: &Device, keys: &[f32], range: std::ops::RangeInclusive<f32>) -> Vec<u32> {
    let (keys, mut bins) = (device.upload(keys).unwrap(), device.zeros::<u32>(4).unwrap());
    histogram(device, &keys.view([keys.len()]).unwrap(), range, &mut bins.view_mut([4]).unwrap()).unwrap();
    bins.download().unwrap()
}

fn keys_themselves(device: &Device) {
    let mut bins = device.zeros::<u32>(4).unwrap();
    let keys = device.upload(&[0u8, 3, 3, 4, 255]).unwrap();
    histogram(device, &keys.view([5]).unwrap(), 0.0..=0.0, &mut bins.view_mut([4]).unwrap()).unwrap();
    assert_eq!(bins.download().unwrap(), [1, 0, 0, 2]);
    let keys = device.upload(&[0u32, 3, 3, 4, u32::MAX]).unwrap();
    histogram(device, &keys.view([5]).unwrap(), 0.0..=0.0, &mut bins.view_mut([4]).unwrap()).unwrap();
    assert_eq!(bins.download().unwrap(), [1, 0, 0, 2]);
}

fn keys_in_range(device: &Device) {
    assert_eq!(counts(device, &[-3e38, -1e38, 1e38, 3e38], -3e38..=3e38), [1; 4]);
    assert_eq!(counts(device, &[f32::MIN, f32::MAX, 0.0, -0.0], f32::MIN..=f32::MAX), [1, 0, 2, 1]);
    let unit = f32::from_bits(1);
    assert_eq!(counts(device, &[0.0, unit, 2.0 * unit, 4.0 * unit], 0.0..=4.0 * unit), [1, 1, 1, 1]);
    assert_eq!(counts(device, &[2.0, 2.0], 2.0..=2.0), [0, 0, 0, 2]);
}

fn keys_without_bin(device: &Device) {
    let keys = [-1.0, 5.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN];
    assert_eq!(counts(device, &keys, 0.0..=4.0), [0; 4]);
}

/// Returns the first element.
fn only<T: Element>(memory: &QueueMemory<T>) -> T {
    match memory {
        QueueMemory::Buffer(buffer) => buffer.download().unwrap()[0],
        QueueMemory::Slot(_) => panic!("memory of a graph"),
    }
}

/// Returns scale and zero point, bytes, and the numbers that they represent.
fn quantized<T: Stored>(device: &Device, x: &[T], symmetric: bool) -> (f64, i32, Vec<i8>, Vec<f64>) {
    let shape = [1, x.len()];
    let on = device.upload(x).unwrap();
    let (mut q, mut y) = (device.zeros::<i8>(x.len()).unwrap(), device.zeros::<f32>(x.len()).unwrap());
    let affine = Affine::fit(device, &on.view(shape).unwrap(), symmetric).unwrap();
    affine.quantize(device, &on.view(shape).unwrap(), &mut q.view_mut(shape).unwrap()).unwrap();
    affine.dequantize(device, &q.view(shape).unwrap(), &mut y.view_mut(shape).unwrap()).unwrap();
    let (scale, zero) = (only(&affine.scale), only(&affine.zero));
    (scale.into(), zero, q.download().unwrap(), wide(&y.download().unwrap()))
}

/// Checks that quantization changes finite numbers by at most half a scale.
fn comes_back<T: Stored>(device: &Device, extreme: Extreme) {
    for symmetric in [false, true] {
        let x = row_of::<T>(extreme);
        let (scale, zero, _, back) = quantized(device, &x, symmetric);
        assert!(scale.is_finite() && scale >= 2f64.powi(-149), "{extreme:?}: a scale of {scale}");
        assert!((-128..=127).contains(&zero), "{extreme:?}: a zero point of {zero}");
        for (x, y) in wide(&x).into_iter().zip(back) {
            assert!(y.abs() <= f64::from(f32::MAX), "{extreme:?}: {y}");
            let off = 0.5001 * scale + 1e-6 * x.abs() + 2f64.powi(-149);
            assert!((x - y).abs() <= off, "{extreme:?}, symmetric {symmetric}: {x} becomes {y}, scale {scale}");
        }
    }
}

fn bytes_of_huge_numbers<T: Stored>(device: &Device) {
    for extreme in [Extreme::Huge, Extreme::HugePositive, Extreme::Largest, Extreme::Lowest] {
        comes_back::<T>(device, extreme);
    }
}

fn bytes_of_tiny_numbers<T: Stored>(device: &Device) {
    comes_back::<T>(device, Extreme::Tiny);
    comes_back::<T>(device, Extreme::Subnormal);
}

fn bytes_of_zeros<T: Stored>(device: &Device) {
    for symmetric in [false, true] {
        for extreme in [Extreme::Zeros, Extreme::NegativeZero] {
            let (scale, zero, q, back) = quantized(device, &row_of::<T>(extreme), symmetric);
            assert_eq!((scale, zero), (0.0, 0), "{extreme:?}");
            assert!(q.iter().all(|q| *q == 0) && all(&back, |x| x == 0.0), "{extreme:?}");
        }
        let (_, zero, q, back) = quantized(device, &stored::<T>(&[0.0, -0.0, 1.0, -3.0]), symmetric);
        assert!(q[..2].iter().all(|q| i32::from(*q) == zero) && back[..2] == [0.0, 0.0], "{q:?}, {back:?}");
    }
}

fn bytes_of_infinities<T: Stored>(device: &Device) {
    let values = [1.0, -2.0, 0.5, 0.0];
    let with = [&values[..], &[f32::INFINITY, f32::NEG_INFINITY]].concat();
    for symmetric in [false, true] {
        let (scale, zero, ..) = quantized(device, &stored::<T>(&values), symmetric);
        let (same_scale, same_zero, q, back) = quantized(device, &stored::<T>(&with), symmetric);
        assert_eq!((scale, zero), (same_scale, same_zero));
        assert_eq!(q[4..], [127, -128], "symmetric {symmetric}");
        let stands_for = |q: i8| scale * f64::from(i32::from(q) - zero);
        assert!(q[4..].iter().zip(&back[4..]).all(|(q, x)| near(*x, stands_for(*q), 1e-6)), "{back:?}");
    }
}

fn bytes_of_nan<T: Stored>(device: &Device) {
    let values = [1.0, -2.0, 0.5, f32::NAN];
    for symmetric in [false, true] {
        let (scale, zero, ..) = quantized(device, &stored::<T>(&values[..3]), symmetric);
        let (same_scale, same_zero, q, back) = quantized(device, &stored::<T>(&values), symmetric);
        assert_eq!((scale, zero), (same_scale, same_zero));
        assert_eq!(q[3], 0);
        assert!(near(back[3], scale * f64::from(-zero), 1e-6), "{back:?}");
    }
}

/// A step of this optimizer multiplies weights by 0.75.
const DECAYING: AdamW = AdamW::new(0.5).decay(0.5);

/// Returns w, m and v of weights of 1 after a step for each gradient.
fn stepped<T: Stored>(device: &Device, adamw: AdamW, gradients: &[f32]) -> [f64; 3] {
    let mut w = device.upload(&stored::<T>(&[1.0])).unwrap();
    let [mut m, mut v] = [(); 2].map(|()| device.zeros::<f32>(1).unwrap());
    for (i, g) in gradients.iter().enumerate() {
        let g = device.upload(&stored::<T>(&[*g])).unwrap();
        let (w, m, v) = (&mut w.view_mut([1]).unwrap(), &mut m.view_mut([1]).unwrap(), &mut v.view_mut([1]).unwrap());
        adamw.step(device, i as u64 + 1, &g.view([1]).unwrap(), w, m, v).unwrap();
    }
    [wide(&w.download().unwrap())[0], m.download().unwrap()[0].into(), v.download().unwrap()[0].into()]
}

fn gradients_of_zero<T: Stored>(device: &Device) {
    for g in [0.0, -0.0] {
        assert_eq!(stepped::<T>(device, DECAYING, &[g]), [0.75, 0.0, 0.0]);
        assert!(stepped::<T>(device, DECAYING.epsilon(0.0), &[g])[0].is_nan());
    }
}

fn tiny_gradients<T: Stored>(device: &Device) {
    for extreme in [Extreme::Subnormal, Extreme::Tiny] {
        for g in row_of::<T>(extreme) {
            let [w, m, v] = stepped::<T>(device, DECAYING, &[g.to_f32()]);
            let g = f64::from(g.to_f32());
            assert!((m - 0.1 * g).abs() <= 1e-6 * g.abs() + 2f64.powi(-149), "{g:e}: m is {m:e}");
            assert!((v - 1e-3 * g * g).abs() <= 1e-5 * g * g + 2f64.powi(-149), "{g:e}: v is {v:e}");
            // The step is at most the rate times |g| / (|g| + ε).
            assert!((w - 0.75).abs() <= 0.5 * g.abs() / (g.abs() + 1e-8) + 1e-2, "{g:e}: w is {w}");
        }
    }
}

fn huge_gradients<T: Stored>(device: &Device) {
    for g in [1e22, -1e22].into_iter().filter(|g| T::from_f32(*g).to_f32().is_finite()) {
        for (later, expected) in [(&[][..], 0.75), (&[1.0][..], 0.5625)] {
            let [w, _, v] = stepped::<T>(device, DECAYING, &[&[g][..], later].concat());
            assert_eq!([w, v], [expected, f64::INFINITY]);
        }
    }
}

fn infinite_gradients<T: Stored>(device: &Device) {
    for g in [f32::INFINITY, f32::NEG_INFINITY] {
        let [w, m, v] = stepped::<T>(device, DECAYING, &[g]);
        assert!(w.is_nan() && [m, v] == [f64::from(g), f64::INFINITY], "{w}, {m}, {v}");
    }
}

fn gradients_of_nan<T: Stored>(device: &Device) {
    assert!(all(&stepped::<T>(device, DECAYING, &[f32::NAN]), f64::is_nan));
}
