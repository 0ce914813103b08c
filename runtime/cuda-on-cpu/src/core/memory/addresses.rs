//! Allocation of device addresses.

use std::collections::BTreeMap;
use std::ops::Range;

/// The device's address range. Neither x86-64 nor AArch64 places a program, its heap, its stack or
/// its libraries there. A host that dereferences a device pointer therefore faults, as with a GPU.
pub const RANGE: Range<u64> = 1 << 45..1 << 46;

/// Unused bytes after each allocation, so that an access past its end hits no other allocation.
const GUARD: u64 = 64 << 10;

/// The alignment of allocations, as on a GPU.
const ALIGNMENT: u64 = 512;

/// The alignment of allocations of more than 1 MiB, as on a GPU.
const ALIGNMENT_OF_LARGE: u64 = 2 << 20;

/// The ranges in use. Addresses are allocated round-robin, so that a freed address stays unused for
/// long.
#[derive(Debug)]
pub struct Addresses {
    /// The end of each range by its start, guards included.
    used: BTreeMap<u64, u64>,
    next: u64,
}

impl Default for Addresses {
    fn default() -> Addresses {
        Addresses { used: BTreeMap::new(), next: RANGE.start }
    }
}

impl Addresses {
    /// Reserves a contiguous range of `bytes` addresses.
    pub fn take(&mut self, bytes: u64) -> Option<u64> {
        let length = bytes.checked_add(GUARD)?.checked_next_multiple_of(ALIGNMENT)?;
        let alignment = if bytes > 1 << 20 { ALIGNMENT_OF_LARGE } else { ALIGNMENT };
        let find = |from| self.find(from, length, alignment);
        let start = find(self.next).or_else(|| find(RANGE.start))?;
        self.next = start + length;
        self.used.insert(start, start + length);
        Some(start)
    }

    /// Returns the start of the first free and aligned range of `length` addresses at or after
    /// `from`.
    fn find(&self, from: u64, length: u64, alignment: u64) -> Option<u64> {
        let mut start = from;
        loop {
            start = start.checked_next_multiple_of(alignment)?;
            let end = start.checked_add(length).filter(|end| *end <= RANGE.end)?;
            match self.used.range(..end).next_back() {
                Some((_, &taken)) if taken > start => start = taken,
                _ => return Some(start),
            }
        }
    }

    /// Releases the range that begins at `start`.
    pub fn give_back(&mut self, start: u64) {
        self.used.remove(&start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allocations_have_guards_and_late_reuse() {
        let mut addresses = Addresses::default();
        let (a, b) = (addresses.take(1).unwrap(), addresses.take(1000).unwrap());
        assert!(a % ALIGNMENT == 0 && b % ALIGNMENT == 0 && b >= a + 1 + GUARD);
        addresses.give_back(a);
        assert!(addresses.take(1).unwrap() > b, "freed addresses are not reused immediately");
        // Later the range is reused, but only for lengths that fit.
        addresses.next = RANGE.end - GUARD;
        assert_eq!(addresses.take(1), Some(a));
        assert_eq!(addresses.take(RANGE.end - RANGE.start), None);
        assert_eq!(addresses.take(u64::MAX), None);
    }

    #[test]
    fn large_allocations_begin_at_multiples_of_2_mib() {
        let mut addresses = Addresses::default();
        for bytes in [1, (1 << 20) + 1, 512, 3_710_976, 64 << 20, 1 << 20, 2 << 20] {
            let address = addresses.take(bytes).unwrap();
            assert_eq!(address % ALIGNMENT, 0);
            assert!(bytes <= 1 << 20 || address % ALIGNMENT_OF_LARGE == 0, "{bytes} bytes at {address:#x}");
        }
    }

    #[test]
    fn addresses_of_large_allocations_are_reused() {
        let mut addresses = Addresses::default();
        let kept = addresses.take(1 << 30).unwrap();
        for _ in 0..1000 {
            let row = addresses.take(1 << 40).unwrap();
            assert!(row > kept && row + (1 << 40) <= RANGE.end);
            addresses.give_back(row);
        }
    }
}
