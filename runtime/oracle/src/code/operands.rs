//! The rows that instructions read and compute.

use crate::code::frame::FrameRegister;
use crate::code::{AccessLocation, AccessOp, Code, Inst, RowIndex, WaitGroup};
use kernel_dsl_compiler::Scalar;

impl Code {
    /// Calls `f` with the first row of each register that `inst` reads, once for each read. A
    /// register that the instruction both reads and changes does not count, such as the index of a
    /// loop's step or a `Move` of some lanes. Reads within a fused sequence do not count either.
    pub fn each_read(&self, inst: &Inst, mut f: impl FnMut(RowIndex)) {
        match *inst {
            Inst::Select { condition, yes, no, .. } => [condition, yes, no].into_iter().for_each(f),
            Inst::Copy { from, .. } | Inst::Move { from, .. } | Inst::Match { from, .. } => f(from.row),
            Inst::Load(i) | Inst::MarkUndef(i) => self.accesses[i as usize].each_address(f),
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
            Inst::RecordViolation(i) => {
                let report = &self.reports[i as usize];
                f(report.record);
                f(report.state);
                report.values.iter().copied().for_each(f);
            }
            Inst::Panic(i) => self.panics[i as usize].values.iter().for_each(|(value, _)| f(value.row)),
            Inst::Log(i) => self.logs[i as usize].values.iter().for_each(|(value, _)| f(value.row)),
            Inst::DbgValue(i) => f(self.names[i as usize].1.row),
            Inst::If { condition, .. } => f(condition),
            Inst::EnterFor { step, .. } => f(step),
            Inst::Test { index, limit, .. } => [index, limit].into_iter().for_each(f),
            Inst::Step { step, limit, .. } | Inst::StepUniform { step, limit, .. } => {
                [step, limit].into_iter().for_each(f);
            }
            Inst::Unary { .. }
            | Inst::CheckedUnary { .. }
            | Inst::Binary { .. }
            | Inst::CheckedBinary { .. }
            | Inst::MulAdd { .. }
            | Inst::Compare { .. }
            | Inst::Cast { .. }
            | Inst::Approximate { .. }
            | Inst::Bitcast { .. }
            | Inst::Bits(_)
            | Inst::Offset(_)
            | Inst::Inline(_) => {
                let computation = self.computation(inst).unwrap_or_default();
                computation.operands.iter().for_each(|(_, from)| f(from.row));
            }
            Inst::CopyCommit { .. }
            | Inst::CopyWait(WaitGroup::AllBut(_))
            | Inst::LifetimeStart { .. }
            | Inst::Dynamic { .. }
            | Inst::ReadLocal { .. }
            | Inst::GridSync
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

/// The operands and results of an instruction that computes each lane from the operands of the same
/// lane alone. Copies are not computations.
#[derive(Default)]
pub struct Computation {
    /// The operands, in the order of the instruction.
    pub operands: Vec<(Scalar, FrameRegister)>,
    /// The results; more than one only of inline PTX.
    pub results: Vec<(Scalar, FrameRegister)>,
}

impl Code {
    /// Returns the operands and results of `inst` if it is a computation.
    pub fn computation(&self, inst: &Inst) -> Option<Computation> {
        let register = |ty: Scalar, row| (ty, FrameRegister { row, wide: ty.bits() == 64 });
        let word = |at: FrameRegister| (if at.wide { Scalar::U64 } else { Scalar::U32 }, at);
        let (to, operands) = match *inst {
            Inst::Unary { op, ty, to, a } | Inst::CheckedUnary { op, ty, to, a } => {
                (register(op.result(ty), to), vec![register(ty, a)])
            }
            Inst::Binary { op, ty, to, a, b } | Inst::CheckedBinary { op, ty, to, a, b } => {
                let second = if op.is_shift() { Scalar::U32 } else { ty };
                (register(ty, to), vec![register(ty, a), register(second, b)])
            }
            Inst::MulAdd { ty, to, a, b, c } => (register(ty, to), [a, b, c].map(|row| register(ty, row)).into()),
            Inst::Compare { ty, to, a, b, .. } => {
                (register(Scalar::Bool, to), [a, b].map(|row| register(ty, row)).into())
            }
            Inst::Cast { from, into, to, a, .. } => (register(into, to), vec![register(from, a)]),
            Inst::Approximate { to, a, .. } => (register(Scalar::F32, to), vec![register(Scalar::F32, a)]),
            Inst::Bitcast { from, into, to, a } => ((into, to), vec![(from, a)]),
            Inst::Bits(i) => {
                let operation = &self.operations[i as usize];
                let operands = operation.types.iter().copied().zip(operation.operands.iter().copied());
                (word(operation.to), operands.collect())
            }
            Inst::Offset(i) => {
                let offset = &self.offsets[i as usize];
                let terms = offset.terms.iter().flat_map(|(index, stride)| [Some(*index), *stride]);
                let terms = terms.flatten().map(|row| register(Scalar::Usize, row));
                (word(offset.to), std::iter::once(word(offset.base)).chain(terms).collect())
            }
            Inst::Inline(i) => {
                let inline = &self.inlines[i as usize];
                let operands = inline.inputs.iter().map(|(ty, from, _)| (*ty, *from)).collect();
                let results = inline.results.iter().map(|(ty, to, _)| (*ty, *to)).collect();
                return Some(Computation { operands, results });
            }
            _ => return None,
        };
        Some(Computation { operands, results: vec![to] })
    }
}

impl AccessOp {
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
            AccessLocation::Global { base, dims, .. } | AccessLocation::Dynamic { base, dims, .. } => {
                f(*base);
                for dim in dims {
                    [Some(dim.index), Some(dim.extent), dim.stride].into_iter().flatten().for_each(&mut f);
                }
            }
            AccessLocation::Shared { dims, .. } => dims.iter().for_each(|dim| f(dim.index)),
            AccessLocation::Address { base, .. } | AccessLocation::SharedAddress { base, .. } => f(*base),
        }
        self.within.steps.iter().for_each(|step| f(step.index));
    }
}
