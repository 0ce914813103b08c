//! Operators, and the types that they take.

use crate::scalar::Scalar;
use serde::{Deserialize, Serialize};

/// Operators of one operand.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Unary {
    /// Numbers; `MIN` wraps and is reported.
    Neg,
    /// Bitwise on integers, logical on `bool`.
    Not,
    /// Floats, and signed integers (`MIN` wraps and is reported).
    Abs,
    /// Correctly rounded; floats.
    Sqrt,
    /// To integral values; floats. Ties go to even in `RoundEven`.
    Floor,
    Ceil,
    Trunc,
    RoundEven,
    /// Integers of 32 and 64 bits; give `u32`.
    CountOnes,
    LeadingZeros,
    /// Integers of 32 and 64 bits.
    ReverseBits,
    SwapBytes,
}

/// Operators of two operands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Binary {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    /// Integers; no report on overflow.
    WrappingAdd,
    WrappingSub,
    WrappingMul,
    Min,
    Max,
    /// Bitwise on integers, logical on `bool` (both operands are evaluated).
    And,
    Or,
    Xor,
    /// Shift by a `u32`, taken modulo the width.
    Shl,
    /// Arithmetic on signed integers.
    Shr,
    /// Shifts that the oracle does not check for a distance of the width or more.
    WrappingShl,
    WrappingShr,
    /// Integers of 32 and 64 bits.
    RotateLeft,
}

impl Unary {
    /// Returns whether the operator exists on operands of this type.
    pub fn takes(self, operand: Scalar) -> bool {
        use Unary::*;
        match self {
            Neg => operand.is_float() || operand.is_integer(),
            Not => operand.is_integer() || operand == Scalar::Bool,
            Abs => operand.is_float() || operand.is_signed(),
            Sqrt | Floor | Ceil | Trunc | RoundEven => operand.is_float(),
            CountOnes | LeadingZeros | ReverseBits | SwapBytes => operand.is_integer() && operand.bits() >= 32,
        }
    }

    /// Returns the type of the result for operands of a type that the operator takes.
    pub fn result(self, operand: Scalar) -> Scalar {
        if matches!(self, Unary::CountOnes | Unary::LeadingZeros) { Scalar::U32 } else { operand }
    }
}

impl Binary {
    /// Returns whether the operator exists on a first operand of this type, which is also the type
    /// of the result.
    pub fn takes(self, operand: Scalar) -> bool {
        use Binary::*;
        match self {
            Add | Sub | Mul | Div | Rem | Min | Max => operand.is_integer() || operand.is_float(),
            And | Or | Xor => operand.is_integer() || operand == Scalar::Bool,
            RotateLeft => operand.is_integer() && matches!(operand.bits(), 32 | 64),
            WrappingAdd | WrappingSub | WrappingMul | Shl | Shr | WrappingShl | WrappingShr => operand.is_integer(),
        }
    }

    /// Returns whether the second operand is a distance, which is a `u32` for every type of the
    /// first.
    pub fn is_shift(self) -> bool {
        use Binary::*;
        matches!(self, Shl | Shr | WrappingShl | WrappingShr | RotateLeft)
    }

    /// Returns whether the operands commute. The result then has the same bits, except those of a
    /// NaN.
    pub fn commutes(self) -> bool {
        use Binary::*;
        matches!(self, Add | WrappingAdd | Mul | WrappingMul | Min | Max | And | Or | Xor)
    }
}

/// How an atomic operation computes the value that it writes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum AtomicOperator {
    /// The sum; integers wrap.
    Add,
    /// The minimum.
    Min,
    /// The maximum.
    Max,
    /// Bitwise.
    And,
    /// Bitwise.
    Or,
    /// Bitwise.
    Xor,
    /// The operand, whatever the element was.
    Exchange,
    /// The second operand if the element has the bits of the first, otherwise the element itself.
    CompareExchange,
    /// The element itself: nothing is written.
    Load,
    /// The operand, without a result.
    Store,
}

impl AtomicOperator {
    /// Returns whether the operation exists on elements of this type. Where the machine lacks it,
    /// emission writes a loop ([`AtomicOperator::loops`]).
    pub fn takes(self, element: Scalar) -> bool {
        let integer = element.is_integer() && element.bits() <= 64 && element != Scalar::Usize;
        match self {
            AtomicOperator::Add | AtomicOperator::Exchange | AtomicOperator::Min | AtomicOperator::Max => {
                integer || element.is_float()
            }
            AtomicOperator::Load | AtomicOperator::Store => integer || element.is_float() || element.is_half(),
            _ => integer,
        }
    }

    /// Returns whether the operation is a loop of `atom.cas`: on elements of 8 and 16 bits, and the
    /// minimum and maximum of floats.
    pub fn loops(self, element: Scalar) -> bool {
        match self {
            AtomicOperator::Load | AtomicOperator::Store => false,
            AtomicOperator::Min | AtomicOperator::Max if element.is_float() => true,
            _ => element.bits() < 32,
        }
    }

    /// Returns the number of operands.
    pub fn operands(self) -> usize {
        match self {
            AtomicOperator::CompareExchange => 2,
            AtomicOperator::Load => 0,
            _ => 1,
        }
    }
}

/// Comparisons. `bool` has equality only.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Comparison {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

impl Comparison {
    /// Returns whether the comparison is `<`, `<=`, `>` or `>=`.
    pub fn is_order(self) -> bool {
        !matches!(self, Comparison::Eq | Comparison::Ne)
    }

    /// Returns the comparison that holds where this one does not. Not valid for floats, which may
    /// be NaN.
    pub fn inverse(self) -> Comparison {
        match self {
            Comparison::Eq => Comparison::Ne,
            Comparison::Ne => Comparison::Eq,
            Comparison::Lt => Comparison::Ge,
            Comparison::Le => Comparison::Gt,
            Comparison::Gt => Comparison::Le,
            Comparison::Ge => Comparison::Lt,
        }
    }

    /// Returns the comparison for swapped operands.
    pub fn mirrored(self) -> Comparison {
        match self {
            Comparison::Lt => Comparison::Gt,
            Comparison::Le => Comparison::Ge,
            Comparison::Gt => Comparison::Lt,
            Comparison::Ge => Comparison::Le,
            other => other,
        }
    }
}

/// How a shuffle finds its source lane within a segment of `width` lanes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Shuffle {
    /// Lane `selector` mod `width` of the segment.
    Index,
    /// Own lane XOR `selector`, with `selector` < `width`.
    Xor,
    /// Own lane − `selector`. Lanes without such a source keep their own value.
    Up,
    /// Own lane + `selector`. Lanes without such a source keep their own value.
    Down,
    /// Lane `selector` of the segment, with `selector` < `width`. A larger one counts mod `width`.
    Broadcast,
}

/// The threads that a fence orders accesses for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum FenceScope {
    /// Threads of the block.
    Block,
    /// Threads of the grid, and all other work of the device.
    Grid,
    /// Threads of the host and other devices too.
    System,
}

/// How a vote combines the lanes' values.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Vote {
    /// Bit l is lane l's value.
    Ballot,
    /// Whether all lanes' values hold.
    All,
    /// Whether any lane's value holds.
    Any,
}
