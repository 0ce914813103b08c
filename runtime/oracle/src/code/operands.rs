//! The rows that instructions read and compute.

use crate::code::{Access, Code, Inst, Place, RowIndex, WaitGroup};

impl Code {
    /// Calls `f` with the first row of each register that `inst` reads, once for each read. A
    /// register that the instruction both reads and changes does not count, such as the index of a
    /// loop's step or a `Move` of some lanes. Reads within a fused sequence do not count either.
    pub fn each_read(&self, inst: &Inst, mut f: impl FnMut(RowIndex)) {
        match *inst {
            Inst::Unary { a, .. }
            | Inst::CheckedUnary { a, .. }
            | Inst::Cast { a, .. }
            | Inst::Approximate { a, .. } => f(a),
            Inst::Binary { a, b, .. } | Inst::CheckedBinary { a, b, .. } | Inst::Compare { a, b, .. } => {
                [a, b].into_iter().for_each(f);
            }
            Inst::MulAdd { a, b, c, .. } => [a, b, c].into_iter().for_each(f),
            Inst::Select { condition, yes, no, .. } => [condition, yes, no].into_iter().for_each(f),
            Inst::Copy { from, .. } | Inst::Move { from, .. } | Inst::Match { from, .. } => f(from.row),
            Inst::Bitcast { a, .. } => f(a.row),
            Inst::Bits(i) => self.operations[i as usize].operands.iter().for_each(|operand| f(operand.row)),
            Inst::Offset(i) => {
                let offset = &self.offsets[i as usize];
                f(offset.base.row);
                for &(index, stride) in &offset.terms {
                    f(index);
                    stride.into_iter().for_each(&mut f);
                }
            }
            Inst::Load(i) | Inst::Poison(i) => self.accesses[i as usize].each_address(f),
            Inst::Store(i) => {
                let access = &self.accesses[i as usize];
                access.each_address(&mut f);
                access.values.iter().for_each(|value| f(value.row));
            }
            Inst::CopyAsync(i) => {
                let copy = &self.copies[i as usize];
                [&copy.to, &copy.from].into_iter().for_each(|access| access.each_address(&mut f));
                [copy.guard, copy.inside, copy.bytes].into_iter().flatten().for_each(f);
            }
            Inst::CopyWait(WaitGroup::UpTo(group)) => f(group),
            Inst::Atomic(i) => {
                let atomic = &self.atomics[i as usize];
                atomic.access.each_address(&mut f);
                atomic.access.values.iter().chain(&atomic.expected).for_each(|value| f(value.row));
            }
            Inst::WriteLocal { from, .. } => f(from.row),
            Inst::Reduce { from, .. } => f(from),
            Inst::ReadElement { index, .. } => f(index),
            Inst::WriteElement { index, from, .. } => [index, from.row].into_iter().for_each(f),
            Inst::Shuffle { from, selector, .. } => [from.row, selector].into_iter().for_each(f),
            Inst::Vote { value, .. } => f(value),
            Inst::Report(i) => {
                let report = &self.reports[i as usize];
                f(report.record);
                report.values.iter().copied().for_each(f);
            }
            Inst::Named(i) => f(self.names[i as usize].1.row),
            Inst::Inline(i) => self.inlines[i as usize].inputs.iter().for_each(|(_, from)| f(from.row)),
            Inst::If { condition, .. } => f(condition),
            Inst::EnterFor { step, .. } => f(step),
            Inst::Test { index, limit, .. } => [index, limit].into_iter().for_each(f),
            Inst::Step { step, limit, .. } | Inst::StepUniform { step, limit, .. } => {
                [step, limit].into_iter().for_each(f);
            }
            Inst::CopyCommit { .. }
            | Inst::CopyWait(WaitGroup::AllBut(_))
            | Inst::Begin { .. }
            | Inst::Dynamic { .. }
            | Inst::ReadLocal { .. }
            | Inst::BlockSync
            | Inst::WarpSync
            | Inst::Fence(_)
            | Inst::Else { .. }
            | Inst::EndIf { .. }
            | Inst::Enter { .. }
            | Inst::Again { .. }
            | Inst::Leave { .. }
            | Inst::Break { .. }
            | Inst::Continue { .. }
            | Inst::Fused(_)
            | Inst::Return
            | Inst::Exit => {}
        }
    }
}

impl Code {
    /// Calls `f` with the first row of each register that `inst` computes lane by lane, from the
    /// operands of the same lane alone.
    pub fn each_computed(&self, inst: &Inst, mut f: impl FnMut(RowIndex)) {
        match *inst {
            Inst::Unary { to, .. }
            | Inst::CheckedUnary { to, .. }
            | Inst::Binary { to, .. }
            | Inst::CheckedBinary { to, .. }
            | Inst::MulAdd { to, .. }
            | Inst::Compare { to, .. }
            | Inst::Cast { to, .. }
            | Inst::Approximate { to, .. } => f(to),
            Inst::Copy { to, .. } | Inst::Bitcast { to, .. } => f(to.row),
            Inst::Bits(i) => f(self.operations[i as usize].to.row),
            Inst::Offset(i) => f(self.offsets[i as usize].to.row),
            Inst::Inline(i) => self.inlines[i as usize].results.iter().for_each(|(to, _)| f(to.row)),
            _ => {}
        }
    }
}

impl Access {
    /// Calls `f` with the rows that determine the active lanes and the address, and those with a
    /// load's result in the other lanes.
    fn each_address(&self, mut f: impl FnMut(RowIndex)) {
        self.each_index(&mut f);
        self.guard.into_iter().for_each(&mut f);
        self.otherwise.iter().for_each(|value| f(value.row));
    }

    /// Calls `f` with the rows that determine the accessed location.
    pub fn each_index(&self, mut f: impl FnMut(RowIndex)) {
        match &self.place {
            Place::Global { base, dims, .. } | Place::Dynamic { base, dims, .. } => {
                f(*base);
                for dim in dims {
                    [Some(dim.index), Some(dim.extent), dim.stride].into_iter().flatten().for_each(&mut f);
                }
            }
            Place::Shared { dims, .. } => dims.iter().for_each(|dim| f(dim.index)),
            Place::Address { base, .. } | Place::SharedAddress { base, .. } => f(*base),
        }
        self.within.steps.iter().for_each(|step| f(step.index));
    }
}
