//! Watchers of a running launch:
//!
//! - the trace of one thread ([`trace`](super::trace));
//! - the memory costs of accesses ([`profile`](super::profile));
//! - the origins of NaNs and infinities ([`provenance`](super::provenance));
//! - the elements that an infinite loop reads ([`livelock`](super::livelock));
//! - the precision that additions lose ([`precision`](super::precision));
//! - the propagation of undefined values ([`poison`](super::poison)).
//!
//! A watcher receives each instruction before it runs. Watched code is compiled separately, so a
//! run without a watcher pays nothing.

use super::code::{Inst, Pc};
use super::livelock::Reads;
use super::machine::{Machine, Warp};
use super::poison::Poison;
use super::precision::Precision;
use super::profile::Counters;
use super::provenance::Tracer;
use super::trace::Recorder;

/// The watcher of a run.
pub enum Watch<'p> {
    Nobody,
    Thread(Box<Recorder>),
    Accesses(Counters),
    Origins(Box<Tracer<'p>>),
    Reads(Reads),
    Precision(Box<Precision<'p>>),
    Poison(Box<Poison<'p>>),
}

impl Watch<'_> {
    /// Returns whether the watcher observes that block.
    pub fn looks_at(&self, block: [u32; 3]) -> bool {
        match self {
            Watch::Nobody => false,
            Watch::Thread(recorder) => recorder.block == block,
            Watch::Accesses(_) | Watch::Origins(_) | Watch::Reads(_) | Watch::Precision(_) | Watch::Poison(_) => true,
        }
    }

    /// Notifies the watcher that a block begins.
    pub fn block(&mut self) {
        match self {
            Watch::Origins(tracer) => tracer.forget_shared(),
            Watch::Precision(precision) => precision.forget_shared(),
            Watch::Poison(poison) => poison.forget_shared(),
            _ => {}
        }
    }
}

impl<'p> Machine<'p, '_> {
    /// Notifies the watcher of the instruction at `site` before the lanes of `mask` run it.
    #[inline(never)]
    pub fn watched(&mut self, site: Pc, warp: &Warp, mask: u32) {
        // The watcher needs the machine to compute addresses, so it is taken out of the machine
        // meanwhile.
        let mut watch = std::mem::replace(&mut self.watch, Watch::Nobody);
        match &mut watch {
            Watch::Nobody | Watch::Precision(_) => {}
            Watch::Thread(recorder) => recorder.see(self, site, warp, mask),
            Watch::Accesses(counters) => counters.see(self, site, warp, mask),
            Watch::Origins(tracer) => self.trace_before(tracer, site, warp, mask),
            Watch::Reads(reads) => self.see_reads(reads, site, warp, mask),
            Watch::Poison(poison) => self.poison_before(poison, site, warp, mask),
        }
        self.watch = watch;
    }

    /// Notifies the watcher after the lanes have run the instruction.
    #[inline(never)]
    pub fn watched_after(&mut self, site: Pc, warp: &Warp, mask: u32, inst: &Inst) {
        let mut watch = std::mem::replace(&mut self.watch, Watch::Nobody);
        match &mut watch {
            Watch::Origins(tracer) => self.trace(tracer, site, warp, mask, inst),
            Watch::Precision(precision) => self.follow(precision, site, warp, mask, inst),
            Watch::Poison(poison) => self.poison_after(poison, site, warp, mask, inst),
            _ => {}
        }
        self.watch = watch;
    }
}
