//! Items that expansions name in addition to the public ones. Not part of the interface.

pub use crate::log::log;
pub use inventory;
pub use std::borrow::Cow;
pub use std::vec::Vec;

/// A field that makes rustc check that the extent of a block or grid along an axis is a `usize`.
pub struct Axis {
    /// The launch expression.
    pub blocks_or_threads: usize,
}

/// Takes the name of a callee in the chain of a device item, so that its import is no error.
pub const CALLEE_NAME: () = ();

/// Returns the size of the type that `body` returns. If that type is opaque, rustc must check the
/// function's body to know the size.
pub const fn size_of_body<B>(_body: fn() -> B) -> usize {
    size_of::<B>()
}

/// The stand-in for the generic type parameter at `POSITION`, without values and impls.
pub struct Any<'any, const POSITION: usize>(std::marker::PhantomData<&'any ()>);

/// Panics. `ptx!` expands to a call of this function in code that rustc compiles for the host.
#[track_caller]
pub fn ptx_on_host<T>() -> T {
    panic!("`ptx!` needs a device: launch the kernel on `Device::cpu()`, which interprets PTX")
}

/// Converts a generic constant of an instance to the device's 32-bit `usize`.
pub const fn device_usize(n: usize) -> u32 {
    assert!(n <= u32::MAX as usize, "`usize` has 32 bits on the device: this instance's constant does not fit");
    n as u32
}

/// Replaces the macro of a callee that belongs to the host, in the chain of a kernel. The end of
/// the chain reports the callee.
#[doc(hidden)]
#[macro_export]
macro_rules! __missing {
    ([[$($next:tt)*] $([$($rest:tt)*])*] $($state:tt)*) => {
        $($next)* ! { [$([$($rest)*])*] $($state)* b"missing" }
    };
}

/// Replaces `cfg_select!` where a device item is in a module: the first choice of `level`.
#[doc(hidden)]
#[macro_export]
macro_rules! __in_module {
    ($($other:tt)*) => {
        pub(super) use $crate::__first as level;
    };
}

/// Expands to the first of two choices.
#[doc(hidden)]
#[macro_export]
macro_rules! __first {
    ({ $($first:tt)* } { $($second:tt)* }) => { $($first)* };
}

/// Expands to the second of two choices.
#[doc(hidden)]
#[macro_export]
macro_rules! __second {
    ({ $($first:tt)* } { $($second:tt)* }) => { $($second)* };
}
