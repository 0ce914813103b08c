//! Simplification of one pure instruction: constant folding, and identities that hold for every bit
//! pattern.
//!
//! Floats: an identity is used only where it holds for −0, infinities and subnormals. No NaN
//! becomes a constant. Integers: `Add`, `Sub` and `Mul` wrap, so that regrouping of addends is
//! exact.

use super::constants::Constants;
use crate::ir::{Binary, Comparison, Kernel, Op, Type, Unary, Value, eval};
use crate::scalar::Scalar;

/// A fact about a value, from its definition.
#[derive(Clone, Copy, Debug, Default)]
enum ValueFact {
    #[default]
    None,
    /// The sum of the value and a constant; integers.
    Plus(Value, u64),
    Not(Value),
    Neg(Value),
    Compare(Comparison, Value, Value),
    /// The sum of a `usize` and a constant, modulo 2³².
    Wrapping(Value, u64),
    /// A multiple of this non-zero number, modulo 2³²; `usize`.
    Multiple(u64),
    /// The value modulo a constant; unsigned.
    Remainder(Value, u64),
    /// The value masked by a constant (`value & constant`).
    Masked(Value, u64),
}

/// The result of a simplification.
#[derive(Debug)]
enum Simplified {
    /// A value that exists already.
    Value(Value),
    /// An operation, perhaps a simpler one.
    Op(Op),
}

/// Simplifies instructions in the order in which they are defined.
#[derive(Debug, Default)]
pub struct Simplifier {
    /// The kernel's table of values.
    pub types: Vec<Type>,
    /// The kernel's constants.
    pub constants: Constants,
    facts: Vec<ValueFact>,
}

impl Simplifier {
    /// Creates a simplifier for a kernel with these values and no constants yet.
    pub fn new(types: Vec<Type>) -> Simplifier {
        Simplifier { types, ..Simplifier::default() }
    }

    /// Takes the values of a kernel, and collects its constants.
    pub fn of(kernel: &mut Kernel) -> Simplifier {
        let constants = Constants::of(kernel);
        Simplifier { constants, ..Simplifier::new(std::mem::take(&mut kernel.values)) }
    }

    /// Returns the values to the kernel, and puts the new constants first in its body.
    pub fn finish(self, kernel: &mut Kernel) {
        kernel.values = self.types;
        self.constants.place(&mut kernel.body);
    }

    /// Returns the type of `value`.
    pub fn ty(&self, value: Value) -> Type {
        self.types[value.0 as usize]
    }

    /// Returns a new value.
    pub fn value(&mut self, ty: Type) -> Value {
        self.types.push(ty);
        Value(self.types.len() as u32 - 1)
    }

    /// Returns the constant of type `ty` with these bits.
    pub fn constant(&mut self, ty: Type, bits: u64) -> Value {
        self.constants.get(&mut self.types, ty, bits)
    }

    /// Records the fact about `result`, which `op` computes.
    pub fn note(&mut self, op: &Op, result: Value) {
        let fact = match *op {
            // On `usize`, later passes assume that a plain sum does not wrap. A plain sum made from
            // a wrapping one would claim that without proof.
            Op::Binary(op @ (Binary::Add | Binary::WrappingAdd), a, b) => {
                match (self.ty(a).scalar(), self.constants.bits(b)) {
                    (Some(Scalar::Usize), Some(c)) if op == Binary::WrappingAdd => ValueFact::Wrapping(a, c),
                    (Some(ty), Some(c)) if ty.is_integer() => ValueFact::Plus(a, c),
                    _ => return,
                }
            }
            Op::Binary(Binary::Mul | Binary::WrappingMul, a, b) => match self.constants.bits(b) {
                Some(c) if c > 1 && self.ty(a) == Type::Scalar(Scalar::Usize) => ValueFact::Multiple(c),
                _ => return,
            },
            Op::Binary(Binary::Rem, a, b) => match (self.constants.bits(b), self.ty(a).scalar()) {
                (Some(c), Some(ty)) if c != 0 && ty.is_integer() && !ty.is_signed() => ValueFact::Remainder(a, c),
                _ => return,
            },
            Op::Binary(Binary::And, a, b) => match self.constants.bits(b) {
                Some(c) => ValueFact::Masked(a, c),
                None => return,
            },
            Op::Unary(Unary::Not, a) => ValueFact::Not(a),
            Op::Unary(Unary::Neg, a) => ValueFact::Neg(a),
            Op::Compare(c, a, b) => ValueFact::Compare(c, a, b),
            _ => return,
        };
        self.set_fact(result, fact);
    }

    fn set_fact(&mut self, result: Value, fact: ValueFact) {
        if self.facts.len() <= result.0 as usize {
            self.facts.resize(self.types.len().max(result.0 as usize + 1), ValueFact::None);
        }
        self.facts[result.0 as usize] = fact;
    }

    fn fact(&self, value: Value) -> ValueFact {
        self.facts.get(value.0 as usize).copied().unwrap_or_default()
    }

    /// Simplifies the pure operation `op`, whose result has type `ty`. Returns an existing value if
    /// `op` computes it.
    pub fn simplify(&mut self, op: &mut Op, ty: Type) -> Option<Value> {
        let Some(scalar) = ty.scalar() else {
            return self.address(op, ty);
        };
        let bits = |v: Value| self.constants.bits(v);
        let of = |v: Value| self.types[v.0 as usize].scalar();
        let folded = match *op {
            Op::Constant(c) => Some(c),
            Op::Unary(o, a) => bits(a).zip(of(a)).and_then(|(a, ty)| eval::unary(o, ty, a)),
            Op::Binary(o, a, b) => bits(a).zip(bits(b)).and_then(|(a, b)| eval::binary(o, scalar, a, b)),
            Op::MulAdd(a, b, c) => match (bits(a), bits(b), bits(c)) {
                (Some(a), Some(b), Some(c)) => eval::mul_add(scalar, a, b, c),
                _ => None,
            },
            Op::Bits(what, ref operands) => {
                let known: Option<Vec<u64>> = operands.iter().map(|v| bits(*v)).collect();
                let types: Option<Vec<Scalar>> = operands.iter().map(|v| of(*v)).collect();
                known.zip(types).and_then(|(known, types)| what.evaluate(&types, &known))
            }
            Op::Compare(o, a, b) => match (bits(a), bits(b), of(a)) {
                (Some(a), Some(b), Some(ty)) => Some(u64::from(eval::compare(o, ty, a, b))),
                _ => None,
            },
            Op::Cast(a) => bits(a).zip(of(a)).and_then(|(bits, from)| eval::cast(from, scalar, bits)),
            Op::Bitcast(a) => bits(a).filter(|b| !is_nan(scalar, *b)),
            _ => None,
        };
        if let Some(bits) = folded {
            return Some(self.constant(ty, bits));
        }
        let simple = match *op {
            Op::Unary(o, a) => self.unary(o, a),
            Op::Binary(o, a, b) => self.binary(o, scalar, a, b),
            Op::MulAdd(a, b, c) => self.mul_add(scalar, a, b, c),
            Op::Compare(o, a, b) => self.compare(o, a, b),
            Op::Select { condition, yes, no } => self.select(scalar, condition, yes, no),
            Op::Cast(a) | Op::Bitcast(a) if of(a) == Some(scalar) => Simplified::Value(a),
            _ => return None,
        };
        match simple {
            Simplified::Value(v) => Some(v),
            Simplified::Op(simple) => {
                *op = simple;
                None
            }
        }
    }

    /// Returns the operands of a commutative operation with a constant second, so that equal
    /// operations have equal operands.
    fn constant_last(&self, op: Binary, a: Value, b: Value) -> (Value, Value) {
        if op.commutes() && self.constants.bits(a).is_some() && self.constants.bits(b).is_none() {
            (b, a)
        } else {
            (a, b)
        }
    }

    fn address(&mut self, op: &mut Op, ty: Type) -> Option<Value> {
        let bits = |v: Value| self.constants.bits(v);
        match op {
            Op::Constant(c) => Some(self.constant(ty, *c)),
            Op::Offset { base, terms, .. } => {
                terms.retain(|(i, s)| bits(*i) != Some(0) && s.and_then(bits) != Some(0));
                for (_, s) in terms.iter_mut().filter(|(_, s)| s.and_then(bits) == Some(1)) {
                    *s = None;
                }
                terms.is_empty().then_some(*base)
            }
            Op::Select { condition, yes, no } => match bits(*condition) {
                Some(c) => Some(if c != 0 { *yes } else { *no }),
                None => (yes == no).then_some(*yes),
            },
            _ => None,
        }
    }

    fn unary(&self, op: Unary, a: Value) -> Simplified {
        match (op, self.fact(a)) {
            (Unary::Not, ValueFact::Not(x)) | (Unary::Neg, ValueFact::Neg(x)) => Simplified::Value(x),
            (Unary::Not, ValueFact::Compare(c, x, y)) => {
                let float = self.ty(x).scalar().is_some_and(Scalar::is_float);
                match c.inverse() {
                    // Both an ordered comparison and its inverse are false if an operand is NaN.
                    inverse if !float || matches!(c, Comparison::Eq | Comparison::Ne) => {
                        Simplified::Op(Op::Compare(inverse, x, y))
                    }
                    _ => Simplified::Op(Op::Unary(op, a)),
                }
            }
            _ => Simplified::Op(Op::Unary(op, a)),
        }
    }

    fn binary(&mut self, op: Binary, ty: Scalar, a: Value, b: Value) -> Simplified {
        // The wrapping shifts differ from plain ones only in the oracle, which checks the distance.
        let op = match op {
            Binary::WrappingShl => Binary::Shl,
            Binary::WrappingShr => Binary::Shr,
            op => op,
        };
        let (a, b) = self.constant_last(op, a, b);
        let keep = Simplified::Op(Op::Binary(op, a, b));
        if ty.is_float() {
            return self.float_binary(op, ty, a, b);
        }
        let (left, right) = (self.constants.bits(a), self.constants.bits(b));
        let zero = 0;
        use Binary::*;
        match (op, left, right) {
            (Add | WrappingAdd | Sub | WrappingSub | Or | Xor | Shl | Shr | RotateLeft, _, Some(0)) => {
                Simplified::Value(a)
            }
            (Mul | WrappingMul | And, _, Some(0)) => Simplified::Value(b),
            (Mul | WrappingMul | Div, _, Some(1)) => Simplified::Value(a),
            (Shl | Shr | RotateLeft, Some(0), _) => Simplified::Value(a),
            (Rem, _, Some(1)) => Simplified::Value(self.constant(Type::Scalar(ty), zero)),
            (And, _, Some(c)) if c == ty.mask() => Simplified::Value(a),
            (Or, _, Some(c)) if c == ty.mask() => Simplified::Value(b),
            (Sub | WrappingSub | Xor, ..) if a == b => Simplified::Value(self.constant(Type::Scalar(ty), zero)),
            (And | Or | Min | Max, ..) if a == b => Simplified::Value(a),
            (Min, _, Some(0)) if !ty.is_signed() => Simplified::Value(b),
            (Max, _, Some(0)) if !ty.is_signed() => Simplified::Value(a),
            (Rem, _, Some(d)) if ty == Scalar::Usize && d.is_power_of_two() => match self.residue(a, d) {
                Some(rest) => Simplified::Value(self.constant(Type::Scalar(ty), rest)),
                None => self.remainder(ty, a, b, d),
            },
            (And, _, Some(mask)) if ty == Scalar::Usize && (mask + 1).is_power_of_two() => {
                match self.residue(a, mask + 1) {
                    Some(rest) => Simplified::Value(self.constant(Type::Scalar(ty), rest)),
                    None => self.masked(ty, a, b, mask),
                }
            }
            (Rem, _, Some(d)) => self.remainder(ty, a, b, d),
            (And, _, Some(mask)) => self.masked(ty, a, b, mask),
            // Two constant addends become one. On `usize`, the sum of the addends must not wrap
            // itself.
            (Add | WrappingAdd, _, Some(d)) => match self.fact(a) {
                ValueFact::Plus(x, c) if ty != Scalar::Usize || c.checked_add(d).is_some_and(|s| s <= ty.mask()) => {
                    let sum = self.constant(Type::Scalar(ty), c.wrapping_add(d) & ty.mask());
                    self.binary(op, ty, x, sum)
                }
                _ => keep,
            },
            (Sub | WrappingSub, _, Some(d)) => match self.fact(a) {
                ValueFact::Plus(x, c) if c >= d => {
                    let rest = self.constant(Type::Scalar(ty), c - d);
                    let plus = if op == Sub { Add } else { WrappingAdd };
                    self.binary(plus, ty, x, rest)
                }
                _ => keep,
            },
            _ => keep,
        }
    }

    /// Returns x / d and c for (x + c·d) / d on `usize`, where no sum overflows. So elements that
    /// are a multiple of d apart share a column, and their rows differ by a constant.
    pub fn quotient_of_sum(&mut self, op: &Op) -> Option<(Op, Value)> {
        let Op::Binary(Binary::Div, a, b) = *op else { return None };
        let ty = self.ty(a);
        let (d, ValueFact::Plus(x, c)) = (self.constants.bits(b)?, self.fact(a)) else { return None };
        (ty == Type::Scalar(Scalar::Usize) && d != 0 && c % d == 0).then(|| {
            let whole = self.constant(ty, c / d);
            (Op::Binary(Binary::Div, x, b), whole)
        })
    }

    /// Returns a modulo b, where b is the constant `d`. If a is a sum with a multiple of `d`, the
    /// other summand replaces it. If a is a remainder by a multiple of `d`, the dividend replaces
    /// it.
    fn remainder(&mut self, ty: Scalar, a: Value, b: Value, d: u64) -> Simplified {
        match self.fact(a) {
            ValueFact::Plus(x, c) if ty == Scalar::Usize && d != 0 && c % d == 0 => self.binary(Binary::Rem, ty, x, b),
            ValueFact::Remainder(x, c) if d != 0 && c % d == 0 => self.binary(Binary::Rem, ty, x, b),
            _ => Simplified::Op(Op::Binary(Binary::Rem, a, b)),
        }
    }

    /// Returns a & b, where b is the constant `mask`: several masks become one.
    fn masked(&mut self, ty: Scalar, a: Value, b: Value, mask: u64) -> Simplified {
        match self.fact(a) {
            ValueFact::Masked(x, c) => {
                let both = self.constant(Type::Scalar(ty), c & mask);
                self.binary(Binary::And, ty, x, both)
            }
            _ => Simplified::Op(Op::Binary(Binary::And, a, b)),
        }
    }

    /// Records that `index` runs from `start` in steps of `step`.
    pub fn note_index(&mut self, index: Value, start: Value, step: Value) {
        let usize = self.ty(index) == Type::Scalar(Scalar::Usize);
        if let (true, Some(start), Some(step)) = (usize, self.constants.bits(start), self.constants.bits(step)) {
            let (mut a, mut b) = (start, step);
            while b != 0 {
                (a, b) = (b, a % b);
            }
            if a > 1 {
                self.set_fact(index, ValueFact::Multiple(a));
            }
        }
    }

    /// Returns `a` modulo `d`, a power of two, if `a` is a multiple of `d` plus a constant. The sum
    /// may have wrapped.
    fn residue(&self, a: Value, d: u64) -> Option<u64> {
        let multiple = |v: Value| matches!(self.fact(v), ValueFact::Multiple(m) if m % d == 0);
        match self.fact(a) {
            ValueFact::Plus(x, c) | ValueFact::Wrapping(x, c) if multiple(x) => Some(c % d),
            _ => multiple(a).then_some(0),
        }
    }

    fn float_binary(&mut self, op: Binary, ty: Scalar, a: Value, b: Value) -> Simplified {
        let right = self.constants.bits(b);
        let is = |x: f64| right == Some(float(ty, x));
        match op {
            Binary::Mul | Binary::Div if is(1.0) => Simplified::Value(a),
            // x + −0 and x − +0 are x for every x; with the other zero, −0 becomes +0.
            Binary::Add if is(-0.0) => Simplified::Value(a),
            Binary::Sub if is(0.0) => Simplified::Value(a),
            Binary::Mul if is(-1.0) => Simplified::Op(Op::Unary(Unary::Neg, a)),
            Binary::Min | Binary::Max if a == b => Simplified::Value(a),
            _ => Simplified::Op(Op::Binary(op, a, b)),
        }
    }

    fn mul_add(&mut self, ty: Scalar, a: Value, b: Value, c: Value) -> Simplified {
        let (a, b) = self.constant_last(Binary::Mul, a, b);
        if self.constants.bits(b) == Some(float(ty, 1.0)) {
            return self.simplify_float(Binary::Add, ty, a, c);
        }
        if self.constants.bits(c) == Some(float(ty, -0.0)) {
            return self.simplify_float(Binary::Mul, ty, a, b);
        }
        Simplified::Op(Op::MulAdd(a, b, c))
    }

    /// Simplifies a float operation that replaces another one.
    fn simplify_float(&mut self, op: Binary, ty: Scalar, a: Value, b: Value) -> Simplified {
        let mut op = Op::Binary(op, a, b);
        match self.simplify(&mut op, Type::Scalar(ty)) {
            Some(v) => Simplified::Value(v),
            None => Simplified::Op(op),
        }
    }

    fn compare(&mut self, op: Comparison, a: Value, b: Value) -> Simplified {
        let ty = self.ty(a);
        let scalar = ty.scalar().unwrap_or(Scalar::Bool);
        if self.constants.bits(a).is_some() && self.constants.bits(b).is_none() {
            return self.compare(op.mirrored(), b, a);
        }
        let known = match (op, self.constants.bits(b)) {
            _ if scalar.is_float() => None,
            (Comparison::Eq | Comparison::Le | Comparison::Ge, _) if a == b => Some(true),
            (Comparison::Ne | Comparison::Lt | Comparison::Gt, _) if a == b => Some(false),
            (Comparison::Lt, Some(0)) if !scalar.is_signed() => Some(false),
            (Comparison::Ge, Some(0)) if !scalar.is_signed() => Some(true),
            (Comparison::Eq, Some(c)) if scalar == Scalar::Bool => return self.truth(a, c != 0),
            (Comparison::Ne, Some(c)) if scalar == Scalar::Bool => return self.truth(a, c == 0),
            _ => None,
        };
        match known {
            Some(k) => Simplified::Value(self.constant(Type::Scalar(Scalar::Bool), u64::from(k))),
            None => Simplified::Op(Op::Compare(op, a, b)),
        }
    }

    /// Returns `a` if `same`, and its negation otherwise.
    fn truth(&self, a: Value, same: bool) -> Simplified {
        if same { Simplified::Value(a) } else { self.unary(Unary::Not, a) }
    }

    fn select(&mut self, ty: Scalar, condition: Value, yes: Value, no: Value) -> Simplified {
        let bits = |v: Value| self.constants.bits(v);
        if let Some(c) = bits(condition) {
            return Simplified::Value(if c != 0 { yes } else { no });
        }
        if yes == no {
            return Simplified::Value(yes);
        }
        if let ValueFact::Not(c) = self.fact(condition) {
            return self.select(ty, c, no, yes);
        }
        if ty == Scalar::Bool {
            match (bits(yes), bits(no)) {
                (Some(1), Some(0)) => return Simplified::Value(condition),
                (Some(0), Some(1)) => return self.unary(Unary::Not, condition),
                (Some(1), None) => return Simplified::Op(Op::Binary(Binary::Or, condition, no)),
                (None, Some(0)) => return Simplified::Op(Op::Binary(Binary::And, condition, yes)),
                _ => {}
            }
        }
        Simplified::Op(Op::Select { condition, yes, no })
    }
}

/// Returns the bits of `x`, which both float types have exactly.
fn float(ty: Scalar, x: f64) -> u64 {
    if ty == Scalar::F32 { u64::from((x as f32).to_bits()) } else { x.to_bits() }
}

fn is_nan(ty: Scalar, bits: u64) -> bool {
    match ty {
        Scalar::F32 => f32::from_bits(bits as u32).is_nan(),
        Scalar::F64 => f64::from_bits(bits).is_nan(),
        _ => false,
    }
}
