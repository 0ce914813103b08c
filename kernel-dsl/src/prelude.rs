//! The items that kernels use: `use kernel_dsl::prelude::*;`.
//!
//! | item | content |
//! |---|---|
//! | [`thread`], [`block`], [`grid`] | indices of the thread; the block's barrier and reductions |
//! | [`warp`] | lanes, reductions, shuffles, votes; groups of lanes |
//! | [`fence`] | ordering of memory accesses between blocks |
//! | [`target`] | the compilation target |
//! | [`View`], [`ViewMut`], slices | arrays in global memory |
//! | [`Strided`], [`StridedMut`] | arrays with any strides: columns, transposed matrices |
//! | [`Shared`] | arrays in the block's shared memory |
//! | [`Pending`] | copies to shared memory in flight |
//! | [`pipeline`] | explicit groups of such copies, from sm_80 on |
//! | [`unroll`], [`unroll_by`], [`rolled`] | loop directives |
//! | [`struct@f16`], [`bf16`] | 16-bit floats: see [`half`](crate::half) |
//! | [`Float16`] | 16-bit floats of any layout: see [`float16`](crate::float16) |
//! | [`Element`], [`Number`], [`Float`], [`Integer`], [`DeviceFn`] | bounds of type parameters |
//! | [`trait@DeviceCopy`] | the derive for structs in shared memory |
//! | [`math`] | transcendental functions, the same bits everywhere |
//! | [`ptx!`] | inline PTX: see [`inline`](crate::inline) |
//! | [`log!`] | prints values by thread |
//! | [`fast`] | the hardware's approximations |
//! | [`int`] | integer instructions beyond Rust's methods |
//! | [`dp4a`], [`dp2a_lo`], [`dp2a_hi`] | dot products of small integers: see [`dot`](crate::dot) |
//!
//! Each item is real Rust. rustc checks a kernel's body against these signatures, so completion and
//! documentation work inside a kernel. The bodies run under [`host::run`](crate::host::run), so a
//! test can compare the kernel as rustc compiled it with our compiler's.

pub use crate::element::{DeviceFn, Element, Float, Integer, Number};
pub use crate::float16::{Finite, Float16, Ieee, Saturating};
pub use crate::half::{HalfExt as _, bf16, f16};
pub use crate::iterate::{rolled, unroll, unroll_by};
pub use crate::pending::Pending;
pub use crate::shared::Shared;
pub use crate::slice::SliceExt as _;
pub use crate::view::{Strided, StridedMut, View, ViewMut};
pub use crate::{
    DeviceCopy, block, device, fast, fence, grid, int, kernel, log, math, pipeline, ptx, target, thread, warp,
};
pub use crate::{dp2a_hi, dp2a_lo, dp4a};
