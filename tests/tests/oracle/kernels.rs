//! For each check, a kernel that violates it and one that does not; the same for the other reports.
//! The page of `runtime::interpreter::check` shows these kernels.
//!
//! Each kernel runs with `x[i] = i` in 64 elements, and with 64 elements of `y`.

use kernel_dsl::prelude::*;

// out-of-bounds: wrong
#[kernel(block = 64, grid = 1)]
pub fn shifted(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    y[i] = x[i + 1];
}

// out-of-bounds: right
#[kernel(block = 64, grid = 1)]
pub fn shifted_inside(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    if i + 1 < x.len() {
        y[i] = x[i + 1];
    }
}

// misaligned: wrong
#[kernel(block = 8, grid = 1)]
pub fn fours_from_one(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    let v: [f32; 4] = x.load(4 * i + 1);
    y[i] = v[0];
}

// misaligned: right
#[kernel(block = 8, grid = 1)]
pub fn fours(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    let v: [f32; 4] = x.load(4 * i);
    y[i] = v[1];
}

// uninitialized-shared: wrong
#[kernel(block = 64, grid = 1)]
pub fn half_a_tile(x: &[f32], y: &mut [f32]) {
    let mut tile = Shared::<f32, 1>::new([64]);
    let i = thread::x();
    if i < 32 {
        tile[i] = x[i];
    }
    block::sync();
    y[i] = tile[63 - i];
}

// uninitialized-shared: right
#[kernel(block = 64, grid = 1)]
pub fn a_whole_tile(x: &[f32], y: &mut [f32]) {
    let mut tile = Shared::<f32, 1>::new([64]);
    let i = thread::x();
    tile[i] = x[i];
    block::sync();
    y[i] = tile[63 - i];
}

// unfinished-copy: wrong
#[kernel(block = 64, grid = 1)]
pub fn begun_to_copy(x: View<f32, 1>, y: &mut [f32]) {
    let tile = Shared::<f32, 1>::new([64]);
    let i = thread::x();
    let coming = tile.copy_async(x);
    if x.len() > 64 {
        coming.wait();
    }
    y[i] = x[63 - i];
}

// unfinished-copy: right
#[kernel(block = 64, grid = 1)]
pub fn copied_ahead(x: View<f32, 1>, y: &mut [f32]) {
    let tile = Shared::<f32, 1>::new([64]);
    let i = thread::x();
    let coming = tile.copy_async(x);
    y[i] = x[i];
    coming.wait();
    block::sync();
    y[i] += tile[63 - i];
}

// uninitialized-buffer: wrong
#[kernel(block = 64, grid = 1)]
pub fn adds(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    y[i] += x[i];
}

// uninitialized-buffer: right
#[kernel(block = 64, grid = 1)]
pub fn stores_and_adds(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    y[i] = 1.0;
    y[i] += x[i];
}

// unwritten-output: wrong
#[kernel(block = 32, grid = y.len() / 33, writes(y = all))]
pub fn rounded_down(x: &[f32], y: &mut [f32]) {
    let i = grid::index();
    y[i] = x[i];
}

// unwritten-output: right
#[kernel(block = 32, grid = y.len().div_ceil(32), writes(y = all))]
pub fn rounded_up(x: &[f32], y: &mut [f32]) {
    let i = grid::index();
    if i < y.len() {
        y[i] = x[i];
    }
}

// written-twice: wrong
#[kernel(block = 64, grid = 1, writes(y = once))]
pub fn there_and_back(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    y[i] = x[i];
    block::sync();
    y[63 - i] = x[i];
}

// written-twice: right
#[kernel(block = 64, grid = 1, writes(y = once))]
pub fn back(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    y[63 - i] = x[i];
}

// shared-race: wrong
#[kernel(block = 64, grid = 1)]
pub fn traded(x: &[f32], y: &mut [f32]) {
    let mut tile = Shared::<f32, 1>::new([64]);
    let i = thread::x();
    tile[i] = 0.0;
    block::sync();
    tile[i] = x[i];
    y[i] = tile[63 - i];
}

// shared-race: right
#[kernel(block = 64, grid = 1)]
pub fn traded_in_order(x: &[f32], y: &mut [f32]) {
    let mut tile = Shared::<f32, 1>::new([64]);
    let i = thread::x();
    tile[i] = x[i];
    block::sync();
    y[i] = tile[63 - i];
}

// warp-race: wrong
#[kernel(block = 32, grid = 1)]
pub fn turned(x: &[f32], y: &mut [f32]) {
    let mut tile = Shared::<f32, 1>::new([32]);
    let i = thread::x();
    tile[i] = x[i];
    y[i] = tile[31 - i];
}

// warp-race: right
#[kernel(block = 32, grid = 1)]
pub fn turned_in_order(x: &[f32], y: &mut [f32]) {
    let mut tile = Shared::<f32, 1>::new([32]);
    let i = thread::x();
    tile[i] = x[i];
    warp::sync();
    y[i] = tile[31 - i];
}

// global-race: wrong
#[kernel(block = 32, grid = 2)]
pub fn without_the_block(x: &[f32], y: &mut [f32]) {
    y[thread::x()] = x[grid::index()];
}

// global-race: right
#[kernel(block = 32, grid = 2)]
pub fn with_the_block(x: &[f32], y: &mut [f32]) {
    y[grid::index()] = x[grid::index()];
}

// store-conflict: wrong
#[kernel(block = 32, grid = 1)]
pub fn all_at_once(x: &[f32], y: &mut [f32]) {
    y[0] = x[thread::x()];
}

// store-conflict: right
#[kernel(block = 32, grid = 1)]
pub fn one_of_them(x: &[f32], y: &mut [f32]) {
    if thread::x() == 0 {
        y[0] = x[0];
    }
}

// equal-stores: wrong
#[kernel(block = 32, grid = 1)]
pub fn the_sum_of_all(x: &[f32], y: &mut [f32]) {
    y[0] = warp::sum(x[thread::x()]);
}

// equal-stores: right
#[kernel(block = 32, grid = 1)]
pub fn the_sum_of_all_once(x: &[f32], y: &mut [f32]) {
    let sum = warp::sum(x[thread::x()]);
    if thread::x() == 0 {
        y[0] = sum;
    }
}

// divergent-barrier: wrong
#[kernel(block = 64, grid = 1)]
pub fn behind_a_return(x: &[f32], y: &mut [f32]) {
    if x[warp::index()] > 0.5 {
        return;
    }
    block::sync();
    y[thread::x()] = x[0];
}

// divergent-barrier: right
#[kernel(block = 64, grid = 1)]
pub fn before_a_return(x: &[f32], y: &mut [f32]) {
    block::sync();
    if x[warp::index()] > 0.5 {
        return;
    }
    y[thread::x()] = x[0];
}

// divergent-warp: wrong
#[kernel(block = 32, grid = 1)]
pub fn some_vote(x: &[f32], y: &mut [f32]) {
    if x[warp::lane() / 16] > 0.5 {
        y[warp::lane()] = warp::ballot(x[warp::lane()] > 20.0) as f32;
    }
}

// divergent-warp: right
#[kernel(block = 32, grid = 1)]
pub fn all_vote(x: &[f32], y: &mut [f32]) {
    let votes = warp::ballot(x[warp::lane()] > 20.0);
    if x[warp::lane() / 16] > 0.5 {
        y[warp::lane()] = votes as f32;
    }
}

// shuffle-inactive: wrong
#[kernel(block = 32, grid = 1)]
pub fn from_an_absent_lane(x: &[f32], y: &mut [f32]) {
    if x[warp::lane() / 16] > 0.5 {
        y[warp::lane()] = warp::shuffle(x[warp::lane()], 0);
    }
}

// shuffle-inactive: right
#[kernel(block = 32, grid = 1)]
pub fn from_a_lane(x: &[f32], y: &mut [f32]) {
    let first = warp::shuffle(x[warp::lane()], 0);
    if x[warp::lane() / 16] > 0.5 {
        y[warp::lane()] = first;
    }
}

// shuffle-selector: wrong
#[kernel(block = 32, grid = 1)]
pub fn beyond_the_warp(x: &[f32], y: &mut [f32]) {
    let distance = x.len() / 2;
    y[thread::x()] = warp::shuffle_xor(x[thread::x()], distance);
}

// shuffle-selector: right
#[kernel(block = 32, grid = 1)]
pub fn within_the_warp(x: &[f32], y: &mut [f32]) {
    let distance = x.len() / 4;
    y[thread::x()] = warp::shuffle_xor(x[thread::x()], distance);
}

// undefined-value: wrong
#[kernel(block = 32, grid = 1)]
pub fn half_of_an_absent_lane(x: &[f32], y: &mut [f32]) {
    let mut first = 0.0;
    if x[warp::lane() / 16] > 0.5 {
        first = warp::shuffle(x[warp::lane()], 0);
    }
    y[warp::lane()] = first / 2.0;
}

// undefined-value: right
#[kernel(block = 32, grid = 1)]
pub fn half_of_a_lane(x: &[f32], y: &mut [f32]) {
    let first = warp::shuffle(x[warp::lane()], 0);
    y[warp::lane()] = if x[warp::lane() / 16] > 0.5 { first / 2.0 } else { 0.0 };
}

// usize-overflow: wrong
#[kernel(block = 64, grid = 1)]
pub fn before_the_first(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    let before = i - 1;
    y[i] = if i > 0 { x[before] } else { 0.0 };
}

// usize-overflow: right
#[kernel(block = 64, grid = 1)]
pub fn before_but_for_the_first(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    y[i] = if i > 0 { x[i - 1] } else { 0.0 };
}

// integer-overflow: wrong
#[kernel(block = 64, grid = 1)]
pub fn hashed(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    let hash = x[i] as u32 * 0x9E37_79B9;
    y[i] = hash as f32;
}

// integer-overflow: right
#[kernel(block = 64, grid = 1)]
pub fn hashed_as_meant(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    let hash = (x[i] as u32).wrapping_mul(0x9E37_79B9);
    y[i] = hash as f32;
}

// division-by-zero: wrong
#[kernel(block = 64, grid = 1)]
pub fn parts(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    y[i] = (64 / (x[i] as u32)) as f32;
}

// division-by-zero: right
#[kernel(block = 64, grid = 1)]
pub fn parts_of_some(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    let n = x[i] as u32;
    if n != 0 {
        y[i] = (64 / n) as f32;
    }
}

// division-overflow: wrong
#[kernel(block = 64, grid = 1)]
pub fn least_by_minus_one(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    let (least, divisor) = (i32::MIN + x[0] as i32, x[0] as i32 - 1);
    y[i] = (least / divisor) as f32;
}

// division-overflow: right
#[kernel(block = 64, grid = 1)]
pub fn nearly_least_by_minus_one(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    let (more, divisor) = (i32::MIN + x[1] as i32, x[0] as i32 - 1);
    y[i] = (more / divisor) as f32;
}

// loop-step: wrong
#[kernel(block = 64, grid = 1)]
pub fn no_step(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    let step = x.len() / 65;
    for k in (0..8).step_by(step) {
        y[i] = x[k];
    }
}

// loop-step: right
#[kernel(block = 64, grid = 1)]
pub fn a_step(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    let step = x.len() / 32;
    for k in (0..8).step_by(step) {
        y[i] = x[k];
    }
}

// shift-overflow: wrong
#[kernel(block = 64, grid = 1)]
pub fn masks(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    y[i] = (1u32 << (x[i] as u32)) as f32;
}

// shift-overflow: right
#[kernel(block = 64, grid = 1)]
pub fn masks_as_meant(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    let (n, again) = (x[i] as u32, 1u32.wrapping_shl(x[i] as u32));
    y[i] = if n < 32 { (1u32 << n) as f32 } else { again as f32 };
}

// nan-produced: wrong
#[kernel(block = 64, grid = 1)]
pub fn normalized(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    let length = (x[i] * x[i]).sqrt();
    y[i] = x[i] / length;
}

// nan-produced: right
#[kernel(block = 64, grid = 1)]
pub fn normalized_but_for_zero(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    let length = (x[i] * x[i]).sqrt();
    y[i] = if length > 0.0 { x[i] / length } else { 0.0 };
}

// infinity-produced: wrong
#[kernel(block = 64, grid = 1)]
pub fn exponentials(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    y[i] = math::exp(2.0 * x[i]);
}

// infinity-produced: right
#[kernel(block = 64, grid = 1)]
pub fn exponentials_below_one(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    // A mask written as a constant is not reported.
    let score = if i == 0 { f32::NEG_INFINITY } else { x[i] - 63.0 };
    y[i] = math::exp(score);
    if i == 0 {
        y[i] = score;
    }
}

// conversion-overflow: wrong
#[kernel(block = 64, grid = 1)]
pub fn halves(x: &[f32], y: &mut [f32]) {
    let mut tile = Shared::<f16, 1>::new([64]);
    let i = thread::x();
    tile[i] = f16::from_f32(2000.0 * x[i]);
    block::sync();
    y[i] = tile[63 - i].to_f32();
}

// conversion-overflow: right
#[kernel(block = 64, grid = 1)]
pub fn halves_in_range(x: &[f32], y: &mut [f32]) {
    let mut tile = Shared::<f16, 1>::new([64]);
    let i = thread::x();
    tile[i] = f16::from_f32(1000.0 * x[i]);
    block::sync();
    y[i] = tile[63 - i].to_f32();
}

// lossy-cast: wrong
#[kernel(block = 64, grid = 1)]
pub fn bytes_of(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    y[i] = (300.0 * x[i]) as u8 as f32;
}

// lossy-cast: right
#[kernel(block = 64, grid = 1)]
pub fn bytes_of_clamped(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    y[i] = (300.0 * x[i]).clamp(0.0, 255.0) as u8 as f32;
}

// cancellation: wrong
#[kernel(block = 64, grid = 1)]
pub fn squares(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    let (a, b) = (x[i] + 1000.0, x[i] + 1000.0009765625);
    y[i] = b * b - a * a;
}

// cancellation: right
#[kernel(block = 64, grid = 1)]
pub fn product_of_sums(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    let (a, b) = (x[i] + 1000.0, x[i] + 1000.0009765625);
    y[i] = (b - a) * (b + a);
}

// machine-dependent: wrong
#[kernel(block = 32, grid = 1)]
pub fn told_by_the_clock(x: &[f32], y: &mut [f32]) {
    let time = ptx!("mov.u32 {d}, %clock;", d = out(u32));
    y[thread::x()] = x[0] + time as f32;
}

// machine-dependent: right
#[kernel(block = 32, grid = 1)]
pub fn told_by_the_lane(x: &[f32], y: &mut [f32]) {
    let lane = ptx!("mov.u32 {d}, %laneid;", d = out(u32));
    y[thread::x()] = x[0] + lane as f32;
}

// assertion: wrong
#[kernel(block = 32, grid = 1)]
pub fn unsorted(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    let pair = (x[i] * 0.5, x[i] - 3.0);
    assert!(pair.0 <= pair.1, "the pair of thread {i} is not sorted");
    y[i] = pair.1 - pair.0;
}

// assertion: right
#[kernel(block = 32, grid = 1)]
pub fn sorted(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    let pair = (x[i].min(x[i] - 3.0), x[i].max(x[i] - 3.0));
    assert!(pair.0 <= pair.1, "the pair of thread {i} is not sorted");
    y[i] = pair.1 - pair.0;
}

// livelock: wrong
#[kernel(block = 64, grid = 1)]
pub fn wait_and_set(x: &[f32], y: &mut [f32]) {
    let mut ready = Shared::<u32, 1>::new([1]);
    let i = thread::x();
    if i == 0 {
        ready[0] = 0;
    }
    block::sync();
    while ready.fetch_or(0, 0) == 0 {}
    if i == 32 {
        ready.fetch_or(0, 1);
    }
    y[i] = x[i];
}

// livelock: right
#[kernel(block = 64, grid = 1)]
pub fn set_and_wait(x: &[f32], y: &mut [f32]) {
    let mut ready = Shared::<u32, 1>::new([1]);
    let i = thread::x();
    if i == 0 {
        ready[0] = 0;
    }
    block::sync();
    if i == 32 {
        ready.fetch_or(0, 1);
    }
    while ready.fetch_or(0, 0) == 0 {}
    y[i] = x[i];
}

// fuel-exhausted: wrong
#[kernel(block = 32, grid = 1)]
pub fn to_no_end(x: &[f32], y: &mut [f32]) {
    let mut n = 0u32;
    while x[0] < 1.0 {
        n = n.wrapping_add(1);
    }
    y[thread::x()] = n as f32;
}

// fuel-exhausted: right
#[kernel(block = 32, grid = 1)]
pub fn to_an_end(x: &[f32], y: &mut [f32]) {
    let mut n = 0u32;
    while x[0] + (n as f32) < 9.0 {
        n += 1;
    }
    y[thread::x()] = n as f32;
}

// approximate-branch: wrong
#[kernel(block = 64, grid = 1)]
pub fn kept_by_an_approximation(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    if fast::exp(-x[i]) > 0.5 {
        y[i] = x[i];
    }
}

// approximate-branch: right
#[kernel(block = 64, grid = 1)]
pub fn kept_by_a_value(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    if math::exp(-x[i]) > 0.5 {
        y[i] = x[i];
    }
}

// approximate-index: wrong
#[kernel(block = 64, grid = 1)]
pub fn at_an_approximate_power(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    let power = fast::log2(x[i] + 1.0) as usize;
    y[i] = x[power.min(7)];
}

// approximate-index: right
#[kernel(block = 64, grid = 1)]
pub fn at_a_power(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    let more = x[i] + 1.0;
    let power = ((more.to_bits() >> 23) as usize).saturating_sub(127);
    y[i] = x[power.min(7)];
}

// approximate-integer: wrong
#[kernel(block = 64, grid = 1)]
pub fn approximate_thirds(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    let level = (x[i] * fast::rcp(3.0)) as u32;
    y[i] = level as f32;
}

// approximate-integer: right
#[kernel(block = 64, grid = 1)]
pub fn thirds(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    let level = (x[i] / 3.0) as u32;
    y[i] = level as f32;
}

// order-dependent: wrong
#[kernel(block = 32, grid = 2)]
pub fn added_as_they_come(x: &[f32], y: &mut [f32]) {
    y.fetch_add(0, 1.0 / (1.0 + x[grid::index()]));
}

// order-dependent: right
#[kernel(block = 32, grid = 2)]
pub fn added_by_block(x: &[f32], y: &mut [f32]) {
    let sum = warp::sum(1.0 / (1.0 + x[grid::index()]));
    if warp::lane() == 0 {
        y[block::x()] = sum;
    }
}

// f64-arithmetic: wrong
#[kernel(block = 64, grid = 1)]
pub fn a_tenth_in_f64(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    y[i] = (x[i] as f64 * 0.1) as f32;
}

// f64-arithmetic: right
#[kernel(block = 64, grid = 1)]
pub fn a_tenth(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    y[i] = x[i] * 0.1;
}

// integer-division: wrong
#[kernel(block = 64, grid = 1)]
pub fn next_by_remainder(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    y[i] = x[(i + 1) % x.len()];
}

// integer-division: right
#[kernel(block = 64, grid = 1)]
pub fn next_by_comparison(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    let next = if i + 1 < x.len() { i + 1 } else { 0 };
    y[i] = x[next];
}

// 64-bit-multiply: wrong
#[kernel(block = 64, grid = 1)]
pub fn hashed_in_64_bits(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    let hash = (x[i] as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    y[i] = (hash >> 40) as f32;
}

// 64-bit-multiply: right
#[kernel(block = 64, grid = 1)]
pub fn hashed_in_32_bits(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    let hash = (x[i] as u32).wrapping_mul(0x9E37_79B9);
    y[i] = (hash >> 8) as f32;
}

// float-division: wrong
#[kernel(block = 64, grid = 1)]
pub fn divided_in_a_loop(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    let by = x[i] + 1.0;
    let mut sum = 0.0;
    for k in 0..x.len() {
        sum += x[k] / by;
    }
    y[i] = sum;
}

// float-division: right
#[kernel(block = 64, grid = 1)]
pub fn divided_before_it(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    let by = 1.0 / (x[i] + 1.0);
    let mut sum = 0.0;
    for k in 0..x.len() {
        sum += x[k] * by;
    }
    y[i] = sum;
}

// square-root: wrong
#[kernel(block = 64, grid = 1)]
pub fn roots_in_a_loop(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    let mut longest: f32 = 0.0;
    for k in 0..x.len() {
        let square = x[i] * x[i] + x[k] * x[k];
        longest = longest.max(square.sqrt());
    }
    y[i] = longest;
}

// square-root: right
#[kernel(block = 64, grid = 1)]
pub fn a_root_after_it(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    let mut longest: f32 = 0.0;
    for k in 0..x.len() {
        let square = x[i] * x[i] + x[k] * x[k];
        longest = longest.max(square);
    }
    y[i] = longest.sqrt();
}

// shared-atomic-loop: wrong
#[kernel(block = 64, grid = 1)]
pub fn added_as_floats(x: &[f32], y: &mut [f32]) {
    let sums = Shared::<f32, 1>::new([32]);
    let i = thread::x();
    sums.fill(0.0);
    block::sync();
    sums.fetch_add(i % 32, x[i]);
    block::sync();
    y[i] = sums[i % 32];
}

// shared-atomic-loop: right
#[kernel(block = 64, grid = 1)]
pub fn added_as_integers(x: &[f32], y: &mut [f32]) {
    let sums = Shared::<u32, 1>::new([32]);
    let i = thread::x();
    sums.fill(0);
    block::sync();
    sums.fetch_add(i % 32, x[i] as u32);
    block::sync();
    y[i] = sums[i % 32] as f32;
}

// bank-conflict: wrong
#[kernel(block = (32, 2), grid = 1)]
pub fn columns_of_a_tile(x: &[f32], y: &mut [f32]) {
    let mut tile = Shared::<f32, 2>::new([32, 32]);
    let (row, col) = (thread::y(), thread::x());
    tile[(col, row)] = x[32 * row + col];
    block::sync();
    y[32 * row + col] = tile[(31 - col, row)];
}

// bank-conflict: right
#[kernel(block = (32, 2), grid = 1)]
pub fn columns_of_a_padded_tile(x: &[f32], y: &mut [f32]) {
    let mut tile = Shared::<f32, 2>::padded([32, 32]);
    let (row, col) = (thread::y(), thread::x());
    tile[(col, row)] = x[32 * row + col];
    block::sync();
    y[32 * row + col] = tile[(31 - col, row)];
}

// constant-serialization: wrong
#[device(constant)]
const PINNED: [f32; 4] = [0.5, 0.25, 0.125, 0.0625];

#[kernel(block = 64, grid = 1)]
pub fn weights_in_turns(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    y[i] = x[i] * PINNED[i % 4];
}

// constant-serialization: right
#[device]
const WEIGHTS: [f32; 4] = [0.5, 0.25, 0.125, 0.0625];

#[kernel(block = 64, grid = 1)]
pub fn weights_at_once(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    y[i] = x[i] * WEIGHTS[i % 4];
}

// scattered-access: wrong
#[kernel(block = 64, grid = 1)]
pub fn down_the_columns(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    let (row, col) = (i % 8, i / 8);
    y[i] = x[8 * row + col];
}

// scattered-access: right
#[kernel(block = 64, grid = 1)]
pub fn along_the_rows(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    let (row, col) = (i / 8, i % 8);
    y[i] = x[8 * row + col];
}

// partial-warp: wrong
#[kernel(block = 48, grid = 1)]
pub fn a_warp_and_a_half(x: &[f32], y: &mut [f32]) {
    y[thread::x()] = x[thread::x()];
}

// partial-warp: right
#[kernel(block = 64, grid = 1)]
pub fn two_warps(x: &[f32], y: &mut [f32]) {
    y[thread::x()] = x[thread::x()];
}

// end
