//! The assignment of key tiles to blocks, and the order of blocks.
//!
//! A device has room for a limited number of blocks at once, and a call lasts until the last of
//! them ends. If there are few lists of keys, or some are much longer than others, multiprocessors
//! are idle meanwhile: for a causal product whose blocks all run at once nearly half of the time.
//! Therefore lists are cut into parts, one block each, and the block that ends last reduces their
//! results. Each part has a cost, too. So several ways to cut the lists are compared in a
//! [simulation](super::simulation) of the device, and the fastest is used:
//!
//! - no cuts, longest first (Graham, 1969);
//! - no cuts, head after head, so that concurrent blocks share keys in the cache; only the last
//!   rounds mix heads, longest first;
//! - cuts at a maximum length, longest first;
//! - cuts where a block slot is full, so that all slots have equal work (McNaughton, 1959);
//! - cuts only of lists longer than each slot's share, and slots filled with the longest list that
//!   fits (best fit, decreasing).
//!
//! Simpler rules give slower schedules than the simulation. The table has the simulated time
//! relative to the fastest, for 1 to 128 heads of 512 to 8192 queries. The queries see all keys,
//! earlier keys or a window of 512:
//!
//! ```text
//!                               132 multiprocessors           28 multiprocessors
//!   no cuts, longest first        16 to 42 % longer, mean       6 to 12 % longer, mean
//!     within 2 %                  43 to 51 % of shapes          41 to 77 % of shapes
//!   cuts at an equal share         1 to 2 % longer, mean         1 to 5 % longer, mean
//!     within 2 %                  70 to 84 % of shapes          48 to 90 % of shapes
//!     at most                     18 to 39 % longer             25 to 43 % longer
//! ```
//!
//! The result, a table with a row for each block, depends on shapes only, and is computed once for
//! each shape.

use super::join::MAX_PARTS;
use super::simulation::BlockSlots;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The minimum length of a part, in tiles of keys.
const MIN_PART_TILES: usize = 4;
/// The number of part lengths that are compared.
const PART_LENGTHS: usize = 32;
/// The range of tested slot capacities: percent above each slot's equal share.
const SLOT_EXCESS_PERCENT: std::ops::Range<usize> = 0..10;
/// The maximum number of bytes of partial results.
const MAX_PARTIAL_BYTES: usize = 128 << 20;
/// The maximum number of lists per block slot for which lists are cut. More lists keep the device
/// busy without cuts.
const MAX_FILLS: usize = 16;
/// The maximum relative time of a cut schedule that is preferred to an uncut one. The simulation is
/// not more precise.
const MAX_CUT_TIME: f64 = 0.99;
/// The relative time of blocks that share keys, compared with blocks that do not.
const SHARED_KEYS_TIME: f64 = 0.97;
/// The number of final rounds of the device's slots that run the longest lists of all heads first.
const SORTED_ROUNDS: usize = 2;

/// The work to schedule: tiles of queries, each with a list of key tiles.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work<'a> {
    /// The number of key tiles of each tile of queries. The numbers of one head of a sequence are
    /// adjacent.
    pub lists: &'a [usize],
    /// Tiles of queries of one head of a sequence.
    pub rows: usize,
    /// Bytes of a part's partial results.
    pub bytes: usize,
    /// Whether the lists' keys are scattered, so that concurrent blocks share few of them.
    pub scattered: bool,
}

/// The work of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct WorkItem {
    /// The index of the list.
    pub list: usize,
    /// The number of the list's tiles that precede the block's.
    pub before: usize,
    /// The number of the block's tiles. The last part takes all remaining tiles if there are more.
    pub tiles: usize,
    /// The number of this part and the number of parts, if more than one; otherwise 0.
    pub part: usize,
    pub parts: usize,
    /// The index of the partial results of the list's first part.
    pub slot: usize,
}

/// The work of all blocks, in their starting order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct WorkSchedule {
    pub items: Vec<WorkItem>,
    /// The number of parts that store partial results.
    pub slots: usize,
}

/// Consecutive key tiles of a list.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct KeySpan {
    tiles: usize,
    list: usize,
    before: usize,
    cut: bool,
}

impl KeySpan {
    /// Splits off the first `tiles` tiles.
    fn split(self, tiles: usize) -> (KeySpan, KeySpan) {
        let rest = KeySpan { tiles: self.tiles - tiles, before: self.before + tiles, cut: true, ..self };
        (KeySpan { tiles, cut: true, ..self }, rest)
    }
}

impl WorkSchedule {
    /// Returns the fastest schedule found for these slots.
    pub fn new(work: Work<'_>, places: &BlockSlots) -> WorkSchedule {
        let whole: Vec<_> = (0..work.lists.len())
            .map(|list| KeySpan { tiles: work.lists[list], list, before: 0, cut: false })
            .collect();
        let mut best = head_after_head(whole.clone(), work.rows, places);
        if whole.len() <= MAX_FILLS * places.all() {
            let mut time =
                if work.scattered { SHARED_KEYS_TIME * places.time(&best, f64::INFINITY) } else { f64::INFINITY };
            let mut quicker = |pieces: Vec<KeySpan>, worth: f64| {
                let within = time / worth;
                if places.share(&pieces) < within && work.allows(&pieces) {
                    let ends = places.time(&pieces, within);
                    if ends < within {
                        (best, time) = (pieces, worth * ends);
                    }
                }
            };
            let longest = longest_first(whole.clone(), work.rows);
            quicker(longest.clone(), 1.0);
            quicker(with_second_round_reversed(longest, places), 1.0);
            divisions(&whole, work.rows, places).for_each(|pieces| quicker(pieces, 1.0 / MAX_CUT_TIME));
        }
        WorkSchedule::numbered(best)
    }

    /// Returns the schedule of these pieces, with the parts of each list numbered by their first
    /// tile.
    fn numbered(pieces: Vec<KeySpan>) -> WorkSchedule {
        let mut cut: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for piece in pieces.iter().filter(|p| p.cut) {
            cut.entry(piece.list).or_default().push(piece.before);
        }
        let (mut slots, mut first) = (0, BTreeMap::new());
        for (list, begins) in &mut cut {
            begins.sort_unstable();
            first.insert(*list, slots);
            slots += begins.len();
        }
        let item = |KeySpan { tiles, list, before, .. }: KeySpan| match (cut.get(&list), first.get(&list)) {
            (Some(begins), Some(slot)) => {
                let part = begins.partition_point(|b| *b < before);
                WorkItem { list, before, tiles, part, parts: begins.len(), slot: *slot }
            }
            _ => WorkItem { list, before, tiles, part: 0, parts: 0, slot: 0 },
        };
        WorkSchedule { items: pieces.into_iter().map(item).collect(), slots }
    }
}

impl Work<'_> {
    /// Returns whether no list has more than [`MAX_PARTS`] parts, and all partial results have at
    /// most [`MAX_PARTIAL_BYTES`].
    fn allows(self, pieces: &[KeySpan]) -> bool {
        let mut parts = vec![0; self.lists.len()];
        pieces.iter().filter(|p| p.cut).for_each(|p| parts[p.list] += 1);
        parts.iter().all(|n| *n <= MAX_PARTS) && parts.iter().sum::<usize>() * self.bytes <= MAX_PARTIAL_BYTES
    }
}

impl BlockSlots {
    /// Returns the time at which all pieces have ended, if they begin in this order. If this time
    /// is later than `limit`, any time after `limit` may be returned.
    fn time(&self, pieces: &[KeySpan], limit: f64) -> f64 {
        self.ends(pieces.iter().map(|p| self.cost.of(p.tiles, p.cut)), limit)
    }

    /// Returns the cost of all pieces, divided equally among the slots.
    fn share(&self, pieces: &[KeySpan]) -> f64 {
        pieces.iter().map(|p| self.cost.of(p.tiles, p.cut)).sum::<f64>() / self.all() as f64
    }

    /// Returns the maximum number of key tiles of a part with a cost of at most `room`.
    fn max_tiles(&self, room: f64) -> usize {
        // Start with the count for a part without fixed costs, and search downwards.
        let most = (room.max(0.0) as usize + 1) * self.cost.step;
        (0..=most).rev().find(|tiles| self.cost.of(*tiles, true) <= room).unwrap_or(0)
    }
}

/// Returns ways to cut the lists.
fn divisions(whole: &[KeySpan], rows: usize, places: &BlockSlots) -> impl Iterator<Item = Vec<KeySpan>> {
    let longest = whole.iter().map(|p| p.tiles).max().unwrap_or(0);
    let coarse = longest.div_ceil(PART_LENGTHS).next_multiple_of(places.cost.step).max(1);
    let lengths = (MIN_PART_TILES.next_multiple_of(coarse)..longest).step_by(coarse);
    let of_length = lengths.map(move |length| longest_first(cut_at(whole, length), rows));
    let share = places.share(whole);
    let fillings = SLOT_EXCESS_PERCENT.map(move |more| share * (1.0 + 0.01 * more as f64));
    let filled = fillings.clone().map(move |room| longest_first(filled(whole, room, places), rows));
    of_length.chain(filled).chain(fillings.map(move |room| packed(whole, room, places)))
}

/// Sorts head after head, each with its longest lists first. The heads of the last rounds are
/// sorted together, longest first.
fn head_after_head(mut pieces: Vec<KeySpan>, rows: usize, places: &BlockSlots) -> Vec<KeySpan> {
    let rows = rows.max(1);
    let first = (pieces.len() / rows).saturating_sub(SORTED_ROUNDS * places.all() / rows);
    pieces.sort_by_key(|p| ((p.list / rows).min(first), Reverse(p.tiles), p.list));
    pieces
}

/// Reverses the second round, so that a multiprocessor with one of the longest lists also gets one
/// of the shorter.
fn with_second_round_reversed(mut pieces: Vec<KeySpan>, places: &BlockSlots) -> Vec<KeySpan> {
    let (from, to) = (places.multiprocessors.min(pieces.len()), (2 * places.multiprocessors).min(pieces.len()));
    pieces[from..to].reverse();
    pieces
}

/// Sorts longest first. Pieces of equal length with the same keys of a head begin together, so that
/// their keys come from the cache.
fn longest_first(mut pieces: Vec<KeySpan>, rows: usize) -> Vec<KeySpan> {
    pieces.sort_by_key(|p| (Reverse(p.tiles), p.list / rows.max(1), p.before, p.list));
    pieces
}

/// Cuts the lists into pieces of at most `length` tiles.
fn cut_at(whole: &[KeySpan], length: usize) -> Vec<KeySpan> {
    let mut pieces = Vec::with_capacity(2 * whole.len());
    for piece in whole {
        let mut rest = *piece;
        while rest.tiles > length {
            let (first, behind) = rest.split(length);
            pieces.push(first);
            rest = behind;
        }
        pieces.push(rest);
    }
    pieces
}

/// Fills slot after slot with lists, longest first, up to a cost of `room`. A list that exceeds the
/// remaining room continues in the next slot.
fn filled(whole: &[KeySpan], room: f64, places: &BlockSlots) -> Vec<KeySpan> {
    let mut lists = whole.to_vec();
    lists.sort_by_key(|p| (Reverse(p.tiles), p.list));
    let (mut pieces, mut place, mut left) = (Vec::with_capacity(whole.len() + places.all()), 0, room);
    for mut rest in lists {
        while places.cost.of(rest.tiles, rest.cut) > left && place + 1 < places.all() {
            let tiles = places.max_tiles(left).min(rest.tiles.saturating_sub(MIN_PART_TILES));
            if tiles >= MIN_PART_TILES {
                let (first, behind) = rest.split(tiles);
                left -= places.cost.of(tiles, true);
                pieces.push(first);
                rest = behind;
            }
            (place, left) = (place + 1, left + room);
        }
        left -= places.cost.of(rest.tiles, rest.cut);
        pieces.push(rest);
    }
    pieces
}

/// Fills each slot repeatedly with the longest list that fits the remaining `room`. Only a list
/// longer than a whole slot is cut. Pieces are sorted by the expected end of their predecessors in
/// the slot.
fn packed(whole: &[KeySpan], room: f64, places: &BlockSlots) -> Vec<KeySpan> {
    let mut pool = whole.to_vec();
    pool.sort_unstable();
    let cost = |p: &KeySpan| places.cost.of(p.tiles, p.cut);
    // Pieces with their expected start times.
    let mut planned: Vec<(f64, KeySpan)> = Vec::with_capacity(whole.len() + places.all());
    let mut free = vec![room; places.all()];
    for left in &mut free {
        let Some(longest) = pool.last().copied() else { break };
        if cost(&longest) > room {
            let tiles = places.max_tiles(room).min(longest.tiles.saturating_sub(MIN_PART_TILES));
            if tiles < MIN_PART_TILES {
                continue;
            }
            pool.pop();
            let (first, rest) = longest.split(tiles);
            planned.push((0.0, first));
            *left -= cost(&first);
            pool.insert(pool.partition_point(|p| *p < rest), rest);
        }
        // Parts cost more than whole lists, so some of the longest candidates may not fit.
        while let Some(at) = pool
            .iter()
            .take(pool.partition_point(|p| places.cost.of(p.tiles, false) <= *left))
            .rposition(|p| cost(p) <= *left)
        {
            let piece = pool.remove(at);
            planned.push((room - *left, piece));
            *left -= cost(&piece);
        }
    }
    while let Some(piece) = pool.pop() {
        let Some(left) = free.iter_mut().max_by(|a, b| a.total_cmp(b)) else { break };
        planned.push((room - *left, piece));
        *left -= cost(&piece);
    }
    planned.sort_by(|a, b| a.0.total_cmp(&b.0).then(b.1.tiles.cmp(&a.1.tiles)));
    planned.into_iter().map(|(_, piece)| piece).collect()
}

#[cfg(test)]
mod tests {
    use super::super::plan::AttentionTile;
    use super::*;

    /// An H200 with tiles of 64 queries and 128 elements.
    const H200: BlockSlots = AttentionTile { height: 64, width: 128, step: 2, threads: 128 }.block_slots(132);

    fn causal(tiles: usize, heads: usize) -> Vec<usize> {
        (1..=tiles).collect::<Vec<_>>().repeat(heads)
    }

    fn schedule(lists: &[usize], rows: usize, places: &BlockSlots) -> WorkSchedule {
        let schedule = WorkSchedule::new(Work { lists, rows, bytes: 64 * 130 * 4, scattered: false }, places);
        covers(&schedule, lists);
        schedule
    }

    /// Asserts that the parts cover each list once, are numbered in order, and store their results
    /// in adjacent slots that no other part uses.
    fn covers(schedule: &WorkSchedule, lists: &[usize]) {
        let mut slots = Vec::new();
        for (list, length) in lists.iter().enumerate() {
            let mut parts: Vec<_> = schedule.items.iter().filter(|item| item.list == list).collect();
            parts.sort_by_key(|item| item.part);
            let mut before = 0;
            for (n, item) in parts.iter().enumerate() {
                assert_eq!((item.part, item.before), (n, before), "list {list}");
                assert_eq!(item.parts, if parts.len() > 1 { parts.len() } else { 0 }, "list {list}");
                assert_eq!(item.slot, parts[0].slot, "list {list}");
                before += item.tiles;
            }
            assert_eq!(before, *length, "list {list}");
            if parts.len() > 1 {
                slots.extend(parts[0].slot..parts[0].slot + parts.len());
            }
        }
        slots.sort_unstable();
        assert_eq!(slots, (0..schedule.slots).collect::<Vec<_>>());
    }

    fn time(schedule: &WorkSchedule, places: &BlockSlots) -> f64 {
        places.ends(schedule.items.iter().map(|i| places.cost.of(i.tiles, i.parts > 0)), f64::INFINITY)
    }

    /// Returns the schedule's time relative to a device without idle slots and without cuts.
    fn over(lists: &[usize], rows: usize, places: &BlockSlots) -> f64 {
        let least = lists.iter().map(|n| places.cost.of(*n, false)).sum::<f64>() / places.all() as f64;
        time(&schedule(lists, rows, places), places) / least
    }

    #[test]
    fn every_way_to_cut_covers_every_list_once() {
        let small = BlockSlots { multiprocessors: 2, ..H200 };
        let lists = [0, 1, 40, 7, 7, 0, 33, 12, 5, 5, 90, 4];
        let whole: Vec<_> = lists
            .iter()
            .enumerate()
            .map(|(list, tiles)| KeySpan { tiles: *tiles, list, before: 0, cut: false })
            .collect();
        let mut ways = 0;
        for pieces in divisions(&whole, 4, &small) {
            covers(&WorkSchedule::numbered(pieces), &lists);
            ways += 1;
        }
        assert!(ways > 40, "{ways}");
    }

    /// Checks the length against the fastest one measured on the card: 22 and 23 are equally good.
    #[test]
    fn causal_lists_are_cut_at_the_share_of_a_slot() {
        let lists = causal(32, 16);
        let schedule = schedule(&lists, 32, &H200);
        let longest = schedule.items.iter().map(|i| i.tiles).max();
        assert!(matches!(longest, Some(21..=24)), "{longest:?}");
        assert!(over(&lists, 32, &H200) < 1.1);
    }

    #[test]
    fn lists_of_equal_length_are_cut_where_a_slot_is_full() {
        let lists = [32; 512];
        assert!(over(&lists, 32, &H200) < 1.1);
        assert!(schedule(&lists, 32, &H200).slots > 200);
    }

    #[test]
    fn few_lists_are_cut_until_the_device_is_full() {
        let schedule = schedule(&[256; 8], 1, &H200);
        assert!((132..=396).contains(&schedule.items.len()), "{}", schedule.items.len());
    }

    #[test]
    fn lists_that_fill_the_device_are_not_cut() {
        for (lists, rows) in [(vec![16; 8_000], 16), (vec![], 0), (vec![1], 1), (vec![3; 396], 1), (vec![0; 20], 10)] {
            let schedule = schedule(&lists, rows, &H200);
            assert_eq!((schedule.items.len(), schedule.slots), (lists.len(), 0));
        }
    }

    /// Checks the limit: a block can reduce at most [`MAX_PARTS`] parts.
    #[test]
    fn a_list_has_a_limited_number_of_parts() {
        let schedule = schedule(&[100_000], 1, &H200);
        assert!((2..=MAX_PARTS).contains(&schedule.items.len()), "{}", schedule.items.len());
    }

    /// Checks that fewer parts are made if their results would exceed the limit of memory.
    #[test]
    fn partial_results_stay_within_the_limit_of_memory() {
        let lists = [32; 512];
        let WorkSchedule { slots, .. } = WorkSchedule::new(
            Work { lists: &lists, rows: 32, bytes: MAX_PARTIAL_BYTES / 100, scattered: false },
            &H200,
        );
        assert!(slots <= 100, "{slots}");
    }
}
