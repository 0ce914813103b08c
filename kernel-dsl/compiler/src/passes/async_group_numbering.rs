//! Async-group numbering: how many groups of copies a thread closes after the group that it waits
//! for.
//!
//! The machine waits for all groups of a thread except the last N, for a constant N
//! (`cp.async.wait_group N`). Lowering identifies the group by a value that loops and variables
//! pass on. For each path to a wait, this pass counts the groups that were closed since that group.
//! N is the minimum over the paths. Where the group of a value is unknown, the wait is for all
//! groups.

use crate::error::Errors;
use crate::hash::FastMap;
use crate::ir::{Inst, Kernel, Label, Op, Region, Value, Values, WaitGroup};

/// Replaces the group of each wait by the number of groups that may still be in flight.
pub fn async_group_numbering(kernel: &mut Kernel) -> Result<(), Errors> {
    if !waits(&kernel.body) {
        return Ok(());
    }
    let mut walk = AgeWalk { open: Vec::new(), found: Vec::new() };
    walk.region(&kernel.body, Ages::default(), &mut 0);
    let mut next = 0;
    set(&mut kernel.body, &walk.found, &mut next);
    Ok(())
}

fn waits(region: &Region) -> bool {
    region.insts.iter().any(|i| matches!(i.op, Op::CopyWait(_)) || i.op.regions().into_iter().any(waits))
}

/// Sets the count of each wait for a group, in the order of the code.
fn set(region: &mut Region, found: &[u32], next: &mut usize) {
    for inst in &mut region.insts {
        if let Op::CopyWait(landing @ WaitGroup::UpTo(_)) = &mut inst.op {
            *landing = WaitGroup::AllBut(found.get(*next).copied().unwrap_or(0));
            *next += 1;
        }
        inst.op.regions_mut().into_iter().for_each(|r| set(r, found, next));
    }
}

/// The number of groups closed since the group of a value. A value that is absent belongs to no
/// known group and counts 0. [`NEVER_CLOSED`] means that the value is not a group: a constant, for
/// example.
#[derive(Clone, Default)]
struct Ages(FastMap<Value, u32>);

/// The age of a value that is not a group. A wait for such a value waits for nothing.
const NEVER_CLOSED: u32 = u32::MAX;

impl Ages {
    fn of(&self, value: Value) -> u32 {
        self.0.get(&value).copied().unwrap_or(0)
    }

    fn set(&mut self, value: Value, age: u32) {
        self.0.insert(value, age);
    }

    fn close(&mut self) {
        self.0
            .values_mut()
            .filter(|age| **age != NEVER_CLOSED)
            .for_each(|age| *age = age.saturating_add(1).min(NEVER_CLOSED - 1));
    }

    /// Merges the facts of two paths. Returns whether facts were lost.
    fn join(&mut self, other: &Ages) -> bool {
        let mut changed = false;
        for (value, age) in self.0.iter_mut() {
            let least = (*age).min(other.of(*value));
            changed |= least != *age;
            *age = least;
        }
        changed
    }

    /// Returns the ages at a jump that passes `values` to `parameters`.
    fn at_jump(mut self, values: &[Value], parameters: &[Value]) -> Ages {
        let ages: Vec<u32> = values.iter().map(|v| self.of(*v)).collect();
        parameters.iter().zip(ages).for_each(|(p, age)| self.set(*p, age));
        self
    }
}

/// A construct around the current instruction.
struct NumberedConstruct {
    label: Label,
    /// The ages at each `break`, and the values that it passes on.
    left: Vec<(Ages, Values)>,
    /// The ages at each `continue`, and the values that it passes on.
    again: Vec<(Ages, Values)>,
}

struct AgeWalk {
    open: Vec<NumberedConstruct>,
    /// The count that the last visit of each wait gave, in the order of the code.
    found: Vec<u32>,
}

/// The ages and results at the end of a region; `None` if every path jumps out of the region.
type RegionEnd = Option<(Ages, Values)>;

impl AgeWalk {
    /// Walks `region`; `at` is the number of waits before it.
    fn region(&mut self, region: &Region, mut ages: Ages, at: &mut usize) -> RegionEnd {
        let mut insts = region.insts.iter();
        while let Some(inst) = insts.next() {
            match &inst.op {
                Op::Yield(values) => return Some((ages, values.clone())),
                Op::Break(label, values) | Op::Continue(label, values) => {
                    if let Some(open) = self.open.iter_mut().rfind(|o| o.label == *label) {
                        let list = if matches!(inst.op, Op::Break(..)) { &mut open.left } else { &mut open.again };
                        list.push((ages, values.clone()));
                    }
                    return None;
                }
                Op::Return => return None,
                Op::CopyCommit => {
                    ages.close();
                    ages.set(inst.results[0], 0);
                }
                Op::CopyWait(WaitGroup::UpTo(group)) => {
                    let age = ages.of(*group);
                    self.found.resize(self.found.len().max(*at + 1), 0);
                    self.found[*at] = if age == NEVER_CLOSED { 0 } else { age };
                    *at += 1;
                }
                Op::Constant(_) => ages.set(inst.results[0], NEVER_CLOSED),
                Op::Select { yes, no, .. } => {
                    let age = ages.of(*yes).min(ages.of(*no));
                    ages.set(inst.results[0], age);
                }
                op if op.regions().is_empty() => {}
                _ => match self.construct(inst, ages, at) {
                    Some(after) => ages = after,
                    None => {
                        // Code after this point is unreachable, but its waits count.
                        insts.for_each(|i| *at += i.op.regions().into_iter().map(count).sum::<usize>() + own_waits(i));
                        return None;
                    }
                },
            }
        }
        Some((ages, Values::new()))
    }

    /// Walks a branch, loop or block, and returns the ages after it, with those of its results.
    fn construct(&mut self, inst: &Inst, ages: Ages, at: &mut usize) -> Option<Ages> {
        let mut ends: Vec<(Ages, Values)> = Vec::new();
        match &inst.op {
            Op::If { then, otherwise, .. } => {
                ends.extend(self.region(then, ages.clone(), at));
                ends.extend(self.region(otherwise, ages, at));
            }
            Op::Block { label, body } => {
                self.open.push(NumberedConstruct { label: *label, left: Vec::new(), again: Vec::new() });
                ends.extend(self.region(body, ages, at));
                ends.extend(self.open.pop().into_iter().flat_map(|open| open.left));
            }
            Op::For(l) => {
                let head = ages.at_jump(&l.inits, &l.body.parameters[1..]);
                let (head, left) = self.looping(l.label, &l.body, &l.body.parameters[1..], head, at);
                ends.extend(left);
                ends.push((head, l.body.parameters[1..].iter().copied().collect()));
            }
            Op::Loop { label, inits, body } => {
                let head = ages.at_jump(inits, &body.parameters);
                ends.extend(self.looping(*label, body, &body.parameters, head, at).1);
            }
            _ => {}
        }
        let ends = ends.into_iter().map(|(ages, values)| ages.at_jump(&values, &inst.results));
        ends.reduce(|mut all, end| {
            all.join(&end);
            all
        })
    }

    /// Walks a loop's body until the ages at its start hold for all iterations. Returns these ages,
    /// and the ages and values at its exits.
    fn looping(
        &mut self,
        label: Label,
        body: &Region,
        carried: &[Value],
        mut head: Ages,
        at: &mut usize,
    ) -> (Ages, Vec<(Ages, Values)>) {
        let before = *at;
        loop {
            *at = before;
            self.open.push(NumberedConstruct { label, left: Vec::new(), again: Vec::new() });
            let end = self.region(body, head.clone(), at);
            let Some(NumberedConstruct { left, mut again, .. }) = self.open.pop() else { return (head, Vec::new()) };
            again.extend(end);
            let changed = again
                .into_iter()
                .fold(false, |changed, (ages, values)| head.join(&ages.at_jump(&values, carried)) || changed);
            if !changed {
                *at = before + count(body);
                return (head, left);
            }
        }
    }
}

/// Returns the number of waits for groups in a region.
fn count(region: &Region) -> usize {
    region.insts.iter().map(|i| own_waits(i) + i.op.regions().into_iter().map(count).sum::<usize>()).sum()
}

fn own_waits(inst: &Inst) -> usize {
    usize::from(matches!(inst.op, Op::CopyWait(WaitGroup::UpTo(_))))
}
