//! The unread records of checked launches, in which kernels write their violations.
//!
//! Each launch has a separate record among those of its stream ([`Records`]). The launches of a
//! graph have records that live as long as the graph ([`GraphRecords`]), whichever stream replays
//! it. Every wait for such a stream reads them.

use super::context::Context;
use super::stream::StreamTable;
use crate::hazard::{HazardTracker, Hazards, TimelinePoint};
use crate::{Error, Result};
use cudarc::driver::sys;
use kernel_dsl::compiler::ir::record::{STATE, WORDS};
use kernel_dsl::compiler::lower::checked::CheckedKernel;
use runtime_oracle::reported;
use runtime_simt::Lock;
use std::sync::{Arc, MutexGuard};

const RECORD_BYTES: usize = 4 * WORDS;
/// The number of records of a stream. A further launch waits for the launches before it.
const MAX_RECORDS: usize = 256;
/// The largest number of graphs whose replays a stream records between two waits. A replay of one
/// more graph waits.
const GRAPHS: usize = 64;

/// The records of a stream's launches, in order.
#[derive(Default)]
pub(super) struct Records {
    /// The address of `MAX_RECORDS` records, or 0 before the first launch. Unused records are zero.
    address: u64,
    /// Whether unused records may be nonzero.
    dirty: bool,
    /// The form of each record in use.
    forms: Vec<Arc<CheckedKernel>>,
    /// A violation that was read to free records, when all were in use.
    found: Option<Error>,
    /// The records of replayed graphs.
    graphs: Vec<Arc<GraphRecords>>,
}

impl Records {
    /// Returns the address of a zeroed record for a launch of `form`, or `None` if records must be
    /// collected first. The records are cleared in `stream`, before the launch.
    pub fn next(&mut self, context: &Context, stream: sys::CUstream, form: &Arc<CheckedKernel>) -> Result<Option<u64>> {
        if self.address == 0 {
            self.address = context.allocate(MAX_RECORDS * RECORD_BYTES)?;
            self.dirty = true;
            self.forms.reserve_exact(MAX_RECORDS);
        }
        if self.dirty && self.forms.is_empty() {
            context.run(
                || "clearing the records of checked launches".into(),
                // SAFETY: this object owns the records, which have as many bytes; their launches
                // have ended.
                |driver| unsafe { (driver.memory_fill_in)(self.address, 0, MAX_RECORDS * RECORD_BYTES, stream) },
            )?;
            self.dirty = false;
        }
        if self.forms.len() == MAX_RECORDS {
            return Ok(None);
        }
        self.forms.push(form.clone());
        Ok(Some(self.address + ((self.forms.len() - 1) * RECORD_BYTES) as u64))
    }

    /// Returns whether the memory for records is still to be allocated.
    pub fn is_unallocated(&self) -> bool {
        self.address == 0
    }

    /// Returns whether there is nothing to report.
    pub fn is_empty(&self) -> bool {
        self.forms.is_empty() && self.found.is_none() && self.graphs.is_empty()
    }

    /// Takes back the last record, whose launch failed to start.
    pub fn take_back(&mut self) {
        self.forms.pop();
    }

    /// Collects the violations of completed launches for the next wait. All launches have ended.
    pub fn make_room(&mut self, context: &Context) {
        if let Err(why) = self.read(context) {
            self.found.get_or_insert(why);
        }
    }

    /// Adds a graph's records. Returns whether there was room for one more graph.
    pub fn add_graph(&mut self, findings: &Arc<GraphRecords>) -> bool {
        if self.graphs.last().is_some_and(|last| Arc::ptr_eq(last, findings))
            || self.graphs.iter().any(|known| Arc::ptr_eq(known, findings))
        {
            return true;
        }
        let has_room = self.graphs.len() < GRAPHS;
        if has_room {
            self.graphs.push(findings.clone());
        }
        has_room
    }

    /// Collects the violations of graphs for the next wait, and forgets the graphs' records.
    pub fn make_room_of_graphs(&mut self, streams: &StreamTable) {
        if let Err(why) = self.collect_graphs(streams) {
            self.found.get_or_insert(why);
        }
    }

    /// Reads and clears the records of every graph, and returns the first violation.
    fn collect_graphs(&mut self, streams: &StreamTable) -> Result<()> {
        let mut first = Ok(());
        for findings in self.graphs.drain(..) {
            let read = findings.collect(streams);
            first = first.and(read);
        }
        first
    }

    /// Stops reporting the violations of graphs, because other streams report them.
    pub fn forget_graphs(&mut self) {
        self.graphs.clear();
    }

    /// Returns the violation of the first launch that reported one. All launches of the stream have
    /// ended.
    pub fn collect(&mut self, streams: &StreamTable, context: &Context) -> Result<()> {
        let launches = self.read(context);
        let first = launches.and(self.collect_graphs(streams));
        self.found.take().map_or(first, Err)
    }

    fn read(&mut self, context: &Context) -> Result<()> {
        if self.forms.is_empty() {
            return Ok(());
        }
        self.dirty = true;
        // SAFETY: this object owns the records and initialized them in `next`; the launches have
        // ended.
        let records = unsafe { read(context, self.address, self.forms.len()) };
        let violation = records.and_then(|records| {
            self.dirty = has_any(&records);
            first_violation(&self.forms, &records)
        });
        // Keeps the capacity, so that launches do not allocate.
        self.forms.clear();
        violation
    }

    /// Frees the memory of the records, after all launches of the stream.
    pub fn free(self, context: &Context) {
        if self.address != 0 {
            // SAFETY: allocated in `next`; the stream has ended, and with it all launches.
            unsafe { context.free(self.address) };
        }
    }
}

/// The records of a graph's checked launches. Every replay writes the same records, and the first
/// violation stays.
pub(super) struct GraphRecords {
    context: Arc<Context>,
    address: u64,
    forms: Vec<Arc<CheckedKernel>>,
    /// The tracker that makes replays run one after another, and a reader wait for them.
    uses: HazardTracker,
    /// The lock of readers: no replay is submitted while a thread reads.
    reading: Lock<()>,
}

impl GraphRecords {
    /// Allocates a record for a launch of each of `forms`, which is not empty.
    pub fn new(context: Arc<Context>, forms: Vec<Arc<CheckedKernel>>) -> Result<GraphRecords> {
        let address = context.allocate(forms.len() * RECORD_BYTES)?;
        let (uses, reading) = (HazardTracker::default(), Lock::default());
        let findings = GraphRecords { context, address, forms, uses, reading };
        // SAFETY: just allocated, with as many bytes.
        unsafe { findings.context.fill(address, findings.forms.len() * RECORD_BYTES, 0)? };
        Ok(findings)
    }

    /// Returns the address of record `index`.
    pub fn record(&self, index: usize) -> u64 {
        self.address + (index * RECORD_BYTES) as u64
    }

    /// Locks the records while a replay is submitted, so that no thread reads them at the same
    /// time.
    pub fn lock(&self) -> MutexGuard<'_, ()> {
        self.reading.lock()
    }

    fn collect(&self, streams: &StreamTable) -> Result<()> {
        let _reading = self.lock();
        streams.wait_for(&self.uses.before_write())?;
        // SAFETY: this object owns the records and initialized them in `new`; all replays have
        // ended, and none is submitted.
        let records = unsafe { read(&self.context, self.address, self.forms.len())? };
        if has_any(&records) {
            // SAFETY: as above.
            unsafe { self.context.fill(self.address, self.forms.len() * RECORD_BYTES, 0)? };
        }
        first_violation(&self.forms, &records)
    }
}

impl Hazards for GraphRecords {
    fn for_each_dependency(&self, wait: &mut dyn FnMut(TimelinePoint) -> Result<()>) -> Result<()> {
        self.uses.before_write().into_iter().try_for_each(wait)
    }

    fn record_operation(&self, point: TimelinePoint) {
        self.uses.note_write(point);
    }
}

impl Drop for GraphRecords {
    fn drop(&mut self) {
        // SAFETY: allocated in `new`; only submitted replays may still write there.
        unsafe { self.context.free_or_leave(self.address) };
    }
}

/// Reads `count` records.
///
/// # Safety
/// The records are initialized at `address`, and no other code uses them.
unsafe fn read(context: &Context, address: u64, count: usize) -> Result<Vec<[u32; WORDS]>> {
    let mut bytes = vec![0; count * RECORD_BYTES];
    // SAFETY: by the caller's promise.
    unsafe { context.read(address, &mut bytes)? };
    let records = bytes.chunks_exact(RECORD_BYTES).map(|record| {
        let word = |i: usize| u32::from_le_bytes([0, 1, 2, 3].map(|b| record[4 * i + b]));
        std::array::from_fn(word)
    });
    Ok(records.collect())
}

fn has_any(records: &[[u32; WORDS]]) -> bool {
    records.iter().any(|record| record[STATE] != 0)
}

/// Returns the first violation among the records.
fn first_violation(forms: &[Arc<CheckedKernel>], records: &[[u32; WORDS]]) -> Result<()> {
    let mut reports = forms.iter().zip(records).filter_map(|(form, record)| reported(form, record));
    reports.next().map_or(Ok(()), |report| Err(Error::Violation(report.into())))
}
