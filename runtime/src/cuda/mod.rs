//! The CUDA device, through the driver library alone.
//!
//! `driver` holds the functions of the library and turns their codes into errors; `info` what a device says of itself;
//! `context` a device's primary context and its memory; `module` kernels loaded there, and their launches; `checked` their checked
//! forms; `version` which driver knows which PTX. Only this folder calls the driver.

mod checked;
mod context;
mod driver;
mod info;
mod module;
mod version;

pub(crate) use driver::Driver;
pub use driver::DriverError;
pub use info::DeviceInfo;
pub(crate) use module::{Cuda, ptx};
pub use version::{Capability, CudaVersion};
