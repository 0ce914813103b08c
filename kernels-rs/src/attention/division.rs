//! Whether the keys of a tile of queries are one block's or several's.
//!
//! A device has room for so many blocks at once, and as long as the longest of them runs the call lasts. Where there are few, or where some have much more to
//! do than others, multiprocessors stand idle meanwhile: of a causal product whose blocks all run at once nearly half. So lists of keys are cut
//! into parts, a block each, and what those come to is brought together by a second launch, which costs less than a tile of keys does.

use super::span::KEYS;

/// What is to be done, in tiles of keys.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    /// Of the tile of queries that looks at most.
    pub longest: usize,
    /// Of all tiles of queries, of every head and piece of a sequence.
    pub total: usize,
    /// Tiles of queries, of every head and piece of a sequence.
    pub lists: usize,
    /// Whether the n-th tile of queries looks at about n times as many keys as the first does.
    pub rises: bool,
}

/// How lists are cut.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Division {
    /// Parts of the longest.
    pub parts: usize,
    /// Tiles of keys of a part.
    pub each: usize,
    /// How many tiles of queries later the next part is as long.
    pub shift: usize,
}

/// No list is that long.
const UNCUT: Division = Division { parts: 1, each: 1 << 30, shift: 0 };

/// What it costs to bring parts together, in the time that a block takes for a tile of keys where all places are taken.
const JOIN: f64 = 0.5;
/// A part is worth no less than this.
const LEAST: usize = 4;
/// Bytes that parts may leave.
const MEMORY: usize = 64 << 20;

/// Where blocks run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Places {
    pub multiprocessors: usize,
    /// Blocks that run at once on each.
    pub resident: usize,
}

impl Places {
    /// The time for a tile of keys where so many blocks run on a multiprocessor, beside that where all places are taken: half of the threads keep it busy for
    /// 1 / 0.65 of half the work (measured: a causal product of 256 blocks on 264 places).
    fn pace(self, blocks: usize) -> f64 {
        0.3 + 0.7 * blocks as f64 / self.resident as f64
    }

    /// How long work takes if lists are cut into so many parts.
    fn time(self, work: Work, parts: usize) -> f64 {
        let each = work.longest.div_ceil(parts);
        let joined = if parts > 1 { JOIN + 0.02 * parts as f64 } else { 0.0 };
        let all = work.total as f64 / (self.multiprocessors * self.resident) as f64;
        if work.total < work.lists * work.longest {
            // The longest come first, and what is short fills what they leave.
            return joined + all.max(self.pace(1) * each as f64);
        }
        let blocks = (work.lists * parts).div_ceil(self.multiprocessors);
        let last = match blocks % self.resident {
            0 => 0.0,
            rest => self.pace(rest),
        };
        joined + each as f64 * ((blocks / self.resident) as f64 + last)
    }

    /// How lists are to be cut, where a tile of queries has `rows` rows and leaves so many bytes.
    pub(super) fn divide(self, work: Work, rows: usize, bytes: usize) -> Division {
        let most = (work.longest / LEAST).min(MEMORY / (bytes * work.lists).max(1));
        let whole = self.time(work, 1);
        let times = (2..=most).map(|parts| (parts, self.time(work, parts)));
        let Some((parts, time)) = times.min_by(|a, b| a.1.total_cmp(&b.1)) else { return UNCUT };
        if time > 0.95 * whole {
            return UNCUT;
        }
        let unit = rows.div_ceil(KEYS);
        let each = work.longest.div_ceil(parts).next_multiple_of(if work.rises { unit } else { 1 });
        let shift = if work.rises { each / unit } else { 0 };
        Division { parts: work.longest.div_ceil(each), each, shift }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const H200: Places = Places { multiprocessors: 132, resident: 2 };

    fn causal(tiles: usize, heads: usize) -> Work {
        Work { longest: 2 * tiles, total: heads * tiles * (tiles + 1), lists: heads * tiles, rises: true }
    }

    fn full(tiles: usize, keys: usize, heads: usize) -> Work {
        Work { longest: keys, total: heads * tiles * keys, lists: heads * tiles, rises: false }
    }

    #[test]
    fn a_causal_product_whose_blocks_all_run_at_once_is_cut_in_halves() {
        assert_eq!(H200.divide(causal(16, 16), 128, 128 * 512), Division { parts: 2, each: 16, shift: 8 });
    }

    #[test]
    fn what_fills_the_device_is_not_cut() {
        assert_eq!(H200.divide(causal(32, 16), 128, 128 * 512), UNCUT);
        assert_eq!(H200.divide(full(16, 32, 16), 128, 128 * 512), UNCUT);
        assert_eq!(H200.divide(full(0, 0, 16), 128, 128 * 512), UNCUT);
        assert_eq!(H200.divide(full(1, 1, 1), 128, 128 * 512), UNCUT);
    }

    #[test]
    fn few_queries_over_many_keys_are_cut_until_the_device_is_full() {
        let division = H200.divide(full(1, 128, 8), 128, 128 * 512);
        assert!(division.parts * 8 >= 132 && division.parts * 8 <= 264, "{division:?}");
        assert_eq!(division.each, 128usize.div_ceil(division.parts));
    }
}
