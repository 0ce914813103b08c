//! What can be told of a kernel without running it.

pub mod lanes;
pub mod memory;
pub mod mix;
pub mod occupancy;
pub mod slow;
