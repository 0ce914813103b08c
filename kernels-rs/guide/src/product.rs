#![doc = include_str!(concat!(env!("OUT_DIR"), "/09_product.md"))]

use kernel_dsl::compiler::hir::Instance;
use kernel_dsl::prelude::*;
use runtime::testing::{Bound, Case, Expected, Input, Random};

/// Computes C = A·B; adjacent threads compute adjacent rows.
#[kernel(block = (32, 8), grid = (c.rows().div_ceil(32), c.cols().div_ceil(8)), writes(c = once))]
#[requires(a.cols() == b.rows(), c.rows() == a.rows(), c.cols() == b.cols())]
pub fn step1_naive(a: View<f32, 2>, b: View<f32, 2>, mut c: ViewMut<f32, 2>) {
    let (row, col) = (block::x() * 32 + thread::x(), block::y() * 8 + thread::y());
    if row < c.rows() && col < c.cols() {
        let mut sum = 0.0;
        for k in 0..a.cols() {
            sum = a[(row, k)].mul_add(b[(k, col)], sum);
        }
        c[(row, col)] = sum;
    }
}

/// Computes C = A·B; adjacent threads compute adjacent columns.
#[kernel(block = (32, 8), grid = (c.cols().div_ceil(32), c.rows().div_ceil(8)), writes(c = once))]
#[requires(a.cols() == b.rows(), c.rows() == a.rows(), c.cols() == b.cols())]
pub fn step2_coalesced(a: View<f32, 2>, b: View<f32, 2>, mut c: ViewMut<f32, 2>) {
    let (row, col) = (block::y() * 8 + thread::y(), block::x() * 32 + thread::x());
    if row < c.rows() && col < c.cols() {
        let mut sum = 0.0;
        for k in 0..a.cols() {
            sum = a[(row, k)].mul_add(b[(k, col)], sum);
        }
        c[(row, col)] = sum;
    }
}

/// Computes C = A·B by tiles of 32 × 32 in shared memory.
#[kernel(block = (32, 32), grid = (c.cols().div_ceil(32), c.rows().div_ceil(32)), writes(c = once))]
#[requires(a.cols() == b.rows(), c.rows() == a.rows(), c.cols() == b.cols())]
pub fn step3_shared(a: View<f32, 2>, b: View<f32, 2>, mut c: ViewMut<f32, 2>) {
    let ta = Shared::<f32, 2>::new([32, 32]);
    let tb = Shared::<f32, 2>::new([32, 32]);
    let (row, col) = (block::y() * 32 + thread::y(), block::x() * 32 + thread::x());
    let mut sum = 0.0;
    for k0 in (0..a.cols()).step_by(32) {
        ta.copy_from(a.offset((block::y() * 32, k0)));
        tb.copy_from(b.offset((k0, block::x() * 32)));
        block::sync();
        for k in unroll(0..32) {
            sum = ta[(thread::y(), k)].mul_add(tb[(k, thread::x())], sum);
        }
        block::sync();
    }
    if row < c.rows() && col < c.cols() {
        c[(row, col)] = sum;
    }
}

/// Computes C = A·B; a thread computes 8 rows of one column.
#[kernel(block = (64, 8), grid = (c.cols().div_ceil(64), c.rows().div_ceil(64)), writes(c = once))]
#[requires(a.cols() == b.rows(), c.rows() == a.rows(), c.cols() == b.cols())]
pub fn step4_column(a: View<f32, 2>, b: View<f32, 2>, mut c: ViewMut<f32, 2>) {
    let ta = Shared::<f32, 2>::new([64, 8]);
    let tb = Shared::<f32, 2>::new([8, 64]);
    let (row0, col0) = (block::y() * 64, block::x() * 64);
    let mut sums = [0.0f32; 8];
    for k0 in (0..a.cols()).step_by(8) {
        ta.copy_from(a.offset((row0, k0)));
        tb.copy_from(b.offset((k0, col0)));
        block::sync();
        for k in unroll(0..8) {
            let right = tb[(k, thread::x())];
            for i in unroll(0..8) {
                sums[i] = ta[(8 * thread::y() + i, k)].mul_add(right, sums[i]);
            }
        }
        block::sync();
    }
    for i in unroll(0..8) {
        let (row, col) = (row0 + 8 * thread::y() + i, col0 + thread::x());
        if row < c.rows() && col < c.cols() {
            c[(row, col)] = sums[i];
        }
    }
}

/// Computes C = A·B; a thread computes 8 × 8 elements that are 16 apart.
#[kernel(block = (16, 16), grid = (c.cols().div_ceil(128), c.rows().div_ceil(128)), writes(c = once))]
#[requires(a.cols() == b.rows(), c.rows() == a.rows(), c.cols() == b.cols())]
pub fn step5_square(a: View<f32, 2>, b: View<f32, 2>, mut c: ViewMut<f32, 2>) {
    let ta = Shared::<f32, 2>::new([128, 8]);
    let tb = Shared::<f32, 2>::new([8, 128]);
    let (row0, col0) = (block::y() * 128, block::x() * 128);
    let mut sums = [[0.0f32; 8]; 8];
    for k0 in (0..a.cols()).step_by(8) {
        ta.copy_from(a.offset((row0, k0)));
        tb.copy_from(b.offset((k0, col0)));
        block::sync();
        for k in unroll(0..8) {
            let mut right = [0.0f32; 8];
            for j in unroll(0..8) {
                right[j] = tb[(k, thread::x() + 16 * j)];
            }
            for i in unroll(0..8) {
                let left = ta[(thread::y() + 16 * i, k)];
                for j in unroll(0..8) {
                    sums[i][j] = left.mul_add(right[j], sums[i][j]);
                }
            }
        }
        block::sync();
    }
    for i in unroll(0..8) {
        for j in unroll(0..8) {
            let (row, col) = (row0 + thread::y() + 16 * i, col0 + thread::x() + 16 * j);
            if row < c.rows() && col < c.cols() {
                c[(row, col)] = sums[i][j];
            }
        }
    }
}

/// Adds the products of 8 numbers of a column of A and 8 numbers of a row of B.
#[device]
pub fn outer(sums: &mut [[f32; 8]; 8], left: &[[f32; 4]; 2], right: &[[f32; 4]; 2]) {
    for i in unroll(0..8) {
        for j in unroll(0..8) {
            sums[i][j] = left[i / 4][i % 4].mul_add(right[j / 4][j % 4], sums[i][j]);
        }
    }
}

/// Stores 8 × 8 sums: two by two squares of 4 × 4, which are 64 rows and columns apart.
#[device]
pub fn put(c: ViewMut<f32, 2>, row: usize, col: usize, sums: &[[f32; 8]; 8]) {
    for i in unroll(0..8) {
        for q in unroll(0..2) {
            let part = [sums[i][4 * q], sums[i][4 * q + 1], sums[i][4 * q + 2], sums[i][4 * q + 3]];
            c.store((row + i / 4 * 64 + i % 4, col + 64 * q), part);
        }
    }
}

/// Computes C = A·B with loads and stores of four numbers; A is transposed in shared memory.
#[kernel(block = 256, grid = (c.cols() / 128, c.rows() / 128), writes(c = once))]
#[requires(a.cols() == b.rows(), c.rows() == a.rows(), c.cols() == b.cols())]
#[requires(c.rows() % 128 == 0, c.cols() % 128 == 0, a.cols() % 8 == 0)]
#[requires(a.aligned(4), b.aligned(4), c.aligned(4))]
pub fn step6_vectors(a: View<f32, 2>, b: View<f32, 2>, c: ViewMut<f32, 2>) {
    let mut ta = Shared::<f32, 2>::new([8, 128]);
    let tb = Shared::<f32, 2>::new([8, 128]);
    let (row0, col0, t) = (block::y() * 128, block::x() * 128, thread::x());
    let (row, col) = (t / 16 * 4, t % 16 * 4);
    let mut sums = [[0.0f32; 8]; 8];
    for k0 in (0..a.cols()).step_by(8) {
        let from_a: [f32; 4] = a.load((row0 + t / 2, k0 + t % 2 * 4));
        let from_b: [f32; 4] = b.load((k0 + t / 32, col0 + t % 32 * 4));
        for i in unroll(0..4) {
            ta[(t % 2 * 4 + i, t / 2)] = from_a[i];
        }
        tb.store((t / 32, t % 32 * 4), from_b);
        block::sync();
        for k in unroll(0..8) {
            let left: [[f32; 4]; 2] = [ta.load((k, row)), ta.load((k, row + 64))];
            let right: [[f32; 4]; 2] = [tb.load((k, col)), tb.load((k, col + 64))];
            outer(&mut sums, &left, &right);
        }
        block::sync();
    }
    put(c, row0 + row, col0 + col, &sums);
}

/// Computes C = A·B with padded tiles, of which one is filled while the other is used.
#[kernel(
    block = 256, min_blocks = 2, max_registers = 128,
    grid = (c.cols() / 128, c.rows() / 128), writes(c = once),
)]
#[requires(a.cols() == b.rows(), c.rows() == a.rows(), c.cols() == b.cols())]
#[requires(c.rows() % 128 == 0, c.cols() % 128 == 0, a.cols() % 8 == 0)]
#[requires(a.aligned(4), b.aligned(4), c.aligned(4))]
pub fn step7_double(a: View<f32, 2>, b: View<f32, 2>, c: ViewMut<f32, 2>) {
    let mut ta = Shared::<f32, 3>::with_pitch([2, 8, 128], 132);
    let tb = Shared::<f32, 3>::new([2, 8, 128]);
    let (row0, col0, t) = (block::y() * 128, block::x() * 128, thread::x());
    let (row, col) = (t / 16 * 4, t % 16 * 4);
    let mut sums = [[0.0f32; 8]; 8];
    let mut from_a: [f32; 4] = a.load((row0 + t / 2, t % 2 * 4));
    let mut from_b: [f32; 4] = b.load((t / 32, col0 + t % 32 * 4));
    for k0 in rolled((0..a.cols()).step_by(8)) {
        let now = k0 / 8 % 2;
        for i in unroll(0..4) {
            ta[(now, t % 2 * 4 + i, t / 2)] = from_a[i];
        }
        tb.store((now, t / 32, t % 32 * 4), from_b);
        block::sync();
        // The next tile is loaded while this one is used.
        if k0 + 8 < a.cols() {
            from_a = a.load((row0 + t / 2, k0 + 8 + t % 2 * 4));
            from_b = b.load((k0 + 8 + t / 32, col0 + t % 32 * 4));
        }
        for k in unroll(0..8) {
            let left: [[f32; 4]; 2] = [ta.load((now, k, row)), ta.load((now, k, row + 64))];
            let right: [[f32; 4]; 2] = [tb.load((now, k, col)), tb.load((now, k, col + 64))];
            outer(&mut sums, &left, &right);
        }
    }
    put(c, row0 + row, col0 + col, &sums);
}

runtime::register!(step1_naive, any_shapes, product);
runtime::register!(step2_coalesced, any_shapes, product);
runtime::register!(step3_shared, any_shapes, product);
runtime::register!(step4_column, any_shapes, product);
runtime::register!(step5_square, any_shapes, product);
runtime::register!(step6_vectors, whole_tiles, product);
runtime::register!(step7_double, whole_tiles, product);

/// Returns shapes around the tiles' edges. The last case is the one that is measured.
fn any_shapes(_: &Instance, random: &mut Random) -> Vec<Case> {
    [[1, 1, 1], [33, 65, 17], [70, 130, 40], [128, 128, 128]].map(|shape| matrices(random, shape)).into()
}

fn whole_tiles(_: &Instance, random: &mut Random) -> Vec<Case> {
    [[128, 128, 8], [128, 256, 16], [128, 128, 128]].map(|shape| matrices(random, shape)).into()
}

fn matrices(random: &mut Random, [m, n, k]: [usize; 3]) -> Case {
    let mut view = |rows, cols| Input::view(&random.values::<f32>(rows * cols), [rows, cols]);
    let inputs = [view(m, k), view(k, n), Input::uninitialized::<f32, 2>([m, n])];
    Case::new(format!("{m} × {n} × {k}"), inputs)
}

/// Computes the product in f64. Each of the k multiply-adds rounds once, by at most 2⁻²⁴ of the sum
/// of the magnitudes (Higham, Accuracy and Stability, section 3.1).
fn product(_: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let (a, b) = (inputs[0].values(), inputs[1].values());
    let (&[m, k], &[_, n]) = (inputs[0].extents(), inputs[1].extents()) else { return Vec::new() };
    let (mut sums, mut bounds) = (Vec::new(), Vec::new());
    for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
        let terms = || (0..k).map(|l| a[i * k + l] * b[l * n + j]);
        sums.push(terms().sum());
        bounds.push(1.001 * k as f64 * 2f64.powi(-24) * terms().map(f64::abs).sum::<f64>());
    }
    vec![Expected::new(2, sums, Bound::Each(bounds))]
}
