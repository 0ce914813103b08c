//! The kernel that appends a decoding step's new keys and values to the cache. It rotates the keys
//! and the queries to their positions.

use super::cache::*;
use crate::fold::{along_x, along_y, block_at};
use kernel_dsl::prelude::*;

/// Returns the indices of the `i`-th rotated pair: two neighbors if `interleaved` (GPT-J),
/// otherwise one element of each half (GPT-NeoX, LLaMA).
#[device]
fn pair(i: usize, rotated_width: usize, interleaved: bool) -> (usize, usize) {
    if interleaved { (2 * i, 2 * i + 1) } else { (i, i + rotated_width / 2) }
}

/// Returns element `d` of a head of `x` after the rotary embedding (Su and others, 2021). The pair
/// (a, b) becomes (a·cos φ − b·sin φ, a·sin φ + b·cos φ). The angle φ is the position times the
/// pair's frequency.
#[device]
fn rotated<T: Float>(x: View<T, 1>, d: usize, position: usize, frequencies: View<f32, 1>, interleaved: bool) -> f32 {
    let rotated_width = 2 * frequencies.len();
    let own = x[d].to_f32();
    if d >= rotated_width {
        return own;
    }
    let i = if interleaved { d / 2 } else { d % (rotated_width / 2) };
    let (a, b) = pair(i, rotated_width, interleaved);
    let (sin, cos) = math::sin_cos(position as f32 * frequencies[i]);
    if d == a { own.mul_add(cos, -(x[b].to_f32() * sin)) } else { x[a].to_f32().mul_add(sin, own * cos) }
}

/// Writes each sequence's rotated new key and its new value to row `lengths` of the cache, and its
/// rotated queries to `rotated_q`.
///
/// q and rotated_q are [sequence, head, element], new_k and new_v [sequence, key head, element], and
/// the cache's views [plane, head, row, element]. `frequencies` has one number for each rotated
/// pair; the other elements are copied. For a sequence whose cache is full, no key or value is
/// written. With `SCALED`, a row is stored as integer multiples of its scale, its largest magnitude
/// / 127. The scales' views are [plane, head, row].
#[kernel(
    block = 32, grid = (along_x(k.dim(1) + q.dim(1), q.dim(0), 1), along_y(q.dim(0), 1)),
    instances(
        f32_contiguous: T = f32, K = f32, P = Contiguous, SCALED = false, INTERLEAVED = false;
        f32_i8_paged_interleaved: T = f32, K = i8, P = Paged, SCALED = true, INTERLEAVED = true
    ),
)]
#[requires(
    rotated_q.dim(0) == q.dim(0), rotated_q.dim(1) == q.dim(1), rotated_q.dim(2) == q.dim(2), lengths.len() == q.dim(0),
    new_k.dim(0) == q.dim(0), new_k.dim(1) == k.dim(1), new_k.dim(2) == k.dim(3),
    new_v.dim(0) == q.dim(0), new_v.dim(1) == k.dim(1), new_v.dim(2) == v.dim(3),
    v.dim(0) == k.dim(0), v.dim(1) == k.dim(1), v.dim(2) == k.dim(2), q.dim(2) == k.dim(3), v.dim(3) == k.dim(3),
    2 * frequencies.len() <= q.dim(2),
    !SCALED || key_scales.dim(0) == k.dim(0) && key_scales.dim(1) == k.dim(1) && key_scales.dim(2) == k.dim(2),
    !SCALED || value_scales.dim(0) == k.dim(0) && value_scales.dim(1) == k.dim(1) && value_scales.dim(2) == k.dim(2),
)]
pub fn cache_append<T: Float, K: Stored, P: Pages, const SCALED: bool, const INTERLEAVED: bool>(
    q: View<T, 3>,
    mut rotated_q: ViewMut<T, 3>,
    new_k: View<T, 3>,
    new_v: View<T, 3>,
    mut k: ViewMut<K, 4>,
    mut v: ViewMut<K, 4>,
    mut key_scales: ViewMut<f32, 3>,
    mut value_scales: ViewMut<f32, 3>,
    pages: P,
    lengths: View<u32, 1>,
    frequencies: View<f32, 1>,
) {
    let [of_sequence, sequence, _] = block_at(k.dim(1) + q.dim(1), q.dim(0));
    let lane = warp::lane();
    let position = lengths[sequence] as usize;
    if of_sequence >= k.dim(1) {
        let head = of_sequence - k.dim(1);
        for d in (lane..q.dim(2)).step_by(32) {
            let x = rotated(q.at(sequence).at(head), d, position, frequencies, INTERLEAVED);
            rotated_q[(sequence, head, d)] = T::from_f32(x);
        }
        return;
    }
    let head = of_sequence;
    if position >= pages.room(k.dim(2)) || k.dim(0) == 0 {
        return;
    }
    let (plane, row) = pages.place(sequence, position, k.dim(2));
    let plane = plane.min(k.dim(0) - 1);
    let (new_k, new_v) = (new_k.at(sequence).at(head), new_v.at(sequence).at(head));
    let (mut key_step, mut value_step) = (1.0f32, 1.0f32);
    if SCALED {
        let (mut key_top, mut value_top) = (0.0f32, 0.0f32);
        for d in (lane..k.dim(3)).step_by(32) {
            key_top = key_top.max(rotated(new_k, d, position, frequencies, INTERLEAVED).abs());
            value_top = value_top.max(new_v[d].to_f32().abs());
        }
        key_step = warp::max(key_top) / 127.0;
        value_step = warp::max(value_top) / 127.0;
        // All lanes hold the same value.
        key_scales[(plane, head, row)] = key_step;
        value_scales[(plane, head, row)] = value_step;
    }
    for d in (lane..k.dim(3)).step_by(32) {
        let (mut x, mut y) = (rotated(new_k, d, position, frequencies, INTERLEAVED), new_v[d].to_f32());
        if SCALED {
            // In a row of zeros 0 / 0 is NaN, which is converted to 0.
            x /= key_step;
            y /= value_step;
        }
        k[(plane, head, row, d)] = K::narrow(x);
        v[(plane, head, row, d)] = K::narrow(y);
    }
}
