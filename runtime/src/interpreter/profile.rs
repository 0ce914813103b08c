//! What accesses ask of memory, measured: by warp and instruction, from the addresses of its lanes as they are.
//!
//! The analyses of the compiler tell the same of accesses that they understand, for a warp of a full block, before anything
//! runs (`compiler::analyses::memory`). Here nothing is understood: addresses are counted.

use super::access::Action;
use super::code::{Access, Inst, Pc};
use super::frame::{LANES, lanes_of};
use super::machine::{Machine, VALUES, Warp};
use super::report::Space;
use super::{Program, report};
use kernel_dsl::compiler::ir::Location;
use serde::Serialize;
use std::collections::BTreeMap;

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

/// Sums over the requests of an access: a request is what the active lanes of a warp ask at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Counts {
    /// Shared memory, or a buffer.
    pub space: Space,
    /// Requests with one lane or more.
    pub requests: u64,
    /// Lanes that took part in them.
    pub lanes: u64,
    /// In a buffer, the sectors that were touched; in shared memory, how often the busiest bank was asked for another word.
    pub cost: u64,
    /// The greatest cost of a request.
    pub most: u32,
}

impl Counts {
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
            space: self.space,
            requests: self.requests + other.requests,
            lanes: self.lanes + other.lanes,
            cost: self.cost + other.cost,
            most: self.most.max(other.most),
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
            let lanes = lanes_of(part.lanes).map(|lane| address[lane]);
            let bytes = u64::from(access.bytes());
            let (space, cost) = match access.place.is_shared() {
                true => {
                    let at = lanes_of(part.lanes).map(|lane| (lane, address[lane]));
                    (Space::Shared, busiest(at, bytes, action != Action::Atomic))
                }
                false => (Space::Buffer, sectors(lanes, bytes)),
            };
            let counts =
                Counts { space, requests: 1, lanes: part.lanes.count_ones().into(), cost: cost.into(), most: cost };
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

/// The sectors that bytes at these addresses lie in.
fn sectors(addresses: impl Iterator<Item = u64>, bytes: u64) -> u32 {
    let mut all: Vec<u64> = addresses.flat_map(|a| a / SECTOR..=(a + bytes.max(1) - 1) / SECTOR).collect();
    all.sort_unstable();
    all.dedup();
    all.len() as u32
}

/// How often the busiest bank is asked for another word, by lanes at these addresses. Lanes that ask for one word are served
/// together, if `merged`. Accesses of 8 and of 16 bytes go by half and by quarter warps.
fn busiest(lanes: impl Iterator<Item = (usize, u64)>, bytes: u64, merged: bool) -> u32 {
    let at_once = (AT_ONCE / bytes.clamp(BANK, 16)) as usize;
    let mut asked: BTreeMap<(usize, u64), Vec<u64>> = BTreeMap::new();
    for (lane, address) in lanes {
        for word in address / BANK..=(address + bytes.clamp(1, 16) - 1) / BANK {
            asked.entry((lane / at_once, word % BANKS)).or_default().push(word);
        }
    }
    let times = asked.into_values().map(|mut words| {
        words.sort_unstable();
        if merged {
            words.dedup();
        }
        words.len()
    });
    times.max().unwrap_or(0) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sectors_are_of_32_bytes() {
        let of = |f: fn(u64) -> u64, bytes| sectors((0..32).map(f), bytes);
        assert_eq!(of(|l| 4 * l, 4), 4);
        assert_eq!(of(|l| 4 * l + 4, 4), 5);
        assert_eq!(of(|l| 128 * l, 4), 32);
        assert_eq!(of(|_| 30, 4), 2);
        assert_eq!(of(|l| 16 * l, 16), 16);
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
