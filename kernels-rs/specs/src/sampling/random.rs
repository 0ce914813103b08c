//! Random numbers of the kernels: a reference, and the streams of the cases.

use crate::{TINY, U};
use kernels_rs::sampling::random::RandomStream;
use runtime::testing::{Input, Random};
use std::ops::Range;

/// The minimum distance of a draw from another result, so that roundings do not decide it.
pub(super) const MARGIN: f64 = 1e-4;

/// Computes Philox 4x32-10 with 64-bit products.
fn philox(mut c: [u32; 4], mut k: [u32; 2]) -> [u32; 4] {
    for _ in 0..10 {
        let (a, b) = (u64::from(c[0]) * 0xD251_1F53, u64::from(c[2]) * 0xCD9E_8D57);
        c = [(b >> 32) as u32 ^ c[1] ^ k[0], b as u32, (a >> 32) as u32 ^ c[3] ^ k[1], a as u32];
        k = [k[0].wrapping_add(0x9E37_79B9), k[1].wrapping_add(0xBB67_AE85)];
    }
    c
}

/// Returns the midpoint of one of 2⁵⁵ steps from 0 to 1, times 1 − 2⁻²⁴, with `high` and the result
/// rounded to 24 bits.
pub(super) fn uniform(high: u32, low: u32) -> f64 {
    let step = 2f64.powi(-32) - 2f64.powi(-56);
    let fraction = (f64::from(low & 0x7f_ffff) + 0.5) / 2f64.powi(55);
    f64::from((f64::from(high as f32) * step + fraction) as f32)
}

/// Returns the stream in a case's inputs: seed and offset, from `first` on.
pub(crate) fn stream(inputs: &[Input], first: usize) -> [u32; 4] {
    [0, 1, 2, 3].map(|i| inputs[first + i].value() as u32)
}

/// Returns the four words of a row's stream at an index.
pub(crate) fn words([seed0, seed1, offset0, offset1]: [u32; 4], row: usize, index: u32) -> [u32; 4] {
    philox([index, row as u32, offset0, offset1], [seed0, seed1])
}

/// Returns a stream whose words are random odd numbers.
pub(crate) fn random_stream(random: &mut Random) -> RandomStream {
    let mut word = || random.below(1 << 31) as u32 * 2 + 1;
    RandomStream { seed: [word(), word()], offset: [word(), word()] }
}

/// Returns a stream whose draw for each row is in that row's stretch.
pub(super) fn stream_for_stretches(random: &mut Random, stretches: &[Range<f64>]) -> RandomStream {
    loop {
        let stream = random_stream(random);
        let [[a, b], [c, d]] = [stream.seed, stream.offset];
        let aim = |row| {
            let words = words([a, b, c, d], row, u32::MAX);
            uniform(words[0], words[1])
        };
        if stretches.iter().enumerate().all(|(row, stretch)| stretch.contains(&aim(row))) {
            return stream;
        }
    }
}

/// Returns the beginning of the stream of a seed.
pub(super) fn of_seed(seed: u32) -> RandomStream {
    RandomStream { seed: [seed, 0], offset: [0, 0] }
}

/// Returns the score of an element, x + T · noise, minus `top`, so that the sum keeps the noise.
/// Also returns its error bound: each logarithm has less than two units in the last place, and the
/// product with T is rounded.
pub(super) fn scored(noisy: bool, x: f64, top: f64, t: f64, words: [u32; 4], at: usize) -> (f64, f64) {
    let x = x - top;
    if !noisy {
        return (x, 0.0);
    }
    let u = uniform(words[at], words[(at + 1) % 4]);
    let noise = -(-(-u).ln_1p()).ln();
    // A relative error of a logarithm's argument is an absolute error of the logarithm.
    (x + t * noise, 1.001 * t * U * (4.0 + 5.0 * noise.abs()) + TINY)
}
