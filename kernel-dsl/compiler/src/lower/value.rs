//! What an expression is while a kernel is lowered: aggregates taken apart, constants remembered.

use super::cell::Cell;
use super::pending::{Flight, Slot};
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
    /// Copies that have begun.
    Pending(Vec<Flight>),
    /// A closure or function, by index into the lowerer's.
    Callable(u32),
}

/// A slice or view.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct View {
    pub base: Value,
    pub extents: SmallVec<[Known; 2]>,
    /// One a dimension; the last has none where it is 1.
    pub strides: SmallVec<[Option<Value>; 2]>,
    pub cell: Cell,
    pub mutable: bool,
    pub wish: Wish,
    /// Base and all strides are multiples of that many elements.
    pub aligned: u32,
}

/// What a kernel says of how a view is read. Only a wish: what a branch gives has it if both arms say the same, and a variable
/// has that of the first view that it is given.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) enum Wish {
    #[default]
    None,
    /// `streaming()`: each part once.
    Once,
    /// `coherent()`: by way of the second cache alone.
    Coherent,
}

/// An array in shared memory.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Handle {
    /// A laid out one with its first indices fixed.
    Fixed { array: SharedId, cell: Cell, prefix: SmallVec<[Value; 3]> },
    /// One whose size the launch evaluates; `base` is an address in shared memory.
    Dynamic(View),
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
    /// Of a variable for copies that have begun, by its number.
    Pending {
        token: u32,
        slots: Vec<Slot>,
    },
}

/// Something that can be read and written.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Place {
    Registers(Storage),
    Memory { place: ir::Place, cell: Cell, policy: Policy },
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
            Val::Pending(flights) => flights.iter().all(|f| f.values().all(&mut *such)),
            Val::Option(some, value) => such(some.value) && value.is_made_of(such),
            Val::Scalar(k) => such(k.value),
            Val::Tuple(parts) => parts.iter().all(|p| p.is_made_of(such)),
            Val::Array(storage) => storage.is_made_of(such),
            Val::View(v) | Val::Shared(Handle::Dynamic(v)) => {
                let sizes = v.extents.iter().map(|k| k.value).chain(v.strides.iter().flatten().copied());
                std::iter::once(v.base).chain(sizes).all(such)
            }
            Val::Shared(Handle::Fixed { prefix, .. }) => prefix.iter().copied().all(such),
            Val::Reference(Place::Registers(storage)) => storage.is_made_of(such),
            Val::Reference(Place::Memory { place, .. }) => {
                let steps = place.within().into_iter().flat_map(|w| w.indices.iter().map(|s| s.index));
                match place {
                    ir::Place::Global { base, dims, .. } | ir::Place::Dynamic { base, dims, .. } => {
                        let sizes = dims.iter().flat_map(|d| [d.index, d.extent].into_iter().chain(d.stride));
                        std::iter::once(*base).chain(sizes).chain(steps).all(such)
                    }
                    ir::Place::Shared { indices, .. } => indices.iter().copied().chain(steps).all(such),
                    ir::Place::Address { base, .. } => such(*base),
                }
            }
        }
    }

    /// Calls `f` on each shared array that it names; `None` stands for any, as a closure may name.
    pub(super) fn arrays(&self, f: &mut dyn FnMut(Option<SharedId>)) {
        match self {
            Val::Shared(Handle::Fixed { array, .. }) => f(Some(*array)),
            Val::Reference(Place::Memory { place: ir::Place::Shared { array, .. }, .. }) => f(Some(*array)),
            Val::Callable(_) => f(None),
            Val::Tuple(parts) => parts.iter().for_each(|p| p.arrays(f)),
            Val::Pending(flights) => flights.iter().for_each(|flight| f(Some(flight.array()))),
            Val::Option(_, value) => value.arrays(f),
            // Arrays of dynamic size live as long as the kernel.
            Val::Unit | Val::Scalar(_) | Val::Array(_) | Val::View(_) | Val::Reference(_) | Val::Shared(_) => {}
        }
    }

    /// Says that the value, of a branch, is one of two: a view of memory that the launch writes in one arm is one, and is read
    /// as both arms wish. An arm that control leaves gives none.
    pub(super) fn is_one_of(&mut self, a: &Val, b: &Val) {
        match (self, a, b) {
            (Val::View(view), Val::View(a), Val::View(b)) => {
                view.mutable |= a.mutable || b.mutable;
                view.wish = if a.wish == b.wish { a.wish } else { Wish::None };
            }
            (Val::View(view), Val::View(only), _) | (Val::View(view), _, Val::View(only)) => {
                view.mutable |= only.mutable;
                view.wish = only.wish;
            }
            (Val::Option(_, value), Val::Option(_, a), Val::Option(_, b)) => value.is_one_of(a, b),
            (Val::Tuple(parts), Val::Tuple(a), Val::Tuple(b)) => {
                parts.iter_mut().zip(a.iter().zip(b)).for_each(|(part, (a, b))| part.is_one_of(a, b));
            }
            // One arm is left: what the other gives.
            (Val::Option(_, value), Val::Option(_, only), _) | (Val::Option(_, value), _, Val::Option(_, only)) => {
                value.is_one_of(only, only);
            }
            (Val::Tuple(parts), Val::Tuple(only), _) | (Val::Tuple(parts), _, Val::Tuple(only)) => {
                parts.iter_mut().zip(only).for_each(|(part, only)| part.is_one_of(only, only));
            }
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
            Storage::Pending { .. } => true,
        }
    }
}

impl Handle {
    /// The element at `indices`.
    pub(super) fn place(&self, indices: &[Known]) -> Place {
        let (place, cell) = match self {
            Handle::Fixed { array, cell, prefix } => {
                let indices = prefix.iter().copied().chain(indices.iter().map(|k| k.value)).collect();
                (ir::Place::Shared { array: *array, indices, within: cell.within() }, cell)
            }
            Handle::Dynamic(view) => {
                let (dims, within) = (view.dims(indices), view.cell.within());
                (ir::Place::Dynamic { base: view.base, dims, within }, &view.cell)
            }
        };
        Place::Memory { place, cell: cell.clone(), policy: Policy::Coherent }
    }

    pub(super) fn cell(&self) -> &Cell {
        match self {
            Handle::Fixed { cell, .. } => cell,
            Handle::Dynamic(view) => &view.cell,
        }
    }
}

impl View {
    /// Indices with their extents and strides.
    pub(super) fn dims(&self, indices: &[Known]) -> SmallVec<[ir::Dim; 2]> {
        let sizes = self.extents.iter().zip(&self.strides);
        let dim = |(index, (extent, stride)): (&Known, (&Known, &Option<Value>))| ir::Dim {
            index: index.value,
            extent: extent.value,
            stride: *stride,
        };
        indices.iter().zip(sizes).map(dim).collect()
    }

    pub(super) fn policy(&self) -> Policy {
        match (self.mutable, self.wish) {
            (false, Wish::None) => Policy::ReadOnly,
            (false, Wish::Once) => Policy::ReadOnce,
            (true, Wish::Once) => Policy::CoherentOnce,
            (true, Wish::None) => Policy::Coherent,
            (_, Wish::Coherent) => Policy::SecondCache,
        }
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
        Shl | Shr if y >= 32 => return None,
        Shl | WrappingShl => (x << (y & 31)) & ty.mask(),
        Shr | WrappingShr => x >> (y & 31),
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
