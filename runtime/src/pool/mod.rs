//! A device's memory, kept when it is freed and handed out again: taking and giving back 1 MB is no call of the driver.
//!
//! ```text
//! take ─▶ a free block that is large enough ─ none ─▶ a segment more from the device ─ none left ─▶ trim, once more, error
//! give ─▶ free, with the moments of streams that may still use it ─▶ merged with its neighbours
//! ```
//!
//! Blocks are given back at once, however much of the work that uses them is still to run: with a block goes what is pending for it
//! ([`WaitSet`]), and the stream that first uses its next owner's memory waits for that, on the device. On one stream that is
//! no wait at all.
//!
//! A pool that keeps nothing ([`Pool::bare`]) asks the device each time: what looks on from outside, such as NVIDIA's Compute
//! Sanitizer, then sees each buffer as an allocation of its own.
//!
//! Requests of at most 512 KiB are cut from segments of 2 MiB, larger ones from segments of their own kind, so that what is small and
//! lives long does not hold up what is large.

#[cfg(test)]
mod tests;
mod tlsf;

use crate::hazard::WaitSet;
use crate::{Error, Result};
use serde::Serialize;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tlsf::{Id, Tlsf};

const MIB: u64 = 1 << 20;
/// The largest request that is small.
const SMALL: u64 = MIB / 2;
/// What a segment of small blocks has, and what all segments are multiples of: the driver's own granularity.
const SEGMENT: u64 = 2 * MIB;
/// A segment of large blocks has this for requests up to half of it; larger requests get one of their own size.
const LARGE_SEGMENT: u64 = 16 * MIB;

/// Where segments come from.
pub(crate) trait Source {
    /// New memory, aligned to 256 bytes at least.
    fn reserve(&self, bytes: u64) -> Result<u64>;

    /// What it calls itself.
    fn name(&self) -> String;

    /// Waits until all of this is over.
    fn wait_for(&self, pending: &WaitSet) -> Result<()>;

    /// Gives memory back.
    ///
    /// # Safety
    /// It came from `reserve` with as many bytes, and nothing uses it any more.
    unsafe fn release(&self, address: u64, bytes: u64);
}

/// Memory out of a pool. It goes back by [`Pool::give`].
#[derive(Debug)]
pub(crate) struct Allocation {
    pub address: u64,
    place: AllocationPlace,
}

#[derive(Debug)]
enum AllocationPlace {
    /// It has no bytes.
    Nowhere,
    /// A block of so many bytes.
    Block(Kind, Id, u64),
    /// An allocation of its own, of so many bytes.
    Own(u64),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Small,
    Large,
}

impl Kind {
    fn of(bytes: u64) -> Kind {
        if bytes <= SMALL { Kind::Small } else { Kind::Large }
    }

    fn segment(self, bytes: u64) -> Option<u64> {
        match self {
            Kind::Small => Some(SEGMENT),
            Kind::Large if bytes <= LARGE_SEGMENT / 2 => Some(LARGE_SEGMENT),
            Kind::Large => bytes.checked_next_multiple_of(SEGMENT),
        }
    }
}

/// How a device's memory stands, in bytes unless it says otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
#[non_exhaustive]
pub struct MemoryStatistics {
    /// In buffers that live, rounded up to 256.
    pub in_use: u64,
    /// The most that ever was.
    pub peak_in_use: u64,
    /// What the pool holds of the device's memory, used or not.
    pub reserved: u64,
    /// The most that ever was.
    pub peak_reserved: u64,
    /// The largest buffer that can be had without asking the device.
    pub largest_free: u64,
    /// Number of parts that the device gave.
    pub segments: u64,
    /// Number of buffers made.
    pub allocations: u64,
    /// Number of those that the pool had memory for.
    pub hits: u64,
    /// What `reserved` may not exceed.
    pub limit: Option<u64>,
}

impl MemoryStatistics {
    /// Held and not used.
    pub fn cached(&self) -> u64 {
        self.reserved - self.in_use
    }

    /// The part of what is cached that does not lie in the largest free block: 0 where all of it does.
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
        self.limit.map_or(Ok(()), |limit| write!(f, "; the limit is {limit}"))
    }
}

/// A device's memory.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    state: Mutex<State>,
    bare: bool,
}

#[derive(Debug, Default)]
struct State {
    small: Tlsf,
    large: Tlsf,
    statistics: MemoryStatistics,
}

impl Pool {
    /// One that keeps nothing.
    pub fn bare() -> Pool {
        Pool { bare: true, ..Pool::default() }
    }

    /// Memory, and what must be over before it is written.
    pub fn take(&self, bytes: usize, source: &dyn Source) -> Result<(Allocation, WaitSet)> {
        if bytes == 0 {
            return Ok((Allocation { address: 0, place: AllocationPlace::Nowhere }, WaitSet::new()));
        }
        if self.bare {
            let address = self.state().reserve(bytes as u64, source)?;
            let statistics = &mut self.state().statistics;
            statistics.allocations += 1;
            statistics.in_use += bytes as u64;
            statistics.peak_in_use = statistics.peak_in_use.max(statistics.in_use);
            return Ok((Allocation { address, place: AllocationPlace::Own(bytes as u64) }, WaitSet::new()));
        }
        let kind = Kind::of(bytes as u64);
        let mut state = self.state();
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
                    // What is cached for the other kind, or lies in pieces too small, may do.
                    Error::OutOfMemory { .. } => {
                        state.trim(source)?;
                        // A segment is a convenience; where memory is short, what was asked for is enough.
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
            Allocation { address: taken.address, place: AllocationPlace::Block(kind, taken.id, taken.bytes) },
            taken.pending,
        ))
    }

    /// Takes memory back. The next owner may write it once `pending` is over.
    pub fn give(&self, piece: Allocation, pending: WaitSet, source: &dyn Source) {
        match piece.place {
            AllocationPlace::Nowhere => {}
            AllocationPlace::Block(kind, id, bytes) => {
                let mut state = self.state();
                state.of(kind).give(id, pending);
                state.statistics.in_use -= bytes;
            }
            AllocationPlace::Own(bytes) => {
                let over = source.wait_for(&pending);
                let statistics = &mut self.state().statistics;
                statistics.in_use -= bytes;
                // What a device that fails may still use is left to it.
                if over.is_ok() {
                    // SAFETY: from `take`; nobody has it any more, and all that was pending for it is over.
                    unsafe { source.release(piece.address, bytes) };
                    statistics.reserved -= bytes;
                    statistics.segments -= 1;
                }
            }
        }
    }

    /// Gives the device all segments of which nothing is used; the number of bytes.
    pub fn trim(&self, source: &dyn Source) -> Result<u64> {
        self.state().trim(source)
    }

    /// From now on no more than `limit` bytes are held; `None` for all that the device has. What is held already stays.
    pub fn set_limit(&self, limit: Option<u64>) {
        self.state().statistics.limit = limit;
    }

    pub fn statistics(&self) -> MemoryStatistics {
        self.state().statistics()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics between two steps of one change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn of(&mut self, kind: Kind) -> &mut Tlsf {
        match kind {
            Kind::Small => &mut self.small,
            Kind::Large => &mut self.large,
        }
    }

    fn grow(&mut self, kind: Kind, bytes: u64, source: &dyn Source) -> Result<()> {
        let address = self.reserve(bytes, source)?;
        self.of(kind).add(address, bytes);
        Ok(())
    }

    /// New memory of the device.
    fn reserve(&mut self, bytes: u64, source: &dyn Source) -> Result<u64> {
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

    fn trim(&mut self, source: &dyn Source) -> Result<u64> {
        let unused = self.small.remove_unused().into_iter().map(|segment| (Kind::Small, segment));
        let unused: Vec<_> = unused.chain(self.large.remove_unused().into_iter().map(|s| (Kind::Large, s))).collect();
        let (mut released, mut failed) = (0, None);
        for (kind, (address, bytes, pending)) in unused {
            if let Err(why) = source.wait_for(&pending) {
                // What a device that fails still uses stays where it is.
                self.of(kind).add(address, bytes);
                failed = Some(why);
                continue;
            }
            // SAFETY: from `grow`; no part of it is handed out, and all that was pending for it is over.
            unsafe { source.release(address, bytes) };
            released += bytes;
            self.statistics.segments -= 1;
        }
        self.statistics.reserved -= released;
        failed.map_or(Ok(released), Err)
    }

    fn exhausted(&mut self, requested: usize, source: &dyn Source, free: Option<(usize, usize)>) -> Error {
        Error::OutOfMemory { requested, device: source.name(), free, pool: Some(Box::new(self.statistics())) }
    }

    fn statistics(&mut self) -> MemoryStatistics {
        MemoryStatistics { largest_free: self.small.largest().max(self.large.largest()), ..self.statistics }
    }
}
