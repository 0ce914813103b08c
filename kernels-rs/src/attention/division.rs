//! Whether the keys of a tile of queries are one block's or several's.
//!
//! A device has room for so many blocks at once, and as long as the longest of them runs the call lasts. Where there are few, or where some have much more to
//! do than others, multiprocessors stand idle meanwhile: of a causal product whose blocks all run at once nearly half. So lists of keys are cut
//! into parts, a block each, and of those the one that ends last brings together what all come to.

use super::join::PARTS;
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
    /// How many more tiles of keys a tile of queries has than the one before; 0 where all have as many.
    pub slope: usize,
}

/// No list is that long.
const UNCUT: Division = Division { parts: 1, each: 1 << 30, slope: 0 };

/// A part has no less than this.
const LEAST: usize = 4;
/// How many lengths of parts are compared.
const LENGTHS: usize = 48;
/// Bytes that parts may leave.
const MEMORY: usize = 128 << 20;

/// Where blocks run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Places {
    pub multiprocessors: usize,
    /// Blocks that run at once on each.
    pub resident: usize,
}

/// The unit of time is that of a block for a tile of keys where all places are taken; the factors are those of an H200, of products of 16 heads of 128
/// elements with 2048 and 4096 queries.
impl Places {
    fn all(self) -> usize {
        self.multiprocessors * self.resident
    }

    /// The time for a tile of keys where so many blocks run on a multiprocessor: half of them do more than half of the work.
    fn pace(self, blocks: usize) -> f64 {
        0.25 + 0.75 * blocks.min(self.resident) as f64 / self.resident as f64
    }

    /// What each place has to do, if they share it.
    fn share(self, work: Work) -> f64 {
        work.total as f64 / self.all() as f64
    }

    /// The time for `n` blocks of `each` tiles that begin at once.
    fn rounds(self, n: usize, each: usize) -> f64 {
        let last = match n % self.all() {
            0 => 0.0,
            rest => self.pace(rest.div_ceil(self.multiprocessors)),
        };
        each as f64 * ((n / self.all()) as f64 + last)
    }

    /// How long lists of one length take: those of their parts that are whole come first, and what is left of each list beside and behind the last of
    /// them.
    fn even(self, work: Work, each: usize) -> f64 {
        let (whole, rest) = (work.lists * (work.longest / each), work.longest % each);
        let idle = whole.next_multiple_of(self.all()) - whole;
        match each.checked_div(rest) {
            None => self.rounds(whole, each),
            Some(fit) => {
                let behind = work.lists.saturating_sub(idle * fit);
                whole.div_ceil(self.all()) as f64 * each as f64 + self.rounds(behind, rest)
            }
        }
    }

    /// How long work takes if no part is longer than `each`.
    fn time(self, work: Work, each: usize) -> f64 {
        let (parts, share) = (work.longest.div_ceil(each), self.share(work));
        // What blocks of parts leave, and bring together.
        let joined = if parts > 1 { 0.15 * (work.lists * parts) as f64 / self.all() as f64 } else { 0.0 };
        let begins = 0.12 * (share / each as f64).max(1.0);
        let least = self.pace(1) * each as f64;
        if work.total == work.lists * work.longest {
            joined + begins + self.even(work, each)
        } else if parts == 1 {
            // The longest come first; where there are lists of every length, short ones fill what those leave.
            let left = if work.rises { 0.05 * share } else { 0.32 / self.resident as f64 * each as f64 };
            // Beside two others the longest takes longer than alone.
            let slow = if work.rises && self.resident > 2 { 0.83 } else { self.pace(1) };
            (share + left.min(3.0)).max(slow * each as f64)
        } else if each as f64 >= share {
            // What is left of a list, and what was short from the start, lies beside one of the longest parts, and after one of all others.
            joined + begins + (each as f64).min(1.1 * share).max(least)
        } else {
            joined + begins + (share + 0.13 * each as f64).max(least)
        }
    }

    /// How lists are to be cut, where a tile of queries has `rows` rows and leaves so many bytes, and a step is `step` tiles of keys.
    pub(super) fn divide(self, work: Work, rows: usize, bytes: usize, step: usize) -> Division {
        let most = (work.longest / LEAST).min(PARTS).min(MEMORY / (bytes * work.lists).max(1));
        // Some lengths of every size; and parts as long as what each place has to do: one round of them.
        let coarse = work.longest.div_ceil(LENGTHS).next_multiple_of(step).max(step);
        let one = (self.share(work).ceil() as usize).max(LEAST).next_multiple_of(step);
        let times = (1..work.longest.div_ceil(coarse))
            .map(|i| i * coarse)
            .chain([one])
            .filter(|each| (2..=most).contains(&work.longest.div_ceil(*each)))
            .map(|each| (each, self.time(work, each)));
        let Some((each, time)) = times.min_by(|a, b| a.1.total_cmp(&b.1)) else { return UNCUT };
        if time > 0.95 * self.time(work, work.longest) {
            return UNCUT;
        }
        Division { parts: work.longest.div_ceil(each), each, slope: if work.rises { rows.div_ceil(KEYS) } else { 0 } }
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
    fn a_causal_product_whose_blocks_all_run_at_once_is_cut() {
        assert_eq!(H200.divide(causal(16, 16), 128, 128 * 512, 1), Division { parts: 2, each: 17, slope: 2 });
    }

    #[test]
    fn tiles_of_64_queries_by_steps_of_two_are_cut_at_whole_steps() {
        let places = Places { resident: 3, ..H200 };
        let of_16 = Work { longest: 32, total: 16 * 32 * 33 / 2, lists: 16 * 32, rises: true };
        assert_eq!(places.divide(of_16, 64, 64 * 512, 2), Division { parts: 2, each: 22, slope: 1 });
        let Division { parts, each, slope } = places.divide(full(32, 32, 16), 64, 64 * 512, 2);
        assert!(each % 2 == 0 && parts == 32usize.div_ceil(each) && parts > 1 && slope == 0, "{parts} parts of {each}");
    }

    #[test]
    fn what_fills_the_device_is_not_cut() {
        assert_eq!(H200.divide(causal(32, 16), 128, 128 * 512, 1), UNCUT);
        assert_eq!(H200.divide(full(16, 32, 16), 128, 128 * 512, 1), UNCUT);
        assert_eq!(H200.divide(full(0, 0, 16), 128, 128 * 512, 1), UNCUT);
        assert_eq!(H200.divide(full(1, 1, 1), 128, 128 * 512, 1), UNCUT);
    }

    #[test]
    fn long_lists_of_a_mask_are_cut_where_places_share_less() {
        let mask = |total: usize, longest: usize| Work { longest, total, lists: 512, rises: false };
        assert_eq!(H200.divide(mask(3314, 18), 128, 128 * 512, 1), Division { parts: 2, each: 13, slope: 0 });
        assert_eq!(H200.divide(mask(16390, 50), 128, 128 * 512, 1), UNCUT);
    }

    #[test]
    fn few_queries_over_many_keys_are_cut_until_the_device_is_full() {
        let division = H200.divide(full(1, 128, 8), 128, 128 * 512, 1);
        assert!(division.parts * 8 >= 132 && division.parts * 8 <= 264, "{division:?}");
        assert_eq!(division.each, 128usize.div_ceil(division.parts));
    }
}
