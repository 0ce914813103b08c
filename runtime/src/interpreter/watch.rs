//! What looks on as a launch runs: at what one thread does ([`trace`](super::trace)), or at what accesses ask of memory
//! ([`profile`](super::profile)). It is shown each instruction before it runs, in a tier of its own, so that a run that nobody
//! watches pays nothing.

use super::code::Pc;
use super::machine::{Machine, Warp};
use super::profile::Counters;
use super::trace::Recorder;

/// Who looks on.
pub enum Watch {
    Nobody,
    Thread(Box<Recorder>),
    Accesses(Counters),
}

impl Watch {
    /// Whether it looks at that block.
    pub fn looks_at(&self, block: [u32; 3]) -> bool {
        match self {
            Watch::Nobody => false,
            Watch::Thread(recorder) => recorder.block == block,
            Watch::Accesses(_) => true,
        }
    }
}

impl Machine<'_, '_> {
    /// Shows the instruction at `site`, which the lanes of `mask` are about to run.
    #[inline(never)]
    pub fn watched(&mut self, site: Pc, warp: &Warp, mask: u32) {
        // It asks the machine where accesses go, and so is not in it meanwhile.
        let mut watch = std::mem::replace(&mut self.watch, Watch::Nobody);
        match &mut watch {
            Watch::Nobody => {}
            Watch::Thread(recorder) => recorder.see(self, site, warp, mask),
            Watch::Accesses(counters) => counters.see(self, site, warp, mask),
        }
        self.watch = watch;
    }
}
