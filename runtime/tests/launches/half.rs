//! Kernels over `f16` and `bf16`: as lowered, after all passes, on the host as compiled by rustc,
//! and on a GPU.
//!
//! The expected results come from the arithmetic of the crate `half`, with the canonical NaN of the
//! language.

use kernel_dsl::compiler::hir::Instance;
use kernel_dsl::half::{bf16, f16};
use kernel_dsl::{Artifact, Element, Kernel, ScalarElement, host};
use runtime::Device;
use runtime::testing::{Bound, Case, Checker, Expected, Input, PreparedInstance, Random};

#[path = "../../../kernel-dsl/compiler/tests/ptx_support/mod.rs"]
mod ptx_support;

/// The number of rows in the table that `operations` makes.
const ROWS: usize = 16;

/// Defines the same kernels for both types. The operations of the kernels are device functions,
/// which are plain Rust on the host too.
macro_rules! kernels {
    ($half:ident, $module:ident) => {
        mod $module {
            use kernel_dsl::prelude::*;

            #[kernel(block = 64, grid = y.len().div_ceil(64))]
            #[requires(x.len() == y.len(), a <= $half::MAX)]
            pub fn axpy(a: $half, x: &[$half], y: &mut [$half]) {
                add_scaled(a, x, y);
            }

            #[kernel(block = 64, grid = a.len().div_ceil(64))]
            #[requires(b.len() == a.len(), c.len() == a.len(), out.len() == 16 * a.len())]
            pub fn operations(a: &[$half], b: &[$half], c: &[$half], out: &mut [u16]) {
                compute(a, b, c, out);
            }

            #[device]
            pub fn add_scaled(a: $half, x: &[$half], y: &mut [$half]) {
                let i = grid::index();
                if i < y.len() {
                    y[i] = a * x[i] + y[i];
                }
            }

            #[device]
            pub fn compute(a: &[$half], b: &[$half], c: &[$half], out: &mut [u16]) {
                let i = grid::index();
                let n = a.len();
                if i < n {
                    let (x, y, z) = (a[i], b[i], c[i]);
                    out[i] = (x + y).to_bits();
                    out[n + i] = (x - y).to_bits();
                    out[2 * n + i] = (x * y).to_bits();
                    out[3 * n + i] = (x / y).to_bits();
                    out[4 * n + i] = (-x).to_bits();
                    out[5 * n + i] = x.abs().to_bits();
                    out[6 * n + i] = x.min(y).to_bits();
                    out[7 * n + i] = $half::max(x, y).to_bits();
                    out[8 * n + i] = x.mul_add(y, z).to_bits();
                    out[9 * n + i] = $half::from_f32(x.to_f32() * 3.0).to_bits();
                    let mut flags = 0u16;
                    if x < y {
                        flags |= 1;
                    }
                    if x <= y {
                        flags |= 2;
                    }
                    if x > y {
                        flags |= 4;
                    }
                    if x >= y {
                        flags |= 8;
                    }
                    if x == y {
                        flags |= 16;
                    }
                    if x != y {
                        flags |= 32;
                    }
                    out[10 * n + i] = flags;
                    // A selection, and an unchanged bit pattern.
                    let chosen = if x < y { z } else { x };
                    out[11 * n + i] = chosen.to_bits();
                    out[12 * n + i] = $half::from_bits(x.to_bits() ^ 1).to_bits();
                    // A loop-carried value in registers.
                    let mut sum = $half::ZERO;
                    let mut last = [$half::ONE; 2];
                    for j in unroll(0..4) {
                        sum += b[(i + j) % n];
                        last[j % 2] = sum;
                    }
                    out[13 * n + i] = sum.to_bits();
                    out[14 * n + i] = (last[0] * last[1]).to_bits();
                    sum = $half::MAX * $half::from_f32(0.1);
                    out[15 * n + i] = (sum - z).to_bits();
                }
            }

            #[kernel(block = (16, 16), grid = (x.cols().div_ceil(16), x.rows().div_ceil(16)))]
            #[requires(y.rows() == x.cols().next_multiple_of(16), y.cols() == x.rows().next_multiple_of(16))]
            pub fn transpose(x: View<$half, 2>, mut y: ViewMut<$half, 2>) {
                let tile = Shared::<$half, 2>::padded([16, 16]);
                let (row, col) = (block::y() * 16, block::x() * 16);
                tile.copy_from(x.offset((row, col)));
                block::sync();
                y[(col + thread::y(), row + thread::x())] = tile[(thread::x(), thread::y())];
            }
        }
    };
}
kernels!(f16, f16_kernels);
kernels!(bf16, bf16_kernels);

/// Computes the results of the crate `half`, with the canonical NaN.
macro_rules! expected {
    ($name:ident, $half:ident) => {
        fn $name(a: &[$half], b: &[$half], c: &[$half]) -> Vec<u16> {
            let n = a.len();
            let one = |x: $half| if x.is_nan() { 0x7FFF } else { x.to_bits() };
            let round = |x: f32| one($half::from_f32(x));
            // The order of the language: a NaN loses, and −0 is less than +0.
            let lesser = |x: $half, y: $half| match () {
                () if x.is_nan() => y,
                () if y.is_nan() => x,
                () if x.total_cmp(&y).is_lt() => x,
                () => y,
            };
            let mut out = vec![0u16; ROWS * n];
            for i in 0..n {
                let (x, y, z) = (a[i], b[i], c[i]);
                let flags = [x < y, x <= y, x > y, x >= y, x == y, x != y];
                let flags = flags.iter().enumerate().map(|(i, f)| u16::from(*f) << i).sum();
                let (mut sum, mut last) = ($half::ZERO, [$half::ONE; 2]);
                for j in 0..4 {
                    sum += b[(i + j) % n];
                    last[j % 2] = sum;
                }
                let row = [
                    one(x + y),
                    one(x - y),
                    one(x * y),
                    one(x / y),
                    x.to_bits() ^ 0x8000,
                    x.to_bits() & 0x7FFF,
                    one(lesser(x, y)),
                    one(-lesser(-x, -y)),
                    round(x.to_f32().mul_add(y.to_f32(), z.to_f32())),
                    round(x.to_f32() * 3.0),
                    flags,
                    if x < y { z.to_bits() } else { x.to_bits() },
                    x.to_bits() ^ 1,
                    one(sum),
                    one(last[0] * last[1]),
                    one($half::MAX * $half::from_f32(0.1) - z),
                ];
                row.iter().enumerate().for_each(|(k, bits)| out[k * n + i] = *bits);
            }
            out
        }
    };
}
expected!(expected_f16, f16);
expected!(expected_bf16, bf16);

/// Returns every bit pattern, and two lists of random and special values of the same length.
fn codes<T: runtime::testing::Draw + ScalarElement>(seed: u64) -> [Vec<T>; 3] {
    let mut random = Random::new(seed);
    let all: Vec<T> = (0..1u64 << 16).map(T::from_bits).collect();
    let others = (0..all.len()).map(|_| T::from_bits(random.bits() & 0xFFFF)).collect();
    let special = random.special_values(all.len());
    [all, others, special]
}

fn prepared<K: Kernel>() -> PreparedInstance {
    PreparedInstance::compile(K::ARTIFACT, &Instance::default()).unwrap()
}

/// Checks the kernel's outputs in every executor, bit for bit, and its u16 results against the
/// expected ones.
fn check_operations<T: Element>(
    checker: &Checker,
    prepared: &PreparedInstance,
    [a, b, c]: [&[T]; 3],
    expected: &[u16],
) {
    let inputs = [Input::slice(a), Input::slice(b), Input::slice(c), Input::slice(&vec![0u16; ROWS * a.len()])];
    let values: Vec<f64> = expected.iter().map(|x| f64::from(*x)).collect();
    let case = Case::new("operations", inputs);
    let outcome = checker.case(prepared, &case, |_| vec![Expected::new(3, values.clone(), Bound::Exact)]);
    assert_eq!(outcome, Ok(()));
}

fn operations(checker: &Checker) {
    let [a, b, c] = codes::<f16>(1);
    let k = prepared::<f16_kernels::operations>();
    check_operations(checker, &k, [&a, &b, &c], &expected_f16(&a, &b, &c));
    // Here equal operands, zeros and special values occur together.
    check_operations(checker, &k, [&c, &c, &a], &expected_f16(&c, &c, &a));
    let d = codes::<f16>(2)[2].clone();
    check_operations(checker, &k, [&c, &d, &b], &expected_f16(&c, &d, &b));

    let [a, b, c] = codes::<bf16>(1);
    let k = prepared::<bf16_kernels::operations>();
    check_operations(checker, &k, [&a, &b, &c], &expected_bf16(&a, &b, &c));
    check_operations(checker, &k, [&c, &c, &a], &expected_bf16(&c, &c, &a));
    let d = codes::<bf16>(2)[2].clone();
    check_operations(checker, &k, [&c, &d, &b], &expected_bf16(&c, &d, &b));
}

macro_rules! small_kernels {
    ($name:ident, $half:ident, $kernels:ident) => {
        fn $name(checker: &Checker) {
            let mut random = Random::new(3);
            let value = |x: &$half| x.to_f64();
            for n in [0, 1, 63, 64, 1000] {
                let (x, y) = (random.special_values::<$half>(n), random.special_values::<$half>(n));
                let a = $half::from_f32(0.3);
                let sums: Vec<f64> = x.iter().zip(&y).map(|(x, y)| (a * *x + *y).to_f64()).collect();
                let case = Case::new("axpy", [Input::scalar(a), Input::slice(&x), Input::slice(&y)]);
                let outcome = checker
                    .case(&prepared::<$kernels::axpy>(), &case, |_| vec![Expected::new(2, sums.clone(), Bound::Exact)]);
                assert_eq!(outcome, Ok(()), "n = {n}");
            }
            for (rows, cols) in [(16, 16), (40, 35), (1, 70)] {
                let x = random.values::<$half>(rows * cols);
                let up = |n: usize| n.next_multiple_of(16);
                let mut expected = vec![0.0; up(rows) * up(cols)];
                for (i, x) in x.iter().enumerate() {
                    expected[i % cols * up(rows) + i / cols] = value(x);
                }
                let y = vec![$half::ONE; expected.len()];
                let inputs = [Input::view(&x, [rows, cols]), Input::view(&y, [up(cols), up(rows)])];
                let outcome = checker.case(&prepared::<$kernels::transpose>(), &Case::new("transpose", inputs), |_| {
                    vec![Expected::new(1, expected.clone(), Bound::Exact)]
                });
                assert_eq!(outcome, Ok(()), "{rows} × {cols}");
            }
        }
    };
}
small_kernels!(small_f16, f16, f16_kernels);
small_kernels!(small_bf16, bf16, bf16_kernels);

#[test]
fn executors_agree_on_every_operation_and_code() {
    operations(&Checker::new(None));
}

#[test]
fn executors_agree_on_scalars_edges_and_shared_tiles() {
    small_f16(&Checker::new(None));
    small_bf16(&Checker::new(None));
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_gives_the_same_codes() {
    let checker = Checker::new(Some(Device::cuda(0).unwrap()));
    operations(&checker);
    small_f16(&checker);
    small_bf16(&checker);
}

/// Checks rustc's compilation of the same text. The crate `half` keeps a NaN's sign and payload,
/// and does not order zeros.
#[test]
fn rustc_agrees_on_the_codes() {
    macro_rules! compare {
        ($half:ident, $kernels:ident, $expected:ident) => {
            let mut random = Random::new(4);
            let [a, b, c] = [(); 3].map(|()| random.special_values::<$half>(256));
            let mut out = vec![0u16; ROWS * a.len()];
            let outs = host::SliceMut::new(&mut out);
            // SAFETY: each thread writes different elements.
            unsafe { host::run([4, 1, 1], [64, 1, 1], || $kernels::compute(&a, &b, &c, &mut outs.of_thread())) };
            drop(outs);
            for (k, (got, expected)) in out.iter().zip($expected(&a, &b, &c)).enumerate() {
                let (operation, i) = (k / a.len(), k % a.len());
                let nans = $half::from_bits(*got).is_nan() && $half::from_bits(expected).is_nan();
                let zeros = matches!(operation, 6 | 7) && (got | expected) & 0x7FFF == 0;
                let same = *got == expected || operation != 10 && nans || zeros;
                assert!(same, "operation {operation} of {:?} and {:?}: {got:#06x}, {expected:#06x}", a[i], b[i]);
            }
            let (a, mut y) = ($half::from_f32(0.3), b.clone());
            let ys = host::SliceMut::new(&mut y);
            // SAFETY: each thread writes different elements.
            unsafe { host::run([4, 1, 1], [64, 1, 1], || $kernels::add_scaled(a, &c, &mut ys.of_thread())) };
            drop(ys);
            for (y, (b, c)) in y.iter().zip(b.iter().zip(&c)) {
                let sum = a * *c + *b;
                assert!(y.to_bits() == sum.to_bits() || y.is_nan() && sum.is_nan());
            }
        };
    }
    compare!(f16, f16_kernels, expected_f16);
    compare!(bf16, bf16_kernels, expected_bf16);
}

fn artifacts() -> [&'static Artifact; 6] {
    [
        f16_kernels::axpy::ARTIFACT,
        f16_kernels::operations::ARTIFACT,
        f16_kernels::transpose::ARTIFACT,
        bf16_kernels::axpy::ARTIFACT,
        bf16_kernels::operations::ARTIFACT,
        bf16_kernels::transpose::ARTIFACT,
    ]
}

/// Checks that no instruction computes in 16 bits: on sm_61 such instructions have 1/64 of the
/// rate, or do not exist.
#[test]
fn arithmetic_is_not_in_16_bits() {
    for artifact in artifacts() {
        let ptx = artifact.instances[0].ptx;
        // An instruction's name follows its guard and precedes its operands.
        let names = ptx.lines().filter_map(|line| line.split_whitespace().find(|word| !word.starts_with('@')));
        for name in names.filter(|name| name.split('.').skip(1).any(|part| part.contains("f16"))) {
            assert!(["cvt.f32.f16", "cvt.rn.f16.f32"].contains(&name), "{}: {name}", artifact.name);
        }
    }
}

#[test]
fn ptxas_assembles_the_kernels_for_sm_61() {
    if !ptx_support::installed() {
        return;
    }
    for artifact in artifacts() {
        ptx_support::assemble(artifact.instances[0].ptx, 61).unwrap_or_else(|e| panic!("{}: {e}", artifact.module));
    }
}
