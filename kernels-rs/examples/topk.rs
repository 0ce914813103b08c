//! A draw of a token from the likeliest of a vocabulary: top-k, top-p and temperature in one
//! kernel.
//!
//! ```text
//! cargo run --release -p kernels-rs --example topk
//! ```
//!
//! A block of 1024 threads has one row. The block selects by radix on (value, index), 8 bits a
//! round from the top, sorts the k selected, and draws from their softmax. The result is
//! deterministic: ties are decided by the index, and atomics are used only where order does not
//! matter. The file shows block-wide scans and reductions, and shared memory that is used again.

#[path = "bitonic/network.rs"]
mod network;

use kernel_dsl::prelude::*;
use kernels_rs::sampling::best::{rank, score_of};
use network::bitonic;
use runtime::Device;
use std::error::Error;

/// Draws a token of each row from its `k` likeliest, `K` at most, by the number of `uniform` in
/// [0, 1). Tokens after those that have `top_p` of the probability are not drawn.
#[kernel(block = 1024, grid = logits.rows(), instances(K = 32 | 64 | 256 | 1024), writes(token = once))]
#[requires(logits.cols() >= K, uniform.len() == logits.rows(), token.len() == logits.rows(), temperature > 0.0, top_p > 0.0)]
pub fn sample<const K: usize>(
    logits: View<f32, 2>,
    uniform: &[f32],
    token: &mut [u32],
    k: usize,
    temperature: f32,
    top_p: f32,
) {
    let row = logits.at(block::x());
    let (t, n) = (thread::x(), row.len());
    let k = k.min(K);

    // Finds the k-th largest key, digit by digit.
    let mut found = Shared::<u32, 1>::new([3]);
    let (mut prefix, mut need) = (0u64, k as u32);
    let mut bits = 64;
    {
        let h = Shared::<u32, 1>::new([256]);
        for round in rolled(0..8) {
            let shift = 56 - 8 * round;
            if t < 256 {
                h.store(t, [0]);
            }
            block::sync();
            for i in (t..n).step_by(1024) {
                let key = rank(row[i], i);
                if bits == 64 || key >> bits == prefix {
                    h.fetch_add((key >> shift) as usize & 255, 1);
                }
            }
            block::sync();
            let v = if t < 256 { h[255 - t] } else { 0 };
            // a tuple: exclusive prefix and total
            let (before, _total) = block::scan(v, 0, |a, b| a + b);
            if before < need && need <= before + v {
                found[0] = 255 - t as u32;
                found[1] = need - before;
                found[2] = v;
            }
            block::sync();
            prefix = prefix << 8 | found[0] as u64;
            bits = shift;
            need = found[1];
            if found[2] == need {
                break;
            } // the whole digit is selected: all threads read the same words
        }
    }

    // The selected elements are sorted, so that the order of the atomics does not matter.
    let mut s = Shared::<u64, 1>::new([K]); // reuses h's bytes, since h's scope has ended
    let mut count = Shared::<u32, 1>::new([1]);
    block::sync();
    if t < K {
        s[t] = 0;
    }
    if t == 0 {
        count[0] = 0;
    }
    block::sync();
    for i in (t..n).step_by(1024) {
        let key = rank(row[i], i);
        if key >> bits >= prefix {
            s[count.fetch_add(0, 1) as usize] = key;
        }
    }
    block::sync();
    bitonic(s, |a, b| a > b);

    // Computes the softmax over the first k, cuts it at top_p, and draws.
    let mut z = Shared::<f32, 1>::new([K]);
    let top = score_of(s[0]);
    let p = if t < k { math::exp((score_of(s[t]) - top) / temperature) } else { 0.0 };
    let total = block::sum(p);
    let (before, _) = block::scan(p, 0.0, |a, b| a + b);
    let kept = before < top_p * total; // the first is always kept
    let mass = block::sum(if kept { p } else { 0.0 });
    let aim = uniform[block::x()] * mass;
    if t < K {
        z[t] = before;
    }
    block::sync();
    let hit = kept
        && t < k
        && before <= aim
        // The element is the last, or the next one begins above the target or is not kept.
        && (t + 1 == k || z[t + 1] > aim || z[t + 1] >= top_p * total);
    let who = block::reduce(if hit { t as u32 } else { u32::MAX }, |a, b| a.min(b));
    if t == 0 {
        token[block::x()] = !(s[if who == u32::MAX { 0 } else { who as usize }] as u32);
    }
}

/// Draws tokens with four random numbers from the same logits.
pub fn main() -> Result<(), Box<dyn Error>> {
    let vocabulary = 5000;
    // Three likely tokens, with probabilities of about 0.67, 0.24 and 0.09 among themselves.
    let mut row = vec![-10.0f32; vocabulary];
    (row[42], row[7], row[4999]) = (3.0, 2.0, 1.0);
    let uniform = [0.1f32, 0.5, 0.8, 0.95];

    let device = Device::best()?;
    let logits = device.upload(&row.repeat(uniform.len()))?;
    let draws = device.upload(&uniform)?;
    let mut token = device.zeros::<u32>(uniform.len())?;
    sample::<32>::launch(&device, logits.view([uniform.len(), vocabulary])?, &draws, &mut token, 3, 1.0, 1.0)?;

    let token = token.download()?;
    assert_eq!(token, [42, 42, 7, 4999]);
    uniform.iter().zip(&token).for_each(|(u, token)| println!("{u:.2} draws token {token}"));
    Ok(())
}
