//! The CUDA device, through the driver library alone.
//!
//! - `driver`, `driver_error`: the functions of the library and their errors; `version`: CUDA, PTX
//!   and hardware versions.
//! - `info`: properties of a device; `context`: a device's context and its memory; `gpu`: an open
//!   device.
//! - `stream`: the driver's streams and their order; `event`: events; `timeline`: durations.
//! - `module`: loaded kernels; `launch`: their launches; `graph`: many launches in one.
//! - `record`: violations of checked launches; `loss`, `in_flight`: lost devices.
//! - `operation`, `nvtx`: descriptions for errors and profilers; `nvml`: clocks.
//!
//! Only this folder calls the driver.

mod context;
mod driver;
mod driver_error;
mod event;
mod gpu;
mod graph;
mod in_flight;
mod info;
mod launch;
mod loss;
mod module;
mod nvml;
mod nvtx;
mod operation;
mod record;
mod stream;
mod timeline;
mod version;

pub(crate) use driver::Driver;
pub use driver_error::DriverError;
pub(crate) use event::CudaEvent;
pub(crate) use gpu::Cuda;
pub(crate) use graph::{PendingLaunch, Replay};
pub use in_flight::InFlightLaunches;
pub use info::DeviceInfo;
pub(crate) use launch::{DriverLaunch, Ready};
pub use loss::{Loss, LossCause};
pub(crate) use module::LoadedEntry;
pub use module::ptx;
pub(crate) use nvml::Nvml;
#[cfg(test)]
pub(crate) use nvml::simulated as simulated_nvml;
pub use nvml::{ClockError, DeviceClocks};
pub(crate) use operation::StreamOperation;
pub(crate) use stream::CudaStream;
pub use version::{Capability, CudaVersion};
