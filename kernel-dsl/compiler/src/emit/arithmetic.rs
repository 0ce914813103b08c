//! Arithmetic, comparisons, selection. Float operations state their rounding, which stops ptxas
//! from contracting them.

use super::{Emitter, scalar_type};
use crate::approximation::Approximation;
use crate::error::Error;
use crate::ir::{Binary, Comparison, Special, Type, Unary, Value};
use crate::ptx::{Modifier, Opcode, Operand, RegisterId, SpecialRegister};
use crate::scalar::Scalar;

/// Returns whether a value of `s` is narrower than the register that holds it.
pub(super) fn narrow(s: Scalar) -> bool {
    s.is_integer() && s.bits() < 32
}

/// Returns the untyped-bits modifier for the width of `s`: `.b32`, `.b64`, or `.pred`.
pub(super) fn bits_type(s: Scalar) -> Modifier {
    match s.bits() {
        1 => Modifier::Pred,
        64 => Modifier::B64,
        _ => Modifier::B32,
    }
}

/// Returns the PTX special register, if PTX has one for that axis.
pub(super) fn special_register(special: Special) -> Option<SpecialRegister> {
    use SpecialRegister::*;
    let registers = match special {
        Special::Thread(_) => [TidX, TidY, TidZ],
        Special::Block(_) => [CtaidX, CtaidY, CtaidZ],
        Special::Grid(_) => [NctaidX, NctaidY, NctaidZ],
        Special::BlockDim(_) => [NtidX, NtidY, NtidZ],
    };
    registers.get(usize::from(special.axis())).copied()
}

impl Emitter<'_> {
    pub(super) fn special(&mut self, result: Value, special: Special) {
        let Some(register) = special_register(special) else {
            return self.malformed("a special register of an axis beyond z");
        };
        let d = self.define(result);
        self.op(Opcode::Mov, [Modifier::U32], [d.into(), Operand::Special(register)]);
    }

    pub(super) fn unary(&mut self, result: Value, op: Unary, a: Value) {
        let Some(s) = self.scalar(a) else { return };
        let ty = scalar_type(s).modifier();
        let a = self.operand(a);
        let integral = |rounding| (Opcode::Cvt, [rounding, ty, ty].to_vec());
        let (opcode, modifiers) = match op {
            // There is no `neg.u32`; the bits are the same.
            Unary::Neg if s == Scalar::U64 => (Opcode::Neg, vec![Modifier::S64]),
            Unary::Neg if s.is_integer() && !s.is_signed() => (Opcode::Neg, vec![Modifier::S32]),
            Unary::Neg if s != Scalar::Bool => (Opcode::Neg, vec![ty]),
            Unary::Not if !s.is_float() => (Opcode::Not, vec![bits_type(s)]),
            Unary::Abs if s.is_signed() || s.is_float() => (Opcode::Abs, vec![ty]),
            Unary::Sqrt if s.is_float() => (Opcode::Sqrt, vec![Modifier::Rn, ty]),
            Unary::Floor if s.is_float() => integral(Modifier::Rmi),
            Unary::Ceil if s.is_float() => integral(Modifier::Rpi),
            Unary::Trunc if s.is_float() => integral(Modifier::Rzi),
            Unary::RoundEven if s.is_float() => integral(Modifier::Rni),
            Unary::CountOnes if s.is_integer() && s.bits() >= 32 => (Opcode::Popc, vec![bits_type(s)]),
            Unary::LeadingZeros if s.is_integer() && s.bits() >= 32 => (Opcode::Clz, vec![bits_type(s)]),
            Unary::ReverseBits if s.is_integer() && s.bits() >= 32 => (Opcode::Brev, vec![bits_type(s)]),
            Unary::SwapBytes if s.is_integer() && s.bits() >= 32 => return self.swap_bytes(result, s, a),
            _ => return self.error(Error::without_span(format!("PTX has no {op:?} of {s}"))),
        };
        // `not` of a sign-extended value is sign-extended too.
        let widens = narrow(s) && matches!(op, Unary::Neg | Unary::Abs) || op == Unary::Not && !s.is_signed();
        self.narrowed(result, s, widens, |e, d| e.guarded(None, opcode, &modifiers, [d.into(), a]));
    }

    pub(super) fn binary(&mut self, result: Value, op: Binary, a: Value, b: Value) {
        let Some(s) = self.ty(a).scalar() else { return self.address_sum(result, op, a, b) };
        if self.ty(b).scalar().is_none() {
            return self.address_sum(result, op, b, a);
        }
        if self.ty(result).scalar().is_none() {
            return self.malformed("an address as the result of arithmetic on numbers");
        }
        if op.is_shift() {
            return self.shift(result, op, s, a, b);
        }
        let ty = scalar_type(s).modifier();
        let (opcode, rounding) = match op {
            _ if s == Scalar::Bool && !matches!(op, Binary::And | Binary::Or | Binary::Xor) => (None, None),
            Binary::WrappingAdd | Binary::WrappingSub | Binary::WrappingMul if s.is_float() => (None, None),
            Binary::Add | Binary::WrappingAdd => (Some(Opcode::Add), Some(Modifier::Rn)),
            Binary::Sub | Binary::WrappingSub => (Some(Opcode::Sub), Some(Modifier::Rn)),
            Binary::Mul | Binary::WrappingMul => (Some(Opcode::Mul), Some(Modifier::Rn)),
            Binary::Div => (Some(Opcode::Div), Some(Modifier::Rn)),
            Binary::Rem if s.is_float() => (None, None),
            Binary::Rem => (Some(Opcode::Rem), None),
            Binary::Min => (Some(Opcode::Min), None),
            Binary::Max => (Some(Opcode::Max), None),
            Binary::And | Binary::Or | Binary::Xor if s.is_float() => (None, None),
            Binary::And => (Some(Opcode::And), None),
            Binary::Or => (Some(Opcode::Or), None),
            Binary::Xor => (Some(Opcode::Xor), None),
            Binary::Shl | Binary::Shr | Binary::WrappingShl | Binary::WrappingShr | Binary::RotateLeft => (None, None),
        };
        let Some(opcode) = opcode else {
            return self.error(Error::without_span(format!("PTX has no {op:?} of {s}")));
        };
        let logic = matches!(opcode, Opcode::And | Opcode::Or | Opcode::Xor);
        let (a, b) = (self.operand(a), self.operand(b));
        let modifiers = match (opcode, rounding) {
            (_, Some(rounding)) if s.is_float() => vec![rounding, ty],
            (Opcode::Mul, _) => vec![Modifier::Lo, ty],
            _ if logic => vec![bits_type(s)],
            _ => vec![ty],
        };
        let (a, b) = if logic && s != Scalar::Bool { (hexadecimal(a, s), hexadecimal(b, s)) } else { (a, b) };
        // Only the quotient `MIN / −1` does not fit the type.
        let widens = narrow(s)
            && (matches!(opcode, Opcode::Add | Opcode::Sub | Opcode::Mul) || opcode == Opcode::Div && s.is_signed());
        self.narrowed(result, s, widens, |e, d| e.guarded(None, opcode, &modifiers, [d.into(), a, b]));
    }

    /// Masks the distance of a shift: PTX clamps it, Rust masks it.
    fn shift(&mut self, result: Value, op: Binary, s: Scalar, a: Value, distance: Value) {
        if !s.is_integer() || op == Binary::RotateLeft && !op.takes(s) {
            return self.error(Error::without_span(format!("PTX has no {op:?} of {s}")));
        }
        if op == Binary::RotateLeft {
            return self.rotate(result, s, a, distance);
        }
        let mask = u64::from(s.bits() - 1);
        let a = self.operand(a);
        let distance = match self.constant(distance) {
            Some(bits) => Operand::Integer((bits & mask) as i64),
            None => {
                let (given, masked) = (self.operand(distance), self.register(crate::ptx::Type::U32));
                self.op(Opcode::And, [Modifier::B32], [masked.into(), given, Operand::Integer(mask as i64)]);
                masked.into()
            }
        };
        let left = matches!(op, Binary::Shl | Binary::WrappingShl);
        let (opcode, ty) = if left { (Opcode::Shl, bits_type(s)) } else { (Opcode::Shr, scalar_type(s).modifier()) };
        self.narrowed(result, s, narrow(s) && left, |e, d| e.op(opcode, [ty], [d.into(), a, distance]));
    }

    /// Emits a rotation: a funnel shift of a value with itself. `.wrap` masks the distance. A
    /// rotation of 64 bits takes two funnel shifts of its words. For distances of 32 and more, the
    /// words are swapped first.
    fn rotate(&mut self, result: Value, s: Scalar, a: Value, distance: Value) {
        const FUNNEL: [Modifier; 3] = [Modifier::L, Modifier::Wrap, Modifier::B32];
        let known = self.constant(distance);
        let (a, distance) = (self.operand(a), self.operand(distance));
        if s.bits() == 32 {
            let d = self.define(result);
            return self.op(Opcode::Shf, FUNNEL, [d.into(), a.clone(), a, distance]);
        }
        let words = |e: &mut Self| [(); 2].map(|()| Operand::Register(e.register(crate::ptx::Type::U32)));
        let own = words(self);
        self.op(Opcode::Mov, [Modifier::B64], [Operand::Vector(own.to_vec()), a]);
        let [low, high] = own;
        let [low, high] = match known {
            Some(distance) if distance & 32 == 0 => [low, high],
            Some(_) => [high, low],
            None => {
                let half = self.register(crate::ptx::Type::U32);
                self.op(Opcode::And, [Modifier::B32], [half.into(), distance.clone(), Operand::Integer(32)]);
                let swapped = self.test(Modifier::Ne, Modifier::U32, half).register;
                let [first, second] = words(self);
                let select = [first.clone(), high.clone(), low.clone(), swapped.into()];
                self.op(Opcode::Selp, [Modifier::B32], select);
                self.op(Opcode::Selp, [Modifier::B32], [second.clone(), low, high, swapped.into()]);
                [first, second]
            }
        };
        let [first, second] = words(self);
        self.op(Opcode::Shf, FUNNEL, [first.clone(), high.clone(), low.clone(), distance.clone()]);
        self.op(Opcode::Shf, FUNNEL, [second.clone(), low, high, distance]);
        let d = self.define(result);
        self.op(Opcode::Mov, [Modifier::B64], [d.into(), Operand::Vector(vec![first, second])]);
    }

    /// Reverses the bytes of a word. For 64 bits, the two words are also swapped.
    fn swap_bytes(&mut self, result: Value, s: Scalar, a: Operand) {
        let swap = |e: &mut Self, to: Operand, from: Operand| {
            e.op(Opcode::Prmt, [Modifier::B32], [to, from, Operand::Integer(0), Operand::Bits(0x0123)]);
        };
        if s.bits() == 32 {
            let d = self.define(result);
            return swap(self, d.into(), a);
        }
        let mut halves = || [0, 1].map(|_| Operand::Register(self.builder.register(crate::ptx::Type::U32)));
        let (own, [low, high]) = (halves(), halves());
        self.op(Opcode::Mov, [Modifier::B64], [Operand::Vector(own.to_vec()), a]);
        let [first, second] = own;
        swap(self, low.clone(), second);
        swap(self, high.clone(), first);
        let d = self.define(result);
        self.op(Opcode::Mov, [Modifier::B64], [d.into(), Operand::Vector(vec![low, high])]);
    }

    /// Adds a distance in bytes to an address.
    fn address_sum(&mut self, result: Value, op: Binary, base: Value, bytes: Value) {
        let sum = matches!(op, Binary::Add | Binary::WrappingAdd);
        let Some(s) = self.ty(bytes).scalar().filter(|s| sum && s.is_integer() && s.bits() >= 32) else {
            return self.malformed("arithmetic on an address that is not the addition of bytes");
        };
        let wide = self.ty(base) == Type::Global;
        let base = Operand::Register(self.in_register(base));
        let bytes = match self.operand(bytes) {
            Operand::Register(r) if wide && s.bits() == 32 => {
                let (to, from) = if s.is_signed() {
                    (crate::ptx::Type::S64, Modifier::S32)
                } else {
                    (crate::ptx::Type::U64, Modifier::U32)
                };
                let extended = self.register(to);
                self.op(Opcode::Cvt, [to.modifier(), from], [extended.into(), r.into()]);
                extended.into()
            }
            bytes => bytes,
        };
        let d = self.define(result);
        let ty = if wide { Modifier::S64 } else { Modifier::S32 };
        self.op(Opcode::Add, [ty], [d.into(), base, bytes]);
    }

    pub(super) fn mul_add(&mut self, result: Value, a: Value, b: Value, c: Value) {
        let Some(s) = self.scalar(a) else { return };
        if !s.is_float() {
            return self.error(Error::without_span(format!("PTX has no fused multiply-add of {s}")));
        }
        let operands = [self.operand(a), self.operand(b), self.operand(c)];
        let d = self.define(result);
        let [a, b, c] = operands;
        self.op(Opcode::Fma, [Modifier::Rn, scalar_type(s).modifier()], [d.into(), a, b, c]);
    }

    pub(super) fn approximate(&mut self, result: Value, what: Approximation, a: Value) {
        let a = self.operand(a);
        let d = self.define(result);
        self.guarded(None, what.opcode(), what.modifiers(), [d.into(), a]);
    }

    pub(super) fn compare(&mut self, result: Value, comparison: Comparison, a: Value, b: Value) {
        let Some(s) = self.scalar(a) else { return };
        let (a, b) = (self.operand(a), self.operand(b));
        let how = match comparison {
            Comparison::Eq => Modifier::Eq,
            // For a NaN, Rust's `!=` is true, and PTX's `ne` is false.
            Comparison::Ne if s.is_float() => Modifier::Neu,
            Comparison::Ne => Modifier::Ne,
            Comparison::Lt => Modifier::Lt,
            Comparison::Le => Modifier::Le,
            Comparison::Gt => Modifier::Gt,
            Comparison::Ge => Modifier::Ge,
        };
        if s != Scalar::Bool {
            let d = self.define(result);
            return self.op(Opcode::Setp, [how, scalar_type(s).modifier()], [d.into(), a, b]);
        }
        match comparison {
            Comparison::Ne => {
                let d = self.define(result);
                self.op(Opcode::Xor, [Modifier::Pred], [d.into(), a, b]);
            }
            Comparison::Eq => {
                let differs = self.register(crate::ptx::Type::Pred);
                self.op(Opcode::Xor, [Modifier::Pred], [differs.into(), a, b]);
                let d = self.define(result);
                self.op(Opcode::Not, [Modifier::Pred], [d.into(), differs.into()]);
            }
            _ => self.malformed("an ordered comparison of `bool`"),
        }
    }

    pub(super) fn select(&mut self, result: Value, condition: Value, yes: Value, no: Value) {
        if let Some(bits) = self.constant(condition) {
            let chosen = self.operand(if bits != 0 { yes } else { no });
            let d = self.define(result);
            return self.copy(d, chosen);
        }
        let p = self.in_register(condition);
        if self.ty(result) == Type::Scalar(Scalar::Bool) {
            return self.select_predicate(result, p, yes, no);
        }
        let ty = super::register_type(self.ty(result)).modifier();
        // An address constant is not an operand of `selp`.
        let (yes, no) = if self.ty(result) == Type::Shared {
            (self.in_register(yes).into(), self.in_register(no).into())
        } else {
            (self.operand(yes), self.operand(no))
        };
        let d = self.define(result);
        self.op(Opcode::Selp, [ty], [d.into(), yes, no, p.into()]);
    }

    /// Selects a predicate as (p and yes) or (not p and no), with fewer instructions for a constant
    /// side: PTX has no `selp.pred`.
    fn select_predicate(&mut self, result: Value, p: RegisterId, yes: Value, no: Value) {
        let sides = (self.constant(yes), self.constant(no));
        let (yes, no) = (self.operand(yes), self.operand(no));
        let pred = [Modifier::Pred];
        let mut temporary = || self.builder.register(crate::ptx::Type::Pred);
        match sides {
            (Some(a), Some(b)) => {
                let d = self.define(result);
                match (a != 0, b != 0) {
                    (true, false) => self.copy(d, p.into()),
                    (false, true) => self.op(Opcode::Not, pred, [d.into(), p.into()]),
                    _ => self.copy(d, yes),
                }
            }
            (Some(1), None) => {
                let d = self.define(result);
                self.op(Opcode::Or, pred, [d.into(), p.into(), no]);
            }
            (None, Some(0)) => {
                let d = self.define(result);
                self.op(Opcode::And, pred, [d.into(), p.into(), yes]);
            }
            (Some(_), None) => {
                let not = temporary();
                self.op(Opcode::Not, pred, [not.into(), p.into()]);
                let d = self.define(result);
                self.op(Opcode::And, pred, [d.into(), not.into(), no]);
            }
            (None, Some(_)) => {
                let not = temporary();
                self.op(Opcode::Not, pred, [not.into(), p.into()]);
                let d = self.define(result);
                self.op(Opcode::Or, pred, [d.into(), not.into(), yes]);
            }
            (None, None) => {
                let (both, not, neither) = (temporary(), temporary(), temporary());
                self.op(Opcode::And, pred, [both.into(), p.into(), yes]);
                self.op(Opcode::Not, pred, [not.into(), p.into()]);
                self.op(Opcode::And, pred, [neither.into(), not.into(), no]);
                let d = self.define(result);
                self.op(Opcode::Or, pred, [d.into(), both.into(), neither.into()]);
            }
        }
    }

    /// Defines `result` by the value that `compute` writes to a register. If `widens`, the value
    /// may exceed an integer type of 8 or 16 bits, and is extended again.
    fn narrowed(&mut self, result: Value, s: Scalar, widens: bool, compute: impl FnOnce(&mut Self, RegisterId)) {
        if !(widens && narrow(s)) {
            let d = self.define(result);
            return compute(self, d);
        }
        let raw = self.register(scalar_type(s));
        compute(self, raw);
        let d = self.define(result);
        self.extend(d, raw.into(), s);
    }
}

/// Returns a constant of a bitwise operation in hexadecimal, truncated to its register.
pub(super) fn hexadecimal(operand: Operand, s: Scalar) -> Operand {
    match operand {
        Operand::Integer(n) if s.bits() == 64 => Operand::Bits(n as u64),
        Operand::Integer(n) => Operand::Bits(u64::from(n as u32)),
        operand => operand,
    }
}
