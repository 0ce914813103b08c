//! The bytes of buffers that were written, for the check `uninitialized-buffer`.

use super::access::CheckedAddresses;
use super::code::MemoryAccess;
use super::memory::{MemoryRegion, WarpMemory};
use super::registers::lanes;
use std::ops::Range;

/// The number of bytes of a buffer that a word of bits describes.
const WORD: u64 = u64::BITS as u64;

/// The set of bytes of a buffer that were written: one bit for each byte.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InitializedBytes {
    words: Vec<u64>,
    bytes: u64,
    /// The number of bytes that were not written.
    missing: u64,
}

impl InitializedBytes {
    /// Creates the set of a buffer of `bytes` bytes, none of which was written.
    pub fn new(bytes: u64) -> InitializedBytes {
        InitializedBytes { words: vec![0; bytes.div_ceil(WORD) as usize], bytes, missing: bytes }
    }

    /// Returns whether every byte was written.
    pub fn is_complete(&self) -> bool {
        self.missing == 0
    }

    /// Adds the bytes of a range.
    pub fn add(&mut self, range: Range<u64>) {
        for (at, count) in parts(range.start, range.end.min(self.bytes)) {
            self.put(at, count, u64::MAX);
        }
    }

    /// Returns whether every byte of a range was written.
    pub fn contains(&self, range: Range<u64>) -> bool {
        let end = range.end.min(self.bytes);
        parts(range.start, end).all(|(at, count)| self.get(at, count) == low_bits(count))
    }

    /// Returns whether no byte of a range was written.
    fn excludes(&self, range: Range<u64>) -> bool {
        parts(range.start, range.end.min(self.bytes)).all(|(at, count)| self.get(at, count) == 0)
    }

    /// Returns the bits of a range, 64 bytes to a word.
    pub fn bits(&self, range: Range<u64>) -> Vec<u64> {
        parts(range.start, range.end.min(self.bytes)).map(|(at, count)| self.get(at, count)).collect()
    }

    /// Replaces the bits of a range by those that [`InitializedBytes::bits`] returned for a range
    /// of the same length.
    pub fn set_bits(&mut self, range: Range<u64>, bits: &[u64]) {
        for ((at, count), bits) in parts(range.start, range.end.min(self.bytes)).zip(bits) {
            self.put(at, count, *bits);
        }
    }

    /// Returns the bits of at most 64 bytes.
    fn get(&self, at: u64, count: u64) -> u64 {
        let (word, shift) = ((at / WORD) as usize, at % WORD);
        let low = self.words.get(word).copied().unwrap_or(0) >> shift;
        let high = match shift {
            0 => 0,
            shift => self.words.get(word + 1).copied().unwrap_or(0) << (WORD - shift),
        };
        (low | high) & low_bits(count)
    }

    /// Replaces the bits of at most 64 bytes.
    fn put(&mut self, at: u64, count: u64, bits: u64) {
        let (word, shift, mask) = ((at / WORD) as usize, at % WORD, low_bits(count));
        let mut replace = |word: usize, mask: u64, bits: u64| {
            let Some(old) = self.words.get_mut(word).filter(|_| mask != 0) else { return };
            let new = *old & !mask | bits & mask;
            self.missing = self.missing + u64::from(old.count_ones()) - u64::from(new.count_ones());
            *old = new;
        };
        replace(word, mask << shift, bits << shift);
        if shift > 0 {
            replace(word + 1, mask >> (WORD - shift), bits >> (WORD - shift));
        }
    }
}

/// Returns a word with the lowest `count` bits set.
const fn low_bits(count: u64) -> u64 {
    if count >= WORD { u64::MAX } else { (1 << count) - 1 }
}

/// Divides a range into parts of at most 64 bytes: the start and length of each.
fn parts(start: u64, end: u64) -> impl Iterator<Item = (u64, u64)> {
    (start..end).step_by(WORD as usize).map(move |at| (at, (end - at).min(WORD)))
}

/// The state of the bytes of a buffer that a lane loads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Uninitialized {
    /// None of the bytes was written.
    All,
    /// Some of the bytes were written.
    Some,
}

impl WarpMemory<'_, '_> {
    /// Returns the state of bytes of a buffer; `None` if all were written, or the buffer is not
    /// tracked.
    pub fn uninitialized(&self, buffer: usize, range: Range<u64>) -> Option<Uninitialized> {
        let initialized = self.buffers[buffer].initialized.as_ref()?;
        if initialized.contains(range.clone()) {
            return None;
        }
        Some(if initialized.excludes(range) { Uninitialized::All } else { Uninitialized::Some })
    }

    /// Returns whether no lane of an access can touch a tracked buffer.
    #[inline(always)]
    fn is_untracked(&self, checked: &CheckedAddresses) -> bool {
        checked.common.is_some_and(|extent| match extent.region {
            MemoryRegion::Buffer(i) => self.buffers[i].initialized.is_none(),
            MemoryRegion::Shared | MemoryRegion::Local | MemoryRegion::Param => true,
        })
    }

    /// Calls `found` for each lane that loads bytes of a buffer that were not written. The
    /// arguments are the lane, its address, the buffer's index and the offset there, and the state.
    pub fn find_uninitialized(
        &self,
        access: &MemoryAccess,
        checked: &CheckedAddresses,
        mut found: impl FnMut(usize, u64, (usize, u64), Uninitialized),
    ) {
        if self.is_untracked(checked) {
            return;
        }
        for lane in lanes(checked.mask) {
            let Some((address, extent)) = checked.place(lane, access, self) else { continue };
            let offset = address.wrapping_sub(extent.base);
            if let MemoryRegion::Buffer(i) = extent.region
                && let Some(state) = self.uninitialized(i, offset..(offset + access.bytes()).min(extent.bytes))
            {
                found(lane, address, (i, offset), state);
            }
        }
    }

    /// Records that the lanes of an access write to buffers.
    pub fn initialize(&mut self, access: &MemoryAccess, checked: &CheckedAddresses) {
        if self.is_untracked(checked) {
            return;
        }
        for lane in lanes(checked.mask) {
            let Some((address, extent)) = checked.place(lane, access, self) else { continue };
            let offset = address.wrapping_sub(extent.base);
            if let MemoryRegion::Buffer(i) = extent.region
                && let Some(initialized) = &mut self.buffers[i].initialized
            {
                initialized.add(offset..offset + access.bytes());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares random operations with a list of flags.
    #[test]
    fn sets_agree_with_a_list_of_flags() {
        const BYTES: u64 = 300;
        let (mut set, mut flags) = (InitializedBytes::new(BYTES), vec![false; BYTES as usize]);
        let mut state = 1u64;
        let mut random = |limit: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % limit
        };
        for _ in 0..3000 {
            let start = random(BYTES);
            let length = random(BYTES - start + 1).min([4, 70, BYTES][random(3) as usize]);
            let to = random(BYTES - length + 1);
            let (range, flag) = (start..start + length, start as usize..(start + length) as usize);
            match random(3) {
                0 => {
                    set.add(range);
                    flags[flag].fill(true);
                }
                1 => {
                    let none = InitializedBytes::new(length);
                    set.set_bits(range, &none.bits(0..length));
                    flags[flag].fill(false);
                }
                _ => {
                    // The ranges of the copy may overlap.
                    let bits = set.bits(range);
                    set.set_bits(to..to + length, &bits);
                    flags.copy_within(flag, to as usize);
                }
            }
            let (start, end) = (random(BYTES), random(BYTES));
            let range = start.min(end)..start.max(end);
            let within = &flags[range.start as usize..range.end as usize];
            assert_eq!(set.contains(range.clone()), within.iter().all(|flag| *flag));
            assert_eq!(set.excludes(range), within.iter().all(|flag| !flag));
            assert_eq!(set.missing, flags.iter().filter(|flag| !**flag).count() as u64);
        }
        set.add(0..BYTES);
        assert!(set.is_complete());
    }
}
