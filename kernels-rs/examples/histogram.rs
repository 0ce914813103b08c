//! A histogram of bytes with 256 bins: a histogram for each warp in shared memory, then one global
//! addition for each bin.
//!
//! ```text
//! cargo run --release -p kernels-rs --example histogram
//! ```
//!
//! The file shows loads of 16 bytes, atomic additions in shared and in global memory, and a grid
//! that fills the device once.

use kernel_dsl::prelude::*;
use runtime::Device;
use std::error::Error;

/// Adds the number of each byte of x to bins.
#[kernel(block = 256, min_blocks = 4, grid = 4 * device::multiprocessors())]
#[requires(x.aligned(16), bins.len() == 256)]
pub fn histogram(x: &[u8], bins: &mut [u32]) {
    let h = Shared::<u32, 2>::new([8, 256]);
    h.fill(0); // by the whole block, without a barrier
    block::sync();
    let mine = h.at(warp::index());
    let wide = x.len() / 16;
    let first = grid::index();
    for i in (first..wide).step_by(grid::threads()) {
        let v: [u8; 16] = x.load(16 * i); // four registers: byte arrays are packed
        for j in unroll(0..16) {
            mine.fetch_add(v[j] as usize, 1);
        } // the result is unused: red.shared
    }
    let tail = 16 * wide + first;
    if tail < x.len() {
        mine.fetch_add(x[tail] as usize, 1);
    }
    block::sync();
    let mut n = 0;
    for w in unroll(0..8) {
        n += h[(w, thread::x())];
    }
    if n > 0 {
        bins.fetch_add(thread::x(), n);
    }
}

/// Counts the letters of this file, and compares with plain Rust.
pub fn main() -> Result<(), Box<dyn Error>> {
    let text = include_bytes!("histogram.rs");
    let device = Device::best()?;
    let x = device.upload(&text[..])?;
    let mut bins = device.zeros::<u32>(256)?;
    histogram::launch(&device, &x, &mut bins)?;

    let bins = bins.download()?;
    let mut expected = vec![0u32; 256];
    text.iter().for_each(|byte| expected[usize::from(*byte)] += 1);
    assert_eq!(bins, expected);
    for letter in b"aeiou" {
        let count = bins[usize::from(*letter)];
        println!("{} {count:4} {}", *letter as char, "#".repeat(count as usize / 10));
    }
    Ok(())
}
