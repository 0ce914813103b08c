//! Events: points in the order of work, with their times.

use super::context::Context;
use super::engine::{Engine, Ticket};
use super::error::{Error, Result};
use super::graph::Capture;
use super::handle::{Handle, HandleType};
use super::work::StreamWork;
use cudarc::driver::sys::{CUevent_flags, CUresult};
use runtime_simt::Lock;
use std::sync::Arc;
use std::time::Instant;

/// An event.
#[derive(Debug)]
pub struct Event {
    /// The event's handle.
    pub handle: Handle,
    /// The context that the event belongs to.
    pub context: Arc<Context>,
    flags: u32,
    state: Lock<EventState>,
}

/// The state of the last recording of an event.
#[derive(Debug, Default)]
struct EventState {
    /// The number of recordings.
    calls: u64,
    /// The ticket of the last recording.
    ticket: Ticket,
    /// The time of the last recording, once complete.
    time: Option<Instant>,
    captured: Option<Captured>,
}

/// The position in a capture at which an event was recorded.
#[derive(Clone, Debug)]
pub struct Captured {
    /// The capture.
    pub capture: Arc<Capture>,
    /// The nodes that the position depends on.
    pub after: Vec<Handle>,
}

impl HandleType for Event {
    const KIND: u8 = 0x44;
    const NAME: &'static str = "event";
}

impl Event {
    /// Creates an event that was never recorded; `flags` must be valid.
    pub fn new(handle: Handle, context: Arc<Context>, flags: u32) -> Event {
        Event { handle, context, flags, state: Lock::default() }
    }

    /// Rejects invalid flags.
    pub fn check(flags: u32) -> Result {
        let known = CUevent_flags::CU_EVENT_BLOCKING_SYNC as u32 | CUevent_flags::CU_EVENT_DISABLE_TIMING as u32;
        if flags & CUevent_flags::CU_EVENT_INTERPROCESS as u32 != 0 {
            return Err(Error::unsupported("events are not shared between processes"));
        }
        if flags & !known != 0 {
            return Err(Error::value(format!("invalid flags of an event: {flags:#x}")));
        }
        Ok(())
    }

    /// Records the event after all submitted work.
    pub fn record(self: &Arc<Event>, engine: &Arc<Engine>, context: Arc<Context>) -> Result<Ticket> {
        let mut state = self.state.lock();
        let call = state.calls + 1;
        let ticket = engine.submit(context, StreamWork::Record(self.clone(), call))?;
        *state = EventState { calls: call, ticket, time: None, captured: None };
        Ok(ticket)
    }

    /// Begins a recording by a graph. Returns its number.
    pub fn begin(&self) -> u64 {
        let mut state = self.state.lock();
        *state = EventState { calls: state.calls + 1, ticket: state.ticket, time: None, captured: None };
        state.calls
    }

    /// Sets the ticket of the recording with that number.
    pub fn submitted(&self, call: u64, ticket: Ticket) {
        let mut state = self.state.lock();
        if state.calls == call {
            state.ticket = ticket;
        }
    }

    /// Records the event in a capture.
    pub fn record_captured(&self, captured: Captured) {
        self.state.lock().captured = Some(captured);
    }

    /// Marks the recording with that number as complete.
    pub fn happened(&self, call: u64) {
        let mut state = self.state.lock();
        if state.calls == call {
            state.time = Some(Instant::now());
        }
    }

    /// Returns the position in the capture, if the last recording was in a capture.
    pub fn captured(&self) -> Option<Captured> {
        self.state.lock().captured.clone()
    }

    /// Returns the ticket of the last recording; 0 if the event was never recorded. Fails for an
    /// event recorded in a capture, and invalidates that capture.
    pub fn ticket(&self) -> Result<Ticket> {
        let state = self.state.lock();
        if let Some(captured) = &state.captured {
            captured.capture.invalidate("an event recorded in the capture was queried");
            return Err(Error::new(CUresult::CUDA_ERROR_CAPTURED_EVENT, "the event was recorded in a capture"));
        }
        Ok(state.ticket)
    }

    /// Returns the milliseconds from `start` to this event.
    pub fn elapsed_ms(&self, start: &Event) -> Result<f32> {
        let (from, to) = (start.time()?, self.time()?);
        let seconds = match to.checked_duration_since(from) {
            Some(duration) => duration.as_secs_f64(),
            None => -from.duration_since(to).as_secs_f64(),
        };
        Ok((seconds * 1e3) as f32)
    }

    fn time(&self) -> Result<Instant> {
        self.ticket()?;
        let state = self.state.lock();
        if self.flags & CUevent_flags::CU_EVENT_DISABLE_TIMING as u32 != 0 || state.calls == 0 {
            let why = "the event has no time: it was never recorded, or timing is disabled";
            return Err(Error::new(CUresult::CUDA_ERROR_INVALID_HANDLE, why));
        }
        state.time.ok_or_else(Error::not_ready)
    }
}
