//! Arithmetic on floats.

use super::super::arithmetic::approximate::{self, DIVISION_BOUND};
use super::super::arithmetic::float::{F16, F32, F64, FloatFormat, Rounding, RoundingMode};
use super::super::arithmetic::native;
use super::super::body::{binary, put_predicate, ternary, unary};
use super::super::code::{Body, DefinednessRule, InstructionKind};
use super::super::registers::{RegisterPlace, Registers, lanes};
use super::operand::OperandLocation;
use super::words::Words;
use super::{Decoded, Decoder, Frame, Result};
use kernel_dsl_compiler::Approximation;
use kernel_dsl_compiler::ptx::{Modifier, Opcode, Operand, Type};
use smallvec::{SmallVec, smallvec};

/// The mode of floating-point arithmetic.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct FloatMode {
    /// The format of an element.
    pub format: FloatFormat,
    /// Whether a register contains two elements.
    pub pair: bool,
    pub rounding: Rounding,
    pub ftz: bool,
    pub saturate: bool,
}

impl FloatMode {
    /// Reads the mode from a type and the remaining modifiers.
    pub fn take(ty: Type, words: &mut Words) -> Result<FloatMode> {
        let (format, pair) = match ty {
            Type::F16 => (F16, false),
            Type::F16x2 => (F16, true),
            Type::F32 => (F32, false),
            Type::F64 => (F64, false),
            _ => return Err(format!("the interpreter has no arithmetic of .{ty}")),
        };
        // Without a rounding, an instruction rounds to nearest and may be contracted, but is not
        // contracted here.
        let rounding = words.rounding().unwrap_or(Rounding::Nearest);
        Ok(FloatMode { format, pair, rounding, ftz: words.take(Modifier::Ftz), saturate: words.take(Modifier::Sat) })
    }

    /// Returns the rounding of results.
    fn rounding_mode(self) -> RoundingMode {
        RoundingMode { rounding: self.rounding, flush: self.ftz }
    }

    /// Applies `f` to each element of the operands.
    pub fn apply(self, operands: [u64; 4], f: impl Fn(FloatFormat, [u64; 4], RoundingMode) -> u64) -> u64 {
        let one = |operands: [u64; 4]| {
            let flush = |x| if self.ftz { self.format.flush(x) } else { x };
            let result = f(self.format, operands.map(flush), self.rounding_mode());
            if self.saturate { self.format.saturate(result) } else { result }
        };
        match self.pair {
            false => one(operands),
            true => one(operands.map(|x| x & 0xffff)) | one(operands.map(|x| x >> 16 & 0xffff)) << 16,
        }
    }

    /// Returns whether the processor computes the result directly.
    fn is_plain(self) -> bool {
        self.rounding == Rounding::Nearest && !self.ftz && !self.saturate && !self.pair
    }

    /// Returns whether the processor computes the result directly, except for flushing and
    /// saturation.
    fn is_near(self) -> bool {
        self.rounding == Rounding::Nearest && self.format == F32
    }
}

/// Returns a product that the processor rounded, or `exact` where flushing depends on the exact
/// product. If the processor's result is the smallest normal number, the exact product may have
/// been smaller, so that the hardware flushes it. A sum in this range is exact.
#[inline(always)]
fn least_normal_or(x: u32, mode: FloatMode, exact: impl Fn() -> u64) -> u32 {
    if mode.ftz && x << 1 == 1 << 24 { exact() as u32 } else { x }
}

/// Flushes and saturates a result.
fn finish(mode: FloatMode, x: u32) -> u32 {
    let x = if mode.ftz { native::flush32(x) } else { x };
    if mode.saturate { native::saturate32(x) } else { x }
}

/// The opcodes that [`Decoder::float`] decodes.
pub(super) const OPCODES: &[Opcode] = {
    use Opcode::*;
    &[Fma, Rcp, Sqrt, Rsqrt, Sin, Cos, Ex2, Lg2, Tanh, Copysign, Testp]
};

impl<'m> Decoder<'m> {
    /// Decodes `add`, `sub`, `mul`, `mad`, `div`, `min`, `max`, `neg` and `abs` of floats.
    pub(super) fn float_arithmetic(
        &mut self,
        frame: &mut Frame<'m>,
        opcode: Opcode,
        words: &mut Words,
        ty: Type,
        operands: &[Operand],
    ) -> Result {
        let to = self.to(frame, operands, 0)?;
        let mut from = SmallVec::<[OperandLocation; 4]>::new();
        for index in 1..operands.len() {
            from.push(self.operand(frame, operands, index, ty)?);
        }
        if opcode == Opcode::Div
            && let Some(kind) = words.take_one(&[Modifier::Approx, Modifier::Full])
        {
            self.code.bounds.insert(self.site, DIVISION_BOUND);
            let mode = FloatMode::take(ty, words)?;
            let divide = if kind == Modifier::Full { FloatFormat::div } else { approximate::divide };
            return Ok(
                self.lanewise(to, &from, move |x| mode.apply(x, |format, [a, b, ..], how| divide(format, a, b, how)))
            );
        }
        let keeps_nan = words.take(Modifier::PropagateNan);
        let mode = FloatMode::take(ty, words)?;
        if !keeps_nan && let Some(body) = fast(opcode, mode, to, &from) {
            return Ok(self.compute(to, &from, body));
        }
        let f = move |format: FloatFormat, [a, b, c, _]: [u64; 4], how: RoundingMode| match opcode {
            Opcode::Add => format.add(a, b, how),
            Opcode::Sub => format.sub(a, b, how),
            Opcode::Mul => format.mul(a, b, how),
            Opcode::Mad => format.fma(a, b, c, how),
            Opcode::Div => format.div(a, b, how),
            Opcode::Min | Opcode::Max if keeps_nan && (format.is_nan(a) || format.is_nan(b)) => format.nan_of([a, b]),
            Opcode::Min => format.min(a, b),
            Opcode::Max => format.max(a, b),
            _ if format.is_nan(a) => format.nan_of([a]),
            Opcode::Neg => a ^ format.sign(),
            _ => a & !format.sign(),
        };
        Ok(self.lanewise(to, &from, move |x| mode.apply(x, f)))
    }

    /// Decodes `fma`, `rcp`, `sqrt`, the approximations, `copysign` and `testp`.
    pub(super) fn float(
        &mut self,
        frame: &mut Frame<'m>,
        opcode: Opcode,
        words: &mut Words,
        operands: &[Operand],
    ) -> Result {
        let test = (opcode == Opcode::Testp).then(|| words.take_one(&TESTS)).flatten();
        let ty = words.ty()?;
        if opcode == Opcode::Fma {
            return self.float_arithmetic(frame, Opcode::Mad, words, ty, operands);
        }
        let to = self.to(frame, operands, 0)?;
        let from = self.operand(frame, operands, 1, ty)?;
        match opcode {
            Opcode::Testp => return self.test(to, from, ty, test),
            Opcode::Copysign => {
                let magnitude = self.operand(frame, operands, 2, ty)?;
                let sign = 1 << (ty.bits() - 1);
                return Ok(self.lanewise(to, &[from, magnitude], move |[a, b, ..]| a & sign | b & !sign));
            }
            _ => {}
        }
        if words.take(Modifier::Approx) {
            return self.approximate(opcode, words, ty, to, from);
        }
        let mode = FloatMode::take(ty, words)?;
        match opcode {
            Opcode::Sqrt if mode.is_plain() && ty == Type::F32 => {
                Ok(self.compute(to, &[from], unary(to.word()?, from.word()?, native::sqrt32)))
            }
            Opcode::Sqrt if mode.is_plain() && ty == Type::F64 => {
                Ok(self.compute(to, &[from], unary(to.wide()?, from.wide()?, native::sqrt64)))
            }
            Opcode::Sqrt => {
                Ok(self.lanewise(to, &[from], move |x| mode.apply(x, |format, [a, ..], how| format.sqrt(a, how))))
            }
            Opcode::Rcp => Ok(self.lanewise(to, &[from], move |x| {
                mode.apply(x, |format, [a, ..], how| format.div(format.one(), a, how))
            })),
            _ => Err(format!("there is no exact `{opcode}`")),
        }
    }

    fn approximate(
        &mut self,
        opcode: Opcode,
        words: &mut Words,
        ty: Type,
        to: OperandLocation,
        from: OperandLocation,
    ) -> Result {
        let Some(what) = Approximation::of(opcode) else {
            return Err(format!("there is no approximate `{opcode}`"));
        };
        let half = matches!(ty, Type::F16 | Type::F16x2);
        let bound = if half { approximate::half_bound(what) } else { what.bound() };
        self.code.bounds.insert(self.site, bound);
        let ftz = words.take(Modifier::Ftz);
        match ty {
            Type::F32 => Ok(self.lanewise(to, &[from], move |[a, ..]| {
                let flush = |x: u32| if ftz { native::flush32(x) } else { x };
                flush(approximate::single(what, flush(a as u32))).into()
            })),
            Type::F64 if ftz => Ok(self.lanewise(to, &[from], move |[a, ..]| approximate::upper_half(what, a))),
            Type::F64 => Ok(self.lanewise(to, &[from], move |[a, ..]| approximate::double(what, a))),
            Type::F16 => Ok(self.lanewise(to, &[from], move |[a, ..]| approximate::half(what, a))),
            Type::F16x2 => Ok(self.lanewise(to, &[from], move |[a, ..]| {
                approximate::half(what, a & 0xffff) | approximate::half(what, a >> 16 & 0xffff) << 16
            })),
            _ => Err(format!("the interpreter has no approximations in .{ty}")),
        }
    }

    fn test(
        &mut self,
        to: OperandLocation,
        from: OperandLocation,
        ty: Type,
        test: Option<Modifier>,
    ) -> Result<Decoded> {
        let format = if ty == Type::F64 { F64 } else { F32 };
        let Some(test) = test else { return Err("it has no property to test".to_string()) };
        let p = to.predicate()?;
        let body: Body = Box::new(move |registers: &mut Registers, mask| {
            let mut holds = 0;
            for lane in lanes(mask) {
                let bits = registers.get(from.place, lane);
                let magnitude = bits & (format.sign() - 1);
                let is = match test {
                    Modifier::Finite => magnitude < format.infinity(),
                    Modifier::Infinite => magnitude == format.infinity(),
                    Modifier::Number => !format.is_nan(bits),
                    Modifier::NotANumber => format.is_nan(bits),
                    Modifier::Subnormal => format.is_subnormal(bits),
                    // The manual counts zeros as normal.
                    _ => magnitude < format.infinity() && !format.is_subnormal(bits),
                };
                holds |= u32::from(is) << lane;
            }
            put_predicate(registers, Some(p), mask, holds);
            0
        });
        let kind = InstructionKind::Compute { body, follows: DefinednessRule::All, reason: "" };
        Ok(Decoded { kind, reads: smallvec![from.id], writes: smallvec![to.id] })
    }
}

const TESTS: [Modifier; 6] = [
    Modifier::Finite,
    Modifier::Infinite,
    Modifier::Number,
    Modifier::NotANumber,
    Modifier::Normal,
    Modifier::Subnormal,
];

/// Returns a fast path that the processor computes directly.
fn fast(opcode: Opcode, mode: FloatMode, to: OperandLocation, from: &[OperandLocation]) -> Option<Body> {
    if mode.pair {
        return None;
    }
    let row = |s: &OperandLocation| match s.place {
        RegisterPlace::Word(row) | RegisterPlace::Wide(row) => Some(row),
        RegisterPlace::Predicate(_) => None,
    };
    let d = row(&to)?;
    let two = || Some([row(from.first()?)?, row(from.get(1)?)?]);
    let three = || Some([row(from.first()?)?, row(from.get(1)?)?, row(from.get(2)?)?]);
    if mode.format == F32 && mode.is_plain() {
        return Some(match opcode {
            Opcode::Add => binary(d, two()?, native::add32),
            Opcode::Sub => binary(d, two()?, native::sub32),
            Opcode::Mul => binary(d, two()?, native::mul32),
            Opcode::Div => binary(d, two()?, native::div32),
            Opcode::Mad => ternary(d, three()?, native::fma32),
            Opcode::Neg => {
                unary(
                    d,
                    row(from.first()?)?,
                    |a: u32| if F32.is_nan(a.into()) { F32.nan() as u32 } else { a ^ 1 << 31 },
                )
            }
            Opcode::Abs => {
                unary(
                    d,
                    row(from.first()?)?,
                    |a: u32| if F32.is_nan(a.into()) { F32.nan() as u32 } else { a & !(1 << 31) },
                )
            }
            Opcode::Min => binary(d, two()?, |a: u32, b: u32| F32.min(a.into(), b.into()) as u32),
            Opcode::Max => binary(d, two()?, |a: u32, b: u32| F32.max(a.into(), b.into()) as u32),
            _ => return None,
        });
    }
    if mode.format == F64 && mode.is_plain() {
        return Some(match opcode {
            Opcode::Add => binary(d, two()?, native::add64),
            Opcode::Sub => binary(d, two()?, native::sub64),
            Opcode::Mul => binary(d, two()?, native::mul64),
            Opcode::Div => binary(d, two()?, native::div64),
            Opcode::Mad => ternary(d, three()?, native::fma64),
            _ => return None,
        });
    }
    if !mode.is_near() {
        return None;
    }
    // Operands are flushed before host arithmetic, and the result is flushed or saturated after it.
    let flush = move |x: u32| if mode.ftz { native::flush32(x) } else { x };
    Some(match opcode {
        Opcode::Add => binary(d, two()?, move |a: u32, b: u32| finish(mode, native::add32(flush(a), flush(b)))),
        Opcode::Sub => binary(d, two()?, move |a: u32, b: u32| finish(mode, native::sub32(flush(a), flush(b)))),
        Opcode::Mul => binary(d, two()?, move |a: u32, b: u32| {
            let (a, b) = (flush(a), flush(b));
            let exact = || F32.mul(a.into(), b.into(), mode.rounding_mode());
            finish(mode, least_normal_or(native::mul32(a, b), mode, exact))
        }),
        Opcode::Mad => ternary(d, three()?, move |a: u32, b: u32, c: u32| {
            let (a, b, c) = (flush(a), flush(b), flush(c));
            let exact = || F32.fma(a.into(), b.into(), c.into(), mode.rounding_mode());
            finish(mode, least_normal_or(native::fma32(a, b, c), mode, exact))
        }),
        _ => return None,
    })
}
