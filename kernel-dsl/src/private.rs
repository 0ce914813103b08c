//! What expansions name beside the public items. No part of the interface.

pub use inventory;

/// An axis of a block or grid is a `usize`.
pub fn axis(_: usize) {}

/// A condition of `#[requires(…)]` is a `bool`.
pub fn condition(_: bool) {}

/// Two functions that are one: the type of a function item is the function's own.
pub fn same<F: Copy>(_: F, _: F) {}

/// The size of what `body` returns. Where that is an opaque type, rustc must check the function's body to know it.
pub const fn size_of_body<B>(_body: fn() -> B) -> usize {
    size_of::<B>()
}

/// A generic constant of an instance, as the device has it.
pub const fn device_usize(n: usize) -> u32 {
    assert!(n <= u32::MAX as usize, "a `usize` of a kernel has 32 bits: this instance's constant does not fit");
    n as u32
}
