#![doc = include_str!(concat!(env!("OUT_DIR"), "/07_testing.md"))]

use kernel_dsl::prelude::*;
use runtime::Device;
use runtime::testing::{self, Expected};

/// Prints the error of a launch, or that there is none.
pub fn show(result: runtime::Result<()>) -> runtime::Result<()> {
    match result {
        Ok(()) => println!("no finding"),
        Err(error) => println!("{error}"),
    }
    Ok(())
}

/// Reverses y, 64 elements; a barrier is missing.
#[kernel(block = 64, grid = 1)]
#[requires(y.len() == 64)]
pub fn missing_barrier(y: &mut [u32]) {
    let mut tile = Shared::<u32, 1>::new([64]);
    let i = thread::x();
    tile[i] = y[i];
    y[i] = tile[63 - i];
}

/// Runs `missing_barrier`.
pub fn race() -> runtime::Result<()> {
    let device = Device::cpu();
    let mut y = device.upload(&[1u32; 64])?;
    show(missing_barrier::launch(&device, &mut y))
}

/// Adds the right neighbor to each element, in place.
#[kernel(block = 32, grid = y.len() / 32)]
#[requires(y.len() % 32 == 0)]
pub fn add_neighbor(y: &mut [u32]) {
    let i = grid::index();
    if i + 1 < y.len() {
        y[i] += y[i + 1];
    }
}

/// Runs `add_neighbor`.
pub fn blocks() -> runtime::Result<()> {
    let device = Device::cpu();
    let mut y = device.upload(&[1u32; 64])?;
    show(add_neighbor::launch(&device, &mut y))
}

/// Stores only the even elements of the tile, and reads all.
#[kernel(block = 64, grid = 1)]
#[requires(y.len() == 64)]
pub fn half_a_tile(y: &mut [u32]) {
    let mut tile = Shared::<u32, 1>::new([64]);
    let i = thread::x();
    if i % 2 == 0 {
        tile[i] = y[i];
    }
    block::sync();
    y[i] = tile[63 - i];
}

/// Runs `half_a_tile`.
pub fn uninitialized() -> runtime::Result<()> {
    let device = Device::cpu();
    let mut y = device.upload(&[1u32; 64])?;
    show(half_a_tile::launch(&device, &mut y))
}

/// Lets every lane store its index to one element.
#[kernel(block = 32, grid = 1)]
#[requires(y.len() == 1)]
pub fn who_is_last(y: &mut [u32]) {
    y[0] = thread::x() as u32;
}

/// Runs `who_is_last`.
pub fn conflict() -> runtime::Result<()> {
    let device = Device::cpu();
    let mut y = device.upload(&[0u32])?;
    show(who_is_last::launch(&device, &mut y))
}

/// Reads four numbers at once, from an index that is not a multiple of four.
#[kernel(block = 8, grid = 1)]
#[requires(x.len() >= 33, y.len() == 8)]
pub fn off_by_one(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    let four: [f32; 4] = x.load(4 * i + 1);
    y[i] = four[0] + four[3];
}

/// Runs `off_by_one`.
pub fn misaligned() -> runtime::Result<()> {
    let device = Device::cpu();
    let (x, mut y) = (device.upload(&[1.0f32; 64])?, device.upload(&[0.0f32; 8])?);
    show(off_by_one::launch(&device, &x, &mut y))
}

/// Reads the left neighbor of each element; the first has none.
#[kernel(block = 64, grid = 1)]
#[requires(x.len() == 64, y.len() == 64)]
pub fn left_neighbor(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    y[i] = x[i - 1];
}

/// Runs `left_neighbor`.
pub fn below_zero() -> runtime::Result<()> {
    let device = Device::cpu();
    let (x, mut y) = (device.upload(&[1.0f32; 64])?, device.upload(&[0.0f32; 64])?);
    show(left_neighbor::launch(&device, &x, &mut y))
}

/// Copies x, but the grid is rounded down. `writes` declares that y is written completely.
#[kernel(block = 32, grid = y.len() / 32, writes(y = all))]
#[requires(x.len() == y.len())]
pub fn rounded_down(x: &[f32], y: &mut [f32]) {
    let i = grid::index();
    y[i] = x[i];
}

/// Runs `rounded_down`.
pub fn unwritten() -> runtime::Result<()> {
    let device = Device::cpu();
    let (x, mut y) = (device.upload(&[1.0f32; 40])?, device.upload(&[0.0f32; 40])?);
    show(rounded_down::launch(&device, &x, &mut y))
}

/// Waits in the first warp only, if `flag` is not zero. The compiler cannot know `flag[t]`.
#[kernel(block = 64, grid = 1)]
#[requires(flag.len() == 64)]
pub fn some_wait(flag: &mut [u32]) {
    let t = thread::x();
    let mut tile = Shared::<u32, 1>::new([64]);
    tile[t] = flag[t];
    block::sync();
    if tile[t] > 0 {
        block::sync();
    }
    flag[t] = 0;
}

/// Runs `some_wait`.
pub fn barrier() -> runtime::Result<()> {
    let device = Device::cpu();
    let mut flag = device.upload(&Vec::from_iter((0..64u32).map(|i| i % 2)))?;
    show(some_wait::launch(&device, &mut flag))
}

/// Counts the elements of x in each of 4 classes, without atomic operations.
#[kernel(block = 64, grid = x.len().div_ceil(64))]
#[requires(counts.len() == 4)]
pub fn count_plainly(x: &[u32], counts: &mut [u32]) {
    let i = grid::index();
    if i < x.len() {
        counts[x[i] as usize % 4] += 1;
    }
}

/// Counts the elements of x in each of 4 classes.
#[kernel(block = 64, grid = x.len().div_ceil(64))]
#[requires(counts.len() == 4)]
pub fn count_atomically(x: &[u32], counts: &mut [u32]) {
    let i = grid::index();
    if i < x.len() {
        counts.fetch_add(x[i] as usize % 4, 1);
    }
}

/// Runs both counts.
pub fn atomics() -> runtime::Result<()> {
    let device = Device::cpu();
    let x = device.upload(&Vec::from_iter(0..100u32))?;
    let mut counts = device.zeros::<u32>(4)?;
    show(count_atomically::launch(&device, &x, &mut counts))?;
    println!("{:?}\n", counts.download()?);
    show(count_plainly::launch(&device, &x, &mut counts))
}

/// Adds to scratch memory, and expects zeros in it.
#[kernel(block = 64, grid = x.len().div_ceil(64))]
#[requires(scratch.len() == 1)]
pub fn count_ones(x: &[u32], scratch: &mut [u32]) {
    let i = grid::index();
    if i < x.len() && x[i] == 1 {
        scratch.fetch_add(0, 1);
    }
}

/// Runs `count_ones` with memory that was allocated and never written.
pub fn scratch() -> runtime::Result<()> {
    let device = Device::cpu();
    let x = device.upload(&[1u32; 4])?;
    let mut scratch = device.alloc::<u32>(1)?;
    show(count_ones::launch(&device, &x, &mut scratch))
}

/// Computes y ← x + 1, except for the last element of each block.
#[kernel(block = 64, grid = y.len().div_ceil(64))]
#[requires(x.len() == y.len())]
pub fn increment(x: &[u32], y: &mut [u32]) {
    let i = grid::index();
    if i < y.len() {
        y[i] = if thread::x() == 63 { x[i] } else { x[i].wrapping_add(1) };
    }
}

/// Tests `increment` on random cases, and prints the smallest that fails.
pub fn property() -> runtime::Result<()> {
    let tested = testing::property::<increment>()
        .cases(|g| {
            let n = g.size("n", 64);
            [g.slice::<u32>(n), g.slice::<u32>(n)]
        })
        .reference(|inputs| {
            let x = inputs[0].to_vec::<u32>();
            vec![Expected::exact(1, x.into_iter().map(|x| x.wrapping_add(1)))]
        })
        .run();
    if let Err(counterexample) = tested {
        println!("{counterexample}");
    }
    Ok(())
}

/// Computes y ← √x, and logs each negative x.
#[kernel(block = 32, grid = y.len().div_ceil(32))]
#[requires(x.len() == y.len())]
pub fn roots(x: &[f32], y: &mut [f32]) {
    let i = grid::index();
    if i < y.len() {
        if x[i] < 0.0 {
            log!("x[{i}] = {} has no root", x[i]);
        }
        y[i] = x[i].sqrt();
    }
}

/// Launches `roots` on two negative numbers.
pub fn logs() -> runtime::Result<()> {
    let device = Device::cpu();
    let mut x = [4f32; 40];
    (x[3], x[35]) = (-1.0, -0.1);
    let (x, mut y) = (device.upload(&x)?, device.upload(&[0f32; 40])?);
    roots::launch(&device, &x, &mut y)
}
