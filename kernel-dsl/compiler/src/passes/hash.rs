//! A hash table for keys of a few words, many of them; nobody picks them to collide.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A hash table with a fast hash.
pub type Table<K, V> = HashMap<K, V, BuildHasherDefault<Words>>;

/// Multiply and rotate, as FxHash does.
#[derive(Clone, Copy, Debug, Default)]
pub struct Words(u64);

impl Hasher for Words {
    fn finish(&self) -> u64 {
        // The table takes its bucket from the low bits, which a product mixes least.
        self.0.rotate_left(26)
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|b| self.write_u64(u64::from(*b)));
    }
    fn write_u32(&mut self, word: u32) {
        self.write_u64(u64::from(word));
    }
    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }
    fn write_isize(&mut self, word: isize) {
        self.write_u64(word as u64);
    }
}
