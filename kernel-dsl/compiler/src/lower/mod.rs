//! One instance of a kernel for one target: HIR to IR.

use crate::error::Errors;
use crate::hir::{Instance, Program};
use crate::ir::Kernel;
use crate::target::Target;

/// The instance of `program` for `target`, as the program says it.
pub fn lower(_program: &Program, _instance: &Instance, _target: Target) -> Result<Kernel, Errors> {
    Err(Errors(vec![]))
}
