//! The layout of values in memory.

use crate::Scalar;
use crate::ir::{self, ElementOffset};
use smallvec::SmallVec;
use std::rc::Rc;

/// The layout of a value in memory.
#[derive(Clone, PartialEq, Debug)]
pub(in crate::lower) enum MemLayout {
    Scalar(Scalar),
    /// Each part with its offset in bytes.
    Tuple {
        parts: Rc<[(u32, MemLayout)]>,
        bytes: u32,
    },
    Array {
        element: Rc<MemLayout>,
        len: u32,
    },
}

impl MemLayout {
    pub fn bytes(&self) -> u32 {
        match self {
            MemLayout::Scalar(s) => s.bytes(),
            MemLayout::Tuple { bytes, .. } => *bytes,
            MemLayout::Array { element, len } => element.bytes() * len,
        }
    }

    /// Returns the number of scalars.
    pub fn numbers(&self) -> u32 {
        match self {
            MemLayout::Scalar(_) => 1,
            MemLayout::Tuple { parts, .. } => parts.iter().map(|(_, part)| part.numbers()).sum(),
            MemLayout::Array { element, len } => element.numbers() * len,
        }
    }

    /// Returns the layout as an element of an array in memory.
    pub fn element(&self) -> ir::MemoryElement {
        match self {
            MemLayout::Scalar(s) => ir::MemoryElement::Scalar(*s),
            mem_layout => ir::MemoryElement::aggregate(mem_layout.bytes()),
        }
    }

    pub fn scalar(&self) -> Option<Scalar> {
        match self {
            MemLayout::Scalar(s) => Some(*s),
            _ => None,
        }
    }

    /// Collects the scalars, each with its offset in bytes plus `at`.
    pub fn leaves(&self, at: u32, found: &mut Leaves) {
        match self {
            MemLayout::Scalar(s) => found.push((at, *s)),
            MemLayout::Tuple { parts, .. } => parts.iter().for_each(|(offset, part)| part.leaves(at + offset, found)),
            MemLayout::Array { element, len } => {
                (0..*len).for_each(|i| element.leaves(at + i * element.bytes(), found));
            }
        }
    }

    /// Returns the path to the first scalar of an element of this layout; `None` if the element is
    /// a scalar.
    pub fn scalar_path(&self) -> Option<Box<ElementOffset>> {
        match self {
            MemLayout::Scalar(_) => None,
            mem_layout => {
                Some(Box::new(ElementOffset { bytes: mem_layout.bytes(), offset: 0, indices: SmallVec::new() }))
            }
        }
    }
}

/// Scalars with their offsets in bytes.
pub(in crate::lower) type Leaves = SmallVec<[(u32, Scalar); 4]>;
