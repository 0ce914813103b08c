//! Operations that only compute: one result from operands.

use super::{Decoder, Result, name_of};
use crate::code::BitsOperation;
use crate::code::cast;
use crate::code::{Inst, Offset};
use kernel_dsl_compiler::Scalar;
use kernel_dsl_compiler::ir::{Binary, Comparison, Op, Unary, Value};

impl Decoder<'_> {
    /// Decodes a computation of `result`.
    pub(super) fn compute(&mut self, op: &Op, result: Value) -> Result<()> {
        let ty = self.scalar(result)?;
        match *op {
            Op::Constant(bits) => {
                let to = self.define(result)?;
                self.code.constants.push((to, bits & ty.mask()));
                let strange = match ty {
                    Scalar::F32 => !f32::from_bits(bits as u32).is_finite(),
                    Scalar::F64 => !f64::from_bits(bits).is_finite(),
                    _ => false,
                };
                if strange {
                    self.code.written.insert(to.row, ty);
                }
            }
            Op::Parameter(index) => {
                let Some(parameter) = self.kernel.parameters.get(index as usize) else {
                    return self.refuse(format!("there is no parameter {index}"));
                };
                if parameter.ty() != self.ty(result)? {
                    return self.refuse(format!(
                        "a read of parameter `{}` does not have its type, `{}`",
                        parameter.name,
                        parameter.ty()
                    ));
                }
                let to = self.define(result)?;
                self.code.parameters.push((to, index));
            }
            // The addresses of tables follow the parameters.
            Op::Table(table) => {
                if self.kernel.table(table).is_none() || !self.ty(result)?.is_wide_address() {
                    return self
                        .refuse(format!("table {} does not exist, or its address is read as another type", table.0));
                }
                let to = self.define(result)?;
                self.code.parameters.push((to, self.kernel.parameters.len() as u32 + table.0));
            }
            Op::Special(special) => {
                if special.axis() > 2 || ty.bits() != 32 {
                    return self.refuse(format!("special register {special:?} is read as `{ty}`, or has no such axis"));
                }
                let to = self.define(result)?.row;
                self.code.specials.push((to, special));
            }
            Op::Unary(op, a) => {
                let from = self.scalar(a)?;
                if !op.takes(from) || ty != op.result(from) {
                    return self.refuse(format!("`{from}` has no operation {op:?} with a result of type `{ty}`"));
                }
                let (a, to) = (self.register_of(a)?.row, self.define(result)?.row);
                let checked = self.checked && matches!(op, Unary::Neg | Unary::Abs) && from.is_integer();
                self.emit(if checked {
                    Inst::CheckedUnary { op, ty: from, to, a }
                } else {
                    Inst::Unary { op, ty: from, to, a }
                });
            }
            Op::Binary(op, a, b) => {
                let shift = op.is_shift();
                if !op.takes(ty) {
                    return self.refuse(format!("`{ty}` has no operation {op:?}"));
                }
                let b = self.typed(b, if shift { Scalar::U32 } else { ty })?;
                let (a, to) = (self.typed(a, ty)?, self.define(result)?.row);
                use Binary::{Add, Div, Mul, Rem, Shl, Shr, Sub};
                let arithmetic = matches!(op, Add | Sub | Mul | Div | Rem | Shl | Shr);
                let is_address = self.ty(result)?.scalar().is_none();
                self.emit(if self.checked && arithmetic && ty.is_integer() && !is_address {
                    Inst::CheckedBinary { op, ty, to, a, b }
                } else {
                    Inst::Binary { op, ty, to, a, b }
                });
            }
            Op::MulAdd(a, b, c) => {
                if !ty.is_float() {
                    return self.refuse(format!("`{ty}` has no operation MulAdd: the type is no float"));
                }
                let [a, b, c] = [self.typed(a, ty)?, self.typed(b, ty)?, self.typed(c, ty)?];
                let to = self.define(result)?.row;
                self.emit(Inst::MulAdd { ty, to, a, b, c });
            }
            Op::Approximate(what, a) => {
                let (a, to) = (self.typed(a, Scalar::F32)?, self.define(result)?.row);
                if ty != Scalar::F32 {
                    return self.refuse(format!("{what:?} has a result of type `{ty}` instead of `f32`"));
                }
                self.emit(Inst::Approximate { what, to, a });
            }
            Op::Bits(what, ref operands) => {
                let types: Box<[Scalar]> = operands.iter().map(|v| self.scalar(*v)).collect::<Result<_>>()?;
                if what.result(&types) != Some(ty) || operands.len() > 4 {
                    return self.refuse(format!("{} of {types:?} cannot have a result of type `{ty}`", what.name()));
                }
                let operands = operands.iter().map(|v| self.register_of(*v)).collect::<Result<_>>()?;
                let to = self.define(result)?;
                self.code.operations.push(BitsOperation { what, types, operands, to });
                self.emit(Inst::Bits(self.code.operations.len() as u32 - 1));
            }
            Op::Compare(op, a, b) => {
                let of = self.scalar(a)?;
                if ty != Scalar::Bool
                    || of.is_half()
                    || of == Scalar::Bool && !matches!(op, Comparison::Eq | Comparison::Ne)
                {
                    return self.refuse(format!("`{of}` has no comparison {op:?} with a result of type `{ty}`"));
                }
                let (a, b) = (self.typed(a, of)?, self.typed(b, of)?);
                let to = self.define(result)?.row;
                self.emit(Inst::Compare { op, ty: of, to, a, b });
            }
            Op::Select { condition, yes, no } => {
                let condition = self.typed(condition, Scalar::Bool)?;
                let (yes, no) = (self.typed(yes, ty)?, self.typed(no, ty)?);
                let to = self.define(result)?;
                self.emit(Inst::Select { wide: to.wide, to: to.row, condition, yes, no });
            }
            Op::Cast(a) => {
                let from = self.scalar(a)?;
                if !cast::exists(from, ty) {
                    return self.refuse(format!("there is no cast from `{from}` to `{ty}`"));
                }
                let (a, to) = (self.register_of(a)?.row, self.define(result)?.row);
                let lossy = self.checked && ty.is_integer() && (from.is_float() || from.bits() > ty.bits());
                self.emit(Inst::Cast { from, into: ty, to, a, lossy });
            }
            Op::Bitcast(a) => {
                let from = self.scalar(a)?;
                if from.bits() != ty.bits() {
                    return self.refuse(format!("a bitcast from `{from}` to `{ty}` changes the width"));
                }
                let (a, to) = (self.register_of(a)?, self.define(result)?);
                self.emit(Inst::Bitcast { from, into: ty, to, a });
            }
            Op::Offset { base, ref terms, bytes } => {
                if self.ty(base)? != self.ty(result)? || self.ty(base)?.scalar().is_some() {
                    return self.refuse(format!("the offset from %{} is not an address of the same kind", base.0));
                }
                let (of, base) = (base, self.register_of(base)?);
                let index = |v: Value| self.typed(v, Scalar::Usize);
                let terms =
                    terms.iter().map(|(i, s)| Ok((index(*i)?, s.map(index).transpose()?))).collect::<Result<_>>()?;
                let to = self.define(result)?;
                self.dynamic[result.0 as usize] = self.dynamic[of.0 as usize];
                self.code.offsets.push(Offset { to, base, terms, size: bytes, checked: self.checked });
                self.emit(Inst::Offset(self.code.offsets.len() as u32 - 1));
            }
            _ => return self.refuse(format!("the oracle cannot run `{}` here", name_of(op))),
        }
        Ok(())
    }
}
