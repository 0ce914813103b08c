//! How many elements of a copy move at once: as many as 16 bytes hold, where it is sure that they lie at multiples of that.
//!
//! A condition `x.aligned(n)` says so of a parameter's base and strides, and a condition of an extent that its rows end there. A
//! view that moves keeps what divides the index that it moves by.

use super::Lowerer;
use super::piece::Piece;
use super::value::{Handle, Known, Place, View};
use crate::Scalar;
use crate::hir::LocalId;
use crate::ir::{self, Binary, Comparison, Element, Guard, Layout, Op, Type, Value, Values, WIDEST};
use crate::launch::Promise;
use smallvec::SmallVec;
use std::collections::HashMap;

/// The greatest common divisor; of 0 and n it is n.
pub(super) fn gcd(mut a: u32, mut b: u32) -> u32 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// What divides the `usize` values of a kernel.
#[derive(Clone)]
pub(super) struct Divisibility {
    /// What the kernel's conditions say of its parameters.
    promises: Vec<Promise>,
    /// Known divisors of values.
    divisors: HashMap<Value, u32>,
}

impl Divisibility {
    /// Returns what is known of a kernel with these conditions.
    pub(super) fn new(promises: Vec<Promise>) -> Divisibility {
        Divisibility { promises, divisors: HashMap::new() }
    }
}

impl<'h> Lowerer<'h> {
    /// A number that divides a `usize` value; 0 where the value is 0.
    pub(super) fn divisor(&self, k: Known) -> u32 {
        match k.bits {
            Some(n) => n as u32,
            None => self.divisibility.divisors.get(&k.value).copied().unwrap_or(1),
        }
    }

    /// Notes what divides a value, if that says anything.
    pub(super) fn divides(&mut self, value: Value, divisor: u32) {
        if divisor > 1 {
            self.divisibility.divisors.insert(value, divisor);
        }
    }

    /// Notes what divides the result of an operation on `usize`.
    pub(super) fn note_divisor(&mut self, op: Binary, a: Known, b: Known, result: Value) {
        let (a, b) = (self.divisor(a), self.divisor(b));
        let divisor = match op {
            Binary::Add | Binary::Sub | Binary::Min | Binary::Max => gcd(a, b),
            Binary::Mul => a.checked_mul(b).unwrap_or(gcd(a, b)),
            _ => 1,
        };
        self.divides(result, divisor);
    }

    /// What the conditions say of the parameter `id`, whose value is this view.
    pub(super) fn promised(&mut self, id: LocalId, view: &mut View) {
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

    /// Elements of a copy that move at once.
    pub(super) fn at_once_of(&self, to: &Handle, from: &View) -> u32 {
        let Handle::Fixed { array, cell, .. } = to else { return 1 };
        // Elements of a row that are apart do not move together.
        if from.strides.last().is_some_and(Option::is_some) {
            return 1;
        }
        let array = &self.builder.kernel.shared[array.0 as usize];
        let (Some(loaded), Some(stored)) = (from.cell.scalar(), cell.scalar()) else { return 1 };
        // Where a pad is to be found, it is the one that suits single elements.
        if [loaded, stored].contains(&Scalar::Bool)
            || array.element != Element::Scalar(stored)
            || matches!(array.layout, Layout::Padded { .. })
        {
            return 1;
        }
        let (Some(row), [strides @ .., _]) = (array.shape.last(), &array.strides[..]) else { return 1 };
        let suits = |n: &u32| {
            let rows = row.is_multiple_of(*n) && strides.iter().all(|s| s.is_multiple_of(*n));
            rows && from.aligned.is_multiple_of(*n)
        };
        // Of numbers that are mapped on the way, neither side takes more than one access.
        let most = WIDEST / loaded.bytes().max(stored.bytes());
        (0..=most.ilog2()).rev().map(|k| 1 << k).find(suits).unwrap_or(1)
    }

    /// The indices of the first element of a piece, from those of the piece.
    pub(super) fn first_of_piece(&mut self, piece: &[Known], n: u32) -> SmallVec<[Known; 3]> {
        let mut indices: SmallVec<[Known; 3]> = piece.iter().copied().collect();
        if let Some(last) = indices.last_mut().filter(|_| n > 1) {
            let n = self.index(n);
            *last = self.binary(Binary::Mul, Scalar::Usize, *last, n);
        }
        indices
    }

    /// Whether a piece of `n` elements that begins inside of the view lies inside whole, whatever the launch.
    pub(super) fn ends_with_rows(&self, from: &View, n: u32) -> bool {
        from.extents.last().is_some_and(|extent| self.divisor(*extent).is_multiple_of(n))
    }

    /// The piece of `n` numbers of a view from `indices` on, at a multiple of `n`, in the lanes where `exists` holds; zeros beyond
    /// its extents, and in the other lanes.
    pub(super) fn wide_piece(&mut self, from: &View, indices: &[Known], n: u32, exists: Option<Known>) -> Values {
        let (Some(piece), Some((last, outer))) = (Piece::of(&from.cell, n), indices.split_last()) else {
            return Values::new();
        };
        let Place::Memory { place, policy, .. } = self.view_place(from, indices) else { return Values::new() };
        let mut rows = exists;
        for (index, extent) in outer.iter().zip(&from.extents) {
            let below = self.compare(Comparison::Lt, Scalar::Usize, *index, *extent);
            rows = Some(rows.map_or(below, |rows| self.binary(Binary::And, Scalar::Bool, rows, below)));
        }
        let extent = from.extents[outer.len()];
        let load = |lowerer: &mut Self, place: ir::Place, element: Scalar, count: u32, holds: Known| {
            let all = rows.map_or(holds, |rows| lowerer.binary(Binary::And, Scalar::Bool, rows, holds));
            let zero = lowerer.builder.constant(element, 0);
            let guard = Guard { condition: all.value, otherwise: (0..count).map(|_| zero).collect() };
            let op = Op::Load { place, element, policy, guard: Some(guard) };
            lowerer.builder.emit(op, (0..count).map(|_| Type::Scalar(element)))
        };
        let whole_piece = piece.place(place.clone());
        if self.ends_with_rows(from, n) {
            let inside = self.compare(Comparison::Lt, Scalar::Usize, *last, extent);
            return load(self, whole_piece, piece.register(), piece.registers(), inside);
        }
        let count = self.index(n);
        let end = self.binary(Binary::Add, Scalar::Usize, *last, count);
        let whole = self.compare(Comparison::Le, Scalar::Usize, end, extent);
        self.builder.enter([]);
        let loaded = load(self, whole_piece, piece.register(), piece.registers(), whole);
        self.builder.effect(Op::Yield(loaded));
        let then = self.builder.leave();
        self.builder.enter([]);
        let mut parts = Values::new();
        for i in 0..n {
            let i_known = self.index(i);
            let index = self.binary(Binary::Add, Scalar::Usize, *last, i_known);
            let inside = self.compare(Comparison::Lt, Scalar::Usize, index, extent);
            let place = self.further(&place, i * piece.part().bytes(), piece.part());
            parts.extend(load(self, place, piece.part(), 1, inside));
        }
        let parts = self.together(piece, &parts);
        self.builder.effect(Op::Yield(parts));
        let otherwise = self.builder.leave();
        let types = (0..piece.registers()).map(|_| Type::Scalar(piece.register()));
        self.builder.emit(Op::If { condition: whole.value, then, otherwise }, types)
    }
}
