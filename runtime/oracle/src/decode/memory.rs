//! Operations on memory: loads, stores, copies, atomic operations.

use super::{Decoder, Result};
use crate::code::{AsyncCopyAccess, AtomicAccess, Inst, WaitGroup};
use kernel_dsl_compiler::Scalar;
use kernel_dsl_compiler::ir::{self, Guard, Type, Value};

impl Decoder<'_> {
    pub(super) fn load(
        &mut self,
        place: &ir::AccessPlace,
        element: Scalar,
        guard: Option<&Guard>,
        results: &[Value],
    ) -> Result<()> {
        if results.is_empty() || results.iter().any(|v| self.ty(*v).ok() != Some(Type::Scalar(element))) {
            return self.refuse(format!("a load of `{element}` has no result, or results of other types"));
        }
        let mut access = self.access(place, element, results.len() as u32)?;
        if let Some(guard) = guard {
            if guard.otherwise.len() != results.len() {
                let (others, results) = (guard.otherwise.len(), results.len());
                return self
                    .refuse(format!("a guarded load has {others} values for the other lanes, and {results} results"));
            }
            for v in &guard.otherwise {
                self.typed(*v, element)?;
            }
            access.guard = Some(self.typed(guard.condition, Scalar::Bool)?);
            access.otherwise = self.registers(&guard.otherwise)?.into();
        }
        access.values = results.iter().map(|v| self.define(*v)).collect::<Result<_>>()?;
        self.code.accesses.push(access);
        self.emit(Inst::Load(self.code.accesses.len() as u32 - 1));
        Ok(())
    }

    pub(super) fn store(
        &mut self,
        place: &ir::AccessPlace,
        element: Scalar,
        values: &[Value],
        guard: Option<Value>,
    ) -> Result<()> {
        if values.is_empty() {
            return self.refuse("a store has no values");
        }
        let mut access = self.access(place, element, values.len() as u32)?;
        access.guard = self.truth(guard)?;
        for v in values {
            self.typed(*v, element)?;
        }
        access.values = self.registers(values)?.into();
        self.code.accesses.push(access);
        self.emit(Inst::Store(self.code.accesses.len() as u32 - 1));
        Ok(())
    }

    pub(super) fn mark_undef(
        &mut self,
        place: &ir::AccessPlace,
        element: Scalar,
        n: u32,
        guard: Option<Value>,
    ) -> Result<()> {
        let mut access = self.access(place, element, n)?;
        if !access.place.is_shared() || n == 0 {
            return self
                .refuse(format!("{n} scalars are marked undefined, or not in shared memory; mark at least one there"));
        }
        access.guard = self.truth(guard)?;
        self.code.accesses.push(access);
        self.emit(Inst::MarkUndef(self.code.accesses.len() as u32 - 1));
        Ok(())
    }

    pub(super) fn copy_async(&mut self, copy: &ir::AsyncCopy) -> Result<()> {
        let to = self.access(&copy.to, copy.element, copy.count)?;
        let from = self.access(&copy.from, copy.element, copy.count)?;
        if !to.place.is_shared() || from.place.is_shared() || !matches!(copy.size(), 4 | 8 | 16) {
            return self.refuse(format!(
                "an asynchronous copy of {} bytes; use 4, 8 or 16 bytes, from global to shared memory",
                copy.size()
            ));
        }
        let (guard, inside) = (self.truth(copy.guard)?, self.truth(copy.inside)?);
        let bytes = copy.bytes.map(|v| self.typed(v, Scalar::Usize)).transpose()?;
        self.code.copies.push(AsyncCopyAccess { to, from, guard, inside, bytes });
        self.emit(Inst::CopyAsync(self.code.copies.len() as u32 - 1));
        Ok(())
    }

    pub(super) fn copy_commit(&mut self, results: &[Value]) -> Result<()> {
        let [result] = *results else {
            return self.refuse(format!("a group of copies has {} results instead of one", results.len()));
        };
        if self.ty(result)? != Type::Scalar(Scalar::Usize) {
            return self
                .refuse(format!("the number of a group of copies is `{}` instead of `usize`", self.ty(result)?));
        }
        let to = self.define(result)?.row;
        self.emit(Inst::CopyCommit { to });
        Ok(())
    }

    pub(super) fn copy_wait(&mut self, landing: &ir::WaitGroup) -> Result<()> {
        let landing = match landing {
            ir::WaitGroup::UpTo(group) => WaitGroup::UpTo(self.typed(*group, Scalar::Usize)?),
            ir::WaitGroup::AllBut(n) => WaitGroup::AllBut(*n),
        };
        self.emit(Inst::CopyWait(landing));
        Ok(())
    }

    pub(super) fn atomic(
        &mut self,
        operation: ir::AtomicOperator,
        place: &ir::AccessPlace,
        element: Scalar,
        values: &[Value],
        results: &[Value],
    ) -> Result<()> {
        if values.len() != operation.operands() || results.len() > 1 || !operation.takes(element) {
            return self.refuse(format!(
                "there is no atomic {operation:?} of `{element}` with {} values and {} results",
                values.len(),
                results.len()
            ));
        }
        let mut access = self.access(place, element, 1)?;
        for v in values {
            self.typed(*v, element)?;
        }
        let (operand, expected) = match self.registers(values)?[..] {
            [expected, new] => (Some(new), Some(expected)),
            [operand, ..] => (Some(operand), None),
            [] => (None, None),
        };
        let to = match *results {
            [result] if self.ty(result)? == Type::Scalar(element) => Some(self.define(result)?),
            [] => None,
            _ => return self.refuse(format!("the result of an atomic operation on `{element}` has another type")),
        };
        access.values = operand.into_iter().collect();
        self.code.atomics.push(AtomicAccess { access, operation, expected, to });
        self.emit(Inst::Atomic(self.code.atomics.len() as u32 - 1));
        Ok(())
    }

    /// Returns the row of a condition, if there is one.
    fn truth(&self, condition: Option<Value>) -> Result<Option<u32>> {
        condition.map(|v| self.typed(v, Scalar::Bool)).transpose()
    }
}
