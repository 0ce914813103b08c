//! Where work goes.

use kernel_dsl::launcher::Launcher;
use runtime::{Device, Error, Stream};

/// Where work is queued, and memory comes from: a device, or a stream of it.
pub trait Queue: Launcher<Error = Error> {
    /// The device that the work runs on.
    fn device(&self) -> &Device;
}

impl Queue for Device {
    fn device(&self) -> &Device {
        self
    }
}

impl Queue for Stream {
    fn device(&self) -> &Device {
        Stream::device(self)
    }
}
