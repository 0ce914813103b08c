//! Random numbers by counting: Philox 4x32-10 (Salmon, Moraes, Dror, Shaw, *Parallel random numbers: as easy as 1, 2, 3*, 2011).

use kernel_dsl::prelude::*;

/// Four random words of a counter and a key.
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

/// What a draw is made from: 64 bits each, low word first.
#[device]
#[derive(Clone, Copy, Debug, DeviceCopy)]
pub struct Stream {
    /// Names the sequence.
    pub seed: [u32; 2],
    /// Names the draw in it.
    pub offset: [u32; 2],
}

/// Four random words for `row`, number `index` of them.
#[device]
pub fn words(stream: Stream, row: usize, index: u32) -> [u32; 4] {
    philox([index, row as u32, stream.offset[0], stream.offset[1]], stream.seed)
}

/// From 0 to 1, neither of them: the middles of 2²³ equal steps, which `f32` has exactly.
#[device]
pub fn uniform(word: u32) -> f32 {
    ((word >> 9) as f32 + 0.5) * 1.192_092_9e-7
}

/// −log(−log u), from −2.8 to 16.7.
#[device]
pub fn gumbel(word: u32) -> f32 {
    -math::ln(-math::ln(uniform(word)))
}

#[cfg(test)]
mod tests {
    use super::philox;

    /// The known answers of Random123, file kat_vectors.
    #[test]
    fn known_answers() {
        let ones = u32::MAX;
        assert_eq!(philox([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(philox([ones; 4], [ones; 2]), [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
        let pi = [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344];
        assert_eq!(philox(pi, [0xa409_3822, 0x299f_31d0]), [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]);
    }
}
