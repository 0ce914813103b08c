//! Tables: arrays that are known at compile time and read at run-time indices.
//!
//! A table is one element in memory with as many scalars as the table has. The base is
//! [`Op::Table`](super::Op::Table), and an access names a scalar by an
//! [`ElementOffset`](super::ElementOffset). Lowering turns each read into an access. Passes replace
//! reads with constant indices by constants, and place the remaining tables.

use super::{MAX_VECTOR_BYTES, TableId, Type};
use crate::scalar::Scalar;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Bytes of constant memory that a module may declare, on every target.
pub const CONSTANT_LIMIT: u32 = 64 * 1024;

/// An array that is known when the kernel is compiled.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Table {
    /// Name in Rust; not unique.
    pub name: String,
    /// The scalars, each with the offset of its first byte, in ascending order. Gaps contain zeros.
    pub scalars: Arc<[(u32, Scalar, u64)]>,
    /// Size of the table in bytes.
    pub bytes: u32,
    /// The placement that the kernel requests.
    pub placement: Placement,
}

impl Table {
    /// The alignment of a table in bytes: that of the widest access.
    pub const ALIGN: u32 = MAX_VECTOR_BYTES;

    /// Returns the bits of the scalar at a byte offset; `None` if no such scalar starts there.
    pub fn bits(&self, byte: u32, scalar: Scalar) -> Option<u64> {
        let at = self.scalars.binary_search_by_key(&byte, |(at, ..)| *at).ok()?;
        let (_, ty, bits) = self.scalars[at];
        // A scalar may be read as another type of the same width, except as `bool`.
        (ty.bits() == scalar.bits() && (ty == Scalar::Bool) == (scalar == Scalar::Bool)).then_some(bits)
    }

    /// Returns the contents in memory, byte by byte.
    pub fn contents(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.bytes as usize];
        for (at, scalar, bits) in self.scalars.iter() {
            let (at, n) = (*at as usize, scalar.bytes() as usize);
            if let Some(to) = bytes.get_mut(at..at + n) {
                to.copy_from_slice(&bits.to_le_bytes()[..n]);
            }
        }
        bytes
    }

    /// Returns the type of the table's scalars, if they have one type and no gaps between them.
    pub fn of_one_type(&self) -> Option<Scalar> {
        let (_, scalar, _) = *self.scalars.first()?;
        let dense = self.scalars.iter().enumerate().all(|(i, (at, s, _))| (*s, *at) == (scalar, i as u32 * s.bytes()));
        (dense && self.bytes == self.scalars.len() as u32 * scalar.bytes()).then_some(scalar)
    }
}

/// The memory in which a table is placed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug, Serialize, Deserialize)]
pub enum Placement {
    /// In constant memory if each read is proven to be uniform across a warp and there is room,
    /// otherwise in global memory.
    #[default]
    ByUse,
    /// In constant memory. The constant cache gives a warp one word at a time, so reads of
    /// different words are serialized.
    Constant,
    /// In global memory, read through the read-only path, which serves lanes with different words
    /// together.
    Global,
}

impl super::Kernel {
    /// Returns the table that `id` names.
    pub fn table(&self, id: TableId) -> Option<&Table> {
        self.tables.get(id.0 as usize)
    }
}

impl Type {
    /// Returns whether the type is an address of 64 bits: in global or constant memory.
    pub fn is_wide_address(self) -> bool {
        matches!(self, Type::Global | Type::Constant)
    }
}
