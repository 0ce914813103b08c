//! The kernels of histograms.

use super::items::*;
use crate::counters::count_block;
use kernel_dsl::prelude::*;

/// Counts keys in up to `BINS` bins: `bins[b]` ← the number of keys with bin b, `V` keys at once.
///
/// A block counts in `COLUMNS` columns of bins in shared memory. The lanes of a warp alternate over
/// the columns. Blocks are as large as possible, because each adds all its bins to `totals`: a word
/// has the counts of two bins. The last block to end, which `ended[0]` shows, stores the totals.
/// The block sets `totals` and `ended` back to 0, as they are before the launch.
#[kernel(
    block = 1024,
    max_registers = 32,
    grid = device::waves(2, keys.len().div_ceil(1024 * V)).max(1),
    instances(
        K = u8, BINS = 256, COLUMNS = 32, V = 16;
        K = u32, BINS = 256, COLUMNS = 32, V = 4 | 1;
        K = f32, BINS = 4096, COLUMNS = 1, V = 4
    ),
    writes(bins = once),
)]
#[requires(
    keys.aligned(V), bins.len() <= BINS, !bins.is_empty(), totals.len() >= bins.len().div_ceil(2), !ended.is_empty(),
)]
pub fn count_shared<K: Key, const BINS: usize, const COLUMNS: usize, const V: usize>(
    keys: View<K, 1>,
    low: f32,
    high: f32,
    totals: ViewMut<u64, 1>,
    ended: ViewMut<u32, 1>,
    mut bins: ViewMut<u32, 1>,
) {
    let counts = Shared::<u32, 2>::new([BINS, COLUMNS]);
    counts.fill(0);
    block::sync();
    let column = warp::lane() % COLUMNS;
    let range = BinRange::new(low, high, bins.len());
    let whole = keys.len() / V;
    for i in grid::stride(whole) {
        let some = keys.load::<V>(i * V);
        for e in unroll(0..V) {
            let bin = some[e].bin(range);
            if bin < bins.len() {
                counts.fetch_add((bin, column), 1);
            }
        }
    }
    let behind = whole * V + grid::index();
    if behind < keys.len() {
        let bin = keys[behind].bin(range);
        if bin < bins.len() {
            counts.fetch_add((bin, column), 1);
        }
    }
    block::sync();
    let pairs = bins.len().div_ceil(2);
    for pair in block::stride(pairs) {
        let mut both = [0u32; 2];
        for b in unroll(0..2) {
            if 2 * pair + b < bins.len() {
                for c in unroll(0..COLUMNS) {
                    // Lanes begin at different columns, which are in different banks.
                    both[b] += counts[(2 * pair + b, (warp::lane() + c) % COLUMNS)];
                }
            }
        }
        if both[0] > 0 || both[1] > 0 {
            totals.fetch_add(pair, both[0] as u64 | (both[1] as u64) << 32);
        }
    }
    block::sync();
    let blocks = grid::dim_x();
    if count_block(ended, || 0, blocks) == blocks {
        for pair in block::stride(pairs) {
            let both = totals.exchange(pair, 0);
            for b in unroll(0..2) {
                if 2 * pair + b < bins.len() {
                    bins[2 * pair + b] = (both >> (32 * b)) as u32;
                }
            }
        }
    }
}

/// Counts keys in any number of bins, each by an atomic operation in global memory.
///
/// `bins[b]` increases by the number of keys with bin b.
#[kernel(block = 256, grid = device::waves(8, keys.len().div_ceil(256)), instances(K = u32))]
#[requires(!bins.is_empty())]
pub fn count_global<K: Key>(keys: View<K, 1>, low: f32, high: f32, bins: ViewMut<u32, 1>) {
    let range = BinRange::new(low, high, bins.len());
    for i in grid::stride(keys.len()) {
        let bin = keys[i].bin(range);
        if bin < bins.len() {
            bins.fetch_add(bin, 1);
        }
    }
}
