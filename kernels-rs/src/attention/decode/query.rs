//! The columns of a block of [`decode`](super), pairs of a token and a query head, and their
//! queries.

use super::super::cache::*;
use kernel_dsl::prelude::*;

/// The columns of a block: pairs of a token and a query head, of one group of query heads.
#[device]
#[derive(Clone, Copy)]
pub struct BlockColumns {
    /// The sequence.
    pub sequence: usize,
    /// The number of tokens of a sequence.
    pub tokens: usize,
    /// The group, which is also the key head.
    pub group: usize,
    /// The number of query heads of a group.
    pub of_group: usize,
    /// The number of columns of the group.
    pub count: usize,
    /// The first column of the block.
    pub first: usize,
    /// The number of elements of a head.
    pub width: usize,
}

/// Returns the token of a column, and the query head within its group. A group has `of_group` query
/// heads.
#[device]
pub fn token_and_head<const TOKENS: bool>(column: usize, of_group: usize) -> (usize, usize) {
    if TOKENS { (column / of_group, column % of_group) } else { (0, column) }
}

/// The queries of a warp's `GROUP` columns, in units of log₂ e. With several tokens, the queries
/// are in shared memory, otherwise in registers.
#[device]
#[derive(Clone, Copy)]
pub struct WarpQueries<const ELEMENTS: usize, const GROUP: usize> {
    /// The lane's elements of each query.
    pub own: [[f32; ELEMENTS]; GROUP],
    /// The elements of `own` as packed integers, for a cache of integers.
    pub packed: [[[u32; 4]; ELEMENTS]; GROUP],
    /// The units of the integers.
    pub units: [f32; GROUP],
    /// The queries of all columns of the block, in the order of `staged_at`.
    pub staged: Shared<f32, 2>,
    /// The warp's set of columns: its columns of the block are those from `set · GROUP` on.
    pub set: usize,
}

/// Stores the queries of a block's columns, [column, element], times `scale` · log₂ e, and the
/// number of keys that each column sees. A sequence has `len` keys.
#[device]
pub fn stage_queries<
    T: Float,
    const LANES: usize,
    const WIDE: usize,
    const ELEMENTS: usize,
    const GROUP: usize,
    const COLUMN_SETS: usize,
    const THREADS: usize,
>(
    q: View<T, 3>,
    columns: BlockColumns,
    scale: f32,
    len: usize,
    queries: Shared<f32, 2>,
    mut seen: Shared<u32, 1>,
) {
    let BlockColumns { sequence, tokens, group, of_group, count, first, width } = columns;
    for i in rolled((thread::x()..GROUP * COLUMN_SETS * LANES * ELEMENTS / 4).step_by(THREADS)) {
        let (c, d) = (i / (LANES * ELEMENTS / 4), i % (LANES * ELEMENTS / 4) * 4);
        let (token, head) = token_and_head::<true>((first + c).min(count - 1), of_group);
        let mut x = [0.0f32; 4];
        if d < width {
            let y: [T; 4] = q.load((sequence * tokens + token, group * of_group + head, d));
            for e in unroll(0..4) {
                x[e] = y[e].to_f32() * (scale * std::f32::consts::LOG2_E);
            }
        }
        queries.store((c, staged_at::<LANES, WIDE>(d)), x);
    }
    if thread::x() < GROUP * COLUMN_SETS {
        let (token, _) = token_and_head::<true>((first + thread::x()).min(count - 1), of_group);
        seen[thread::x()] = (len + token + 1).saturating_sub(tokens) as u32;
    }
}

/// Returns the place of element `d` of a query in shared memory. A lane reads `WIDE` neighboring
/// elements by fours; in this order neighboring lanes read neighboring fours.
#[device]
fn staged_at<const LANES: usize, const WIDE: usize>(d: usize) -> usize {
    let within = d % (LANES * WIDE);
    d - within + within % WIDE / 4 * (LANES * 4) + within / WIDE * 4 + d % 4
}

/// Loads a lane's elements of the query of a head, times `scale` · log₂ e. Elements beyond the
/// head's width are zeros.
#[device]
pub fn load_query<T: Float, const LANES: usize, const WIDE: usize, const ELEMENTS: usize>(
    q: View<T, 3>,
    row: usize,
    head: usize,
    width: usize,
    scale: f32,
) -> [f32; ELEMENTS] {
    let mut query = [0.0f32; ELEMENTS];
    for p in unroll(0..ELEMENTS / WIDE) {
        let d = (p * LANES + warp::group::<LANES>().lane()) * WIDE;
        if d < width {
            let x: [T; WIDE] = q.load((row, head, d));
            for e in unroll(0..WIDE) {
                query[p * WIDE + e] = x[e].to_f32() * (scale * std::f32::consts::LOG2_E);
            }
        }
    }
    query
}

/// Returns a lane's elements of a query as packed integers, and the unit of their products with
/// the integers of a cache.
#[device]
pub fn packed_query<K: StoredElement, const ELEMENTS: usize>(query: [f32; ELEMENTS]) -> ([[u32; 4]; ELEMENTS], f32) {
    let mut packed = [[0u32; 4]; ELEMENTS];
    let (n, unit) = integers(query);
    let unit = unit * K::UNIT;
    for i in unroll(0..ELEMENTS / K::KEPT_NUMBERS) {
        let mut together = [0i32; 8];
        for e in unroll(0..K::KEPT_NUMBERS) {
            together[e] = n[i * K::KEPT_NUMBERS + e];
        }
        packed[i] = K::pack(together);
    }
    (packed, unit)
}

/// Returns numbers of a query as integers of 16 bits, and their unit, a power of two. The unit is
/// 2⁻¹⁴ to 2⁻¹⁵ of the largest magnitude, at least 2⁻¹²⁶, and NaN if a number is not finite.
#[device]
fn integers<const ELEMENTS: usize>(x: [f32; ELEMENTS]) -> ([i32; ELEMENTS], f32) {
    let (mut top, mut invalid) = (0.0f32, 0.0f32);
    for e in unroll(0..ELEMENTS) {
        top = top.max(x[e].abs());
        invalid = x[e].mul_add(0.0, invalid);
    }
    // 2ᵉ ≤ top < 2ᵉ⁺¹, as the bits of an `f32`. The unit is 2ᵉ⁻¹⁴.
    let power = (top.to_bits() & 0x7f80_0000).max(15 << 23);
    let inverse = f32::from_bits((268 << 23) - power);
    let n = x.map(|x| ((x * inverse).round_ties_even() as i32).min(32_767));
    (n, f32::from_bits(power - (14 << 23)) + invalid)
}

/// Loads a lane's elements of a column's query from shared memory.
#[device]
pub fn staged_query<const LANES: usize, const WIDE: usize, const ELEMENTS: usize>(
    queries: Shared<f32, 2>,
    column: usize,
) -> [f32; ELEMENTS] {
    let mut query = [0.0f32; ELEMENTS];
    for i in unroll(0..ELEMENTS / 4) {
        let lane = warp::group::<LANES>().lane();
        let d = i * 4 / WIDE * (LANES * WIDE) + i * 4 % WIDE * LANES + lane * 4;
        let four: [f32; 4] = queries.load((column, d));
        for e in unroll(0..4) {
            query[i * 4 + e] = four[e];
        }
    }
    query
}
