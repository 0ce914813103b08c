//! The step between a layer's projection and its attention. The step normalizes and rotates queries
//! and keys, and stores keys and values in the cache.
//!
//! ```text
//!   qkv of a token    │ q: heads × D │ k: groups × D │ v: groups × D │     a warp each D
//!                            │               │               │
//!                        norm, rotate    norm, rotate        │
//!                            ▼               ▼               ▼
//!                     q [token, head]    cache of keys, of values [sequence, group, row]
//! ```
//!
//! A warp has a head. Lane l has the pairs l, l + 32, … of its two halves. Therefore the norm is
//! one butterfly, and a pair is rotated within a lane. The limit is memory: each element is read
//! once and written once, and the angle of each pair is computed where it is used.

use super::cache::{Cache, Tokens};
use crate::Queue;
use crate::dispatch::dispatch;
use crate::operand::ArrayOperand;
use crate::queue::LibraryCall;
use crate::rowwise::moments::{moments, plain, scale_for};
use kernel_dsl::GenericArgument;
use kernel_dsl::prelude::*;
use runtime::{BufferView, BufferViewMut, Error};

/// Warps of a block.
#[device]
const WARPS: usize = 8;

/// Returns whether a head of `D` numbers has a pair. A lane's last pair may not exist.
#[device]
fn exists<const D: usize>(pair: usize) -> bool {
    D % 64 == 0 || pair < D / 2
}

/// Returns the mean square of a head's halves.
#[device]
fn square<const D: usize, const N: usize>(a: &[f32; N], b: &[f32; N]) -> f32 {
    let mut squares = 0.0f32;
    for i in unroll(0..N) {
        squares = b[i].mul_add(b[i], a[i].mul_add(a[i], squares));
    }
    warp::sum(squares) / D as f32
}

/// Normalizes and rotates the queries and keys of tokens, and stores keys and values in the cache.
///
/// `qkv` is `[tokens, (heads + 2·groups)·D]`: queries, keys, values. Queries are stored in `q`,
/// `[tokens, heads, D]`. Keys and values are stored in row `slots[token]` of the cache, whose views
/// are `[sequence, group, room, D]`. Rows are counted through all sequences: slot s is row s % room
/// of sequence s / room. With a slot beyond the last row nothing is stored.
///
/// With `NORMED` a head becomes x / √(mean of x² + ε) · weight (Zhang, Sennrich, 2019), with
/// weights of `[D]`. Then the rotary embedding is applied to pair i of its halves, (a, b) =
/// `(x[i], x[i + D/2])`. The pair becomes (a·cos φ − b·sin φ, b·cos φ + a·sin φ) (Su and others,
/// 2021). φ = `positions[axes[i], token] · frequencies[i]`, rounded once. A pair whose axis does
/// not exist has position 0. All steps are computed in `f32`, and the result is rounded once.
///
/// # Extreme inputs
///
/// Finite heads have a finite norm, from subnormal numbers to 3.4·10³⁸: a head whose squares leave
/// the range of `f32` is scaled by a power of two ([`moments`](crate::rowwise::moments)). A head
/// with a NaN is NaN. In a head with an ∞, the pair of the ∞ is NaN, and the others are 0 for
/// finite weights. Without a norm, a pair with a NaN is NaN, and a pair may become ±∞ if |a| + |b|
/// exceeds 3.4·10³⁸. Values of the cache are only converted. A result beyond the range of the
/// storage format is ±∞; subnormal results are kept.
#[kernel(
    block = 256,
    grid = ((q.dim(1) + 2 * keys.dim(1)) * q.dim(0)).div_ceil(8),
    instances(
        f32_d64_normed: T = f32, K = f32, D = 64, NORMED = true;
        f16_d128_normed: T = f16, K = f16, D = 128, NORMED = true;
        f32_d128: T = f32, K = f32, D = 128, NORMED = false;
        f32_f16_d32: T = f32, K = f16, D = 32, NORMED = false;
        f32_d96_normed: T = f32, K = f32, D = 96, NORMED = true
    ),
    derived(N = D.div_ceil(64)),
    writes(q = once),
)]
#[requires(
    q.dim(2) == D, keys.dim(3) == D, values.dim(3) == D, qkv.rows() == q.dim(0), qkv.cols() == (q.dim(1) + 2 * keys.dim(1)) * D,
    values.dim(0) == keys.dim(0), values.dim(1) == keys.dim(1), values.dim(2) == keys.dim(2),
    slots.len() == q.dim(0), positions.cols() == q.dim(0), axes.len() == D / 2, frequencies.len() == D / 2,
    !NORMED || q_weight.len() == D && k_weight.len() == D,
)]
pub fn heads<T: Float, K: Float, const D: usize, const NORMED: bool, const N: usize>(
    qkv: View<T, 2>,
    q_weight: View<T, 1>,
    k_weight: View<T, 1>,
    epsilon: f32,
    positions: View<u32, 2>,
    axes: View<u32, 1>,
    frequencies: View<f32, 1>,
    slots: View<u32, 1>,
    mut q: ViewMut<T, 3>,
    mut keys: ViewMut<K, 4>,
    mut values: ViewMut<K, 4>,
) {
    const { assert!(D % 2 == 0) };
    let (of_q, groups, room) = (q.dim(1), keys.dim(1), keys.dim(2));
    let all = of_q + 2 * groups;
    let id = block::x() * WARPS + warp::index();
    if id >= all * q.dim(0) {
        return;
    }
    let (token, head, lane) = (id / all, id % all, warp::lane());
    let (mut a, mut b) = ([0.0f32; N], [0.0f32; N]);
    for i in unroll(0..N) {
        let pair = lane + 32 * i;
        if exists::<D>(pair) {
            a[i] = qkv[(token, head * D + pair)].to_f32();
            b[i] = qkv[(token, head * D + D / 2 + pair)].to_f32();
        }
    }
    if head < of_q + groups {
        if NORMED {
            let mut mean_square = square::<D, N>(&a, &b);
            let mut factor = plain(0.0, mean_square, epsilon).factor;
            let scale = scale_for(0.0, mean_square, epsilon);
            if scale != 1.0 {
                for i in unroll(0..N) {
                    a[i] *= scale;
                    b[i] *= scale;
                }
                mean_square = square::<D, N>(&a, &b);
                factor = moments(scale, 0.0, mean_square, epsilon).factor;
            }
            let weight = if head < of_q { q_weight } else { k_weight };
            for i in unroll(0..N) {
                let pair = lane + 32 * i;
                if exists::<D>(pair) {
                    a[i] *= factor * weight[pair].to_f32();
                    b[i] *= factor * weight[D / 2 + pair].to_f32();
                }
            }
        }
        for i in unroll(0..N) {
            let pair = lane + 32 * i;
            if exists::<D>(pair) {
                let axis = axes[pair] as usize;
                let position = if axis < positions.rows() { positions[(axis, token)] } else { 0 };
                let (sin, cos) = math::sin_cos(position as i32 as f32 * frequencies[pair]);
                (a[i], b[i]) = (a[i].mul_add(cos, -(b[i] * sin)), b[i].mul_add(cos, a[i] * sin));
            }
        }
    }
    let slot = slots[token] as usize;
    for i in unroll(0..N) {
        let (first, second) = (lane + 32 * i, D / 2 + lane + 32 * i);
        if exists::<D>(first) {
            if head < of_q {
                q[(token, head, first)] = T::from_f32(a[i]);
                q[(token, head, second)] = T::from_f32(b[i]);
            } else if room > 0 && slot / room < keys.dim(0) {
                let (sequence, row) = (slot / room, slot % room);
                if head < of_q + groups {
                    keys[(sequence, head - of_q, row, first)] = K::from_f32(a[i]);
                    keys[(sequence, head - of_q, row, second)] = K::from_f32(b[i]);
                } else {
                    values[(sequence, head - of_q - groups, row, first)] = K::from_f32(a[i]);
                    values[(sequence, head - of_q - groups, row, second)] = K::from_f32(b[i]);
                }
            }
        }
    }
}

/// The norms of the heads of queries and of keys.
#[derive(Clone, Copy, Debug)]
pub struct Norms<'a, T: Element> {
    /// The weights for queries and for keys, each `[head]`.
    pub weights: [&'a BufferView<'a, T, 1>; 2],
    /// The constant that is added to the mean square.
    pub epsilon: f32,
}

/// The supported numbers of elements of a head.
pub const WIDTHS: [usize; 6] = [32, 64, 80, 96, 128, 256];

/// Queues [`heads`]: q and the cache ← the contents of `qkv`, `[tokens, (heads + 2·groups)·head]`.
///
/// # Errors
/// Returns an error if extents do not match, the number of elements of a head is none of
/// [`WIDTHS`], or a buffer belongs to another device.
pub fn prepare<T: Float + GenericArgument, K: Float + GenericArgument>(
    on: &impl Queue,
    qkv: &BufferView<'_, T, 2>,
    norms: Option<Norms<'_, T>>,
    tokens: &Tokens<'_>,
    q: &mut BufferViewMut<'_, T, 3>,
    cache: &mut Cache<'_, K>,
) -> Result<(), Error> {
    let ([count, heads_of_q, d], [sequences, groups, room, _]) = (q.extents(), cache.keys.extents());
    if !WIDTHS.contains(&d) {
        return Err(q.refused_operand(format!("heads of q have {d} elements; expected one of {WIDTHS:?}")));
    }
    let of_cache = [sequences, groups, room, d];
    cache.keys.expected("keys of the cache", of_cache, "heads as long as those of q")?;
    cache.values.expected("values of the cache", of_cache, "the extents of its keys")?;
    qkv.expected(
        "qkv",
        [count, (heads_of_q + 2 * groups) * d],
        "for each token of q, the heads of q and twice the heads of the cache",
    )?;
    let axes_of_positions = tokens.positions.extents()[0];
    tokens.positions.expected("positions", [axes_of_positions, count], "a number for each token of q")?;
    tokens.slots.expected("slots", [count], "one for each token of q")?;
    tokens.axes.expected("axes", [d / 2], "one for each pair of a head")?;
    tokens.frequencies.expected("frequencies", [d / 2], "one for each pair of a head")?;
    for weight in norms.iter().flat_map(|norms| norms.weights) {
        weight.expected("the weight of a norm", [d], "one for each number of a head")?;
    }
    let none = on.scratch::<T>(0)?;
    let none = none.view([0])?;
    let ([q_weight, k_weight], epsilon) = norms.map_or(([&none; 2], 0.0), |norms| (norms.weights, norms.epsilon));
    let Tokens { positions, axes, frequencies, slots } = tokens;
    dispatch!(let NORMED: bool = norms.is_some(); let [D: usize, N: usize] = match d {
        256 => [256, 4],
        128 => [128, 2],
        96 => [96, 2],
        80 => [80, 2],
        32 => [32, 1],
        _ => [64, 1],
    };
    // SAFETY: the launch compares all extents with one another. The kernel compares slots with the
    // rows of the cache, and axes with those of the positions. The oracle ran the kernel at and
    // around every edge (`kernels check`). No two tokens have one slot, as `Tokens` requires.
    unsafe {
        heads::<T, K, D, NORMED, N>::launch_unchecked(
            &LibraryCall(on), qkv, q_weight, k_weight, epsilon, positions, axes, frequencies, slots, q, &mut cache.keys, &mut cache.values,
        )
    })
}
