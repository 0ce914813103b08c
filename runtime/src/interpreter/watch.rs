//! What looks on as a launch runs: at what one thread does ([`trace`](super::trace)), at what accesses ask of memory
//! ([`profile`](super::profile)), or at where NaNs and infinities come from ([`provenance`](super::provenance)). It is shown
//! each instruction before it runs, in a tier of its own, so that a run that nobody watches pays nothing.

use super::code::{Inst, Pc};
use super::machine::{Machine, Warp};
use super::profile::Counters;
use super::provenance::Tracer;
use super::trace::Recorder;

/// Who looks on.
pub enum Watch<'p> {
    Nobody,
    Thread(Box<Recorder>),
    Accesses(Counters),
    Origins(Box<Tracer<'p>>),
}

impl Watch<'_> {
    /// Whether it looks at that block.
    pub fn looks_at(&self, block: [u32; 3]) -> bool {
        match self {
            Watch::Nobody => false,
            Watch::Thread(recorder) => recorder.block == block,
            Watch::Accesses(_) | Watch::Origins(_) => true,
        }
    }

    /// A block begins.
    pub fn block(&mut self) {
        if let Watch::Origins(tracer) = self {
            tracer.forget_shared();
        }
    }
}

impl<'p> Machine<'p, '_> {
    /// Shows the instruction at `site`, which the lanes of `mask` are about to run.
    #[inline(never)]
    pub fn watched(&mut self, site: Pc, warp: &Warp, mask: u32) {
        // It asks the machine where accesses go, and so is not in it meanwhile.
        let mut watch = std::mem::replace(&mut self.watch, Watch::Nobody);
        match &mut watch {
            Watch::Nobody => {}
            Watch::Thread(recorder) => recorder.see(self, site, warp, mask),
            Watch::Accesses(counters) => counters.see(self, site, warp, mask),
            Watch::Origins(tracer) => self.trace_before(tracer, site, warp, mask),
        }
        self.watch = watch;
    }

    /// Shows it when they have run it.
    #[inline(never)]
    pub fn watched_after(&mut self, site: Pc, warp: &Warp, mask: u32, inst: &Inst) {
        match std::mem::replace(&mut self.watch, Watch::Nobody) {
            Watch::Origins(mut tracer) => {
                self.trace(&mut tracer, site, warp, mask, inst);
                self.watch = Watch::Origins(tracer);
            }
            other => self.watch = other,
        }
    }
}
