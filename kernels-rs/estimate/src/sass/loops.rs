//! The loops of a listing.
//!
//! A listing's loops are the natural loops of its control flow graph: a jump leads from the body
//! back to the head, and every path into the loop passes the head. So out-of-line code of a loop
//! belongs to it, although it stands after the loop. A jump back into the middle of other code
//! makes no loop.

use super::flow::ControlFlowGraph;
use super::{Class, Listing};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Natural loop, whose costs are those of an iteration that executes every path, inner loops once.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct NaturalLoop {
    /// First instruction, the target of the backward jumps: an index into
    /// [`Listing::instructions`].
    pub head: usize,
    /// Last backward jump, which has the source line of the loop.
    pub jump: usize,
    /// Instructions of the loop in order.
    pub body: Vec<usize>,
    /// Number of enclosing loops.
    pub depth: u32,
    /// Number of instructions other than `NOP`.
    pub instructions: u32,
    /// Issue slots.
    pub slots: u32,
    /// Additional cycles due to bank conflicts, by [`Listing::bank_conflicts`]; `None` if unknown.
    pub bank_conflicts: Option<u32>,
    /// Instructions by name without modifiers.
    pub mix: BTreeMap<String, u32>,
    /// Instructions by class.
    pub classes: BTreeMap<Class, u32>,
}

impl Listing {
    /// Returns the loops by their start, outer loops first.
    pub fn loops(&self) -> Vec<NaturalLoop> {
        let flow = ControlFlowGraph::of(self);
        let mut bodies = natural(&flow);
        bodies.sort_by_key(|b| (b.head, Reverse(b.body.len())));
        let conflicts = self.bank_conflicts();
        let lost = |body: &[usize]| conflicts.as_ref().map(|c| body.iter().map(|i| c[*i].cycles).sum());
        let around = |inner: &Natural| {
            let holds = |outer: &&Natural| outer.head != inner.head && outer.body.binary_search(&inner.head).is_ok();
            bodies.iter().filter(holds).count() as u32
        };
        let looped = |natural: &Natural| {
            let body = natural.body.clone();
            let each = || body.iter().copied();
            NaturalLoop {
                head: natural.head,
                jump: natural.jump,
                depth: around(natural),
                instructions: self.issued(each()).count() as u32,
                slots: self.slots(each()),
                bank_conflicts: lost(&body),
                mix: self.mix(each()),
                classes: self.classes(each()),
                body,
            }
        };
        bodies.iter().map(looped).collect()
    }

    /// Counts the instructions of `which` by name, without modifiers.
    pub fn mix(&self, which: impl IntoIterator<Item = usize>) -> BTreeMap<String, u32> {
        let mut mix = BTreeMap::new();
        self.issued(which).for_each(|inst| *mix.entry(inst.opcode().to_string()).or_insert(0) += 1);
        mix
    }

    /// Counts the instructions of `which` by class.
    pub fn classes(&self, which: impl IntoIterator<Item = usize>) -> BTreeMap<Class, u32> {
        let mut classes = BTreeMap::new();
        self.issued(which).for_each(|inst| *classes.entry(Class::of(inst)).or_insert(0) += 1);
        classes
    }
}

/// Natural loop of a graph.
struct Natural {
    head: usize,
    jump: usize,
    body: Vec<usize>,
}

/// Returns the natural loops; loops with the same head are merged.
fn natural(flow: &ControlFlowGraph) -> Vec<Natural> {
    let mut before = vec![Vec::new(); flow.next.len()];
    for (from, next) in flow.next.iter().enumerate() {
        next.iter().for_each(|to| before[*to].push(from));
    }
    let dominators = Dominators::of(flow, &before);
    // The backward jumps by target.
    let mut heads: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (from, next) in flow.next.iter().enumerate() {
        for to in next.iter().filter(|to| dominators.dominates(**to, from)) {
            heads.entry(*to).or_default().push(from);
        }
    }
    let looped = |(head, jumps): (usize, Vec<usize>)| {
        let mut inside = vec![false; flow.next.len()];
        inside[head] = true;
        let jump = jumps.iter().copied().max().unwrap_or(head);
        let mut todo = jumps;
        while let Some(at) = todo.pop() {
            if !std::mem::replace(&mut inside[at], true) {
                todo.extend(&before[at]);
            }
        }
        Natural { head, jump, body: (0..inside.len()).filter(|i| inside[*i]).collect() }
    };
    heads.into_iter().map(looped).collect()
}

/// Dominator tree, computed by the algorithm of Cooper, Harvey and Kennedy ("A Simple, Fast
/// Dominance Algorithm", 2001). A virtual root precedes all entries.
struct Dominators {
    /// Number of each node in postorder; `None` for unreachable nodes.
    order: Vec<Option<usize>>,
    /// Immediate dominator of each node, by number in postorder. The virtual root is the last node
    /// and its own dominator.
    closest: Vec<usize>,
}

impl Dominators {
    fn of(flow: &ControlFlowGraph, before: &[Vec<usize>]) -> Dominators {
        let places = postorder(flow);
        let mut order = vec![None; flow.next.len()];
        places.iter().enumerate().for_each(|(number, place)| order[*place] = Some(number));
        let root = places.len();
        let mut closest: Vec<Option<usize>> = vec![None; root + 1];
        closest[root] = Some(root);
        let mut changed = true;
        while std::mem::take(&mut changed) {
            for (number, place) in places.iter().enumerate().rev() {
                let entry = flow.entries.contains(place).then_some(root);
                let comes = before[*place].iter().filter_map(|p| order[*p]).chain(entry);
                let known = comes.filter(|p| closest[*p].is_some());
                let meet = known.reduce(|a, b| common(&closest, a, b));
                if closest[number] != meet {
                    closest[number] = meet;
                    changed = true;
                }
            }
        }
        // All nodes in the order are reachable, so each has a dominator.
        Dominators { order, closest: closest.into_iter().map(|c| c.unwrap_or(root)).collect() }
    }

    /// Returns whether every path to `b` passes `a`.
    fn dominates(&self, a: usize, b: usize) -> bool {
        let (Some(a), Some(mut b)) = (self.order[a], self.order[b]) else { return false };
        // A node's number is less than that of its dominator.
        while b < a {
            b = self.closest[b];
        }
        a == b
    }
}

/// Returns the nearest common dominator.
fn common(closest: &[Option<usize>], mut a: usize, mut b: usize) -> usize {
    while a != b {
        let lower = if a < b { &mut a } else { &mut b };
        match closest[*lower] {
            Some(up) => *lower = up,
            // Both nodes have been visited, and so have all their dominators.
            None => return a.max(b),
        }
    }
    a
}

/// Returns the reachable nodes in postorder.
fn postorder(flow: &ControlFlowGraph) -> Vec<usize> {
    let mut seen = vec![false; flow.next.len()];
    let mut places = Vec::new();
    for entry in &flow.entries {
        let mut path = vec![(*entry, 0)];
        if std::mem::replace(&mut seen[*entry], true) {
            continue;
        }
        while let Some((at, next)) = path.last_mut() {
            match flow.next[*at].get(*next) {
                Some(to) => {
                    *next += 1;
                    if !std::mem::replace(&mut seen[*to], true) {
                        path.push((*to, 0));
                    }
                }
                None => {
                    places.push(*at);
                    path.pop();
                }
            }
        }
    }
    places
}
