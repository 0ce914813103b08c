//! Sinking: a computation that only code after a loop needs moves after the loop. Examples are a
//! view of an output row that the kernel makes at its start, and the bounds of its last stores. If
//! computed before the loop, each would occupy a register throughout.
//!
//! A pure instruction sinks past a loop if all its uses come after the loop, and if that lowers the
//! number of registers held. The instruction's operands must then stay live instead. Parameters,
//! constants and special registers cost none. Each instruction moves to just before its first use,
//! and none runs more often than before.

use crate::error::Errors;
use crate::ir::*;
use crate::scalar::Scalar;
use std::collections::{HashMap, HashSet};

/// Moves instructions whose results are used only after a loop to the code after the loop.
pub fn sink(kernel: &mut Kernel) -> Result<(), Errors> {
    let n = kernel.values.len();
    let mut sinker = Sinker { types: &kernel.values, free: vec![false; n], home: vec![None; n], regions: 0 };
    sinker.region(&mut kernel.body, false);
    Ok(())
}

struct Sinker<'k> {
    types: &'k [Type],
    /// Whether a value takes no register, or can be computed again at any time.
    free: Vec<bool>,
    /// For each value, the number of the region that defines it, and the position in that region.
    home: Vec<Option<(u32, usize)>>,
    regions: u32,
}

/// The uses of a region's instructions, by position.
struct UsePlaces {
    region: u32,
    /// For each instruction, the positions where its results are used.
    users: Vec<Vec<usize>>,
    /// For each value that is defined outside the region, the position of its last use.
    outer: HashMap<Value, usize>,
    /// The positions of instructions that contain a loop.
    loops: Vec<usize>,
}

impl Sinker<'_> {
    /// Visits a region, which may be the body of a loop.
    fn region(&mut self, region: &mut Region, looping: bool) {
        self.regions += 1;
        let number = self.regions;
        for (at, inst) in region.insts.iter().enumerate() {
            let free = matches!(inst.op, Op::Constant(_) | Op::Parameter(_) | Op::Special(_) | Op::Table(_));
            for result in &inst.results {
                self.free[result.0 as usize] = free;
                self.home[result.0 as usize] = Some((number, at));
            }
        }
        if region.insts.iter().any(holds_loop) {
            let uses = self.uses(region, number);
            let mut places: Vec<usize> = (0..region.insts.len()).collect();
            for at in &uses.loops {
                self.past(region, &uses, *at, looping, &mut places);
            }
            reorder(region, &places);
        }
        for inst in &mut region.insts {
            let looping = matches!(inst.op, Op::For(_) | Op::Loop { .. });
            inst.op.regions_mut().into_iter().for_each(|r| self.region(r, looping));
        }
    }

    fn uses(&self, region: &Region, number: u32) -> UsePlaces {
        let mut uses = UsePlaces {
            region: number,
            users: vec![Vec::new(); region.insts.len()],
            outer: Default::default(),
            loops: (0..region.insts.len()).filter(|at| holds_loop(&region.insts[*at])).collect(),
        };
        for (at, inst) in region.insts.iter().enumerate() {
            for_each_use(inst, &mut |v| match self.home[v.0 as usize] {
                Some((home, from)) if home == number => {
                    if uses.users[from].last() != Some(&at) {
                        uses.users[from].push(at);
                    }
                }
                _ => _ = uses.outer.insert(v, at),
            });
        }
        uses
    }

    /// Finds the instructions that sink past the instruction at `barrier`, and their new places.
    fn past(&self, region: &Region, uses: &UsePlaces, barrier: usize, looping: bool, places: &mut [usize]) {
        let mut may = vec![false; barrier];
        for at in (0..barrier).rev() {
            let inst = &region.insts[at];
            may[at] = places[at] < barrier
                && inst.op.is_pure()
                && !self.free[inst.results[0].0 as usize]
                && !uses.users[at].is_empty()
                && uses.users[at].iter().all(|user| places[*user] > barrier || may.get(*user) == Some(&true));
        }
        if !may.contains(&true) {
            return;
        }
        let mut within = HashSet::new();
        let inner = region.insts[barrier].op.regions().into_iter().flat_map(|r| &r.insts);
        inner.for_each(|i| for_each_use(i, &mut |v| _ = within.insert(v)));
        for group in self.groups(region, uses, &may) {
            let crosses = |at: &&usize| uses.users[**at].iter().any(|user| places[*user] > barrier);
            let freed: u32 =
                group.members.iter().filter(crosses).map(|at| self.width(region.insts[*at].results[0])).sum();
            let stays = |v: &&Value| !within.contains(*v) && !self.lives_past(**v, uses, barrier, looping, places);
            let held: u32 = group.operands.iter().filter(stays).map(|v| self.width(*v)).sum();
            if freed > held {
                for at in group.members.iter().rev() {
                    places[*at] = uses.users[*at].iter().map(|user| places[*user]).min().unwrap_or(*at);
                }
            }
        }
    }

    /// Returns whether a value is used after the instruction at `barrier` anyway.
    fn lives_past(&self, v: Value, uses: &UsePlaces, barrier: usize, looping: bool, places: &[usize]) -> bool {
        match self.home[v.0 as usize] {
            Some((home, at)) if home == uses.region => uses.users[at].iter().any(|user| places[*user] > barrier),
            // A value from outside the loop stays live through all iterations, unless the loop
            // carries it.
            home => looping && home.is_some() || uses.outer.get(&v).is_some_and(|last| *last > barrier),
        }
    }

    /// Returns the instructions that may sink, in groups that share operands. Operands that cost no
    /// register do not count.
    fn groups(&self, region: &Region, uses: &UsePlaces, may: &[bool]) -> Vec<SinkGroup> {
        let mut groups: Vec<SinkGroup> = Vec::new();
        for at in (0..may.len()).filter(|at| may[*at]) {
            let mut group = SinkGroup { members: vec![at], operands: Vec::new() };
            let mut joined = Vec::new();
            region.insts[at].op.for_each_operand(|v| {
                if self.free[v.0 as usize] {
                    return;
                }
                let member = match self.home[v.0 as usize] {
                    Some((home, from)) if home == uses.region && from < at && may[from] => Some(from),
                    _ => None,
                };
                if member.is_none() && !group.operands.contains(&v) {
                    group.operands.push(v);
                }
                joined.extend(groups.iter().position(|g| match member {
                    Some(from) => g.members.contains(&from),
                    None => g.operands.contains(&v),
                }));
            });
            joined.sort_unstable();
            joined.dedup();
            for other in joined.into_iter().rev() {
                let SinkGroup { members, operands } = groups.remove(other);
                group.members.extend(members);
                group.operands.extend(operands);
            }
            group.members.sort_unstable();
            group.operands.sort_unstable();
            group.operands.dedup();
            groups.push(group);
        }
        groups
    }

    /// Returns the registers that a value takes.
    fn width(&self, v: Value) -> u32 {
        match self.types[v.0 as usize] {
            Type::Global | Type::Constant => 2,
            Type::Shared => 1,
            // There are seven predicates. One that is held over a loop may become a register.
            Type::Scalar(Scalar::Bool) => 1,
            Type::Scalar(s) => s.bits().div_ceil(32),
        }
    }
}

/// Instructions that sink together, and their operands from outside the group.
struct SinkGroup {
    members: Vec<usize>,
    operands: Vec<Value>,
}

fn holds_loop(inst: &Inst) -> bool {
    matches!(inst.op, Op::For(_) | Op::Loop { .. }) || inst.op.regions().iter().any(|r| r.insts.iter().any(holds_loop))
}

/// Calls `f` for each value that an instruction, or an instruction in its regions, uses.
fn for_each_use(inst: &Inst, f: &mut dyn FnMut(Value)) {
    inst.op.for_each_operand(&mut *f);
    for region in inst.op.regions() {
        region.insts.iter().for_each(|i| for_each_use(i, f));
    }
}

/// Moves each instruction to just before the instruction at its new place.
fn reorder(region: &mut Region, places: &[usize]) {
    if places.iter().enumerate().all(|(at, place)| at == *place) {
        return;
    }
    let mut order: Vec<usize> = (0..places.len()).collect();
    // Instructions before the same instruction keep their order.
    order.sort_by_key(|at| (places[*at], *at));
    let mut insts: Vec<Option<Inst>> = std::mem::take(&mut region.insts).into_iter().map(Some).collect();
    region.insts = order.into_iter().filter_map(|at| insts[at].take()).collect();
}
