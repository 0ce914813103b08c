//! Happens-before order from fences and atomic operations, in addition to barriers.
//!
//! A fence before an atomic operation releases the accesses that precede it:
//!
//! - all accesses of the block before the last block barrier;
//! - all accesses of the warp before the last warp barrier;
//! - all accesses of the thread itself since then;
//! - all accesses that the thread has acquired.
//!
//! The element that the atomic operation changes carries the released accesses, however often the
//! element is changed again. A thread acquires them by an atomic operation on the element followed
//! by a fence. A failed compare-exchange acquires as well, but releases nothing. After the warp's
//! next barrier, all lanes of the warp have acquired them; after the block's next barrier, the
//! whole block has.
//!
//! Both fences must include the other side in their scope: a block fence orders nothing between
//! blocks. A thread's fence releases acquired accesses within its scope, regardless of how they
//! were acquired.
//!
//! A vector clock would hold an epoch for each thread. Here a released set is a few epochs, because
//! barriers order whole warps and blocks. A thread keeps only the sets that it has acquired. The
//! lists of sets are sorted by block and thread: in a look-back over many blocks, the last block
//! has acquired a set of each block before it.
//!
//! The order is that of this run, as in any race detector that observes one execution.

use crate::machine::shadow::{Stamp, TimeSlice};
use kernel_dsl_compiler::ir::FenceScope;
use std::collections::HashMap;
use std::ops::Range;

/// The accesses that a fence releases: the thread's own up to the fence, the warp's up to its last
/// barrier, and the block's up to its last barrier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReleasedAccesses {
    /// The epoch in which the block began.
    block: u32,
    at: FenceEpochs,
    /// The thread, by linear index in the block.
    thread: u32,
}

/// The threads that may acquire the accesses that an element carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum AcquiringThreads {
    /// Threads of the block that began in this epoch, by any fence.
    Block(u32),
    /// All threads, by a fence that includes other blocks.
    Device,
}

impl AcquiringThreads {
    /// Returns whether a fence by a thread of the block that began in epoch `block` acquires the
    /// accesses; `device` tells whether the fence includes other blocks.
    fn includes(self, block: u32, device: bool) -> bool {
        match self {
            AcquiringThreads::Block(own) => own == block,
            AcquiringThreads::Device => device,
        }
    }
}

/// A set of released accesses that an element carries.
#[derive(Clone, Copy, Debug)]
struct Carried {
    past: ReleasedAccesses,
    reach: AcquiringThreads,
}

/// Released accesses that lanes of a warp have read and may acquire.
#[derive(Clone, Copy, Debug)]
struct ReadReleases {
    past: ReleasedAccesses,
    reach: AcquiringThreads,
    lanes: u32,
}

/// The epochs of a thread's fence and of the barriers before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FenceEpochs {
    /// The epoch of the block's last barrier before the fence.
    pub block: u32,
    /// The epoch of the last barrier of the warp or of its block.
    pub warp: u32,
    /// The epoch of the fence.
    pub now: u32,
}

impl FenceEpochs {
    fn max(self, other: FenceEpochs) -> FenceEpochs {
        FenceEpochs {
            block: self.block.max(other.block),
            warp: self.warp.max(other.warp),
            now: self.now.max(other.now),
        }
    }
}

impl ReleasedAccesses {
    /// Returns whether the set contains `access`.
    fn holds(self, access: Stamp, slices: &[TimeSlice]) -> bool {
        let (epoch, at) = (access.epoch(), self.at);
        if TimeSlice::at(slices, epoch).is_some_and(|slice| slice.began != self.block) {
            return false;
        }
        let of_warp = access.warp() == self.thread / 32 && epoch < at.warp;
        let own = access.thread() == self.thread && epoch <= at.now;
        self.block <= epoch && (epoch < at.block || of_warp || own)
    }
}

/// An element that an atomic operation changes: its buffer (`None` is shared memory) and the offset
/// of its first byte.
pub type AtomicElement = (Option<usize>, u64);

/// Accesses that some lanes of a warp have acquired.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AcquiredAccesses {
    past: ReleasedAccesses,
    lanes: u32,
    /// The lanes that have executed a fence since: of any scope, and of a scope beyond the block.
    released: [u32; 2],
}

impl AcquiredAccesses {
    /// Returns the accesses as they are after a barrier: acquired by all lanes and released by
    /// none.
    fn of_all_lanes(self) -> AcquiredAccesses {
        AcquiredAccesses { lanes: u32::MAX, released: [0; 2], ..self }
    }

    /// Returns whether `access` happens before the next access of thread `thread` of that warp.
    pub fn holds(self, access: Stamp, thread: u32, slices: &[TimeSlice]) -> bool {
        self.lanes >> (thread % 32) & 1 == 1 && self.past.holds(access, slices)
    }
}

/// The last fence of some lanes of a warp.
#[derive(Clone, Copy, Debug)]
struct Fenced {
    lanes: u32,
    at: FenceEpochs,
}

/// The state of a warp.
#[derive(Clone, Default, Debug)]
struct WarpClock {
    /// The last fences of the warp's lanes: of any scope, and of a scope beyond the block.
    fenced: [Vec<Fenced>; 2],
    /// Released accesses that lanes have read since their last fences.
    read: Vec<ReadReleases>,
    /// Accesses that lanes have acquired.
    known: Vec<AcquiredAccesses>,
}

/// The order of accesses established by fences and atomic operations.
#[derive(Default, Debug)]
pub struct AccessOrder {
    /// Whether there has been a fence: without one, nothing is recorded.
    active: bool,
    /// Whether blocks run interleaved, so that accesses released within a block can be acquired
    /// after another block has run.
    interleaved: bool,
    /// The released accesses that elements of buffers carry.
    carried: HashMap<AtomicElement, Vec<Carried>>,
    running: BlockOrder,
}

/// The part of the order that belongs to one block.
#[derive(Default, Debug)]
pub struct BlockOrder {
    /// The epoch in which the block began.
    block: u32,
    warps: Vec<WarpClock>,
    /// The released accesses that elements of shared memory carry.
    carried: HashMap<AtomicElement, Vec<Carried>>,
}

impl AccessOrder {
    /// Returns the order before the first access. `interleaved` tells whether blocks run
    /// interleaved.
    pub fn new(interleaved: bool) -> AccessOrder {
        AccessOrder { interleaved, ..AccessOrder::default() }
    }

    /// Begins a block of `warps` warps; its shared memory carries no released accesses.
    pub fn begin(&mut self, warps: usize, epoch: u32) {
        let running = &mut self.running;
        running.block = epoch;
        if self.active {
            running.warps.clear();
            running.carried.clear();
        }
        running.warps.resize_with(warps, WarpClock::default);
    }

    /// Keeps the accesses released within a block from now on: blocks run interleaved.
    pub fn set_interleaved(&mut self) {
        self.interleaved = true;
    }

    /// Exchanges the part of the running block with `other`, the part of another block.
    pub fn swap(&mut self, other: &mut BlockOrder) {
        std::mem::swap(&mut self.running, other);
    }

    /// Records a barrier of the block.
    pub fn barrier(&mut self) {
        if !self.active {
            return;
        }
        let mut all = Vec::new();
        for known in self.running.warps.iter().flat_map(|warp| &warp.known) {
            add_acquired(&mut all, known.of_all_lanes());
        }
        for warp in &mut self.running.warps {
            all.iter().for_each(|known| add_acquired(&mut warp.known, *known));
        }
    }

    /// Records a barrier of a warp.
    pub fn warp_barrier(&mut self, warp: u32) {
        if !self.active {
            return;
        }
        let own = &mut self.running.warps[warp as usize];
        for known in own.known.clone() {
            add_acquired(&mut own.known, known.of_all_lanes());
        }
    }

    /// Records a fence by lanes of a warp.
    pub fn fence(&mut self, warp: u32, lanes: u32, scope: FenceScope, at: FenceEpochs) {
        self.active = true;
        let device = scope != FenceScope::Block;
        let own = &mut self.running.warps[warp as usize];
        let reaches = 1 + usize::from(device);
        for fenced in own.fenced.iter_mut().take(reaches) {
            fenced.iter_mut().for_each(|before| before.lanes &= !lanes);
            fenced.retain(|before| before.lanes != 0);
            fenced.push(Fenced { lanes, at });
        }
        let (block, known) = (self.running.block, &mut own.known);
        for read in own.read.iter_mut().filter(|read| read.lanes & lanes != 0 && read.reach.includes(block, device)) {
            add_acquired(known, AcquiredAccesses { past: read.past, lanes: read.lanes & lanes, released: [0; 2] });
            read.lanes &= !lanes;
        }
        own.read.retain(|read| read.lanes != 0);
        for known in known {
            known.released.iter_mut().take(reaches).for_each(|released| *released |= known.lanes & lanes);
        }
    }

    /// Returns whether atomic operations need to be recorded.
    pub fn is_active(&self) -> bool {
        self.active
    }

    /// Records an atomic operation of a lane that leaves `element` unchanged.
    pub fn atomic_read(&mut self, warp: u32, lane: u32, element: AtomicElement) {
        let BlockOrder { block, warps, carried: in_shared } = &mut self.running;
        let (block, own) = (*block, &mut warps[warp as usize]);
        let all = if element.0.is_some() { &mut self.carried } else { in_shared };
        let Some(carried) = all.get_mut(&element) else { return };
        // Accesses released to a block that has ended can no longer be acquired.
        if !self.interleaved {
            carried.retain(|carried| carried.reach.includes(block, true));
        }
        for Carried { past, reach } in &*carried {
            read(&mut own.read, ReadReleases { past: *past, reach: *reach, lanes: 1 << lane });
        }
    }

    /// Records an atomic operation of a lane that changes `element`.
    pub fn atomic(&mut self, warp: u32, lane: u32, element: AtomicElement) {
        self.atomic_read(warp, lane, element);
        let BlockOrder { block, warps, carried: in_shared } = &mut self.running;
        let (block, own) = (*block, &warps[warp as usize]);
        let all = if element.0.is_some() { &mut self.carried } else { in_shared };
        let carried = all.entry(element).or_default();
        let fence = |far: usize| own.fenced[far].iter().find(|fenced| fenced.lanes >> lane & 1 == 1);
        let reaches = [(AcquiringThreads::Block(block), fence(0)), (AcquiringThreads::Device, fence(1))];
        // The thread's own accesses come last, as most threads acquire from earlier blocks: an
        // entry at the end of a list moves no other.
        for known in &own.known {
            for (far, (reach, fenced)) in reaches.iter().enumerate() {
                if fenced.is_some() && known.released[far] >> lane & 1 == 1 {
                    merge(carried, Carried { past: known.past, reach: *reach });
                }
            }
        }
        for (reach, fenced) in reaches {
            if let Some(fenced) = fenced {
                let past = ReleasedAccesses { block, at: fenced.at, thread: 32 * warp + lane };
                merge(carried, Carried { past, reach });
            }
        }
    }

    /// Returns the epoch of the warp's last fence; a fence of wider scope takes precedence over a
    /// block fence.
    pub fn fenced(&self, warp: u32) -> Option<u32> {
        let [block, device] = &self.running.warps.get(warp as usize)?.fenced;
        device.last().or(block.last()).map(|fenced| fenced.at.now)
    }

    /// Returns the accesses that the warp's lanes have acquired.
    pub fn known(&self, warp: u32) -> &[AcquiredAccesses] {
        self.running.warps.get(warp as usize).map_or(&[], |w| &w.known)
    }

    /// Forgets all released and acquired accesses; the running block counts as begun in `epoch`.
    pub fn clear(&mut self, epoch: u32) {
        self.running.block = epoch;
        self.carried.clear();
        self.running.carried.clear();
        self.running.warps.iter_mut().for_each(|w| *w = WarpClock::default());
    }
}

impl ReleasedAccesses {
    /// Returns the thread of the accesses: its block and its index. The lists are sorted by it.
    fn owner(&self) -> (u32, u32) {
        (self.block, self.thread)
    }
}

/// Returns the range of the entries of the thread `owner` in a sorted list.
fn entries<T>(all: &[T], owner: (u32, u32), owner_of: impl Fn(&T) -> (u32, u32)) -> Range<usize> {
    let start = all.partition_point(|entry| owner_of(entry) < owner);
    start..start + all[start..].partition_point(|entry| owner_of(entry) == owner)
}

/// Adds `of` to `to`, which keeps the latest fence of each thread.
fn merge(to: &mut Vec<Carried>, of: Carried) {
    let like = entries(to, of.past.owner(), |carried| carried.past.owner());
    match to[like.clone()].iter_mut().find(|carried| carried.reach == of.reach) {
        Some(same) => same.past.at = same.past.at.max(of.past.at),
        None => to.insert(like.end, of),
    }
}

/// Adds accesses read by lanes to `to`.
fn read(to: &mut Vec<ReadReleases>, of: ReadReleases) {
    let like = entries(to, of.past.owner(), |read| read.past.owner());
    let same =
        |read: &&mut ReadReleases| read.reach == of.reach && (read.lanes == of.lanes || read.past.at == of.past.at);
    match to[like.clone()].iter_mut().find(same) {
        Some(same) if same.lanes == of.lanes => same.past.at = same.past.at.max(of.past.at),
        Some(same) => same.lanes |= of.lanes,
        None => to.insert(like.end, of),
    }
}

/// Adds accesses acquired by lanes to `to`, which keeps the latest fence of each thread for the
/// same lanes.
fn add_acquired(to: &mut Vec<AcquiredAccesses>, of: AcquiredAccesses) {
    let like = entries(to, of.past.owner(), |known| known.past.owner());
    let same = |known: &&mut AcquiredAccesses| known.lanes == of.lanes || known.past.at == of.past.at;
    match to[like.clone()].iter_mut().find(same) {
        Some(same) if same.past.at == of.past.at => {
            same.lanes |= of.lanes;
            same.released.iter_mut().zip(of.released).for_each(|(all, more)| *all |= more);
        }
        Some(same) if same.past.at.now < of.past.at.now => *same = of,
        Some(_) => {}
        None => to.insert(like.end, of),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLAG: AtomicElement = (Some(0), 64);

    /// Returns a fence in an epoch that begins with a barrier.
    fn at(epoch: u32) -> FenceEpochs {
        FenceEpochs { block: epoch, warp: epoch, now: epoch }
    }

    /// Returns which accesses block 3 acquires by reading the flag, followed by the fence
    /// `acquire`. Block 1 (epochs 1 and 2) stores before and releases by the fence `release`.
    fn handed_over(release: Option<FenceScope>, acquire: Option<FenceScope>) -> [bool; 4] {
        let mut order = AccessOrder::default();
        order.begin(2, 1);
        order.barrier();
        if let Some(scope) = release {
            order.fence(0, 1 << 3, scope, at(2));
        }
        order.atomic(0, 3, FLAG);
        order.begin(2, 3);
        order.atomic(1, 7, FLAG);
        if let Some(scope) = acquire {
            order.fence(1, 1 << 7, scope, at(3));
        }
        let holds = |order: &AccessOrder, warp, stamp: Stamp| {
            order.known(warp).iter().any(|p| p.holds(stamp, 32 * warp + 7, &[]))
        };
        let (early, own, others) = (Stamp::new(1, 9, 40), Stamp::new(2, 9, 3), Stamp::new(2, 9, 40));
        let before = [holds(&order, 1, early), holds(&order, 1, own), holds(&order, 1, others)];
        order.barrier();
        [before[0], before[1], before[2], holds(&order, 0, own)]
    }

    #[test]
    fn fences_on_both_sides_order_earlier_accesses() {
        // The other warp's access in the epoch of the fence is not released: no barrier lies
        // between.
        assert_eq!(handed_over(Some(FenceScope::Grid), Some(FenceScope::System)), [true, true, false, true]);
        assert_eq!(handed_over(Some(FenceScope::Grid), None), [false; 4]);
        assert_eq!(handed_over(None, Some(FenceScope::Grid)), [false; 4]);
        assert_eq!(handed_over(Some(FenceScope::Block), Some(FenceScope::Grid)), [false; 4], "too narrow");
        assert_eq!(handed_over(Some(FenceScope::Grid), Some(FenceScope::Block)), [false; 4], "too narrow");
    }

    #[test]
    fn atomic_loads_acquire_but_do_not_release() {
        let mut order = AccessOrder::default();
        let first = |order: &AccessOrder| order.known(0).iter().any(|known| known.holds(Stamp::new(1, 0, 0), 0, &[]));
        order.begin(1, 1);
        order.fence(0, 1, FenceScope::Grid, at(1));
        order.atomic_read(0, 0, FLAG);
        order.begin(1, 3);
        order.atomic(0, 0, FLAG);
        order.fence(0, 1, FenceScope::Grid, at(3));
        assert!(!first(&order), "the first block has changed nothing");
        order.begin(1, 5);
        order.atomic_read(0, 0, FLAG);
        order.fence(0, 1, FenceScope::Grid, at(5));
        assert!(order.known(0).is_empty(), "the second made its fence behind the change");
        let mut order = AccessOrder::default();
        order.begin(1, 1);
        order.fence(0, 1, FenceScope::Grid, at(1));
        order.atomic(0, 0, FLAG);
        order.begin(1, 3);
        order.atomic_read(0, 0, FLAG);
        order.fence(0, 1, FenceScope::Grid, at(3));
        assert!(first(&order));
    }

    #[test]
    fn releases_are_transitive() {
        let mut order = AccessOrder::default();
        for block in [1, 2, 3] {
            order.begin(1, block);
            order.atomic(0, 0, (Some(0), u64::from(block - 1)));
            order.fence(0, 1, FenceScope::Grid, at(block));
            order.atomic(0, 0, (Some(0), u64::from(block)));
        }
        assert!(order.known(0).iter().any(|p| p.holds(Stamp::new(1, 0, 0), 0, &[])), "through the second block");
    }

    /// Hands a flag from each of 2,000 blocks to the next. The lists are sorted, so that the test
    /// takes a second and not a minute.
    #[test]
    fn the_last_block_of_a_chain_has_acquired_all() {
        const BLOCKS: u32 = 2000;
        let mut order = AccessOrder::default();
        let flag = |block: u32| (Some(0), 4 * u64::from(block));
        for block in 1..=BLOCKS {
            order.begin(1, block);
            order.atomic_read(0, 0, flag(block - 1));
            order.fence(0, 1, FenceScope::Grid, at(block));
            order.atomic(0, 0, flag(block));
        }
        let holds = |block| order.known(0).iter().any(|known| known.holds(Stamp::new(block, 0, 0), 0, &[]));
        assert!((1..BLOCKS).all(holds));
        assert!(order.known(0).is_sorted_by_key(|known| known.past.owner()));
    }

    #[test]
    fn acquired_order_has_the_scope_of_the_next_fence() {
        let mut order = AccessOrder::default();
        let hand_over = |order: &mut AccessOrder, [from, to]: [u32; 2], element, scope, now| {
            order.fence(from, 1, scope, now);
            order.atomic(from, 0, element);
            order.atomic(to, 0, element);
            order.fence(to, 1, scope, now);
        };
        let other = (Some(0), 0);
        // From warp 0 to warp 1 within the block, then to the next block.
        order.begin(2, 1);
        hand_over(&mut order, [0, 1], (None, 0), FenceScope::Block, at(1));
        order.fence(1, 1, FenceScope::Grid, at(1));
        order.atomic(1, 0, FLAG);
        order.begin(2, 5);
        order.atomic(0, 0, FLAG);
        order.fence(0, 1, FenceScope::Grid, at(5));
        let (first, second) = (Stamp::new(1, 0, 0), Stamp::new(1, 1, 32));
        let knows =
            |order: &AccessOrder, warp, of| order.known(warp).iter().any(|known| known.holds(of, 32 * warp, &[]));
        assert!(knows(&order, 0, first) && knows(&order, 0, second));
        // Then from that block's first warp to its second.
        hand_over(&mut order, [0, 1], other, FenceScope::Block, at(5));
        assert!(knows(&order, 1, first) && knows(&order, 1, second));
        // The second warp has made a block fence only.
        order.atomic(1, 0, FLAG);
        order.begin(2, 9);
        order.atomic(0, 0, FLAG);
        order.fence(0, 1, FenceScope::Grid, at(9));
        let third = Stamp::new(5, 1, 32);
        assert!(knows(&order, 0, first) && !knows(&order, 0, third));
    }

    #[test]
    fn a_fence_does_not_release_later_acquisitions() {
        let mut order = AccessOrder::default();
        order.begin(1, 1);
        order.fence(0, 1, FenceScope::Grid, at(1));
        order.atomic(0, 0, FLAG);
        order.begin(2, 5);
        // Warp 1 makes its fence before warp 0 acquires; then both reach a barrier.
        order.fence(1, 1, FenceScope::Grid, at(5));
        order.atomic(0, 0, FLAG);
        order.fence(0, 1, FenceScope::Grid, at(5));
        order.barrier();
        let other = (Some(0), 0);
        order.atomic(1, 0, other);
        order.begin(1, 9);
        order.atomic(0, 0, other);
        order.fence(0, 1, FenceScope::Grid, at(9));
        let first = Stamp::new(1, 0, 0);
        assert!(!order.known(0).iter().any(|known| known.holds(first, 0, &[])));
    }

    #[test]
    fn a_fence_applies_to_its_lane() {
        let mut order = AccessOrder::default();
        // Lane 0 of the first block has made a fence; lane `from` releases to lane `to` of another
        // block.
        let hand_over = |order: &mut AccessOrder, from, to| {
            order.begin(1, 1);
            // A barrier of the warp between epochs 1 and 2.
            order.fence(0, 1, FenceScope::Grid, FenceEpochs { block: 1, warp: 2, now: 3 });
            order.atomic(0, from, FLAG);
            order.begin(1, 5);
            order.atomic(0, to, FLAG);
            order.fence(0, u32::MAX, FenceScope::Grid, at(5));
        };
        hand_over(&mut order, 1, 0);
        assert!(order.known(0).is_empty(), "a lane without a fence releases nothing");
        hand_over(&mut order, 0, 4);
        let holds = |order: &AccessOrder, epoch, of, thread| {
            order.known(0).iter().any(|p| p.holds(Stamp::new(epoch, 0, of), thread, &[]))
        };
        assert!(holds(&order, 3, 0, 4), "its own");
        assert!(holds(&order, 1, 9, 4), "another lane's before the warp met");
        assert!(!holds(&order, 2, 9, 4), "another lane's since");
        assert!(!holds(&order, 3, 0, 5), "for the lane that has read it alone");
        order.warp_barrier(0);
        assert!(holds(&order, 3, 0, 5), "until the warp meets");
    }

    #[test]
    fn block_fences_order_warps_of_a_block() {
        let mut order = AccessOrder::default();
        order.begin(2, 5);
        order.fence(0, u32::MAX, FenceScope::Block, at(5));
        order.atomic(0, 7, (None, 0));
        order.atomic(1, 0, (None, 0));
        order.fence(1, u32::MAX, FenceScope::Block, at(5));
        assert!(order.known(1).iter().any(|p| p.holds(Stamp::new(5, 0, 7), 32, &[])));
        order.begin(2, 6);
        order.atomic(1, 0, (None, 0));
        order.fence(1, u32::MAX, FenceScope::Grid, at(6));
        assert!(order.known(1).is_empty(), "shared memory begins anew");
    }
}
