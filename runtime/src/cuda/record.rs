//! The records of checked launches that are still to be read: where kernels write what they did wrong.

use super::context::Context;
use crate::interpreter::reported;
use crate::{Error, Result};
use cudarc::driver::sys;
use kernel_dsl::compiler::ir::record::{STATE, WORDS};
use kernel_dsl::compiler::lower::checked::Checked;
use std::sync::Arc;

const RECORD_BYTES: usize = 4 * WORDS;
/// Launches that a stream has room for between two waits. One more waits.
const ROOM: usize = 256;

/// The records of a stream's launches, in order.
#[derive(Default)]
pub(super) struct Records {
    /// Address of `ROOM` records, all zero beyond those that are in use; 0 before the first.
    address: u64,
    /// Whether some may be other than zero that are not in use.
    dirty: bool,
    /// What the records in use are of.
    forms: Vec<Arc<Checked>>,
    /// What was found when there was no room left.
    found: Option<Error>,
}

impl Records {
    /// The address of a record, all zero, for a launch of `form`; `None` where there is no room before they are collected.
    /// They are cleared in `stream`, where the launch comes after it.
    pub fn next(&mut self, context: &Context, stream: sys::CUstream, form: &Arc<Checked>) -> Result<Option<u64>> {
        if self.address == 0 {
            self.address = context.allocate(ROOM * RECORD_BYTES)?;
            self.dirty = true;
        }
        if self.dirty && self.forms.is_empty() {
            context.run(
                || "clearing the records of checked launches".into(),
                // SAFETY: ours, with as many bytes; the launches that they were for have ended.
                |driver| unsafe { (driver.memory_fill_in)(self.address, 0, ROOM * RECORD_BYTES, stream) },
            )?;
            self.dirty = false;
        }
        if self.forms.len() == ROOM {
            return Ok(None);
        }
        self.forms.push(form.clone());
        Ok(Some(self.address + ((self.forms.len() - 1) * RECORD_BYTES) as u64))
    }

    /// Whether memory is still to be had for them.
    pub fn are_to_be_made(&self) -> bool {
        self.address == 0
    }

    /// Whether there is nothing to tell.
    pub fn is_empty(&self) -> bool {
        self.forms.is_empty() && self.found.is_none()
    }

    /// Takes the last record back, whose launch did not come to be.
    pub fn take_back(&mut self) {
        self.forms.pop();
    }

    /// Keeps what launches have found so far for whoever waits next. They have all ended.
    pub fn make_room(&mut self, context: &Context) {
        if let Err(why) = self.read(context) {
            self.found.get_or_insert(why);
        }
    }

    /// What the first launch found that found anything. All have ended.
    pub fn collect(&mut self, context: &Context) -> Result<()> {
        let read = self.read(context);
        self.found.take().map_or(read, Err)
    }

    fn read(&mut self, context: &Context) -> Result<()> {
        if self.forms.is_empty() {
            return Ok(());
        }
        let forms = std::mem::take(&mut self.forms);
        let mut bytes = vec![0; forms.len() * RECORD_BYTES];
        self.dirty = true;
        // SAFETY: ours, as many bytes, initialised in `next`; the launches have ended.
        unsafe { context.read(self.address, &mut bytes)? };
        let records = bytes.chunks_exact(RECORD_BYTES).map(|record| {
            let word = |i: usize| u32::from_le_bytes([0, 1, 2, 3].map(|b| record[4 * i + b]));
            std::array::from_fn::<u32, WORDS, _>(word)
        });
        let records: Vec<_> = records.collect();
        self.dirty = records.iter().any(|record| record[STATE] != 0);
        let mut reports = forms.iter().zip(&records).filter_map(|(form, record)| reported(form, record));
        reports.next().map_or(Ok(()), |report| Err(Error::Violation(report.into())))
    }

    pub fn free(self, context: &Context) {
        if self.address != 0 {
            // SAFETY: from `next`; the stream is no more, and with it all launches.
            unsafe { context.free(self.address) };
        }
    }
}
