//! The local memory that a function's frame has in machine code at least.
//!
//! An assembler keeps a local variable in registers if all its accesses have constant offsets. So
//! only variables count whose address is passed on, stored, or added to a value that is not
//! constant.

use kernel_dsl_compiler::ptx::{Address, Base, Function, Opcode, Operand, RegisterId, Space, Statement, Symbol};
use std::collections::{HashMap, HashSet};

/// Returns the size in bytes of a function's local variables that cannot be kept in registers.
pub fn least_frame_bytes(function: &Function) -> u32 {
    let indexed = IndexedVariables::of(function).indexed;
    let sizes = indexed.into_iter().map(|index| function.variables[index as usize].size().unwrap_or(0));
    let bytes = sizes.fold(0u64, |all, size| all.saturating_add(size.saturating_add(7) / 8 * 8));
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

/// The local variables of a function that cannot be kept in registers.
struct IndexedVariables<'f> {
    function: &'f Function,
    /// The variables to which registers point.
    targets: HashMap<RegisterId, u32>,
    indexed: HashSet<u32>,
}

impl<'f> IndexedVariables<'f> {
    fn of(function: &'f Function) -> IndexedVariables<'f> {
        let mut found = IndexedVariables { function, targets: HashMap::new(), indexed: HashSet::new() };
        // The second pass sees the pointers that a loop computes after their first use.
        for _ in 0..2 {
            function.statements().iter().for_each(|statement| found.add(statement));
        }
        found
    }

    fn add(&mut self, statement: &Statement) {
        let instruction = match statement {
            Statement::Instruction(instruction) => instruction,
            Statement::Call(call) => return call.arguments.iter().for_each(|argument| self.pass_on(argument)),
            _ => return,
        };
        let operands = &instruction.operands;
        let to = match operands.first() {
            Some(Operand::Register(register)) => Some(*register),
            _ => None,
        };
        let is_constant = |operand: &Operand| matches!(operand, Operand::Integer(_) | Operand::Bits(_));
        match (instruction.opcode, to, &operands[..]) {
            (Opcode::Mov | Opcode::Cvta, Some(to), [_, from]) => self.point(to, from),
            (Opcode::Add | Opcode::Sub, Some(to), [_, from, offset]) if is_constant(offset) => self.point(to, from),
            _ => operands.iter().skip(usize::from(to.is_some())).for_each(|operand| self.pass_on(operand)),
        }
    }

    /// Returns the local variable to which an operand points.
    fn target(&self, operand: &Operand) -> Option<u32> {
        match operand {
            Operand::Register(register) => self.targets.get(register).copied(),
            Operand::Symbol(Symbol::Variable(index), _) => {
                Some(*index).filter(|index| self.function.variables[*index as usize].space == Space::Local)
            }
            _ => None,
        }
    }

    fn point(&mut self, to: RegisterId, from: &Operand) {
        if let Some(target) = self.target(from) {
            self.targets.insert(to, target);
        }
    }

    /// Records a use of an operand other than an access at a constant offset.
    fn pass_on(&mut self, operand: &Operand) {
        match operand {
            Operand::Address(Address { base: Base::Register(_) | Base::Symbol(_), .. }) => {}
            Operand::Vector(elements) => elements.iter().for_each(|element| self.pass_on(element)),
            other => self.indexed.extend(self.target(other)),
        }
    }
}
