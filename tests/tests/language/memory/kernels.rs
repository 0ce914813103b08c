//! The kernels. Kernels that rustc runs too have device functions as bodies, which are functions on
//! the host.

use kernel_dsl::prelude::*;

/// Computes y ← a·x + y, four elements per thread.
#[device]
pub fn axpy_of(a: f32, x: View<f32, 1>, y: ViewMut<f32, 1>) {
    let i = grid::index() * 4;
    if i + 4 <= y.len() {
        let v: [f32; 4] = x.load(i);
        let mut w = y.load::<4>(i);
        for k in unroll(0..4) {
            w[k] = a.mul_add(v[k], w[k]);
        }
        y.store(i, w);
    } else {
        let v = x.load_or::<4>(i, 0.0);
        let mut w: [f32; 4] = y.load_or(i, 0.0);
        for k in unroll(0..4) {
            w[k] = a.mul_add(v[k], w[k]);
        }
        y.store_in(i, w);
    }
}

#[kernel(block = 32, grid = y.len().div_ceil(128))]
#[requires(x.len() == y.len(), x.aligned(4), y.aligned(4))]
pub fn axpy(a: f32, x: View<f32, 1>, y: ViewMut<f32, 1>) {
    axpy_of(a, x, y);
}

/// Copies y ← x, N bytes per thread.
#[kernel(block = 32, grid = y.len().div_ceil(32 * N), instances(N = 1 | 2 | 4 | 8 | 16))]
#[requires(x.len() == y.len(), x.aligned(N), y.aligned(N))]
pub fn copy_bytes<const N: usize>(x: &[u8], y: &mut [u8]) {
    let i = grid::index() * N;
    if i + N <= y.len() {
        let v: [u8; N] = x.load(i);
        y.store(i, v);
    } else {
        y.store_in(i, x.load_or::<N>(i, 0));
    }
}

/// Computes y ← −x through shared memory, N 16-bit integers per thread.
#[kernel(block = 32, grid = x.len() / (32 * N), instances(N = 1 | 2 | 4 | 8 | 16))]
#[requires(x.len() == y.len(), x.len() % (32 * N) == 0, x.aligned(N.min(8)), y.aligned(N.min(8)))]
pub fn negate<const N: usize>(x: &[i16], y: &mut [i16]) {
    let s = Shared::<i16, 2>::new([32, N]);
    s.store((thread::x(), 0), x.load::<N>(grid::index() * N));
    block::sync();
    // The element of another thread.
    let from = 31 - thread::x();
    let mut v = s.load::<N>((from, 0));
    for k in unroll(0..N) {
        v[k] = -v[k];
    }
    y.store((block::x() * 32 + from) * N, v);
}

/// Computes y ← x + 1, N doubles per thread.
#[kernel(block = 32, grid = y.len().div_ceil(32 * N), instances(N = 1 | 2 | 4 | 8 | 16))]
#[requires(x.len() == y.len(), x.aligned(N.min(2)), y.aligned(N.min(2)))]
pub fn increment<const N: usize>(x: &[f64], y: &mut [f64]) {
    let i = grid::index() * N;
    if i + N <= y.len() {
        let mut v = x.load::<N>(i);
        for k in unroll(0..N) {
            v[k] += 1.0;
        }
        y.store(i, v);
    }
}

/// Computes the sum of x at (row, col) and its existing neighbors.
#[device]
pub fn neighbors_of(x: View<f32, 2>, y: ViewMut<f32, 2>) {
    let (row, col) = (block::y(), grid::index() * 4);
    let mut sum = [0.0; 4];
    for d in unroll(0..3) {
        let [left] = x.load_or((row.wrapping_add(d).wrapping_sub(1), col.wrapping_sub(1)), 0.0);
        let line: [f32; 4] = x.load_or((row.wrapping_add(d).wrapping_sub(1), col), 0.0);
        let [right] = x.load_or((row.wrapping_add(d).wrapping_sub(1), col + 4), 0.0);
        let all = [left, line[0], line[1], line[2], line[3], right];
        for k in unroll(0..4) {
            sum[k] += all[k] + all[k + 1] + all[k + 2];
        }
    }
    y.store_in((row, col), sum);
}

#[kernel(block = 32, grid = (y.cols().div_ceil(128), y.rows()))]
#[requires(x.rows() == y.rows(), x.cols() == y.cols())]
pub fn neighbors(x: View<f32, 2>, y: ViewMut<f32, 2>) {
    neighbors_of(x, y);
}

/// Computes C = A·B, with sizes that are multiples of 32. Tiles have 32 × 32 elements and each
/// thread computes four columns of a row; loads of tiles have four elements.
#[kernel(block = (8, 32), grid = (c.cols() / 32, c.rows() / 32))]
#[requires(a.cols() == b.rows(), c.rows() == a.rows(), c.cols() == b.cols())]
#[requires(a.cols() % 32 == 0, c.rows() % 32 == 0, c.cols() % 32 == 0, c.aligned(4))]
pub fn matmul(a: View<f32, 2>, b: View<f32, 2>, c: ViewMut<f32, 2>) {
    let ta = Shared::<f32, 2>::padded([32, 32]);
    let tb = Shared::<f32, 2>::with_pitch([32, 32], 36);
    let (row, col) = (thread::y(), thread::x() * 4);
    let mut acc = [0.0; 4];
    for k in (0..a.cols()).step_by(32) {
        ta.copy_from(a.offset((block::y() * 32, k)));
        tb.copy_from(b.offset((k, block::x() * 32)));
        block::sync();
        for i in unroll(0..8) {
            let x: [f32; 4] = ta.load((row, i * 4));
            for j in unroll(0..4) {
                let y: [f32; 4] = tb.load((i * 4 + j, col));
                for n in unroll(0..4) {
                    acc[n] = x[j].mul_add(y[n], acc[n]);
                }
            }
        }
        block::sync();
    }
    c.store((block::y() * 32 + row, block::x() * 32 + col), acc);
}

/// Counts the occurrences of each byte.
#[device]
pub fn histogram_of(x: View<u8, 1>, counts: ViewMut<u32, 1>) {
    let mine = Shared::<u32, 1>::new([256]);
    mine.fill(0);
    block::sync();
    for i in (grid::index()..x.len()).step_by(grid::threads()) {
        mine.fetch_add(x[i] as usize, 1);
    }
    block::sync();
    for i in (thread::index()..256).step_by(block::threads()) {
        counts.fetch_add(i, mine[i]);
    }
}

#[kernel(block = 64, grid = 3)]
#[requires(counts.len() == 256)]
pub fn histogram(x: View<u8, 1>, counts: ViewMut<u32, 1>) {
    histogram_of(x, counts);
}

/// Computes y[0] ← y[0] · Π x, wrapping, with a compare-and-exchange loop; y[1] counts the
/// successful exchanges.
#[device]
pub fn product_of(x: View<u32, 1>, y: ViewMut<u32, 1>) {
    let i = grid::index();
    if i < x.len() {
        let mut seen = y.fetch_or(0, 0);
        loop {
            let was = y.compare_exchange(0, seen, seen.wrapping_mul(x[i]));
            if was == seen {
                break;
            }
            seen = was;
        }
        y.fetch_add(1, 1);
    }
}

#[kernel(block = 64, grid = x.len().div_ceil(64))]
#[requires(y.len() == 2)]
pub fn product(x: View<u32, 1>, y: ViewMut<u32, 1>) {
    product_of(x, y);
}

/// Computes y[i % n] ← y[i % n] + x[i], in global and in shared memory.
#[kernel(block = 128, grid = 1)]
#[requires(y.len() <= 64, z.len() == y.len())]
pub fn sums(x: &[f32], y: &mut [f32], z: &mut [f32]) {
    let mut s = Shared::<f32, 1>::new([64]);
    let t = thread::index();
    if t < y.len() {
        s[t] = z[t];
    }
    block::sync();
    for i in (t..x.len()).step_by(128) {
        y.fetch_add(i % y.len(), x[i]);
        s.fetch_add(i % y.len(), x[i]);
    }
    block::sync();
    if t < y.len() {
        z[t] = s[t];
    }
}

/// Adds doubles atomically, and stores the old and the new values.
#[kernel(block = 32, grid = x.len().div_ceil(32))]
#[requires(x.len() == y.len(), x.len() == before.len())]
pub fn double_sums(x: &[f64], y: &mut [f64], before: &mut [f64]) {
    let i = grid::index();
    if i < x.len() {
        let was = y.fetch_add(i, x[i]);
        before[i] = y.exchange(i, was + 1.0) + was;
    }
}

/// Declares kernels of every atomic operation on separate elements: `$name` in global memory, on a
/// slice, and `$shared` in shared memory.
///
/// Each of ten columns of y is changed by one operation with x, and its result is stored to z.
macro_rules! every {
    ($($name:ident $shared:ident $t:ty;)*) => {$(
        #[kernel(block = 64, grid = x.len().div_ceil(64))]
        #[requires(y.len() == x.len() * 10, z.len() == y.len())]
        pub fn $name(x: &[$t], y: &mut [$t], z: &mut [$t]) {
            let i = grid::index();
            if i < x.len() {
                let (at, v) = (i * 10, x[i]);
                z[at] = y.fetch_add(at, v);
                z[at + 1] = y.fetch_min(at + 1, v);
                z[at + 2] = y.fetch_max(at + 2, v);
                z[at + 3] = y.fetch_and(at + 3, v);
                z[at + 4] = y.fetch_or(at + 4, v);
                z[at + 5] = y.fetch_xor(at + 5, v);
                z[at + 6] = y.exchange(at + 6, v);
                z[at + 7] = y.compare_exchange(at + 7, v, 77);
                z[at + 8] = y.compare_exchange(at + 8, z[at], 88);
                // The old value is not used.
                y.fetch_max(at + 9, v);
                y.compare_exchange(at + 9, v, 99);
                y.exchange(at + 7, v);
                z[at + 9] = 0;
            }
        }

        #[kernel(block = 64, grid = x.len().div_ceil(64))]
        #[requires(y.len() == x.len() * 10, z.len() == y.len())]
        pub fn $shared(x: &[$t], y: &mut [$t], z: &mut [$t]) {
            let i = grid::index();
            let mut s = Shared::<$t, 2>::new([64, 10]);
            let row = thread::index();
            if i < x.len() {
                let (at, v) = (i * 10, x[i]);
                for k in unroll(0..10) {
                    s[(row, k)] = y[at + k];
                }
                z[at] = s.fetch_add((row, 0), v);
                z[at + 1] = s.fetch_min((row, 1), v);
                z[at + 2] = s.fetch_max((row, 2), v);
                z[at + 3] = s.fetch_and((row, 3), v);
                z[at + 4] = s.fetch_or((row, 4), v);
                z[at + 5] = s.at(row).fetch_xor(5, v);
                z[at + 6] = s.exchange((row, 6), v);
                z[at + 7] = s.compare_exchange((row, 7), v, 77);
                z[at + 8] = s.compare_exchange((row, 8), z[at], 88);
                s.fetch_max((row, 9), v);
                s.compare_exchange((row, 9), v, 99);
                s.exchange((row, 7), v);
                z[at + 9] = 0;
                for k in unroll(0..10) {
                    y[at + k] = s[(row, k)];
                }
            }
        }
    )*};
}
every! {
    every_i32 shared_i32 i32;
    every_u32 shared_u32 u32;
    every_i64 shared_i64 i64;
    every_u64 shared_u64 u64;
}
