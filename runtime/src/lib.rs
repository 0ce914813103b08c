//! Devices, buffers and checked launches for kernel-dsl kernels.
//!
//! ```text
//! Device ─ upload, zeros ─▶ DeviceBuffer ─ &, &mut, view, view_mut ─▶ arguments ─▶ launch ─▶ contract ─▶ CPU | CUDA
//! ```
//!
//! This crate contains no code: it re-exports the crates `runtime-devices`, `runtime-oracle`,
//! `runtime-ptx` and `runtime-testing` under one name.
//!
//! * [`Device`] runs kernels: on an NVIDIA GPU through its driver alone, or on the CPU. There the
//!   oracle ([`interpreter`]) runs the kernel's IR as lowered and reports every faulty access. A
//!   device implements `Launcher`, so a kernel's typed `launch` takes it.
//! * [`Stream`] is an in-order queue of work, concurrent with others; it is a launcher too.
//!   [`Event`] is a point in its work.
//! * [`Graph`] holds many launches, recorded once and replayed by one driver call.
//! * [`DeviceBuffer`] is memory of a device, freed when dropped. [`BufferView`], [`BufferStrided`]
//!   and their `Mut` forms are shaped borrows of it.
//! * Each launch is validated against the kernel's contract (`contract`, over
//!   `kernel_dsl::compiler::launch`) before it runs. A rejected launch touches no argument.
//! * On a GPU, `launch` runs the kernel's checked form. The first violation is returned as
//!   [`Error::Violation`], with a report like the oracle's, and the device stays usable.
//!   `launch_unchecked` runs the kernel's own PTX.
//! * [`ptx`] runs PTX text on the CPU: a second interpreter.
//! * [`Profile`] has the durations of a stream's work, kernel by kernel. With the feature
//!   `tracing`, loads, launches, copies and allocations are spans and events of crate `tracing`
//!   with the target `runtime`.
//! * [`store`] caches compiled kernels on disk.
//! * [`testing`] runs one kernel on all executors and compares them bit for bit; [`doctor`]
//!   describes this machine.
//!
//! # Order and errors
//!
//! Work given to a [`Device`] is complete when the function returns. An upload has arrived, a
//! launch has run, and a launch returns its own errors. Work given to a [`Stream`] is submitted
//! when the function returns, and runs in the order of its stream while the host continues. A
//! violation of a launch is the error of the next wait for the stream.
//!
//! The order between streams follows from the memory that operations use. Results are as if the
//! operations ran in the order of the calls, without explicit synchronization. [`Event`]s order
//! operations without common memory, and measure times.
//!
//! # Faults
//!
//! Every error states the operation, its operands and the device. A GPU is [lost](Device::lost) if
//! a kernel or the hardware has corrupted its context. Every later operation then fails at once
//! with the cause, and the GPU's objects can only be dropped. [`Device::cuda`] opens the GPU again
//! in the same process, if the driver permits it. [`Device::set_watchdog_timeout`] handles kernels
//! that do not end. Work moves to another device only where the program requests it, for example by
//! [`Device::with_cpu_fallback`].
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
//! rank 1 can be cast to elements of another type ([`BufferView::cast`]).

pub use runtime_devices::{
    AnySlot, BufferStrided, BufferStridedMut, BufferView, BufferViewMut, Capability, Choice, ClockError, CudaVersion,
    Device, DeviceBuffer, DeviceClocks, DriverError, Error, Event, Graph, InFlightLaunches, KernelTime, Loss,
    LossCause, MemoryStatistics, Node, PinnedBuffer, Prepared, Profile, ProfiledWork, RecordedLaunches, RecordedMemory,
    Recording, Residency, Result, Slot, SlotMut, Stream, Timed, doctor, store,
};
pub use runtime_oracle as interpreter;
pub use runtime_ptx as ptx;
pub use runtime_testing::{self as testing, register, register_bench};
