//! The search for a block that repeats its state, and so never ends.
//!
//! Each round of the warps ends with a comparison: if no thread has changed memory since a recorded
//! state, and every warp is in that state again, all later rounds repeat the ones between. The
//! recorded state is replaced after 1, 2, 4, … rounds, so that a loop of any length is found (R. P.
//! Brent, "An improved Monte Carlo factorization algorithm", 1980).
//!
//! Loads that other blocks or the host may influence make no repetition: volatile and other strong
//! loads, unless the launch alone has its memory and is one block.

use super::Check;
use super::flow::WarpFlow;
use super::machine::Machine;
use super::memory::Lookup;
use super::registers::Registers;
use super::warp::Warp;

/// The number of warp instructions of a block before the first comparison.
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

/// The state of a warp.
struct WarpSnapshot {
    registers: Registers,
    flow: WarpFlow,
    /// The instruction of the barrier at which the warp waits.
    waits_at: Option<u32>,
    /// Numbers that change with each load or operation that others may influence.
    influenced: (u32, u32),
}

impl WarpSnapshot {
    fn of(warp: &Warp, is_alone: bool) -> WarpSnapshot {
        WarpSnapshot {
            registers: warp.registers.clone(),
            flow: warp.flow.clone(),
            waits_at: warp.waits.map(|arrival| arrival.site),
            influenced: if is_alone { (0, 0) } else { (warp.strong_loads, warp.idle) },
        }
    }

    fn is_of(&self, warp: &Warp, is_alone: bool) -> bool {
        self.flow == warp.flow
            && self.waits_at == warp.waits.map(|arrival| arrival.site)
            && (is_alone || self.influenced == (warp.strong_loads, warp.idle))
            && self.registers == warp.registers
    }
}

impl Machine<'_, '_> {
    /// Reports the running block and stops the launch, if the block repeats its state.
    pub(super) fn stop_repetition(&mut self, warps: &[Warp]) {
        if self.statistics.warp_instructions - self.spent < MIN_INSTRUCTIONS || self.observer.is_some() {
            return;
        }
        // The registers of calls in progress are not compared.
        if warps.iter().any(|warp| !warp.calls.is_empty()) {
            return;
        }
        let is_alone = self.memory.lookup == Lookup::Number && self.grid.block_count() == 1;
        let known = &mut self.recorded;
        if known.changes != self.changes {
            *known = RecordedState { changes: self.changes, ..RecordedState::default() };
            return;
        }
        known.rounds += 1;
        let is_known = known.warps.len() == warps.len();
        if is_known && known.warps.iter().zip(warps).all(|(state, warp)| state.is_of(warp, is_alone)) {
            let Some(warp) = warps.iter().find(|warp| !warp.ended() && warp.waits.is_none()) else { return };
            let code = &self.program.code;
            let site = code.insts.get(warp.flow.pc as usize).map_or(0, |inst| inst.site);
            self.report(warp, Check::FuelExhausted, site, warp.flow.mask, || {
                "an endless loop: registers and memory are again as they were before, so the block never ends"
                    .to_string()
            });
            self.stopped = true;
            return;
        }
        if !is_known || known.rounds >= known.until {
            (known.rounds, known.until) = (0, (2 * known.until).max(1));
            known.warps = warps.iter().map(|warp| WarpSnapshot::of(warp, is_alone)).collect();
        }
    }
}
