//! The search for blocks that repeat their state, and so never end.
//!
//! A warp repeats if it is in a recorded state again, and no thread has changed memory since then.
//! The recorded state is replaced after 1, 2, 4, … rounds, so that a loop of any length is found
//! (R. P. Brent, "An improved Monte Carlo factorization algorithm", 1980). A launch is stopped if
//! all warps that can run repeat:
//!
//! - Blocks that run one after the other: each round of a block's warps ends with a comparison.
//!   Other blocks may end a wait only if all blocks of the launch are sure to be resident at once.
//!   Such blocks later run interleaved.
//! - Blocks that run interleaved: each turn of a warp ends with a comparison.
//!
//! Polls of memory that the host may access make no repetition. Strong loads and atomic operations
//! with the scope `.sys` are polls, and so are weak loads with a fence after them. An atomic
//! operation with a smaller scope keeps the value in the GPU's L2 cache: on an H200 with driver 580
//! such a loop does not end after the host's store.
//!
//! Lanes of a warp run in lockstep, as on a GPU before sm_70. A lane that has a lock may have left
//! the loop and wait to reconverge with lanes that poll the lock. Such a wait never ends. The
//! message names the lanes as the reason.

use super::Check;
use super::cooperative::PausedBlock;
use super::flow::WarpFlow;
use super::machine::Machine;
use super::registers::Registers;
use super::warp::Warp;

/// The reason of waits within a warp, as the end of a message.
const LANES_WAIT: &str = "lanes of a warp poll while its other lanes wait to reconverge with them; before sm_70, the \
                          lanes of a warp run in lockstep, so a lane cannot wait for a lock that another lane of its \
                          warp has: let one lane take the lock, or release the lock inside the loop";

/// The number of warp instructions without a change of memory before the first comparison. Blocks
/// that run one after the other count all their instructions.
const MIN_INSTRUCTIONS: u64 = 1 << 20;

/// A recorded state of the warps of a block.
#[derive(Default)]
pub struct RecordedState {
    warps: Vec<WarpSnapshot>,
    /// The number of changes of memory before.
    changes: u64,
    /// The number of rounds since the state was recorded, and the number after which another state
    /// is recorded.
    rounds: u64,
    until: u64,
}

/// A recorded state of the resident blocks of a launch that runs interleaved.
#[derive(Default)]
pub struct RecordedGrid {
    /// The number of changes of memory before, and the number of warp instructions at the first of
    /// the following turns.
    changes: u64,
    start: u64,
    /// For each block and warp, the state, and whether the warp was in it again.
    blocks: Vec<Vec<(WarpSnapshot, bool)>>,
    /// The number of turns since the state was recorded, and the number after which another state
    /// is recorded.
    turns: u64,
    until: u64,
}

/// The state of a warp.
struct WarpSnapshot {
    registers: Registers,
    flow: WarpFlow,
    /// The instruction of the barrier at which the warp waits.
    waits_at: Option<u32>,
    /// Numbers that change with each strong load, and with each atomic operation without effect.
    polls: (u32, u32),
    /// A number that changes with each of them that the host may influence.
    host_polls: u32,
}

impl WarpSnapshot {
    fn of(warp: &Warp) -> WarpSnapshot {
        WarpSnapshot {
            registers: warp.registers.clone(),
            flow: warp.flow.clone(),
            waits_at: warp.waits.map(|arrival| arrival.site),
            polls: (warp.strong_loads, warp.idle),
            host_polls: warp.host_polls,
        }
    }

    /// Returns whether the warp has polled since.
    fn has_polled(&self, warp: &Warp) -> bool {
        self.polls != (warp.strong_loads, warp.idle)
    }

    /// Returns whether the warp is in this state again. The registers of calls in progress are not
    /// compared, so such a warp is not.
    fn is_of(&self, warp: &Warp) -> bool {
        warp.calls.is_empty()
            && self.flow == warp.flow
            && self.waits_at == warp.waits.map(|arrival| arrival.site)
            && self.host_polls == warp.host_polls
            && self.registers == warp.registers
    }
}

/// Returns whether a warp can run.
fn is_ready(warp: &Warp) -> bool {
    !warp.ended() && warp.waits.is_none()
}

impl Machine<'_, '_> {
    /// Reports the running block and stops the launch, if the block repeats its state.
    pub(super) fn stop_repetition(&mut self, warps: &[Warp]) {
        if self.statistics.warp_instructions - self.spent < MIN_INSTRUCTIONS || self.observer.is_some() {
            return;
        }
        let may_wait = self.has_resident_blocks();
        let known = &mut self.recorded;
        if known.changes != self.changes {
            *known = RecordedState { changes: self.changes, ..RecordedState::default() };
            return;
        }
        known.rounds += 1;
        let is_same =
            |(state, warp): (&WarpSnapshot, &Warp)| state.is_of(warp) && !(may_wait && state.has_polled(warp));
        let is_known = known.warps.len() == warps.len();
        if is_known && known.warps.iter().zip(warps).all(is_same) {
            let polls = |i: &usize| is_ready(&warps[*i]) && known.warps[*i].has_polled(&warps[*i]);
            let diverged = (0..warps.len()).filter(polls).find(|i| warps[*i].flow.has_waiting_lanes());
            let polling = diverged.or_else(|| (0..warps.len()).find(polls));
            let blocks = self.grid.block_count();
            let message = match polling {
                Some(_) if diverged.is_some() => format!("a wait within a warp that never ends: {LANES_WAIT}"),
                Some(_) if blocks > 1 => format!(
                    "a wait for another block that never ends: registers and memory are again as they were before, and \
                     the {blocks} blocks of the launch need not be resident at once; launch the kernel cooperatively, or \
                     let the block that finishes last continue"
                ),
                _ => "an endless loop: registers and memory are again as they were before, so the block never ends"
                    .to_string(),
            };
            let found = polling.or_else(|| warps.iter().position(is_ready));
            if let Some(found) = found {
                self.report_repetition(&warps[found], message);
            }
            return;
        }
        if !is_known || known.rounds >= known.until {
            (known.rounds, known.until) = (0, (2 * known.until).max(1));
            known.warps = warps.iter().map(WarpSnapshot::of).collect();
        }
    }

    /// Reports a warp that repeats its state, and stops the launch.
    pub(super) fn report_repetition(&mut self, warp: &Warp, message: String) {
        let site = self.program.code.insts.get(warp.flow.pc as usize).map_or(0, |inst| inst.site);
        self.report(warp, Check::FuelExhausted, site, warp.flow.mask, || message);
        self.stopped = true;
    }
}

impl RecordedGrid {
    /// Returns the message about the resident blocks if all their warps that can run repeat their
    /// states. `warp` of `block` has just run.
    pub fn end_turn(
        &mut self,
        (changes, instructions): (u64, u64),
        blocks: &[PausedBlock],
        (block, warp): (usize, usize),
    ) -> Option<String> {
        let has_other_warps =
            |recorded: &Vec<(WarpSnapshot, bool)>, block: &PausedBlock| recorded.len() != block.warps.len();
        if self.changes != changes {
            *self = RecordedGrid { changes, start: instructions, ..RecordedGrid::default() };
        }
        if instructions - self.start < MIN_INSTRUCTIONS {
            return None;
        }
        self.turns += 1;
        let has_others = self.blocks.len() != blocks.len()
            || self.blocks.iter().zip(blocks).any(|(recorded, block)| has_other_warps(recorded, block));
        if has_others || self.turns >= self.until {
            let record = |block: &PausedBlock| block.warps.iter().map(|warp| (WarpSnapshot::of(warp), false)).collect();
            self.blocks = blocks.iter().map(record).collect();
            (self.turns, self.until) = (0, (2 * self.until).max(blocks.len() as u64));
            return None;
        }
        let (state, repeats) = &mut self.blocks[block][warp];
        if *repeats || !state.is_of(&blocks[block].warps[warp]) {
            return None;
        }
        *repeats = true;
        let mut all = self.blocks.iter().zip(blocks).flat_map(|(recorded, block)| recorded.iter().zip(&block.warps));
        all.all(|((_, repeats), warp)| *repeats || !is_ready(warp)).then(|| {
            let count = blocks.len();
            let mut warps = blocks.iter().flat_map(|block| &block.warps);
            let diverged = warps.any(|warp| is_ready(warp) && warp.flow.has_waiting_lanes());
            let reason = if diverged { format!(": {LANES_WAIT}") } else { String::new() };
            format!(
                "a deadlock: all warps of the {count} resident blocks that can run repeat their states, and no thread \
                 changes memory{reason}"
            )
        })
    }
}
