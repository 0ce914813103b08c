//! Results of the kernels.

use super::kernels::*;
use kernel_dsl::compiler::hir::{Constant, Instance};
use kernel_dsl::{Artifact, Kernel, View, ViewMut, host};
use runtime::Device;
use runtime::testing::{Bound, Case, Checker, Expected, Input, PreparedInstance, Random};

/// Runs the kernel on `inputs`, lowered, optimized, and on `gpu` if there is one, and compares the
/// arguments of `expected`.
#[track_caller]
pub fn check(
    artifact: &'static Artifact,
    constants: &[Constant],
    gpu: Option<&Device>,
    inputs: Vec<Input>,
    expected: Vec<(usize, Vec<f64>)>,
) {
    let one = |(argument, values)| Expected::new(argument, values, Bound::Exact);
    check_exact(artifact, constants, gpu, inputs, expected.into_iter().map(one).collect());
}

/// Runs the kernel as [`check`] does; the expected values may have any type.
pub fn check_exact(
    artifact: &'static Artifact,
    constants: &[Constant],
    gpu: Option<&Device>,
    inputs: Vec<Input>,
    expected: Vec<Expected>,
) {
    let prepared = PreparedInstance::compile(artifact, &Instance(constants.to_vec())).unwrap();
    let outcome = Checker::new(gpu.cloned()).case(&prepared, &Case::new("case", inputs), |_| expected);
    assert!(outcome.is_ok(), "{}: {}", artifact.name, outcome.unwrap_err());
}

pub fn wide(values: &[f32]) -> Vec<f64> {
    values.iter().map(|x| f64::from(*x)).collect()
}

/// Returns integers of a few bits, so that sums and products are exact in any order.
fn small(random: &mut Random, n: usize) -> Vec<f32> {
    (0..n).map(|_| random.below(64) as f32 - 32.0).collect()
}

fn axpy_agrees(gpu: Option<&Device>) {
    for n in [0, 1, 3, 4, 5, 127, 128, 130, 515] {
        let mut random = Random::new(n as u64);
        let (x, y) = (random.special_values::<f32>(n), random.values::<f32>(n));
        let sums: Vec<f32> = x.iter().zip(&y).map(|(x, y)| 1.5f32.mul_add(*x, *y)).collect();
        let inputs = vec![Input::scalar(1.5f32), Input::view(&x, [n]), Input::view(&y, [n])];
        check(axpy::ARTIFACT, &[], gpu, inputs, vec![(2, wide(&sums))]);
        let mut out = y.clone();
        // SAFETY: each thread accesses its own elements, and the vectors outlive the run.
        unsafe {
            let (x, y) = (View::host(&x, [n]), ViewMut::host(&mut out, [n]));
            host::run([n.div_ceil(128), 1, 1], [32, 1, 1], || axpy_of(1.5, x, y));
        }
        let bits = |v: &[f32]| v.iter().map(|x| if x.is_nan() { 0 } else { x.to_bits() }).collect::<Vec<_>>();
        assert_eq!(bits(&out), bits(&sums));
    }
}

fn copies_agree(gpu: Option<&Device>) {
    for n in [1, 2, 4, 8, 16] {
        for len in [0, 5, 16, 513, 1000] {
            let mut random = Random::new(n as u64);
            let x: Vec<u8> = (0..len).map(|_| random.below(256) as u8).collect();
            let (y, values) = (vec![0u8; len], x.iter().map(|x| f64::from(*x)).collect());
            let inputs = vec![Input::slice(&x), Input::slice(&y)];
            check(copy_bytes::<1>::ARTIFACT, &[Constant::Usize(n)], gpu, inputs, vec![(1, values)]);
            let x: Vec<i16> =
                (0..n as usize * 96).map(|_| random.below(65535) as u16 as i16).map(|x| x.max(-32767)).collect();
            let inputs = vec![Input::slice(&x), Input::slice(&vec![0i16; x.len()])];
            let values = x.iter().map(|x| -f64::from(*x)).collect();
            check(negate::<1>::ARTIFACT, &[Constant::Usize(n)], gpu, inputs, vec![(1, values)]);
            let x: Vec<f64> = (0..len / n as usize * n as usize).map(|_| random.below(1 << 20) as f64).collect();
            let inputs = vec![Input::slice(&x), Input::slice(&vec![0.0; x.len()])];
            let values = x.iter().map(|x| x + 1.0).collect();
            check(increment::<1>::ARTIFACT, &[Constant::Usize(n)], gpu, inputs, vec![(1, values)]);
        }
    }
}

fn neighbors_agree(gpu: Option<&Device>) {
    for (rows, cols) in [(1, 1), (3, 4), (5, 130), (2, 129), (4, 7)] {
        let x = small(&mut Random::new(cols as u64), rows * cols);
        let at = |row: i64, col: i64| {
            let inside = (0..rows as i64).contains(&row) && (0..cols as i64).contains(&col);
            if inside { x[row as usize * cols + col as usize] } else { 0.0 }
        };
        let around = |i: usize| -> f32 {
            let (row, col) = ((i / cols) as i64, (i % cols) as i64);
            (0..9).map(|d| at(row + d / 3 - 1, col + d % 3 - 1)).sum()
        };
        let sums: Vec<f32> = (0..rows * cols).map(around).collect();
        let y = vec![0f32; rows * cols];
        let inputs = vec![Input::view(&x, [rows, cols]), Input::view(&y, [rows, cols])];
        check(neighbors::ARTIFACT, &[], gpu, inputs, vec![(1, wide(&sums))]);
        let mut out = y;
        // SAFETY: each thread writes its own elements, and the vectors outlive the run.
        unsafe {
            let (x, y) = (View::host(&x, [rows, cols]), ViewMut::host(&mut out, [rows, cols]));
            host::run([cols.div_ceil(128), rows, 1], [32, 1, 1], || neighbors_of(x, y));
        }
        assert_eq!(out, sums);
    }
}

fn matmul_agrees(gpu: Option<&Device>) {
    let (m, n, k) = (64, 32, 96);
    let mut random = Random::new(9);
    let (a, b) = (small(&mut random, m * k), small(&mut random, k * n));
    let element = |i: usize| (0..k).map(|j| f64::from(a[i / n * k + j]) * f64::from(b[j * n + i % n])).sum();
    let inputs = vec![Input::view(&a, [m, k]), Input::view(&b, [k, n]), Input::view(&vec![0f32; m * n], [m, n])];
    check(matmul::ARTIFACT, &[], gpu, inputs, vec![(2, (0..m * n).map(element).collect())]);
}

fn histogram_agrees(gpu: Option<&Device>) {
    for n in [0, 1, 1000, 5003] {
        let mut random = Random::new(n as u64);
        // Few distinct values, so that several lanes access one element.
        let x: Vec<u8> = (0..n).map(|_| (random.below(20) * random.below(13)) as u8).collect();
        let mut counts = vec![7u32; 256];
        let inputs = vec![Input::view(&x, [n]), Input::view(&counts, [256])];
        let mut out = counts.clone();
        x.iter().for_each(|x| counts[usize::from(*x)] += 1);
        check(histogram::ARTIFACT, &[], gpu, inputs, vec![(1, counts.iter().map(|n| f64::from(*n)).collect())]);
        // SAFETY: threads share elements by atomic operations only, or with a barrier between the
        // accesses. The vectors outlive the run.
        unsafe {
            let (x, out) = (View::host(&x, [n]), ViewMut::host(&mut out, [256]));
            host::run([3, 1, 1], [64, 1, 1], || histogram_of(x, out));
        }
        assert_eq!(out, counts);
    }
}

fn product_agrees(gpu: Option<&Device>) {
    let mut random = Random::new(4);
    let x: Vec<u32> = (0..200).map(|_| random.below(1 << 31) as u32 * 2 + 1).collect();
    let expected = [x.iter().fold(3u32, |p, x| p.wrapping_mul(*x)), 200];
    let inputs = vec![Input::view(&x, [200]), Input::view(&[3u32, 0], [2])];
    check(product::ARTIFACT, &[], gpu, inputs, vec![(1, expected.iter().map(|n| f64::from(*n)).collect())]);
    let mut out = [3u32, 0];
    // SAFETY: threads share elements by atomic operations only, and the vectors outlive the run.
    unsafe {
        let (x, y) = (View::host(&x, [200]), ViewMut::host(&mut out, [2]));
        host::run([4, 1, 1], [64, 1, 1], || product_of(x, y));
    }
    assert_eq!(out, expected);
}

fn sums_agree(gpu: Option<&Device>) {
    // Integers, whose sums do not depend on the order.
    let mut random = Random::new(5);
    let (x, y) = (small(&mut random, 1000), small(&mut random, 50));
    let mut sums = y.clone();
    x.iter().enumerate().for_each(|(i, x)| sums[i % 50] += x);
    let inputs = |x: &[f32], y: &[f32]| vec![Input::slice(x), Input::slice(y), Input::slice(y)];
    check(sums::ARTIFACT, &[], gpu, inputs(&x, &y), vec![(1, wide(&sums)), (2, wide(&sums))]);
    // Subnormals: in global memory, atomic addition flushes operands and sums to signed zeros; in
    // shared memory it does not.
    let tiny = f32::from_bits(3);
    let least = f32::MIN_POSITIVE;
    let cases = [
        // The columns are: before, added, global, shared.
        (tiny, tiny, 0.0, tiny + tiny),
        (-tiny, -tiny, -0.0, -tiny - tiny),
        (least, tiny, least, least + tiny),
        (tiny, least, least, least + tiny),
        (least, -least * 1.5, -0.0, least - least * 1.5),
        (1.5 * least, -least, 0.0, 0.5 * least),
        (1.0, tiny, 1.0, 1.0),
        (f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::NAN),
        (f32::MAX, f32::MAX, f32::INFINITY, f32::INFINITY),
        (0.0, -0.0, 0.0, 0.0),
        (-0.0, -0.0, -0.0, -0.0),
    ];
    let (x, y): (Vec<f32>, Vec<f32>) = cases.iter().map(|c| (c.1, c.0)).unzip();
    let (global, shared): (Vec<f32>, Vec<f32>) = cases.iter().map(|c| (c.2, c.3)).unzip();
    check(sums::ARTIFACT, &[], gpu, inputs(&x, &y), vec![(1, wide(&global)), (2, wide(&shared))]);
}

fn double_sums_agree(gpu: Option<&Device>) {
    let mut random = Random::new(6);
    let (x, y) = (random.values::<f64>(100), random.values::<f64>(100));
    let after: Vec<f64> = y.iter().map(|y| y + 1.0).collect();
    let before = x.iter().zip(&y).map(|(x, y)| (x + y) + y).collect();
    let inputs = vec![Input::slice(&x), Input::slice(&y), Input::slice(&y)];
    check(double_sums::ARTIFACT, &[], gpu, inputs, vec![(1, after), (2, before)]);
}

/// Checks all operations on one integer type, against Rust.
macro_rules! every {
    ($gpu:expr, $($global:ident $shared:ident $t:ident)*) => {$({
        let mut random = Random::new(8);
        let edges = [0, 1, $t::MAX, $t::MIN, $t::MAX - 1, $t::MIN + 1, 5, $t::MAX / 2];
        let value = |random: &mut Random| edges[random.below(8) as usize];
        let x: Vec<$t> = (0..70).map(|_| value(&mut random)).collect();
        let y: Vec<$t> = (0..700).map(|_| value(&mut random)).collect();
        let (mut after, mut z) = (y.clone(), y.clone());
        for (i, &v) in x.iter().enumerate() {
            let a = &mut after[i * 10..][..10];
            z[i * 10..][..9].copy_from_slice(&a[..9]);
            z[i * 10 + 9] = 0;
            a[0] = a[0].wrapping_add(v);
            a[1] = a[1].min(v);
            a[2] = a[2].max(v);
            a[3] &= v;
            a[4] |= v;
            a[5] ^= v;
            a[6] = v;
            a[8] = if a[8] == y[i * 10] { 88 } else { a[8] };
            a[9] = if a[9].max(v) == v { 99 } else { a[9] };
            a[7] = v;
        }
        for kernel in [$global::ARTIFACT, $shared::ARTIFACT] {
            let inputs = [&x, &y, &vec![0; 700]].map(|v| Input::slice(v));
            let expected = [(1, &after), (2, &z)].map(|(argument, v)| Expected::exact(argument, v.iter().copied()));
            check_exact(kernel, &[], $gpu, inputs.into(), expected.into());
        }
    })*};
}

fn every_operation_agrees(gpu: Option<&Device>) {
    every!(gpu, every_i32 shared_i32 i32  every_u32 shared_u32 u32  every_i64 shared_i64 i64  every_u64 shared_u64 u64);
}

agreements! {
    axpy_of_four_and_the_rest gpu_axpy_of_four_and_the_rest axpy_agrees
    copies_of_every_width gpu_copies_of_every_width copies_agree
    masked_neighbors gpu_masked_neighbors neighbors_agree
    matmul_by_wide_shared_loads gpu_matmul_by_wide_shared_loads matmul_agrees
    histogram_by_shared_atomics gpu_histogram_by_shared_atomics histogram_agrees
    product_by_compare_exchange gpu_product_by_compare_exchange product_agrees
    float_sums gpu_float_sums sums_agree
    double_sums_and_exchanges gpu_double_sums_and_exchanges double_sums_agree
    every_operation_on_every_integer gpu_every_operation_on_every_integer every_operation_agrees
}
