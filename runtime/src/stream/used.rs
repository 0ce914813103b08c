//! What one operation does with which memory.

use super::{Moment, Parts, Uses};
use crate::Result;
use smallvec::SmallVec;

/// What an operation must not overtake, and who must not overtake it.
pub(crate) trait Hazards {
    /// Has each wait that the operation must not overtake.
    fn before(&self, wait: &mut dyn FnMut(Moment) -> Result<()>) -> Result<()>;

    /// Notes the operation with all of the memory.
    fn note(&self, moment: Moment);
}

/// The memory that an operation reads and writes.
#[derive(Default)]
pub(crate) struct Used<'a> {
    memory: SmallVec<[Use<'a>; 8]>,
}

/// What is done with memory.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Use<'a> {
    /// It is read, or a part of it.
    Read(&'a Parts),
    /// It is written by whoever has all of it.
    Write(&'a Uses),
    /// A part of it is written, and others may use other parts.
    WritePart(&'a Parts),
}

impl<'a> Used<'a> {
    pub fn read(uses: &'a Uses) -> Used<'a> {
        Used::default().and(Use::Read(uses))
    }

    pub fn written(uses: &'a Uses) -> Used<'a> {
        Used::default().and(Use::Write(uses))
    }

    pub fn and(mut self, used: Use<'a>) -> Used<'a> {
        self.memory.push(used);
        self
    }
}

impl Hazards for Used<'_> {
    fn before(&self, wait: &mut dyn FnMut(Moment) -> Result<()>) -> Result<()> {
        self.memory.iter().try_for_each(|used| used.before(wait))
    }

    fn note(&self, moment: Moment) {
        self.memory.iter().for_each(|used| used.note(moment));
    }
}

impl Hazards for Use<'_> {
    fn before(&self, wait: &mut dyn FnMut(Moment) -> Result<()>) -> Result<()> {
        let before = match self {
            Use::Read(parts) => parts.before_read(),
            Use::Write(uses) => uses.before_write(),
            Use::WritePart(parts) => parts.before_write(),
        };
        before.into_iter().try_for_each(wait)
    }

    fn note(&self, moment: Moment) {
        match self {
            Use::Read(parts) => parts.note_read(moment),
            Use::Write(uses) => uses.note_write(moment),
            Use::WritePart(parts) => parts.note_part(moment),
        }
    }
}
