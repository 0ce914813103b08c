//! What the oracle checks, by name, and what a kernel declares to it.
//!
//! A check is a definition of something a kernel must not do. The list is closed, each entry has one severity, and its
//! documentation is the definition. A kernel names checks where it allows what they forbid ([`Allowance`]), and says how much
//! of its outputs it writes ([`Output`]); the interpreter in crate `runtime` holds it to that.

use crate::source::Span;
use crate::target::Target;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Something that a kernel must not do.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
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
    /// A copy ahead (`copy_async`, `cp_async`) has begun, and before the thread has waited for it, something else is stored to its
    /// destination, or another copy begins there, though a barrier lies between; or the thread ends. (What is loaded from there is `uninitialised-shared`.) Of a
    /// copy by `cp_async`, only those count at the end that bring something.
    UnfinishedCopy,
    /// A read of a variable or register array element that the thread has not written.
    UninitialisedLocal,
    /// A load from, or an atomic operation on, an element of a buffer that held nothing when the launch began, and that no
    /// thread has stored to since.
    UninitialisedBuffer,
    /// An element of an output that the kernel declares to write all of, `#[kernel(writes(y = all))]` or `once`, that no
    /// thread has stored to, nor changed atomically, when the launch has ended.
    UnwrittenOutput,
    /// Two threads store to one element of an output that the kernel declares to write once, `#[kernel(writes(y = once))]`,
    /// and something orders them, or they are lanes of one instruction that store the same. (Where nothing orders them it is
    /// a race.)
    WrittenTwice,
    /// Two warps of a block access one element of shared memory, at least one of them to store or in an atomic operation
    /// and not both in such, with no `block::sync()` between, nor fences and atomic operations that order them.
    SharedRace,
    /// Two lanes of one warp access one element of shared memory or of a buffer in different instructions, at least one of
    /// them to store or in an atomic operation and not both in such, with no `warp::sync()` or `block::sync()` between.
    /// Before sm_70 lanes run in lockstep, and the program's order is theirs: there it is a warning. From sm_70 on
    /// nothing orders them, shuffles and votes neither: an error.
    WarpRace,
    /// Two threads access one element of a buffer, at least one of them to store or in an atomic operation and not both
    /// in such, and nothing orders them: they are of
    /// different blocks, or of different warps of one block with no `block::sync()` between, and no fences and atomic
    /// operations (`kernel_dsl::fence`) hand one side's past to the other. But for the latter, independent of the
    /// order in which the interpreter runs blocks.
    GlobalRace,
    /// Two lanes of a warp store different values to one element in one instruction; which value stays is not
    /// specified.
    StoreConflict,
    /// Several lanes of a warp store the same value to one element in one instruction: what stays is that value, and one lane would do.
    /// Only where the launch asks for notes.
    EqualStores,
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
    /// What a shuffle gives that reads from a lane that takes no part, or a vote, match or reduction that lanes of the warp miss, is
    /// undefined, and so is what is computed from it, wherever that is kept meanwhile. It is stored to a buffer, goes into an atomic
    /// operation, is part of an address, or decides where a thread goes.
    UndefinedValue,
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
    /// `<<` or `>>` by the width of the type or more: a panic in Rust's debug builds; otherwise, as here, the distance counts modulo the
    /// width (of a distance of 64 bits, its lower 32). Where it is meant, `wrapping_shl` and `wrapping_shr` say so.
    ShiftOverflow,
    /// A `for` loop's step is zero or less.
    LoopStep,
    /// A NaN is stored to a buffer, and an operation of the kernel made it from operands that were none: `0.0 / 0.0`,
    /// `∞ − ∞`, the root of a negative number. One that was loaded, or written down, is no finding.
    NanProduced,
    /// An infinity is stored to a buffer, and an operation of the kernel made it from finite operands: a sum or product
    /// beyond the range of its type, a division by zero. One that was loaded, or written down, is no finding.
    InfinityProduced,
    /// An infinity (or, of a layout without infinities, a NaN) is stored to a buffer, and a conversion to a narrower float
    /// made it from a finite number beyond the range of that.
    ConversionOverflow,
    /// `as` gives an integer that does not hold its operand: a narrower one that loses bits, with whichever sign they are read; or
    /// what a NaN, or a float beyond the integer's range, is taken for: 0, or the nearest there is. Only where the launch asks for notes.
    LossyCast,
    /// A sum or difference of `f32`s, `f16`s or `f64`s loses its leading digits, and what comes of it is stored to a buffer: that is
    /// further from what the same operations give in `f64` (of `f64`s, in twice their digits) than the launch asks to be told of,
    /// `Options::cancellation`, and the relative error has grown eightfold or more in the one operation. What is loaded, converted from
    /// integers, or given by `math::` and `fast::` counts as exact; so do `bf16` and floats of one's own layout.
    /// Only where the launch asks for it: it runs once more for that.
    Cancellation,
    /// Inline PTX reads what the machine gives and not the launch: a clock, a multiprocessor's number, which lanes are active.
    MachineDependent,
    /// A loop that cannot end: a turn of it, or of several, leaves all variables and all memory as they were, and nobody is left
    /// that could change what it reads. The block's other warps have ended, wait at a barrier, or turn in such circles themselves; blocks
    /// that have not begun need not run before this one ends. Lanes of the warp that have left the loop wait, before sm_70, for the others
    /// where they meet again; from sm_70 on they go on by themselves, to where all lanes must come.
    Livelock,
    /// A block has run as many warp instructions as `Options::fuel` allows: perhaps an endless loop, each of whose turns
    /// changes something.
    FuelExhausted,
}

/// How bad it is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// The kernel's results are what it says; it does more than it needs to, or its author may not have meant it.
    Note,
    /// The kernel's results are what it says, but it is likely not what its author meant.
    Warning,
    /// The kernel's results are not defined.
    Error,
}

impl Check {
    /// Every check.
    pub const ALL: [Check; 33] = [
        Check::OutOfBounds,
        Check::Misaligned,
        Check::ReadOnlyWrite,
        Check::UninitialisedShared,
        Check::UnfinishedCopy,
        Check::UninitialisedLocal,
        Check::UninitialisedBuffer,
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
        Check::Livelock,
        Check::FuelExhausted,
    ];

    /// Those that tell of the origin of a NaN or an infinity: where one is stored, they take a second run.
    pub const ORIGINS: [Check; 3] = [Check::NanProduced, Check::InfinityProduced, Check::ConversionOverflow];

    /// The name in reports and options.
    pub const fn name(self) -> &'static str {
        match self {
            Check::OutOfBounds => "out-of-bounds",
            Check::Misaligned => "misaligned",
            Check::ReadOnlyWrite => "read-only-write",
            Check::UninitialisedShared => "uninitialised-shared",
            Check::UnfinishedCopy => "unfinished-copy",
            Check::UninitialisedLocal => "uninitialised-local",
            Check::UninitialisedBuffer => "uninitialised-buffer",
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
            Check::Livelock => "livelock",
            Check::FuelExhausted => "fuel-exhausted",
        }
    }

    /// How bad it is on `target`.
    pub fn severity(self, target: Target) -> Severity {
        match self {
            Check::EqualStores | Check::LossyCast => Severity::Note,
            Check::IntegerOverflow | Check::ShiftOverflow | Check::MachineDependent => Severity::Warning,
            Check::NanProduced | Check::InfinityProduced | Check::ConversionOverflow => Severity::Warning,
            Check::Cancellation => Severity::Warning,
            Check::WarpRace if target < Target::SM_70 => Severity::Warning,
            _ => Severity::Error,
        }
    }

    /// Whether it ends a launch that would not end: such a check is never left out, for what it ends has not passed.
    pub const fn ends_launch(self) -> bool {
        matches!(self, Check::Livelock | Check::FuelExhausted)
    }

    /// The check of that name, or those of the group that `#[allow(…)]` calls so.
    pub fn named(name: &str) -> Result<Vec<Check>, UnknownCheck> {
        match GROUPS.iter().find(|(group, _)| *group == name) {
            Some((_, checks)) => Ok(checks.to_vec()),
            None => name.parse().map(|check| vec![check]),
        }
    }

    /// What to do about it, in a line; `None` where that depends on the kernel alone.
    pub const fn help(self) -> Option<&'static str> {
        Some(match self {
            Check::OutOfBounds => "guard the access by `if index < length`, or use a masked load or store",
            Check::Misaligned => "declare the alignment with `requires(x.aligned(n))`, or load single elements",
            Check::ReadOnlyWrite => "take the argument as `&mut [T]` or `ViewMut`",
            Check::UninitialisedShared => "store to the element, and `block::sync()`, before loading it",
            Check::UnfinishedCopy => {
                "wait for the copy on every path, `token.wait()` or `pipeline::wait`, before the array is used for another, and before the end"
            }
            Check::UninitialisedLocal => "give the variable a value on every path that leads here",
            Check::UninitialisedBuffer => "store to the element before loading it, or let the host fill the buffer",
            Check::UnwrittenOutput => "let the grid cover the output, and each thread write its part on every path",
            Check::WrittenTwice => "let one thread own each element, or declare `writes(… = all)` if that is meant",
            Check::SharedRace => "put a `block::sync()` between the two accesses",
            Check::WarpRace => {
                "put a `warp::sync()` between the two accesses: from sm_70 on lanes of a warp do not run in lockstep"
            }
            Check::GlobalRace => "let one thread own each element, or split the work into two launches",
            Check::StoreConflict => "let one lane store, or give each lane an element of its own",
            Check::EqualStores => "let one lane store: `if warp::lane() == 0`",
            Check::DivergentBarrier => "move the `block::sync()` to where all threads of the block pass",
            Check::DivergentWarp => "move the operation to where all lanes of the warp pass",
            Check::ShuffleInactive => "let all 32 lanes pass the shuffle, and choose afterwards what to use",
            Check::ShuffleSelector => "choose a selector below the width of the segment",
            Check::UndefinedValue => {
                "let all lanes take part, or choose by a condition of the lane's own what is used of it"
            }
            Check::UsizeOverflow => "`usize` is 32 bits on the device; compute in `u64`, or use `wrapping_*` if meant",
            Check::IntegerOverflow => "use `wrapping_add`, `wrapping_sub` or `wrapping_mul` where wrapping is meant",
            Check::DivisionByZero => "guard the division by `if divisor != 0`",
            Check::NanProduced => "guard the operation against operands for which it has no value",
            Check::InfinityProduced => "scale the operands, or accumulate in a wider type; guard a division by zero",
            Check::ConversionOverflow => {
                "scale or clamp the value to the range of the narrower type before converting it"
            }
            Check::LossyCast => "clamp the value to the range of the type, or mask it where its lower bits are meant",
            Check::Cancellation => "subtract before squaring or summing, or compute this part in `f64`",
            Check::MachineDependent => "let nothing that is compared depend on it",
            Check::ShiftOverflow => {
                "guard the distance, or use `wrapping_shl` or `wrapping_shr` where modulo the width is meant"
            }
            Check::Livelock => {
                "let a thread wait only for what is done before it waits, or by warps of its block that do not wait for it"
            }
            Check::FuelExhausted => {
                "see whether the loop ends; if it does, raise the limit: `Device::set_instruction_limit`, `Device::set_watchdog_timeout`, `Options::fuel` of the testing kit, `--fuel` of a command"
            }
            Check::DivisionOverflow | Check::LoopStep => return None,
        })
    }
}

/// The checks that `#[allow(…)]` calls by one name.
pub const GROUPS: [(&str, &[Check]); 1] =
    [("race", &[Check::SharedRace, Check::WarpRace, Check::GlobalRace, Check::StoreConflict])];

/// What a statement allows: `#[allow(global_race, reason = "…")]`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Allowance {
    /// The statement, in its function.
    pub span: Span,
    /// What it may do.
    pub checks: Vec<Check>,
    /// Why it may.
    pub reason: String,
}

impl Allowance {
    /// Whether it is for what stands at `span`, of the same function.
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
    /// The word in the clause.
    pub const fn name(self) -> &'static str {
        match self {
            Coverage::All => "all",
            Coverage::Once => "once",
        }
    }
}

/// What a kernel declares of an argument that it writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Output {
    /// The parameter in HIR; in IR, the argument.
    pub index: u32,
    /// How much of it.
    pub coverage: Coverage,
}

/// What an instance of a kernel declares to the oracle.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Declared {
    /// Arguments that it writes.
    pub outputs: Vec<Output>,
    /// What statements may do, each with the index of its function among the kernel's sources.
    pub allowances: Vec<(u32, Allowance)>,
}

/// Some checks.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct CheckSet(u64);

impl CheckSet {
    /// Whether it is among them.
    pub fn contains(self, check: Check) -> bool {
        self.0 >> check as u32 & 1 == 1
    }

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Those, and the others.
    pub fn and(self, others: CheckSet) -> CheckSet {
        CheckSet(self.0 | others.0)
    }

    /// All but those.
    pub fn complement(self) -> CheckSet {
        Check::ALL.into_iter().filter(|check| !self.contains(*check)).collect()
    }
}

impl FromIterator<Check> for CheckSet {
    fn from_iter<I: IntoIterator<Item = Check>>(checks: I) -> CheckSet {
        CheckSet(checks.into_iter().fold(0, |set, check| set | 1 << check as u64))
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
