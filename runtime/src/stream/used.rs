//! What one operation does with which memory.

use super::{Moment, Uses};
use crate::Result;
use smallvec::SmallVec;

/// The memory that an operation reads and writes.
#[derive(Default)]
pub(crate) struct Used<'a> {
    memory: SmallVec<[(&'a Uses, Access); 8]>,
}

/// What is done with memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Access {
    Read,
    Write,
}

impl<'a> Used<'a> {
    pub fn read(uses: &'a Uses) -> Used<'a> {
        Used::default().and(uses, Access::Read)
    }

    pub fn written(uses: &'a Uses) -> Used<'a> {
        Used::default().and(uses, Access::Write)
    }

    pub fn and(mut self, uses: &'a Uses, access: Access) -> Used<'a> {
        self.memory.push((uses, access));
        self
    }

    /// All that the operation must not overtake.
    pub fn before(&self, mut wait: impl FnMut(Moment) -> Result<()>) -> Result<()> {
        for (uses, access) in &self.memory {
            match access {
                Access::Read => uses.before_read().map_or(Ok(()), &mut wait)?,
                Access::Write => uses.before_write().into_iter().try_for_each(&mut wait)?,
            }
        }
        Ok(())
    }

    /// Notes the operation with all of the memory.
    pub fn note(&self, moment: Moment) {
        for (uses, access) in &self.memory {
            match access {
                Access::Read => uses.note_read(moment),
                Access::Write => uses.note_write(moment),
            }
        }
    }
}
