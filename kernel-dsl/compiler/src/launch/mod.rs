//! A kernel's launch shape and conditions, evaluated on the host.
//!
//! [`shape`] is the one door: no launch runs whose [`Fact`]s it has not seen. It reports everything that is wrong with a
//! launch at once, each [`Refusal`] with what was expected and what was given. `contract` holds the checks against the kernel's
//! parameters, `block` those of the number of threads, `evaluate` the meaning of the expressions in `block`, `grid` and `requires`,
//! `bounds` how large they can be, and `explain` the words for them.

mod block;
mod bounds;
mod contract;
mod evaluate;
mod explain;
mod method;
mod promise;
#[cfg(test)]
mod tests;

use crate::hir::{BlockExtent, Monomorphic};
use crate::ir::Block;
use crate::{ElementType, Scalar};
pub use promise::Promise;
use std::fmt;

/// What the host knows of one argument of a launch.
#[derive(Clone, PartialEq, Debug)]
pub enum Fact {
    /// A scalar's bits, zero-extended.
    #[allow(missing_docs)]
    Scalar { ty: Scalar, bits: u64 },
    /// A slice.
    #[allow(missing_docs)]
    Slice { element: ElementType, mutable: bool, len: u64, address: u64 },
    /// A view: extents and strides of all dimensions, outermost first, in elements. The last stride is 1, unless it is `strided`.
    #[allow(missing_docs)]
    View { element: ElementType, mutable: bool, strided: bool, extents: Vec<u64>, strides: Vec<u64>, address: u64 },
}

/// What the host knows of the device that a launch is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub struct DeviceFacts {
    pub multiprocessors: u32,
}

/// The shape of a launch whose arguments meet the kernel's contract.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Threads of a block in x, y, z.
    pub block: [u32; 3],
    /// Blocks in x, y, z; one of them may be 0: then there is nothing to run.
    pub grid: [u32; 3],
}

impl Shape {
    /// Whether there is no block to run.
    pub fn is_empty(&self) -> bool {
        self.grid.contains(&0)
    }
}

/// Why a launch cannot be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal(pub String);

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Threads of a block in x, y, z at most, on every target.
pub const MAX_BLOCK: [u32; 3] = [1024, 1024, 64];

/// Threads of a block at most, on every target.
pub const MAX_THREADS: u32 = 1024;

/// Blocks of a grid in x, y, z at most, on every target.
pub const MAX_GRID: [u32; 3] = [i32::MAX as u32, 65_535, 65_535];

const AXES: [&str; 3] = ["x", "y", "z"];

/// Checks `facts` against the parameters and conditions of the kernel's instance, and gives the launch's shape; or all
/// that is wrong with them. `block` is the extent of the block that the launch chooses, where the kernel leaves it one.
pub fn shape(
    program: &Monomorphic,
    device: DeviceFacts,
    block: Option<u64>,
    facts: &[Fact],
) -> Result<Shape, Vec<Refusal>> {
    contract::shape(program, device, block, facts)
}

/// What an instance's conditions promise of its arguments.
pub fn promises(program: &Monomorphic) -> Vec<Promise> {
    promise::promises(program)
}

/// What is known of an instance's block before any launch: it depends on the instance's constants alone.
pub fn block(program: &Monomorphic) -> Result<Block, Refusal> {
    contract::block(program)
}

/// What an instance asks of a multiprocessor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Blocks that it should hold at once.
    pub min_blocks: Option<u32>,
    /// Registers a thread at most.
    pub max_registers: Option<u32>,
}

/// The limits of an instance, which depend on its constants alone.
pub fn limits(program: &Monomorphic) -> Result<Limits, Refusal> {
    contract::limits(program)
}

/// Whether the kernel leaves an extent of its block to the launch.
pub fn chooses_block(program: &Monomorphic) -> bool {
    program.program().launch.block.iter().any(|extent| matches!(extent, BlockExtent::Chosen { .. }))
}

fn because(mentioned: &str) -> String {
    if mentioned.is_empty() { String::new() } else { format!(": {mentioned}") }
}
