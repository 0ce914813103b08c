//! The checks of the PTX interpreter, by name.

use runtime_simt::Severity;
use serde::Serialize;
use std::fmt;

/// A rule that PTX can violate.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Check {
    /// An access outside the buffer or variable from which its address was computed. Buffers lie so
    /// far apart that no 32-bit index, times 8 bytes, leads from one to another.
    OutOfBounds,
    /// An address that is not a multiple of the size of the whole access: 16 bytes for `.v4.f32`.
    Misaligned,
    /// An access with a state space to an address in another state space.
    WrongSpace,
    /// A store to a buffer or constant that the kernel may only read.
    ReadOnlyWrite,
    /// An address, a condition, a stored value or an index that depends on an undefined value.
    /// Undefined values come from uninitialized registers, quotients by zero, and shuffles from
    /// inactive lanes.
    Undefined,
    /// A load from shared memory that no thread of the block has stored.
    UninitializedShared,
    /// A load from the destination of a copy to shared memory (`cp.async`) before the copy's thread
    /// has waited for it.
    CopyUnderWay,
    /// A load from local memory that the thread has not stored.
    UninitializedLocal,
    /// A load from shared or local memory of an element whose bytes were stored only in part. A
    /// copy of a structure with padding does this.
    PartlyUninitialized,
    /// A barrier that cannot complete. Either some lanes of a warp reach it while other live lanes
    /// are elsewhere, or the warps of a block disagree about it. An invalid barrier number or
    /// thread count is reported too.
    DivergentBarrier,
    /// A shuffle, vote, match, reduction or warp barrier with contradictory masks of members. Masks
    /// may differ between lanes: each lane must be among its own members, and all of these that
    /// have not ended must execute the instruction together, with the same mask.
    Members,
    /// A condition or an address that depends on an approximation. A GPU may take another path,
    /// even if its result is within the bound.
    Approximate,
    /// A `trap`, or a call of an invalid function address.
    Trap,
    /// A failed `assert` of the kernel: a call of `__assertfail`.
    Assertion,
    /// A block has reached the limit of warp instructions: perhaps an endless loop.
    FuelExhausted,
}

impl Check {
    /// Every check.
    pub const ALL: [Check; 15] = [
        Check::OutOfBounds,
        Check::Misaligned,
        Check::WrongSpace,
        Check::ReadOnlyWrite,
        Check::Undefined,
        Check::UninitializedShared,
        Check::CopyUnderWay,
        Check::UninitializedLocal,
        Check::PartlyUninitialized,
        Check::DivergentBarrier,
        Check::Members,
        Check::Approximate,
        Check::Trap,
        Check::Assertion,
        Check::FuelExhausted,
    ];

    /// Returns the severity of a violation.
    pub const fn severity(self) -> Severity {
        match self {
            Check::Approximate | Check::PartlyUninitialized => Severity::Warning,
            _ => Severity::Error,
        }
    }

    /// Returns whether a GPU stops at a violation.
    pub const fn is_fault(self) -> bool {
        matches!(
            self,
            Check::OutOfBounds
                | Check::Misaligned
                | Check::WrongSpace
                | Check::ReadOnlyWrite
                | Check::DivergentBarrier
                | Check::Trap
                | Check::Assertion
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
            Check::UninitializedShared => "uninitialized-shared",
            Check::CopyUnderWay => "copy-under-way",
            Check::UninitializedLocal => "uninitialized-local",
            Check::PartlyUninitialized => "partly-uninitialized",
            Check::DivergentBarrier => "divergent-barrier",
            Check::Members => "members",
            Check::Approximate => "approximate",
            Check::Trap => "trap",
            Check::Assertion => "assertion",
            Check::FuelExhausted => "fuel-exhausted",
        }
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
