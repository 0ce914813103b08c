//! Differential fuzzing of whole kernels: random correct kernels on which all executors must agree
//! bit for bit.
//!
//! ```text
//! seed ─ generate ─▶ program ─ text ─▶ compile ─▶ run: interpreter × PTX interpreter ─▶ batch: ptxas, GPU
//!            forms      ▲                             │                  campaign: all of it, on all cores
//!                     shrink ◀────── a failure ───────┘──▶ found: a file, and a test of it
//! ```
//!
//! [`wrong`] makes wrong programs, on which rustc and our checker must agree.

pub mod batch;
pub mod campaign;
pub mod compile;
pub mod count;
pub mod data;
pub mod forms;
pub mod found;
pub mod generate;
pub mod gpu;
pub mod helpers;
pub mod program;
pub mod run;
pub mod shrink;
// Names of device functions are resolved as in the tests of the front end.
#[path = "../../../kernel-dsl/compiler/tests/frontend/support.rs"]
#[allow(missing_docs)]
mod support;
pub mod watch;
pub mod wrong;
