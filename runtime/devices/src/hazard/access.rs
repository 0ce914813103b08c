//! The memory accesses of one operation.

use super::{HazardTracker, SubrangeTracker, TimelinePoint};
use crate::Result;
use smallvec::SmallVec;

/// The hazards of an operation: the earlier operations it must wait for, and the record for later
/// ones.
pub(crate) trait Hazards {
    /// Calls `wait` for each point that the operation must not overtake.
    fn for_each_dependency(&self, wait: &mut dyn FnMut(TimelinePoint) -> Result<()>) -> Result<()>;

    /// Records the operation in the trackers of all its memory.
    fn record_operation(&self, point: TimelinePoint);
}

/// The memory that an operation reads and writes.
#[derive(Default)]
pub(crate) struct AccessSet<'a> {
    memory: SmallVec<[BufferAccess<'a>; 8]>,
}

/// An access to memory.
#[derive(Clone, Copy, Debug)]
pub(crate) enum BufferAccess<'a> {
    /// Reads all or a part of an allocation.
    Read(&'a SubrangeTracker),
    /// Writes an allocation that the operation has exclusively.
    Write(&'a HazardTracker),
    /// Writes a part of an allocation, of which other operations may use other parts.
    WritePart(&'a SubrangeTracker),
}

impl<'a> AccessSet<'a> {
    /// Returns a read of a whole allocation.
    pub fn read(uses: &'a HazardTracker) -> AccessSet<'a> {
        AccessSet::default().and(BufferAccess::Read(uses))
    }

    /// Returns a write of a whole allocation.
    pub fn written(uses: &'a HazardTracker) -> AccessSet<'a> {
        AccessSet::default().and(BufferAccess::Write(uses))
    }

    /// Returns the accesses with one more.
    pub fn and(mut self, used: BufferAccess<'a>) -> AccessSet<'a> {
        self.add(used);
        self
    }

    /// Adds an access.
    pub fn add(&mut self, used: BufferAccess<'a>) {
        self.memory.push(used);
    }
}

impl Hazards for AccessSet<'_> {
    fn for_each_dependency(&self, wait: &mut dyn FnMut(TimelinePoint) -> Result<()>) -> Result<()> {
        self.memory.iter().try_for_each(|used| used.for_each_dependency(wait))
    }

    fn record_operation(&self, point: TimelinePoint) {
        self.memory.iter().for_each(|used| used.record_operation(point));
    }
}

impl Hazards for BufferAccess<'_> {
    fn for_each_dependency(&self, wait: &mut dyn FnMut(TimelinePoint) -> Result<()>) -> Result<()> {
        match self {
            BufferAccess::Read(parts) => parts.for_each_before_read(wait),
            BufferAccess::Write(uses) => uses.for_each_before_write(wait),
            BufferAccess::WritePart(parts) => parts.for_each_before_write(wait),
        }
    }

    fn record_operation(&self, point: TimelinePoint) {
        match self {
            BufferAccess::Read(parts) => parts.note_read(point),
            BufferAccess::Write(uses) => uses.note_write(point),
            BufferAccess::WritePart(parts) => parts.note_part(point),
        }
    }
}
