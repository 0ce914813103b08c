//! Loads that a [`Cell`](crate::machine::shadow::Cell) has no room for, where fences order
//! accesses.
//!
//! Barriers order either all loads of an element or none, so two unordered loads suffice. Fences
//! may order the loads of one warp only: a store may be unordered with any of the loads. In a
//! kernel with fences, this module keeps the loads of each warp that are neither ordered before a
//! later one nor in the cell. An element has at most one entry for each warp that has loaded it.
//! Entries count against the launch's [`PageBudget`].

use crate::machine::shadow::{Clock, PAGE, PageBudget, Stamp};
use std::collections::HashMap;

/// The loads of one warp of one block.
#[derive(Clone, Copy, Debug)]
struct Kept {
    /// The epoch in which the block began.
    block: u32,
    /// Loads of two lanes, since a lane does not race with itself.
    loads: [Stamp; 2],
}

/// For each cell, the loads of each warp that it has no room for; warps are in the order of their
/// first load.
#[derive(Debug)]
pub struct OverflowReads {
    kept: HashMap<usize, Vec<Kept>>,
    /// The number of unused entries in pages that were taken from the budget.
    paid: usize,
    /// Pages of the budget that the entries occupy.
    pages: usize,
    budget: PageBudget,
}

/// The number of entries of a cell at which entries that are already ordered before the new load
/// are removed, so that searches stay short.
const MAX_SEARCHED_ENTRIES: usize = 8;

impl OverflowReads {
    /// Returns an empty set.
    pub fn new(budget: PageBudget) -> OverflowReads {
        OverflowReads { kept: HashMap::new(), paid: 0, pages: 0, budget }
    }

    /// Records a load of `cell`.
    pub fn keep(&mut self, cell: usize, clock: Clock<'_>, now: Stamp) {
        let all = self.kept.entry(cell).or_default();
        let interleaved = !clock.slices.is_empty();
        let mut running = all.iter_mut().rev().take_while(|kept| interleaved || kept.block == clock.block);
        if let Some(own) = running.find(|kept| kept.block == clock.block && kept.loads[0].warp() == now.warp()) {
            own.loads[usize::from(clock.unordered_or_simultaneous(own.loads[0], now))] = now;
            return;
        }
        // Order is transitive: an access ordered before this load is ordered before all that follow
        // it.
        if all.len() >= MAX_SEARCHED_ENTRIES && all.len().is_power_of_two() {
            all.retain(|kept| kept.loads.iter().any(|load| clock.unordered_or_simultaneous(*load, now)));
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

    /// Returns the loads of `cell` that a store at `now` races with.
    pub fn races(&self, cell: usize, clock: Clock<'_>, now: Stamp) -> impl Iterator<Item = Stamp> {
        let all = self.kept.get(&cell).into_iter().flatten().flat_map(|kept| kept.loads);
        all.filter(move |load| clock.unordered(*load, now))
    }

    /// Returns the number of pages taken from the budget.
    pub fn pages(&self) -> usize {
        self.pages
    }

    /// Forgets all loads.
    pub fn clear(&mut self) {
        self.kept.clear();
    }
}
