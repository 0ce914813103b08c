//! The control flow of a warp: which lanes run next, and where diverged lanes reconverge.
//!
//! Diverged lanes form groups, each at one instruction. Groups lie in levels, of which only the
//! innermost runs.
//!
//! - Under [`BranchPolicy::PostDominator`], a branch with a post-dominator opens a level. The sides
//!   of the branch run one after the other up to the post-dominator, and reconverge there in the
//!   level outside.
//! - A branch that has no post-dominator, because a side exits, opens a merging level. There,
//!   groups merge wherever they are at the same instruction, and the group that
//!   [`Structure::ranks`] puts first runs. So live lanes never reconverge at an exit.
//! - Under [`BranchPolicy::LowestFirst`], there is one level, which merges, and the lowest program
//!   counter runs.

use super::code::{NOWHERE, Pc};
use super::structure::Structure;
use smallvec::SmallVec;

/// A choice of which side of a branch runs first and where sides reconverge. A legal program gives
/// the same results under both policies.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum BranchPolicy {
    /// A stack, as in hardware before Volta: lanes reconverge at the immediate post-dominator of
    /// the branch where they diverged. If an exit leaves the branch without a post-dominator, lanes
    /// reconverge wherever their program counters are equal.
    #[default]
    PostDominator,
    /// The lanes with the lowest program counter run, and lanes reconverge wherever their program
    /// counters are equal.
    LowestFirst,
}

/// Lanes at one instruction.
#[derive(Clone, Copy, PartialEq, Debug)]
struct LaneGroup {
    pc: Pc,
    mask: u32,
    /// Whether the lanes wait for others, with which they must execute the instruction.
    waits: bool,
}

/// Groups that run up to a common instruction.
#[derive(Clone, PartialEq, Debug)]
struct Level {
    /// The instruction at which the lanes continue in the enclosing level; [`NOWHERE`] in the
    /// outermost level.
    reconvergence: Pc,
    /// Whether groups merge. If not, groups run one after another, the last of `others` next, each
    /// up to `reconvergence`.
    merges: bool,
    /// The groups of lanes that wait while the active lanes run. The groups of an enclosing level
    /// include the lanes of the levels inside it.
    others: SmallVec<[LaneGroup; 4]>,
}

/// The control flow of a warp.
#[derive(Clone, PartialEq, Debug)]
pub struct WarpFlow {
    policy: BranchPolicy,
    /// The next instruction of the active lanes.
    pub pc: Pc,
    /// The active lanes; none when all have ended.
    pub mask: u32,
    /// The lanes that have not ended.
    pub live: u32,
    /// The instruction before which the lanes must call [`WarpFlow::arrive`].
    pub stop: Pc,
    level: Level,
    outside: Vec<Level>,
    /// The instruction at which the active lanes run without the lanes that they waited for,
    /// because all groups waited; or [`NOWHERE`].
    resumed_incomplete: Pc,
}

impl WarpFlow {
    /// Starts the lanes of `mask` at the first instruction.
    pub fn new(policy: BranchPolicy, mask: u32) -> WarpFlow {
        let level =
            Level { reconvergence: NOWHERE, merges: policy == BranchPolicy::LowestFirst, others: SmallVec::new() };
        WarpFlow {
            policy,
            pc: 0,
            mask,
            live: mask,
            stop: NOWHERE,
            level,
            outside: Vec::new(),
            resumed_incomplete: NOWHERE,
        }
    }

    /// Sends the active lanes to different places, at least one lane to each.
    pub fn diverge(&mut self, structure: &Structure, sides: &[(Pc, u32)]) {
        let reconvergence = match self.policy {
            BranchPolicy::PostDominator => structure.reconvergence[self.pc as usize],
            BranchPolicy::LowestFirst => NOWHERE,
        };
        let merges = reconvergence == NOWHERE;
        let reconvergence = if merges { self.level.reconvergence } else { reconvergence };
        let on: SmallVec<[LaneGroup; 4]> = sides
            .iter()
            .filter(|(pc, _)| *pc != reconvergence)
            .map(|&(pc, mask)| LaneGroup { pc, mask, waits: false })
            .collect();
        if reconvergence != self.level.reconvergence {
            self.level.others.push(LaneGroup { pc: reconvergence, mask: self.mask, waits: false });
        }
        // A single group that runs up to the same instruction joins this level. Otherwise each
        // iteration of a loop would open a level.
        let same = reconvergence == self.level.reconvergence && (merges == self.level.merges || on.len() == 1);
        if same {
            self.level.others.extend(on);
        } else {
            self.outside.push(std::mem::replace(&mut self.level, Level { reconvergence, merges, others: on }));
        }
        self.select(structure);
    }

    /// Sends all active lanes to `pc`.
    pub fn jump(&mut self, structure: &Structure, pc: Pc) {
        self.pc = pc;
        if self.level.merges && !self.level.others.is_empty() {
            self.arrive(structure);
        }
    }

    /// Selects the next lanes, after the active lanes have reached [`WarpFlow::stop`].
    pub fn arrive(&mut self, structure: &Structure) {
        if self.pc != self.level.reconvergence {
            self.level.others.push(LaneGroup { pc: self.pc, mask: self.mask, waits: false });
        }
        self.select(structure);
    }

    /// Ends some of the active lanes. The others are at the next instruction.
    pub fn end(&mut self, structure: &Structure, lanes: u32) {
        self.live &= !lanes;
        self.mask &= !lanes;
        if self.mask == 0 {
            self.select(structure);
        }
    }

    /// Returns whether lanes wait until the active lanes reconverge with them or end.
    pub fn has_waiting_lanes(&self) -> bool {
        self.live & !self.mask != 0
    }

    /// Returns the lanes that may still reach the instruction of the active lanes.
    pub fn may_arrive(&self) -> u32 {
        if !self.level.merges || self.resumed_incomplete == self.pc {
            return 0;
        }
        self.level.others.iter().fold(0, |all, group| all | group.mask) & self.live
    }

    /// Makes some of the active lanes wait where they are, until other lanes arrive or no other
    /// lanes can run.
    pub fn wait(&mut self, structure: &Structure, lanes: u32) {
        self.level.others.push(LaneGroup { pc: self.pc, mask: lanes, waits: true });
        self.mask &= !lanes;
        if self.mask == 0 {
            self.select(structure);
        } else {
            self.set_stop(structure);
        }
    }

    /// Makes the lanes that run next the active ones.
    fn select(&mut self, structure: &Structure) {
        while !self.select_in_level(structure) {
            match self.outside.pop() {
                Some(level) => self.level = level,
                None => {
                    self.mask = 0;
                    return;
                }
            }
        }
        self.set_stop(structure);
    }

    /// Makes lanes of the innermost level the active ones. Returns whether the level has any.
    fn select_in_level(&mut self, structure: &Structure) -> bool {
        let (live, policy) = (self.live, self.policy);
        let others = &mut self.level.others;
        others.retain_mut(|group| {
            group.mask &= live;
            group.mask != 0
        });
        self.resumed_incomplete = NOWHERE;
        if !self.level.merges {
            let Some(group) = others.pop() else { return false };
            (self.pc, self.mask) = (group.pc, group.mask);
            return true;
        }
        let resumed_incomplete = others.iter().all(|group| group.waits);
        let rank = |group: &&LaneGroup| match policy {
            BranchPolicy::PostDominator => structure.ranks[group.pc as usize],
            BranchPolicy::LowestFirst => group.pc,
        };
        let Some(first) = others.iter().filter(|group| resumed_incomplete || !group.waits).min_by_key(rank) else {
            return false;
        };
        let pc = first.pc;
        (self.pc, self.mask) = (pc, 0);
        let mask = &mut self.mask;
        others.retain(|group| {
            if group.pc == pc {
                *mask |= group.mask;
            }
            group.pc != pc
        });
        if resumed_incomplete {
            self.resumed_incomplete = pc;
        }
        true
    }

    /// Sets where the active lanes stop: at the end of the level. If there are groups to merge
    /// with, the lanes stop earlier: at the next group, or at the end of the basic block.
    fn set_stop(&mut self, structure: &Structure) {
        self.stop = self.level.reconvergence;
        if self.level.merges && !self.level.others.is_empty() {
            let ahead = self.level.others.iter().map(|group| group.pc).filter(|pc| *pc > self.pc);
            self.stop = ahead.fold(structure.ends[self.pc as usize], Pc::min);
        }
    }
}
