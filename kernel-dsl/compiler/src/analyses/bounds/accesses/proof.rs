//! The proof that an access is in bounds, by a minimal set of the dominating branches and loops.

use super::super::linear::Polynomial;
use super::super::variables::threads_of;
use super::super::walk::{MAX_SELECT_SPLITS, SymbolicAnalysis};
use crate::ir::Location;

/// Index that must be below an extent.
pub struct BoundedIndex {
    pub index: Polynomial,
    pub extent: Polynomial,
    /// Number of consecutive elements from the index on.
    pub elements: u32,
}

impl SymbolicAnalysis<'_> {
    /// Returns a minimal set of branches and loops that keep all indices below their extents.
    pub fn prove_bounds(&mut self, indices: &[BoundedIndex]) -> Option<Vec<Location>> {
        let groups = self.collector.as_ref().map_or(Vec::new(), |collector| collector.fact_groups.clone());
        let all_facts = std::mem::take(&mut self.facts);
        let end = |group: usize| groups.get(group + 1).map_or(all_facts.len(), |(first, _)| *first);
        let facts_of = |chosen: &[usize]| -> Vec<Polynomial> {
            chosen.iter().flat_map(|group| all_facts[groups[*group].0..end(*group)].iter().cloned()).collect()
        };
        let mut suffices = |chosen: &[usize]| {
            self.facts = facts_of(chosen);
            indices.iter().all(|index| self.is_inside(index))
        };
        let mut chosen: Vec<usize> = (0..groups.len()).collect();
        let mut proof = None;
        if suffices(&[]) {
            proof = Some(Vec::new());
        } else if suffices(&chosen) {
            for group in (0..groups.len()).rev() {
                let fewer: Vec<usize> = chosen.iter().copied().filter(|g| *g != group).collect();
                if suffices(&fewer) {
                    chosen = fewer;
                }
            }
            proof = Some(chosen.iter().map(|group| groups[*group].1).collect());
        }
        self.facts = all_facts;
        proof
    }

    /// Returns whether the elements from an index on are in bounds wherever the facts hold.
    fn is_inside(&mut self, index: &BoundedIndex) -> bool {
        if self.is_inside_in_all_threads(index) {
            return true;
        }
        let BoundedIndex { index, extent, elements } = index;
        let beyond = index.minus(extent).plus_constant((*elements).into()).plus_constant(-1);
        self.cannot_hold(&[beyond, index.clone(), extent.clone()], MAX_SELECT_SPLITS)
    }

    /// Returns whether the elements from an index on are in bounds in every possible thread, by
    /// enumeration.
    fn is_inside_in_all_threads(&self, BoundedIndex { index, extent, elements }: &BoundedIndex) -> bool {
        let is_inside = |thread: [u32; 3]| {
            let index = self.table.value_in_thread(index, thread)?;
            let extent = self.table.value_in_thread(extent, thread)?;
            Some(index >= 0 && index + i128::from(*elements) <= extent)
        };
        threads_of(self.kernel.block.max_extents()).all(|thread| is_inside(thread) == Some(true))
    }
}
