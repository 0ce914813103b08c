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
//! additions is fixed: the sums of the tiles of a group of 256, and those of the groups before.
//!
//! The limit is memory: elements are read and written once.
//!
//! # Designs
//!
//! Prefix sums of all of 32768 × 4096 `f32`, on an H100, relative to a copy:
//!
//! | design | rate |
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
//! have 128 KiB.
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
//! `kernels bench --suite memory`, 32768 × 4096. Rows reach 4.12 TB/s, 0.98 × a copy. All elements
//! as one row reach 3.37, 0.80 × (0.62 × when a divided row was read twice). All of 4096² and 8192
//! × 1024 reach 0.67 and 0.66 ×; on an H100 the three reach 0.94, 0.79 and 0.75 ×. In a small array
//! few blocks run at once and wait for one another, and clearing their words takes a second launch.

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
