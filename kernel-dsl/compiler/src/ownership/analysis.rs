//! Analyses of a graph: moves and initialization forward, and loans by the liveness of the
//! variables that hold them.

use super::graph::{AccessGraph, PlaceAccess, PlaceProjection, VariablePlace};
use crate::source::Span;
use std::collections::{BTreeMap, BTreeSet};

/// Why a place may have no value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum MissingReason {
    Unset,
    Moved,
}

/// Returns the mistakes of a function.
pub(super) fn mistakes(mut graph: AccessGraph) -> Vec<(Span, String)> {
    let mut found = std::mem::take(&mut graph.mistakes);
    moves(&graph, &mut found);
    loans(&graph, &mut found);
    let mut unique: Vec<(Span, String)> = Vec::new();
    for mistake in found {
        if !unique.contains(&mistake) {
            unique.push(mistake);
        }
    }
    unique
}

/// The knowledge before a node: the places that may have no value, and the variables declared
/// without a value that may have one.
#[derive(Clone, PartialEq, Eq, Default)]
struct ValueState {
    missing: BTreeMap<VariablePlace, MissingReason>,
    assigned: BTreeSet<usize>,
}

fn starts_with(place: &VariablePlace, prefix: &VariablePlace) -> bool {
    place.local == prefix.local && place.path.starts_with(&prefix.path)
}

impl ValueState {
    /// Returns whether the state grows by another one.
    fn join(&mut self, other: &ValueState) -> bool {
        let before = (self.missing.len(), self.assigned.len());
        for (place, why) in &other.missing {
            let known = self.missing.entry(place.clone()).or_insert(*why);
            *known = (*known).max(*why);
        }
        self.assigned.extend(&other.assigned);
        before != (self.missing.len(), self.assigned.len())
    }

    fn after(&mut self, access: PlaceAccess, place: &VariablePlace) {
        match access {
            PlaceAccess::Declare => {
                self.missing.retain(|known, _| known.local != place.local);
                self.missing.insert(place.clone(), MissingReason::Unset);
                self.assigned.remove(&place.local);
            }
            PlaceAccess::Define => self.missing.retain(|known, _| known.local != place.local),
            PlaceAccess::Write => {
                self.missing.retain(|known, _| !starts_with(known, place));
                if place.path.is_empty() {
                    self.assigned.insert(place.local);
                }
            }
            PlaceAccess::Move => drop(self.missing.insert(place.clone(), MissingReason::Moved)),
            PlaceAccess::Read | PlaceAccess::Borrow(_) | PlaceAccess::End => {}
        }
    }

    /// Returns the part without a value that an access needs.
    fn needs(&self, access: PlaceAccess, place: &VariablePlace) -> Option<MissingReason> {
        let fails = |known: &VariablePlace| match access {
            PlaceAccess::Read | PlaceAccess::Move | PlaceAccess::Borrow(_) => {
                starts_with(place, known) || starts_with(known, place)
            }
            PlaceAccess::Write => starts_with(place, known) && place.path.len() > known.path.len(),
            PlaceAccess::Define | PlaceAccess::Declare | PlaceAccess::End => false,
        };
        self.missing.iter().find(|(known, _)| fails(known)).map(|(_, why)| *why)
    }
}

/// Finds uses of variables without a value.
fn moves(graph: &AccessGraph, found: &mut Vec<(Span, String)>) {
    let mut before: Vec<Option<ValueState>> = vec![None; graph.nodes.len()];
    before[0] = Some(ValueState::default());
    let mut open = vec![0];
    while let Some(at) = open.pop() {
        let Some(mut values) = before[at].clone() else { continue };
        if let Some((access, place)) = &graph.nodes[at].access {
            values.after(*access, place);
        }
        for next in &graph.nodes[at].next {
            let grown = match &mut before[*next] {
                Some(known) => known.join(&values),
                new => {
                    *new = Some(values.clone());
                    true
                }
            };
            if grown {
                open.push(*next);
            }
        }
    }
    for (node, values) in graph.nodes.iter().zip(&before) {
        let (Some((access, place)), Some(values)) = (&node.access, values) else { continue };
        let variable = &graph.variables[place.local];
        let name = &variable.name;
        if let Some(why) = values.needs(*access, place)
            && !variable.temporary
        {
            let message = match why {
                MissingReason::Unset => format!(
                    "`{name}` may have no value here: assign it on every path that leads here, or where it is declared"
                ),
                MissingReason::Moved => format!(
                    "`{name}` is used after it was moved: pass a reference, `&{name}`, or derive `Clone, Copy` for its type"
                ),
            };
            found.push((node.span, message));
        }
        if *access == PlaceAccess::Write
            && place.path.is_empty()
            && variable.late
            && values.assigned.contains(&place.local)
        {
            let message = format!("`{name}` may be assigned a second time here: declare it `mut`, `let mut {name};`");
            found.push((node.span, message));
        }
    }
}

/// A set of small numbers.
#[derive(Clone, PartialEq, Eq)]
struct NumberSet(Vec<u64>);

impl NumberSet {
    fn new(count: usize) -> NumberSet {
        NumberSet(vec![0; count.div_ceil(64)])
    }

    fn insert(&mut self, at: usize) {
        self.0[at / 64] |= 1 << (at % 64);
    }

    fn remove(&mut self, at: usize) {
        self.0[at / 64] &= !(1 << (at % 64));
    }

    fn has(&self, at: usize) -> bool {
        self.0[at / 64] >> (at % 64) & 1 == 1
    }

    /// Returns whether the set grows by another one.
    fn join(&mut self, other: &NumberSet) -> bool {
        let mut grown = false;
        for (own, other) in self.0.iter_mut().zip(&other.0) {
            grown |= *other & !*own != 0;
            *own |= other;
        }
        grown
    }

    fn meets(&self, other: &NumberSet) -> bool {
        self.0.iter().zip(&other.0).any(|(a, b)| a & b != 0)
    }
}

/// Finds accesses to places that are borrowed by a reference which is used later.
fn loans(graph: &AccessGraph, found: &mut Vec<(Span, String)>) {
    if graph.loans.is_empty() {
        return;
    }
    let live = live(graph);
    // The variables that hold each loan.
    let mut holders = vec![NumberSet::new(graph.variables.len()); graph.loans.len()];
    let mut held = vec![NumberSet::new(graph.loans.len()); graph.variables.len()];
    for (variable, held) in graph.variables.iter().zip(&mut held) {
        variable.loans.iter().for_each(|loan| held.insert(*loan));
    }
    let mut grown = true;
    while grown {
        grown = false;
        for (at, variable) in graph.variables.iter().enumerate() {
            for from in &variable.flows {
                let other = held[*from].clone();
                grown |= held[at].join(&other);
            }
        }
    }
    for (variable, held) in held.iter().enumerate() {
        for (loan, holders) in holders.iter_mut().enumerate() {
            if held.has(loan) {
                holders.insert(variable);
            }
        }
    }
    // A loan lasts while a variable that holds it is live.
    let mut active = vec![NumberSet::new(graph.loans.len()); graph.nodes.len()];
    let mut reached = vec![false; graph.nodes.len()];
    let mut open = vec![0];
    while let Some(at) = open.pop() {
        reached[at] = true;
        let mut after = active[at].clone();
        if let Some((PlaceAccess::Borrow(loan), _)) = &graph.nodes[at].access {
            after.insert(*loan);
        }
        for next in &graph.nodes[at].next {
            let mut entering = after.clone();
            for (loan, holders) in holders.iter().enumerate() {
                if entering.has(loan) && !holders.meets(&live[*next]) {
                    entering.remove(loan);
                }
            }
            if active[*next].join(&entering) || !reached[*next] {
                open.push(*next);
            }
        }
    }
    for (at, node) in graph.nodes.iter().enumerate() {
        let Some((access, place)) = &node.access else { continue };
        if !reached[at] {
            continue;
        }
        for (number, loan) in graph.loans.iter().enumerate() {
            if !active[at].has(number) || !conflicts(graph, *access, place, &loan.place, loan.mutable) {
                continue;
            }
            let name = &graph.variables[loan.place.local].name;
            if graph.variables[loan.place.local].temporary {
                continue;
            }
            found.push(match access {
                PlaceAccess::End => (
                    loan.span,
                    format!("`{name}` is borrowed here, and the reference is used after the end of its block: declare `{name}` before that block"),
                ),
                _ => (
                    node.span,
                    format!("`{name}` is borrowed here by a reference that is used later: use that reference before, or copy the value"),
                ),
            });
        }
    }
}

/// Returns the variables that are used later, before each node.
fn live(graph: &AccessGraph) -> Vec<NumberSet> {
    let mut previous = vec![Vec::new(); graph.nodes.len()];
    for (at, node) in graph.nodes.iter().enumerate() {
        node.next.iter().for_each(|next| previous[*next].push(at));
    }
    let mut live = vec![NumberSet::new(graph.variables.len()); graph.nodes.len()];
    let mut open: Vec<usize> = (0..graph.nodes.len()).collect();
    while let Some(at) = open.pop() {
        let node = &graph.nodes[at];
        let mut now = NumberSet::new(graph.variables.len());
        for next in &node.next {
            now.join(&live[*next]);
        }
        if let Some((access, place)) = &node.access {
            match access {
                PlaceAccess::Define | PlaceAccess::Declare => now.remove(place.local),
                PlaceAccess::Write if place.path.is_empty() => now.remove(place.local),
                PlaceAccess::Write if !place.path.contains(&PlaceProjection::Target) => {}
                PlaceAccess::End => {}
                _ => now.insert(place.local),
            }
        }
        node.uses.iter().for_each(|local| now.insert(*local));
        if live[at].join(&now) {
            open.extend(&previous[at]);
        }
    }
    live
}

/// Returns whether an access conflicts with a loan of `lent`.
fn conflicts(
    graph: &AccessGraph,
    access: PlaceAccess,
    place: &VariablePlace,
    lent: &VariablePlace,
    mutable: bool,
) -> bool {
    let kinds = match access {
        PlaceAccess::Read => mutable,
        PlaceAccess::Borrow(loan) => mutable || graph.loans[loan].mutable,
        PlaceAccess::Move | PlaceAccess::Write | PlaceAccess::End => true,
        PlaceAccess::Define | PlaceAccess::Declare => false,
    };
    if !kinds || place.local != lent.local {
        return false;
    }
    for (own, other) in place.path.iter().zip(&lent.path) {
        if let (PlaceProjection::Field(a), PlaceProjection::Field(b)) = (own, other)
            && a != b
        {
            return false;
        }
    }
    // To assign a reference, or to end its scope, leaves its target as it is.
    let beyond = lent.path.get(place.path.len()..).unwrap_or_default();
    !(matches!(access, PlaceAccess::Write | PlaceAccess::End) && beyond.contains(&PlaceProjection::Target))
}
