//! Values and their types, and the numbers that instructions refer to.

use crate::scalar::Scalar;
use smallvec::SmallVec;

/// A value: the result of one instruction, or a parameter of a region. Index into
/// [`Kernel::values`](super::Kernel::values).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Value(pub u32);

/// Index into [`Kernel::locals`](super::Kernel::locals).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct LocalId(pub u32);

/// Index into [`Kernel::shared`](super::Kernel::shared).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct SharedId(pub u32);

/// Index into [`Kernel::dynamic`](super::Kernel::dynamic).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct DynamicId(pub u32);

/// Index into [`Kernel::tables`](super::Kernel::tables).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct TableId(pub u32);

/// Index into [`Kernel::locations`](super::Kernel::locations).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Location(pub u32);

/// The label of a construct, named by the `Break` and `Continue` inside it; unique in a kernel.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Label(pub u32);

/// Operands or results, of which there are usually one or two.
pub type Values = SmallVec<[Value; 2]>;

/// The type of a value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Type {
    /// A number or a truth value.
    Scalar(Scalar),
    /// A 64-bit address in global memory.
    Global,
    /// A 64-bit address in constant memory. Only passes make values of this type.
    Constant,
    /// A 32-bit byte offset in the block's shared memory. Lowering makes it by `Op::Dynamic` and
    /// `Op::Offset`. Passes also make constants of this type.
    Shared,
}

impl Type {
    /// Returns the scalar type, if this is one.
    pub fn scalar(self) -> Option<Scalar> {
        match self {
            Type::Scalar(s) => Some(s),
            _ => None,
        }
    }
}
