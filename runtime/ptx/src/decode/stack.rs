//! The stack in a thread's local memory, on which a kernel allocates while it runs.
//!
//! A register of each thread holds the end of the stack. The allocations of a function are released
//! when it returns.

use super::super::code::{Body, DefinednessRule, InstructionKind, Special, Stack};
use super::super::registers::lanes;
use super::operand::OperandLocation;
use super::words::Words;
use super::{Decoded, Decoder, Frame, Result, VARIABLE_GAP};
use kernel_dsl_compiler::ptx::{Function, Opcode, Operand, Statement};
use smallvec::smallvec;

/// Default size of the stack of each thread in bytes, if the kernel allocates.
const STACK: u32 = 16 << 10;

/// Default size of the stack of each thread in bytes, if functions are called with a stack.
const STACK_OF_CALLS: u32 = 64 << 10;

/// The default alignment of allocations.
const ALIGNMENT: u64 = 8;

/// The opcodes that [`Decoder::allocation`] decodes.
pub(super) const OPCODES: &[Opcode] = {
    use Opcode::*;
    &[Alloca, Stackrestore, Stacksave]
};

impl<'m> Decoder<'m> {
    /// Returns the register of the stack's end.
    fn stack(&mut self) -> OperandLocation {
        self.stack_registers().0
    }

    /// Returns the register of the running routine's frame.
    pub(super) fn frame_register(&mut self) -> OperandLocation {
        self.stack_registers().1
    }

    /// Returns the registers of the stack's end and of the running routine's frame.
    fn stack_registers(&mut self) -> (OperandLocation, OperandLocation) {
        if let Some(known) = self.stack {
            return known;
        }
        let (end, frame, limit) = (self.fresh(64), self.fresh(64), self.fresh(64));
        for source in [end, frame] {
            self.code.specials.push((source.place, source.id, Special::Stack(0)));
        }
        self.code.stack = Some(Stack { end: end.place, frame: frame.place, limit: limit.place, start: 0 });
        self.stack = Some((end, frame));
        (end, frame)
    }

    /// Places the stack at the end of the decoded program's local memory, where a launch can give
    /// it another size.
    pub(super) fn place_stack(&mut self) {
        let Some(stack) = &mut self.code.stack else { return };
        let bytes = if self.outlined.is_empty() { STACK } else { STACK_OF_CALLS };
        stack.start = self.code.local.add("the stack", bytes, 16, VARIABLE_GAP);
        for (.., special) in &mut self.code.specials {
            if let Special::Stack(start) = special {
                *start = stack.start;
            }
        }
    }

    /// Saves the end of the stack until `function` returns, if it allocates. Returns the register,
    /// and the saved copy.
    pub(super) fn keep_stack(&mut self, function: &Function) -> Option<(OperandLocation, OperandLocation)> {
        let allocates = |s: &Statement| matches!(s, Statement::Instruction(i) if i.opcode == Opcode::Alloca);
        function.statements().iter().any(allocates).then(|| {
            let (stack, kept) = (self.stack(), self.fresh(64));
            self.move_register(kept, stack);
            (stack, kept)
        })
    }

    /// Decodes `alloca`, `stacksave` and `stackrestore`.
    pub(super) fn allocation(
        &mut self,
        frame: &mut Frame<'m>,
        opcode: Opcode,
        words: &mut Words,
        operands: &[Operand],
    ) -> Result {
        let ty = words.ty()?;
        let stack = self.stack();
        match opcode {
            Opcode::Stacksave => {
                let to = self.to(frame, operands, 0)?;
                Ok(self.lanewise(to, &[stack], |[end, ..]| end))
            }
            Opcode::Stackrestore => {
                let from = self.operand(frame, operands, 0, ty)?;
                Ok(self.lanewise(stack, &[from], |[end, ..]| end))
            }
            _ => {
                let (to, bytes) = (self.to(frame, operands, 0)?, self.operand(frame, operands, 1, ty)?);
                let align = match operands.get(2) {
                    None => ALIGNMENT,
                    Some(Operand::Integer(n)) => *n as u64,
                    Some(Operand::Bits(n)) => *n,
                    Some(_) => return Err("its alignment is not a constant".to_string()),
                };
                if !align.is_power_of_two() || align > u64::from(STACK) {
                    return Err(format!("its alignment, {align}, is not a power of two, or exceeds the stack"));
                }
                let limit = self.code.stack.map(|stack| stack.limit);
                let body: Body = Box::new(move |registers, mask| {
                    let mut undefined = 0;
                    for lane in lanes(mask) {
                        let limit = limit.map_or(0, |limit| registers.get(limit, lane));
                        let (end, bytes) = (registers.get(stack.place, lane), registers.get(bytes.place, lane));
                        let start = end.checked_next_multiple_of(align);
                        let place = start.and_then(|start| Some((start, start.checked_add(bytes)?)));
                        match place.filter(|(_, end)| *end <= limit) {
                            Some((start, end)) => {
                                registers.set(to.place, lane, start);
                                registers.set(stack.place, lane, end);
                            }
                            None => undefined |= 1 << lane,
                        }
                    }
                    undefined
                });
                let reason = match self.outlined.is_empty() {
                    true => "the stack, by default of 16 KiB for each thread, has no room for it",
                    false => "the stack, by default of 64 KiB for each thread, has no room for it",
                };
                let kind = InstructionKind::Compute { body, follows: DefinednessRule::All, reason };
                Ok(Decoded { kind, reads: smallvec![stack.id, bytes.id], writes: smallvec![to.id] })
            }
        }
    }
}
