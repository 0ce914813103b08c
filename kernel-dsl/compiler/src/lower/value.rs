//! What an expression is while a kernel is lowered: aggregates taken apart, constants remembered.

use crate::Scalar;
use crate::ir::{self, LocalId, Policy, SharedId, Value};
use smallvec::SmallVec;

/// A scalar value, and its bits where lowering knows them (for shapes of shared arrays, and for folding away what a
/// generic constant decides).
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Known {
    pub value: Value,
    pub bits: Option<u64>,
}

/// The value of an expression.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Val {
    /// `()`, or no value at all where control does not get to.
    Unit,
    Scalar(Known),
    Tuple(Vec<Val>),
    /// An array lives in registers that nothing else writes.
    Array(Storage),
    View(View),
    Shared(Handle),
    Reference(Place),
    /// Whether there is a value, and the value; where there is none, something of its type.
    Option(Known, Box<Val>),
    /// A closure or function, by index into the lowerer's.
    Callable(u32),
}

/// A slice or view.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct View {
    pub base: Value,
    pub extents: SmallVec<[Known; 2]>,
    /// One a dimension; the last has none, it is 1.
    pub strides: SmallVec<[Option<Value>; 2]>,
    pub element: Scalar,
    pub mutable: bool,
}

/// A shared array with its first indices fixed.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Handle {
    pub array: SharedId,
    pub element: Scalar,
    pub prefix: SmallVec<[Value; 3]>,
}

/// Registers of a variable: a tree by tuples, options and views, whose leaves are locals.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Storage {
    Unit,
    /// `dims` is empty for a scalar; the element at `offset` of the local is the first.
    Leaf {
        local: LocalId,
        element: ir::Type,
        dims: SmallVec<[u32; 2]>,
        offset: Option<Known>,
    },
    Tuple(Vec<Storage>),
}

/// Something that can be read and written.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Place {
    Registers(Storage),
    Memory { place: ir::Place, element: Scalar, policy: Policy },
}

impl Val {
    /// The scalar, if it is one.
    pub(super) fn scalar(&self) -> Option<Known> {
        match self {
            Val::Scalar(k) => Some(*k),
            _ => None,
        }
    }

    /// Whether all IR values in it are such.
    pub(super) fn is_made_of(&self, such: &mut dyn FnMut(Value) -> bool) -> bool {
        match self {
            Val::Unit | Val::Callable(_) => true,
            Val::Option(some, value) => such(some.value) && value.is_made_of(such),
            Val::Scalar(k) => such(k.value),
            Val::Tuple(parts) => parts.iter().all(|p| p.is_made_of(such)),
            Val::Array(storage) => storage.is_made_of(such),
            Val::View(v) => {
                let sizes = v.extents.iter().map(|k| k.value).chain(v.strides.iter().flatten().copied());
                std::iter::once(v.base).chain(sizes).all(such)
            }
            Val::Shared(handle) => handle.prefix.iter().copied().all(such),
            Val::Reference(Place::Registers(storage)) => storage.is_made_of(such),
            Val::Reference(Place::Memory { place, .. }) => match place {
                ir::Place::Global { base, dims, .. } | ir::Place::Dynamic { base, dims, .. } => {
                    let sizes = dims.iter().flat_map(|d| [d.index, d.extent].into_iter().chain(d.stride));
                    std::iter::once(*base).chain(sizes).all(such)
                }
                ir::Place::Shared { indices, .. } => indices.iter().copied().all(such),
                ir::Place::Address { base, .. } => such(*base),
            },
        }
    }

    /// Calls `f` on each shared array that it names; `None` stands for any, as a closure may name.
    pub(super) fn arrays(&self, f: &mut dyn FnMut(Option<SharedId>)) {
        match self {
            Val::Shared(handle) => f(Some(handle.array)),
            Val::Reference(Place::Memory { place: ir::Place::Shared { array, .. }, .. }) => f(Some(*array)),
            Val::Callable(_) => f(None),
            Val::Tuple(parts) => parts.iter().for_each(|p| p.arrays(f)),
            Val::Option(_, value) => value.arrays(f),
            Val::Unit | Val::Scalar(_) | Val::Array(_) | Val::View(_) | Val::Reference(_) => {}
        }
    }

    /// Says that the value, of a branch, is `arm` at times: a view of memory that the launch writes in one arm is one.
    pub(super) fn may_be(&mut self, arm: &Val) {
        match (self, arm) {
            (Val::View(view), Val::View(arm)) => view.mutable |= arm.mutable,
            (Val::Option(_, value), Val::Option(_, arm)) => value.may_be(arm),
            (Val::Tuple(parts), Val::Tuple(arms)) => parts.iter_mut().zip(arms).for_each(|(p, a)| p.may_be(a)),
            _ => {}
        }
    }
}

impl Storage {
    fn is_made_of(&self, such: &mut dyn FnMut(Value) -> bool) -> bool {
        match self {
            Storage::Unit => true,
            Storage::Leaf { offset, .. } => offset.is_none_or(|k| such(k.value)),
            Storage::Tuple(parts) => parts.iter().all(|p| p.is_made_of(such)),
        }
    }
}

impl View {
    pub(super) fn policy(&self) -> Policy {
        if self.mutable { Policy::Coherent } else { Policy::ReadOnly }
    }
}

/// The bits of `a op b` for unsigned operands of type `ty`, where they are sure and nothing overflows.
pub(super) fn known_binary(op: ir::Binary, ty: Scalar, a: Known, b: Known) -> Option<u64> {
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
        Shl => (x << (y & 31)) & ty.mask(),
        Shr => x >> (y & 31),
        RotateLeft => u64::from((x as u32).rotate_left(y as u32)),
    };
    (bits <= ty.mask()).then_some(bits)
}

/// The truth of a comparison of unsigned operands.
pub(super) fn known_compare(comparison: ir::Comparison, ty: Scalar, a: Known, b: Known) -> Option<u64> {
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
