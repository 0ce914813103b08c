//! Lost devices: the cause, and the launches in flight.

use super::driver_error::DriverError;
use super::in_flight::InFlightLaunches;
use std::fmt;
use std::time::Duration;

/// The reason why a device can no longer be used. The device's objects can only be dropped.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Loss {
    pub(super) device: String,
    pub(super) cause: LossCause,
    pub(super) in_flight: Vec<InFlightLaunches>,
}

/// The cause of a loss.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum LossCause {
    /// The driver returns this error to every later call: a kernel has trapped or accessed memory
    /// outside its buffers, or the hardware has failed.
    Driver(DriverError),
    /// Work took longer than [`Device::set_watchdog_timeout`](crate::Device::set_watchdog_timeout)
    /// allows. No driver function ends a kernel.
    #[allow(missing_docs)]
    TimeLimit { waiting_for: String, limit: Duration },
}

impl Loss {
    /// Returns the cause.
    pub fn cause(&self) -> &LossCause {
        &self.cause
    }

    /// Returns the launches that no wait has covered, the oldest first on each stream. If a kernel
    /// caused the loss, it is one of these.
    pub fn in_flight(&self) -> &[InFlightLaunches] {
        &self.in_flight
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Loss { device, cause, in_flight } = self;
        write!(f, "{device} is lost: {cause}")?;
        for (n, launched) in in_flight.iter().enumerate() {
            let before = if n == 0 { "; in flight: " } else { ", " };
            write!(f, "{before}{launched}")?;
        }
        match cause {
            LossCause::Driver(_) => f.write_str("; its objects can only be dropped; Device::cuda opens a new context"),
            LossCause::TimeLimit { .. } => f.write_str(
                "; the work continues to use the GPU until the process ends; the device's objects \
                 can only be dropped; Device::cuda opens a new context",
            ),
        }
    }
}

impl fmt::Display for LossCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LossCause::Driver(error) => error.fmt(f),
            LossCause::TimeLimit { waiting_for, limit } => {
                write!(f, "{waiting_for} did not complete within the time limit of {limit:?}")
            }
        }
    }
}

impl std::error::Error for Loss {}
