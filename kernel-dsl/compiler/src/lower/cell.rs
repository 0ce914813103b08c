//! Values in memory: the scalars that they are made of, and the accesses that move them.
//!
//! A value of several scalars moves in as few accesses as its alignment allows: neighbours of one type, or of 32 bits each, in
//! one of 2, 4, 8 or 16 bytes.

use super::Lowerer;
use super::value::{Known, Place, Val};
use crate::Scalar;
use crate::hir::{self, TypeId};
use crate::ir::{self, Guard, Op, Policy, Step, Type, Values, WIDEST, Within};
use smallvec::SmallVec;
use std::rc::Rc;

/// How a value lies in memory.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Cell {
    Scalar(Scalar),
    /// Each part with its first byte.
    Tuple {
        parts: Rc<[(u32, Cell)]>,
        bytes: u32,
    },
    Array {
        element: Rc<Cell>,
        len: u32,
    },
}

impl Cell {
    pub fn bytes(&self) -> u32 {
        match self {
            Cell::Scalar(s) => s.bytes(),
            Cell::Tuple { bytes, .. } => *bytes,
            Cell::Array { element, len } => element.bytes() * len,
        }
    }

    /// Scalars in it.
    pub fn numbers(&self) -> u32 {
        match self {
            Cell::Scalar(_) => 1,
            Cell::Tuple { parts, .. } => parts.iter().map(|(_, part)| part.numbers()).sum(),
            Cell::Array { element, len } => element.numbers() * len,
        }
    }

    /// As an element of an array in memory.
    pub fn element(&self) -> ir::Element {
        match self {
            Cell::Scalar(s) => ir::Element::Scalar(*s),
            cell => ir::Element::aggregate(cell.bytes()),
        }
    }

    pub fn scalar(&self) -> Option<Scalar> {
        match self {
            Cell::Scalar(s) => Some(*s),
            _ => None,
        }
    }

    /// The scalars in it, each with its first byte, counted from `at`.
    fn leaves(&self, at: u32, found: &mut Leaves) {
        match self {
            Cell::Scalar(s) => found.push((at, *s)),
            Cell::Tuple { parts, .. } => parts.iter().for_each(|(offset, part)| part.leaves(at + offset, found)),
            Cell::Array { element, len } => {
                (0..*len).for_each(|i| element.leaves(at + i * element.bytes(), found));
            }
        }
    }

    /// How a place of the type is reached from the element that it is.
    pub fn within(&self) -> Option<Box<Within>> {
        match self {
            Cell::Scalar(_) => None,
            cell => Some(Box::new(Within { bytes: cell.bytes(), offset: 0, indices: SmallVec::new() })),
        }
    }
}

/// Scalars with their first bytes.
pub(super) type Leaves = SmallVec<[(u32, Scalar); 4]>;

/// What is sure of an address that is some times `bytes` from one that is aligned.
fn aligned(bytes: u32) -> u32 {
    ir::Element::aggregate(bytes).align()
}

/// Scalars that move in one access: how many, and the type by which it names them.
fn piece(leaves: &[(u32, Scalar)], align: u32) -> (usize, Scalar) {
    let (first, scalar) = leaves[0];
    let size = scalar.bytes();
    // What has words of several types moves as words.
    let like = |s: Scalar| s == scalar || s.bits() == 32 && scalar.bits() == 32;
    let run =
        leaves.iter().enumerate().take_while(|(i, (at, s))| like(*s) && *at == first + *i as u32 * size).count() as u32;
    let mut n = 1;
    while 2 * n <= run && 2 * n * size <= align && first.is_multiple_of(2 * n * size) {
        n *= 2;
    }
    let same = leaves[..n as usize].iter().all(|(_, s)| *s == scalar);
    (n as usize, if same { scalar } else { Scalar::U32 })
}

impl<'h> Lowerer<'h> {
    /// How a value of type `id` lies in memory; `None` if it cannot.
    pub(super) fn cell(&self, id: TypeId) -> Option<Cell> {
        match self.ty(id) {
            hir::Type::Scalar(s) => Some(Cell::Scalar(*s)),
            hir::Type::Array(element, size) => {
                let (element, len) = (self.cell(*element)?, self.size(*size));
                (len > 0 && element.bytes().checked_mul(len)? < 1 << 24)
                    .then(|| Cell::Array { element: Rc::new(element), len })
            }
            hir::Type::Tuple(parts) => {
                let (mut end, mut align, mut all) = (0u32, 1, Vec::with_capacity(parts.len()));
                for part in parts {
                    let part = self.cell(*part)?;
                    let mut leaves = Leaves::new();
                    part.leaves(0, &mut leaves);
                    // As `repr(C)` has it: a part lies at a multiple of its largest scalar.
                    let own = leaves.iter().map(|(_, s)| s.bytes()).max().unwrap_or(1);
                    let start = end.next_multiple_of(own);
                    align = align.max(own);
                    end = start + part.bytes();
                    all.push((start, part));
                }
                let bytes = end.next_multiple_of(align);
                (bytes > 0 && bytes < 1 << 24).then(|| Cell::Tuple { parts: all.into(), bytes })
            }
            _ => None,
        }
    }

    /// A part of a struct or tuple in memory.
    pub(super) fn field_in_memory(&self, place: ir::Place, cell: &Cell, field: u32, policy: Policy) -> Option<Place> {
        let Cell::Tuple { parts, .. } = cell else { return None };
        let (offset, part) = parts.get(field as usize)?;
        let mut place = place;
        if let Some(within) = within_mut(&mut place) {
            within.offset += offset;
        }
        Some(Place::Memory { place, cell: part.clone(), policy })
    }

    /// An element of an array that is part of an element in memory.
    pub(super) fn index_in_memory(
        &mut self,
        place: ir::Place,
        cell: &Cell,
        index: Known,
        policy: Policy,
    ) -> Option<Place> {
        let Cell::Array { element, len } = cell else { return None };
        let bytes = element.bytes();
        let mut place = place;
        if let Some(within) = within_mut(&mut place) {
            match index.bits {
                Some(i) if i < u64::from(*len) => within.offset += i as u32 * bytes,
                _ => within.indices.push(Step { index: index.value, extent: *len, bytes }),
            }
        }
        Some(Place::Memory { place, cell: Cell::clone(element), policy })
    }

    /// Loads the value at a place; `guard` is the lanes that do, and what the scalars of the others are.
    pub(super) fn load_cell(
        &mut self,
        place: &ir::Place,
        cell: &Cell,
        ty: TypeId,
        policy: Policy,
        guard: Option<(Known, &[ir::Value])>,
    ) -> Val {
        let mut leaves = Leaves::new();
        cell.leaves(0, &mut leaves);
        let align = align_of(place, cell);
        let scalars = self.load_scalars(place, &leaves, align, policy, guard);
        self.assembled(ty, &mut scalars.into_iter())
    }

    /// Stores a value at a place, in the lanes that `guard` names.
    pub(super) fn store_cell(&mut self, place: &ir::Place, cell: &Cell, ty: TypeId, value: &Val, guard: Option<Known>) {
        let mut leaves = Leaves::new();
        cell.leaves(0, &mut leaves);
        let align = align_of(place, cell);
        let values = self.scalars_of(ty, value);
        self.store_scalars(place, &leaves, align, &values, guard);
    }

    /// Loads scalars whose bytes are counted from `place`, which is aligned to `align` bytes.
    pub(super) fn load_scalars(
        &mut self,
        place: &ir::Place,
        leaves: &[(u32, Scalar)],
        align: u32,
        policy: Policy,
        guard: Option<(Known, &[ir::Value])>,
    ) -> Values {
        let mut loaded = Values::new();
        let mut rest = leaves;
        while !rest.is_empty() {
            let (n, element) = piece(rest, align);
            let (part, after) = rest.split_at(n);
            let place = self.further(place, part[0].0, part[0].1);
            let others = guard.map(|(condition, others)| (condition, &others[loaded.len()..][..n]));
            let guard = others.map(|(condition, others)| {
                let otherwise = others.iter().map(|v| self.as_scalar(*v, element)).collect();
                Guard { condition: condition.value, otherwise }
            });
            let op = Op::Load { place, element, policy, guard };
            let values = self.builder.emit(op, (0..n).map(|_| Type::Scalar(element)));
            for (value, (_, scalar)) in values.into_iter().zip(part) {
                loaded.push(self.as_scalar(value, *scalar));
            }
            rest = after;
        }
        loaded
    }

    /// Stores scalars whose bytes are counted from `place`, which is aligned to `align` bytes.
    pub(super) fn store_scalars(
        &mut self,
        place: &ir::Place,
        leaves: &[(u32, Scalar)],
        align: u32,
        values: &[ir::Value],
        guard: Option<Known>,
    ) {
        if values.len() != leaves.len() {
            return;
        }
        let (mut rest, mut values) = (leaves, values);
        while !rest.is_empty() {
            let (n, element) = piece(rest, align);
            let place = self.further(place, rest[0].0, rest[0].1);
            let part = values[..n].iter().map(|v| self.as_scalar(*v, element)).collect();
            self.builder.effect(Op::Store { place, element, values: part, guard: guard.map(|g| g.value) });
            (rest, values) = (&rest[n..], &values[n..]);
        }
    }

    /// The same bits as another type of the same width.
    pub(super) fn as_scalar(&mut self, value: ir::Value, to: Scalar) -> ir::Value {
        match self.builder.kernel.ty(value) {
            Type::Scalar(s) if s == to => value,
            _ => self.builder.scalar(Op::Bitcast(value), to),
        }
    }

    /// The scalar that lies `bytes` bytes further than `place` does.
    pub(super) fn further(&mut self, place: &ir::Place, bytes: u32, scalar: Scalar) -> ir::Place {
        let mut place = place.clone();
        let skipped = match within_mut(&mut place) {
            None => bytes / scalar.bytes(),
            Some(within) => {
                within.offset += bytes;
                let skipped = if within.indices.is_empty() { within.offset / within.bytes } else { 0 };
                within.offset -= skipped * within.bytes;
                skipped
            }
        };
        if skipped > 0 {
            let skipped = self.index(skipped);
            let last = match &mut place {
                ir::Place::Global { dims, .. } | ir::Place::Dynamic { dims, .. } => {
                    dims.last_mut().map(|d| &mut d.index)
                }
                ir::Place::Shared { indices, .. } => indices.last_mut(),
                ir::Place::Address { .. } => None,
            };
            if let Some(last) = last {
                let index = Known { value: *last, bits: None };
                *last = self.binary(ir::Binary::Add, Scalar::Usize, index, skipped).value;
            }
        }
        place
    }

    /// A value of type `ty` from its scalars.
    pub(super) fn assembled(&mut self, ty: TypeId, scalars: &mut dyn Iterator<Item = ir::Value>) -> Val {
        match self.ty(ty) {
            hir::Type::Scalar(_) => scalars.next().map_or(Val::Unit, |value| Val::Scalar(Known { value, bits: None })),
            hir::Type::Tuple(parts) => Val::Tuple(parts.iter().map(|p| self.assembled(*p, scalars)).collect()),
            hir::Type::Array(element, size) => {
                let array = self.storage(ty, self.name_hint.unwrap_or("loaded"));
                for i in 0..self.size(*size) {
                    let i = self.index(i);
                    let value = self.assembled(*element, scalars);
                    let place = self.element(&array, i);
                    self.write_storage(&place, value);
                }
                Val::Array(array)
            }
            _ => Val::Unit,
        }
    }

    /// The scalars of a value of type `ty`.
    pub(super) fn scalars_of(&mut self, ty: TypeId, value: &Val) -> Values {
        match (value, self.ty(ty)) {
            (Val::Scalar(k), _) => [k.value].into_iter().collect(),
            (Val::Tuple(parts), hir::Type::Tuple(types)) => {
                parts.iter().zip(types).flat_map(|(part, ty)| self.scalars_of(*ty, part)).collect()
            }
            (Val::Array(storage), hir::Type::Array(element, size)) => {
                let mut all = Values::new();
                for i in 0..self.size(*size) {
                    let i = self.index(i);
                    let place = self.element(storage, i);
                    let part = self.peek_storage(&place, *element);
                    all.extend(self.scalars_of(*element, &part));
                }
                all
            }
            _ => Values::new(),
        }
    }

    /// Zero, in each scalar of a value.
    pub(super) fn zeros(&mut self, cell: &Cell) -> Values {
        let mut leaves = Leaves::new();
        cell.leaves(0, &mut leaves);
        leaves.iter().map(|(_, s)| self.builder.constant(*s, 0)).collect()
    }

    /// The scalars of `n` elements that follow one another.
    pub(super) fn leaves_of(&self, cell: &Cell, n: u32) -> Leaves {
        let mut leaves = Leaves::new();
        (0..n).for_each(|i| cell.leaves(i * cell.bytes(), &mut leaves));
        leaves
    }
}

/// What the address of a place is a multiple of.
pub(super) fn align_of(place: &ir::Place, cell: &Cell) -> u32 {
    match place.within() {
        None => cell.bytes(),
        Some(within) => {
            let steps = within.indices.iter().map(|s| aligned(s.bytes));
            let offset = if within.offset == 0 { WIDEST } else { aligned(within.offset) };
            steps.fold(aligned(within.bytes).min(offset), u32::min)
        }
    }
}

fn within_mut(place: &mut ir::Place) -> Option<&mut Within> {
    match place {
        ir::Place::Global { within, .. } | ir::Place::Dynamic { within, .. } | ir::Place::Shared { within, .. } => {
            within.as_deref_mut()
        }
        ir::Place::Address { .. } => None,
    }
}
