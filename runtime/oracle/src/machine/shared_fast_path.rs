//! A fast path for the common access to shared arrays: one word a lane, without errors.
//!
//! An access with errors is not reported here: the fast path declines it, and the general path
//! finds the errors again.

use crate::code::SHARED_WORDS;
use crate::code::frame::{FULL, LANES, LaneWord, Row, lanes_of};
use crate::code::lanes::{Simd, mask, versions};
use crate::code::{AccessLocation, AccessOp, Pc, SharedDim, Split};
use crate::machine::shadow::{Cell, Clock, PAGE, Stamp};
use crate::machine::{ALL, Machine, Warp};

versions! {
    /// Adds the terms of `dims` to the word index of each lane, and returns lanes out of bounds.
    fn add_dims(rows: &[Row], words: &mut [u32; LANES], dims: &[SharedDim]) -> u32;
    /// `to` ← the words of shared memory.
    fn gather_words(rows: &mut [Row], to: u32, memory: &[u32; SHARED_WORDS], words: SharedWords);
}

/// Lanes of half a warp: the usual row length of a tile is 16 or 32.
pub(super) const HALF: usize = LANES / 2;

/// The arrangement in shared memory of the words that a warp's lanes access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum WordArrangement {
    /// The lanes of each half have one word.
    Same,
    /// The lanes of each half have consecutive words.
    Row,
    /// Another arrangement.
    Other,
}

/// The words that a warp's fixed indices select, relative to the word that the uniform indices
/// select.
#[derive(Clone, Debug)]
pub struct Memo {
    /// Words, by lane.
    words: [u32; LANES],
    pattern: WordArrangement,
    /// Lanes beyond an extent.
    beyond: u32,
}

/// The words of shared memory that lanes access: `first` plus `relative`.
#[derive(Clone, Copy)]
pub(crate) struct SharedWords<'a> {
    relative: &'a [u32; LANES],
    pub(super) pattern: WordArrangement,
    first: u32,
}

impl SharedWords<'_> {
    /// Returns the word of lane `lane`.
    #[inline(always)]
    pub(super) fn of(self, lane: usize) -> u32 {
        self.relative[lane].wrapping_add(self.first)
    }
}

#[inline(always)]
fn add_dims(rows: &[Row], words: &mut [u32; LANES], dims: &[SharedDim]) -> u32 {
    match dims {
        // Rows and columns in one loop: the most common case.
        [row, column] if column.stride == 1 => {
            let (i, j) = (u32::lanes(rows, row.index as usize), u32::lanes(rows, column.index as usize));
            let mut beyond = false;
            for l in 0..LANES {
                words[l] = words[l].wrapping_add(i[l].wrapping_mul(row.stride)).wrapping_add(j[l]);
                beyond |= (i[l] >= row.extent) | (j[l] >= column.extent);
            }
            if beyond { mask(|l| i[l] >= row.extent || j[l] >= column.extent) } else { 0 }
        }
        dims => dims.iter().fold(0, |beyond, dim| beyond | add_dim(rows, words, *dim)),
    }
}

#[inline(always)]
fn add_dim(rows: &[Row], words: &mut [u32; LANES], dim: SharedDim) -> u32 {
    let index = u32::lanes(rows, dim.index as usize);
    let mut beyond = false;
    for l in 0..LANES {
        words[l] = words[l].wrapping_add(index[l].wrapping_mul(dim.stride));
        beyond |= index[l] >= dim.extent;
    }
    if beyond { mask(|l| index[l] >= dim.extent) } else { 0 }
}

fn pattern(words: &[u32; LANES]) -> WordArrangement {
    let halves = [&words[..HALF], &words[HALF..]];
    if halves.iter().all(|half| half.iter().all(|word| *word == half[0])) {
        WordArrangement::Same
    } else if halves.iter().all(|half| half.windows(2).all(|pair| pair[0].checked_add(1) == Some(pair[1]))) {
        WordArrangement::Row
    } else {
        WordArrangement::Other
    }
}

#[inline(always)]
fn gather_words(rows: &mut [Row], to: u32, memory: &[u32; SHARED_WORDS], words: SharedWords) {
    let to = u32::lanes_mut(rows, to as usize);
    let word = |l: usize| memory[usize::from(words.of(l) as u16)];
    let half = |l: usize| memory.get(words.of(l) as usize..)?.first_chunk::<HALF>();
    match words.pattern {
        WordArrangement::Same => {
            let (low, high) = (word(0), word(HALF));
            to[..HALF].fill(low);
            to[HALF..].fill(high);
            return;
        }
        WordArrangement::Row => {
            if let (Some(low), Some(high)) = (half(0), half(HALF)) {
                to[..HALF].copy_from_slice(low);
                to[HALF..].copy_from_slice(high);
                return;
            }
        }
        WordArrangement::Other => {}
    }
    (0..LANES).for_each(|l| to[l] = word(l));
}

impl Memo {
    #[cold]
    fn new(simd: Simd, rows: &[Row], first: u32, fixed: &[SharedDim]) -> Memo {
        let mut words = [first; LANES];
        let beyond = simd.add_dims(rows, &mut words, fixed);
        Memo { words, pattern: pattern(&words), beyond }
    }
}

/// Returns the words that the lanes access by fixed and uniform indices, or `None` if a lane is out
/// of bounds.
#[inline(always)]
pub(super) fn split_words<'a>(
    simd: Simd,
    rows: &[Row],
    memos: &'a mut [Option<Box<Memo>>],
    lanes: u32,
    split: &Split,
) -> Option<SharedWords<'a>> {
    let memo = &mut memos[split.memo as usize];
    if memo.is_none() {
        *memo = Some(Box::new(Memo::new(simd, rows, split.first, &split.fixed)));
    }
    let memo = memo.as_ref()?;
    let lane = lanes.trailing_zeros() as usize % LANES;
    let mut first = 0u32;
    for dim in &split.uniform {
        let index = u32::lanes(rows, dim.index as usize)[lane];
        if index >= dim.extent {
            return None;
        }
        first = first.wrapping_add(index.wrapping_mul(dim.stride));
    }
    (memo.beyond & lanes == 0).then_some(SharedWords { relative: &memo.words, pattern: memo.pattern, first })
}

/// Returns the words that the lanes access. Returns `None` if a lane is out of bounds, or if the
/// fast path does not support the form of the access. If the indices are not classified, the words
/// are computed in `to`.
#[inline(always)]
fn locate<'a>(
    simd: Simd,
    rows: &[Row],
    memos: &'a mut [Option<Box<Memo>>],
    to: &'a mut [u32; LANES],
    lanes: u32,
    access: &AccessOp,
) -> Option<SharedWords<'a>> {
    let AccessLocation::Shared { offset, dims, swizzle: None, .. } = &access.place else { return None };
    if let Some(split) = &access.split {
        return split_words(simd, rows, memos, lanes, split);
    }
    if !access.is_word() {
        return None;
    }
    *to = [offset / 4; LANES];
    let beyond = simd.add_dims(rows, to, dims);
    (beyond & lanes == 0).then_some(SharedWords { relative: to, pattern: WordArrangement::Other, first: 0 })
}

impl Machine<'_, '_> {
    /// Loads if the access has no errors, and returns whether it did.
    #[inline(always)]
    pub fn load_word<const TIER: u8>(&mut self, site: Pc, warp: &mut Warp, lanes: u32, access: &AccessOp) -> bool {
        let (clock, stamp) = (self.clock(warp), Stamp::new(self.epoch, site, warp.index * 32));
        let (Warp { rows, memos, .. }, mut to) = (warp, [0; LANES]);
        let Some(words) = locate(self.simd, rows, memos, &mut to, lanes, access) else { return false };
        if TIER >= ALL {
            let Some(cells) = self.shared_shadow.words() else { return false };
            if !load_is_clean(cells, &clock, stamp, lanes, words) {
                return false;
            }
        }
        self.simd.gather_words(rows, access.values[0].row, &self.shared, words);
        true
    }

    /// Stores if the access has no errors, and returns whether it did.
    #[inline(always)]
    pub fn store_word<const TIER: u8>(&mut self, site: Pc, warp: &mut Warp, lanes: u32, access: &AccessOp) -> bool {
        let (clock, stamp) = (self.clock(warp), Stamp::new(self.epoch, site, warp.index * 32));
        let (Warp { rows, memos, .. }, mut to) = (warp, [0; LANES]);
        let Some(words) = locate(self.simd, rows, memos, &mut to, lanes, access) else { return false };
        if TIER >= ALL {
            let Some(cells) = self.shared_shadow.words() else { return false };
            if !store_is_clean(cells, clock, stamp, lanes, words) {
                return false;
            }
        }
        let values = u32::lanes(rows, access.values[0].row as usize);
        let (low, high) = (words.of(0) as usize, words.of(HALF) as usize);
        let mut store = |l: usize| self.shared[usize::from(words.of(l) as u16)] = values[l];
        if lanes != FULL {
            lanes_of(lanes).for_each(&mut store);
        } else if words.pattern == WordArrangement::Row && low.max(high) <= SHARED_WORDS - HALF {
            self.shared[low..low + HALF].copy_from_slice(&values[..HALF]);
            self.shared[high..high + HALF].copy_from_slice(&values[HALF..]);
        } else {
            (0..LANES).for_each(&mut store);
        }
        true
    }
}

/// Records the stores of `lanes` if none races and no two go to one element. Returns whether they
/// were recorded.
#[inline(always)]
fn store_is_clean(cells: &mut [Cell; PAGE], clock: Clock, stamp: Stamp, lanes: u32, words: SharedWords) -> bool {
    // Ascending words are distinct.
    let mut next = 0;
    if !lanes_of(lanes).all(|l| words.of(l) >= std::mem::replace(&mut next, words.of(l) + 1)) {
        return false;
    }
    let now = |l: usize| stamp.thread_plus(l as u32);
    let well = lanes_of(lanes).all(|l| cells[words.of(l) as usize % PAGE].store_is_clean(clock, now(l)));
    if well {
        lanes_of(lanes).for_each(|l| cells[words.of(l) as usize % PAGE].stored(now(l)));
    }
    well
}

/// Records the loads of `lanes` and returns whether they are free of races and initialized.
#[inline(always)]
pub(super) fn load_is_clean(
    cells: &mut [Cell; PAGE],
    clock: &Clock,
    stamp: Stamp,
    lanes: u32,
    words: SharedWords,
) -> bool {
    let twice = words.relative[0] == words.relative[HALF];
    let first = words.of(0) as usize % PAGE;
    let by = |lane: usize| stamp.thread_plus(lane as u32);
    match words.pattern {
        WordArrangement::Same if lanes == FULL => {
            let low = cells[first].load_is_clean(clock, by(0), by(HALF - 1));
            low & (twice || cells[words.of(HALF) as usize % PAGE].load_is_clean(clock, by(HALF), by(LANES - 1)))
        }
        WordArrangement::Row if lanes == FULL && twice && first + HALF <= PAGE => {
            let mut well = true;
            for (lane, cell) in cells[first..first + HALF].iter_mut().enumerate() {
                well &= cell.load_is_clean(clock, by(lane), by(HALF + lane));
            }
            well
        }
        _ => {
            let mut well = true;
            for lane in lanes_of(lanes) {
                well &= cells[words.of(lane) as usize % PAGE].load_is_clean(clock, by(lane), by(lane));
            }
            well
        }
    }
}
