//! Shadow memory: the last accesses to each element, from which races and uninitialized reads are
//! found.
//!
//! A [`Cell`] keeps constant state per element: the last store and two loads. This state suffices
//! to find every element with a race, if not every pair of accesses. The second load is kept so
//! that it is unordered with the first. A later store that is unordered with any load is then
//! unordered with one of the two. Fences may order a store after both of them and not after a third
//! load. A kernel with fences therefore keeps the remaining loads beside the cells
//! ([`overflow_reads`](crate::machine::overflow_reads)). FastTrack (Flanagan and Freund, 2009) also
//! keeps an epoch instead of a vector clock where one suffices.
//!
//! Time is counted in *epochs*. A new epoch begins with each block, each `block::sync()`, and each
//! `warp::sync()` of a warp. Two accesses of one block are ordered if a `block::sync()` lies
//! between them or one thread makes both. Two accesses of one warp are also ordered by a
//! `warp::sync()`. Accesses of different blocks are unordered. Fences add the order that
//! [`order`](crate::machine::order) defines. Shared memory begins anew with each block: accesses of
//! earlier blocks do not count there.
//!
//! Cells are allocated in pages of [`PAGE`] elements on first touch, so shadow memory is bounded by
//! what the kernel touches. An element is the smallest that the kernel accesses in a buffer. Each
//! element of shared memory or of a writable buffer takes:
//!
//! - 24 bytes (six times an `f32`);
//! - 24 more in a kernel with atomic operations;
//! - 24 more in a kernel with fences, for each warp beyond the second that loads the element.
//!
//! Read-only buffers have no shadow memory. [`Options::shadow`](crate::Options::shadow) sets a
//! launch's [`PageBudget`] of pages; a launch that needs more ends.

use crate::machine::order::AcquiredAccesses;
use crate::machine::overflow_reads::OverflowReads;
use runtime_simt::ByteRanges;
use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, Ordering};

/// An access: its epoch, its site, and its thread in the block, packed; 0 is none.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Stamp(u64);

impl Stamp {
    /// `site` has at most 22 bits, `thread` 10.
    #[inline(always)]
    pub fn new(epoch: u32, site: u32, thread: u32) -> Stamp {
        Stamp(u64::from(epoch) << 32 | u64::from(site) << 10 | u64::from(thread))
    }

    /// Returns the stamp of the same access by the thread whose index is larger by `lanes`.
    #[inline(always)]
    pub fn thread_plus(self, lanes: u32) -> Stamp {
        Stamp(self.0 + u64::from(lanes))
    }

    /// Returns the epoch of the access.
    #[inline(always)]
    pub fn epoch(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// Returns the instruction that made the access.
    pub fn site(self) -> u32 {
        self.0 as u32 >> 10
    }

    /// Returns the thread, by linear index in the block.
    pub fn thread(self) -> u32 {
        self.0 as u32 & 0x3ff
    }

    /// Returns the warp of the thread.
    #[inline(always)]
    pub fn warp(self) -> u32 {
        self.thread() >> 5
    }
}

/// The lifetime of an array in shared memory. The default belongs to an array that shares its bytes
/// with no other.
///
/// Each warp numbers lifetimes for itself, by the instruction that begins them and the number of
/// its executions. A warp that is ahead in a loop therefore does not end a lifetime that other
/// warps still use.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Life(u32);

impl Life {
    /// The lifetime of bytes that no access may touch: poisoned, or the target of a copy in flight.
    pub const UNDEF: Life = Life(u32::MAX);

    /// Returns the lifetime begun by execution `time` of instruction `number`, where only
    /// instructions that begin lifetimes are numbered.
    pub fn new(number: u32, time: u32) -> Life {
        Life((number + 1) << 20 | time & 0xf_ffff)
    }
}

/// The epochs and acquired accesses that order earlier accesses before the current one.
#[derive(Clone, Copy, Debug)]
pub struct Clock<'a> {
    /// The epoch in which the running block began.
    pub block: u32,
    /// The epoch of the block's last barrier.
    pub barrier_epoch: u32,
    /// The epoch of the last barrier of the warp or of its block.
    pub warp: u32,
    /// The epoch of the grid's last barrier; 0 if there was none.
    pub grid: u32,
    /// Whether accesses of earlier blocks count.
    pub counts_earlier_blocks: bool,
    /// The accesses of other threads that the warp's lanes have acquired.
    pub known: &'a [AcquiredAccesses],
    /// The time slices of blocks that run interleaved; none if each block runs to its end.
    pub slices: &'a [TimeSlice],
}

/// A time slice: the epochs from `from` to the next slice belong to one block.
#[derive(Clone, Copy, Debug)]
pub struct TimeSlice {
    /// The first epoch.
    pub from: u32,
    /// The epoch in which the block began; no other block began in this epoch.
    pub began: u32,
    /// The index of the block in x, y, z.
    pub block: [u32; 3],
}

impl TimeSlice {
    /// Returns the slice that contains `epoch`.
    pub fn at(slices: &[TimeSlice], epoch: u32) -> Option<&TimeSlice> {
        let next = slices.partition_point(|slice| slice.from <= epoch);
        next.checked_sub(1).and_then(|i| slices.get(i))
    }
}

impl Clock<'_> {
    /// Returns whether `earlier` is unordered with `now`, an access of the current epoch.
    #[inline(always)]
    pub fn unordered(self, earlier: Stamp, now: Stamp) -> bool {
        // A separate check reports conflicts among lanes of one instruction. The next execution by
        // the same warp has a later epoch.
        let at_once = earlier.warp() == now.warp() && (earlier.epoch(), earlier.site()) == (now.epoch(), now.site());
        self.unordered_or_simultaneous(earlier, now) && !at_once
    }

    /// Returns whether `earlier` is unordered with `now`; accesses of two lanes in one instruction
    /// count as unordered too.
    #[inline(always)]
    pub fn unordered_or_simultaneous(self, earlier: Stamp, now: Stamp) -> bool {
        let epoch = earlier.epoch();
        let is_unordered = if self.is_of_another_block(epoch) {
            earlier != Stamp::default() && epoch >= self.grid
        } else if epoch < self.barrier_epoch {
            self.counts_earlier_blocks && epoch < self.block && earlier != Stamp::default()
        } else if earlier.warp() != now.warp() {
            true
        } else {
            earlier.thread() != now.thread() && epoch >= self.warp
        };
        is_unordered && (self.known.is_empty() || !self.is_ordered_by_fence(earlier, now))
    }

    /// Returns whether `epoch` belongs to another block. Without interleaved blocks, the answer is
    /// no for all epochs since the block began.
    #[inline(always)]
    fn is_of_another_block(self, epoch: u32) -> bool {
        #[cold]
        fn search(slices: &[TimeSlice], epoch: u32, block: u32) -> bool {
            TimeSlice::at(slices, epoch).is_some_and(|slice| slice.began != block)
        }
        !self.slices.is_empty() && search(self.slices, epoch, self.block)
    }

    /// Returns whether `epoch` belongs to the running block.
    #[inline(always)]
    fn is_own(self, epoch: u32) -> bool {
        epoch >= self.block && !self.is_of_another_block(epoch)
    }

    /// Returns whether both accesses belong to one warp of the running block.
    #[inline(always)]
    pub fn within_warp(self, earlier: Stamp, now: Stamp) -> bool {
        self.is_own(earlier.epoch()) && earlier.warp() == now.warp()
    }

    /// Returns whether two races with `now` are both within a warp or both between warps. A finding
    /// lists races of one kind only, because a fix for them also fixes the races of the other kind.
    pub fn same_scope(self, one: ConflictingAccess, other: ConflictingAccess, now: Stamp) -> bool {
        self.within_warp(one.stamp, now) == self.within_warp(other.stamp, now)
    }

    /// Returns whether fences order `earlier` before `now`.
    #[cold]
    fn is_ordered_by_fence(self, earlier: Stamp, now: Stamp) -> bool {
        self.known.iter().any(|known| known.holds(earlier, now.thread(), self.slices))
    }
}

/// The other side of a race.
#[derive(Clone, Copy, Debug)]
pub struct ConflictingAccess {
    /// The earlier access.
    pub stamp: Stamp,
    /// The kind of the earlier access.
    pub by: By,
    /// Whether no store to the element followed the earlier access.
    pub latest: bool,
}

/// The kind of an access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum By {
    /// A load.
    Load,
    /// A store.
    Store,
    /// An atomic operation. Two atomic operations do not race with each other.
    Atomic,
}

/// The last accesses to one element.
#[derive(Clone, Copy, Default, Debug)]
pub struct Cell {
    store: Stamp,
    loads: [Stamp; 2],
}

impl Cell {
    /// Returns whether the element was stored since the block began.
    #[inline(always)]
    pub fn initialized(&self, clock: Clock<'_>) -> bool {
        self.store.epoch() >= clock.block
    }

    /// Records a load and returns the store that it races with.
    #[inline(always)]
    pub fn load(&mut self, clock: Clock<'_>, now: Stamp) -> Option<ConflictingAccess> {
        self.note_load(clock, now);
        self.load_would(clock, now)
    }

    /// Records a load and returns whether it is free of races and its element is initialized.
    /// `also` is the load of another lane in the same instruction, or equal to `now`.
    #[inline(always)]
    pub fn load_is_clean(&mut self, clock: &Clock<'_>, now: Stamp, also: Stamp) -> bool {
        let (stored, first) = (self.store.epoch(), self.loads[0]);
        // After a barrier, each warp usually loads an element once.
        if clock.block <= stored && stored < clock.barrier_epoch && clock.known.is_empty() {
            if first.epoch() < clock.barrier_epoch {
                self.loads = [now, also];
                return true;
            }
            if first.warp() != now.warp() {
                self.loads[1] = now;
                return true;
            }
        }
        self.may_load(clock, now) & (also == now || self.may_load(clock, also))
    }

    #[inline(never)]
    fn may_load(&mut self, clock: &Clock<'_>, now: Stamp) -> bool {
        self.note_load(*clock, now);
        self.initialized(*clock) & !clock.unordered(self.store, now)
    }

    /// Records a load. Loads of two lanes in one instruction take both entries. The next storing
    /// thread is at most one of these lanes, so its store races with the other lane's load.
    #[inline(always)]
    fn note_load(&mut self, clock: Clock<'_>, now: Stamp) {
        self.loads[usize::from(clock.unordered_or_simultaneous(self.loads[0], now))] = now;
    }

    /// Records a load where fences order accesses. Returns whether the cell has no room for a load
    /// that may race with a later store.
    fn note_load_among_fences(&mut self, clock: Clock<'_>, now: Stamp) -> bool {
        let own = |load: Stamp| clock.is_own(load.epoch()) && load.warp() == now.warp();
        let [first, second] = self.loads;
        if !clock.unordered_or_simultaneous(first, now) {
            self.loads[0] = now;
        } else if !clock.unordered_or_simultaneous(second, now) || own(first) && own(second) {
            self.loads[1] = now;
        } else {
            return true;
        }
        false
    }

    /// Returns the store that a load at `now` would race with.
    #[inline(always)]
    pub fn load_would(&self, clock: Clock<'_>, now: Stamp) -> Option<ConflictingAccess> {
        clock.unordered(self.store, now).then_some(ConflictingAccess { stamp: self.store, by: By::Store, latest: true })
    }

    /// Returns whether a store at `now` would be free of races.
    #[inline(always)]
    pub fn store_is_clean(&self, clock: Clock<'_>, now: Stamp) -> bool {
        let [a, b] = self.loads;
        !(clock.unordered(self.store, now) | clock.unordered(a, now) | clock.unordered(b, now))
    }

    /// Records a store.
    #[inline(always)]
    pub fn stored(&mut self, now: Stamp) {
        self.store = now;
    }

    /// Records a store and returns the access that it races with.
    #[inline(always)]
    pub fn store(&mut self, clock: Clock<'_>, now: Stamp) -> Option<ConflictingAccess> {
        let conflict = self.store_would(clock, now);
        self.store = now;
        conflict
    }

    /// Returns whether one of the cells records a store and the other any access.
    fn conflicts(&self, other: &Cell) -> bool {
        let none = Stamp::default();
        let touched = |cell: &Cell| cell.store != none || cell.loads[0] != none;
        (self.store != none && touched(other)) || (other.store != none && touched(self))
    }

    /// Returns the access that a store at `now` would race with.
    pub fn store_would(&self, clock: Clock<'_>, now: Stamp) -> Option<ConflictingAccess> {
        if clock.unordered(self.store, now) {
            return Some(ConflictingAccess { stamp: self.store, by: By::Store, latest: true });
        }
        let load = self.loads.into_iter().find(|l| clock.unordered(*l, now))?;
        Some(ConflictingAccess { stamp: load, by: By::Load, latest: self.store.epoch() < load.epoch() })
    }

    /// Returns the loads other than `found` that a store at `now` races with.
    #[cold]
    pub fn further_loads(
        &self,
        clock: Clock<'_>,
        now: Stamp,
        found: ConflictingAccess,
    ) -> impl Iterator<Item = ConflictingAccess> {
        let further = self.loads.into_iter().filter(move |load| *load != found.stamp && clock.unordered(*load, now));
        further.map(|stamp| ConflictingAccess { stamp, by: By::Load, latest: false })
    }
}

/// Cells in a page: enough for 64 KiB of shared `f32`s, so a warp's loads of shared memory look up
/// one page.
pub const PAGE: usize = 1 << 14;

/// The size of a page in bytes.
const PAGE_BYTES: usize = PAGE * size_of::<Cell>();

/// The number of pages that a launch may still allocate, on all of its threads.
#[derive(Clone, Debug)]
pub struct PageBudget {
    left: Arc<AtomicIsize>,
    whole: isize,
}

impl PageBudget {
    /// Returns a budget of `bytes` bytes.
    pub fn new(bytes: usize) -> PageBudget {
        let whole = (bytes / PAGE_BYTES) as isize;
        PageBudget { left: Arc::new(whole.into()), whole }
    }

    /// Takes a page and returns whether one was left.
    pub fn take(&self) -> bool {
        self.left.fetch_sub(1, Ordering::Relaxed) > 0
    }

    /// Returns whether more pages were requested than the budget has.
    pub fn is_spent(&self) -> bool {
        self.left.load(Ordering::Relaxed) < 0
    }

    /// Restores the whole budget.
    pub fn renew(&self) {
        self.left.store(self.whole, Ordering::Relaxed);
    }
}

/// The cells of one buffer, or of a block's shared memory.
#[derive(Debug)]
pub struct Shadow {
    /// log₂ of the bytes per cell.
    granule: u32,
    /// The pages. The last page serves all page numbers beyond the budget.
    pages: Vec<Option<Box<[Cell; PAGE]>>>,
    budget: PageBudget,
    /// Atomic operations, recorded as loads in separate cells: like two loads, two of them do not
    /// race. `None` until the first one, so kernels without them pay nothing.
    atomics: Option<Box<Shadow>>,
    /// The lifetime of each cell's last store. `None` if no bytes have several lifetimes.
    lives: Option<Box<[Life]>>,
    /// Loads that cells have no room for. `None` if no fences order accesses.
    further: Option<Box<OverflowReads>>,
}

impl Shadow {
    /// Returns untouched shadow memory for `bytes` bytes, with one cell for each `granule` bytes (a
    /// power of two).
    pub fn new(bytes: usize, granule: u32, budget: PageBudget) -> Shadow {
        let granule = granule.max(1).ilog2();
        let pages = vec![None; (bytes >> granule).div_ceil(PAGE) + 2];
        Shadow { granule, pages, budget, atomics: None, lives: None, further: None }
    }

    /// Records all loads from now on, because fences order accesses.
    pub fn set_among_fences(&mut self) {
        self.further = Some(OverflowReads::new(self.budget.clone()).into());
    }

    /// Returns untouched shadow memory for memory whose bytes have several lifetimes.
    pub fn with_lives(bytes: usize, granule: u32, budget: PageBudget) -> Shadow {
        let shadow = Shadow::new(bytes, granule, budget);
        let cells = (bytes >> shadow.granule) + 1;
        Shadow { lives: Some(vec![Life::default(); cells].into()), ..shadow }
    }

    /// Returns whether an access recorded here races with an access of another block recorded in
    /// `other`.
    pub fn conflicts(&self, other: &Shadow) -> bool {
        let pages = self.pages.iter().zip(&other.pages).filter_map(|(a, b)| a.as_deref().zip(b.as_deref()));
        pages.into_iter().any(|(a, b)| a.iter().zip(b).any(|(a, b)| a.conflicts(b)))
    }

    /// Returns whether memory is sure to hold the value of the last recorded store, for elements of
    /// `size` bytes. There is no such guarantee with atomic operations, with stores that are
    /// recorded before they are made, or with cells of another size.
    pub fn holds_recorded_values(&self, size: u32) -> bool {
        self.atomics.is_none() && self.lives.is_none() && 1 << self.granule == size
    }

    /// Returns untouched shadow memory of the same size.
    pub fn empty_like(&self) -> Shadow {
        let (pages, budget) = (vec![None; self.pages.len()], self.budget.clone());
        let further = self.further.is_some().then(|| OverflowReads::new(self.budget.clone()).into());
        Shadow { granule: self.granule, pages, budget, atomics: None, lives: None, further }
    }

    /// Returns untouched shadow memory for the shared memory of another block.
    pub fn of_another_block(&self) -> Shadow {
        let lives = self.lives.as_ref().map(|lives| vec![Life::default(); lives.len()].into());
        Shadow { lives, ..self.empty_like() }
    }

    /// Returns the size of the allocated pages in bytes.
    pub fn bytes(&self) -> usize {
        let further = self.further.as_ref().map_or(0, |further| further.pages());
        let own = (self.pages.iter().flatten().count() + further) * PAGE_BYTES;
        own + self.atomics.as_ref().map_or(0, |atomics| atomics.bytes())
    }

    /// Returns whether bytes have several lifetimes.
    pub fn has_lives(&self) -> bool {
        self.lives.is_some()
    }

    /// Records that `size` bytes at `offset` are stored in lifetime `life`.
    pub fn live(&mut self, offset: u64, size: u32, life: Life) {
        if let Some(lives) = &mut self.lives {
            let (first, last) = (offset >> self.granule, (offset + u64::from(size) - 1) >> self.granule);
            lives[first as usize..=last as usize].fill(life);
        }
    }

    /// Returns whether `size` bytes at `offset` were last stored in lifetime `life`. Returns true
    /// if memory has no lifetimes.
    pub fn lives(&self, offset: u64, size: u32, life: Life) -> bool {
        let Some(lives) = &self.lives else { return true };
        let (first, last) = (offset >> self.granule, (offset + u64::from(size) - 1) >> self.granule);
        lives[first as usize..=last as usize].iter().all(|l| *l == life)
    }

    /// Returns the instruction of this block whose copy to these bytes is in flight.
    pub fn copy_in_flight(&self, offset: u64, size: u32, clock: Clock<'_>) -> Option<Stamp> {
        let lives = self.lives.as_ref()?;
        let (first, last) = (offset >> self.granule, (offset + u64::from(size) - 1) >> self.granule);
        let cell = (first..=last).find(|cell| lives[*cell as usize] == Life::UNDEF)?;
        self.last_store(cell << self.granule).filter(|stamp| stamp.epoch() >= clock.block)
    }

    /// Returns the copies of this block that are in flight and their target offsets, one for each
    /// cell.
    pub fn copies_in_flight(&self, clock: Clock<'_>) -> Vec<(Stamp, u64)> {
        let lives = self.lives.iter().flatten().enumerate();
        let of = |(cell, _): (usize, _)| {
            Some((self.last_store((cell << self.granule) as u64)?, (cell << self.granule) as u64))
        };
        let begun = lives.filter(|(_, life)| **life == Life::UNDEF).filter_map(of);
        begun.filter(|(stamp, _)| stamp.epoch() >= clock.block).collect()
    }

    /// Records an atomic operation on `size` bytes at `offset`.
    pub fn note_atomic(&mut self, offset: u64, size: u32, clock: Clock<'_>, now: Stamp, stores: bool) {
        if self.atomics.is_none() {
            self.atomics = Some(Box::new(self.empty_like()));
        }
        let Some(atomics) = &mut self.atomics else { return };
        if atomics.further.is_some() {
            atomics.note_load_among_fences(offset, size, clock, now);
        } else {
            atomics.cells(offset, size).for_each(|cell| _ = cell.load(clock, now));
        }
        if stores {
            atomics.cells(offset, size).for_each(|cell| cell.store = now);
        }
    }

    /// Returns whether atomic stores have written `size` bytes at `offset` since the block began.
    #[cold]
    pub fn stored_atomically(&mut self, offset: u64, size: u32, clock: Clock<'_>) -> bool {
        self.atomics.as_mut().is_some_and(|atomics| atomics.cells(offset, size).all(|cell| cell.initialized(clock)))
    }

    /// Returns whether fences order accesses.
    pub fn is_among_fences(&self) -> bool {
        self.further.is_some()
    }

    /// Records a load of `size` bytes at `offset`, where fences order accesses.
    pub fn note_load_among_fences(&mut self, offset: u64, size: u32, clock: Clock<'_>, now: Stamp) {
        let first = (offset >> self.granule) as usize;
        let mut further = self.further.take();
        for (i, cell) in self.cells(offset, size).enumerate() {
            if cell.note_load_among_fences(clock, now)
                && let Some(further) = &mut further
            {
                further.keep(first + i, clock, now);
            }
        }
        self.further = further;
    }

    /// Returns the loads of `size` bytes at `offset` that are kept outside the cells and race with
    /// a store at `now`.
    pub fn further_loads(
        &self,
        offset: u64,
        size: u32,
        clock: Clock<'_>,
        now: Stamp,
    ) -> impl Iterator<Item = ConflictingAccess> {
        let cells = (offset >> self.granule) as usize..=((offset + u64::from(size) - 1) >> self.granule) as usize;
        let races = self.further.iter().flat_map(move |further| cells.clone().map(move |cell| (further, cell)));
        let races = races.flat_map(move |(further, cell)| further.races(cell, clock, now));
        races.map(|stamp| ConflictingAccess { stamp, by: By::Load, latest: false })
    }

    /// Returns the atomic operation that another access to these bytes races with.
    pub fn atomic(&mut self, offset: u64, size: u32, clock: Clock<'_>, now: Stamp) -> Option<ConflictingAccess> {
        let atomics = self.atomics.as_mut()?;
        let kept = atomics.cells(offset, size).find_map(|cell| cell.store_would(clock, now));
        let conflict = kept.or_else(|| atomics.further_loads(offset, size, clock, now).next())?;
        Some(ConflictingAccess { by: By::Atomic, latest: false, ..conflict })
    }

    /// Returns whether all bytes of `uninit` among the `size` bytes at `offset` have been stored.
    pub fn stored_of(&self, offset: u64, size: u32, uninit: &ByteRanges) -> bool {
        let (first, last) = (offset >> self.granule, (offset + u64::from(size) - 1) >> self.granule);
        let of = |cell: u64| cell << self.granule..(cell + 1) << self.granule;
        let stored = |at: u64| {
            let atomically = || self.atomics.as_ref().is_some_and(|atomics| atomics.last_store(at).is_some());
            self.last_store(at).is_some() || atomically()
        };
        (first..=last).all(|cell| !uninit.intersects(of(cell)) || stored(cell << self.granule))
    }

    /// Returns the bytes of `uninit` that were neither stored nor changed atomically.
    pub fn unwritten_of(&self, uninit: &ByteRanges) -> ByteRanges {
        uninit.kept(1 << self.granule, |at| !self.written(at, 1))
    }

    /// Returns a store to these bytes by another thread that is ordered before `now`.
    pub fn stored_by_another(&mut self, offset: u64, size: u32, clock: Clock<'_>, now: Stamp) -> Option<Stamp> {
        let another = |s: &Stamp| !clock.is_own(s.epoch()) || s.thread() != now.thread();
        let stores = self.cells(offset, size).map(|cell| cell.store).filter(|s| *s != Stamp::default());
        stores.filter(another).find(|store| !clock.unordered(*store, now))
    }

    /// Returns the last store to the byte at `offset`.
    pub fn last_store(&self, offset: u64) -> Option<Stamp> {
        let cell = (offset >> self.granule) as usize;
        let store = self.pages.get(cell / PAGE)?.as_ref()?[cell % PAGE].store;
        (store != Stamp::default()).then_some(store)
    }

    /// Returns whether all of `size` bytes at `offset` were stored or changed atomically.
    pub fn written(&self, offset: u64, size: u32) -> bool {
        let (first, last) = (offset >> self.granule, (offset + u64::from(size.max(1)) - 1) >> self.granule);
        (first..=last).all(|cell| {
            let changed = |atomics: &Shadow| atomics.touched(cell as usize);
            self.last_store(cell << self.granule).is_some() || self.atomics.as_deref().is_some_and(changed)
        })
    }

    fn touched(&self, cell: usize) -> bool {
        let page = self.pages.get(cell / PAGE).and_then(Option::as_ref);
        page.is_some_and(|page| page[cell % PAGE].loads[0] != Stamp::default())
    }

    /// Returns the cells of `size` bytes at `offset`.
    #[inline(always)]
    pub fn cells(&mut self, offset: u64, size: u32) -> impl Iterator<Item = &mut Cell> {
        let first = (offset >> self.granule) as usize;
        let last = ((offset + u64::from(size) - 1) >> self.granule) as usize;
        // An access does not cross pages: it has few cells, usually one.
        let page = first / PAGE;
        let cells = self.page(page);
        let end = (last - page * PAGE + 1).min(PAGE);
        cells[first % PAGE..end].iter_mut()
    }

    /// Returns the first page if it covers the whole memory with cells of 4 bytes and no other
    /// state needs an update.
    pub fn words(&mut self) -> Option<&mut [Cell; PAGE]> {
        let plain = self.atomics.is_none() && self.lives.is_none() && self.further.is_none();
        (self.granule == 2 && self.pages.len() <= 3 && plain).then(|| self.page(0))
    }

    #[inline(always)]
    fn page(&mut self, page: usize) -> &mut [Cell; PAGE] {
        let page = if self.pages[page].is_some() { page } else { self.make(page) };
        self.pages[page].get_or_insert_with(new_page)
    }

    /// Returns the index of the page to allocate when `page` is touched.
    #[cold]
    fn make(&self, page: usize) -> usize {
        if self.budget.take() { page } else { self.pages.len() - 1 }
    }

    /// Forgets all accesses.
    pub fn clear(&mut self) {
        self.pages.fill_with(|| None);
        self.atomics = None;
        self.further.iter_mut().for_each(|further| further.clear());
    }
}

#[cold]
fn new_page() -> Box<[Cell; PAGE]> {
    // Built in a vector: a page is too large for the stack.
    vec![Cell::default(); PAGE].try_into().unwrap_or_else(|_| unreachable!("the vector has {PAGE} elements"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::order::{AccessOrder, FenceEpochs};
    use kernel_dsl_compiler::ir::FenceScope;

    const SHARED: bool = false;
    const GLOBAL: bool = true;

    /// Returns the clock after a barrier in epoch `barrier_epoch`.
    fn clock(barrier_epoch: u32, block: u32, counts_earlier_blocks: bool) -> Clock<'static> {
        Clock { block, barrier_epoch, warp: barrier_epoch, grid: 0, counts_earlier_blocks, known: &[], slices: &[] }
    }

    #[test]
    fn a_barrier_orders_warps_of_a_block() {
        let mut cell = Cell::default();
        assert!(cell.store(clock(5, 5, SHARED), Stamp::new(5, 1, 0)).is_none());
        assert!(cell.load(clock(5, 5, SHARED), Stamp::new(5, 2, 0)).is_none(), "own");
        assert!(cell.load(clock(5, 5, SHARED), Stamp::new(5, 2, 32)).is_some(), "another warp, same epoch");
        assert!(cell.load(clock(6, 5, SHARED), Stamp::new(6, 2, 32)).is_none(), "another warp, after a barrier");
    }

    #[test]
    fn two_loads_suffice_to_detect_a_race() {
        for (first, second, third) in [(0, 32, 0), (0, 32, 32), (0, 32, 64), (32, 0, 0)] {
            let (mut cell, now) = (Cell::default(), clock(1, 1, SHARED));
            cell.load(now, Stamp::new(1, 1, first));
            cell.load(now, Stamp::new(1, 1, second));
            let conflict = cell.store(now, Stamp::new(1, 2, third)).expect("another warp made one of the loads");
            assert_ne!(conflict.stamp.thread() / 32, third / 32);
        }
    }

    #[test]
    fn a_warps_own_barrier_orders_its_lanes() {
        let mut cell = Cell::default();
        let met = |warp| Clock { warp, ..clock(5, 5, SHARED) };
        cell.store(met(5), Stamp::new(5, 1, 0));
        assert!(cell.load(met(5), Stamp::new(5, 2, 31)).is_some(), "another lane");
        assert!(cell.load(met(6), Stamp::new(6, 3, 31)).is_none(), "after a barrier of the warp");
        assert!(cell.store(met(6), Stamp::new(6, 4, 7)).is_some(), "another lane has loaded since");
        assert!(cell.store(met(8), Stamp::new(8, 4, 8)).is_none(), "the warp has met");
        assert!(cell.store(met(8), Stamp::new(8, 4, 9)).is_none(), "of the same instruction");
        assert!(cell.load(met(8), Stamp::new(9, 2, 32)).is_some(), "another warp, whatever that one met");
    }

    #[test]
    fn a_store_races_with_loads_of_other_lanes() {
        for (storing, after_barrier) in [(0, false), (1, false), (17, false), (31, false), (0, true), (31, true)] {
            let (mut cell, now) = (Cell::default(), clock(5, 4, SHARED));
            if after_barrier {
                cell.store(clock(4, 4, SHARED), Stamp::new(4, 1, 3));
                assert!(cell.load_is_clean(&now, Stamp::new(5, 1, 0), Stamp::new(5, 1, 31)));
            } else {
                assert!((0..32).all(|lane| cell.load(now, Stamp::new(5, 1, lane)).is_none()));
            }
            let conflict = cell.store(now, Stamp::new(5, 2, storing)).expect("another lane has loaded");
            assert_ne!(conflict.stamp.thread(), storing);
        }
        let (mut cell, now) = (Cell::default(), clock(5, 5, SHARED));
        cell.store(now, Stamp::new(5, 1, 3));
        assert!(
            !cell.load_is_clean(&now, Stamp::new(5, 2, 3), Stamp::new(5, 2, 31)),
            "the lane that stored is one of two"
        );
    }

    /// Returns the races of a store by the fourth warp with loads of three warps, of which the
    /// warps in `signed` release their accesses.
    fn after_loads_of_three_warps(signed: &[u32]) -> Vec<u32> {
        let mut order = AccessOrder::default();
        order.begin(4, 1);
        let mut shadow = Shadow::new(4, 4, PageBudget::new(1 << 20));
        shadow.set_among_fences();
        for warp in 0..3 {
            // All lanes at once.
            for lane in 0..32 {
                shadow.note_load_among_fences(0, 4, clock(1, 1, SHARED), Stamp::new(1, 1, 32 * warp + lane));
            }
        }
        for warp in signed {
            // A barrier of the warp lies between.
            order.fence(*warp, 1, FenceScope::Block, FenceEpochs { block: 1, warp: 2, now: 3 });
            order.atomic(*warp, 0, (None, 64));
        }
        order.atomic(3, 0, (None, 64));
        order.fence(3, 1, FenceScope::Block, FenceEpochs { block: 1, warp: 1, now: 3 });
        let (clock, now) = (Clock { known: order.known(3), ..clock(1, 1, SHARED) }, Stamp::new(4, 2, 96));
        let first = shadow.cells(0, 4).next().and_then(|cell| cell.store_would(clock, now));
        let further = shadow.further_loads(0, 4, clock, now);
        let mut warps: Vec<u32> = first.into_iter().chain(further).map(|with| with.stamp.warp()).collect();
        warps.dedup();
        warps
    }

    #[test]
    fn a_store_races_with_any_unordered_load_of_three() {
        assert_eq!(after_loads_of_three_warps(&[0, 1, 2]), [0; 0]);
        assert_eq!(after_loads_of_three_warps(&[1, 2]), [0]);
        assert_eq!(after_loads_of_three_warps(&[0, 2]), [1]);
        assert_eq!(after_loads_of_three_warps(&[0, 1]), [2]);
    }

    #[test]
    fn loads_beyond_a_cell_count_towards_the_budget() {
        let budget = PageBudget::new(2 * PAGE_BYTES);
        let mut shadow = Shadow::new(4 * PAGE, 4, budget.clone());
        shadow.set_among_fences();
        let mut load = |warp: u32| {
            for cell in 0..PAGE as u64 {
                let now = Stamp::new(1, 1, 32 * warp);
                shadow.note_load_among_fences(4 * cell, 4, clock(1, 1, SHARED), now);
            }
        };
        (0..3).for_each(&mut load);
        assert!(!budget.is_spent(), "a page of cells, and one of loads by a third warp");
        load(3);
        assert!(budget.is_spent());
    }

    #[test]
    fn repeated_instructions_are_distinct() {
        let now = clock(5, 5, SHARED);
        let mut cell = Cell::default();
        cell.store(now, Stamp::new(5, 1, 0));
        assert!(cell.store(now, Stamp::new(5, 1, 1)).is_none(), "of one instruction");
        assert!(cell.store(now, Stamp::new(6, 1, 1)).is_none(), "the lane's own");
        assert!(cell.store(now, Stamp::new(6, 1, 2)).is_none(), "of one instruction");
        assert!(cell.store(now, Stamp::new(7, 1, 3)).is_some(), "of a turn before");
    }

    #[test]
    fn blocks_are_never_ordered() {
        let mut cell = Cell::default();
        cell.load(clock(1, 1, GLOBAL), Stamp::new(1, 7, 3));
        assert!(cell.store(clock(2, 2, GLOBAL), Stamp::new(2, 8, 3)).is_some());
        assert!(cell.load(clock(3, 2, GLOBAL), Stamp::new(3, 8, 40)).is_none(), "same block, after a barrier");
        let mut cell = Cell::default();
        cell.store(clock(1, 1, SHARED), Stamp::new(1, 7, 3));
        assert!(cell.load(clock(2, 2, SHARED), Stamp::new(2, 7, 3)).is_none(), "shared memory begins anew");
        assert!(!cell.initialized(clock(2, 2, SHARED)));
    }
}
