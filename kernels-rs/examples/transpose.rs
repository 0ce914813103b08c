//! Shared memory and barriers: a transposed matrix, by tiles.
//!
//! ```text
//! cargo run --release -p kernels-rs --example transpose
//! ```
//!
//! A kernel that stores y[c, r] = x[r, c] directly either loads or stores columns, and a warp then
//! touches 32 sectors of memory at once. With a tile in shared memory, all accesses to global
//! memory are along rows.

use kernel_dsl::prelude::*;
use runtime::Device;
use std::error::Error;

/// Computes y ← xᵀ. A block of 32 × 8 threads has a tile of 32 × 32.
#[kernel(block = (32, 8), grid = (x.cols().div_ceil(32), x.rows().div_ceil(32)), writes(y = once))]
#[requires(y.rows() == x.cols(), y.cols() == x.rows())]
pub fn transpose_tiled(x: View<f32, 2>, mut y: ViewMut<f32, 2>) {
    // Columns of the tile are read below. With 33 elements between rows, their elements are in
    // different banks of shared memory; with 32 they would all be in one bank.
    let mut tile = Shared::<f32, 2>::with_pitch([32, 32], 33);
    let (row0, col0) = (block::y() * 32, block::x() * 32);
    for i in unroll((0..32).step_by(8)) {
        let (r, c) = (thread::y() + i, thread::x());
        // `get` gives `None` out of bounds: the tiles at the edges are not whole.
        tile[(r, c)] = x.get((row0 + r, col0 + c)).unwrap_or(0.0);
    }
    // Every thread reads elements that other threads have written.
    block::sync();
    for i in unroll((0..32).step_by(8)) {
        let (r, c) = (thread::y() + i, thread::x());
        if col0 + r < y.rows() && row0 + c < y.cols() {
            y[(col0 + r, row0 + c)] = tile[(c, r)];
        }
    }
}

/// Transposes a matrix whose extents are not multiples of the tile's.
pub fn main() -> Result<(), Box<dyn Error>> {
    let [rows, cols] = [100, 70];
    let x: Vec<f32> = (0..rows * cols).map(|i| i as f32).collect();

    let device = Device::best()?;
    let on_x = device.upload(&x)?;
    let mut y = device.zeros::<f32>(rows * cols)?;
    transpose_tiled::launch(&device, on_x.view([rows, cols])?, y.view_mut([cols, rows])?)?;

    let y = y.download()?;
    assert!((0..rows * cols).all(|i| y[i] == x[i % rows * cols + i / rows]));
    println!("{rows} x {cols}: the first row of x  {:?} …", &x[..4]);
    println!("{cols} x {rows}: the first column of y {:?} …", [y[0], y[rows], y[2 * rows], y[3 * rows]]);
    Ok(())
}
