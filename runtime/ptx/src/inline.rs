//! Inline PTX of a kernel, for the oracle that runs the kernel's IR. The instructions have the same
//! meaning as in the kernel's own PTX, but use separate registers.

use super::code::{Body, Condition, Special};
use super::registers::{RegisterPlace, Registers, Sizes, StateId, lanes};
use std::fmt;

/// A block of inline PTX, ready to run.
pub struct Inline {
    pub(super) steps: Vec<BlockInstruction>,
    pub(super) sizes: Sizes,
    /// Registers with a constant value.
    pub(super) constants: Vec<(RegisterPlace, StateId, u64)>,
    /// Registers that the hardware sets.
    pub(super) specials: Vec<(RegisterPlace, StateId, Special)>,
    /// The register of each operand of the block; `None` if no instruction uses the operand.
    pub(super) operands: Vec<Option<RegisterPlace>>,
}

/// An instruction of the block.
pub(super) struct BlockInstruction {
    pub text: String,
    /// Whether the instruction divides integers, so that an undefined result means a division by
    /// zero.
    pub divides: bool,
    pub guard: Option<Condition>,
    pub action: StepAction,
}

/// The operation of a step.
pub(super) enum StepAction {
    Compute {
        body: Body,
        /// The reason that is reported if a lane has no defined result.
        reason: &'static str,
    },
    /// A reading of the clock, or of its upper half.
    Clock { to: RegisterPlace, high: bool },
    /// The mask of the active lanes.
    ActiveMask(RegisterPlace),
    /// An instruction without effect here.
    Nothing,
}

/// The position of a warp in its launch.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct InlineContext {
    pub warp: u32,
    pub block: [u32; 3],
    /// The extents of a block in threads.
    pub threads: [u32; 3],
    pub blocks: [u32; 3],
    pub dynamic_shared: u32,
    pub total_shared: u32,
}

/// Lanes for which an instruction has no defined result.
#[derive(Clone, Copy, Debug)]
pub struct Undefined<'i> {
    /// The instruction.
    pub text: &'i str,
    /// The reason.
    pub reason: &'static str,
    /// Whether the instruction is a division by zero.
    pub division: bool,
    /// The affected lanes.
    pub lanes: u32,
}

impl InlineContext {
    /// Returns the value of a special register.
    pub(super) fn special(&self, special: Special, lane: usize) -> u64 {
        let at = lane as u32;
        let value = match special {
            Special::Thread(axis) => self.thread(at)[usize::from(axis)],
            Special::Threads(axis) => self.threads[usize::from(axis)],
            Special::Block(axis) => self.block[usize::from(axis)],
            Special::Blocks(axis) => self.blocks[usize::from(axis)],
            Special::Lane => at,
            Special::Warp => self.warp,
            Special::Warps => self.threads.iter().product::<u32>().div_ceil(32),
            Special::Constant(value) => value,
            Special::LanesEqual => 1 << at,
            Special::LanesBelow { inclusive: false } => (1 << at) - 1,
            Special::LanesBelow { inclusive: true } => u32::MAX >> (31 - at),
            Special::LanesAbove { inclusive: false } => (u32::MAX << at) & !(1 << at),
            Special::LanesAbove { inclusive: true } => u32::MAX << at,
            Special::DynamicShared => self.dynamic_shared,
            Special::TotalShared => self.total_shared,
            Special::Stack(offset) => offset,
        };
        value.into()
    }

    /// Returns the index of a lane's thread in its block.
    pub fn thread(&self, lane: u32) -> [u32; 3] {
        let linear = self.warp * 32 + lane;
        let [x, y, _] = self.threads;
        [linear % x, linear / x % y, linear / x / y]
    }
}

impl Inline {
    /// Returns registers for a run, with the constants set.
    pub fn registers(&self) -> Registers {
        let mut registers = Registers::new(self.sizes);
        for (place, _, bits) in &self.constants {
            registers.fill(*place, *bits);
        }
        registers
    }

    /// Returns the register of the block's operand `index`.
    pub fn operand(&self, index: usize) -> Option<RegisterPlace> {
        self.operands[index]
    }

    /// Runs the block on the lanes of `mask`. The input registers must be set. Clocks start at
    /// `time`. Calls `undefined` for lanes without a defined result.
    pub fn run<'i>(
        &'i self,
        registers: &mut Registers,
        mask: u32,
        standing: &InlineContext,
        time: u64,
        mut undefined: impl FnMut(Undefined<'i>),
    ) {
        for (place, _, special) in &self.specials {
            for lane in lanes(mask) {
                registers.set(*place, lane, standing.special(*special, lane));
            }
        }
        for (step, time) in self.steps.iter().zip(time..) {
            let active = mask & step.guard.map_or(u32::MAX, |guard| guard.holds(registers));
            let give = |registers: &mut Registers, to: RegisterPlace, value: u64| {
                lanes(active).for_each(|lane| registers.set(to, lane, value));
            };
            match &step.action {
                StepAction::Compute { body, reason } => {
                    let lanes = body(registers, active);
                    if lanes != 0 {
                        undefined(Undefined { text: &step.text, reason, division: step.divides, lanes });
                    }
                }
                StepAction::Clock { to, high } => give(registers, *to, if *high { time >> 32 } else { time }),
                StepAction::ActiveMask(to) => give(registers, *to, mask.into()),
                StepAction::Nothing => {}
            }
        }
    }
}

impl fmt::Debug for Inline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.steps.iter().map(|step| &step.text)).finish()
    }
}
