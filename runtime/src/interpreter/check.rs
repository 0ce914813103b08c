//! What the interpreter checks, by name.
//!
//! A check is a definition of something a kernel must not do. The list is closed, each entry has one severity, and its
//! documentation is the definition.

use kernel_dsl::compiler::Target;
use serde::Serialize;
use std::fmt;

/// Something that a kernel must not do.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Check {
    /// An index is not below its dimension's extent (for an access of n elements: the last index + n exceeds it), even
    /// where the address stays inside the buffer; or an address is outside the buffer that it was computed from, even
    /// where it is inside another one; or an index into a register array is not below its length.
    OutOfBounds,
    /// An address is no multiple of the bytes of the whole access (16 for four `f32`), or of 16 if they are more.
    Misaligned,
    /// A store to a buffer that the kernel has as `&[T]` or `View`.
    ReadOnlyWrite,
    /// A load from shared memory that no thread of the block has stored to since the block began.
    UninitialisedShared,
    /// A read of a variable or register array element that the thread has not written.
    UninitialisedLocal,
    /// Two warps of a block access one element of shared memory, at least one of them to store or in an atomic operation
    /// and not both in such, with no `block::sync()` between, nor fences and atomic operations that order them.
    SharedRace,
    /// Two lanes of one warp access one element of shared memory or of a buffer in different instructions, at least one of
    /// them to store or in an atomic operation and not both in such, with no `warp::sync()` or `block::sync()` between.
    /// Before sm_70 lanes run in lockstep, and the program's order is theirs: there it is a warning. From sm_70 on
    /// nothing orders them, shuffles and votes neither: an error. Of one instruction that a loop comes to again, only loads
    /// against stores are held.
    WarpRace,
    /// Two threads access one element of a buffer, at least one of them to store or in an atomic operation and not both
    /// in such, and nothing orders them: they are of
    /// different blocks, or of different warps of one block with no `block::sync()` between, and no fences and atomic
    /// operations ([`kernel_dsl::fence`]) hand one side's past to the other. But for the latter, independent of the
    /// order in which the interpreter runs blocks.
    GlobalRace,
    /// Two lanes of a warp store different values to one element in one instruction; which value stays is not
    /// specified.
    StoreConflict,
    /// `block::sync()` is reached by some lanes of a warp while others, not ended, are elsewhere; or the warps of a
    /// block wait at different `block::sync()`s; or a warp has ended without reaching the one that others wait at.
    DivergentBarrier,
    /// A warp operation (`sync`, shuffle, vote) is reached by some lanes of a warp while others, not ended, are
    /// elsewhere; or one that needs all 32 lanes (`match_any`; a reduction that is one instruction) by fewer.
    DivergentWarp,
    /// A shuffle reads from a lane that has ended, is elsewhere, or is beyond the end of the block.
    ShuffleInactive,
    /// The selector of an XOR shuffle is not below the width of its segment.
    ShuffleSelector,
    /// +, − or × on `usize` (32 bits on the device) overflows, in the kernel's text, in moving a view, or in stepping
    /// a loop. The optimiser assumes that this does not happen.
    UsizeOverflow,
    /// +, − or × on a fixed-width integer overflows, or `MIN` is negated: a panic in Rust's debug builds. Where it is
    /// meant, `wrapping_add` and its kin say so.
    IntegerOverflow,
    /// An integer is divided by zero; the value is not specified.
    DivisionByZero,
    /// `MIN / −1` or `MIN % −1`; the value is not specified.
    DivisionOverflow,
    /// A `for` loop's step is zero or less.
    LoopStep,
    /// The launch has run as many warp instructions as [`Options::fuel`](super::Options::fuel) allows: perhaps an
    /// endless loop.
    FuelExhausted,
}

/// How bad it is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// The kernel's results are what it says, but it is likely not what its author meant.
    Warning,
    /// The kernel's results are not defined.
    Error,
}

impl Check {
    /// Every check.
    pub const ALL: [Check; 19] = [
        Check::OutOfBounds,
        Check::Misaligned,
        Check::ReadOnlyWrite,
        Check::UninitialisedShared,
        Check::UninitialisedLocal,
        Check::SharedRace,
        Check::WarpRace,
        Check::GlobalRace,
        Check::StoreConflict,
        Check::DivergentBarrier,
        Check::DivergentWarp,
        Check::ShuffleInactive,
        Check::ShuffleSelector,
        Check::UsizeOverflow,
        Check::IntegerOverflow,
        Check::DivisionByZero,
        Check::DivisionOverflow,
        Check::LoopStep,
        Check::FuelExhausted,
    ];

    /// The name in reports and options.
    pub const fn name(self) -> &'static str {
        match self {
            Check::OutOfBounds => "out-of-bounds",
            Check::Misaligned => "misaligned",
            Check::ReadOnlyWrite => "read-only-write",
            Check::UninitialisedShared => "uninitialised-shared",
            Check::UninitialisedLocal => "uninitialised-local",
            Check::SharedRace => "shared-race",
            Check::WarpRace => "warp-race",
            Check::GlobalRace => "global-race",
            Check::StoreConflict => "store-conflict",
            Check::DivergentBarrier => "divergent-barrier",
            Check::DivergentWarp => "divergent-warp",
            Check::ShuffleInactive => "shuffle-inactive",
            Check::ShuffleSelector => "shuffle-selector",
            Check::UsizeOverflow => "usize-overflow",
            Check::IntegerOverflow => "integer-overflow",
            Check::DivisionByZero => "division-by-zero",
            Check::DivisionOverflow => "division-overflow",
            Check::LoopStep => "loop-step",
            Check::FuelExhausted => "fuel-exhausted",
        }
    }

    /// How bad it is on `target`.
    pub fn severity(self, target: Target) -> Severity {
        match self {
            Check::IntegerOverflow => Severity::Warning,
            Check::WarpRace if target < Target::SM_70 => Severity::Warning,
            _ => Severity::Error,
        }
    }

    /// What to do about it, in a line; `None` where that depends on the kernel alone.
    pub const fn help(self) -> Option<&'static str> {
        Some(match self {
            Check::OutOfBounds => "guard the access by `if index < length`, or use a masked load or store",
            Check::Misaligned => "declare the alignment with `requires(x.aligned(n))`, or load single elements",
            Check::ReadOnlyWrite => "take the argument as `&mut [T]` or `ViewMut`",
            Check::UninitialisedShared => "store to the element, and `block::sync()`, before loading it",
            Check::UninitialisedLocal => "give the variable a value on every path that leads here",
            Check::SharedRace => "put a `block::sync()` between the two accesses",
            Check::WarpRace => {
                "put a `warp::sync()` between the two accesses: from sm_70 on lanes of a warp do not run in lockstep"
            }
            Check::GlobalRace => "let one thread own each element, or split the work into two launches",
            Check::StoreConflict => "let one lane store, or give each lane an element of its own",
            Check::DivergentBarrier => "move the `block::sync()` to where all threads of the block pass",
            Check::DivergentWarp => "move the operation to where all lanes of the warp pass",
            Check::ShuffleInactive => "let all 32 lanes pass the shuffle, and choose afterwards what to use",
            Check::ShuffleSelector => "choose a selector below the width of the segment",
            Check::UsizeOverflow => "`usize` is 32 bits on the device; compute in `u64`, or use `wrapping_*` if meant",
            Check::IntegerOverflow => "use `wrapping_add`, `wrapping_sub` or `wrapping_mul` where wrapping is meant",
            Check::DivisionByZero => "guard the division by `if divisor != 0`",
            Check::FuelExhausted => "see whether the loop ends; raise `Options::fuel` if it does",
            Check::DivisionOverflow | Check::LoopStep => return None,
        })
    }
}

/// Some checks.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct CheckSet(u32);

impl CheckSet {
    /// Whether it is among them.
    pub fn contains(self, check: Check) -> bool {
        self.0 >> check as u32 & 1 == 1
    }
}

impl FromIterator<Check> for CheckSet {
    fn from_iter<I: IntoIterator<Item = Check>>(checks: I) -> CheckSet {
        CheckSet(checks.into_iter().fold(0, |set, check| set | 1 << check as u32))
    }
}

/// A name that no check has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownCheck(String);

impl std::str::FromStr for Check {
    type Err = UnknownCheck;

    fn from_str(name: &str) -> Result<Check, UnknownCheck> {
        Check::ALL.into_iter().find(|c| c.name() == name).ok_or_else(|| UnknownCheck(name.to_string()))
    }
}

impl fmt::Display for UnknownCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no check `{}`; there are", self.0)?;
        Check::ALL.iter().enumerate().try_for_each(|(i, c)| write!(f, "{} {c}", if i > 0 { "," } else { "" }))
    }
}

impl std::error::Error for UnknownCheck {}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
