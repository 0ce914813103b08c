//! Devices that are lost: why, and what was under way.

use super::driver::DriverError;
use super::in_flight::Launched;
use std::fmt;
use std::time::Duration;

/// Why a device can no longer be used. Nothing that is of it works from then on but being dropped.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Loss {
    pub(super) device: String,
    pub(super) cause: Cause,
    pub(super) in_flight: Vec<Launched>,
}

/// What a device was lost by.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Cause {
    /// The driver gives this error to every call from then on: a kernel has trapped or left its memory, or the hardware has failed.
    Driver(DriverError),
    /// Work took longer than [`Device::set_watchdog_timeout`](crate::Device::set_watchdog_timeout) allows. No function of the driver's ends a kernel.
    #[allow(missing_docs)]
    TimeLimit { waiting_for: String, limit: Duration },
}

impl Loss {
    /// What it was lost by.
    pub fn cause(&self) -> &Cause {
        &self.cause
    }

    /// What had been launched and not been waited for, the oldest first on each stream: one of these did it, if a kernel did.
    pub fn in_flight(&self) -> &[Launched] {
        &self.in_flight
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Loss { device, cause, in_flight } = self;
        write!(f, "{device} is lost: {cause}")?;
        for (n, launched) in in_flight.iter().enumerate() {
            let before = if n == 0 { "; under way: " } else { ", " };
            write!(f, "{before}{launched}")?;
        }
        match cause {
            Cause::Driver(_) => {
                f.write_str("; what is of it can only be dropped, and Device::cuda makes a context anew")
            }
            Cause::TimeLimit { .. } => f.write_str(
                "; it cannot be ended but with the process, and takes its share of the GPU until then; what is of the device \
                 can only be dropped, and Device::cuda makes a context anew",
            ),
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::Driver(error) => error.fmt(f),
            Cause::TimeLimit { waiting_for, limit } => {
                write!(f, "{waiting_for} is not over after {limit:?}, the limit that was set")
            }
        }
    }
}

impl std::error::Error for Loss {}
