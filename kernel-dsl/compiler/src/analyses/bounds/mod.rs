//! A proof of which accesses are in bounds in every launch, and of which checks never fail.
//!
//! # What is proven
//! [`KernelAccesses`] reports for each access the facts that keep it in bounds, and its bytes in a
//! launch of known extents. [`decide_exactly`] removes the checks of a kernel's checked form that
//! no launch fails. Both decide comparisons by symbolic execution: from the IR, from the launch
//! clauses, and from nothing else.
//!
//! # How data moves
//! 1. `linear` works on integers only. A symbolic expression is a polynomial over numbered
//!    variables. A fact is a polynomial that is ≥ 0. A query is a set of polynomials, and
//!    Fourier-Motzkin elimination proves that they cannot all be ≥ 0 beside the facts.
//! 2. `variables` numbers the values that no polynomial expresses: an extent, an index of a thread
//!    or block, a quotient, a minimum, an opaque value. The table of variables keeps the facts of
//!    each, and selects those that a query may use.
//! 3. `launch` reads `grid` and `#[requires]` into facts that every launch meets.
//! 4. `walk` visits the kernel once, in order. Values become polynomials. A branch adds the facts
//!    of its condition until its region ends, and a counted loop the range of its index: these are
//!    the dominating conditions. A comparison is decided if one outcome contradicts the facts.
//! 5. Two users need the facts of each point. `accesses` proves that indices are below extents,
//!    and builds the formula of the accessed bytes. `exact` rewrites comparisons and checks.
//! 6. `sites` combines the proofs of a source location, with the fewest launch facts.
//!    `launch_bytes` evaluates a formula in a launch.
//!
//! # Wrapping
//! `accesses` assumes that no `usize` wraps: wrapping is a separate error, which the oracle
//! reports. Polynomials are then exact over the integers. Only `exact` holds where a `usize` wraps:
//! it uses the polynomial of a sum, difference or product only if the result is proven not to wrap.
//!
//! # Soundness
//! A contradiction is a proof, and the absence of one proves nothing. So the limits of terms,
//! inequalities and attempts can only lose proofs. A quotient or remainder by 0 is unspecified, so
//! either has facts only where the divisor is proven positive. A query uses no facts about values
//! that it does not mention: an unused value may come from wrapped operands.

mod accesses;
mod exact;
mod launch;
mod launch_bytes;
mod linear;
mod sites;
mod variables;
mod walk;

pub use exact::decide_exactly;
pub use launch_bytes::LaunchParameters;
pub use sites::{BoundsSite, KernelAccesses, Proof};
