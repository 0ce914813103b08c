//! Devices, buffers and checked launches for kernel-dsl kernels.
//!
//! ```text
//! Device ─ upload, zeros ─▶ DeviceBuffer ─ &, &mut, view, view_mut ─▶ arguments ─▶ launch ─▶ contract ─▶ CPU | CUDA
//! ```
//!
//! * [`Device`] runs kernels: an NVIDIA GPU through its driver alone, or the CPU, where the oracle
//!   ([`interpreter`]) runs the kernel's IR as lowered and reports every faulty access. It
//!   implements [`Launcher`](kernel_dsl::Launcher), so a kernel's typed `launch` takes it.
//! * [`Stream`] is an in-order queue of work, concurrent with others; it is a launcher too.
//!   [`Event`] is a point in its work.
//! * [`Graph`] is many launches in one, recorded once and replayed by one driver call.
//! * [`DeviceBuffer`] is memory of a device, freed when dropped. [`BufferView`], [`BufferStrided`]
//!   and their `Mut` forms are shaped borrows of it.
//! * Each launch is validated against the kernel's contract (`contract`, over
//!   `kernel_dsl::compiler::launch`) before it runs. A rejected launch touches no argument.
//! * On a GPU, `launch` runs the kernel's checked form: its first violation is returned as
//!   [`Error::Violation`], a report like the oracle's, and the device stays usable.
//!   `launch_unchecked` runs the kernel's own PTX.
//! * [`ptx`] runs PTX text on the CPU: a second interpreter.
//! * [`Profile`] has the durations of a stream's work, kernel by kernel. With the feature
//!   `tracing`, loads, launches, copies and allocations are spans and events of that crate, target
//!   `runtime`.
//! * [`store`] caches compiled kernels on disk.
//! * [`testing`] runs one kernel on all executors and compares them bit for bit; [`doctor`]
//!   describes this machine.
//!
//! # Order and errors
//!
//! Work given to a [`Device`] is complete when the function returns: an upload has arrived, a
//! launch has run, and its errors are returned by the launch itself. Work given to a [`Stream`] is
//! submitted when the function returns, and runs in the order of its stream while the host
//! continues. A violation of a launch is the error of the next wait for the stream.
//!
//! The order between streams follows from the memory that operations use. Results are those of the
//! order of the calls, without explicit synchronization. [`Event`]s order operations without common
//! memory, and measure times.
//!
//! # Faults
//!
//! Every error states the operation, its operands and the device. A GPU whose context a kernel or
//! the hardware has corrupted is [lost](Device::lost): every later operation fails at once with the
//! cause, its objects can be dropped, and [`Device::cuda`] opens it again in the same process.
//! [`Device::set_watchdog_timeout`] handles kernels that do not end. Work moves to another device
//! only where the program requests it, for example by [`Device::with_cpu_fallback`].
//!
//! # Memory
//!
//! Memory of dropped buffers is cached and reused without a driver call; [`Device::memory`] returns
//! statistics. A buffer may be dropped while streams still use it; the next owner's first use waits
//! for them on the device. [`PinnedBuffer`]s are host memory for copies that run concurrently with
//! other work.
//!
//! Views are borrows. Parts of a buffer ([`BufferViewMut::split_at`]) can go to different launches,
//! streams and threads at once. A later use of the whole buffer waits for all of them. A view of
//! numbers can be cast to another type of equal size ([`BufferView::cast`]).

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

/// Items that [`register!`] names. Not part of the interface.
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

/// `Result` with [`Error`] as its default error type.
pub type Result<T, E = Error> = std::result::Result<T, E>;
