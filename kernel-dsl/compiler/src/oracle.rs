//! The checks of both interpreters, and the declarations of a kernel for them.
//!
//! A check defines something that a kernel must not do. The list is closed; the documentation of
//! each check is its definition. A kernel can allow a violation at a statement ([`Allowance`]), and
//! declare how much of its outputs it writes ([`DeclaredOutput`]). The crate `runtime` verifies
//! both. The oracle makes the checks in [`Check::ORACLE`]. The PTX interpreter makes some of these,
//! and a few that the language makes unnecessary.

use crate::source::Span;
use crate::target::Target;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A check: a definition of something that a kernel must not do.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Check {
    /// An index is at least the extent of its dimension. For an access of n elements, the last
    /// index + n exceeds the extent. The address may still be inside the buffer. Also: an address
    /// outside the buffer that it was computed from, even if it is inside another buffer; and an
    /// index into a register array that is at least its length.
    OutOfBounds,
    /// An address is not a multiple of the size of the access (16 bytes for four `f32`), or of 16
    /// bytes for a larger access.
    Misaligned,
    /// A store to a buffer that the kernel takes as `&[T]` or `View`.
    ReadOnlyWrite,
    /// A load from shared memory that no thread of the block has stored to since the block started.
    UninitializedShared,
    /// Before a thread waits for an asynchronous copy (`copy_async`, `cp_async`), the thread ends,
    /// or another store or copy writes the copy's destination, even after a barrier. A load from
    /// the destination is `uninitialized-shared`. At the end of the thread, a `cp_async` that
    /// copies nothing is not reported.
    UnfinishedCopy,
    /// A read of a variable or register array element that the thread has not written.
    UninitializedLocal,
    /// A load from, or an atomic operation on, an uninitialized buffer element: no host or thread
    /// has stored to the element before.
    UninitializedBuffer,
    /// At the end of the launch, no thread has written an element of an output that
    /// `#[kernel(writes(y = all))]` or `once` declares completely written. An atomic operation
    /// counts as a write.
    UnwrittenOutput,
    /// Two threads store to one element of an output declared by `#[kernel(writes(y = once))]`, in
    /// order, or as lanes of one instruction with equal values. Unordered stores are a race.
    WrittenTwice,
    /// Two warps of a block access one element of shared memory without a happens-before order: no
    /// `block::sync()` is between the accesses, and no fences and atomic operations order them. At
    /// least one access is a store or an atomic operation, and not both are atomic.
    SharedRace,
    /// Two lanes of a warp access one element of shared memory or of a buffer in different
    /// instructions, without `warp::sync()` or `block::sync()` between. At least one access is a
    /// store or an atomic operation, and not both are atomic. Before sm_70 lanes run in lockstep,
    /// which orders the accesses: a warning. Since sm_70 nothing orders them, also not shuffles and
    /// votes: an error.
    WarpRace,
    /// Two threads access one element of a buffer without a happens-before order. The threads are
    /// in different blocks, or in different warps of one block without `block::sync()` between. No
    /// fences and atomic operations (`kernel_dsl::fence`) order the accesses. At least one access
    /// is a store or an atomic operation, and not both are atomic. Except for fences, the result
    /// does not depend on the order in which the interpreter runs blocks.
    GlobalRace,
    /// Two lanes of a warp store different values to one element in one instruction; the resulting
    /// value is unspecified.
    StoreConflict,
    /// Several lanes of a warp store the same value to one element in one instruction; a store by
    /// one lane would suffice. Reported only if notes are enabled.
    EqualStores,
    /// Some lanes of a warp reach `block::sync()` while other running lanes are elsewhere; or the
    /// warps of a block wait at different `block::sync()`s; or a warp ends without reaching the one
    /// that others wait at. The same holds for `grid::sync()` and the blocks of the grid, where
    /// lanes that have ended are missing too.
    DivergentBarrier,
    /// Some lanes of a warp reach a warp operation (`sync`, shuffle, vote) while other running
    /// lanes are elsewhere; or fewer than 32 lanes reach an operation that needs all lanes
    /// (`match_any`, or a reduction that is one instruction).
    DivergentWarp,
    /// A shuffle reads from a lane that has ended, is elsewhere, or is beyond the end of the block.
    ShuffleInactive,
    /// The selector of an XOR shuffle or a broadcast is at least the width of its segment.
    ShuffleSelector,
    /// An undefined value is stored to a buffer, used in an atomic operation or an address, or
    /// decides a branch. The result of a shuffle from a lane that does not participate is
    /// undefined. So is the result of a vote, match or reduction without all lanes, and every value
    /// computed from an undefined value. An operand of inline PTX for which the PTX manual
    /// specifies no result is reported where it is read.
    UndefinedValue,
    /// +, − or × on `usize` (32 bits on the device) overflows, in the kernel's code, in moving a
    /// view, or in stepping a loop. The passes assume that this does not happen.
    UsizeOverflow,
    /// +, − or × on a fixed-width integer overflows, or `MIN` is negated: a panic in Rust's debug
    /// builds. Use `wrapping_add` and similar methods for intended wrapping.
    IntegerOverflow,
    /// An integer is divided by zero; the value is unspecified.
    DivisionByZero,
    /// `MIN / −1` or `MIN % −1`; the value is unspecified.
    DivisionOverflow,
    /// `<<` or `>>` by at least the width of the type: a panic in Rust's debug builds. Otherwise,
    /// as here, the amount is taken modulo the width (of a 64-bit amount, the lower 32 bits). Use
    /// `wrapping_shl` and `wrapping_shr` if that is intended.
    ShiftOverflow,
    /// The step of a `for` loop is not positive.
    LoopStep,
    /// A NaN is stored to a buffer, and an operation of the kernel produced it from operands that
    /// are not NaN: `0.0 / 0.0`, `∞ − ∞`, the root of a negative number. Loaded and literal NaNs
    /// are not reported.
    NanProduced,
    /// An infinity is stored to a buffer, and an operation of the kernel produced it from finite
    /// operands: a sum or product beyond the range of its type, or a division by zero. Loaded and
    /// literal infinities are not reported.
    InfinityProduced,
    /// An infinity is stored to a buffer, and a conversion to a narrower float produced it from a
    /// finite number out of range. In a format without infinities, the same applies to a NaN.
    ConversionOverflow,
    /// `as` converts to an integer that cannot represent its operand: a narrower integer loses
    /// bits, or a NaN or an out-of-range float becomes 0 or the nearest integer. Reported only if
    /// notes are enabled.
    LossyCast,
    /// A sum or difference of `f32`, `f16` or `f64` loses its leading digits, and a result is
    /// stored to a buffer. The result differs from the same computation in `f64` (for `f64`, with
    /// twice the digits) by more than `Options::cancellation`. The relative error grew by a factor
    /// of at least 8 in this operation. Loaded values, converted integers, results of `math::` and
    /// `fast::`, `bf16` and `Float16` count as exact. Reported only if enabled, which takes a
    /// second run.
    Cancellation,
    /// Inline PTX reads a value that depends on the machine: a clock, the number of a
    /// multiprocessor, or the active lanes.
    MachineDependent,
    /// An `assert!` does not hold, or a thread reaches a `panic!`. The thread ends, and the others
    /// continue. In PTX: a call of `__assertfail`.
    Assertion,
    /// A loop that cannot end: one or several iterations leave all variables and all memory
    /// unchanged, and no other thread can change what the loop reads. The other warps of the block
    /// have ended, wait at a barrier, or are in such loops themselves. Blocks that have not started
    /// need not run before this block ends, unless all blocks of the launch are sure to be resident
    /// at once. All are in a cooperative launch, and in a launch of up to 16 blocks. For blocks of
    /// more than 320 threads or 21 KiB of shared memory, that number is 12; for more than 512
    /// threads or 32 KiB, 6. Six multiprocessors hold so many (GeForce GTX 1050 Ti). Before sm_70,
    /// lanes that have left the loop wait for the others at the point of reconvergence; since sm_70
    /// they continue to the next operation that needs all lanes.
    Livelock,
    /// A block has executed as many warp instructions as `Options::fuel` allows: perhaps an endless
    /// loop whose iterations change something.
    FuelExhausted,
    /// PTX only: an access with a state space to an address in another state space.
    WrongSpace,
    /// PTX only: a load from shared or local memory of an element whose bytes were stored only in
    /// part. A copy of a structure with padding does this.
    PartlyUninitialized,
    /// PTX only: a condition or an address that depends on an approximation. A GPU may take another
    /// path, even if its result is within the bound.
    Approximate,
    /// PTX only: a `trap`, or a call of an invalid function address.
    Trap,
}

/// The severity of a finding.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// The results are defined; the kernel does more than necessary, or something that may be
    /// unintended.
    Note,
    /// The results are defined, but are probably unintended.
    Warning,
    /// The results are undefined.
    Error,
}

const _: () = {
    let mut i = 0;
    while i < Check::ALL.len() {
        assert!(Check::ALL[i] as usize == i, "`Check::ALL` has the checks in the order of their declaration");
        i += 1;
    }
    assert!(Check::Trap as usize + 1 == i, "`Check::ALL` has every check, up to the last, `Trap`");
};

impl Check {
    /// Every check.
    pub const ALL: [Check; 38] = [
        Check::OutOfBounds,
        Check::Misaligned,
        Check::ReadOnlyWrite,
        Check::UninitializedShared,
        Check::UnfinishedCopy,
        Check::UninitializedLocal,
        Check::UninitializedBuffer,
        Check::UnwrittenOutput,
        Check::WrittenTwice,
        Check::SharedRace,
        Check::WarpRace,
        Check::GlobalRace,
        Check::StoreConflict,
        Check::EqualStores,
        Check::DivergentBarrier,
        Check::DivergentWarp,
        Check::ShuffleInactive,
        Check::ShuffleSelector,
        Check::UndefinedValue,
        Check::UsizeOverflow,
        Check::IntegerOverflow,
        Check::DivisionByZero,
        Check::DivisionOverflow,
        Check::ShiftOverflow,
        Check::LoopStep,
        Check::NanProduced,
        Check::InfinityProduced,
        Check::ConversionOverflow,
        Check::LossyCast,
        Check::Cancellation,
        Check::MachineDependent,
        Check::Assertion,
        Check::Livelock,
        Check::FuelExhausted,
        Check::WrongSpace,
        Check::PartlyUninitialized,
        Check::Approximate,
        Check::Trap,
    ];

    /// The checks of the oracle. The others are for PTX only, and a kernel cannot name them.
    pub const ORACLE: &[Check] = Check::ALL.split_at(Check::FuelExhausted as usize + 1).0;

    /// The checks that report the origin of a NaN or infinity. If a kernel stores a NaN or
    /// infinity, finding the origin takes a second run.
    pub const ORIGINS: [Check; 3] = [Check::NanProduced, Check::InfinityProduced, Check::ConversionOverflow];

    /// Returns the name in reports and options.
    pub const fn name(self) -> &'static str {
        match self {
            Check::OutOfBounds => "out-of-bounds",
            Check::Misaligned => "misaligned",
            Check::ReadOnlyWrite => "read-only-write",
            Check::UninitializedShared => "uninitialized-shared",
            Check::UnfinishedCopy => "unfinished-copy",
            Check::UninitializedLocal => "uninitialized-local",
            Check::UninitializedBuffer => "uninitialized-buffer",
            Check::UnwrittenOutput => "unwritten-output",
            Check::WrittenTwice => "written-twice",
            Check::SharedRace => "shared-race",
            Check::WarpRace => "warp-race",
            Check::GlobalRace => "global-race",
            Check::StoreConflict => "store-conflict",
            Check::EqualStores => "equal-stores",
            Check::DivergentBarrier => "divergent-barrier",
            Check::DivergentWarp => "divergent-warp",
            Check::ShuffleInactive => "shuffle-inactive",
            Check::ShuffleSelector => "shuffle-selector",
            Check::UndefinedValue => "undefined-value",
            Check::UsizeOverflow => "usize-overflow",
            Check::IntegerOverflow => "integer-overflow",
            Check::DivisionByZero => "division-by-zero",
            Check::DivisionOverflow => "division-overflow",
            Check::ShiftOverflow => "shift-overflow",
            Check::LoopStep => "loop-step",
            Check::NanProduced => "nan-produced",
            Check::InfinityProduced => "infinity-produced",
            Check::ConversionOverflow => "conversion-overflow",
            Check::LossyCast => "lossy-cast",
            Check::Cancellation => "cancellation",
            Check::MachineDependent => "machine-dependent",
            Check::Assertion => "assertion",
            Check::Livelock => "livelock",
            Check::FuelExhausted => "fuel-exhausted",
            Check::WrongSpace => "wrong-space",
            Check::PartlyUninitialized => "partly-uninitialized",
            Check::Approximate => "approximate",
            Check::Trap => "trap",
        }
    }

    /// Returns the severity on `target`.
    pub fn severity(self, target: Target) -> Severity {
        match self {
            Check::EqualStores | Check::LossyCast => Severity::Note,
            Check::IntegerOverflow | Check::ShiftOverflow | Check::MachineDependent => Severity::Warning,
            Check::NanProduced | Check::InfinityProduced | Check::ConversionOverflow => Severity::Warning,
            Check::Cancellation | Check::Approximate | Check::PartlyUninitialized => Severity::Warning,
            Check::WarpRace if target < Target::SM_70 => Severity::Warning,
            _ => Severity::Error,
        }
    }

    /// Returns whether the check ends a launch that would otherwise run forever. Such a check
    /// cannot be disabled.
    pub const fn ends_launch(self) -> bool {
        matches!(self, Check::Livelock | Check::FuelExhausted)
    }

    /// Parses the name of a check of the oracle, or of a group.
    pub fn parse(name: &str) -> Result<Vec<Check>, UnknownCheck> {
        match GROUPS.iter().find(|(group, _)| *group == name) {
            Some((_, checks)) => Ok(checks.to_vec()),
            None => name.parse().map(|check| vec![check]),
        }
    }

    /// Returns one line of advice; `None` if the advice depends on the kernel.
    pub const fn help(self) -> Option<&'static str> {
        Some(match self {
            Check::OutOfBounds => "guard the access with `if index < length`, or use a masked load or store",
            Check::Misaligned => "declare the alignment with `#[requires(x.aligned(n))]`, or access single elements",
            Check::ReadOnlyWrite => "take the argument as `&mut [T]` or `ViewMut`",
            Check::UninitializedShared => {
                "store to the element, or wait for the copy to it, and call `block::sync()` before loading it"
            }
            Check::UnfinishedCopy => {
                "wait for the copy on every path, with `token.wait()` or `pipeline::wait`, before the array is reused and before the kernel ends"
            }
            Check::UninitializedLocal => "assign the variable on every path that leads here",
            Check::UninitializedBuffer => {
                "store to the element before loading it, or initialize the buffer on the host"
            }
            Check::UnwrittenOutput => {
                "make the grid cover the output, and let each thread write its elements on every path"
            }
            Check::WrittenTwice => {
                "let one thread write each element, or declare `writes(… = all)` if rewriting is intended"
            }
            Check::SharedRace => "add `block::sync()` between the two accesses",
            Check::WarpRace => {
                "add `warp::sync()` between the two accesses: since sm_70 the lanes of a warp do not run in lockstep"
            }
            Check::GlobalRace => "let one thread access each element, or split the work into two launches",
            Check::StoreConflict => "let one lane store, or give each lane its own element",
            Check::EqualStores => "let only one lane store: `if warp::lane() == 0`",
            Check::DivergentBarrier => "move the barrier to a place that all its threads reach",
            Check::DivergentWarp => "move the operation to a place that all lanes of the warp reach",
            Check::ShuffleInactive => "let all 32 lanes execute the shuffle, and select the results afterwards",
            Check::ShuffleSelector => "use a selector smaller than the segment width",
            Check::UndefinedValue => {
                "let all lanes participate, or use the result only in lanes that read from a participating lane"
            }
            Check::UsizeOverflow => {
                "`usize` has 32 bits on the device; compute in `u64`, or use `wrapping_*` if wrapping is intended"
            }
            Check::IntegerOverflow => "use `wrapping_add`, `wrapping_sub` or `wrapping_mul` if wrapping is intended",
            Check::DivisionByZero => "guard the division with `if divisor != 0`",
            Check::NanProduced => "guard the operation against operands for which it is undefined",
            Check::InfinityProduced => "scale the operands, accumulate in a wider type, or guard a division by zero",
            Check::ConversionOverflow => {
                "scale or clamp the value to the range of the narrower type before converting it"
            }
            Check::LossyCast => "clamp the value to the range of the type, or mask it if only the low bits are wanted",
            Check::Cancellation => "subtract before squaring or summing, or compute this part in `f64`",
            Check::MachineDependent => "do not let a compared result depend on this value",
            Check::ShiftOverflow => {
                "guard the shift amount, or use `wrapping_shl` or `wrapping_shr`, which shift modulo the width"
            }
            Check::Livelock => {
                "let each iteration change what the condition reads. Let a thread wait only for work that finishes first, or for warps of its block that do not wait for it. Declare the kernel `cooperative` if its blocks wait for each other"
            }
            Check::FuelExhausted => {
                "check that the loop ends; if it does, raise the limit: `Device::set_instruction_limit` or \
                 `Device::set_watchdog_timeout`, `Options::fuel` of the testing kit, `--fuel` on the command line, \
                 `set_instruction_limit` in Python"
            }
            Check::DivisionOverflow | Check::LoopStep => return None,
            Check::Assertion => {
                "correct the arguments or the kernel; a condition on arguments alone is better checked once, by `#[requires(…)]`"
            }
            Check::WrongSpace | Check::PartlyUninitialized | Check::Approximate | Check::Trap => return None,
        })
    }
}

/// The groups of checks that `#[allow(…)]` accepts as one name.
pub const GROUPS: [(&str, &[Check]); 1] =
    [("race", &[Check::SharedRace, Check::WarpRace, Check::GlobalRace, Check::StoreConflict])];

/// An allowed violation at a statement: `#[allow(global_race, reason = "…")]`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Allowance {
    /// The statement.
    pub span: Span,
    /// The allowed checks.
    pub checks: Vec<Check>,
    /// The reason.
    pub reason: String,
}

impl Allowance {
    /// Returns whether the statement contains `span` of the same function.
    pub fn covers(&self, span: Span) -> bool {
        (self.span.line, self.span.column) <= (span.line, span.column)
            && (span.end_line, span.end_column) <= (self.span.end_line, self.span.end_column)
    }
}

/// How much of an argument a kernel writes: `#[kernel(writes(y = all))]`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Coverage {
    /// Each element at least once.
    All,
    /// Each element, and no element by two threads.
    Once,
}

impl Coverage {
    /// Returns the keyword of the clause.
    pub const fn name(self) -> &'static str {
        match self {
            Coverage::All => "all",
            Coverage::Once => "once",
        }
    }
}

/// The declaration of how much of an argument a kernel writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DeclaredOutput {
    /// The index of the parameter in HIR, or of the argument in IR.
    pub index: u32,
    /// How much of the argument the kernel writes.
    pub coverage: Coverage,
}

/// The declarations of an instance for the oracle.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct OracleDeclarations {
    /// The arguments with a declared coverage.
    pub outputs: Vec<DeclaredOutput>,
    /// The allowances, each with the index of its function in the kernel's sources.
    pub allowances: Vec<(u32, Allowance)>,
    /// Whether all blocks of a launch are resident at once.
    pub cooperative: bool,
}

/// A set of checks.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct CheckSet(u64);

impl CheckSet {
    /// Returns whether the set contains a check.
    pub fn contains(self, check: Check) -> bool {
        self.0 >> check as u32 & 1 == 1
    }

    /// Returns whether the set is empty.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the union of both sets.
    pub fn union(self, others: CheckSet) -> CheckSet {
        CheckSet(self.0 | others.0)
    }

    /// Returns the set of all checks that are not in this set.
    pub fn complement(self) -> CheckSet {
        Check::ALL.into_iter().filter(|check| !self.contains(*check)).collect()
    }
}

impl FromIterator<Check> for CheckSet {
    fn from_iter<I: IntoIterator<Item = Check>>(checks: I) -> CheckSet {
        CheckSet(checks.into_iter().fold(0, |set, check| set | 1 << check as u64))
    }
}

/// Error returned when a string names no check of the oracle.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownCheck(String);

impl std::str::FromStr for Check {
    type Err = UnknownCheck;

    fn from_str(name: &str) -> Result<Check, UnknownCheck> {
        Check::ORACLE.iter().copied().find(|c| c.name() == name).ok_or_else(|| UnknownCheck(name.to_string()))
    }
}

impl fmt::Display for UnknownCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown check `{}`; the checks are", self.0)?;
        Check::ORACLE.iter().enumerate().try_for_each(|(i, c)| write!(f, "{} {c}", if i > 0 { "," } else { "" }))
    }
}

impl std::error::Error for UnknownCheck {}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Error => "error",
        })
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
