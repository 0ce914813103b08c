//! A decoded entry of a module.

use super::code::{Code, Site};
use super::global::Global;
use kernel_dsl_compiler::Target;
use kernel_dsl_compiler::ptx::Parameter;
use runtime_simt::report::{CodeLocation, PtxInstruction, Sites};
use runtime_simt::{Check, Severity};
use std::sync::OnceLock;

/// One entry of a module, ready to run.
#[derive(Debug)]
pub struct Program {
    pub(super) name: String,
    pub(super) code: Code,
    pub(super) globals: Vec<Global>,
    /// The offset in shared memory at which the launch's own part begins.
    pub(super) dynamic: u32,
    /// The bytes of shared memory that the kernel declares, without gaps.
    pub(super) declared_shared: u32,
    pub(super) parameters: Vec<Parameter>,
    pub(super) required_threads: Option<[u32; 3]>,
    pub(super) max_threads: Option<[u32; 3]>,
    /// Whether an observed launch must execute each instruction; found at the first such launch.
    pub(super) deciding: OnceLock<Vec<bool>>,
}

impl Program {
    /// Returns the entry's parameters, in order.
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }
}

impl Sites for Program {
    fn kernel(&self) -> &str {
        &self.name
    }

    fn severity(&self, check: Check) -> Severity {
        // The severities of this interpreter's checks are equal for all targets.
        check.severity(Target::SM_61)
    }

    fn place(&self, site: u32) -> CodeLocation {
        let Site { text, line, function, .. } = &self.code.sites[site as usize];
        let (line, end_column) = (line.unwrap_or(0), text.chars().count() as u32 + 1);
        let (source, function, file) = (usize::MAX, function.clone(), String::new());
        CodeLocation { source, function, file, line, column: 1, end_line: line, end_column, callers: Vec::new() }
    }

    fn instruction(&self, site: u32) -> Option<PtxInstruction> {
        let Site { text, origin, .. } = &self.code.sites[site as usize];
        Some(PtxInstruction { text: text.clone(), origin: origin.clone() })
    }
}
