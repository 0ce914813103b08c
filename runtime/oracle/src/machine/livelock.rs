//! Detection of infinite loops: iterations that change nothing.
//!
//! The next step of a warp is determined by its registers, its masks and memory. If iterations of a
//! loop leave all of these unchanged, later ones do too, unless another thread changes memory. A
//! warp in such a loop therefore yields to the block's other warps, which run concurrently on a
//! device. When all remaining warps are in such loops and memory is unchanged since each was found,
//! no thread can change it any more. Blocks that have not begun need not run before this one ends.
//! In a small launch, all blocks are sure to be resident at once: then the remaining blocks run
//! [`interleaved`](crate::machine::interleaved) with this one. The same search covers the warps of
//! a block from barrier to barrier.
//!
//! A saved state is compared with the states after later iterations. The saved state is replaced at
//! doubling intervals (R. P. Brent, *An Improved Monte Carlo Factorization Algorithm*, 1980), so a
//! loop that does end pays almost nothing. Registers are compared first, then memory by its hash.

use crate::Checks;
use crate::check::Check;
use crate::code::frame::{FULL, Row, lanes_of};
use crate::code::{Inst, MaskSlot, Pc};
use crate::machine::async_copy::Copies;
use crate::machine::describe::DescribedTarget;
use crate::machine::memory::word;
use crate::machine::observer::Observer;
use crate::machine::{Machine, OBSERVED_TIER, Warp};
use crate::report::{Description, Findings, Object, Thread};
use kernel_dsl_compiler::Target as GpuTarget;
use runtime_simt::number::value;
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
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

/// The number of polls from one search to the next where blocks run interleaved.
const INTERLEAVED_SEARCH_PERIOD: u32 = 1 << 10;

/// The number of polls in each search where blocks run interleaved. Between these polls, the warp
/// does not yield.
const INTERLEAVED_SEARCH_POLLS: u32 = 1 << 6;

/// The number of barriers of a block before the first check.
const FIRST_SEARCH_BARRIER: u64 = 1 << 10;

/// The number of barriers that are compared with a saved state at first.
const MIN_COMPARED_BARRIERS: u64 = 8;

/// The maximum number of barriers in the repeated iteration, whose reads a report names.
const MAX_REPEATED_BARRIERS: usize = 8;

/// The maximum number of elements that a report names.
const MAX_NAMED_ELEMENTS: usize = 3;

/// The part of a report that states that nothing can end a wait.
const NO_OTHER_THREAD_TEXT: &str = "no thread that can still run changes it";

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
                return None;
            }
            let searched =
                warp.idle % INTERLEAVED_SEARCH_PERIOD >= INTERLEAVED_SEARCH_PERIOD - INTERLEAVED_SEARCH_POLLS;
            if !self.interleaved || !searched {
                return None;
            }
            search.next = search.next.min(count - 1);
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

    /// Reports a livelock: no thread can change the elements that the looping warps read.
    /// `elsewhere` is a warp of another block in a loop without changes.
    pub fn report_looping_warps(&mut self, warps: &mut [Warp], elsewhere: Option<(Pc, Thread)>) {
        let Some((i, cycle)) = warps.iter().enumerate().find_map(|(i, w)| Some((i, w.cycle?))) else { return };
        let reads = self.observe_reads(warps, |machine, warps| {
            machine.warp::<OBSERVED_TIER>(&mut warps[i]);
            // The iteration continues after a barrier of the block that all other warps wait at.
            let block_sync = |warp: &Warp| {
                warp.ended
                    || warp
                        .waits
                        .is_some_and(|site| matches!(machine.program.code.insts[site as usize], Inst::BlockSync))
            };
            for _ in 0..MAX_REPEATED_BARRIERS {
                if warps[i].ended || !warps.iter().all(block_sync) {
                    break;
                }
                for warp in warps.iter_mut().filter(|warp| !warp.ended) {
                    warp.waits = None;
                    machine.warp::<OBSERVED_TIER>(warp);
                }
            }
        });
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
    }

    /// Returns whether blocks that have not begun could end the loops around the instruction at
    /// `site`. The loops must access buffers by atomic operations, and all blocks of the launch
    /// must be sure to be resident at once.
    pub fn polls_blocks(&self, site: Pc) -> bool {
        let code = &self.program.code;
        let communicates = |inst: &Inst| match inst {
            Inst::Atomic(i) => !code.atomics[*i as usize].access.place.is_shared(),
            Inst::Inline(_) => true,
            _ => false,
        };
        let body = |(end, inst): (usize, &Inst)| match inst {
            Inst::Again { body, .. } | Inst::Step { body, .. } | Inst::StepUniform { body, .. } => {
                Some(*body as usize..=end).filter(|body| body.contains(&(site as usize)))
            }
            _ => None,
        };
        let can_begin =
            self.waiting > 0 && !self.interleaved && self.setting.grid.block_count() <= self.resident_blocks();
        can_begin
            && code.insts.iter().enumerate().filter_map(body).any(|body| code.insts[body].iter().any(communicates))
    }

    /// Returns whether the block's warps repeat the same barriers forever, unless other blocks
    /// change memory. `count` is the number of barriers so far.
    pub fn repeats_at_barriers(&mut self, search: &mut Search, warps: &[Warp], count: u64) -> bool {
        count > search.next && search.end_iteration(warps, count, || self.hash()).is_some()
    }

    /// Reports the livelock of a block that repeats the same barriers forever.
    pub fn report_repeated_barriers(&mut self, search: &Search, warps: &mut [Warp]) {
        let site = warps.iter().find_map(|w| w.waits).unwrap_or_default();
        let reads = self.observe_reads(warps, |machine, warps| {
            for _ in 0..search.iterations {
                warps.iter_mut().filter(|w| !w.ended).for_each(|w| machine.warp::<OBSERVED_TIER>(w));
            }
        });
        if let Some(warp) = warps.iter().find(|w| !w.ended) {
            self.report_livelock(site, warp, reads, |_, description| description);
        }
    }

    /// Returns the elements that `run` reads when it repeats an iteration of `warps`. Findings of
    /// the repetition are dropped: the first execution has reported them.
    fn observe_reads(&mut self, warps: &mut [Warp], run: impl FnOnce(&mut Self, &mut [Warp])) -> Reads {
        if self.options.checks == Checks::Values {
            // The first execution has not recorded which variables it has written.
            warps.iter_mut().for_each(|warp| warp.written.fill(FULL));
        }
        if self.options.checks < Checks::All {
            // The repetition has every check, and the first execution has no order of accesses.
            self.order.begin(self.setting.grid.warp_count() as usize, self.epoch);
        }
        let reads = Rc::new(RefCell::new(Reads::default()));
        let before = self.observer.replace(Box::new(Rc::clone(&reads)));
        let found = std::mem::replace(
            &mut self.findings,
            Findings::new(self.program, self.options.limit, self.options.schedule),
        );
        run(self, warps);
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
        let resident = self.resident_blocks();
        let changed_by = match self.waiting {
            _ if others.iter().all(|(_, (buffer, _), _)| buffer.is_none()) => Cow::from(NO_OTHER_THREAD_TEXT),
            0 => NO_OTHER_THREAD_TEXT.into(),
            n => {
                let mut text = format!(
                    "the {n} blocks that could change it have not begun, and need not begin before this one ends"
                );
                if self.setting.grid.block_count() > resident {
                    let _ = write!(text, ": only up to {resident} blocks of this size are sure to be resident at once");
                }
                text.into()
            }
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
