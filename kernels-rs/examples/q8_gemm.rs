//! A product with weights of llama.cpp's format Q8_0, by `dp4a`: bytes times bytes, with a scale
//! for each block of 32.
//!
//! ```text
//! cargo run --release -p kernels-rs --example q8_gemm
//! ```
//!
//! Y[m, n] = Σ_b dx[m, b] · dw[n, b] · Σ_i qx[m, 32 b + i] · qw[n, 32 b + i]. Three kernels: one
//! converts the weights of a file to planes with 16-byte loads, one quantizes the activations, and
//! one multiplies. The file shows structs in buffers, byte vectors, groups of lanes, and the
//! conversion of integers to floats by their bits.

use kernel_dsl::prelude::*;
use runtime::Device;
use runtime::testing::Random;
use std::error::Error;

/// A block of llama.cpp in its file format: 34 bytes, with an alignment of only 2.
#[device]
#[derive(Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct Q8Block {
    /// The scale of the block.
    pub d: f16,
    /// The quantized values.
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
    // the block is in memory, and is indexed at run time: four byte loads
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

/// Multiplies random activations by random weights, and compares the product with the one before
/// quantization.
pub fn main() -> Result<(), Box<dyn Error>> {
    let [m, n, k] = [20, 70, 96];
    let mut random = Random::new(1);
    let x: Vec<f32> = random.values(m * k);
    let w: Vec<f32> = random.values(n * k);
    // The largest magnitude of a block becomes ±127, as in llama.cpp.
    let block = |w: &[f32]| {
        let d = f16::from_f32(w.iter().fold(0.0f32, |most, w| most.max(w.abs())) / 127.0);
        Q8Block { d, qs: std::array::from_fn(|i| (w[i] / d.to_f32()).round_ties_even() as i8) }
    };
    let blocks: Vec<Q8Block> = w.chunks(32).map(block).collect();

    let device = Device::best()?;
    let (blocks, on_x) = (device.upload(&blocks)?, device.upload(&x)?);
    let (mut qw, mut dw) = (device.zeros::<[i8; 4]>(n * k / 4)?, device.zeros::<f16>(n * k / 32)?);
    q8_repack::launch(&device, blocks.view([n, k / 32])?, qw.view_mut([n, k / 4])?, dw.view_mut([n, k / 32])?)?;
    let (mut qx, mut dx) = (device.zeros::<[i8; 4]>(m * k / 4)?, device.zeros::<f32>(m * k / 32)?);
    q8_quantize::launch(&device, on_x.view([m, k])?, qx.view_mut([m, k / 4])?, dx.view_mut([m, k / 32])?)?;
    let mut y = device.zeros::<f32>(m * n)?;
    q8_gemm::launch(
        &device,
        qx.view([m, k / 4])?,
        dx.view([m, k / 32])?,
        qw.view([n, k / 4])?,
        dw.view([n, k / 32])?,
        y.view_mut([m, n])?,
    )?;

    let y = y.download()?;
    let exact = |i: usize| (0..k).map(|e| x[i / n * k + e] * w[i % n * k + e]).sum::<f32>();
    let worst = (0..m * n).map(|i| (y[i] - exact(i)).abs()).fold(0.0, f32::max);
    // Each of the k products of numbers up to 1 is off by at most 1/127 of the largest.
    assert!(worst < k as f32 / 127.0, "the product is off by {worst}");
    println!("{m} x {n} x {k} in 8 bits: at most {worst:.4} from the product in f32");
    println!("the first: {:.3?}, in f32 {:.3?}", &y[..4], (0..4).map(exact).collect::<Vec<_>>());
    Ok(())
}
