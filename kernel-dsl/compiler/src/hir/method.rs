//! Methods of numbers that lowering writes out in operators of the IR.

use serde::{Deserialize, Serialize};

/// A method of a number, as Rust has it; [`Intrinsic::Unary`](super::Intrinsic::Unary) and
/// [`Binary`](super::Intrinsic::Binary) are those that the IR has as one operator.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Method {
    // Integers.
    AbsDiff,
    Clamp,
    CountOnes,
    CountZeros,
    DivEuclid,
    Ilog2,
    IsMultipleOf,
    IsNegative,
    IsPositive,
    IsPowerOfTwo,
    LeadingOnes,
    LeadingZeros,
    NextPowerOfTwo,
    Pow,
    RemEuclid,
    ReverseBits,
    RotateLeft,
    RotateRight,
    SaturatingAdd,
    Signum,
    SwapBytes,
    TrailingOnes,
    TrailingZeros,
    UnsignedAbs,
    WrappingAbs,
    WrappingNeg,
    // Floats; `Clamp` and `Signum` too.
    Copysign,
    Fract,
    IsFinite,
    IsInfinite,
    IsNan,
    IsSignNegative,
    IsSignPositive,
    Recip,
    Round,
}

/// What a method makes of a result that does not fit.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum OnOverflow {
    /// `checked_add` and its kin: `None`.
    Checked,
    /// `overflowing_add` and its kin: the wrapped result, and whether it is one.
    Overflowing,
    /// `saturating_add` and its kin: the nearest there is.
    Saturating,
}
