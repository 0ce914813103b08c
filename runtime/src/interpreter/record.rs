//! Reports of the checked form: the first lane to come writes them to the launch's record.

use super::code::Report;
use super::frame::Word;
use super::machine::{Machine, Warp};
use super::memory::{Bytes, argument_at};
use kernel_dsl::compiler::ir::record::{BLOCK, STATE, THREAD, VALUES, WORDS};

impl Machine<'_, '_> {
    /// Writes `report` for the first lane of `mask`, if nothing is written yet. An address that is no record's is left alone.
    #[cold]
    pub fn tell(&mut self, warp: &Warp, mask: u32, report: &Report) {
        let lane = mask.trailing_zeros() as usize;
        if mask == 0 {
            return;
        }
        let at = |row: u32| u32::lanes(&warp.rows, row as usize)[lane];
        let thread = self.thread(warp.index, lane);
        let mut words = [0; WORDS];
        words[STATE] = report.site + 1;
        words[BLOCK..][..3].copy_from_slice(&thread.block);
        words[THREAD..][..3].copy_from_slice(&thread.thread);
        for (word, row) in words[VALUES..].iter_mut().zip(&report.values) {
            *word = at(*row);
        }
        let address = u64::lanes(&warp.rows, report.record as usize)[lane];
        let buffer = argument_at(address).and_then(|a| self.by_argument.get(a as usize).copied().flatten());
        let Some(buffer) = buffer.map(|b| &mut self.buffers[b]).filter(|b| b.base == address) else { return };
        let Bytes::Exclusive(bytes) = &mut buffer.bytes else { return };
        let Some(bytes) = bytes.get_mut(..4 * WORDS) else { return };
        if bytes[4 * STATE..][..4] == [0; 4] {
            let words = words.iter().flat_map(|w| w.to_le_bytes());
            bytes.iter_mut().zip(words).for_each(|(byte, new)| *byte = new);
        }
    }
}
