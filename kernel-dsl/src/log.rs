//! [`log!`](crate::log!): prints a line for the calling thread.

use crate::host::context::current;
use std::fmt::Arguments;

/// Prints a line with values, after the block and the thread.
///
/// The syntax is that of `println!`: `{}`, `{:?}`, `{:x}`, `{:#x}`, inline names `{x}`, and `{{`
/// for a brace. Values are numbers and `bool`, at most 26 in a call. C's `%.9g` formats an `f32`,
/// and `%.17g` an `f64`. These digits identify the value: `0.5` is `0.5`, and `0.1f32` is
/// `0.100000001`. A NaN has no sign.
///
/// ```
/// # use kernel_dsl::prelude::*;
/// #[kernel(block = 32, grid = x.len().div_ceil(32))]
/// pub fn negatives(x: &[f32]) {
///     let i = grid::index();
///     if i < x.len() && x[i] < 0.0 {
///         log!("x[{i}] = {}", x[i]);
///     }
/// }
/// # fn main() { assert!(negatives::PTX.contains("vprintf")); }
/// ```
///
/// ```text
/// block [0, 0, 0], thread [7, 0, 0]: x[7] = -0.5
/// ```
///
/// **Where lines go.** A launch on the CPU device prints its lines to standard output at its end.
/// `kernels check` shows the lines of a case, and compares them between executors. A line is not a
/// finding. `kernels trace` shows the lines of its thread, and `kernels run` those of a launch.
/// On a GPU the driver prints the lines when the host waits for the device. A test reads them from
/// `CaseReport::printed`, or from `Outcome::printed` of an interpreter.
///
/// **Order.** The lines of a thread have the order of the program, also among its stores, atomic
/// operations and barriers. The interpreters run blocks one after the other, and in a block each
/// warp to the next barrier. Equal launches therefore print equal lines. On a GPU the lines of
/// different threads have no order.
///
/// **Limits and cost.** An interpreter keeps the last MiB of a launch's text. A GPU has a buffer of
/// this size by default, and loses the oldest lines, too. On a GPU each call stores its values and
/// the indices of its thread to local memory, and calls the driver's `vprintf`. The call saves
/// registers, so do not measure a kernel that logs. The PTX of other kernels does not change.
#[macro_export]
macro_rules! log {
    () => {
        $crate::log!("")
    };
    ($($message:tt)*) => {
        $crate::__private::log(::core::format_args!($($message)*))
    };
}

/// Prints a line on the host: under [`host::run`](crate::host::run) with the block and the thread.
pub fn log(message: Arguments<'_>) {
    match current() {
        Some(context) => println!("block {:?}, thread {:?}: {message}", context.block, context.thread),
        None => println!("{message}"),
    }
}
