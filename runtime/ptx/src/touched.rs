//! The words of the buffers that a host thread has loaded and stored, for launches on several host
//! threads.

use super::access::CheckedAddresses;
use super::code::MemoryAccess;
use super::memory::{MemoryRegion, WarpMemory};
use super::registers::lanes;

/// log₂ of the granularity in bytes: a word.
const WORD: usize = 2;

/// The words of a buffer that were loaded, and those that were stored.
#[derive(Clone, Default, Debug)]
pub struct TouchedWords {
    loaded: Box<[bool]>,
    stored: Box<[bool]>,
}

impl TouchedWords {
    /// Creates an empty set for `bytes` bytes.
    pub fn new(bytes: usize) -> TouchedWords {
        let none = || vec![false; bytes.div_ceil(1 << WORD)].into();
        TouchedWords { loaded: none(), stored: none() }
    }

    /// Returns whether one set has stored a word that the other has loaded or stored.
    pub fn conflicts(&self, other: &TouchedWords) -> bool {
        let touches = |a: &TouchedWords, b: &TouchedWords| {
            let touched = b.loaded.iter().zip(&b.stored).map(|(loaded, stored)| loaded | stored);
            a.stored.iter().zip(touched).any(|(stored, touched)| *stored && touched)
        };
        touches(self, other) || touches(other, self)
    }

    /// Copies the stored words from `from`, the thread's own bytes, to `to`. The other words of
    /// `to` may have changed during the launch: a program may write page-locked memory that no
    /// kernel in flight uses.
    pub fn copy_stored(&self, from: &[u8], to: &mut [u8]) {
        let mut first = 0;
        for words in self.stored.chunk_by(|a, b| a == b) {
            let end = first + words.len();
            if words[0] {
                let bytes = first << WORD..(end << WORD).min(to.len());
                to[bytes.clone()].copy_from_slice(&from[bytes]);
            }
            first = end;
        }
    }

    fn note(&mut self, first: usize, bytes: usize, store: bool) {
        let words = if store { &mut self.stored } else { &mut self.loaded };
        // The unread end of a vector can be past the last word.
        let last = ((first + bytes - 1) >> WORD).min(words.len().saturating_sub(1));
        if let Some(words) = words.get_mut(first >> WORD..=last) {
            words.fill(true);
        }
    }
}

impl WarpMemory<'_, '_> {
    /// Records the words of the buffers that an access touches, if they are tracked.
    #[inline(always)]
    pub fn note(&mut self, access: &MemoryAccess, reach: &CheckedAddresses, store: bool) {
        let elsewhere = reach.common.is_some_and(|extent| match extent.region {
            MemoryRegion::Buffer(i) => self.buffers[i].touched.is_none(),
            MemoryRegion::Shared | MemoryRegion::Local | MemoryRegion::Param => true,
        });
        if !elsewhere {
            self.note_lanes(access, reach, store);
        }
    }

    #[inline(never)]
    fn note_lanes(&mut self, access: &MemoryAccess, reach: &CheckedAddresses, store: bool) {
        for lane in lanes(reach.mask) {
            let Some((address, extent)) = reach.place(lane, access, self) else { continue };
            if let MemoryRegion::Buffer(i) = extent.region
                && let Some(touched) = &mut self.buffers[i].touched
            {
                touched.note((address - extent.base) as usize, access.bytes() as usize, store);
            }
        }
    }
}
