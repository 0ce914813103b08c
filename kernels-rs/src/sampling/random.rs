//! Counter-based random numbers: Philox 4x32-10 (Salmon, Moraes, Dror, Shaw, *Parallel random
//! numbers: as easy as 1, 2, 3*, 2011).

use kernel_dsl::prelude::*;

/// Returns four random words for a counter and a key.
#[device]
pub fn philox(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    let (mut c, mut k) = (counter, key);
    for _round in unroll(0..10) {
        let (high0, low0) = (int::mul_hi(c[0], 0xD251_1F53u32), c[0].wrapping_mul(0xD251_1F53));
        let (high1, low1) = (int::mul_hi(c[2], 0xCD9E_8D57u32), c[2].wrapping_mul(0xCD9E_8D57));
        c = [high1 ^ c[1] ^ k[0], low1, high0 ^ c[3] ^ k[1], low0];
        k = [k[0].wrapping_add(0x9E37_79B9), k[1].wrapping_add(0xBB67_AE85)];
    }
    c
}

/// The identity of a draw: 64 bits each, low word first.
#[device]
#[derive(Clone, Copy, Debug, DeviceCopy)]
pub struct RandomStream {
    /// The number of the sequence.
    pub seed: [u32; 2],
    /// The number of the draw in the sequence.
    pub offset: [u32; 2],
}

/// Returns the four random words number `index` for `row`.
#[device]
pub fn words(stream: RandomStream, row: usize, index: u32) -> [u32; 4] {
    philox([index, row as u32, stream.offset[0], stream.offset[1]], stream.seed)
}

/// 2⁻³² − 2⁻⁵⁶, the `f32` below 2⁻³².
#[device]
const STEP: f32 = 2.328_306_3e-10;

/// Returns a uniform number of 55 random bits: `high`, and below it the last 23 bits of `low`.
///
/// The minimum is 2⁻⁵⁶ and the maximum 1 − 2⁻²⁴. Numbers near 0 have 24 significant bits down to
/// 2⁻³². Therefore an event of probability p < ½ should be tested as result < p: its probability is
/// p·(1 ± 2⁻²⁴) + 2⁻⁵⁵.
#[device]
pub fn uniform(high: u32, low: u32) -> f32 {
    // In [1, 2).
    let fraction = f32::from_bits(low & 0x7f_ffff | 0x3f80_0000);
    // The inner sum is exact: 2⁻⁵⁶ times an odd number below 2²⁴.
    (high as f32).mul_add(STEP, fraction.mul_add(TWO_TO_MINUS_32, -STEP))
}

/// 2⁻³².
#[device]
const TWO_TO_MINUS_32: f32 = 2.328_306_4e-10;

/// Returns a Gumbel variate, −ln(−ln(1 − u)), where u is the [`uniform`] number of both words: from
/// −2.82 to 38.9.
///
/// The variate is large where u is near 0, where u has the most bits: 1 − u instead of u keeps the
/// tail accurate.
#[device]
pub fn gumbel(high: u32, low: u32) -> f32 {
    -ln_of_normal(-math::ln_1p(-uniform(high, low)))
}

/// Returns the natural logarithm of a positive normal number, to 0.934 ulp.
///
/// Omits the special cases of [`math::ln`], which would be a tenth of the time of a draw.
#[device]
fn ln_of_normal(x: f32) -> f32 {
    // x = (1 + z)·2ⁿ with 1 + z from 2/3 to 4/3; the polynomial is that of `math::ln`.
    let exponent = x.to_bits().wrapping_sub(0x3F2A_AAAB) & 0xFF80_0000;
    let z = f32::from_bits(x.to_bits().wrapping_sub(exponent)) - 1.0;
    let q = -0.128_745_15_f32;
    let q = q.mul_add(z, 0.139_865_18);
    let q = q.mul_add(z, -0.121_883_41);
    let q = q.mul_add(z, 0.140_053_75);
    let q = q.mul_add(z, -0.166_801_81);
    let q = q.mul_add(z, 0.200_104_43);
    let q = q.mul_add(z, -0.249_998_05);
    let q = q.mul_add(z, 0.333_332_15);
    let near_one = q.mul_add(z, -0.5).mul_add(z * z, z);
    // The exponent is n·2²³.
    (exponent as i32 as f32).mul_add(8.262_958_3e-8, near_one)
}

#[cfg(test)]
mod tests {
    use super::{RandomStream, gumbel, ln_of_normal, philox, uniform, words};

    /// Compares with the known answers of Random123, file kat_vectors.
    #[test]
    fn philox_gives_the_known_answers() {
        let ones = u32::MAX;
        assert_eq!(philox([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(philox([ones; 4], [ones; 2]), [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
        let pi = [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344];
        assert_eq!(philox(pi, [0xa409_3822, 0x299f_31d0]), [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]);
    }

    #[test]
    fn uniform_numbers_lie_between_0_and_1() {
        assert_eq!(uniform(0, 0), 2f32.powi(-56));
        assert_eq!(uniform(0, u32::MAX), 2f32.powi(-32).next_down());
        assert_eq!(uniform(u32::MAX, u32::MAX), 1f32.next_down());
        assert_eq!(uniform(u32::MAX, 0), 1f32.next_down());
        // Exact in `f64`; once rounded to 32 bits, and once with the fraction.
        for (high, low) in [(1u32, 5u32), (77, 1 << 22), (1 << 20, 3), (0x7fff_ffff, 0), (0xdead_beef, 0x1234_5678)] {
            let exact = (f64::from(high) + (f64::from(low & 0x7f_ffff) + 0.5) / 2f64.powi(23)) / 2f64.powi(32);
            let off = (f64::from(uniform(high, low)) / exact - 1.0).abs();
            assert!(off < 2f64.powi(-22), "{high} {low}: {off}");
        }
        assert!(gumbel(u32::MAX, u32::MAX) > -2.82 && gumbel(0, 0) < 38.9);
    }

    #[test]
    fn logarithms_of_normal_numbers_equal_math_ln() {
        let bits = (f32::MIN_POSITIVE.to_bits()..f32::INFINITY.to_bits()).step_by(9973);
        for x in bits.map(f32::from_bits).chain([1.0, 1f32.next_down(), 2f32.powi(-56), 16.7]) {
            let (own, exact) = (f64::from(ln_of_normal(x)), f64::from(x).ln());
            assert!((own - exact).abs() <= 2f64.powi(-23) * exact.abs(), "{x:e}: {own}, not {exact}");
        }
    }

    /// Tests the numbers of a stream with a fixed seed: in 64 equal bins, and in bins that halve
    /// down to 2⁻²⁰. Pearson's statistic with 63 degrees of freedom exceeds 120 for one in 60,000
    /// seeds, and that with 19 exceeds 60 for one in 250,000.
    #[test]
    fn uniform_numbers_are_uniform_down_to_the_tail() {
        const DRAWS: u32 = 1 << 20;
        let (mut equal, mut halves) = ([0u32; 64], [0u32; 20]);
        let stream = RandomStream { seed: [5, 0], offset: [0, 0] };
        for i in 0..DRAWS / 4 {
            let w = words(stream, 0, i);
            for j in 0..4 {
                let u = uniform(w[j], w[(j + 1) % 4]);
                equal[(u * 64.0) as usize] += 1;
                // Between 2⁻ʰ⁻¹ and 2⁻ʰ; the last bin has all smaller ones.
                halves[((126 - (u.to_bits() >> 23)) as usize).min(19)] += 1;
            }
        }
        let of_bin = f64::from(DRAWS) / 64.0;
        let statistic: f64 = equal.iter().map(|n| (f64::from(*n) - of_bin).powi(2) / of_bin).sum();
        assert!(statistic < 120.0, "{statistic}");
        let expected = |h: usize| f64::from(DRAWS) * 2f64.powi(-(h.min(18) as i32) - 1);
        let statistic: f64 =
            halves.iter().enumerate().map(|(h, n)| (f64::from(*n) - expected(h)).powi(2) / expected(h)).sum();
        assert!(statistic < 60.0, "{statistic}");
    }
}
