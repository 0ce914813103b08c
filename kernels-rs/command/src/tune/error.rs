//! Errors that keep a call from being tuned.

use kernels_rs::tuned::TunedTableError;
use std::io;
use std::path::PathBuf;

/// Error that keeps a call from being tuned.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TuneError {
    #[error("cannot tune `{case}`: {why}")]
    Case { case: String, why: String },
    #[error("cannot use the table in {}: {source}; correct the line, or remove it", .path.display())]
    Table { path: PathBuf, source: TunedTableError },
    #[error("cannot read the table in {}: {source}", .path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("cannot add the plan to the table: {why}")]
    Plan { why: String },
    #[error("no candidate was estimated within {seconds} s; raise --budget")]
    Budget { seconds: u32 },
}
