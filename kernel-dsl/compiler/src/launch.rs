//! A kernel's launch shape and conditions, evaluated on the host.

use crate::Scalar;
use crate::hir::{Instance, Program};
use std::fmt;

/// What the host knows of one argument of a launch.
#[derive(Clone, PartialEq, Debug)]
pub enum Fact {
    /// A scalar's bits, zero-extended.
    #[allow(missing_docs)]
    Scalar { ty: Scalar, bits: u64 },
    /// A slice.
    #[allow(missing_docs)]
    Slice { element: Scalar, mutable: bool, len: u64, address: u64 },
    /// A view: extents and strides of all dimensions, outermost first, in elements.
    #[allow(missing_docs)]
    View { element: Scalar, mutable: bool, extents: Vec<u64>, strides: Vec<u64>, address: u64 },
}

/// The shape of a launch whose arguments meet the kernel's contract.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Threads of a block in x, y, z.
    pub block: [u32; 3],
    /// Blocks in x, y, z; one of them may be 0: then there is nothing to run.
    pub grid: [u32; 3],
}

/// Why a launch cannot be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal(pub String);

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Checks `facts` against the parameters and conditions of the kernel's instance, and gives the launch's shape; or all
/// that is wrong with them.
pub fn shape(_program: &Program, _instance: &Instance, _facts: &[Fact]) -> Result<Shape, Vec<Refusal>> {
    Err(vec![])
}

/// The block of an instance, which depends on nothing but its constants.
pub fn block(_program: &Program, _instance: &Instance) -> Result<[u32; 3], Refusal> {
    Err(Refusal(String::new()))
}
