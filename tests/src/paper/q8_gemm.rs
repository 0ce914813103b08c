//! (2) Y[m, n] = Σ_b dx[m, b] · dw[n, b] · Σ_{32 i} qx[m, 32 b + i] · qw[n, 32 b + i]: Q8_0
//! weights, activations quantized on the fly, dp4a.
use super::trial::{Trial, apart, trials, whole};
use kernel_dsl::prelude::*;
use runtime::testing::{Bound, Expected, Input};

/// A block of llama.cpp in its file format: 34 bytes, with an alignment of only 2.
#[device]
#[derive(Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct Q8Block {
    pub d: f16,
    pub qs: [i8; 32],
}

/// Converts an array of structs to planes whose loads are 16 bytes wide. One thread per word.
#[kernel(block = 256, grid = (w.dim(0) * w.dim(1) * 8).div_ceil(256), writes(qs = once, d = once))]
pub fn q8_repack(w: View<Q8Block, 2>, mut qs: ViewMut<[i8; 4], 2>, mut d: ViewMut<f16, 2>) {
    let i = grid::index();
    let (blocks, row) = (w.cols(), i / (8 * w.cols()));
    if row >= w.rows() {
        return;
    }
    let (b, word) = (i / 8 % blocks, i % 8);
    // a place in memory, indexed at run time: four byte loads
    let q: [i8; 4] = std::array::from_fn(|j| w[(row, b)].qs[4 * word + j]);
    qs[(row, 8 * b + word)] = q;
    if word == 0 {
        d[(row, b)] = w[(row, b)].d;
    }
}

/// Quantizes a row of f32 to int8 by blocks of 32, scale = max-abs / 127. A quarter warp has a
/// block: a group of 8 lanes with 4 elements per lane.
#[kernel(block = 256, grid = (x.rows() * x.cols() / 4).div_ceil(256), writes(qs = once, d = once))]
#[requires(x.cols() % 32 == 0, x.aligned(4), qs.cols() == x.cols() / 4, d.cols() == x.cols() / 32)]
pub fn q8_quantize(x: View<f32, 2>, mut qs: ViewMut<[i8; 4], 2>, mut d: ViewMut<f32, 2>) {
    let i = grid::index();
    let words = x.cols() / 4;
    let (row, word) = (i / words, i % words);
    let inside = row < x.rows();
    let v: [f32; 4] = if inside { x.load((row, 4 * word)) } else { [0.0; 4] };
    let big = v[0].abs().max(v[1].abs()).max(v[2].abs().max(v[3].abs()));
    let big = warp::group::<8>().max(big); // outside every `if`: all lanes are active
    let inv = 127.0 / big; // ∞ for zeros, and 0 · ∞ is NaN: 0 as an integer
    if inside {
        qs[(row, word)] = v.map(|x| (x * inv).round_ties_even() as i8);
        if word % 8 == 0 {
            d[(row, word / 8)] = big / 127.0;
        }
    }
}

#[device]
const WORDS: usize = 8; // of a block of 32

/// Computes 64 activations × 128 weights per block, with 256 threads and 8 × 4 per thread; a step
/// is one quantization block.
#[kernel(block = 256, min_blocks = 2, grid = (qw.rows().div_ceil(128), qx.rows().div_ceil(64)), writes(y = once))]
#[requires(qx.cols() == qw.cols(), qx.cols() % 8 == 0, dx.cols() == qx.cols() / 8, dw.cols() == qw.cols() / 8, qx.aligned(4), qw.aligned(4))]
pub fn q8_gemm(qx: View<[i8; 4], 2>, dx: View<f32, 2>, qw: View<[i8; 4], 2>, dw: View<f16, 2>, y: ViewMut<f32, 2>) {
    let sx = Shared::<[i8; 4], 3>::with_pitch([2, WORDS, 64], 64 + 4); // words, transposed: [k][row]
    let sw = Shared::<[i8; 4], 3>::with_pitch([2, WORDS, 128], 128 + 4);
    let (ex, ew) = (Shared::<f32, 2>::new([2, 64]), Shared::<f32, 2>::new([2, 128]));
    let (m0, n0) = (block::y() * 64, block::x() * 128);
    let t = thread::x();
    let (tm, tn) = (t / 32 * 8, t % 32 * 4); // 8 activations (broadcast in a warp) × 4 weights

    let mut acc = [[0.0f32; 4]; 8];
    // Loads of 4 words along k: x has 64 × 2 of them (the first 128 threads), w 128 × 2 (all
    // threads). Nothing is loaded beyond the last row.
    let (loads_x, scale_x, scale_w) = (t < 128, t < 64, t >= 128);
    let (xr, wr) = (m0 + t / 2, n0 + t / 2);
    let (x_there, w_there) = (loads_x && xr < qx.rows(), wr < qw.rows());
    let half = t % 2 * 4;
    let fetch = |b: usize, there: bool| -> ([[i8; 4]; 4], [[i8; 4]; 4], f32) {
        let x = if there && x_there { qx.load((xr, 8 * b + half)) } else { [[0; 4]; 4] };
        let w = if there && w_there { qw.load((wr, 8 * b + half)) } else { [[0; 4]; 4] };
        let e = if scale_x {
            dx.get((m0 + t, b)).unwrap_or(0.0)
        } else if scale_w {
            dw.get((n0 + t - 128, b)).map_or(0.0, |d| d.to_f32())
        } else {
            0.0
        };
        (x, w, e)
    };
    let put =
        |(x, w, e): ([[i8; 4]; 4], [[i8; 4]; 4], f32), buf: usize, mut ex: Shared<f32, 2>, mut ew: Shared<f32, 2>| {
            for i in unroll(0..4) {
                if loads_x {
                    sx.store((buf, half + i, t / 2), [x[i]]);
                }
                sw.store((buf, half + i, t / 2), [w[i]]);
            }
            if scale_x {
                ex[(buf, t)] = e
            } else if scale_w {
                ew[(buf, t - 128)] = e
            }
        };

    let blocks = qx.cols() / 8;
    put(fetch(0, blocks > 0), 0, ex, ew);
    block::sync();
    let mut buf = 0;
    for b in rolled(0..blocks) {
        // after the last block nothing is loaded, and the stored values are not read
        let next = fetch(b + 1, b + 1 < blocks);
        // the bits of 1.5·2²³: the sum is a float of that binade, so that no I2F is needed
        let mut dot = [[0x4B40_0000i32; 4]; 8];
        for k in unroll(0..WORDS) {
            let (lo, hi): ([[i8; 4]; 4], [[i8; 4]; 4]) = (sx.load((buf, k, tm)), sx.load((buf, k, tm + 4)));
            let w: [[i8; 4]; 4] = sw.load((buf, k, tn));
            for i in unroll(0..4) {
                for j in unroll(0..4) {
                    dot[i][j] = dp4a(lo[i], w[j], dot[i][j]);
                    dot[i + 4][j] = dp4a(hi[i], w[j], dot[i + 4][j]);
                }
            }
        }
        let e: [f32; 4] = ew.load((buf, tn));
        for i in unroll(0..8) {
            let s = ex[(buf, tm + i)];
            for j in unroll(0..4) {
                let d = f32::from_bits(dot[i][j] as u32) - 12_582_912.0;
                acc[i][j] = (s * e[j]).mul_add(d, acc[i][j]);
            }
        }
        put(next, buf ^ 1, ex, ew);
        block::sync();
        buf ^= 1;
    }
    for i in unroll(0..8) {
        y.store_in((m0 + tm + i, n0 + tn), acc[i]);
    }
}

/// Activations × weights of the product, and their common depth.
const SIZES: [usize; 3] = [70, 130, 96];

fn weights([_, n, k]: [usize; 3]) -> Vec<Q8Block> {
    let scale = |b: usize| 0.25 + (b % 7) as f32 * 0.125;
    let quantum = |b: usize, i: usize| ((b * 31 + i * 17) % 255) as u8 as i8;
    let block = |b| Q8Block { d: f16::from_f32(scale(b)), qs: std::array::from_fn(|i| quantum(b, i)) };
    (0..n * k / 32).map(block).collect()
}

/// Returns the weights as planes.
fn planes(weights: &[Q8Block]) -> (Vec<[i8; 4]>, Vec<f16>) {
    let words = weights.iter().flat_map(|w| w.qs.chunks(4).map(|q| [q[0], q[1], q[2], q[3]])).collect();
    (words, weights.iter().map(|w| w.d).collect())
}

/// Returns the activations as words, with the scale of each block.
fn quantized(x: &[f32]) -> (Vec<[i8; 4]>, Vec<f32>) {
    let (mut words, mut scales) = (Vec::new(), Vec::new());
    for block in x.chunks(32) {
        let big = block.iter().fold(0.0f32, |big, x| big.max(x.abs()));
        let inverse = if big > 0.0 { 127.0 / big } else { 0.0 };
        words.extend(block.chunks(4).map(|w| {
            let q: [i8; 4] = std::array::from_fn(|i| (w[i] * inverse).round_ties_even() as i8);
            q
        }));
        scales.push(big / 127.0);
    }
    (words, scales)
}

fn flat(words: &[[i8; 4]]) -> Vec<f64> {
    words.iter().flatten().map(|q| f64::from(*q)).collect()
}

trials!(q8_repack, |_| {
    let ([_, n, k], weights) = (SIZES, weights(SIZES));
    let (words, scales) = planes(&weights);
    let inputs = [
        Input::view(&weights, [n, k / 32]),
        Input::view(&vec![[0i8; 4]; n * k / 4], [n, k / 4]),
        Input::view(&vec![f16::ZERO; n * k / 32], [n, k / 32]),
    ];
    let expected = [
        Expected::new(1, flat(&words), Bound::Exact),
        Expected::new(2, scales.iter().map(|d| d.to_f64()).collect(), Bound::Exact),
    ];
    vec![Trial::new(format!("{n} x {k}"), inputs, expected)]
});

trials!(q8_quantize, |_| {
    let [m, k] = [20, 384];
    // Blocks of zeros, and of small values only.
    let factor = |block: usize| [1.0, 1.0, 0.0, 1.0 / 64.0][block % 4];
    let x: Vec<f32> = whole(m * k, 5).iter().enumerate().map(|(i, x)| x * factor(i / 32)).collect();
    let (words, scales) = quantized(&x);
    let inputs = [
        Input::view(&x, [m, k]),
        Input::view(&vec![[0i8; 4]; m * k / 4], [m, k / 4]),
        Input::view(&vec![1f32; m * k / 32], [m, k / 32]),
    ];
    let expected = [
        Expected::new(1, flat(&words), Bound::Exact),
        Expected::new(2, scales.iter().map(|d| f64::from(*d)).collect(), Bound::Exact),
    ];
    vec![Trial::new(format!("{m} x {k}"), inputs, expected)]
});

trials!(q8_gemm, |_| {
    // Edges of tiles on both sides; seven blocks; strided rows.
    vec![
        q8_product(SIZES, 0),
        q8_product([3, 5, 224], 4),
        q8_product([64, 128, 32], 0),
        q8_product([65, 129, 64], 4),
        q8_product([63, 127, 32], 4),
        // No blocks, which gives zeros.
        q8_product([5, 7, 0], 0),
    ]
});

fn q8_product([m, n, k]: [usize; 3], gap: usize) -> Trial {
    let weights = weights([m, n, k]);
    let ((x, dx), (words, scales)) = (quantized(&whole(m * k, 5)), planes(&weights));
    let mut y = vec![0f32; m * n];
    for (i, out) in y.iter_mut().enumerate() {
        let (r, c) = (i / n, i % n);
        for b in 0..k / 32 {
            let of =
                |e: usize| i32::from(x[r * k / 4 + b * 8 + e / 4][e % 4]) * i32::from(weights[c * k / 32 + b].qs[e]);
            let s = dx[r * k / 32 + b] * weights[c * k / 32 + b].d.to_f32();
            *out = s.mul_add((0..32).map(of).sum::<i32>() as f32, *out);
        }
    }
    let inputs = [
        apart(&x, [m, k / 4], gap, [99; 4]),
        apart(&dx, [m, k / 32], gap, f32::NAN),
        apart(&words, [n, k / 4], gap, [99; 4]),
        apart(&scales, [n, k / 32], gap, f16::NAN),
        apart(&vec![0f32; m * n], [m, n], gap, f32::NAN),
    ];
    let expected = [Expected::new(4, y.iter().map(|y| f64::from(*y)).collect(), Bound::Exact)];
    Trial::new(format!("{m} x {n} x {k}"), inputs, expected)
}
