//! A decoded entry of a module.

use super::code::Code;
use super::global::Global;
use kernel_dsl_compiler::ptx::Parameter;

/// One entry of a module, ready to run.
#[derive(Debug)]
pub struct Program {
    pub(super) name: String,
    pub(super) code: Code,
    pub(super) globals: Vec<Global>,
    /// The offset in shared memory at which the launch's own part begins.
    pub(super) dynamic: u32,
    pub(super) parameters: Vec<Parameter>,
    pub(super) required_threads: Option<[u32; 3]>,
    pub(super) max_threads: Option<[u32; 3]>,
}

impl Program {
    /// Returns the entry's parameters, in order.
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }
}
