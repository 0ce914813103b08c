//! Constructs of control flow, and the jumps out of them.

use super::{Construct, Decoder, Result, name_of};
use crate::code::frame::FrameRegister;
use crate::code::{Inst, Pc, SlotIndex};
use kernel_dsl_compiler::Scalar;
use kernel_dsl_compiler::ir::{self, Label, Op, Value};

impl Decoder<'_> {
    /// Decodes an operation that has regions.
    pub(super) fn construct(&mut self, inst: &ir::Inst) -> Result<()> {
        let slot = self.open.len() as SlotIndex;
        self.code.slots = self.code.slots.max(slot + 1);
        let location = inst.location;
        let leave = match &inst.op {
            Op::If { condition, then, otherwise } => {
                let condition = self.typed(*condition, Scalar::Bool)?;
                let results = inst.results.iter().map(|v| self.define(*v)).collect::<Result<Vec<_>>>()?;
                let begin = self.emit(Inst::If { slot, condition, otherwise: 0 });
                self.open.push(Construct { label: None, results: Vec::new(), carried: None });
                self.region(then, &results)?;
                self.location = location;
                // With an empty `otherwise`, lanes whose condition is false wait at the end.
                self.patch_jump(begin);
                let nothing = matches!(&otherwise.insts[..], [ir::Inst { op: Op::Yield(v), .. }] if v.is_empty());
                if !(nothing && results.is_empty()) {
                    let middle = self.emit(Inst::Else { slot, end: 0 });
                    self.region(otherwise, &results)?;
                    self.patch_jump(middle);
                }
                Inst::EndIf { slot, exit: 0 }
            }
            Op::Block { label, body } => {
                let results = inst.results.iter().map(|v| self.define(*v)).collect::<Result<Vec<_>>>()?;
                self.emit(Inst::Enter { slot });
                self.open.push(Construct { label: Some(*label), results: results.clone(), carried: None });
                self.region(body, &results)?;
                Inst::Leave { slot, exit: 0 }
            }
            Op::Loop { label, inits, body } => {
                let results = inst.results.iter().map(|v| self.define(*v)).collect::<Result<Vec<_>>>()?;
                let carried = body.parameters.iter().map(|v| self.define(*v)).collect::<Result<Vec<_>>>()?;
                self.move_values(&carried, inits)?;
                self.emit(Inst::Enter { slot });
                let first = self.here();
                self.open.push(Construct { label: Some(*label), results, carried: Some(carried.clone()) });
                self.region(body, &carried)?;
                self.location = location;
                self.emit(Inst::Again { slot, body: first });
                Inst::Leave { slot, exit: 0 }
            }
            Op::For(l) => {
                let [index, ref carried @ ..] = l.body.parameters[..] else {
                    return self.refuse("the body of a `For` has no parameter for the index");
                };
                let ty = self.scalar(l.start)?;
                if !ty.is_integer() || self.scalar(index)? != ty {
                    return self.refuse(format!("a `For` starts at a `{ty}`, which cannot be the start of its index"));
                }
                if carried.len() != inst.results.len() {
                    let (results, carried) = (inst.results.len(), carried.len());
                    return self.refuse(format!("a `For` has {results} results for {carried} carried values"));
                }
                let start = self.register_of(l.start)?;
                let (limit, step) = (self.typed(l.end, ty)?, self.typed(l.step, ty)?);
                let index = self.define(index)?;
                let carried = carried.iter().map(|v| self.define(*v)).collect::<Result<Vec<_>>>()?;
                // A lane that has left the loop no longer changes its carried values: they are the
                // results.
                for (result, register) in inst.results.iter().zip(&carried) {
                    if (self.scalar(*result)?.bits() == 64) != register.wide {
                        return self.refuse(format!(
                            "%{}, a result of a `For`, has another width than its carried value",
                            result.0
                        ));
                    }
                    self.bind(*result, *register)?;
                }
                self.move_values(&carried, &l.inits)?;
                self.emit(Inst::Copy { to: index, from: start });
                self.emit(Inst::EnterFor { ty, slot, step });
                let test = self.emit(Inst::Test { ty, slot, index: index.row, limit, end: 0 });
                self.open.push(Construct {
                    label: Some(l.label),
                    results: carried.clone(),
                    carried: Some(carried.clone()),
                });
                self.region(&l.body, &carried)?;
                self.location = location;
                self.emit(Inst::Step { ty, slot, index: index.row, step, limit, body: test + 1 });
                self.patch_jump(test);
                Inst::Leave { slot, exit: 0 }
            }
            _ => return self.refuse(format!("the oracle cannot run `{}` here", name_of(&inst.op))),
        };
        self.open.pop();
        self.location = location;
        let pc = self.emit(leave);
        self.exits.push(pc);
        Ok(())
    }

    /// Returns the innermost construct with that label.
    pub(super) fn target(&self, label: Label) -> Result<(SlotIndex, &Construct)> {
        match self.open.iter().rposition(|c| c.label == Some(label)) {
            Some(slot) => Ok((slot as SlotIndex, &self.open[slot])),
            None => self.refuse(format!("no enclosing construct has label {}", label.0)),
        }
    }

    /// Moves values to registers, all at once: a register that is also a source keeps its value
    /// until it is read.
    pub(super) fn move_values(&mut self, to: &[FrameRegister], values: &[Value]) -> Result<()> {
        let mut from = self.registers(values)?;
        if to.len() != from.len() || to.iter().zip(&from).any(|(t, f)| t.wide != f.wide) {
            return self.refuse(format!(
                "the {} values passed here do not have the number ({}) and types of their targets",
                from.len(),
                to.len()
            ));
        }
        let clash = (0..to.len()).any(|i| from[i + 1..].contains(&to[i]));
        if clash {
            for from in &mut from {
                let spare = self.register(from.wide);
                self.emit(Inst::Copy { to: spare, from: *from });
                *from = spare;
            }
        }
        for (&to, &from) in to.iter().zip(&from).filter(|(to, from)| to != from) {
            self.emit(Inst::Move { to, from });
        }
        Ok(())
    }

    /// Sets the jump of the instruction at `pc` to the next one.
    pub(super) fn patch_jump(&mut self, pc: Pc) {
        let here = self.here();
        match &mut self.code.insts[pc as usize] {
            Inst::If { otherwise: to, .. }
            | Inst::Else { end: to, .. }
            | Inst::EndIf { exit: to, .. }
            | Inst::Test { end: to, .. }
            | Inst::Leave { exit: to, .. } => *to = here,
            _ => {}
        }
    }
}
