//! The constructors of `Shared`.

use crate::hir::Intrinsic;

/// The largest rank of an array in shared memory.
pub const MAX_SHARED_RANK: u32 = 5;

/// A parameter of a constructor of `Shared`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SharedParameter {
    /// One `usize` for each dimension.
    Shape,
    /// The distance from one row to the next, in elements.
    Pitch,
    /// The shared array whose memory is reused.
    ReusedArray,
}

use SharedParameter::{Pitch, ReusedArray, Shape};

/// A constructor of `Shared`.
pub struct SharedConstructor {
    /// The name.
    pub name: &'static str,
    /// The name and parameters, for messages.
    pub written: &'static str,
    /// The operation that creates the array.
    pub intrinsic: Intrinsic,
    /// The parameters.
    pub parameters: &'static [SharedParameter],
}

const fn constructor(
    name: &'static str,
    written: &'static str,
    intrinsic: Intrinsic,
    parameters: &'static [SharedParameter],
) -> SharedConstructor {
    SharedConstructor { name, written, intrinsic, parameters }
}

/// The constructors of `Shared`.
pub const SHARED_CONSTRUCTORS: &[SharedConstructor] = &[
    constructor("new", "new(shape)", Intrinsic::SharedNew, &[Shape]),
    constructor("padded", "padded(shape)", Intrinsic::SharedPadded, &[Shape]),
    constructor("swizzled", "swizzled(shape)", Intrinsic::SharedSwizzled, &[Shape]),
    constructor("dynamic", "dynamic(shape)", Intrinsic::SharedDynamic, &[Shape]),
    constructor("with_pitch", "with_pitch(shape, pitch)", Intrinsic::SharedWithPitch, &[Shape, Pitch]),
    constructor("over", "over(shared, shape)", Intrinsic::SharedOver, &[ReusedArray, Shape]),
];
