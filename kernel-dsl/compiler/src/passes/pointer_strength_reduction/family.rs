//! The values that a carried address takes within its loop, and their uses.

use super::super::exits::Exits;
use crate::hash::FastMap;
use crate::ir::*;
use std::collections::HashSet;

/// The distance by which an address is moved: a number of elements, and the bytes of an element.
pub type Distance = (Value, u32);

/// The addresses in a loop's body.
pub struct LoopAddresses<'r> {
    label: Label,
    region: &'r Region,
    /// The values that the body defines.
    inside: HashSet<Value>,
    /// The operations in the body that compute an address from another address.
    moved: FastMap<Value, &'r Op>,
    /// The values that each end of an iteration passes to the next.
    next: Vec<&'r Values>,
}

/// A carried address, and the addresses made from it until the next iteration.
pub struct Family {
    /// The loop's parameter, and the addresses computed from it on the way to the next iteration.
    pub members: HashSet<Value>,
    /// The distances by which members move.
    pub steps: Vec<Distance>,
}

impl<'r> LoopAddresses<'r> {
    /// Collects the addresses in the body `region` of the loop `label`; `types` are the types of
    /// the kernel's values.
    pub fn of(region: &'r Region, label: Label, types: &[Type]) -> LoopAddresses<'r> {
        let mut body = LoopAddresses {
            label,
            region,
            inside: HashSet::new(),
            moved: FastMap::default(),
            next: Exits::of(region, label).next,
        };
        body.collect(region, types);
        body
    }

    fn collect(&mut self, region: &'r Region, types: &[Type]) {
        self.inside.extend(&region.parameters);
        for inst in &region.insts {
            self.inside.extend(&inst.results);
            match &inst.op {
                Op::Offset { .. } | Op::Select { .. } if types[inst.results[0].0 as usize].scalar().is_none() => {
                    self.moved.insert(inst.results[0], &inst.op);
                }
                op => op.regions().into_iter().for_each(|r| self.collect(r, types)),
            }
        }
    }

    /// Returns the family of carried value `k`, whose parameter is `parameter`. Returns `None` if
    /// an iteration passes on an address that is not computed from it.
    pub fn family(&self, k: usize, parameter: Value) -> Option<Family> {
        let mut family = Family { members: HashSet::from([parameter]), steps: Vec::new() };
        let mut rest: Vec<Value> = self.next.iter().map(|values| values[k]).collect();
        while let Some(v) = rest.pop() {
            if !family.members.insert(v) {
                continue;
            }
            match self.moved.get(&v)? {
                Op::Offset { base, terms, bytes } => match terms[..] {
                    [(index, None)] => {
                        rest.push(*base);
                        family.steps.push((index, *bytes));
                    }
                    _ => return None,
                },
                Op::Select { yes, no, .. } => rest.extend([*yes, *no]),
                _ => return None,
            }
        }
        Some(family)
    }

    /// Returns the loop-invariant distance that all uses of the family add, if it is the same. Uses
    /// that compute members do not count.
    pub fn distance(&self, k: usize, family: &Family) -> Option<Distance> {
        let mut found = None;
        self.agrees(self.region, true, k, &family.members, &mut found).then_some(found?)
    }

    fn agrees(
        &self,
        region: &Region,
        outermost: bool,
        k: usize,
        members: &HashSet<Value>,
        found: &mut Option<Distance>,
    ) -> bool {
        region.insts.iter().all(|inst| {
            let mut uses = 0;
            inst.op.for_each_operand(|v| uses += usize::from(members.contains(&v)));
            let fits = match &inst.op {
                _ if uses == 0 || inst.results.first().is_some_and(|r| members.contains(r)) => true,
                Op::Yield(values) if outermost => uses == 1 && members.contains(&values[k]),
                Op::Continue(label, values) if *label == self.label => uses == 1 && members.contains(&values[k]),
                Op::Offset { terms, bytes, .. } => match terms[..] {
                    [(index, None)] if !self.inside.contains(&index) => {
                        *found.get_or_insert((index, *bytes)) == (index, *bytes)
                    }
                    _ => false,
                },
                _ => false,
            };
            fits && inst.op.regions().into_iter().all(|r| self.agrees(r, false, k, members, found))
        })
    }
}

/// Returns whether ptxas may unroll a loop with this body. ptxas does not unroll a loop with a
/// barrier, or with `.pragma "nounroll"`.
pub fn unrolls(body: &Region, unroll: Unroll) -> bool {
    unroll != Unroll::Never && !waits(body)
}

/// Returns whether a region contains a barrier.
fn waits(region: &Region) -> bool {
    region.insts.iter().any(|i| matches!(i.op, Op::BlockSync | Op::GridSync) || i.op.regions().into_iter().any(waits))
}
