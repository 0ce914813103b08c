//! Row-wise kernels with the hardware's approximations, and dot products of bytes.

use kernel_dsl::prelude::*;

/// Computes with a warp per row: the maximum, the sum of exponentials, the quotients.
#[kernel(block = (32, 8), grid = x.rows().div_ceil(8), tolerance(y(relative = 1e-5, absolute = 1e-7)))]
#[requires(y.rows() == x.rows(), y.cols() == x.cols())]
pub fn softmax(x: View<f32, 2>, y: ViewMut<f32, 2>) {
    let row = block::x() * 8 + thread::y();
    if row >= x.rows() {
        return;
    }
    let (x, mut y) = (x.at(row), y.at(row));
    let mut top = f32::NEG_INFINITY;
    for i in (warp::lane()..x.len()).step_by(32) {
        top = top.max(x[i]);
    }
    let top = warp::max(top);
    let mut sum = 0.0;
    for i in (warp::lane()..x.len()).step_by(32) {
        sum += fast::exp(x[i] - top);
    }
    let scale = fast::div(1.0, warp::sum(sum));
    for i in (warp::lane()..x.len()).step_by(32) {
        y[i] = fast::exp(x[i] - top) * scale;
    }
}

/// Computes with a warp per row: mean, variance, and (x − mean) / √(variance + ε) · weight + bias,
/// with one copy of each loop.
#[kernel(block = (32, 8), grid = x.rows().div_ceil(8), tolerance(y(relative = 1e-5, absolute = 1e-6)))]
#[requires(y.rows() == x.rows(), y.cols() == x.cols(), weight.len() == x.cols(), bias.len() == x.cols())]
pub fn layernorm(x: View<f32, 2>, weight: &[f32], bias: &[f32], y: ViewMut<f32, 2>, epsilon: f32) {
    let row = block::x() * 8 + thread::y();
    if row >= x.rows() {
        return;
    }
    let (x, mut y) = (x.at(row), y.at(row));
    let mut sum = 0.0;
    for i in rolled((warp::lane()..x.len()).step_by(32)) {
        sum += x[i];
    }
    let mean = fast::div(warp::sum(sum), x.len() as f32);
    let mut squares = 0.0;
    for i in rolled((warp::lane()..x.len()).step_by(32)) {
        let d = x[i] - mean;
        squares = d.mul_add(d, squares);
    }
    let scale = fast::rsqrt(fast::div(warp::sum(squares), x.len() as f32) + epsilon);
    for i in rolled((warp::lane()..x.len()).step_by(32)) {
        y[i] = ((x[i] - mean) * scale).mul_add(weight[i], bias[i]);
    }
}

/// Computes sums of products of bytes, four at once, with one sum per thread.
#[kernel(block = 256, grid = sums.len() / 256)]
#[requires(sums.len() % 256 == 0, a.len() == b.len())]
pub fn dot(a: &[[i8; 4]], b: &[[i8; 4]], sums: &mut [i32]) {
    let mut sum = 0;
    for i in (grid::index()..a.len()).step_by(grid::threads()) {
        sum = dp4a(a[i], b[i], sum);
    }
    sums[grid::index()] = sum;
}

/// Rotates the pairs (x[i], x[i + half]) of each row by the angle of the row's position and the
/// pair's frequency.
#[kernel(block = 64, grid = x.rows(), tolerance(x(relative = 1e-4, absolute = 1e-4)))]
#[requires(x.cols() % 2 == 0, frequencies.len() == x.cols() / 2)]
pub fn rotary(x: ViewMut<f32, 2>, frequencies: &[f32], first: u32) {
    let half = x.cols() / 2;
    let position = (first + block::x() as u32) as f32;
    let mut x = x.at(block::x());
    for i in (thread::x()..half).step_by(64) {
        let angle = position * frequencies[i];
        let (s, c) = (fast::sin(angle), fast::cos(angle));
        let (a, b) = (x[i], x[i + half]);
        x[i] = a.mul_add(c, -(b * s));
        x[i + half] = b.mul_add(c, a * s);
    }
}
