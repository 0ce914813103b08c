//! Memory: the device's addresses, its allocations, and copies.
//!
//! Device memory is stored in host memory that is hidden from programs, under separate device
//! addresses. Host-pinned and managed memory has the same address on both sides. One lock guards
//! all bytes of a context, and a kernel holds it while running.

mod addresses;
mod block;
mod space;
mod supply;
mod transfer;

pub use addresses::{Addresses, RANGE};
pub use space::{AllocationKind, Allocations};
pub use supply::Supply;
pub use transfer::{CopyExtent, CopyPlace, CopySide, Fill, FillValue, HostPointer, MemoryCopy};
