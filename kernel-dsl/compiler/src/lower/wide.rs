//! The number of elements of one access of a copy: up to 16 bytes, if the alignment is known.
//!
//! The alignment of a parameter's base and strides follows from a condition `x.aligned(n)`, and
//! that of its rows from a condition on an extent. A moved view keeps the common divisor with the
//! index it is moved by.

use super::lowerer::Lowerer;
use super::lowerer::maybe_const::MaybeConst;
use super::lowerer::value::{LoweredPlace, SharedHandle, ViewValue};
use super::pack::Pack;
use crate::Scalar;
use crate::hir::LocalId;
use crate::ir::{
    self, Binary, Comparison, Guard, MAX_VECTOR_BYTES, MemoryElement, Op, SharedLayout, Type, Value, Values,
};
use crate::launch::Promise;
use smallvec::SmallVec;

/// Returns the greatest common divisor; that of 0 and n is n.
pub(super) fn gcd(mut a: u32, mut b: u32) -> u32 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

impl<'h> Lowerer<'h> {
    /// Returns a known divisor of a `usize` value; 0 if the value is 0.
    pub(super) fn divisor(&self, k: MaybeConst) -> u32 {
        match k.bits {
            Some(n) => n as u32,
            None => self.divisibility.divisors.get(&k.value).copied().unwrap_or(1),
        }
    }

    /// Records a divisor of a value, unless it is 1.
    pub(super) fn divides(&mut self, value: Value, divisor: u32) {
        if divisor > 1 {
            self.divisibility.divisors.insert(value, divisor);
        }
    }

    /// Records a divisor of the result of an operation on `usize`.
    pub(super) fn note_divisor(&mut self, op: Binary, a: MaybeConst, b: MaybeConst, result: Value) {
        let (a, b) = (self.divisor(a), self.divisor(b));
        let divisor = match op {
            Binary::Add | Binary::Sub | Binary::Min | Binary::Max => gcd(a, b),
            Binary::Mul => a.checked_mul(b).unwrap_or(gcd(a, b)),
            _ => 1,
        };
        self.divides(result, divisor);
    }

    /// Records the alignment and the divisors that the kernel's conditions guarantee for the
    /// parameter `id`, whose value is `view`.
    pub(super) fn record_guarantees(&mut self, id: LocalId, view: &mut ViewValue) {
        for promise in self.divisibility.promises.clone() {
            match promise {
                Promise::Aligned { parameter, elements } if parameter == id => view.aligned = elements.max(1),
                Promise::Extent { parameter, dimension, multiple } if parameter == id => {
                    if let Some(extent) = view.extents.get(usize::from(dimension)) {
                        self.divides(extent.value, multiple);
                    }
                }
                _ => {}
            }
        }
    }

    /// Returns the number of elements of one access of a copy.
    pub(super) fn elements_per_access(&self, to: &SharedHandle, from: &ViewValue) -> u32 {
        let SharedHandle::Fixed { array, mem_layout, .. } = to else { return 1 };
        // Elements of a row that are not adjacent cannot share an access.
        if from.strides.last().is_some_and(Option::is_some) {
            return 1;
        }
        let array = &self.builder.kernel.shared[array.0 as usize];
        let (Some(loaded), Some(stored)) = (from.mem_layout.scalar(), mem_layout.scalar()) else { return 1 };
        // The pad of such an array is chosen later, so only single elements are certainly aligned.
        if [loaded, stored].contains(&Scalar::Bool)
            || array.element != MemoryElement::Scalar(stored)
            || matches!(array.layout, SharedLayout::Padded { .. })
        {
            return 1;
        }
        let (Some(row), [strides @ .., _]) = (array.shape.last(), &array.strides[..]) else { return 1 };
        let suits = |n: &u32| {
            let rows = row.is_multiple_of(*n) && strides.iter().all(|s| s.is_multiple_of(*n));
            rows && from.aligned.is_multiple_of(*n)
        };
        // If the numbers are converted, neither side takes more than one access.
        let most = MAX_VECTOR_BYTES / loaded.bytes().max(stored.bytes());
        (0..=most.ilog2()).rev().map(|k| 1 << k).find(suits).unwrap_or(1)
    }

    /// Returns the indices of the first element of a pack, from those of the pack.
    pub(super) fn first_of_pack(&mut self, pack: &[MaybeConst], n: u32) -> SmallVec<[MaybeConst; 3]> {
        let mut indices: SmallVec<[MaybeConst; 3]> = pack.iter().copied().collect();
        if let Some(last) = indices.last_mut().filter(|_| n > 1) {
            let n = self.index(n);
            *last = self.binary(Binary::Mul, Scalar::Usize, *last, n);
        }
        indices
    }

    /// Returns whether a pack of `n` elements that starts inside the view is always entirely
    /// inside.
    pub(super) fn ends_with_rows(&self, from: &ViewValue, n: u32) -> bool {
        from.extents.last().is_some_and(|extent| self.divisor(*extent).is_multiple_of(n))
    }

    /// Loads a pack of `n` numbers of a view that starts at `indices`, a multiple of `n`, in the
    /// lanes where `exists` holds. Numbers out of bounds, and in other lanes, are zero.
    pub(super) fn wide_piece(
        &mut self,
        from: &ViewValue,
        indices: &[MaybeConst],
        n: u32,
        exists: Option<MaybeConst>,
    ) -> Values {
        let (Some(pack), Some((last, outer))) = (Pack::of(&from.mem_layout, n), indices.split_last()) else {
            return Values::new();
        };
        let LoweredPlace::Memory { place, policy, .. } = self.view_place(from, indices) else { return Values::new() };
        let mut rows = exists;
        for (index, extent) in outer.iter().zip(&from.extents) {
            let below = self.compare(Comparison::Lt, Scalar::Usize, *index, *extent);
            rows = Some(rows.map_or(below, |rows| self.binary(Binary::And, Scalar::Bool, rows, below)));
        }
        let extent = from.extents[outer.len()];
        let load = |lowerer: &mut Self, place: ir::AccessPlace, element: Scalar, count: u32, holds: MaybeConst| {
            let all = rows.map_or(holds, |rows| lowerer.binary(Binary::And, Scalar::Bool, rows, holds));
            let zero = lowerer.builder.constant(element, 0);
            let guard = Guard { condition: all.value, otherwise: (0..count).map(|_| zero).collect() };
            let op = Op::Load { place, element, policy, guard: Some(guard) };
            lowerer.builder.emit(op, (0..count).map(|_| Type::Scalar(element)))
        };
        let whole_piece = pack.place(place.clone());
        if self.ends_with_rows(from, n) {
            let inside = self.compare(Comparison::Lt, Scalar::Usize, *last, extent);
            return load(self, whole_piece, pack.register(), pack.registers(), inside);
        }
        let count = self.index(n);
        let end = self.binary(Binary::Add, Scalar::Usize, *last, count);
        let whole = self.compare(Comparison::Le, Scalar::Usize, end, extent);
        self.builder.enter([]);
        let loaded = load(self, whole_piece, pack.register(), pack.registers(), whole);
        self.builder.effect(Op::Yield(loaded));
        let then = self.builder.leave();
        self.builder.enter([]);
        let mut parts = Values::new();
        for i in 0..n {
            let i_known = self.index(i);
            let index = self.binary(Binary::Add, Scalar::Usize, *last, i_known);
            let inside = self.compare(Comparison::Lt, Scalar::Usize, index, extent);
            let place = self.place_after(&place, i * pack.part().bytes(), pack.part());
            parts.extend(load(self, place, pack.part(), 1, inside));
        }
        let parts = self.join(pack, &parts);
        self.builder.effect(Op::Yield(parts));
        let otherwise = self.builder.leave();
        let types = (0..pack.registers()).map(|_| Type::Scalar(pack.register()));
        self.builder.emit(Op::If { condition: whole.value, then, otherwise }, types)
    }
}
