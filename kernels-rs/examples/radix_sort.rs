//! A radix sort of 1024 keys in one block, bit by bit: a stable split for each bit.
//!
//! ```text
//! cargo run --release -p kernels-rs --example radix_sort
//! ```
//!
//! The file shows a scan over the block, whose result places the keys, and barriers around the
//! reads and the writes of one array.

use kernel_dsl::prelude::*;
use runtime::Device;
use std::error::Error;

/// Sorts each 1024 keys of x by their lowest `bits` bits, in place and stably.
#[kernel(block = 1024, grid = x.len() / 1024)]
#[requires(x.len() % 1024 == 0, bits <= 32)]
pub fn radix_sort(bits: u32, x: &mut [u32]) {
    let mut keys = Shared::<u32, 1>::new([1024]);
    let (t, at) = (thread::x(), grid::index());
    let mut key = x[at];
    for bit in 0..bits {
        let low = key >> bit & 1 == 0;
        let (before, lows) = block::scan(low as u32, 0, |a, b| a + b);
        let place = if low { before } else { lows + t as u32 - before };
        keys[place as usize] = key;
        block::sync();
        key = keys[t];
        block::sync();
    }
    x[at] = key;
}

/// Returns `n` keys.
pub fn keys(n: usize) -> Vec<u32> {
    (0..n as u32).map(|i| i.wrapping_mul(2_654_435_761).rotate_left(7)).collect()
}

/// Compares with the sort of Rust.
pub fn main() -> Result<(), Box<dyn Error>> {
    let device = Device::best()?;
    let mut expected = keys(2048);
    let mut x = device.upload(&expected)?;
    radix_sort::launch(&device, 32, &mut x)?;
    expected.chunks_mut(1024).for_each(|keys| keys.sort());
    assert_eq!(x.download()?, expected);
    println!("sorted: {:?} …", &expected[..4]);
    Ok(())
}
