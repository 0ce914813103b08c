//! Independent thread scheduling, available from sm_70 on.
//!
//! Before sm_70, a warp has one program counter. Lanes that have left a loop wait for the others at
//! the reconvergence point. A lane in the loop waits forever if it needs an action of the lanes
//! that have left. From sm_70 on, each lane has a program counter, and all lanes that have not
//! ended make progress.
//!
//! On these targets, the interpreter splits a warp that loops without change if other lanes have
//! left the loop. The other lanes then run as a separate warp, which ends, or reaches an
//! instruction that all lanes of the warp must execute. There the parts wait for each other and
//! continue as one warp.

use crate::check::Check;
use crate::code::frame::FULL;
use crate::machine::{Machine, Warp};
use crate::report::Description;
use kernel_dsl_compiler::Target;

impl Warp {
    /// Returns whether the warp can run, rather than wait.
    pub fn runs(&self) -> bool {
        !self.ended && self.waits.is_none() && self.rejoins_at.is_none()
    }

    /// Keeps only the lanes of `own`.
    fn keep(&mut self, own: u32) {
        self.own = own;
        self.mask &= own;
        self.live &= own;
        self.copies.keep(own);
        for slot in &mut self.slots {
            slot.pending &= own;
            slot.done &= own;
        }
    }

    /// Adds the lanes of another part of the warp, which is at the same instruction.
    fn take(&mut self, other: Warp) {
        for (to, from) in self.rows.chunks_mut(1).zip(&other.rows) {
            let lanes = crate::code::frame::lanes_of(other.own);
            lanes.for_each(|lane| to[0].0[lane] = from.0[lane]);
        }
        for (to, from) in self.written.iter_mut().zip(other.written) {
            *to = *to & !other.own | from & other.own;
        }
        for (to, from) in self.slots.iter_mut().zip(other.slots) {
            to.pending |= from.pending;
            to.done |= from.done;
        }
        self.copies.take(other.copies, other.own);
        self.own |= other.own;
        self.mask |= other.mask;
        self.live |= other.live;
        self.barrier_epoch = self.barrier_epoch.max(other.barrier_epoch);
    }
}

impl Machine<'_, '_> {
    /// Splits warps that loop without change: the lanes that have left the loop become a separate
    /// warp. Returns whether a warp was split.
    pub fn split_warps(&mut self, warps: &mut Vec<Warp>) -> bool {
        if self.program.target < Target::SM_70 {
            return false;
        }
        let mut split_off = Vec::new();
        for warp in warps.iter_mut() {
            let Some(cycle) = warp.cycle else { continue };
            let (here, outside) = (warp.mask, warp.live & !warp.mask);
            if here == 0 || outside == 0 {
                continue;
            }
            // In this copy, the lanes in the loop count as ended. The other lanes do not wait for
            // them, and continue after the loop.
            let mut others = warp.clone();
            others.keep(warp.own & !here);
            (others.pc, others.cycle, others.is_split) = (cycle.site + 1, None, true);
            warp.keep(here);
            warp.is_split = true;
            split_off.push(others);
        }
        let any = !split_off.is_empty();
        warps.append(&mut split_off);
        any
    }

    /// Joins the parts of each split warp if they have ended or wait at an instruction for all
    /// lanes. The first `whole` elements of `warps` are the block's own warps, and the others are
    /// split-off parts. Returns whether a warp can continue.
    pub fn join_lanes(&mut self, warps: &mut Vec<Warp>, whole: usize) -> bool {
        let mut can_continue = false;
        for first in 0..whole {
            if !warps[first].is_split {
                continue;
            }
            let index = warps[first].index;
            // A part that has ended is dropped, except for the last one.
            let parts = |warps: &[Warp]| -> Vec<usize> {
                (0..warps.len()).filter(|i| warps[*i].index == index && (*i == first || *i >= whole)).collect()
            };
            loop {
                let parts = parts(warps);
                let Some(ended) = parts.iter().copied().find(|i| warps[*i].ended).filter(|_| parts.len() > 1) else {
                    break;
                };
                let last = *parts.last().unwrap_or(&ended);
                // The block's own warp keeps its place.
                warps.swap(ended, last);
                let gone = warps.remove(last);
                let stays = parts.iter().copied().find(|i| *i != last).unwrap_or(first);
                warps[stays].copies.take(gone.copies, gone.own);
                warps[stays].own |= gone.own;
            }
            let all = parts(warps);
            let site = warps[first].rejoins_at;
            if site.is_some() && all.iter().all(|i| warps[*i].rejoins_at == site) {
                for i in all.into_iter().rev().filter(|i| *i != first) {
                    let part = warps.remove(i);
                    warps[first].take(part);
                }
                (warps[first].rejoins_at, warps[first].is_split) = (None, false);
                warps[first].own = FULL;
                can_continue = true;
            } else if all.len() == 1 {
                // The others have ended.
                (warps[first].rejoins_at, warps[first].is_split, warps[first].own) = (None, false, FULL);
                can_continue |= !warps[first].ended;
            } else if let (Some(here), true) = (site, all.iter().all(|i| warps[*i].rejoins_at.is_some())) {
                self.report_deadlocked_parts(here, warps, &all);
                return true;
            }
        }
        can_continue
    }

    /// Reports parts of a warp that wait for each other at different instructions.
    fn report_deadlocked_parts(&mut self, site: crate::code::Pc, warps: &[Warp], parts: &[usize]) {
        let [one, other, ..] = *parts else { return };
        let (one, other) = (&warps[one], &warps[other]);
        let thread = self.thread(other.index, other.mask.trailing_zeros() as usize % 32);
        let (here, live) = (one.mask.count_ones(), (one.live | other.live).count_ones());
        self.report(Check::DivergentWarp, site, one.index, one.mask, |_, _| {
            let message = format!("{here} of the {live} lanes of a warp wait here for the others");
            Description::new(message).against(other.rejoins_at, thread, "waits for them here")
        });
        self.stopped = true;
    }
}
