//! Fusion of instruction sequences.
//!
//! A matrix product mostly repeats one sequence: load two words of shared memory, read a variable,
//! multiply and add, write the variable. This module finds such sequences, and
//! [`superinstructions`](crate::machine::superinstructions) executes each in one step. Operands are
//! read in place and the result is written to its destination, without intermediate rows that no
//! other instruction reads. The benchmark `product_speed` measures what fusion gains.
//!
//! All instructions keep their index. At the index of a sequence's first instruction,
//! [`Code::quick`] holds the whole sequence. If there is something to report, the instructions run
//! one by one.

use crate::code::uniform::RegisterClasses;
use crate::code::{
    Code, CodeOperand, F32Operator, Fused, Inst, Local, LocalElement, RowIndex, SharedWord, Split, UniformLoop,
};
use kernel_dsl_compiler::Scalar;
use kernel_dsl_compiler::ir::Binary;

/// Finds the fusible sequences of `code`.
pub fn fuse(code: &mut Code, kinds: &RegisterClasses) {
    let finder = SequenceFinder { code, kinds, reads: reads(code), jump_targets: jump_targets(code) };
    let runs: Vec<(usize, Fused)> = (0..code.insts.len()).filter_map(|pc| finder.run(pc)).collect();
    code.quick = code.insts.clone();
    for (first, fused) in runs {
        code.quick[first] = Inst::Fused(code.fused.len() as u32);
        code.fused.push(fused);
    }
}

/// Returns the number of reads of each row.
fn reads(code: &Code) -> Vec<u32> {
    let mut reads = vec![0; code.rows as usize];
    code.insts.iter().for_each(|inst| code.each_read(inst, |row| reads[row as usize] += 1));
    reads
}

/// Returns, for each instruction, whether it is the target of a jump.
fn jump_targets(code: &Code) -> Vec<bool> {
    let mut jump_targets = vec![false; code.insts.len() + 1];
    for inst in &code.insts {
        if let Inst::If { otherwise: to, .. }
        | Inst::Else { end: to, .. }
        | Inst::EndIf { exit: to, .. }
        | Inst::Test { end: to, .. }
        | Inst::Leave { exit: to, .. }
        | Inst::Step { body: to, .. }
        | Inst::StepUniform { body: to, .. }
        | Inst::Again { body: to, .. } = *inst
        {
            jump_targets[to as usize] = true;
        }
    }
    jump_targets
}

/// The source of an operand.
enum OperandSource<'c> {
    Element(LocalElement),
    Word(&'c Split),
}

/// A search for fusible sequences.
struct SequenceFinder<'c> {
    code: &'c Code,
    kinds: &'c RegisterClasses,
    reads: Vec<u32>,
    jump_targets: Vec<bool>,
}

impl SequenceFinder<'_> {
    /// Returns the sequence with the arithmetic instruction at `pc`, and the index of its first
    /// instruction.
    fn run(&self, pc: usize) -> Option<(usize, Fused)> {
        let (arithmetic, to, a, b, c) = match self.code.insts[pc] {
            Inst::MulAdd { ty: Scalar::F32, to, a, b, c } => (F32Operator::MulAdd, to, a, b, Some(c)),
            Inst::Binary { op: Binary::Add, ty: Scalar::F32, to, a, b } => (F32Operator::Add, to, a, b, None),
            Inst::Binary { op: Binary::Sub, ty: Scalar::F32, to, a, b } => (F32Operator::Sub, to, a, b, None),
            Inst::Binary { op: Binary::Mul, ty: Scalar::F32, to, a, b } => (F32Operator::Mul, to, a, b, None),
            _ => return None,
        };
        let is_alone = |row: RowIndex| {
            let here = [Some(a), Some(b), c].into_iter().filter(|operand| *operand == Some(row)).count();
            here > 0 && self.reads[row as usize] == here as u32
        };
        // Searches backward for instructions that only provide an operand: no other instruction
        // reads their results.
        let mut first = pc;
        let mut provided = Vec::new();
        while !self.jump_targets[first]
            && let Some((row, source)) = first.checked_sub(1).and_then(|before| self.operand_provided_by(before))
            && is_alone(row)
        {
            first -= 1;
            provided.push((row, first, source));
        }
        let operand = |row: RowIndex| match provided.iter().find(|(to, ..)| *to == row) {
            None => CodeOperand::Row(row),
            Some((_, _, OperandSource::Element(element))) => CodeOperand::Element(*element),
            Some((to, at, OperandSource::Word(split))) => {
                CodeOperand::Word(SharedWord { split: Split::clone(split), after: (at - first) as u32, to: *to })
            }
        };
        let variable = if self.jump_targets[pc + 1] { None } else { self.writes(pc + 1, to) };
        let length = pc + 1 - first + usize::from(variable.is_some());
        let mut fused = Fused {
            length: length as u32,
            arithmetic,
            operands: [a, b].map(operand),
            addend: c.map(operand),
            to: Some(to).filter(|_| variable.is_none() || self.reads[to as usize] > 1),
            variable,
            uniform_loop: None,
        };
        fused.uniform_loop = self.uniform_loop(first, &fused);
        (length > 1).then_some((first, fused))
    }

    /// Returns the loop around a sequence from `first` on, if it is the whole body and accumulates
    /// in one element. An operand is indexed by the loop index, so the number of words bounds the
    /// iterations.
    fn uniform_loop(&self, first: usize, run: &Fused) -> Option<UniformLoop> {
        let Inst::StepUniform { index, step, limit, body, .. } = *self.code.insts.get(first + run.length as usize)?
        else {
            return None;
        };
        let by_index = |operand: &CodeOperand| match operand {
            CodeOperand::Word(word) => word.split.uniform.iter().any(|dim| dim.index == index),
            CodeOperand::Row(_) | CodeOperand::Element(_) => false,
        };
        let known = |operand: &CodeOperand| !matches!(operand, CodeOperand::Element(_));
        let adds = match (&run.addend, run.variable) {
            (Some(CodeOperand::Element(from)), Some(to)) => *from == to && to.index != Some(index) && run.to.is_none(),
            _ => false,
        };
        let whole = body as usize == first && adds && run.operands.iter().all(known);
        (whole && run.operands.iter().any(by_index)).then_some(UniformLoop { index, step, limit })
    }

    /// Returns the row that the instruction at `pc` provides as an operand, and its source.
    fn operand_provided_by(&self, pc: usize) -> Option<(RowIndex, OperandSource<'_>)> {
        match self.code.insts[pc] {
            Inst::Load(i) => {
                let access = &self.code.accesses[i as usize];
                Some((access.values.first()?.row, OperandSource::Word(access.split.as_ref()?)))
            }
            Inst::ReadLocal { local, to } => Some((to.row, OperandSource::Element(self.element(local, None)?))),
            Inst::ReadElement { local, index, to } => {
                Some((to.row, OperandSource::Element(self.element(local, Some(index))?)))
            }
            _ => None,
        }
    }

    /// Returns the variable that the instruction at `pc` writes `row` to.
    fn writes(&self, pc: usize, row: RowIndex) -> Option<LocalElement> {
        match *self.code.insts.get(pc)? {
            Inst::WriteLocal { local, from } if from.row == row => self.element(local, None),
            Inst::WriteElement { local, index, from } if from.row == row => self.element(local, Some(index)),
            _ => None,
        }
    }

    /// Returns an element of a 32-bit local, if its index is uniform.
    fn element(&self, local: u32, index: Option<RowIndex>) -> Option<LocalElement> {
        let Local { first, len, element, .. } = self.code.locals[local as usize];
        let uniform = index.is_none_or(|index| self.kinds.is_uniform(index));
        (uniform && !first.wide).then_some(LocalElement { row: first.row, element, len, index })
    }
}
