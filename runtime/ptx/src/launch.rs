//! A launch of an entry: its shape, arguments and options, and its outcome.

use super::flow::BranchPolicy;
use super::refused::Unsupported;
use super::{ArgumentBytes, Check, Report, Schedule, Statistics, Verdict};
use kernel_dsl_compiler::oracle::CheckSet;
use kernel_dsl_compiler::ptx::parse;
use std::fmt;
use std::num::NonZeroUsize;

/// A launch.
#[derive(Debug)]
pub struct Launch<'m> {
    /// Blocks in x, y, z. If one is 0, nothing runs.
    pub grid: [u32; 3],
    /// Threads of a block in x, y, z.
    pub block: [u32; 3],
    /// Bytes of shared memory in addition to the module's variables.
    pub dynamic_shared: u32,
    /// The buffers that the kernel may access.
    pub buffers: Vec<BufferArgument<'m>>,
    /// The entry's parameters, in order.
    pub parameters: Vec<ParameterValue>,
    /// The options of the run.
    pub options: Options,
}

/// A buffer that a kernel may access.
#[derive(Debug)]
pub struct BufferArgument<'m> {
    /// The name in reports.
    pub name: String,
    /// The contents. Only exclusive memory may be written.
    pub bytes: ArgumentBytes<'m>,
}

/// The value of a parameter of the entry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ParameterValue {
    /// A scalar's bits, zero-extended.
    Bits(u64),
    /// The bytes of a structure.
    Bytes(Vec<u8>),
    /// The address of a byte of a buffer.
    #[allow(missing_docs)]
    Address { buffer: usize, offset: u64 },
}

/// The options of a run.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The checks to run.
    pub checks: Checks,
    /// The order in which diverged lanes run.
    pub policy: BranchPolicy,
    /// The order in which blocks and warps run.
    pub schedule: Schedule,
    /// The limit of warp instructions of each block, or of the whole launch if blocks run
    /// interleaved. A loop that is still running at the limit is assumed to be endless.
    pub fuel: u64,
    /// The number of errors after which a run ends.
    pub limit: usize,
    /// The largest number of host threads for the blocks; `None` uses the number of cores. Results
    /// and reports do not depend on this number, except for uninitialized values that blocks read.
    pub threads: Option<NonZeroUsize>,
    /// Whether the launch is cooperative: all blocks are resident at once, and can wait for one
    /// another.
    pub cooperative: bool,
    /// The bytes of each thread's stack, at most 512 KiB, if functions call themselves, are called
    /// indirectly, or allocate; `None` means 64 KiB, or 16 KiB if the kernel only allocates.
    pub stack: Option<u32>,
    /// The bytes of each thread's stack on the device, if calls are checked against it. The frames
    /// count with the size that they have in machine code at least: local variables that the
    /// function indexes or passes on.
    pub stack_limit: Option<u32>,
    /// Whether to find races between warps, if a check of races is enabled. The launch then runs on
    /// one thread, and takes 24 bytes for each byte that it accesses, at most 200 MB.
    pub races: bool,
}

/// The set of checks that a run makes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Checks {
    /// Only the instruction limit and traps. Accesses outside of memory are suppressed without a
    /// report.
    Values,
    /// In addition to `Values`, everything at which a GPU stops: accesses outside of memory, to the
    /// wrong space or misaligned, stores to read-only memory, and barriers that cannot complete.
    Faults,
    /// In addition to `Faults`, the checks of a set.
    Named(CheckSet),
    /// Every [`Check`].
    All,
}

impl Checks {
    /// Returns whether `check` is enabled.
    pub fn enables(self, check: Check) -> bool {
        let always = matches!(check, Check::FuelExhausted | Check::Trap | Check::Assertion);
        match self {
            Checks::Values => always,
            Checks::Faults => always || is_fault(check),
            Checks::Named(set) => always || is_fault(check) || set.contains(check),
            Checks::All => true,
        }
    }

    /// Returns whether a check of races is enabled.
    pub fn enables_races(self) -> bool {
        self.enables(Check::GlobalRace) || self.enables(Check::SharedRace)
    }

    /// Returns whether the run tracks what only checks beyond `Faults` need.
    pub(super) fn is_complete(self) -> bool {
        matches!(self, Checks::Named(_) | Checks::All)
    }
}

/// Returns whether a GPU stops at a violation.
fn is_fault(check: Check) -> bool {
    use Check::*;
    matches!(check, OutOfBounds | Misaligned | WrongSpace | ReadOnlyWrite | DivergentBarrier | Trap | Assertion)
}

impl Default for Options {
    /// Returns the defaults: every check, 2³⁰ warp instructions a block, 64 findings, and every
    /// core.
    fn default() -> Options {
        Options {
            checks: Checks::All,
            policy: BranchPolicy::default(),
            schedule: Schedule::InOrder,
            fuel: 1 << 30,
            limit: 64,
            threads: None,
            cooperative: false,
            stack: None,
            stack_limit: None,
            races: false,
        }
    }
}

/// The result of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    /// The statistics of the run.
    pub statistics: Statistics,
    /// The findings of the run.
    pub report: Report,
    /// The number of points at which a warp could be preempted: executions of atomic operations.
    pub points: u64,
    /// The buffers that hold values that depend on an approximation; complete only if all checks
    /// run. A GPU's contents may differ, so bits must not be compared.
    pub approximate: Vec<usize>,
    /// The text that the kernel printed with `printf`; at most the last MiB.
    pub printed: Vec<u8>,
    /// The messages of failed assertions, one a line.
    pub asserted: String,
}

impl Outcome {
    /// Returns the statistics.
    ///
    /// # Errors
    /// Returns the report if it contains an error.
    pub fn result(self) -> Result<Statistics, Box<Report>> {
        if self.report.verdict() == Verdict::Pass { Ok(self.statistics) } else { Err(Box::new(self.report)) }
    }
}

/// The reason why a run of PTX failed.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum RunFailure {
    /// The text is not valid PTX.
    #[error("invalid PTX: {0}")]
    Syntax(parse::ParseErrors),
    /// The PTX contains something unsupported; nothing has run.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
    /// The launch does not fit the entry; nothing has run.
    #[error(transparent)]
    Mismatch(#[from] Mismatch),
    /// The kernel violated a check.
    #[error(transparent)]
    Violation(#[from] Box<Report>),
}

/// A launch that does not fit the entry; nothing has run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mismatch(pub Vec<String>);

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("\n"))
    }
}

impl std::error::Error for Mismatch {}

/// The shape of a launch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Grid {
    /// Blocks in x, y, z. If one is 0, nothing runs.
    pub grid: [u32; 3],
    /// Threads of a block in x, y, z.
    pub block: [u32; 3],
    /// Bytes of shared memory in addition to the module's variables.
    pub dynamic_shared: u32,
}
