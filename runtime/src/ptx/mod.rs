//! The second oracle: runs PTX, the text that a GPU runs, and tells what is wrong with it.
//!
//! It shares nothing with [`interpreter`](crate::interpreter), which runs the compiler's own IR: not the arithmetic, not the
//! control flow, not the checks. So a wrong belief of one cannot hide in the other, and PTX that others wrote runs
//! too.
//!
//! # How it runs
//!
//! [`Program::decode`] makes flat code of one entry: calls are inlined, operands become places, and
//! each instruction becomes a closure over rows of 32 lanes (`body`), its modifiers resolved. What
//! is not known is refused there, by its name: nothing is skipped silently. [`Program::run`] runs a
//! launch: blocks one after the other, or on each core some of them where that makes no difference
//! (`parallel`), a block's warps in turns, a warp in lockstep. Diverged lanes run and reconverge by
//! one of two policies ([`Policy`]); a legal program gives the same results under each. No lanes
//! reconverge at a `ret`, an `exit` or a `trap` (`structure`).
//!
//! Every instruction that sm_61 has is run but those on textures and surfaces, which a launch has no way to bring.
//! Recursive calls are refused, and so are calls of functions that the module does not define.
//!
//! ```text
//! ptx::Module ─ decode ─▶ code ─▶ machine ─▶ warp ─▶ body ─▶ arithmetic      values
//!                          │                 ├─▶ flow (structure)            who runs next
//!                          │                 ├─▶ access ─▶ memory            loads, stores, atomics
//!                          │                 └─▶ cooperate                   shuffles, votes, matches
//!                          └─ sites ─▶ report                               what was found
//! ```
//!
//! A kernel's own `ptx!(…)` is decoded here too (`inline`), for the oracle to run where it stands in the kernel's IR: what
//! PTX means, is said in one place.
//!
//! # Values
//!
//! Arithmetic is that of the manual, bit for bit, in every rounding; a NaN of 16 or 32 bits is one
//! per format, and a NaN of 64 bits keeps a payload. With `.ftz`, a result becomes a zero if the
//! result is below the least normal number after rounding with an unbounded exponent. Instructions
//! without a rounding modifier round to nearest and are never contracted. Approximations give the
//! true value rounded, one of those that the manual allows. Memory is sequentially consistent. A
//! warp's atomics happen by ascending lane.
//!
//! # Approximations
//!
//! An approximation's result is one of many that are allowed. What is computed from it is marked, through registers,
//! shuffles and memory (of buffers as a whole, of shared memory by place), with the instruction and its published bound: [`Outcome::approximate`] says which buffers
//! hold such values, and a condition or an address that comes of one is a warning, for a GPU may go another way there.
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
//! What nothing has written, a quotient by zero, and what a shuffle reads from a lane that takes no part are not
//! defined. They spread through computations, and are reported where they come to matter: in an address, a condition, a
//! stored value. So a speculated division whose result nobody uses is no mistake.

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
    /// Where in shared memory what the launch adds begins.
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
    /// Bytes of shared memory beside what the module declares.
    pub dynamic_shared: u32,
    /// Memory that the kernel may touch.
    pub buffers: Vec<Argument<'m>>,
    /// The entry's parameters, in order.
    pub parameters: Vec<Value>,
    /// How to run.
    pub options: Options,
}

/// Memory that a kernel may touch.
#[derive(Debug)]
pub struct Argument<'m> {
    /// What reports call it.
    pub name: String,
    /// Its contents; only what is given exclusively may be written.
    pub bytes: Bytes<'m>,
}

/// What a parameter of the entry holds.
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

/// How to run a launch.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// What to check.
    pub checks: Checks,
    /// Which lanes run next where they part.
    pub policy: Policy,
    /// Warp instructions of a block after which the loop that runs is taken to be endless. A launch
    /// of more blocks may run more.
    pub fuel: u64,
    /// Findings after which a run ends.
    pub limit: usize,
    /// Threads of the host that blocks run on at most; `None` is as many as the machine has cores. What is left and reported is the
    /// same, but for what blocks read that nothing has written.
    pub threads: Option<NonZeroUsize>,
}

/// How much is checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Checks {
    /// Only fuel and traps. What lies outside of memory is not touched, and nothing is said.
    Values,
    /// What a GPU stops for as well: an access outside of memory, to the wrong space or misaligned, a store to what is only
    /// read, a barrier that cannot be met.
    Faults,
    /// Every [`Check`].
    All,
}

impl Checks {
    /// Whether `check` is among them.
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
    /// Every check, 2³² warp instructions a block, 64 findings, every core.
    fn default() -> Options {
        Options { checks: Checks::All, policy: Policy::default(), fuel: 1 << 32, limit: 64, threads: None }
    }
}

/// How a run went.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    /// What it did.
    pub statistics: Statistics,
    /// What was found.
    pub report: Report,
    /// The buffers that hold something that comes of an approximation, as far as was checked: what a GPU leaves there may
    /// differ, and bits are not to be compared.
    pub approximate: Vec<usize>,
}

impl Outcome {
    /// The statistics, or the report if there is an error in it.
    pub fn result(self) -> Result<Statistics, Box<Report>> {
        if self.report.is_good() { Ok(self.statistics) } else { Err(Box::new(self.report)) }
    }
}

/// Why PTX did not run to its end, or not well.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum Failure {
    /// It is not PTX.
    #[error("the PTX is wrong: {0}")]
    Syntax(parse::Errors),
    /// Something in it is not known here; nothing has run.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
    /// The launch does not fit it; nothing has run.
    #[error(transparent)]
    Mismatch(#[from] Mismatch),
    /// It did what it must not.
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
    /// Bytes of shared memory beside what the module declares.
    pub dynamic_shared: u32,
}

/// Threads of a block at most, on every target.
const MOST_THREADS: u64 = 1024;

impl Program {
    /// Makes code of the entry of that name.
    pub fn decode(module: &Module, entry: &str) -> Result<Program, Unsupported> {
        decode::decode(module, entry, None)
    }

    /// The entry's parameters, in order.
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// Runs a launch to its end, or to as many findings as it may have. What the kernel stored is in the buffers
    /// afterwards, findings or none.
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

    /// Runs a launch that has been held against the entry.
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

    /// What is wrong with blocks of that many threads.
    fn misfits(&self, block: [u32; 3]) -> Vec<String> {
        let mut wrong = Vec::new();
        let threads = block.iter().map(|n| u64::from(*n)).try_fold(1, u64::checked_mul).unwrap_or(u64::MAX);
        if threads == 0 || threads > MOST_THREADS {
            wrong.push(format!("a block of {block:?} threads is none that there can be"));
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

    /// The bytes of the parameters.
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
