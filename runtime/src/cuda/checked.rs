//! The checked form of a kernel on a CUDA device, and the records of its launches.

use super::module::Module;
use crate::Error;
use crate::contract::Approved;
use crate::interpreter::reported;
use kernel_dsl::compiler::ir::record::{STATE, WORDS};
use kernel_dsl::compiler::lower::checked::Checked;
use std::sync::{Mutex, PoisonError};

const RECORD_BYTES: usize = 4 * WORDS;

/// A loaded checked form, and what its reports mean.
pub(super) struct CheckedModule {
    module: Module,
    form: Checked,
    /// Addresses of records that no launch uses, all zero: one for each launch that there ever was at once.
    records: Mutex<Vec<u64>>,
}

impl CheckedModule {
    pub fn new(module: Module, form: Checked) -> CheckedModule {
        CheckedModule { module, form, records: Mutex::default() }
    }

    /// Runs the entry and waits for its end; the error is what was reported first.
    pub fn launch(&self, approved: &Approved, instance: &str) -> Result<(), Error> {
        let address = self.record()?;
        // SAFETY: the arguments were approved against the kernel that this is the checked form of, whose accesses stay
        // inside of them; the record is this launch's.
        let read = unsafe { self.module.launch(approved, instance, Some(address)) }.and_then(|()| self.read(address));
        let Ok(record) = read else {
            // SAFETY: from `record`, and its launch has ended.
            unsafe { self.module.context.free(address) };
            return read.map(|_| ());
        };
        let report = reported(&self.form, &record);
        if record[STATE] != 0 {
            // SAFETY: it is this launch's, which has ended.
            unsafe { self.module.context.fill(address, RECORD_BYTES, 0)? };
        }
        self.records().push(address);
        report.map_or(Ok(()), |report| Err(Error::Violation(report.into())))
    }

    /// A record, all zero, that is nobody else's.
    fn record(&self) -> Result<u64, Error> {
        if let Some(address) = self.records().pop() {
            return Ok(address);
        }
        let address = self.module.context.allocate(RECORD_BYTES)?;
        // SAFETY: just allocated, with as many bytes.
        unsafe { self.module.context.fill(address, RECORD_BYTES, 0)? };
        Ok(address)
    }

    fn read(&self, address: u64) -> Result<[u32; WORDS], Error> {
        let mut bytes = [0; RECORD_BYTES];
        // SAFETY: from `record`, of as many bytes, initialised there; its launch has ended.
        unsafe { self.module.context.read(address, &mut bytes)? };
        let mut words = [0; WORDS];
        for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(4)) {
            *word = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        }
        Ok(words)
    }

    fn records(&self) -> std::sync::MutexGuard<'_, Vec<u64>> {
        // A panic while the lock is held leaves a list that is whole.
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for CheckedModule {
    fn drop(&mut self) {
        for address in std::mem::take(&mut *self.records()) {
            // SAFETY: from `record`; no launch uses it.
            unsafe { self.module.context.free(address) };
        }
    }
}
