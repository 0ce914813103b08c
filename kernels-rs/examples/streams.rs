//! Streams and graphs: launches that run while the host continues, and a sequence of launches that
//! is recorded once.
//!
//! ```text
//! cargo run --release -p kernels-rs --example streams
//! ```
//!
//! The program never synchronizes by itself: the runtime tracks which launch reads what another one
//! writes, also across streams.

use kernel_dsl::prelude::*;
use runtime::Device;
use std::error::Error;

/// Computes y ← 3·y + x, modulo 2³²: the result depends on the order of launches.
#[kernel(block = 128, grid = y.len().div_ceil(128))]
#[requires(x.len() == y.len())]
pub fn mix(x: &[u32], y: &mut [u32]) {
    let i = grid::index();
    if i < y.len() {
        y[i] = y[i].wrapping_mul(3).wrapping_add(x[i]);
    }
}

/// Mixes on two streams, and then by a graph.
pub fn main() -> Result<(), Box<dyn Error>> {
    let n = 1000;
    let device = Device::best()?;
    let (one, other) = (device.stream()?, device.stream()?);

    let x = one.upload(&vec![1u32; n])?;
    let mut y = one.upload(&vec![0u32; n])?;
    let mut z = other.upload(&vec![0u32; n])?;
    mix::launch(&one, &x, &mut y)?; // y = 1
    mix::launch(&other, &y, &mut z)?; // z = 1, after y is written on the other stream
    mix::launch(&one, &z, &mut y)?; // y = 4, after z is written
    assert_eq!(y.download()?, vec![4; n]);
    println!("two streams, three launches: y[0] = {}", y.download()?[0]);

    // A recording takes the place of a device. On a GPU a replay is one call of the driver.
    let recording = device.record();
    let x = recording.borrow(&x)?;
    let y = recording.own(y)?;
    mix::launch(&recording, x, y)?;
    mix::launch(&recording, x, y)?;
    let mut graph = recording.finish()?;
    for _ in 0..3 {
        graph.replay(&one)?;
    }
    // Six more steps of y ← 3·y + 1.
    let expected = (0..6).fold(4u32, |y, _| 3 * y + 1);
    assert_eq!(graph.buffer(y)?.download()?, vec![expected; n]);
    println!("three replays of {} launches: y[0] = {expected}", graph.len());

    // The contents of a graph's buffer can be replaced between replays.
    graph.buffer_mut(y)?.copy_from(&vec![100; n])?;
    graph.replay(&one)?;
    assert_eq!(graph.buffer(y)?.download()?, vec![904; n]);
    println!("one more from 100: y[0] = 904");
    Ok(())
}
