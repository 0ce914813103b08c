//! The memory layout of values: that of `repr(C)`, on host and device.

use super::{Size, Type, TypeId};

/// The size and alignment of a value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ValueLayout {
    /// The size in bytes, a multiple of `align`.
    pub bytes: u32,
    /// The alignment in bytes, a power of two.
    pub align: u32,
}

/// Returns the layout of a type of a monomorphic program; `None` for a type without one, such as a
/// view.
pub fn layout(types: &[Type], id: TypeId) -> Option<ValueLayout> {
    match &types[id.0 as usize] {
        Type::Unit => Some(ValueLayout { bytes: 0, align: 1 }),
        Type::Scalar(s) => Some(ValueLayout { bytes: s.bytes(), align: s.bytes() }),
        Type::Array(element, Size::Known(n)) => {
            let ValueLayout { bytes, align } = layout(types, *element)?;
            Some(ValueLayout { bytes: bytes.checked_mul(*n)?, align })
        }
        Type::Tuple(parts) => {
            let mut end = ValueLayout { bytes: 0, align: 1 };
            for part in parts {
                let part = layout(types, *part)?;
                end.bytes = end.bytes.checked_next_multiple_of(part.align)?.checked_add(part.bytes)?;
                end.align = end.align.max(part.align);
            }
            Some(ValueLayout { bytes: end.bytes.checked_next_multiple_of(end.align)?, ..end })
        }
        _ => None,
    }
}

/// Returns the offset of each part of a tuple of these types.
pub fn offsets(types: &[Type], parts: &[TypeId]) -> Option<Vec<u32>> {
    let mut end = 0u32;
    parts
        .iter()
        .map(|part| {
            let part = layout(types, *part)?;
            let start = end.checked_next_multiple_of(part.align)?;
            end = start.checked_add(part.bytes)?;
            Some(start)
        })
        .collect()
}
