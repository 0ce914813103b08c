//! A pool of a device's memory: freed memory is kept and reused, so most allocations need no driver
//! call.
//!
//! ```text
//! take ─▶ a free block that is large enough ─ none ─▶ another segment of the device ─ none left ─▶ trim, retry, error
//! give ─▶ free, with the accesses of streams that are in flight ─▶ merged with its neighbors
//! ```
//!
//! Blocks are returned at once, even if work that uses them is still in flight. A block keeps its
//! pending accesses ([`WaitSet`]); the first stream that uses the next owner's memory waits for
//! them on the device. On the same stream there is no wait.
//!
//! A pool that caches no memory ([`DevicePool::uncached`]) makes a driver allocation for each
//! buffer. External tools, such as NVIDIA's Compute Sanitizer, then see each buffer as a separate
//! allocation.
//!
//! Requests of at most 512 KiB are cut from segments of 2 MiB, larger requests from segments of a
//! second kind. Small, long-lived blocks then do not fragment the memory of large ones.

mod statistics;
#[cfg(test)]
mod tests;
mod tlsf;

use crate::hazard::WaitSet;
use crate::{Error, Result};
use runtime_simt::Lock;
pub use statistics::MemoryStatistics;
use tlsf::{BlockId, Tlsf};

const MIB: u64 = 1 << 20;
/// The largest request that is small.
const MAX_SMALL_BYTES: u64 = MIB / 2;
/// The size of a segment of small blocks, and the granularity of all segments: the driver's own.
const SEGMENT: u64 = 2 * MIB;
/// The size of a segment for large requests of up to half of it; larger requests get a segment of
/// their size.
const LARGE_SEGMENT: u64 = 16 * MIB;

/// A source of segments.
pub(crate) trait SegmentSource {
    /// Allocates memory, aligned to at least 256 bytes.
    fn reserve(&self, bytes: u64) -> Result<u64>;

    /// Returns the name of the device.
    fn name(&self) -> String;

    /// Waits until all pending accesses are complete.
    fn wait_for(&self, pending: &WaitSet) -> Result<()>;

    /// Returns memory to the source.
    ///
    /// # Safety
    /// The memory came from `reserve` with the same number of bytes, and nothing uses it any more.
    unsafe fn release(&self, address: u64, bytes: u64);
}

/// Memory of a pool. [`DevicePool::give_back`] returns it to the pool.
#[derive(Debug)]
pub(crate) struct PoolAllocation {
    pub address: u64,
    place: AllocationPlace,
}

#[derive(Debug)]
enum AllocationPlace {
    /// The allocation has no bytes.
    Nowhere,
    /// A block of this many bytes.
    Block(SegmentKind, BlockId, u64),
    /// A separate allocation of this many bytes.
    Own(u64),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SegmentKind {
    Small,
    Large,
}

impl SegmentKind {
    fn of(bytes: u64) -> SegmentKind {
        if bytes <= MAX_SMALL_BYTES { SegmentKind::Small } else { SegmentKind::Large }
    }

    fn segment(self, bytes: u64) -> Option<u64> {
        match self {
            SegmentKind::Small => Some(SEGMENT),
            SegmentKind::Large if bytes <= LARGE_SEGMENT / 2 => Some(LARGE_SEGMENT),
            SegmentKind::Large => bytes.checked_next_multiple_of(SEGMENT),
        }
    }
}

/// The pool of a device's memory.
#[derive(Debug, Default)]
pub(crate) struct DevicePool {
    state: Lock<PoolState>,
    is_uncached: bool,
}

#[derive(Debug, Default)]
struct PoolState {
    small: Tlsf,
    large: Tlsf,
    statistics: MemoryStatistics,
}

impl DevicePool {
    /// Returns a pool that caches no memory.
    pub fn uncached() -> DevicePool {
        DevicePool { is_uncached: true, ..DevicePool::default() }
    }

    /// Allocates memory, and returns the accesses to wait for before writing to it.
    pub fn take(&self, bytes: usize, source: &dyn SegmentSource) -> Result<(PoolAllocation, WaitSet)> {
        if bytes == 0 {
            return Ok((PoolAllocation { address: 0, place: AllocationPlace::Nowhere }, WaitSet::new()));
        }
        if self.is_uncached {
            let address = self.state.lock().reserve(bytes as u64, source)?;
            let statistics = &mut self.state.lock().statistics;
            statistics.allocations += 1;
            statistics.in_use += bytes as u64;
            statistics.peak_in_use = statistics.peak_in_use.max(statistics.in_use);
            return Ok((PoolAllocation { address, place: AllocationPlace::Own(bytes as u64) }, WaitSet::new()));
        }
        let kind = SegmentKind::of(bytes as u64);
        let mut state = self.state.lock();
        let (rounded, segment) = match tlsf::rounded(bytes as u64).and_then(|n| Some((n, kind.segment(n)?))) {
            Some(sizes) => sizes,
            None => return Err(state.exhausted(bytes, source, None)),
        };
        state.statistics.allocations += 1;
        let taken = match state.of(kind).take(rounded) {
            Some(taken) => {
                state.statistics.hits += 1;
                taken
            }
            None => {
                state.grow(kind, segment, source).or_else(|why| match why {
                    // Memory cached for the other kind, or in too small pieces, may suffice.
                    Error::OutOfMemory { .. } => {
                        state.trim(source)?;
                        // A whole segment is a convenience. If memory is insufficient, the
                        // requested size is enough.
                        let least = rounded.next_multiple_of(SEGMENT).min(segment);
                        state.grow(kind, least, source).map_err(|why| match why {
                            Error::OutOfMemory { free, .. } => state.exhausted(bytes, source, free),
                            other => other,
                        })
                    }
                    other => Err(other),
                })?;
                state.of(kind).take(rounded).ok_or_else(|| state.exhausted(bytes, source, None))?
            }
        };
        let statistics = &mut state.statistics;
        statistics.in_use += taken.bytes;
        statistics.peak_in_use = statistics.peak_in_use.max(statistics.in_use);
        Ok((
            PoolAllocation { address: taken.address, place: AllocationPlace::Block(kind, taken.id, taken.bytes) },
            taken.pending,
        ))
    }

    /// Takes memory back. The next owner may write it once `pending` is complete.
    pub fn give_back(&self, piece: PoolAllocation, pending: WaitSet, source: &dyn SegmentSource) {
        match piece.place {
            AllocationPlace::Nowhere => {}
            AllocationPlace::Block(kind, id, bytes) => {
                let mut state = self.state.lock();
                state.of(kind).give_back(id, pending);
                state.statistics.in_use -= bytes;
            }
            AllocationPlace::Own(bytes) => {
                let over = source.wait_for(&pending);
                let statistics = &mut self.state.lock().statistics;
                statistics.in_use -= bytes;
                // Memory that a failing device may still use is left to it.
                if over.is_ok() {
                    // SAFETY: from `take`; no owner is left, and all pending accesses are complete.
                    unsafe { source.release(piece.address, bytes) };
                    statistics.reserved -= bytes;
                    statistics.segments -= 1;
                }
            }
        }
    }

    /// Releases all unused segments to the device, and returns the number of released bytes.
    pub fn trim(&self, source: &dyn SegmentSource) -> Result<u64> {
        self.state.lock().trim(source)
    }

    /// Limits the held bytes to `limit`; `None` allows all of the device's memory. Bytes already
    /// held stay.
    pub fn set_limit(&self, limit: Option<u64>) {
        self.state.lock().statistics.limit = limit;
    }

    /// Returns the current statistics.
    pub fn statistics(&self) -> MemoryStatistics {
        self.state.lock().statistics()
    }
}

impl PoolState {
    fn of(&mut self, kind: SegmentKind) -> &mut Tlsf {
        match kind {
            SegmentKind::Small => &mut self.small,
            SegmentKind::Large => &mut self.large,
        }
    }

    fn grow(&mut self, kind: SegmentKind, bytes: u64, source: &dyn SegmentSource) -> Result<()> {
        let address = self.reserve(bytes, source)?;
        self.of(kind).add(address, bytes);
        Ok(())
    }

    /// Allocates memory of the device.
    fn reserve(&mut self, bytes: u64, source: &dyn SegmentSource) -> Result<u64> {
        let reserved = self.statistics.reserved.saturating_add(bytes);
        if self.statistics.limit.is_some_and(|limit| reserved > limit) {
            return Err(self.exhausted(bytes as usize, source, None));
        }
        let address = source.reserve(bytes)?;
        let statistics = &mut self.statistics;
        statistics.reserved = reserved;
        statistics.peak_reserved = statistics.peak_reserved.max(reserved);
        statistics.segments += 1;
        Ok(address)
    }

    fn trim(&mut self, source: &dyn SegmentSource) -> Result<u64> {
        let unused = self.small.remove_unused().into_iter().map(|segment| (SegmentKind::Small, segment));
        let unused: Vec<_> =
            unused.chain(self.large.remove_unused().into_iter().map(|s| (SegmentKind::Large, s))).collect();
        let (mut released, mut failed) = (0, None);
        for (kind, (address, bytes, pending)) in unused {
            if let Err(why) = source.wait_for(&pending) {
                // Memory that a failing device still uses stays.
                self.of(kind).add(address, bytes);
                failed = Some(why);
                continue;
            }
            // SAFETY: from `grow`; no part of it is in use, and all pending accesses are complete.
            unsafe { source.release(address, bytes) };
            released += bytes;
            self.statistics.segments -= 1;
        }
        self.statistics.reserved -= released;
        failed.map_or(Ok(released), Err)
    }

    fn exhausted(&mut self, requested: usize, source: &dyn SegmentSource, free: Option<(usize, usize)>) -> Error {
        Error::OutOfMemory { requested, device: source.name(), free, pool: Some(Box::new(self.statistics())) }
    }

    fn statistics(&mut self) -> MemoryStatistics {
        MemoryStatistics { largest_free: self.small.largest().max(self.large.largest()), ..self.statistics }
    }
}
