//! The values of expressions during lowering: aggregates are split into parts, and constants keep
//! their bits.

use super::copies::{CopySlot, PendingCopy};
use super::maybe_const::MaybeConst;
use super::mem_layout::MemLayout;
use crate::ir::{self, CachePolicy, LocalId, SharedId, Value};
use smallvec::SmallVec;

/// The value of an expression.
#[derive(Clone, PartialEq, Debug)]
pub(in crate::lower) enum Val {
    /// `()`, or no value because control does not reach this point.
    Unit,
    Scalar(MaybeConst),
    Tuple(Vec<Val>),
    /// An array in registers that nothing else writes.
    Array(Storage),
    View(ViewValue),
    Shared(SharedHandle),
    Reference(LoweredPlace),
    /// Whether the value exists, and the value. For `None` the value is unused and arbitrary.
    Option(MaybeConst, Box<Val>),
    /// Copies in flight.
    Pending(Vec<PendingCopy>),
    /// A closure or function, by its index in the [`Inliner`](super::inliner::Inliner).
    Callable(u32),
}

/// A slice or view.
#[derive(Clone, PartialEq, Debug)]
pub(in crate::lower) struct ViewValue {
    pub base: Value,
    pub extents: SmallVec<[MaybeConst; 2]>,
    /// One stride for each dimension; `None` for the last if it is 1.
    pub strides: SmallVec<[Option<Value>; 2]>,
    pub mem_layout: MemLayout,
    pub mutable: bool,
    pub hint: CacheHint,
    /// The base and all strides are multiples of this number of elements.
    pub aligned: u32,
}

/// How the caches should treat loads of a view. A branch keeps the hint if both arms agree, and a
/// variable has the hint of the first view assigned to it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(in crate::lower) enum CacheHint {
    #[default]
    None,
    /// `streaming()`: each element is read once; evict first.
    Streaming,
    /// `bypass_l1()`: loads bypass L1 and the read-only cache.
    BypassL1,
}

/// An array in shared memory.
#[derive(Clone, PartialEq, Debug)]
pub(in crate::lower) enum SharedHandle {
    /// An array of constant shape with its first indices fixed.
    Fixed { array: SharedId, mem_layout: MemLayout, prefix: SmallVec<[Value; 3]> },
    /// An array whose size the launch evaluates; `base` is an address in shared memory.
    Dynamic(ViewValue),
}

/// The registers of a variable: a tree of tuples, options and views, whose leaves are locals.
#[derive(Clone, PartialEq, Debug)]
pub(in crate::lower) enum Storage {
    Unit,
    /// `dims` is empty for a scalar; the first element is at `offset` in the local.
    Leaf {
        local: LocalId,
        element: ir::Type,
        dims: SmallVec<[u32; 2]>,
        offset: Option<MaybeConst>,
    },
    Tuple(Vec<Storage>),
    /// A variable that refers to a part of a shared array: the registers of the first indices.
    Shared {
        array: SharedId,
        mem_layout: MemLayout,
        prefix: Vec<Storage>,
    },
    /// The registers of a variable for copies in flight, with the number of the variable.
    Pending {
        token: u32,
        slots: Vec<CopySlot>,
    },
}

/// A place that can be read and written.
#[derive(Clone, PartialEq, Debug)]
pub(in crate::lower) enum LoweredPlace {
    Registers(Storage),
    Memory { place: ir::AccessPlace, mem_layout: MemLayout, policy: CachePolicy },
}

impl Storage {
    /// Returns whether the first registers of the variable are those of `local`.
    pub fn starts_with(&self, local: LocalId) -> bool {
        match self {
            Storage::Leaf { local: first, .. } => *first == local,
            Storage::Tuple(parts) => parts.first().is_some_and(|part| part.starts_with(local)),
            Storage::Unit | Storage::Shared { .. } | Storage::Pending { .. } => false,
        }
    }
}

impl Val {
    /// Returns the scalar, if the value is one.
    pub fn scalar(&self) -> Option<MaybeConst> {
        match self {
            Val::Scalar(k) => Some(*k),
            _ => None,
        }
    }

    /// Returns whether every IR value in this value satisfies `predicate`.
    pub fn all_values(&self, predicate: &mut dyn FnMut(Value) -> bool) -> bool {
        match self {
            Val::Unit | Val::Callable(_) => true,
            Val::Pending(copies) => copies.iter().all(|f| f.values().all(&mut *predicate)),
            Val::Option(some, value) => predicate(some.value) && value.all_values(predicate),
            Val::Scalar(k) => k.words().all(predicate),
            Val::Tuple(parts) => parts.iter().all(|p| p.all_values(predicate)),
            Val::Array(storage) => storage.all_values(predicate),
            Val::View(v) | Val::Shared(SharedHandle::Dynamic(v)) => {
                let sizes = v.extents.iter().map(|k| k.value).chain(v.strides.iter().flatten().copied());
                std::iter::once(v.base).chain(sizes).all(predicate)
            }
            Val::Shared(SharedHandle::Fixed { prefix, .. }) => prefix.iter().copied().all(predicate),
            Val::Reference(LoweredPlace::Registers(storage)) => storage.all_values(predicate),
            Val::Reference(LoweredPlace::Memory { place, .. }) => {
                let steps = place.element_offset().into_iter().flat_map(|w| w.indices.iter().map(|s| s.index));
                match place {
                    ir::AccessPlace::Global { base, dims, .. } | ir::AccessPlace::Dynamic { base, dims, .. } => {
                        let sizes = dims.iter().flat_map(|d| [d.index, d.extent].into_iter().chain(d.stride));
                        std::iter::once(*base).chain(sizes).chain(steps).all(predicate)
                    }
                    ir::AccessPlace::Shared { indices, .. } => indices.iter().copied().chain(steps).all(predicate),
                    ir::AccessPlace::Address { base, .. } => predicate(*base),
                }
            }
        }
    }

    /// Calls `f` for each shared array that the value refers to. `None` means that the value, a
    /// closure, may refer to any array.
    pub fn arrays(&self, f: &mut dyn FnMut(Option<SharedId>)) {
        match self {
            Val::Shared(SharedHandle::Fixed { array, .. }) => f(Some(*array)),
            Val::Reference(LoweredPlace::Memory { place: ir::AccessPlace::Shared { array, .. }, .. }) => {
                f(Some(*array))
            }
            Val::Callable(_) => f(None),
            Val::Tuple(parts) => parts.iter().for_each(|p| p.arrays(f)),
            Val::Pending(copies) => copies.iter().for_each(|copy| f(Some(copy.array()))),
            Val::Option(_, value) => value.arrays(f),
            // Arrays of dynamic size live as long as the kernel.
            Val::Unit | Val::Scalar(_) | Val::Array(_) | Val::View(_) | Val::Reference(_) | Val::Shared(_) => {}
        }
    }

    /// Merges the properties of the two values that a branch can yield. A view is mutable if one of
    /// the two is, and keeps the cache hint if both agree. An arm that control leaves does not
    /// count.
    pub fn merge_properties(&mut self, a: &Val, b: &Val) {
        match (self, a, b) {
            (Val::View(view), Val::View(a), Val::View(b)) => {
                view.mutable |= a.mutable || b.mutable;
                view.hint = if a.hint == b.hint { a.hint } else { CacheHint::None };
            }
            (Val::View(view), Val::View(only), _) | (Val::View(view), _, Val::View(only)) => {
                view.mutable |= only.mutable;
                view.hint = only.hint;
            }
            (Val::Option(_, value), Val::Option(_, a), Val::Option(_, b)) => value.merge_properties(a, b),
            (Val::Tuple(parts), Val::Tuple(a), Val::Tuple(b)) => {
                parts.iter_mut().zip(a.iter().zip(b)).for_each(|(part, (a, b))| part.merge_properties(a, b));
            }
            // Control leaves one arm, so the result is the value of the other arm.
            (Val::Option(_, value), Val::Option(_, only), _) | (Val::Option(_, value), _, Val::Option(_, only)) => {
                value.merge_properties(only, only);
            }
            (Val::Tuple(parts), Val::Tuple(only), _) | (Val::Tuple(parts), _, Val::Tuple(only)) => {
                parts.iter_mut().zip(only).for_each(|(part, only)| part.merge_properties(only, only));
            }
            _ => {}
        }
    }
}

impl Storage {
    fn all_values(&self, predicate: &mut dyn FnMut(Value) -> bool) -> bool {
        match self {
            Storage::Unit => true,
            Storage::Leaf { offset, .. } => offset.is_none_or(|k| predicate(k.value)),
            Storage::Tuple(parts) => parts.iter().all(|p| p.all_values(predicate)),
            Storage::Shared { .. } | Storage::Pending { .. } => true,
        }
    }
}

impl SharedHandle {
    /// Returns the element at `indices`.
    pub fn place(&self, indices: &[MaybeConst]) -> LoweredPlace {
        let (place, mem_layout) = match self {
            SharedHandle::Fixed { array, mem_layout, prefix } => {
                let indices = prefix.iter().copied().chain(indices.iter().map(|k| k.value)).collect();
                (ir::AccessPlace::Shared { array: *array, indices, within: mem_layout.scalar_path() }, mem_layout)
            }
            SharedHandle::Dynamic(view) => {
                let (dims, within) = (view.dims(indices), view.mem_layout.scalar_path());
                (ir::AccessPlace::Dynamic { base: view.base, dims, within }, &view.mem_layout)
            }
        };
        LoweredPlace::Memory { place, mem_layout: mem_layout.clone(), policy: CachePolicy::Coherent }
    }

    pub fn mem_layout(&self) -> &MemLayout {
        match self {
            SharedHandle::Fixed { mem_layout, .. } => mem_layout,
            SharedHandle::Dynamic(view) => &view.mem_layout,
        }
    }
}

impl ViewValue {
    /// Returns the indices with their extents and strides.
    pub fn dims(&self, indices: &[MaybeConst]) -> SmallVec<[ir::Dim; 2]> {
        let sizes = self.extents.iter().zip(&self.strides);
        let dim = |(index, (extent, stride)): (&MaybeConst, (&MaybeConst, &Option<Value>))| ir::Dim {
            index: index.value,
            extent: extent.value,
            stride: *stride,
        };
        indices.iter().zip(sizes).map(dim).collect()
    }

    pub fn policy(&self) -> CachePolicy {
        match (self.mutable, self.hint) {
            (false, CacheHint::None) => CachePolicy::ReadOnly,
            (false, CacheHint::Streaming) => CachePolicy::ReadOnce,
            (true, CacheHint::Streaming) => CachePolicy::CoherentOnce,
            (true, CacheHint::None) => CachePolicy::Coherent,
            (_, CacheHint::BypassL1) => CachePolicy::BypassL1,
        }
    }
}
