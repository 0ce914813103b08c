//! Counts of a launch's sampled blocks, by line of the PTX: executions, sectors of global memory,
//! those that the L1 cache does not hold, and cycles of shared memory.

use runtime::ptx::observe::{AccessSpace, Executed, InstructionObserver, ObservedAccessKind};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Bytes of a sector of global memory.
pub const SECTOR: u64 = 32;
/// Bytes of a bank of shared memory, and the number of banks.
const BANK: u64 = 4;
const BANKS: u64 = 32;
const LANES: usize = 32;

/// Costs of a line of the PTX in all warps of the sampled blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LineCosts {
    /// Executions by a warp, including those in which no lane is active.
    pub executed: u64,
    /// Executions with an active lane that access memory.
    pub requests: u64,
    /// Sectors of global memory that the requests touch.
    pub sectors: u64,
    /// Sectors that were not among the recently touched ones of the block, which the L1 cache
    /// holds.
    pub missed: u64,
    /// Cycles that shared memory takes for the requests.
    pub shared_cycles: u64,
    /// Bytes of the active lanes.
    pub bytes: u64,
}

/// Counts of sampled blocks.
#[derive(Debug, Default)]
pub struct BlockCounts {
    /// Costs by line; line 0 is unused.
    pub lines: Vec<LineCosts>,
    /// Number of sampled blocks.
    pub blocks: u64,
    /// Warps of a block.
    pub warps: u64,
    /// Executions by a warp in each sampled block.
    pub executed_of_block: Vec<u64>,
    /// Sectors that a block touches, summed over blocks.
    pub sectors_of_blocks: u64,
    /// Sectors that all sampled blocks touch together.
    pub sectors_together: u64,
    /// Sectors that a block loads and then stores, summed over blocks. The memory transfers them
    /// twice.
    pub updated_of_blocks: u64,
    /// Sectors that the sampled blocks together load and then store.
    pub updated_together: u64,
}

/// History of a sector.
#[derive(Clone, Copy, Debug, Default)]
struct SectorHistory {
    /// Number of the block that touched the sector last; 0 is none.
    block: u32,
    /// Number of sectors that the block had fetched by then, modulo 2^32.
    fetched: u32,
    of_block: SectorUse,
    of_all: SectorUse,
}

/// Use of a sector. A load after a store needs no transfer from the memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum SectorUse {
    #[default]
    None,
    Loaded,
    Stored,
    /// Loaded, then stored.
    Updated,
}

impl SectorUse {
    /// Records an access, and returns whether the access makes the use an update.
    fn record(&mut self, kind: ObservedAccessKind) -> bool {
        let before = *self;
        *self = match (before, kind) {
            (SectorUse::None, ObservedAccessKind::Load) => SectorUse::Loaded,
            (SectorUse::None, ObservedAccessKind::Store) => SectorUse::Stored,
            (SectorUse::Loaded, ObservedAccessKind::Store) => SectorUse::Updated,
            // The L2 cache loads the sector, and stores the result.
            (SectorUse::None | SectorUse::Loaded, ObservedAccessKind::Atomic) => SectorUse::Updated,
            _ => before,
        };
        before != SectorUse::Updated && *self == SectorUse::Updated
    }
}

/// Observer that counts.
pub struct Counter {
    counts: BlockCounts,
    /// Sectors that the block's part of the L1 cache holds.
    l1_sectors: u64,
    touched: HashMap<u64, SectorHistory, BuildHasherDefault<Multiplied>>,
    /// Number of sectors that the block has fetched, modulo 2^32.
    fetched: u32,
}

impl Counter {
    /// Starts counting. `l1_bytes` is the part of the L1 cache that a block has; `warps` is the
    /// number of its warps.
    pub fn new(warps: u64, l1_bytes: u64) -> Counter {
        Counter {
            counts: BlockCounts { warps, ..BlockCounts::default() },
            l1_sectors: l1_bytes / SECTOR,
            touched: HashMap::default(),
            fetched: 0,
        }
    }

    /// Returns the counts.
    pub fn finish(mut self) -> BlockCounts {
        self.counts.sectors_together = self.touched.len() as u64;
        self.counts
    }

    /// Counts the sectors of a request to global memory, and those that the L1 cache does not hold.
    fn global(&mut self, addresses: &mut [u64], bytes: u64, kind: ObservedAccessKind) -> (u64, u64) {
        addresses.sort_unstable();
        let loads = kind == ObservedAccessKind::Load;
        let (mut sectors, mut missed, mut last) = (0, 0, u64::MAX);
        for address in addresses {
            for sector in *address / SECTOR..=(*address + bytes - 1) / SECTOR {
                if sector == last {
                    continue;
                }
                last = sector;
                sectors += 1;
                let history = self.touched.entry(sector).or_default();
                let is_new = history.block != self.counts.blocks as u32;
                if is_new {
                    self.counts.sectors_of_blocks += 1;
                    history.of_block = SectorUse::None;
                }
                self.counts.updated_of_blocks += u64::from(history.of_block.record(kind));
                self.counts.updated_together += u64::from(history.of_all.record(kind));
                if !is_new && loads && u64::from(self.fetched.wrapping_sub(history.fetched)) < self.l1_sectors {
                    continue;
                }
                missed += 1;
                self.fetched = self.fetched.wrapping_add(1);
                (history.block, history.fetched) = (self.counts.blocks as u32, self.fetched);
            }
        }
        (sectors, missed)
    }
}

/// Returns the cycles that shared memory takes for a request. Groups of lanes that request 128
/// bytes at most are served together. The cycles of a group are the different words of its most
/// loaded bank.
fn shared_cycles(addresses: &[u64], bytes: u64) -> u64 {
    let lanes = (LANES as u64 * BANK / bytes.max(BANK)) as usize;
    let group = |group: &[u64]| if has_conflicts(group, bytes) { most_words_of_a_bank(group, bytes) } else { 1 };
    addresses.chunks(lanes.max(1)).map(group).sum()
}

/// Returns whether two different words are in one bank. Most requests have no conflict.
fn has_conflicts(addresses: &[u64], bytes: u64) -> bool {
    // No word has this number.
    let mut of_banks = [u64::MAX; BANKS as usize];
    for address in addresses {
        for word in address / BANK..(address + bytes).div_ceil(BANK) {
            let known = std::mem::replace(&mut of_banks[(word % BANKS) as usize], word);
            if known != u64::MAX && known != word {
                return true;
            }
        }
    }
    false
}

/// Returns the number of different words in the bank that has the most.
fn most_words_of_a_bank(addresses: &[u64], bytes: u64) -> u64 {
    let mut words: Vec<u64> = Vec::with_capacity(2 * LANES);
    for address in addresses {
        words.extend(address / BANK..(address + bytes).div_ceil(BANK));
    }
    words.sort_unstable();
    words.dedup();
    let mut load = [0; BANKS as usize];
    words.iter().for_each(|word| load[(word % BANKS) as usize] += 1);
    load.into_iter().max().unwrap_or(1)
}

impl InstructionObserver for Counter {
    fn begin_block(&mut self) {
        self.counts.blocks += 1;
        self.counts.executed_of_block.push(0);
        self.fetched = 0;
    }

    fn execute(&mut self, executed: &Executed) {
        let line = executed.line.unwrap_or(0) as usize;
        if line >= self.counts.lines.len() {
            self.counts.lines.resize(line + 1, LineCosts::default());
        }
        self.counts.lines[line].executed += 1;
        self.counts.executed_of_block.last_mut().into_iter().for_each(|executed| *executed += 1);
        let Some(access) = &executed.access else { return };
        let mut addresses = [0; LANES];
        let mut lanes = 0;
        for (lane, address) in access.addresses.iter().enumerate() {
            if executed.mask >> lane & 1 == 1 {
                addresses[lanes] = *address;
                lanes += 1;
            }
        }
        let (addresses, bytes) = (&mut addresses[..lanes], u64::from(access.bytes));
        let mut costs = LineCosts { requests: 1, bytes: bytes * lanes as u64, ..LineCosts::default() };
        match (access.space, access.kind) {
            (AccessSpace::Global, kind) => {
                (costs.sectors, costs.missed) = self.global(addresses, bytes, kind);
            }
            // Lanes with one address are serialized.
            (AccessSpace::Shared, ObservedAccessKind::Atomic) => {
                addresses.sort_unstable();
                let most = addresses.chunk_by(|a, b| a == b).map(|same| same.len() as u64).max();
                costs.shared_cycles = shared_cycles(addresses, bytes).max(most.unwrap_or(1));
            }
            (AccessSpace::Shared, _) => costs.shared_cycles = shared_cycles(addresses, bytes),
            (AccessSpace::Local | AccessSpace::Constant, _) => costs.shared_cycles = bytes.div_ceil(BANK),
        }
        let all = &mut self.counts.lines[line];
        all.requests += costs.requests;
        all.sectors += costs.sectors;
        all.missed += costs.missed;
        all.shared_cycles += costs.shared_cycles;
        all.bytes += costs.bytes;
    }
}

/// Hash of a number: its product with an odd constant.
#[derive(Default)]
pub struct Multiplied(u64);

impl Hasher for Multiplied {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, n: u64) {
        self.0 = (self.0.rotate_left(5) ^ n).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use runtime::ptx::observe::ObservedAccess;

    fn access(counter: &mut Counter, kind: ObservedAccessKind, address: impl Fn(u64) -> u64) {
        let addresses = std::array::from_fn(|lane| address(lane as u64));
        let access = ObservedAccess { space: AccessSpace::Global, kind, bytes: 4, addresses };
        counter.execute(&Executed { line: Some(1), mask: u32::MAX, access: Some(access) });
    }

    #[test]
    fn sectors_and_repeated_sectors_are_counted() {
        let mut counter = Counter::new(1, 1024);
        counter.begin_block();
        // 32 lanes of 4 bytes: 4 sectors; again: all held.
        access(&mut counter, ObservedAccessKind::Load, |lane| 4 * lane);
        access(&mut counter, ObservedAccessKind::Load, |lane| 4 * lane);
        // A stride of 128 bytes: 32 sectors, all that the cache holds. The first are gone.
        access(&mut counter, ObservedAccessKind::Load, |lane| 4096 + 128 * lane);
        access(&mut counter, ObservedAccessKind::Load, |lane| 4 * lane);
        let counts = counter.finish();
        let LineCosts { executed, sectors, missed, .. } = counts.lines[1];
        assert_eq!((executed, sectors, missed), (4, 4 + 4 + 32 + 4, 4 + 32 + 4));
        assert_eq!((counts.sectors_of_blocks, counts.sectors_together), (36, 36));
    }

    #[test]
    fn sectors_that_are_loaded_and_then_stored_are_updated() {
        use ObservedAccessKind::{Atomic, Load, Store};
        let mut counter = Counter::new(1, 1024);
        for _ in 0..2 {
            counter.begin_block();
            let in_place = [Load, Store, Load, Store];
            // A load of stored data comes from the cache.
            let intermediate = [Store, Load, Store];
            for (kinds, first) in [(&in_place[..], 0), (&intermediate, 1), (&[Load, Load], 2), (&[Atomic, Atomic], 3)] {
                kinds.iter().for_each(|kind| access(&mut counter, *kind, |lane| 4096 * first + 4 * lane));
            }
        }
        let counts = counter.finish();
        // Each request touches 4 sectors.
        assert_eq!((counts.sectors_of_blocks, counts.sectors_together), (32, 16));
        assert_eq!((counts.updated_of_blocks, counts.updated_together), (16, 8));
    }

    #[test]
    fn cycles_of_shared_memory_are_counted() {
        let lanes = |address: &dyn Fn(u64) -> u64| (0..32).map(address).collect::<Vec<_>>();
        assert_eq!(shared_cycles(&lanes(&|l| 4 * l), 4), 1);
        assert_eq!(shared_cycles(&lanes(&|_| 0), 4), 1, "one word for all");
        assert_eq!(shared_cycles(&lanes(&|l| 8 * l), 4), 2);
        assert_eq!(shared_cycles(&lanes(&|l| 128 * l), 4), 32);
        assert_eq!(shared_cycles(&lanes(&|l| 16 * l), 16), 4);
        assert_eq!(shared_cycles(&lanes(&|_| 0), 16), 4);
        assert_eq!(shared_cycles(&lanes(&|l| l), 1), 1);
    }
}
