//! What fences and atomic operations put in order, beside barriers.
//!
//! A fence that a warp makes before an atomic operation releases what came before: all that its block did before the last
//! barrier, what the warp itself has done since, and what it has acquired. The element that the operation changes
//! carries that, however often it is changed again. A warp that changes it later and then makes a fence has acquired what
//! it carried; from the next barrier on, so has its block. Both fences must reach the other side: one for the block orders
//! nothing between blocks.
//!
//! It is warps that know, not lanes: a lane's fence is taken for its warp's.
//!
//! What is in order is so in the order in which this run came to it, as wherever races are found by what happened.

use super::shadow::Stamp;
use kernel_dsl::compiler::ir::Scope;
use std::collections::HashMap;

/// What a warp of some block had done up to a fence, and all of that block up to the barrier before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Past {
    /// The epoch in which the block began.
    block: u32,
    /// That of the block's last barrier before the fence.
    met: u32,
    /// That of the fence.
    epoch: u32,
    warp: u32,
    /// Whether it is released to other blocks.
    device: bool,
}

impl Past {
    /// The same, handed on by a fence that reaches other blocks, or does not.
    fn within(self, device: bool) -> Past {
        Past { device: self.device && device, ..self }
    }

    /// Whether `access` belongs to it, for a thread of the block that began in epoch `block`.
    pub fn holds(self, access: Stamp, block: u32) -> bool {
        let before = access.epoch() < self.met || access.epoch() <= self.epoch && access.thread() / 32 == self.warp;
        self.block <= access.epoch() && before && (self.device || self.block == block)
    }
}

/// An element that an atomic operation changes: its buffer (`None` is shared memory) and its first byte there.
pub type Element = (Option<usize>, u64);

/// What a warp knows of others.
#[derive(Clone, Default, Debug)]
struct Warp {
    /// Its last fences, for the block, and for more: the epochs of the barrier before each, and of the fence.
    fenced: [Option<[u32; 2]>; 2],
    /// What elements carried that it has read since its last fence.
    read: Vec<Past>,
    /// What it has acquired.
    known: Vec<Past>,
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
        for warp in &self.warps {
            merge(&mut all, &warp.known);
        }
        for warp in &mut self.warps {
            warp.known.clone_from(&all);
        }
    }

    /// The warp makes a fence; `at` are the epochs of the block's last barrier, and of now.
    pub fn fence(&mut self, warp: u32, scope: Scope, at: [u32; 2]) {
        self.active = true;
        let device = scope != Scope::Block;
        let own = &mut self.warps[warp as usize];
        own.fenced[0] = Some(at);
        if device {
            own.fenced[1] = Some(at);
        }
        let read: Vec<Past> = own.read.iter().map(|past| past.within(device)).collect();
        merge(&mut own.known, &read);
        if device {
            own.read.clear();
        }
    }

    /// Whether there is anything to keep of atomic operations.
    pub fn is_active(&self) -> bool {
        self.active
    }

    /// The warp changes `element` by an atomic operation.
    pub fn atomic(&mut self, warp: u32, element: Element) {
        let own = &mut self.warps[warp as usize];
        let carried = self.carried.entry(element).or_default();
        merge(&mut own.read, carried);
        for (device, fenced) in [(false, own.fenced[0]), (true, own.fenced[1])] {
            if let Some([met, epoch]) = fenced {
                merge(carried, &[Past { block: self.block, met, epoch, warp, device }]);
                merge(carried, &own.known.iter().map(|past| past.within(device)).collect::<Vec<_>>());
            }
        }
    }

    /// The epoch of the warp's last fence, of that for other blocks where it has made one.
    pub fn fenced(&self, warp: u32) -> Option<u32> {
        let [block, device] = self.warps.get(warp as usize)?.fenced;
        device.or(block).map(|[_, epoch]| epoch)
    }

    /// What the warp has acquired.
    pub fn known(&self, warp: u32) -> &[Past] {
        self.warps.get(warp as usize).map_or(&[], |w| &w.known)
    }

    /// Forgets all that is over; the running block counts as begun in `epoch`.
    pub fn clear(&mut self, epoch: u32) {
        self.block = epoch;
        self.carried.clear();
        self.warps.iter_mut().for_each(|w| *w = Warp::default());
    }
}

/// Adds `more` to `to`, which keeps of each warp the latest.
fn merge(to: &mut Vec<Past>, more: &[Past]) {
    for past in more {
        let same = |p: &&mut Past| (p.block, p.warp, p.device) == (past.block, past.warp, past.device);
        match to.iter_mut().find(same) {
            Some(known) => (known.met, known.epoch) = (known.met.max(past.met), known.epoch.max(past.epoch)),
            None => to.push(*past),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLAG: Element = (Some(0), 64);

    /// Block 1 (epochs 1 and 2) stores and releases by `release`; block 3 reads the flag, and acquires by `acquire`.
    fn handed_over(release: Option<Scope>, acquire: Option<Scope>) -> [bool; 4] {
        let mut order = Order::default();
        order.begin(2, 1);
        order.barrier();
        if let Some(scope) = release {
            order.fence(0, scope, [2, 2]);
        }
        order.atomic(0, FLAG);
        order.begin(2, 3);
        order.atomic(1, FLAG);
        if let Some(scope) = acquire {
            order.fence(1, scope, [3, 3]);
        }
        let holds = |order: &Order, warp, stamp: Stamp| order.known(warp).iter().any(|p| p.holds(stamp, 3));
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
            order.atomic(0, (Some(0), u64::from(block - 1)));
            order.fence(0, Scope::Grid, [block, block]);
            order.atomic(0, (Some(0), u64::from(block)));
        }
        assert!(order.known(0).iter().any(|p| p.holds(Stamp::new(1, 0, 0), 3)), "by way of the second block");
    }

    #[test]
    fn warps_of_a_block_hand_over_by_a_fence_of_the_block() {
        let mut order = Order::default();
        order.begin(2, 5);
        order.fence(0, Scope::Block, [5, 5]);
        order.atomic(0, (None, 0));
        order.atomic(1, (None, 0));
        order.fence(1, Scope::Block, [5, 5]);
        assert!(order.known(1).iter().any(|p| p.holds(Stamp::new(5, 0, 7), 5)));
        order.begin(2, 6);
        order.atomic(1, (None, 0));
        order.fence(1, Scope::Grid, [6, 6]);
        assert!(order.known(1).is_empty(), "shared memory begins anew");
    }
}
