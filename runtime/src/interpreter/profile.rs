//! What accesses ask of memory, measured: by warp and instruction, from the addresses of its lanes as they are.
//!
//! The analyses of the compiler tell the same of accesses that they understand, for a warp of a full block, before anything
//! runs (`compiler::analyses::memory`). Here nothing is understood: addresses are counted.

use super::access::Action;
use super::code::{Access, Inst, Pc};
use super::describe::Target;
use super::frame::{LANES, lanes_of};
use super::machine::{Machine, VALUES, Warp};
use super::{Program, report};
use kernel_dsl::compiler::ir::{Location, Placement};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of a sector of global memory.
const SECTOR: u64 = 32;
/// Bytes that a bank of shared memory gives at once.
const BANK: u64 = 4;
/// Banks of shared memory.
const BANKS: u64 = 32;
/// Bytes that shared memory gives at once: a warp that asks for more goes by halves or quarters.
const AT_ONCE: u64 = BANK * BANKS;

/// What a launch asked of memory.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Profile {
    /// The accesses that were made, in the order of the code.
    pub accesses: Vec<Accessed>,
}

/// One access of the code, in all warps.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Accessed {
    /// In the kernel's IR.
    #[serde(skip)]
    pub location: Location,
    /// Where in the Rust.
    pub place: report::Place,
    /// What it does.
    pub kind: Kind,
    /// The array or parameter; `None` where it was not always the same.
    pub array: Option<String>,
    /// Bytes that a lane accesses.
    pub bytes: u32,
    /// Which memory it is, and what was asked of it.
    #[serde(flatten)]
    pub counts: Counts,
}

/// What an access does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum Kind {
    Load,
    Store,
    Atomic,
}

/// What the requests of an access cost: a request is what the active lanes of a warp ask at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Counts {
    /// Where it leads to.
    pub memory: Memory,
    /// Requests with one lane or more.
    pub requests: u64,
    /// Lanes that took part, in all of them.
    pub lanes: u64,
    /// What all of them cost.
    pub cost: u64,
    /// What the most expensive of them cost.
    pub most: u32,
    /// The worst of those in which most lanes took part: in a full block, of those that the analyses of the compiler tell of.
    pub fullest: Request,
}

/// One request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Request {
    /// Lanes that took part.
    pub lanes: u32,
    /// What it cost.
    pub cost: u32,
    /// What as many bytes would cost, well placed.
    pub least: u32,
}

/// Which memory it is, and what costs there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Memory {
    /// Sectors of 32 bytes that are touched.
    Global,
    /// How often the busiest of the 32 banks is asked for another word: 1 is without conflict.
    Shared,
    /// Places that lanes read, one after the other.
    Constant,
}

impl Request {
    /// Whether it tells more of the access: by its lanes, then by how far it is from the least.
    fn outweighs(self, other: Request) -> bool {
        let excess = |a: Request, b: Request| u64::from(a.cost) * u64::from(b.least);
        (self.lanes, excess(self, other)) > (other.lanes, excess(other, self))
    }
}

impl Counts {
    fn one(memory: Memory, request: Request) -> Counts {
        let Request { lanes, cost, .. } = request;
        Counts { memory, requests: 1, lanes: lanes.into(), cost: cost.into(), most: cost, fullest: request }
    }

    /// The mean cost of a request.
    pub fn mean(&self) -> f64 {
        self.cost as f64 / self.requests.max(1) as f64
    }

    /// The part of a warp's lanes that took part, on the average.
    pub fn active(&self) -> f64 {
        self.lanes as f64 / (LANES as u64 * self.requests.max(1)) as f64
    }

    /// Both together.
    pub fn and(self, other: Counts) -> Counts {
        Counts {
            memory: self.memory,
            requests: self.requests + other.requests,
            lanes: self.lanes + other.lanes,
            cost: self.cost + other.cost,
            most: self.most.max(other.most),
            fullest: if other.fullest.outweighs(self.fullest) { other.fullest } else { self.fullest },
        }
    }
}

/// Counts as a launch runs. A copy past the registers is two accesses at one instruction.
#[derive(Default)]
pub(super) struct Counters(BTreeMap<(Pc, Kind), Counter>);

struct Counter {
    array: Option<String>,
    bytes: u32,
    counts: Counts,
}

impl Counters {
    /// Counts the instruction at `site`, if it accesses memory.
    pub fn see(&mut self, machine: &mut Machine<'_, '_>, site: Pc, warp: &Warp, mask: u32) {
        let code = &machine.program.code;
        let truth = |row: Option<u32>| row.map_or(u32::MAX, |row| machine.simd.truth(&warp.rows, row));
        match code.insts[site as usize] {
            Inst::Load(i) => self.count(machine, site, warp, mask, &code.accesses[i as usize], Action::Load),
            Inst::Store(i) => self.count(machine, site, warp, mask, &code.accesses[i as usize], Action::Store),
            Inst::Atomic(i) => self.count(machine, site, warp, mask, &code.atomics[i as usize].access, Action::Atomic),
            Inst::CopyAsync(i) => {
                let copy = &code.copies[i as usize];
                let stored = mask & truth(copy.guard);
                let loaded = stored & truth(copy.inside);
                self.count(machine, site, warp, loaded, &copy.from, Action::Load);
                self.count(machine, site, warp, stored, &copy.to, Action::Store);
            }
            _ => {}
        }
    }

    fn count(
        &mut self,
        machine: &mut Machine<'_, '_>,
        site: Pc,
        warp: &Warp,
        mask: u32,
        access: &Access,
        action: Action,
    ) {
        let active = machine.guarded(warp, mask, access);
        let (address, mut rest) = machine.addresses::<VALUES>(site, warp, active, access);
        let kind = match action {
            Action::Load => Kind::Load,
            Action::Store | Action::Poison => Kind::Store,
            Action::Atomic => Kind::Atomic,
        };
        while rest != 0 {
            let part = machine.part::<VALUES>(site, warp, &mut rest, &address, access);
            let Some(first) = lanes_of(part.lanes).next() else { continue };
            let name = machine.object(part.target, part.offset[first], access).name;
            let at = || lanes_of(part.lanes).map(|lane| (lane, address[lane]));
            let bytes = access.bytes();
            let memory = match part.target {
                Target::Shared => Memory::Shared,
                Target::Buffer(buffer) if machine.is_constant(buffer) => Memory::Constant,
                Target::Buffer(_) => Memory::Global,
            };
            let (cost, least) = match memory {
                Memory::Shared => (busiest(at(), bytes, action != Action::Atomic), 1),
                Memory::Constant => (distinct(at().map(|(_, a)| a / u64::from(bytes.max(4)))), 1),
                Memory::Global => sectors(at().map(|(_, a)| a), bytes),
            };
            let counts = Counts::one(memory, Request { lanes: part.lanes.count_ones(), cost, least });
            match self.0.get_mut(&(site, kind)) {
                Some(counter) => {
                    counter.array = counter.array.take().filter(|array| *array == name);
                    counter.counts = counter.counts.and(counts);
                }
                None => {
                    let counter = Counter { array: Some(name), bytes: access.bytes(), counts };
                    self.0.insert((site, kind), counter);
                }
            }
        }
    }

    /// What was counted, by place.
    pub fn profile(self, program: &Program) -> Profile {
        let accessed = |((site, kind), counter): ((Pc, Kind), Counter)| {
            let Counter { array, bytes, counts } = counter;
            let (location, place) = (program.code.locations[site as usize], program.place_of(site));
            Accessed { location, place, kind, array, bytes, counts }
        };
        Profile { accesses: self.0.into_iter().map(accessed).collect() }
    }
}

impl Machine<'_, '_> {
    /// Whether buffer number `buffer` is a table in constant memory. Tables come last.
    fn is_constant(&self, buffer: usize) -> bool {
        let tables = &self.program.tables;
        let table = (buffer + tables.len()).checked_sub(self.buffers.len()).and_then(|table| tables.get(table));
        table.is_some_and(|(table, _)| table.placement == Placement::Constant)
    }
}

/// How many different numbers there are.
fn distinct(numbers: impl Iterator<Item = u64>) -> u32 {
    numbers.collect::<BTreeSet<_>>().len() as u32
}

/// The sectors that `bytes` bytes at each of these addresses lie in, and how many they would fill.
fn sectors(addresses: impl Iterator<Item = u64>, bytes: u32) -> (u32, u32) {
    let touched: BTreeSet<u64> = addresses.flat_map(|a| a..a + u64::from(bytes)).collect();
    let least = (touched.len() as u64).div_ceil(SECTOR);
    (distinct(touched.into_iter().map(|byte| byte / SECTOR)), least as u32)
}

/// How often the busiest bank is asked for another word, by lanes at these addresses. Lanes that ask for one word are served
/// together, if `merged`. Accesses of 8 and of 16 bytes go by half and by quarter warps.
fn busiest(lanes: impl Iterator<Item = (usize, u64)>, bytes: u32, merged: bool) -> u32 {
    let bytes = u64::from(bytes.clamp(1, 16));
    let at_once = (AT_ONCE / bytes.max(BANK)) as usize;
    let mut asked: BTreeMap<(usize, u64), Vec<u64>> = BTreeMap::new();
    for (lane, address) in lanes {
        for word in address / BANK..=(address + bytes - 1) / BANK {
            asked.entry((lane / at_once, word % BANKS)).or_default().push(word);
        }
    }
    let times = asked.into_values().map(|words| if merged { distinct(words.into_iter()) } else { words.len() as u32 });
    times.max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sectors_are_of_32_bytes() {
        let of = |f: fn(u64) -> u64, bytes| sectors((0..32).map(f), bytes);
        assert_eq!(of(|l| 4 * l, 4), (4, 4));
        assert_eq!(of(|l| 4 * l + 4, 4), (5, 4));
        assert_eq!(of(|l| 128 * l, 4), (32, 4));
        assert_eq!(of(|_| 30, 4), (2, 1));
        assert_eq!(of(|l| 16 * l, 16), (16, 16));
    }

    #[test]
    fn banks_are_of_4_bytes() {
        let of = |f: fn(u64) -> u64, bytes, merged| busiest((0..32).map(|l| (l as usize, f(l))), bytes, merged);
        assert_eq!(of(|l| 4 * l, 4, true), 1);
        assert_eq!(of(|l| 8 * l, 4, true), 2);
        assert_eq!(of(|l| 128 * l, 4, true), 32);
        assert_eq!(of(|_| 64, 4, true), 1, "one word for all");
        assert_eq!(of(|_| 64, 4, false), 32, "atomic operations take turns");
        assert_eq!(of(|l| 8 * l, 8, true), 1, "a half of a warp at once");
        assert_eq!(of(|l| 16 * l, 16, true), 1, "a quarter of a warp at once");
        assert_eq!(of(|l| 32 * l, 16, true), 2);
        assert_eq!(of(|l| l, 1, true), 1, "bytes of one word");
    }
}
