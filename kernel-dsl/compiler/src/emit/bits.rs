//! Integer instructions beyond Rust's operators.

use super::arithmetic::{bits_type, hexadecimal};
use super::{Emitter, scalar_type};
use crate::ir::{Bits, Value};
use crate::ptx::{Modifier, Opcode, Operand};
use crate::scalar::Scalar;

impl Emitter<'_> {
    pub(super) fn bits(&mut self, result: Value, what: Bits, values: &[Value]) {
        let types: Option<Vec<Scalar>> = values.iter().map(|v| self.ty(*v).scalar()).collect();
        let Some(types) = types.filter(|types| what.result(types).is_some()) else {
            return self.malformed("an instruction on integers of other types than it takes");
        };
        let ty = |k: usize| scalar_type(types[k]).modifier();
        let operands: Vec<Operand> = values.iter().map(|v| self.operand(*v)).collect();
        let (opcode, modifiers) = match what {
            Bits::Dot4 => (Opcode::Dp4a, vec![ty(0), ty(1)]),
            Bits::Dot2 { high } => (Opcode::Dp2a, vec![if high { Modifier::Hi } else { Modifier::Lo }, ty(0), ty(1)]),
            Bits::Permute => (Opcode::Prmt, vec![Modifier::B32]),
            Bits::FunnelLeft => (Opcode::Shf, vec![Modifier::L, Modifier::Wrap, Modifier::B32]),
            Bits::FunnelRight => (Opcode::Shf, vec![Modifier::R, Modifier::Wrap, Modifier::B32]),
            Bits::Extract => (Opcode::Bfe, vec![ty(0)]),
            Bits::Insert => (Opcode::Bfi, vec![bits_type(types[1])]),
            Bits::MultiplyHigh => (Opcode::Mul, vec![Modifier::Hi, ty(0)]),
            Bits::Multiply24 => (Opcode::Mul24, vec![Modifier::Lo, ty(0)]),
            Bits::SaturatingAdd => (Opcode::Add, vec![Modifier::Sat, ty(0)]),
            Bits::SaturatingSub => (Opcode::Sub, vec![Modifier::Sat, ty(0)]),
            Bits::Join => return self.join(result, types[0], &operands),
        };
        let operands = match (what, operands.as_slice()) {
            (Bits::Permute, [a, b, selector]) => vec![a.clone(), b.clone(), hexadecimal(selector.clone(), types[2])],
            // PTX names the lower word first.
            (Bits::FunnelLeft | Bits::FunnelRight, [high, low, distance]) => {
                vec![low.clone(), high.clone(), distance.clone()]
            }
            _ => operands,
        };
        let d = self.define(result);
        self.guarded(None, opcode, &modifiers, std::iter::once(d.into()).chain(operands));
    }

    /// Emits byte selections that join bytes from several registers, two registers at a time.
    fn join(&mut self, result: Value, element: Scalar, parts: &[Operand]) {
        /// Selector of the lowest byte of each of two registers.
        const BYTES: u64 = 0x0040;
        /// Selector of the lower half of each of two registers.
        const HALVES: u64 = 0x5410;
        let mut halves: Vec<Operand> = parts.to_vec();
        if element.bits() == 8 {
            halves = parts
                .chunks(2)
                .map(|pair| {
                    let half = self.register(crate::ptx::Type::U32);
                    let [low, high] = [0, 1].map(|k| pair.get(k).cloned().unwrap_or(Operand::Integer(0)));
                    self.op(Opcode::Prmt, [Modifier::B32], [half.into(), low, high, Operand::Bits(BYTES)]);
                    half.into()
                })
                .collect();
        }
        let d = self.define(result);
        let operands = std::iter::once(d.into()).chain(halves).chain([Operand::Bits(HALVES)]);
        self.guarded(None, Opcode::Prmt, &[Modifier::B32], operands);
    }
}
