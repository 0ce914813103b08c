//! Warps of a block that access shared memory with no barrier between the accesses.
//!
//! The mark is at the access that comes second when warps run in order, where the oracle finds the
//! race.

use crate::{Bug, bug, counted, zeros};
use kernel_dsl::prelude::*;
use runtime::testing::Input;

pub const BUGS: &[Bug] = &[
    bug!(tree_without_barriers, SharedRace, [counted(128), zeros(1)]),
    bug!(tile_overwritten, SharedRace, [counted(256), zeros(64)]),
    bug!(exchange_without_barrier, SharedRace, [counted(64), zeros(64)]),
    bug!(one_barrier_for_two_stages, SharedRace, [counted(256), zeros(64)]),
    bug!(plain_histogram, SharedRace, [Input::slice(&distinct(64)), Input::slice(&[0u32; 32])]),
    bug!(zeroed_meanwhile, SharedRace, [Input::slice(&distinct(64)), Input::slice(&[0u32; 32])]),
    bug!(plain_and_atomic, SharedRace, [counted(64), Input::slice(&[0u32])]),
    bug!(scan_in_place, SharedRace, [counted(64), zeros(64)]),
    bug!(broadcast_again, SharedRace, [counted(4), zeros(64)]),
    bug!(scratch_used_twice, SharedRace, [counted(64), zeros(64)]),
    bug!(filled_and_stored, SharedRace, [counted(64), zeros(64)]),
    bug!(over_what_is_read, SharedRace, [counted(64), zeros(64)]),
    bug!(stencil_in_place, SharedRace, [counted(64), zeros(64)]),
    bug!(barrier_of_the_warp, SharedRace, [counted(64), zeros(64)]),
    bug!(flag_in_shared_memory, SharedRace, [counted(64), zeros(64)]),
    bug!(relaxed_flag_in_shared_memory, SharedRace, [counted(64), zeros(64)]),
    bug!(fence_for_a_barrier, SharedRace, [counted(64), zeros(64)]),
    bug!(signed_off_too_early, SharedRace, [counted(2), zeros(97)]),
    bug!(sort_step, SharedRace, [counted(128), zeros(128)]),
    bug!(turned_tile, SharedRace, [counted(1024), zeros(1024)]),
];

/// Returns bins, each of the 32 once in a warp.
fn distinct(n: u32) -> Vec<u32> {
    (0..n).map(|i| i * 7 % 32).collect()
}

/// a tree reduction without a barrier in its loop
#[kernel(block = 128, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 128, y.len() == 1)]
fn tree_without_barriers<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let t = thread::x();
    let mut tree = Shared::<f32, 1>::new([128]);
    tree[t] = x[t];
    block::sync();
    let mut half = 64;
    while half >= 32 {
        if t < half {
            tree[t] += tree[t + half]; //~ shared-race
        }
        if MENDED {
            block::sync();
        }
        half /= 2;
    }
    if !MENDED {
        block::sync();
    }
    let own = warp::sum(tree[t % 32]);
    if t == 0 {
        y[0] = own;
    }
}

/// a loop over tiles has no barrier at its end: the next tile overwrites the one being read
#[kernel(block = 64, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 256, y.len() == 64)]
fn tile_overwritten<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let t = thread::x();
    let mut tile = Shared::<f32, 1>::new([64]);
    let mut sum = 0.0;
    for k in 0..4 {
        tile[t] = x[64 * k + t]; //~ shared-race
        block::sync();
        sum += tile[63 - t]; //~ shared-race
        if MENDED {
            block::sync();
        }
    }
    y[t] = sum;
}

/// a block reverses its elements without a barrier
#[kernel(block = 64, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 64, y.len() == 64)]
fn exchange_without_barrier<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let t = thread::x();
    let mut tile = Shared::<f32, 1>::new([64]);
    tile[t] = x[t]; //~ shared-race
    if MENDED {
        block::sync();
    }
    y[t] = tile[63 - t]; //~ shared-race, uninitialized-shared
}

/// double buffering with its barrier before the read: a buffer is overwritten while being read
#[kernel(block = 64, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 256, y.len() == 64)]
fn one_barrier_for_two_stages<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let t = thread::x();
    let mut stages = Shared::<f32, 2>::new([2, 64]);
    stages[(0, t)] = x[t];
    block::sync();
    let mut sum = 0.0;
    for k in 0..3 {
        stages[((k + 1) % 2, t)] = x[64 * k + 64 + t]; //~ shared-race
        if !MENDED {
            block::sync();
        }
        sum += stages[(k % 2, 63 - t)]; //~ shared-race
        if MENDED {
            block::sync();
        }
    }
    y[t] = sum;
}

/// a histogram without atomic operations
#[kernel(block = 64, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 64, bins.len() == 32)]
fn plain_histogram<const MENDED: bool>(x: &[u32], bins: &mut [u32]) {
    let t = thread::x();
    let mut own = Shared::<u32, 1>::new([32]);
    own.fill(0);
    block::sync();
    let bin = x[t] as usize;
    if MENDED {
        own.fetch_add(bin, 1);
    } else {
        own[bin] += 1; //~ shared-race
    }
    block::sync();
    if t < 32 {
        bins[t] = own[t];
    }
}

/// some threads count into bins while others still zero them
#[kernel(block = 64, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 64, bins.len() == 32)]
fn zeroed_meanwhile<const MENDED: bool>(x: &[u32], bins: &mut [u32]) {
    let t = thread::x();
    let mut own = Shared::<u32, 1>::new([32]);
    if t < 32 {
        own[31 - t] = 0;
    }
    if MENDED {
        block::sync();
    } else {
        warp::sync();
    }
    own.fetch_add(x[t] as usize, 1); //~ shared-race
    block::sync();
    if t < 32 {
        bins[t] = own[t];
    }
}

/// a counter that one thread sets, without an atomic operation, while others increment it
#[kernel(block = 64, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 64, n.len() == 1)]
fn plain_and_atomic<const MENDED: bool>(x: &[f32], n: &mut [u32]) {
    let t = thread::x();
    let count = Shared::<u32, 1>::new([1]);
    count.fill(0);
    block::sync();
    if x[t] > 3.0 {
        count.fetch_add(0, 1);
    }
    if MENDED {
        block::sync();
    }
    if t == 63 {
        n[0] = count[0]; //~ shared-race
    }
}

/// a scan in one array, without a barrier between reading and writing
#[kernel(block = 64, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 64, y.len() == 64)]
fn scan_in_place<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let t = thread::x();
    let mut sums = Shared::<f32, 1>::new([64]);
    sums[t] = x[t];
    block::sync();
    let before = if t >= 32 { sums[t - 32] } else { 0.0 }; //~ shared-race
    if MENDED {
        block::sync();
    }
    sums[t] += before;
    block::sync();
    y[t] = sums[63 - t];
}

/// one thread broadcasts a value in each iteration, without a barrier after the reads
#[kernel(block = 64, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 4, y.len() == 64)]
fn broadcast_again<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let t = thread::x();
    let mut given = Shared::<f32, 1>::new([1]);
    let mut sum = 0.0;
    for k in 0..4 {
        if t == 63 {
            given[0] = x[k]; //~ shared-race
        }
        block::sync();
        sum += given[0];
        if MENDED {
            block::sync();
        }
    }
    y[t] = sum;
}

/// a reduction reuses the scratch memory of the one before
#[kernel(block = 64, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 64, y.len() == 64)]
fn scratch_used_twice<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let t = thread::x();
    let mut scratch = Shared::<f32, 1>::new([2]);
    let top = warp::max(x[t]);
    if warp::lane() == 0 {
        scratch[warp::index()] = top;
    }
    block::sync();
    let top = scratch[0].max(scratch[1]); //~ shared-race
    if MENDED {
        block::sync();
    } else {
        warp::sync();
    }
    let sum = warp::sum(x[t] - top);
    if warp::lane() == 0 {
        scratch[warp::index()] = sum; //~ shared-race
    }
    block::sync();
    y[t] = scratch[0] + scratch[1];
}

/// an array is filled and then partly stored to, with no barrier between
#[kernel(block = 64, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 64, y.len() == 64)]
fn filled_and_stored<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let t = thread::x();
    let mut tile = Shared::<f32, 1>::new([64]);
    tile.fill(0.0); //~ shared-race
    if MENDED {
        block::sync();
    }
    tile[(t + 32) % 64] = x[t]; //~ shared-race
    block::sync();
    y[t] = tile[t];
}

/// an array reuses the memory of one that other threads still read
#[kernel(block = 64, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 64, y.len() == 64)]
fn over_what_is_read<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let t = thread::x();
    let mut first = Shared::<f32, 1>::new([64]);
    first[t] = x[t];
    block::sync();
    let other = first[63 - t]; //~ shared-race, uninitialized-shared
    let mut second = Shared::<f32, 1>::over(first, [64]);
    if MENDED {
        block::sync();
    }
    second[t] = other * 2.0; //~ shared-race
    block::sync();
    y[t] = second[63 - t];
}

/// a stencil stores to the array that it reads
#[kernel(block = 64, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 64, y.len() == 64)]
fn stencil_in_place<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let t = thread::x();
    let mut line = Shared::<f32, 1>::new([64]);
    line[t] = x[t];
    block::sync();
    let far = line[(t + 32) % 64]; //~ shared-race
    let mean = 0.5 * (far + line[t]);
    if MENDED {
        block::sync();
    }
    line[t] = mean; //~ shared-race
    block::sync();
    y[t] = line[63 - t];
}

/// a warp barrier where a block barrier is needed
#[kernel(block = 64, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 64, y.len() == 64)]
fn barrier_of_the_warp<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let t = thread::x();
    let mut tile = Shared::<f32, 1>::new([64]);
    tile.fill(0.0);
    block::sync();
    tile[t] = x[t]; //~ shared-race
    if MENDED {
        block::sync();
    } else {
        warp::sync();
    }
    y[t] = tile[t ^ 32]; //~ shared-race
}

/// a thread sets a flag that the other warp reads
#[kernel(block = 64, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 64, y.len() == 64)]
fn flag_in_shared_memory<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let t = thread::x();
    let mut found = Shared::<u32, 1>::new([1]);
    found.fill(0);
    block::sync();
    if t == 7 {
        found[0] = 1;
    }
    if MENDED {
        block::sync();
    } else {
        warp::sync();
    }
    y[t] = if found[0] == 1 { x[t] } else { 0.0 }; //~ shared-race
}

/// a fence instead of a barrier, without an atomic operation that publishes a value
#[kernel(block = 64, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 64, y.len() == 64)]
fn fence_for_a_barrier<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let t = thread::x();
    let mut tile = Shared::<f32, 1>::new([64]);
    tile.fill(1.0);
    block::sync();
    tile[t] = x[t]; //~ shared-race
    if MENDED {
        block::sync();
    } else {
        fence::block();
    }
    y[t] = tile[t ^ 32]; //~ shared-race
}

/// a slot is refilled after three readers signaled, and one of them signaled before its read
#[kernel(block = 128, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 2, y.len() == 97)]
fn signed_off_too_early<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let (t, w, first) = (thread::x(), warp::index(), warp::lane() == 0);
    let mut slot = Shared::<f32, 1>::new([1]);
    let mut readers = Shared::<u32, 1>::new([1]);
    if t == 0 {
        slot[0] = x[0];
        readers[0] = 0;
    }
    block::sync();
    if w < 3 {
        let early = !MENDED && w == 1;
        if early && first {
            fence::block();
            readers.fetch_add(0, 1);
        }
        y[t] = slot[0];
        warp::sync();
        if !early && first {
            fence::block();
            readers.fetch_add(0, 1);
        }
    } else if first {
        while readers.fetch_add(0, 0) < 3 {}
        fence::block();
        slot[0] = x[1]; //~ shared-race
        y[96] = slot[0];
    }
}

/// two steps of a bitonic sort with one barrier
#[kernel(block = 128, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 128, y.len() == 128)]
fn sort_step<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let t = thread::x();
    let mut keys = Shared::<f32, 1>::new([128]);
    keys[t] = x[127 - t];
    block::sync();
    for distance in [64usize, 32] {
        let other = t ^ distance;
        if other > t {
            let (a, b) = (keys[t], keys[other]); //~ shared-race
            keys[t] = a.min(b); //~ shared-race
            keys[other] = a.max(b); //~ shared-race
        }
        if MENDED {
            block::sync();
        }
    }
    block::sync();
    y[t] = keys[t];
}

/// a tile is transposed through shared memory without a barrier
#[kernel(block = (32, 32), grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 1024, y.len() == 1024)]
fn turned_tile<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let (row, col) = (thread::y(), thread::x());
    let mut tile = Shared::<f32, 2>::padded([32, 32]);
    tile.fill(0.0);
    block::sync();
    tile[(row, col)] = x[32 * row + col]; //~ shared-race
    if MENDED {
        block::sync();
    } else {
        warp::sync();
    }
    y[32 * row + col] = tile[(col, row)]; //~ shared-race
}

/// a warp passes a tile to another warp by a flag without a release
#[kernel(block = 64, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 64, y.len() == 64)]
fn relaxed_flag_in_shared_memory<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let mut tile = Shared::<f32, 1>::new([1]);
    let ready = Shared::<u32, 1>::new([1]);
    let t = thread::x();
    if t == 0 {
        ready.store_relaxed(0, 0);
    }
    block::sync();
    if t == 0 {
        tile[0] = x[0];
        if MENDED {
            ready.store_release(0, 1);
        } else {
            ready.write_volatile(0, 1);
        }
    }
    if t == 32 {
        while ready.load_acquire(0) == 0 {}
        y[0] = tile[0]; //~ shared-race
    }
}
