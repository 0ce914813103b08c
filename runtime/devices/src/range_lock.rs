//! Mutual exclusion of launches on the CPU that take overlapping byte ranges of buffers.
//!
//! Parts of one buffer share no element, so several threads may use them at once. The byte ranges
//! of two parts may still overlap, as those of two halves of a transposed matrix do. The
//! interpreter copies the whole range of a part and writes it back. Launches with overlapping
//! ranges therefore run one after another; launches with disjoint ranges run concurrently.

use runtime_simt::{Lock, WaitCondition};
use std::ops::Range;

/// The lock of the process, because all CPU devices accept each other's buffers.
pub(crate) static HOST_RANGES: RangeLock = RangeLock::new();

/// The byte range that a launch takes, from the first byte of a part to its last, by address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct LockedRange {
    pub bytes: Range<u64>,
    pub writes: bool,
}

impl LockedRange {
    /// Returns whether one launch could observe a write of the other.
    fn meets(&self, other: &LockedRange) -> bool {
        (self.writes || other.writes) && self.bytes.start < other.bytes.end && other.bytes.start < self.bytes.end
    }
}

/// A lock on byte ranges.
#[derive(Debug)]
pub(crate) struct RangeLock {
    running: Lock<RunningRanges>,
    ended: WaitCondition,
}

/// The ranges of all running launches.
#[derive(Debug)]
struct RunningRanges {
    /// The number of the next guard.
    next: u64,
    /// The ranges in use, with the number of their guard.
    spans: Vec<(u64, LockedRange)>,
}

/// The ranges of a running launch, which are unlocked when this guard is dropped.
#[derive(Debug)]
pub(crate) struct RangeGuard<'a> {
    of: &'a RangeLock,
    number: u64,
}

impl RangeLock {
    pub const fn new() -> RangeLock {
        RangeLock { running: Lock::new(RunningRanges { next: 0, spans: Vec::new() }), ended: WaitCondition::new() }
    }

    /// Waits until no running launch overlaps `spans`, and takes all of them at once, so that no
    /// two launches deadlock. Returns `None` if `spans` is empty.
    pub fn take(&self, spans: Vec<LockedRange>) -> Option<RangeGuard<'_>> {
        if spans.is_empty() {
            return None;
        }
        let meet = |running: &mut RunningRanges| {
            running.spans.iter().any(|(_, taken)| spans.iter().any(|span| span.meets(taken)))
        };
        let mut running = self.ended.wait_while(self.running.lock(), meet);
        let number = running.next;
        running.next += 1;
        running.spans.extend(spans.into_iter().map(|span| (number, span)));
        Some(RangeGuard { of: self, number })
    }
}

impl Drop for RangeGuard<'_> {
    fn drop(&mut self) {
        self.of.running.lock().spans.retain(|(number, _)| *number != self.number);
        self.of.ended.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    fn span(bytes: Range<u64>, writes: bool) -> LockedRange {
        LockedRange { bytes, writes }
    }

    #[test]
    fn spans_conflict_if_they_overlap_and_one_writes() {
        let written = span(8..16, true);
        assert!(written.meets(&span(15..20, false)) && span(0..9, false).meets(&written));
        assert!(written.meets(&written.clone()));
        assert!(!written.meets(&span(16..20, true)) && !span(0..8, true).meets(&written));
        assert!(!written.meets(&span(0..0, true)) && !span(8..16, false).meets(&span(8..16, false)));
    }

    #[test]
    fn disjoint_spans_run_concurrently() {
        let range_lock = RangeLock::new();
        assert!(range_lock.take(Vec::new()).is_none());
        let low = range_lock.take(vec![span(0..8, true)]);
        let high = range_lock.take(vec![span(8..16, true), span(20..24, false)]);
        let read = range_lock.take(vec![span(20..30, false)]);
        assert!(low.is_some() && high.is_some() && read.is_some());
        drop((low, high, read));
        assert!(range_lock.take(vec![span(0..30, true)]).is_some());
        assert!(range_lock.running.lock().spans.is_empty());
    }

    #[test]
    fn conflicting_spans_run_one_after_the_other() {
        let (range_lock, inside) = (RangeLock::new(), AtomicU32::new(0));
        std::thread::scope(|scope| {
            for part in 0..4 {
                let (range_lock, inside) = (&range_lock, &inside);
                scope.spawn(move || {
                    for _ in 0..200 {
                        let guard = range_lock.take(vec![span(part..part + 100, true)]);
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                        std::thread::yield_now();
                        inside.fetch_sub(1, Ordering::SeqCst);
                        drop(guard);
                    }
                });
            }
        });
    }
}
