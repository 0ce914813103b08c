//! Histograms: the number of elements in each bin.
//!
//! The entry point is [`histogram`]. Up to 4096 bins are counted in shared memory. At the end a
//! block adds its bins to totals in global memory, two bins by one atomic operation. The last block
//! to end stores the totals. More than 4096 bins are counted directly in global memory.
//!
//! Up to 256 bins are counted in 32 columns, one for each lane. A column of words is a bank of the
//! shared memory, so that lanes never wait for one another, whatever the keys are:
//!
//! ```text
//!   keys │▒▒▒▒▒▒▒▒│▒▒▒▒▒▒▒▒│ …       16 bytes a thread and step
//!            │        │
//!            ▼        ▼
//!           lane  0   1   2   …  31
//!   bin 0       │   │   │   │   │   │
//!   bin 1       │   │   │   │   │   │   shared: a lane adds one in its column
//!    ⋮
//!   bin 255     │   │   │   │   │   │ ── Σ ──▶ totals in global memory ──▶ bins
//! ```
//!
//! The limit is then memory. More bins have one column. If their keys are concentrated, the limit
//! is the serialization of lanes with the same bin: for 32 equal keys, the lanes of a warp take 32
//! steps.
//!
//! # Measured
//!
//! Measured on an H200 (driver 580.159, the PTX of sm_61 compiled by its JIT) by
//! `kernels bench --suite memory`. Times are in µs, and compared with a copy of as many bytes:
//!
//! | keys | bytes, 256 bins | bins of eight groups of warps, two launches | `f32`, 4096 bins | two launches, a division for each key |
//! |---|---|---|---|---|
//! | 32768 × 4096 | 46.9, 0.74 × | 65.7, 0.53 × | 132.3, 0.97 × | 166.8, 0.77 × |
//! | 4096 × 4096 | 10.5, 0.41 × | 12.1, 0.35 × | 23.9, 0.80 × | 28.3, 0.67 × |
//! | 8192 × 1024 | 8.7, 0.37 × | 8.7, 0.36 × | 12.8, 0.54 × | 16.1, 0.42 × |
//!
//! A multiprocessor took 2.9 cycles for each access of a warp to bins without conflicts, where the
//! memory would permit 2.2. Keys that are loaded a step ahead need more than the 32 registers of
//! such blocks: the bytes then take 106.9 µs, and the 4096 bins of 4096 × 4096 26.2 µs. With few
//! keys, most of the time is the launch, and the totals: each block adds all its bins.

pub mod kernels;
mod run;

pub use items::*;
pub use run::histogram;

#[kernel_dsl::device]
mod items {
    use kernel_dsl::prelude::*;

    /// The division of the numbers between two ends into bins of equal width.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    #[repr(C)]
    pub struct BinRange {
        /// The lower end.
        pub low: f32,
        /// The upper end.
        pub high: f32,
        /// The power of two that keys are multiplied by, so that the difference of two keys neither
        /// overflows nor is subnormal.
        pub unit: f32,
        /// The number of bins over the difference of the ends, times `unit`.
        pub per_unit: f32,
        /// The bin of `low`: 0, or the last bin if the ends are equal.
        pub first: u32,
        /// The last bin.
        pub last: u32,
    }

    impl BinRange {
        /// Divides the numbers from `low` to `high` into `bins` bins.
        pub fn new(low: f32, high: f32, bins: usize) -> BinRange {
            let width = high - low;
            // 2¹²⁶ for widths below 2⁻⁶⁰: the width of a range is at least 2⁻²⁴ of its larger end.
            let unit = if width < 8.673_617e-19 { 8.507_059e37 } else { 1.0 };
            let unit = if width < f32::INFINITY { unit } else { 0.5 };
            let scaled = high.mul_add(unit, -(low * unit));
            let last = bins as u32 - 1;
            if scaled > 0.0 {
                BinRange { low, high, unit, per_unit: bins as f32 / scaled, first: 0, last }
            } else {
                BinRange { low, high, unit, per_unit: 0.0, first: last, last }
            }
        }
    }

    /// A type of keys, which have a bin.
    pub trait Key: Number {
        /// Whether the bins divide a range of numbers.
        const RANGED: bool;
        /// Returns the bin. A key without a bin gives a number above the last bin.
        fn bin(self, range: BinRange) -> usize;
    }

    impl Key for u8 {
        const RANGED: bool = false;
        fn bin(self, _range: BinRange) -> usize {
            self as usize
        }
    }

    impl Key for u32 {
        const RANGED: bool = false;
        fn bin(self, _range: BinRange) -> usize {
            self as usize
        }
    }

    impl Key for f32 {
        const RANGED: bool = true;
        fn bin(self, range: BinRange) -> usize {
            if self >= range.low && self <= range.high {
                // The products with the unit are exact, except for a subnormal number in a wide
                // range.
                let from = self.mul_add(range.unit, -(range.low * range.unit));
                ((from * range.per_unit) as u32 + range.first).min(range.last) as usize
            } else {
                u32::MAX as usize
            }
        }
    }
}
