//! A prefix sum in one pass, by decoupled look-back (D. Merrill and M. Garland, 2016).
//!
//! ```text
//! cargo run --release -p kernels-rs --example look_back
//! ```
//!
//! Each block sums its tile, publishes the sum, and adds up what the blocks before it have
//! published. The file shows a word that carries a value and its state, so that one relaxed atomic
//! store publishes both. A ticket orders the blocks: a block waits only for blocks that have begun.

use kernel_dsl::prelude::*;
use runtime::Device;
use std::error::Error;

/// The state of a word whose value is the sum of its tile.
#[device]
const AGGREGATE: u64 = 1 << 32;

/// The state of a word whose value is the sum of its tile and of all before.
#[device]
const PREFIX: u64 = 2 << 32;

/// Computes y[i] = x[0] + … + x[i], modulo 2³². `states` and `ticket` are 0 before the launch.
#[kernel(block = 128, grid = x.len().div_ceil(128), writes(y = once))]
#[requires(y.len() == x.len(), states.len() == x.len().div_ceil(128), ticket.len() == 1)]
pub fn look_back(x: &[u32], y: &mut [u32], states: &mut [u64], ticket: &mut [u32]) {
    let mut shared = Shared::<u32, 1>::new([2]);
    if thread::x() == 0 {
        shared[0] = ticket.fetch_add(0, 1);
    }
    block::sync();
    let tile = shared[0] as usize;
    let i = tile * 128 + thread::x();
    let own = if i < x.len() { x[i] } else { 0 };
    let (before, total) = block::scan(own, 0, |a, b| a.wrapping_add(b));
    if thread::x() == 0 {
        let mut sum = 0u32;
        if tile > 0 {
            states.store_relaxed(tile, AGGREGATE | total as u64);
        }
        let mut at = tile;
        while at > 0 {
            let word = states.load_relaxed(at - 1);
            if word >= PREFIX {
                sum = sum.wrapping_add(word as u32);
                break;
            }
            if word >= AGGREGATE {
                sum = sum.wrapping_add(word as u32);
                at -= 1;
            }
        }
        states.store_relaxed(tile, PREFIX | sum.wrapping_add(total) as u64);
        shared[1] = sum;
    }
    block::sync();
    if i < x.len() {
        y[i] = shared[1].wrapping_add(before).wrapping_add(own);
    }
}

/// Returns the prefix sums.
pub fn sums(x: &[u32]) -> Vec<u32> {
    let add = |sum: &mut u32, x: &u32| {
        *sum = sum.wrapping_add(*x);
        Some(*sum)
    };
    x.iter().scan(0, add).collect()
}

/// Compares with plain Rust.
pub fn main() -> Result<(), Box<dyn Error>> {
    let device = Device::best()?;
    let x: Vec<u32> = (0..10_000u32).map(|i| i.wrapping_mul(2_654_435_761)).collect();
    let tiles = x.len().div_ceil(128);
    let (on_x, mut y) = (device.upload(&x)?, device.zeros::<u32>(x.len())?);
    let (mut states, mut ticket) = (device.zeros::<u64>(tiles)?, device.zeros::<u32>(1)?);
    look_back::launch(&device, &on_x, &mut y, &mut states, &mut ticket)?;
    assert_eq!(y.download()?, sums(&x));
    println!("{} prefix sums in {tiles} tiles", x.len());
    Ok(())
}
