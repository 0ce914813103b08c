//! Which lanes of a warp run next, and where: two policies for lanes that part.

use super::code::{NOWHERE, Pc};
use smallvec::SmallVec;

/// What decides which side goes first and where sides meet. A legal program gives the same results under each.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Policy {
    /// A stack, as in hardware before Volta: sides meet at the immediate post-dominator of the branch that parted them.
    #[default]
    PostDominator,
    /// The lanes with the lowest program counter go; lanes meet wherever their counters are equal. Lanes that come to what
    /// they must do together wait there for the others.
    LowestFirst,
}

/// Lanes that are at one instruction.
#[derive(Clone, Copy, Debug)]
struct Group {
    pc: Pc,
    mask: u32,
    /// Where they end as a group, under [`Policy::PostDominator`].
    stop: Pc,
    /// Whether they wait for others, under [`Policy::LowestFirst`].
    parked: bool,
}

/// Whether lanes can do together what they must do together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Together {
    /// They are all here, and no other.
    Yes,
    /// Others run first.
    Later,
    /// They will never be.
    No,
}

/// The control flow of a warp.
#[derive(Clone, Debug)]
pub struct Flow {
    policy: Policy,
    /// The next instruction of the active lanes.
    pub pc: Pc,
    /// The active lanes; none when all have ended.
    pub mask: u32,
    /// The lanes that have not ended.
    pub live: u32,
    /// Where `pc` must not go on without [`Flow::arrive`].
    pub stop: Pc,
    /// The other lanes. Under [`Policy::PostDominator`] a stack: a group's lanes are also in the one that goes on where it
    /// ends.
    others: Vec<Group>,
    /// Whether the active lanes have waited in vain.
    forced: bool,
}

impl Flow {
    /// The lanes of `mask` at the first instruction.
    pub fn new(policy: Policy, mask: u32) -> Flow {
        Flow { policy, pc: 0, mask, live: mask, stop: NOWHERE, others: Vec::new(), forced: false }
    }

    /// The active lanes go to different places, each at least one; all meet at `meet`.
    pub fn part(&mut self, sides: &[(Pc, u32)], meet: Pc) {
        let group = |stop: Pc| move |&(pc, mask): &(Pc, u32)| Group { pc, mask, stop, parked: false };
        match self.policy {
            Policy::LowestFirst => {
                self.others.extend(sides.iter().map(group(NOWHERE)));
                self.select();
            }
            Policy::PostDominator => {
                let stop = if meet == NOWHERE { self.stop } else { meet };
                if stop != self.stop {
                    self.others.push(Group { pc: stop, mask: self.mask, stop: self.stop, parked: false });
                }
                self.others.extend(sides.iter().filter(|(pc, _)| *pc != stop).map(group(stop)));
                self.pop();
            }
        }
    }

    /// All active lanes go to `pc`.
    pub fn jump(&mut self, pc: Pc) {
        self.pc = pc;
        match self.policy {
            Policy::PostDominator => {}
            Policy::LowestFirst if self.others.is_empty() => {}
            Policy::LowestFirst => self.arrive(),
        }
    }

    /// The active lanes have come to [`Flow::stop`].
    pub fn arrive(&mut self) {
        match self.policy {
            Policy::PostDominator => self.pop(),
            Policy::LowestFirst => {
                self.others.push(Group { pc: self.pc, mask: self.mask, stop: NOWHERE, parked: false });
                self.select();
            }
        }
    }

    /// These of the active lanes have ended. The others, if there are any, are at the next instruction.
    pub fn end(&mut self, lanes: u32) {
        self.live &= !lanes;
        self.mask &= !lanes;
        if self.mask == 0 {
            match self.policy {
                Policy::PostDominator => self.pop(),
                Policy::LowestFirst => self.select(),
            }
        }
    }

    /// Whether the active lanes are those of `members` that have not ended. If they may yet be, others go first.
    pub fn gather(&mut self, members: u32) -> Together {
        let needed = members & self.live;
        if self.mask == needed {
            self.forced = false;
            return Together::Yes;
        }
        if self.policy == Policy::PostDominator || std::mem::take(&mut self.forced) {
            return Together::No;
        }
        self.others.push(Group { pc: self.pc, mask: self.mask, stop: NOWHERE, parked: true });
        self.select();
        Together::Later
    }

    /// The next group of the stack that is not where it ends.
    fn pop(&mut self) {
        self.mask = 0;
        while let Some(group) = self.others.pop() {
            let mask = group.mask & self.live;
            if mask != 0 && group.pc != group.stop {
                (self.pc, self.mask, self.stop) = (group.pc, mask, group.stop);
                return;
            }
        }
    }

    /// The lanes at the lowest instruction, of those that do not wait; if all do, of all.
    fn select(&mut self) {
        let live = self.live;
        self.others.retain_mut(|group| {
            group.mask &= live;
            group.mask != 0
        });
        self.forced = self.others.iter().all(|g| g.parked);
        let forced = self.forced;
        let runs = |g: &&Group| forced || !g.parked;
        let Some(pc) = self.others.iter().filter(runs).map(|g| g.pc).min() else {
            self.mask = 0;
            return;
        };
        let mut here: SmallVec<[u32; 4]> = SmallVec::new();
        self.others.retain(|g| {
            let elsewhere = g.pc != pc;
            if !elsewhere {
                here.push(g.mask);
            }
            elsewhere
        });
        (self.pc, self.mask) = (pc, here.iter().fold(0, |all, mask| all | mask));
        self.stop = self.others.iter().map(|g| g.pc).filter(|other| *other > pc).min().unwrap_or(NOWHERE);
    }
}
