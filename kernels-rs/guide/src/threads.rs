#![doc = include_str!(concat!(env!("OUT_DIR"), "/02_threads.md"))]

use kernel_dsl::prelude::*;
use runtime::Device;
use runtime::testing::{Case, Input};

/// Stores for each thread its block, its warp in the block, and its lane in the warp.
#[kernel(block = 64, grid = who.len().div_ceil(64))]
pub fn name_threads(who: &mut [[u32; 3]]) {
    let i = grid::index();
    if i < who.len() {
        who[i] = [block::x() as u32, warp::index() as u32, warp::lane() as u32];
    }
}

/// Prints where some of 128 threads run.
pub fn who() -> runtime::Result<()> {
    let device = Device::cpu();
    let mut names = device.zeros::<[u32; 3]>(128)?;
    name_threads::launch(&device, &mut names)?;
    let names = names.download()?;
    for i in [0, 1, 31, 32, 63, 64, 127] {
        let [block, warp, lane] = names[i];
        println!("thread {i:3}: block {block}, warp {warp}, lane {lane:2}");
    }
    Ok(())
}

/// Adds in even lanes and divides in odd lanes, so that the lanes of a warp take different paths.
#[kernel(block = 64, grid = x.len().div_ceil(64))]
pub fn split_lanes(x: &mut [f32]) {
    let i = grid::index();
    if i < x.len() {
        if i % 2 == 0 {
            x[i] += 1.0;
        } else {
            x[i] = 1.0 / x[i];
        }
    }
}

/// Adds in even warps and divides in odd warps, so that the lanes of a warp take one path.
#[kernel(block = 64, grid = x.len().div_ceil(64))]
pub fn split_warps(x: &mut [f32]) {
    let i = grid::index();
    if i < x.len() {
        if i / 32 % 2 == 0 {
            x[i] += 1.0;
        } else {
            x[i] = 1.0 / x[i];
        }
    }
}

/// Counts the warp instructions of both kernels, and their active lanes.
pub fn paths() -> runtime::Result<()> {
    count::<split_lanes>("split_lanes")?;
    count::<split_warps>("split_warps")
}

fn count<K: kernel_dsl::Kernel>(name: &str) -> runtime::Result<()> {
    let case = Case::new("128 elements", [Input::slice(&[2.0f32; 128])]);
    let Some(profile) = crate::profile::<K>(&Default::default(), &case)? else { return Ok(()) };
    let (mut instructions, mut lanes) = (0, 0);
    for line in &profile.lines {
        instructions += line.instructions;
        lanes += line.lanes;
    }
    let mean = lanes as f64 / instructions as f64;
    println!("{name}: {instructions} warp instructions, {mean:.1} of 32 lanes active");
    Ok(())
}
