//! Errors of devices and launches, with what was expected and what was found.

use crate::cuda::{Capability, CudaVersion, DriverError, Loss};
use crate::pool::MemoryStatistics;
use kernel_dsl::compiler::hir::serial;
use kernel_dsl::compiler::launch::Refusal;
use kernel_dsl::compiler::{ElementType, Errors, Target};
use runtime_oracle as interpreter;
use runtime_oracle::Verdict;
use runtime_ptx as ptx;
use std::sync::Arc;

/// Why an operation of the runtime failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No CUDA driver library on this machine.
    #[error(
        "no CUDA driver: neither libcuda nor nvcuda could be loaded. \
         Needed: NVIDIA's driver (branch 580 is the last for Pascal); no toolkit. Device::cpu() needs no driver"
    )]
    NoDriver,

    /// A library that calls itself the driver lacks functions.
    #[error("the CUDA driver library lacks {}; needed: the driver of CUDA {needed} or later", .functions.join(", "))]
    #[allow(missing_docs)]
    DriverLacks { functions: Vec<&'static str>, needed: CudaVersion },

    /// The driver is too old for a feature.
    #[error("the driver supports CUDA {found}; {feature} needs CUDA {needed} or later: update NVIDIA's driver")]
    #[allow(missing_docs)]
    DriverTooOld { found: CudaVersion, needed: CudaVersion, feature: String },

    /// The driver works but finds no device.
    #[error(
        "the CUDA driver (CUDA {driver}) finds no device; expected at least one that CUDA_VISIBLE_DEVICES does not hide"
    )]
    #[allow(missing_docs)]
    NoDevice { driver: CudaVersion },

    /// There is no device of that number.
    #[error("no CUDA device {ordinal}: there {}, numbered from 0", devices(*.count))]
    #[allow(missing_docs)]
    NoSuchDevice { ordinal: usize, count: usize },

    /// A device that is too old.
    #[error(
        "CUDA device {ordinal}, {name}, has compute capability {found}; kernels are compiled for {needed} and later"
    )]
    #[allow(missing_docs)]
    UnsupportedDevice { ordinal: usize, name: String, found: Capability, needed: Capability },

    /// A call of the driver failed.
    #[error(transparent)]
    Driver(#[from] DriverError),

    /// The device is lost because of this operation or an earlier one. The device's objects can
    /// only be dropped; [`Device::cuda`](crate::Device::cuda) opens the GPU in another context.
    #[error("{0}")]
    Lost(Arc<Loss>),

    /// The driver is out of memory for its own needs, even after all cached memory was released.
    #[error("{source}; all cached memory was released; pool: {pool}")]
    #[allow(missing_docs)]
    Exhausted { source: DriverError, pool: Box<MemoryStatistics> },

    /// The device is out of memory, even after the pool released all cached memory. `requested` and
    /// `free` are in bytes; `free` has the free and the total memory of the device.
    #[error(
        "no memory for {requested} bytes on {device}{}{}; {}",
        of_total(*.free), of_pool(.pool.as_deref()), remedy(*.requested, .pool.as_deref())
    )]
    #[allow(missing_docs)]
    OutOfMemory { requested: usize, device: String, free: Option<(usize, usize)>, pool: Option<Box<MemoryStatistics>> },

    /// A buffer whose size in bytes overflows a `usize`.
    #[error(
        "cannot allocate {len} elements of {element}: {} bytes are more than any device has; \
         a length that is this large is often a difference below zero", bytes(*.len, *.element)
    )]
    #[allow(missing_docs)]
    BufferSize { element: ElementType, len: usize },

    /// The device's stream limit is reached.
    #[error("cannot make a stream on {device}: stream limit reached (65536); drop unused streams")]
    #[allow(missing_docs)]
    TooManyStreams { device: String },

    /// The arguments do not meet the kernel's contract; nothing has run.
    #[error("cannot launch {instance}:{}", list(.refusals))]
    #[allow(missing_docs)]
    Refused { instance: String, refusals: Vec<Refusal> },

    /// A library's call cannot use its arguments together, for example because two views overlap.
    /// Nothing has run.
    #[error("cannot use these arguments:{}", list(.refusals))]
    #[allow(missing_docs)]
    RefusedArguments { refusals: Vec<Refusal> },

    /// The HIR in the expansion cannot be read.
    #[error("kernel {kernel}: {source}")]
    #[allow(missing_docs)]
    Hir { kernel: String, source: serial::Error },

    /// The instance does not compile.
    #[error("cannot compile {instance}:\n{source}")]
    #[allow(missing_docs)]
    Compile { instance: String, source: Errors },

    /// The kernel's target is later than the device.
    #[error(
        "{instance} is compiled for {target}, and {device} is older: launch it on a later device, on the CPU, \
         or compile it for an older target (`#[kernel(target = …)]`)"
    )]
    #[allow(missing_docs)]
    TargetTooNew { instance: String, target: Target, device: String },

    /// The interpreter cannot run the instance.
    #[error("the CPU device cannot run {instance}: {source}")]
    #[allow(missing_docs)]
    Interpreter { instance: String, source: Box<interpreter::Unsupported> },

    /// The instance's IR takes other arguments than its HIR declares.
    #[error("the CPU device cannot run {instance}: the parameters of its IR differ from those of its HIR: {source}")]
    #[allow(missing_docs)]
    Arguments { instance: String, source: interpreter::Mismatch },

    /// The launch is too large for all checks.
    #[error("{0}")]
    TooLarge(interpreter::TooLarge),

    /// A thread to trace that the launch does not have.
    #[error("{instance} has no such thread: {why}")]
    #[allow(missing_docs)]
    NoThread { instance: String, why: String },

    /// The kernel violated a check. On the CPU, the report has all violations that the oracle
    /// found; on a GPU, the first violation of a checked launch. The offending accesses were
    /// suppressed (a load returned 0), and the device stays usable.
    #[error("{0}")]
    Violation(Box<interpreter::Report>),

    /// The PTX interpreter rejected the instance's PTX, or reported a violation in it.
    #[error("{source}")]
    #[allow(missing_docs)]
    Ptx { instance: String, source: Box<ptx::RunFailure> },

    /// The driver refused the PTX.
    #[error("cannot load the PTX of {instance}: {source}{}", driver_log(.log))]
    #[allow(missing_docs)]
    Load { instance: String, source: Box<DriverError>, log: String },

    /// A view that its buffer cannot hold.
    #[error("cannot view a buffer of {len} {element} as extents {extents:?}, strides {strides:?}: {why}")]
    #[allow(missing_docs)]
    View { element: ElementType, len: usize, extents: Vec<usize>, strides: Vec<usize>, why: String },

    /// Elements that cannot be viewed as elements of another type.
    #[error("cannot view {len} {from} as {to}: {why}")]
    #[allow(missing_docs)]
    Cast { from: ElementType, to: ElementType, len: usize, why: String },

    /// A slot or node of one graph, used with another.
    #[error("{item} belongs to another recording; a graph accepts only the slots and nodes of its own recording")]
    #[allow(missing_docs)]
    OtherGraph { item: &'static str },

    /// The recording's limit of buffers is reached.
    #[error("cannot lend more than {most} buffers to a recording")]
    #[allow(missing_docs)]
    TooManySlots { most: usize },

    /// Bytes that are not a saved graph, or a graph that does not fit the program or the buffers.
    #[error("cannot load the graph: {why}")]
    #[allow(missing_docs)]
    SavedGraph { why: String },

    /// An update that would change the kernel, instance or block of a launch.
    #[error(
        "cannot replace {recorded} by {given}: an update can change only the arguments of the same kernel and instance"
    )]
    #[allow(missing_docs)]
    OtherKernel { given: String, recorded: String },

    /// A buffer in a graph's slot that differs in length from the recorded one.
    #[error(
        "cannot replay: slot {slot} was recorded with a buffer of {recorded} bytes, and holds one of {found} bytes"
    )]
    #[allow(missing_docs)]
    SlotLength { slot: usize, recorded: usize, found: usize },

    /// An object of one device was used with a stream of another.
    #[error("{item} belongs to {found}, the stream to {stream}; both must be on the same device")]
    #[allow(missing_docs)]
    OtherDevice { item: &'static str, found: String, stream: String },

    /// A copy between memories of different lengths.
    #[error("cannot copy the {from_len} elements of {from} to {to}, which has {to_len}: both must have equal lengths")]
    #[allow(missing_docs)]
    Length { from: &'static str, from_len: usize, to: &'static str, to_len: usize },
}

/// `Result` with [`Error`] as its default error type.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Returns the verdict on the kernel: [`Verdict::Unsupported`] if the executor lacks a feature
    /// that the kernel needs, otherwise [`Verdict::Fail`].
    pub fn verdict(&self) -> Verdict {
        let unsupported = match self {
            Error::Interpreter { .. } | Error::TooLarge(_) | Error::TargetTooNew { .. } => true,
            Error::Ptx { source, .. } => matches!(**source, ptx::RunFailure::Unsupported(_)),
            _ => false,
        };
        if unsupported { Verdict::Unsupported } else { Verdict::Fail }
    }

    /// Returns the report of the checks that the kernel violated.
    pub fn report(&self) -> Option<&interpreter::Report> {
        match self {
            Error::Violation(report) => Some(report),
            Error::Ptx { source, .. } => match &**source {
                ptx::RunFailure::Violation(report) => Some(report),
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns whether the error is a lack of memory.
    pub(crate) fn is_out_of_memory(&self) -> bool {
        match self {
            Error::OutOfMemory { .. } | Error::Exhausted { .. } => true,
            Error::Driver(source) => source.is_out_of_memory(),
            Error::Load { source, .. } => source.is_out_of_memory(),
            _ => false,
        }
    }
}

fn devices(count: usize) -> String {
    if count == 1 { "is 1 device".to_string() } else { format!("are {count} devices") }
}

fn of_total(free: Option<(usize, usize)>) -> String {
    free.map_or_else(String::new, |(free, total)| format!(": {free} of its {total} bytes are free"))
}

fn of_pool(pool: Option<&MemoryStatistics>) -> String {
    pool.map_or_else(String::new, |pool| format!("; the pool: {pool}"))
}

/// Returns what the caller can do about a lack of memory.
fn remedy(requested: usize, pool: Option<&MemoryStatistics>) -> &'static str {
    let limited = |pool: &MemoryStatistics| {
        pool.limit.is_some_and(|limit| pool.reserved.saturating_add(requested as u64) > limit)
    };
    if pool.is_some_and(limited) {
        "raise the limit, or drop buffers that are no longer used"
    } else {
        "drop buffers that are no longer used, or process the data in smaller parts"
    }
}

fn bytes(len: usize, element: ElementType) -> u128 {
    len as u128 * u128::from(element.bytes())
}

fn list(refusals: &[Refusal]) -> String {
    refusals.iter().map(|r| format!("\n  {r}")).collect()
}

fn driver_log(log: &str) -> String {
    if log.is_empty() { String::new() } else { format!("\n{log}") }
}
