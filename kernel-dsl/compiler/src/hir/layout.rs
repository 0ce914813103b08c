//! Where the parts of a value lie in memory: as `repr(C)` has it, on host and device alike.

use super::{Size, Type, TypeId};

/// How much room a value takes, and where it may lie.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Layout {
    /// A multiple of `align`.
    pub bytes: u32,
    /// A power of two.
    pub align: u32,
}

/// The layout of a type of a monomorphic program; `None` for what has none, such as a view.
pub fn layout(types: &[Type], id: TypeId) -> Option<Layout> {
    match &types[id.0 as usize] {
        Type::Unit => Some(Layout { bytes: 0, align: 1 }),
        Type::Scalar(s) => Some(Layout { bytes: s.bytes(), align: s.bytes() }),
        Type::Array(element, Size::Known(n)) => {
            let Layout { bytes, align } = layout(types, *element)?;
            Some(Layout { bytes: bytes.checked_mul(*n)?, align })
        }
        Type::Tuple(parts) => {
            let mut end = Layout { bytes: 0, align: 1 };
            for part in parts {
                let part = layout(types, *part)?;
                end.bytes = end.bytes.checked_next_multiple_of(part.align)?.checked_add(part.bytes)?;
                end.align = end.align.max(part.align);
            }
            Some(Layout { bytes: end.bytes.checked_next_multiple_of(end.align)?, ..end })
        }
        _ => None,
    }
}

/// The first byte of each part of a tuple of these types.
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
