//! Loop-carried value elimination: a carried value that every iteration passes on unchanged is the
//! value before the loop.
//!
//! A loop that moves a view also carries its extents and strides, which do not change. Nested loops
//! all carry a variable that one of them assigns. Until this pass removes such values, nothing
//! computed from them is invariant.

use super::exits::Exits;
use crate::error::Errors;
use crate::ir::*;

/// Replaces carried values that do not change by their first values.
pub fn loop_carried(kernel: &mut Kernel) -> Result<(), Errors> {
    let mut finder =
        CarriedValueFinder { replacements: (0..kernel.values.len() as u32).map(Value).collect(), found: false };
    finder.region(&mut kernel.body);
    if finder.found {
        // A loop's body was visited before the replacements of its parameters were known.
        finder.replace(&mut kernel.body);
    }
    Ok(())
}

struct CarriedValueFinder {
    /// The replacement of each value.
    replacements: Vec<Value>,
    found: bool,
}

impl CarriedValueFinder {
    fn replacement(&self, mut v: Value) -> Value {
        while self.replacements[v.0 as usize] != v {
            v = self.replacements[v.0 as usize];
        }
        v
    }

    fn replace(&self, region: &mut Region) {
        for inst in &mut region.insts {
            inst.op.map_operands(|v| self.replacement(v));
            inst.op.regions_mut().into_iter().for_each(|r| self.replace(r));
        }
    }

    /// Visits a region, inner loops first: if inner loops pass a value on unchanged, outer loops
    /// may do so too.
    fn region(&mut self, region: &mut Region) {
        for inst in &mut region.insts {
            inst.op.map_operands(|v| self.replacement(v));
            inst.op.regions_mut().into_iter().for_each(|r| self.region(r));
            match &inst.op {
                Op::For(l) => {
                    let exits = Exits::of(&l.body, l.label);
                    for (k, (parameter, init)) in l.body.parameters[1..].iter().zip(&l.inits).enumerate() {
                        let same = |values: &&Values| [*parameter, *init].contains(&self.replacement(values[k]));
                        if !exits.next.iter().all(same) {
                            continue;
                        }
                        let leaves = exits.breaks.iter().all(same);
                        self.replacements[parameter.0 as usize] = *init;
                        if leaves {
                            self.replacements[inst.results[k].0 as usize] = *init;
                        }
                        self.found = true;
                    }
                }
                Op::Loop { label, inits, body } => {
                    let exits = Exits::of(body, *label);
                    for (k, (parameter, init)) in body.parameters.iter().zip(inits).enumerate() {
                        if exits.next.iter().all(|values| [*parameter, *init].contains(&self.replacement(values[k]))) {
                            self.replacements[parameter.0 as usize] = *init;
                            self.found = true;
                        }
                    }
                }
                _ => {}
            }
        }
    }
}
