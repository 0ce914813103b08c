//! Which addresses the device gives out.

use std::collections::BTreeMap;
use std::ops::Range;

/// Where the device's memory lies: where neither x86-64 nor AArch64 put a program, its heap, its stack or its libraries.
/// So a host that follows a device's pointer faults, as it does with a card's.
pub const RANGE: Range<u64> = 1 << 45..1 << 46;

/// Bytes after an allocation that are nobody's: what leads out of it leads to nothing.
const GUARD: u64 = 64 << 10;

/// Every allocation begins at a multiple of this, as on a card.
const ALIGNMENT: u64 = 512;

/// The ranges in use. They are given out in turns, so that an address that was freed stays nobody's for long.
#[derive(Debug)]
pub struct Addresses {
    /// From their beginnings to their ends, guards included.
    used: BTreeMap<u64, u64>,
    next: u64,
}

impl Default for Addresses {
    fn default() -> Addresses {
        Addresses { used: BTreeMap::new(), next: RANGE.start }
    }
}

impl Addresses {
    /// So many addresses in a row.
    pub fn take(&mut self, bytes: u64) -> Option<u64> {
        let length = bytes.checked_add(GUARD)?.checked_next_multiple_of(ALIGNMENT)?;
        let start = self.find(self.next, length).or_else(|| self.find(RANGE.start, length))?;
        self.next = start + length;
        self.used.insert(start, start + length);
        Some(start)
    }

    /// The first room from `from` on.
    fn find(&self, from: u64, length: u64) -> Option<u64> {
        let mut start = from;
        loop {
            let end = start.checked_add(length).filter(|end| *end <= RANGE.end)?;
            match self.used.range(..end).next_back() {
                Some((_, &taken)) if taken > start => start = taken,
                _ => return Some(start),
            }
        }
    }

    /// Gives a row back by its beginning.
    pub fn give_back(&mut self, start: u64) {
        self.used.remove(&start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_lie_apart_and_are_used_again_late() {
        let mut addresses = Addresses::default();
        let (a, b) = (addresses.take(1).unwrap(), addresses.take(1000).unwrap());
        assert!(a % ALIGNMENT == 0 && b % ALIGNMENT == 0 && b >= a + 1 + GUARD);
        addresses.give_back(a);
        assert!(addresses.take(1).unwrap() > b, "what was freed stays nobody's");
        // In the end it is used again; a row too long for the hole is not put there.
        addresses.next = RANGE.end - GUARD;
        assert_eq!(addresses.take(1), Some(a));
        assert_eq!(addresses.take(RANGE.end - RANGE.start), None);
        assert_eq!(addresses.take(u64::MAX), None);
    }

    #[test]
    fn a_terabyte_goes_round_for_ever() {
        let mut addresses = Addresses::default();
        let kept = addresses.take(1 << 30).unwrap();
        for _ in 0..1000 {
            let row = addresses.take(1 << 40).unwrap();
            assert!(row > kept && row + (1 << 40) <= RANGE.end);
            addresses.give_back(row);
        }
    }
}
