//! Expressions and places.

use super::lowerer::Lowerer;
use super::lowerer::frame::LocalBinding;
use super::lowerer::maybe_const::MaybeConst;
use super::lowerer::value::{LoweredPlace, Storage, Val, ViewValue};
use crate::Scalar;
use crate::hir::{self, Expr, ExprKind, LocalId, TypeId};
use crate::ir::{self, Op};
use crate::source::Span;
use smallvec::SmallVec;

impl<'h> Lowerer<'h> {
    pub(super) fn expr(&mut self, e: &'h Expr) -> Val {
        self.at(e.span);
        let value = self.kind(e);
        self.diverged(e);
        value
    }

    /// Lowers an expression of scalar type.
    pub(super) fn scalar(&mut self, e: &'h Expr) -> MaybeConst {
        match self.expr(e) {
            Val::Scalar(k) => k,
            _ => {
                // Control does not reach this point, or the expression has an error: the value is
                // not used.
                let ty = self.scalar_type(e.ty);
                MaybeConst { bits: None, ..self.number(ty, 0) }
            }
        }
    }

    fn kind(&mut self, e: &'h Expr) -> Val {
        match &e.kind {
            ExprKind::Literal(bits) => {
                let ty = self.scalar_type(e.ty);
                let number = self.number(ty, *bits);
                Val::Scalar(if ty.is_float() { MaybeConst::unknown(number.value) } else { number })
            }
            ExprKind::LongLiteral(n) => Val::Scalar(self.double_number(*n)),
            ExprKind::Local(id) => self.local(*id, e.ty, e.span),
            ExprKind::Unary(op, a) => {
                let ty = self.scalar_type(a.ty);
                let a = self.scalar(a);
                self.at(e.span);
                if ty.is_half() {
                    return Val::Scalar(self.half_unary(*op, ty, a));
                }
                if ty == Scalar::U128 {
                    return Val::Scalar(self.double_unary(*op, a));
                }
                let value = self.builder.scalar(Op::Unary(*op, a.value), ty);
                let bits = match (op, ty, a.bits) {
                    (ir::Unary::Not, Scalar::Bool, Some(b)) => Some(b ^ 1),
                    _ => None,
                };
                Val::Scalar(MaybeConst::new(value, bits))
            }
            ExprKind::Binary(op, a, b) => {
                if let Some(sum) = self.contracted(e.span, *op, a, b) {
                    return Val::Scalar(sum);
                }
                let ty = self.scalar_type(a.ty);
                let a = self.scalar(a);
                let b = self.right(*op, b);
                self.at(e.span);
                Val::Scalar(self.binary(*op, ty, a, b))
            }
            ExprKind::Compare(comparison, a, b) => {
                let ty = a.ty;
                let (a, b) = (self.expr(a), self.expr(b));
                self.at(e.span);
                Val::Scalar(self.compare_values(e.span, *comparison, ty, &a, &b))
            }
            ExprKind::AndAlso(a, b) => self.lazy(e.span, a, b, true),
            ExprKind::OrElse(a, b) => self.lazy(e.span, a, b, false),
            ExprKind::Assign { place, operator, value } => {
                self.assign(e.span, place, *operator, value);
                Val::Unit
            }
            ExprKind::Cast(a) => {
                let (from, to) = (self.scalar_type(a.ty), self.scalar_type(e.ty));
                let a = self.scalar(a);
                self.at(e.span);
                Val::Scalar(self.cast(a, from, to))
            }
            ExprKind::Intrinsic { intrinsic, arguments } => self.intrinsic(e, *intrinsic, arguments),
            ExprKind::Assertion { assertion, condition, message, values } => {
                self.assertion(e.span, *assertion, condition.as_deref(), message, values)
            }
            ExprKind::Log { message, values } => self.log(e.span, message, values),
            ExprKind::Inline { source, arguments } => self.inline_ptx(e.span, source, arguments),
            ExprKind::Call { function, arguments, .. } => self.call(e.span, *function, arguments),
            ExprKind::Generic(_)
            | ExprKind::CallMethod { .. }
            | ExprKind::MethodValue { .. }
            | ExprKind::CallItem { .. }
            | ExprKind::SizeOf(_) => {
                unreachable!("a monomorphic program contains no generic expressions")
            }
            ExprKind::Index { .. } | ExprKind::Field { .. } | ExprKind::Dereference(_) => self.read_place(e),
            ExprKind::Tuple(parts) if parts.is_empty() => Val::Unit,
            ExprKind::Tuple(parts) => Val::Tuple(parts.iter().map(|p| self.expr(p)).collect()),
            ExprKind::Struct { fields, rest } => self.struct_value(e, fields, rest.as_deref()),
            ExprKind::Array(parts) if self.is_shared_array(e.ty) => self.shared_arrays(e, parts),
            ExprKind::Array(parts) => {
                if !self.in_registers(e) {
                    return Val::Unit;
                }
                let array = self.storage(e.ty, self.name_hint.unwrap_or("array"));
                for (i, part) in parts.iter().enumerate() {
                    let value = self.expr(part);
                    let i = self.index(i as u32);
                    let element = self.element(&array, i);
                    self.write_storage(&element, value);
                }
                Val::Array(array)
            }
            ExprKind::Repeat(value) => {
                if !self.in_registers(e) {
                    return Val::Unit;
                }
                let name = self.name_hint.take().unwrap_or("array");
                let value = self.expr(value);
                self.at(e.span);
                self.repeated(e.ty, name, value)
            }
            ExprKind::Reference(place) => match self.place(place) {
                // `&mut CONSTANT` borrows a new copy of the constant, as in Rust.
                Some(table)
                    if self.in_table(&table) && matches!(self.ty(e.ty), hir::Type::Reference { mutable: true, .. }) =>
                {
                    let value = self.expr(place);
                    self.temporary(place, value).map_or(Val::Unit, Val::Reference)
                }
                Some(place) => Val::Reference(place),
                None => Val::Unit,
            },
            ExprKind::If { condition, then, otherwise } => self.branch(e, condition, then, otherwise.as_deref()),
            ExprKind::Match { value, arms } => self.cases(e, value, arms),
            ExprKind::Closure { parameters, body } => self.closure(e, parameters, body),
            ExprKind::Function { function, .. } => self.function_value(*function),
            ExprKind::CallValue { callee, arguments } => self.call_value(e.span, callee, arguments),
            ExprKind::Block(block) => self.block(block),
            ExprKind::Labeled { label, body } => self.labeled(e, *label, body),
            ExprKind::Loop { label, body } => self.endless(e, *label, body),
            ExprKind::While { label, condition, body } => {
                self.while_loop(e.span, *label, condition, body);
                Val::Unit
            }
            ExprKind::For { label, pattern, range, body } => {
                self.for_loop(e.span, *label, pattern, range, body);
                Val::Unit
            }
            ExprKind::Break { label, value } => {
                self.break_loop(e.span, *label, value.as_deref());
                Val::Unit
            }
            ExprKind::Continue { label } => {
                self.continue_loop(e.span, *label);
                Val::Unit
            }
            ExprKind::Return(value) => {
                let value = value.as_ref().map_or(Val::Unit, |v| self.expr(v));
                self.at(e.span);
                self.return_from(e.span, value);
                Val::Unit
            }
        }
    }

    /// Lowers a struct expression; the fields are evaluated in source order.
    fn struct_value(&mut self, e: &'h Expr, fields: &'h [(u32, Expr)], rest: Option<&'h Expr>) -> Val {
        let hir::Type::Tuple(types) = self.ty(e.ty) else { return Val::Unit };
        let values: Vec<_> = fields.iter().map(|(i, value)| (*i as usize, self.expr(value))).collect();
        let mut parts = match rest.map(|rest| self.expr(rest)) {
            Some(Val::Tuple(parts)) => parts,
            // The fields of the other variants of an enum.
            _ if fields.len() < types.len() => types.iter().map(|ty| self.unused_value(*ty, e.span)).collect(),
            _ => vec![Val::Unit; types.len()],
        };
        for (i, value) in values {
            if let Some(part) = parts.get_mut(i) {
                *part = value;
            }
        }
        Val::Tuple(parts)
    }

    /// Lowers a right operand. A shift amount becomes a `u32`, whatever its type in Rust.
    fn right(&mut self, op: ir::Binary, b: &'h Expr) -> MaybeConst {
        let k = self.scalar(b);
        if matches!(op, ir::Binary::Shl | ir::Binary::Shr) {
            self.cast(k, self.scalar_type(b.ty), Scalar::U32)
        } else {
            k
        }
    }

    pub(super) fn cast(&mut self, a: MaybeConst, from: Scalar, to: Scalar) -> MaybeConst {
        if from == to {
            return a;
        }
        if [from, to].contains(&Scalar::U128) {
            return self.double_cast(a, from, to);
        }
        let value = self.builder.scalar(Op::Cast(a.value), to);
        let unsigned = |s: Scalar| s == Scalar::Bool || s.is_integer() && !s.is_signed();
        let bits = a.bits.filter(|_| unsigned(from) && unsigned(to)).map(|b| b & to.mask());
        MaybeConst::new(value, bits)
    }

    fn local(&mut self, id: LocalId, ty: TypeId, span: Span) -> Val {
        // A constant is replaced by its value.
        if let Some(constant) = self.frame().constants.get(&id)
            && (self.tables.evaluating || constant.table.is_some())
        {
            let value = constant.value;
            return self.expr(value);
        }
        match self.frame().bindings[id.0 as usize].clone() {
            LocalBinding::Value(value) => value,
            LocalBinding::Variable(storage) => self.read_storage(&storage, ty),
            LocalBinding::Unset => {
                let name = &self.function().locals[id.0 as usize].name;
                self.error(span, format!("`{name}` is not initialized here"));
                Val::Unit
            }
        }
    }

    fn assign(&mut self, span: Span, place: &'h Expr, operator: Option<ir::Binary>, value: &'h Expr) {
        // For numbers Rust evaluates the value first. The order is visible only if one side affects
        // the other.
        let Some(operator) = operator else {
            let value = self.expr(value);
            let to = self.assigned(place);
            // An error of a store is located at the place, not at the value.
            self.at(place.span);
            if let Some(to) = to {
                self.write(&to, place.ty, value);
            }
            return;
        };
        let ty = self.scalar_type(place.ty);
        let factors = self.contracted_value(operator, value);
        let right = if factors.is_none() { Some(self.right(operator, value)) } else { None };
        let Some(target) = self.place(place) else { return };
        self.at(span);
        if let Val::Scalar(left) = self.read(&target, place.ty) {
            let result = match (factors, right) {
                (Some(factors), _) => self.added(operator, ty, left, factors),
                (None, Some(right)) => self.binary(operator, ty, left, right),
                (None, None) => return,
            };
            self.write(&target, place.ty, Val::Scalar(result));
        }
    }

    /// Returns the place of an assignment.
    fn assigned(&mut self, place: &'h Expr) -> Option<LoweredPlace> {
        if let ExprKind::Local(id) = &place.kind
            && let LocalBinding::Variable(storage @ Storage::Shared { .. }) = &self.frame().bindings[id.0 as usize]
        {
            return Some(LoweredPlace::Registers(storage.clone()));
        }
        if self.storable(place.ty) || matches!(self.ty(place.ty), hir::Type::Pending) {
            return self.place(place);
        }
        // The error of a variable declared without a value was reported at the declaration.
        let declared = matches!(&place.kind, ExprKind::Local(id) if matches!(self.frame().bindings[id.0 as usize], LocalBinding::Variable(_)));
        if !declared {
            self.error(
                place.span,
                "a variable that holds a shared array, reference or closure cannot be reassigned: bind the new one with another `let`",
            );
        }
        None
    }

    /// Reads an element, field or dereferenced value without copying the enclosing aggregate.
    fn read_place(&mut self, e: &'h Expr) -> Val {
        if let ExprKind::Field { base, field } = &e.kind
            && (!self.is_variable(base) || self.is_table(base) && !self.has_array(e.ty))
        {
            return match self.expr(base) {
                Val::Tuple(mut parts) if (*field as usize) < parts.len() => parts.swap_remove(*field as usize),
                _ => Val::Unit,
            };
        }
        if let ExprKind::Index { base, index } = &e.kind
            && matches!(self.ty(e.ty), hir::Type::Shared { .. })
        {
            let arrays = self.expr(base);
            let index = self.scalar(index);
            self.at(e.span);
            return match arrays {
                Val::Shared(handle) => self.shared_at(&handle, index),
                _ => {
                    if self.errors.is_empty() && !self.builder.ended() {
                        self.error(
                            e.span,
                            "an array of shared arrays can be indexed only where it is a variable or literal",
                        );
                    }
                    Val::Unit
                }
            };
        }
        if let ExprKind::Dereference(reference) = &e.kind
            && !self.storable(e.ty)
        {
            return match self.expr(reference) {
                Val::Reference(LoweredPlace::Registers(_)) | Val::Unit => Val::Unit,
                other => other,
            };
        }
        match self.place(e) {
            Some(place) => {
                self.at(e.span);
                self.read(&place, e.ty)
            }
            None => Val::Unit,
        }
    }

    /// Returns whether an array can hold values of this type; reports an error if not.
    pub(super) fn in_registers(&mut self, e: &Expr) -> bool {
        let held = self.storable(e.ty);
        if !held {
            self.error_with_help(
                e.span,
                "an array cannot hold shared arrays, references, closures or copy tokens",
                "give each its own name; `a.and(b)` joins two tokens, and `Shared::new([2, …])` holds two arrays in one",
            );
        }
        held
    }

    /// Returns whether an expression names writable registers.
    fn is_variable(&self, e: &Expr) -> bool {
        match &e.kind {
            ExprKind::Local(id) => {
                self.is_table(e) || matches!(self.frame().bindings[id.0 as usize], LocalBinding::Variable(_))
            }
            ExprKind::Field { base, .. } => self.is_variable(base),
            ExprKind::Index { .. } | ExprKind::Dereference(_) => true,
            _ => self.is_table(e),
        }
    }

    /// Returns the place that an expression names; a value gets a temporary place.
    pub(super) fn place(&mut self, e: &'h Expr) -> Option<LoweredPlace> {
        if let Some(table) = self.table_place(e) {
            return Some(table);
        }
        match &e.kind {
            ExprKind::Local(id) => match self.frame().bindings[id.0 as usize].clone() {
                LocalBinding::Variable(storage) => Some(LoweredPlace::Registers(storage)),
                LocalBinding::Value(Val::Array(storage)) => Some(LoweredPlace::Registers(storage)),
                LocalBinding::Value(Val::Reference(place)) => Some(place),
                LocalBinding::Value(value) => self.temporary(e, value),
                LocalBinding::Unset => {
                    let name = &self.function().locals[id.0 as usize].name;
                    self.error(e.span, format!("`{name}` is not initialized here"));
                    None
                }
            },
            ExprKind::Dereference(reference) => match self.expr(reference) {
                Val::Reference(place) => Some(place),
                _ => None,
            },
            ExprKind::Field { base, .. } if !self.is_variable(base) => {
                let value = self.read_place(e);
                self.temporary(e, value)
            }
            ExprKind::Field { base, field } => match self.place(base)? {
                LoweredPlace::Registers(Storage::Tuple(mut parts)) if (*field as usize) < parts.len() => {
                    Some(LoweredPlace::Registers(parts.swap_remove(*field as usize)))
                }
                LoweredPlace::Memory { place, mem_layout, policy } => {
                    self.field_in_memory(place, &mem_layout, *field, policy)
                }
                _ => None,
            },
            ExprKind::Index { base, index } => self.index_place(e.span, base, index),
            _ => {
                let value = self.expr(e);
                self.temporary(e, value)
            }
        }
    }

    fn temporary(&mut self, e: &Expr, value: Val) -> Option<LoweredPlace> {
        if !matches!(value, Val::Array(_)) && !self.storable(e.ty) {
            self.error(
                e.span,
                "cannot take a reference to a shared array or closure: pass the array or closure itself",
            );
            return None;
        }
        Some(self.temporary_place(e.ty, value))
    }

    /// Returns registers that hold a value.
    pub(super) fn temporary_place(&mut self, ty: TypeId, value: Val) -> LoweredPlace {
        if let Val::Array(storage) = value {
            return LoweredPlace::Registers(storage);
        }
        let storage = self.storage(ty, super::storage::TEMPORARY);
        self.write_storage(&storage, value);
        LoweredPlace::Registers(storage)
    }

    fn index_place(&mut self, span: Span, base: &'h Expr, index: &'h Expr) -> Option<LoweredPlace> {
        if matches!(self.ty(base.ty), hir::Type::Array(..)) {
            let place = self.place(base)?;
            let index = self.scalar(index);
            self.at(span);
            return match place {
                LoweredPlace::Registers(storage) => Some(LoweredPlace::Registers(self.element(&storage, index))),
                LoweredPlace::Memory { place, mem_layout, policy } => {
                    self.index_in_memory(place, &mem_layout, index, policy)
                }
            };
        }
        let base = self.expr(base);
        let indices = self.indices(index);
        self.at(span);
        self.memory_place(&base, &indices)
    }

    pub(super) fn view_place(&self, view: &ViewValue, indices: &[MaybeConst]) -> LoweredPlace {
        let (dims, within) = (view.dims(indices), view.mem_layout.scalar_path());
        let place = ir::AccessPlace::Global { base: view.base, dims, within };
        LoweredPlace::Memory { place, mem_layout: view.mem_layout.clone(), policy: view.policy() }
    }

    /// Returns the indices given as a `usize`, a tuple or an array.
    pub(super) fn indices(&mut self, e: &'h Expr) -> SmallVec<[MaybeConst; 2]> {
        match self.expr(e) {
            Val::Scalar(k) => [k].into_iter().collect(),
            Val::Tuple(parts) => parts
                .into_iter()
                .filter_map(|p| match p {
                    Val::Scalar(k) => Some(k),
                    _ => None,
                })
                .collect(),
            Val::Array(storage) => {
                let hir::Type::Array(element, size) = self.ty(e.ty) else { return SmallVec::new() };
                (0..self.size(*size))
                    .filter_map(|i| {
                        let i = self.index(i);
                        let place = self.element(&storage, i);
                        match self.peek_storage(&place, *element) {
                            Val::Scalar(k) => Some(k),
                            _ => None,
                        }
                    })
                    .collect()
            }
            _ => SmallVec::new(),
        }
    }
}
