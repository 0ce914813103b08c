//! Constants that contain arrays: immediate values, and tables if a run-time index reads them.
//!
//! The value of a constant is lowered and evaluated here, by `run`. A read with a constant index is
//! replaced by the scalar; any other read accesses the table.

mod run;

use super::lowerer::Lowerer;
use super::lowerer::frame::BodyConstant;
use super::lowerer::mem_layout::{Leaves, MemLayout};
use super::lowerer::value::{LoweredPlace, Val};
use crate::hir::{self, Expr, ExprKind, LocalId, TypeId};
use crate::ir::{self, CachePolicy, Op, Placement, Table, TableId, Type};
use crate::source::Span;
use run::EvaluationStop;

/// The largest number of scalars of a constant.
pub(super) const MAX_TABLE_SCALARS: u32 = 1 << 16;

impl<'h> Lowerer<'h> {
    /// Returns whether an expression names a constant that may have a table.
    pub(super) fn is_table(&self, e: &Expr) -> bool {
        if self.tables.evaluating {
            return false;
        }
        match &e.kind {
            ExprKind::Call { function, arguments, .. } if arguments.is_empty() => {
                self.has_array(e.ty) && self.program.functions[function.0 as usize].constant.is_some()
            }
            ExprKind::Local(id) => self.frame().constants.get(id).is_some_and(|c| c.table.is_some()),
            _ => false,
        }
    }

    /// Returns the table of the constant that `e` names, as a place in memory; `None` if it names
    /// none.
    pub(super) fn table_place(&mut self, e: &'h Expr) -> Option<LoweredPlace> {
        if !self.is_table(e) {
            return None;
        }
        let (table, mem_layout) = match &e.kind {
            ExprKind::Call { function, .. } => self.table_of(e.span, *function, e.ty)?,
            ExprKind::Local(id) => self.frame().constants.get(id)?.table.clone()?,
            _ => return None,
        };
        self.at(e.span);
        let base = self.builder.value(Op::Table(table), Type::Global);
        self.tables.bases.insert(base, table);
        let place = ir::AccessPlace::Global { base, dims: Default::default(), within: mem_layout.scalar_path() };
        Some(LoweredPlace::Memory { place, mem_layout, policy: CachePolicy::ReadOnly })
    }

    /// Returns the type and bits of the scalar at a place in a table, if the index is constant.
    pub(super) fn known_in_table(&self, place: &LoweredPlace) -> Option<(crate::Scalar, u64)> {
        let LoweredPlace::Memory {
            place: ir::AccessPlace::Global { base, within: Some(within), .. }, mem_layout, ..
        } = place
        else {
            return None;
        };
        let (table, scalar) = (self.tables.bases.get(base)?, mem_layout.scalar()?);
        let bits = within.indices.is_empty().then(|| self.builder.kernel.table(*table)?.bits(within.offset, scalar))?;
        Some((scalar, bits?))
    }

    /// Returns whether a place is in a table, which is read-only.
    pub(super) fn in_table(&self, place: &LoweredPlace) -> bool {
        matches!(place, LoweredPlace::Memory { place: ir::AccessPlace::Global { base, .. }, .. } if self.tables.bases.contains_key(base))
    }

    pub(super) fn has_array(&self, ty: TypeId) -> bool {
        match self.ty(ty) {
            hir::Type::Array(..) => true,
            hir::Type::Tuple(parts) => parts.iter().any(|p| self.has_array(*p)),
            _ => false,
        }
    }

    /// Binds a `const` of a body.
    pub(super) fn bind_constant(&mut self, id: LocalId, value: &'h Expr) {
        let name = &self.function().locals[id.0 as usize].name;
        let table = match self.has_array(value.ty) && !self.tables.evaluating {
            true => self.evaluated(value.span, name, value.ty, Placement::ByUse, |l| l.expr(value)),
            false => None,
        };
        let whole = table.is_none();
        self.frame_mut().constants.insert(id, BodyConstant { value, table });
        if whole {
            self.name_hint = Some(name);
            let value = self.expr(value);
            self.name_hint = None;
            self.bind_local(id, value);
        }
    }

    fn table_of(&mut self, span: Span, id: hir::FunctionId, ty: TypeId) -> Option<(TableId, MemLayout)> {
        if let Some(known) = self.tables.of_constant.get(&id) {
            return known.clone();
        }
        let function = &self.program.functions[id.0 as usize];
        let placement = function.constant.unwrap_or_default();
        let table = self.evaluated(span, &function.name, ty, placement, |l| l.inline(span, id, Vec::new()));
        self.tables.of_constant.insert(id, table.clone());
        table
    }

    /// Returns the table of the value that `lower` makes, if the value can be evaluated here.
    fn evaluated(
        &mut self,
        span: Span,
        name: &str,
        ty: TypeId,
        placement: Placement,
        lower: impl FnOnce(&mut Self) -> Val,
    ) -> Option<(TableId, MemLayout)> {
        let mem_layout = self.mem_layout(ty)?;
        if mem_layout.numbers() > MAX_TABLE_SCALARS {
            let message =
                format!("the constant `{name}` has {} numbers; the limit is {MAX_TABLE_SCALARS}", mem_layout.numbers());
            self.error_with_help(span, message, "pass the data as a buffer");
            return Some((self.enter_table(name, &mem_layout, Vec::new(), placement), mem_layout));
        }
        let leaves = self.leaves_of(&mem_layout, 1);
        let locals = self.builder.kernel.locals.len();
        let hint = self.name_hint.take();
        self.tables.evaluating = true;
        self.builder.enter([]);
        let value = lower(self);
        let values = self.scalars_of(ty, &value);
        let region = self.builder.leave();
        self.tables.evaluating = false;
        self.name_hint = hint;
        let bits = run::run(&self.builder.kernel, &region, &values);
        // Only the removed code used these locals.
        self.builder.kernel.locals.truncate(locals);
        let bits = match bits {
            Ok(bits) if bits.len() == leaves.len() => bits,
            Ok(_) | Err(EvaluationStop::NotConstant) => return None,
            Err(EvaluationStop::Wrong(location, message)) => {
                self.errors.push(self.builder.kernel.error(location, message));
                vec![0; leaves.len()]
            }
        };
        let scalars = Leaves::into_iter(leaves).zip(bits).map(|((at, scalar), bits)| (at, scalar, bits)).collect();
        Some((self.enter_table(name, &mem_layout, scalars, placement), mem_layout))
    }

    /// Returns the value of a condition that only constants decide; `None` for other conditions.
    pub(super) fn constant_condition(&mut self, condition: &'h Expr) -> Option<u64> {
        let mistakes = self.errors.len();
        let bits = self.constant(condition);
        if bits.is_some() || self.errors.len() > mistakes {
            return bits;
        }
        let locals = self.builder.kernel.locals.len();
        self.tables.evaluating = true;
        self.builder.enter([]);
        let value = self.expr(condition);
        let region = self.builder.leave();
        self.tables.evaluating = false;
        let known = value.scalar().map(|k| run::run(&self.builder.kernel, &region, &[k.value]));
        self.builder.kernel.locals.truncate(locals);
        match known? {
            Ok(bits) => bits.first().copied(),
            Err(EvaluationStop::NotConstant) => None,
            Err(EvaluationStop::Wrong(location, message)) => {
                self.errors.push(self.builder.kernel.error(location, message));
                Some(1)
            }
        }
    }

    /// Returns the table with this name and these contents; equal tables are shared.
    fn enter_table(
        &mut self,
        name: &str,
        mem_layout: &MemLayout,
        scalars: Vec<(u32, crate::Scalar, u64)>,
        placement: Placement,
    ) -> TableId {
        let table = Table { name: name.to_string(), scalars: scalars.into(), bytes: mem_layout.bytes(), placement };
        let tables = &mut self.builder.kernel.tables;
        let known = tables.iter().position(|t| *t == table).unwrap_or_else(|| {
            tables.push(table);
            tables.len() - 1
        });
        TableId(known as u32)
    }
}
