//! Histograms: the number of elements in each bin.
//!
//! The entry point is [`histogram`]. Up to 4096 bins are counted in shared memory, where four
//! warps, or the whole block, have their own bins. At the end a block adds its bins to those in
//! global memory, by one atomic operation per bin. More than 4096 bins are counted directly in
//! global memory.
//!
//! ```text
//!   keys │▒▒▒▒▒▒▒▒│▒▒▒▒▒▒▒▒│ …       16 bytes a thread and step
//!            │        │
//!            ▼        ▼
//!   warps 0, 8, … │ bins │ 1, 9, … │ bins │ …    shared: a lane adds one; lanes with the same bin are serialized
//!            └────────┴──── Σ ────────┘
//!                          ▼
//!                    bins in global memory
//! ```
//!
//! If keys are spread, the limit is memory. If keys are concentrated, the limit is the
//! serialization of lanes with the same bin: for 32 equal keys, the lanes of a warp take 32 steps.
//!
//! # Measured
//!
//! Measured on an H100 (driver 580.159, the PTX of sm_61 compiled by its JIT) by
//! `kernels bench --suite memory`. Times are in µs, and compared with a copy of as many bytes.
//! Blocks of 256 threads add their bins to global memory four times as often:
//!
//! | keys | bytes, 256 bins | blocks of 256 | `f32`, 4096 bins | blocks of 256 |
//! |---|---|---|---|---|
//! | 32768 × 4096 | 66.2, 0.73 × | 68.0, 0.71 × | 188.9, 0.95 × | 196.3, 0.92 × |
//! | 4096 × 4096 | 12.6, 0.37 × | 17.2, 0.28 × | 31.1, 0.83 × | 44.0, 0.59 × |
//! | 8192 × 1024 | 9.2, 0.37 × | 15.6, 0.22 × | 16.6, 0.56 × | 25.7, 0.36 × |
//!
//! A call has two launches, of which the first sets the bins to 0. With few keys, launching takes
//! most of the time.

pub mod kernels;
mod run;

pub use items::*;
pub use run::histogram;

#[kernel_dsl::device]
mod items {
    use kernel_dsl::prelude::*;

    /// A type of keys, which have a bin.
    pub trait Key: Number {
        /// Whether the bins divide a range of numbers.
        const RANGED: bool;
        /// Returns the bin, of `bins` between `low` and `high`. A key without a bin gives `bins` or
        /// more.
        fn bin(self, low: f32, high: f32, bins: usize) -> usize;
    }

    impl Key for u8 {
        const RANGED: bool = false;
        fn bin(self, _low: f32, _high: f32, _bins: usize) -> usize {
            self as usize
        }
    }

    impl Key for u32 {
        const RANGED: bool = false;
        fn bin(self, _low: f32, _high: f32, _bins: usize) -> usize {
            self as usize
        }
    }

    impl Key for f32 {
        const RANGED: bool = true;
        fn bin(self, low: f32, high: f32, bins: usize) -> usize {
            if self >= low && self <= high {
                // Scale by 0.5 if the width overflows. The products are exact, except for a
                // subnormal in such a range.
                let unit = if high - low < f32::INFINITY { 1.0 } else { 0.5 };
                let part = self.mul_add(unit, -(low * unit)) / high.mul_add(unit, -(low * unit));
                // If low equals high, 0 / 0 is NaN: as the end of the range the key is in the last
                // bin.
                ((part.min(1.0) * bins as f32) as usize).min(bins - 1)
            } else {
                bins
            }
        }
    }
}
