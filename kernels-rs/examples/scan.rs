//! Reductions and scans with any associative operation: an arg-max, a segmented scan, and a sparse
//! product.
//!
//! ```text
//! cargo run --release -p kernels-rs --example scan
//! ```
//!
//! - `argmax` reduces (value, index) pairs in blocks whose size the launch decides. A trait with an
//!   associated type and constant describes the operation.
//! - `segmented_scan` computes prefix sums that restart at flags, with a closure as the operation.
//! - `csr_spmv` multiplies a sparse matrix by a vector, with a group of lanes for each row.

use kernel_dsl::prelude::*;
use runtime::Device;
use std::error::Error;

/// Operations for reductions.
#[device]
pub mod monoid {
    use kernel_dsl::prelude::*;
    /// An associative operation with a neutral element.
    pub trait Monoid {
        /// The type of the operands.
        type T: DeviceCopy;
        /// The neutral element.
        const ZERO: Self::T;
        /// Joins two operands.
        fn join(a: Self::T, b: Self::T) -> Self::T;
    }
    /// The largest value and its first index: a tuple passes through shuffles and shared memory
    /// like a scalar.
    pub enum ArgMax {}
    impl Monoid for ArgMax {
        type T = (f32, u32);
        const ZERO: (f32, u32) = (f32::NEG_INFINITY, u32::MAX);
        fn join(a: (f32, u32), b: (f32, u32)) -> (f32, u32) {
            if b.0 > a.0 || (b.0 == a.0 && b.1 < a.1) { b } else { a }
        }
    }
}
use monoid::*;

/// Reduces the block, with the result in all threads. The order is a butterfly in each warp, then a
/// butterfly over the warps. Ends without a barrier: the caller needs one between two uses.
#[device]
pub fn reduce_block<M: Monoid>(x: M::T) -> M::T {
    let mut s = Shared::<M::T, 1>::new([32]);
    let x = warp::reduce(x, M::join); // a function name in place of a closure
    if warp::lane() == 0 {
        s[warp::index()] = x;
    }
    block::sync();
    let y = if warp::lane() < warp::count() { s[warp::lane()] } else { M::ZERO };
    warp::reduce(y, M::join)
}

/// Computes out[block] = arg-max of the block's part of x; a NaN counts as −∞.
#[kernel(block = 32..=1024, grid = out.len(), writes(out = once, place = once))]
#[requires(!out.is_empty(), place.len() == out.len())]
pub fn argmax(x: &[f32], out: &mut [f32], place: &mut [u32]) {
    let mut best = ArgMax::ZERO;
    for i in (grid::index()..x.len()).step_by(grid::threads()) {
        best = ArgMax::join(best, (x[i].max(f32::NEG_INFINITY), i as u32));
    }
    let best = reduce_block::<ArgMax>(best);
    if thread::index() == 0 {
        (out[block::x()], place[block::x()]) = best;
    }
}

/// Scans inclusively and restarts at every set flag, within blocks of 256; carry[block] = sum since
/// the last flag, carry_head[block] = any flag.
#[kernel(block = 256, grid = x.len().div_ceil(256), writes(y = once, carry = once, carry_head = once))]
#[requires(heads.len() == x.len(), y.len() == x.len(), carry.len() == x.len().div_ceil(256))]
pub fn segmented_scan(x: &[f32], heads: &[u8], y: &mut [f32], carry: &mut [f32], carry_head: &mut [u8]) {
    let join = |a: (f32, bool), b: (f32, bool)| (if b.1 { b.0 } else { a.0 + b.0 }, a.1 | b.1);
    let mut s = Shared::<(f32, bool), 1>::new([8]);
    let i = grid::index();
    let mine = if i < x.len() { (x[i], heads[i] != 0) } else { (0.0, false) }; // `[bool]` in a buffer would be unsound: host bytes are not bools
    let v = warp::scan(mine, join);
    if warp::lane() == 31 {
        s[warp::index()] = v;
    }
    block::sync();
    // Each warp scans the sums of all warps, so that no warp waits for another to do it.
    let sums = warp::group::<8>().scan(s[warp::lane() % 8], join);
    // A warp takes one side of the branch, so all its lanes shuffle.
    let v = if warp::index() > 0 { join(warp::shuffle(sums, warp::index() - 1), v) } else { v };
    if i < x.len() {
        y[i] = v.0;
    }
    if thread::index() == 255 {
        carry[block::x()] = v.0;
        carry_head[block::x()] = v.1 as u8;
    }
}

/// Computes y = A·x for CSR, with W lanes per row (W by the mean row length).
#[kernel(block = 128, grid = (y.len() * W).div_ceil(128), instances(W = 2 | 4 | 8 | 16 | 32), writes(y = once))]
#[requires(rows.len() == y.len() + 1, cols.len() == values.len())]
pub fn csr_spmv<const W: usize>(rows: &[u32], cols: &[u32], values: &[f32], x: &[f32], y: &mut [f32]) {
    let group = warp::group::<W>();
    let row = grid::index() / W;
    let mut sum = 0.0f32;
    if row < y.len() {
        for j in (rows[row] as usize + group.lane()..rows[row + 1] as usize).step_by(W) {
            sum = values[j].mul_add(x[cols[j] as usize], sum);
        }
    }
    // here the warp has reconverged; inside the `if` it would be the group's mask
    let sum = group.sum(sum);
    if row < y.len() && group.lane() == 0 {
        y[row] = sum;
    }
}

/// Runs the three kernels and compares each with plain Rust.
pub fn main() -> Result<(), Box<dyn Error>> {
    let device = Device::best()?;

    let x: Vec<f32> = (0..5000).map(|i| (i * 4289 % 10_007) as f32).collect();
    let on_x = device.upload(&x)?;
    let (mut most, mut place) = (device.zeros::<f32>(1)?, device.zeros::<u32>(1)?);
    argmax::launch(&device, 512, &on_x, &mut most, &mut place)?;
    let (most, place) = (most.download()?[0], place.download()?[0]);
    assert_eq!(x.iter().copied().fold(f32::MIN, f32::max), most);
    assert_eq!(x.iter().position(|x| *x == most), Some(place as usize));
    println!("arg-max: {most} at {place} of {} elements", x.len());

    let ones = vec![1.0f32; 256];
    let heads: Vec<u8> = (0..256).map(|i| u8::from(i % 100 == 0)).collect();
    let (on_ones, on_heads) = (device.upload(&ones)?, device.upload(&heads)?);
    let (mut y, mut carry, mut any) = (device.zeros::<f32>(256)?, device.zeros::<f32>(1)?, device.zeros::<u8>(1)?);
    segmented_scan::launch(&device, &on_ones, &on_heads, &mut y, &mut carry, &mut any)?;
    let y = y.download()?;
    assert!((0..256).all(|i| y[i] == (i % 100 + 1) as f32));
    println!("segmented scan of ones: {:?} … {:?} …", &y[..3], &y[98..102]);

    // Row r of the matrix has r % 4 ones, in columns r, r + 1, ….
    let n = 100;
    let lengths = (0..n).map(|r| r as u32 % 4);
    let rows: Vec<u32> = std::iter::once(0)
        .chain(lengths.scan(0, |sum, n| {
            *sum += n;
            Some(*sum)
        }))
        .collect();
    let cols: Vec<u32> = (0..n as u32).flat_map(|r| (0..r % 4).map(move |j| (r + j) % n as u32)).collect();
    let values = vec![1.0f32; cols.len()];
    let v: Vec<f32> = (0..n).map(|i| i as f32).collect();
    let (on_rows, on_cols) = (device.upload(&rows)?, device.upload(&cols)?);
    let (on_values, on_v) = (device.upload(&values)?, device.upload(&v)?);
    let mut y = device.zeros::<f32>(n)?;
    csr_spmv::<4>::launch(&device, &on_rows, &on_cols, &on_values, &on_v, &mut y)?;
    let y = y.download()?;
    assert!((0..n).all(|r| y[r] == (0..r % 4).map(|j| v[(r + j) % n]).sum::<f32>()));
    println!("sparse product: {:?} …", &y[..8]);
    Ok(())
}
