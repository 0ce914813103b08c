//! The kernels of histograms.

use super::items::*;
use kernel_dsl::prelude::*;

/// Counts keys in up to `BINS` bins: `bins[b]` ← `bins[b]` + the number of keys with bin b, `V`
/// keys at once.
///
/// A block counts in `COPIES` copies of the bins in shared memory. The warps of a block alternate
/// over the copies. Blocks are as large as possible, because each adds all its bins to those in
/// global memory.
#[kernel(
    block = 1024,
    max_registers = 32,
    grid = device::waves(2, keys.len().div_ceil(1024 * V)),
    instances(
        K = u8, BINS = 256, COPIES = 8, V = 16;
        K = u32, BINS = 256, COPIES = 8, V = 4 | 1;
        K = f32, BINS = 4096, COPIES = 1, V = 4
    ),
)]
#[requires(keys.aligned(V), bins.len() <= BINS, !bins.is_empty())]
pub fn count_shared<K: Key, const BINS: usize, const COPIES: usize, const V: usize>(
    keys: View<K, 1>,
    low: f32,
    high: f32,
    bins: ViewMut<u32, 1>,
) {
    let counts = Shared::<u32, 2>::new([COPIES, BINS]);
    counts.fill(0);
    block::sync();
    let mine = counts.at(warp::index() % COPIES);
    let whole = keys.len() / V;
    for i in grid::stride(whole) {
        let some = keys.load::<V>(i * V);
        for e in unroll(0..V) {
            let bin = some[e].bin(low, high, bins.len());
            if bin < bins.len() {
                mine.fetch_add(bin, 1);
            }
        }
    }
    let behind = whole * V + grid::index();
    if behind < keys.len() {
        let bin = keys[behind].bin(low, high, bins.len());
        if bin < bins.len() {
            mine.fetch_add(bin, 1);
        }
    }
    block::sync();
    for bin in block::stride(bins.len()) {
        let mut n = 0;
        for copy in unroll(0..COPIES) {
            n += counts[(copy, bin)];
        }
        if n > 0 {
            bins.fetch_add(bin, n);
        }
    }
}

/// Counts keys in any number of bins, each by an atomic operation in global memory.
///
/// `bins[b]` increases by the number of keys with bin b.
#[kernel(block = 256, grid = device::waves(8, keys.len().div_ceil(256)), instances(K = u32))]
#[requires(!bins.is_empty())]
pub fn count_global<K: Key>(keys: View<K, 1>, low: f32, high: f32, bins: ViewMut<u32, 1>) {
    for i in grid::stride(keys.len()) {
        let bin = keys[i].bin(low, high, bins.len());
        if bin < bins.len() {
            bins.fetch_add(bin, 1);
        }
    }
}
