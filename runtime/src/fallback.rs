//! Work that goes on on the CPU where its GPU is lost, if one asks for it.

use crate::trace::{event, hears};
use crate::{Device, Error, Result};

impl Device {
    /// What `work` gives on this device; where the device is [lost](Device::lost) on the way, what it gives on the CPU, from its
    /// beginning. Nothing else ever moves work to another device.
    ///
    /// `work` is run twice at most: what it makes, it makes of the device that it is given. What is of the lost device is gone, so that buffers
    /// and streams from outside are refused on the CPU; what it has done to memory of the host before the loss, it meets. The CPU is an
    /// interpreter that checks all that a kernel does: right and slow.
    ///
    /// It is said each time: to subscribers of `tracing` as a warning, where the crate has that feature and somebody listens, else in a line on
    /// stderr. `work` can ask its device whether it [is the CPU](Device::is_cpu).
    ///
    /// # Errors
    /// Those of `work` other than the loss of this device, which are no reason to go on elsewhere: what is refused, found by checks or too
    /// large here is so there.
    ///
    /// ```
    /// # fn main() -> runtime::Result<()> {
    /// let device = runtime::Device::choose()?;
    /// let data = device.with_cpu_fallback(|device| device.upload(&[1.0f32, 2.0])?.download())?;
    /// assert_eq!(data, [1.0, 2.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_cpu_fallback<T>(&self, mut work: impl FnMut(&Device) -> Result<T>) -> Result<T> {
        let loss = match work(self) {
            // Of this device, and not of another that the work has to do with.
            Err(Error::Lost(loss)) if self.lost() == Some(&*loss) => loss,
            other => return other,
        };
        let cpu = Device::cpu();
        event!(WARN, %loss, device = %cpu, "fallback: work begins anew on another device");
        if !hears!(WARN) {
            eprintln!("kernel-dsl: work begins anew on {cpu}: {loss}");
        }
        work(&cpu)
    }
}
