//! If-conversion: a small `If` without jumps becomes straight-line code. The results of the `If`
//! become selects, and its loads and stores become predicated.
//!
//! A load keeps its position and runs in the lanes that ran it before. Where its value is only
//! yielded, the masked lanes get the value of the other branch. At most [`MAX_LOADED_MOVES`] loaded
//! values may have other uses. Pure instructions run in all lanes and must be cheap: at most
//! [`MAX_BRANCH_COST`] instructions in both branches, and at most [`MAX_GUARDED_ACCESSES`] accesses
//! to memory. The report of a failed check, which is a branch itself, gets the condition of the
//! branch around it.

use super::report_merging::reports_if;
use super::rewrite::rewrite;
use super::simplify::Simplifier;
use crate::error::Errors;
use crate::ir::*;
use crate::scalar::Scalar;

/// Maximum number of cheap instructions that run in lanes that did not take the branch.
pub const MAX_BRANCH_COST: u32 = 12;
/// Maximum number of further instructions for each check in the branches. Most checks cost less,
/// and the check of a product of `usize` costs the most.
const MAX_CHECK_COST: u32 = 8;
/// Cost of the 64-bit product of the check of a product of `usize`.
const CHECKED_PRODUCT_COST: u32 = 4;
/// Maximum number of loads and stores that become predicated. With more of them, a branch is
/// cheaper.
pub const MAX_GUARDED_ACCESSES: u32 = 4;

/// Maximum number of loaded values with uses other than the branch's result. Each costs a move that
/// ptxas does not remove. With one, several such branches in a row are still faster than jumps, as
/// in an unrolled copy with an edge check. With two, jumps are faster.
pub const MAX_LOADED_MOVES: usize = 1;

/// Converts small branches.
pub fn if_conversion(kernel: &mut Kernel) -> Result<(), Errors> {
    let simplifier = Simplifier::of(kernel);
    let mut converter = Converter { replacements: (0..simplifier.types.len() as u32).map(Value).collect(), simplifier };
    converter.region(&mut kernel.body);
    converter.simplifier.finish(kernel);
    Ok(())
}

struct Converter {
    simplifier: Simplifier,
    /// The replacement of each original value.
    replacements: Vec<Value>,
}

/// One branch that becomes straight-line code.
struct BranchArm<'a> {
    /// The condition, which holds in the lanes that take the branch.
    condition: Value,
    /// The values that this branch yields, and those of the other branch.
    own: &'a [Value],
    other: &'a [Value],
    /// Values of the other branch that are defined after the code of this one.
    later: &'a [Value],
    location: Location,
}

impl Converter {
    fn region(&mut self, region: &mut Region) {
        rewrite(&mut region.insts, |inst, before| {
            let replacements = &self.replacements;
            inst.op.map_operands(|v| replacements.get(v.0 as usize).copied().unwrap_or(v));
            inst.op.regions_mut().into_iter().for_each(|r| self.region(r));
            match &mut inst.op {
                Op::If { condition, then, otherwise } if self.fits(then, otherwise) => {
                    let branches = [std::mem::take(then), std::mem::take(otherwise)];
                    self.convert(*condition, branches, &inst.results, inst.location, before);
                    false
                }
                _ => true,
            }
        });
    }

    /// Returns whether an `If` of these branches may become straight-line code.
    fn fits(&self, then: &Region, otherwise: &Region) -> bool {
        let (mut cost, mut accesses, mut moves) = (0, 0, 0);
        let reports =
            then.insts.iter().chain(&otherwise.insts).filter(|inst| reports_if(inst).is_some()).count() as u32;
        let max_cost = MAX_BRANCH_COST + MAX_CHECK_COST * reports;
        for inst in then.insts.iter().chain(&otherwise.insts) {
            match &inst.op {
                // A wait has no effect in lanes that have not started a copy.
                Op::Yield(_) | Op::Constant(_) | Op::CopyWait(_) => {}
                // Masked lanes need a value for a loaded value that the branch uses.
                Op::Load { .. } if !inst.results.iter().all(|r| yields(then, *r) || yields(otherwise, *r)) => {
                    accesses += 1;
                    moves += inst.results.len();
                }
                Op::Load { .. } | Op::Store { .. } | Op::CopyAsync(_) => accesses += 1,
                // The report of a failed check gets the branch's condition, too.
                Op::If { .. } if reports_if(inst).is_some() => {}
                Op::Binary(Binary::WrappingMul, ..) if reports > 0 && self.is_u64(inst.results[0]) => {
                    cost += CHECKED_PRODUCT_COST;
                }
                op if op.is_pure() && inst.results.iter().all(|r| self.cheap(op, *r)) => cost += 1,
                _ => return false,
            }
            if cost > max_cost || accesses > MAX_GUARDED_ACCESSES || moves > MAX_LOADED_MOVES {
                return false;
            }
        }
        true
    }

    fn is_u64(&self, value: Value) -> bool {
        self.simplifier.ty(value) == Type::Scalar(Scalar::U64)
    }

    fn cheap(&self, op: &Op, result: Value) -> bool {
        let ty = self.simplifier.ty(result);
        let costly = match op {
            Op::Binary(Binary::Div | Binary::Rem, ..) | Op::Inline { .. } => true,
            Op::Binary(Binary::Mul | Binary::WrappingMul, ..) => {
                ty.scalar().is_some_and(|s| s.is_integer() && s.bits() == 64)
            }
            Op::Unary(op, _) => matches!(op, Unary::Sqrt),
            Op::Cast(_) | Op::Bitcast(_) => false,
            _ => ty == Type::Scalar(Scalar::F64),
        };
        !costly
    }

    /// Emits `op`, or returns the value that it simplifies to.
    fn push(&mut self, mut op: Op, ty: Type, location: Location, out: &mut Vec<Inst>) -> Value {
        match self.simplifier.simplify(&mut op, ty) {
            Some(v) => v,
            None => {
                let value = self.simplifier.value(ty);
                self.simplifier.note(&op, value);
                out.push(Inst { op, results: [value].into_iter().collect(), location });
                value
            }
        }
    }

    fn and_conditions(&mut self, a: Value, b: Value, location: Location, out: &mut Vec<Inst>) -> Value {
        self.push(Op::Binary(Binary::And, a, b), Type::Scalar(Scalar::Bool), location, out)
    }

    fn convert(
        &mut self,
        condition: Value,
        [mut then, mut otherwise]: [Region; 2],
        results: &Values,
        location: Location,
        out: &mut Vec<Inst>,
    ) {
        let (yes, no) = (take_yield(&mut then), take_yield(&mut otherwise));
        let later: Vec<Value> = otherwise.insts.iter().flat_map(|i| i.results.iter().copied()).collect();
        // For each result, the load that gives it in all lanes: masked lanes get the other branch's
        // value.
        let mut merged_loads = vec![None; results.len()];
        let arm = BranchArm { condition, own: &yes, other: &no, later: &later, location };
        self.straighten(then.insts, &arm, &mut merged_loads, out);
        let guarded = otherwise
            .insts
            .iter()
            .any(|i| matches!(i.op, Op::Load { .. } | Op::Store { .. } | Op::CopyAsync(_)) || reports_if(i).is_some());
        let converse = match guarded {
            true => self.push(Op::Unary(Unary::Not, condition), Type::Scalar(Scalar::Bool), location, out),
            false => condition,
        };
        let arm = BranchArm { condition: converse, own: &no, other: &yes, later: &[], location };
        self.straighten(otherwise.insts, &arm, &mut merged_loads, out);
        for (k, result) in results.iter().enumerate() {
            let ty = self.simplifier.ty(*result);
            let stand = match merged_loads[k] {
                Some(v) => v,
                None => self.push(Op::Select { condition, yes: yes[k], no: no[k] }, ty, location, out),
            };
            self.replacements[result.0 as usize] = stand;
        }
    }

    /// Appends a branch's instructions to `out`. The branch's condition predicates its accesses.
    fn straighten(
        &mut self,
        insts: Vec<Inst>,
        arm: &BranchArm<'_>,
        merged_loads: &mut [Option<Value>],
        out: &mut Vec<Inst>,
    ) {
        for mut inst in insts {
            let report = reports_if(&inst);
            match &mut inst.op {
                Op::Load { guard, element, .. } => {
                    let ty = Type::Scalar(*element);
                    let (condition, before) = match guard.take() {
                        None => (arm.condition, None),
                        Some(g) => {
                            (self.and_conditions(arm.condition, g.condition, arm.location, out), Some(g.otherwise))
                        }
                    };
                    let otherwise = inst.results.iter().enumerate().map(|(i, r)| {
                        let before = before.as_ref().map(|b| b[i]);
                        match self
                            .sole_result_of(*r, arm, merged_loads)
                            .filter(|k| before.is_none_or(|b| b == arm.other[*k]))
                        {
                            Some(k) => {
                                merged_loads[k] = Some(*r);
                                arm.other[k]
                            }
                            None => before.unwrap_or_else(|| self.simplifier.constant(ty, 0)),
                        }
                    });
                    *guard = Some(Guard { condition, otherwise: otherwise.collect() });
                }
                Op::CopyAsync(copy) => {
                    copy.guard = Some(match copy.guard {
                        None => arm.condition,
                        Some(g) => self.and_conditions(arm.condition, g, arm.location, out),
                    });
                }
                Op::Store { guard, .. } => {
                    *guard = Some(match *guard {
                        None => arm.condition,
                        Some(g) => self.and_conditions(arm.condition, g, arm.location, out),
                    });
                }
                Op::If { condition, then, otherwise } => {
                    // The condition of a report.
                    let mut failed = *condition;
                    if report == Some(false) {
                        failed =
                            self.push(Op::Unary(Unary::Not, failed), Type::Scalar(Scalar::Bool), arm.location, out);
                        std::mem::swap(then, otherwise);
                    }
                    *condition = self.and_conditions(arm.condition, failed, arm.location, out);
                }
                _ => {}
            }
            out.push(inst);
        }
    }

    /// Returns the index of the result for which this branch yields the loaded value `r`, if there
    /// is exactly one. The other branch's value for that result must be defined before the load.
    fn sole_result_of(&self, r: Value, arm: &BranchArm<'_>, merged_loads: &[Option<Value>]) -> Option<usize> {
        let mut yielded = (0..arm.own.len()).filter(|k| arm.own[*k] == r);
        let k = yielded.next().filter(|k| merged_loads[*k].is_none() && !arm.later.contains(&arm.other[*k]))?;
        yielded.next().is_none().then_some(k)
    }
}

/// Returns whether a region's `Yield` passes `value` on.
fn yields(region: &Region, value: Value) -> bool {
    region.yielded().is_some_and(|values| values.contains(&value))
}

/// Removes a region's `Yield`.
fn take_yield(region: &mut Region) -> Values {
    match region.insts.pop().map(|i| i.op) {
        Some(Op::Yield(values)) => values,
        _ => Values::new(),
    }
}
