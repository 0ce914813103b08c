//! The hazard tracker: it orders the work of several streams from their memory accesses alone.
//!
//! Each operation on a stream has a [`TimelinePoint`]: the stream's number and the operation's
//! number on it. An allocation records the points of its last write and of the reads since. An
//! operation of another stream waits for the points it must not overtake: a read for the last
//! write, a write for both. The next owner of freed memory waits in the same way. Operations of one
//! stream run in submission order and need no waits.
//!
//! `tests/loom.rs` compiles this file with loom's locks and atomics, and explores every
//! interleaving.

use super::sync::{AtomicBool, AtomicU64, Lock, MutexGuard};
use smallvec::SmallVec;
use std::convert::Infallible;
use std::ops::Deref;
use std::sync::atomic::Ordering;

/// A point in the work of a stream: an operation, which ends when the stream has reached the point.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TimelinePoint {
    /// The stream's number on its device.
    pub stream: u16,
    /// The operation's number on the stream, from 1.
    pub count: u64,
}

impl TimelinePoint {
    const COUNT_BITS: u32 = 48;

    /// Packs the point into 64 bits. 0 represents no point, because counts begin with 1.
    pub(super) fn packed(self) -> u64 {
        // 2⁴⁸ operations take nine years at one operation per microsecond.
        u64::from(self.stream) << TimelinePoint::COUNT_BITS | self.count
    }

    pub(super) fn unpacked(bits: u64) -> Option<TimelinePoint> {
        let count = bits & ((1 << TimelinePoint::COUNT_BITS) - 1);
        (count != 0).then_some(TimelinePoint { stream: (bits >> TimelinePoint::COUNT_BITS) as u16, count })
    }
}

/// Points that must be complete before memory gets another owner: at most one for each stream.
pub(crate) type WaitSet = SmallVec<[TimelinePoint; 2]>;

/// Adds a point. If the set has a point of the same stream, the later one remains.
pub(crate) fn add(pending: &mut WaitSet, point: TimelinePoint) {
    match pending.iter_mut().find(|m| m.stream == point.stream) {
        Some(m) => m.count = m.count.max(point.count),
        None => pending.push(point),
    }
}

/// Returns the set of the points that `each` passes to a function.
fn wait_set(
    each: impl FnOnce(&mut dyn FnMut(TimelinePoint) -> Result<(), Infallible>) -> Result<(), Infallible>,
) -> WaitSet {
    let mut pending = WaitSet::new();
    let Ok(()) = each(&mut |point| {
        add(&mut pending, point);
        Ok(())
    });
    pending
}

/// The last accesses to an allocation, for the owner of all of it.
#[derive(Debug, Default)]
pub(crate) struct HazardTracker(SubrangeTracker);

/// The last accesses to an allocation, for the owner of a part, while other operations may write
/// other parts.
///
/// Reads of a single stream are recorded without a lock, so launches that share weights do not
/// contend.
#[derive(Debug, Default)]
pub(crate) struct SubrangeTracker {
    written: AtomicU64,
    /// The last read by the stream that read first since the last write.
    read: AtomicU64,
    /// Accesses of other streams, and the wait set at the change of owner.
    others: Lock<WaitSet>,
    /// Whether `others` has entries. While a single stream uses the memory, no lock is taken.
    has_others: AtomicBool,
    /// Whether parts were written since the last write of the whole, or former owners may still
    /// write. The points of these writes are in `others`, and readers wait for the points too. Only
    /// meaningful if `has_others`.
    has_written_parts: AtomicBool,
}

impl HazardTracker {
    /// Returns the tracker of memory whose former owner left `pending` behind. Every access waits
    /// for these points until the whole memory has been written. Reads wait too, because the
    /// content must not change during a read.
    pub fn inherited(pending: WaitSet) -> HazardTracker {
        let some = !pending.is_empty();
        // The points may be of reads or of writes, so all of them are treated as writes.
        let (has_others, has_written_parts) = (AtomicBool::new(some), AtomicBool::new(some));
        HazardTracker(SubrangeTracker {
            has_others,
            has_written_parts,
            others: Lock::new(pending),
            ..SubrangeTracker::default()
        })
    }

    /// Returns the tracker for the owner of a part.
    pub fn parts(&self) -> &SubrangeTracker {
        &self.0
    }

    /// Records a write of the whole memory by its exclusive owner, after all recorded accesses.
    pub fn note_write(&self, point: TimelinePoint) {
        let all = &self.0;
        all.written.store(point.packed(), Ordering::Release);
        all.read.store(0, Ordering::Relaxed);
        if all.has_others.swap(false, Ordering::Relaxed) {
            all.has_written_parts.store(false, Ordering::Relaxed);
            all.others().clear();
        }
    }
}

impl Deref for HazardTracker {
    type Target = SubrangeTracker;

    fn deref(&self) -> &SubrangeTracker {
        &self.0
    }
}

impl SubrangeTracker {
    /// Returns the points that a read must wait for. If other operations may have written parts,
    /// these are all recorded points.
    pub fn before_read(&self) -> WaitSet {
        wait_set(|add| self.for_each_before_read(add))
    }

    /// Returns the points that a write must wait for, and that must complete before the memory
    /// changes owner.
    pub fn before_write(&self) -> WaitSet {
        wait_set(|add| self.for_each_before_write(add))
    }

    /// Calls `wait` for each point of [`before_read`](SubrangeTracker::before_read), without making
    /// the set: streams may repeat.
    pub fn for_each_before_read<E>(&self, wait: &mut dyn FnMut(TimelinePoint) -> Result<(), E>) -> Result<(), E> {
        match self.has_written_parts.load(Ordering::Acquire) {
            true => self.for_each_before_write(wait),
            false => TimelinePoint::unpacked(self.written.load(Ordering::Acquire)).map_or(Ok(()), wait),
        }
    }

    /// Calls `wait` for each point of [`before_write`](SubrangeTracker::before_write), without
    /// making the set: streams may repeat.
    pub fn for_each_before_write<E>(&self, wait: &mut dyn FnMut(TimelinePoint) -> Result<(), E>) -> Result<(), E> {
        if self.has_others.load(Ordering::Acquire) {
            // The lock is not held during a wait.
            let others = self.others().clone();
            others.into_iter().try_for_each(&mut *wait)?;
        }
        for last in [&self.written, &self.read] {
            if let Some(point) = TimelinePoint::unpacked(last.load(Ordering::Acquire)) {
                wait(point)?;
            }
        }
        Ok(())
    }

    /// Records a read. Several threads may record reads at once.
    pub fn note_read(&self, point: TimelinePoint) {
        let mut noted = self.read.load(Ordering::Relaxed);
        loop {
            match TimelinePoint::unpacked(noted) {
                Some(last) if last.stream != point.stream => {
                    add(&mut self.others(), point);
                    self.has_others.store(true, Ordering::Release);
                    return;
                }
                Some(last) if last.count >= point.count => return,
                _ => {}
            }
            match self.read.compare_exchange_weak(noted, point.packed(), Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(other) => noted = other,
            }
        }
    }

    /// Records a write of a part. The records of other parts stay.
    pub fn note_part(&self, point: TimelinePoint) {
        add(&mut self.others(), point);
        self.has_others.store(true, Ordering::Release);
        self.has_written_parts.store(true, Ordering::Release);
    }

    fn others(&self) -> MutexGuard<'_, WaitSet> {
        self.others.lock()
    }
}
