//! The common access made fast: one word of a shared array a lane, with nothing wrong.
//!
//! What is found to be wrong here is not reported here: the access is declined, and goes the way of all others, which
//! finds it again.

use super::code::{Access, Pc, Place, SharedDim};
use super::frame::{FULL, LANES, Row, Word, lanes_of};
use super::lanes::{mask, versions};
use super::machine::{ALL, Machine, Warp};
use super::memory::SHARED_WORDS;
use super::shadow::{Cell, Clock, PAGE, Stamp};

versions! {
    /// Adds the terms of `dims` to the word index of each lane; lanes beyond an extent.
    fn add_dims(rows: &[Row], words: &mut [u32; LANES], dims: &[SharedDim]) -> u32;
    /// `to` ← the words of shared memory.
    fn gather_words(rows: &mut [Row], to: u32, memory: &[u32; SHARED_WORDS], words: &[u32; LANES]);
}

#[inline(always)]
fn add_dims(rows: &[Row], words: &mut [u32; LANES], dims: &[SharedDim]) -> u32 {
    match dims {
        // Rows and columns in one go: most arrays have these.
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

#[inline(always)]
fn gather_words(rows: &mut [Row], to: u32, memory: &[u32; SHARED_WORDS], words: &[u32; LANES]) {
    let to = u32::lanes_mut(rows, to as usize);
    for l in 0..LANES {
        to[l] = memory[usize::from(words[l] as u16)];
    }
}

impl Machine<'_, '_> {
    /// The word of shared memory of each lane; `None` if the access is of another kind, or a lane is beyond an extent.
    #[inline(always)]
    fn words(&self, warp: &Warp, lanes: u32, access: &Access) -> Option<[u32; LANES]> {
        let Place::Shared { offset, dims, swizzle: None, .. } = &access.place else { return None };
        let whole = access.within.unit == 4 && access.element.bytes() == 4;
        if !whole || access.values.len() != 1 || access.guard.is_some() {
            return None;
        }
        let mut words = [offset / 4; LANES];
        let beyond = self.simd.add_dims(&warp.rows, &mut words, dims);
        (beyond & lanes == 0).then_some(words)
    }

    /// Loads, if that is all right; whether it was.
    #[inline(always)]
    pub fn load_word<const TIER: u8>(&mut self, site: Pc, warp: &mut Warp, lanes: u32, access: &Access) -> bool {
        let Some(words) = self.words(warp, lanes, access) else { return false };
        if TIER >= ALL {
            let (clock, stamp) = (self.clock(warp), Stamp::new(self.epoch, site, warp.index * 32));
            let Some(cells) = self.shared_shadow.words() else { return false };
            if !loads_well(cells, clock, stamp, lanes, &words) {
                return false;
            }
        }
        self.simd.gather_words(&mut warp.rows, access.values[0].row, &self.shared, &words);
        true
    }

    /// Stores, if that is all right; whether it was.
    #[inline(always)]
    pub fn store_word<const TIER: u8>(&mut self, site: Pc, warp: &Warp, lanes: u32, access: &Access) -> bool {
        let Some(words) = self.words(warp, lanes, access) else { return false };
        if TIER >= ALL {
            // Ascending words are distinct: then no two lanes store to one element.
            let mut next = 0;
            if !lanes_of(lanes).all(|l| words[l] >= std::mem::replace(&mut next, words[l] + 1)) {
                return false;
            }
            let (clock, stamp) = (self.clock(warp), Stamp::new(self.epoch, site, warp.index * 32));
            let Some(cells) = self.shared_shadow.words() else { return false };
            let now = |l: usize| stamp.thread_plus(l as u32);
            if !lanes_of(lanes).all(|l| cells[words[l] as usize % PAGE].stores_well(clock, now(l))) {
                return false;
            }
            lanes_of(lanes).for_each(|l| _ = cells[words[l] as usize % PAGE].store(clock, now(l)));
        }
        let values = u32::lanes(&warp.rows, access.values[0].row as usize);
        lanes_of(lanes).for_each(|l| self.shared[usize::from(words[l] as u16)] = values[l]);
        true
    }
}

/// Notes the loads of `lanes`; whether none of them races or reads what nobody stored.
fn loads_well(cells: &mut [Cell; PAGE], clock: Clock, stamp: Stamp, lanes: u32, words: &[u32; LANES]) -> bool {
    let mut well = true;
    let (mut last, mut before) = (u32::MAX, u32::MAX);
    let mut note = |lane: usize| {
        // Of neighbours that load one word, two are all to the shadow: one of them is not the lane that stores it.
        if words[lane] != before {
            well &= cells[words[lane] as usize % PAGE].loads_well(clock, stamp.thread_plus(lane as u32));
        }
        before = if words[lane] == last { last } else { u32::MAX };
        last = words[lane];
    };
    if lanes == FULL {
        (0..LANES).for_each(&mut note);
    } else {
        lanes_of(lanes).for_each(&mut note);
    }
    well
}
