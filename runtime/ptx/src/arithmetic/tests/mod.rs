//! Tests that compare the arithmetic with independent results: the processor's, those of a search
//! among all values of a format, and those of other formulas.

mod conversions;
mod floats;
mod integers;

/// Reproducible pseudorandom numbers, for domains too large to enumerate.
pub struct Numbers(u64);

impl Numbers {
    pub fn new(seed: u64) -> Numbers {
        Numbers(seed)
    }

    /// Returns any 64 bits (splitmix64).
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }
}

/// Bits of singles at the edges of formats and functions.
pub const SINGLES: [u32; 26] = [
    0x0000_0000,
    0x0000_0001,
    0x0000_0002,
    0x007f_ffff,
    0x0080_0000,
    0x0080_0001,
    0x00ff_ffff,
    0x3380_0000,
    0x3effffff,
    0x3f00_0000,
    0x3f7f_ffff,
    0x3f80_0000,
    0x3f80_0001,
    0x3fc0_0000,
    0x4000_0000,
    0x40a0_0000,
    0x4b00_0000,
    0x4b7f_ffff,
    0x4f00_0000,
    0x4f7f_ffff,
    0x5f00_0000,
    0x7e80_0000,
    0x7f7f_ffff,
    0x7f80_0000,
    0x7fc0_0000,
    0x7f80_0001,
];

/// Returns the edges with both signs, and the same number of random singles.
pub fn singles() -> Vec<u32> {
    let edges = SINGLES.iter().flat_map(|x| [*x, *x | 1 << 31]);
    let mut numbers = Numbers::new(7);
    edges.chain((0..52).map(|_| numbers.next() as u32)).collect()
}

/// Returns the singles converted to double, edges of doubles, and random ones.
pub fn doubles() -> Vec<u64> {
    let edges = [1, 2, 0x000f_ffff_ffff_ffff, 0x0010_0000_0000_0000, 0x3ff0_0000_0000_0001, 0x7fef_ffff_ffff_ffff];
    let widened = SINGLES.map(|x| f64::from(f32::from_bits(x)).to_bits());
    let mut numbers = Numbers::new(11);
    let positive: Vec<u64> = edges.into_iter().chain(widened).chain((0..24).map(|_| numbers.next() >> 1)).collect();
    positive.iter().flat_map(|x| [*x, *x | 1 << 63]).collect()
}
