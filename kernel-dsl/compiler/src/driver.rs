//! The pipeline from the HIR of a kernel to the text of its PTX module.
//!
//! ```text
//! HIR × instance ─▶ monomorphic ─▶ lower ─▶ accept ─▶ optimize ─▶ emit ─▶ text
//! ```
//!
//! This module is the only place that spells out the order of the stages. [`Compilation`] is one
//! run of the pipeline, on [`Accepted`] IR: lowered IR in which no analysis has proven a mistake.
//! The later stages run on demand, each at most once.

use crate::analyses::{Accepted, accept, approximate::Approximations};
use crate::emit::{self, LineDirectives};
use crate::error::Errors;
use crate::hir::{self, Instance, Monomorphic, Program};
use crate::lower::checked::CheckedKernel;
use crate::lower::lower_monomorphic;
use crate::passes::{self, Optimized};
use crate::ptx;
use crate::target::Target;
use std::cell::OnceCell;

/// One instance of a kernel, compiled for one target.
#[derive(Debug)]
pub struct Compilation<'p> {
    program: &'p Monomorphic,
    lowered: Accepted,
    approximations: OnceCell<Approximations>,
    optimized: OnceCell<Result<Optimized, Errors>>,
}

impl<'p> Compilation<'p> {
    /// Lowers `program` for `target` and runs the analyses that can reject it.
    ///
    /// # Errors
    /// The mistakes that lowering or an analysis proves.
    pub fn new(program: &'p Monomorphic, target: Target) -> Result<Compilation<'p>, Errors> {
        let lowered = lowered_monomorphic(program, target)?;
        Ok(Compilation { program, lowered, approximations: OnceCell::new(), optimized: OnceCell::new() })
    }

    /// Returns the instance that is compiled.
    pub fn program(&self) -> &'p Monomorphic {
        self.program
    }

    /// Returns the IR before any pass, which is what the oracle runs.
    pub fn lowered(&self) -> &Accepted {
        &self.lowered
    }

    /// Returns which arguments and decisions approximate results reach.
    pub fn approximations(&self) -> &Approximations {
        self.approximations.get_or_init(|| Approximations::of(&self.lowered))
    }

    /// Returns the IR after all passes.
    ///
    /// # Errors
    /// The mistakes that a pass finds, such as a local array with a run-time index.
    pub fn optimized(&self) -> Result<&Optimized, Errors> {
        let optimized = self.optimized.get_or_init(|| passes::optimize(self.lowered.clone()));
        optimized.as_ref().map_err(Errors::clone)
    }

    /// Returns the PTX module, with or without `.loc` directives.
    ///
    /// # Errors
    /// The errors of [`optimized`](Self::optimized), and internal errors of emission.
    pub fn module(&self, lines: LineDirectives) -> Result<ptx::Module, Errors> {
        emit::emit_with(self.optimized()?, lines)
    }

    /// Returns the text of the PTX module, as the macros store it.
    ///
    /// # Errors
    /// The errors of [`module`](Self::module).
    pub fn text(&self) -> Result<String, Errors> {
        Ok(emit::emit(self.optimized()?)?.to_string())
    }

    /// Returns the checked form of the kernel, which checks its memory accesses on the device.
    pub fn checked(&self) -> CheckedKernel {
        CheckedKernel::of_instance(self.lowered.clone(), self.program)
    }
}

/// Compiles one instance of `program` for `target` to the text of its PTX module.
///
/// # Errors
/// The mistakes that the first failing stage finds.
pub fn compile(program: &Program, instance: &Instance, target: Target) -> Result<String, Errors> {
    compile_monomorphic(&hir::monomorphic(program, instance)?, target)
}

/// Compiles a monomorphic program for `target` to the text of its PTX module.
///
/// # Errors
/// The mistakes that the first failing stage finds.
pub fn compile_monomorphic(program: &Monomorphic, target: Target) -> Result<String, Errors> {
    Compilation::new(program, target)?.text()
}

/// Lowers one instance of `program` for `target` and runs the analyses that can reject it.
///
/// # Errors
/// The mistakes that monomorphization, lowering or an analysis proves.
pub fn lowered(program: &Program, instance: &Instance, target: Target) -> Result<Accepted, Errors> {
    lowered_monomorphic(&hir::monomorphic(program, instance)?, target)
}

/// Lowers a monomorphic program for `target` and runs the analyses that can reject it.
///
/// # Errors
/// The mistakes that lowering or an analysis proves.
pub fn lowered_monomorphic(program: &Monomorphic, target: Target) -> Result<Accepted, Errors> {
    accept(lower_monomorphic(program, target)?)
}

impl CheckedKernel {
    /// Returns the text of the PTX module of the checked form.
    ///
    /// # Errors
    /// The errors of [`Compilation::text`].
    pub fn ptx(&self) -> Result<String, Errors> {
        Ok(emit::emit(&self.optimized()?)?.to_string())
    }
}
