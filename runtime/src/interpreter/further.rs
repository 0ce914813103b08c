//! Loads that a [`Cell`](super::shadow::Cell) has no room for, where fences order accesses.
//!
//! Barriers order either all loads of an element or none, and two that nothing orders tell as much as all. Fences order one warp's loads
//! and not another's: what a store is not ordered with may be any of them. So where a kernel has fences, each warp's loads that are neither ordered before
//! a later one nor in the cell are kept here: of each element as many entries as warps have loaded it. They come out of the launch's [`Budget`].

use super::shadow::{Budget, Clock, PAGE, Stamp};
use std::collections::HashMap;

/// The loads of one warp of one block.
#[derive(Clone, Copy, Debug)]
struct Kept {
    /// The epoch in which the block began.
    block: u32,
    /// Two lanes', as no lane races with itself.
    loads: [Stamp; 2],
}

/// By cell, the further loads of each warp, those of later blocks last.
#[derive(Debug)]
pub struct Further {
    kept: HashMap<usize, Vec<Kept>>,
    /// Entries that the budget has paid for and that are not taken.
    paid: usize,
    /// Pages of the budget that they are of.
    pages: usize,
    budget: Budget,
}

/// Entries that are looked through before it is asked which of them are over.
const FEW: usize = 8;

impl Further {
    /// Nothing yet.
    pub fn new(budget: Budget) -> Further {
        Further { kept: HashMap::new(), paid: 0, pages: 0, budget }
    }

    /// Keeps a load of `cell`.
    pub fn keep(&mut self, cell: usize, clock: Clock<'_>, now: Stamp) {
        let all = self.kept.entry(cell).or_default();
        let running = all.iter_mut().rev().take_while(|kept| kept.block == clock.block);
        if let Some(own) = running.into_iter().find(|kept| kept.loads[0].warp() == now.warp()) {
            own.loads[usize::from(clock.apart(own.loads[0], now))] = now;
            return;
        }
        // What comes before this load, comes before all that it does.
        if all.len() >= FEW && all.len().is_power_of_two() {
            all.retain(|kept| kept.loads.iter().any(|load| clock.apart(*load, now)));
        }
        if self.paid == 0 {
            if !self.budget.take() {
                return;
            }
            self.paid = PAGE;
            self.pages += 1;
        }
        self.paid -= 1;
        all.push(Kept { block: clock.block, loads: [now, Stamp::default()] });
    }

    /// The loads of `cell` that a store now races with.
    pub fn races(&self, cell: usize, clock: Clock<'_>, now: Stamp) -> impl Iterator<Item = Stamp> {
        let all = self.kept.get(&cell).into_iter().flatten().flat_map(|kept| kept.loads);
        all.filter(move |load| clock.unordered(*load, now))
    }

    /// Pages of the budget that it has taken.
    pub fn pages(&self) -> usize {
        self.pages
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.kept.clear();
    }
}
