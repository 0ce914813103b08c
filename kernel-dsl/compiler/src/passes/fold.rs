//! Constant folding, exact identities, and removal of control flow with constant conditions.
//!
//! An `If` with a constant condition, a `For` without iterations and a `Block` without a break
//! dissolve into the region around them. Code after a `Return`, `Break` or `Continue` that is
//! always reached is dropped. Afterwards each constant has one value, and the body begins with all
//! constants.

use super::rewrite::rewrite;
use super::simplify::Simplifier;
use super::table_reads::TableReads;
use crate::error::Errors;
use crate::ir::*;

/// Folds constants.
pub fn fold(kernel: &mut Kernel) -> Result<(), Errors> {
    let types = std::mem::take(&mut kernel.values);
    let tables = std::mem::take(&mut kernel.tables);
    let mut folder = Folder {
        replacements: (0..types.len() as u32).map(Value).collect(),
        simplifier: Simplifier::new(types),
        breaks: vec![],
        tables: TableReads::new(&tables),
    };
    folder.region(&mut kernel.body);
    folder.simplifier.finish(kernel);
    kernel.tables = tables;
    Ok(())
}

struct Folder<'t> {
    simplifier: Simplifier,
    /// The replacement of each original value.
    replacements: Vec<Value>,
    /// The number of `Break`s of each label.
    breaks: Vec<u32>,
    tables: TableReads<'t>,
}

impl Folder<'_> {
    fn region(&mut self, region: &mut Region) {
        let mut ended = false;
        rewrite(&mut region.insts, |inst, before| !ended && self.inst(inst, before, &mut ended));
    }

    /// Rewrites an instruction, or appends its simplified form to `before`. Returns whether the
    /// instruction stays. Sets `ended` if the region ends here.
    fn inst(&mut self, inst: &mut Inst, before: &mut Vec<Inst>, ended: &mut bool) -> bool {
        inst.op.map_operands(|v| self.replacements[v.0 as usize]);
        if !inst.op.is_pure() {
            return self.construct(inst, before, ended);
        }
        let result = inst.results[0];
        self.tables.note(&inst.op, result);
        let ty = self.simplifier.ty(result);
        if let Some((part, whole)) = self.simplifier.quotient_of_sum(&inst.op) {
            let part = self.insert(part, ty, inst.location, before);
            inst.op = Op::Binary(Binary::Add, part, whole);
        }
        match self.simplifier.simplify(&mut inst.op, ty) {
            Some(v) => {
                self.replacement(result, v);
                false
            }
            None => {
                self.simplifier.note(&inst.op, result);
                true
            }
        }
    }

    /// Simplifies `op` and returns its value: an existing value, or the result of a new instruction
    /// in `before`.
    fn insert(&mut self, mut op: Op, ty: Type, location: Location, before: &mut Vec<Inst>) -> Value {
        if let Some(known) = self.simplifier.simplify(&mut op, ty) {
            return known;
        }
        let result = self.simplifier.value(ty);
        self.simplifier.note(&op, result);
        before.push(Inst { op, results: [result].into_iter().collect(), location });
        result
    }

    fn replacement(&mut self, old: Value, new: Value) {
        self.replacements[old.0 as usize] = new;
    }

    fn bits(&self, value: Value) -> Option<u64> {
        self.simplifier.constants.bits(value)
    }

    fn construct(&mut self, inst: &mut Inst, before: &mut Vec<Inst>, ended: &mut bool) -> bool {
        match &mut inst.op {
            Op::If { condition, then, otherwise } => {
                if let Some(c) = self.bits(*condition) {
                    let taken = if c != 0 { then } else { otherwise };
                    self.region(taken);
                    before.append(&mut taken.insts);
                    *ended = self.open(None, &inst.results, before);
                    return false;
                }
                self.region(then);
                self.region(otherwise);
                self.same_results(inst);
            }
            Op::For(l) => {
                if let (Some(start), Some(end)) = (self.bits(l.start), self.bits(l.end))
                    && let Some(ty) = self.simplifier.ty(l.start).scalar()
                    && eval::integer(ty, start) >= eval::integer(ty, end)
                {
                    for (r, init) in inst.results.iter().zip(&l.inits) {
                        self.replacements[r.0 as usize] = *init;
                    }
                    return false;
                }
                if let Some(index) = l.body.parameters.first() {
                    self.simplifier.note_index(*index, l.start, l.step);
                }
                self.region(&mut l.body);
            }
            Op::Loop { body, .. } => self.region(body),
            Op::Block { label, body } => {
                let label = *label;
                self.region(body);
                let last = body.insts.last().map(|i| &i.op);
                let own = u32::from(matches!(last, Some(Op::Break(l, _)) if *l == label));
                if self.breaks.get(label.0 as usize).copied().unwrap_or(0) == own {
                    before.append(&mut body.insts);
                    *ended = self.open(Some(label), &inst.results, before);
                    return false;
                }
            }
            op @ Op::Load { .. } => {
                if let Some(values) = self.tables.known(&mut self.simplifier, op, inst.results.len()) {
                    inst.results.iter().zip(values).for_each(|(r, v)| self.replacement(*r, v));
                    return false;
                }
            }
            Op::Break(label, _) => {
                let label = label.0 as usize;
                if self.breaks.len() <= label {
                    self.breaks.resize(label + 1, 0);
                }
                self.breaks[label] += 1;
            }
            _ => {}
        }
        true
    }

    /// Replaces results of an `If` for which both regions yield the same outer value.
    fn same_results(&mut self, inst: &mut Inst) {
        let Op::If { then, otherwise, .. } = &mut inst.op else { return };
        let (Some(Inst { op: Op::Yield(a), .. }), Some(Inst { op: Op::Yield(b), .. })) =
            (then.insts.last_mut(), otherwise.insts.last_mut())
        else {
            return;
        };
        let mut k = 0;
        while k < inst.results.len() {
            if a[k] == b[k] {
                self.replacements[inst.results[k].0 as usize] = a[k];
                inst.results.remove(k);
                a.remove(k);
                b.remove(k);
            } else {
                k += 1;
            }
        }
    }

    /// Removes the `Yield` (or `Break` of `label`) that a dissolved region left at the end of
    /// `out`; its values replace `results`. Any other terminator also ends the region around it.
    /// Returns whether there is such a terminator.
    fn open(&mut self, label: Option<Label>, results: &Values, out: &mut Vec<Inst>) -> bool {
        let values = match out.last().map(|i| &i.op) {
            Some(Op::Yield(values)) => values.clone(),
            Some(Op::Break(l, values)) if Some(*l) == label => values.clone(),
            _ => return true,
        };
        out.pop();
        for (r, v) in results.iter().zip(values) {
            self.replacement(*r, v);
        }
        false
    }
}
