//! A choice by the measured clock of a device.

use crate::Device;
use crate::cuda::{ClockError, DeviceClocks, Nvml};
use crate::device::Backend;
use crate::trace::{enabled, event};

impl Device {
    /// Reads the clocks, the temperature and the power of the GPU, by NVIDIA's management library
    /// NVML.
    ///
    /// # Errors
    /// If this is the CPU, if NVML is missing, or if NVML does not know the device, as is the case
    /// with `cuda-on-cpu`.
    pub fn clocks(&self) -> Result<DeviceClocks, ClockError> {
        let Backend::Cuda(cuda) = self.backend() else { return Err(ClockError::Cpu) };
        let address = cuda.pci_address().map_err(|e| ClockError::Address { why: e.to_string() })?;
        Nvml::get()?.clocks(&address)
    }

    /// Returns `throttled` if the clock of the multiprocessors is below `least_share` of the
    /// highest one, and otherwise `usual`: for example one of two tables of measured plans. A GPU
    /// lowers its clock if it is hot, at the limit of its power, or idle. Therefore read the clock
    /// under load. No other function of the library chooses by the clock.
    ///
    /// The choice and its reason are logged: as a `tracing` event if that feature is on and a
    /// subscriber is enabled, otherwise on stderr. If the clock cannot be read, the choice is
    /// `usual`.
    ///
    /// ```
    /// # fn main() -> runtime::Result<()> {
    /// let device = runtime::Device::cpu();
    /// // The CPU has no clocks that NVML reads.
    /// assert_eq!(device.choose_by_clock(0.8, "usual", "throttled"), "usual");
    /// # Ok(()) }
    /// ```
    pub fn choose_by_clock<T>(&self, least_share: f64, usual: T, throttled: T) -> T {
        let (is_throttled, reason) = judged(self.clocks(), least_share);
        event!(INFO, device = %self, is_throttled, reason = %reason, "chosen by the clock");
        if !enabled!(INFO) {
            let choice = if is_throttled { "throttled" } else { "usual" };
            eprintln!("kernel-dsl: the {choice} choice on {self}: {reason}");
        }
        if is_throttled { throttled } else { usual }
    }
}

/// Returns whether the clock is below a share of the highest one, and the reason.
fn judged(clocks: Result<DeviceClocks, ClockError>, least_share: f64) -> (bool, String) {
    match clocks {
        Ok(clocks) => (clocks.share() < least_share, clocks.to_string()),
        Err(why) => (false, format!("the clock is unknown: {why}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::simulated_nvml::{ADDRESS, CLOCK, without};

    #[test]
    fn a_throttled_device_is_recognized_until_its_clock_rises() {
        let nvml = without("").unwrap();
        for (mhz, expected) in [(1582, false), (1300, false), (1200, true), (0, true), (1582, false)] {
            CLOCK.set(mhz);
            let (is_throttled, reason) = judged(nvml.clocks(ADDRESS), 0.8);
            assert_eq!(is_throttled, expected, "{mhz}");
            assert!(reason.starts_with(&format!("{mhz} of 1582 MHz")), "{reason}");
        }
    }

    #[test]
    fn an_unknown_clock_is_the_usual_case() {
        let (is_throttled, reason) = judged(Device::cpu().clocks(), 0.8);
        assert!(!is_throttled);
        assert_eq!(
            reason,
            "the clock is unknown: the CPU device has no clocks that NVML reads; open a GPU with Device::cuda"
        );
        assert_eq!(Device::cpu().choose_by_clock(0.8, 1, 2), 1);
    }
}
