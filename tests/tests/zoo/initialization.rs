//! Loads of uninitialized memory: shared memory, and buffers that are uninitialized when the launch
//! begins.

use crate::{Bug, bug, counted, zeros};
use kernel_dsl::prelude::*;
use runtime::testing::Input;

pub const BUGS: &[Bug] = &[
    bug!(padding_never_filled, UninitializedShared, [counted(64), zeros(64)]),
    bug!(bins_never_zeroed, UninitializedShared, [Input::slice(&[3u32; 64]), Input::slice(&[0u32; 16])]),
    bug!(half_of_a_table, UninitializedShared, [counted(64), zeros(64)]),
    bug!(laid_over, UninitializedShared, [counted(64), Input::slice(&[0u32; 64])]),
    bug!(copy_not_waited_for, UninitializedShared, [Input::view(&[1f32; 64], [64]), zeros(64)]),
    bug!(copy_never_waited_for, UnfinishedCopy, [Input::view(&[1f32; 192], [3, 64]), zeros(64)]),
    bug!(group_never_waited_for, UnfinishedCopy, [Input::view(&[1f32; 192], [3, 64]), zeros(64)]),
    bug!(cleared_meanwhile, UnfinishedCopy, [Input::view(&[1f32; 64], [64]), zeros(64)]),
    bug!(token_let_go, UnfinishedCopy, [Input::view(&[1f32; 64], [64]), zeros(64)]),
    bug!(one_group_too_few, UninitializedShared, [Input::view(&[1f32; 64], [64]), zeros(64)]),
    bug!(other_stage, UninitializedShared, [counted(128), zeros(64)]),
    bug!(edge_of_a_tile, UninitializedShared, [counted(50), zeros(64)]),
    bug!(tree_of_a_power_of_two, UninitializedShared, [counted(96), zeros(1)]),
    bug!(sums_of_warps_that_are_not, UninitializedShared, [counted(96), zeros(1)]),
    bug!(kept_from_the_block_before, UninitializedShared, [counted(4), zeros(4)]),
    bug!(stale_swizzle, UninitializedShared, [counted(32), zeros(32)]),
    bug!(sums_on_nothing, UninitializedBuffer, [counted(64), Input::uninitialized::<f32, 1>([64])]),
    bug!(counts_on_nothing, UninitializedBuffer, [Input::slice(&[5u32; 64]), Input::uninitialized::<u32, 1>([16])]),
    bug!(scratch_of_half, UninitializedBuffer, [counted(32), Input::uninitialized::<f32, 1>([64]), zeros(64)]),
];

/// the padding element after a tile is never written
#[kernel(block = 64, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 64, y.len() == 64)]
fn padding_never_filled<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let t = thread::x();
    let mut tile = Shared::<f32, 1>::new([65]);
    tile[t] = x[t];
    if MENDED && t == 0 {
        tile[64] = 0.0;
    }
    block::sync();
    y[t] = tile[t] + tile[t + 1]; //~ uninitialized-shared
}

/// a histogram whose bins are never zeroed
#[kernel(block = 64, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 64, bins.len() == 16)]
fn bins_never_zeroed<const MENDED: bool>(x: &[u32], bins: &mut [u32]) {
    let t = thread::x();
    let own = Shared::<u32, 1>::new([16]);
    if MENDED {
        own.fill(0);
        block::sync();
    }
    own.fetch_add(x[t] as usize % 16, 1); //~ uninitialized-shared
    block::sync();
    if t == 3 {
        bins[t] = own[t]; //~ uninitialized-shared
    }
}

/// one warp fills a table for two, and leaves half of it unwritten
#[kernel(block = 64, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 64, y.len() == 64)]
fn half_of_a_table<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let t = thread::x();
    let mut table = Shared::<f32, 1>::new([64]);
    if MENDED || t < 32 {
        table[t] = x[t];
    }
    block::sync();
    y[t] = table[63 - t]; //~ uninitialized-shared
}

/// an array that reuses the memory of another is read before it is written
#[kernel(block = 64, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 64, y.len() == 64)]
fn laid_over<const MENDED: bool>(x: &[f32], y: &mut [u32]) {
    let t = thread::x();
    let mut first = Shared::<f32, 1>::new([64]);
    first[t] = x[t];
    block::sync();
    let own = first[63 - t];
    block::sync();
    let mut second = Shared::<u32, 1>::over(first, [64]);
    block::sync();
    if MENDED {
        second[t] = own as u32;
        block::sync();
    }
    y[t] = second[t]; //~ uninitialized-shared
}

/// an asynchronous copy is waited for after the first read
#[kernel(block = 64, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 64, y.len() == 64)]
fn copy_not_waited_for<const MENDED: bool>(x: View<f32, 1>, y: &mut [f32]) {
    let t = thread::x();
    let tile = Shared::<f32, 1>::new([64]);
    let mut coming = tile.copy_async(x);
    if MENDED {
        coming.wait();
        coming = Pending::none();
    }
    block::sync();
    let own = tile[t]; //~ uninitialized-shared
    block::sync();
    coming.wait();
    y[t] = own;
}

/// the last copy that a loop begins is never waited for
#[kernel(block = 64, grid = 1, instances(MENDED = false | true))]
#[requires(x.rows() == 3, x.cols() == 64, y.len() == 64)]
fn copy_never_waited_for<const MENDED: bool>(x: View<f32, 2>, y: &mut [f32]) {
    let t = thread::x();
    let stages = Shared::<f32, 2>::new([2, 64]);
    let mut coming = stages.at(0).copy_async(x.at(0));
    let mut sum = 0.0;
    for row in 0..x.rows() {
        coming.wait();
        block::sync();
        let next = if MENDED { row + 1 } else { (row + 1) % 3 };
        coming = Pending::none();
        if next < x.rows() {
            coming = stages.at((row + 1) % 2).copy_async(x.at(next)); //~ unfinished-copy
        }
        sum += stages[(row % 2, 63 - t)];
    }
    y[t] = sum;
}

/// the last copy of a loop is never waited for, with `cp.async`
#[kernel(target = sm_80, block = 64, grid = 1, instances(MENDED = false | true))]
#[requires(x.rows() == 3, x.cols() == 64, y.len() == 64)]
fn group_never_waited_for<const MENDED: bool>(x: View<f32, 2>, y: &mut [f32]) {
    let t = thread::x();
    let stages = Shared::<f32, 2>::new([2, 64]);
    stages.at(0).cp_async(x.at(0));
    pipeline::commit();
    let mut sum = 0.0;
    for row in 0..x.rows() {
        pipeline::wait::<0>();
        block::sync();
        let next = if MENDED { row + 1 } else { (row + 1) % 3 };
        // Beyond the end the copy brings zeros, which the sum ignores.
        stages.at((row + 1) % 2).cp_async(x.offset((next, 0)).at(0)); //~ unfinished-copy
        pipeline::commit();
        sum += stages[(row % 2, 63 - t)];
    }
    y[t] = sum;
}

/// a tile is cleared for the next iteration while a copy to it is in flight
#[kernel(target = sm_80, block = 64, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 64, y.len() == 64)]
fn cleared_meanwhile<const MENDED: bool>(x: View<f32, 1>, y: &mut [f32]) {
    let t = thread::x();
    let mut tile = Shared::<f32, 1>::new([64]);
    tile.cp_async(x);
    pipeline::commit();
    if MENDED {
        pipeline::wait::<0>();
    }
    block::sync();
    tile[63 - t] = 0.0; //~ unfinished-copy
    block::sync();
    pipeline::wait::<0>();
    block::sync();
    y[t] = tile[t];
}

/// the token of a copy is dropped, and the kernel stores to its array
#[kernel(block = 64, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 64, y.len() == 64)]
fn token_let_go<const MENDED: bool>(x: View<f32, 1>, y: &mut [f32]) {
    let t = thread::x();
    let mut tile = Shared::<f32, 1>::new([64]);
    let coming = tile.copy_async(x);
    if MENDED {
        coming.wait();
    }
    block::sync();
    tile[63 - t] = 1.0; //~ unfinished-copy
    block::sync();
    y[t] = tile[t];
}

/// `cp.async`: the kernel waits for all groups except one, and there is only one
#[kernel(target = sm_80, block = 64, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 64, y.len() == 64)]
fn one_group_too_few<const MENDED: bool>(x: View<f32, 1>, y: &mut [f32]) {
    let t = thread::x();
    let tile = Shared::<f32, 1>::new([64]);
    tile.cp_async(x); //~ unfinished-copy
    pipeline::commit();
    if MENDED {
        pipeline::wait::<0>();
    } else {
        pipeline::wait::<1>();
    }
    block::sync();
    y[t] = tile[t]; //~ uninitialized-shared
}

/// double buffering reads the buffer that is filled in the next iteration
#[kernel(block = 64, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 128, y.len() == 64)]
fn other_stage<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let t = thread::x();
    let mut stages = Shared::<f32, 2>::new([2, 64]);
    stages[(0, t)] = x[t];
    let mut sum = 0.0;
    for k in 0..2 {
        block::sync();
        let read = if MENDED { k % 2 } else { (k + 1) % 2 };
        sum += stages[(read, 63 - t)]; //~ uninitialized-shared
        block::sync();
        if k == 0 {
            stages[(1, t)] = x[64 + t];
        }
    }
    y[t] = sum;
}

/// the last tile is stored with a guard and loaded without one
#[kernel(block = 64, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() <= 64, y.len() == 64)]
fn edge_of_a_tile<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let t = thread::x();
    let mut tile = Shared::<f32, 1>::new([64]);
    if t < x.len() {
        tile[t] = x[t];
    } else if MENDED {
        tile[t] = 0.0;
    }
    block::sync();
    y[t] = tile[63 - t]; //~ uninitialized-shared
}

/// a tree reduction for 128 elements is used for 96
#[kernel(block = 96, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 96, y.len() == 1)]
fn tree_of_a_power_of_two<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let t = thread::x();
    let mut tree = Shared::<f32, 1>::new([128]);
    tree[t] = x[t];
    if MENDED && t < 32 {
        tree[96 + t] = 0.0;
    }
    block::sync();
    let mut half = 64;
    while half > 0 {
        if t < half {
            tree[t] += tree[t + half]; //~ uninitialized-shared
        }
        block::sync();
        half /= 2;
    }
    if t == 0 {
        y[0] = tree[0];
    }
}

/// the sums of 32 warps are added, in a block of three
#[kernel(block = 96, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 96, y.len() == 1)]
fn sums_of_warps_that_are_not<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let t = thread::x();
    let mut sums = Shared::<f32, 1>::new([32]);
    let own = warp::sum(x[t]);
    if warp::lane() == 0 {
        sums[warp::index()] = own;
    }
    block::sync();
    if t == 0 {
        let warps = if MENDED { warp::count() } else { 32 };
        let mut all = 0.0;
        for w in 0..warps {
            all += sums[w]; //~ uninitialized-shared
        }
        y[0] = all;
    }
}

/// the second block relies on shared memory written by the first
#[kernel(block = 1, grid = 4, instances(MENDED = false | true))]
#[requires(x.len() == 4, y.len() == 4)]
fn kept_from_the_block_before<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let mut factor = Shared::<f32, 1>::new([1]);
    if MENDED || block::x() == 0 {
        factor[0] = 2.0;
    }
    y[block::x()] = x[block::x()] * factor[0]; //~ uninitialized-shared
}

/// a tile is stored with a swizzle and read without it
#[kernel(block = 32, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 32, y.len() == 32)]
fn stale_swizzle<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let t = thread::x();
    let mut tile = Shared::<f32, 2>::new([8, 8]);
    let (row, col) = (t / 4, t % 4);
    tile[(row, (2 * col) ^ (row % 8))] = x[t];
    block::sync();
    y[t] = if MENDED { tile[(row, (2 * col) ^ (row % 8))] } else { tile[(row, 2 * col)] }; //~ uninitialized-shared
}

/// an addition to an uninitialized output
#[kernel(block = 64, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 64, y.len() == 64)]
fn sums_on_nothing<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let t = thread::x();
    if MENDED {
        y[t] = x[t];
    } else {
        y[t] += x[t]; //~ uninitialized-buffer
    }
}

/// atomic increments of bins that are never zeroed
#[kernel(block = 64, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 64, bins.len() == 16)]
fn counts_on_nothing<const MENDED: bool>(x: &[u32], bins: &mut [u32]) {
    let t = thread::x();
    if MENDED && t < 16 {
        bins[t] = 0;
    }
    block::sync();
    bins.fetch_add(x[t] as usize % 16, 1); //~ uninitialized-buffer
}

/// scratch memory is filled to the length of the input, and read to its own end
#[kernel(block = 64, grid = 1, instances(MENDED = false | true))]
#[requires(scratch.len() == 64, y.len() == 64)]
fn scratch_of_half<const MENDED: bool>(x: &[f32], scratch: &mut [f32], y: &mut [f32]) {
    let t = thread::x();
    if t < x.len() {
        scratch[t] = x[t];
    } else if MENDED {
        scratch[t] = 0.0;
    }
    block::sync();
    y[t] = scratch[63 - t]; //~ uninitialized-buffer
}
