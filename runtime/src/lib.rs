//! Devices, buffers and checked launches for kernel-dsl kernels.
//!
//! ```text
//! Device ─ upload, zeros ─▶ DeviceBuffer ─ &, &mut, view, view_mut ─▶ arguments ─▶ launch ─▶ contract ─▶ CPU | CUDA
//! ```
//!
//! * [`Device`] is where kernels run: an NVIDIA GPU through its driver alone, or the CPU, where the oracle
//!   ([`interpreter`]) runs the kernel's IR as lowered and reports every access that is wrong. It implements
//!   [`Launcher`](kernel_dsl::Launcher), so that a kernel's typed `launch` takes it.
//! * [`DeviceBuffer`] is memory of a device, freed when dropped; [`BufferView`], [`BufferStrided`] and their `Mut`s are shaped borrows of it.
//! * Each launch goes through the kernel's contract (`contract`, over `kernel_dsl::compiler::launch`) before
//!   anything runs. What is refused is refused whole: no argument has been touched.
//! * On a GPU, `launch` runs the kernel's checked form: what it finds first comes back as [`Error::Violation`], a report
//!   like the oracle's, and the device goes on. `launch_unchecked` runs the kernel's own PTX.
//! * [`ptx`] runs PTX text on the CPU: a second oracle, which shares nothing with the first.
//! * [`testing`] runs one kernel on all executors and compares them bit for bit; [`doctor`] says what was found here.
//!
//! # Order and errors
//!
//! Every operation has ended when its function returns: an upload has arrived, a launch has run, and an error that a launch
//! met is that launch's own.

mod buffer;
mod cache;
mod contract;
mod cores;
mod cpu;
mod cuda;
mod device;
pub mod doctor;
mod error;
pub mod interpreter;
mod number;
pub mod ptx;
pub mod testing;
mod view;

/// What [`register!`] names. No part of the interface.
#[doc(hidden)]
pub mod __private {
    pub use inventory;
    pub use kernel_dsl::Kernel;
}

pub use buffer::DeviceBuffer;
pub use cuda::{Capability, CudaVersion, DriverError};
pub use device::{Choice, Device};
pub use error::Error;
pub use view::{BufferStrided, BufferStridedMut, BufferView, BufferViewMut};

/// What the functions here give.
pub type Result<T, E = Error> = std::result::Result<T, E>;
