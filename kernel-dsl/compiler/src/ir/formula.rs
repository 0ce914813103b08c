//! Launch-time formulas: numbers that a kernel computes from its parameters alone.
//!
//! The size of an array in shared memory must be known when the kernel starts. In lowered IR the
//! kernel computes the extents. [`Formula::of`] extracts the same operations for the host.
//! [`Formula::evaluate`] returns the number that the kernel will compute, or the reason why the
//! number is undefined.

use super::eval;
use super::print::Printer;
use super::{Inst, Kernel, Location, Op, Region, Role, Special, Type, Value};
use crate::scalar::Scalar;
use std::collections::HashMap;

/// An expression over the parameters of an entry and the size of its blocks.
#[derive(Clone, PartialEq, Debug)]
pub struct Formula {
    /// The operations, each over results of earlier ones. The result of the last is the formula's
    /// value.
    steps: Vec<(Scalar, FormulaStep)>,
}

/// An operation, over steps by their index.
#[derive(Clone, PartialEq, Debug)]
enum FormulaStep {
    /// A constant, by its bits.
    Constant(u64),
    Parameter(u32),
    /// Threads of a block along an axis.
    BlockDim(u8),
    /// An operation of the IR whose operands are steps, numbered as values.
    Operation(Op),
    /// One of two steps.
    Either {
        condition: usize,
        yes: usize,
        no: usize,
    },
}

impl FormulaStep {
    /// Returns the operation over steps, numbered as values.
    fn operation(&self) -> Op {
        match self {
            FormulaStep::Constant(bits) => Op::Constant(*bits),
            FormulaStep::Parameter(index) => Op::Parameter(*index),
            FormulaStep::BlockDim(axis) => Op::Special(Special::BlockDim(*axis)),
            FormulaStep::Operation(op) => op.clone(),
            FormulaStep::Either { condition, yes, no } => {
                let [condition, yes, no] = [condition, yes, no].map(|step| Value(*step as u32));
                Op::Select { condition, yes, no }
            }
        }
    }
}

/// The reason why a kernel's value is not a formula.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoFormula {
    /// The value depends on the thread or block.
    Special,
    /// The value depends on memory, a variable or a loop.
    Opaque,
}

impl Formula {
    /// Extracts how the body of `kernel` computes `value` from parameters.
    pub fn of(kernel: &Kernel, value: Value) -> Result<Formula, NoFormula> {
        let mut definitions = HashMap::new();
        define(&kernel.body, &mut definitions);
        let mut taker =
            FormulaExtractor { kernel, definitions, formula: Formula { steps: Vec::new() }, taken: HashMap::new() };
        taker.take(value)?;
        Ok(taker.formula)
    }

    /// Returns the formula whose steps are these operations, each over earlier ones by their index.
    pub(super) fn from_operations(steps: Vec<(Scalar, Op)>) -> Formula {
        let step = |op: Op| match op {
            Op::Constant(bits) => FormulaStep::Constant(bits),
            Op::Parameter(index) => FormulaStep::Parameter(index),
            Op::Special(Special::BlockDim(axis)) => FormulaStep::BlockDim(axis),
            Op::Select { condition, yes, no } => {
                let [condition, yes, no] = [condition, yes, no].map(|v| v.0 as usize);
                FormulaStep::Either { condition, yes, no }
            }
            op => FormulaStep::Operation(op),
        };
        Formula { steps: steps.into_iter().map(|(ty, op)| (ty, step(op))).collect() }
    }

    /// Returns the steps as text, in parentheses:
    /// `(%0: usize = parameter n; %1: usize = add %0, %0)`.
    pub(super) fn text(&self, p: &Printer<'_>) -> String {
        let p = p.of_formula();
        let steps = self.steps.iter().enumerate().map(|(i, (ty, step))| {
            let mut text = format!("%{i}: {ty} = ");
            step.operation().print(&p, &mut text);
            text
        });
        format!("({})", steps.collect::<Vec<_>>().join("; "))
    }

    /// Evaluates the formula for parameters of the entry with these bits, and blocks of that size.
    ///
    /// # Errors
    /// The reason why there is no value, such as "40 - 50 overflows `usize`".
    pub fn evaluate(&self, parameters: &[u64], block: [u32; 3]) -> Result<u64, String> {
        let mut values = vec![None; self.steps.len()];
        self.step(self.steps.len().saturating_sub(1), &LaunchInputs { parameters, block }, &mut values)
    }

    /// Appends instructions that compute the formula to `insts`, and returns the result. Returns
    /// `None` for a formula with a choice, because straight-line code would compute both sides.
    pub fn write(&self, kernel: &mut Kernel, insts: &mut Vec<Inst>, location: Location) -> Option<Value> {
        let mut values: Vec<Value> = Vec::new();
        for (ty, step) in &self.steps {
            if let FormulaStep::Either { .. } = step {
                return None;
            }
            let mut op = step.operation();
            op.map_operands(|step| values.get(step.0 as usize).copied().unwrap_or(step));
            let value = kernel.value(Type::Scalar(*ty));
            insts.push(Inst { op, results: [value].into_iter().collect(), location });
            values.push(value);
        }
        values.last().copied()
    }

    /// Evaluates step `i`. Of two branches, only the taken one is evaluated.
    fn step(&self, i: usize, given: &LaunchInputs, values: &mut [Option<u64>]) -> Result<u64, String> {
        if let Some(bits) = values.get(i).copied().flatten() {
            return Ok(bits);
        }
        let Some((ty, step)) = self.steps.get(i) else { return Err("it is empty".into()) };
        let bits = match step {
            FormulaStep::Constant(bits) => *bits,
            FormulaStep::Parameter(index) => {
                let found = given.parameters.get(*index as usize).copied();
                found.ok_or_else(|| format!("there is no parameter {index}"))?
            }
            FormulaStep::BlockDim(axis) => given.block.get(usize::from(*axis)).copied().unwrap_or(1).into(),
            FormulaStep::Either { condition, yes, no } => {
                let yes = if self.step(*condition, given, values)? != 0 { yes } else { no };
                self.step(*yes, given, values)?
            }
            FormulaStep::Operation(op) => {
                let mut operands = Vec::new();
                op.for_each_operand(|v| operands.push(v.0 as usize));
                let bits: Vec<u64> = operands.iter().map(|o| self.step(*o, given, values)).collect::<Result<_, _>>()?;
                let of = operands.first().map_or(*ty, |o| self.steps[*o].0);
                operation(op, of, *ty, &bits)?
            }
        };
        values[i] = Some(bits);
        Ok(bits)
    }
}

/// The inputs of a launch.
struct LaunchInputs<'a> {
    parameters: &'a [u64],
    block: [u32; 3],
}

/// Evaluates `op` for a first operand of type `of` and a result of type `ty`.
fn operation(op: &Op, of: Scalar, ty: Scalar, bits: &[u64]) -> Result<u64, String> {
    let found = match (op, bits) {
        (Op::Unary(op, _), [a]) => eval::unary(*op, of, *a),
        (Op::Binary(op, ..), [a, b]) => {
            let (x, y) = (eval::integer(of, *a), eval::integer(of, *b));
            let exact = match op {
                super::Binary::Add => Some((x + y, "+")),
                super::Binary::Sub => Some((x - y, "-")),
                super::Binary::Mul => Some((x.wrapping_mul(y), "*")),
                _ => None,
            };
            let bits = eval::binary(*op, of, *a, *b);
            if let (Scalar::Usize, Some((exact, sign)), Some(bits)) = (of, exact, bits)
                && exact != i128::from(bits)
            {
                return Err(format!("{x} {sign} {y} overflows `usize`"));
            }
            bits
        }
        (Op::MulAdd(..), [a, b, c]) => eval::mul_add(of, *a, *b, *c),
        (Op::Compare(op, ..), [a, b]) => Some(eval::compare(*op, of, *a, *b).into()),
        (Op::Cast(_), [a]) => eval::cast(of, ty, *a),
        (Op::Bitcast(_), [a]) => Some(*a),
        _ => None,
    };
    found.ok_or_else(|| "it divides by zero, or computes a NaN".to_string())
}

/// Collects the instruction of each value, and the index among its results.
fn define<'k>(region: &'k Region, definitions: &mut HashMap<Value, (&'k Inst, usize)>) {
    for inst in &region.insts {
        definitions.extend(inst.results.iter().enumerate().map(|(i, r)| (*r, (inst, i))));
        inst.op.regions().into_iter().for_each(|r| define(r, definitions));
    }
}

struct FormulaExtractor<'k> {
    kernel: &'k Kernel,
    definitions: HashMap<Value, (&'k Inst, usize)>,
    formula: Formula,
    taken: HashMap<Value, usize>,
}

impl FormulaExtractor<'_> {
    /// Returns the step that computes `value`.
    fn take(&mut self, value: Value) -> Result<usize, NoFormula> {
        if let Some(step) = self.taken.get(&value) {
            return Ok(*step);
        }
        let Type::Scalar(ty) = self.kernel.ty(value) else { return Err(NoFormula::Opaque) };
        let &(inst, result) = self.definitions.get(&value).ok_or(NoFormula::Opaque)?;
        let step = match &inst.op {
            Op::Constant(bits) => FormulaStep::Constant(*bits),
            Op::Parameter(i) => match self.kernel.parameters.get(*i as usize).map(|p| p.role) {
                Some(Role::Address { .. }) | None => return Err(NoFormula::Opaque),
                Some(_) => FormulaStep::Parameter(*i),
            },
            Op::Special(Special::BlockDim(axis)) => FormulaStep::BlockDim(*axis),
            Op::Special(_) => return Err(NoFormula::Special),
            Op::Select { condition, yes, no } => {
                let [condition, yes, no] = [*condition, *yes, *no];
                FormulaStep::Either { condition: self.take(condition)?, yes: self.take(yes)?, no: self.take(no)? }
            }
            Op::If { condition, then, otherwise } => {
                let yielded = |region: &Region| region.yielded()?.get(result).copied();
                let (yes, no) = (yielded(then).ok_or(NoFormula::Opaque)?, yielded(otherwise).ok_or(NoFormula::Opaque)?);
                FormulaStep::Either { condition: self.take(*condition)?, yes: self.take(yes)?, no: self.take(no)? }
            }
            // Formulas do not evaluate inline PTX.
            Op::Inline { .. } => return Err(NoFormula::Opaque),
            op if op.is_pure() => {
                let mut operands = Vec::new();
                op.for_each_operand(|v| operands.push(v));
                for v in &operands {
                    self.take(*v)?;
                }
                let mut op = op.clone();
                op.map_operands(|v| Value(self.taken.get(&v).map_or(u32::MAX, |step| *step as u32)));
                FormulaStep::Operation(op)
            }
            _ => return Err(NoFormula::Opaque),
        };
        self.formula.steps.push((ty, step));
        let step = self.formula.steps.len() - 1;
        self.taken.insert(value, step);
        Ok(step)
    }
}
