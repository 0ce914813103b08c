//! A queue of tasks of unequal length: the pixels of the Mandelbrot set, taken by warps.
//!
//! ```text
//! cargo run --release -p kernels-rs --example work_queue
//! ```
//!
//! The file shows persistent warps. Each takes the next tile with one atomic addition, until none
//! is left, so that long tiles do not delay the others.

use kernel_dsl::prelude::*;
use runtime::Device;
use std::error::Error;

/// Iterations after which a point counts as part of the set.
#[device]
pub const LIMIT: usize = 200;

/// Returns the number of iterations of z ← z² + c that stay below |z| = 2.
#[device]
pub fn iterations(re: f32, im: f32) -> u32 {
    let (mut x, mut y) = (0.0f32, 0.0f32);
    for n in unroll_by::<8>(0..LIMIT) {
        if x.mul_add(x, y * y) >= 4.0 {
            return n as u32;
        }
        (x, y) = (x.mul_add(x, -(y * y)) + re, (2.0 * x).mul_add(y, im));
    }
    LIMIT as u32
}

/// Computes the iterations of each pixel of the square from −2 − 2i to 2 + 2i. `next` is 0 before
/// the launch.
#[kernel(block = 128, grid = 2 * device::multiprocessors(), writes(image = once))]
#[requires(next.len() == 1)]
pub fn mandelbrot(mut image: ViewMut<u32, 2>, next: &mut [u32]) {
    let tiles = (image.rows() * image.cols()).div_ceil(32);
    loop {
        let mine = if warp::lane() == 0 { next.fetch_add(0, 1) } else { 0 };
        let tile = warp::broadcast(mine, 0) as usize;
        if tile >= tiles {
            break;
        }
        let pixel = 32 * tile + warp::lane();
        if pixel < image.rows() * image.cols() {
            let (row, col) = (pixel / image.cols(), pixel % image.cols());
            let re = 4.0 * col as f32 / image.cols() as f32 - 2.0;
            let im = 4.0 * row as f32 / image.rows() as f32 - 2.0;
            image[(row, col)] = iterations(re, im);
        }
    }
}

/// Returns the image of `rows` × `cols` pixels, by the same operations in the same order.
pub fn image(rows: usize, cols: usize) -> Vec<u32> {
    let part = |i: usize, n: usize| 4.0 * i as f32 / n as f32 - 2.0;
    (0..rows * cols).map(|p| iterations(part(p % cols, cols), part(p / cols, rows))).collect()
}

/// Draws the set.
pub fn main() -> Result<(), Box<dyn Error>> {
    let device = Device::best()?;
    let (rows, cols) = (24, 60);
    let (mut pixels, mut next) = (device.zeros::<u32>(rows * cols)?, device.zeros::<u32>(1)?);
    mandelbrot::launch(&device, pixels.view_mut([rows, cols])?, &mut next)?;
    let pixels = pixels.download()?;
    assert_eq!(pixels, image(rows, cols));
    let shade =
        |n: &u32| if *n as usize == LIMIT { '#' } else { [' ', '.', ':', '-'][(n.ilog2() / 2).min(3) as usize] };
    for row in pixels.chunks(cols) {
        println!("{}", row.iter().map(shade).collect::<String>());
    }
    Ok(())
}
