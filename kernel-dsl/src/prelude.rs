//! What a kernel is written with: `use kernel_dsl::prelude::*;`.
//!
//! | word | what it gives |
//! |---|---|
//! | [`thread`], [`block`], [`grid`] | where this thread is; the block's barrier and reductions |
//! | [`warp`] | lanes, reductions, shuffles, votes; groups of lanes |
//! | [`fence`] | the order of memory between blocks |
//! | [`target`] | what the kernel is compiled for |
//! | [`View`], [`ViewMut`], slices | arrays in global memory |
//! | [`Strided`], [`StridedMut`] | those of any strides: columns, transposed matrices |
//! | [`Shared`] | arrays in the block's shared memory |
//! | [`Pending`] | copies to shared memory that have begun |
//! | [`pipeline`] | the same by hand, from sm_80 on |
//! | [`unroll`], [`unroll_by`], [`rolled`] | how a loop is compiled |
//! | [`struct@f16`], [`bf16`] | floats of 16 bits: see [`half`](crate::half) |
//! | [`Element`], [`Number`], [`Float`], [`Integer`], [`DeviceFn`] | bounds of type parameters |
//! | [`trait@DeviceCopy`] | what structs derive to lie in shared memory |
//! | [`math`] | transcendental functions, the same bits everywhere |
//! | [`ptx!`] | inline PTX: see [`inline`](crate::inline) |
//! | [`fast`] | the hardware's approximations of them |
//! | [`int`] | instructions on integers beyond Rust's methods |
//! | [`dp4a`], [`dp2a_lo`], [`dp2a_hi`] | dot products of small integers: see [`dot`](crate::dot) |
//!
//! Each item is real Rust: rustc checks a kernel's body against these signatures, so completion and documentation work
//! inside a kernel; and the bodies run, under [`host::run`](crate::host::run), so that a test can compare the kernel
//! as rustc compiled it with the kernel as our compiler did.

pub use crate::element::{DeviceFn, Element, Float, Integer, Number};
pub use crate::half::{HalfExt as _, bf16, f16};
pub use crate::iterate::{rolled, unroll, unroll_by};
pub use crate::pending::Pending;
pub use crate::shared::Shared;
pub use crate::slice::SliceExt as _;
pub use crate::view::{Strided, StridedMut, View, ViewMut};
pub use crate::{DeviceCopy, block, device, fast, fence, grid, int, kernel, math, pipeline, ptx, target, thread, warp};
pub use crate::{dp2a_hi, dp2a_lo, dp4a};
