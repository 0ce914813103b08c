//! Report merging: one branch tests for the failures of several checks.
//!
//! The checked form reports a failed check in a branch beside the access. A branch for each check
//! keeps the loads of straight-line code from being in flight together, and each report is about 14
//! machine instructions. The access itself is predicated and the kernel continues, so a report can
//! wait. The pass moves reports after the instructions that follow, up to another branch, a loop,
//! a barrier or the end of the region. There, one branch tests whether a check failed, and selects
//! what the first failed check reports.
//!
//! A launch keeps only its first report, so merging loses no report that it would have kept. When
//! lanes fail different checks of one branch, the launch may keep the report of any of them.
//!
//! Only the checked form has reports; other IR stays as it is. On sm_61, the pass removes 25 to
//! 40 % of the machine code of checked products and attention, and most spills.

use super::rewrite::rewrite;
use crate::error::Errors;
use crate::ir::*;
use crate::scalar::Scalar;
use smallvec::smallvec;

/// Maximum number of reports behind one branch. The conditions and values of the reports stay in
/// registers until the branch. Of 4, 8, 16 and 64, 16 gives the fewest spills in most kernels.
const MAX_MERGED_REPORTS: usize = 16;

/// Merges the reports of straight-line code.
pub fn report_merging(kernel: &mut Kernel) -> Result<(), Errors> {
    merge(&mut kernel.body, &mut kernel.values);
    Ok(())
}

fn merge(region: &mut Region, types: &mut Vec<Type>) {
    let mut waiting: Vec<PendingReport> = Vec::new();
    rewrite(&mut region.insts, |inst, before| {
        if let Some(fails_if) = reports_if(inst) {
            // A launch keeps the first of two reports with one condition.
            let new = PendingReport::take(inst, fails_if)
                .filter(|new| !waiting.iter().any(|report| report.same_condition(new)));
            waiting.extend(new);
            if waiting.len() == MAX_MERGED_REPORTS {
                flush(&mut waiting, types, before);
            }
            return false;
        }
        inst.op.regions_mut().into_iter().for_each(|inner| merge(inner, types));
        if !may_precede_reports(&inst.op) {
            flush(&mut waiting, types, before);
        }
        true
    });
    assert!(waiting.is_empty(), "a region ends with a terminator");
}

/// Returns the value of the condition with which a branch reports a violation, if the branch does
/// nothing else; `None` for any other instruction.
pub(super) fn reports_if(inst: &Inst) -> Option<bool> {
    let Op::If { then, otherwise, .. } = &inst.op else { return None };
    let reports = |arm: &Region| matches!(&arm.insts[..], [report, end] if matches!(report.op, Op::RecordViolation { .. }) && is_empty_yield(end));
    let does_nothing = |arm: &Region| matches!(&arm.insts[..], [end] if is_empty_yield(end));
    if reports(then) && does_nothing(otherwise) {
        Some(true)
    } else {
        (does_nothing(then) && reports(otherwise)).then_some(false)
    }
}

fn is_empty_yield(inst: &Inst) -> bool {
    matches!(&inst.op, Op::Yield(values) if values.is_empty())
}

/// Returns whether the reports of earlier checks may follow the instruction: each thread that runs
/// the instruction also runs what follows.
fn may_precede_reports(op: &Op) -> bool {
    let accesses = matches!(
        op,
        Op::Load { .. }
            | Op::Store { .. }
            | Op::CopyAsync(_)
            | Op::CopyCommit
            | Op::Atomic { .. }
            | Op::ReadLocal { .. }
            | Op::WriteLocal { .. }
            | Op::Shuffle { .. }
    );
    accesses || op.is_pure() || matches!(op, Op::Constant(_))
}

/// A check whose report waits.
struct PendingReport {
    /// The condition under which the check failed if `fails_if`, otherwise its opposite.
    condition: Value,
    fails_if: bool,
    record: Value,
    state: Value,
    values: Values,
    location: Location,
}

impl PendingReport {
    fn same_condition(&self, other: &PendingReport) -> bool {
        (self.condition, self.fails_if) == (other.condition, other.fails_if)
    }

    /// Takes the report out of a branch that reports if its condition is `fails_if`.
    fn take(inst: &mut Inst, fails_if: bool) -> Option<PendingReport> {
        let Op::If { condition, then, otherwise } = &mut inst.op else { return None };
        let arm = if fails_if { then } else { otherwise };
        match &mut arm.insts.first_mut()?.op {
            Op::RecordViolation { record, state, values } => Some(PendingReport {
                condition: *condition,
                fails_if,
                record: *record,
                state: *state,
                values: std::mem::take(values),
                location: inst.location,
            }),
            _ => None,
        }
    }
}

/// Appends one branch for all of `waiting`, in which the first failed check selects what is
/// recorded.
fn flush(waiting: &mut Vec<PendingReport>, types: &mut Vec<Type>, out: &mut Vec<Inst>) {
    let Some(last) = waiting.last() else { return };
    let (record, location, mut state, mut values) = (last.record, last.location, last.state, last.values.clone());
    let mut emit = |op: Op, scalar: Scalar, to: &mut Vec<Inst>| {
        types.push(Type::Scalar(scalar));
        let value = Value(types.len() as u32 - 1);
        to.push(Inst { op, results: smallvec![value], location });
        value
    };
    let mut failures = Vec::with_capacity(waiting.len());
    for report in waiting.iter() {
        failures.push(match report.fails_if {
            true => report.condition,
            false => emit(Op::Unary(Unary::Not, report.condition), Scalar::Bool, out),
        });
    }
    let any = failures[1..]
        .iter()
        .fold(failures[0], |any, failed| emit(Op::Binary(Binary::Or, any, *failed), Scalar::Bool, out));
    let mut insts = Vec::new();
    for (report, condition) in waiting.iter().zip(failures).rev().skip(1) {
        let mut select =
            |yes: Value, no: Value, scalar: Scalar| emit(Op::Select { condition, yes, no }, scalar, &mut insts);
        state = select(report.state, state, Scalar::U32);
        for (i, value) in report.values.iter().enumerate() {
            match values.get_mut(i) {
                Some(other) => *other = select(*value, *other, Scalar::Usize),
                // The later checks have fewer values, and ignore this one.
                None => values.push(*value),
            }
        }
    }
    waiting.clear();
    let end = Inst { op: Op::Yield(Values::new()), results: Values::new(), location };
    let op = Op::RecordViolation { record, state, values };
    insts.extend([Inst { op, results: Values::new(), location }, end.clone()]);
    let region = |insts| Region { parameters: Values::new(), insts };
    let op = Op::If { condition: any, then: region(insts), otherwise: region(vec![end]) };
    out.push(Inst { op, results: Values::new(), location });
}
