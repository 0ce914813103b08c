//! Values in memory: their scalars, and the accesses that load and store them.
//!
//! A value of several scalars takes as few accesses as its alignment allows. One access of 2, 4, 8
//! or 16 bytes covers adjacent scalars of one type, or of 32 bits each.

use super::lowerer::Lowerer;
use super::lowerer::maybe_const::MaybeConst;
use super::lowerer::mem_layout::{Leaves, MemLayout};
use super::lowerer::value::{LoweredPlace, Val};
use crate::Scalar;
use crate::hir::{self, TypeId};
use crate::ir::{self, CachePolicy, ElementIndex, ElementOffset, Guard, MAX_VECTOR_BYTES, Op, Type, Values};
use std::rc::Rc;

/// Returns the known alignment of an aligned address plus a multiple of `bytes`.
fn aligned(bytes: u32) -> u32 {
    ir::MemoryElement::aggregate(bytes).align()
}

/// Returns how many of the first scalars one access covers, and the type of the access.
fn piece(leaves: &[(u32, Scalar)], align: u32) -> (usize, Scalar) {
    let (first, scalar) = leaves[0];
    let size = scalar.bytes();
    // Words of different types are accessed as plain words.
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
    /// Returns the memory layout of type `id`; `None` if the type cannot be in memory.
    pub(super) fn mem_layout(&self, id: TypeId) -> Option<MemLayout> {
        match self.ty(id) {
            hir::Type::Scalar(Scalar::U128) => {
                let parts = [0, 8].map(|at| (at, MemLayout::Scalar(Scalar::U64)));
                Some(MemLayout::Tuple { parts: parts.into(), bytes: Scalar::U128.bytes() })
            }
            hir::Type::Scalar(s) => Some(MemLayout::Scalar(*s)),
            hir::Type::Array(element, size) => {
                let (element, len) = (self.mem_layout(*element)?, self.size(*size));
                (len > 0 && element.bytes().checked_mul(len)? < 1 << 24)
                    .then(|| MemLayout::Array { element: Rc::new(element), len })
            }
            hir::Type::Tuple(parts) => {
                let (mut end, mut align, mut all) = (0u32, 1, Vec::with_capacity(parts.len()));
                for part in parts {
                    let own = hir::layout::layout(&self.function().types, *part)?.align;
                    let part = self.mem_layout(*part)?;
                    let start = end.next_multiple_of(own);
                    align = align.max(own);
                    end = start + part.bytes();
                    all.push((start, part));
                }
                let bytes = end.next_multiple_of(align);
                (bytes > 0 && bytes < 1 << 24).then(|| MemLayout::Tuple { parts: all.into(), bytes })
            }
            _ => None,
        }
    }

    /// Returns the place of a part of a struct or tuple in memory.
    pub(super) fn field_in_memory(
        &self,
        place: ir::AccessPlace,
        mem_layout: &MemLayout,
        field: u32,
        policy: CachePolicy,
    ) -> Option<LoweredPlace> {
        let MemLayout::Tuple { parts, .. } = mem_layout else { return None };
        let (offset, part) = parts.get(field as usize)?;
        let mut place = place;
        if let Some(within) = within_mut(&mut place) {
            within.offset += offset;
        }
        Some(LoweredPlace::Memory { place, mem_layout: part.clone(), policy })
    }

    /// Returns the place of an element of an array within an element in memory.
    pub(super) fn index_in_memory(
        &mut self,
        place: ir::AccessPlace,
        mem_layout: &MemLayout,
        index: MaybeConst,
        policy: CachePolicy,
    ) -> Option<LoweredPlace> {
        let MemLayout::Array { element, len } = mem_layout else { return None };
        let bytes = element.bytes();
        let mut place = place;
        if let Some(within) = within_mut(&mut place) {
            match index.bits {
                Some(i) if i < u64::from(*len) => within.offset += i as u32 * bytes,
                _ => within.indices.push(ElementIndex { index: index.value, extent: *len, bytes }),
            }
        }
        Some(LoweredPlace::Memory { place, mem_layout: MemLayout::clone(element), policy })
    }

    /// Loads the value at a place. `guard` holds the lanes that load, and the scalars for the other
    /// lanes.
    pub(super) fn load_mem_layout(
        &mut self,
        place: &ir::AccessPlace,
        mem_layout: &MemLayout,
        ty: TypeId,
        policy: CachePolicy,
        guard: Option<(MaybeConst, &[ir::Value])>,
    ) -> Val {
        let mut leaves = Leaves::new();
        mem_layout.leaves(0, &mut leaves);
        let align = align_of(place, mem_layout);
        let scalars = self.load_scalars(place, &leaves, align, policy, guard);
        self.assembled(ty, &mut scalars.into_iter())
    }

    /// Stores a value at a place, in the lanes where `guard` holds.
    pub(super) fn store_mem_layout(
        &mut self,
        place: &ir::AccessPlace,
        mem_layout: &MemLayout,
        ty: TypeId,
        value: &Val,
        guard: Option<MaybeConst>,
    ) {
        let mut leaves = Leaves::new();
        mem_layout.leaves(0, &mut leaves);
        let align = align_of(place, mem_layout);
        let values = self.scalars_of(ty, value);
        self.store_scalars(place, &leaves, align, &values, guard);
    }

    /// Loads scalars at offsets from `place`, which is aligned to `align` bytes.
    pub(super) fn load_scalars(
        &mut self,
        place: &ir::AccessPlace,
        leaves: &[(u32, Scalar)],
        align: u32,
        policy: CachePolicy,
        guard: Option<(MaybeConst, &[ir::Value])>,
    ) -> Values {
        let mut loaded = Values::new();
        let mut rest = leaves;
        while !rest.is_empty() {
            let (n, element) = piece(rest, align);
            let (part, after) = rest.split_at(n);
            let place = self.place_after(place, part[0].0, part[0].1);
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

    /// Stores scalars at offsets from `place`, which is aligned to `align` bytes.
    pub(super) fn store_scalars(
        &mut self,
        place: &ir::AccessPlace,
        leaves: &[(u32, Scalar)],
        align: u32,
        values: &[ir::Value],
        guard: Option<MaybeConst>,
    ) {
        if values.len() != leaves.len() {
            return;
        }
        let (mut rest, mut values) = (leaves, values);
        while !rest.is_empty() {
            let (n, element) = piece(rest, align);
            let place = self.place_after(place, rest[0].0, rest[0].1);
            let part = values[..n].iter().map(|v| self.as_scalar(*v, element)).collect();
            self.builder.effect(Op::Store { place, element, values: part, guard: guard.map(|g| g.value) });
            (rest, values) = (&rest[n..], &values[n..]);
        }
    }

    /// Returns the same bits as another type of the same width.
    pub(super) fn as_scalar(&mut self, value: ir::Value, to: Scalar) -> ir::Value {
        match self.builder.kernel.ty(value) {
            Type::Scalar(s) if s == to => value,
            _ => self.builder.scalar(Op::Bitcast(value), to),
        }
    }

    /// Returns the place `bytes` bytes after `place`.
    pub(super) fn place_after(&mut self, place: &ir::AccessPlace, bytes: u32, scalar: Scalar) -> ir::AccessPlace {
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
                ir::AccessPlace::Global { dims, .. } | ir::AccessPlace::Dynamic { dims, .. } => {
                    dims.last_mut().map(|d| &mut d.index)
                }
                ir::AccessPlace::Shared { indices, .. } => indices.last_mut(),
                ir::AccessPlace::Address { .. } => None,
            };
            if let Some(last) = last {
                let index = MaybeConst::unknown(*last);
                *last = self.binary(ir::Binary::Add, Scalar::Usize, index, skipped).value;
            }
        }
        place
    }

    /// Lowers a value of type `ty` from its scalars.
    pub(super) fn assembled(&mut self, ty: TypeId, scalars: &mut dyn Iterator<Item = ir::Value>) -> Val {
        match self.ty(ty) {
            hir::Type::Scalar(Scalar::U128) => self.joined(scalars),
            hir::Type::Scalar(_) => scalars.next().map_or(Val::Unit, |value| Val::Scalar(MaybeConst::unknown(value))),
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

    /// Returns the scalars of a value of type `ty`.
    pub(super) fn scalars_of(&mut self, ty: TypeId, value: &Val) -> Values {
        match (value, self.ty(ty)) {
            (Val::Scalar(k), _) => k.words().collect(),
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

    /// Returns a zero for each scalar of a value.
    pub(super) fn zeros(&mut self, mem_layout: &MemLayout) -> Values {
        let mut leaves = Leaves::new();
        mem_layout.leaves(0, &mut leaves);
        leaves.iter().map(|(_, s)| self.builder.constant(*s, 0)).collect()
    }

    /// Returns the scalars of `n` adjacent elements.
    pub(super) fn leaves_of(&self, mem_layout: &MemLayout, n: u32) -> Leaves {
        let mut leaves = Leaves::new();
        (0..n).for_each(|i| mem_layout.leaves(i * mem_layout.bytes(), &mut leaves));
        leaves
    }
}

/// Returns the alignment of a place.
pub(super) fn align_of(place: &ir::AccessPlace, mem_layout: &MemLayout) -> u32 {
    match place.element_offset() {
        None => mem_layout.bytes(),
        Some(within) => {
            let steps = within.indices.iter().map(|s| aligned(s.bytes));
            let offset = if within.offset == 0 { MAX_VECTOR_BYTES } else { aligned(within.offset) };
            steps.fold(aligned(within.bytes).min(offset), u32::min)
        }
    }
}

fn within_mut(place: &mut ir::AccessPlace) -> Option<&mut ElementOffset> {
    match place {
        ir::AccessPlace::Global { within, .. }
        | ir::AccessPlace::Dynamic { within, .. }
        | ir::AccessPlace::Shared { within, .. } => within.as_deref_mut(),
        ir::AccessPlace::Address { .. } => None,
    }
}
