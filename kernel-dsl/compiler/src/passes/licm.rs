//! Loop-invariant code motion: a pure instruction moves to just before the outermost loop that does
//! not change its operands.
//!
//! A costly instruction (division, square root) leaves a loop only if every complete iteration
//! computes it: a branch might skip it. Constants move to the start of the body, so that the code
//! of every loop can use them.

use super::rewrite::rewrite;
use crate::error::Errors;
use crate::ir::*;

/// Moves invariant instructions out of loops.
pub fn licm(kernel: &mut Kernel) -> Result<(), Errors> {
    let mut mover = InvariantMover {
        levels: vec![0; kernel.values.len()],
        types: &kernel.values,
        before: Vec::new(),
        branches: 0,
        constants: Vec::new(),
    };
    mover.region(&mut kernel.body);
    let constants = mover.constants;
    kernel.body.insts.splice(0..0, constants);
    Ok(())
}

struct InvariantMover<'k> {
    types: &'k [Type],
    /// The number of loops around each value, at the place to which it has moved.
    levels: Vec<u32>,
    /// For each loop around the current instruction, outermost first, the instructions that move
    /// before the loop.
    before: Vec<Vec<Inst>>,
    /// Branches and blocks between the innermost loop and the current instruction.
    branches: u32,
    constants: Vec<Inst>,
}

impl InvariantMover<'_> {
    fn region(&mut self, region: &mut Region) {
        let depth = self.before.len() as u32;
        for p in &region.parameters {
            self.levels[p.0 as usize] = depth;
        }
        rewrite(&mut region.insts, |inst, before| {
            if self.inst(inst) {
                return false;
            }
            if let Op::For(_) | Op::Loop { .. } = inst.op {
                before.append(&mut self.looping(inst));
            }
            true
        });
    }

    /// Visits an instruction, but not the inside of a loop. Returns whether the instruction moved.
    fn inst(&mut self, inst: &mut Inst) -> bool {
        let depth = self.before.len() as u32;
        if !inst.op.is_pure() {
            inst.results.iter().for_each(|r| self.levels[r.0 as usize] = depth);
            if let Op::If { .. } | Op::Block { .. } = inst.op {
                self.branches += 1;
                inst.op.regions_mut().into_iter().for_each(|r| self.region(r));
                self.branches -= 1;
            }
            return false;
        }
        let mut level = 0;
        inst.op.for_each_operand(|v| level = level.max(self.levels[v.0 as usize]));
        let result = inst.results[0].0 as usize;
        let stays = level == depth || self.branches > 0 && costly(&inst.op, self.types[result]);
        self.levels[result] = if stays { depth } else { level };
        if stays {
            return false;
        }
        let moved = Inst { op: std::mem::replace(&mut inst.op, Op::BlockSync), results: inst.results.clone(), ..*inst };
        match moved.op {
            Op::Constant(_) => self.constants.push(moved),
            _ => self.before[level as usize].push(moved),
        }
        true
    }

    /// Visits a loop, and returns the instructions that moved out of it.
    fn looping(&mut self, inst: &mut Inst) -> Vec<Inst> {
        self.before.push(Vec::new());
        let branches = std::mem::take(&mut self.branches);
        inst.op.regions_mut().into_iter().for_each(|r| self.region(r));
        self.branches = branches;
        self.before.pop().unwrap_or_default()
    }
}

/// Returns whether an operation takes tens of instructions on sm_61, or an unknown number.
fn costly(op: &Op, ty: Type) -> bool {
    match op {
        Op::Binary(Binary::Div | Binary::Rem, ..) | Op::Unary(Unary::Sqrt, _) | Op::Inline { .. } => true,
        // 64-bit floats run at 1/32 of the rate.
        Op::Binary(..) | Op::MulAdd(..) | Op::Unary(..) => ty == Type::Scalar(crate::scalar::Scalar::F64),
        _ => false,
    }
}
