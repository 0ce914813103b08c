//! Events around the operations of a stream, for a profile or a time limit.
//!
//! A stream with neither a profile nor a time limit has no events.

use super::context::Context;
use super::event::is_complete;
use super::operation::StreamOperation;
use crate::profile::{ProfiledWork, Timed};
use crate::{Error, Result};
use cudarc::driver::sys;
use std::collections::VecDeque;
use std::ptr;
use std::time::Duration;

/// The largest number of operations with events. A further operation waits for the oldest.
const MAX_STEPS: usize = 512;

/// The operations whose completion the host has not observed, with an event after each.
#[derive(Default)]
pub(super) struct Timeline {
    steps: VecDeque<TimedWork>,
    /// Unused events.
    spare: Vec<sys::CUevent>,
    profile: Option<Profiling>,
}

// SAFETY: event handles may be used from any thread; the timeline is used under its lock.
unsafe impl Send for Timeline {}

/// An operation with the events around it.
struct TimedWork {
    what: ProfiledWork,
    /// The event before the operation, if the stream is profiled.
    start: Option<sys::CUevent>,
    end: sys::CUevent,
}

/// A profile that is being recorded.
struct Profiling {
    /// The origin of all times.
    base: sys::CUevent,
    done: Vec<Timed>,
}

impl Timeline {
    /// Returns whether there is no room for one more operation.
    pub fn is_full(&self) -> bool {
        self.steps.len() >= MAX_STEPS
    }

    pub fn is_profiling(&self) -> bool {
        self.profile.is_some()
    }

    /// Starts timing the work submitted to the stream.
    pub fn start_profile(&mut self, context: &Context, stream: sys::CUstream) -> Result<()> {
        self.end_profile(context)?;
        let base = self.record(context, stream)?;
        self.profile = Some(Profiling { base, done: Vec::new() });
        Ok(())
    }

    /// Returns the timings of the operations, all of which are complete.
    pub fn end_profile(&mut self, context: &Context) -> Result<Vec<Timed>> {
        self.advance(context)?;
        Ok(self.profile.take().map_or_else(Vec::new, |profile| {
            self.spare.push(profile.base);
            profile.done
        }))
    }

    /// Records the start of an operation.
    pub fn record_start(&mut self, context: &Context, stream: sys::CUstream) -> Result<Option<sys::CUevent>> {
        if self.is_profiling() { self.record(context, stream).map(Some) } else { Ok(None) }
    }

    /// Records the end of an operation. `start` is the result of `record_start`.
    pub fn record_end(
        &mut self,
        context: &Context,
        stream: sys::CUstream,
        start: Option<sys::CUevent>,
        operation: StreamOperation<'_>,
    ) -> Result<()> {
        match self.record(context, stream) {
            Ok(end) => {
                self.steps.push_back(TimedWork { what: ProfiledWork::of(operation), start, end });
                Ok(())
            }
            Err(why) => {
                self.spare.extend(start);
                Err(why)
            }
        }
    }

    /// Takes back the result of `record_start` for an operation that failed to start.
    pub fn take_back(&mut self, start: Option<sys::CUevent>) {
        self.spare.extend(start);
    }

    /// Removes completed operations, and returns their number.
    pub fn advance(&mut self, context: &Context) -> Result<usize> {
        let mut over = 0;
        while let Some(step) = self.steps.front() {
            // SAFETY: the event is alive.
            if !unsafe { is_complete(context, step.end)? } {
                break;
            }
            let timed = match (&self.profile, step.start) {
                (Some(profile), Some(start)) => {
                    let (from, to) =
                        (time_between(context, profile.base, start)?, time_between(context, profile.base, step.end)?);
                    Some(Timed { work: step.what.clone(), start: from, time: to.saturating_sub(from) })
                }
                _ => None,
            };
            if let (Some(profile), Some(timed)) = (&mut self.profile, timed) {
                profile.done.push(timed);
            }
            if let Some(step) = self.steps.pop_front() {
                self.spare.push(step.end);
                self.spare.extend(step.start);
            }
            over += 1;
        }
        Ok(over)
    }

    /// Returns the stream's current work: the oldest operation that is not complete.
    pub fn current(&self) -> Option<String> {
        self.steps.front().map(|step| step.what.to_string())
    }

    fn record(&mut self, context: &Context, stream: sys::CUstream) -> Result<sys::CUevent> {
        let event = match self.spare.pop() {
            Some(event) => event,
            None => {
                let mut event = ptr::null_mut();
                // SAFETY: `event` outlives the call.
                context.run(|| "making an event".into(), |driver| unsafe { (driver.event_create)(&mut event, 0) })?;
                event
            }
        };
        let recorded = context.run(
            || "recording an event".into(),
            // SAFETY: event and stream are alive.
            |driver| unsafe { (driver.event_record)(event, stream) },
        );
        recorded.map(|()| event).inspect_err(|_: &Error| self.spare.push(event))
    }

    /// Destroys all events.
    pub fn end(&mut self, context: &Context) {
        let steps = self.steps.drain(..).flat_map(|step| [Some(step.end), step.start]);
        let base = self.profile.take().map(|profile| profile.base);
        for event in self.spare.drain(..).chain(steps.flatten()).chain(base) {
            // A failure here is the result of an earlier operation. SAFETY: created in `record`,
            // and no other code has it.
            let _ = context.run(|| "ending an event".into(), |driver| unsafe { (driver.event_destroy)(event) });
        }
    }
}

/// Returns the time between two completed events.
fn time_between(context: &Context, from: sys::CUevent, to: sys::CUevent) -> Result<Duration> {
    let mut milliseconds = 0.0;
    context.run(
        || "measuring the time between two events".into(),
        // SAFETY: both events are alive; `milliseconds` outlives the call.
        |driver| unsafe { (driver.event_elapsed)(&mut milliseconds, from, to) },
    )?;
    Ok(Duration::from_secs_f64(f64::from(milliseconds.max(0.0)) / 1e3))
}
