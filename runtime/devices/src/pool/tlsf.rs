//! Allocation of address ranges in constant time: two-level segregated fit.
//!
//! Free blocks are in lists by size: one list for each sixteenth of each power of two, and a bit
//! for each nonempty list. Two bit scans find the smallest list whose blocks all suffice. Free
//! neighbors are merged at once, except the few blocks freed last. A temporary that is allocated
//! again immediately is thus not merged and cut each time.
//!
//! Source: Masmano, Ripoll, Crespo, Real: *TLSF: a new dynamic memory allocator for real-time
//! systems*, ECRTS 2004.
//!
//! This module does not access the memory: its records are separate, so the ranges may belong to a
//! device.

use crate::hazard::{WaitSet, add};

/// The unit of sizes and addresses of blocks, in bytes.
pub(super) const GRANULE: u64 = 256;

/// The number of lists for each power of two.
const LISTS_OF_A_POWER: u32 = 16;
/// The number of bits that select the list within a power of two.
const STEP_BITS: u32 = LISTS_OF_A_POWER.trailing_zeros();
/// The number of powers of two with lists: up to 2⁴⁰ bytes.
const POWERS: usize = 32;

/// A block's place in the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BlockId(u32);

/// The end of a list of blocks.
const NONE: BlockId = BlockId(u32::MAX);

/// The number of recently freed blocks that are not merged with their neighbors.
const MAX_UNMERGED_BLOCKS: usize = 8;

/// A block of a segment, free or in use.
#[derive(Debug)]
struct PoolBlock {
    address: u64,
    bytes: u64,
    free: bool,
    /// Neighbors in the segment.
    before: BlockId,
    after: BlockId,
    /// Neighbors in the list of free blocks.
    previous: BlockId,
    next: BlockId,
    /// The accesses of former owners that must complete before the next owner's first access.
    pending: WaitSet,
}

/// A part of a segment, as an allocation.
#[derive(Debug)]
pub(super) struct AllocatedBlock {
    pub id: BlockId,
    pub address: u64,
    pub bytes: u64,
    pub pending: WaitSet,
}

/// Segments of address space, cut into blocks.
#[derive(Debug)]
pub(super) struct Tlsf {
    blocks: Vec<PoolBlock>,
    /// The unused places in `blocks`.
    vacant: Vec<BlockId>,
    /// The blocks freed last, oldest first, which are in no list, and count as used for their
    /// neighbors.
    recent: Recent,
    powers: u32,
    steps: [u32; POWERS],
    heads: [[BlockId; LISTS_OF_A_POWER as usize]; POWERS],
}

/// Rounds bytes up to a multiple of the granule, at least one.
pub(super) fn rounded(bytes: u64) -> Option<u64> {
    bytes.max(1).checked_next_multiple_of(GRANULE)
}

/// Returns the list for blocks of this size.
fn class(bytes: u64) -> (usize, usize) {
    let granules = bytes / GRANULE;
    if granules < u64::from(LISTS_OF_A_POWER) {
        return (0, granules as usize);
    }
    let power = granules.ilog2();
    let step = (granules >> (power - STEP_BITS)) as u32 - LISTS_OF_A_POWER;
    (((power - STEP_BITS + 1) as usize).min(POWERS - 1), step as usize)
}

/// Returns the least size whose list has no block smaller than `bytes`.
fn covering(bytes: u64) -> u64 {
    let granules = bytes / GRANULE;
    if granules < u64::from(LISTS_OF_A_POWER) {
        return bytes;
    }
    let width = 1 << (granules.ilog2() - STEP_BITS);
    granules.next_multiple_of(width) * GRANULE
}

impl Default for Tlsf {
    fn default() -> Tlsf {
        Tlsf {
            blocks: Vec::new(),
            vacant: Vec::new(),
            recent: Recent::default(),
            powers: 0,
            steps: [0; POWERS],
            heads: [[NONE; LISTS_OF_A_POWER as usize]; POWERS],
        }
    }
}

impl Tlsf {
    /// Takes `bytes` bytes, a multiple of the granule, from a free block; `None` if no block is
    /// large enough.
    pub fn take(&mut self, bytes: u64) -> Option<AllocatedBlock> {
        if let Some(id) = self.recent.take(bytes) {
            let block = self.block_mut(id);
            return Some(AllocatedBlock {
                id,
                address: block.address,
                bytes,
                pending: std::mem::take(&mut block.pending),
            });
        }
        let id = match self.find(bytes) {
            Some(id) => id,
            None if self.recent.is_empty() => return None,
            None => {
                self.merge_recent();
                self.find(bytes)?
            }
        };
        self.unlink(id);
        let rest = self.block(id).bytes - bytes;
        if rest >= GRANULE {
            let PoolBlock { address, after, .. } = *self.block(id);
            // Pending accesses of the whole apply to each part.
            let pending = self.block(id).pending.clone();
            let rest = self.insert(PoolBlock {
                address: address + bytes,
                bytes: rest,
                free: true,
                before: id,
                after,
                previous: NONE,
                next: NONE,
                pending,
            });
            if after != NONE {
                self.block_mut(after).before = rest;
            }
            let block = self.block_mut(id);
            (block.after, block.bytes) = (rest, bytes);
            self.link(rest);
        }
        let block = self.block_mut(id);
        block.free = false;
        Some(AllocatedBlock {
            id,
            address: block.address,
            bytes: block.bytes,
            pending: std::mem::take(&mut block.pending),
        })
    }

    /// Takes a block back. The next owner may write it once `pending` is complete.
    pub fn give_back(&mut self, id: BlockId, pending: WaitSet) {
        let block = self.block_mut(id);
        block.pending = pending;
        let bytes = block.bytes;
        if let Some(oldest) = self.recent.add(id, bytes) {
            self.join(oldest);
        }
    }

    /// Merges all recently freed blocks with their free neighbors.
    pub fn merge_recent(&mut self) {
        while let Some(id) = self.recent.oldest() {
            self.join(id);
        }
    }

    fn join(&mut self, mut id: BlockId) {
        let block = self.block_mut(id);
        block.free = true;
        let PoolBlock { before, after, .. } = *block;
        if after != NONE && self.block(after).free {
            self.unlink(after);
            self.merge(id, after);
        }
        if before != NONE && self.block(before).free {
            self.unlink(before);
            self.merge(before, id);
            id = before;
        }
        self.link(id);
    }

    /// Adds a segment, all of it free.
    pub fn add(&mut self, address: u64, bytes: u64) {
        let block = PoolBlock {
            address,
            bytes,
            free: true,
            before: NONE,
            after: NONE,
            previous: NONE,
            next: NONE,
            pending: WaitSet::new(),
        };
        let id = self.insert(block);
        self.link(id);
    }

    /// Removes all unused segments and returns their address, bytes, and the accesses to wait for.
    pub fn remove_unused(&mut self) -> Vec<(u64, u64, WaitSet)> {
        self.merge_recent();
        let whole = |b: &PoolBlock| b.free && b.before == NONE && b.after == NONE;
        let unused = self.blocks.iter().enumerate().filter(|(_, b)| whole(b));
        let unused: Vec<_> = unused.map(|(i, _)| BlockId(i as u32)).collect();
        let segments = unused.into_iter().map(|id| {
            self.unlink(id);
            let block = self.block_mut(id);
            let segment = (block.address, block.bytes, std::mem::take(&mut block.pending));
            self.forget(id);
            segment
        });
        segments.collect()
    }

    /// Returns the bytes of the largest free block.
    pub fn largest(&mut self) -> u64 {
        self.merge_recent();
        let Some(power) = self.powers.checked_ilog2() else { return 0 };
        let Some(step) = self.steps[power as usize].checked_ilog2() else { return 0 };
        let mut id = self.heads[power as usize][step as usize];
        let mut largest = 0;
        while id != NONE {
            largest = largest.max(self.block(id).bytes);
            id = self.block(id).next;
        }
        largest
    }

    fn find(&self, bytes: u64) -> Option<BlockId> {
        let (power, step) = class(covering(bytes));
        let same = self.steps[power] & (u32::MAX << step);
        if same != 0 {
            return Some(self.heads[power][same.trailing_zeros() as usize]);
        }
        let above = self.powers.checked_shr(power as u32 + 1).unwrap_or(0).checked_shl(power as u32 + 1).unwrap_or(0);
        if above != 0 {
            let power = above.trailing_zeros() as usize;
            return Some(self.heads[power][self.steps[power].trailing_zeros() as usize]);
        }
        // The list of `bytes` itself may have a block that is large enough: a search is cheaper
        // than a driver allocation.
        let (power, step) = class(bytes);
        let mut id = self.heads[power][step];
        while id != NONE && self.block(id).bytes < bytes {
            id = self.block(id).next;
        }
        (id != NONE).then_some(id)
    }

    /// Merges the block after `into`, which is in no list, into `into`.
    fn merge(&mut self, into: BlockId, gone: BlockId) {
        let PoolBlock { bytes, after, .. } = *self.block(gone);
        let pending = std::mem::take(&mut self.block_mut(gone).pending);
        if after != NONE {
            self.block_mut(after).before = into;
        }
        let block = self.block_mut(into);
        block.bytes += bytes;
        block.after = after;
        pending.into_iter().for_each(|point| add(&mut block.pending, point));
        self.forget(gone);
    }

    fn link(&mut self, id: BlockId) {
        let (power, step) = class(self.block(id).bytes);
        let next = std::mem::replace(&mut self.heads[power][step], id);
        let block = self.block_mut(id);
        (block.previous, block.next) = (NONE, next);
        if next != NONE {
            self.block_mut(next).previous = id;
        }
        self.powers |= 1 << power;
        self.steps[power] |= 1 << step;
    }

    fn unlink(&mut self, id: BlockId) {
        let PoolBlock { bytes, previous, next, .. } = *self.block(id);
        if next != NONE {
            self.block_mut(next).previous = previous;
        }
        if previous != NONE {
            self.block_mut(previous).next = next;
            return;
        }
        let (power, step) = class(bytes);
        self.heads[power][step] = next;
        if next == NONE {
            self.steps[power] &= !(1 << step);
            if self.steps[power] == 0 {
                self.powers &= !(1 << power);
            }
        }
    }

    fn insert(&mut self, block: PoolBlock) -> BlockId {
        match self.vacant.pop() {
            Some(id) => {
                *self.block_mut(id) = block;
                id
            }
            None => {
                self.blocks.push(block);
                BlockId(self.blocks.len() as u32 - 1)
            }
        }
    }

    fn forget(&mut self, id: BlockId) {
        let block = self.block_mut(id);
        (block.bytes, block.free) = (0, false);
        self.vacant.push(id);
    }

    fn block(&self, id: BlockId) -> &PoolBlock {
        &self.blocks[id.0 as usize]
    }

    fn block_mut(&mut self, id: BlockId) -> &mut PoolBlock {
        &mut self.blocks[id.0 as usize]
    }
}

/// The recently freed blocks, with their bytes, oldest first.
#[derive(Debug)]
struct Recent {
    blocks: [(BlockId, u64); MAX_UNMERGED_BLOCKS],
    count: usize,
}

impl Default for Recent {
    fn default() -> Recent {
        Recent { blocks: [(NONE, 0); MAX_UNMERGED_BLOCKS], count: 0 }
    }
}

impl Recent {
    fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Removes and returns the latest block of exactly `bytes` bytes.
    fn take(&mut self, bytes: u64) -> Option<BlockId> {
        let at = self.blocks[..self.count].iter().rposition(|(_, b)| *b == bytes)?;
        let (id, _) = self.blocks[at];
        self.remove(at);
        Some(id)
    }

    /// Adds a block. If the list was full, removes and returns the oldest block.
    fn add(&mut self, id: BlockId, bytes: u64) -> Option<BlockId> {
        let oldest = if self.count == MAX_UNMERGED_BLOCKS { self.oldest() } else { None };
        self.blocks[self.count] = (id, bytes);
        self.count += 1;
        oldest
    }

    /// Removes and returns the oldest block.
    fn oldest(&mut self) -> Option<BlockId> {
        let (id, _) = *self.blocks[..self.count].first()?;
        self.remove(0);
        Some(id)
    }

    fn remove(&mut self, at: usize) {
        self.blocks.copy_within(at + 1..self.count, at);
        self.count -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hazard::TimelinePoint;
    use std::collections::BTreeMap;

    #[test]
    fn size_classes_are_ordered() {
        let mut last = (0, 0);
        for granules in (1..5000).chain((5000..1 << 24).step_by(997)) {
            let bytes = granules * GRANULE;
            let at = class(bytes);
            assert!(at >= last, "{granules}: {at:?} after {last:?}");
            last = at;
            let covering = covering(bytes);
            assert!(covering >= bytes && covering - bytes <= bytes / 16, "{bytes}: {covering}");
            assert!(covering == GRANULE || class(covering - GRANULE) != class(covering), "{covering} begins its list");
        }
    }

    #[test]
    fn freed_neighbors_merge() {
        let mut tlsf = Tlsf::default();
        tlsf.add(4096, 64 * GRANULE);
        let parts: Vec<_> = (0..64).map(|_| tlsf.take(GRANULE).unwrap()).collect();
        assert!(tlsf.take(GRANULE).is_none());
        assert_eq!(tlsf.largest(), 0);
        // Every second block, then the rest: each of the rest joins two neighbors.
        let (even, odd): (Vec<_>, Vec<_>) = parts.into_iter().partition(|t| (t.address / GRANULE).is_multiple_of(2));
        even.into_iter().for_each(|t| tlsf.give_back(t.id, WaitSet::new()));
        assert_eq!(tlsf.largest(), GRANULE);
        odd.into_iter().for_each(|t| tlsf.give_back(t.id, WaitSet::new()));
        assert_eq!(tlsf.largest(), 64 * GRANULE);
        let removed: Vec<_> = tlsf.remove_unused().into_iter().map(|(at, bytes, _)| (at, bytes)).collect();
        assert_eq!(removed, [(4096, 64 * GRANULE)]);
        assert!(tlsf.take(GRANULE).is_none());
    }

    #[test]
    fn adjacent_segments_do_not_merge() {
        let mut tlsf = Tlsf::default();
        tlsf.add(0, 4 * GRANULE);
        tlsf.add(4 * GRANULE, 4 * GRANULE);
        assert!(tlsf.take(5 * GRANULE).is_none());
        assert_eq!(tlsf.remove_unused().len(), 2);
    }

    #[test]
    fn pending_uses_pass_with_the_memory() {
        let at = |stream, count| TimelinePoint { stream, count };
        let mut tlsf = Tlsf::default();
        tlsf.add(0, 4 * GRANULE);
        let [a, b, c, d] = [(); 4].map(|()| tlsf.take(GRANULE).unwrap());
        tlsf.give_back(a.id, [at(1, 5)].into_iter().collect());
        tlsf.give_back(b.id, [at(1, 7), at(2, 1)].into_iter().collect());
        tlsf.give_back(d.id, WaitSet::new());
        tlsf.give_back(c.id, WaitSet::new());
        let all = tlsf.take(4 * GRANULE).unwrap();
        assert_eq!(all.pending.as_slice(), [at(1, 7), at(2, 1)]);
    }

    /// Compares with a list of used ranges: nothing overlaps, everything lies in a segment, and at
    /// the end every segment is whole.
    #[test]
    fn random_allocations_and_frees_match_a_model() {
        let mut seed = 1u64;
        let mut random = move |n: u64| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) % n
        };
        for _ in 0..20 {
            let mut tlsf = Tlsf::default();
            let segments = [(0u64, 1000 * GRANULE), (1 << 30, 3000 * GRANULE), (1 << 31, 17 * GRANULE)];
            segments.iter().for_each(|&(at, bytes)| tlsf.add(at, bytes));
            let mut taken: BTreeMap<u64, AllocatedBlock> = BTreeMap::new();
            for _ in 0..4000 {
                if random(5) < 3 {
                    let most = 1 << random(9);
                    let bytes = (1 + random(most)) * GRANULE;
                    let Some(t) = tlsf.take(bytes) else { continue };
                    assert_eq!(t.bytes, bytes);
                    let within = |&(at, len): &(u64, u64)| t.address >= at && t.address + bytes <= at + len;
                    assert!(segments.iter().any(within), "{t:?}");
                    let before = taken.range(..=t.address).next_back();
                    assert!(before.is_none_or(|(_, b)| b.address + b.bytes <= t.address), "{t:?} on {before:?}");
                    let after = taken.range(t.address..).next();
                    assert!(after.is_none_or(|(at, _)| t.address + bytes <= *at), "{t:?} on {after:?}");
                    taken.insert(t.address, t);
                } else if let Some(at) = taken.keys().nth(random(taken.len().max(1) as u64) as usize).copied() {
                    let t = taken.remove(&at).unwrap();
                    tlsf.give_back(t.id, WaitSet::new());
                }
            }
            taken.into_values().for_each(|t| tlsf.give_back(t.id, WaitSet::new()));
            let mut left: Vec<_> = tlsf.remove_unused().into_iter().map(|(at, bytes, _)| (at, bytes)).collect();
            left.sort();
            assert_eq!(left, segments);
        }
    }
}
