//! From IR to the interpreter's instructions.
//!
//! IR that breaks a rule of `ir`'s essay is refused here with the place, so that what runs needs no check of its own
//! form: operands are defined before they are used, types fit operators, labels name open constructs.

use super::bits::Operation;
use super::cast;
use super::code::{
    Access, Atomic, Code, Copy, Dim, Inst, Landing, Local, Offset, Pc, Place, Report, RowIndex, SharedDim, SlotIndex,
    Within,
};
use super::frame::Register;
use super::inline::Inline;
use super::lanes::{has_binary, has_unary};
use super::memory::SHARED_WORDS;
use super::origin::origins;
use super::uniform;
use super::{Origin, Unsupported};
use crate::ptx::{Refusal, decode_inline};
use kernel_dsl::compiler::ir::{self, Binary, Comparison, Kernel, Label, Location, Op, Region, Type, Unary, Value};
use kernel_dsl::compiler::ptx::inline::Effect;
use kernel_dsl::compiler::{Error, Scalar, ptx};
use std::sync::Arc;

/// Sites fit 22 bits: shadow memory packs them.
const LONGEST: usize = 1 << 22;

/// Whether arithmetic that overflows, or divides by zero, is a fault of the program.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Arithmetic {
    /// It is.
    Checked,
    /// It may run where the program does not have it.
    Speculative,
}

/// Makes code of `kernel`.
pub fn decode(kernel: &Kernel, arithmetic: Arithmetic) -> Result<Code, Unsupported> {
    let whole = |message: String| Err(Unsupported(Box::new(Error::whole(message))));
    let threads = kernel.block.most_threads();
    if !(1..=1024).contains(&threads) {
        return whole(format!("a block of {:?} threads: it must have 1 to 1024", kernel.block.most()));
    }
    for array in &kernel.shared {
        let fits = array.shape.len() == array.strides.len()
            && array.offset.is_multiple_of(array.element.align())
            && end(array) <= 4 * SHARED_WORDS as u64;
        if !fits {
            return whole(format!(
                "shared array `{}` is laid out inconsistently, or beyond {} bytes",
                array.name,
                4 * SHARED_WORDS
            ));
        }
    }
    let mut decoder = Decoder {
        kernel,
        checked: arithmetic == Arithmetic::Checked,
        origins: origins(kernel),
        dynamic: vec![None; kernel.values.len()],
        registers: vec![None; kernel.values.len()],
        code: Code::default(),
        open: Vec::new(),
        exits: Vec::new(),
        location: Location(0),
    };
    decoder.locals()?;
    decoder.region(&kernel.body, &[])?;
    decoder.emit(Inst::Exit);
    if decoder.code.insts.len() > LONGEST {
        return whole(format!("the kernel has more than {LONGEST} instructions"));
    }
    uniform::simplify(&mut decoder.code);
    decoder.code.lifetimes = (0..kernel.shared.len()).map(|i| decoder.lifetime(i)).collect();
    Ok(decoder.code)
}

/// The end of a shared array, saturating.
fn end(array: &ir::SharedArray) -> u64 {
    let dims = array.shape.iter().zip(&array.strides);
    let last = dims.map(|(n, s)| u64::from(n.saturating_sub(1)) * u64::from(*s)).fold(0, u64::saturating_add);
    (last + 1).saturating_mul(array.element.bytes().into()).saturating_add(array.offset.into())
}

struct Decoder<'k> {
    kernel: &'k Kernel,
    /// Whether arithmetic is.
    checked: bool,
    origins: Vec<Origin>,
    /// The array of dynamic size whose address an address was computed from.
    dynamic: Vec<Option<u32>>,
    /// Where each value defined so far is.
    registers: Vec<Option<Register>>,
    code: Code,
    open: Vec<Construct>,
    /// Instructions of the innermost region that jump to its end when no lane is left.
    exits: Vec<Pc>,
    location: Location,
}

/// A construct that `Break` and `Continue` may name.
struct Construct {
    label: Option<Label>,
    /// What `Break` hands its values to.
    results: Vec<Register>,
    /// What `Continue` hands its values to; `None` if it is no loop.
    carried: Option<Vec<Register>>,
}

type Result<T, E = Unsupported> = std::result::Result<T, E>;

impl Decoder<'_> {
    fn refuse<T>(&self, message: impl Into<String>) -> Result<T> {
        let place = self.kernel.locations.get(self.location.0 as usize);
        let place = place.and_then(|l| Some((self.kernel.sources.get(l.source as usize)?, l.span)));
        Err(Unsupported(Box::new(match place {
            Some((source, span)) => Error::at(source, span, message),
            None => Error::whole(message),
        })))
    }

    fn emit(&mut self, inst: Inst) -> Pc {
        self.code.insts.push(inst);
        self.code.locations.push(self.location);
        self.here() - 1
    }

    fn here(&self) -> Pc {
        self.code.insts.len() as Pc
    }

    /// Sets the jump of the instruction at `pc` to the next one.
    fn land(&mut self, pc: Pc) {
        let here = self.here();
        match &mut self.code.insts[pc as usize] {
            Inst::If { otherwise: to, .. }
            | Inst::Else { end: to, .. }
            | Inst::EndIf { exit: to, .. }
            | Inst::Test { end: to, .. }
            | Inst::Leave { exit: to, .. } => *to = here,
            _ => {}
        }
    }

    fn row(&mut self, rows: u32) -> RowIndex {
        self.code.rows += rows;
        self.code.rows - rows
    }

    fn register(&mut self, wide: bool) -> Register {
        Register { row: self.row(if wide { 2 } else { 1 }), wide }
    }

    fn ty(&self, value: Value) -> Result<Type> {
        match self.kernel.values.get(value.0 as usize) {
            Some(ty) => Ok(*ty),
            None => self.refuse(format!("%{} is not among the kernel's values", value.0)),
        }
    }

    /// The scalar type that a value is computed as.
    fn scalar(&self, value: Value) -> Result<Scalar> {
        Ok(match self.ty(value)? {
            Type::Scalar(s) => s,
            Type::Global | Type::Constant => Scalar::U64,
            Type::Shared => Scalar::U32,
        })
    }

    fn define(&mut self, value: Value) -> Result<Register> {
        let wide = self.scalar(value)?.bits() == 64;
        let register = self.register(wide);
        self.bind(value, register)?;
        Ok(register)
    }

    fn bind(&mut self, value: Value, register: Register) -> Result<()> {
        if self.registers[value.0 as usize].replace(register).is_some() {
            return self.refuse(format!("%{} is defined twice", value.0));
        }
        Ok(())
    }

    fn used(&self, value: Value) -> Result<Register> {
        match self.registers.get(value.0 as usize) {
            Some(Some(register)) => Ok(*register),
            _ => self.refuse(format!("%{} is used before it is defined", value.0)),
        }
    }

    /// The row of a value of type `ty`.
    fn typed(&self, value: Value, ty: Scalar) -> Result<RowIndex> {
        let found = self.scalar(value)?;
        if found != ty {
            return self.refuse(format!("%{} is `{found}` where `{ty}` is needed", value.0));
        }
        Ok(self.used(value)?.row)
    }

    fn registers(&self, values: &[Value]) -> Result<Vec<Register>> {
        values.iter().map(|v| self.used(*v)).collect()
    }

    fn locals(&mut self) -> Result<()> {
        for local in &self.kernel.locals {
            let wide = match local.element {
                Type::Scalar(s) => s.bits() == 64,
                Type::Global | Type::Constant => true,
                Type::Shared => false,
            };
            let rows = if wide { 2 } else { 1 };
            let Some(total) = local.len.checked_mul(rows).filter(|n| *n < 1 << 20) else {
                return self
                    .refuse(format!("the array `{}` has {} elements: too many for registers", local.name, local.len));
            };
            let first = Register { row: self.row(total), wide };
            let element = self.code.elements;
            self.code.elements += local.len;
            self.code.locals.push(Local {
                name: local.name.clone(),
                first,
                ty: local.element.scalar(),
                len: local.len,
                element,
            });
        }
        Ok(())
    }

    /// Decodes a region whose `Yield` hands its values to `yields`. Jumps to its end land on what comes next.
    fn region(&mut self, region: &Region, yields: &[Register]) -> Result<()> {
        let outer = std::mem::take(&mut self.exits);
        for (i, inst) in region.insts.iter().enumerate() {
            self.location = inst.location;
            if inst.op.is_terminator() != (i + 1 == region.insts.len()) {
                return self.refuse("a region has one terminator, at its end");
            }
            self.inst(inst, yields)?;
        }
        if region.insts.is_empty() {
            return self.refuse("a region has one terminator, at its end");
        }
        for pc in std::mem::replace(&mut self.exits, outer) {
            self.land(pc);
        }
        Ok(())
    }

    fn inst(&mut self, inst: &ir::Inst, yields: &[Register]) -> Result<()> {
        if let Op::Inline { code, inputs } = &inst.op {
            return self.inline(code, inputs, &inst.results);
        }
        let single = match inst.results.as_slice() {
            [one] => Some(*one),
            _ => None,
        };
        let Some(result) = single.filter(|_| inst.op.is_pure()) else {
            return if inst.op.is_pure() {
                self.refuse("a computation has one result")
            } else {
                self.effect(inst, yields)
            };
        };
        let ty = self.scalar(result)?;
        match inst.op {
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
                    return self.refuse(format!("parameter `{}` is of another type", parameter.name));
                }
                let to = self.define(result)?;
                self.code.parameters.push((to, index));
            }
            // The addresses of tables come behind the parameters.
            Op::Table(table) => {
                if self.kernel.table(table).is_none() || !self.ty(result)?.is_wide_address() {
                    return self.refuse(format!("there is no table {}, or its address is none", table.0));
                }
                let to = self.define(result)?;
                self.code.parameters.push((to, self.kernel.parameters.len() as u32 + table.0));
            }
            Op::Special(special) => {
                if special.axis() > 2 || ty.bits() != 32 {
                    return self.refuse(format!("{special:?} is not a special register of 32 bits"));
                }
                let to = self.define(result)?.row;
                self.code.specials.push((to, special));
            }
            Op::Unary(op, a) => {
                let from = self.scalar(a)?;
                let counts = matches!(op, Unary::CountOnes | Unary::LeadingZeros);
                if !has_unary(op, from) || ty != if counts { Scalar::U32 } else { from } {
                    return self.refuse(format!("{op:?} of `{from}` to `{ty}`"));
                }
                let (a, to) = (self.used(a)?.row, self.define(result)?.row);
                let checked = self.checked && matches!(op, Unary::Neg | Unary::Abs) && from.is_integer();
                self.emit(if checked {
                    Inst::CheckedUnary { op, ty: from, to, a }
                } else {
                    Inst::Unary { op, ty: from, to, a }
                });
            }
            Op::Binary(op, a, b) => {
                let shift = op.is_shift();
                if !has_binary(op, ty) {
                    return self.refuse(format!("{op:?} of `{ty}`"));
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
                    return self.refuse(format!("MulAdd of `{ty}`"));
                }
                let [a, b, c] = [self.typed(a, ty)?, self.typed(b, ty)?, self.typed(c, ty)?];
                let to = self.define(result)?.row;
                self.emit(Inst::MulAdd { ty, to, a, b, c });
            }
            Op::Approximate(what, a) => {
                let (a, to) = (self.typed(a, Scalar::F32)?, self.define(result)?.row);
                if ty != Scalar::F32 {
                    return self.refuse(format!("an approximation of `{ty}`"));
                }
                self.emit(Inst::Approximate { what, to, a });
            }
            Op::Bits(what, ref operands) => {
                let types: Box<[Scalar]> = operands.iter().map(|v| self.scalar(*v)).collect::<Result<_>>()?;
                if what.result(&types) != Some(ty) || operands.len() > 4 {
                    return self.refuse(format!("{} of {types:?} to `{ty}`", what.name()));
                }
                let operands = operands.iter().map(|v| self.used(*v)).collect::<Result<_>>()?;
                let to = self.define(result)?;
                self.code.operations.push(Operation { what, types, operands, to });
                self.emit(Inst::Bits(self.code.operations.len() as u32 - 1));
            }
            Op::Compare(op, a, b) => {
                let of = self.scalar(a)?;
                if ty != Scalar::Bool
                    || of.is_half()
                    || of == Scalar::Bool && !matches!(op, Comparison::Eq | Comparison::Ne)
                {
                    return self.refuse(format!("{op:?} of `{of}` to `{ty}`"));
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
                    return self.refuse(format!("a cast from `{from}` to `{ty}`"));
                }
                let (a, to) = (self.used(a)?.row, self.define(result)?.row);
                self.emit(Inst::Cast { from, into: ty, to, a });
            }
            Op::Bitcast(a) => {
                let from = self.scalar(a)?;
                if from.bits() != ty.bits() {
                    return self.refuse(format!("a bitcast to `{ty}` from a type of another width"));
                }
                let (a, to) = (self.used(a)?, self.define(result)?);
                self.emit(Inst::Bitcast { from, into: ty, to, a });
            }
            Op::Offset { base, ref terms, bytes } => {
                if self.ty(base)? != self.ty(result)? || self.ty(base)?.scalar().is_some() {
                    return self.refuse("an offset is from an address to an address of the same kind");
                }
                let (of, base) = (base, self.used(base)?);
                let index = |v: Value| self.typed(v, Scalar::Usize);
                let terms =
                    terms.iter().map(|(i, s)| Ok((index(*i)?, s.map(index).transpose()?))).collect::<Result<_>>()?;
                let to = self.define(result)?;
                self.dynamic[result.0 as usize] = self.dynamic[of.0 as usize];
                self.code.offsets.push(Offset { to, base, terms, size: bytes, checked: self.checked });
                self.emit(Inst::Offset(self.code.offsets.len() as u32 - 1));
            }
            _ => return self.refuse("an operation that this interpreter does not know"),
        }
        Ok(())
    }

    /// Operations that do more than compute.
    fn effect(&mut self, inst: &ir::Inst, yields: &[Register]) -> Result<()> {
        let results = &inst.results;
        match &inst.op {
            Op::Load { place, element, guard, .. } => {
                if results.is_empty() || results.iter().any(|v| self.ty(*v).ok() != Some(Type::Scalar(*element))) {
                    return self.refuse(format!("a load of `{element}` has results of that type"));
                }
                let (place, within) = self.place(place, *element, results.len() as u32)?;
                let (guard, otherwise) = match guard {
                    Some(g) if g.otherwise.len() == results.len() => {
                        for v in &g.otherwise {
                            self.typed(*v, *element)?;
                        }
                        (Some(self.typed(g.condition, Scalar::Bool)?), self.registers(&g.otherwise)?)
                    }
                    Some(_) => return self.refuse("a guarded load names one value a result for the other lanes"),
                    None => (None, Vec::new()),
                };
                let values = results.iter().map(|v| self.define(*v)).collect::<Result<_>>()?;
                let (count, otherwise) = (results.len() as u32, otherwise.into());
                let access = Access { place, within, element: *element, count, values, guard, otherwise, split: None };
                self.code.accesses.push(access);
                self.emit(Inst::Load(self.code.accesses.len() as u32 - 1));
                return Ok(());
            }
            Op::Store { place, element, values, guard } => {
                if values.is_empty() {
                    return self.refuse("a store without values");
                }
                let (place, within) = self.place(place, *element, values.len() as u32)?;
                let guard = guard.map(|g| self.typed(g, Scalar::Bool)).transpose()?;
                for v in values {
                    self.typed(*v, *element)?;
                }
                let (count, values) = (values.len() as u32, self.registers(values)?.into());
                let otherwise = Box::default();
                let access = Access { place, within, element: *element, count, values, guard, otherwise, split: None };
                self.code.accesses.push(access);
                self.emit(Inst::Store(self.code.accesses.len() as u32 - 1));
            }
            Op::Poison { place, element, count, guard } => {
                let (place, within) = self.place(place, *element, *count)?;
                if !place.is_shared() || *count == 0 {
                    return self.refuse("what is poisoned is in shared memory, and at least one scalar");
                }
                let guard = guard.map(|g| self.typed(g, Scalar::Bool)).transpose()?;
                let (values, otherwise) = (Box::default(), Box::default());
                let access =
                    Access { place, within, element: *element, count: *count, values, guard, otherwise, split: None };
                self.code.accesses.push(access);
                self.emit(Inst::Poison(self.code.accesses.len() as u32 - 1));
            }
            Op::CopyAsync(copy) => {
                let ir::AsyncCopy { to, from, element, count, guard, inside, bytes } = &**copy;
                let mut access = |place| -> Result<Access> {
                    let (place, within) = self.place(place, *element, *count)?;
                    let (values, otherwise) = (Box::default(), Box::default());
                    Ok(Access {
                        place,
                        within,
                        element: *element,
                        count: *count,
                        values,
                        guard: None,
                        otherwise,
                        split: None,
                    })
                };
                let (to, from) = (access(to)?, access(from)?);
                if !to.place.is_shared() || from.place.is_shared() || !matches!(copy.size(), 4 | 8 | 16) {
                    return self.refuse("a copy is of 4, 8 or 16 bytes from global to shared memory");
                }
                let truth = |v: &Option<Value>| v.map(|v| self.typed(v, Scalar::Bool)).transpose();
                let (guard, inside) = (truth(guard)?, truth(inside)?);
                let bytes = bytes.map(|v| self.typed(v, Scalar::Usize)).transpose()?;
                self.code.copies.push(Copy { to, from, guard, inside, bytes });
                self.emit(Inst::CopyAsync(self.code.copies.len() as u32 - 1));
            }
            Op::CopyCommit => {
                let [result] = results[..] else { return self.refuse("a group of copies has one number") };
                if self.ty(result)? != Type::Scalar(Scalar::Usize) {
                    return self.refuse("the number of a group of copies is `usize`");
                }
                let to = self.define(result)?.row;
                self.emit(Inst::CopyCommit { to });
                return Ok(());
            }
            Op::CopyWait(landing) => {
                let landing = match landing {
                    ir::Landing::Through(group) => Landing::Through(self.typed(*group, Scalar::Usize)?),
                    ir::Landing::But(n) => Landing::But(*n),
                };
                self.emit(Inst::CopyWait(landing));
            }
            Op::Named { name, value } => {
                let named = (name.to_string(), self.used(*value)?, self.scalar(*value)?);
                self.code.names.push(named);
                self.emit(Inst::Named(self.code.names.len() as u32 - 1));
            }
            Op::Begin(array) => {
                if array.0 as usize >= self.kernel.shared.len() {
                    return self.refuse(format!("there is no shared array {}", array.0));
                }
                let number = self.code.begins;
                self.code.begins += 1;
                self.emit(Inst::Begin { array: array.0, number });
            }
            Op::Dynamic { array, .. } => {
                let [result] = results[..] else { return self.refuse("an array of dynamic size has one address") };
                if array.0 as usize >= self.kernel.dynamic.len() || self.ty(result)? != Type::Shared {
                    return self.refuse(format!("there is no array of dynamic size {}", array.0));
                }
                let to = self.define(result)?.row;
                self.dynamic[result.0 as usize] = Some(array.0);
                self.emit(Inst::Dynamic { array: array.0, to });
                return Ok(());
            }
            Op::Atomic { operation, place, element, values } => {
                if values.len() != operation.operands() || results.len() > 1 || !operation.takes(*element) {
                    return self.refuse(format!("an atomic {operation:?} of `{element}` with {} values", values.len()));
                }
                let (place, within) = self.place(place, *element, 1)?;
                for v in values {
                    self.typed(*v, *element)?;
                }
                let (operand, expected) = match self.registers(values)?[..] {
                    [expected, new] => (new, Some(expected)),
                    [operand, ..] => (operand, None),
                    [] => return self.refuse("an atomic operation without operand"),
                };
                let to = match results[..] {
                    [result] if self.ty(result)? == Type::Scalar(*element) => Some(self.define(result)?),
                    [] => None,
                    _ => return self.refuse(format!("an atomic operation on `{element}` gives another type")),
                };
                let values = Box::new([operand]);
                let otherwise = Box::default();
                let access =
                    Access { place, within, element: *element, count: 1, values, guard: None, otherwise, split: None };
                self.code.atomics.push(Atomic { access, operation: *operation, expected, to });
                self.emit(Inst::Atomic(self.code.atomics.len() as u32 - 1));
                return Ok(());
            }
            Op::ReadLocal { local, index } => {
                let [result] = results[..] else { return self.refuse("a read of a local has one result") };
                let ty = self.local(*local)?;
                let index = index.map(|i| self.typed(i, Scalar::Usize)).transpose()?;
                if self.ty(result)? != ty {
                    return self.refuse(format!("a read of a local of `{ty}` as another type"));
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
                    return self.refuse(format!("a write of another type to a local of `{ty}`"));
                }
                let (from, local) = (self.used(*value)?, local.0);
                self.emit(match index {
                    None => Inst::WriteLocal { local, from },
                    Some(index) => Inst::WriteElement { local, index, from },
                });
            }
            Op::BlockSync => _ = self.emit(Inst::BlockSync),
            Op::WarpSync => _ = self.emit(Inst::WarpSync),
            Op::Fence(scope) => _ = self.emit(Inst::Fence(*scope)),
            Op::Match(value) => {
                let [result] = results[..] else { return self.refuse("a match has one result") };
                if self.scalar(*value)?.bits() < 32 || self.scalar(result)? != Scalar::U32 {
                    return self.refuse("a match takes 32 or 64 bits and gives `u32`");
                }
                let (from, to) = (self.used(*value)?, self.define(result)?);
                let site = self.emit(Inst::Match { to: to.row, from });
                self.code.exchanges.insert(site, (to, Scalar::U32));
                return Ok(());
            }
            Op::Reduce(op, value) => {
                let [result] = results[..] else { return self.refuse("a reduction has one result") };
                let ty = self.scalar(*value)?;
                let known = matches!(op, ir::Binary::Add | ir::Binary::Min | ir::Binary::Max);
                if !known || !ty.is_integer() || ty.bits() != 32 || self.scalar(result)? != ty {
                    return self.refuse(format!("a reduction {op:?} of `{ty}`"));
                }
                let (from, to) = (self.used(*value)?.row, self.define(result)?);
                let site = self.emit(Inst::Reduce { op: *op, ty, to: to.row, from });
                self.code.exchanges.insert(site, (to, ty));
                return Ok(());
            }
            Op::Shuffle { mode, value, selector, width } => {
                let [result] = results[..] else { return self.refuse("a shuffle has one result") };
                let ty = self.scalar(*value)?;
                if !matches!(width, 2 | 4 | 8 | 16 | 32) || ty.bits() < 32 || self.scalar(result)? != ty {
                    return self.refuse(format!("a shuffle of `{ty}` over {width} lanes"));
                }
                let selector = self.typed(*selector, Scalar::U32)?;
                let (from, to) = (self.used(*value)?, self.define(result)?);
                let site = self.emit(Inst::Shuffle { mode: *mode, width: *width as u8, to, from, selector });
                self.code.exchanges.insert(site, (to, ty));
                return Ok(());
            }
            Op::Vote { mode, value } => {
                let [result] = results[..] else { return self.refuse("a vote has one result") };
                let expected = if *mode == ir::Vote::Ballot { Scalar::U32 } else { Scalar::Bool };
                if self.scalar(result)? != expected {
                    return self.refuse(format!("a vote {mode:?} gives `{expected}`"));
                }
                let (value, to) = (self.typed(*value, Scalar::Bool)?, self.define(result)?);
                let site = self.emit(Inst::Vote { mode: *mode, to: to.row, value });
                self.code.exchanges.insert(site, (to, expected));
                return Ok(());
            }
            Op::Report { record, site, values } => {
                if self.ty(*record)? != Type::Global || values.len() > ir::record::MOST_VALUES {
                    return self.refuse("a report has the address of a record, and as many values as that holds");
                }
                let record = self.used(*record)?.row;
                let values = values.iter().map(|v| self.typed(*v, Scalar::Usize)).collect::<Result<_>>()?;
                self.code.reports.push(Report { record, site: *site, values });
                self.emit(Inst::Report(self.code.reports.len() as u32 - 1));
            }
            Op::If { .. } | Op::For(_) | Op::Loop { .. } | Op::Block { .. } => return self.construct(inst),
            Op::Yield(values) => self.hand(yields, values)?,
            Op::Break(label, values) => {
                let (slot, target) = self.target(*label)?;
                let to = target.results.clone();
                self.hand(&to, values)?;
                self.emit(Inst::Break { slot });
            }
            Op::Continue(label, values) => {
                let (slot, target) = self.target(*label)?;
                let Some(to) = target.carried.clone() else { return self.refuse("`Continue` names a loop") };
                self.hand(&to, values)?;
                self.emit(Inst::Continue { slot });
            }
            Op::Return => _ = self.emit(Inst::Return),
            _ => return self.refuse("an operation that this interpreter does not know"),
        }
        if !results.is_empty() {
            return self.refuse("an operation without results has some");
        }
        Ok(())
    }

    fn inline(&mut self, code: &ptx::Inline, inputs: &[Value], results: &[Value]) -> Result<()> {
        let block = match decode_inline(code) {
            Ok(block) => block,
            Err(Refusal { text, why, .. }) => return self.refuse(format!("inline PTX, `{text}`: {why}")),
        };
        let (mut given, mut made) = (Vec::new(), Vec::new());
        let (inputs_given, results_given) = (inputs, results);
        let (mut inputs, mut results) = (inputs.iter(), results.iter());
        for (i, operand) in code.source().operands.iter().enumerate() {
            let Some(place) = block.operand(i) else { return self.refuse("inline PTX has an operand without use") };
            let of = |values: &mut std::slice::Iter<'_, Value>| match values.next() {
                Some(value) if self.ty(*value)? == Type::Scalar(operand.ty) => Ok(*value),
                _ => self.refuse("inline PTX has other inputs or results than its operands"),
            };
            if operand.direction.enters() {
                let value = of(&mut inputs)?;
                given.push((place, self.used(value)?));
            }
            if operand.direction.leaves() {
                made.push((of(&mut results)?, place));
            }
        }
        if inputs.next().is_some() || results.next().is_some() {
            return self.refuse("inline PTX has other inputs or results than its operands");
        }
        let typed = |value: &Value| Ok((self.scalar(*value)?, self.used(*value)?));
        let given_types = inputs_given.iter().map(typed).collect::<Result<_>>()?;
        let made = made.into_iter().map(|(value, place)| Ok((self.define(value)?, place))).collect::<Result<_>>()?;
        let typed = |value: &Value| Ok((self.scalar(*value)?, self.used(*value)?));
        let outputs = results_given.iter().map(typed).collect::<Result<Vec<_>>>()?;
        let inline = Inline {
            block: Arc::new(block),
            inputs: given.into(),
            results: made,
            checked: self.checked,
            reads_machine: code.effect() == Effect::Machine && !outputs.is_empty(),
            typed: given_types,
            outputs: outputs.into_iter().filter(|(ty, _)| ty.is_float()).collect(),
        };
        self.code.inlines.push(inline);
        self.emit(Inst::Inline(self.code.inlines.len() as u32 - 1));
        Ok(())
    }

    fn construct(&mut self, inst: &ir::Inst) -> Result<()> {
        let slot = self.open.len() as SlotIndex;
        self.code.slots = self.code.slots.max(slot + 1);
        let location = inst.location;
        let leave = match &inst.op {
            Op::If { condition, then, otherwise } => {
                let condition = self.typed(*condition, Scalar::Bool)?;
                let results = inst.results.iter().map(|v| self.define(*v)).collect::<Result<Vec<_>>>()?;
                let begin = self.emit(Inst::If { slot, condition, otherwise: 0 });
                self.open.push(Construct { label: None, results: Vec::new(), carried: None });
                self.region(then, &results)?;
                self.location = location;
                // Lanes whose condition fails have nothing to do in an empty `otherwise`: they wait at the end.
                self.land(begin);
                let nothing = matches!(&otherwise.insts[..], [ir::Inst { op: Op::Yield(v), .. }] if v.is_empty());
                if !(nothing && results.is_empty()) {
                    let middle = self.emit(Inst::Else { slot, end: 0 });
                    self.region(otherwise, &results)?;
                    self.land(middle);
                }
                Inst::EndIf { slot, exit: 0 }
            }
            Op::Block { label, body } => {
                let results = inst.results.iter().map(|v| self.define(*v)).collect::<Result<Vec<_>>>()?;
                self.emit(Inst::Enter { slot });
                self.open.push(Construct { label: Some(*label), results: results.clone(), carried: None });
                self.region(body, &results)?;
                Inst::Leave { slot, exit: 0 }
            }
            Op::Loop { label, inits, body } => {
                let results = inst.results.iter().map(|v| self.define(*v)).collect::<Result<Vec<_>>>()?;
                let carried = body.parameters.iter().map(|v| self.define(*v)).collect::<Result<Vec<_>>>()?;
                self.hand(&carried, inits)?;
                self.emit(Inst::Enter { slot });
                let first = self.here();
                self.open.push(Construct { label: Some(*label), results, carried: Some(carried.clone()) });
                self.region(body, &carried)?;
                self.location = location;
                self.emit(Inst::Again { slot, body: first });
                Inst::Leave { slot, exit: 0 }
            }
            Op::For(l) => {
                let [index, ref carried @ ..] = l.body.parameters[..] else {
                    return self.refuse("the body of a `For` has its index as a parameter");
                };
                let ty = self.scalar(l.start)?;
                if !ty.is_integer() || self.scalar(index)? != ty || carried.len() != inst.results.len() {
                    return self.refuse("a `For` has an integer index, and a result for each carried value");
                }
                let start = self.used(l.start)?;
                let (limit, step) = (self.typed(l.end, ty)?, self.typed(l.step, ty)?);
                let index = self.define(index)?;
                let carried = carried.iter().map(|v| self.define(*v)).collect::<Result<Vec<_>>>()?;
                // A lane that has left the loop does not change its carried values any more: they are the results.
                for (result, register) in inst.results.iter().zip(&carried) {
                    if (self.scalar(*result)?.bits() == 64) != register.wide {
                        return self.refuse("results of a `For` have the types of its carried values");
                    }
                    self.bind(*result, *register)?;
                }
                self.hand(&carried, &l.inits)?;
                self.emit(Inst::Copy { to: index, from: start });
                self.emit(Inst::EnterFor { ty, slot, step });
                let test = self.emit(Inst::Test { ty, slot, index: index.row, limit, end: 0 });
                self.open.push(Construct {
                    label: Some(l.label),
                    results: carried.clone(),
                    carried: Some(carried.clone()),
                });
                self.region(&l.body, &carried)?;
                self.location = location;
                self.emit(Inst::Step { ty, slot, index: index.row, step, limit, body: test + 1 });
                self.land(test);
                Inst::Leave { slot, exit: 0 }
            }
            _ => return self.refuse("an operation that this interpreter does not know"),
        };
        self.open.pop();
        self.location = location;
        let pc = self.emit(leave);
        self.exits.push(pc);
        Ok(())
    }

    fn local(&self, local: ir::LocalId) -> Result<Type> {
        match self.kernel.locals.get(local.0 as usize) {
            Some(l) => Ok(l.element),
            None => self.refuse(format!("there is no local {}", local.0)),
        }
    }

    fn target(&self, label: Label) -> Result<(SlotIndex, &Construct)> {
        match self.open.iter().rposition(|c| c.label == Some(label)) {
            Some(slot) => Ok((slot as SlotIndex, &self.open[slot])),
            None => self.refuse(format!("label {} names no construct around this", label.0)),
        }
    }

    /// Moves values to registers, all at once: a register that is also a source keeps its value until it is read.
    fn hand(&mut self, to: &[Register], values: &[Value]) -> Result<()> {
        let mut from = self.registers(values)?;
        if to.len() != from.len() || to.iter().zip(&from).any(|(t, f)| t.wide != f.wide) {
            return self.refuse(format!("{} values are handed to {} of perhaps other types", from.len(), to.len()));
        }
        let clash = (0..to.len()).any(|i| from[i + 1..].contains(&to[i]));
        if clash {
            for from in &mut from {
                let spare = self.register(from.wide);
                self.emit(Inst::Copy { to: spare, from: *from });
                *from = spare;
            }
        }
        for (&to, &from) in to.iter().zip(&from).filter(|(to, from)| to != from) {
            self.emit(Inst::Move { to, from });
        }
        Ok(())
    }

    /// The array whose lifetime the bytes of shared array `i` have: what is laid over another begins with a `Begin` of its
    /// own, or is that other by another name.
    fn lifetime(&self, i: usize) -> u32 {
        let own = |i: usize| {
            self.code.insts.iter().any(|inst| matches!(inst, Inst::Begin { array, .. } if *array as usize == i))
        };
        let mut at = i;
        // As many steps as there are arrays, for IR whose arrays lie over one another in a circle.
        for _ in 0..self.kernel.shared.len() {
            match self.kernel.shared.get(at).and_then(|a| a.over) {
                Some(under) if !own(at) => at = under.0 as usize,
                _ => break,
            }
        }
        at as u32
    }

    /// A place, and where in its element an access to `n` scalars begins.
    fn place(&mut self, place: &ir::Place, scalar: Scalar, n: u32) -> Result<(Place, Within)> {
        let index = |v: Value| self.typed(v, Scalar::Usize);
        let within = place.within();
        let step = |s: &ir::Step| Ok(SharedDim { index: index(s.index)?, extent: s.extent, stride: s.bytes });
        let steps = within.into_iter().flat_map(|w| &w.indices).map(step).collect::<Result<_>>()?;
        let (unit, reach) = (place.unit(scalar), place.reach(n, scalar));
        let within = Within { unit, offset: within.map_or(0, |w| w.offset), steps, reach };
        let dim = |d: &ir::Dim| {
            Ok(Dim { index: index(d.index)?, extent: index(d.extent)?, stride: d.stride.map(index).transpose()? })
        };
        let place = match place {
            ir::Place::Global { base, dims, .. } => {
                if !self.ty(*base)?.is_wide_address() || dims.is_empty() && place.within().is_none() {
                    return self
                        .refuse("an access names an address in global memory, and a dimension or a place in a table");
                }
                let (base, origin) = (self.used(*base)?.row, self.origins[base.0 as usize]);
                Place::Global { base, dims: dims.iter().map(dim).collect::<Result<_>>()?, origin }
            }
            ir::Place::Dynamic { base, dims, .. } => {
                if self.ty(*base)? != Type::Shared || dims.is_empty() {
                    return self.refuse("an access names an address in shared memory and at least one dimension");
                }
                let (row, array) = (self.used(*base)?.row, self.dynamic[base.0 as usize]);
                Place::Dynamic { array, base: row, dims: dims.iter().map(dim).collect::<Result<_>>()? }
            }
            ir::Place::Shared { array, indices, .. } => {
                let Some(shared) = self.kernel.shared.get(array.0 as usize) else {
                    return self.refuse(format!("there is no shared array {}", array.0));
                };
                if indices.len() != shared.shape.len() {
                    return self.refuse(format!("`{}` has {} dimensions", shared.name, shared.shape.len()));
                }
                if unit != shared.element.bytes() {
                    return self.refuse(format!("elements of `{}` have {} bytes", shared.name, shared.element.bytes()));
                }
                let shape = shared.shape.iter().zip(&shared.strides);
                let dim = |(v, (extent, stride)): (&Value, (&u32, &u32))| {
                    Ok(SharedDim { index: index(*v)?, extent: *extent, stride: *stride })
                };
                let dims = indices.iter().zip(shape).map(dim).collect::<Result<_>>()?;
                let swizzle = shared.swizzle().filter(|_| indices.len() > 1);
                Place::Shared { array: array.0, offset: shared.offset, dims, swizzle }
            }
            ir::Place::Address { base, offset } => {
                let (row, origin, offset) = (self.used(*base)?.row, self.origins[base.0 as usize], *offset);
                match self.ty(*base)? {
                    Type::Global | Type::Constant => Place::Address { base: row, offset, origin },
                    Type::Shared => Place::SharedAddress { base: row, offset },
                    Type::Scalar(_) => return self.refuse("an address is expected"),
                }
            }
        };
        Ok((place, within))
    }
}
