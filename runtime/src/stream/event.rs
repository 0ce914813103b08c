//! Places in streams.

use super::Queue;
use crate::cuda::{CudaStream, Mark};
use crate::{Device, Error, Result};
use std::fmt;
use std::time::{Duration, Instant};

/// A place in a stream: over once all is over that was submitted before it.
pub struct Event {
    device: Device,
    at: At,
}

enum At {
    Cpu(Instant),
    Cuda(Mark),
}

impl Event {
    pub(super) fn new(device: &Device, queue: &Queue) -> Result<Event> {
        let at = match queue {
            Queue::Cpu => At::Cpu(Instant::now()),
            Queue::Cuda(cuda, stream) => At::Cuda(cuda.mark(stream)?),
        };
        Ok(Event { device: device.clone(), at })
    }

    /// The device whose stream it is of.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Whether it is over.
    pub fn is_over(&self) -> Result<bool> {
        match &self.at {
            At::Cpu(_) => Ok(true),
            At::Cuda(mark) => mark.is_over(),
        }
    }

    /// Waits until it is over.
    pub fn wait(&self) -> Result<()> {
        match &self.at {
            At::Cpu(_) => Ok(()),
            At::Cuda(mark) => mark.wait(),
        }
    }

    /// The time from `earlier` to this one, for which both are waited: on a GPU by its own clock, in steps of half a microsecond. Both
    /// are of one device. 0 where `earlier` is the later one.
    pub fn since(&self, earlier: &Event) -> Result<Duration> {
        match (&self.at, &earlier.at) {
            (At::Cpu(end), At::Cpu(start)) => Ok(end.saturating_duration_since(*start)),
            (At::Cuda(end), At::Cuda(start)) if self.device.id() == earlier.device.id() => end.since(start),
            _ => Err(Error::OtherDevice {
                what: "the earlier event",
                found: earlier.device.to_string(),
                stream: self.device.to_string(),
            }),
        }
    }

    /// Has what `stream` is given from now on wait.
    pub(super) fn hold(&self, stream: &CudaStream) -> Result<()> {
        match &self.at {
            At::Cpu(_) => Ok(()),
            At::Cuda(mark) => mark.hold(stream),
        }
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Event({})", self.device)
    }
}
