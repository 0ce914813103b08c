//! A kernel's launch shape and conditions, evaluated on the host.
//!
//! Every launch goes through [`shape`], which checks the [`Fact`]s of the launch. [`shape`] reports
//! all errors of a launch at once, each as a [`Refusal`] with the expected and given values.
//! `contract` checks arguments against the kernel's parameters, and `block` checks the block size.
//! `evaluate` evaluates the expressions of `block`, `grid` and `requires`, `bounds` computes their
//! bounds, and `explain` describes them.

mod block;
mod bounds;
mod contract;
mod evaluate;
mod explain;
mod method;
mod promise;
#[cfg(test)]
mod tests;

use crate::hir::{BlockExtent, Expr, Monomorphic};
use crate::ir::BlockExtents;
use crate::{ElementType, Scalar};
pub use promise::Promise;
use std::fmt;

/// The facts about one argument of a launch.
#[derive(Clone, PartialEq, Debug)]
pub enum Fact {
    /// The bits of a scalar, zero-extended.
    #[allow(missing_docs)]
    Scalar { ty: Scalar, bits: u64 },
    /// A slice.
    #[allow(missing_docs)]
    Slice { element: ElementType, mutable: bool, len: u64, address: u64 },
    /// A view, with the extents and strides of all dimensions, outermost first, in elements. The
    /// last stride is 1 unless `strided`.
    #[allow(missing_docs)]
    View { element: ElementType, mutable: bool, strided: bool, extents: Vec<u64>, strides: Vec<u64>, address: u64 },
}

/// The facts about the device of a launch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub struct DeviceFacts {
    pub multiprocessors: u32,
}

/// The shape of a launch whose arguments satisfy the kernel's contract.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LaunchShape {
    /// The threads of a block in x, y, z.
    pub block: [u32; 3],
    /// The blocks in x, y, z. If one extent is 0, there is nothing to run.
    pub grid: [u32; 3],
}

impl LaunchShape {
    /// Returns whether the grid has no block.
    pub fn is_empty(&self) -> bool {
        self.grid.contains(&0)
    }
}

/// The reason why a launch is rejected.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal(pub String);

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The largest number of threads of a block in x, y, z, on every target.
pub const MAX_BLOCK: [u32; 3] = [1024, 1024, 64];

/// The largest number of threads of a block, on every target.
pub const MAX_THREADS: u32 = 1024;

/// The largest number of blocks of a grid in x, y, z, on every target.
pub const MAX_GRID: [u32; 3] = [i32::MAX as u32, 65_535, 65_535];

const AXES: [&str; 3] = ["x", "y", "z"];

/// Checks `facts` against the parameters and conditions of the instance. Returns the shape of the
/// launch, or all errors. `block` is the block extent that the launch chooses, if the kernel leaves
/// it to the launch.
pub fn shape(
    program: &Monomorphic,
    device: DeviceFacts,
    block: Option<u64>,
    facts: &[Fact],
) -> Result<LaunchShape, Vec<Refusal>> {
    contract::shape(program, device, block, facts)
}

/// Returns what the conditions of an instance guarantee about its arguments.
pub fn promises(program: &Monomorphic) -> Vec<Promise> {
    promise::promises(program)
}

/// Returns a launch expression, or the side of it that is evaluated if it is an `if` that the
/// constants of the instance decide.
pub fn evaluated_side<'e>(program: &Monomorphic, e: &'e Expr) -> &'e Expr {
    contract::without_arguments(program, |facts| promise::evaluated_side(e, facts)).unwrap_or(e)
}

/// Returns what is known of an instance's block before any launch. The result depends only on the
/// instance's constants.
pub fn block(program: &Monomorphic) -> Result<BlockExtents, Refusal> {
    contract::block(program)
}

/// The resource limits of an instance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InstanceLimits {
    /// The number of blocks that a multiprocessor should hold at once.
    pub min_blocks: Option<u32>,
    /// The largest number of registers of a thread.
    pub max_registers: Option<u32>,
}

/// Returns the resource limits of an instance, which depend only on its constants.
pub fn limits(program: &Monomorphic) -> Result<InstanceLimits, Refusal> {
    contract::limits(program)
}

/// Returns whether the launch chooses an extent of the block.
pub fn chooses_block(program: &Monomorphic) -> bool {
    program.program().launch.block.iter().any(|extent| matches!(extent, BlockExtent::Chosen { .. }))
}

fn value_suffix(mentioned: &str) -> String {
    if mentioned.is_empty() { String::new() } else { format!(": {mentioned}") }
}
