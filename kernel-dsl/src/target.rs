//! The compilation target of the kernel.
//!
//! A kernel targets sm_61 unless it declares `#[kernel(target = sm_80, …)]`.
//! `kernels show NAME --target sm_80` compiles it for another target, for inspection. Later cards
//! run PTX of earlier targets; a launch on an earlier card is rejected.
//!
//! An instruction that the target lacks is a compile error. A branch on [`SM`] provides a
//! replacement:
//!
//! ```
//! # use kernel_dsl::prelude::*;
//! /// Returns the lanes of the warp whose x equals this lane's x.
//! #[device]
//! pub fn peers(x: u32) -> u32 {
//!     if target::SM >= 70 {
//!         warp::match_any(x)
//!     } else {
//!         let mut peers = u32::MAX;
//!         for bit in 0..32 {
//!             let one = x >> bit & 1 == 1;
//!             let ones = warp::ballot(one);
//!             peers &= if one { ones } else { !ones };
//!         }
//!         peers
//!     }
//! }
//! # fn main() {}
//! ```

/// The number in the name of the target: 61 for `sm_61`. The number is a constant of each compiled
/// instance. The untaken branch of an `if` or a `match` on it leaves no code, and may use
/// instructions that the target lacks.
///
/// In code that rustc evaluates the number is always 61: under [`host::run`](crate::host::run), and
/// in `const { assert!(…) }`. A kernel states its required target with the clause `target` of the
/// attribute.
pub const SM: u32 = 61;
