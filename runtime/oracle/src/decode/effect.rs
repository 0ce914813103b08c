//! Operations with effects beyond their result.

use super::{Decoder, Result, name_of};
use crate::code::Inline;
use crate::code::frame::FrameRegister;
use crate::code::{Inst, Log, Panic, ViolationReport};
use kernel_dsl_compiler::ir::{self, Op, Type, Value};
use kernel_dsl_compiler::ptx::inline::Effect;
use kernel_dsl_compiler::{Scalar, ptx};
use runtime_ptx::{RefusedInstruction, decode_inline};
use std::sync::Arc;

impl Decoder<'_> {
    /// Decodes an operation that is not a computation, or one without a single result.
    pub(super) fn effect(&mut self, inst: &ir::Inst, yields: &[FrameRegister]) -> Result<()> {
        let results = &inst.results;
        match &inst.op {
            Op::Load { place, element, guard, .. } => return self.load(place, *element, guard.as_ref(), results),
            Op::Store { place, element, values, guard } => self.store(place, *element, values, *guard)?,
            Op::MarkUndef { place, element, count, guard } => self.mark_undef(place, *element, *count, *guard)?,
            Op::CopyAsync(copy) => self.copy_async(copy)?,
            Op::CopyCommit => return self.copy_commit(results),
            Op::CopyWait(landing) => self.copy_wait(landing)?,
            Op::Atomic { operation, place, element, values } => {
                return self.atomic(*operation, place, *element, values, results);
            }
            Op::DbgValue { name, value } => {
                let named = (name.to_string(), self.register_of(*value)?, self.scalar(*value)?);
                self.code.names.push(named);
                self.emit(Inst::DbgValue(self.code.names.len() as u32 - 1));
            }
            Op::LifetimeStart(array) => {
                if array.0 as usize >= self.kernel.shared.len() {
                    return self.refuse(format!("shared array {} does not exist", array.0));
                }
                let number = self.code.begins;
                self.code.begins += 1;
                self.emit(Inst::LifetimeStart { array: array.0, number });
            }
            Op::Dynamic { array, .. } => {
                let result = self.only_result(inst)?;
                if array.0 as usize >= self.kernel.dynamic.len() || self.ty(result)? != Type::Shared {
                    return self.refuse(format!(
                        "array of dynamic size {} does not exist, or its address has another type",
                        array.0
                    ));
                }
                let to = self.define(result)?.row;
                self.dynamic[result.0 as usize] = Some(array.0);
                self.emit(Inst::Dynamic { array: array.0, to });
                return Ok(());
            }
            Op::ReadLocal { local, index } => {
                let result = self.only_result(inst)?;
                let ty = self.local(*local)?;
                let index = index.map(|i| self.typed(i, Scalar::Usize)).transpose()?;
                if self.ty(result)? != ty {
                    return self.refuse(format!("a local of type `{ty}` is read as another type"));
                }
                let (to, local) = (self.define(result)?, local.0);
                self.emit(match index {
                    None => Inst::ReadLocal { local, to },
                    Some(index) => Inst::ReadElement { local, index, to },
                });
                return Ok(());
            }
            Op::WriteLocal { local, index, value } => {
                let ty = self.local(*local)?;
                let index = index.map(|i| self.typed(i, Scalar::Usize)).transpose()?;
                if self.ty(*value)? != ty {
                    return self.refuse(format!("a value of another type is written to a local of type `{ty}`"));
                }
                let (from, local) = (self.register_of(*value)?, local.0);
                self.emit(match index {
                    None => Inst::WriteLocal { local, from },
                    Some(index) => Inst::WriteElement { local, index, from },
                });
            }
            Op::GridSync => _ = self.emit(Inst::GridSync),
            Op::BlockSync => _ = self.emit(Inst::BlockSync),
            Op::WarpSync => _ = self.emit(Inst::WarpSync),
            Op::Fence(scope) => _ = self.emit(Inst::Fence(*scope)),
            Op::Match(value) => {
                let result = self.only_result(inst)?;
                if self.scalar(*value)?.bits() < 32 || self.scalar(result)? != Scalar::U32 {
                    return self.refuse(format!(
                        "a match of `{}` to `{}`: use 32 or 64 bits, and a result of type `u32`",
                        self.scalar(*value)?,
                        self.scalar(result)?
                    ));
                }
                let (from, to) = (self.register_of(*value)?, self.define(result)?);
                let site = self.emit(Inst::Match { to: to.row, from });
                self.code.exchanges.insert(site, (to, Scalar::U32));
                return Ok(());
            }
            Op::Reduce(op, value) => {
                let result = self.only_result(inst)?;
                let ty = self.scalar(*value)?;
                let known = matches!(op, ir::Binary::Add | ir::Binary::Min | ir::Binary::Max);
                if !known || !ty.is_integer() || ty.bits() != 32 || self.scalar(result)? != ty {
                    return self
                        .refuse(format!("a warp has no reduction {op:?} of `{ty}` to `{}`", self.scalar(result)?));
                }
                let (from, to) = (self.register_of(*value)?.row, self.define(result)?);
                let site = self.emit(Inst::Reduce { op: *op, ty, to: to.row, from });
                self.code.exchanges.insert(site, (to, ty));
                return Ok(());
            }
            Op::Shuffle { mode, value, selector, width } => {
                let result = self.only_result(inst)?;
                let ty = self.scalar(*value)?;
                if !matches!(width, 2 | 4 | 8 | 16 | 32) || ty.bits() < 32 || self.scalar(result)? != ty {
                    return self.refuse(format!(
                        "a warp has no shuffle of `{ty}` to `{}` over {width} lanes",
                        self.scalar(result)?
                    ));
                }
                let selector = self.typed(*selector, Scalar::U32)?;
                let (from, to) = (self.register_of(*value)?, self.define(result)?);
                let site = self.emit(Inst::Shuffle { mode: *mode, width: *width as u8, to, from, selector });
                self.code.exchanges.insert(site, (to, ty));
                return Ok(());
            }
            Op::Vote { mode, value } => {
                let result = self.only_result(inst)?;
                let expected = if *mode == ir::Vote::Ballot { Scalar::U32 } else { Scalar::Bool };
                if self.scalar(result)? != expected {
                    return self.refuse(format!(
                        "the result of a vote {mode:?} is `{}` instead of `{expected}`",
                        self.scalar(result)?
                    ));
                }
                let (value, to) = (self.typed(*value, Scalar::Bool)?, self.define(result)?);
                let site = self.emit(Inst::Vote { mode: *mode, to: to.row, value });
                self.code.exchanges.insert(site, (to, expected));
                return Ok(());
            }
            Op::Panic { message, values, .. } => {
                let values =
                    values.iter().map(|v| Ok((self.register_of(*v)?, self.scalar(*v)?))).collect::<Result<_>>()?;
                self.code.panics.push(Panic { message: message.clone(), values });
                self.emit(Inst::Panic(self.code.panics.len() as u32 - 1));
            }
            Op::Log { format, values } => {
                let values =
                    values.iter().map(|v| Ok((self.register_of(*v)?, self.scalar(*v)?))).collect::<Result<_>>()?;
                self.code.logs.push(Log { format: format.clone(), values });
                self.emit(Inst::Log(self.code.logs.len() as u32 - 1));
            }
            Op::RecordViolation { record, state, values } => {
                if self.ty(*record)? != Type::Global || values.len() > ir::record::MAX_VALUES {
                    return self.refuse(format!(
                        "a report has {} values, or no address of a record; use at most {} values",
                        values.len(),
                        ir::record::MAX_VALUES
                    ));
                }
                let record = self.register_of(*record)?.row;
                let state = self.typed(*state, Scalar::U32)?;
                let values = values.iter().map(|v| self.typed(*v, Scalar::Usize)).collect::<Result<_>>()?;
                self.code.reports.push(ViolationReport { record, state, values });
                self.emit(Inst::RecordViolation(self.code.reports.len() as u32 - 1));
            }
            Op::If { .. } | Op::For(_) | Op::Loop { .. } | Op::Block { .. } => return self.construct(inst),
            Op::Yield(values) => self.move_values(yields, values)?,
            Op::Break(label, values) => {
                let (slot, target) = self.target(*label)?;
                let to = target.results.clone();
                self.move_values(&to, values)?;
                self.emit(Inst::Break { slot });
            }
            Op::Continue(label, values) => {
                let (slot, target) = self.target(*label)?;
                let Some(to) = target.carried.clone() else {
                    return self.refuse(format!("`Continue` names label {}, which is no loop", label.0));
                };
                self.move_values(&to, values)?;
                self.emit(Inst::Continue { slot });
            }
            Op::Return => _ = self.emit(Inst::Return),
            _ => return self.refuse(format!("the oracle cannot run `{}` here", name_of(&inst.op))),
        }
        if !results.is_empty() {
            return self.refuse(format!("`{}` has {} results instead of none", name_of(&inst.op), results.len()));
        }
        Ok(())
    }

    /// Decodes a block of inline PTX.
    pub(super) fn inline(&mut self, code: &ptx::InlineBlock, inputs: &[Value], results: &[Value]) -> Result<()> {
        let block = match decode_inline(code) {
            Ok(block) => block,
            Err(RefusedInstruction { text, why, .. }) => return self.refuse(format!("inline PTX, `{text}`: {why}")),
        };
        let (mut given, mut made) = (Vec::new(), Vec::new());
        let (mut inputs, mut results) = (inputs.iter(), results.iter());
        for (i, operand) in code.source().operands.iter().enumerate() {
            let Some(place) = block.operand(i) else {
                return self.refuse(format!("inline PTX does not use operand {i}"));
            };
            let of = |values: &mut std::slice::Iter<'_, Value>| match values.next() {
                Some(value) if self.ty(*value)? == Type::Scalar(operand.ty) => Ok(*value),
                _ => self.refuse(format!("operand {i} of inline PTX has no value of type `{}`", operand.ty)),
            };
            if operand.direction.enters() {
                let value = of(&mut inputs)?;
                given.push((operand.ty, self.register_of(value)?, place));
            }
            if operand.direction.leaves() {
                made.push((operand.ty, of(&mut results)?, place));
            }
        }
        if inputs.next().is_some() || results.next().is_some() {
            return self.refuse("inline PTX has more inputs or results than operands");
        }
        // The results are defined after the inputs are used.
        let made = made.into_iter().map(|(ty, value, place)| Ok((ty, self.define(value)?, place)));
        let results = made.collect::<Result<Box<[_]>>>()?;
        let inline = Inline {
            block: Arc::new(block),
            inputs: given.into(),
            checked: self.checked,
            reads_machine: code.effect() == Effect::Machine && !results.is_empty(),
            results,
        };
        self.code.inlines.push(inline);
        self.emit(Inst::Inline(self.code.inlines.len() as u32 - 1));
        Ok(())
    }

    /// Returns the result of an instruction that must have one.
    fn only_result(&self, inst: &ir::Inst) -> Result<Value> {
        match inst.results[..] {
            [result] => Ok(result),
            _ => self.refuse(format!("`{}` has {} results instead of one", name_of(&inst.op), inst.results.len())),
        }
    }

    fn local(&self, local: ir::LocalId) -> Result<Type> {
        match self.kernel.locals.get(local.0 as usize) {
            Some(l) => Ok(l.element),
            None => self.refuse(format!("local {} does not exist", local.0)),
        }
    }
}
