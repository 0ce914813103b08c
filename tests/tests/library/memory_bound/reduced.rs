//! Reductions of rows, of columns and of all elements.

use kernel_dsl::half::{bf16, f16};
use kernel_dsl::{Float, GenericArgument};
use kernels_rs::reduce::{self, ArgMax, ArgMin, Max, Mean, Min, Norm1, Norm2, Reduced, Sum};
use runtime::testing::{Draw, Extreme, Random};
use runtime::{Device, DeviceBuffer};

on_each_device! {
    cpu_reductions gpu_reductions reductions;
    cpu_specials gpu_specials specials;
    cpu_means_and_norms gpu_means_and_norms means_and_norms;
}

/// Reduces a row in f64, and returns the result with the error bound of f32.
type Reference = fn(&[f64]) -> (f64, f64);

fn gamma(n: usize) -> f64 {
    let nu = n as f64 / f64::from(1 << 24);
    nu / (1.0 - nu)
}

fn sum(x: &[f64]) -> (f64, f64) {
    (x.iter().sum(), gamma(x.len()) * norm1(x).0)
}

fn mean(x: &[f64]) -> (f64, f64) {
    let n = x.len() as f64;
    (sum(x).0 / n, gamma(x.len() + 1) * norm1(x).0 / n)
}

fn norm1(x: &[f64]) -> (f64, f64) {
    let size = x.iter().map(|x| x.abs()).sum::<f64>();
    (size, gamma(x.len()) * size)
}

fn norm2(x: &[f64]) -> (f64, f64) {
    let norm = x.iter().map(|x| x * x).sum::<f64>().sqrt();
    (norm, gamma(x.len() + 2) * norm)
}

fn max(x: &[f64]) -> (f64, f64) {
    (x.iter().copied().fold(f64::NEG_INFINITY, f64::max), 0.0)
}

fn min(x: &[f64]) -> (f64, f64) {
    (x.iter().copied().fold(f64::INFINITY, f64::min), 0.0)
}

/// Returns the first index of `best`; a NaN counts as `last`.
fn place(x: &[f64], best: f64, last: f64) -> (f64, f64) {
    let is = |x: &f64| *x == best || x.is_nan() && best == last;
    (x.iter().position(is).map_or(f64::from(u32::MAX), |at| at as f64), 0.0)
}

fn place_of_max(x: &[f64]) -> (f64, f64) {
    place(x, max(x).0, f64::NEG_INFINITY)
}

fn place_of_min(x: &[f64]) -> (f64, f64) {
    place(x, min(x).0, f64::INFINITY)
}

/// A matrix with `gap` elements after each row.
struct Matrix<X: kernel_dsl::Element> {
    host: Vec<f64>,
    buffer: DeviceBuffer<X>,
    shape: [usize; 3],
    pitch: usize,
}

impl<X: Draw + Float> Matrix<X> {
    fn new(device: &Device, random: &mut Random, shape: [usize; 3], gap: usize) -> Matrix<X> {
        let [n, rows, cols] = shape;
        let pitch = (cols + gap).max(1);
        // Few distinct values, so that the maximum occurs several times.
        let draw = |_| X::from_f32(random.below(41) as f32 / 8.0 - 2.5);
        let stored: Vec<X> = (0..(n * rows * pitch).max(1)).map(draw).collect();
        let host = stored.iter().map(|x| f64::from(x.to_f32())).collect();
        Matrix { host, buffer: device.upload(&stored).unwrap(), shape, pitch }
    }

    fn row(&self, row: usize) -> &[f64] {
        &self.host[row * self.pitch..row * self.pitch + self.shape[2]]
    }

    fn column(&self, matrix: usize, col: usize) -> Vec<f64> {
        (0..self.shape[1]).map(|r| self.row(matrix * self.shape[1] + r)[col]).collect()
    }
}

fn check<X: Draw + Float + GenericArgument, M: Reduced + Copy>(
    device: &Device,
    x: &Matrix<X>,
    monoid: M,
    to_f64: fn(M::Out) -> f64,
    reference: Reference,
) {
    let ([n, rows, cols], pitch) = (x.shape, x.pitch);
    let what = format!("{} of {n} of {rows} × {cols}, rows {pitch} apart", std::any::type_name::<M>());
    let near = |got: Vec<M::Out>, expected: Vec<(f64, f64)>, of: &str| {
        assert_eq!(got.len(), expected.len());
        for (i, (got, (expected, off))) in got.into_iter().map(to_f64).zip(expected).enumerate() {
            let equal = got == expected || got.is_nan() && expected.is_nan();
            assert!(equal || (got - expected).abs() <= 1.001 * off, "{what}, {of} {i}: {got}, not {expected}");
        }
    };
    let matrix = x.buffer.view_strided([n * rows, cols], [pitch, 1]).unwrap();
    let mut y = device.zeros::<M::Out>(n * rows).unwrap();
    reduce::rows(device, monoid, &matrix, &mut y.view_mut([n * rows]).unwrap()).unwrap();
    near(y.download().unwrap(), (0..n * rows).map(|r| reference(x.row(r))).collect(), "row");

    let batch = x.buffer.view_strided([n, rows, cols], [rows * pitch, pitch, 1]).unwrap();
    let mut y = device.zeros::<M::Out>(n * cols).unwrap();
    reduce::columns(device, monoid, &batch, &mut y.view_mut([n * cols]).unwrap()).unwrap();
    let columns = (0..n * cols).map(|i| reference(&x.column(i / cols, i % cols))).collect();
    near(y.download().unwrap(), columns, "column");

    let mut y = device.zeros::<M::Out>(1).unwrap();
    reduce::all(device, monoid, &matrix, &mut y.view_mut([1]).unwrap()).unwrap();
    let elements: Vec<f64> = (0..n * rows).flat_map(|r| x.row(r).to_vec()).collect();
    near(y.download().unwrap(), vec![reference(&elements)], "all");
}

/// Checks shapes that use each kernel, and each partition of the work.
fn reductions(device: &Device) {
    let mut random = Random::new(21);
    let shapes = [[1, 1, 1], [1, 5, 64], [2, 3, 37], [1, 70, 256], [1, 1, 9000], [1, 150, 8], [1, 3, 0], [1, 0, 3]];
    for shape in shapes {
        for gap in if shape[2] < 100 { vec![0, 3, 4] } else { vec![0] } {
            let x = Matrix::<f32>::new(device, &mut random, shape, gap);
            let (float, place) = (f64::from as fn(f32) -> f64, f64::from as fn(u32) -> f64);
            check(device, &x, Sum, float, sum);
            check(device, &x, ArgMax, place, place_of_max);
            if gap == 0 && shape[2] < 100 {
                check(device, &x, Mean, float, mean);
                check(device, &x, Norm1, float, norm1);
                check(device, &x, Norm2, float, norm2);
                check(device, &x, Max, float, max);
                check(device, &x, Min, float, min);
                check(device, &x, ArgMin, place, place_of_min);
                check(device, &Matrix::<f16>::new(device, &mut random, shape, 0), Sum, float, sum);
                check(device, &Matrix::<bf16>::new(device, &mut random, shape, 0), Max, float, max);
            }
        }
    }
}

/// Checks means and norms of rows whose sums or squares exceed the range of `f32`.
fn means_and_norms(device: &Device) {
    let run = |x: [f32; 4], mean: f32, norm: f32| {
        let near = |got: f32, expected: f32| {
            let near = got == expected
                || (got - expected).abs() <= 1e-6 * expected.abs() + 2e-44
                || got.is_nan() && expected.is_nan();
            assert!(near, "{x:?}: {got}, expected {expected}");
        };
        let x = device.upload(&x).unwrap();
        let mut y = device.zeros::<f32>(1).unwrap();
        reduce::rows(device, Mean, &x.view([1, 4]).unwrap(), &mut y.view_mut([1]).unwrap()).unwrap();
        near(y.download().unwrap()[0], mean);
        reduce::rows(device, Norm2, &x.view([1, 4]).unwrap(), &mut y.view_mut([1]).unwrap()).unwrap();
        near(y.download().unwrap()[0], norm);
    };
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    run([3e38, 3e38, 3e38, -1e38], 2e38, inf);
    run([f32::MAX; 4], f32::MAX, inf);
    run([f32::MIN, f32::MAX, f32::MIN, f32::MAX], 0.0, inf);
    run([1e38, 1e38, -1e38, 1e-38], 2.5e37, 3f32.sqrt() * 1e38);
    run([3e-30, 4e-30, 0.0, 0.0], 1.75e-30, 5e-30);
    run([3e-40, -3e-40, 4e-40, 4e-40], 2e-40, 50f32.sqrt() * 1e-40);
    run([3e30, 4e30, 1.0, 1e-30], 1.75e30, 5e30);
    run([inf, 1.0, 2.0, 3.0], inf, inf);
    run([inf, -inf, 2.0, 3.0], nan, inf);
    run([nan, 1.0, 2.0, 3.0], nan, nan);
    run([0.0, -0.0, 0.0, 0.0], 0.0, 0.0);
}

/// Checks every reduction with extreme values of the element type, against the documentation.
fn extremes<X: Draw + Float + GenericArgument>(device: &Device) {
    let (mut random, cols) = (Random::new(22), 24);
    for extreme in Extreme::ALL {
        let stored = [extreme.fill::<X>(&mut random, cols), extreme.fill::<X>(&mut random, cols)].concat();
        let host = stored.iter().map(|x| f64::from(x.to_f32())).collect();
        let x = Matrix { host, buffer: device.upload(&stored).unwrap(), shape: [1, 2, cols], pitch: cols };
        let (float, place) = (f64::from as fn(f32) -> f64, f64::from as fn(u32) -> f64);
        // Partial sums may overflow where the sum of magnitudes does.
        if norm1(&x.host).0 < f64::from(f32::MAX) || !norm1(&x.host).0.is_finite() {
            check(device, &x, Sum, float, sum);
        }
        check(device, &x, Mean, float, |x| (mean(x).0, mean(x).1 + 2f64.powi(-149)));
        check(device, &x, Norm1, float, |x| (overflowed(norm1(x).0), norm1(x).1));
        check(device, &x, Norm2, float, |x| (overflowed(norm2(x).0), norm2(x).1 + 2f64.powi(-149)));
        check(device, &x, Max, float, max);
        check(device, &x, Min, float, min);
        check(device, &x, ArgMax, place, place_of_max);
        check(device, &x, ArgMin, place, place_of_min);
    }
}

/// Returns the value as `f32` stores it.
fn overflowed(x: f64) -> f64 {
    if (x as f32).is_infinite() { f64::from(x as f32) } else { x }
}

/// Checks that NaN is ordered last, and that the first of equal elements is returned.
fn specials(device: &Device) {
    extremes::<f32>(device);
    extremes::<f16>(device);
    extremes::<bf16>(device);
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    let x = [[nan, 1.0, nan, 1.0], [nan; 4], [-inf; 4], [inf, -inf, inf, nan]].concat();
    let x = device.upload(&x).unwrap();
    let mut places = device.zeros::<u32>(4).unwrap();
    reduce::rows(device, ArgMax, &x.view([4, 4]).unwrap(), &mut places.view_mut([4]).unwrap()).unwrap();
    assert_eq!(places.download().unwrap(), [1, 0, 0, 0]);
    let mut y = device.zeros::<f32>(4).unwrap();
    reduce::rows(device, Max, &x.view([4, 4]).unwrap(), &mut y.view_mut([4]).unwrap()).unwrap();
    assert_eq!(y.download().unwrap(), [1.0, -inf, -inf, inf]);
    // A single matrix, with any stride.
    let apart = device.upload(&[1.0f32; 40]).unwrap();
    let mut sums = device.zeros::<f32>(8).unwrap();
    let matrix = apart.view_strided([1, 5, 8], [41, 8, 1]).unwrap();
    reduce::columns(device, Sum, &matrix, &mut sums.view_mut([8]).unwrap()).unwrap();
    assert_eq!(sums.download().unwrap(), [5.0; 8]);
    // The count exceeds 32 bits, including steps beyond the end; all rows are one broadcast
    // element.
    let mut one = sums.range_mut(0..1).unwrap();
    for far in [(1usize << 32) - 64, 1 << 33, usize::MAX] {
        let column = apart.view_strided([1, far, 1], [0, 0, 1]).unwrap();
        let said = reduce::columns(device, Sum, &column, &mut one).unwrap_err().to_string();
        assert!(said.contains("takes at most"), "{said}");
        let pairs = apart.view_strided([far, 2], [0, 1]).unwrap();
        let said = reduce::all(device, Sum, &pairs, &mut one).unwrap_err().to_string();
        assert!(said.contains("takes at most"), "{said}");
    }
    // A result without space for it.
    assert!(reduce::rows(device, Max, &x.view([2, 8]).unwrap(), &mut y.view_mut([4]).unwrap()).is_err());
}
