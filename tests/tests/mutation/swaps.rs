//! What is stored where it is already.
//!
//! A branch that only stores, each time to a place that was loaded from right before, one of two integers where the other was loaded, changes nothing where both are equal: whether it is
//! taken there does not matter, and so it is of a store with a mask. A comparison of both that nothing else depends on may ask whether one is less instead of not more.
//!
//! Between the load and the store the thread does nothing that others could be ordered by: if someone else wrote there meanwhile, the load would race with it. What it stores itself
//! are such stores of the same two.

use kernel_dsl::compiler::ir::{Comparison, Inst, Kernel, Op, Place, Region, Type, Value};
use std::collections::{HashMap, HashSet};

/// Has the stricter comparison of two integers where only what changes nothing where they are equal depends on it; whether there was one.
pub fn swaps(kernel: &mut Kernel) -> bool {
    let mut uses = Uses { kernel, users: HashMap::new(), compared: Vec::new(), exchanges: Vec::new() };
    uses.region(&kernel.body);
    let free = uses.compared.iter().filter(|(value, pair)| uses.leads_to_exchanges(*value, *pair));
    let strict: HashSet<Value> = free.map(|(value, _)| *value).collect();
    rewrite(&mut kernel.body, &strict);
    !strict.is_empty()
}

fn rewrite(region: &mut Region, strict: &HashSet<Value>) {
    for inst in &mut region.insts {
        if let Op::Compare(comparison, ..) = &mut inst.op
            && strict.contains(&inst.results[0])
        {
            *comparison = if *comparison == Comparison::Le { Comparison::Lt } else { Comparison::Gt };
        }
        inst.op.regions_mut().into_iter().for_each(|inner| rewrite(inner, strict));
    }
}

/// Two values, the lesser number first.
type Pair = [Value; 2];

fn pair(a: Value, b: Value) -> Pair {
    [a.min(b), a.max(b)]
}

/// What a value goes to.
#[derive(Clone, Copy)]
enum User {
    /// What is computed of it, alone or with others.
    Value(Value),
    /// The condition of what stores where the other of two was loaded, by its number.
    Exchange(usize),
    Other,
}

struct Uses<'k> {
    kernel: &'k Kernel,
    users: HashMap<Value, Vec<User>>,
    /// Comparisons of integers that hold where both are equal, and of what they are.
    compared: Vec<(Value, Pair)>,
    /// What is exchanged by each branch or store that does nothing else.
    exchanges: Vec<Pair>,
}

impl Uses<'_> {
    fn region(&mut self, region: &Region) {
        for (at, inst) in region.insts.iter().enumerate() {
            let before = &region.insts[..at];
            let condition = match (&inst.op, exchanged(before, inst)) {
                (Op::If { condition, .. } | Op::Store { guard: Some(condition), .. }, Some(of)) => {
                    self.exchanges.push(of);
                    Some(*condition)
                }
                _ => None,
            };
            let user = match &inst.results[..] {
                [result] if inst.op.is_pure() && inst.op.regions().is_empty() => User::Value(*result),
                _ => User::Other,
            };
            let mut left = condition;
            inst.op.for_each_operand(|value| {
                let user = if left.take_if(|condition| *condition == value).is_some() {
                    User::Exchange(self.exchanges.len() - 1)
                } else {
                    user
                };
                self.users.entry(value).or_default().push(user);
            });
            if let Op::Compare(Comparison::Le | Comparison::Ge, a, b) = &inst.op
                && matches!(self.kernel.ty(*a), Type::Scalar(ty) if ty.is_integer())
            {
                self.compared.push((inst.results[0], pair(*a, *b)));
            }
            inst.op.regions().into_iter().for_each(|inner| self.region(inner));
        }
    }

    /// Whether all that comes of a value is whether these two are exchanged.
    fn leads_to_exchanges(&self, value: Value, of: Pair) -> bool {
        let users = self.users.get(&value).map_or(&[][..], Vec::as_slice);
        !users.is_empty()
            && users.iter().all(|user| match user {
                User::Value(result) => self.leads_to_exchanges(*result, of),
                User::Exchange(i) => self.exchanges[*i] == of,
                User::Other => false,
            })
    }
}

/// Two values of which an instruction stores, under a condition, the one where the other has been loaded, and does nothing else.
fn exchanged(before: &[Inst], inst: &Inst) -> Option<Pair> {
    match &inst.op {
        Op::Store { place, values, guard: Some(_), .. } => swapped(before, place, values),
        Op::If { then, otherwise, .. } if inst.results.is_empty() && only_yields(otherwise) => {
            let mut all = then.insts.iter().filter(|inst| !inst.op.is_pure() && !matches!(inst.op, Op::Yield(_)));
            let of = |inst: &Inst| match &inst.op {
                Op::Store { place, values, guard: None, .. } => swapped(before, place, values),
                _ => None,
            };
            let first = of(all.next()?)?;
            all.all(|inst| of(inst) == Some(first)).then_some(first)
        }
        _ => None,
    }
}

fn only_yields(region: &Region) -> bool {
    region.insts.iter().all(|inst| matches!(inst.op, Op::Yield(_)))
}

/// Two values of which these are the one each time where the other has been loaded.
fn swapped(before: &[Inst], to: &Place, stored: &[Value]) -> Option<Pair> {
    let mut exchanged = Vec::new();
    for (at, inst) in before.iter().enumerate().rev() {
        match &inst.op {
            Op::Load { place, guard: None, .. } if place == to && inst.results.len() == stored.len() => {
                let mut pairs = inst.results.iter().zip(stored).map(|(there, new)| pair(*there, *new));
                let first = pairs.next()?;
                let all = pairs.all(|other| other == first) && exchanged.iter().all(|of| *of == first);
                return all.then_some(first);
            }
            Op::Load { .. } => {}
            op if op.is_pure() => {}
            // What it exchanges itself is the same where both are equal.
            _ => exchanged.push(self::exchanged(&before[..at], inst)?),
        }
    }
    None
}
