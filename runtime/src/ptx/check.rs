//! The checks of the interpreter, by name.

use serde::Serialize;
use std::fmt;

/// A mistake that PTX can make.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Check {
    /// An access outside the buffer or variable that its address was computed from. Buffers lie so far apart that no 32-bit
    /// index, times 8 bytes, leads from one to another.
    OutOfBounds,
    /// An address that is no multiple of the bytes of the whole access: 16 of a `.v4.f32`.
    Misaligned,
    /// An access that names a state space, to an address in another one.
    WrongSpace,
    /// A store to a buffer or constant that the kernel may only read.
    ReadOnlyWrite,
    /// An address, a condition, a stored value or an index that comes of what is not defined: a register that nothing has
    /// written, a quotient by zero, a shuffle from a lane that takes no part.
    Undefined,
    /// A load from shared memory that no thread of the block has stored to.
    UninitialisedShared,
    /// A load from shared memory that a copy (`cp.async`) is to fill, before the copy's thread has waited for it.
    CopyUnderWay,
    /// A load from local memory that the thread has not stored to.
    UninitialisedLocal,
    /// A load from shared or local memory of which some bytes have been stored to and others not, in one element. That is
    /// what a copy of a structure with padding does.
    PartlyUninitialised,
    /// A barrier that some lanes of a warp reach while others, not ended, are elsewhere; or that the warps of a block reach
    /// in different ways; or a number or a count of threads that it cannot have.
    DivergentBarrier,
    /// A shuffle, vote, match, reduction or warp barrier with contradictory masks of members. Masks
    /// may differ between lanes: each lane must be among its own members, and all of these that
    /// have not ended must execute the instruction together, with the same mask.
    Members,
    /// A condition or an address that comes of an approximation: within its bound, another GPU may go another way.
    Approximate,
    /// `trap`, or a call of what is no function.
    Trap,
    /// A block has run as many warp instructions as the options allow: perhaps an endless loop.
    FuelExhausted,
}

/// How bad it is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// The results are what the text says, and may be others elsewhere.
    Warning,
    /// The results are not defined.
    Error,
}

impl Check {
    /// Every check.
    pub const ALL: [Check; 14] = [
        Check::OutOfBounds,
        Check::Misaligned,
        Check::WrongSpace,
        Check::ReadOnlyWrite,
        Check::Undefined,
        Check::UninitialisedShared,
        Check::CopyUnderWay,
        Check::UninitialisedLocal,
        Check::PartlyUninitialised,
        Check::DivergentBarrier,
        Check::Members,
        Check::Approximate,
        Check::Trap,
        Check::FuelExhausted,
    ];

    /// Returns how bad it is.
    pub const fn severity(self) -> Severity {
        match self {
            Check::Approximate | Check::PartlyUninitialised => Severity::Warning,
            _ => Severity::Error,
        }
    }

    /// Returns whether a GPU stops for it.
    pub const fn is_fault(self) -> bool {
        matches!(
            self,
            Check::OutOfBounds
                | Check::Misaligned
                | Check::WrongSpace
                | Check::ReadOnlyWrite
                | Check::DivergentBarrier
                | Check::Trap
        )
    }

    /// Returns the name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Check::OutOfBounds => "out-of-bounds",
            Check::Misaligned => "misaligned",
            Check::WrongSpace => "wrong-space",
            Check::ReadOnlyWrite => "read-only-write",
            Check::Undefined => "undefined",
            Check::UninitialisedShared => "uninitialised-shared",
            Check::CopyUnderWay => "copy-under-way",
            Check::UninitialisedLocal => "uninitialised-local",
            Check::PartlyUninitialised => "partly-uninitialised",
            Check::DivergentBarrier => "divergent-barrier",
            Check::Members => "members",
            Check::Approximate => "approximate",
            Check::Trap => "trap",
            Check::FuelExhausted => "fuel-exhausted",
        }
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
