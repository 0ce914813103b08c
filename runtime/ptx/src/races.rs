//! Races between warps: a plain store and another access to the same byte in one launch, without an
//! order between the two. Two strong accesses also race if one of them writes, their blocks differ,
//! and one of them has the scope `.cta`: this scope includes no thread of another block.
//!
//! The check reports nothing where an order could exist:
//!
//! - Accesses of one warp are ordered.
//! - Accesses of one block are ordered if a barrier of the block was complete in between, whatever
//!   the barrier's number and threads.
//! - Accesses before a barrier of all blocks are ordered before those after it.
//! - A strong store, or an atomic operation, releases the accesses of its block up to the block's
//!   last fence. All accesses that the block has acquired are released too. With `.release` or
//!   `.acq_rel`, all accesses of the block so far are released. A strong load of the location, or
//!   an atomic operation on it, acquires them for its whole block, even without a fence.
//! - A fence or an access with the scope `.cta` orders accesses of its block only. The wider scopes
//!   `.cluster`, `.gpu` and `.sys` are alike.
//!
//! Strong accesses are volatile, relaxed, acquiring or releasing ones, and atomic operations. A
//! volatile access has the scope `.sys`. A store of the value that memory already holds races with
//! no earlier store, and with no read-only load.
//!
//! Read-only loads are `ld.global.nc` and `ldu`. The manual requires that no thread writes their
//! memory during the launch. So the check reports such a write in any order, and by any thread.
//!
//! Each word of memory has a [`WordHistory`]: its last plain store and two other accesses. Accesses
//! beyond these, and those to other bytes of the word, can hide a race, but cannot cause a report.

use super::Check;
use super::access::CheckedAddresses;
use super::code::{AccessStrength, Inst, MemoryAccess};
use super::machine::Machine;
use super::memory::MemoryRegion;
use super::registers::lanes;
use super::warp::Warp;
use runtime_simt::Thread;
use runtime_simt::report::Description;
use std::collections::HashMap;
use std::iter;
use std::ops::Range;

/// The number of words of a page.
const PAGE_WORDS: usize = 64;

/// The largest number of pages. A launch that touches more begins anew, with an empty history.
const MAX_PAGES: usize = 1 << 15;

/// The largest number of blocks whose accesses are acquired one by one. Beyond it, all accesses
/// before the latest of their times count as acquired.
const MAX_ACQUIRED_BLOCKS: usize = 64;

/// The kind of an access.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum RaceAccess {
    /// A load.
    #[default]
    Load,
    /// A store.
    Store,
    /// An atomic operation.
    Atomic,
}

/// An access to bytes of a word.
#[derive(Clone, Copy, Default, Debug)]
struct WordAccess {
    /// The number of warp instructions of the launch up to the access; 0 is none.
    time: u64,
    /// The linear index of the block.
    block: u64,
    /// The number of barriers that were complete in the block.
    epoch: u32,
    /// The linear index of the thread in its block.
    thread: u32,
    site: u32,
    /// The bytes of the word, one bit each.
    bytes: u8,
    kind: RaceAccess,
    strength: AccessStrength,
}

impl WordAccess {
    fn is_plain_store(&self) -> bool {
        self.kind == RaceAccess::Store && self.strength == AccessStrength::Weak
    }

    /// Returns whether the accesses are strong, and a scope of theirs excludes the other's thread.
    fn excludes(&self, other: &WordAccess) -> bool {
        let strengths = [self.strength, other.strength];
        self.block != other.block
            && strengths.iter().all(|strength| *strength != AccessStrength::Weak)
            && strengths.iter().any(|strength| strength.is_of_block())
    }

    /// Returns whether the accesses race, unless an order exists between them.
    fn conflicts(&self, other: &WordAccess) -> bool {
        let writes = self.kind != RaceAccess::Load || other.kind != RaceAccess::Load;
        writes && (self.is_plain_store() || other.is_plain_store() || self.excludes(other))
    }
}

/// The rule that two accesses violate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum RaceRule {
    /// An order exists between the accesses.
    Order,
    /// The scopes of strong accesses include each other's threads.
    Scope,
    /// No thread writes the memory of a read-only load.
    ReadOnly,
}

/// The last accesses to a word.
#[derive(Clone, Copy, Default, Debug)]
struct WordHistory {
    /// The last plain store.
    store: WordAccess,
    /// Loads, strong stores and atomic operations.
    others: [WordAccess; 2],
}

/// Accesses that happened before: those of each block up to a time.
#[derive(Clone, Default, Debug)]
struct AcquiredTimes {
    /// The time up to which the accesses of all blocks are acquired.
    all: u64,
    blocks: HashMap<u64, u64>,
}

impl AcquiredTimes {
    fn contains(&self, access: &WordAccess) -> bool {
        access.time <= self.all || self.blocks.get(&access.block).is_some_and(|time| access.time <= *time)
    }

    fn add(&mut self, block: u64, time: u64) {
        let known = self.blocks.entry(block).or_default();
        *known = time.max(*known);
        if self.blocks.len() > MAX_ACQUIRED_BLOCKS {
            let latest = self.blocks.drain().map(|(_, time)| time).max();
            self.all = self.all.max(latest.unwrap_or(0));
        }
    }

    fn merge(&mut self, other: &AcquiredTimes) {
        self.all = self.all.max(other.all);
        other.blocks.iter().for_each(|(block, time)| self.add(*block, *time));
    }
}

/// The order that a block has observed.
#[derive(Clone, Default, Debug)]
struct BlockClock {
    /// The number of complete barriers.
    epoch: u32,
    /// The time of the last fence that other blocks observe; 0 if there was none.
    fenced: u64,
    /// The time of the last fence; 0 if there was none.
    fenced_in_block: u64,
    acquired: AcquiredTimes,
}

impl BlockClock {
    /// Returns whether the accesses have a byte in common, and no order exists between them.
    fn is_unordered(&self, earlier: &WordAccess, now: &WordAccess) -> bool {
        if earlier.time == 0 || earlier.bytes & now.bytes == 0 {
            return false;
        }
        let of_block = earlier.block == now.block;
        if of_block && (earlier.thread / 32 == now.thread / 32 || earlier.epoch < self.epoch) {
            return false;
        }
        !self.acquired.contains(earlier)
    }
}

/// The history of the words of one state space.
#[derive(Default, Debug)]
struct SpaceHistory {
    /// The index in `words` of each page.
    pages: HashMap<u64, usize>,
    words: Vec<Box<[WordHistory; PAGE_WORDS]>>,
    /// The page that was used last, and its index.
    last: Option<(u64, usize)>,
}

impl SpaceHistory {
    fn clear(&mut self) {
        *self = SpaceHistory::default();
    }

    /// Forgets the accesses to a range of words.
    fn forget(&mut self, words: Range<u64>) {
        let page_words = PAGE_WORDS as u64;
        for page in words.start / page_words..words.end.div_ceil(page_words) {
            let Some(&index) = self.pages.get(&page) else { continue };
            for (word, history) in (page * page_words..).zip(self.words[index].iter_mut()) {
                if words.contains(&word) {
                    *history = WordHistory::default();
                }
            }
        }
    }

    /// Returns the history of a word.
    fn word(&mut self, word: u64) -> &mut WordHistory {
        let (page, at) = (word / PAGE_WORDS as u64, (word % PAGE_WORDS as u64) as usize);
        let index = match self.last {
            Some((last, index)) if last == page => index,
            _ => {
                if self.words.len() >= MAX_PAGES && !self.pages.contains_key(&page) {
                    self.clear();
                }
                let words = &mut self.words;
                *self.pages.entry(page).or_insert_with(|| {
                    words.push(Box::new([WordHistory::default(); PAGE_WORDS]));
                    words.len() - 1
                })
            }
        };
        self.last = Some((page, index));
        &mut self.words[index][at]
    }
}

/// A location that carries released accesses: in global memory, or in the shared memory of a block.
type ReleasedLocation = (Option<u64>, u64);

/// The accesses of a launch so far, and their order.
#[derive(Default, Debug)]
pub struct RaceHistory {
    global: SpaceHistory,
    /// The words of shared memory, by block.
    shared: HashMap<u64, SpaceHistory>,
    blocks: HashMap<u64, BlockClock>,
    /// The accesses that locations in global memory carry.
    released: HashMap<ReleasedLocation, AcquiredTimes>,
    /// For a block and a location in global memory: the time up to which accesses of the block are
    /// released to the block itself.
    released_in_blocks: HashMap<(u64, u64), u64>,
    /// The accesses that locations in shared memory carry.
    released_in_shared: HashMap<ReleasedLocation, AcquiredTimes>,
    /// The words of global memory, if the program has read-only loads. `store` is the last write,
    /// and the first of `others` is the last read-only load.
    read_only: Option<SpaceHistory>,
}

impl RaceHistory {
    /// Returns an empty history. Only for a program with read-only loads, the history records them.
    pub fn new(has_read_only_loads: bool) -> RaceHistory {
        RaceHistory { read_only: has_read_only_loads.then(SpaceHistory::default), ..RaceHistory::default() }
    }

    /// Begins a block. Unless blocks run interleaved, the previous blocks have ended.
    pub fn begin_block(&mut self, block: u64, is_interleaved: bool) {
        if !is_interleaved {
            self.shared.clear();
            self.blocks.clear();
            self.released_in_shared.clear();
            self.released_in_blocks.clear();
        }
        self.blocks.insert(block, BlockClock::default());
    }

    /// Records a complete barrier of a block.
    pub fn barrier(&mut self, block: u64) {
        self.blocks.entry(block).or_default().epoch += 1;
    }

    /// Records a barrier of all blocks.
    pub fn grid_barrier(&mut self) {
        self.global.clear();
        self.blocks.values_mut().for_each(|clock| clock.epoch += 1);
    }

    /// Records a fence of a block. Other blocks do not observe a fence whose scope is the block.
    pub fn fence(&mut self, block: u64, time: u64, is_of_block: bool) {
        let clock = self.blocks.entry(block).or_default();
        clock.fenced_in_block = time;
        if !is_of_block {
            clock.fenced = time;
        }
    }

    /// Forgets the accesses to memory that a kernel frees: the next allocation there is other
    /// memory.
    pub fn forget(&mut self, freed: Range<u64>) {
        let words = freed.start / 4..freed.end.div_ceil(4);
        self.read_only.iter_mut().for_each(|history| history.forget(words.clone()));
        self.global.forget(words);
        self.released.retain(|(_, address), _| !freed.contains(address));
        self.released_in_blocks.retain(|(_, address), _| !freed.contains(address));
    }

    /// Records a write or a read-only load of global memory. Returns a write to the loaded bytes,
    /// or a read-only load of the written bytes, in any order.
    fn access_read_only(&mut self, address: u64, bytes: u64, now: WordAccess) -> Option<WordAccess> {
        let words = self.read_only.as_mut()?;
        let mut found = None;
        for (word, bytes) in words_of(address, bytes) {
            let now = WordAccess { bytes, ..now };
            let WordHistory { store, others: [load, _] } = words.word(word);
            let (own, other) = if now.kind == RaceAccess::Load { (load, store) } else { (store, load) };
            found = found.or(Some(*other).filter(|other| other.bytes & bytes != 0));
            *own = now;
        }
        found
    }

    /// Records an access of a lane and returns the access that it races with.
    fn access(
        &mut self,
        location: ReleasedLocation,
        bytes: u64,
        now: WordAccess,
        is_silent: bool,
    ) -> Option<WordAccess> {
        let strength = now.strength;
        let clock = self.blocks.entry(now.block).or_default();
        if strength != AccessStrength::Weak {
            // Only the block accesses its shared memory.
            let is_shared = location.0.is_some();
            let is_of_block = strength.is_of_block() && !is_shared;
            let all = if is_shared { &mut self.released_in_shared } else { &mut self.released };
            let own = (now.block, location.1);
            if now.kind != RaceAccess::Store {
                match all.get(&location) {
                    Some(released) if is_of_block => {
                        let time = released.blocks.get(&now.block).copied().unwrap_or(0);
                        clock.acquired.add(now.block, time.max(released.all));
                    }
                    Some(released) => clock.acquired.merge(released),
                    None => {}
                }
                if let Some(time) = self.released_in_blocks.get(&own).filter(|_| !is_shared) {
                    clock.acquired.add(now.block, *time);
                }
            }
            let in_block = if strength.releases() { now.time } else { clock.fenced_in_block };
            let until = match strength {
                _ if is_shared => in_block,
                AccessStrength::Releasing => now.time,
                _ if is_of_block => 0,
                _ => clock.fenced,
            };
            if now.kind != RaceAccess::Load && until > 0 {
                let released = all.entry(location).or_default();
                released.merge(&clock.acquired);
                released.add(now.block, until);
            }
            if now.kind != RaceAccess::Load && in_block > until {
                self.released_in_blocks.insert(own, in_block);
            }
        }
        let space = match location.0 {
            None => &mut self.global,
            Some(block) => self.shared.entry(block).or_default(),
        };
        let mut race = None;
        for (word, bytes) in words_of(location.1, bytes) {
            let now = WordAccess { bytes, epoch: clock.epoch, ..now };
            let history = space.word(word);
            let all = iter::once(history.store).chain(history.others);
            let changing = all.filter(|earlier| !is_silent || earlier.kind != RaceAccess::Store);
            let mut conflicting = changing.filter(|earlier| earlier.conflicts(&now));
            race = race.or(conflicting.find(|earlier| clock.is_unordered(earlier, &now)));
            if now.is_plain_store() {
                history.store = now;
            } else {
                // The second entry is unordered with the first. A later store that races with an
                // access of the two warps thus races with one of the entries.
                let [first, _] = history.others;
                history.others[usize::from(first.bytes != 0 && clock.is_unordered(&first, &now))] = now;
            }
        }
        race
    }
}

/// Returns the words of a range of bytes, and the bytes of each, one bit each.
fn words_of(start: u64, bytes: u64) -> impl Iterator<Item = (u64, u8)> {
    let end = start + bytes;
    (start / 4..end.div_ceil(4)).map(move |word| {
        let within = (4 * word..4 * word + 4).filter(|byte| (start..end).contains(byte));
        (word, within.fold(0, |all, byte| all | 1 << (byte % 4)))
    })
}

/// A race of lanes of an instruction with an earlier access.
struct FoundRace {
    check: Check,
    rule: RaceRule,
    /// The first lane, and its address.
    lane: usize,
    address: u64,
    other: WordAccess,
    /// All lanes.
    lanes: u32,
}

impl Machine<'_, '_> {
    /// Returns the linear index of the running block.
    pub fn block_number(&self) -> u64 {
        let ([x, y, z], [width, height, _]) = (self.block.map(u64::from), self.grid.blocks.map(u64::from));
        x + width * (y + height * z)
    }

    /// Records a fence for the check of races.
    pub fn fence(&mut self, is_of_block: bool) {
        let (block, time) = (self.block_number(), self.statistics.warp_instructions);
        if let Some(races) = &mut self.races {
            races.fence(block, time, is_of_block);
        }
    }

    /// Records the valid accesses of an instruction, and reports its races. The lanes of `silent`
    /// store the values that memory already held.
    pub fn check_races(
        &mut self,
        warp: &mut Warp,
        inst: &Inst,
        access: &MemoryAccess,
        checked: &CheckedAddresses,
        (kind, silent): (RaceAccess, u32),
    ) {
        let Some(mut races) = self.races.take() else { return };
        let (block, time) = (self.block_number(), self.statistics.warp_instructions);
        let view = self.memory.view(&mut warp.local);
        let mut found: Vec<FoundRace> = Vec::new();
        for lane in lanes(checked.mask) {
            let Some((address, extent)) = checked.place(lane, access, &view) else { continue };
            let (check, location) = match extent.region {
                MemoryRegion::Buffer(i) if view.buffers[i].mutable => (Check::GlobalRace, (None, address)),
                MemoryRegion::Shared => (Check::SharedRace, (Some(block), address - extent.base)),
                MemoryRegion::Buffer(_) | MemoryRegion::Local | MemoryRegion::Param => continue,
            };
            let (thread, site) = (32 * warp.index + lane as u32, inst.site);
            let strength = access.strength;
            let now = WordAccess { time, block, epoch: 0, thread, site, bytes: 0, kind, strength };
            let is_silent = silent >> lane & 1 == 1;
            let is_written = kind != RaceAccess::Load && !is_silent;
            let read_only = if location.0.is_none() && (access.read_only || is_written) {
                races.access_read_only(address, access.bytes(), now)
            } else {
                None
            };
            let unordered = races.access(location, access.bytes(), now, is_silent);
            let (rule, other) = match (read_only, unordered) {
                (Some(other), _) => (RaceRule::ReadOnly, other),
                (None, Some(other)) if now.excludes(&other) => (RaceRule::Scope, other),
                (None, Some(other)) => (RaceRule::Order, other),
                (None, None) => continue,
            };
            match found.iter_mut().find(|known| (known.check, known.other.site) == (check, other.site)) {
                Some(known) => known.lanes |= 1 << lane,
                None => found.push(FoundRace { check, rule, lane, address, other, lanes: 1 << lane }),
            }
        }
        self.races = Some(races);
        for race in found {
            self.report_race(warp, inst, access, kind, race);
        }
    }

    #[cold]
    fn report_race(
        &mut self,
        warp: &mut Warp,
        inst: &Inst,
        access: &MemoryAccess,
        kind: RaceAccess,
        FoundRace { check, rule, lane, address, other, lanes }: FoundRace,
    ) {
        let hits = lanes.count_ones();
        if !self.options.checks.enables(check) || self.findings.count(check, inst.site, Some(other.site), hits) {
            return;
        }
        let code = &self.program.code;
        let view = self.memory.view(&mut warp.local);
        let place = view.describe(access.window, address, access.bytes(), &code.shared, &code.local);
        let words = |kind| match kind {
            RaceAccess::Load => "loads",
            RaceAccess::Store => "stores",
            RaceAccess::Atomic => "updates",
        };
        let by = self.thread(other.thread / 32, (other.thread % 32) as usize);
        let by = Thread { block: self.grid.block(other.block), ..by };
        let site = &code.sites[other.site as usize];
        let line = site.line.map_or(String::new(), |line| format!(" in line {line}"));
        let (does, did, bytes) = (words(kind), words(other.kind), access.bytes());
        let (which, why) = match (rule, kind) {
            (RaceRule::Order, _) => ("which", " without an order"),
            (RaceRule::Scope, _) => ("which", ", and the scope .cta includes no thread of another block"),
            (RaceRule::ReadOnly, RaceAccess::Load) => ("as read-only memory, which", " in the same launch"),
            (RaceRule::ReadOnly, _) => ("which", " as read-only memory in the same launch"),
        };
        let message = format!("{does} {bytes} bytes at {place}, {which} {by} {did}{why}: `{}`{line}", site.text);
        let thread = self.thread(warp.index, lane);
        self.findings.add(check, inst.site, hits, thread, Description::new(message).against(Some(other.site), by, did));
        self.stopped |= self.findings.full();
    }
}
