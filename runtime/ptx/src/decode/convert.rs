//! Conversions by `cvt`.

use super::super::arithmetic::convert::{from_integer, to_float, to_integer, to_integral};
use super::super::arithmetic::float::{BF16, F16, F32, F64, FloatFormat, Rounding, RoundingMode};
use super::super::arithmetic::integer::IntegerFormat;
use super::super::body::unary;
use super::super::code::Body;
use super::super::registers::RegisterPlace;
use super::operand::OperandLocation;
use super::words::{Words, integer};
use super::{Decoder, Frame, Result};
use kernel_dsl_compiler::ptx::{Modifier, Operand, Type};

/// One side of a conversion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ConversionSide {
    Integer(IntegerFormat),
    Float(FloatFormat),
}

fn side(ty: Type) -> Result<ConversionSide> {
    match ty {
        // The elements of a pair have the same format as a single half.
        Type::F16 | Type::F16x2 => Ok(ConversionSide::Float(F16)),
        Type::Bf16 => Ok(ConversionSide::Float(BF16)),
        Type::F32 => Ok(ConversionSide::Float(F32)),
        Type::F64 => Ok(ConversionSide::Float(F64)),
        _ => match integer(ty) {
            Some(integers) => Ok(ConversionSide::Integer(integers)),
            None => Err(format!("the interpreter does not convert .{ty}")),
        },
    }
}

/// A conversion with its modifiers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Conversion {
    to: ConversionSide,
    from: ConversionSide,
    rounding: Option<Rounding>,
    /// The rounding to an integral value.
    integral: Option<Rounding>,
    ftz: bool,
    saturate: bool,
    /// Width of the destination register, to which a narrower integer is extended.
    register: u32,
}

impl Conversion {
    fn of(self, bits: u64) -> u64 {
        // The machine's conversion to f16 has no `.FTZ`, so it does not flush subnormal operands.
        let flushes = self.ftz && self.to != ConversionSide::Float(F16);
        // The machine flushes with an arithmetic instruction before the conversion. That
        // instruction replaces every NaN by one pattern.
        let flush = |format: FloatFormat, x: u64| match flushes && format == F32 {
            true if format.is_nan(x) => format.nan(),
            true => format.flush(x),
            false => x,
        };
        let finish = |format: FloatFormat, x: u64| if self.saturate { format.saturate(x) } else { x };
        let rounding = self.rounding.unwrap_or(Rounding::Nearest);
        match (self.to, self.from) {
            (ConversionSide::Integer(to), ConversionSide::Integer(from)) => {
                let value = from.value(bits);
                self.extended(to, if self.saturate { to.clamp(value) } else { to.wrap(value) })
            }
            (ConversionSide::Integer(to), ConversionSide::Float(from)) => {
                let integral = self.integral.unwrap_or(Rounding::Zero);
                self.extended(to, to_integer(from, to, flush(from, bits), integral))
            }
            (ConversionSide::Float(to), ConversionSide::Integer(from)) => {
                finish(to, from_integer(from, to, bits, rounding))
            }
            (ConversionSide::Float(to), ConversionSide::Float(from)) => {
                let bits = flush(from, bits);
                let result = match self.integral {
                    Some(integral) if to == from => to_integral(to, bits, integral),
                    // The machine copies the bits.
                    None if to == F64 && from == F64 => bits,
                    _ => to_float(from, to, bits, RoundingMode { rounding, flush: self.ftz && to == F32 }),
                };
                finish(to, result)
            }
        }
    }

    /// Returns an integer as its register holds it, extended by its own sign.
    fn extended(self, ty: IntegerFormat, bits: u64) -> u64 {
        ty.value(bits) as u64 & u64::MAX >> (64 - self.register)
    }
}

impl<'m> Decoder<'m> {
    pub(super) fn convert(&mut self, frame: &mut Frame<'m>, words: &mut Words, operands: &[Operand]) -> Result {
        let (rounding, integral) = (words.rounding(), words.integral());
        let (ftz, saturate) = (words.take(Modifier::Ftz), words.take(Modifier::Sat));
        let (to_type, from_type) = (words.ty()?, words.ty()?);
        let pair = to_type == Type::F16x2;
        if operands.len() != 2 + usize::from(pair) {
            return Err("it has a wrong number of operands".to_string());
        }
        let to = self.to(frame, operands, 0)?;
        let from = match operands[1] {
            Operand::Special(special) => self.read_special(special)?,
            _ => self.operand(frame, operands, 1, from_type)?,
        };
        let (to_side, from_side) = (side(to_type)?, side(from_type)?);
        if matches!((to_side, from_side), (ConversionSide::Float(_), ConversionSide::Integer(_))) && rounding.is_none()
        {
            return Err("it has no rounding".to_string());
        }
        let conversion =
            Conversion { to: to_side, from: from_side, rounding, integral, ftz, saturate, register: to.bits };
        if pair {
            let low = self.operand(frame, operands, 2, from_type)?;
            return Ok(self.lanewise(to, &[from, low], move |[a, b, ..]| conversion.of(a) << 16 | conversion.of(b)));
        }
        match fast(conversion, (to_type, to), (from_type, from)) {
            Some(body) => Ok(self.compute(to, &[from], body)),
            None => Ok(self.lanewise(to, &[from], move |[a, ..]| conversion.of(a))),
        }
    }
}

/// Returns a fast path for frequent conversions.
fn fast(
    conversion: Conversion,
    (to_type, to): (Type, OperandLocation),
    (from_type, from): (Type, OperandLocation),
) -> Option<Body> {
    let Conversion { rounding, integral, ftz: false, saturate: false, .. } = conversion else { return None };
    Some(match (to_type, from_type, to.place, from.place) {
        (Type::U64 | Type::S64, Type::U32, RegisterPlace::Wide(d), RegisterPlace::Word(a)) => {
            unary(d, a, |x: u32| u64::from(x))
        }
        (Type::U64 | Type::S64, Type::S32, RegisterPlace::Wide(d), RegisterPlace::Word(a)) => {
            unary(d, a, |x: u32| i64::from(x as i32) as u64)
        }
        (Type::U32 | Type::S32, Type::U64 | Type::S64, RegisterPlace::Word(d), RegisterPlace::Wide(a)) => {
            unary(d, a, |x: u64| x as u32)
        }
        (Type::U32, Type::U8, RegisterPlace::Word(d), RegisterPlace::Word(a)) => unary(d, a, |x: u32| x & 0xff),
        (Type::U32, Type::U16, RegisterPlace::Word(d), RegisterPlace::Word(a)) => unary(d, a, |x: u32| x & 0xffff),
        (Type::F32, Type::U32, RegisterPlace::Word(d), RegisterPlace::Word(a))
            if rounding == Some(Rounding::Nearest) =>
        {
            unary(d, a, |x: u32| (x as f32).to_bits())
        }
        (Type::F32, Type::S32, RegisterPlace::Word(d), RegisterPlace::Word(a))
            if rounding == Some(Rounding::Nearest) =>
        {
            unary(d, a, |x: u32| (x as i32 as f32).to_bits())
        }
        // Rust's `as` truncates, clamps to the range and converts a NaN to 0, as this instruction
        // does in 32 bits.
        (Type::S32, Type::F32, RegisterPlace::Word(d), RegisterPlace::Word(a)) if integral == Some(Rounding::Zero) => {
            unary(d, a, |x: u32| f32::from_bits(x) as i32 as u32)
        }
        _ => return None,
    })
}
