//! The driver's events.

use super::context::Context;
use super::driver::NOT_READY;
use super::stream::CudaStream;
use crate::Result;
use crate::hazard::TimelinePoint;
use cudarc::driver::sys;
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

/// A point in the work of a stream, with its time.
pub(crate) struct CudaEvent {
    stream: Arc<CudaStream>,
    event: sys::CUevent,
    point: TimelinePoint,
}

// SAFETY: event handles may be used from any thread.
unsafe impl Send for CudaEvent {}
// SAFETY: as above.
unsafe impl Sync for CudaEvent {}

impl CudaEvent {
    /// Records an event after all work submitted so far.
    pub fn record(stream: &Arc<CudaStream>) -> Result<CudaEvent> {
        let mut made = CudaEvent { stream: stream.clone(), event: ptr::null_mut(), point: stream.last_point() };
        let mut event = ptr::null_mut();
        // SAFETY: `event` outlives the call.
        made.context().run(|| "making an event".into(), |driver| unsafe { (driver.event_create)(&mut event, 0) })?;
        made.event = event;
        made.context().run(
            || "recording an event".into(),
            // SAFETY: event and stream are alive.
            |driver| unsafe { (driver.event_record)(event, stream.raw()) },
        )?;
        Ok(made)
    }

    /// Makes later work of `stream` wait for the event.
    pub fn delay(&self, stream: &CudaStream) -> Result<()> {
        stream.context().run(
            || "making a stream wait for an event".into(),
            // SAFETY: event and stream are alive.
            |driver| unsafe { (driver.stream_wait_event)(stream.raw(), self.event, 0) },
        )
    }

    /// Returns whether the work before the event is complete.
    pub fn is_complete(&self) -> Result<bool> {
        // SAFETY: the event is alive.
        let over = unsafe { is_complete(self.context(), self.event)? };
        if over {
            self.stream.set_completed(self.point.count);
        }
        Ok(over)
    }

    /// Waits on the host until the event is complete, at most for the time limit.
    pub fn wait(&self) -> Result<()> {
        match self.context().watchdog_timeout() {
            None => self.context().run(
                || "waiting for an event".into(),
                // SAFETY: the event is alive.
                |driver| unsafe { (driver.event_wait)(self.event) },
            )?,
            // SAFETY: as above.
            Some(_) => self.stream.poll_until("an event", |driver| unsafe { (driver.event_query)(self.event) })?,
        }
        self.stream.set_completed(self.point.count);
        Ok(())
    }

    /// Waits for both events, and returns the time from `earlier` to this event, at least 0.
    pub fn duration_since(&self, earlier: &CudaEvent) -> Result<Duration> {
        earlier.wait()?;
        self.wait()?;
        let mut milliseconds = 0.0;
        self.context().run(
            || "measuring the time between two events".into(),
            // SAFETY: both events are alive; `milliseconds` outlives the call.
            |driver| unsafe { (driver.event_elapsed)(&mut milliseconds, earlier.event, self.event) },
        )?;
        Ok(Duration::from_secs_f64(f64::from(milliseconds.max(0.0)) / 1e3))
    }

    fn context(&self) -> &Arc<Context> {
        self.stream.context()
    }
}

/// Returns whether the work before an event of the driver is complete.
///
/// # Safety
/// The event is alive and belongs to the context.
pub(super) unsafe fn is_complete(context: &Context, event: sys::CUevent) -> Result<bool> {
    let mut complete = true;
    context.run(
        || "querying an event".into(),
        // SAFETY: by the caller's promise.
        |driver| match unsafe { (driver.event_query)(event) } {
            NOT_READY => {
                complete = false;
                0
            }
            code => code,
        },
    )?;
    Ok(complete)
}

impl Drop for CudaEvent {
    fn drop(&mut self) {
        if !self.event.is_null() {
            // SAFETY: the event was made in `record`; the driver keeps the event until no work
            // waits for it.
            let destroy =
                self.context().run(|| "ending an event".into(), |driver| unsafe { (driver.event_destroy)(self.event) });
            // A failure here is the result of an earlier operation.
            drop(destroy);
        }
    }
}
