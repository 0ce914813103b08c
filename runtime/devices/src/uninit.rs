//! Uninitialized bytes: memory that was allocated and not written yet.

use runtime_simt::{ByteRanges, Lock};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

/// The uninitialized bytes of the CPU's memory, shared by all CPU devices, which accept each
/// other's buffers.
pub(crate) static HOST: UninitMap = UninitMap::new();

/// The uninitialized bytes of a memory.
#[derive(Debug)]
pub(crate) struct UninitMap {
    /// Whether any byte is uninitialized. If none is, the map is not searched.
    any: AtomicBool,
    /// For each buffer with uninitialized bytes, by address: the buffer's length, and the ranges of
    /// these bytes.
    buffers: Lock<BTreeMap<u64, (u64, ByteRanges)>>,
}

impl UninitMap {
    /// Returns the map of fully initialized memory.
    pub const fn new() -> UninitMap {
        UninitMap { any: AtomicBool::new(false), buffers: Lock::new(BTreeMap::new()) }
    }

    /// Records a new, uninitialized buffer at `address`.
    pub fn add_buffer(&self, address: u64, bytes: usize) {
        if bytes > 0 {
            self.buffers.lock().insert(address, (bytes as u64, ByteRanges::whole(bytes as u64)));
            self.any.store(true, Ordering::Relaxed);
        }
    }

    /// Records that all bytes of a buffer from `address` on are initialized or freed.
    pub fn stored(&self, address: u64, bytes: usize) {
        self.set_initialized_except(address, bytes, &ByteRanges::default());
    }

    /// Returns the uninitialized bytes among these bytes of one buffer.
    pub fn of(&self, address: u64, bytes: usize) -> ByteRanges {
        if !self.any.load(Ordering::Relaxed) {
            return ByteRanges::default();
        }
        let buffers = self.buffers.lock();
        let found = buffers.range(..=address).next_back().filter(|(start, (len, _))| address - *start < *len);
        let within = |(start, (_, uninit)): (&u64, &(u64, ByteRanges))| {
            let first = address - start;
            uninit.within(&(first..first + bytes as u64))
        };
        found.map(within).unwrap_or_default()
    }

    /// Records that all of these bytes of one buffer are initialized, except the ranges `left`.
    pub fn set_initialized_except(&self, address: u64, bytes: usize, left: &ByteRanges) {
        if bytes == 0 || !self.any.load(Ordering::Relaxed) {
            return;
        }
        let mut buffers = self.buffers.lock();
        let found = buffers.range_mut(..=address).next_back().filter(|(start, (len, _))| address - **start < *len);
        let Some((start, (_, uninit))) = found else { return };
        let first = address - start;
        *uninit = uninit.retained(&(first..first + bytes as u64), left);
        if uninit.is_empty() {
            let start = *start;
            buffers.remove(&start);
            self.any.store(!buffers.is_empty(), Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(ranges: &ByteRanges) -> Vec<u64> {
        ranges.ranges().iter().cloned().flatten().collect()
    }

    #[test]
    fn stores_initialize_their_bytes() {
        let uninit = UninitMap::new();
        assert!(uninit.of(64, 8).is_empty());
        uninit.add_buffer(1024, 100);
        uninit.add_buffer(2048, 8);
        assert_eq!(bytes(&uninit.of(1024 + 90, 10)), (0..10).collect::<Vec<_>>());
        uninit.stored(1024 + 95, 5);
        uninit.set_initialized_except(1024 + 90, 4, &ByteRanges::whole(1));
        assert_eq!(bytes(&uninit.of(1024 + 88, 12)), [0, 1, 2, 6]);
        uninit.stored(1024, 100);
        assert!(uninit.of(1024, 100).is_empty() && !uninit.of(2048, 8).is_empty());
        uninit.stored(2048, 8);
        assert!(!uninit.any.load(Ordering::Relaxed));
    }
}
