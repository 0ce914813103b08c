//! Inline PTX: the kernel's instructions on registers of the module.

use super::Emitter;
use crate::ir::{Value, Values};
use crate::ptx::inline::{InlineBlock, register_type};
use crate::ptx::{Guard, Modifier, Opcode, Operand, RegisterId};
use crate::scalar::Scalar;
use std::collections::HashMap;

impl Emitter<'_> {
    pub(super) fn inline(&mut self, results: &Values, code: &InlineBlock, inputs: &Values) {
        let mut registers: HashMap<RegisterId, RegisterId> = HashMap::new();
        let (mut inputs, mut results) = (inputs.iter(), results.iter());
        // Outputs that need a copy to another register.
        let mut copies: Vec<(Value, RegisterId, Scalar)> = Vec::new();
        for (i, operand) in code.source().operands.iter().enumerate() {
            let Some(ty) = register_type(operand.ty) else { return self.malformed("an operand without registers") };
            let input = match operand.direction.enters() {
                true => inputs.next(),
                false => None,
            };
            let register = match operand.direction.leaves() {
                false => match input {
                    Some(value) => self.block_input(*value, operand.ty),
                    None => return self.malformed("inline PTX with fewer inputs than it takes"),
                },
                true => {
                    let Some(result) = results.next() else {
                        return self.malformed("inline PTX with fewer results than it has outputs");
                    };
                    // The output's register may also hold an input that a later instruction reads.
                    let is_separate = is_short(operand.ty) || self.flow.assigned_register(*result).is_some();
                    let register = if is_separate { self.register(ty) } else { self.define(*result) };
                    if is_separate {
                        copies.push((*result, register, operand.ty));
                    }
                    if let Some(value) = input {
                        let from = match is_short(operand.ty) {
                            true => self.block_input(*value, operand.ty).into(),
                            false => self.operand(*value),
                        };
                        self.copy_short(register, from, operand.ty);
                    }
                    register
                }
            };
            registers.insert(code.register(i), register);
        }
        for instruction in code.instructions() {
            let mut renamed =
                |r: RegisterId| *registers.entry(r).or_insert_with(|| self.builder.register(code.function().ty(r)));
            let guard = instruction.guard.map(|g| Guard { register: renamed(g.register), negated: g.negated });
            let operands: Vec<Operand> = instruction.operands.iter().map(|o| o.renamed(&mut renamed)).collect();
            self.guarded(guard, instruction.opcode, &instruction.modifiers, operands);
        }
        for (result, register, ty) in copies {
            let d = self.define(result);
            match ty {
                Scalar::I16 => self.op(Opcode::Cvt, [Modifier::S32, Modifier::S16], [d.into(), register.into()]),
                ty if is_short(ty) => self.op(Opcode::Cvt, [Modifier::U32, Modifier::U16], [d.into(), register.into()]),
                _ => self.copy(d, register.into()),
            }
        }
    }

    /// Returns a register of the type that a block of inline PTX uses for the value.
    fn block_input(&mut self, value: Value, ty: Scalar) -> RegisterId {
        let register = self.in_register(value);
        let Some(short) = register_type(ty).filter(|_| is_short(ty)) else { return register };
        let narrow = self.register(short);
        self.op(Opcode::Cvt, [Modifier::U16, Modifier::U32], [narrow.into(), register.into()]);
        narrow
    }

    /// Emits a copy between registers of a block.
    fn copy_short(&mut self, to: RegisterId, from: Operand, ty: Scalar) {
        match is_short(ty) {
            true => self.op(Opcode::Mov, [Modifier::B16], [to.into(), from]),
            false => self.copy(to, from),
        }
    }
}

/// Returns whether values of the type are in 32-bit registers in the kernel, but in 16-bit
/// registers in a block of inline PTX.
fn is_short(ty: Scalar) -> bool {
    matches!(ty, Scalar::I16 | Scalar::U16 | Scalar::Bf16 | Scalar::Custom(_))
}
