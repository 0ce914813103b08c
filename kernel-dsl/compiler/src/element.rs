//! The element types of buffers, on the host.

use crate::hir::{Size, Type, TypeId, layout::ValueLayout};
use crate::ir::MemoryElement;
use crate::scalar::Scalar;
use std::fmt;

/// The type of a buffer's elements. Types are equal if their structure and names are equal.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ElementType {
    /// A number.
    Scalar(Scalar),
    /// `[T; N]`
    Array(&'static ElementType, u32),
    /// A `repr(C)` struct without padding.
    #[allow(missing_docs)]
    Struct { name: &'static str, fields: &'static [ElementType] },
}

impl ElementType {
    /// Returns size and alignment under `repr(C)`.
    pub const fn layout(&self) -> ValueLayout {
        match self {
            ElementType::Scalar(s) => ValueLayout { bytes: s.bytes(), align: s.bytes() },
            ElementType::Array(element, n) => {
                let ValueLayout { bytes, align } = element.layout();
                ValueLayout { bytes: bytes * *n, align }
            }
            ElementType::Struct { fields, .. } => {
                let mut all = ValueLayout { bytes: 0, align: 1 };
                let mut i = 0;
                while i < fields.len() {
                    let field = fields[i].layout();
                    all.bytes = all.bytes.next_multiple_of(field.align) + field.bytes;
                    if field.align > all.align {
                        all.align = field.align;
                    }
                    i += 1;
                }
                ValueLayout { bytes: all.bytes.next_multiple_of(all.align), ..all }
            }
        }
    }

    /// Returns the size of an element in bytes.
    pub const fn bytes(&self) -> u32 {
        self.layout().bytes
    }

    /// Returns the alignment of a buffer on the device, in bytes. Elements of several numbers are
    /// accessed with the widest accesses that their size allows, so the alignment may exceed that
    /// of the host.
    pub const fn device_align(&self) -> u32 {
        match self {
            ElementType::Scalar(s) => s.bytes(),
            several => MemoryElement::aggregate(several.bytes()).align(),
        }
    }

    /// Returns the scalar type, if the element is a scalar.
    pub const fn scalar(&self) -> Option<Scalar> {
        match self {
            ElementType::Scalar(s) => Some(*s),
            _ => None,
        }
    }

    /// Returns the scalars of the type with their offsets in bytes, in order. A `u128` is two
    /// `u64`, the low one first.
    pub fn numbers(&self) -> Vec<(u32, Scalar)> {
        let mut all = Vec::new();
        self.collect(0, &mut all);
        all
    }

    fn collect(&self, start: u32, all: &mut Vec<(u32, Scalar)>) {
        match self {
            ElementType::Scalar(Scalar::U128) => all.extend([0, 8].map(|at| (start + at, Scalar::U64))),
            ElementType::Scalar(s) => all.push((start, *s)),
            ElementType::Array(element, n) => {
                (0..*n).for_each(|i| element.collect(start + i * element.bytes(), all));
            }
            ElementType::Struct { fields, .. } => {
                let mut end = start;
                for field in *fields {
                    let at = end.next_multiple_of(field.layout().align);
                    field.collect(at, all);
                    end = at + field.bytes();
                }
            }
        }
    }

    /// Returns whether the type equals type `id` of a monomorphic program.
    pub fn equals_hir_type(&self, types: &[Type], id: TypeId) -> bool {
        match (self, &types[id.0 as usize]) {
            (ElementType::Scalar(a), Type::Scalar(b)) => a == b,
            (ElementType::Array(element, n), Type::Array(id, Size::Known(m))) => {
                n == m && element.equals_hir_type(types, *id)
            }
            (ElementType::Struct { fields, .. }, Type::Tuple(parts)) => {
                fields.len() == parts.len() && fields.iter().zip(parts).all(|(f, p)| f.equals_hir_type(types, *p))
            }
            _ => false,
        }
    }
}

impl From<Scalar> for ElementType {
    fn from(scalar: Scalar) -> ElementType {
        ElementType::Scalar(scalar)
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ElementType::Scalar(s) => s.fmt(f),
            ElementType::Array(element, n) => write!(f, "[{element}; {n}]"),
            ElementType::Struct { name, .. } => f.write_str(name),
        }
    }
}
