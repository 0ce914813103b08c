//! Fallback to the CPU if a GPU is lost.

use crate::trace::{enabled, event};
use crate::{Device, Error, Result};

impl Device {
    /// Runs `work` on this device. If the device is [lost](Device::lost) meanwhile, runs `work`
    /// again from its beginning on the CPU. No other function moves work to another device.
    ///
    /// `work` runs at most twice, and must create its buffers on the device that it receives.
    /// Buffers and streams from outside belong to the lost device, and the CPU rejects them.
    /// Changes to host memory before the loss remain visible. The CPU is an interpreter that checks
    /// everything: correct and slow.
    ///
    /// Each fallback is logged: as a `tracing` warning if that feature is on and a subscriber is
    /// enabled, otherwise on stderr. `work` can test whether its device
    /// [is the CPU](Device::is_cpu).
    ///
    /// # Errors
    /// Returns errors of `work` other than the loss of this device. Rejected arguments, violations
    /// and lack of memory are not a reason to run elsewhere.
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
            // Only a loss of this device counts, not of another device that the work uses.
            Err(Error::Lost(loss)) if self.lost() == Some(&*loss) => loss,
            other => return other,
        };
        let cpu = Device::cpu();
        event!(WARN, %loss, device = %cpu, "fallback: work restarts on another device");
        if !enabled!(WARN) {
            eprintln!("kernel-dsl: work restarts on {cpu}: {loss}");
        }
        work(&cpu)
    }
}
