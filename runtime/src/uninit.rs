//! Uninitialized bytes: memory that was allocated and not written yet.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes of some memory, counted from its first: ranges that ascend and do not touch.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct ByteRanges(Vec<Range<u64>>);

impl ByteRanges {
    /// Returns the range of all `bytes` bytes.
    pub fn whole(bytes: u64) -> ByteRanges {
        let mut whole = ByteRanges::default();
        whole.push(0..bytes);
        whole
    }

    /// Returns whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether the set contains one of `bytes`.
    pub fn any(&self, bytes: Range<u64>) -> bool {
        let next = self.0.partition_point(|range| range.end <= bytes.start);
        !bytes.is_empty() && self.0.get(next).is_some_and(|range| range.start < bytes.end)
    }

    /// Returns the part of the set within `bytes`, counted from the start of `bytes`.
    pub fn within(&self, bytes: &Range<u64>) -> ByteRanges {
        let mut found = ByteRanges::default();
        for range in &self.0 {
            let (start, end) = (range.start.max(bytes.start), range.end.min(bytes.end));
            found.push(start.saturating_sub(bytes.start)..end.saturating_sub(bytes.start));
        }
        found
    }

    /// Returns the bytes for which `keep` holds; it is called once for each `step` bytes.
    pub fn kept(&self, step: u64, keep: impl Fn(u64) -> bool) -> ByteRanges {
        let mut kept = ByteRanges::default();
        for range in &self.0 {
            let mut at = range.start;
            while at < range.end {
                let end = (at / step + 1).saturating_mul(step).min(range.end);
                if keep(at) {
                    kept.push(at..end);
                }
                at = end;
            }
        }
        kept
    }

    /// Returns the set after an operation on `bytes`: within `bytes` only those in `left` stay,
    /// which are counted from its start.
    fn settled(&self, bytes: &Range<u64>, left: &ByteRanges) -> ByteRanges {
        let mut settled = ByteRanges::default();
        for range in &self.0 {
            settled.push(range.start..range.end.min(bytes.start));
            let first = left.0.partition_point(|left| left.end + bytes.start <= range.start);
            for left in &left.0[first..] {
                let (start, end) = (left.start + bytes.start, left.end + bytes.start);
                if start >= range.end {
                    break;
                }
                settled.push(range.start.max(start)..range.end.min(end));
            }
            settled.push(range.start.max(bytes.end)..range.end);
        }
        settled
    }

    /// Adds what lies behind all others, if it has bytes.
    fn push(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        match self.0.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => self.0.push(range),
        }
    }
}

/// The uninitialized bytes of the CPU's memory, shared by all CPU devices, which accept each
/// other's buffers.
pub(crate) static HOST: UninitMap = UninitMap::new();

/// The uninitialized bytes of a memory.
#[derive(Debug)]
pub(crate) struct UninitMap {
    /// Whether there is any: where all is written, nothing is looked up.
    any: AtomicBool,
    /// The buffers with uninitialized bytes, by address: their length and the bytes.
    buffers: Mutex<BTreeMap<u64, (u64, ByteRanges)>>,
}

impl UninitMap {
    /// Returns the map of fully initialized memory.
    pub const fn new() -> UninitMap {
        UninitMap { any: AtomicBool::new(false), buffers: Mutex::new(BTreeMap::new()) }
    }

    /// Records a new, uninitialized buffer at `address`.
    pub fn made(&self, address: u64, bytes: usize) {
        if bytes > 0 {
            self.buffers().insert(address, (bytes as u64, ByteRanges::whole(bytes as u64)));
            self.any.store(true, Ordering::Relaxed);
        }
    }

    /// Records that all bytes of a buffer from `address` on are initialized or freed.
    pub fn stored(&self, address: u64, bytes: usize) {
        self.quiesce(address, bytes, &ByteRanges::default());
    }

    /// Returns the uninitialized bytes among these bytes of one buffer.
    pub fn of(&self, address: u64, bytes: usize) -> ByteRanges {
        if !self.any.load(Ordering::Relaxed) {
            return ByteRanges::default();
        }
        let buffers = self.buffers();
        let found = buffers.range(..=address).next_back().filter(|(start, (len, _))| address - *start < *len);
        let within = |(start, (_, uninit)): (&u64, &(u64, ByteRanges))| {
            let first = address - start;
            uninit.within(&(first..first + bytes as u64))
        };
        found.map(within).unwrap_or_default()
    }

    /// Records that, of these bytes of one buffer, all except `left` are initialized.
    pub fn quiesce(&self, address: u64, bytes: usize, left: &ByteRanges) {
        if bytes == 0 || !self.any.load(Ordering::Relaxed) {
            return;
        }
        let mut buffers = self.buffers();
        let found = buffers.range_mut(..=address).next_back().filter(|(start, (len, _))| address - **start < *len);
        let Some((start, (_, uninit))) = found else { return };
        let first = address - start;
        *uninit = uninit.settled(&(first..first + bytes as u64), left);
        if uninit.is_empty() {
            let start = *start;
            buffers.remove(&start);
            self.any.store(!buffers.is_empty(), Ordering::Relaxed);
        }
    }

    fn buffers(&self) -> MutexGuard<'_, BTreeMap<u64, (u64, ByteRanges)>> {
        // Nothing panics between two steps of one change.
        self.buffers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(ranges: &ByteRanges) -> Vec<u64> {
        ranges.0.iter().cloned().flatten().collect()
    }

    /// Compares the ranges with sets of bytes.
    #[test]
    fn ranges_hold_exactly_their_bytes() {
        let of = |mask: u32| ByteRanges::whole(12).kept(1, |at| mask >> at & 1 == 1);
        for mask in (0..1 << 12).step_by(7) {
            let all = of(mask);
            let set: Vec<u64> = (0..12).filter(|at| mask >> at & 1 == 1).collect();
            assert_eq!(bytes(&all), set);
            assert!(all.0.windows(2).all(|pair| pair[0].end < pair[1].start), "{all:?}");
            for window in [0..12, 3..4, 2..9, 5..5] {
                let inside = |at: &&u64| window.contains(*at);
                let clipped: Vec<_> = set.iter().filter(inside).map(|at| at - window.start).collect();
                assert_eq!(bytes(&all.within(&window)), clipped);
                assert_eq!(all.any(window.clone()), !clipped.is_empty());
                let left = of(mask.rotate_left(5) & 0xfff).within(&(0..window.end - window.start));
                let stays = |at: &&u64| !window.contains(*at) || bytes(&left).contains(&(**at - window.start));
                let settled = all.settled(&window, &left);
                assert_eq!(bytes(&settled), set.iter().filter(stays).copied().collect::<Vec<_>>());
            }
            assert_eq!(
                bytes(&all.kept(4, |at| at >= 4)),
                set.iter().filter(|at| **at >= 4).copied().collect::<Vec<_>>()
            );
        }
    }

    #[test]
    fn stores_initialize_their_bytes() {
        let uninit = UninitMap::new();
        assert!(uninit.of(64, 8).is_empty());
        uninit.made(1024, 100);
        uninit.made(2048, 8);
        assert_eq!(bytes(&uninit.of(1024 + 90, 10)), (0..10).collect::<Vec<_>>());
        uninit.stored(1024 + 95, 5);
        uninit.quiesce(1024 + 90, 4, &ByteRanges::whole(1));
        assert_eq!(bytes(&uninit.of(1024 + 88, 12)), [0, 1, 2, 6]);
        uninit.stored(1024, 100);
        assert!(uninit.of(1024, 100).is_empty() && !uninit.of(2048, 8).is_empty());
        uninit.stored(2048, 8);
        assert!(!uninit.any.load(Ordering::Relaxed));
    }
}
