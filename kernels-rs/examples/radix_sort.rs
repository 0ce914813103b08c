//! A radix sort of 1024 keys in one block, bit by bit: a stable split for each bit.
//!
//! ```text
//! cargo run --release -p kernels-rs --example radix_sort
//! ```
//!
//! The file shows a ballot that counts bits in a warp, and a scan of the warps' counts, whose
//! result places the keys. One array has two roles between barriers.

use kernel_dsl::prelude::*;
use runtime::Device;
use std::error::Error;

/// Sorts each 1024 keys of x by their lowest `bits` bits, in place and stably.
#[kernel(block = 1024, grid = x.len() / 1024)]
#[requires(x.len() % 1024 == 0, bits <= 32)]
pub fn radix_sort(bits: u32, x: &mut [u32]) {
    let (mut keys, mut counts) = (Shared::<u32, 1>::new([1024]), Shared::<u32, 1>::new([32]));
    let (t, lane, at) = (thread::x(), warp::lane(), grid::index());
    let mut key = x[at];
    for bit in 0..bits {
        let low = key >> bit & 1 == 0;
        let mask = warp::ballot(low);
        if lane == 0 {
            counts[warp::index()] = mask.count_ones();
        }
        block::sync();
        // Each warp scans the counts of all warps.
        let count = counts[lane];
        let through = warp::scan(count, |a, b| a + b);
        let before = warp::shuffle(through - count, warp::index()) + (mask & ((1 << lane) - 1)).count_ones();
        let lows = warp::broadcast(through, 31);
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
