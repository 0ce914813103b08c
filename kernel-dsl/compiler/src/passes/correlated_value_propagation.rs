//! Correlated value propagation: a comparison that an enclosing branch or an earlier exit decides
//! becomes a constant.
//!
//! After `if row >= x.rows() { return }`, the check in `x.at(row)` holds, and so does a comparison
//! that selects the row's extent. In `for i in 0..n`, `i < n` holds. For two integers, the pass
//! tracks which of <, = and > are still possible, so that `a <= b` and `a != b` imply `a < b`.

use super::constants::Constants;
use crate::error::Errors;
use crate::hash::FastMap;
use crate::ir::*;
use crate::scalar::Scalar;

const BOOL: Type = Type::Scalar(Scalar::Bool);

/// Replaces comparisons whose outcome is known at their place.
pub fn correlated_value_propagation(kernel: &mut Kernel) -> Result<(), Errors> {
    let mut constants = Constants::of(kernel);
    let mut types = std::mem::take(&mut kernel.values);
    let truths = [0, 1].map(|bits| constants.get(&mut types, BOOL, bits));
    let n = types.len();
    let mut reasoner = RangePropagator {
        types: &types,
        truths,
        replacements: (0..n as u32).map(Value).collect(),
        definitions: vec![None; n],
        facts: KnownFacts::default(),
    };
    reasoner.region(&mut kernel.body);
    kernel.values = types;
    constants.place(&mut kernel.body);
    Ok(())
}

/// The definition of a truth value.
#[derive(Clone, Copy)]
enum TruthDefinition {
    Compare(Comparison, Value, Value),
    /// Both values hold.
    And(Value, Value),
    /// At least one of both values holds.
    Or(Value, Value),
    Not(Value),
}

/// The orders that are possible between two integers: a set of <, = and >.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Orders(u8);

impl Orders {
    const LESS: Orders = Orders(1);
    const EQUAL: Orders = Orders(2);
    const GREATER: Orders = Orders(4);
    const ALL: Orders = Orders(7);

    /// Returns the orders for which a comparison holds.
    fn of(comparison: Comparison) -> Orders {
        let [less, equal, greater] = [Orders::LESS, Orders::EQUAL, Orders::GREATER].map(|o| o.0);
        Orders(match comparison {
            Comparison::Lt => less,
            Comparison::Le => less | equal,
            Comparison::Eq => equal,
            Comparison::Ne => less | greater,
            Comparison::Ge => greater | equal,
            Comparison::Gt => greater,
        })
    }

    fn and(self, other: Orders) -> Orders {
        Orders(self.0 & other.0)
    }

    fn except(self, other: Orders) -> Orders {
        Orders(self.0 & !other.0)
    }

    /// Returns the orders with the operands swapped.
    fn mirrored(self) -> Orders {
        let [less, greater] = [self.and(Orders::LESS), self.and(Orders::GREATER)].map(|o| o.0);
        Orders(self.and(Orders::EQUAL).0 | less << 2 | greater >> 2)
    }

    fn none(self) -> bool {
        self.0 == 0
    }
}

/// The facts that hold at the current instruction.
#[derive(Default)]
struct KnownFacts {
    /// The possible orders of pairs of integers, the lower value first.
    orders: FastMap<(u32, u32), Orders>,
    truths: FastMap<u32, bool>,
    /// The facts to restore when a scope ends, the latest last.
    undo: Vec<Undo>,
}

enum Undo {
    Orders((u32, u32), Orders),
    /// A truth value that was unknown before.
    Truth(u32),
}

impl KnownFacts {
    fn orders(&self, a: Value, b: Value) -> Orders {
        let known = |a: Value, b: Value| self.orders.get(&(a.0, b.0)).copied().unwrap_or(Orders::ALL);
        match a.cmp(&b) {
            std::cmp::Ordering::Less => known(a, b),
            std::cmp::Ordering::Equal => Orders::EQUAL,
            std::cmp::Ordering::Greater => known(b, a).mirrored(),
        }
    }

    /// Restricts the possible orders of `a` and `b` to `orders`.
    fn restrict(&mut self, a: Value, b: Value, orders: Orders) {
        if a > b {
            return self.restrict(b, a, orders.mirrored());
        }
        let before = self.orders(a, b);
        if a != b && before.and(orders) != before {
            self.orders.insert((a.0, b.0), before.and(orders));
            self.undo.push(Undo::Orders((a.0, b.0), before));
        }
    }

    /// Undoes all steps after the first `kept`.
    fn forget(&mut self, kept: usize) {
        for step in self.undo.drain(kept..).rev() {
            match step {
                Undo::Orders(pair, before) => _ = self.orders.insert(pair, before),
                Undo::Truth(value) => _ = self.truths.remove(&value),
            }
        }
    }
}

struct RangePropagator<'k> {
    types: &'k [Type],
    /// The constants `false` and `true`.
    truths: [Value; 2],
    /// The replacement of each value.
    replacements: Vec<Value>,
    definitions: Vec<Option<TruthDefinition>>,
    facts: KnownFacts,
}

impl RangePropagator<'_> {
    /// Visits a region. Facts that are found in it hold until its end.
    fn region(&mut self, region: &mut Region) {
        let kept = self.facts.undo.len();
        region.insts.retain_mut(|inst| self.inst(inst));
        self.facts.forget(kept);
    }

    /// Visits the side of a branch that is taken where `condition` is `truth`.
    fn side(&mut self, region: &mut Region, condition: Value, truth: bool) {
        let kept = self.facts.undo.len();
        self.assume(condition, truth);
        self.region(region);
        self.facts.forget(kept);
    }

    /// Rewrites an instruction, and returns whether it stays.
    fn inst(&mut self, inst: &mut Inst) -> bool {
        let (replacements, known, truths) = (&self.replacements, &self.facts.truths, self.truths);
        inst.op.map_operands(|v| {
            let v = replacements[v.0 as usize];
            known.get(&v.0).map_or(v, |truth| truths[usize::from(*truth)])
        });
        match &mut inst.op {
            Op::Compare(comparison, a, b) if self.ordered(*a) => {
                let (possible, holds) = (self.facts.orders(*a, *b), Orders::of(*comparison));
                let result = inst.results[0].0 as usize;
                match (possible.and(holds).none(), possible.except(holds).none()) {
                    // This code is unreachable.
                    (true, true) | (false, false) => {
                        self.definitions[result] = Some(TruthDefinition::Compare(*comparison, *a, *b));
                    }
                    (_, truth) => {
                        self.replacements[result] = self.truths[usize::from(truth)];
                        return false;
                    }
                }
            }
            Op::Binary(op @ (Binary::And | Binary::Or), a, b) if self.types[a.0 as usize] == BOOL => {
                let definition =
                    if *op == Binary::And { TruthDefinition::And(*a, *b) } else { TruthDefinition::Or(*a, *b) };
                self.definitions[inst.results[0].0 as usize] = Some(definition);
            }
            Op::Unary(Unary::Not, a) if self.types[a.0 as usize] == BOOL => {
                self.definitions[inst.results[0].0 as usize] = Some(TruthDefinition::Not(*a));
            }
            Op::If { condition, then, otherwise } => {
                let condition = *condition;
                self.side(then, condition, true);
                self.side(otherwise, condition, false);
                let left = leaves(then);
                if left != leaves(otherwise) {
                    self.assume(condition, !left);
                }
            }
            Op::For(l) => {
                let kept = self.facts.undo.len();
                if let Some(index) = l.body.parameters.first() {
                    self.facts.restrict(*index, l.end, Orders::LESS);
                }
                self.region(&mut l.body);
                self.facts.forget(kept);
            }
            op => op.regions_mut().into_iter().for_each(|r| self.region(r)),
        }
        true
    }

    /// Returns whether values of the type of `v` are totally ordered.
    fn ordered(&self, v: Value) -> bool {
        self.types[v.0 as usize].scalar().is_some_and(Scalar::is_integer)
    }

    /// Assumes that a truth value is `truth` until the end of the scope.
    fn assume(&mut self, value: Value, truth: bool) {
        if self.truths.contains(&value) || self.facts.truths.contains_key(&value.0) {
            return;
        }
        self.facts.truths.insert(value.0, truth);
        self.facts.undo.push(Undo::Truth(value.0));
        match (self.definitions[value.0 as usize], truth) {
            (Some(TruthDefinition::Compare(comparison, a, b)), _) => {
                let holds = Orders::of(comparison);
                self.facts.restrict(a, b, if truth { holds } else { Orders::ALL.except(holds) });
            }
            (Some(TruthDefinition::And(a, b)), true) | (Some(TruthDefinition::Or(a, b)), false) => {
                self.assume(a, truth);
                self.assume(b, truth);
            }
            (Some(TruthDefinition::Not(a)), _) => self.assume(a, !truth),
            _ => {}
        }
    }
}

/// Returns whether control leaves at the end of a side of a branch, instead of continuing after it.
fn leaves(region: &Region) -> bool {
    region.yielded().is_none()
}
