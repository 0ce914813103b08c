//! Unordered accesses to one buffer by threads of different blocks, or by different warps of one
//! block.
//!
//! The mark is at the access that comes second when blocks and warps run in order.

use crate::{Bug, bug, counted, zeros};
use kernel_dsl::prelude::*;
use runtime::testing::Input;

pub const BUGS: &[Bug] = &[
    bug!(in_place_across_blocks, GlobalRace, [counted(128), zeros(128)]),
    bug!(plain_sum_of_blocks, GlobalRace, [counted(128), zeros(1)]),
    bug!(last_block_without_fence, GlobalRace, [counted(128), zeros(4), Input::slice(&[0u32]), zeros(1)]),
    bug!(fence_too_narrow, GlobalRace, [counted(128), zeros(4), Input::slice(&[0u32]), zeros(1)]),
    bug!(stored_after_the_fence, GlobalRace, [counted(128), zeros(4), Input::slice(&[0u32]), zeros(1)]),
    bug!(fence_without_barrier, GlobalRace, [counted(256), zeros(256), Input::slice(&[0u32]), zeros(1)]),
    bug!(tiles_that_overlap, GlobalRace, [counted(128), zeros(128)]),
    bug!(flag_of_another_block, GlobalRace, [counted(64), Input::slice(&[0u32]), zeros(64)]),
    bug!(plain_bins, GlobalRace, [Input::slice(&[0u32, 1, 2, 3].repeat(16)), Input::slice(&[0u32; 4])]),
    bug!(split_sums, GlobalRace, [counted(64), zeros(32)]),
    bug!(warps_of_a_block, GlobalRace, [counted(64), zeros(64), zeros(64)]),
    bug!(block_index_folded, GlobalRace, [counted(64), zeros(128)]),
    bug!(counter_reset, GlobalRace, [Input::slice(&[0u32]), zeros(64)]),
    bug!(turned_in_place, GlobalRace, [Input::view(&[1f32; 256], [16, 16])]),
    bug!(fence_of_one_lane, GlobalRace, [counted(128), zeros(128), Input::slice(&[0u32]), zeros(1)]),
    bug!(acquired_by_one_lane, GlobalRace, [counted(128), zeros(4), Input::slice(&[0u32]), zeros(1)]),
    bug!(one_of_the_readers_without_fence, GlobalRace, [zeros(1), Input::slice(&[0u32]), zeros(4)]),
    bug!(handed_on_within_the_block, GlobalRace, [counted(256), zeros(8), Input::slice(&[0u32]), zeros(1)]),
    bug!(carry_of_the_block_before, GlobalRace, [counted(64), zeros(2), zeros(64)]),
    bug!(relaxed_flag, GlobalRace, [zeros(1), Input::slice(&[0u32, 0]), zeros(1)]),
    bug!(flag_read_relaxed, GlobalRace, [zeros(1), Input::slice(&[0u32, 0]), zeros(1)]),
    bug!(exchange_that_fails, GlobalRace, [zeros(1), Input::slice(&[0u32]), Input::slice(&[0u32]), zeros(1)]),
];

/// a smoothing step stores to the buffer whose next element another block reads
#[kernel(block = 64, grid = 2, instances(MENDED = false | true))]
#[requires(y.len() == 128, z.len() == 128)]
fn in_place_across_blocks<const MENDED: bool>(y: &mut [f32], z: &mut [f32]) {
    let i = grid::index();
    let next = (i + 64) % 128;
    let mean = 0.5 * (y[i] + y[next]); //~ global-race
    if MENDED {
        z[i] = mean;
    } else {
        y[i] = mean; //~ global-race
    }
}

/// each block adds its sum to the total without an atomic operation
#[kernel(block = 32, grid = 4, instances(MENDED = false | true))]
#[requires(x.len() == 128, total.len() == 1)]
fn plain_sum_of_blocks<const MENDED: bool>(x: &[f32], total: &mut [f32]) {
    let sum = warp::sum(x[grid::index()]);
    if thread::x() == 0 {
        if MENDED {
            total.fetch_add(0, sum);
        } else {
            total[0] += sum; //~ global-race
        }
    }
}

/// the last block sums the results of the others, without a fence
#[kernel(block = 32, grid = 4, instances(MENDED = false | true))]
#[requires(x.len() == 128, partial.len() == 4, ended.len() == 1, total.len() == 1)]
fn last_block_without_fence<const MENDED: bool>(x: &[f32], partial: &mut [f32], ended: &mut [u32], total: &mut [f32]) {
    let sum = warp::sum(x[grid::index()]);
    if thread::x() == 0 {
        partial[block::x()] = sum;
        if MENDED {
            fence::grid();
        }
        if ended.fetch_add(0, 1) == 3 {
            if MENDED {
                fence::grid();
            }
            let mut all = 0.0;
            for b in 0..4 {
                all += partial[b]; //~ global-race
            }
            total[0] = all;
        }
    }
}

/// the last block sums the results of the others, with fences of block scope
#[kernel(block = 32, grid = 4, instances(MENDED = false | true))]
#[requires(x.len() == 128, partial.len() == 4, ended.len() == 1, total.len() == 1)]
fn fence_too_narrow<const MENDED: bool>(x: &[f32], partial: &mut [f32], ended: &mut [u32], total: &mut [f32]) {
    let sum = warp::sum(x[grid::index()]);
    if thread::x() == 0 {
        partial[block::x()] = sum;
        if MENDED {
            fence::grid()
        } else {
            fence::block()
        }
        if ended.fetch_add(0, 1) == 3 {
            if MENDED {
                fence::grid()
            } else {
                fence::block()
            }
            let mut all = 0.0;
            for b in 0..4 {
                all += partial[b]; //~ global-race
            }
            total[0] = all;
        }
    }
}

/// the fence comes before the store that it should publish
#[kernel(block = 32, grid = 4, instances(MENDED = false | true))]
#[requires(x.len() == 128, partial.len() == 4, ended.len() == 1, total.len() == 1)]
fn stored_after_the_fence<const MENDED: bool>(x: &[f32], partial: &mut [f32], ended: &mut [u32], total: &mut [f32]) {
    let sum = warp::sum(x[grid::index()]);
    if thread::x() == 0 {
        if MENDED {
            partial[block::x()] = sum;
        }
        fence::grid();
        if !MENDED {
            partial[block::x()] = sum;
        }
        if ended.fetch_add(0, 1) == 3 {
            fence::grid();
            let mut all = 0.0;
            for b in 0..4 {
                all += partial[b]; //~ global-race
            }
            total[0] = all;
        }
    }
}

/// a fence publishes stores of the block's other warps, without a barrier before it
#[kernel(block = 64, grid = 4, instances(MENDED = false | true))]
#[requires(x.len() == 256, y.len() == 256, ended.len() == 1, total.len() == 1)]
fn fence_without_barrier<const MENDED: bool>(x: &[f32], y: &mut [f32], ended: &mut [u32], total: &mut [f32]) {
    let i = grid::index();
    y[i] = x[i] * x[i];
    if MENDED {
        block::sync();
    }
    if thread::x() == 0 {
        fence::grid();
        if ended.fetch_add(0, 1) == 3 {
            fence::grid();
            let mut all = 0.0;
            for k in 0..3 {
                all += y[64 * k + 33]; //~ global-race
            }
            total[0] = all;
        }
    }
}

/// blocks of 64 threads are 60 elements apart, and each stores 64 elements
#[kernel(block = 64, grid = 2, instances(MENDED = false | true))]
#[requires(x.len() == 128, y.len() == 128)]
fn tiles_that_overlap<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let i = 60 * block::x() + thread::x();
    if !MENDED || thread::x() < 60 {
        y[i] = x[i]; //~ global-race
    }
}

/// a block reads a flag that another block sets
#[kernel(block = 32, grid = 2, instances(MENDED = false | true))]
#[requires(x.len() == 64, flag.len() == 1, y.len() == 64)]
fn flag_of_another_block<const MENDED: bool>(x: &[f32], flag: &mut [u32], y: &mut [f32]) {
    let i = grid::index();
    if i == 5 {
        if MENDED {
            flag.exchange(0, 1);
        } else {
            flag[0] = 1;
        }
    }
    if block::x() == 1 {
        if MENDED {
            flag.fetch_max(0, 0);
            y[i] = x[i];
        } else {
            y[i] = if flag[0] == 1 { 0.0 } else { x[i] }; //~ global-race
        }
    }
}

/// bins in global memory, counted without atomic operations by one lane per bin
#[kernel(block = 32, grid = 2, instances(MENDED = false | true))]
#[requires(x.len() == 64, bins.len() == 4)]
fn plain_bins<const MENDED: bool>(x: &[u32], bins: &mut [u32]) {
    let t = thread::x();
    let bin = x[grid::index()] as usize;
    if t < 4 {
        if MENDED {
            bins.fetch_add(bin, 8);
        } else {
            bins[bin] += 8; //~ global-race
        }
    }
}

/// the first part of a split sum stores to an element that the second part updates atomically
#[kernel(block = 32, grid = 2, instances(MENDED = false | true))]
#[requires(x.len() == 64, y.len() == 32)]
fn split_sums<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let (t, part) = (thread::x(), block::x());
    if part == 0 && !MENDED {
        y[t] = x[t];
    } else {
        y.fetch_add(t, x[32 * part + t]); //~ global-race
    }
}

/// a warp reads the stores of the block's other warp without a barrier
#[kernel(block = 64, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 64, y.len() == 64, z.len() == 64)]
fn warps_of_a_block<const MENDED: bool>(x: &[f32], y: &mut [f32], z: &mut [f32]) {
    let t = thread::x();
    y[t] = x[t]; //~ global-race
    if MENDED {
        block::sync();
    }
    z[t] = y[t ^ 32]; //~ global-race
}

/// surplus blocks of a grid repeat the work of other blocks
#[kernel(block = 32, grid = 4, instances(MENDED = false | true))]
#[requires(x.len() == 64, y.len() == 128)]
fn block_index_folded<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let (t, b) = (thread::x(), block::x());
    let tile = if MENDED { b } else { b % 2 };
    y[32 * tile + t] = x[32 * (b % 2) + t]; //~ global-race
}

/// the first block resets a counter that all blocks increment
#[kernel(block = 32, grid = 2, instances(MENDED = false | true))]
#[requires(count.len() == 1, y.len() == 64)]
fn counter_reset<const MENDED: bool>(count: &mut [u32], y: &mut [f32]) {
    if !MENDED && grid::index() == 0 {
        count[0] = 0;
    }
    warp::sync();
    if thread::x() == 0 {
        count.fetch_add(0, 1); //~ global-race
    }
    y[grid::index()] = 1.0;
}

/// each block transposes one tile of a matrix in place
#[kernel(block = (8, 8), grid = (2, 2), instances(MENDED = false | true))]
#[requires(y.rows() == 16, y.cols() == 16)]
fn turned_in_place<const MENDED: bool>(mut y: ViewMut<f32, 2>) {
    let (row, col) = (8 * block::y() + thread::y(), 8 * block::x() + thread::x());
    if MENDED {
        if row < col {
            let (a, b) = (y[(row, col)], y[(col, row)]);
            y[(row, col)] = b;
            y[(col, row)] = a;
        }
    } else {
        let own = y[(row, col)]; //~ global-race
        block::sync();
        y[(col, row)] = own; //~ global-race
    }
}

/// one lane's fence publishes the stores of its warp, without a warp barrier before it
#[kernel(block = 32, grid = 4, instances(MENDED = false | true))]
#[requires(x.len() == 128, y.len() == 128, ended.len() == 1, total.len() == 1)]
fn fence_of_one_lane<const MENDED: bool>(x: &[f32], y: &mut [f32], ended: &mut [u32], total: &mut [f32]) {
    y[grid::index()] = x[grid::index()] * 2.0;
    if MENDED {
        warp::sync();
    }
    if thread::x() == 0 {
        fence::grid();
        if ended.fetch_add(0, 1) == 3 {
            fence::grid();
            let mut all = 0.0;
            for b in 0..4 {
                if b != block::x() {
                    all += y[32 * b + 5]; //~ global-race
                }
            }
            total[0] = all;
        }
    }
}

/// one lane makes the acquire fence, and the others read before the warp reconverges
#[kernel(block = 32, grid = 4, instances(MENDED = false | true))]
#[requires(x.len() == 128, partial.len() == 4, ended.len() == 1, total.len() == 1)]
fn acquired_by_one_lane<const MENDED: bool>(x: &[f32], partial: &mut [f32], ended: &mut [u32], total: &mut [f32]) {
    let (t, b) = (thread::x(), block::x());
    let sum = warp::sum(x[grid::index()]);
    let mut before = 0;
    if t == 0 {
        partial[b] = sum;
        fence::grid();
        before = ended.fetch_add(0, 1);
        fence::grid();
    }
    before = warp::shuffle(before, 0);
    if MENDED {
        warp::sync();
    }
    if before == 3 {
        let other = if t < 4 && t != b { partial[t] } else { 0.0 }; //~ global-race
        let all = warp::sum(other);
        if t == 0 {
            total[0] = all + sum;
        }
    }
}

/// the last of four readers replaces a value, and one reader signals without a fence
#[kernel(block = 32, grid = 4, instances(MENDED = false | true))]
#[requires(value.len() == 1, ended.len() == 1, y.len() == 4)]
fn one_of_the_readers_without_fence<const MENDED: bool>(value: &mut [f32], ended: &mut [u32], y: &mut [f32]) {
    if thread::x() == 0 {
        let b = block::x();
        y[b] = value[0];
        if MENDED || b != 1 {
            fence::grid();
        }
        if ended.fetch_add(0, 1) == 3 {
            fence::grid();
            value[0] = 1.0; //~ global-race
        }
    }
}

/// one warp signals for both warps of its block, after a fence of block scope
#[kernel(block = 64, grid = 4, instances(MENDED = false | true))]
#[requires(x.len() == 256, partial.len() == 8, ended.len() == 1, total.len() == 1)]
fn handed_on_within_the_block<const MENDED: bool>(
    x: &[f32],
    partial: &mut [f32],
    ended: &mut [u32],
    total: &mut [f32],
) {
    let mut of_block = Shared::<u32, 1>::new([1]);
    if thread::x() == 0 {
        of_block[0] = 0;
    }
    block::sync();
    let sum = warp::sum(x[grid::index()]);
    if warp::lane() == 0 {
        partial[grid::index() / 32] = sum;
        fence::block();
        if of_block.fetch_add(0, 1) == 1 {
            if MENDED {
                fence::grid();
            } else {
                fence::block();
            }
            if ended.fetch_add(0, 1) == 3 {
                fence::grid();
                let mut all = 0.0;
                for w in 0..8 {
                    all += partial[w]; //~ global-race
                }
                total[0] = all;
            }
        }
    }
}

/// a scan reads the sum of the preceding block, which may not have run
#[kernel(block = 32, grid = 2, instances(MENDED = false | true))]
#[requires(x.len() == 64, sums.len() == 2, y.len() == 64)]
fn carry_of_the_block_before<const MENDED: bool>(x: &[f32], sums: &mut [f32], y: &mut [f32]) {
    let (t, b) = (thread::x(), block::x());
    let sum = warp::sum(x[32 * b + t]);
    if t == 0 {
        sums[b] = sum;
    }
    warp::sync();
    let mut before = 0.0;
    if b > 0 {
        before = if MENDED { warp::sum(x[t]) } else { sums[b - 1] }; //~ global-race
    }
    y[32 * b + t] = before + x[32 * b + t];
}

/// a flag is set by a compare-and-exchange that fails, so it releases nothing
#[kernel(block = 32, grid = 2, instances(MENDED = false | true))]
#[requires(value.len() == 1, came.len() == 1, flag.len() == 1, y.len() == 1)]
fn exchange_that_fails<const MENDED: bool>(value: &mut [f32], came: &mut [u32], flag: &mut [u32], y: &mut [f32]) {
    if thread::x() == 0 {
        if came.fetch_add(0, 1) == 0 {
            value[0] = 1.0;
            fence::grid();
            let there: u32 = if MENDED { 0 } else { 7 };
            flag.compare_exchange(0, there, 1);
        } else {
            let up = flag.fetch_add(0, 0) == 1;
            fence::grid();
            if up || !MENDED {
                y[0] = value[0]; //~ global-race
            }
        }
    }
}

/// a flag for another block is stored without a release
#[kernel(block = 1, grid = 2, instances(MENDED = false | true))]
#[requires(data.len() == 1, ready.len() == 2, y.len() == 1)]
fn relaxed_flag<const MENDED: bool>(data: &mut [f32], ready: &mut [u32], y: &mut [f32]) {
    // The block that begins first passes data to the other, in any order of blocks.
    if ready.fetch_add(1, 1) == 0 {
        data[0] = 7.0;
        if MENDED {
            ready.store_release(0, 1);
        } else {
            ready.store_relaxed(0, 1);
        }
    } else {
        while ready.load_acquire(0) == 0 {}
        y[0] = data[0]; //~ global-race
    }
}

/// a flag of another block is loaded without an acquire
#[kernel(block = 1, grid = 2, instances(MENDED = false | true))]
#[requires(data.len() == 1, ready.len() == 2, y.len() == 1)]
fn flag_read_relaxed<const MENDED: bool>(data: &mut [f32], ready: &mut [u32], y: &mut [f32]) {
    // The block that begins first passes data to the other, in any order of blocks.
    if ready.fetch_add(1, 1) == 0 {
        data[0] = 7.0;
        ready.store_release(0, 1);
    } else {
        while (if MENDED { ready.load_acquire(0) } else { ready.read_volatile(0) }) == 0 {}
        y[0] = data[0]; //~ global-race
    }
}
