//! Statistics of a pool.

use serde::Serialize;
use std::fmt;

/// Statistics of a device's memory, in bytes unless stated otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
#[non_exhaustive]
pub struct MemoryStatistics {
    /// The bytes of live buffers, each rounded up to 256.
    pub in_use: u64,
    /// The largest value of `in_use` so far.
    pub peak_in_use: u64,
    /// The bytes of device memory that the pool holds, used or not.
    pub reserved: u64,
    /// The largest value of `reserved` so far.
    pub peak_reserved: u64,
    /// The largest buffer that the pool can allocate without the device.
    pub largest_free: u64,
    /// Number of segments that the device allocated.
    pub segments: u64,
    /// Number of allocated buffers.
    pub allocations: u64,
    /// Number of buffers that the pool allocated without the device.
    pub hits: u64,
    /// The upper limit of `reserved`.
    pub limit: Option<u64>,
}

impl MemoryStatistics {
    /// Returns the held but unused bytes.
    pub fn cached(&self) -> u64 {
        self.reserved - self.in_use
    }

    /// Returns the share of the cached bytes outside the largest free block; 0 if one block holds
    /// all.
    pub fn fragmentation(&self) -> f64 {
        match self.cached() {
            0 => 0.0,
            cached => 1.0 - self.largest_free as f64 / cached as f64,
        }
    }
}

impl fmt::Display for MemoryStatistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} bytes in use (at most {}), {} cached of {} reserved in {} segments (at most {}), the largest free block {}; \
             {} of {} allocations were hits",
            self.in_use,
            self.peak_in_use,
            self.cached(),
            self.reserved,
            self.segments,
            self.peak_reserved,
            self.largest_free,
            self.hits,
            self.allocations,
        )?;
        self.limit.map_or(Ok(()), |limit| write!(f, "; the limit of `Device::limit_memory` is {limit}"))
    }
}
