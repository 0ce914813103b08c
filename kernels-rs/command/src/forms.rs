//! The compiled forms of one instance, which the commands that examine it share.

use super::machine::{MachineCode, Tools};
use crate::error::Error;
use kernel_dsl::compiler::ir::Kernel;
use kernel_dsl::compiler::passes::{self, Optimized};
use kernel_dsl::compiler::{Compilation, Errors, Target, emit, ptx};

/// Compiled forms of one instance.
pub(super) struct CompiledForms<'c> {
    /// Name of the instance as all output prints it.
    pub(super) name: String,
    pub(super) target: Target,
    pub(super) compilation: &'c Compilation<'c>,
    pub(super) optimized: &'c Optimized,
    /// The PTX module, with the lines of Rust.
    pub(super) module: ptx::Module,
    /// IR with unrolled loops and places, which the analyses of accesses read.
    pub(super) with_places: Kernel,
    /// The assembler's name and its result; `None` without a ptxas that supports the target.
    pub(super) machine: Option<(String, MachineCode)>,
}

impl<'c> CompiledForms<'c> {
    /// Compiles the forms of an instance, and assembles it with `tools`.
    pub(super) fn of(
        name: String,
        compilation: &'c Compilation<'c>,
        tools: Option<&Tools>,
    ) -> Result<CompiledForms<'c>, Error> {
        let target = compilation.lowered().target;
        let failed = |source: Errors| Error::Compile { instance: name.clone(), target, source };
        let optimized = compilation.optimized().map_err(failed)?;
        let module = compilation.module(emit::LineDirectives::Kept).map_err(failed)?;
        let with_places = passes::with_places(compilation.lowered().clone().into()).map_err(failed)?;
        let assemble = |tools: &Tools| {
            let machine = tools.assemble(&name, &module.to_string(), target)?;
            Ok::<_, Error>((tools.ptxas.to_string(), machine))
        };
        let machine = tools.map(assemble).transpose()?;
        Ok(CompiledForms { name, target, compilation, optimized, module, with_places, machine })
    }
}
