//! The temperature of a plate by Jacobi's method: all iterations in one launch.
//!
//! ```text
//! cargo run --release -p kernels-rs --example heat
//! ```
//!
//! A step needs all of the previous one, so a barrier of the grid separates them. Without the
//! barrier, each step would be a launch, and the host would have to read the largest change to
//! decide when to stop. The file shows a cooperative kernel, two buffers that alternate, and a
//! maximum over the grid.

use kernel_dsl::prelude::*;
use runtime::Device;
use std::error::Error;

/// Replaces each inner point of a plate of `rows` x `columns` by the mean of its neighbors. The
/// last step changes no point by more than `tolerance`, or is the step of the last element of
/// `changes`. `changes` is 0 before the launch, and receives the largest change of each step. Steps
/// with even numbers read `even` and write `odd`; both hold the same temperatures before the
/// launch.
#[kernel(cooperative, block = 128, grid = device::multiprocessors())]
#[requires(rows >= 2, columns >= 2, even.len() == rows * columns, odd.len() == even.len(), steps.len() == 1)]
pub fn heat(
    rows: usize,
    columns: usize,
    tolerance: f32,
    even: &mut [f32],
    odd: &mut [f32],
    changes: &mut [f32],
    steps: &mut [u32],
) {
    let inner = columns - 2;
    for step in 0..changes.len() {
        let mut largest = 0.0f32;
        for k in grid::stride((rows - 2) * inner) {
            let i = (k / inner + 1) * columns + k % inner + 1;
            if step % 2 == 0 {
                let mean = 0.25 * (even[i - columns] + even[i - 1] + even[i + 1] + even[i + columns]);
                largest = largest.max((mean - even[i]).abs());
                odd[i] = mean;
            } else {
                let mean = 0.25 * (odd[i - columns] + odd[i - 1] + odd[i + 1] + odd[i + columns]);
                largest = largest.max((mean - odd[i]).abs());
                even[i] = mean;
            }
        }
        let largest = block::max(largest);
        if thread::x() == 0 {
            changes.fetch_max(step, largest);
        }
        grid::sync();
        if grid::index() == 0 {
            steps[0] = step as u32 + 1;
        }
        if changes[step] <= tolerance {
            break;
        }
    }
}

/// The temperatures after even and odd steps, and the largest change of each step.
pub struct Relaxed {
    /// Read by steps with even numbers.
    pub even: Vec<f32>,
    /// Read by steps with odd numbers.
    pub odd: Vec<f32>,
    /// The largest changes.
    pub changes: Vec<f32>,
}

/// Returns the temperatures after at most `most` steps.
pub fn relaxed(rows: usize, columns: usize, tolerance: f32, start: &[f32], most: usize) -> Relaxed {
    let mut all = [start.to_vec(), start.to_vec()];
    let mut changes = Vec::new();
    while changes.len() < most && changes.last().is_none_or(|change| *change > tolerance) {
        let [from, to] = all.get_disjoint_mut([changes.len() % 2, 1 - changes.len() % 2]).expect("two buffers");
        let mut largest = 0.0f32;
        for row in 1..rows - 1 {
            for i in row * columns + 1..(row + 1) * columns - 1 {
                to[i] = 0.25 * (from[i - columns] + from[i - 1] + from[i + 1] + from[i + columns]);
                largest = largest.max((to[i] - from[i]).abs());
            }
        }
        changes.push(largest);
    }
    let [even, odd] = all;
    Relaxed { even, odd, changes }
}

/// Returns a cold plate with a hot upper edge.
pub fn plate(rows: usize, columns: usize) -> Vec<f32> {
    (0..rows * columns).map(|i| if i < columns { 100.0 } else { 0.0 }).collect()
}

/// Compares with plain Rust.
pub fn main() -> Result<(), Box<dyn Error>> {
    let device = Device::best()?;
    let (rows, columns, tolerance, most) = (40, 60, 0.1, 200);
    let start = plate(rows, columns);
    let (mut even, mut odd) = (device.upload(&start)?, device.upload(&start)?);
    let (mut changes, mut steps) = (device.zeros::<f32>(most)?, device.zeros::<u32>(1)?);
    heat::launch(&device, rows, columns, tolerance, &mut even, &mut odd, &mut changes, &mut steps)?;
    let expected = relaxed(rows, columns, tolerance, &start, most);
    assert_eq!(steps.download()?, [expected.changes.len() as u32]);
    assert_eq!(even.download()?, expected.even);
    assert_eq!(odd.download()?, expected.odd);
    assert_eq!(changes.download()?[..expected.changes.len()], expected.changes);
    println!("{} steps until no point changes by more than {tolerance}", expected.changes.len());
    Ok(())
}
