//! The slice of a kernel that decides its accesses and its control flow (Weiser, "Program
//! Slicing", 1981). An observer sees neither results nor memory, so [`Program::observe`] computes
//! the slice only. A product of matrices then takes a fraction of its time, because its
//! multiply-adds are not in the slice.
//!
//! The slice is an upper bound: it follows registers and state spaces, in any order of the
//! instructions. The roots are guards, addresses, operands of barriers and of jumps, and members of
//! exchanges. All operands of atomic operations are roots too, because a warp yields by their
//! results. A load in the slice adds all stores to its state space, except a load of memory that no
//! thread may write during the launch.
//!
//! [`Program::observe`]: super::Program::observe

use super::code::{Code, Inst, InstructionKind, MemoryAccess, Window};

/// State spaces, as bits.
const GLOBAL: u8 = 1;
const SHARED: u8 = 2;
const LOCAL: u8 = 4;

/// Returns whether each instruction must be executed, so that all accesses and all jumps are those
/// of the whole kernel.
pub(super) fn deciding(code: &Code) -> Vec<bool> {
    let mut slice = ProgramSlice { registers: vec![false; code.sizes.ids as usize], spaces: 0, has_grown: true };
    if code.has_carry || code.stack.is_some() || !code.routines.is_empty() || code.insts.iter().any(is_opaque) {
        return vec![true; code.insts.len()];
    }
    while slice.has_grown {
        slice.has_grown = false;
        // Most results are used after their computation, so this order needs few rounds.
        code.insts.iter().rev().for_each(|inst| slice.add_operands(inst));
    }
    code.insts.iter().map(|inst| slice.contains(inst)).collect()
}

/// Returns whether an instruction has effects or operands that [`Inst::reads`] does not state.
fn is_opaque(inst: &Inst) -> bool {
    match inst.kind {
        InstructionKind::Compute { .. } => inst.reads.is_empty() && inst.writes.is_empty(),
        InstructionKind::Call(_)
        | InstructionKind::Return
        | InstructionKind::Service(_)
        | InstructionKind::Object(_) => true,
        _ => false,
    }
}

/// Returns the state spaces that an access may reach, without those that no kernel writes.
fn spaces(access: &MemoryAccess) -> u8 {
    match access.window {
        Window::Generic => GLOBAL | SHARED | LOCAL,
        Window::Global => GLOBAL,
        Window::Shared => SHARED,
        Window::Local => LOCAL,
        Window::Const | Window::Param => 0,
    }
}

/// Registers and state spaces whose contents matter.
struct ProgramSlice {
    /// By the index of the register's state.
    registers: Vec<bool>,
    spaces: u8,
    has_grown: bool,
}

impl ProgramSlice {
    fn add_register(&mut self, id: u32) {
        let is_known = std::mem::replace(&mut self.registers[id as usize], true);
        self.has_grown |= !is_known;
    }

    fn add_spaces(&mut self, spaces: u8) {
        self.has_grown |= self.spaces | spaces != self.spaces;
        self.spaces |= spaces;
    }

    /// Returns whether an instruction must be executed.
    fn contains(&self, inst: &Inst) -> bool {
        match &inst.kind {
            InstructionKind::Compute { .. } | InstructionKind::Load(_) | InstructionKind::StrongLoad(_) => {
                self.has_result_of(inst)
            }
            InstructionKind::Store(access) => self.spaces & spaces(access) != 0,
            InstructionKind::Copy(copy) => self.spaces & spaces(&copy.to) != 0,
            _ => true,
        }
    }

    fn has_result_of(&self, inst: &Inst) -> bool {
        inst.writes.iter().any(|id| self.registers[*id as usize])
    }

    /// Adds what an instruction needs.
    fn add_operands(&mut self, inst: &Inst) {
        inst.guard.iter().for_each(|guard| self.add_register(guard.id));
        let mut all_operands = self.contains(inst);
        match &inst.kind {
            InstructionKind::Compute { .. } => {}
            InstructionKind::Load(access) | InstructionKind::StrongLoad(access) => {
                access.base.iter().for_each(|(_, id)| self.add_register(*id));
                if all_operands && !access.read_only {
                    self.add_spaces(spaces(access));
                }
            }
            InstructionKind::Store(access) => access.base.iter().for_each(|(_, id)| self.add_register(*id)),
            InstructionKind::Copy(copy) => {
                let operands = [copy.to.base, copy.from.base, copy.read];
                operands.iter().flatten().for_each(|(_, id)| self.add_register(*id));
                if all_operands {
                    self.add_spaces(spaces(&copy.from));
                }
            }
            InstructionKind::Atomic(atomic) => self.add_spaces(spaces(&atomic.access)),
            // The members must arrive in any case.
            InstructionKind::Shuffle(shuffle) => {
                shuffle.members.iter().for_each(|(_, id)| self.add_register(*id));
                all_operands = self.has_result_of(inst);
            }
            InstructionKind::Vote(vote) => {
                vote.members.iter().for_each(|(_, id)| self.add_register(*id));
                all_operands = self.has_result_of(inst);
            }
            InstructionKind::Gather(gather) => {
                self.add_register(gather.members.1);
                all_operands = self.has_result_of(inst);
            }
            _ => {}
        }
        if all_operands {
            inst.reads.iter().for_each(|id| self.add_register(*id));
        }
    }
}
