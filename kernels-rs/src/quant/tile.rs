//! A block's tile of a product of bytes, from global memory to sums in registers, for
//! [`igemm`](super::igemm::igemm).
//!
//! The tile is that of [`gemm`](mod@crate::gemm) with four numbers a word. `dp4a` adds four
//! products of bytes to a sum of 32 bits: one product of floats along K corresponds to four of
//! bytes. A tile of 128 × 128 × 8 words has 128 × 128 × 32 bytes, with the same registers, shared
//! memory and instructions, and four times the products.
//!
//! ```text
//!   A [M, K] or B [N, K]: k along the rows            A [K, M] or B [K, N]: k down the columns
//!   ┌──────────── K ────────────┐                     ┌──── N ────┐
//!   │ 16 bytes: 4 words of k ▒▒▒│ a row               │ 4 bytes ▒ │ k      ┌ byte 0 of each: word of column 0
//!   └───────────────────────────┘                     │ 4 bytes ▒ │ k + 1  │ byte 1 of each: word of column 1
//!     a load; the words go down a                     │ 4 bytes ▒ │ k + 2  │ byte 2 …
//!     column of shared memory                         │ 4 bytes ▒ │ k + 3  └ byte 3 …
//!                                                     └───────────┘
//!                                                       four loads; the bytes change places in registers, and four
//!                                                       words go to shared memory at once
//! ```
//!
//! In both cases shared memory holds `[8, 128]` words, with k as the row. Fragments, banks and
//! edges are those of `gemm`. Bytes beyond K are zeros.

use kernel_dsl::prelude::*;

/// Bytes of K in a tile.
#[device]
pub const DEPTH: usize = 32;

/// Words of K in a tile.
#[device]
const WORDS: usize = 8;

/// Loads 16 bytes of a row from byte `k` on, as words, with zeros from `depth` on. The load is one
/// access if `V` is 16, and four if `V` is 4.
#[device]
fn row_words<const V: usize>(g: View<i8, 2>, row: usize, k: usize, depth: usize) -> [[i8; 4]; 4] {
    let mut out = [[0i8; 4]; 4];
    if V == 16 {
        if k < depth {
            let x: [i8; 16] = g.load((row, k));
            for i in unroll(0..4) {
                for j in unroll(0..4) {
                    out[i][j] = x[4 * i + j];
                }
            }
        }
    } else {
        for i in unroll(0..4) {
            if V == 4 {
                if k + 4 * i < depth {
                    out[i] = g.load((row, k + 4 * i));
                }
            } else {
                for j in unroll(0..4) {
                    if k + 4 * i + j < depth {
                        out[i][j] = g[(row, k + 4 * i + j)];
                    }
                }
            }
        }
    }
    out
}

/// Loads four bytes of each of the rows k to k + 3 from column `at` on, with zeros from row `depth`
/// on.
#[device]
fn column_words<const V: usize>(g: View<i8, 2>, k: usize, at: usize, depth: usize) -> [[i8; 4]; 4] {
    let mut out = [[0i8; 4]; 4];
    for i in unroll(0..4) {
        if k + i < depth {
            if V == 1 {
                for j in unroll(0..4) {
                    if at + j < g.cols() {
                        out[i][j] = g[(k + i, at + j)];
                    }
                }
            } else {
                out[i] = g.load((k + i, at.min(g.cols() - 4)));
            }
        }
    }
    out
}

/// Transposes 4 × 4 bytes, from words of rows to words of columns, by eight permutations.
#[device]
fn transposed(rows: [[i8; 4]; 4]) -> [i32; 4] {
    let [a, b, c, d] = rows.map(|r| int::word(r) as u32);
    // Bytes 0 and 1 of two rows side by side, and bytes 2 and 3.
    let (ab, cd) = (int::byte_perm(a, b, 0x5140), int::byte_perm(c, d, 0x5140));
    let (high_ab, high_cd) = (int::byte_perm(a, b, 0x7362), int::byte_perm(c, d, 0x7362));
    [
        int::byte_perm(ab, cd, 0x5410) as i32,
        int::byte_perm(ab, cd, 0x7632) as i32,
        int::byte_perm(high_ab, high_cd, 0x5410) as i32,
        int::byte_perm(high_ab, high_cd, 0x7632) as i32,
    ]
}

/// Loads a thread's share of an operand's tile from global memory to registers, in the order of
/// memory. The tile has `width` rows or columns, with the first `left` of `DEPTH` products.
#[device]
fn fetch<const N: usize, const V: usize>(
    g: View<i8, 2>,
    k_major: bool,
    width: usize,
    left: usize,
) -> [[[i8; 4]; 4]; N] {
    let mut out = [[[0i8; 4]; 4]; N];
    if k_major {
        for (s, [w, quad]) in unroll(block::share([width, WORDS / 4]).enumerate()) {
            out[s] = row_words::<V>(g, w.min(g.rows() - 1), quad * 16, left);
        }
    } else {
        for (s, [k, quad]) in unroll(block::share([WORDS, width / 4]).enumerate()) {
            out[s] = column_words::<V>(g, 4 * k, quad * 4, left);
        }
    }
    out
}

/// Stores a thread's share of an operand's tile to shared memory, as words along K.
#[device]
fn put<const N: usize>(mut to: Shared<[i8; 4], 2>, k_major: bool, width: usize, from: &[[[i8; 4]; 4]; N]) {
    if k_major {
        for (s, [w, quad]) in unroll(block::share([width, WORDS / 4]).enumerate()) {
            for i in unroll(0..4) {
                to[(quad * 4 + i, w)] = from[s][i];
            }
        }
    } else {
        for (s, [k, quad]) in unroll(block::share([WORDS, width / 4]).enumerate()) {
            to.cast::<i32>().store((k, quad * 4), transposed(from[s]));
        }
    }
}

/// Computes acc += a·bᵀ column by column, in alternating directions. An operand that two neighbors
/// share therefore stays in the register cache of the multipliers. In the order of `gemm`, row by
/// row, ptxas places operands of a transposed B in one register bank: 40 % of the `dp4a` wait.
#[device]
fn outer<const QM: usize, const QN: usize>(
    acc: &mut [[[[i32; 4]; 4]; QN]; QM],
    a: &[[i32; 4]; QM],
    b: &[[i32; 4]; QN],
) {
    for j in unroll(0..4 * QN) {
        for x in unroll(0..4 * QM) {
            let i = if j % 2 == 0 { x } else { 4 * QM - 1 - x };
            let sum = acc[i / 4][j / 4][i % 4][j % 4];
            acc[i / 4][j / 4][i % 4][j % 4] = dp4a(a[i / 4][i % 4], b[j / 4][j % 4], sum);
        }
    }
}

/// Returns the matrix without its first `k` bytes along the axis of the products.
#[device]
fn skip_products(g: View<i8, 2>, k_major: bool, k: usize) -> View<i8, 2> {
    if k_major { g.offset((0, k)) } else { g.offset((k, 0)) }
}

/// Computes A·B for one block. `a` begins at the tile's first row, `b` at its first column, and
/// both at the first of `depth` products. Sums wrap.
#[device]
pub fn product<
    const BM: usize,
    const BN: usize,
    const QM: usize,
    const QN: usize,
    const V: usize,
    const TA: bool,
    const TB: bool,
    const LA: usize,
    const LB: usize,
>(
    a: View<i8, 2>,
    b: View<i8, 2>,
    depth: usize,
    row: usize,
    col: usize,
) -> [[[[i32; 4]; 4]; QN]; QM] {
    let sa = Shared::<[i8; 4], 3>::with_pitch([2, WORDS, BM], if TA { BM } else { BM + 4 });
    let sb = Shared::<[i8; 4], 3>::with_pitch([2, WORDS, BN], if TB { BN + 4 } else { BN });
    let (wa, wb) = (sa.cast::<i32>(), sb.cast::<i32>());

    let mut acc = [[[[0i32; 4]; 4]; QN]; QM];
    let (mut fa, mut fb) = ([[[0i32; 4]; QM]; 2], [[[0i32; 4]; QN]; 2]);

    // The partial tile first: its size is the pointers' first increment.
    let mut tiles = depth.div_ceil(DEPTH).max(1);
    let short = depth - (tiles - 1) * DEPTH;
    put::<LA>(sa.at(0), !TA, BM, &fetch::<LA, V>(a, !TA, BM, short));
    put::<LB>(sb.at(0), TB, BN, &fetch::<LB, V>(b, TB, BN, short));
    let (mut ag, mut bg) = (skip_products(a, !TA, short), skip_products(b, TB, short));
    block::sync();
    read(&mut fa[0], &mut fb[0], wa.at(0), wb.at(0), 0, row, col);

    'tiles: loop {
        for buf in unroll(0..2) {
            let more = tiles > 1;
            let (mut na, mut nb) = ([[[0i8; 4]; 4]; LA], [[[0i8; 4]; 4]; LB]);
            if more {
                na = fetch::<LA, V>(ag, !TA, BM, DEPTH);
                nb = fetch::<LB, V>(bg, TB, BN, DEPTH);
                (ag, bg) = (skip_products(ag, !TA, DEPTH), skip_products(bg, TB, DEPTH));
            }
            let (of_a, of_b) = (wa.at(buf), wb.at(buf));
            for k in unroll(0..WORDS - 2) {
                read(&mut fa[(k + 1) % 2], &mut fb[(k + 1) % 2], of_a, of_b, k + 1, row, col);
                outer(&mut acc, &fa[k % 2], &fb[k % 2]);
            }
            if more {
                put::<LA>(sa.at(1 - buf), !TA, BM, &na);
                put::<LB>(sb.at(1 - buf), TB, BN, &nb);
            }
            read(&mut fa[1], &mut fb[1], of_a, of_b, WORDS - 1, row, col);
            outer(&mut acc, &fa[0], &fb[0]);
            if !more {
                break 'tiles;
            }
            block::sync();
            read(&mut fa[0], &mut fb[0], wa.at(1 - buf), wb.at(1 - buf), 0, row, col);
            outer(&mut acc, &fa[1], &fb[1]);
            tiles -= 1;
        }
    }
    outer(&mut acc, &fa[1], &fb[1]);
    acc
}

/// Loads the fragments of product k of a tile.
#[device]
fn read<const QM: usize, const QN: usize>(
    fa: &mut [[i32; 4]; QM],
    fb: &mut [[i32; 4]; QN],
    sa: Shared<i32, 2>,
    sb: Shared<i32, 2>,
    k: usize,
    row: usize,
    col: usize,
) {
    for p in unroll(0..QM) {
        fa[p] = sa.load((k, row + 16 * p));
    }
    for q in unroll(0..QN) {
        fb[q] = sb.load((k, col + 32 * q));
    }
}
