//! The outcome of a command, and the errors that prevent its execution.

use kernel_dsl::compiler::{Errors, Target};
use std::io;
use std::process::ExitCode;

/// Result of a command that was carried out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CommandOutcome {
    Success,
    /// The command ran, and a check failed or was not possible.
    Failure,
}

/// Error that kept a command from being carried out.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(transparent)]
    Name(#[from] crate::name::Error),
    #[error("cannot compile {instance} for {target}:\n{source}")]
    Compile { instance: String, target: Target, source: Errors },
    #[error("{ptxas} rejects the PTX of {instance}: {message}")]
    Assembler { instance: String, ptxas: String, message: String },
    #[error(
        "machine code requires NVIDIA's tools, and {missing} is not found on PATH nor in target/tools; \
         the CUDA toolkit up to 12.9 has both, and `tests/get-nvdisasm` of kernels-rs fetches them. \
         `show --ptx` and `report` without `--unroll` do not need them"
    )]
    NoTools { missing: String },
    #[error(transparent)]
    Run(#[from] crate::run::error::Error),
    #[error(transparent)]
    Case(#[from] crate::cases::Error),
    #[error("cannot follow a thread in the case `{case}`: {source}")]
    Trace { case: String, source: Box<runtime::Error> },
    #[error("cannot measure {instance} in the case {case}: {source}")]
    Profile { instance: String, case: String, source: Box<runtime::Error> },
    #[error("{instance} is faulty in the case {case}, so that its costs have no meaning:\n{}", .report.to_string().trim_end())]
    Faulty { instance: String, case: String, report: Box<runtime::interpreter::Report> },
    #[error(transparent)]
    New(#[from] crate::new::Error),
    #[error(transparent)]
    Inspect(#[from] crate::inspect::error::Error),
    #[cfg(feature = "library")]
    #[error("unknown format of weights `{name}`; the formats are {}", .known.join(", "))]
    Format { name: String, known: Vec<&'static str> },
    #[error("cannot use {device}: {source}; `--device {instead}` needs no GPU")]
    NoDevice { device: String, instead: &'static str, source: Box<runtime::Error> },
    #[error(transparent)]
    Device(runtime::Error),
    #[error("cannot use the cache in {}: {source}", .folder.display())]
    Cache { folder: std::path::PathBuf, source: io::Error },
    #[cfg(feature = "library")]
    #[error("{peer}, the baseline of the measurement: {message}")]
    Peer { peer: &'static str, message: String },
    #[error(transparent)]
    UnknownDevice(#[from] kernels_rs_estimate::device::Error),
    #[error(transparent)]
    Estimate(#[from] kernels_rs_estimate::estimate::Error),
    #[cfg(feature = "library")]
    #[error("unknown kernel `{name}`; `kernels bench --suite {name}` measures the suite of that name")]
    Suite { name: String },
    #[error("cannot save to {}: {source}", .path.display())]
    Save { path: std::path::PathBuf, source: io::Error },
    #[error("cannot use the measurements in {}: {why}", .path.display())]
    Measured { path: std::path::PathBuf, why: String },
    #[cfg(feature = "library")]
    #[error("cannot use the published figures in {}: {why}", .path.display())]
    Published { path: std::path::PathBuf, why: String },
    #[cfg(feature = "library")]
    #[error(
        "the plan in use computes wrong results: {why}; tuning compares with a correct plan: run `kernels check gemm`"
    )]
    Incumbent { why: String },
    #[cfg(feature = "library")]
    #[error(transparent)]
    Tune(#[from] crate::tune::error::TuneError),
    #[error("cannot write to stdout: {0}")]
    Output(#[from] io::Error),
}

impl Error {
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Error::Run(e) if e.is_of_the_file() => ExitCode::FAILURE,
            Error::Name(crate::name::Error::Hir { .. }) => ExitCode::FAILURE,
            Error::Name(_)
            | Error::Run(_)
            | Error::Case(_)
            | Error::NoDevice { .. }
            | Error::Device(_)
            | Error::Cache { .. }
            | Error::UnknownDevice(_)
            | Error::Estimate(_)
            | Error::Measured { .. }
            | Error::Save { .. }
            | Error::NoTools { .. } => ExitCode::from(2),
            #[cfg(feature = "library")]
            Error::Format { .. }
            | Error::Peer { .. }
            | Error::Published { .. }
            | Error::Suite { .. }
            | Error::Tune(_) => ExitCode::from(2),
            Error::Trace { .. } | Error::Profile { .. } | Error::Inspect(_) | Error::New(_) => ExitCode::from(2),
            #[cfg(feature = "library")]
            Error::Incumbent { .. } => ExitCode::FAILURE,
            Error::Compile { .. } | Error::Assembler { .. } | Error::Faulty { .. } | Error::Output(_) => {
                ExitCode::FAILURE
            }
        }
    }

    /// Returns whether the reader closed the pipe, as `head` does.
    pub(crate) fn is_closed_pipe(&self) -> bool {
        matches!(self, Error::Output(e) if e.kind() == io::ErrorKind::BrokenPipe)
    }
}
