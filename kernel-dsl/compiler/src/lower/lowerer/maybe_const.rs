//! Scalars whose bits may be known during lowering.

use crate::Scalar;
use crate::ir::{self, Value};

/// A scalar value, with its bits if they are known. Known bits determine shapes of shared arrays,
/// and select branches that depend on generic constants.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(in crate::lower) struct MaybeConst {
    pub value: Value,
    /// The upper word of a `u128`, whose lower word is `value`.
    pub high: Option<Value>,
    pub bits: Option<u64>,
}

impl MaybeConst {
    pub fn new(value: Value, bits: Option<u64>) -> MaybeConst {
        MaybeConst { value, high: None, bits }
    }

    /// Returns a value that is known only at run time.
    pub fn unknown(value: Value) -> MaybeConst {
        MaybeConst::new(value, None)
    }

    /// Returns the words of the scalar, the lower first.
    pub fn words(self) -> impl Iterator<Item = Value> {
        std::iter::once(self.value).chain(self.high)
    }
}

/// Returns the bits of `a op b` for unsigned operands of type `ty`, if they are known and nothing
/// overflows.
pub(in crate::lower) fn known_binary(op: ir::Binary, ty: Scalar, a: MaybeConst, b: MaybeConst) -> Option<u64> {
    use ir::Binary::*;
    if !matches!(ty, Scalar::Usize | Scalar::U32 | Scalar::Bool) {
        return None;
    }
    let (x, y) = (a.bits?, b.bits?);
    let bits = match op {
        Add => x.checked_add(y)?,
        Sub => x.checked_sub(y)?,
        Mul => x.checked_mul(y)?,
        Div => x.checked_div(y)?,
        Rem => x.checked_rem(y)?,
        WrappingAdd => x.wrapping_add(y) & ty.mask(),
        WrappingSub => x.wrapping_sub(y) & ty.mask(),
        WrappingMul => x.wrapping_mul(y) & ty.mask(),
        Min => x.min(y),
        Max => x.max(y),
        And => x & y,
        Or => x | y,
        Xor => x ^ y,
        Shl | Shr if y >= 32 => return None,
        Shl | WrappingShl => (x << (y & 31)) & ty.mask(),
        Shr | WrappingShr => x >> (y & 31),
        RotateLeft if ty.bits() != 32 => return None,
        RotateLeft => u64::from((x as u32).rotate_left(y as u32)),
    };
    (bits <= ty.mask()).then_some(bits)
}

/// Returns the result of a comparison of unsigned operands, if it is known.
pub(in crate::lower) fn known_compare(
    comparison: ir::Comparison,
    ty: Scalar,
    a: MaybeConst,
    b: MaybeConst,
) -> Option<u64> {
    use ir::Comparison::*;
    if !matches!(ty, Scalar::Usize | Scalar::U32 | Scalar::Bool) {
        return None;
    }
    let (x, y) = (a.bits?, b.bits?);
    Some(u64::from(match comparison {
        Eq => x == y,
        Ne => x != y,
        Lt => x < y,
        Le => x <= y,
        Gt => x > y,
        Ge => x >= y,
    }))
}
