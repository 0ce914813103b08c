//! The driver's streams: work submitted in order, and what orders that of one behind that of another.
//!
//! A lane is a driver's stream that lives as long as the device is open; a [`Stream`](crate::Stream) of ours has one to itself and
//! hands it on when it is dropped, so that a [`Moment`] names a lane for good.

use super::context::Context;
use super::driver::{Code, Driver};
use super::record::Records;
use crate::stream::{Hazards, Moment, Pending};
use crate::{Error, Result};
use cudarc::driver::sys;
use kernel_dsl::compiler::lower::checked::Checked;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

/// It does not wait for the driver's own default stream, nor that for it.
const NON_BLOCKING: u32 = 1;
const NO_TIMING: u32 = 2;

/// All lanes of a device. The first is the device's own.
pub(super) struct Lanes {
    context: Arc<Context>,
    all: RwLock<Vec<Arc<Lane>>>,
    /// Numbers of those that no stream has.
    idle: Mutex<Vec<u16>>,
}

/// A driver's stream.
pub(crate) struct Lane {
    context: Arc<Context>,
    number: u16,
    stream: sys::CUstream,
    /// What another lane's progress is waited for by: recorded there and waited for here in one go.
    mark: sys::CUevent,
    /// The number of the last operation that was submitted.
    submitted: AtomicU64,
    /// The number of the last that is known to be over.
    completed: AtomicU64,
    state: Mutex<State>,
}

// SAFETY: stream and event handles may be used from any thread; the mark is used under the lock only.
unsafe impl Send for Lane {}
// SAFETY: as above.
unsafe impl Sync for Lane {}

/// What submitting needs one at a time.
#[derive(Default)]
pub(super) struct State {
    /// By lane: the number of the last operation there that this lane waits for already.
    waits: Vec<u64>,
    pub(super) records: Records,
}

impl Lanes {
    pub fn new(context: Arc<Context>) -> Result<Lanes> {
        let lanes = Lanes { context, all: RwLock::default(), idle: Mutex::default() };
        lanes.take().map(|_| lanes)
    }

    /// A lane that nobody has.
    pub fn take(&self) -> Result<Arc<Lane>> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        if let Some(number) = idle {
            let lane = self.get(number);
            self.forget(&lane)?;
            return Ok(lane);
        }
        let mut all = self.all.write().unwrap_or_else(PoisonError::into_inner);
        let number =
            u16::try_from(all.len()).map_err(|_| Error::TooManyStreams { device: self.context.info.to_string() })?;
        let lane = Arc::new(Lane::new(self.context.clone(), number)?);
        all.push(lane.clone());
        Ok(lane)
    }

    /// Gives a lane back. What was submitted to it still runs.
    pub fn give(&self, lane: &Lane) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(lane.number);
    }

    /// The device's own.
    pub fn first(&self) -> Arc<Lane> {
        self.get(0)
    }

    fn get(&self, number: u16) -> Arc<Lane> {
        self.all.read().unwrap_or_else(PoisonError::into_inner)[usize::from(number)].clone()
    }

    /// Submits an operation that uses memory as `used` says; `doing` says what it is for.
    pub fn submit(
        &self,
        lane: &Lane,
        used: &dyn Hazards,
        doing: impl Fn() -> String,
        call: impl FnOnce(&Driver, sys::CUstream) -> Code,
    ) -> Result<()> {
        self.submit_in(lane, &mut lane.state(), used, doing, call)
    }

    /// The same, by whoever has the lane's state.
    pub fn submit_in(
        &self,
        lane: &Lane,
        state: &mut State,
        used: &dyn Hazards,
        doing: impl Fn() -> String,
        call: impl FnOnce(&Driver, sys::CUstream) -> Code,
    ) -> Result<()> {
        used.before(&mut |moment| self.order(lane, state, moment))?;
        lane.context.run(doing, |driver| call(driver, lane.stream))?;
        used.note(lane.advance());
        Ok(())
    }

    /// Has what `lane` is given from now on wait for `moment`.
    fn order(&self, lane: &Lane, state: &mut State, moment: Moment) -> Result<()> {
        let at = usize::from(moment.stream);
        if moment.stream == lane.number || state.waits.get(at).is_some_and(|count| *count >= moment.count) {
            return Ok(());
        }
        let other = self.get(moment.stream);
        if other.is_over(moment.count) {
            return Ok(());
        }
        // All that is submitted there by now, the moment among it: it was noted after it had been submitted.
        let submitted = other.submitted.load(Ordering::Acquire);
        lane.context.run(
            || "having a stream wait for another".into(),
            // SAFETY: event and streams are alive; a later recording does not change what this wait is for.
            |driver| unsafe {
                match (driver.event_record)(lane.mark, other.stream) {
                    0 => (driver.stream_wait_event)(lane.stream, lane.mark, 0),
                    code => code,
                }
            },
        )?;
        if state.waits.len() <= at {
            state.waits.resize(at + 1, 0);
        }
        state.waits[at] = submitted;
        Ok(())
    }

    /// Waits for all that a lane was given, by whoever has its state; the error is what was found on the way, the oldest first.
    pub fn wait_in(&self, lane: &Lane, state: &mut State) -> Result<()> {
        lane.finish()?;
        state.records.collect(self, &self.context)
    }

    /// Forgets what a lane's launches have found that nobody waited for: it is not the next owner's.
    fn forget(&self, lane: &Lane) -> Result<()> {
        let mut state = lane.state();
        if state.records.is_empty() {
            return Ok(());
        }
        match self.wait_in(lane, &mut state) {
            Err(Error::Violation(_)) => Ok(()),
            other => other,
        }
    }

    /// Waits for all that was submitted to any lane.
    pub fn wait(&self) -> Result<()> {
        let all = self.all.read().unwrap_or_else(PoisonError::into_inner).clone();
        all.iter().try_for_each(|lane| lane.finish())
    }

    /// Waits on the host for all of this.
    pub fn wait_for(&self, pending: &Pending) -> Result<()> {
        pending.iter().try_for_each(|moment| {
            let lane = self.get(moment.stream);
            if lane.is_over(moment.count) { Ok(()) } else { lane.finish() }
        })
    }
}

impl Lane {
    fn new(context: Arc<Context>, number: u16) -> Result<Lane> {
        let mut lane = Lane {
            context,
            number,
            stream: ptr::null_mut(),
            mark: ptr::null_mut(),
            submitted: AtomicU64::new(0),
            completed: AtomicU64::new(0),
            state: Mutex::default(),
        };
        let (mut stream, mut mark) = (ptr::null_mut(), ptr::null_mut());
        lane.context.run(
            || "making a stream".into(),
            // SAFETY: both outlive the calls.
            |driver| unsafe {
                match (driver.stream_create)(&mut stream, NON_BLOCKING) {
                    0 => (driver.event_create)(&mut mark, NO_TIMING),
                    code => code,
                }
            },
        )?;
        (lane.stream, lane.mark) = (stream, mark);
        Ok(lane)
    }

    pub(super) fn context(&self) -> &Arc<Context> {
        &self.context
    }

    pub(super) fn stream(&self) -> sys::CUstream {
        self.stream
    }

    /// What submitting needs, for this thread alone.
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        // A panic while the lock is held leaves a state that is whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The moment of the last operation that was submitted.
    pub fn now(&self) -> Moment {
        Moment { stream: self.number, count: self.submitted.load(Ordering::Acquire) }
    }

    /// The address of a record for a launch of `form` that is submitted next.
    pub(super) fn next_record(&self, state: &mut State, form: &Arc<Checked>) -> Result<u64> {
        loop {
            if let Some(address) = state.records.next(&self.context, form)? {
                return Ok(address);
            }
            self.finish()?;
            state.records.make_room(&self.context);
        }
    }

    /// Waits for all that was submitted, and leaves what it found for whoever waits for the stream.
    fn finish(&self) -> Result<()> {
        let submitted = self.submitted.load(Ordering::Acquire);
        // SAFETY: the stream is alive.
        self.context.run(|| "waiting for a stream".into(), |driver| unsafe { (driver.stream_wait)(self.stream) })?;
        self.is_over_until(submitted);
        Ok(())
    }

    /// Takes note that operation `count` is over.
    pub fn is_over_until(&self, count: u64) {
        self.completed.fetch_max(count, Ordering::AcqRel);
    }

    fn is_over(&self, count: u64) -> bool {
        self.completed.load(Ordering::Acquire) >= count
    }

    fn advance(&self) -> Moment {
        // Under the lock of the state: nobody else writes it.
        let count = self.submitted.load(Ordering::Relaxed) + 1;
        self.submitted.store(count, Ordering::Release);
        Moment { stream: self.number, count }
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        let records = std::mem::take(&mut self.state().records);
        records.free(&self.context);
        let _ = self.context.run(
            || "ending a stream".into(),
            // SAFETY: both were made in `new`, if they are not null; work that is under way ends all the same.
            |driver| unsafe {
                if !self.mark.is_null() {
                    (driver.event_destroy)(self.mark);
                }
                if self.stream.is_null() { 0 } else { (driver.stream_destroy)(self.stream) }
            },
        );
    }
}
