//! Errors of `kernels inspect`.

use std::io;
use std::path::PathBuf;

/// Error that keeps a page from being made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("cannot write {}: {source}", .file.display())]
    Write { file: PathBuf, source: io::Error },
    #[error("{file} has no kernel: expected PTX with an `.entry`")]
    NoEntry { file: String },
    #[error("cannot read {}: {source}", .file.display())]
    Read { file: PathBuf, source: io::Error },
    #[error("{} was not written by `kernels inspect`", .file.display())]
    NoPage { file: PathBuf },
    #[error("cannot serve on port {port} of this machine: {message}")]
    Serve { port: u16, message: String },
    #[error("cannot find {file}, the kernel's source, from here; name it with --source")]
    NoSource { file: String },
}
