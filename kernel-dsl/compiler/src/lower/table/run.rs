//! Evaluates constants: runs IR without memory accesses for one thread.
//!
//! rustc evaluates the same constant for the host and rejects errors there. Only the 32-bit `usize`
//! can cause additional errors here.

use crate::Scalar;
use crate::ir::eval;
use crate::ir::{Binary, For, Inst, Kernel, Label, LocalId, Location, Op, Region, Value};
use std::collections::HashMap;

/// The number of instructions after which an evaluation gives up: some seconds in an unoptimized
/// macro.
const MAX_INSTRUCTIONS: u32 = 1 << 24;

/// The reason why there is no value.
pub enum EvaluationStop {
    /// A part of the computation is known only at run time, or the computation takes too long.
    NotConstant,
    /// The computation is wrong at this location.
    Wrong(Location, String),
}

/// Where control continues after a region.
enum Next {
    /// After the enclosing construct, with these values.
    Yield(Vec<u64>),
    Break(Label, Vec<u64>),
    Continue(Label, Vec<u64>),
}

type Result<T> = std::result::Result<T, EvaluationStop>;

/// Runs `region`, and returns the bits of the values `wanted`.
pub fn run(kernel: &Kernel, region: &Region, wanted: &[Value]) -> Result<Vec<u64>> {
    let mut machine = TableEvaluator { kernel, values: HashMap::new(), locals: HashMap::new(), fuel: MAX_INSTRUCTIONS };
    machine.region(region)?;
    wanted.iter().map(|v| machine.get(*v)).collect()
}

struct TableEvaluator<'k> {
    kernel: &'k Kernel,
    values: HashMap<Value, u64>,
    locals: HashMap<LocalId, Vec<Option<u64>>>,
    fuel: u32,
}

impl TableEvaluator<'_> {
    fn get(&self, value: Value) -> Result<u64> {
        self.values.get(&value).copied().ok_or(EvaluationStop::NotConstant)
    }

    fn all(&self, values: &[Value]) -> Result<Vec<u64>> {
        values.iter().map(|v| self.get(*v)).collect()
    }

    fn set(&mut self, to: &[Value], bits: Vec<u64>) {
        self.values.extend(to.iter().copied().zip(bits));
    }

    fn scalar(&self, value: Value) -> Result<Scalar> {
        self.kernel.ty(value).scalar().ok_or(EvaluationStop::NotConstant)
    }

    fn region(&mut self, region: &Region) -> Result<Next> {
        for inst in &region.insts {
            self.fuel = self.fuel.checked_sub(1).ok_or(EvaluationStop::NotConstant)?;
            match &inst.op {
                Op::Yield(values) => return Ok(Next::Yield(self.all(values)?)),
                Op::Break(label, values) => return Ok(Next::Break(*label, self.all(values)?)),
                Op::Continue(label, values) => return Ok(Next::Continue(*label, self.all(values)?)),
                op if op.regions().is_empty() => self.inst(inst)?,
                _ => {
                    if let Some(leaves) = self.construct(inst)? {
                        return Ok(leaves);
                    }
                }
            }
        }
        Ok(Next::Yield(Vec::new()))
    }

    /// Runs a construct. Returns where control continues, if not after the construct.
    fn construct(&mut self, inst: &Inst) -> Result<Option<Next>> {
        let values = match &inst.op {
            Op::If { condition, then, otherwise } => {
                match self.region(if self.get(*condition)? != 0 { then } else { otherwise })? {
                    Next::Yield(values) => values,
                    leaves => return Ok(Some(leaves)),
                }
            }
            Op::Block { label, body } => match self.region(body)? {
                Next::Yield(values) => values,
                Next::Break(to, values) if to == *label => values,
                leaves => return Ok(Some(leaves)),
            },
            Op::Loop { label, inits, body } => {
                let mut carried = self.all(inits)?;
                loop {
                    self.set(&body.parameters, carried);
                    match self.region(body)? {
                        Next::Yield(values) => carried = values,
                        Next::Continue(to, values) if to == *label => carried = values,
                        Next::Break(to, values) if to == *label => break values,
                        leaves => return Ok(Some(leaves)),
                    }
                }
            }
            Op::For(l) => match self.counted(l)? {
                Next::Yield(values) => values,
                leaves => return Ok(Some(leaves)),
            },
            _ => return Err(EvaluationStop::NotConstant),
        };
        self.set(&inst.results, values);
        Ok(None)
    }

    fn counted(&mut self, l: &For) -> Result<Next> {
        let ty = self.scalar(l.start)?;
        let number = |bits| eval::integer(ty, bits);
        let (mut index, end, step) = (number(self.get(l.start)?), number(self.get(l.end)?), number(self.get(l.step)?));
        let mut carried = self.all(&l.inits)?;
        while index < end {
            let mut parameters = vec![index as u64 & ty.mask()];
            parameters.append(&mut carried);
            self.set(&l.body.parameters, parameters);
            match self.region(&l.body)? {
                Next::Yield(values) => carried = values,
                Next::Continue(to, values) if to == l.label => carried = values,
                Next::Break(to, values) if to == l.label => return Ok(Next::Yield(values)),
                leaves => return Ok(leaves),
            }
            index += step;
        }
        Ok(Next::Yield(carried))
    }

    /// Evaluates an instruction without regions.
    fn inst(&mut self, inst: &Inst) -> Result<()> {
        let result = inst.results.first().copied();
        let bits = match &inst.op {
            Op::Constant(bits) => *bits,
            Op::Unary(op, a) => self.number(result, eval::unary(*op, self.scalar(*a)?, self.get(*a)?))?,
            Op::Binary(op, a, b) => {
                let (ty, x, y) = (self.scalar(*a)?, self.get(*a)?, self.get(*b)?);
                if let Some(sign) = (ty == Scalar::Usize).then(|| overflow(*op, x, y)).flatten() {
                    let message = format!("`{x} {sign} {y}` overflows `usize`, which has 32 bits on the device");
                    return Err(EvaluationStop::Wrong(inst.location, message));
                }
                self.number(result, eval::binary(*op, ty, x, y))?
            }
            Op::MulAdd(a, b, c) => {
                let bits = eval::mul_add(self.scalar(*a)?, self.get(*a)?, self.get(*b)?, self.get(*c)?);
                self.number(result, bits)?
            }
            Op::Bits(what, operands) => {
                let types: Vec<_> = operands.iter().map(|v| self.scalar(*v)).collect::<Result<_>>()?;
                what.evaluate(&types, &self.all(operands)?).ok_or(EvaluationStop::NotConstant)?
            }
            Op::Compare(op, a, b) => u64::from(eval::compare(*op, self.scalar(*a)?, self.get(*a)?, self.get(*b)?)),
            Op::Select { condition, yes, no } => self.get(if self.get(*condition)? != 0 { *yes } else { *no })?,
            Op::Cast(a) => {
                let to = self.scalar(result.ok_or(EvaluationStop::NotConstant)?)?;
                self.number(result, eval::cast(self.scalar(*a)?, to, self.get(*a)?))?
            }
            Op::Bitcast(a) => self.get(*a)?,
            Op::ReadLocal { local, index } => {
                let at = self.element(*local, *index, inst.location)?;
                self.locals[local][at].ok_or(EvaluationStop::NotConstant)?
            }
            Op::WriteLocal { local, index, value } => {
                let (at, bits) = (self.element(*local, *index, inst.location)?, self.get(*value)?);
                if let Some(to) = self.locals.get_mut(local).and_then(|l| l.get_mut(at)) {
                    *to = Some(bits);
                }
                return Ok(());
            }
            _ => return Err(EvaluationStop::NotConstant),
        };
        self.set(inst.results.as_slice(), vec![bits]);
        Ok(())
    }

    /// Returns the result of arithmetic; a NaN becomes the canonical NaN of the language.
    fn number(&self, result: Option<Value>, bits: Option<u64>) -> Result<u64> {
        match (bits, result.map(|r| self.scalar(r)).transpose()?) {
            (Some(bits), _) => Ok(bits),
            (None, Some(Scalar::F32)) => Ok(0x7fff_ffff),
            (None, Some(Scalar::F64)) => Ok(0x7fff_ffff_ffff_ffff),
            _ => Err(EvaluationStop::NotConstant),
        }
    }

    fn element(&mut self, local: LocalId, index: Option<Value>, at: Location) -> Result<usize> {
        let known = self.kernel.locals.get(local.0 as usize).ok_or(EvaluationStop::NotConstant)?;
        let index = index.map_or(Ok(0), |i| self.get(i))?;
        if index >= u64::from(known.len) {
            let message =
                format!("index {index} is out of bounds of `{}`, which has {} elements", known.name, known.len);
            return Err(EvaluationStop::Wrong(at, message));
        }
        self.locals.entry(local).or_insert_with(|| vec![None; known.len as usize]);
        Ok(index as usize)
    }
}

/// Returns the operator's symbol, if the result overflows `usize`.
fn overflow(op: Binary, a: u64, b: u64) -> Option<char> {
    let (exact, sign) = match op {
        Binary::Add => (a.checked_add(b), '+'),
        Binary::Sub => (a.checked_sub(b), '-'),
        Binary::Mul => (a.checked_mul(b), '*'),
        _ => return None,
    };
    exact.is_none_or(|n| n > Scalar::Usize.mask()).then_some(sign)
}
