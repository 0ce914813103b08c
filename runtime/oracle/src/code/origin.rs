//! The argument that each address of a kernel is computed from.
//!
//! An access through a computed address is therefore checked against the buffer that the kernel
//! meant, even if the address points into another one.

use crate::code::Origin;
use kernel_dsl_compiler::ir::{Kernel, Label, Op, Region, Role, Value, Values};
use std::collections::HashMap;

/// Returns the origin of each value; [`Origin::None`] for a value that is not a global address.
pub fn origins(kernel: &Kernel) -> Vec<Origin> {
    let origins = vec![Origin::None; kernel.values.len()];
    let mut flow = OriginState { kernel, origins, locals: vec![Origin::None; kernel.locals.len()], changed: true };
    // Loops carry addresses back to their beginning, so the analysis repeats until nothing changes.
    // An origin changes at most twice, so this ends.
    while std::mem::take(&mut flow.changed) {
        flow.region(&kernel.body, &Values::new(), &mut HashMap::new());
    }
    flow.origins
}

/// The origins found so far, and whether the last pass has changed one.
struct OriginState<'k> {
    kernel: &'k Kernel,
    origins: Vec<Origin>,
    /// The origin of each local: the join of its assigned values.
    locals: Vec<Origin>,
    changed: bool,
}

/// The targets of the values of a label's `Break` and `Continue`.
type Targets = HashMap<Label, (Values, Values)>;

impl OriginState<'_> {
    fn join(&mut self, to: Value, origin: Origin) {
        let Some(old) = self.origins.get(to.0 as usize).copied() else { return };
        let new = old.join(origin);
        if new != old && self.kernel.values[to.0 as usize].is_wide_address() {
            self.origins[to.0 as usize] = new;
            self.changed = true;
        }
    }

    fn move_values(&mut self, to: &[Value], from: &[Value]) {
        for (&to, &from) in to.iter().zip(from) {
            let origin = self.origins.get(from.0 as usize).copied().unwrap_or(Origin::None);
            self.join(to, origin);
        }
    }

    fn region(&mut self, region: &Region, yields: &Values, targets: &mut Targets) {
        for inst in &region.insts {
            let results = &inst.results;
            match &inst.op {
                Op::Parameter(i) => {
                    if let (Some(p), [to]) = (self.kernel.parameters.get(*i as usize), results.as_slice())
                        && matches!(p.role, Role::Address { .. })
                    {
                        self.join(*to, Origin::Argument(p.argument));
                    }
                }
                // Tables follow the arguments.
                Op::Table(table) => {
                    let arguments = self.kernel.parameters.iter().map(|p| p.argument + 1).max().unwrap_or(0);
                    results.iter().for_each(|to| self.join(*to, Origin::Argument(arguments + table.0)));
                }
                Op::If { then, otherwise, .. } => {
                    self.region(then, results, targets);
                    self.region(otherwise, results, targets);
                }
                Op::For(l) => {
                    let carried: Values = l.body.parameters.iter().skip(1).copied().collect();
                    self.move_values(&carried, &l.inits);
                    targets.insert(l.label, (results.clone(), carried.clone()));
                    self.region(&l.body, &carried, targets);
                    self.move_values(results, &carried);
                }
                Op::Loop { label, inits, body } => {
                    self.move_values(&body.parameters, inits);
                    targets.insert(*label, (results.clone(), body.parameters.clone()));
                    self.region(body, &body.parameters, targets);
                }
                Op::Block { label, body } => {
                    targets.insert(*label, (results.clone(), Values::new()));
                    self.region(body, results, targets);
                }
                Op::Yield(values) => self.move_values(yields, values),
                Op::Break(label, values) => {
                    if let Some((to, _)) = targets.get(label).cloned() {
                        self.move_values(&to, values);
                    }
                }
                Op::Continue(label, values) => {
                    if let Some((_, to)) = targets.get(label).cloned() {
                        self.move_values(&to, values);
                    }
                }
                Op::WriteLocal { local, value, .. } => {
                    let origin = self.origins.get(value.0 as usize).copied().unwrap_or(Origin::None);
                    if let Some(held) = self.locals.get_mut(local.0 as usize) {
                        let new = held.join(origin);
                        self.changed |= new != *held;
                        *held = new;
                    }
                }
                Op::ReadLocal { local, .. } => {
                    let held = self.locals.get(local.0 as usize).copied().unwrap_or(Origin::None);
                    results.iter().for_each(|to| self.join(*to, held));
                }
                op => {
                    if let [to] = results.as_slice() {
                        op.for_each_operand(|v| self.move_values(&[*to], &[v]));
                    }
                }
            }
        }
    }
}
