//! Cases of the example `q8_gemm`.

use super::trial::{Trial, apart, trials, whole};
use crate::examples::q8_gemm::{Q8Block, q8_gemm, q8_quantize, q8_repack};
use kernel_dsl::prelude::*;
use runtime::testing::{Bound, Expected, Input};

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
