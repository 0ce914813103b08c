//! A sort of the rows of a matrix: each block sorts one row in shared memory, whose size the launch
//! decides.
//!
//! ```text
//! cargo run --release -p kernels-rs --example bitonic
//! ```
//!
//! The file shows shared memory with an extent known at the launch, structs in buffers, and a
//! device function that takes a closure: `network.rs`, which the example `topk` uses as well.

mod network;

use kernel_dsl::prelude::*;
use network::bitonic;
use runtime::Device;
use std::error::Error;

/// An element of a buffer: a `repr(C)` struct, because a host cannot know the layout of a tuple.
#[device]
#[derive(Clone, Copy, PartialEq, Debug, DeviceCopy)]
#[repr(C)]
pub struct Entry {
    /// The number that rows are sorted by.
    pub key: f32,
    /// The number that moves with the key.
    pub payload: u32,
}

/// Sorts each row of (key, payload) by key, and equal keys by payload. A NaN counts as ∞, as in all
/// ascending orders.
#[kernel(block = 32..=1024, grid = rows.rows(), writes(rows = once))]
pub fn sort_rows(mut rows: ViewMut<Entry, 2>) {
    let n = rows.cols();
    // the launch evaluates the size with the same expression, and checks it against 48 KB
    let mut s = Shared::<Entry, 1>::dynamic([n.next_power_of_two()]);
    for i in (thread::index()..s.dim(0)).step_by(block::threads()) {
        s[i] = if i < n { rows[(block::x(), i)] } else { Entry { key: f32::NAN, payload: u32::MAX } };
    }
    block::sync();
    bitonic(s, |a, b| {
        let (x, y) = (a.key.min(f32::INFINITY), b.key.min(f32::INFINITY));
        // With equal payloads, ∞ comes before NaN, so that the padding of a row is last.
        let first = a.payload < b.payload || (a.payload == b.payload && !a.key.is_nan() && b.key.is_nan());
        x < y || (x == y && first)
    });
    for i in (thread::index()..n).step_by(block::threads()) {
        rows[(block::x(), i)] = s[i];
    }
}

/// Sorts two rows, and prints the first elements of each.
pub fn main() -> Result<(), Box<dyn Error>> {
    let columns = 100;
    let key = |i: usize| if i % 50 == 7 { f32::NAN } else { (i * 61 % 101) as f32 / 4.0 };
    let rows: Vec<Entry> = (0..2 * columns).map(|i| Entry { key: key(i), payload: i as u32 }).collect();

    let device = Device::best()?;
    let mut sorted = device.upload(&rows)?;
    sort_rows::launch(&device, 64, sorted.view_mut([2, columns])?)?;

    for (n, row) in sorted.download()?.chunks(columns).enumerate() {
        let mut expected = rows[n * columns..][..columns].to_vec();
        // A NaN is larger than all numbers.
        expected.sort_by(|a, b| a.key.total_cmp(&b.key).then(a.payload.cmp(&b.payload)));
        let payloads = |row: &[Entry]| row.iter().map(|entry| entry.payload).collect::<Vec<_>>();
        assert_eq!(payloads(row), payloads(&expected));
        let keys: Vec<f32> = row.iter().map(|entry| entry.key).collect();
        println!("row {n}: {:?} … {:?}", &keys[..4], &keys[columns - 3..]);
    }
    Ok(())
}
