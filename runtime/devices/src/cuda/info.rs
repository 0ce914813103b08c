//! Properties of a device, available without a context.

use super::driver::Driver;
use super::version::{Capability, OLDEST_CAPABILITY};
use crate::Error;
use cudarc::driver::sys::{self, CUdevice_attribute as Attribute};
use kernel_dsl::compiler::Target;
use serde::Serialize;
use std::ffi::CStr;
use std::fmt;

/// A CUDA device.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct DeviceInfo {
    /// The device's number, from 0, as the driver counts the devices in `CUDA_VISIBLE_DEVICES`.
    pub ordinal: usize,
    /// The driver's name of the device.
    pub name: String,
    /// Compute capability.
    pub capability: Capability,
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// Global memory in bytes.
    pub memory_bytes: u64,
    /// Boost clock of the multiprocessors in kHz; `None` if the driver does not report it.
    pub clock_khz: Option<u32>,
    /// L2 cache in bytes; `None` if the driver does not report it.
    pub l2_bytes: Option<u32>,
}

impl DeviceInfo {
    /// Returns whether our kernels run on the device.
    pub fn is_supported(&self) -> bool {
        self.capability >= OLDEST_CAPABILITY
    }

    /// Fails with the reason if our kernels do not run on the device.
    pub(crate) fn require_supported(&self) -> Result<(), Error> {
        if self.is_supported() {
            return Ok(());
        }
        Err(Error::UnsupportedDevice {
            ordinal: self.ordinal,
            name: self.name.clone(),
            found: self.capability,
            needed: OLDEST_CAPABILITY,
        })
    }

    /// Refuses PTX for a target that is later than the device, which its driver could not assemble.
    pub(crate) fn require_target(&self, target: Target, instance: &str) -> Result<(), Error> {
        if self.capability >= Capability::of(target) {
            return Ok(());
        }
        Err(Error::TargetTooNew { instance: instance.to_string(), target, device: self.to_string() })
    }
}

impl fmt::Display for DeviceInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cuda:{} ({}, sm_{}{})", self.ordinal, self.name, self.capability.major, self.capability.minor)
    }
}

impl Driver {
    /// Returns the driver's handle of device `ordinal`, or an error if there is no such device.
    pub(super) fn device(&self, ordinal: usize) -> Result<sys::CUdevice, Error> {
        let count = self.device_count()?;
        let Some(number) = i32::try_from(ordinal).ok().filter(|_| ordinal < count) else {
            return Err(Error::NoSuchDevice { ordinal, count });
        };
        let mut device = 0;
        // SAFETY: `device` outlives the call.
        let code = unsafe { (self.device_get)(&mut device, number) };
        self.check(code, || format!("opening CUDA device {ordinal}"))?;
        Ok(device)
    }

    /// Returns the properties of device `ordinal`.
    pub fn device_info(&self, ordinal: usize) -> Result<DeviceInfo, Error> {
        let device = self.device(ordinal)?;
        let querying = |what: &str| format!("querying the {what} of CUDA device {ordinal}");

        let mut name = [0u8; 256];
        // SAFETY: the driver writes at most the given number of bytes, including a NUL.
        let code = unsafe { (self.device_name)(name.as_mut_ptr().cast(), name.len() as i32, device) };
        self.check(code, || querying("name"))?;
        let name = CStr::from_bytes_until_nul(&name).unwrap_or_default().to_string_lossy().into_owned();

        let mut memory = 0;
        // SAFETY: `memory` outlives the call.
        let code = unsafe { (self.device_memory)(&mut memory, device) };
        self.check(code, || querying("memory size"))?;

        let attribute = |attribute: Attribute, what: &str| -> Result<u32, Error> {
            let mut value = 0;
            // SAFETY: `value` outlives the call.
            let code = unsafe { (self.device_attribute)(&mut value, attribute as i32, device) };
            self.check(code, || querying(what))?;
            Ok(value.max(0) as u32)
        };
        Ok(DeviceInfo {
            ordinal,
            name,
            capability: Capability {
                major: attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, "compute capability")?,
                minor: attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, "compute capability")?,
            },
            multiprocessors: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, "multiprocessors")?,
            memory_bytes: memory as u64,
            clock_khz: attribute(Attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE, "clock").ok().filter(|khz| *khz > 0),
            l2_bytes: attribute(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, "L2 cache")
                .ok()
                .filter(|bytes| *bytes > 0),
        })
    }
}

impl Driver {
    /// Returns the PCI address of device `ordinal` as NVML writes it, such as `00000000:3b:00.0`.
    pub fn pci_address(&self, ordinal: usize) -> Result<String, Error> {
        let device = self.device(ordinal)?;
        let attribute = |attribute: Attribute| -> Result<i32, Error> {
            let mut value = 0;
            // SAFETY: `value` outlives the call.
            let code = unsafe { (self.device_attribute)(&mut value, attribute as i32, device) };
            self.check(code, || format!("querying the PCI address of CUDA device {ordinal}"))?;
            Ok(value)
        };
        let domain = attribute(Attribute::CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID)?;
        let bus = attribute(Attribute::CU_DEVICE_ATTRIBUTE_PCI_BUS_ID)?;
        let slot = attribute(Attribute::CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID)?;
        Ok(format!("{domain:08x}:{bus:02x}:{slot:02x}.0"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_device_is_rejected_with_both_names() {
        let device = DeviceInfo {
            ordinal: 0,
            name: "Tesla P40".to_string(),
            capability: Capability::of(Target::SM_61),
            multiprocessors: 30,
            memory_bytes: 24 << 30,
            clock_khz: None,
            l2_bytes: None,
        };
        assert!(device.require_target(Target::SM_61, "saxpy").is_ok());
        assert_eq!(
            device.require_target(Target::SM_80, "reduce::<4>").unwrap_err().to_string(),
            "reduce::<4> is compiled for sm_80, and cuda:0 (Tesla P40, sm_61) is older: launch it on a later device, on \
             the CPU, or compile it for an older target (`#[kernel(target = …)]`)"
        );
    }
}
