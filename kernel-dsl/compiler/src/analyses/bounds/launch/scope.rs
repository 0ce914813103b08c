//! The scope of an expression of a launch: the kernel, or a device function that a clause calls.

use super::super::linear::Polynomial;
use super::names::{EqualExtents, NameResolver};
use crate::hir::{Block, Expr, Function, FunctionId, Monomorphic, Type as HirType};
use crate::scalar::Scalar;

/// The names in an expression of a launch: those of the kernel, or the parameters of a device
/// function that the launch calls.
#[derive(Clone, Copy)]
pub struct LaunchScope<'a> {
    pub names: &'a NameResolver<'a>,
    pub equal: &'a EqualExtents,
    pub program: &'a Monomorphic,
    /// The kernel, or the device function.
    function: &'a Function,
    /// The values of the function's parameters, where they are known; `None` in the kernel.
    pub arguments: Option<&'a [Option<Polynomial>]>,
    /// The number of calls around the expression.
    pub call_depth: usize,
}

impl<'a> LaunchScope<'a> {
    /// Returns the scope of the kernel's own clauses.
    pub fn of(program: &'a Monomorphic, names: &'a NameResolver<'a>, equal: &'a EqualExtents) -> LaunchScope<'a> {
        LaunchScope { names, equal, program, function: program.kernel(), arguments: None, call_depth: 0 }
    }

    /// Returns whether an expression is a `usize`.
    pub fn is_usize(&self, e: &Expr) -> bool {
        matches!(self.function.types.get(e.ty.0 as usize), Some(HirType::Scalar(Scalar::Usize)))
    }

    /// Returns a function and the value of its body, if the body has no statements.
    pub fn called(&self, function: FunctionId) -> Option<(&'a Function, &'a Expr)> {
        let function = self.program.program().functions.get(function.0 as usize)?;
        Some((function, block_value(&function.body)?))
    }

    /// Returns the scope of the body of a function called here.
    pub fn callee_scope(self, function: &'a Function, arguments: &'a [Option<Polynomial>]) -> LaunchScope<'a> {
        LaunchScope { function, arguments: Some(arguments), call_depth: self.call_depth + 1, ..self }
    }
}

/// Returns the value of a block without statements.
pub fn block_value(block: &Block) -> Option<&Expr> {
    block.value.as_deref().filter(|_| block.statements.is_empty())
}
