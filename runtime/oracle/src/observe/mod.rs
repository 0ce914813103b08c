//! Observers of a run: each receives the instructions of a launch and returns a report.

pub mod flow;
pub mod operation;
pub mod poison;
pub mod precision;
pub mod profile;
pub mod provenance;
pub mod reached;
pub mod trace;

mod double_double;
