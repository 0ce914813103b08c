//! The PTX interpreter: the second oracle. It runs PTX, the text that a GPU runs, and reports what
//! is wrong with it.
//!
//! # What is independent of the oracle
//!
//! The oracle ([`interpreter`](crate::interpreter)) runs the compiler's own IR. These parts are
//! written twice, so that a mistake in one interpreter cannot hide in the other:
//!
//! - integer and floating-point arithmetic,
//! - control flow: divergence and reconvergence,
//! - the checks of memory accesses.
//!
//! These parts are shared with the oracle or with the compiler:
//!
//! - [`Bytes`] and [`Statistics`], two data types,
//! - the split of a launch over host threads (`cores`),
//! - the stand-ins for approximations (`kernel_dsl::compiler::Approximation`),
//! - the parser and the table of PTX instructions (`kernel_dsl::compiler::ptx`),
//! - inline PTX: the oracle runs a kernel's `ptx!(…)` through this interpreter (`inline`).
//!
//! This interpreter also runs PTX that other compilers made.
//!
//! # How it runs
//!
//! [`Program::decode`] decodes one entry to flat code. It inlines calls and resolves operands to
//! places. Each instruction becomes a closure over rows of 32 lanes (`body`), with its modifiers
//! resolved. Decoding rejects unknown instructions by name: nothing is skipped silently.
//! [`Program::run`] runs a launch. Blocks run one after the other. Where this makes no difference,
//! they run in parallel on several cores (`parallel`). The warps of a block alternate, and a warp
//! runs in lockstep. Diverged lanes run and reconverge by one of two policies ([`Policy`]); a legal
//! program gives the same results under each. No lanes reconverge at a `ret`, an `exit` or a `trap`
//! (`structure`).
//!
//! Every instruction of sm_61 runs, except those on textures and surfaces, which a launch cannot
//! provide. Decoding also rejects recursive calls and calls of functions that the module does not
//! define.
//!
//! ```text
//! ptx::Module ─ decode ─▶ code ─▶ machine ─▶ warp ─▶ body ─▶ arithmetic      values
//!                          │                 ├─▶ flow (structure)            who runs next
//!                          │                 ├─▶ access ─▶ memory            loads, stores, atomics
//!                          │                 └─▶ cooperate                   shuffles, votes, matches
//!                          └─ sites ─▶ report                               what was found
//! ```
//!
//! A kernel's own `ptx!(…)` is decoded here too (`inline`), and the oracle runs it at its position
//! in the kernel's IR. The meaning of PTX is thus defined in one place.
//!
//! # Values
//!
//! Arithmetic follows the manual bit for bit, in every rounding mode. A computed NaN of 16 or 32
//! bits has one bit pattern per format, and a NaN of 64 bits keeps a payload. With `.ftz`, a result
//! becomes a zero if it is below the least normal number after rounding with an unbounded exponent.
//! Instructions without a rounding modifier round to nearest and are never contracted. An
//! approximation gives the true value, rounded, which is one of the results that the manual allows.
//! Memory is sequentially consistent. A warp's atomics execute in order of ascending lanes.
//!
//! # Approximations
//!
//! An approximation has many allowed results. Values that depend on one are marked with the
//! instruction and its published bound. The mark propagates through registers, shuffles and memory:
//! per buffer as a whole, and per address in shared memory. [`Outcome::approximate`] lists the
//! buffers that hold such values. A condition or an address that depends on an approximation is a
//! warning, because a GPU may take another path there.
//!
//! [`approximations`] has the errors of the interpreter and of a card, measured on all operands of
//! 32 bits.
//!
//! # Unspecified values and the card
//!
//! [`unspecified`] lists operands for which the manual specifies no result, and what sm_61 machine
//! code returns for them. [`differences`] compares the interpreter with a card on every pure
//! computation of the instruction table, and explains each difference.
//!
//! # Undefined values
//!
//! Uninitialized registers, quotients by zero, and values that a shuffle reads from an inactive
//! lane are undefined. Undefined values propagate through computations. A report is made only where
//! they matter: in an address, a condition or a stored value. So a speculated division with an
//! unused result is no mistake.

mod access;
mod ahead;
mod arithmetic;
mod body;
pub mod check;
mod code;
mod cooperate;
mod decode;
mod flow;
mod global;
mod halves;
pub(crate) mod inline;
mod machine;
mod memory;
mod parallel;
pub(crate) mod registers;
pub mod report;
pub mod resident;
mod structure;
mod touched;
pub mod unspecified;
mod warp;

#[doc = include_str!("approximations.md")]
pub mod approximations {}

#[doc = include_str!("differences.md")]
pub mod differences {}

pub use crate::statistics::Statistics;
pub use check::{Check, Severity};
pub(crate) use decode::decode_inline;
pub use decode::{Refusal, Unsupported};
pub use flow::Policy;
pub use report::{Finding, Report, Thread};
pub use resident::{Image, Resident};

use crate::interpreter::Bytes;
use code::Code;
use global::Global;
use kernel_dsl::compiler::ptx::{Module, Parameter, parse};
use machine::{Machine, Setting};
use memory::{Buffer, Lookup, MOST_BUFFERS, base};
use report::Findings;
use std::fmt;
use std::num::NonZeroUsize;

/// One entry of a module, ready to run.
#[derive(Debug)]
pub struct Program {
    name: String,
    code: Code,
    globals: Vec<Global>,
    /// The offset in shared memory at which the launch's own part begins.
    dynamic: u32,
    parameters: Vec<Parameter>,
    required_threads: Option<[u32; 3]>,
    max_threads: Option<[u32; 3]>,
}

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
    pub buffers: Vec<Argument<'m>>,
    /// The entry's parameters, in order.
    pub parameters: Vec<Value>,
    /// The options of the run.
    pub options: Options,
}

/// A buffer that a kernel may access.
#[derive(Debug)]
pub struct Argument<'m> {
    /// The name in reports.
    pub name: String,
    /// The contents. Only exclusive memory may be written.
    pub bytes: Bytes<'m>,
}

/// The value of a parameter of the entry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Value {
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
    pub policy: Policy,
    /// The limit of warp instructions per block: a loop that is still running then is assumed to be
    /// endless. A launch of several blocks may run more in total.
    pub fuel: u64,
    /// The number of findings after which a run ends.
    pub limit: usize,
    /// The largest number of host threads for the blocks; `None` uses the number of cores. Results
    /// and reports do not depend on this number, except for uninitialized values that blocks read.
    pub threads: Option<NonZeroUsize>,
}

/// The extent of the checks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Checks {
    /// Only the instruction limit and traps. Accesses outside of memory are suppressed and not
    /// reported.
    Values,
    /// In addition, everything at which a GPU stops. These are accesses outside of memory, to the
    /// wrong space or misaligned, stores to read-only memory, and barriers that cannot complete.
    Faults,
    /// Every [`Check`].
    All,
}

impl Checks {
    /// Returns whether `check` is enabled.
    fn tell(self, check: Check) -> bool {
        let always = matches!(check, Check::FuelExhausted | Check::Trap);
        match self {
            Checks::Values => always,
            Checks::Faults => always || check.is_fault(),
            Checks::All => true,
        }
    }
}

impl Default for Options {
    /// Returns the defaults: every check, 2³² warp instructions a block, 64 findings, and every
    /// core.
    fn default() -> Options {
        Options { checks: Checks::All, policy: Policy::default(), fuel: 1 << 32, limit: 64, threads: None }
    }
}

/// The result of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    /// The statistics of the run.
    pub statistics: Statistics,
    /// The findings of the run.
    pub report: Report,
    /// The buffers that hold values that depend on an approximation; complete only if all checks
    /// run. A GPU's contents may differ, so bits must not be compared.
    pub approximate: Vec<usize>,
}

impl Outcome {
    /// Returns the statistics, or the report if it contains an error.
    pub fn result(self) -> Result<Statistics, Box<Report>> {
        if self.report.is_good() { Ok(self.statistics) } else { Err(Box::new(self.report)) }
    }
}

/// The reason why a run of PTX failed.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum Failure {
    /// The text is not valid PTX.
    #[error("the PTX is wrong: {0}")]
    Syntax(parse::Errors),
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

/// The largest number of threads of a block, on every target.
const MOST_THREADS: u64 = 1024;

impl Program {
    /// Decodes the entry with the given name.
    pub fn decode(module: &Module, entry: &str) -> Result<Program, Unsupported> {
        decode::decode(module, entry, None)
    }

    /// Returns the entry's parameters, in order.
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// Runs a launch until it ends or reaches the limit of findings. The buffers hold what the
    /// kernel stored, even if there are findings.
    pub fn run(&self, launch: Launch<'_>) -> Result<Outcome, Mismatch> {
        let Launch { grid, block, dynamic_shared, buffers, parameters, options } = launch;
        let mut globals: Vec<Vec<u8>> = self.globals.iter().map(|g| g.bytes.clone()).collect();
        let mut all: Vec<Buffer<'_>> = Vec::new();
        for (global, bytes) in self.globals.iter().zip(&mut globals) {
            let name = global.name.clone();
            all.push(Buffer {
                name,
                base: base(all.len()),
                mutable: !global.constant,
                constant: global.constant,
                bytes: Bytes::Exclusive(bytes),
                approximate: false,
                touched: None,
            });
        }
        for Argument { name, bytes } in buffers {
            let mutable = matches!(bytes, Bytes::Exclusive(_));
            all.push(Buffer::new(all.len(), name, mutable, false, bytes));
        }
        let parameters = self.bind(block, &all, &parameters)?;
        let grid = Grid { grid, block, dynamic_shared };
        self.execute(grid, all, Lookup::Number, parameters, options)
    }

    /// Runs a launch that was validated against the entry.
    fn execute(
        &self,
        grid: Grid,
        mut all: Vec<Buffer<'_>>,
        lookup: Lookup,
        parameters: Vec<u8>,
        options: Options,
    ) -> Result<Outcome, Mismatch> {
        let Grid { grid, block, dynamic_shared } = grid;
        let shared = u64::from(self.dynamic) + u64::from(dynamic_shared);
        let Ok(shared) = u32::try_from(shared) else {
            return Err(Mismatch(vec![format!("{shared} bytes of shared memory are more than there can be")]));
        };
        let shared = shared.max(self.code.shared.bytes) as usize;
        let setting = Setting { parameters, lookup, shared, grid, threads: block, dynamic_shared };
        if let Some(statistics) = parallel::run(self, &setting, &mut all, options) {
            let report = Findings::new(options.limit).report(self.name.clone());
            return Ok(Outcome { statistics, report, approximate: Vec::new() });
        }
        let mut machine = Machine::new(self, &setting, all, options);
        machine.run(0..setting.blocks());
        let report = machine.findings.report(self.name.clone());
        let given = machine.memory.buffers.iter().skip(self.globals.len());
        let approximate = given.enumerate().filter_map(|(i, buffer)| buffer.approximate.then_some(i)).collect();
        Ok(Outcome { statistics: machine.statistics, report, approximate })
    }

    /// Returns the reasons why blocks of this shape cannot run.
    fn misfits(&self, block: [u32; 3]) -> Vec<String> {
        let mut wrong = Vec::new();
        let threads = block.iter().map(|n| u64::from(*n)).try_fold(1, u64::checked_mul).unwrap_or(u64::MAX);
        if threads == 0 || threads > MOST_THREADS {
            wrong.push(format!("invalid block size {block:?}: a block has 1 to {MOST_THREADS} threads"));
        }
        if let Some(required) = self.required_threads.filter(|r| *r != block) {
            wrong.push(format!("the entry requires blocks of {required:?} threads, and {block:?} are given"));
        }
        let most = self.max_threads.map(|m| m.iter().map(|n| u64::from(*n)).product::<u64>());
        if let Some(most) = most.filter(|most| threads > *most) {
            wrong.push(format!("the entry is for blocks of {most} threads at most, and {threads} are given"));
        }
        wrong
    }

    /// Converts the values to the bytes of the parameters.
    fn bind(&self, block: [u32; 3], buffers: &[Buffer<'_>], values: &[Value]) -> Result<Vec<u8>, Mismatch> {
        let mut wrong = self.misfits(block);
        if buffers.len() > MOST_BUFFERS {
            wrong.push(format!("{} buffers are more than there can be", buffers.len()));
        }
        if values.len() != self.parameters.len() {
            let (takes, given) = (self.parameters.len(), values.len());
            wrong.push(format!("`{}` takes {takes} parameters, and {given} are given", self.name));
            return Err(Mismatch(wrong));
        }
        let mut bytes = vec![0; self.code.parameters.bytes as usize];
        for ((variable, parameter), value) in self.code.parameters.variables.iter().zip(&self.parameters).zip(values) {
            let to = &mut bytes[variable.offset as usize..][..variable.bytes as usize];
            let size = to.len();
            let bits = match value {
                Value::Bits(bits) => *bits,
                Value::Bytes(from) if from.len() == size => {
                    to.copy_from_slice(from);
                    continue;
                }
                Value::Bytes(from) => {
                    wrong.push(format!(
                        "parameter `{}` has {size} bytes, and {} are given",
                        parameter.name,
                        from.len()
                    ));
                    continue;
                }
                Value::Address { buffer, offset } => match buffers.get(self.globals.len() + buffer) {
                    Some(buffer) => buffer.base.wrapping_add(*offset),
                    None => {
                        wrong.push(format!(
                            "parameter `{}` is the address of a buffer that is not given",
                            parameter.name
                        ));
                        continue;
                    }
                },
            };
            if size > 8 || size < 8 && bits >> (8 * size) != 0 {
                wrong.push(format!("parameter `{}` has {size} bytes, and {bits:#x} is given", parameter.name));
                continue;
            }
            to.copy_from_slice(&bits.to_le_bytes()[..size]);
        }
        if wrong.is_empty() { Ok(bytes) } else { Err(Mismatch(wrong)) }
    }
}
