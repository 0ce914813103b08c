//! Tests of kernels written as plain functions with the prelude, run on the host and compared with
//! plain Rust.

use kernel_dsl::host;
use kernel_dsl::prelude::*;

fn saxpy(a: f32, x: &[f32], y: &mut [f32]) {
    let i = grid::index();
    if i < y.len() {
        y[i] = a.mul_add(x[i], y[i]);
    }
}

fn matmul<const T: usize>(a: View<f32, 2>, b: View<f32, 2>, mut c: ViewMut<f32, 2>) {
    let ta = Shared::<f32, 2>::padded([T, T]);
    let tb = Shared::<f32, 2>::padded([T, T]);
    let (row, col) = (block::y() * T + thread::y(), block::x() * T + thread::x());
    let mut acc = 0.0;
    for k in (0..a.cols()).step_by(T) {
        ta.copy_from(a.offset((block::y() * T, k)));
        tb.copy_from(b.offset((k, block::x() * T)));
        block::sync();
        for i in unroll(0..T) {
            acc = ta[(thread::y(), i)].mul_add(tb[(i, thread::x())], acc);
        }
        block::sync();
    }
    if row < c.rows() && col < c.cols() {
        c[(row, col)] = acc;
    }
}

fn softmax<const ROWS: usize>(x: View<f32, 2>, mut y: ViewMut<f32, 2>) {
    let row = block::x() * ROWS + thread::y();
    let (x, inside) = (x.offset((row, 0)), row < x.rows());
    let cols = if inside { x.cols() } else { 0 };
    let mut m = f32::NEG_INFINITY;
    for i in (warp::lane()..cols).step_by(32) {
        m = m.max(x[(0, i)]);
    }
    let m = warp::max(m);
    let mut s = 0.0;
    for i in (warp::lane()..cols).step_by(32) {
        s += math::exp(x[(0, i)] - m);
    }
    let s = warp::sum(s);
    for i in (warp::lane()..cols).step_by(32) {
        y[(row, i)] = math::exp(x[(0, i)] - m) / s;
    }
}

fn transpose(x: View<f32, 2>, mut y: ViewMut<f32, 2>) {
    let mut tile = Shared::<f32, 2>::with_pitch([32, 32], 33);
    let (from_row, from_col) = (block::y() * 32, block::x() * 32);
    for j in unroll(0..4) {
        let (r, c) = (thread::y() + 8 * j, thread::x());
        if from_row + r < x.rows() && from_col + c < x.cols() {
            tile[(r, c)] = x[(from_row + r, from_col + c)];
        }
    }
    block::sync();
    for j in unroll(0..4) {
        let (r, c) = (thread::y() + 8 * j, thread::x());
        if from_col + r < y.rows() && from_row + c < y.cols() {
            y[(from_col + r, from_row + c)] = tile[(c, r)];
        }
    }
}

/// Returns values of a few bits from a linear congruential generator, so that sums of products are
/// exact in any order.
fn values(n: usize, seed: u32) -> Vec<f32> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1664525).wrapping_add(1013904223);
        (state >> 24) as f32 / 8.0 - 16.0
    };
    (0..n).map(|_| next()).collect()
}

#[test]
fn saxpy_is_correct_on_a_ragged_grid() {
    for n in [0, 1, 64, 100] {
        let (x, before) = (values(n, 1), values(n, 2));
        let mut y = before.clone();
        let ys = host::SliceMut::new(&mut y);
        // SAFETY: each thread accesses only one element, separate from the others.
        unsafe { host::run([n.div_ceil(32), 1, 1], [32, 1, 1], || saxpy(1.5, &x, &mut ys.of_thread())) };
        drop(ys);
        for i in 0..n {
            assert_eq!(y[i], 1.5 * x[i] + before[i]);
        }
    }
}

fn check_matmul<const T: usize>(m: usize, n: usize, k: usize) {
    let (a, b) = (values(m * k, 3), values(k * n, 4));
    let mut c = vec![f32::NAN; m * n];
    // SAFETY: each thread writes separate elements, barriers separate the uses of the tiles, and
    // the vectors outlive the run.
    unsafe {
        let (a, b, c) = (View::host(&a, [m, k]), View::host(&b, [k, n]), ViewMut::host(&mut c, [m, n]));
        host::run([n.div_ceil(T), m.div_ceil(T), 1], [T, T, 1], || matmul::<T>(a, b, c));
    }
    for (i, got) in c.iter().enumerate() {
        let (row, col) = (i / n, i % n);
        let want: f64 = (0..k).map(|j| f64::from(a[row * k + j]) * f64::from(b[j * n + col])).sum();
        assert_eq!(f64::from(*got), want, "{m} × {n} × {k}, element ({row}, {col})");
    }
}

#[test]
fn matmul_is_correct_at_ragged_edges() {
    check_matmul::<4>(8, 8, 8);
    check_matmul::<4>(7, 9, 5);
    check_matmul::<4>(3, 3, 0);
    check_matmul::<16>(17, 1, 33);
}

#[test]
fn softmax_is_correct_on_rows_of_any_length() {
    for (rows, cols) in [(1, 1), (3, 31), (5, 100), (4, 0)] {
        let x = values(rows * cols, 5);
        let mut y = vec![f32::NAN; rows * cols];
        // SAFETY: each thread writes separate elements, and the vectors outlive the run.
        unsafe {
            let (x, y) = (View::host(&x, [rows, cols]), ViewMut::host(&mut y, [rows, cols]));
            host::run([rows.div_ceil(2), 1, 1], [32, 2, 1], || softmax::<2>(x, y));
        }
        for row in 0..rows {
            let (x, y) = (&x[row * cols..][..cols], &y[row * cols..][..cols]);
            let largest = x.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let exps: Vec<f64> = x.iter().map(|v| f64::from(v - largest).exp()).collect();
            let sum: f64 = exps.iter().sum();
            for (got, e) in y.iter().zip(exps) {
                // The error is at most 1 ulp of exp in the numerator and in each term, 5 + cols/32
                // additions, and one division: far below 16 units of 2⁻²⁴.
                let want = e / sum;
                assert!((f64::from(*got) - want).abs() <= want * 16.0 / f64::from(1 << 24), "{got} {want}");
            }
        }
    }
}

#[test]
fn transpose_is_correct_at_ragged_edges() {
    for (rows, cols) in [(32, 32), (33, 40), (1, 65)] {
        let x = values(rows * cols, 6);
        let mut y = vec![f32::NAN; rows * cols];
        // SAFETY: each thread writes separate elements, a barrier separates the uses of the tile,
        // and the vectors outlive the run.
        unsafe {
            let (x, y) = (View::host(&x, [rows, cols]), ViewMut::host(&mut y, [cols, rows]));
            host::run([cols.div_ceil(32), rows.div_ceil(32), 1], [32, 8, 1], || transpose(x, y));
        }
        for i in 0..rows * cols {
            assert_eq!(y[i % cols * rows + i / cols], x[i]);
        }
    }
}
