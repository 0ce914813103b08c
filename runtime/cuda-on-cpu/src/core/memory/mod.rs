//! Memory: the device's addresses, what is allocated there, and how bytes move.
//!
//! A device's memory lies in host memory that no program sees, under addresses of its own. Host-pinned and managed memory
//! has one address for both. The bytes of a context are behind one lock, which a kernel holds while it runs.

mod addresses;
mod block;
mod space;
mod supply;
mod transfer;

pub use addresses::{Addresses, RANGE};
pub use space::{Kind, Space};
pub use supply::Supply;
pub use transfer::{Copy, Extent, Fill, HostPointer, Place, Side, Value};
