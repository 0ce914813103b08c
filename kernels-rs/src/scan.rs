//! Prefix sums along the rows of a matrix.
//!
//! The entry points are [`inclusive`] and [`exclusive`]. A block iterates over a row, or a part of
//! it, by tiles of 4096 elements, and carries the sum:
//!
//! ```text
//!   a tile: 8 warps of 4 pieces of 32 lanes of 4 elements
//!   │ warp 0: │ lane 0 … lane 31 │ lane 0 … lane 31 │ … │ warp 1: │ … │
//!             ╰ a scan by shuffles, carried to the next ╯           the warps' sums through shared memory, one barrier a tile
//! ```
//!
//! If there are too few rows to fill the device, each tile of 8192 elements has a block. The block
//! holds the tile in registers, publishes its sum, and waits for the sums before it. The method is
//! decoupled look-back (Merrill and Garland, *Single-pass Parallel Prefix Scan with Decoupled
//! Look-back*, 2016). There, a block adds the sums that happen to be published. Here the order of
//! additions is fixed: the sums of the tiles of a group of 256, and those of the groups before. A
//! block that waits too long computes the sums that it needs itself, by the same additions.
//!
//! The limit is memory: elements are read and written once.
//!
//! # Designs
//!
//! Prefix sums of all elements, `f32`, relative to a copy. The first rows were measured on an H100,
//! where small arrays lose less:
//!
//! | design | 32768 × 4096 |
//! |---|---|
//! | reduce, then scan: elements are read twice | 0.64 |
//! | sums and flags apart, with fences; each group waits for the start of the one before | 0.51 |
//! | each block adds the sums of all groups before | 0.54 |
//! | one warp of a block waits and executes fences | 0.65 |
//! | 32 bits of a sum and a flag in one word, without fences | 0.75 |
//! | tiles of 8192 elements instead of 4096 | 0.94 |
//!
//! A fence waits for the stores of its multiprocessor. With tiles of 4096 elements, six blocks of a
//! multiprocessor have 96 KiB of loads in flight while others wait; four blocks with tiles of 8192
//! have 128 KiB. Designs in CUDA C on an H200; a block that does not wait, and gives wrong sums,
//! reaches 1.00:
//!
//! | design | 32768 × 4096 | 4096 × 4096 | 8192 × 1024 |
//! |---|---|---|---|
//! | the last design above; a counter gives a block its tile, and a launch clears the words | 0.81 | 0.69 | 0.64 |
//! | the last block clears the words | 0.82 | 0.71 | 0.69 |
//! | the same, and no counter | 0.84 | 0.78 | 0.77 |
//! | all words of up to 2048 tiles before in one wait | 0.63 | 0.52 | 0.67 |
//! | polls by loads instead of atomic operations | 0.75 | 0.73 | 0.76 |
//! | one thread polls the tile before, and then all threads read | 0.88 | 0.84 | 0.82 |
//! | the same, and they read by loads | **0.95** | **0.92** | **0.85** |
//! | the same with tiles of 16,384 elements | 0.93 | 0.81 | 0.80 |
//! | the same with tiles of 4096 elements | 0.68 | 0.77 | 0.74 |
//! | one warp waits for the sums of a smaller group | 0.80 | 0.79 | 0.76 |
//! | blocks that load the next tile before they wait | 0.65 | 0.67 | 0.72 |
//! | words with the number of the launch instead of cleared words | 0.94 | 0.88 | 0.81 |
//!
//! So the polls themselves delay the words that they wait for.
//!
//! # Extreme inputs
//!
//! An infinity or a NaN affects the sums from its index to the end of its row, as in sequential
//! additions, and none before. Subnormal numbers are not flushed. If Σ|x| up to an element exceeds
//! `f32::MAX`, partial sums may overflow, and the sum there is finite, infinite or NaN.
//!
//! # Measured
//!
//! Measured on an H200 (driver 580.159, the PTX of sm_61 compiled by its JIT) by
//! `kernels bench --suite memory`, relative to a copy:
//!
//! | | 32768 × 4096 | 4096 × 4096 | 8192 × 1024 |
//! |---|---|---|---|
//! | all elements as one row | 274.1 µs, 0.94 | 39.2 µs, 0.89 | 22.2 µs, 0.86 |
//! | rows | 261.4 µs, 0.98 | 35.7 µs, 0.97 | 24.5 µs, 0.78 |
//!
//! In a small array few blocks run after others, so that the first loads and the last stores have
//! the memory to themselves. Rows of 1024 elements fill a quarter of a tile.

pub mod kernels;
mod run;

pub use run::{exclusive, inclusive};

pub use items::ScanSum;

#[kernel_dsl::device]
mod items {
    use kernel_dsl::prelude::*;

    /// A type of sums: a number of 32 or 64 bits. A block passes one to others in words of 32 bits.
    pub trait ScanSum: Number {
        /// The number of words.
        const WORDS: usize;
        /// Returns a word, the lowest first.
        fn word(self, index: usize) -> u64;
        /// Returns the number with these words. A number of one word ignores `high`.
        fn of_words(low: u32, high: u32) -> Self;
    }

    impl ScanSum for u32 {
        const WORDS: usize = 1;
        fn word(self, _index: usize) -> u64 {
            self as u64
        }
        fn of_words(low: u32, _high: u32) -> u32 {
            low
        }
    }

    impl ScanSum for i32 {
        const WORDS: usize = 1;
        fn word(self, _index: usize) -> u64 {
            self as u32 as u64
        }
        fn of_words(low: u32, _high: u32) -> i32 {
            low as i32
        }
    }

    impl ScanSum for f32 {
        const WORDS: usize = 1;
        fn word(self, _index: usize) -> u64 {
            // A NaN has the same bits on every device.
            let bits = if self.is_nan() { f32::NAN.to_bits() } else { self.to_bits() };
            bits as u64
        }
        fn of_words(low: u32, _high: u32) -> f32 {
            f32::from_bits(low)
        }
    }

    impl ScanSum for u64 {
        const WORDS: usize = 2;
        fn word(self, index: usize) -> u64 {
            if index == 0 { self & 0xffff_ffff } else { self >> 32 }
        }
        fn of_words(low: u32, high: u32) -> u64 {
            (high as u64) << 32 | low as u64
        }
    }

    impl ScanSum for i64 {
        const WORDS: usize = 2;
        fn word(self, index: usize) -> u64 {
            let bits = self as u64;
            if index == 0 { bits & 0xffff_ffff } else { bits >> 32 }
        }
        fn of_words(low: u32, high: u32) -> i64 {
            ((high as u64) << 32 | low as u64) as i64
        }
    }

    impl ScanSum for f64 {
        const WORDS: usize = 2;
        fn word(self, index: usize) -> u64 {
            let bits = if self.is_nan() { f64::NAN.to_bits() } else { self.to_bits() };
            if index == 0 { bits & 0xffff_ffff } else { bits >> 32 }
        }
        fn of_words(low: u32, high: u32) -> f64 {
            f64::from_bits((high as u64) << 32 | low as u64)
        }
    }
}
