//! Arithmetic on integers, and instructions whose opcode is the same for floats.

use super::super::arithmetic::integer::{IntegerFormat, dot};
use super::super::body::{binary, ternary};
use super::super::code::{Body, DefinednessRule, InstructionKind};
use super::super::division::division;
use super::super::registers::{RegisterPlace, Registers, lanes};
use super::super::unspecified::Unspecified;
use super::operand::OperandLocation;
use super::words::{Words, integer};
use super::{Decoded, Decoder, Frame, Result};
use kernel_dsl_compiler::ptx::words::TypeClass;
use kernel_dsl_compiler::ptx::{Modifier, Opcode, Operand, Type};
use smallvec::{SmallVec, smallvec};

/// Returns the integer type of twice the width.
fn doubled(ty: Type) -> Result<Type> {
    ty.doubled().ok_or_else(|| format!("there is no type twice as wide as .{ty}"))
}

/// The opcodes that [`Decoder::arithmetic`] decodes, for integers and floats.
pub(super) const ARITHMETIC: &[Opcode] = {
    use Opcode::*;
    &[Add, Sub, Mul, Mad, Div, Rem, Min, Max, Neg, Abs]
};

/// The opcodes that [`Decoder::integer`] decodes.
pub(super) const OPCODES: &[Opcode] = {
    use Opcode::*;
    &[Addc, Subc, Madc, Mul24, Mad24, Sad, Dp4a, Dp2a]
};

impl<'m> Decoder<'m> {
    /// Decodes `add`, `sub`, `mul`, `mad`, `div`, `rem`, `min`, `max`, `neg` and `abs` of integers
    /// and floats.
    pub(super) fn arithmetic(
        &mut self,
        frame: &mut Frame<'m>,
        opcode: Opcode,
        words: &mut Words,
        operands: &[Operand],
    ) -> Result {
        let ty = words.ty()?;
        if ty.class() == TypeClass::Float {
            return self.float_arithmetic(frame, opcode, words, ty, operands);
        }
        let Some(integers) = integer(ty) else { return Err(format!("it does not support .{ty}")) };
        match opcode {
            Opcode::Add | Opcode::Sub => self.sum(frame, opcode, words, ty, operands),
            Opcode::Mul | Opcode::Mad => self.product(frame, opcode, words, ty, operands),
            Opcode::Div | Opcode::Rem => {
                let to = self.to(frame, operands, 0)?;
                let from = [self.operand(frame, operands, 1, ty)?, self.operand(frame, operands, 2, ty)?];
                let rest = opcode == Opcode::Rem;
                let reason = Unspecified::Divisor.reason();
                if let Some(body) = division(to.place, [from[0].place, from[1].place], integers, rest) {
                    let kind = InstructionKind::Compute { body, follows: DefinednessRule::All, reason };
                    let reads = from.iter().map(|source| source.id).collect();
                    return Ok(Decoded { kind, reads, writes: smallvec![to.id] });
                }
                Ok(self.partial(to, &from, reason, move |[a, b, ..]| {
                    let result = if rest { integers.rem(a, b) } else { integers.div(a, b) };
                    (result.unwrap_or(integers.mask()), result.is_some())
                }))
            }
            Opcode::Min | Opcode::Max => self.extreme(frame, opcode, ty, operands),
            _ => {
                let (to, from) = (self.to(frame, operands, 0)?, self.operand(frame, operands, 1, ty)?);
                let negate = opcode == Opcode::Neg;
                Ok(self.lanewise(to, &[from], move |[a, ..]| {
                    let value = integers.value(a);
                    integers.wrap(if negate || value < 0 { -value } else { value })
                }))
            }
        }
    }

    fn two(
        &mut self,
        frame: &mut Frame<'m>,
        operands: &[Operand],
        ty: Type,
    ) -> Result<(OperandLocation, [OperandLocation; 2])> {
        let to = self.to(frame, operands, 0)?;
        Ok((to, [self.operand(frame, operands, 1, ty)?, self.operand(frame, operands, 2, ty)?]))
    }

    fn sum(
        &mut self,
        frame: &mut Frame<'m>,
        opcode: Opcode,
        words: &mut Words,
        ty: Type,
        operands: &[Operand],
    ) -> Result {
        let (to, [a, b]) = self.two(frame, operands, ty)?;
        let subtract = opcode == Opcode::Sub;
        if words.take(Modifier::Cc) {
            return self.carried(to, [a, b], ty, Carry { subtract, takes: false, gives: true });
        }
        let saturate = words.take(Modifier::Sat);
        let integers = integer(ty).unwrap_or(IntegerFormat { bits: 32, signed: true });
        let body: Body = match (to.place, a.place, b.place) {
            (RegisterPlace::Word(d), RegisterPlace::Word(x), RegisterPlace::Word(y))
                if ty.bits() == 32 && !saturate =>
            {
                match subtract {
                    false => binary(d, [x, y], u32::wrapping_add),
                    true => binary(d, [x, y], u32::wrapping_sub),
                }
            }
            (RegisterPlace::Wide(d), RegisterPlace::Wide(x), RegisterPlace::Wide(y)) if !saturate => match subtract {
                false => binary(d, [x, y], u64::wrapping_add),
                true => binary(d, [x, y], u64::wrapping_sub),
            },
            _ => {
                return Ok(self.lanewise(to, &[a, b], move |[a, b, ..]| {
                    let (a, b) = (integers.value(a), integers.value(b));
                    let sum = if subtract { a - b } else { a + b };
                    if saturate { integers.clamp(sum) } else { integers.wrap(sum) }
                }));
            }
        };
        Ok(self.compute(to, &[a, b], body))
    }

    fn extreme(&mut self, frame: &mut Frame<'m>, opcode: Opcode, ty: Type, operands: &[Operand]) -> Result {
        let (to, [a, b]) = self.two(frame, operands, ty)?;
        let least = opcode == Opcode::Min;
        let body = match (ty, to.place, a.place, b.place) {
            (Type::U32, RegisterPlace::Word(d), RegisterPlace::Word(x), RegisterPlace::Word(y)) => match least {
                true => binary(d, [x, y], |a: u32, b: u32| a.min(b)),
                false => binary(d, [x, y], |a: u32, b: u32| a.max(b)),
            },
            (Type::S32, RegisterPlace::Word(d), RegisterPlace::Word(x), RegisterPlace::Word(y)) => match least {
                true => binary(d, [x, y], |a: u32, b: u32| (a as i32).min(b as i32) as u32),
                false => binary(d, [x, y], |a: u32, b: u32| (a as i32).max(b as i32) as u32),
            },
            _ => {
                let integers = integer(ty).unwrap_or(IntegerFormat { bits: 32, signed: true });
                return Ok(self.lanewise(to, &[a, b], move |[a, b, ..]| {
                    let first = integers.value(a) < integers.value(b);
                    integers.wrap(integers.value(if first == least { a } else { b }))
                }));
            }
        };
        Ok(self.compute(to, &[a, b], body))
    }

    fn product(
        &mut self,
        frame: &mut Frame<'m>,
        opcode: Opcode,
        words: &mut Words,
        ty: Type,
        operands: &[Operand],
    ) -> Result {
        let Some(part) = words.take_one(&[Modifier::Lo, Modifier::Hi, Modifier::Wide]) else {
            return Err("it does not select a part of the product".to_string());
        };
        let saturate = words.take(Modifier::Sat);
        let carry = words.take(Modifier::Cc);
        let (to, [a, b]) = self.two(frame, operands, ty)?;
        let result = if part == Modifier::Wide { doubled(ty)? } else { ty };
        let mut from = vec![a, b];
        if opcode == Opcode::Mad {
            from.push(self.operand(frame, operands, 3, result)?);
        }
        if carry {
            return self.carried_product(to, &from, ty, part, Carry { subtract: false, takes: false, gives: true });
        }
        if let Some(body) = fast_product(to, &from, ty, part, saturate) {
            return Ok(self.compute(to, &from, body));
        }
        let (Some(integers), Some(wide)) = (integer(ty), integer(result)) else {
            return Err(format!("it does not support .{ty}"));
        };
        Ok(self.lanewise(to, &from, move |[a, b, c, _]| {
            let product = match part {
                Modifier::Hi => integers.value(integers.mul_hi(a, b)),
                // The low 64 bits of a 64-bit product do not depend on the sign.
                _ if integers.bits == 64 => i128::from((a as i64).wrapping_mul(b as i64)),
                _ => integers.value(a) * integers.value(b),
            };
            let sum = product + wide.value(c);
            if saturate { wide.clamp(sum) } else { wide.wrap(sum) }
        }))
    }

    /// Decodes `addc`, `subc`, `madc`, `mul24`, `mad24`, `sad`, `dp4a` and `dp2a`.
    pub(super) fn integer(
        &mut self,
        frame: &mut Frame<'m>,
        opcode: Opcode,
        words: &mut Words,
        operands: &[Operand],
    ) -> Result {
        if matches!(opcode, Opcode::Dp4a | Opcode::Dp2a) {
            return self.dot_product(frame, opcode, words, operands);
        }
        let ty = words.ty()?;
        let Some(integers) = integer(ty) else { return Err(format!("it does not support .{ty}")) };
        let (to, [a, b]) = self.two(frame, operands, ty)?;
        let gives = words.take(Modifier::Cc);
        match opcode {
            Opcode::Addc | Opcode::Subc => {
                self.carried(to, [a, b], ty, Carry { subtract: opcode == Opcode::Subc, takes: true, gives })
            }
            Opcode::Madc => {
                let part = words.take_one(&[Modifier::Lo, Modifier::Hi]).unwrap_or(Modifier::Lo);
                let c = self.operand(frame, operands, 3, ty)?;
                self.carried_product(to, &[a, b, c], ty, part, Carry { subtract: false, takes: true, gives })
            }
            Opcode::Sad => {
                let c = self.operand(frame, operands, 3, ty)?;
                Ok(self.lanewise(to, &[a, b, c], move |[a, b, c, _]| integers.sad(a, b, c)))
            }
            _ => {
                let high = words.take_one(&[Modifier::Lo, Modifier::Hi]) == Some(Modifier::Hi);
                let saturate = words.take(Modifier::Sat);
                let mut from = vec![a, b];
                if opcode == Opcode::Mad24 {
                    from.push(self.operand(frame, operands, 3, ty)?);
                }
                Ok(self.lanewise(to, &from, move |[a, b, c, _]| {
                    let sum = integers.value(integers.mul24(a, b, high)) + integers.value(c);
                    if saturate { integers.clamp(sum) } else { integers.wrap(sum) }
                }))
            }
        }
    }

    fn dot_product(
        &mut self,
        frame: &mut Frame<'m>,
        opcode: Opcode,
        words: &mut Words,
        operands: &[Operand],
    ) -> Result {
        let (first, second) = (words.ty()?, words.ty()?);
        let high = opcode == Opcode::Dp2a && words.take_one(&[Modifier::Lo, Modifier::Hi]) == Some(Modifier::Hi);
        let bits = if opcode == Opcode::Dp2a { 16 } else { 8 };
        let part = IntegerFormat { bits, signed: first == Type::S32 };
        let signed = second == Type::S32;
        let (to, [a, b]) = self.two(frame, operands, Type::B32)?;
        let c = self.operand(frame, operands, 3, Type::B32)?;
        let (d, rows) = (to.word()?, [a.word()?, b.word()?, c.word()?]);
        let from = if high { 2 } else { 0 };
        let body = ternary(d, rows, move |a: u32, b: u32, c: u32| dot(a, part, b, signed, from, c));
        Ok(self.compute(to, &[a, b, c], body))
    }

    /// Decodes a sum or difference that takes or gives the carry. A difference is the adder's sum
    /// of `a`, `!b` and the carry, so that a carry of 1 means no borrow.
    fn carried(&mut self, to: OperandLocation, [a, b]: [OperandLocation; 2], ty: Type, carry: Carry) -> Result {
        let bits = ty.bits();
        Ok(self.with_carry(to, &[a, b], carry, move |[a, b, _], given| {
            let mask = u64::MAX >> (64 - bits);
            let b = if carry.subtract { !b & mask } else { b };
            let sum = u128::from(a) + u128::from(b) + u128::from(given);
            (sum as u64 & mask, sum >> bits != 0)
        }))
    }

    /// Decodes half of a product plus an addend, which reads or writes the carry.
    fn carried_product(
        &mut self,
        to: OperandLocation,
        from: &[OperandLocation],
        ty: Type,
        part: Modifier,
        carry: Carry,
    ) -> Result {
        let Some(integers) = integer(ty) else { return Err(format!("it does not support .{ty}")) };
        Ok(self.with_carry(to, from, carry, move |[a, b, c], given| {
            let half = match part {
                Modifier::Hi => integers.mul_hi(a, b),
                _ => a.wrapping_mul(b) & integers.mask(),
            };
            let sum = u128::from(half) + u128::from(c) + u128::from(given);
            ((sum & u128::from(integers.mask())) as u64, sum >> integers.bits != 0)
        }))
    }

    fn with_carry(
        &mut self,
        to: OperandLocation,
        from: &[OperandLocation],
        carry: Carry,
        f: impl Fn([u64; 3], bool) -> (u64, bool) + Send + Sync + 'static,
    ) -> Decoded {
        self.code.has_carry = true;
        let places: SmallVec<[RegisterPlace; 4]> = from.iter().map(|s| s.place).collect();
        let body: Body = Box::new(move |registers: &mut Registers, mask| {
            for lane in lanes(mask) {
                let mut x = [0; 3];
                for (x, place) in x.iter_mut().zip(&places) {
                    *x = registers.get(*place, lane);
                }
                let given = if carry.takes { registers.carry >> lane & 1 == 1 } else { carry.subtract };
                let (value, out) = f(x, given);
                registers.set(to.place, lane, value);
                if carry.gives {
                    registers.carry = registers.carry & !(1 << lane) | u32::from(out) << lane;
                }
            }
            0
        });
        self.compute(to, from, body)
    }
}

/// The use of the carry by an instruction.
#[derive(Clone, Copy)]
struct Carry {
    subtract: bool,
    takes: bool,
    gives: bool,
}

/// Returns a fast path for products of whole rows.
fn fast_product(
    to: OperandLocation,
    from: &[OperandLocation],
    ty: Type,
    part: Modifier,
    saturate: bool,
) -> Option<Body> {
    if saturate {
        return None;
    }
    let word = |i: usize| from.get(i).and_then(|s| s.word().ok());
    let wide = |i: usize| from.get(i).and_then(|s| s.wide().ok());
    let d = match to.place {
        RegisterPlace::Word(d) | RegisterPlace::Wide(d) => d,
        RegisterPlace::Predicate(_) => return None,
    };
    Some(match (part, ty, from.len()) {
        (Modifier::Lo, Type::U32 | Type::S32, 2) => binary(d, [word(0)?, word(1)?], u32::wrapping_mul),
        (Modifier::Lo, Type::U32 | Type::S32, 3) => {
            ternary(d, [word(0)?, word(1)?, word(2)?], |a: u32, b: u32, c: u32| a.wrapping_mul(b).wrapping_add(c))
        }
        (Modifier::Lo, Type::U64 | Type::S64, 2) => binary(d, [wide(0)?, wide(1)?], u64::wrapping_mul),
        (Modifier::Wide, Type::U32, 2) => binary(d, [word(0)?, word(1)?], |a: u32, b: u32| u64::from(a) * u64::from(b)),
        (Modifier::Wide, Type::S32, 2) => {
            binary(d, [word(0)?, word(1)?], |a: u32, b: u32| (i64::from(a as i32) * i64::from(b as i32)) as u64)
        }
        (Modifier::Wide, Type::U32, 3) => ternary(d, [word(0)?, word(1)?, wide(2)?], |a: u32, b: u32, c: u64| {
            (u64::from(a) * u64::from(b)).wrapping_add(c)
        }),
        (Modifier::Wide, Type::S32, 3) => ternary(d, [word(0)?, word(1)?, wide(2)?], |a: u32, b: u32, c: u64| {
            ((i64::from(a as i32) * i64::from(b as i32)) as u64).wrapping_add(c)
        }),
        _ => return None,
    })
}
