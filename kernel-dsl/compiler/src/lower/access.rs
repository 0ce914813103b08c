//! Access methods: vector accesses, accesses masked at the edge, and atomic operations.

use super::layout::aligned_pitch;
use super::lowerer::Lowerer;
use super::lowerer::maybe_const::MaybeConst;
use super::lowerer::mem_layout::MemLayout;
use super::lowerer::value::{LoweredPlace, SharedHandle, Val};
use super::memory_value::align_of;
use crate::Scalar;
use crate::hir::{self, Expr, Intrinsic, MemoryOrder};
use crate::ir::{self, Binary, Comparison, Dim, MAX_VECTOR_BYTES, Op, SharedLayout, Type, Values};
use crate::source::Span;
use smallvec::{SmallVec, smallvec};

/// The largest number of elements of one access.
const MAX_ELEMENTS_PER_ACCESS: u32 = 16;

impl<'h> Lowerer<'h> {
    /// Lowers `x.load(at)` and the other access methods. `arguments` are the receiver, the indices
    /// and the values.
    pub(super) fn access(&mut self, e: &'h Expr, intrinsic: Intrinsic, arguments: &'h [Expr]) -> Val {
        let [of, at, rest @ ..] = arguments else { return Val::Unit };
        if matches!(self.ty(of.ty), hir::Type::Array(..)) {
            return self.access_of_array(e, of, at, rest.first());
        }
        let base = self.expr(of);
        let indices = self.indices(at);
        let values: SmallVec<[Val; 2]> = rest.iter().map(|a| self.expr(a)).collect();
        self.at(e.span);
        let Some(LoweredPlace::Memory { place, mem_layout, policy }) = self.memory_place(&base, &indices) else {
            return Val::Unit;
        };
        match (intrinsic, base, values.as_slice()) {
            (Intrinsic::Load, base, []) => {
                let Some(n) = self.elements(e.ty, e.span) else { return Val::Unit };
                self.rows_are_aligned(&base, n, e.span);
                let leaves = self.leaves_of(&mem_layout, n);
                let align = self.access_alignment(&base, &mem_layout, n);
                let loaded = self.load_scalars(&place, &leaves, align, policy, None);
                self.assembled(e.ty, &mut loaded.into_iter())
            }
            (Intrinsic::Store, base, [value @ Val::Array(_)]) => {
                let Some(n) = self.elements(rest[0].ty, e.span) else { return Val::Unit };
                self.rows_are_aligned(&base, n, e.span);
                let leaves = self.leaves_of(&mem_layout, n);
                let align = self.access_alignment(&base, &mem_layout, n);
                let values = self.scalars_of(rest[0].ty, value);
                self.store_scalars(&place, &leaves, align, &values, None);
                Val::Unit
            }
            (Intrinsic::LoadOr, base, [other]) => {
                let Some(n) = self.elements(e.ty, e.span) else { return Val::Unit };
                let other = self.scalars_of(rest[0].ty, other);
                let loaded = self.load_or(&base, (&mem_layout, policy), &indices, n, &other);
                self.assembled(e.ty, &mut loaded.into_iter())
            }
            (Intrinsic::StoreIn, base, [value @ Val::Array(_)]) => {
                if let Some(n) = self.elements(rest[0].ty, e.span) {
                    let values = self.scalars_of(rest[0].ty, value);
                    self.store_in(&base, &mem_layout, &indices, n, &values);
                }
                Val::Unit
            }
            (Intrinsic::AtomicSubtract, _, [value]) => {
                let (Some(element), Some(value)) = (mem_layout.scalar(), value.scalar()) else { return Val::Unit };
                let negated = match element.is_float() {
                    true => self.unary(ir::Unary::Neg, element, value),
                    false => {
                        let zero = self.number(element, 0);
                        self.binary(ir::Binary::WrappingSub, element, zero, value)
                    }
                };
                let op =
                    Op::Atomic { operation: ir::AtomicOperator::Add, place, element, values: smallvec![negated.value] };
                Val::Scalar(MaybeConst::unknown(self.builder.scalar(op, element)))
            }
            (Intrinsic::Atomic(operation, order), _, values) => {
                let values: Values = values.iter().filter_map(Val::scalar).map(|k| k.value).collect();
                let Some(element) = mem_layout.scalar().filter(|_| values.len() == operation.operands()) else {
                    return Val::Unit;
                };
                let fence = match &place {
                    ir::AccessPlace::Shared { .. } | ir::AccessPlace::Dynamic { .. } => {
                        Op::Fence(ir::FenceScope::Block)
                    }
                    _ => Op::Fence(ir::FenceScope::Grid),
                };
                if order == MemoryOrder::Release {
                    self.builder.effect(fence.clone());
                }
                let op = Op::Atomic { operation, place, element, values };
                if operation == ir::AtomicOperator::Store {
                    self.builder.effect(op);
                    return Val::Unit;
                }
                let value = self.builder.scalar(op, element);
                if order == MemoryOrder::Acquire {
                    self.builder.effect(fence);
                }
                Val::Scalar(MaybeConst::unknown(value))
            }
            // An argument has an error, or yields no value because control leaves it, as `return`
            // does.
            _ => Val::Unit,
        }
    }

    /// Lowers `x[i].codes.load(at)` and, with `values`, `x[i].codes.store(at, values)`: adjacent
    /// elements of an array within an element in memory.
    fn access_of_array(&mut self, e: &'h Expr, of: &'h Expr, at: &'h Expr, values: Option<&'h Expr>) -> Val {
        let Some(n) = self.elements(values.map_or(e.ty, |values| values.ty), e.span) else { return Val::Unit };
        let (place, index) = (self.place(of), self.scalar(at));
        let values = values.map(|values| (values.ty, self.expr(values)));
        self.at(e.span);
        let Some(LoweredPlace::Memory { place, mem_layout: MemLayout::Array { element, len }, policy }) = place else {
            let (message, help) = match values {
                None => (
                    "`load` reads an array in memory, such as `x[i].codes`; this array is in registers",
                    "read its elements by index",
                ),
                Some(_) => (
                    "`store` writes to an array in memory, such as `x[i].codes`; this array is in registers",
                    "assign its elements by index",
                ),
            };
            self.error_with_help(e.span, message, help);
            return Val::Unit;
        };
        if index.bits.unwrap_or(0) + u64::from(n) > u64::from(len) {
            self.error(e.span, format!("{n} elements from index {} are beyond {len}", index.bits.unwrap_or(0)));
            return Val::Unit;
        }
        let whole = n * element.bytes();
        let align = if whole.is_power_of_two() { whole.min(MAX_VECTOR_BYTES) } else { element.element().align() };
        // Only the first access is checked, against a length reduced by the elements beyond that
        // access. An access covers several elements only if they are scalars.
        let is_scalar = element.scalar().is_some();
        let first_elements = if is_scalar { (align / element.bytes()).clamp(1, n) } else { 1 };
        let firsts = MemLayout::Array { element, len: len - (n - first_elements) };
        let first = self.index_in_memory(place, &firsts, index, policy);
        let Some(LoweredPlace::Memory { place, mem_layout, .. }) = first else { return Val::Unit };
        let leaves = self.leaves_of(&mem_layout, n);
        match values {
            None => {
                let loaded = self.load_scalars(&place, &leaves, align, policy, None);
                self.assembled(e.ty, &mut loaded.into_iter())
            }
            Some((ty, values)) => {
                let values = self.scalars_of(ty, &values);
                self.store_scalars(&place, &leaves, align, &values, None);
                Val::Unit
            }
        }
    }

    /// Returns the alignment of an access to `n` elements.
    fn access_alignment(&self, base: &Val, mem_layout: &MemLayout, n: u32) -> u32 {
        let whole = n * mem_layout.bytes();
        let align = if whole.is_power_of_two() { whole } else { mem_layout.element().align() };
        match base {
            Val::Shared(SharedHandle::Fixed { array, .. })
                if self.builder.kernel.shared[array.0 as usize].swizzle().is_some() =>
            {
                align.min(MAX_VECTOR_BYTES)
            }
            _ => align,
        }
    }

    /// Returns the length of the array type `ty`, if one access can have that many elements.
    fn elements(&mut self, ty: hir::TypeId, span: Span) -> Option<u32> {
        let hir::Type::Array(_, size) = self.ty(ty) else { return None };
        let n = self.size(*size);
        if n.is_power_of_two() && n <= MAX_ELEMENTS_PER_ACCESS {
            return Some(n);
        }
        self.error_with_help(
            span,
            format!("an access must have 1, 2, 4, 8 or 16 elements, not {n}"),
            "split the access, or access single elements by index",
        );
        None
    }

    /// Reports an error if an access of `n` elements cannot be aligned in all rows of a shared
    /// array.
    fn rows_are_aligned(&mut self, base: &Val, n: u32, span: Span) {
        let Val::Shared(SharedHandle::Fixed { array, .. }) = base else { return };
        let array = &self.builder.kernel.shared[array.0 as usize];
        let bytes = array.element.bytes();
        let at_once = aligned_pitch(n.saturating_mul(bytes), bytes);
        let [.., pitch, _] = array.strides[..] else { return };
        // The compiler chooses a pad that suits the accesses.
        if matches!(array.layout, SharedLayout::Padded { .. }) || pitch % at_once == 0 {
            return;
        }
        let message = format!(
            "accesses of {at_once} elements are not aligned in all rows of `{}`, whose pitch is {pitch} elements",
            array.name
        );
        self.error_with_help(
            span,
            message,
            format!("make the pitch a multiple of {at_once} elements, or let `Shared::padded` choose it"),
        );
    }

    /// Lowers the test that `indices` are within `extents`.
    pub(super) fn bounds_test(&mut self, extents: &[MaybeConst], indices: &[MaybeConst]) -> MaybeConst {
        let mut all = None;
        for (index, extent) in indices.iter().zip(extents) {
            let below = self.compare(Comparison::Lt, Scalar::Usize, *index, *extent);
            all = Some(match all {
                None => below,
                Some(all) => self.binary(Binary::And, Scalar::Bool, all, below),
            });
        }
        all.expect("a view has a dimension")
    }

    /// Loads `n` elements; elements out of bounds become `other`. If the first element is out of
    /// bounds, all are. Otherwise the other elements are counted from the first, so that no index
    /// overflows.
    fn load_or(
        &mut self,
        base: &Val,
        (mem_layout, policy): (&MemLayout, ir::CachePolicy),
        indices: &[MaybeConst],
        n: u32,
        other: &[ir::Value],
    ) -> Values {
        let leaves = self.leaves_of(mem_layout, 1);
        let extents = self.extents(base);
        let inside = self.bounds_test(&extents, indices);
        let load = |lowerer: &mut Self, place: &ir::AccessPlace, condition: Option<MaybeConst>| {
            let align = align_of(place, mem_layout);
            lowerer.load_scalars(place, &leaves, align, policy, condition.map(|c| (c, other)))
        };
        if n == 1 {
            let Some(LoweredPlace::Memory { place, .. }) = self.memory_place(base, indices) else {
                return Values::new();
            };
            return load(self, &place, Some(inside));
        }
        self.builder.enter([]);
        let loaded = self.counted_from(base, mem_layout, indices, n, |lowerer, _, place, condition| {
            load(lowerer, &place, condition)
        });
        let loaded: Values = loaded.into_iter().flatten().collect();
        let types: Vec<Type> = loaded.iter().map(|v| self.builder.kernel.ty(*v)).collect();
        self.builder.effect(Op::Yield(loaded));
        let then = self.builder.leave();
        self.builder.enter([]);
        self.builder.effect(Op::Yield((0..n).flat_map(|_| other.iter().copied()).collect()));
        let otherwise = self.builder.leave();
        self.builder.emit(Op::If { condition: inside.value, then, otherwise }, types)
    }

    /// Stores the scalars of those of `n` elements that are in bounds.
    fn store_in(&mut self, base: &Val, mem_layout: &MemLayout, indices: &[MaybeConst], n: u32, values: &[ir::Value]) {
        let leaves = self.leaves_of(mem_layout, 1);
        let extents = self.extents(base);
        let inside = self.bounds_test(&extents, indices);
        let store = |lowerer: &mut Self, place: &ir::AccessPlace, i: u32, condition: Option<MaybeConst>| {
            let (align, first) = (align_of(place, mem_layout), i as usize * leaves.len());
            if let Some(values) = values.get(first..first + leaves.len()) {
                lowerer.store_scalars(place, &leaves, align, values, condition);
            }
        };
        if n == 1 {
            let Some(LoweredPlace::Memory { place, .. }) = self.memory_place(base, indices) else { return };
            return store(self, &place, 0, Some(inside));
        }
        self.builder.enter([]);
        self.counted_from(base, mem_layout, indices, n, |lowerer, i, place, condition| {
            store(lowerer, &place, i, condition)
        });
        let then = self.builder.leave();
        self.builder.enter([]);
        let otherwise = self.builder.leave();
        self.builder.effect(Op::If { condition: inside.value, then, otherwise });
    }

    /// Calls `access` for `n` adjacent elements that start at `indices`. The caller has checked
    /// that the first is in bounds. `access` gets the place of each element and, except for the
    /// first, whether the element is in bounds.
    fn counted_from<R>(
        &mut self,
        base: &Val,
        mem_layout: &MemLayout,
        indices: &[MaybeConst],
        n: u32,
        mut access: impl FnMut(&mut Self, u32, ir::AccessPlace, Option<MaybeConst>) -> R,
    ) -> Vec<R> {
        let extents = self.extents(base);
        let (Some(index), Some(extent)) = (indices.last(), extents.last()) else { return Vec::new() };
        // A view is moved to the first element, so that the indices of the others are small. In
        // other memory, indices are known to be small.
        let moved = match base {
            Val::View(view) => {
                let terms = indices.iter().zip(&view.strides).map(|(k, stride)| (k.value, *stride)).collect();
                Some(self.builder.value(Op::Offset { base: view.base, terms, bytes: mem_layout.bytes() }, Type::Global))
            }
            _ => None,
        };
        let left = self.binary(Binary::Sub, Scalar::Usize, *extent, *index);
        let mut all = Vec::with_capacity(n as usize);
        for i in 0..n {
            let k = self.index(i);
            let there = (i > 0).then(|| self.compare(Comparison::Lt, Scalar::Usize, k, left));
            let place = match (moved, self.memory_place(base, indices)) {
                (Some(base), _) => {
                    let dim = Dim { index: k.value, extent: left.value, stride: None };
                    ir::AccessPlace::Global {
                        base,
                        dims: [dim].into_iter().collect(),
                        within: mem_layout.scalar_path(),
                    }
                }
                (None, Some(LoweredPlace::Memory { place, .. })) => {
                    self.place_after(&place, i * mem_layout.bytes(), mem_layout.scalar().unwrap_or(Scalar::U8))
                }
                _ => return all,
            };
            all.push(access(self, i, place, there));
        }
        all
    }

    /// Returns the extents of a view or shared array.
    pub(super) fn extents(&mut self, of: &Val) -> SmallVec<[MaybeConst; 3]> {
        match of {
            Val::View(view) | Val::Shared(SharedHandle::Dynamic(view)) => view.extents.iter().copied().collect(),
            Val::Shared(SharedHandle::Fixed { array, prefix, .. }) => {
                let shape: SmallVec<[u32; 3]> =
                    self.builder.kernel.shared[array.0 as usize].shape[prefix.len()..].iter().copied().collect();
                shape.iter().map(|n| self.index(*n)).collect()
            }
            _ => SmallVec::new(),
        }
    }

    /// Returns the element of a slice, view or shared array at `indices`.
    pub(super) fn memory_place(&self, base: &Val, indices: &[MaybeConst]) -> Option<LoweredPlace> {
        match base {
            Val::View(view) => Some(self.view_place(view, indices)),
            Val::Shared(handle) => Some(handle.place(indices)),
            _ => None,
        }
    }
}
