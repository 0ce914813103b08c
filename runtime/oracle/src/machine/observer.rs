//! Observers of a running launch.
//!
//! An observer receives each instruction before and after it runs. Observed code is compiled
//! separately (`OBSERVED_TIER`), so that a run without an observer pays nothing. The observers are
//! in module `observe`, above the machine. One traces a thread, one counts memory costs, and others
//! follow values that are non-finite, undefined or imprecise. The search for infinite loops
//! observes what a loop reads ([`livelock`](super::livelock)).

use crate::code::{Inst, Pc};
use crate::machine::{Machine, Warp};

/// An observer of the instructions of a launch.
pub trait Observer {
    /// Returns whether the instructions of that block are observed.
    fn observes(&self, block: [u32; 3]) -> bool {
        let _ = block;
        true
    }

    /// Receives the beginning of a block.
    fn block(&mut self) {}

    /// Receives the index of the block that runs next, where blocks run interleaved.
    fn switch(&mut self, block: [u32; 3]) {
        let _ = block;
    }

    /// Receives the instruction at `site` before the lanes of `mask` run it.
    fn before(&mut self, machine: &mut Machine<'_, '_>, site: Pc, warp: &Warp, mask: u32) {
        let _ = (machine, site, warp, mask);
    }

    /// Receives the instruction `inst` at `site` after the lanes of `mask` have run it.
    fn after(&mut self, machine: &mut Machine<'_, '_>, site: Pc, warp: &Warp, mask: u32, inst: &Inst) {
        let _ = (machine, site, warp, mask, inst);
    }
}

impl<O: Observer + ?Sized> Observer for &mut O {
    fn observes(&self, block: [u32; 3]) -> bool {
        O::observes(self, block)
    }

    fn block(&mut self) {
        O::block(self);
    }

    fn switch(&mut self, block: [u32; 3]) {
        O::switch(self, block);
    }

    fn before(&mut self, machine: &mut Machine<'_, '_>, site: Pc, warp: &Warp, mask: u32) {
        O::before(self, machine, site, warp, mask);
    }

    fn after(&mut self, machine: &mut Machine<'_, '_>, site: Pc, warp: &Warp, mask: u32, inst: &Inst) {
        O::after(self, machine, site, warp, mask, inst);
    }
}

impl Machine<'_, '_> {
    /// Calls `notify` with the observer and the machine. An observer needs the whole machine to
    /// compute addresses, so the machine does not own the observer during the call.
    #[inline(never)]
    fn notify(&mut self, notify: impl FnOnce(&mut dyn Observer, &mut Self)) {
        if let Some(mut observer) = self.observer.take() {
            notify(&mut *observer, self);
            self.observer = Some(observer);
        }
    }

    /// Notifies the observer of the instruction at `site` before the lanes of `mask` run it.
    pub fn notify_before(&mut self, site: Pc, warp: &Warp, mask: u32) {
        self.notify(|observer, machine| observer.before(machine, site, warp, mask));
    }

    /// Notifies the observer after the lanes have run the instruction.
    pub fn notify_after(&mut self, site: Pc, warp: &Warp, mask: u32, inst: &Inst) {
        self.notify(|observer, machine| observer.after(machine, site, warp, mask, inst));
    }
}
