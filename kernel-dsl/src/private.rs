//! What expansions name beside the public items. No part of the interface.

pub use inventory;
pub use std::borrow::Cow;
pub use std::vec::Vec;

/// An axis of a block or grid is a `usize`.
pub struct Axis {
    /// The launch expression.
    pub blocks_or_threads: usize,
}

/// The size of what `body` returns. Where that is an opaque type, rustc must check the function's body to know it.
pub const fn size_of_body<B>(_body: fn() -> B) -> usize {
    size_of::<B>()
}

/// What `ptx!` gives, where rustc has compiled it.
#[track_caller]
pub fn of_a_device<T>() -> T {
    panic!("`ptx!` runs on a device, and this is the host: launch the kernel on `Device::cpu()`, which interprets it")
}

/// A generic constant of an instance, as the device has it.
pub const fn device_usize(n: usize) -> u32 {
    assert!(n <= u32::MAX as usize, "a `usize` of a kernel has 32 bits: this instance's constant does not fit");
    n as u32
}
