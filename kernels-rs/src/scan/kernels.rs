//! The kernels of prefix sums.

use super::items::*;
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

/// A tile of a row in the registers of a block, with sums for each thread.
#[device]
#[derive(Clone, Copy)]
struct Tile<T: Number, const PIECES: usize> {
    /// The prefix sums of the thread's elements within its warp.
    v: [[T; 4]; PIECES],
    /// The start plus the sum of the warps before.
    base: T,
    /// The start plus the sum of the tile.
    all: T,
}

/// Loads the tile of a row that begins at element `tile`, and computes the sums. A barrier must
/// follow the last use of `sums` before the call. There is one barrier.
#[device]
fn load_tile<T: Number, const INCLUSIVE: bool, const V: usize, const PIECES: usize>(
    x: View<T, 2>,
    row: usize,
    tile: usize,
    start: T,
    mut sums: Shared<T, 1>,
) -> Tile<T, PIECES> {
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
    let (mut base, mut all) = (start, start);
    for w in unroll(0..8) {
        let sum = sums[w];
        if w < warp::index() {
            base = base + sum;
        }
        all = all + sum;
    }
    Tile { v, base, all }
}

/// Returns the index of the thread's first element in the tile that begins at `tile`.
#[device]
fn first<const PIECES: usize>(tile: usize) -> usize {
    tile + (warp::index() * PIECES * 32 + warp::lane()) * 4
}

/// Stores the prefix sums of a tile, each increased by `start`.
#[device]
fn store_tile<T: Number, const V: usize, const PIECES: usize>(
    mut y: ViewMut<T, 2>,
    row: usize,
    tile: usize,
    start: T,
    held: Tile<T, PIECES>,
) {
    let start = start + held.base;
    for i in unroll(0..PIECES) {
        let out = held.v[i].map(|sum| start + sum);
        let at = first::<PIECES>(tile) + i * 128;
        if V == 4 {
            if at < y.cols() {
                y.store((row, at), out);
            }
        } else {
            for e in unroll(0..4) {
                if at + e < y.cols() {
                    y[(row, at + e)] = out[e];
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
        let held = load_tile::<T, INCLUSIVE, V, 4>(x, row, tile, carry, sums.at(buffer));
        // The next tile's sums use another buffer, so that one barrier is enough.
        buffer = 1 - buffer;
        carry = held.all;
        store_tile::<T, V, 4>(y, row, tile, T::default(), held);
    }
}

/// Computes y ← the prefix sums of each row in one pass, as [`scan_rows`] does, with a block for
/// each tile.
///
/// Blocks take tiles in order. A block publishes the sum of its tile, and the last block of a group
/// of `GROUP` tiles also the group's sum. Each block adds the sums of earlier tiles in its group,
/// and those of earlier groups. A tile's sum is published before its block waits, and a group's sum
/// before its last block waits for other groups. Therefore waits do not form a chain.
///
/// `links`, 0 before the launch, begins with the number of blocks that have a tile. Two words for
/// each sum follow, by rows: those of tiles, then those of groups. A word has 32 bits of the sum,
/// and a flag above them: both become visible at once, so that no block needs a fence.
///
/// x and y are [rows, n].
#[kernel(
    block = 256, max_registers = if V == 4 && PIECES != 4 { 64 } else { 80 }, grid = x.rows() * x.cols().div_ceil(TILE), writes(y = once),
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
    links.len() == 1 + 2 * x.rows() * (x.cols().div_ceil(TILE) + x.cols().div_ceil(TILE * GROUP)),
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
    let mut taken = Shared::<u32, 1>::new([1]);
    if thread::x() == 0 {
        taken[0] = links.fetch_add(0, 1) as u32;
    }
    block::sync();
    let id = taken[0] as usize;
    let tiles = x.cols().div_ceil(TILE);
    let (row, tile) = (id / tiles, id % tiles);
    let (group, in_group) = (tile / GROUP, tile % GROUP);
    let groups = tiles.div_ceil(GROUP);
    let links = links.offset(1 + 2 * row * (tiles + groups));
    let held = load_tile::<T, INCLUSIVE, V, PIECES>(x, row, tile * TILE, T::default(), Shared::<T, 1>::new([8]));
    if thread::x() == 0 {
        publish(links, tile, held.all);
    }
    let mut before = T::default();
    if thread::x() < in_group {
        before = published(links, tile - in_group + thread::x());
    }
    let of_tiles = block::reduce(before, |a, b| a + b);
    if thread::x() == 0 && in_group == GROUP - 1 {
        publish(links, tiles + group, of_tiles + held.all);
    }
    let mut before = T::default();
    for other in (thread::x()..group).step_by(256) {
        before = before + published::<T>(links, tiles + other);
    }
    let start = block::reduce(before, |a, b| a + b) + of_tiles;
    store_tile::<T, V, PIECES>(y, row, tile * TILE, start, held);
}

/// The flag of a word: whether its sum is published.
#[device]
const PUBLISHED: u64 = 1 << 32;

/// Publishes a sum to other blocks.
#[device]
fn publish<T: ScanSum>(links: ViewMut<u64, 1>, at: usize, sum: T) {
    for word in unroll(0..T::WORDS) {
        links.exchange(at * T::WORDS + word, sum.word(word) | PUBLISHED);
    }
}

/// Waits for a published sum.
#[device]
fn published<T: ScanSum>(links: ViewMut<u64, 1>, at: usize) -> T {
    let mut words = [0u64; 2];
    for word in unroll(0..T::WORDS) {
        while words[word] < PUBLISHED {
            words[word] = links.fetch_or(at * T::WORDS + word, 0);
        }
    }
    T::of_words(words[0] as u32, words[1] as u32)
}
