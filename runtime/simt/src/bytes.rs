//! The bytes of a launch's memory, and sets of byte ranges.

use std::ops::Range;

/// Bytes of an argument.
#[derive(Debug)]
pub enum ArgumentBytes<'m> {
    /// Bytes that the kernel only reads.
    Shared(&'m [u8]),
    /// Bytes that the kernel may write.
    Exclusive(&'m mut [u8]),
}

impl ArgumentBytes<'_> {
    /// Returns the bytes for reading.
    #[inline(always)]
    pub fn get(&self) -> &[u8] {
        match self {
            ArgumentBytes::Shared(b) => b,
            ArgumentBytes::Exclusive(b) => b,
        }
    }
}

/// A set of byte offsets in some memory: ascending ranges with gaps between them.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct ByteRanges(Vec<Range<u64>>);

impl ByteRanges {
    /// Returns the set of all offsets below `bytes`.
    pub fn whole(bytes: u64) -> ByteRanges {
        let mut whole = ByteRanges::default();
        whole.push(0..bytes);
        whole
    }

    /// Returns the ranges, in ascending order.
    pub fn ranges(&self) -> &[Range<u64>] {
        &self.0
    }

    /// Returns whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether the set contains any offset of the range `bytes`.
    pub fn intersects(&self, bytes: Range<u64>) -> bool {
        let next = self.0.partition_point(|range| range.end <= bytes.start);
        !bytes.is_empty() && self.0.get(next).is_some_and(|range| range.start < bytes.end)
    }

    /// Returns the part of the set within `bytes`, as offsets from the start of `bytes`.
    pub fn within(&self, bytes: &Range<u64>) -> ByteRanges {
        let mut found = ByteRanges::default();
        for range in &self.0 {
            let (start, end) = (range.start.max(bytes.start), range.end.min(bytes.end));
            found.push(start.saturating_sub(bytes.start)..end.saturating_sub(bytes.start));
        }
        found
    }

    /// Returns the bytes for which `keep` holds. `keep` is called once for each aligned unit of
    /// `step` bytes that the set touches.
    pub fn kept(&self, step: u64, keep: impl Fn(u64) -> bool) -> ByteRanges {
        let mut kept = ByteRanges::default();
        for range in &self.0 {
            let mut at = range.start;
            while at < range.end {
                let end = (at / step + 1).saturating_mul(step).min(range.end);
                if keep(at) {
                    kept.push(at..end);
                }
                at = end;
            }
        }
        kept
    }

    /// Returns the set without those bytes in the range `bytes` that are not in `left`. Offsets in
    /// `left` count from the start of `bytes`.
    pub fn retained(&self, bytes: &Range<u64>, left: &ByteRanges) -> ByteRanges {
        let mut retained = ByteRanges::default();
        for range in &self.0 {
            retained.push(range.start..range.end.min(bytes.start));
            let first = left.0.partition_point(|left| left.end + bytes.start <= range.start);
            for left in &left.0[first..] {
                let (start, end) = (left.start + bytes.start, left.end + bytes.start);
                if start >= range.end {
                    break;
                }
                retained.push(range.start.max(start)..range.end.min(end));
            }
            retained.push(range.start.max(bytes.end)..range.end);
        }
        retained
    }

    /// Appends a range that begins at or after the end of the last one; an empty range is dropped.
    fn push(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        match self.0.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => self.0.push(range),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(ranges: &ByteRanges) -> Vec<u64> {
        ranges.0.iter().cloned().flatten().collect()
    }

    /// Compares the ranges with sets of bytes.
    #[test]
    fn ranges_hold_exactly_their_bytes() {
        let of = |mask: u32| ByteRanges::whole(12).kept(1, |at| mask >> at & 1 == 1);
        for mask in (0..1 << 12).step_by(7) {
            let all = of(mask);
            let set: Vec<u64> = (0..12).filter(|at| mask >> at & 1 == 1).collect();
            assert_eq!(bytes(&all), set);
            assert!(all.0.windows(2).all(|pair| pair[0].end < pair[1].start), "{all:?}");
            for window in [0..12, 3..4, 2..9, 5..5] {
                let inside = |at: &&u64| window.contains(*at);
                let clipped: Vec<_> = set.iter().filter(inside).map(|at| at - window.start).collect();
                assert_eq!(bytes(&all.within(&window)), clipped);
                assert_eq!(all.intersects(window.clone()), !clipped.is_empty());
                let left = of(mask.rotate_left(5) & 0xfff).within(&(0..window.end - window.start));
                let stays = |at: &&u64| !window.contains(*at) || bytes(&left).contains(&(**at - window.start));
                let retained = all.retained(&window, &left);
                assert_eq!(bytes(&retained), set.iter().filter(stays).copied().collect::<Vec<_>>());
            }
            assert_eq!(
                bytes(&all.kept(4, |at| at >= 4)),
                set.iter().filter(|at| **at >= 4).copied().collect::<Vec<_>>()
            );
        }
    }
}
