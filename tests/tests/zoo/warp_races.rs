//! Lanes of a warp that access one location with no warp barrier between the accesses.
//!
//! Such a race is a warning for sm_61 and an error from sm_70 on. The mark is at the access that
//! comes second.

use crate::{Bug, bug, counted, zeros};
use kernel_dsl::prelude::*;

pub const BUGS: &[Bug] = &[
    bug!(warp_synchronous_tree, WarpRace, [counted(32), zeros(1)]),
    bug!(turned_within_the_warp, WarpRace, [counted(64), zeros(64)]),
    bug!(turned_on_volta, WarpRace, [counted(64), zeros(64)]),
    bug!(two_sides_of_a_branch, WarpRace, [counted(32), zeros(32)]),
    bug!(neighbor_in_global_memory, WarpRace, [counted(32), zeros(32), zeros(32)]),
    bug!(scan_of_the_warp, WarpRace, [counted(32), zeros(32)]),
    bug!(a_lane_for_all, WarpRace, [counted(32), zeros(32)]),
    bug!(a_lane_after_all, WarpRace, [counted(32), zeros(32)]),
    bug!(the_last_lane_after_all, WarpRace, [counted(32), zeros(32)]),
    bug!(shuffle_is_no_barrier, WarpRace, [counted(32), zeros(32)]),
    bug!(slot_used_again, WarpRace, [counted(64), zeros(32)]),
    bug!(window_that_moves, WarpRace, [counted(32), zeros(35)]),
    bug!(last_writer_wins, WarpRace, [counted(64), zeros(64)]),
];

/// the last steps of a tree reduction, which rely on lockstep
#[kernel(block = 32, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 32, y.len() == 1)]
fn warp_synchronous_tree<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let t = thread::x();
    let mut tree = Shared::<f32, 1>::new([64]);
    tree[t] = x[t];
    tree[t + 32] = 0.0;
    warp::sync();
    for half in [16usize, 8, 4, 2, 1] {
        let other = tree[t + half]; //~ warp-race
        if MENDED {
            warp::sync();
        }
        tree[t] += other; //~ warp-race
        if MENDED {
            warp::sync();
        }
    }
    if t == 0 {
        y[0] = tree[0];
    }
}

/// a warp reverses its elements through shared memory
#[kernel(block = 64, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 64, y.len() == 64)]
fn turned_within_the_warp<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let t = thread::x();
    let mut tile = Shared::<f32, 1>::new([64]);
    tile[t] = x[t];
    if MENDED {
        warp::sync();
    }
    y[t] = tile[t ^ 31]; //~ warp-race
}

/// a warp reverses its elements on a target without lockstep: an error
#[kernel(target = sm_70, block = 64, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 64, y.len() == 64)]
fn turned_on_volta<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let t = thread::x();
    let mut tile = Shared::<f32, 1>::new([64]);
    tile[t] = x[t];
    if MENDED {
        warp::sync();
    }
    y[t] = tile[t ^ 31]; //~ warp-race
}

/// one side of a branch stores the element that the other side loads
#[kernel(block = 32, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 32, y.len() == 32)]
fn two_sides_of_a_branch<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let t = thread::x();
    let mut half = Shared::<f32, 1>::new([16]);
    if t < 16 {
        half[t] = x[t];
    }
    if MENDED {
        warp::sync();
    }
    if t >= 16 {
        y[t] = half[t - 16]; //~ warp-race
    } else {
        y[t] = 0.0;
    }
}

/// a warp reads its neighbors' results back from global memory
#[kernel(block = 32, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 32, y.len() == 32, z.len() == 32)]
fn neighbor_in_global_memory<const MENDED: bool>(x: &[f32], y: &mut [f32], z: &mut [f32]) {
    let t = thread::x();
    y[t] = x[t] * x[t];
    if MENDED {
        warp::sync();
    }
    z[t] = y[(t + 1) % 32]; //~ warp-race
}

/// a warp scan through shared memory
#[kernel(block = 32, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 32, y.len() == 32)]
fn scan_of_the_warp<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let t = thread::x();
    let mut sums = Shared::<f32, 1>::new([32]);
    sums[t] = x[t];
    warp::sync();
    for distance in [1usize, 2, 4, 8, 16] {
        let before = if t >= distance { sums[t - distance] } else { 0.0 }; //~ warp-race
        if MENDED {
            warp::sync();
        }
        sums[t] += before; //~ warp-race
        if MENDED {
            warp::sync();
        }
    }
    y[t] = sums[t];
}

/// lane 0 stores the element that all lanes load
#[kernel(block = 32, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 32, y.len() == 32)]
fn a_lane_for_all<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let t = thread::x();
    let mut first = Shared::<f32, 1>::new([1]);
    if t == 0 {
        first[0] = x[0];
    }
    if MENDED {
        warp::sync();
    }
    y[t] = x[t] - first[0]; //~ warp-race
}

/// all lanes load the element that lane 0 stores to afterwards
#[kernel(block = 32, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 32, y.len() == 32)]
fn a_lane_after_all<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let t = thread::x();
    let mut offset = Shared::<f32, 1>::new([1]);
    offset.fill(1.0);
    warp::sync();
    let first = offset[0];
    if MENDED {
        warp::sync();
    }
    if t == 0 {
        offset[0] = x[31]; //~ warp-race
    }
    warp::sync();
    y[t] = first + offset[0];
}

/// each lane loads one of two elements, and then the last lane stores to its own
#[kernel(block = 32, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 32, y.len() == 32)]
fn the_last_lane_after_all<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let t = thread::x();
    let mut offsets = Shared::<f32, 1>::new([2]);
    offsets.fill(1.0);
    warp::sync();
    let first = offsets[t % 2];
    if MENDED {
        warp::sync();
    }
    if t == 31 {
        offsets[1] = x[t]; //~ warp-race
    }
    warp::sync();
    y[t] = first + offsets[t % 2];
}

/// a shuffle between the two accesses, which does not order memory
#[kernel(target = sm_70, block = 32, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 32, y.len() == 32)]
fn shuffle_is_no_barrier<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let t = thread::x();
    let mut tile = Shared::<f32, 1>::new([32]);
    tile[t] = x[t];
    let top = warp::max(x[t]);
    if MENDED {
        warp::sync();
    }
    y[t] = tile[t ^ 1] / top; //~ warp-race
}

/// in each iteration lanes store where their neighbors stored in the one before
#[kernel(block = 32, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 32, y.len() == 35)]
fn window_that_moves<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let t = thread::x();
    for k in 0..y.len() - x.len() {
        y[t + k] = x[t]; //~ warp-race
        if MENDED {
            warp::sync();
        }
    }
}

/// one lane per iteration stores to the warp's slot, and the last store should remain
#[kernel(target = sm_70, block = 64, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 64, y.len() == 64)]
fn last_writer_wins<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let (t, lane) = (thread::x(), warp::lane());
    let mut last = Shared::<f32, 1>::new([2]);
    for turn in 0..32 {
        if lane == turn && x[t] > 0.5 {
            last[warp::index()] = x[t]; //~ warp-race
        }
        if MENDED {
            warp::sync();
        }
    }
    warp::sync();
    y[t] = last[warp::index()];
}

/// a slot of the warp is overwritten while lanes may still load it
#[kernel(block = 32, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 64, y.len() == 32)]
fn slot_used_again<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let t = thread::x();
    let mut slot = Shared::<f32, 1>::new([32]);
    slot[t] = x[t];
    warp::sync();
    let first = slot[31 - t];
    if MENDED {
        warp::sync();
    }
    slot[t] = x[32 + t]; //~ warp-race
    warp::sync();
    y[t] = first + slot[31 - t];
}
