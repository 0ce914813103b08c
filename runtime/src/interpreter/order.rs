//! What fences and atomic operations put in order, beside barriers.
//!
//! A fence that a thread makes before an atomic operation releases what came before: all that its block did before the last
//! barrier, all that its warp did before its own, what the thread itself has done since, and what it has acquired. The element that the operation changes
//! carries that, however often it is changed again. A thread that changes it later and then makes a fence has acquired what
//! it carried; from the next barrier of its warp on, so have the lanes of that, and from the block's next, so has the block. Both fences must reach the other
//! side: one for the block orders nothing between blocks.
//!
//! What is in order is so in the order in which this run came to it, as wherever races are found by what happened.

use super::shadow::Stamp;
use kernel_dsl::compiler::ir::Scope;
use std::collections::HashMap;

/// What a thread of some block had done up to a fence, its warp up to the barrier of that before it, and all of that block up to its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Past {
    /// The epoch in which the block began.
    block: u32,
    at: At,
    /// By linear index in the block.
    thread: u32,
    /// Whether it is released to other blocks.
    device: bool,
}

/// When a thread makes a fence, in epochs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct At {
    /// The block's last barrier before it.
    pub block: u32,
    /// The last of the warp, its own or the block's.
    pub warp: u32,
    /// The fence.
    pub now: u32,
}

impl At {
    fn max(self, other: At) -> At {
        At { block: self.block.max(other.block), warp: self.warp.max(other.warp), now: self.now.max(other.now) }
    }
}

impl Past {
    /// The same, handed on by a fence that reaches other blocks, or does not.
    fn within(self, device: bool) -> Past {
        Past { device: self.device && device, ..self }
    }

    /// Whether `access` belongs to it, for a thread of the block that began in epoch `block`.
    pub fn holds(self, access: Stamp, block: u32) -> bool {
        let (epoch, at) = (access.epoch(), self.at);
        let of_warp = access.warp() == self.thread / 32 && epoch < at.warp;
        let own = access.thread() == self.thread && epoch <= at.now;
        self.block <= epoch && (epoch < at.block || of_warp || own) && (self.device || self.block == block)
    }
}

/// An element that an atomic operation changes: its buffer (`None` is shared memory) and its first byte there.
pub type Element = (Option<usize>, u64);

/// What some lanes of a warp have read, or acquired.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Known {
    past: Past,
    lanes: u32,
}

impl Known {
    /// Whether `access` comes before what thread `thread` does now, of the block that began in epoch `block`.
    pub fn holds(self, access: Stamp, thread: u32, block: u32) -> bool {
        self.lanes >> (thread % 32) & 1 == 1 && self.past.holds(access, block)
    }
}

/// The last fence of some lanes of a warp.
#[derive(Clone, Copy, Debug)]
struct Fenced {
    lanes: u32,
    at: At,
}

/// What a warp knows of others.
#[derive(Clone, Default, Debug)]
struct Warp {
    /// The last fences of its lanes, for the block, and for more.
    fenced: [Vec<Fenced>; 2],
    /// What elements carried that lanes have read since their last fences.
    read: Vec<Known>,
    /// What they have acquired.
    known: Vec<Known>,
}

/// Who knows what of whom.
#[derive(Default, Debug)]
pub struct Order {
    /// Whether there has been a fence: without one, nothing here is ever kept.
    active: bool,
    carried: HashMap<Element, Vec<Past>>,
    warps: Vec<Warp>,
    /// The epoch in which the running block began.
    block: u32,
}

impl Order {
    /// A block of so many warps begins; its shared memory has carried nothing.
    pub fn begin(&mut self, warps: usize, epoch: u32) {
        self.block = epoch;
        if self.active {
            self.warps.clear();
            self.carried.retain(|(buffer, _), _| buffer.is_some());
        }
        self.warps.resize_with(warps, Warp::default);
    }

    /// All warps of the block have met.
    pub fn barrier(&mut self) {
        if !self.active {
            return;
        }
        let mut all = Vec::new();
        for known in self.warps.iter().flat_map(|warp| &warp.known) {
            learn(&mut all, Known { lanes: u32::MAX, ..*known });
        }
        for warp in &mut self.warps {
            warp.known.clone_from(&all);
        }
    }

    /// All lanes of a warp have met.
    pub fn warp_barrier(&mut self, warp: u32) {
        if !self.active {
            return;
        }
        let own = &mut self.warps[warp as usize];
        for known in std::mem::take(&mut own.known) {
            learn(&mut own.known, Known { lanes: u32::MAX, ..known });
        }
    }

    /// Lanes of a warp make a fence.
    pub fn fence(&mut self, warp: u32, lanes: u32, scope: Scope, at: At) {
        self.active = true;
        let device = scope != Scope::Block;
        let own = &mut self.warps[warp as usize];
        for fenced in own.fenced.iter_mut().take(1 + usize::from(device)) {
            fenced.iter_mut().for_each(|before| before.lanes &= !lanes);
            fenced.retain(|before| before.lanes != 0);
            fenced.push(Fenced { lanes, at });
        }
        for read in own.read.iter_mut().filter(|read| read.lanes & lanes != 0) {
            let acquired = Known { past: read.past.within(device), lanes: read.lanes & lanes };
            learn(&mut own.known, acquired);
            if device {
                read.lanes &= !lanes;
            }
        }
        own.read.retain(|read| read.lanes != 0);
    }

    /// Whether there is anything to keep of atomic operations.
    pub fn is_active(&self) -> bool {
        self.active
    }

    /// A lane of a warp changes `element` by an atomic operation.
    pub fn atomic(&mut self, warp: u32, lane: u32, element: Element) {
        let own = &mut self.warps[warp as usize];
        let carried = self.carried.entry(element).or_default();
        for past in &*carried {
            learn(&mut own.read, Known { past: *past, lanes: 1 << lane });
        }
        for (device, fenced) in [(false, &own.fenced[0]), (true, &own.fenced[1])] {
            if let Some(fenced) = fenced.iter().find(|fenced| fenced.lanes >> lane & 1 == 1) {
                merge(carried, Past { block: self.block, at: fenced.at, thread: 32 * warp + lane, device });
                let known = own.known.iter().filter(|known| known.lanes >> lane & 1 == 1);
                known.for_each(|known| merge(carried, known.past.within(device)));
            }
        }
    }

    /// The epoch of the warp's last fence, of that for other blocks where it has made one.
    pub fn fenced(&self, warp: u32) -> Option<u32> {
        let [block, device] = &self.warps.get(warp as usize)?.fenced;
        device.last().or(block.last()).map(|fenced| fenced.at.now)
    }

    /// What the warp's lanes have acquired.
    pub fn known(&self, warp: u32) -> &[Known] {
        self.warps.get(warp as usize).map_or(&[], |w| &w.known)
    }

    /// Forgets all that is over; the running block counts as begun in `epoch`.
    pub fn clear(&mut self, epoch: u32) {
        self.block = epoch;
        self.carried.clear();
        self.warps.iter_mut().for_each(|w| *w = Warp::default());
    }
}

impl Past {
    /// Whether both are of one thread, and released as far.
    fn is_like(&self, other: &Past) -> bool {
        (self.block, self.thread, self.device) == (other.block, other.thread, other.device)
    }
}

/// Adds `past` to `to`, which keeps of each thread the latest.
fn merge(to: &mut Vec<Past>, past: Past) {
    match to.iter_mut().find(|p| p.is_like(&past)) {
        Some(same) => same.at = same.at.max(past.at),
        None => to.push(past),
    }
}

/// Adds what lanes learn to `to`.
fn learn(to: &mut Vec<Known>, known: Known) {
    let same = |k: &&mut Known| k.past.is_like(&known.past);
    match to.iter_mut().filter(same).find(|k| k.lanes == known.lanes || k.past.at == known.past.at) {
        Some(same) if same.lanes == known.lanes => same.past.at = same.past.at.max(known.past.at),
        Some(same) => same.lanes |= known.lanes,
        None => to.push(known),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLAG: Element = (Some(0), 64);

    /// In an epoch that has begun with a barrier.
    fn at(epoch: u32) -> At {
        At { block: epoch, warp: epoch, now: epoch }
    }

    /// Block 1 (epochs 1 and 2) stores and releases by `release`; block 3 reads the flag, and acquires by `acquire`.
    fn handed_over(release: Option<Scope>, acquire: Option<Scope>) -> [bool; 4] {
        let mut order = Order::default();
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
        let holds =
            |order: &Order, warp, stamp: Stamp| order.known(warp).iter().any(|p| p.holds(stamp, 32 * warp + 7, 3));
        let (early, own, others) = (Stamp::new(1, 9, 40), Stamp::new(2, 9, 3), Stamp::new(2, 9, 40));
        let before = [holds(&order, 1, early), holds(&order, 1, own), holds(&order, 1, others)];
        order.barrier();
        [before[0], before[1], before[2], holds(&order, 0, own)]
    }

    #[test]
    fn a_fence_on_either_side_hands_over_what_came_before() {
        // The other warp's access in the epoch of the fence is behind no barrier.
        assert_eq!(handed_over(Some(Scope::Grid), Some(Scope::System)), [true, true, false, true]);
        assert_eq!(handed_over(Some(Scope::Grid), None), [false; 4]);
        assert_eq!(handed_over(None, Some(Scope::Grid)), [false; 4]);
        assert_eq!(handed_over(Some(Scope::Block), Some(Scope::Grid)), [false; 4], "too narrow");
        assert_eq!(handed_over(Some(Scope::Grid), Some(Scope::Block)), [false; 4], "too narrow");
    }

    #[test]
    fn what_was_acquired_is_released_again() {
        let mut order = Order::default();
        for block in [1, 2, 3] {
            order.begin(1, block);
            order.atomic(0, 0, (Some(0), u64::from(block - 1)));
            order.fence(0, 1, Scope::Grid, at(block));
            order.atomic(0, 0, (Some(0), u64::from(block)));
        }
        assert!(order.known(0).iter().any(|p| p.holds(Stamp::new(1, 0, 0), 0, 3)), "by way of the second block");
    }

    #[test]
    fn a_lane_s_fence_is_its_own() {
        let mut order = Order::default();
        // Lane 0 of the first block has made a fence, and lane `from` hands over to lane `to` of another.
        let hand_over = |order: &mut Order, from, to| {
            order.begin(1, 1);
            // A barrier of the warp between epochs 1 and 2.
            order.fence(0, 1, Scope::Grid, At { block: 1, warp: 2, now: 3 });
            order.atomic(0, from, FLAG);
            order.begin(1, 5);
            order.atomic(0, to, FLAG);
            order.fence(0, u32::MAX, Scope::Grid, at(5));
        };
        hand_over(&mut order, 1, 0);
        assert!(order.known(0).is_empty(), "who has made no fence hands nothing over");
        hand_over(&mut order, 0, 4);
        let holds = |order: &Order, epoch, of, thread| {
            order.known(0).iter().any(|p| p.holds(Stamp::new(epoch, 0, of), thread, 5))
        };
        assert!(holds(&order, 3, 0, 4), "its own");
        assert!(holds(&order, 1, 9, 4), "another lane's before the warp met");
        assert!(!holds(&order, 2, 9, 4), "another lane's since");
        assert!(!holds(&order, 3, 0, 5), "for the lane that has read it alone");
        order.warp_barrier(0);
        assert!(holds(&order, 3, 0, 5), "until the warp meets");
    }

    #[test]
    fn warps_of_a_block_hand_over_by_a_fence_of_the_block() {
        let mut order = Order::default();
        order.begin(2, 5);
        order.fence(0, u32::MAX, Scope::Block, at(5));
        order.atomic(0, 7, (None, 0));
        order.atomic(1, 0, (None, 0));
        order.fence(1, u32::MAX, Scope::Block, at(5));
        assert!(order.known(1).iter().any(|p| p.holds(Stamp::new(5, 0, 7), 32, 5)));
        order.begin(2, 6);
        order.atomic(1, 0, (None, 0));
        order.fence(1, u32::MAX, Scope::Grid, at(6));
        assert!(order.known(1).is_empty(), "shared memory begins anew");
    }
}
