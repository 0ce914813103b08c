//! What the kernel is compiled for.
//!
//! A kernel is for sm_61 unless it says `#[kernel(target = sm_80, …)]`; `kernels show NAME --target sm_80` compiles it for
//! another target to look at. Later cards run PTX of earlier targets, and a launch on an earlier card is refused.
//!
//! What a target lacks is a compile error there. A branch on [`SM`] says what it does instead:
//!
//! ```
//! # use kernel_dsl::prelude::*;
//! /// Lanes of the warp that hold what this lane holds.
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

/// The number in the name of the target: 61 for `sm_61`. A constant of each compiled instance, so that the branch of an `if` or
/// a `match` on it that is not taken leaves nothing, and may hold what the target lacks.
///
/// rustc sees 61: so does a kernel that runs on the host as rustc compiled it ([`host::run`](crate::host::run)), and
/// `const { assert!(…) }`, for which the clause `target` of the attribute is the way to say what a kernel needs.
pub const SM: u32 = 61;
