//! Devices that run kernels: memory, validated launches, streams and graphs. Crate `runtime`
//! re-exports everything here and documents it.
//!
//! ```text
//! doctor, occupancy, clocks               descriptions of this machine
//! fallback, graph ─▶ stream               recorded launches; queues
//!                                ▼
//! buffer, view, pinned ─▶ device          memory; devices
//!                                ▼
//!                     cpu | cuda          the oracle, or the driver alone
//!                                ▼
//! contract, instance, pool, store         validated launches; compiled kernels on disk
//!                                ▼
//! hazard ─▶ error ─▶ plain data           the order of operations; errors and the data in them
//! ```
//!
//! This crate does not depend on the testing kit. The kit runs kernels through [`executor`].

mod buffer;
mod cache;
mod clocks;
mod contract;
mod cpu;
mod cuda;
mod device;
pub mod doctor;
mod error;
mod fallback;
mod graph;
mod hazard;
mod instance;
mod occupancy;
mod pinned;
mod pool;
mod profile;
mod progress;
mod range_lock;
pub mod store;
mod stream;
mod trace;
mod uninit;
mod view;

/// The parts below [`Device`] with which the testing kit runs an instance. Not part of the
/// interface.
#[doc(hidden)]
pub mod executor {
    pub use crate::buffer::RawBuffer;
    pub use crate::contract::ValidatedArgs;
    pub use crate::cpu::{Executable, LaunchHandler, bytes};
    pub use crate::cuda::ptx;
    pub use crate::device::PoolKind;
    pub use crate::instance::writes;
    pub use crate::view::reach;
}

pub use buffer::DeviceBuffer;
pub use cuda::{Capability, ClockError, CudaVersion, DeviceClocks, DriverError, InFlightLaunches, Loss, LossCause};
pub use device::{Choice, Device};
pub use error::{Error, Result};
pub use graph::{AnySlot, Graph, Node, Recording, Slot, SlotMut};
pub use occupancy::Residency;
pub use pinned::PinnedBuffer;
pub use pool::MemoryStatistics;
pub use profile::{KernelTime, Profile, ProfiledWork, Timed};
pub use stream::{Event, Prepared, RecordedLaunches, RecordedMemory, Stream};
pub use view::{BufferStrided, BufferStridedMut, BufferView, BufferViewMut};
