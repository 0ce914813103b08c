//! Execution of one kernel on every CPU executor, and the comparison of the results.

use crate::compile::{Compiled, Frontend, Rejection};
use crate::data::{self, Argument};
use kernel_dsl_compiler::ir::record::{STATE, WORDS};
use kernel_dsl_compiler::ir::{self, Role};
use kernel_dsl_compiler::lower::checked::MODERATE_ARGUMENT_LIMIT;
use kernel_dsl_compiler::ptx::parse;
use runtime::interpreter::{self, ArgumentBytes, Binding, Check, Schedule};
use runtime::ptx::{self, BranchPolicy, ParameterValue};
use serde::Serialize;
use std::fmt;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Executor of a kernel.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Executor {
    /// The interpreter on IR as lowered, with every check: the reference.
    Lowered,
    /// The interpreter on IR as lowered, with blocks and warps in another order.
    Reordered,
    /// The interpreter on IR after all passes.
    Optimized,
    /// The interpreter on the checked form after all passes.
    Checked,
    /// The PTX interpreter on the kernel's text.
    Ptx,
    /// The PTX interpreter on the kernel's text, where diverged lanes take the other path first.
    PtxReordered,
    /// The PTX interpreter on the text of the checked form.
    CheckedPtx,
    /// A GPU, with the text optimized by its driver's JIT.
    Gpu,
    /// A GPU, with the text compiled without optimization.
    GpuUnoptimized,
}

impl fmt::Display for Executor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Executor::Lowered => "the interpreter as lowered",
            Executor::Reordered => "the interpreter as lowered, in another order",
            Executor::Optimized => "the interpreter after all passes",
            Executor::Checked => "the interpreter, the checked form",
            Executor::Ptx => "the PTX interpreter",
            Executor::PtxReordered => "the PTX interpreter, the other side first",
            Executor::CheckedPtx => "the PTX interpreter, the checked form",
            Executor::Gpu => "the GPU",
            Executor::GpuUnoptimized => "the GPU, not optimized",
        })
    }
}

/// Failure of a kernel or of an executor.
#[derive(Clone, PartialEq, Debug)]
pub enum Failure {
    /// The kernel does not compile.
    Refused(Rejection),
    /// A panic in the compiler or an executor.
    Panicked(String),
    /// An executor rejected the kernel.
    NotTaken(Executor, String),
    /// A check reported something.
    Reported(Executor, String, String),
    /// Two executors computed different values.
    Differ(Executor, Mismatch),
    /// ptxas rejected the kernel.
    Assembler(String),
}

/// First difference between an executor and the interpreter on IR as lowered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mismatch {
    /// Name of the argument.
    pub argument: String,
    /// Index of the element.
    pub index: usize,
    /// Bits of the interpreter.
    pub expected: u128,
    /// Bits of the executor.
    pub found: u128,
}

impl Failure {
    /// Returns whether both failures have the same cause, which shrinking must preserve.
    pub fn is_like(&self, other: &Failure) -> bool {
        match (self, other) {
            // The message must be the same: a shrunk program may be rejected for many other
            // reasons.
            (Failure::Refused(a), Failure::Refused(b)) => {
                a.stage == b.stage && last_line(&a.said) == last_line(&b.said)
            }
            (Failure::Panicked(a), Failure::Panicked(b)) => a == b,
            (Failure::NotTaken(a, _), Failure::NotTaken(b, _)) => a == b,
            (Failure::Reported(a, x, _), Failure::Reported(b, y, _)) => a == b && x == y,
            (Failure::Differ(a, _), Failure::Differ(b, _)) => a == b,
            (Failure::Assembler(_), Failure::Assembler(_)) => true,
            _ => false,
        }
    }
}

fn last_line(text: &str) -> &str {
    text.trim_end().rsplit('\n').next().unwrap_or_default()
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Refused(Rejection { stage, said }) => write!(f, "{stage} refuses it: {said}"),
            Failure::Panicked(said) => write!(f, "a panic: {said}"),
            Failure::NotTaken(executor, said) => write!(f, "{executor} does not take it: {said}"),
            Failure::Reported(executor, _, said) => write!(f, "{executor} reports: {said}"),
            Failure::Differ(executor, Mismatch { argument, index, expected, found }) => write!(
                f,
                "{executor} leaves {found:#x} in {argument}[{index}], the interpreter as lowered {expected:#x}"
            ),
            Failure::Assembler(said) => write!(f, "ptxas does not take it: {said}"),
        }
    }
}

/// Warp instructions after which a loop counts as endless.
const FUEL: u64 = 1 << 22;

/// Kernel on which all CPU executors agree.
pub struct Good {
    /// All forms of the kernel.
    pub compiled: Compiled,
    /// Arguments of the launch.
    pub arguments: Vec<Argument>,
    /// Arguments after the launch.
    pub left: Vec<Argument>,
    /// Warp instructions in the interpreter.
    pub instructions: u64,
}

/// Compiles and runs a kernel. A panic is a failure too.
pub fn test(frontend: &Frontend, text: &str, seed: u64) -> Result<Good, Failure> {
    caught(|| attempt(frontend, text, seed))
}

/// Compiles a kernel into all its forms, and runs none. A panic is a failure too.
pub fn compile(frontend: &Frontend, text: &str) -> Result<(), Failure> {
    caught(|| frontend.compile(text).map(drop).map_err(Failure::Refused))
}

/// Calls `attempt`, and returns a panic as a failure.
fn caught<T>(attempt: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(attempt)).unwrap_or_else(|panic| {
        let said = panic.downcast_ref::<String>().cloned();
        let said = said.or_else(|| panic.downcast_ref::<&str>().map(|s| s.to_string()));
        Err(Failure::Panicked(said.unwrap_or_default()))
    })
}

fn attempt(frontend: &Frontend, text: &str, seed: u64) -> Result<Good, Failure> {
    let compiled = frontend.compile(text).map_err(Failure::Refused)?;
    let [x, y, z] = compiled.block;
    let arguments = data::arguments(&compiled.lowered, compiled.grid * x * y * z, seed);
    let lowered = interpreter::Program::decode(&compiled.lowered)
        .map_err(|e| Failure::NotTaken(Executor::Lowered, e.to_string()))?;
    let run = |executor, program: &interpreter::Program, schedule| {
        interpret(executor, program, &compiled, &arguments, schedule, false)
    };
    let (left, instructions) = run(Executor::Lowered, &lowered, Schedule::InOrder)?;
    let same = |executor, (other, _): (Vec<Argument>, u64)| compare(executor, &left, &other);
    if lowered.has_atomics() {
        for schedule in [Schedule::Reversed, Schedule::Seeded(seed)] {
            same(Executor::Reordered, run(Executor::Reordered, &lowered, schedule)?)?;
        }
    }
    let after = |executor, kernel: &ir::Kernel| {
        interpreter::Program::decode_optimized(kernel).map_err(|e| Failure::NotTaken(executor, e.to_string()))
    };
    let optimized = after(Executor::Optimized, &compiled.optimized)?;
    same(Executor::Optimized, run(Executor::Optimized, &optimized, Schedule::InOrder)?)?;
    // Like a launch, this selects the checked form by the largest argument. The general form runs
    // as PTX below.
    let is_moderate = |argument: &Argument| match argument {
        Argument::Scalar(bits) => *bits <= MODERATE_ARGUMENT_LIMIT.into(),
        Argument::Memory { .. } => true,
    };
    let moderate =
        arguments.iter().all(is_moderate).then(|| compiled.form.clone().with_arguments_up_to(MODERATE_ARGUMENT_LIMIT));
    let moderate = moderate.map(|form| form.optimized()).transpose();
    let moderate = moderate.map_err(|e| Failure::NotTaken(Executor::Checked, e.to_string()))?;
    let checked = after(Executor::Checked, moderate.as_deref().unwrap_or(&compiled.checked))?;
    let schedule = Schedule::InOrder;
    same(Executor::Checked, interpret(Executor::Checked, &checked, &compiled, &arguments, schedule, true)?)?;
    let program = read(Executor::Ptx, &compiled.ptx)?;
    for (executor, policy) in
        [(Executor::Ptx, BranchPolicy::PostDominator), (Executor::PtxReordered, BranchPolicy::LowestFirst)]
    {
        same(executor, run_ptx(executor, &program, policy, &compiled, &arguments)?)?;
    }
    let executor = Executor::CheckedPtx;
    let program = read(executor, &compiled.checked_ptx)?;
    same(executor, run_ptx(executor, &program, BranchPolicy::PostDominator, &compiled, &arguments)?)?;
    Ok(Good { compiled, arguments, left, instructions })
}

/// Compares the results of an executor with those of the interpreter on IR as lowered.
pub fn compare(executor: Executor, left: &[Argument], other: &[Argument]) -> Result<(), Failure> {
    for (a, b) in left.iter().zip(other) {
        let (Argument::Memory { name, element, bytes: a, .. }, Argument::Memory { bytes: b, .. }) = (a, b) else {
            continue;
        };
        if a == b {
            continue;
        }
        let width = element.bytes() as usize;
        for (index, (a, b)) in a.chunks(width).zip(b.chunks(width)).enumerate() {
            let [expected, found] = [a, b].map(|bytes| {
                let mut bits = [0; 16];
                bits[..width].copy_from_slice(bytes);
                u128::from_le_bytes(bits)
            });
            if data::class(*element, expected) != data::class(*element, found) {
                return Err(Failure::Differ(executor, Mismatch { argument: name.clone(), index, expected, found }));
            }
        }
    }
    Ok(())
}

fn interpret(
    executor: Executor,
    program: &interpreter::Program,
    compiled: &Compiled,
    arguments: &[Argument],
    schedule: Schedule,
    checked: bool,
) -> Result<(Vec<Argument>, u64), Failure> {
    let mut left = arguments.to_vec();
    let mut record = [0u8; 4 * WORDS];
    let mut bindings: Vec<Binding> = left.iter_mut().map(binding).collect();
    if checked {
        bindings.push(Binding::Memory {
            bytes: ArgumentBytes::Exclusive(&mut record),
            extents: vec![WORDS as u32],
            strides: vec![1],
        });
    }
    let options = interpreter::Options {
        fuel: FUEL,
        limit: 4,
        schedule,
        threads: NonZeroUsize::new(1),
        // Edge case values are intended.
        without: Check::ORIGINS.into_iter().collect(),
        ..Default::default()
    };
    let launch =
        interpreter::Launch { grid: [compiled.grid, 1, 1], block: Some(compiled.block), arguments: bindings, options };
    let outcome = program.run(launch).map_err(|e| Failure::NotTaken(executor, e.to_string()))?;
    if let Some(finding) = outcome.report.findings.first() {
        return Err(Failure::Reported(executor, finding.check.to_string(), outcome.report.to_string()));
    }
    let word = |i: usize| u32::from_le_bytes([0, 1, 2, 3].map(|b| record[4 * i + b]));
    if word(STATE) != 0
        && let Some(report) = interpreter::reported(&compiled.form, &std::array::from_fn(word))
    {
        return Err(Failure::Reported(executor, "its own".to_string(), report.to_string()));
    }
    Ok((left, outcome.statistics.warp_instructions))
}

fn binding(argument: &mut Argument) -> Binding<'_> {
    match argument {
        Argument::Scalar(bits) => Binding::Scalar(*bits),
        Argument::Memory { bytes, mutable, extents, strides, .. } => Binding::Memory {
            bytes: if *mutable { ArgumentBytes::Exclusive(bytes) } else { ArgumentBytes::Shared(bytes) },
            extents: extents.clone(),
            strides: strides.clone(),
        },
    }
}

/// Returns the values of the entry's parameters: bits, or the index of the argument whose address
/// the parameter holds.
pub fn parameters(kernel: &ir::Kernel, arguments: &[Argument]) -> Vec<Parameter> {
    let one = |parameter: &ir::Parameter| {
        let argument = parameter.argument as usize;
        let (extents, strides) = match arguments.get(argument) {
            Some(Argument::Memory { extents, strides, .. }) => (&extents[..], &strides[..]),
            _ => (&[][..], &[][..]),
        };
        let of = |numbers: &[u32], d: u32| Parameter::Bits(numbers.get(d as usize).copied().unwrap_or(0).into(), 4);
        match parameter.role {
            Role::Value(ty) => match arguments.get(argument) {
                Some(Argument::Scalar(bits)) => Parameter::Bits(*bits, ty.bytes()),
                _ => Parameter::Bits(0, ty.bytes()),
            },
            Role::Address { .. } => Parameter::Address(argument),
            Role::Extent(d) => of(extents, d),
            Role::Stride(d) => of(strides, d),
        }
    };
    kernel.parameters.iter().map(one).collect()
}

/// Parameter of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Parameter {
    /// Bits, and their number of bytes.
    Bits(u64, u32),
    /// Address of an argument.
    Address(usize),
}

/// Returns an error unless the PTX interpreter computes the same from `text` as from the kernel's
/// own text.
pub fn agrees(good: &Good, text: &str) -> Result<(), Failure> {
    let executor = Executor::Ptx;
    let program = read(executor, text)?;
    let (left, _) = run_ptx(executor, &program, BranchPolicy::PostDominator, &good.compiled, &good.arguments)?;
    compare(executor, &good.left, &left)
}

/// Parses the only entry of a module.
fn read(executor: Executor, text: &str) -> Result<ptx::Program, Failure> {
    let not_taken = |said: String| Failure::NotTaken(executor, said);
    let module = parse::parse(text).map_err(|e| not_taken(e.to_string()))?;
    let entry = module.entries().next().map_or("", |entry| entry.name.as_str());
    ptx::Program::decode(&module, entry).map_err(|e| not_taken(e.to_string()))
}

fn run_ptx(
    executor: Executor,
    program: &ptx::Program,
    policy: BranchPolicy,
    compiled: &Compiled,
    arguments: &[Argument],
) -> Result<(Vec<Argument>, u64), Failure> {
    let kernel = if executor == Executor::CheckedPtx { &compiled.form.kernel } else { &compiled.lowered };
    let mut left = arguments.to_vec();
    let mut record = [0u8; 4 * WORDS];
    let numbers: Vec<usize> = (0..left.len()).filter(|n| matches!(left[*n], Argument::Memory { .. })).collect();
    let values = parameters(kernel, arguments).into_iter().map(|parameter| match parameter {
        Parameter::Bits(bits, _) => ParameterValue::Bits(bits),
        Parameter::Address(argument) => {
            let buffer = numbers.iter().position(|n| *n == argument).unwrap_or(numbers.len());
            ParameterValue::Address { buffer, offset: 0 }
        }
    });
    let values: Vec<ParameterValue> = values.collect();
    let mut buffers: Vec<ptx::BufferArgument> = left
        .iter_mut()
        .filter_map(|argument| match argument {
            Argument::Scalar(_) => None,
            Argument::Memory { name, bytes, mutable, .. } => Some(ptx::BufferArgument {
                name: name.clone(),
                bytes: if *mutable { ArgumentBytes::Exclusive(bytes) } else { ArgumentBytes::Shared(bytes) },
            }),
        })
        .collect();
    buffers.push(ptx::BufferArgument { name: "record".into(), bytes: ArgumentBytes::Exclusive(&mut record) });
    let options = ptx::Options { policy, fuel: FUEL, limit: 4, threads: NonZeroUsize::new(1), ..Default::default() };
    let launch = ptx::Launch {
        grid: [compiled.grid, 1, 1],
        block: compiled.block,
        dynamic_shared: 0,
        buffers,
        parameters: values,
        options,
    };
    let outcome = program.run(launch).map_err(|e| Failure::NotTaken(executor, e.to_string()))?;
    if let Some(finding) = outcome.report.findings.first() {
        return Err(Failure::Reported(executor, format!("{:?}", finding.check), outcome.report.to_string()));
    }
    if record.iter().any(|byte| *byte != 0) {
        let word = |i: usize| u32::from_le_bytes([0, 1, 2, 3].map(|b| record[4 * i + b]));
        let said = interpreter::reported(&compiled.form, &std::array::from_fn(word));
        return Err(Failure::Reported(executor, "its own".into(), said.map_or_else(String::new, |r| r.to_string())));
    }
    Ok((left, outcome.statistics.warp_instructions))
}
