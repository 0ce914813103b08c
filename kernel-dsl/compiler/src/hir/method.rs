//! Methods of numbers that lowering expresses with operations of the IR.

use serde::{Deserialize, Serialize};

/// A method of a number, as in Rust. Methods that are one operation of the IR are
/// [`Intrinsic::Unary`](super::Intrinsic::Unary) and [`Binary`](super::Intrinsic::Binary).
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
    WrappingDiv,
    WrappingNeg,
    WrappingPow,
    WrappingRem,
    // Floats, which also have `Clamp` and `Signum`.
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

/// An operation on unsigned integers of several words, whose result is wider than its operands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Wide {
    /// `int::carrying_add(a, b, carry)`: the wrapped sum, and the carry.
    Sum,
    /// `int::borrowing_sub(a, b, borrow)`: the wrapped difference, and the borrow.
    Difference,
    /// `int::widening_mul(a, b)`: the lower and the upper half of the product.
    Product,
}

/// The result of a method on overflow.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum OnOverflow {
    /// `checked_add` and similar methods: `None`.
    Checked,
    /// `overflowing_add` and similar methods: the wrapped result, and whether it overflowed.
    Overflowing,
    /// `saturating_add` and similar methods: the nearest value of the type.
    Saturating,
}
