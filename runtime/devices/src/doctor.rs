//! A description, as data, of the driver and the devices of this machine.

use crate::cuda::{CudaVersion, DeviceInfo, Driver};
use crate::{Choice, Device, Error};
use serde::Serialize;

/// A description of the driver and the devices of this machine.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct MachineDescription {
    /// The CUDA driver.
    pub driver: DriverFinding,
    /// The GPUs that the driver reports, supported or not.
    pub devices: Vec<DeviceFinding>,
    /// Threads that the CPU device can run on.
    pub cpu_threads: usize,
    /// The result of [`Device::best`] on this machine.
    pub best: Option<Choice>,
}

/// The CUDA driver.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum DriverFinding {
    /// The driver responds.
    Found {
        /// The version of CUDA that the driver supports.
        cuda: CudaVersion,
        /// The oldest version that suffices.
        needed: CudaVersion,
        /// The version of the kernel module, such as `580.82.07`, on Linux.
        release: Option<String>,
        /// Whether the driver is `cuda-on-cpu`, whose device is the PTX interpreter.
        on_cpu: bool,
    },
    /// The library is absent or unusable, with the reason.
    Unusable { reason: String },
}

/// A GPU.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct DeviceFinding {
    /// The device's properties; `None` if the driver returned an error.
    #[serde(flatten)]
    pub info: Option<DeviceInfo>,
    /// Whether kernels run there.
    pub supported: bool,
    /// Why kernels do not run there; `None` if they do.
    pub problem: Option<String>,
}

/// Examines this machine.
pub fn examine() -> MachineDescription {
    let (driver, devices) = match Driver::open() {
        Ok(driver) => {
            let found = DriverFinding::Found {
                cuda: driver.version(),
                needed: CudaVersion::OLDEST,
                release: driver_release(),
                on_cpu: driver.is_on_cpu(),
            };
            let count = driver.device_count().unwrap_or(0);
            (found, (0..count).map(|ordinal| device(driver.device_info(ordinal))).collect())
        }
        Err(e) => (DriverFinding::Unusable { reason: e.to_string() }, Vec::new()),
    };
    let cpu_threads = std::thread::available_parallelism().map_or(1, usize::from);
    let best = Device::choose().ok().and_then(|device| device.choice().cloned());
    MachineDescription { driver, devices, cpu_threads, best }
}

fn device(info: Result<DeviceInfo, Error>) -> DeviceFinding {
    let problem = match &info {
        Ok(info) => info.require_supported().err(),
        Err(_) => None,
    };
    match info {
        Ok(info) => {
            DeviceFinding { supported: problem.is_none(), problem: problem.map(|e| e.to_string()), info: Some(info) }
        }
        Err(e) => DeviceFinding { info: None, supported: false, problem: Some(e.to_string()) },
    }
}

/// Returns the version of NVIDIA's kernel module, if the system reports it.
fn driver_release() -> Option<String> {
    release(&std::fs::read_to_string("/proc/driver/nvidia/version").unwrap_or_default())
}

/// Returns the version in the text of `/proc/driver/nvidia/version`: the first word that consists
/// of digits and dots.
fn release(text: &str) -> Option<String> {
    let is_release = |word: &&str| word.contains('.') && word.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    text.lines().next()?.split_whitespace().find(is_release).map(str::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_release_is_read_from_the_kernels_text() {
        // First lines as NVIDIA's proprietary and open kernel modules write them.
        let proprietary =
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12 19:39:15 UTC 2024\nGCC";
        let open = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.82.07  Release Build  (x)\n";
        assert_eq!(release(proprietary).as_deref(), Some("535.183.01"));
        assert_eq!(release(open).as_deref(), Some("580.82.07"));
        assert_eq!(release(""), None);
    }
}
