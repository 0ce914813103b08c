//! Stores of values that are already present.
//!
//! Consider a branch that only stores, each time to a location loaded directly before, one of two
//! integers where the other was loaded. If both integers are equal, it has no effect, and the same
//! is true of a masked store. A comparison of both without other uses may then test < instead of ≤.
//!
//! Between the load and the store, the thread has no operation that orders it with others: a store
//! by another thread would race with the load. Its own stores in between are exchanges of the same
//! two values.

use kernel_dsl::compiler::ir::{Comparison, Inst, Kernel, Op, Place, Region, Type, Value};
use std::collections::{HashMap, HashSet};

/// Makes comparisons of two integers strict if only exchanges of these integers depend on them, and
/// returns whether there was one.
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

/// Two values, the smaller number first.
type Pair = [Value; 2];

fn pair(a: Value, b: Value) -> Pair {
    [a.min(b), a.max(b)]
}

/// A use of a value.
#[derive(Clone, Copy)]
enum User {
    /// A value computed from it, possibly with others.
    Value(Value),
    /// The condition of the exchange with this number.
    Exchange(usize),
    Other,
}

struct Uses<'k> {
    kernel: &'k Kernel,
    users: HashMap<Value, Vec<User>>,
    /// Comparisons of integers that hold where both are equal, with their operands.
    compared: Vec<(Value, Pair)>,
    /// The exchanged values of each branch or store that only exchanges.
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

    /// Returns whether a value affects only the exchange of these two values.
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

/// Returns the two values that an instruction exchanges under a condition, if it has no other
/// effect.
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

/// Returns the two values, if each store has the one where the other has been loaded.
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
            // A nested exchange has no effect either if both are equal.
            _ => exchanged.push(self::exchanged(&before[..at], inst)?),
        }
    }
    None
}
