//! Arithmetic whose result is not the number that it should be.

use crate::{Bug, bug, counted, zeros};
use kernel_dsl::prelude::*;
use runtime::testing::Input;

pub const BUGS: &[Bug] = &[
    bug!(left_neighbor, UsizeOverflow, [counted(64), zeros(64)]),
    bug!(large_matrix, UsizeOverflow, [Input::scalar(65536usize), Input::scalar(65536usize), counted(97), zeros(32)]),
    bug!(tiles_that_are_left, UsizeOverflow, [counted(20), zeros(64)]),
    bug!(counting_down, UsizeOverflow, [counted(4), zeros(4)]),
    bug!(view_far_down, UsizeOverflow, [Input::scalar(1usize << 31), Input::view(&[1f32; 96], [3, 32]), zeros(32)]),
    bug!(bytes_of_a_buffer, UsizeOverflow, [Input::scalar(3usize << 29), zeros(32)]),
    bug!(checksum, IntegerOverflow, [Input::slice(&[0x0100_0001u32; 32]), Input::slice(&[0u32; 32])]),
    bug!(fixed_point_product, IntegerOverflow, [Input::slice(&[0x4_0000i32; 32]), Input::slice(&[0i32; 32])]),
    bug!(distance_of_colors, IntegerOverflow, [Input::slice(&[3u32, 5]), Input::slice(&[0u32; 2])]),
    bug!(magnitude_of_the_least, IntegerOverflow, [Input::slice(&[i32::MIN, 4]), Input::slice(&[0i32; 2])]),
    bug!(sum_of_a_warp, IntegerOverflow, [Input::slice(&[0x1000_0000u32; 32]), Input::slice(&[0u32; 32])]),
    bug!(
        mean_of_nothing,
        DivisionByZero,
        [Input::slice(&[12u32, 0]), Input::slice(&[4u32, 0]), Input::slice(&[0u32; 2])]
    ),
    bug!(stride_of_zero, DivisionByZero, [Input::scalar(0usize), counted(32), zeros(32)]),
    bug!(empty_group, DivisionByZero, [Input::slice(&[3u32, 0, 2, 1]), counted(4), zeros(4)]),
    bug!(
        least_by_minus_one,
        DivisionOverflow,
        [Input::slice(&[i32::MIN, 8]), Input::slice(&[-1i32, 2]), Input::slice(&[0i32; 2])]
    ),
    bug!(
        rest_of_the_least,
        DivisionOverflow,
        [Input::slice(&[i64::MIN, 9]), Input::slice(&[-1i64, 4]), Input::slice(&[0i64; 2])]
    ),
    bug!(mask_of_all_bits, ShiftOverflow, [Input::slice(&[3u32, 32, 8, 17]), Input::slice(&[0u32; 4])]),
    bug!(bit_of_a_long_set, ShiftOverflow, [counted(64), Input::slice(&[0u64; 2])]),
    bug!(alignment_of_exponents, ShiftOverflow, [Input::slice(&[1i32 << 20, 1, 0, 0]), Input::slice(&[0i32; 4])]),
    bug!(color_of_a_bright_pixel, LossyCast, [Input::slice(&[0.5f32, 1.0, 1.25, 0.0]), Input::slice(&[0u8; 4])]),
    bug!(counts_in_half_a_word, LossyCast, [Input::slice(&[7u32, 65536 + 3]), Input::slice(&[0u16; 2])]),
    bug!(no_step, LoopStep, [Input::scalar(0usize), counted(32), zeros(32)]),
    bug!(step_of_a_division, LoopStep, [Input::scalar(3usize), counted(32), zeros(32)]),
];

/// a difference reads the left neighbor of the first element
#[kernel(block = 64, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 64, y.len() == 64)]
fn left_neighbor<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    let before = if MENDED { i.saturating_sub(1) } else { i - 1 }; //~ usize-overflow
    y[i] = x[i] - x.get(before).copied().unwrap_or(0.0);
}

/// an index into a 65536 × 65536 matrix, computed as a 32-bit product
#[kernel(block = 32, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() > 0, y.len() == 32)]
fn large_matrix<const MENDED: bool>(row: usize, cols: usize, x: &[f32], y: &mut [f32]) {
    let t = thread::x();
    let hash = if MENDED {
        ((row as u64 * cols as u64 + t as u64) % x.len() as u64 & 0xffff_ffff) as usize
    } else {
        (row * cols + t) % x.len() //~ usize-overflow
    };
    y[t] = x[hash];
}

/// the length of the remainder is computed for a buffer shorter than one tile
#[kernel(block = 64, grid = 1, instances(MENDED = false | true))]
#[requires(y.len() == 64)]
fn tiles_that_are_left<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let t = thread::x();
    let inside = if MENDED { t + 32 <= x.len() } else { t <= x.len() - 32 }; //~ usize-overflow
    y[t] = if inside { 1.0 } else { x.get(t).copied().unwrap_or(0.0) };
}

/// a loop counts down past zero
#[kernel(block = 4, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 4, y.len() == 4)]
fn counting_down<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let mut k = thread::x();
    let mut sum = 0.0;
    loop {
        sum += x[k];
        if MENDED && k == 0 {
            break;
        }
        k -= 1; //~ usize-overflow
        if k >= 4 {
            break;
        }
    }
    y[thread::x()] = sum;
}

/// the offset of a view overflows and wraps to an address inside the buffer
#[kernel(block = 32, grid = 1, instances(MENDED = false | true))]
#[requires(x.cols() == 32, y.len() == 32)]
fn view_far_down<const MENDED: bool>(row: usize, x: View<f32, 2>, y: &mut [f32]) {
    let t = thread::x();
    let row = if MENDED { row % x.rows() } else { row };
    let part = x.offset((row, 0)); //~ usize-overflow
    y[t] = part.get((0, t)).unwrap_or(0.0);
}

/// a length in bytes does not fit in 32 bits
#[kernel(block = 32, grid = 1, instances(MENDED = false | true))]
#[requires(y.len() == 32)]
fn bytes_of_a_buffer<const MENDED: bool>(n: usize, y: &mut [f32]) {
    let large = if MENDED { n as u64 * 4 > 1 << 30 } else { n * 4 > 1 << 30 }; //~ usize-overflow
    y[thread::x()] = if large { 1.0 } else { 0.0 };
}

/// a checksum multiplies without `wrapping_mul`
#[kernel(block = 32, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 32, y.len() == 32)]
fn checksum<const MENDED: bool>(x: &[u32], y: &mut [u32]) {
    let t = thread::x();
    y[t] = if MENDED { x[t].wrapping_mul(0x0100_0193) } else { x[t] * 0x0100_0193 }; //~ integer-overflow
}

/// a product of fixed-point numbers overflows before the shift
#[kernel(block = 32, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 32, y.len() == 32)]
fn fixed_point_product<const MENDED: bool>(x: &[i32], y: &mut [i32]) {
    let a = x[thread::x()];
    let wide = (a as i64 * a as i64) >> 16;
    y[thread::x()] = if MENDED { wide as i32 } else { (a * a) >> 16 }; //~ integer-overflow
}

/// the difference of unsigned numbers is negative
#[kernel(block = 1, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 2, y.len() == 2)]
fn distance_of_colors<const MENDED: bool>(x: &[u32], y: &mut [u32]) {
    let (a, b) = (x[0], x[1]);
    y[0] = if MENDED { a.abs_diff(b) } else { a - b }; //~ integer-overflow
}

/// the minimum of `i32` is negated
#[kernel(block = 2, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 2, y.len() == 2)]
fn magnitude_of_the_least<const MENDED: bool>(x: &[i32], y: &mut [i32]) {
    let a = x[thread::x()];
    let sized = if MENDED { a.max(-i32::MAX) } else { a };
    y[thread::x()] = if sized < 0 { -sized } else { sized }; //~ integer-overflow
}

/// the sum of a warp does not fit in 32 bits
#[kernel(block = 32, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 32, y.len() == 32)]
fn sum_of_a_warp<const MENDED: bool>(x: &[u32], y: &mut [u32]) {
    let own = if MENDED { x[thread::x()] >> 8 } else { x[thread::x()] };
    y[thread::x()] = warp::reduce(own, |a, b| a + b); //~ integer-overflow
}

/// a mean with a count of zero
#[kernel(block = 2, grid = 1, instances(MENDED = false | true))]
#[requires(sum.len() == 2, count.len() == 2, y.len() == 2)]
fn mean_of_nothing<const MENDED: bool>(sum: &[u32], count: &[u32], y: &mut [u32]) {
    let t = thread::x();
    let n = if MENDED { count[t].max(1) } else { count[t] };
    y[t] = sum[t] / n; //~ division-by-zero
}

/// an index modulo a stride of zero, given by the caller
#[kernel(block = 32, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 32, y.len() == 32)]
fn stride_of_zero<const MENDED: bool>(stride: usize, x: &[f32], y: &mut [f32]) {
    let t = thread::x();
    let stride = if MENDED { stride.max(1) } else { stride };
    y[t] = x[(t % stride).min(31)]; //~ division-by-zero
}

/// an index modulo the size of a group, one of which is empty
#[kernel(block = 4, grid = 1, instances(MENDED = false | true))]
#[requires(sizes.len() == 4, x.len() == 4, y.len() == 4)]
fn empty_group<const MENDED: bool>(sizes: &[u32], x: &[f32], y: &mut [f32]) {
    let t = thread::x();
    let size = sizes[t] as usize;
    if !MENDED || size > 0 {
        y[t] = x[(7 % size).min(3)]; //~ division-by-zero
    }
}

/// the minimum of `i32` is divided by −1
#[kernel(block = 2, grid = 1, instances(MENDED = false | true))]
#[requires(a.len() == 2, b.len() == 2, y.len() == 2)]
fn least_by_minus_one<const MENDED: bool>(a: &[i32], b: &[i32], y: &mut [i32]) {
    let t = thread::x();
    y[t] = if MENDED { (a[t] as i64 / b[t] as i64).min(i32::MAX as i64) as i32 } else { a[t] / b[t] }; //~ division-overflow
}

/// the remainder of the minimum of `i64` by −1
#[kernel(block = 2, grid = 1, instances(MENDED = false | true))]
#[requires(a.len() == 2, b.len() == 2, y.len() == 2)]
fn rest_of_the_least<const MENDED: bool>(a: &[i64], b: &[i64], y: &mut [i64]) {
    let t = thread::x();
    let divisor = if MENDED && b[t] == -1 { 1 } else { b[t] };
    y[t] = a[t] % divisor; //~ division-overflow
}

/// a loop with a step of zero, given by the caller
#[kernel(block = 32, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 32, y.len() == 32)]
fn no_step<const MENDED: bool>(step: usize, x: &[f32], y: &mut [f32]) {
    let mut sum = 0.0;
    let step = if MENDED { step.max(1) } else { step };
    for i in (0..x.len()).step_by(step) {
        //~^ loop-step
        sum += x[i];
    }
    y[thread::x()] = sum;
}

/// a loop whose step is a quotient rounded down to zero
#[kernel(block = 32, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 32, y.len() == 32)]
fn step_of_a_division<const MENDED: bool>(n: usize, x: &[f32], y: &mut [f32]) {
    let step = if MENDED { n.div_ceil(4) } else { n / 4 };
    let mut sum = 0.0;
    for i in (thread::x()..x.len()).step_by(step) {
        //~^ loop-step
        sum += x[i];
    }
    y[thread::x()] = sum;
}

/// a mask of n bits, where n is the width of the type
#[kernel(block = 4, grid = 1, instances(MENDED = false | true))]
#[requires(bits.len() == 4, y.len() == 4)]
fn mask_of_all_bits<const MENDED: bool>(bits: &[u32], y: &mut [u32]) {
    let n = bits[thread::x()];
    y[thread::x()] = if MENDED { if n < 32 { (1 << n) - 1 } else { u32::MAX } } else { (1 << n) - 1 }; //~ shift-overflow
}

/// a bit of a 64-bit set, made by a 32-bit shift
#[kernel(block = 64, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 64, y.len() == 2)]
fn bit_of_a_long_set<const MENDED: bool>(x: &[f32], y: &mut [u64]) {
    let t = thread::x();
    if x[t] >= 10.0 {
        let bit = if MENDED { 1u64 << t } else { (1u32 << t) as u64 }; //~ shift-overflow
        y.fetch_or(0, bit);
    }
}

/// a right shift by the difference of two exponents, which may exceed the width
#[kernel(block = 4, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 4, y.len() == 4)]
fn alignment_of_exponents<const MENDED: bool>(x: &[i32], y: &mut [i32]) {
    let t = thread::x();
    let down = 12 * t as u32;
    y[t] = if MENDED { x[t] >> down.min(31) } else { x[t] >> down }; //~ shift-overflow
}

/// a cast of colors to `u8`, where bright values saturate and NaN becomes 0
#[kernel(block = 4, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 4, y.len() == 4)]
fn color_of_a_bright_pixel<const MENDED: bool>(x: &[f32], y: &mut [u8]) {
    let i = thread::x();
    let level = if MENDED { (x[i] * 255.0).clamp(0.0, 255.0) } else { x[i] * 255.0 };
    y[i] = level as u8; //~ lossy-cast
}

/// a count does not fit in the `u16` that stores it
#[kernel(block = 2, grid = 1, instances(MENDED = false | true))]
#[requires(counts.len() == 2, y.len() == 2)]
fn counts_in_half_a_word<const MENDED: bool>(counts: &[u32], y: &mut [u16]) {
    let i = thread::x();
    let count = if MENDED { counts[i].min(65535) } else { counts[i] };
    y[i] = count as u16; //~ lossy-cast
}
