//! The CUDA device, through the driver library alone.
//!
//! `driver` holds the functions of the library and turns their codes into errors; `info` what a device says of itself;
//! `context` a device's context and its memory; `loss` how one is lost, `in_flight` by which launches; `stream` the streams there, and what orders them; `mark` their events; `module`
//! kernels loaded there; `launch` their launches; `graph` many of these in one; `record` what checked launches leave; `operation` what a lane does, `timeline` how long, `nvtx` for NVIDIA's profilers; `gpu` puts these together; `version` which
//! driver knows which PTX. Only this folder calls the driver.

mod context;
mod driver;
mod gpu;
mod graph;
mod in_flight;
mod info;
mod launch;
mod loss;
mod mark;
mod module;
mod nvtx;
mod operation;
mod record;
mod stream;
mod timeline;
mod version;

pub(crate) use driver::Driver;
pub use driver::DriverError;
pub(crate) use gpu::{Cuda, Variant};
pub(crate) use graph::{Part, Replay};
pub use in_flight::Launched;
pub use info::DeviceInfo;
pub(crate) use launch::Ready;
pub use loss::{Cause, Loss};
pub(crate) use mark::Mark;
pub(crate) use module::ptx;
pub(crate) use operation::Operation;
pub(crate) use stream::CudaStream;
pub use version::{Capability, CudaVersion};
