//! The kernels of prefix sums.

use super::items::*;
use crate::counters::{MAX_POLLS, PUBLISHED};
use kernel_dsl::prelude::*;

/// Loads four elements of a row from index `at` on, with zeros from `to` on; by one access if `V`
/// is 4.
#[device]
fn four<T: Number, const V: usize>(x: View<T, 2>, row: usize, at: usize, to: usize) -> [T; 4] {
    let mut v = [T::default(); 4];
    if V == 4 {
        if at < to {
            v = x.load((row, at));
        }
    } else {
        for e in unroll(0..4) {
            if at + e < to {
                v[e] = x[(row, at + e)];
            }
        }
    }
    v
}

/// Loads the tile of a row that begins at element `tile`. Returns the prefix sums of the thread's
/// elements within its warp, and writes the warps' sums to `sums`. A barrier must follow the last
/// use of `sums` before the call. There is one barrier, at the end.
#[device]
fn load_tile<T: Number, const INCLUSIVE: bool, const V: usize, const PIECES: usize>(
    x: View<T, 2>,
    row: usize,
    tile: usize,
    mut sums: Shared<T, 1>,
) -> [[T; 4]; PIECES] {
    let mut v = [[T::default(); 4]; PIECES];
    for i in unroll(0..PIECES) {
        v[i] = four::<T, V>(x, row, first::<PIECES>(tile) + i * 128, x.cols());
    }
    let mut of_warp = T::default();
    for i in unroll(0..PIECES) {
        let own = (v[i][0] + v[i][1]) + (v[i][2] + v[i][3]);
        let through = warp::scan(own, |a, b| a + b);
        let mut sum = of_warp + warp::shuffle_up(through, 1).unwrap_or(T::default());
        for e in unroll(0..4) {
            let next = sum + v[i][e];
            v[i][e] = if INCLUSIVE { next } else { sum };
            sum = next;
        }
        of_warp = of_warp + warp::broadcast(through, 31);
    }
    if warp::lane() == 0 {
        sums[warp::index()] = of_warp;
    }
    block::sync();
    v
}

/// Returns `start` plus the sums of the first `warps` warps.
#[device]
fn sum_of_warps<T: Number>(start: T, sums: Shared<T, 1>, warps: usize) -> T {
    let mut sum = start;
    for w in unroll(0..8) {
        if w < warps {
            sum = sum + sums[w];
        }
    }
    sum
}

/// Returns the index of the thread's first element in the tile that begins at `tile`.
#[device]
fn first<const PIECES: usize>(tile: usize) -> usize {
    tile + (warp::index() * PIECES * 32 + warp::lane()) * 4
}

/// Stores the prefix sums of the tile that begins at element `tile`: `v`, each increased by
/// `before`.
#[device]
fn store_tile<T: Number, const V: usize, const PIECES: usize>(
    y: ViewMut<T, 2>,
    row: usize,
    tile: usize,
    before: T,
    v: [[T; 4]; PIECES],
) {
    // Relative to the tile: the columns of the loads would occupy registers until here.
    let cols = y.cols() - tile;
    let mut y = y.at(row).offset(tile);
    for i in unroll(0..PIECES) {
        let out = v[i].map(|sum| before + sum);
        let at = first::<PIECES>(0) + i * 128;
        if V == 4 {
            if at < cols {
                y.store(at, out);
            }
        } else {
            for e in unroll(0..4) {
                if at + e < cols {
                    y[at + e] = out[e];
                }
            }
        }
    }
}

/// Computes y ← the prefix sums of each row, inclusive or exclusive, by accesses of `V` elements, 4
/// or 1. A block has a row.
///
/// x and y are [rows, n].
#[kernel(
    block = 256, grid = x.rows(), writes(y = once),
    instances(T = f32, INCLUSIVE = true | false, V = 4; T = f32, INCLUSIVE = true, V = 1; T = u32, INCLUSIVE = true, V = 4),
)]
#[requires(y.rows() == x.rows(), y.cols() == x.cols(), x.aligned(V), y.aligned(V), x.cols() % V == 0)]
pub fn scan_rows<T: Number, const INCLUSIVE: bool, const V: usize>(x: View<T, 2>, y: ViewMut<T, 2>) {
    let sums = Shared::<T, 2>::new([2, 8]);
    let row = block::x();
    let mut carry = T::default();
    let mut buffer = 0;
    for tile in (0..x.cols()).step_by(4096) {
        let of_warps = sums.at(buffer);
        let v = load_tile::<T, INCLUSIVE, V, 4>(x, row, tile, of_warps);
        // The next tile's sums use another buffer, so that one barrier is enough.
        buffer = 1 - buffer;
        store_tile::<T, V, 4>(y, row, tile, sum_of_warps(carry, of_warps, warp::index()), v);
        carry = sum_of_warps(carry, of_warps, 8);
    }
}

/// Returns the sum of the tile of a row that begins at element `tile`, by the additions of
/// [`load_tile`]. A barrier must follow the last use of `sums` before the call.
#[device]
fn tile_sum<T: Number, const V: usize, const PIECES: usize>(
    x: View<T, 2>,
    row: usize,
    tile: usize,
    mut sums: Shared<T, 1>,
) -> T {
    let mut of_warp = T::default();
    for i in rolled(0..PIECES) {
        let v = four::<T, V>(x, row, first::<PIECES>(tile) + i * 128, x.cols());
        let through = warp::scan((v[0] + v[1]) + (v[2] + v[3]), |a, b| a + b);
        of_warp = of_warp + warp::broadcast(through, 31);
    }
    if warp::lane() == 0 {
        sums[warp::index()] = of_warp;
    }
    block::sync();
    let sum = sum_of_warps(T::default(), sums, 8);
    block::sync();
    sum
}

/// Computes y ← the prefix sums of each row in one pass, as [`scan_rows`] does, with a block for
/// each tile.
///
/// A block publishes the sum of its tile, and the last block of a group of `GROUP` tiles also the
/// group's sum. Each block adds the sums of earlier tiles in its group, and those of earlier
/// groups. The last block of a group does not wait for other groups before it publishes. Therefore
/// waits do not form a chain.
///
/// Devices start blocks in order, but nothing promises it. Therefore a block polls a limited number
/// of times, and then computes the sums that it needs by the same additions: the result has the
/// same bits.
///
/// `links`, 0 before the launch and after it, has words for each row. Two for each sum: those of
/// tiles, then those of groups. Then the number of blocks that have read them. A word has 32 bits
/// of the sum, and a flag above them: both become visible at once, so that no block needs a fence.
///
/// x and y are [rows, n].
#[kernel(
    block = 256, max_registers = if V == 4 && PIECES != 4 { 64 } else { 80 }, grid = (x.cols().div_ceil(TILE), x.rows()), writes(y = once),
    instances(
        T = f32, INCLUSIVE = true, V = 4, GROUP = 2, PIECES = 1;
        T = f32, INCLUSIVE = true, V = 4, GROUP = 256, PIECES = 8;
        T = f64, INCLUSIVE = false, V = 1, GROUP = 2, PIECES = 4;
        T = u32, INCLUSIVE = true, V = 4, GROUP = 4, PIECES = 8
    ),
    derived(TILE = 1024 * PIECES),
)]
#[requires(
    y.rows() == x.rows(), y.cols() == x.cols(), x.aligned(V), y.aligned(V), x.cols() % V == 0,
    links.len() == x.rows() * (1 + 2 * (x.cols().div_ceil(TILE) + x.cols().div_ceil(TILE * GROUP))),
)]
pub fn scan_linked<
    T: ScanSum,
    const INCLUSIVE: bool,
    const V: usize,
    const GROUP: usize,
    const PIECES: usize,
    const TILE: usize,
>(
    x: View<T, 2>,
    links: ViewMut<u64, 1>,
    y: ViewMut<T, 2>,
) {
    const { assert!(GROUP <= 256) };
    let (row, tile) = (block::y(), block::x());
    // The sums of the warps stay in shared memory, because registers are needed.
    let (of_warps, of_others) = (Shared::<T, 1>::new([8]), Shared::<T, 1>::new([8]));
    let v = load_tile::<T, INCLUSIVE, V, PIECES>(x, row, tile * TILE, of_warps);
    let (group, in_group) = (tile / GROUP, tile % GROUP);
    let tiles = x.cols().div_ceil(TILE);
    let sums = tiles + tiles.div_ceil(GROUP);
    let links = links.offset(row * (1 + 2 * sums));
    if thread::x() == 0 {
        publish(links, tile, sum_of_warps(T::default(), of_warps, 8));
        if in_group > 0 {
            wait_for(links, (tile - 1) * T::WORDS);
        }
    }
    // If all threads polled, the words of other blocks would become visible later.
    block::sync();
    let at = tile - in_group + thread::x();
    let mut of_tile = published::<T>(links, at, thread::x() < in_group);
    let mut of_group = published::<T>(links, tiles + thread::x(), thread::x() < group);

    of_tile = poll::<T>(links, at, of_tile);
    let mut before = sum_of::<T>(of_tile);
    if block::any(!is_published(of_tile)) {
        for t in rolled(0..in_group) {
            let sum = tile_sum::<T, V, PIECES>(x, row, (tile - in_group + t) * TILE, of_others);
            if thread::x() == t {
                before = sum;
            }
        }
    }
    if in_group == GROUP - 1 {
        let of_tiles = block::reduce(before, |a, b| a + b);
        if thread::x() == 0 {
            publish(links, tiles + group, of_tiles + sum_of_warps(T::default(), of_warps, 8));
        }
    }

    let mut of_groups = T::default();
    let mut late = false;
    for other in rolled((thread::x()..group).step_by(256)) {
        let of_other = poll::<T>(links, tiles + other, of_group);
        of_groups = of_groups + sum_of::<T>(of_other);
        late = late || !is_published(of_other);
        of_group = [0; 2];
    }
    if block::any(late) {
        of_groups = T::default();
        for other in rolled(0..group) {
            let mut own = T::default();
            let mut of_last = T::default();
            for t in rolled(0..GROUP) {
                of_last = tile_sum::<T, V, PIECES>(x, row, (other * GROUP + t) * TILE, of_others);
                if thread::x() == t && t < GROUP - 1 {
                    own = of_last;
                }
            }
            let sum = block::reduce(own, |a, b| a + b) + of_last;
            if thread::x() == other % 256 {
                of_groups = of_groups + sum;
            }
        }
    }
    let start = block::reduce(before + of_groups, |a, b| a + b);
    let mut ended = 0u32;
    if thread::x() == 0 {
        ended = links.fetch_add(2 * sums, 1) as u32;
    }
    store_tile::<T, V, PIECES>(y, row, tile * TILE, sum_of_warps(start, of_warps, warp::index()), v);
    if block::broadcast(ended, 0) as usize + 1 == tiles {
        for i in block::stride(2 * sums + 1) {
            links.store_relaxed(i, 0);
        }
    }
}

/// Publishes a sum to other blocks.
#[device]
fn publish<T: ScanSum>(links: ViewMut<u64, 1>, at: usize, sum: T) {
    for word in unroll(0..T::WORDS) {
        links.exchange(at * T::WORDS + word, sum.word(word) | PUBLISHED);
    }
}

/// Waits until a word is published, at most for [`MAX_POLLS`] polls. The polls are atomic
/// operations: loads, which are faster, delay the publication.
#[device]
fn wait_for(links: ViewMut<u64, 1>, word: usize) {
    for _ in rolled(0..MAX_POLLS) {
        if links.fetch_or(word, 0) >= PUBLISHED {
            break;
        }
    }
}

/// Returns the words of a sum, published or not; those of a published 0 unless `exists`.
#[device]
fn published<T: ScanSum>(links: ViewMut<u64, 1>, at: usize, exists: bool) -> [u64; 2] {
    let mut words = [PUBLISHED; 2];
    if exists {
        for word in unroll(0..T::WORDS) {
            words[word] = links.load_relaxed(at * T::WORDS + word);
        }
    }
    words
}

/// Returns whether both words are published.
#[device]
fn is_published(words: [u64; 2]) -> bool {
    words[0] >= PUBLISHED && words[1] >= PUBLISHED
}

/// Reads the words of a sum again until it is published, at most [`MAX_POLLS`] times.
#[device]
fn poll<T: ScanSum>(links: ViewMut<u64, 1>, at: usize, words: [u64; 2]) -> [u64; 2] {
    let mut words = words;
    for _ in rolled(0..MAX_POLLS) {
        if is_published(words) {
            break;
        }
        words = published::<T>(links, at, true);
    }
    words
}

/// Returns the sum with these words.
#[device]
fn sum_of<T: ScanSum>(words: [u64; 2]) -> T {
    T::of_words(words[0] as u32, words[1] as u32)
}
