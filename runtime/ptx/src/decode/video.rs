//! Decodes the video instructions.

use super::super::arithmetic::video::{MulAdd, Parts, Second, VideoOperation, WordPart};
use super::operand::OperandLocation;
use super::words::Words;
use super::{Decoder, Frame, Result};
use kernel_dsl_compiler::ptx::{Modifier, Opcode, Operand, Selector, Type};

/// An operand with its selected part, and whether it is negated.
struct SelectedOperand {
    source: OperandLocation,
    selector: Option<Selector>,
    negated: bool,
}

/// Returns the part that a scalar operation reads or writes.
fn part(selector: Option<Selector>) -> Result<WordPart> {
    match selector {
        None => Ok(WordPart::WHOLE),
        Some(Selector::Byte(n)) if n < 4 => Ok(WordPart { shift: 8 * u32::from(n), bits: 8 }),
        Some(Selector::Half(n)) if n < 2 => Ok(WordPart { shift: 16 * u32::from(n), bits: 16 }),
        Some(selector) => Err(format!("there is no part `{selector}` of one word")),
    }
}

/// Returns, for each part from the lowest, its source among the parts of two words.
fn order(selector: Option<Selector>, bits: u32, default: [u8; 4]) -> Result<[u8; 4]> {
    match (selector, bits) {
        (None, _) => Ok(default),
        (Some(Selector::Halves([high, low])), 16) => Ok([low, high, 0, 0]),
        (Some(Selector::Bytes([Some(d), Some(c), Some(b), Some(a)])), 8) => Ok([a, b, c, d]),
        (Some(selector), _) => Err(format!("there is no order `{selector}` of its parts")),
    }
}

/// Returns the mask of computed parts, a bit for each.
fn mask(selector: Option<Selector>, bits: u32) -> Result<u32> {
    match (selector, bits) {
        (None, 16) => Ok(0b11),
        (None, _) => Ok(0b1111),
        (Some(Selector::Half(n)), 16) | (Some(Selector::Byte(n)), 8) => Ok(1 << n),
        (Some(Selector::Halves(digits)), 16) => Ok(digits.iter().fold(0, |mask, n| mask | 1 << n)),
        (Some(Selector::Bytes(digits)), 8) => Ok(digits.iter().flatten().fold(0, |mask, n| mask | 1 << n)),
        (Some(selector), _) => Err(format!("there is no mask `{selector}` of its parts")),
    }
}

fn operation(opcode: Opcode) -> Option<VideoOperation> {
    use Opcode::*;
    Some(match opcode {
        Vadd | Vadd2 | Vadd4 => VideoOperation::Add,
        Vsub | Vsub2 | Vsub4 => VideoOperation::Subtract,
        Vavrg2 | Vavrg4 => VideoOperation::Average,
        Vabsdiff | Vabsdiff2 | Vabsdiff4 => VideoOperation::Difference,
        Vmin | Vmin2 | Vmin4 => VideoOperation::Min,
        Vmax | Vmax2 | Vmax4 => VideoOperation::Max,
        _ => return None,
    })
}

/// Returns the width of the parts of an operation on several, or `None` for a scalar one.
fn parallel(opcode: Opcode) -> Option<u32> {
    use Opcode::*;
    match opcode {
        Vadd2 | Vsub2 | Vavrg2 | Vabsdiff2 | Vmin2 | Vmax2 | Vset2 => Some(16),
        Vadd4 | Vsub4 | Vavrg4 | Vabsdiff4 | Vmin4 | Vmax4 | Vset4 => Some(8),
        _ => None,
    }
}

/// Returns the function that compares two numbers by the next modifier.
fn compares(words: &mut Words) -> Option<fn(i64, i64) -> bool> {
    words.take_as(|m| {
        let f: fn(i64, i64) -> bool = match m {
            Modifier::Eq => |a, b| a == b,
            Modifier::Ne => |a, b| a != b,
            Modifier::Lt => |a, b| a < b,
            Modifier::Le => |a, b| a <= b,
            Modifier::Gt => |a, b| a > b,
            Modifier::Ge => |a, b| a >= b,
            _ => return None,
        };
        Some(f)
    })
}

/// The opcodes that [`Decoder::video`] decodes.
pub(super) const OPCODES: &[Opcode] = {
    use Opcode::*;
    &[
        Vabsdiff, Vabsdiff2, Vabsdiff4, Vadd, Vadd2, Vadd4, Vavrg2, Vavrg4, Vmad, Vmax, Vmax2, Vmax4, Vmin, Vmin2,
        Vmin4, Vset, Vset2, Vset4, Vshl, Vshr, Vsub, Vsub2, Vsub4,
    ]
};

impl<'m> Decoder<'m> {
    fn chosen(&mut self, frame: &mut Frame<'m>, operand: Option<&Operand>) -> Result<SelectedOperand> {
        let (register, selector, negated) = match operand {
            Some(Operand::Selected(r, selector)) => (*r, Some(*selector), false),
            Some(Operand::Negated(r, selector)) => (*r, *selector, true),
            Some(Operand::Register(r)) => (*r, None, false),
            Some(operand) => {
                let source = self.from(frame, operand, Type::B32)?;
                return Ok(SelectedOperand { source, selector: None, negated: false });
            }
            None => return Err("it has too few operands".to_string()),
        };
        Ok(SelectedOperand { source: self.register(frame, register)?, selector, negated })
    }

    pub(super) fn video(
        &mut self,
        frame: &mut Frame<'m>,
        opcode: Opcode,
        words: &mut Words,
        operands: &[Operand],
    ) -> Result {
        let set = matches!(opcode, Opcode::Vset | Opcode::Vset2 | Opcode::Vset4);
        // `vset` returns an unsigned number.
        let result = if set { Type::U32 } else { words.ty()? };
        let types = [words.ty()?, words.ty()?];
        let signed = types.map(|ty| ty == Type::S32);
        let saturate = words.take(Modifier::Sat);
        let to = self.chosen(frame, operands.first())?;
        let (a, b) = (self.chosen(frame, operands.get(1))?, self.chosen(frame, operands.get(2))?);
        if opcode == Opcode::Vmad {
            return self.multiply_add(frame, words, (saturate, signed), to, [a, b], operands);
        }
        let compare = if set { compares(words) } else { None };
        let signed_result = result == Type::S32;
        let f = match (opcode, operation(opcode), compare) {
            (_, Some(operation), _) => Compute::Operation(operation),
            (_, _, Some(compare)) => Compute::Compare(compare),
            (Opcode::Vshl | Opcode::Vshr, ..) => {
                let wrap = words.take_one(&[Modifier::Clamp, Modifier::Wrap]) == Some(Modifier::Wrap);
                Compute::Shift { left: opcode == Opcode::Vshl, wrap }
            }
            _ => return Err(format!("the interpreter does not support `{opcode}`")),
        };
        if let Some(bits) = parallel(opcode) {
            let parts = Parts {
                bits,
                left: order(a.selector, bits, [0, 1, 2, 3])?,
                right: order(b.selector, bits, if bits == 16 { [2, 3, 0, 0] } else { [4, 5, 6, 7] })?,
                mask: mask(to.selector, bits)?,
                accumulate: words.take(Modifier::Add),
            };
            let c = self.operand(frame, operands, 3, Type::B32)?;
            return Ok(self.lanewise(to.source, &[a.source, b.source, c], move |[a, b, c, _]| {
                let of = |part: WordPart, x, y| {
                    let value = f.of(x, y);
                    if saturate { part.clamp(value, signed_result) } else { value }
                };
                parts.of([a as u32, b as u32, c as u32], signed, of).into()
            }));
        }
        let second = match (to.selector, words.take_one(&[Modifier::Add, Modifier::Min, Modifier::Max])) {
            (Some(_), _) => Second::Merge(part(to.selector)?),
            (None, Some(Modifier::Add)) => Second::Add,
            (None, Some(Modifier::Min)) => Second::Min,
            (None, Some(_)) => Second::Max,
            (None, None) => Second::None,
        };
        let mut from = vec![a.source, b.source];
        if second != Second::None {
            from.push(self.operand(frame, operands, 3, Type::B32)?);
        }
        let (left, right) = (part(a.selector)?, part(b.selector)?);
        Ok(self.lanewise(to.source, &from, move |[a, b, c, _]| {
            let value = f.of(left.value(a as u32, signed[0]), right.value(b as u32, signed[1]));
            second.of(value, c as u32, saturate, signed_result).into()
        }))
    }

    fn multiply_add(
        &mut self,
        frame: &mut Frame<'m>,
        words: &mut Words,
        (saturate, signed): (bool, [bool; 2]),
        to: SelectedOperand,
        [a, b]: [SelectedOperand; 2],
        operands: &[Operand],
    ) -> Result {
        let plus_one = words.take(Modifier::Po);
        let scale = match words.take_one(&[Modifier::Shr7, Modifier::Shr15]) {
            Some(Modifier::Shr7) => 7,
            Some(_) => 15,
            None => 0,
        };
        let c = self.chosen(frame, operands.get(3))?;
        let negate_product = a.negated != b.negated;
        let mode = MulAdd {
            negate_product,
            negate_c: c.negated,
            plus_one,
            scale,
            saturate,
            signed: signed[0] || signed[1] || negate_product || c.negated,
        };
        let (left, right) = (part(a.selector)?, part(b.selector)?);
        Ok(self.lanewise(to.source, &[a.source, b.source, c.source], move |[a, b, c, _]| {
            mode.of(left.value(a as u32, signed[0]), right.value(b as u32, signed[1]), c as u32).into()
        }))
    }
}

/// The computation of a video instruction on two numbers.
#[derive(Clone, Copy)]
enum Compute {
    Operation(VideoOperation),
    Compare(fn(i64, i64) -> bool),
    Shift { left: bool, wrap: bool },
}

impl Compute {
    /// Computes the exact result: a word shifted left by 32 has more than 64 bits including its
    /// sign.
    fn of(self, a: i64, b: i64) -> i128 {
        match self {
            Compute::Operation(operation) => operation.of(a, b).into(),
            Compute::Compare(compare) => compare(a, b).into(),
            Compute::Shift { left, wrap } => {
                let distance = if wrap { b & 31 } else { b.min(32) };
                if left { i128::from(a) << distance } else { i128::from(a >> distance) }
            }
        }
    }
}
