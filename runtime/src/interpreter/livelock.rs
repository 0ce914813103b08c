//! Loops that cannot end: turns that change nothing.
//!
//! What a warp does next follows from its registers, its masks and memory. If a turn of a loop, or of several, leaves all of these
//! as they were, so does the next, unless another thread changes memory. So a warp that is found in such a turn gives way to
//! the block's other warps, which on a device run beside it. When all that are left are in such turns, and memory is as each
//! of them has found it, nobody can change it any more: blocks that have not begun need not run before this one ends. The same is looked
//! for from barrier to barrier, of the warps of a block together.
//!
//! A state is kept now and then, and those of the turns that follow are held against it; what is kept is replaced at
//! times that double (R. P. Brent, *An Improved Monte Carlo Factorization Algorithm*, 1980), so that a loop that does end pays next to
//! nothing. Registers come first; memory, by its hash, once they are the same.

use super::ahead::Copies;
use super::check::Check;
use super::code::{Inst, Pc, Slot};
use super::describe::Target;
use super::findings::{Description, Findings};
use super::frame::{Row, lanes_of};
use super::machine::{Machine, WATCHED, Warp};
use super::provenance::word;
use super::report::Object;
use super::watch::Watch;
use crate::number::value;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hasher};

/// Warp instructions, since a warp was last let go on, after which it is looked at first.
const INSTRUCTIONS: u64 = 1 << 14;

/// Turns that are held against what is kept then; as often as the instructions double, so do they.
const TURNS: u64 = 32;

/// Barriers of a block after which it is looked at first.
const BARRIERS: u64 = 1 << 10;

/// The same of barriers.
const MEETINGS: u64 = 8;

/// Elements that are named at most.
const NAMED: usize = 3;

/// What the next steps of a warp follow from, beside memory.
#[derive(Clone)]
struct State {
    pc: Pc,
    mask: u32,
    live: u32,
    rows: Vec<Row>,
    slots: Vec<Slot>,
    written: Vec<u32>,
    copies: Copies,
}

impl State {
    fn of(warp: &Warp) -> State {
        let Warp { pc, mask, live, rows, slots, written, copies, .. } = warp;
        State {
            pc: *pc,
            mask: *mask,
            live: *live,
            rows: rows.clone(),
            slots: slots.clone(),
            written: written.clone(),
            copies: copies.clone(),
        }
    }

    fn is(&self, warp: &Warp) -> bool {
        let masks = (self.pc, self.mask, self.live) == (warp.pc, warp.mask, warp.live);
        masks
            && self.slots == warp.slots
            && self.rows == warp.rows
            && self.written == warp.written
            && self.copies == warp.copies
    }
}

/// Looks for a state that comes again.
#[derive(Default)]
pub struct Search {
    /// When it looks next, in instructions or barriers.
    pub next: u64,
    /// Turns that it then looks at.
    window: u64,
    /// Those that are left.
    left: u64,
    /// How many turns it has looked at.
    turns: u64,
    kept: Option<Vec<State>>,
    /// Memory's hash when the state had come again.
    memory: Option<u64>,
}

/// A turn that changes nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Circle {
    /// Where it was found.
    pub site: Pc,
    /// The hash of what memory held.
    pub memory: u64,
}

impl Search {
    /// Of one that begins to run; `now` if it was found before.
    pub fn of_instructions(now: bool) -> Search {
        Search { next: if now { 0 } else { INSTRUCTIONS }, window: TURNS, ..Search::default() }
    }

    /// Of a block that begins.
    pub fn of_barriers() -> Search {
        Search { next: BARRIERS, window: MEETINGS, ..Search::default() }
    }

    /// The warps have come to the end of a turn, at `time`: the hash of memory, if the turn has changed nothing.
    fn turn(&mut self, warps: &[Warp], time: u64, memory: impl FnOnce() -> u64) -> Option<u64> {
        let Some(kept) = &self.kept else {
            self.kept = Some(warps.iter().map(State::of).collect());
            (self.memory, self.left, self.turns) = (None, self.window, 0);
            return None;
        };
        self.left -= 1;
        self.turns += 1;
        if kept.iter().zip(warps).all(|(state, warp)| state.is(warp)) {
            let now = memory();
            match self.memory {
                Some(before) if before == now => return Some(now),
                // Somebody counts in memory.
                Some(_) => self.left = 0,
                None => (self.memory, self.left, self.turns) = (Some(now), self.left.max(self.turns + 1), 0),
            }
        }
        if self.left == 0 {
            (self.kept, self.next, self.window) = (None, time.max(1) * 2, self.window * 2);
        }
        None
    }
}

/// What a loop reads that others could change.
#[derive(Default)]
pub struct Reads {
    /// By instruction, the element of its first lane, where that is, and what it holds.
    all: BTreeMap<Pc, (Object, Place, String)>,
    /// What the loop stores to itself.
    stored: BTreeSet<Place>,
}

/// A buffer, or the block's shared memory, and a byte of it.
type Place = (Option<usize>, u64);

impl Machine<'_, '_> {
    /// A warp comes to the end of a loop's turn, and it is time to look at it: until when it goes on, if it does. `count` are the
    /// instructions that it has run since it was let go on.
    #[cold]
    pub fn look(&mut self, search: &mut Search, site: Pc, warp: &mut Warp, count: u64) -> Option<u64> {
        if self.stopped || self.setting.budget.is_spent() {
            self.stopped = true;
            return None;
        }
        let left = self.fuel_left();
        if count > left || self.options.is_late() {
            self.exhausted(site, warp.index, warp.mask);
            return None;
        }
        // A loop that has ended for all lanes has no next turn.
        if warp.mask != 0
            && count > search.next
            && let Some(memory) = search.turn(std::slice::from_ref(warp), count, || self.hash())
        {
            warp.circle = Some(Circle { site, memory });
            return None;
        }
        let pace = count.saturating_add(self.options.pace());
        Some(if search.kept.is_some() { 0 } else { search.next.min(left).min(pace) })
    }

    /// A hash of all memory that the launch may write.
    fn hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.buffers.iter().filter(|buffer| buffer.mutable).for_each(|buffer| hasher.write(buffer.bytes.get()));
        hasher.write(&self.contents(Target::Shared)[..self.setting.shared_bytes as usize]);
        hasher.finish()
    }

    /// Whether nobody can change what the warps that turn in circles read; then that is reported.
    pub fn livelock(&mut self, warps: &mut [Warp]) -> bool {
        let now = self.hash();
        if warps.iter().filter_map(|w| w.circle).any(|circle| circle.memory != now) {
            return false;
        }
        let Some((i, circle)) = warps.iter().enumerate().find_map(|(i, w)| Some((i, w.circle?))) else { return false };
        let reads = self.seen(|machine| machine.warp::<WATCHED>(&mut warps[i]));
        let warp = &warps[i];
        let apart = warp.live & !warp.mask;
        let other = warps.iter().find(|w| w.index != warp.index && (w.circle.is_some() || w.waits.is_some()));
        self.tell_livelock(circle.site, warp, reads, |machine, description| {
            if apart != 0 {
                let lane = apart.trailing_zeros() as usize;
                let thread = machine.thread(warp.index, lane);
                return description.against(None, thread, "waits for it where the lanes of the warp meet again");
            }
            match other {
                Some(w) if w.circle.is_some() => {
                    let site = w.circle.map(|circle| circle.site);
                    description.against(site, machine.thread(w.index, 0), "turns in a circle too")
                }
                Some(w) => description.against(w.waits, machine.thread(w.index, 0), "waits here"),
                None => description,
            }
        });
        true
    }

    /// The block's warps have met, for the `count`th time. Whether they do so for ever; then that is reported.
    pub fn met_again(&mut self, search: &mut Search, warps: &mut [Warp], count: u64) -> bool {
        if count <= search.next || search.turn(warps, count, || self.hash()).is_none() {
            return false;
        }
        let site = warps.iter().find_map(|w| w.waits).unwrap_or_default();
        let reads = self.seen(|machine| {
            for _ in 0..search.turns {
                warps.iter_mut().filter(|w| !w.ended).for_each(|w| machine.warp::<WATCHED>(w));
            }
        });
        if let Some(warp) = warps.iter().find(|w| !w.ended) {
            self.tell_livelock(site, warp, reads, |_, description| description);
        }
        true
    }

    /// What is read while `run` runs what has run before; what is found then was, or is none.
    fn seen(&mut self, run: impl FnOnce(&mut Self)) -> Reads {
        let before = std::mem::replace(&mut self.watch, Watch::Reads(Reads::default()));
        let found = std::mem::replace(&mut self.findings, Findings::new(self.program, &self.options));
        run(self);
        (self.findings, self.stopped) = (found, false);
        match std::mem::replace(&mut self.watch, before) {
            Watch::Reads(reads) => reads,
            _ => unreachable!("who looks on stays"),
        }
    }

    fn tell_livelock(
        &mut self,
        site: Pc,
        warp: &Warp,
        reads: Reads,
        against: impl FnOnce(&Self, Description) -> Description,
    ) {
        let Reads { all, stored } = reads;
        let others: Vec<_> = all.into_values().filter(|(_, place, _)| !stored.contains(place)).collect();
        let say = |(object, _, held): &(Object, Place, String)| {
            format!("element {} of `{}`, which is {held}", object.element.unwrap_or(0), object.name)
        };
        let mut named: Vec<String> = others.iter().map(say).collect();
        named.sort();
        named.dedup();
        let more = named.len().saturating_sub(NAMED);
        let mut what = named[..named.len().min(NAMED)].join(", and ");
        if more > 0 {
            what += &format!(", and {more} more");
        }
        let whoever = match self.waiting {
            0 => "no thread that can still run changes it".to_string(),
            n => format!(
                "who could is perhaps among the {n} blocks that have not begun, and need not before this one ends"
            ),
        };
        let message = match named.is_empty() {
            true => "a loop that cannot end: a turn of it changes nothing".to_string(),
            false => format!("a loop that cannot end: it reads {what}, and {whoever}"),
        };
        let object = if named.len() == 1 { others.into_iter().next().map(|(object, ..)| object) } else { None };
        let mask = if warp.mask == 0 { 1 } else { warp.mask };
        self.report(Check::Livelock, site, warp.index, mask, |machine, _| {
            let description = Description { object, ..Description::new(message) };
            against(machine, description)
        });
        self.stopped = true;
    }

    /// Sees what the instruction at `site` reads.
    pub fn see_reads(&mut self, reads: &mut Reads, site: Pc, warp: &Warp, mask: u32) {
        let code = &self.program.code;
        let (access, stores) = match code.insts[site as usize] {
            Inst::Load(i) => (&code.accesses[i as usize], false),
            Inst::Store(i) => (&code.accesses[i as usize], true),
            Inst::Atomic(i) => (&code.atomics[i as usize].access, false),
            _ => return,
        };
        if reads.all.contains_key(&site) {
            return;
        }
        self.each_part(site, warp, mask, access, |machine, part| {
            let buffer = if let Target::Buffer(b) = part.target { Some(b) } else { None };
            if stores {
                return reads.stored.extend(lanes_of(part.lanes).map(|lane| (buffer, part.offset[lane])));
            }
            if buffer.is_some_and(|b| !machine.buffers[b].mutable) || part.lanes == 0 {
                return;
            }
            let offset = part.offset[part.lanes.trailing_zeros() as usize];
            let object = machine.object(part.target, offset, access);
            let held = value(access.element, word(machine.contents(part.target), offset, access.element));
            reads.all.entry(site).or_insert((object, (buffer, offset), held));
        });
    }
}
