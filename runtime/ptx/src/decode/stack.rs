//! The stack in a thread's local memory: what a kernel allocates as it runs.
//!
//! Where it ends is a register of the thread's own. What a function allocates is given back where it returns.

use super::super::code::{Body, Follows, Kind, Special};
use super::super::registers::lanes;
use super::operand::Source;
use super::words::Words;
use super::{Decoded, Decoder, Frame, GAP, Result};
use kernel_dsl_compiler::ptx::{Function, Opcode, Operand, Statement};
use smallvec::smallvec;

/// Bytes that each thread of a kernel can allocate that allocates at all.
const STACK: u32 = 16 << 10;

/// What is allocated is aligned so, if nothing is said.
const ALIGNMENT: u64 = 8;

impl<'m> Decoder<'m> {
    /// Where the stack ends.
    fn stack(&mut self) -> Source {
        if let Some((source, _)) = self.stack {
            return source;
        }
        let start = self.code.local.add("the stack", STACK, 16, GAP);
        let source = self.fresh(64);
        self.code.specials.push((source.place, source.id, Special::Stack(start)));
        self.stack = Some((source, u64::from(start) + u64::from(STACK)));
        source
    }

    /// Keeps the end of the stack for when `function` returns, if it allocates: the register of it, and what it is now.
    pub(super) fn keep_stack(&mut self, function: &Function) -> Option<(Source, Source)> {
        let allocates = |s: &Statement| matches!(s, Statement::Instruction(i) if i.opcode == Opcode::Alloca);
        function.statements().iter().any(allocates).then(|| {
            let (stack, kept) = (self.stack(), self.fresh(64));
            self.move_register(kept, stack);
            (stack, kept)
        })
    }

    /// `alloca`, `stacksave`, `stackrestore`.
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
                    Some(_) => return Err("its alignment is no constant".to_string()),
                };
                if !align.is_power_of_two() || align > u64::from(STACK) {
                    return Err(format!("its alignment is {align}, which is no power of two, or more than the stack"));
                }
                let limit = self.stack.map_or(0, |(_, limit)| limit);
                let body: Body = Box::new(move |registers, mask| {
                    let mut undefined = 0;
                    for lane in lanes(mask) {
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
                let reason = "the stack, of 16 KiB for each thread, has no room for it";
                let kind = Kind::Compute { body, follows: Follows::All, reason };
                Ok(Decoded { kind, reads: smallvec![stack.id, bytes.id], writes: smallvec![to.id] })
            }
        }
    }
}
