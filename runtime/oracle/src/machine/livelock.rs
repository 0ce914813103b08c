//! Detection of infinite loops: iterations that change nothing.
//!
//! The next step of a warp is determined by its registers, its masks and memory. If iterations of a
//! loop leave all of these unchanged, later ones do too, unless another thread changes memory. A
//! warp in such a loop therefore yields to the block's other warps, which run concurrently on a
//! device. When all remaining warps are in such loops and memory is unchanged since each was found,
//! no thread can change it any more. Blocks that have not begun need not run before this one ends.
//! The same search covers the warps of a block from barrier to barrier.
//!
//! A saved state is compared with the states after later iterations. The saved state is replaced at
//! doubling intervals (R. P. Brent, *An Improved Monte Carlo Factorization Algorithm*, 1980), so a
//! loop that does end pays almost nothing. Registers are compared first, then memory by its hash.

use crate::check::Check;
use crate::code::frame::{Row, lanes_of};
use crate::code::{Inst, MaskSlot, Pc};
use crate::machine::async_copy::Copies;
use crate::machine::describe::DescribedTarget;
use crate::machine::memory::word;
use crate::machine::observer::Observer;
use crate::machine::{Machine, OBSERVED, Warp};
use crate::report::{Description, Findings, Object, Thread};
use kernel_dsl_compiler::Target as GpuTarget;
use runtime_simt::number::value;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hasher};
use std::rc::Rc;

/// The number of warp instructions before the first check of a warp, counted since it last resumed.
const FIRST_SEARCH_INSTRUCTION: u64 = 1 << 14;

/// The number of iterations that are compared with a saved state at first. The number doubles with
/// the number of instructions.
const MIN_COMPARED_ITERATIONS: u64 = 32;

/// The number of atomic operations without effect after which a warp spins. The polls of a spinning
/// warp are not points at which to preempt it.
pub const MAX_SPIN_ATOMICS: u32 = 4;

/// The number of atomic operations without effect after which a warp yields to others at the end of
/// each iteration. In a loop that counts its polls, no state repeats, and the warps that it waits
/// for must run. The number is large, so that [`Search`] first finds loops that do not count.
const MAX_IDLE_ATOMICS: u32 = 1 << 14;

/// The number of atomic operations without effect after which a warp counts as waiting for others.
const MAX_WAITING_POLLS: u32 = 1 << 18;

/// The limit that replaces [`MAX_WAITING_POLLS`] where blocks run interleaved, because a warp then
/// polls only once in each of its time slices.
const MAX_INTERLEAVED_POLLS: u32 = 1 << 16;

/// The number of barriers of a block before the first check.
const FIRST_SEARCH_BARRIER: u64 = 1 << 10;

/// The number of barriers that are compared with a saved state at first.
const MIN_COMPARED_BARRIERS: u64 = 8;

/// The maximum number of elements that a report names.
const MAX_NAMED_ELEMENTS: usize = 3;

/// The state that determines the next steps of a warp, except for memory.
#[derive(Clone)]
struct WarpProgress {
    pc: Pc,
    mask: u32,
    live: u32,
    rows: Vec<Row>,
    slots: Vec<MaskSlot>,
    written: Vec<u32>,
    copies: Copies,
}

impl WarpProgress {
    fn of(warp: &Warp) -> WarpProgress {
        let Warp { pc, mask, live, rows, slots, written, copies, .. } = warp;
        WarpProgress {
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

/// A search for a repeated state.
#[derive(Default)]
pub struct Search {
    /// The time of the next check, in instructions or barriers.
    pub next: u64,
    /// The number of iterations in the window of the check.
    window: u64,
    /// Iterations left in the window.
    left: u64,
    /// The number of iterations since the state was saved.
    iterations: u64,
    kept: Option<Vec<WarpProgress>>,
    /// The hash of memory at the first repetition of the saved state.
    memory: Option<u64>,
}

/// A loop whose iterations change nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cycle {
    /// The site at which the loop was found.
    pub site: Pc,
    /// The hash of the memory contents.
    pub memory: u64,
}

impl Search {
    /// Returns the search for a warp that resumes. With `now`, the search begins at once, because
    /// the warp was found in an unchanged state before.
    pub fn of_instructions(now: bool) -> Search {
        Search {
            next: if now { 0 } else { FIRST_SEARCH_INSTRUCTION },
            window: MIN_COMPARED_ITERATIONS,
            ..Search::default()
        }
    }

    /// Returns the search for a block that begins.
    pub fn of_barriers() -> Search {
        Search { next: FIRST_SEARCH_BARRIER, window: MIN_COMPARED_BARRIERS, ..Search::default() }
    }

    /// Compares the warps at the end of an iteration, at `time`. Returns the hash of memory if the
    /// iteration has changed nothing.
    fn end_iteration(&mut self, warps: &[Warp], time: u64, memory: impl FnOnce() -> u64) -> Option<u64> {
        let Some(kept) = &self.kept else {
            self.kept = Some(warps.iter().map(WarpProgress::of).collect());
            (self.memory, self.left, self.iterations) = (None, self.window, 0);
            return None;
        };
        self.left -= 1;
        self.iterations += 1;
        if kept.iter().zip(warps).all(|(state, warp)| state.is(warp)) {
            let now = memory();
            match self.memory {
                Some(before) if before == now => return Some(now),
                // The state repeats but memory differs: a thread changes it, for example a counter.
                Some(_) => self.left = 0,
                None => (self.memory, self.left, self.iterations) = (Some(now), self.left.max(self.iterations + 1), 0),
            }
        }
        if self.left == 0 {
            (self.kept, self.next, self.window) = (None, time.max(1) * 2, self.window * 2);
        }
        None
    }
}

/// The elements that a loop reads and others could change.
#[derive(Default)]
pub struct Reads {
    /// By instruction: the element that its first lane reads, the element's location, and its
    /// value.
    all: BTreeMap<Pc, (Object, MemoryPlace, String)>,
    /// The elements that the loop itself stores.
    stored: BTreeSet<MemoryPlace>,
}

/// A byte of a buffer or of the block's shared memory (`None`).
type MemoryPlace = (Option<usize>, u64);

impl Observer for Rc<RefCell<Reads>> {
    fn before(&mut self, machine: &mut Machine<'_, '_>, site: Pc, warp: &Warp, mask: u32) {
        machine.see_reads(&mut self.borrow_mut(), site, warp, mask);
    }
}

impl Machine<'_, '_> {
    /// Checks a warp at the end of an iteration. Returns the time of the next check, or `None` if
    /// the warp must not continue. `count` is the number of instructions since it last resumed.
    #[cold]
    pub fn check_iteration(&mut self, search: &mut Search, site: Pc, warp: &mut Warp, count: u64) -> Option<u64> {
        if self.stopped || self.setting.budget.is_spent() {
            self.stopped = true;
            return None;
        }
        let left = self.fuel_left();
        if count > left || self.options.is_late() {
            self.exhausted(site, warp.index, warp.mask);
            return None;
        }
        if warp.mask != 0 && warp.idle >= self.max_idle_atomics() {
            let polls = if self.interleaved { MAX_INTERLEAVED_POLLS } else { MAX_WAITING_POLLS };
            // From sm_70 on, lanes that have left the loop continue to run.
            let parts = self.program.target >= GpuTarget::SM_70 && warp.live & !warp.mask != 0;
            if warp.idle >= polls || parts {
                warp.cycle = Some(Cycle { site, memory: self.hash() });
            }
            return None;
        }
        // A loop that has ended for all lanes has no next iteration.
        if warp.mask != 0
            && count > search.next
            && let Some(memory) = search.end_iteration(std::slice::from_ref(warp), count, || self.hash())
        {
            warp.cycle = Some(Cycle { site, memory });
            return None;
        }
        let clock = count.saturating_add(self.options.instructions_to_clock());
        Some(if search.kept.is_some() { 0 } else { search.next.min(left).min(clock) })
    }

    /// Returns the number of atomic operations without effect after which a warp yields to others.
    #[inline(always)]
    pub fn max_idle_atomics(&self) -> u32 {
        if self.interleaved { self.points.patience } else { MAX_IDLE_ATOMICS }
    }

    /// Returns whether memory has changed since one of `cycles` was found.
    pub fn has_changed_since(&self, cycles: &[Cycle]) -> bool {
        let now = self.hash();
        cycles.iter().any(|cycle| cycle.memory != now)
    }

    /// Returns a hash of all memory that the launch may write.
    fn hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.buffers.iter().filter(|buffer| buffer.mutable).for_each(|buffer| hasher.write(buffer.bytes.get()));
        hasher.write(&self.contents(DescribedTarget::Shared)[..self.setting.shared_bytes as usize]);
        hasher.finish()
    }

    /// Returns whether no thread can change the elements that the looping warps read. Reports a
    /// livelock if so. `elsewhere` is a warp of another block in a loop without changes.
    pub fn livelock(&mut self, warps: &mut [Warp], elsewhere: Option<(Pc, Thread)>) -> bool {
        let cycles: Vec<Cycle> = warps.iter().filter_map(|w| w.cycle).collect();
        if self.has_changed_since(&cycles) {
            return false;
        }
        let Some((i, cycle)) = warps.iter().enumerate().find_map(|(i, w)| Some((i, w.cycle?))) else { return false };
        let reads = self.observe_reads(|machine| machine.warp::<OBSERVED>(&mut warps[i]));
        let warp = &warps[i];
        let outside = warp.live & !warp.mask;
        let other = warps.iter().find(|w| w.index != warp.index && (w.cycle.is_some() || w.waits.is_some()));
        self.report_livelock(cycle.site, warp, reads, |machine, description| {
            if outside != 0 {
                let lane = outside.trailing_zeros() as usize;
                let thread = machine.thread(warp.index, lane);
                return description.against(None, thread, "waits for it where the lanes of the warp reconverge");
            }
            match other {
                Some(w) if w.cycle.is_some() => {
                    let site = w.cycle.map(|cycle| cycle.site);
                    description.against(site, machine.thread(w.index, 0), "is in an endless loop too")
                }
                Some(w) => description.against(w.waits, machine.thread(w.index, 0), "waits here"),
                None => match elsewhere {
                    Some((site, thread)) => description.against(Some(site), thread, "is in an endless loop too"),
                    None => description,
                },
            }
        });
        true
    }

    /// Returns whether the block's warps repeat the same barriers forever, and reports the
    /// livelock. `count` is the number of barriers so far.
    pub fn repeats_at_barriers(&mut self, search: &mut Search, warps: &mut [Warp], count: u64) -> bool {
        if count <= search.next || search.end_iteration(warps, count, || self.hash()).is_none() {
            return false;
        }
        let site = warps.iter().find_map(|w| w.waits).unwrap_or_default();
        let reads = self.observe_reads(|machine| {
            for _ in 0..search.iterations {
                warps.iter_mut().filter(|w| !w.ended).for_each(|w| machine.warp::<OBSERVED>(w));
            }
        });
        if let Some(warp) = warps.iter().find(|w| !w.ended) {
            self.report_livelock(site, warp, reads, |_, description| description);
        }
        true
    }

    /// Returns the elements that `run` reads when it repeats an iteration. Findings of the
    /// repetition are dropped: the first execution has reported them.
    fn observe_reads(&mut self, run: impl FnOnce(&mut Self)) -> Reads {
        let reads = Rc::new(RefCell::new(Reads::default()));
        let before = self.observer.replace(Box::new(Rc::clone(&reads)));
        let found = std::mem::replace(
            &mut self.findings,
            Findings::new(self.program, self.options.limit, self.options.schedule),
        );
        run(self);
        (self.findings, self.stopped) = (found, false);
        self.observer = before;
        reads.take()
    }

    fn report_livelock(
        &mut self,
        site: Pc,
        warp: &Warp,
        reads: Reads,
        against: impl FnOnce(&Self, Description) -> Description,
    ) {
        let Reads { all, stored } = reads;
        let others: Vec<_> = all.into_values().filter(|(_, place, _)| !stored.contains(place)).collect();
        let say = |(object, _, held): &(Object, MemoryPlace, String)| {
            format!("element {} of `{}`, which is {held}", object.element.unwrap_or(0), object.name)
        };
        let mut named: Vec<String> = others.iter().map(say).collect();
        named.sort();
        named.dedup();
        let more = named.len().saturating_sub(MAX_NAMED_ELEMENTS);
        let mut what = named[..named.len().min(MAX_NAMED_ELEMENTS)].join(", and ");
        if more > 0 {
            what += &format!(", and {more} more");
        }
        let changed_by = match self.waiting {
            0 => "no thread that can still run changes it".to_string(),
            n => format!("the {n} blocks that could change it have not begun, and need not begin before this one ends"),
        };
        let message = match named.is_empty() {
            true => "an endless loop: its iterations change nothing".to_string(),
            false => format!("a deadlock: this loop waits for {what}, and {changed_by}"),
        };
        let object = if named.len() == 1 { others.into_iter().next().map(|(object, ..)| object) } else { None };
        let mask = if warp.mask == 0 { 1 } else { warp.mask };
        self.report(Check::Livelock, site, warp.index, mask, |machine, _| {
            let description = Description { object, ..Description::new(message) };
            against(machine, description)
        });
        self.stopped = true;
    }

    /// Records the elements that the instruction at `site` reads.
    fn see_reads(&mut self, reads: &mut Reads, site: Pc, warp: &Warp, mask: u32) {
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
            let buffer = if let DescribedTarget::Buffer(b) = part.target { Some(b) } else { None };
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
