//! Clocks, temperature and power of a device, by NVIDIA's management library.
//!
//! The library, NVML, is part of the driver. The library is loaded when clocks are first requested,
//! and stays loaded. Signatures and codes are those of the
//! [NVML API reference](https://docs.nvidia.com/deploy/nvml-api/).

use libloading::Library;
use serde::Serialize;
use std::ffi::{CStr, CString, c_char, c_uint, c_void};
use std::fmt;
use std::ptr;
use std::sync::OnceLock;

const LIBRARY_NAMES: [&str; 3] = ["libnvidia-ml.so.1", "libnvidia-ml.so", "nvml.dll"];

const SUCCESS: NvmlStatus = 0;
/// The clocks that a device reports.
const MULTIPROCESSOR_CLOCK: c_uint = 1;
const MEMORY_CLOCK: c_uint = 2;
/// The temperature sensor of the chip.
const CHIP_SENSOR: c_uint = 0;

/// The result of a function of the library.
type NvmlStatus = c_uint;
/// A device of the library.
type NvmlHandle = *mut c_void;
/// A function of unknown signature.
type NvmlSymbol = unsafe extern "C" fn();

/// The clocks of a GPU at one moment, with its temperature and power.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct DeviceClocks {
    /// The clock of the multiprocessors in MHz. An idle device lowers its clock.
    pub multiprocessor_mhz: u32,
    /// The highest clock of the multiprocessors in MHz.
    pub max_multiprocessor_mhz: u32,
    /// The clock of the memory in MHz.
    pub memory_mhz: u32,
    /// The temperature of the chip in degrees Celsius, if the device reports it.
    pub celsius: Option<u32>,
    /// The power of the board in milliwatts, if the device reports it.
    pub milliwatts: Option<u32>,
}

impl DeviceClocks {
    /// Returns the clock of the multiprocessors over the highest one; 1 if the latter is unknown.
    #[must_use]
    pub fn share(&self) -> f64 {
        match self.max_multiprocessor_mhz {
            0 => 1.0,
            max => f64::from(self.multiprocessor_mhz) / f64::from(max),
        }
    }
}

/// Formats the clocks as `1200 of 1980 MHz, 84 °C, 250 W`.
impl fmt::Display for DeviceClocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} MHz", self.multiprocessor_mhz, self.max_multiprocessor_mhz)?;
        if let Some(celsius) = self.celsius {
            write!(f, ", {celsius} °C")?;
        }
        self.milliwatts.map_or(Ok(()), |milliwatts| write!(f, ", {:.0} W", f64::from(milliwatts) / 1e3))
    }
}

/// Why the clocks of a device cannot be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClockError {
    /// The device is the CPU.
    #[error("the CPU device has no clocks that NVML reads; open a GPU with Device::cuda")]
    Cpu,
    /// The library is missing.
    #[error("NVML is not found ({}): install the package of NVIDIA's driver that has it", LIBRARY_NAMES.join(", "))]
    NoLibrary,
    /// The library lacks a function.
    #[error("NVML lacks the function {function}: update NVIDIA's driver")]
    #[allow(missing_docs)]
    Lacks { function: &'static str },
    /// The driver does not report where the device is.
    #[error("the CUDA driver does not report the PCI address of the device: {why}")]
    #[allow(missing_docs)]
    Address { why: String },
    /// A function of the library failed.
    #[error("{doing}: NVML returned {code}, {text}")]
    #[allow(missing_docs)]
    Call { doing: String, code: u32, text: String },
}

/// The functions of the library.
pub(crate) struct Nvml {
    error_text: unsafe extern "C" fn(NvmlStatus) -> *const c_char,
    handle: unsafe extern "C" fn(*const c_char, *mut NvmlHandle) -> NvmlStatus,
    clock: unsafe extern "C" fn(NvmlHandle, c_uint, *mut c_uint) -> NvmlStatus,
    max_clock: unsafe extern "C" fn(NvmlHandle, c_uint, *mut c_uint) -> NvmlStatus,
    temperature: unsafe extern "C" fn(NvmlHandle, c_uint, *mut c_uint) -> NvmlStatus,
    power: unsafe extern "C" fn(NvmlHandle, *mut c_uint) -> NvmlStatus,
}

impl Nvml {
    /// Returns the library, which is loaded and initialized once.
    pub fn get() -> Result<&'static Nvml, ClockError> {
        static NVML: OnceLock<Result<Nvml, ClockError>> = OnceLock::new();
        let load = || {
            // SAFETY: loading NVIDIA's library runs its initializers, as intended.
            let library = LIBRARY_NAMES.iter().find_map(|name| unsafe { Library::new(*name) }.ok());
            let library = library.ok_or(ClockError::NoLibrary)?;
            let nvml = Nvml::start(&|name| {
                // SAFETY: a symbol of NVML is a function, which is called with its true signature
                // only.
                unsafe { library.get::<NvmlSymbol>(name) }.ok().map(|symbol| *symbol)
            });
            // The functions are called for as long as the process lives.
            std::mem::forget(library);
            nvml
        };
        NVML.get_or_init(load).as_ref().map_err(Clone::clone)
    }

    /// Resolves the functions, and initializes the library.
    fn start(symbol: &dyn Fn(&CStr) -> Option<NvmlSymbol>) -> Result<Nvml, ClockError> {
        let find =
            |name: &'static CStr| symbol(name).ok_or(ClockError::Lacks { function: name.to_str().unwrap_or_default() });
        // SAFETY: NVML exports these symbols as functions with these signatures, by nvml.h.
        let (init, nvml) = unsafe {
            use std::mem::transmute;
            type OfDevice = unsafe extern "C" fn(NvmlHandle, c_uint, *mut c_uint) -> NvmlStatus;
            let nvml = Nvml {
                error_text: transmute::<NvmlSymbol, unsafe extern "C" fn(NvmlStatus) -> *const c_char>(find(
                    c"nvmlErrorString",
                )?),
                handle: transmute::<NvmlSymbol, unsafe extern "C" fn(*const c_char, *mut NvmlHandle) -> NvmlStatus>(
                    find(c"nvmlDeviceGetHandleByPciBusId_v2")?,
                ),
                clock: transmute::<NvmlSymbol, OfDevice>(find(c"nvmlDeviceGetClockInfo")?),
                max_clock: transmute::<NvmlSymbol, OfDevice>(find(c"nvmlDeviceGetMaxClockInfo")?),
                temperature: transmute::<NvmlSymbol, OfDevice>(find(c"nvmlDeviceGetTemperature")?),
                power: transmute::<NvmlSymbol, unsafe extern "C" fn(NvmlHandle, *mut c_uint) -> NvmlStatus>(find(
                    c"nvmlDeviceGetPowerUsage",
                )?),
            };
            (transmute::<NvmlSymbol, unsafe extern "C" fn() -> NvmlStatus>(find(c"nvmlInit_v2")?), nvml)
        };
        // SAFETY: the function has no arguments, and may be called more than once.
        let code = unsafe { init() };
        nvml.check(code, || "initializing NVML".to_string())?;
        Ok(nvml)
    }

    /// Reads the clocks of the device at a PCI address, such as `00000000:3b:00.0`.
    pub fn clocks(&self, address: &str) -> Result<DeviceClocks, ClockError> {
        let text = CString::new(address).map_err(|e| ClockError::Address { why: e.to_string() })?;
        let mut handle = ptr::null_mut();
        // SAFETY: the text ends with a NUL, and `handle` outlives the call.
        let code = unsafe { (self.handle)(text.as_ptr(), &mut handle) };
        self.check(code, || format!("finding the device at {address}"))?;
        let number = |read: &dyn Fn(*mut c_uint) -> NvmlStatus, what: &str| {
            let mut value = 0;
            self.check(read(&mut value), || format!("reading the {what} of the device at {address}"))?;
            Ok::<u32, ClockError>(value)
        };
        // SAFETY: the handle is NVML's, and each pointer points to a number, in all of these calls.
        let (clock, max_clock, temperature, power) = unsafe {
            (
                |of: c_uint| number(&|value| (self.clock)(handle, of, value), "clock"),
                number(&|value| (self.max_clock)(handle, MULTIPROCESSOR_CLOCK, value), "highest clock"),
                number(&|value| (self.temperature)(handle, CHIP_SENSOR, value), "temperature"),
                number(&|value| (self.power)(handle, value), "power"),
            )
        };
        Ok(DeviceClocks {
            multiprocessor_mhz: clock(MULTIPROCESSOR_CLOCK)?,
            max_multiprocessor_mhz: max_clock?,
            memory_mhz: clock(MEMORY_CLOCK)?,
            // Some boards have no such sensor.
            celsius: temperature.ok(),
            milliwatts: power.ok(),
        })
    }

    fn check(&self, code: NvmlStatus, doing: impl FnOnce() -> String) -> Result<(), ClockError> {
        if code == SUCCESS {
            return Ok(());
        }
        // SAFETY: the function takes any code.
        let text = unsafe { (self.error_text)(code) };
        let text = match text.is_null() {
            true => "an error without a text".to_string(),
            // SAFETY: NVML gives a NUL-terminated string that lives as long as the library.
            false => unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned(),
        };
        Err(ClockError::Call { doing: doing(), code, text })
    }
}

#[cfg(test)]
pub(crate) mod simulated {
    //! A library with one device, whose clock, temperature and power a test sets.

    use super::*;
    use std::cell::Cell;

    /// The address of the simulated device.
    pub(crate) const ADDRESS: &str = "00000000:3b:00.0";
    const NOT_SUPPORTED: NvmlStatus = 3;
    const NOT_FOUND: NvmlStatus = 6;

    thread_local! {
        /// The clock of the multiprocessors, of which 1582 MHz is the highest.
        pub(crate) static CLOCK: Cell<u32> = const { Cell::new(1582) };
        /// The temperature, if the device has a sensor.
        pub(crate) static CELSIUS: Cell<Option<u32>> = const { Cell::new(Some(60)) };
    }

    unsafe extern "C" fn init() -> NvmlStatus {
        SUCCESS
    }

    unsafe extern "C" fn error_text(code: NvmlStatus) -> *const c_char {
        if code == NOT_FOUND { c"Not Found".as_ptr() } else { c"Not Supported".as_ptr() }
    }

    unsafe extern "C" fn handle(address: *const c_char, out: *mut NvmlHandle) -> NvmlStatus {
        // SAFETY: the caller passes a NUL-terminated text.
        if unsafe { CStr::from_ptr(address) }.to_str() != Ok(ADDRESS) {
            return NOT_FOUND;
        }
        // SAFETY: the caller passes a pointer to a handle.
        unsafe { *out = 7 as NvmlHandle };
        SUCCESS
    }

    /// Writes a number of the device with handle 7.
    unsafe fn set(device: NvmlHandle, out: *mut c_uint, value: Option<u32>) -> NvmlStatus {
        let Some(value) = value.filter(|_| device == 7 as NvmlHandle) else { return NOT_SUPPORTED };
        // SAFETY: the caller passes a pointer to a number.
        unsafe { *out = value };
        SUCCESS
    }

    unsafe extern "C" fn clock(device: NvmlHandle, which: c_uint, out: *mut c_uint) -> NvmlStatus {
        let value = match which {
            MULTIPROCESSOR_CLOCK => Some(CLOCK.get()),
            MEMORY_CLOCK => Some(5505),
            _ => None,
        };
        // SAFETY: as the caller promises.
        unsafe { set(device, out, value) }
    }

    unsafe extern "C" fn max_clock(device: NvmlHandle, which: c_uint, out: *mut c_uint) -> NvmlStatus {
        // SAFETY: as the caller promises.
        unsafe { set(device, out, (which == MULTIPROCESSOR_CLOCK).then_some(1582)) }
    }

    unsafe extern "C" fn temperature(device: NvmlHandle, sensor: c_uint, out: *mut c_uint) -> NvmlStatus {
        // SAFETY: as the caller promises.
        unsafe { set(device, out, CELSIUS.get().filter(|_| sensor == CHIP_SENSOR)) }
    }

    unsafe extern "C" fn power(device: NvmlHandle, out: *mut c_uint) -> NvmlStatus {
        // SAFETY: as the caller promises.
        unsafe { set(device, out, Some(249_700)) }
    }

    /// Returns the symbol of a function.
    fn symbol(name: &CStr) -> Option<NvmlSymbol> {
        let function = match name.to_bytes() {
            b"nvmlInit_v2" => init as *const (),
            b"nvmlErrorString" => error_text as *const (),
            b"nvmlDeviceGetHandleByPciBusId_v2" => handle as *const (),
            b"nvmlDeviceGetClockInfo" => clock as *const (),
            b"nvmlDeviceGetMaxClockInfo" => max_clock as *const (),
            b"nvmlDeviceGetTemperature" => temperature as *const (),
            b"nvmlDeviceGetPowerUsage" => power as *const (),
            _ => return None,
        };
        // SAFETY: `Nvml::start` calls a function by its true signature only.
        Some(unsafe { std::mem::transmute::<*const (), NvmlSymbol>(function) })
    }

    /// Returns the simulated library without one of its functions.
    pub(crate) fn without(missing: &str) -> Result<Nvml, ClockError> {
        Nvml::start(&|name| symbol(name).filter(|_| name.to_str() != Ok(missing)))
    }
}

#[cfg(test)]
mod tests {
    use super::simulated::{ADDRESS, CELSIUS, CLOCK, without};
    use super::*;

    #[test]
    fn clocks_are_read_by_the_address_of_the_device() {
        let nvml = without("").unwrap();
        CLOCK.set(1200);
        let clocks = nvml.clocks(ADDRESS).unwrap();
        assert_eq!([clocks.multiprocessor_mhz, clocks.max_multiprocessor_mhz, clocks.memory_mhz], [1200, 1582, 5505]);
        assert_eq!(clocks.to_string(), "1200 of 1582 MHz, 60 °C, 250 W");
        CELSIUS.set(None);
        assert_eq!(nvml.clocks(ADDRESS).unwrap().to_string(), "1200 of 1582 MHz, 250 W");
    }

    #[test]
    fn errors_name_the_call_and_its_reason() {
        let error = without("").unwrap().clocks("00000000:04:00.0").unwrap_err();
        assert_eq!(error.to_string(), "finding the device at 00000000:04:00.0: NVML returned 6, Not Found");
        let missing = "nvmlDeviceGetMaxClockInfo";
        assert_eq!(without(missing).err(), Some(ClockError::Lacks { function: missing }));
    }
}
