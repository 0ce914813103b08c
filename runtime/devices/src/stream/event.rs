//! Points in the work of a stream.

use super::OperationQueue;
use crate::cuda::{CudaEvent, CudaStream};
use crate::{Device, Error, Result};
use std::fmt;
use std::time::{Duration, Instant};

/// A point in the work of a stream, complete when all work submitted before it is complete.
pub struct Event {
    device: Device,
    at: EventTime,
}

/// The time of an event. On the CPU the event is complete when it is recorded.
enum EventTime {
    Cpu(Instant),
    Cuda(CudaEvent),
}

impl Event {
    pub(super) fn new(device: &Device, queue: &OperationQueue) -> Result<Event> {
        let at = match queue {
            OperationQueue::Cpu => EventTime::Cpu(Instant::now()),
            OperationQueue::Cuda(cuda, stream) => EventTime::Cuda(cuda.record_event(stream)?),
        };
        Ok(Event { device: device.clone(), at })
    }

    /// Returns the device of the stream.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Returns whether the work before the event is complete.
    ///
    /// # Errors
    /// If the device is lost.
    pub fn is_complete(&self) -> Result<bool> {
        match &self.at {
            EventTime::Cpu(_) => Ok(true),
            EventTime::Cuda(event) => event.is_complete(),
        }
    }

    /// Waits on the host until the event is complete. Only [`Stream::wait`](super::Stream::wait)
    /// returns violations.
    ///
    /// # Errors
    /// If the device is lost.
    pub fn wait(&self) -> Result<()> {
        match &self.at {
            EventTime::Cpu(_) => Ok(()),
            EventTime::Cuda(event) => event.wait(),
        }
    }

    /// Waits for both events, and returns the time from `earlier` to this event. On a GPU the time
    /// is measured by the GPU's clock, in steps of half a microsecond. Returns 0 if `earlier` is
    /// the later one.
    ///
    /// # Errors
    /// If the events belong to different devices, or the device is lost.
    pub fn duration_since(&self, earlier: &Event) -> Result<Duration> {
        match (&self.at, &earlier.at) {
            (EventTime::Cpu(end), EventTime::Cpu(start)) => Ok(end.saturating_duration_since(*start)),
            (EventTime::Cuda(end), EventTime::Cuda(start)) if self.device.id() == earlier.device.id() => {
                end.duration_since(start)
            }
            _ => Err(Error::OtherDevice {
                item: "the earlier event",
                found: earlier.device.to_string(),
                stream: self.device.to_string(),
            }),
        }
    }

    /// Makes later work of `stream` wait for the event.
    pub(super) fn delay(&self, stream: &CudaStream) -> Result<()> {
        match &self.at {
            EventTime::Cpu(_) => Ok(()),
            EventTime::Cuda(event) => event.delay(stream),
        }
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Event({})", self.device)
    }
}
