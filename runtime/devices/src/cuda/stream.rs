//! The driver's streams: in-order queues of work, and the order between them.
//!
//! A [`CudaStream`] lives as long as the device is open. A [`Stream`](crate::Stream) owns one, and
//! returns it to the table when dropped, so a [`TimelinePoint`] identifies the stream permanently.

use super::context::Context;
use super::driver::{Driver, NOT_READY};
use super::driver_error::DriverStatus;
use super::in_flight::InFlight;
use super::loss::LossCause;
use super::nvtx::Nvtx;
use super::operation::StreamOperation;
use super::record::{GraphRecords, Records};
use super::timeline::Timeline;
use crate::hazard::{Hazards, TimelinePoint, WaitSet};
use crate::profile::Timed;
use crate::trace::span;
use crate::{Error, Result};
use cudarc::driver::sys;
use kernel_dsl::compiler::launch::LaunchShape;
use kernel_dsl::compiler::lower::checked::CheckedKernel;
use runtime_simt::{Lock, SharedLock};
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard};
use std::time::{Duration, Instant};

/// The stream does not synchronize with the driver's default stream.
const NON_BLOCKING: u32 = 1;
/// The event has no time (`CU_EVENT_DISABLE_TIMING`).
const NO_TIMING: u32 = 2;

/// All streams of a device. The first is the device's default stream.
pub(super) struct StreamTable {
    context: Arc<Context>,
    /// The library for NVIDIA's profilers, if it is loaded.
    nvtx: Option<Nvtx>,
    all: SharedLock<Vec<Arc<CudaStream>>>,
    /// The numbers of unused streams.
    idle: Lock<Vec<u16>>,
}

/// A driver's stream.
pub(crate) struct CudaStream {
    context: Arc<Context>,
    number: u16,
    raw: sys::CUstream,
    /// The event by which other streams wait for this one: recorded and waited for in one step.
    mark: sys::CUevent,
    /// The number of the last operation that was submitted.
    submitted: AtomicU64,
    /// The number of the last operation whose completion the host has observed.
    completed: AtomicU64,
    in_flight: Arc<InFlight>,
    /// Whether the timeline is kept for a profile.
    profiled: AtomicBool,
    /// The lock is held for a few calls of the driver that do not wait; under it only the lock of
    /// `in_flight` is taken.
    timeline: Arc<Lock<Timeline>>,
    state: Lock<SubmissionState>,
}

// SAFETY: any thread may use stream and event handles; the mark is used under the lock only.
unsafe impl Send for CudaStream {}
// SAFETY: as above.
unsafe impl Sync for CudaStream {}

/// The state of a stream that only one submission at a time may use.
#[derive(Default)]
pub(super) struct SubmissionState {
    /// For each other stream, the number of the last operation that this stream waits for already.
    waits: Vec<u64>,
    pub(super) records: Records,
}

impl StreamTable {
    /// Creates the table with the device's default stream.
    pub fn new(context: Arc<Context>) -> Result<StreamTable> {
        let streams = StreamTable { context, nvtx: Nvtx::load(), all: SharedLock::default(), idle: Lock::default() };
        streams.take().map(|_| streams)
    }

    /// Returns an unused stream.
    pub fn take(&self) -> Result<Arc<CudaStream>> {
        let idle = self.idle.lock().pop();
        if let Some(number) = idle {
            let stream = self.get(number);
            self.discard_violations(&stream)?;
            return Ok(stream);
        }
        let mut all = self.all.write();
        let number =
            u16::try_from(all.len()).map_err(|_| Error::TooManyStreams { device: self.context.info.to_string() })?;
        let stream = Arc::new(CudaStream::new(self.context.clone(), number)?);
        all.push(stream.clone());
        Ok(stream)
    }

    /// Returns a stream to the table. Work that was submitted to it still runs.
    pub fn give_back(&self, stream: &CudaStream) {
        self.idle.lock().push(stream.number);
    }

    /// Returns the device's default stream.
    pub fn default_stream(&self) -> Arc<CudaStream> {
        self.get(0)
    }

    fn get(&self, number: u16) -> Arc<CudaStream> {
        self.all.read()[usize::from(number)].clone()
    }

    /// Submits an operation with the memory accesses `used`.
    pub fn submit(
        &self,
        stream: &CudaStream,
        used: &dyn Hazards,
        operation: StreamOperation<'_>,
        call: impl FnOnce(&Driver, sys::CUstream) -> DriverStatus,
    ) -> Result<()> {
        self.submit_in(stream, &mut stream.state(), used, operation, call)
    }

    /// Submits an operation, for a caller that holds the stream's state.
    pub fn submit_in(
        &self,
        stream: &CudaStream,
        state: &mut SubmissionState,
        used: &dyn Hazards,
        operation: StreamOperation<'_>,
        call: impl FnOnce(&Driver, sys::CUstream) -> DriverStatus,
    ) -> Result<()> {
        span!("submit", %operation);
        let _range = self.nvtx.as_ref().map(|nvtx| nvtx.range(operation));
        used.for_each_dependency(&mut |point| self.order(stream, state, point))?;
        let submit = || stream.context.run(|| operation.to_string(), |driver| call(driver, stream.raw));
        if stream.is_timed() {
            stream.submit_timed(operation, submit)?
        } else {
            submit()?
        }
        used.record_operation(stream.advance());
        Ok(())
    }

    /// Records that all work submitted to the stream has the accesses `used`, and makes later work
    /// wait for earlier accesses that conflict with them.
    pub fn record_accesses(&self, stream: &CudaStream, used: &dyn Hazards) -> Result<()> {
        let mut state = stream.state();
        used.for_each_dependency(&mut |point| self.order(stream, &mut state, point))?;
        used.record_operation(stream.advance());
        Ok(())
    }

    /// Makes later work of `stream` wait for `point`.
    fn order(&self, stream: &CudaStream, state: &mut SubmissionState, point: TimelinePoint) -> Result<()> {
        let at = usize::from(point.stream);
        if point.stream == stream.number || state.waits.get(at).is_some_and(|count| *count >= point.count) {
            return Ok(());
        }
        let other = self.get(point.stream);
        if other.is_complete(point.count) {
            return Ok(());
        }
        // The wait covers all work submitted to the other stream so far. `point` was made after its
        // operation was submitted, so the wait covers the operation.
        let submitted = other.submitted.load(Ordering::Acquire);
        stream.context.run(
            || "making a stream wait for another".into(),
            // SAFETY: event and streams are alive; a later recording does not affect this wait.
            |driver| unsafe {
                match (driver.event_record)(stream.mark, other.raw) {
                    0 => (driver.stream_wait_event)(stream.raw, stream.mark, 0),
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

    /// Prepares for a driver call that may wait for the whole device. If a time limit is set, the
    /// wait happens here, because the driver call has no limit.
    pub fn quiesce(&self) -> Result<()> {
        let addresses = self.context.take_deferred_frees();
        if self.context.watchdog_timeout().is_some() {
            self.wait()?;
        }
        // SAFETY: the addresses were just taken. All work that may use them was submitted before.
        // The wait above covers that work; without it, the driver waits when it frees.
        unsafe { self.context.free_deferred(addresses) };
        Ok(())
    }

    /// Waits for all work of the stream, for a caller that holds its state. Returns the oldest
    /// violation or error found.
    pub fn wait_in(&self, stream: &CudaStream, state: &mut SubmissionState) -> Result<()> {
        stream.finish()?;
        state.records.collect(self, &self.context)
    }

    /// Discards violations that no wait returned: they do not concern the next owner of the stream.
    fn discard_violations(&self, stream: &CudaStream) -> Result<()> {
        if stream.profiled.load(Ordering::Relaxed) {
            stream.end_profile()?;
        }
        let mut state = stream.state();
        // Violations of graphs are reported by other streams too.
        state.records.forget_graphs();
        if state.records.is_empty() {
            return Ok(());
        }
        match self.wait_in(stream, &mut state) {
            Err(Error::Violation(_)) => Ok(()),
            other => other,
        }
    }

    /// Waits for all work that was submitted to any stream.
    pub fn wait(&self) -> Result<()> {
        let all = self.all.read().clone();
        all.iter().try_for_each(|stream| stream.finish())
    }

    /// Waits for all work that was submitted before operations were [timed](Context::is_timed),
    /// without a limit.
    pub fn wait_for_untimed(&self) {
        let all = self.all.read().clone();
        for stream in &all {
            // A submission holds this lock, so every later submission sees that operations are
            // timed.
            drop(stream.state());
            let submitted = stream.submitted.load(Ordering::Acquire);
            // SAFETY: the stream is alive.
            let wait = |driver: &Driver| unsafe { (driver.stream_wait)(stream.raw) };
            // A failure has one of two causes. Either the device is lost, and reports it at the
            // next use; or other code captures the stream's work, and none of it is in flight.
            if stream.context.run(|| "waiting for a stream".into(), wait).is_ok() {
                stream.set_completed(submitted);
            }
        }
    }

    /// Waits on the host until all pending accesses are complete.
    pub fn wait_for(&self, pending: &WaitSet) -> Result<()> {
        pending.iter().try_for_each(|point| {
            let stream = self.get(point.stream);
            if stream.is_complete(point.count) { Ok(()) } else { stream.finish() }
        })
    }
}

impl CudaStream {
    /// Returns the driver's handle of the stream.
    pub fn handle(&self) -> *mut c_void {
        self.raw.cast()
    }

    /// Makes later work wait for all work submitted to a stream of other code.
    ///
    /// # Safety
    /// `handle` is a live stream of the context, or a default stream of the driver.
    pub unsafe fn wait_for_handle(&self, handle: *mut c_void) -> Result<()> {
        // SAFETY: by the caller's promise.
        unsafe { self.order_handles(handle.cast(), self.raw) }
    }

    /// Makes later work of a stream of other code wait for all work submitted here.
    ///
    /// # Safety
    /// `handle` is as `wait_for_handle` requires.
    pub unsafe fn hold_handle(&self, handle: *mut c_void) -> Result<()> {
        // SAFETY: by the caller's promise.
        unsafe { self.order_handles(self.raw, handle.cast()) }
    }

    /// Makes later work of stream `after` wait for all work submitted to stream `before`.
    ///
    /// # Safety
    /// Both are live streams of the context, or default streams of the driver.
    unsafe fn order_handles(&self, before: sys::CUstream, after: sys::CUstream) -> Result<()> {
        // Another thread must not record the mark between the two steps.
        let _state = self.state();
        self.context.run(
            || "ordering streams".into(),
            // SAFETY: the event is alive, and the streams by the caller's promise.
            |driver| unsafe {
                match (driver.event_record)(self.mark, before) {
                    0 => (driver.stream_wait_event)(after, self.mark, 0),
                    code => code,
                }
            },
        )
    }

    fn new(context: Arc<Context>, number: u16) -> Result<CudaStream> {
        let mut stream = CudaStream {
            context,
            number,
            raw: ptr::null_mut(),
            mark: ptr::null_mut(),
            submitted: AtomicU64::new(0),
            completed: AtomicU64::new(0),
            in_flight: Arc::default(),
            profiled: AtomicBool::new(false),
            timeline: Arc::default(),
            state: Lock::default(),
        };
        let (mut raw, mut mark) = (ptr::null_mut(), ptr::null_mut());
        let made = stream.context.run(
            || "making a stream".into(),
            // SAFETY: both outlive the calls.
            |driver| unsafe {
                match (driver.stream_create)(&mut raw, NON_BLOCKING) {
                    0 => (driver.event_create)(&mut mark, NO_TIMING),
                    code => code,
                }
            },
        );
        // The driver may have made the stream and not the event.
        (stream.raw, stream.mark) = (raw, mark);
        made?;
        stream.context.watch(&stream.in_flight, &stream.timeline);
        Ok(stream)
    }

    pub(super) fn context(&self) -> &Arc<Context> {
        &self.context
    }

    pub(super) fn raw(&self) -> sys::CUstream {
        self.raw
    }

    /// Locks the state for a submission.
    pub(super) fn state(&self) -> MutexGuard<'_, SubmissionState> {
        self.state.lock()
    }

    /// Returns the point of the last submitted operation.
    pub fn last_point(&self) -> TimelinePoint {
        TimelinePoint { stream: self.number, count: self.submitted.load(Ordering::Acquire) }
    }

    /// Returns the address of a record for the next launch of `form`.
    pub(super) fn next_record(&self, state: &mut SubmissionState, form: &Arc<CheckedKernel>) -> Result<u64> {
        loop {
            if let Some(address) = state.records.next(&self.context, self.raw, form)? {
                return Ok(address);
            }
            self.finish()?;
            state.records.make_room(&self.context);
        }
    }

    /// Makes waits for this stream report the violations of a graph's launches.
    pub(super) fn watch_graph(
        &self,
        streams: &StreamTable,
        state: &mut SubmissionState,
        findings: &Arc<GraphRecords>,
    ) -> Result<()> {
        if !state.records.add_graph(findings) {
            self.finish()?;
            state.records.make_room_of_graphs(streams);
            state.records.add_graph(findings);
        }
        Ok(())
    }

    /// Waits for all submitted work, and keeps its violations for the next wait by a caller.
    pub(super) fn finish(&self) -> Result<()> {
        span!("wait", device = %self.context.info);
        let submitted = self.submitted.load(Ordering::Acquire);
        match self.context.watchdog_timeout() {
            None => {
                // SAFETY: the stream is alive.
                let wait = |driver: &Driver| unsafe { (driver.stream_wait)(self.raw) };
                self.context.run_or_lose(|| "waiting for a stream".into(), wait)?;
            }
            // SAFETY: as above.
            Some(_) => self.poll_until("a stream", |driver| unsafe { (driver.stream_query)(self.raw) })?,
        }
        self.set_completed(submitted);
        Ok(())
    }

    /// Returns whether operations are followed by events.
    fn is_timed(&self) -> bool {
        self.profiled.load(Ordering::Relaxed) || self.context.is_timed()
    }

    /// Submits an operation with events around it.
    fn submit_timed(&self, operation: StreamOperation<'_>, submit: impl FnOnce() -> Result<()>) -> Result<()> {
        self.timeline.lock().advance(&self.context)?;
        while self.timeline.lock().is_full() {
            match self.context.watchdog_timeout() {
                Some(_) => self.poll_until("room for more work", |_| match self.timeline.lock().is_full() {
                    true => NOT_READY,
                    false => 0,
                })?,
                None => self.finish()?,
            }
            self.timeline.lock().advance(&self.context)?;
        }
        let start = self.timeline.lock().record_start(&self.context, self.raw)?;
        match submit() {
            Ok(()) => {
                // The operation was submitted, even if the event for its end failed.
                let _ = self.timeline.lock().record_end(&self.context, self.raw, start, operation);
                Ok(())
            }
            Err(why) => {
                self.timeline.lock().take_back(start);
                Err(why)
            }
        }
    }

    /// Polls `over` until it stops returning `CUDA_ERROR_NOT_READY`. If no operation of any stream
    /// completes within the time limit, the device is lost.
    pub(super) fn poll_until(&self, what: &str, over: impl Fn(&Driver) -> DriverStatus) -> Result<()> {
        let (mut since, mut polls) = (Instant::now(), 0u32);
        loop {
            let mut ready = true;
            self.context.run_or_lose(
                || format!("waiting for {what}"),
                |driver| match over(driver) {
                    NOT_READY => {
                        ready = false;
                        0
                    }
                    code => code,
                },
            )?;
            if ready {
                return Ok(());
            }
            // Progress of any stream counts, because this stream may wait for another.
            if self.context.progress()? > 0 {
                since = Instant::now();
            }
            // If the limit was removed meanwhile, work submitted after that has no events.
            let limit = self.context.watchdog_timeout().unwrap_or(Duration::MAX);
            if since.elapsed() > limit {
                let waiting_for = self.timeline.lock().current().unwrap_or_else(|| what.to_string());
                return Err(self.context.lose(LossCause::TimeLimit { waiting_for, limit }));
            }
            // Short work is complete soon. For long work a delay of a millisecond does not matter.
            polls = polls.saturating_add(1);
            match polls {
                0..200 => std::thread::yield_now(),
                _ => std::thread::sleep(Duration::from_micros(u64::from(polls).min(1000))),
            }
        }
    }

    /// Starts timing submitted operations.
    pub fn start_profile(&self) -> Result<()> {
        self.timeline.lock().start_profile(&self.context, self.raw)?;
        self.profiled.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Returns the timings when all operations are complete.
    pub fn end_profile(&self) -> Result<Vec<Timed>> {
        self.profiled.store(false, Ordering::Relaxed);
        self.finish()?;
        self.timeline.lock().end_profile(&self.context)
    }

    /// Records the next launch, for a caller that holds the state.
    pub(super) fn note(&self, instance: &Arc<str>, shape: LaunchShape) {
        self.in_flight.note(instance, shape, self.submitted.load(Ordering::Relaxed) + 1);
    }

    /// Records that operation `count` is complete.
    pub fn set_completed(&self, count: u64) {
        if self.completed.fetch_max(count, Ordering::AcqRel) < count {
            self.in_flight.remove_completed(count);
        }
    }

    fn is_complete(&self, count: u64) -> bool {
        self.completed.load(Ordering::Acquire) >= count
    }

    fn advance(&self) -> TimelinePoint {
        // The lock of the state is held, so there is no other writer.
        let count = self.submitted.load(Ordering::Relaxed) + 1;
        self.submitted.store(count, Ordering::Release);
        TimelinePoint { stream: self.number, count }
    }
}

impl Drop for CudaStream {
    fn drop(&mut self) {
        let records = std::mem::take(&mut self.state().records);
        records.free(&self.context);
        self.timeline.lock().end(&self.context);
        let _ = self.context.run(
            || "ending a stream".into(),
            // SAFETY: both were created in `new`, if they are not null; the driver completes work
            // in flight first.
            |driver| unsafe {
                if !self.mark.is_null() {
                    (driver.event_destroy)(self.mark);
                }
                if self.raw.is_null() { 0 } else { (driver.stream_destroy)(self.raw) }
            },
        );
    }
}
