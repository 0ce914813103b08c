//! The barrier of all blocks, for which the machine has no instruction.
//!
//! The barrier is that of CUDA's cooperative groups. A cooperative launch has a workspace, whose
//! address the driver puts into two special registers. The workspace's word at byte 4 counts the
//! blocks that arrived. One thread of each block adds 1. The thread of block 0 adds a number that
//! completes the sum of all blocks to 2³¹. The last arrival therefore flips the highest bit, for
//! which the others wait. Each barrier flips this bit once more, so the counter needs no reset.

use super::Emitter;
use super::arithmetic::special_register;
use crate::ir::{FenceScope, Special};
use crate::ptx::{self, Address, Base, Guard, Modifier, Opcode, Operand, RegisterId, SpecialRegister};

/// The offset of the counter in the workspace, in bytes.
const COUNTER: i32 = 4;

/// The highest bit of the counter, which each barrier flips.
const PHASE: u32 = 1 << 31;

impl Emitter<'_> {
    pub(super) fn grid_sync(&mut self) {
        let number = self.flow.number();
        let [wait, met] = ["wait", "met"].map(|name| self.builder.label(format!("${name}_{number}")));
        let block = self.kernel.block;
        self.op(Opcode::Bar, [Modifier::Sync], [Operand::Integer(0)]);
        let axes = (0..3).filter(|axis| block.extent(*axis) != Some(1));
        let thread = self.combined(Opcode::Or, Modifier::B32, axes.map(Special::Thread));
        if let Some(thread) = thread {
            let other = self.test(Modifier::Ne, Modifier::U32, thread);
            self.jump(Some(other), met);
        }
        let counter = self.workspace();
        let arrivals = self.arrivals();
        self.fence(FenceScope::Grid);
        let [before, now, flipped] = [(); 3].map(|()| self.register(ptx::Type::U32));
        let add = [Modifier::Global, Modifier::Add, Modifier::U32];
        self.op(Opcode::Atom, add, [before.into(), counter.clone(), arrivals]);
        self.builder.place(wait);
        self.op(Opcode::Ld, [Modifier::Volatile, Modifier::Global, Modifier::U32], [now.into(), counter]);
        self.op(Opcode::Xor, [Modifier::B32], [flipped.into(), now.into(), before.into()]);
        let waits = self.test(Modifier::Ge, Modifier::S32, flipped);
        self.jump(Some(waits), wait);
        self.fence(FenceScope::Grid);
        self.builder.place(met);
        self.op(Opcode::Bar, [Modifier::Sync], [Operand::Integer(0)]);
    }

    /// Emits the number that the thread's block adds to the counter.
    fn arrivals(&mut self) -> Operand {
        let axes = 0..3;
        let block = self.combined(Opcode::Or, Modifier::B32, axes.clone().map(Special::Block));
        let blocks = self.combined(Opcode::Mul, Modifier::U32, axes.map(Special::Grid));
        let (Some(block), Some(blocks)) = (block, blocks) else { return Operand::Integer(1) };
        let [rest, arrivals] = [(); 2].map(|()| self.register(ptx::Type::U32));
        let all = Operand::Integer(i64::from(PHASE) + 1);
        self.op(Opcode::Sub, [Modifier::U32], [rest.into(), all, blocks.into()]);
        let first = self.test(Modifier::Eq, Modifier::U32, block).register;
        let operands = [arrivals.into(), rest.into(), Operand::Integer(1), first.into()];
        self.op(Opcode::Selp, [Modifier::U32], operands);
        arrivals.into()
    }

    /// Emits the address of the counter.
    fn workspace(&mut self) -> Operand {
        let half = |e: &mut Self, register| {
            let half = e.register(ptx::Type::U32);
            e.op(Opcode::Mov, [Modifier::U32], [half.into(), Operand::Special(register)]);
            Operand::Register(half)
        };
        let halves = [SpecialRegister::Envreg2, SpecialRegister::Envreg1].map(|register| half(self, register));
        let base = self.register(ptx::Type::U64);
        self.op(Opcode::Mov, [Modifier::B64], [base.into(), Operand::Vector(halves.to_vec())]);
        Operand::Address(Address { base: Base::Register(base), offset: COUNTER })
    }

    /// Emits special registers combined by an operation; `None` if there are none.
    fn combined(
        &mut self,
        opcode: Opcode,
        ty: Modifier,
        specials: impl Iterator<Item = Special>,
    ) -> Option<RegisterId> {
        let low = (opcode == Opcode::Mul).then_some(Modifier::Lo);
        let mut all: Option<RegisterId> = None;
        for special in specials.filter_map(special_register) {
            let one = self.register(ptx::Type::U32);
            self.op(Opcode::Mov, [Modifier::U32], [one.into(), Operand::Special(special)]);
            all = Some(match all {
                None => one,
                Some(before) => {
                    let both = self.register(ptx::Type::U32);
                    let modifiers: Vec<_> = low.into_iter().chain([ty]).collect();
                    self.guarded(None, opcode, &modifiers, [both.into(), before.into(), one.into()]);
                    both
                }
            });
        }
        all
    }

    /// Emits a comparison with 0.
    pub(super) fn test(&mut self, comparison: Modifier, ty: Modifier, of: RegisterId) -> Guard {
        let register = self.register(ptx::Type::Pred);
        self.op(Opcode::Setp, [comparison, ty], [register.into(), of.into(), Operand::Integer(0)]);
        Guard { register, negated: false }
    }
}
