//! Local alignment of sequences (T. F. Smith and M. S. Waterman, 1981): a warp for each pair, along
//! anti-diagonals.
//!
//! ```text
//! cargo run --release -p kernels-rs --example smith_waterman
//! ```
//!
//! Lane l holds row l of a band of 32 rows; neighbors exchange scores by a shuffle. The last row of
//! a band passes through shared memory to the next band.

use kernel_dsl::prelude::*;
use runtime::Device;
use std::error::Error;

/// The score of equal letters; others cost 1, as does a gap.
#[device]
pub const EQUAL: i32 = 2;

/// Computes the best score of each row of `a` with the same row of `b`, of at most 256 letters.
#[kernel(block = 32, grid = a.rows(), writes(best = once))]
#[requires(b.rows() == a.rows(), best.len() == a.rows(), b.cols() <= 256)]
pub fn smith_waterman(a: View<u8, 2>, b: View<u8, 2>, best: &mut [i32]) {
    let mut above = Shared::<i32, 1>::new([257]);
    let (pair, lane, n) = (block::x(), warp::lane(), b.cols());
    above.fill(0);
    block::sync();
    let mut most = 0i32;
    for first in (0..a.cols()).step_by(32) {
        let row = first + lane;
        let letter = if row < a.cols() { a[(pair, row)] } else { 0 };
        // The scores to the left, above, and above to the left.
        let (mut left, mut corner) = (0, 0);
        for step in 0..n + 31 {
            let mut up = warp::shuffle_up(left, 1).unwrap_or(0);
            let inside = step >= lane && step - lane < n;
            let column = if inside { step - lane } else { 0 };
            if lane == 0 {
                up = above[column + 1];
            }
            let gain = if inside && letter == b[(pair, column)] { EQUAL } else { -1 };
            let score = (corner + gain).max(up - 1).max(left - 1).max(0);
            if inside {
                left = if row < a.cols() { score } else { 0 };
                corner = up;
                most = most.max(left);
            }
            warp::sync();
            if lane == 31 && inside {
                above[column + 1] = left;
            }
            warp::sync();
        }
    }
    let most = warp::max(most);
    if lane == 0 {
        best[pair] = most;
    }
}

/// Returns the best score of two sequences, by the whole table.
pub fn score(a: &[u8], b: &[u8]) -> i32 {
    let mut table = vec![vec![0i32; b.len() + 1]; a.len() + 1];
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            let gain = if a[i - 1] == b[j - 1] { EQUAL } else { -1 };
            table[i][j] = (table[i - 1][j - 1] + gain).max(table[i - 1][j] - 1).max(table[i][j - 1] - 1).max(0);
        }
    }
    table.into_iter().flatten().max().unwrap_or(0)
}

/// Returns `rows` sequences of `n` of the letters ACGT.
pub fn letters(rows: usize, n: usize, seed: usize) -> Vec<u8> {
    (0..rows * n).map(|i| b"ACGT"[(i * i / 3 + seed * i + (i >> 4)) % 4]).collect()
}

/// Compares with the whole table.
pub fn main() -> Result<(), Box<dyn Error>> {
    let device = Device::best()?;
    let (a, b) = (letters(4, 70, 1), letters(4, 100, 3));
    let (on_a, on_b, mut best) = (device.upload(&a)?, device.upload(&b)?, device.zeros::<i32>(4)?);
    smith_waterman::launch(&device, on_a.view([4, 70])?, on_b.view([4, 100])?, &mut best)?;
    let expected: Vec<i32> = a.chunks(70).zip(b.chunks(100)).map(|(a, b)| score(a, b)).collect();
    let best = best.download()?;
    assert_eq!(best, expected);
    println!("scores {best:?}");
    Ok(())
}
