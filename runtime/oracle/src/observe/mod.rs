//! Observers of a run: each follows the instructions of a launch and reports what it has seen.

pub mod flow;
pub mod operation;
pub mod poison;
pub mod precision;
pub mod profile;
pub mod provenance;
pub mod reached;
pub mod trace;

mod double_double;
