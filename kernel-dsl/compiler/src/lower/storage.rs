//! Variables: registers for variables that change, and names for values that do not.

use super::lowerer::Lowerer;
use super::lowerer::frame::LocalBinding;
use super::lowerer::maybe_const::MaybeConst;
use super::lowerer::value::{LoweredPlace, SharedHandle, Storage, Val};
use crate::Scalar;
use crate::hir::{self, LocalId, Pattern, TypeId};
use crate::ir::{self, Op};
use crate::source::Span;
use smallvec::SmallVec;

/// The largest number of elements of an array in registers. A thread has far fewer registers, but
/// unused elements may be eliminated.
const MAX_REGISTER_ARRAY_ELEMENTS: u32 = 4096;

fn product(dims: &[u32]) -> u32 {
    dims.iter().fold(1, |n: u32, d| n.saturating_mul(*d))
}

/// The name of registers for values without a name in Rust.
pub(super) const TEMPORARY: &str = "temporary";

impl<'h> Lowerer<'h> {
    /// Creates registers for a value of type `ty`. Handles, references and closures have none.
    pub(super) fn storage(&mut self, ty: TypeId, name: &str) -> Storage {
        self.storage_of(ty, name, SmallVec::new())
    }

    fn storage_of(&mut self, ty: TypeId, name: &str, dims: SmallVec<[u32; 2]>) -> Storage {
        match self.ty(ty) {
            hir::Type::Scalar(Scalar::U128) => {
                let word = ir::Type::Scalar(Scalar::U64);
                Storage::Tuple([dims.clone(), dims].map(|dims| self.leaf(word, name, dims)).into())
            }
            hir::Type::Scalar(element) => self.leaf(ir::Type::Scalar(*element), name, dims),
            hir::Type::Tuple(parts) => {
                Storage::Tuple(parts.iter().map(|p| self.storage_of(*p, name, dims.clone())).collect())
            }
            hir::Type::Array(element, size) => {
                let mut dims = dims;
                dims.push(self.size(*size));
                self.storage_of(*element, name, dims)
            }
            hir::Type::Option(inner) => {
                let some = self.leaf(ir::Type::Scalar(Scalar::Bool), name, dims.clone());
                Storage::Tuple(vec![some, self.storage_of(*inner, name, dims)])
            }
            hir::Type::Slice { .. } | hir::Type::View { .. } => {
                let parts = self.parts(ty).unwrap_or_default();
                Storage::Tuple(parts.into_iter().map(|part| self.leaf(part, name, dims.clone())).collect())
            }
            _ => Storage::Unit,
        }
    }

    pub(super) fn leaf(&mut self, element: ir::Type, name: &str, dims: SmallVec<[u32; 2]>) -> Storage {
        let len = product(&dims);
        if len > self.largest() {
            self.too_large(name, len);
            return Storage::Unit;
        }
        self.builder.kernel.locals.push(ir::Local { name: name.to_string(), element, len, memory: false });
        let local = ir::LocalId(self.builder.kernel.locals.len() as u32 - 1);
        Storage::Leaf { local, element, dims, offset: None }
    }

    /// Returns the maximum number of elements of an array. While the value of a constant is
    /// evaluated, its array takes no registers and may be larger.
    fn largest(&self) -> u32 {
        if self.tables.evaluating { super::table::MAX_TABLE_SCALARS } else { MAX_REGISTER_ARRAY_ELEMENTS }
    }

    fn too_large(&mut self, name: &str, len: u32) {
        let span = self.builder.kernel.locations[self.builder.location.0 as usize].span;
        let what = format!("would take {len} elements in the registers of each thread");
        // A temporary copy of the array would repeat the error of the array itself.
        if name == TEMPORARY && self.errors.iter().any(|e| e.message.ends_with(&what)) {
            return;
        }
        self.error_with_help(
            span,
            format!("`{name}` {what}"),
            "a thread has at most 255 registers: put large arrays in shared or global memory",
        );
    }

    /// Lowers an array of type `ty` with `value` in each element.
    pub(super) fn repeated(&mut self, ty: TypeId, name: &str, value: Val) -> Val {
        let hir::Type::Array(_, size) = self.ty(ty) else { return Val::Unit };
        let size = self.size(*size);
        // `storage` does not count elements without registers, so the size is checked here.
        if size > self.largest() {
            self.too_large(name, size);
            return Val::Unit;
        }
        let array = self.storage(ty, name);
        for i in 0..size {
            let i = self.index(i);
            let element = self.element(&array, i);
            self.write_storage(&element, value.clone());
        }
        Val::Array(array)
    }

    /// Lowers `thread::local::<[T; N]>()`: an array in local memory, which is not written yet.
    pub(super) fn thread_local(&mut self, e: &hir::Expr) -> Val {
        let first = self.builder.kernel.locals.len();
        let storage = self.storage(e.ty, self.name_hint.unwrap_or("array"));
        let made = &mut self.builder.kernel.locals[first..];
        made.iter_mut().for_each(|local| local.memory = true);
        if let Some(before) = self.unbound.replace(ir::LocalId(first as u32)) {
            self.report_unbound(before);
        }
        Val::Array(storage)
    }

    /// Reports an array in local memory that is not the value of a variable.
    pub(super) fn report_unbound(&mut self, _: ir::LocalId) {
        let span = self.builder.kernel.locations[self.builder.location.0 as usize].span;
        self.error_with_help(
            span,
            "an array of `thread::local` must be a variable",
            "write `let mut stack = thread::local::<[u32; 32]>();`, and use the variable",
        );
    }

    /// Returns whether values of the type can be assigned: whether they have registers.
    pub(super) fn storable(&self, ty: TypeId) -> bool {
        match self.ty(ty) {
            hir::Type::Unit | hir::Type::Never | hir::Type::Scalar(_) | hir::Type::Group(_) => true,
            hir::Type::Slice { .. } | hir::Type::View { .. } => true,
            hir::Type::Option(inner) => self.storable(*inner),
            hir::Type::Tuple(parts) => parts.iter().all(|p| self.storable(*p)),
            hir::Type::Array(element, _) => self.storable(*element),
            _ => false,
        }
    }

    pub(super) fn bind_local(&mut self, id: LocalId, value: Val) {
        let local = &self.function().locals[id.0 as usize];
        if local.mutable && matches!(self.ty(local.ty), hir::Type::Pending) {
            return self.bind_token(id, value);
        }
        let unbound = self.unbound.take();
        let binding = if let Val::Array(storage) = &value
            && unbound.is_some_and(|made| storage.starts_with(made))
        {
            LocalBinding::Variable(storage.clone())
        } else if let Val::Shared(SharedHandle::Fixed { array, mem_layout, prefix }) = &value
            && local.mutable
            && matches!(self.ty(local.ty), hir::Type::Shared { .. })
        {
            let usize = ir::Type::Scalar(Scalar::Usize);
            let registers = prefix.iter().map(|_| self.leaf(usize, &local.name, SmallVec::new())).collect();
            let storage = Storage::Shared { array: *array, mem_layout: mem_layout.clone(), prefix: registers };
            self.write_storage(&storage, value);
            LocalBinding::Variable(storage)
        } else if local.mutable && self.storable(local.ty) {
            let storage = self.storage(local.ty, &local.name);
            self.write_storage(&storage, value);
            LocalBinding::Variable(storage)
        } else {
            if self.named {
                self.name(&local.name, &value);
            }
            LocalBinding::Value(value)
        };
        self.frame_mut().bindings[id.0 as usize] = binding;
    }

    /// Adds names for the scalars of a variable that never changes; the parts of a tuple are named
    /// as in Rust.
    fn name(&mut self, name: &str, value: &Val) {
        match value {
            Val::Scalar(MaybeConst { value, high: Some(high), .. }) => {
                for (part, value) in [("low", *value), ("high", *high)] {
                    self.builder.effect(Op::DbgValue { name: format!("{name}.{part}").into(), value });
                }
            }
            Val::Scalar(known) => {
                self.builder.effect(Op::DbgValue { name: name.into(), value: known.value });
            }
            Val::Tuple(parts) => {
                parts.iter().enumerate().for_each(|(i, part)| self.name(&format!("{name}.{i}"), part));
            }
            _ => {}
        }
    }

    /// Declares the variables of `let pattern;`.
    pub(super) fn declare(&mut self, pattern: &'h Pattern, span: Span) {
        match pattern {
            Pattern::Ignore => {}
            Pattern::Local(id) => {
                let local = &self.function().locals[id.0 as usize];
                if !self.storable(local.ty) {
                    self.error(
                        span,
                        format!(
                            "`{}` must be initialized where it is declared: shared arrays, references, closures and tokens cannot be assigned later",
                            local.name
                        ),
                    );
                }
                let storage = self.storage(local.ty, &local.name);
                self.frame_mut().bindings[id.0 as usize] = LocalBinding::Variable(storage);
            }
            Pattern::Parts(parts) => parts.iter().for_each(|p| self.declare(p, span)),
            _ => self.error(span, "a refutable pattern needs a value"),
        }
    }

    /// Returns the element at `index` of an array's registers.
    pub(super) fn element(&mut self, storage: &Storage, index: MaybeConst) -> Storage {
        match storage {
            Storage::Unit | Storage::Shared { .. } | Storage::Pending { .. } => Storage::Unit,
            Storage::Tuple(parts) => Storage::Tuple(parts.iter().map(|p| self.element(p, index)).collect()),
            Storage::Leaf { local, element, dims, offset } => {
                let rest = product(dims.get(1..).unwrap_or(&[]));
                let mut at = index;
                if rest != 1 {
                    let rest = self.index(rest);
                    at = self.binary(ir::Binary::Mul, Scalar::Usize, index, rest);
                }
                if let Some(offset) = offset {
                    at = self.binary(ir::Binary::Add, Scalar::Usize, *offset, at);
                }
                let dims = dims.iter().skip(1).copied().collect();
                Storage::Leaf { local: *local, element: *element, dims, offset: Some(at) }
            }
        }
    }

    /// Lowers a copy of the value of a variable; later writes to the variable do not affect it.
    pub(super) fn read_storage(&mut self, storage: &Storage, ty: TypeId) -> Val {
        match (storage, self.ty(ty)) {
            (_, hir::Type::Array(..)) => {
                let copy = self.storage(ty, "copy");
                self.copy(storage, &copy);
                Val::Array(copy)
            }
            (Storage::Tuple(parts), hir::Type::Tuple(types)) => {
                Val::Tuple(parts.iter().zip(types).map(|(p, t)| self.read_storage(p, *t)).collect())
            }
            (Storage::Tuple(parts), hir::Type::Option(inner)) if parts.len() == 2 => {
                let (some, value) = (self.read_leaf(&parts[0]), self.read_storage(&parts[1], *inner));
                some.map_or(Val::Unit, |some| Val::Option(some, Box::new(value)))
            }
            (Storage::Pending { slots, .. }, _) => self.take_token(slots),
            _ => self.peek_storage(storage, ty),
        }
    }

    /// Lowers the value of a variable without copying an array's registers. The caller must not use
    /// the value after a write to the variable.
    pub(super) fn peek_storage(&mut self, storage: &Storage, ty: TypeId) -> Val {
        match (storage, self.ty(ty)) {
            (_, hir::Type::Array(..)) => Val::Array(storage.clone()),
            (Storage::Tuple(parts), hir::Type::Tuple(types)) => {
                Val::Tuple(parts.iter().zip(types).map(|(p, t)| self.peek_storage(p, *t)).collect())
            }
            (Storage::Tuple(parts), hir::Type::Option(inner)) if parts.len() == 2 => {
                let (some, value) = (self.read_leaf(&parts[0]), self.peek_storage(&parts[1], *inner));
                some.map_or(Val::Unit, |some| Val::Option(some, Box::new(value)))
            }
            (Storage::Tuple(parts), hir::Type::Slice { .. } | hir::Type::View { .. }) => {
                let values: Vec<_> = parts.iter().filter_map(|p| self.read_leaf(p)).map(|k| k.value).collect();
                let mut view = self.rebuild(ty, &mut values.into_iter());
                if let (Val::View(view), Some(Storage::Leaf { local, .. })) = (&mut view, parts.first()) {
                    view.hint = self.cache_hints.get(local).copied().unwrap_or_default();
                }
                if let (Val::View(view), hir::Type::Slice { .. }) = (&mut view, self.ty(ty)) {
                    // The stored view may have been a `&mut [T]` when it was created.
                    view.mutable |= self.writes_slices();
                }
                view
            }
            (Storage::Tuple(parts), hir::Type::Scalar(_)) => {
                let words: Vec<_> = parts.iter().filter_map(|p| self.read_leaf(p)).map(|k| k.value).collect();
                self.joined(&mut words.into_iter())
            }
            (Storage::Shared { array, mem_layout, prefix }, _) => {
                let prefix = prefix.iter().filter_map(|i| self.read_leaf(i)).map(|k| k.value).collect();
                Val::Shared(SharedHandle::Fixed { array: *array, mem_layout: mem_layout.clone(), prefix })
            }
            (leaf, _) => self.read_leaf(leaf).map_or(Val::Unit, Val::Scalar),
        }
    }

    /// Lowers element `i` of registers of one type, counted through all dimensions.
    pub(super) fn register(&mut self, leaf: &Storage, i: u32) -> Option<MaybeConst> {
        let at = self.register_at(leaf, i);
        self.read_leaf(&at)
    }

    /// Sets element `i` of registers of one type.
    pub(super) fn set_register(&mut self, leaf: &Storage, i: u32, k: MaybeConst) {
        let at = self.register_at(leaf, i);
        self.write_storage(&at, Val::Scalar(k));
    }

    fn register_at(&mut self, leaf: &Storage, i: u32) -> Storage {
        let Storage::Leaf { local, element, dims, offset } = leaf else { return Storage::Unit };
        let mut at = *offset;
        if !dims.is_empty() {
            let i = self.index(i);
            at = Some(match offset {
                Some(offset) => self.binary(ir::Binary::Add, Scalar::Usize, *offset, i),
                None => i,
            });
        }
        Storage::Leaf { local: *local, element: *element, dims: SmallVec::new(), offset: at }
    }

    pub(super) fn read_leaf(&mut self, storage: &Storage) -> Option<MaybeConst> {
        let Storage::Leaf { local, element, offset, .. } = storage else { return None };
        let index = offset.map(|k| k.value);
        let value = self.builder.value(Op::ReadLocal { local: *local, index }, *element);
        Some(MaybeConst::unknown(value))
    }

    /// Returns whether the kernel has a parameter `&mut [T]`.
    fn writes_slices(&self) -> bool {
        let kernel = &self.program.functions[0];
        let parameters = &kernel.locals[..kernel.parameters as usize];
        parameters.iter().any(|p| matches!(kernel.ty(p.ty), hir::Type::Slice { mutable: true, .. }))
    }

    pub(super) fn write_storage(&mut self, storage: &Storage, value: Val) {
        match (storage, value) {
            (Storage::Leaf { local, offset, .. }, Val::Scalar(k)) => {
                let index = offset.map(|k| k.value);
                self.builder.effect(Op::WriteLocal { local: *local, index, value: k.value });
            }
            (to @ Storage::Pending { .. }, value) => self.write_token(to, value),
            (Storage::Shared { array, prefix, .. }, Val::Shared(handle)) => match handle {
                SharedHandle::Fixed { array: from, prefix: at, .. } if from == *array && at.len() == prefix.len() => {
                    for (to, value) in prefix.iter().zip(at) {
                        self.write_storage(to, Val::Scalar(MaybeConst::unknown(value)));
                    }
                }
                _ => self.cannot_switch(*array),
            },
            (to, Val::Array(from)) => self.copy(&from, to),
            (Storage::Tuple(parts), Val::Option(some, value)) if parts.len() == 2 => {
                self.write_storage(&parts[0], Val::Scalar(some));
                self.write_storage(&parts[1], *value);
            }
            (Storage::Tuple(parts), Val::View(view)) => {
                if let Some(Storage::Leaf { local, .. }) = parts.first() {
                    self.cache_hints.entry(*local).or_insert(view.hint);
                }
                for (part, value) in parts.iter().zip(self.flatten(&Val::View(view))) {
                    self.write_storage(part, Val::Scalar(MaybeConst::unknown(value)));
                }
            }
            (Storage::Tuple(parts), Val::Scalar(k)) => {
                for (part, word) in parts.iter().zip(k.words()) {
                    self.write_storage(part, Val::Scalar(MaybeConst::unknown(word)));
                }
            }
            (Storage::Tuple(parts), Val::Tuple(values)) => {
                for (part, value) in parts.iter().zip(values) {
                    self.write_storage(part, value);
                }
            }
            _ => {}
        }
    }

    /// Copies registers of one shape, element by element.
    fn copy(&mut self, from: &Storage, to: &Storage) {
        match (from, to) {
            (Storage::Tuple(from), Storage::Tuple(to)) => {
                for (from, to) in from.iter().zip(to) {
                    self.copy(from, to);
                }
            }
            (
                Storage::Leaf { local, element, dims, offset },
                Storage::Leaf { local: target, offset: target_offset, .. },
            ) => {
                for i in 0..product(dims) {
                    let i = self.index(i);
                    let shifted = |lowerer: &mut Self, base: &Option<MaybeConst>| match base {
                        Some(base) => lowerer.binary(ir::Binary::Add, Scalar::Usize, *base, i).value,
                        None => i.value,
                    };
                    let index = Some(shifted(self, offset));
                    let value = self.builder.value(Op::ReadLocal { local: *local, index }, *element);
                    let index = Some(shifted(self, target_offset));
                    self.builder.effect(Op::WriteLocal { local: *target, index, value });
                }
            }
            _ => {}
        }
    }

    pub(super) fn read(&mut self, place: &LoweredPlace, ty: TypeId) -> Val {
        match place {
            LoweredPlace::Registers(storage) => self.read_storage(storage, ty),
            LoweredPlace::Memory { place: at, mem_layout, policy } => match self.known_in_table(place) {
                Some((scalar, bits)) => {
                    let value = self.builder.constant(scalar, bits);
                    Val::Scalar(MaybeConst::new(value, (!scalar.is_float()).then_some(bits)))
                }
                None => self.load_mem_layout(at, mem_layout, ty, *policy, None),
            },
        }
    }

    pub(super) fn write(&mut self, place: &LoweredPlace, ty: TypeId, value: Val) {
        match place {
            LoweredPlace::Registers(storage) => self.write_storage(storage, value),
            LoweredPlace::Memory { place, mem_layout, .. } => {
                self.store_mem_layout(place, mem_layout, ty, &value, None)
            }
        }
    }
}
