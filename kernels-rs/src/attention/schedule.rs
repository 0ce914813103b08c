//! Which block has which tiles of keys, and in which order blocks begin.
//!
//! A device has room for so many blocks at once, and a call lasts until the last of them ends. Where lists of keys are few, or some much longer than others,
//! multiprocessors stand idle meanwhile: of a causal product whose blocks all run at once nearly half. So lists are cut into parts, a block each, and of those
//! the one that ends last brings together what all come to. A part costs time, too; so of some ways to cut the lists that one is taken which ends first in a
//! [simulation](super::simulation) of the device:
//!
//! * not at all, the longest first (Graham, 1969);
//! * not at all, head after head, so that blocks which run at once share keys in the cache; only what comes last is of several heads, the longest first;
//! * nowhere longer than some length, the longest first;
//! * where a place for a block is full, so that all have as much (McNaughton, 1959);
//! * only lists longer than what each place has to do, and places filled with the longest that fits (best fit, decreasing).
//!
//! What comes of it is a table with a row for each block, which depends on shapes alone: it is made once for each.

use super::join::PARTS;
use super::simulation::Places;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// A part has no less than this, in tiles of keys.
const LEAST: usize = 4;
/// How many lengths of parts are compared.
const LENGTHS: usize = 32;
/// What places are filled to, in hundredths more than each has if none is idle.
const FILLED: std::ops::Range<usize> = 0..10;
/// Bytes that parts may leave.
const MEMORY: usize = 128 << 20;
/// Lists of so many rounds of the device's places keep it busy as they are.
const ROUNDS: usize = 16;
/// By what part of the time a division must be quicker than none: the simulation is not more exact.
const WORTH: f64 = 0.99;
/// What part of the time blocks take that share keys, where others do not.
const SHARED: f64 = 0.97;
/// Rounds of the device's places that end with the shortest lists.
const LAST: usize = 2;

/// What is to be done: tiles of queries, and of how many tiles of keys each has a list.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work<'a> {
    /// Tiles of keys by tile of queries, those of a sequence's head side by side.
    pub lists: &'a [usize],
    /// Tiles of queries of a sequence's head.
    pub rows: usize,
    /// Bytes that a part leaves.
    pub bytes: usize,
    /// Whether lists have keys here and there, so that blocks which run at once share few.
    pub scattered: bool,
}

/// What a block has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Item {
    /// Which list.
    pub list: usize,
    /// How many of its tiles lie before the block's.
    pub before: usize,
    /// How many the block has; of the last part all that there are, if there are more.
    pub tiles: usize,
    /// Which part it is, of how many, if more than one; else 0.
    pub part: usize,
    pub parts: usize,
    /// Where the list's first part leaves what it comes to.
    pub slot: usize,
}

/// What all blocks have, in the order that they begin in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Schedule {
    pub items: Vec<Item>,
    /// Parts that leave something.
    pub slots: usize,
}

/// Tiles of keys of a list, one after another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Piece {
    tiles: usize,
    list: usize,
    before: usize,
    cut: bool,
}

impl Piece {
    /// The first `tiles` of it, and the rest.
    fn split(self, tiles: usize) -> (Piece, Piece) {
        let rest = Piece { tiles: self.tiles - tiles, before: self.before + tiles, cut: true, ..self };
        (Piece { tiles, cut: true, ..self }, rest)
    }
}

impl Schedule {
    /// The quickest that is found for these places.
    pub fn new(work: Work<'_>, places: &Places) -> Schedule {
        let whole: Vec<_> =
            (0..work.lists.len()).map(|list| Piece { tiles: work.lists[list], list, before: 0, cut: false }).collect();
        let mut best = head_after_head(whole.clone(), work.rows, places);
        if whole.len() <= ROUNDS * places.all() {
            let mut time = if work.scattered { SHARED * places.time(&best, f64::INFINITY) } else { f64::INFINITY };
            let mut quicker = |pieces: Vec<Piece>, worth: f64| {
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
            quicker(turned(longest, places), 1.0);
            divisions(&whole, work.rows, places).for_each(|pieces| quicker(pieces, 1.0 / WORTH));
        }
        Schedule::numbered(best)
    }

    /// Parts of a list by where they begin.
    fn numbered(pieces: Vec<Piece>) -> Schedule {
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
        let item = |Piece { tiles, list, before, .. }: Piece| match (cut.get(&list), first.get(&list)) {
            (Some(begins), Some(slot)) => {
                let part = begins.partition_point(|b| *b < before);
                Item { list, before, tiles, part, parts: begins.len(), slot: *slot }
            }
            _ => Item { list, before, tiles, part: 0, parts: 0, slot: 0 },
        };
        Schedule { items: pieces.into_iter().map(item).collect(), slots }
    }
}

impl Work<'_> {
    /// Whether parts are few enough for whoever brings them together, and for memory.
    fn allows(self, pieces: &[Piece]) -> bool {
        let mut parts = vec![0; self.lists.len()];
        pieces.iter().filter(|p| p.cut).for_each(|p| parts[p.list] += 1);
        parts.iter().all(|n| *n <= PARTS) && parts.iter().sum::<usize>() * self.bytes <= MEMORY
    }
}

impl Places {
    /// When all pieces have ended, if they begin in this order: or any time behind `limit`, if that is later.
    fn time(&self, pieces: &[Piece], limit: f64) -> f64 {
        self.ends(pieces.iter().map(|p| self.cost.of(p.tiles, p.cut)), limit)
    }

    /// What each place has to do, if they share it.
    fn share(&self, pieces: &[Piece]) -> f64 {
        pieces.iter().map(|p| self.cost.of(p.tiles, p.cut)).sum::<f64>() / self.all() as f64
    }

    /// How many tiles of keys a part may have that costs `room` at most.
    fn fit(&self, room: f64) -> usize {
        // As many as if it began and ended for nothing, or some fewer.
        let most = (room.max(0.0) as usize + 1) * self.cost.step;
        (0..=most).rev().find(|tiles| self.cost.of(*tiles, true) <= room).unwrap_or(0)
    }
}

/// Ways to cut lists.
fn divisions(whole: &[Piece], rows: usize, places: &Places) -> impl Iterator<Item = Vec<Piece>> {
    let longest = whole.iter().map(|p| p.tiles).max().unwrap_or(0);
    let coarse = longest.div_ceil(LENGTHS).next_multiple_of(places.cost.step).max(1);
    let lengths = (LEAST.next_multiple_of(coarse)..longest).step_by(coarse);
    let of_length = lengths.map(move |length| longest_first(cut_at(whole, length), rows));
    let share = places.share(whole);
    let fillings = FILLED.map(move |more| share * (1.0 + 0.01 * more as f64));
    let filled = fillings.clone().map(move |room| longest_first(filled(whole, room, places), rows));
    of_length.chain(filled).chain(fillings.map(move |room| packed(whole, room, places)))
}

/// Head after head, each with its longest lists first, and then of so many heads as make the last rounds the longest first.
fn head_after_head(mut pieces: Vec<Piece>, rows: usize, places: &Places) -> Vec<Piece> {
    let rows = rows.max(1);
    let first = (pieces.len() / rows).saturating_sub(LAST * places.all() / rows);
    pieces.sort_by_key(|p| ((p.list / rows).min(first), Reverse(p.tiles), p.list));
    pieces
}

/// The second round backwards: so a multiprocessor that has one of the longest has one of the shorter beside it.
fn turned(mut pieces: Vec<Piece>, places: &Places) -> Vec<Piece> {
    let (from, to) = (places.multiprocessors.min(pieces.len()), (2 * places.multiprocessors).min(pieces.len()));
    pieces[from..to].reverse();
    pieces
}

/// Of pieces as long as one another those of a head's same keys begin together, which then come from the cache.
fn longest_first(mut pieces: Vec<Piece>, rows: usize) -> Vec<Piece> {
    pieces.sort_by_key(|p| (Reverse(p.tiles), p.list / rows.max(1), p.before, p.list));
    pieces
}

/// No piece is longer than `length`.
fn cut_at(whole: &[Piece], length: usize) -> Vec<Piece> {
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

/// Places get lists, the longest first, until what they have costs `room`; the list that is too long for the rest of it goes on in the next place.
fn filled(whole: &[Piece], room: f64, places: &Places) -> Vec<Piece> {
    let mut lists = whole.to_vec();
    lists.sort_by_key(|p| (Reverse(p.tiles), p.list));
    let (mut pieces, mut place, mut left) = (Vec::with_capacity(whole.len() + places.all()), 0, room);
    for mut rest in lists {
        while places.cost.of(rest.tiles, rest.cut) > left && place + 1 < places.all() {
            let tiles = places.fit(left).min(rest.tiles.saturating_sub(LEAST));
            if tiles >= LEAST {
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

/// Each place gets the longest that costs no more than what is left of its `room`, again and again; what is longer than all of that is cut. Pieces begin when what
/// their place had before them should end.
fn packed(whole: &[Piece], room: f64, places: &Places) -> Vec<Piece> {
    let mut pool = whole.to_vec();
    pool.sort_unstable();
    let cost = |p: &Piece| places.cost.of(p.tiles, p.cut);
    // With when they begin.
    let mut planned: Vec<(f64, Piece)> = Vec::with_capacity(whole.len() + places.all());
    let mut free = vec![room; places.all()];
    for left in &mut free {
        let Some(longest) = pool.last().copied() else { break };
        if cost(&longest) > room {
            let tiles = places.fit(room).min(longest.tiles.saturating_sub(LEAST));
            if tiles < LEAST {
                continue;
            }
            pool.pop();
            let (first, rest) = longest.split(tiles);
            planned.push((0.0, first));
            *left -= cost(&first);
            pool.insert(pool.partition_point(|p| *p < rest), rest);
        }
        // Parts cost more than what is whole: of the longest that could fit some may not.
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
    use super::super::plan::Tile;
    use super::*;

    /// An H200 with tiles of 64 queries and 128 elements.
    const H200: Places = Tile { height: 64, width: 128, step: 2, threads: 128 }.places(132);

    fn causal(tiles: usize, heads: usize) -> Vec<usize> {
        (1..=tiles).collect::<Vec<_>>().repeat(heads)
    }

    fn schedule(lists: &[usize], rows: usize, places: &Places) -> Schedule {
        let schedule = Schedule::new(Work { lists, rows, bytes: 64 * 130 * 4, scattered: false }, places);
        covers(&schedule, lists);
        schedule
    }

    /// Each list is covered once, by parts that are numbered as they lie and leave what they come to side by side, where nobody else does.
    fn covers(schedule: &Schedule, lists: &[usize]) {
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

    fn time(schedule: &Schedule, places: &Places) -> f64 {
        places.ends(schedule.items.iter().map(|i| places.cost.of(i.tiles, i.parts > 0)), f64::INFINITY)
    }

    /// How much longer it takes than if no place were idle, and nothing cut.
    fn over(lists: &[usize], rows: usize, places: &Places) -> f64 {
        let least = lists.iter().map(|n| places.cost.of(*n, false)).sum::<f64>() / places.all() as f64;
        time(&schedule(lists, rows, places), places) / least
    }

    #[test]
    fn every_way_to_cut_covers_every_list_once() {
        let small = Places { multiprocessors: 2, ..H200 };
        let lists = [0, 1, 40, 7, 7, 0, 33, 12, 5, 5, 90, 4];
        let whole: Vec<_> = lists
            .iter()
            .enumerate()
            .map(|(list, tiles)| Piece { tiles: *tiles, list, before: 0, cut: false })
            .collect();
        let mut ways = 0;
        for pieces in divisions(&whole, 4, &small) {
            covers(&Schedule::numbered(pieces), &lists);
            ways += 1;
        }
        assert!(ways > 40, "{ways}");
    }

    /// What was measured to be the quickest on the card: 22 and 23 are as good.
    #[test]
    fn causal_lists_are_cut_at_what_each_place_has() {
        let lists = causal(32, 16);
        let schedule = schedule(&lists, 32, &H200);
        let longest = schedule.items.iter().map(|i| i.tiles).max();
        assert!(matches!(longest, Some(21..=24)), "{longest:?}");
        assert!(over(&lists, 32, &H200) < 1.1);
    }

    #[test]
    fn lists_of_one_length_are_cut_where_a_place_is_full() {
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
    fn what_keeps_the_device_busy_is_not_cut() {
        for (lists, rows) in [(vec![16; 8_000], 16), (vec![], 0), (vec![1], 1), (vec![3; 396], 1), (vec![0; 20], 10)] {
            let schedule = schedule(&lists, rows, &H200);
            assert_eq!((schedule.items.len(), schedule.slots), (lists.len(), 0));
        }
    }

    /// Parts are no more than one block can bring together.
    #[test]
    fn a_list_has_not_too_many_parts() {
        let schedule = schedule(&[100_000], 1, &H200);
        assert!((2..=PARTS).contains(&schedule.items.len()), "{}", schedule.items.len());
    }

    /// Where parts would leave more than there is memory for, fewer are made, or none.
    #[test]
    fn parts_leave_no_more_than_memory_has() {
        let lists = [32; 512];
        let Schedule { slots, .. } =
            Schedule::new(Work { lists: &lists, rows: 32, bytes: MEMORY / 100, scattered: false }, &H200);
        assert!(slots <= 100, "{slots}");
    }
}
