//! Counts the instructions of a PTX module by class. Each instruction counts once, however often a
//! loop runs it.

use crate::ptx::cost::InstructionClass;
use crate::ptx::{Module, Statement};

/// Counts the instructions of `module` by class; absent classes are left out.
pub fn mix(module: &Module) -> Vec<(InstructionClass, u32)> {
    let mut counts = [0u32; InstructionClass::ALL.len()];
    for statement in module.entries().filter_map(|entry| entry.body.as_ref()).flatten() {
        if let Statement::Instruction(instruction) = statement {
            counts[InstructionClass::of(instruction) as usize] += 1;
        }
    }
    InstructionClass::ALL.into_iter().zip(counts).filter(|(_, n)| *n > 0).collect()
}
