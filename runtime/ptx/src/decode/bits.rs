//! Logic, shifts, bit fields and searches.

use super::super::arithmetic::bits::{
    Permutation, extended, find_nth, funnel_left, funnel_right, logic, ones, permute,
};
use super::super::arithmetic::integer::IntegerFormat;
use super::super::body::{Logic, binary, lanewise, ternary, unary};
use super::super::code::{Body, DefinednessRule, InstructionKind};
use super::super::registers::{RegisterPlace, Registers};
use super::super::unspecified::Unspecified;
use super::operand::OperandLocation;
use super::words::{Words, integer};
use super::{Decoded, Decoder, Frame, Result};
use kernel_dsl_compiler::ptx::{Modifier, Opcode, Operand, Type};
use smallvec::smallvec;

/// The opcodes that [`Decoder::bits`] decodes.
pub(super) const OPCODES: &[Opcode] = {
    use Opcode::*;
    &[And, Or, Xor, Not, Cnot, Shl, Shr, Shf, Bfe, Bfi, Bfind, Bmsk, Brev, Clz, Popc, Prmt, Lop3, Fns, Szext]
};

impl<'m> Decoder<'m> {
    pub(super) fn bits(
        &mut self,
        frame: &mut Frame<'m>,
        opcode: Opcode,
        words: &mut Words,
        operands: &[Operand],
    ) -> Result {
        match opcode {
            Opcode::And | Opcode::Or | Opcode::Xor => self.logic(frame, opcode, words, operands),
            Opcode::Not | Opcode::Cnot => self.complement(frame, opcode, words, operands),
            Opcode::Shl | Opcode::Shr => self.shift(frame, opcode, words, operands),
            Opcode::Bfind | Opcode::Brev | Opcode::Clz | Opcode::Popc => self.search(frame, opcode, words, operands),
            Opcode::Szext => {
                let wrap = words.take_one(&[Modifier::Wrap, Modifier::Clamp]) == Some(Modifier::Wrap);
                let ty = words.ty()?;
                let to = self.to(frame, operands, 0)?;
                let from = [self.operand(frame, operands, 1, ty)?, self.operand(frame, operands, 2, Type::U32)?];
                let signed = ty == Type::S32;
                Ok(self.lanewise(to, &from, move |[a, n, ..]| extended(a as u32, n as u32, signed, wrap).into()))
            }
            Opcode::Bfe | Opcode::Bfi => self.field(frame, opcode, words, operands),
            _ => self.words32(frame, opcode, words, operands),
        }
    }

    fn logic(&mut self, frame: &mut Frame<'m>, opcode: Opcode, words: &mut Words, operands: &[Operand]) -> Result {
        let ty = words.ty()?;
        let operation = match opcode {
            Opcode::And => Logic::And,
            Opcode::Or => Logic::Or,
            _ => Logic::Xor,
        };
        let to = self.to(frame, operands, 0)?;
        let (a, b) = (self.operand(frame, operands, 1, ty)?, self.operand(frame, operands, 2, ty)?);
        let body: Body = match (to.place, a.place, b.place) {
            (RegisterPlace::Predicate(d), RegisterPlace::Predicate(x), RegisterPlace::Predicate(y)) => {
                return Ok(predicates(operation, (to, d), (a, x), (b, y)));
            }
            (RegisterPlace::Word(d), RegisterPlace::Word(x), RegisterPlace::Word(y)) => match operation {
                Logic::And => binary(d, [x, y], |a: u32, b: u32| a & b),
                Logic::Or => binary(d, [x, y], |a: u32, b: u32| a | b),
                Logic::Xor => binary(d, [x, y], |a: u32, b: u32| a ^ b),
            },
            (RegisterPlace::Wide(d), RegisterPlace::Wide(x), RegisterPlace::Wide(y)) => match operation {
                Logic::And => binary(d, [x, y], |a: u64, b: u64| a & b),
                Logic::Or => binary(d, [x, y], |a: u64, b: u64| a | b),
                Logic::Xor => binary(d, [x, y], |a: u64, b: u64| a ^ b),
            },
            _ => return Err("its operands have different widths".to_string()),
        };
        let mut decoded = self.compute(to, &[a, b], body);
        // The result of x ^ x is 0 for any x.
        if operation == Logic::Xor
            && a.id == b.id
            && let InstructionKind::Compute { follows, .. } = &mut decoded.kind
        {
            *follows = DefinednessRule::Always;
        }
        Ok(decoded)
    }

    fn complement(&mut self, frame: &mut Frame<'m>, opcode: Opcode, words: &mut Words, operands: &[Operand]) -> Result {
        let ty = words.ty()?;
        let (to, a) = (self.to(frame, operands, 0)?, self.operand(frame, operands, 1, ty)?);
        let mask = u64::MAX >> (64 - ty.bits());
        let body = match (opcode, to.place, a.place) {
            (Opcode::Not, RegisterPlace::Predicate(d), RegisterPlace::Predicate(x)) => {
                Box::new(move |registers: &mut Registers, mask| {
                    let value = !registers.predicates[x as usize];
                    super::super::body::put_predicate(registers, Some(d), mask, value);
                    0
                })
            }
            (Opcode::Not, RegisterPlace::Word(d), RegisterPlace::Word(x)) => {
                let mask = mask as u32;
                unary(d, x, move |a: u32| !a & mask)
            }
            (Opcode::Not, RegisterPlace::Wide(d), RegisterPlace::Wide(x)) => unary(d, x, |a: u64| !a),
            _ => lanewise(to.place, smallvec![a.place], Box::new(move |[a, ..]| (u64::from(a & mask == 0), true))),
        };
        Ok(self.compute(to, &[a], body))
    }

    fn shift(&mut self, frame: &mut Frame<'m>, opcode: Opcode, words: &mut Words, operands: &[Operand]) -> Result {
        let ty = words.ty()?;
        let Some(integers) = integer(ty) else { return Err(format!("it does not support .{ty}")) };
        let to = self.to(frame, operands, 0)?;
        let a = self.operand(frame, operands, 1, ty)?;
        let distance = self.operand(frame, operands, 2, Type::U32)?;
        let left = opcode == Opcode::Shl;
        let body = match (to.place, a.place, distance.place) {
            (RegisterPlace::Word(d), RegisterPlace::Word(x), RegisterPlace::Word(y)) => match (left, integers) {
                (true, IntegerFormat { bits: 32, .. }) => {
                    binary(d, [x, y], |a: u32, n: u32| if n > 31 { 0 } else { a << n })
                }
                (false, IntegerFormat { bits: 32, signed: false }) => {
                    binary(d, [x, y], |a: u32, n: u32| if n > 31 { 0 } else { a >> n })
                }
                (false, IntegerFormat { bits: 32, signed: true }) => {
                    binary(d, [x, y], |a: u32, n: u32| (a as i32 >> n.min(31)) as u32)
                }
                (true, _) => binary(d, [x, y], move |a: u32, n: u32| integers.shl(a.into(), n) as u32),
                (false, _) => binary(d, [x, y], move |a: u32, n: u32| integers.shr(a.into(), n) as u32),
            },
            (RegisterPlace::Wide(d), RegisterPlace::Wide(x), RegisterPlace::Word(y)) => match left {
                true => binary(d, [x, y], move |a: u64, n: u32| integers.shl(a, n)),
                false => binary(d, [x, y], move |a: u64, n: u32| integers.shr(a, n)),
            },
            _ => return Err("its operands have different widths".to_string()),
        };
        Ok(self.compute(to, &[a, distance], body))
    }

    fn search(&mut self, frame: &mut Frame<'m>, opcode: Opcode, words: &mut Words, operands: &[Operand]) -> Result {
        let distance = words.take(Modifier::Shiftamt);
        let ty = words.ty()?;
        let Some(integers) = integer(ty) else { return Err(format!("it does not support .{ty}")) };
        let (to, a) = (self.to(frame, operands, 0)?, self.operand(frame, operands, 1, ty)?);
        let unused = 64 - ty.bits();
        Ok(self.lanewise(to, &[a], move |[a, ..]| match opcode {
            Opcode::Bfind => integers.find(a, distance).into(),
            Opcode::Brev => (a << unused).reverse_bits() & integers.mask(),
            Opcode::Clz => ((a << unused).leading_zeros().min(64 - unused)).into(),
            _ => a.count_ones().into(),
        }))
    }

    fn field(&mut self, frame: &mut Frame<'m>, opcode: Opcode, words: &mut Words, operands: &[Operand]) -> Result {
        let ty = words.ty()?;
        let Some(integers) = integer(ty) else { return Err(format!("it does not support .{ty}")) };
        let to = self.to(frame, operands, 0)?;
        let mut from = vec![self.operand(frame, operands, 1, ty)?];
        let first = if opcode == Opcode::Bfi { 3 } else { 2 };
        if opcode == Opcode::Bfi {
            from.push(self.operand(frame, operands, 2, ty)?);
        }
        from.push(self.operand(frame, operands, first, Type::U32)?);
        from.push(self.operand(frame, operands, first + 1, Type::U32)?);
        let reason = Unspecified::field(ty.bits()).reason();
        let specified = |at: u64, n: u64| at <= 255 && n <= 255;
        Ok(match opcode {
            Opcode::Bfi => self.partial(to, &from, reason, move |[a, b, at, n]| {
                (integers.insert(a, b, at as u32, n as u32), specified(at, n))
            }),
            _ => self.partial(to, &from, reason, move |[a, at, n, _]| {
                (integers.extract(a, at as u32, n as u32), specified(at, n))
            }),
        })
    }

    /// Decodes the operations on 32-bit words only.
    fn words32(&mut self, frame: &mut Frame<'m>, opcode: Opcode, words: &mut Words, operands: &[Operand]) -> Result {
        let left = words.take_one(&[Modifier::L, Modifier::R]) == Some(Modifier::L);
        let wrap = words.take_one(&[Modifier::Wrap, Modifier::Clamp]) == Some(Modifier::Wrap);
        let permutation = words.take_as(|m| match m {
            Modifier::F4e => Some(Permutation::Forward),
            Modifier::B4e => Some(Permutation::Backward),
            Modifier::Rc8 => Some(Permutation::Replicate8),
            Modifier::Ecl => Some(Permutation::EdgeLeft),
            Modifier::Ecr => Some(Permutation::EdgeRight),
            Modifier::Rc16 => Some(Permutation::Replicate16),
            _ => None,
        });
        let mode = permutation.unwrap_or(Permutation::Free);
        let ty = words.ty()?;
        if ty != Type::B32 {
            return Err(format!("it does not support .{ty}"));
        }
        let to = self.to(frame, operands, 0)?;
        let mut from = Vec::new();
        for index in 1..operands.len().min(5) {
            from.push(self.operand(frame, operands, index, Type::B32)?);
        }
        let d = to.word()?;
        let row = |i: usize| from.get(i).ok_or_else(|| "it has too few operands".to_string())?.word();
        let body = match opcode {
            Opcode::Bmsk => binary(d, [row(0)?, row(1)?], move |a: u32, b: u32| ones(a, b, wrap)),
            Opcode::Prmt => {
                ternary(d, [row(0)?, row(1)?, row(2)?], move |a: u32, b: u32, c: u32| permute(a, b, c, mode))
            }
            Opcode::Fns => {
                let reason = Unspecified::Search.reason();
                return Ok(self.partial(to, &from, reason, |[mask, base, offset, _]| {
                    let found = find_nth(mask as u32, base as u32, offset as u32 as i32);
                    (found.into(), base <= 31 && offset != 1 << 31)
                }));
            }
            Opcode::Shf => ternary(d, [row(0)?, row(1)?, row(2)?], move |low: u32, high: u32, n: u32| match left {
                true => funnel_left(low, high, n, wrap),
                false => funnel_right(low, high, n, wrap),
            }),
            _ => {
                let table = match operands.get(4) {
                    Some(Operand::Integer(n)) => *n as u32,
                    Some(Operand::Bits(n)) => *n as u32,
                    _ => return Err("its table is not a constant".to_string()),
                };
                ternary(d, [row(0)?, row(1)?, row(2)?], move |a: u32, b: u32, c: u32| logic(a, b, c, table))
            }
        };
        Ok(self.compute(to, &from, body))
    }
}

/// Returns an operation on predicates.
fn predicates(
    operation: Logic,
    (to, d): (OperandLocation, u32),
    (a, x): (OperandLocation, u32),
    (b, y): (OperandLocation, u32),
) -> Decoded {
    let body: Body = Box::new(move |registers: &mut Registers, mask| {
        let value = operation.of(registers.predicates[x as usize], registers.predicates[y as usize]);
        super::super::body::put_predicate(registers, Some(d), mask, value);
        0
    });
    let follows = match operation {
        Logic::Xor => DefinednessRule::All,
        _ => DefinednessRule::Decided { a: (a.id, x), b: (b.id, y), by: operation == Logic::Or },
    };
    let kind = InstructionKind::Compute { body, follows, reason: "" };
    Decoded { kind, reads: smallvec![a.id, b.id], writes: smallvec![to.id] }
}
