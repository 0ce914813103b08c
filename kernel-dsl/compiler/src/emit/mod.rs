//! Optimised IR to a PTX AST.

use crate::error::Errors;
use crate::passes::Optimised;
use crate::ptx;

/// The PTX module of one instance.
pub fn emit(_kernel: &Optimised) -> Result<ptx::Module, Errors> {
    Ok(ptx::Module)
}
