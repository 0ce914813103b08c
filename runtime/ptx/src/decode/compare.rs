//! Comparisons and selections.

use super::super::arithmetic::float::{F16, F32, F64, FloatFormat};
use super::super::arithmetic::native::flush32;
use super::super::body::{Join, Logic, comparison, put_predicate};
use super::super::code::{Body, DefinednessRule, InstructionKind};
use super::super::registers::{RegisterPlace, RegisterScalar, Registers, lanes};
use super::super::rows::write;
use super::operand::OperandLocation;
use super::words::{Words, integer};
use super::{Decoded, Decoder, Frame, Result};
use kernel_dsl_compiler::ptx::words::TypeClass;
use kernel_dsl_compiler::ptx::{Modifier, Opcode, Operand, Type};
use smallvec::{SmallVec, smallvec};
use std::cmp::Ordering;

/// The condition of a comparison.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct ComparisonCondition {
    less: bool,
    equal: bool,
    greater: bool,
    /// The result if an operand is NaN.
    unordered: bool,
}

impl ComparisonCondition {
    fn of(modifier: Modifier) -> Option<ComparisonCondition> {
        let q = |less, equal, greater, unordered| Some(ComparisonCondition { less, equal, greater, unordered });
        match modifier {
            Modifier::Eq => q(false, true, false, false),
            Modifier::Ne => q(true, false, true, false),
            Modifier::Lt | Modifier::Lo => q(true, false, false, false),
            Modifier::Le | Modifier::Ls => q(true, true, false, false),
            Modifier::Gt | Modifier::Hi => q(false, false, true, false),
            Modifier::Ge | Modifier::Hs => q(false, true, true, false),
            Modifier::Equ => q(false, true, false, true),
            Modifier::Neu => q(true, false, true, true),
            Modifier::Ltu => q(true, false, false, true),
            Modifier::Leu => q(true, true, false, true),
            Modifier::Gtu => q(false, false, true, true),
            Modifier::Geu => q(false, true, true, true),
            Modifier::Num => q(true, true, true, false),
            Modifier::Nan => q(false, false, false, true),
            _ => None,
        }
    }

    #[inline(always)]
    fn answer(self, order: Option<Ordering>) -> bool {
        match order {
            None => self.unordered,
            Some(Ordering::Less) => self.less,
            Some(Ordering::Equal) => self.equal,
            Some(Ordering::Greater) => self.greater,
        }
    }

    /// Returns the result for an order, without branches.
    #[inline(always)]
    fn of_order(self, less: bool, equal: bool, greater: bool) -> bool {
        (self.less & less)
            | (self.equal & equal)
            | (self.greater & greater)
            | (self.unordered & !(less | equal | greater))
    }
}

/// The comparison of `set` and `setp`.
struct SetComparison {
    question: ComparisonCondition,
    join: Join,
    joined: Option<OperandLocation>,
    ftz: bool,
    ty: Type,
    a: OperandLocation,
    b: OperandLocation,
}

impl SetComparison {
    fn reads(&self) -> SmallVec<[u32; 4]> {
        [Some(self.a), Some(self.b), self.joined].into_iter().flatten().map(|s| s.id).collect()
    }

    /// Returns the function that compares two values of the type.
    fn order(ty: Type, ftz: bool) -> impl Fn(u64, u64) -> Option<Ordering> + Copy + Send + Sync + 'static {
        let format = format(ty);
        let integers = integer(ty);
        move |a, b| match (format, integers) {
            (Some(format), _) => {
                let flush = |x| if ftz { format.flush(x) } else { x };
                format.compare(flush(a), flush(b))
            }
            (None, Some(integers)) => Some(integers.value(a).cmp(&integers.value(b))),
            (None, None) => None,
        }
    }
}

fn format(ty: Type) -> Option<FloatFormat> {
    match ty {
        Type::F16 => Some(F16),
        Type::F32 => Some(F32),
        Type::F64 => Some(F64),
        _ => None,
    }
}

/// The opcodes that [`Decoder::comparison`] decodes.
pub(super) const OPCODES: &[Opcode] = {
    use Opcode::*;
    &[Setp, Set, Selp, Slct]
};

impl<'m> Decoder<'m> {
    pub(super) fn comparison(
        &mut self,
        frame: &mut Frame<'m>,
        opcode: Opcode,
        words: &mut Words,
        operands: &[Operand],
    ) -> Result {
        match opcode {
            Opcode::Selp => self.select(frame, words, operands),
            Opcode::Slct => self.select_by_sign(frame, words, operands),
            Opcode::Setp => {
                let comparison = self.compared(frame, words, operands)?;
                if comparison.ty == Type::F16x2 {
                    return self.set_pair(frame, comparison, operands);
                }
                let [p, q] = self.destinations(frame, operands, "predicate")?;
                set_predicates(comparison, p, q)
            }
            _ => {
                let result = words.take_as(|m| m.ty().filter(|ty| ty.class() != TypeClass::Predicate));
                let Some(result) = result else { return Err("it has no type".to_string()) };
                let comparison = self.compared(frame, words, operands)?;
                let to = self.to(frame, operands, 0)?;
                self.set(comparison, to, result)
            }
        }
    }

    /// Decodes the modifiers and operands of a comparison.
    fn compared(&mut self, frame: &mut Frame<'m>, words: &mut Words, operands: &[Operand]) -> Result<SetComparison> {
        let Some(question) = words.take_as(ComparisonCondition::of) else {
            return Err("it has no comparison operator".to_string());
        };
        let operation = words.take_as(|m| match m {
            Modifier::And => Some(Logic::And),
            Modifier::Or => Some(Logic::Or),
            Modifier::Xor => Some(Logic::Xor),
            _ => None,
        });
        let ftz = words.take(Modifier::Ftz);
        let ty = words.ty()?;
        let (a, b) = (self.operand(frame, operands, 1, ty)?, self.operand(frame, operands, 2, ty)?);
        let (join, joined) = match operation {
            None => (Join::None, None),
            Some(operation) => {
                let condition = self.predicate(frame, operands.get(3))?;
                let place = RegisterPlace::Predicate(condition.predicate);
                let joined = OperandLocation { place, id: condition.id, bits: 1 };
                let (predicate, negated) = (condition.predicate, condition.negated);
                (Join::With { operation, predicate, negated }, Some(joined))
            }
        };
        Ok(SetComparison { question, join, joined, ftz, ty, a, b })
    }

    /// Decodes `setp` of two halves, with a predicate for each.
    fn set_pair(&mut self, frame: &mut Frame<'m>, c: SetComparison, operands: &[Operand]) -> Result {
        let [p, q] = self.destinations(frame, operands, "predicate")?;
        let order = SetComparison::order(Type::F16, c.ftz);
        let (a, b, question, join) = (c.a.place, c.b.place, c.question, c.join);
        let indices = [p, q].map(|s| s.and_then(|s| s.predicate().ok()));
        let body: Body = Box::new(move |registers: &mut Registers, mask| {
            for (half, to) in indices.into_iter().enumerate() {
                let mut holds = 0;
                for lane in lanes(mask) {
                    let part = |place| registers.get(place, lane) >> (16 * half) & 0xffff;
                    holds |= u32::from(question.answer(order(part(a), part(b)))) << lane;
                }
                let holds = join.of(holds, registers);
                put_predicate(registers, to, mask, holds);
            }
            0
        });
        let kind = InstructionKind::Compute { body, follows: DefinednessRule::All, reason: "" };
        Ok(Decoded { kind, reads: c.reads(), writes: [p, q].iter().flatten().map(|s| s.id).collect() })
    }

    /// Decodes `set`, which gives a Boolean as a number.
    fn set(&mut self, c: SetComparison, to: OperandLocation, result: Type) -> Result {
        let (order, question, join) = (SetComparison::order(part_type(c.ty), c.ftz), c.question, c.join);
        let (a, b, d) = (c.a.place, c.b.place, to.place);
        let pair = c.ty == Type::F16x2;
        let bits = if pair && result != Type::F16x2 { 16 } else { result.bits() };
        let truth = match result {
            Type::F16 => F16.one(),
            Type::F16x2 => F16.one(),
            Type::F32 => F32.one(),
            _ => u64::MAX >> (64 - bits),
        };
        let body: Body = Box::new(move |registers: &mut Registers, mask| {
            for lane in lanes(mask) {
                let mut value = 0;
                for half in 0..if pair { 2 } else { 1 } {
                    let part = |place| {
                        let whole = registers.get(place, lane);
                        if pair { whole >> (16 * half) & 0xffff } else { whole }
                    };
                    let holds = u32::from(question.answer(order(part(a), part(b)))) << lane;
                    if join.of(holds, registers) >> lane & 1 == 1 {
                        value |= truth << (16 * half);
                    }
                }
                registers.set(d, lane, value);
            }
            0
        });
        let kind = InstructionKind::Compute { body, follows: DefinednessRule::All, reason: "" };
        Ok(Decoded { kind, reads: c.reads(), writes: smallvec![to.id] })
    }

    fn select(&mut self, frame: &mut Frame<'m>, words: &mut Words, operands: &[Operand]) -> Result {
        let ty = words.ty()?;
        let to = self.to(frame, operands, 0)?;
        let (yes, no) = (self.operand(frame, operands, 1, ty)?, self.operand(frame, operands, 2, ty)?);
        let condition = self.operand(frame, operands, 3, Type::Pred)?;
        let predicate = condition.predicate()?;
        let body: Body = match (to.place, yes.place, no.place) {
            (RegisterPlace::Word(d), RegisterPlace::Word(a), RegisterPlace::Word(b)) => {
                choose::<u32>(d, a, b, predicate)
            }
            (RegisterPlace::Wide(d), RegisterPlace::Wide(a), RegisterPlace::Wide(b)) => {
                choose::<u64>(d, a, b, predicate)
            }
            _ => return Err("its operands have different widths".to_string()),
        };
        let follows = DefinednessRule::Chosen { yes: yes.id, no: no.id, condition: condition.id, predicate };
        let kind = InstructionKind::Compute { body, follows, reason: "" };
        Ok(Decoded { kind, reads: smallvec![yes.id, no.id, condition.id], writes: smallvec![to.id] })
    }

    /// Decodes `slct`: a where c is not negative.
    fn select_by_sign(&mut self, frame: &mut Frame<'m>, words: &mut Words, operands: &[Operand]) -> Result {
        let ftz = words.take(Modifier::Ftz);
        let (ty, sign) = (words.ty()?, words.ty()?);
        let to = self.to(frame, operands, 0)?;
        let (a, b) = (self.operand(frame, operands, 1, ty)?, self.operand(frame, operands, 2, ty)?);
        let c = self.operand(frame, operands, 3, sign)?;
        Ok(self.lanewise(to, &[a, b, c], move |[a, b, c, _]| {
            let first = match sign {
                Type::F32 => {
                    let c = if ftz { flush32(c as u32).into() } else { c };
                    F32.compare(c, 0).is_some_and(Ordering::is_ge)
                }
                _ => (c as i32) >= 0,
            };
            if first { a } else { b }
        }))
    }
}

fn part_type(ty: Type) -> Type {
    if ty == Type::F16x2 { Type::F16 } else { ty }
}

fn set_predicates(c: SetComparison, p: Option<OperandLocation>, q: Option<OperandLocation>) -> Result {
    let to = [p, q].map(|s| s.and_then(|s| s.predicate().ok()));
    let (question, join) = (c.question, c.join);
    // Integers are never unordered, so that `ne` is `neu`.
    let whole = ComparisonCondition { unordered: question.less && question.greater, ..question };
    let body = match (c.ty, c.a.place, c.b.place) {
        (Type::U32 | Type::B32, RegisterPlace::Word(a), RegisterPlace::Word(b)) => {
            compare(to, [a, b], join, whole, |a: u32| a)
        }
        (Type::S32, RegisterPlace::Word(a), RegisterPlace::Word(b)) => {
            compare(to, [a, b], join, whole, |a: u32| a as i32)
        }
        (Type::U64 | Type::B64, RegisterPlace::Wide(a), RegisterPlace::Wide(b)) => {
            compare(to, [a, b], join, whole, |a: u64| a)
        }
        (Type::S64, RegisterPlace::Wide(a), RegisterPlace::Wide(b)) => {
            compare(to, [a, b], join, whole, |a: u64| a as i64)
        }
        (Type::F32, RegisterPlace::Word(a), RegisterPlace::Word(b)) if !c.ftz => {
            compare(to, [a, b], join, question, f32::from_bits)
        }
        (Type::F64, RegisterPlace::Wide(a), RegisterPlace::Wide(b)) => {
            compare(to, [a, b], join, question, f64::from_bits)
        }
        (ty, a, b) => {
            let order = SetComparison::order(ty, c.ftz);
            let each: Body = Box::new(move |registers: &mut Registers, mask| {
                let mut holds = 0;
                for lane in lanes(mask) {
                    let answer = question.answer(order(registers.get(a, lane), registers.get(b, lane)));
                    holds |= u32::from(answer) << lane;
                }
                let (yes, no) = (join.of(holds, registers), join.of(!holds, registers));
                put_predicate(registers, to[0], mask, yes);
                put_predicate(registers, to[1], mask, no);
                0
            });
            each
        }
    };
    let kind = InstructionKind::Compute { body, follows: DefinednessRule::All, reason: "" };
    Ok(Decoded { kind, reads: c.reads(), writes: [p, q].iter().flatten().map(|s| s.id).collect() })
}

/// Returns the body of a comparison of two rows, whose lanes have the values that `value` gives.
fn compare<L: RegisterScalar, T: PartialOrd>(
    to: [Option<u32>; 2],
    rows: [u32; 2],
    join: Join,
    question: ComparisonCondition,
    value: impl Fn(L) -> T + Send + Sync + 'static,
) -> Body {
    let ComparisonCondition { less, equal, greater, unordered } = question;
    match (less, equal, greater, unordered) {
        (true, false, false, false) => comparison(to, rows, join, move |a, b| value(a) < value(b)),
        (true, true, false, false) => comparison(to, rows, join, move |a, b| value(a) <= value(b)),
        (false, false, true, false) => comparison(to, rows, join, move |a, b| value(a) > value(b)),
        (false, true, true, false) => comparison(to, rows, join, move |a, b| value(a) >= value(b)),
        (false, true, false, false) => comparison(to, rows, join, move |a, b| value(a) == value(b)),
        (true, false, true, true) => comparison(to, rows, join, move |a, b| value(a) != value(b)),
        _ => comparison(to, rows, join, move |a, b| {
            let (a, b) = (value(a), value(b));
            question.of_order(a < b, a == b, a > b)
        }),
    }
}

/// Returns a selection of a or b by a predicate.
fn choose<L: RegisterScalar>(d: u32, a: u32, b: u32, predicate: u32) -> Body {
    Box::new(move |registers: &mut Registers, mask| {
        let chosen = registers.predicates[predicate as usize];
        write(
            registers,
            mask,
            d,
            [a, b, a],
            |lane, yes: L, no: L, _: L| if chosen & 1 << lane == 0 { no } else { yes },
        );
        0
    })
}
