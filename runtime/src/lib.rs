//! Devices, buffers and checked launches for kernel-dsl kernels.
//!
//! ```text
//! Device ─ upload, zeros ─▶ DeviceBuffer ─ &, &mut, view, view_mut ─▶ arguments ─▶ launch ─▶ contract ─▶ CPU | CUDA
//! ```
//!
//! * [`Device`] is where kernels run: an NVIDIA GPU through its driver alone, or the CPU, where the oracle
//!   ([`interpreter`]) runs the kernel's IR as lowered and reports every access that is wrong. It implements
//!   [`Launcher`](kernel_dsl::Launcher), so that a kernel's typed `launch` takes it.
//! * [`Stream`] is work in order beside other work; it launches too. [`Event`] is a place in one.
//! * [`Graph`] is many launches in one, recorded once and replayed by one call of the driver.
//! * [`DeviceBuffer`] is memory of a device, given back when dropped; [`BufferView`], [`BufferStrided`] and their `Mut`s are shaped borrows of it.
//! * Each launch goes through the kernel's contract (`contract`, over `kernel_dsl::compiler::launch`) before
//!   anything runs. What is refused is refused whole: no argument has been touched.
//! * On a GPU, `launch` runs the kernel's checked form: what it finds first comes back as [`Error::Violation`], a report
//!   like the oracle's, and the device goes on. `launch_unchecked` runs the kernel's own PTX.
//! * [`ptx`] runs PTX text on the CPU: a second oracle, which shares nothing with the first.
//! * [`Profile`] says how long the work of a stream took, kernel by kernel. With the feature `tracing`, loads, launches, copies and
//!   allocations are spans and events of that crate, target `runtime`.
//! * [`store`] keeps what was compiled on disk.
//! * [`testing`] runs one kernel on all executors and compares them bit for bit; [`doctor`] says what was found here.
//!
//! # Order and errors
//!
//! Work that is given to a [`Device`] has ended when the function returns: an upload has arrived, a launch has run, and an error that a launch
//! met is that launch's own. Work that is given to a [`Stream`] is submitted when the function returns, and runs while the host goes on, in the order
//! of its stream; what a launch finds is the error of whatever next waits for the stream.
//!
//! What one stream must not overtake of another is known from the memory that both use: no synchronisation is needed for the results to
//! be those of the calls' order, and none can be forgotten. [`Event`]s order what has no memory in common, and tell times.
//!
//! # Faults
//!
//! Every error says what was being done, with what, on which device. A GPU whose context a kernel or the hardware has spoilt is
//! [lost](Device::lost): all that is of it says so at once and why, can be dropped, and [`Device::cuda`] opens it anew in the same process.
//! A kernel that does not end is met by [`Device::set_watchdog_timeout`]. Work is never moved to another device by itself: what becomes of it
//! where a GPU is lost, the program says, by [`Device::with_cpu_fallback`] for one.
//!
//! # Memory
//!
//! A device's memory is kept when buffers are dropped, and handed out again without a call of the driver ([`Device::memory`] tells how it
//! stands). A buffer may be dropped while streams still use it; the next owner's first use waits for that, on the device.
//! [`PinnedBuffer`]s are host memory for copies that run beside other work.
//!
//! Views are borrows: parts of a buffer ([`BufferViewMut::split_at`]) go to different launches, streams and threads at once, and what each
//! does is known of the whole when all of it is used again. A view of numbers can be taken for one of others as large
//! ([`BufferView::cast`]).

mod buffer;
mod cache;
mod contract;
mod cores;
mod cpu;
mod cuda;
mod device;
pub mod doctor;
mod error;
mod fallback;
mod graph;
mod hazard;
pub mod interpreter;
mod number;
mod occupancy;
mod pinned;
mod pool;
mod profile;
pub mod ptx;
mod range_lock;
mod statistics;
pub mod store;
mod stream;
pub mod testing;
mod trace;
mod uninit;
mod view;

/// What [`register!`] names. No part of the interface.
#[doc(hidden)]
pub mod __private {
    pub use inventory;
    pub use kernel_dsl::Kernel;
}

pub use buffer::DeviceBuffer;
pub use cuda::{Capability, Cause, CudaVersion, DriverError, Launched, Loss};
pub use device::{Choice, Device};
pub use error::Error;
pub use graph::{AnySlot, Graph, Node, Recording, Slot, SlotMut};
pub use occupancy::Residency;
pub use pinned::PinnedBuffer;
pub use pool::MemoryStatistics;
pub use profile::{KernelTime, Profile, Timed, Work};
pub use stream::{Event, Prepared, Stream};
pub use view::{BufferStrided, BufferStridedMut, BufferView, BufferViewMut};

/// What the functions here give.
pub type Result<T, E = Error> = std::result::Result<T, E>;
