//! Checks of accesses against shadow memory: races and uninitialized loads.

use crate::check::Check;
use crate::code::frame::{LANES, lanes_of};
use crate::code::{AccessLocation, AccessOp, Inst, Pc};
use crate::machine::access::AccessAction;
use crate::machine::address::TargetLanes;
use crate::machine::describe::DescribedTarget;
use crate::machine::memory::word;
use crate::machine::shadow::{By, Clock, ConflictingAccess, Life, Shadow, Stamp, TimeSlice};
use crate::machine::{CheckHits, Machine, Warp};
use crate::report::{AccessValues, Description};
use kernel_dsl_compiler::ir;
use runtime_simt::number::short;

impl Machine<'_, '_> {
    /// Checks an access against shadow memory, and suppresses uninitialized loads.
    pub fn check_access(
        &mut self,
        action: AccessAction,
        site: Pc,
        warp: &Warp,
        access: &AccessOp,
        part: &mut TargetLanes,
    ) {
        let in_shared = part.target == DescribedTarget::Shared;
        if let DescribedTarget::Buffer(b) = part.target
            && self.buffers[b].contract.needs_check(action)
        {
            self.check_contract(action, site, warp, access, part, b);
        }
        let known = self.order.known(warp.index);
        let slices: &[TimeSlice] = if self.interleaved && !in_shared { &self.history } else { &[] };
        let clock = Clock { counts_earlier_blocks: !in_shared, known, slices, ..self.clock(warp) };
        let shadow = match part.target {
            DescribedTarget::Shared => &mut self.shared_shadow,
            DescribedTarget::Buffer(b) if self.buffers[b].mutable => &mut self.buffers[b].shadow,
            DescribedTarget::Buffer(_) => return,
        };
        // An atomic operation after a fence releases accesses. Such an operation counts as made at
        // the fence, so an acquire orders the operation itself too.
        let fenced = self.order.fenced(warp.index).filter(|epoch| *epoch >= self.barrier_epoch.max(warp.barrier_epoch));
        let epoch = fenced.filter(|_| action.is_atomic()).unwrap_or(self.epoch);
        let stamp = Stamp::new(epoch, site, warp.index * 32);
        let life = match (&access.place, action) {
            (_, AccessAction::MarkUndef) => Life::UNDEF,
            (AccessLocation::Shared { array, .. }, _) => {
                warp.lives[self.program.code.lifetimes[*array as usize] as usize]
            }
            _ => Life::default(),
        };
        let certain = shadow.holds_recorded_values(access.element.bytes());
        let begun = copies_in_flight(&self.program.code.insts, shadow, clock, stamp, access, part, action);
        let seen = match action {
            AccessAction::Load => touch_all::<false>(shadow, clock, stamp, life, access, part),
            AccessAction::Store | AccessAction::MarkUndef => {
                touch_all::<true>(shadow, clock, stamp, life, access, part)
            }
            AccessAction::Atomic | AccessAction::AtomicLoad => {
                touch_atomic::<false>(shadow, clock, stamp, life, access, part)
            }
            AccessAction::AtomicStore => touch_atomic::<true>(shadow, clock, stamp, life, access, part),
        };
        let between_warps = if in_shared { Check::SharedRace } else { Check::GlobalRace };
        for (check, races) in [(between_warps, seen.between_warps), (Check::WarpRace, seen.within_warp)] {
            for race in races.all {
                self.race(action, check, site, warp, access, part, &race, certain);
            }
        }
        if let Some((lanes, other)) = begun {
            self.over_a_copy(action, site, warp, access, part, lanes, other);
        }
        if in_shared && action.reads() && seen.uninitialized != 0 {
            let (target, clock) = (part.target, self.clock(warp));
            let coming = |lane| self.shared_shadow.copy_in_flight(part.offset[lane], access.bytes(), clock).is_some();
            let coming = lanes_of(seen.uninitialized).next().is_some_and(coming);
            self.report(Check::UninitializedShared, site, warp.index, seen.uninitialized, |machine, lane| {
                let object = machine.object(target, part.offset[lane], access);
                let (name, element) = (&object.name, object.element.unwrap_or(0));
                let why = match coming {
                    true => "a copy to it is still in flight",
                    false => "no thread of the block has stored it",
                };
                let message = format!("element {element} of `{name}` is loaded, and {why}");
                Description::new(message).about(object).with(machine.filled(action, access))
            });
            // An uninitialized load returns `Options::fill`, not data of an earlier block.
            part.lanes &= !seen.uninitialized;
        }
    }

    /// Reports an access that races, and the other access.
    #[cold]
    #[allow(clippy::too_many_arguments)]
    fn race(
        &mut self,
        action: AccessAction,
        check: Check,
        site: Pc,
        warp: &Warp,
        access: &AccessOp,
        part: &TargetLanes,
        race: &Race,
        certain: bool,
    ) {
        let ConflictingAccess { stamp, by, latest } = race.with;
        let hits = CheckHits { count: race.lanes.count_ones(), warp: warp.index, first: 1 << race.lane };
        self.report_against(check, site, Some(stamp.site()), hits, |machine, lane| {
            let offset = part.offset[lane] + u64::from(race.scalar * access.element.bytes());
            let object = machine.object(part.target, offset, access);
            let thread = machine.thread_at(stamp.epoch(), stamp.thread());
            let verb = match action {
                AccessAction::Load => "loads",
                AccessAction::Store => "stores",
                AccessAction::Atomic => "changes, atomically,",
                AccessAction::AtomicLoad => "loads, atomically,",
                AccessAction::AtomicStore => "stores, atomically,",
                AccessAction::MarkUndef => "begins a copy to",
            };
            let other = match by {
                By::Load => "loads it",
                By::Store => "stores it",
                By::Atomic => match machine.program.code.atomic(stamp.site()).map(|atomic| atomic.operation) {
                    Some(ir::AtomicOperator::Load) => "loads it atomically",
                    Some(ir::AtomicOperator::Store) => "stores it atomically",
                    _ => "changes it atomically",
                },
            };
            let (name, element) = (&object.name, object.element.unwrap_or(0));
            let message = format!(
                "a race: this {verb} element {element} of `{name}`, another thread {other}, and nothing orders them"
            );
            // The bytes are stored after this check: memory still holds the old value.
            let held = Some(short(access.element, word(machine.contents(part.target), offset, access.element)));
            // The data of a copy is in no register.
            let register = access.values.get(race.scalar as usize);
            let value = register.map(|value| short(access.element, value.get(&warp.rows, lane)));
            let mut values = AccessValues::default();
            match (by, certain && latest) {
                (By::Store, true) => values.other_stored = held.clone(),
                (By::Load, true) => values.other_loaded = held.clone(),
                _ => {}
            }
            match action {
                AccessAction::Load | AccessAction::AtomicLoad => values.loads = held,
                AccessAction::Store | AccessAction::Atomic | AccessAction::AtomicStore | AccessAction::MarkUndef
                    if !(certain && latest) =>
                {
                    values.held = held
                }
                _ => {}
            }
            match action {
                AccessAction::Store | AccessAction::AtomicStore => values.stores = value,
                AccessAction::Atomic => values.operand = value,
                AccessAction::Load | AccessAction::AtomicLoad | AccessAction::MarkUndef => {}
            }
            Description::new(message).about(object).with(values).against(Some(stamp.site()), thread, other)
        });
    }

    /// Reports lanes that store to the destination of a copy in flight.
    #[cold]
    #[allow(clippy::too_many_arguments)]
    fn over_a_copy(
        &mut self,
        action: AccessAction,
        site: Pc,
        warp: &Warp,
        access: &AccessOp,
        part: &TargetLanes,
        lanes: u32,
        other: Stamp,
    ) {
        let hits = CheckHits { count: lanes.count_ones(), warp: warp.index, first: lanes };
        self.report_against(Check::UnfinishedCopy, site, Some(other.site()), hits, |machine, lane| {
            let object = machine.object(part.target, part.offset[lane], access);
            let thread = machine.thread_at(other.epoch(), other.thread());
            let (name, element) = (&object.name, object.element.unwrap_or(0));
            let what = match action {
                AccessAction::MarkUndef => "another copy begins to",
                _ => "this stores",
            };
            let message = format!("{what} element {element} of `{name}`, and a copy to it is still in flight");
            Description::new(message).about(object).against(Some(other.site()), thread, "begins the copy")
        });
    }

    /// Reports copies in flight of the running block's threads at its end.
    #[cold]
    pub fn end_copies(&mut self, warps: &[Warp]) {
        let code = &self.program.code;
        let mut begun: Vec<(Pc, u32, u32, [u64; LANES])> = Vec::new();
        for warp in warps {
            begun.extend(warp.copies.left().map(|(site, lanes, offset)| (site, warp.index, lanes, offset)));
        }
        let Some(first) = warps.first() else { return };
        for (stamp, offset) in self.shared_shadow.copies_in_flight(self.clock(first)) {
            let (site, lane) = (stamp.site(), stamp.thread() as usize % LANES);
            // Copies that bypass the registers are already in `begun`.
            if !matches!(code.insts.get(site as usize), Some(Inst::MarkUndef(_))) {
                continue;
            }
            let same = |b: &&mut (Pc, u32, u32, _)| (b.0, b.1) == (site, stamp.warp());
            match begun.iter_mut().find(same) {
                Some((_, _, lanes, offsets)) if *lanes >> lane & 1 == 0 => {
                    *lanes |= 1 << lane;
                    offsets[lane] = offset;
                }
                Some(_) => {}
                None => begun.push((site, stamp.warp(), 1 << lane, [offset; LANES])),
            }
        }
        for (site, warp, lanes, offsets) in begun {
            let access = match code.insts.get(site as usize) {
                Some(Inst::MarkUndef(i)) => &code.accesses[*i as usize],
                Some(Inst::CopyAsync(i)) => &code.copies[*i as usize].to,
                _ => continue,
            };
            self.report(Check::UnfinishedCopy, site, warp, lanes, |machine, lane| {
                let object = machine.object(DescribedTarget::Shared, offsets[lane], access);
                let (name, element) = (&object.name, object.element.unwrap_or(0));
                let message = format!(
                    "a copy to element {element} of `{name}` begins here, and the thread ends without waiting for it"
                );
                Description::new(message).about(object)
            });
        }
    }

    /// Returns the values of an access to uninitialized memory.
    pub fn filled(&self, action: AccessAction, access: &AccessOp) -> AccessValues {
        let filled = Some(short(access.element, self.options.filled(access.element)));
        match action {
            AccessAction::Load => AccessValues { loads: filled, ..AccessValues::default() },
            _ => AccessValues { held: filled, ..AccessValues::default() },
        }
    }

    /// Reports lanes that store different values to one element; with notes enabled, also lanes
    /// that store equal values.
    pub fn same_element(&mut self, site: Pc, warp: &Warp, access: &AccessOp, part: &TargetLanes) {
        let size = u64::from(access.bytes());
        let mut next = 0;
        if lanes_of(part.lanes).all(|l| part.offset[l] >= std::mem::replace(&mut next, part.offset[l] + size)) {
            return;
        }
        let mut stores: Vec<(u64, usize, u64)> = Vec::with_capacity(LANES);
        for lane in lanes_of(part.lanes) {
            for (i, from) in access.values.iter().enumerate() {
                let at = part.offset[lane] + u64::from(access.element.bytes()) * i as u64;
                stores.push((at, lane, from.get(&warp.rows, lane)));
            }
        }
        stores.sort_unstable();
        let (mut bad, mut sides, mut equal) = (0, None, 0);
        for pair in stores.windows(2) {
            let ([a, b], mine) = ([pair[0], pair[1]], pair[1].1);
            if a.0 == b.0 && a.2 != b.2 {
                bad |= 1 << mine;
                sides = Some(sides.unwrap_or((a, b)).min((a, b)));
            } else if a.0 == b.0 {
                equal |= 1 << mine;
            }
        }
        if self.options.notes && equal != 0 && bad == 0 {
            self.report(Check::EqualStores, site, warp.index, equal, |machine, lane| {
                let object = machine.object(part.target, part.offset[lane], access);
                let (name, element) = (&object.name, object.element.unwrap_or(0));
                let message =
                    format!("lanes of one warp store the same value to element {element} of `{name}` at once");
                let stores = access.values.first().map(|value| short(access.element, value.get(&warp.rows, lane)));
                Description::new(message).about(object).with(AccessValues { stores, ..AccessValues::default() })
            });
        }
        if let Some((first, second)) = sides {
            let description = |machine: &Self, _| {
                let object = machine.object(part.target, second.0, access);
                let (name, element) = (&object.name, object.element.unwrap_or(0));
                let message =
                    format!("lanes of one warp store different values to element {element} of `{name}` at once");
                let other = machine.thread(warp.index, first.1);
                let [stores, other_stored] = [second, first].map(|(.., bits)| Some(short(access.element, bits)));
                let values = AccessValues { stores, other_stored, ..AccessValues::default() };
                Description::new(message).about(object).with(values).against(Some(site), other, "stores another value")
            };
            self.report(Check::StoreConflict, site, warp.index, bad, description);
        }
    }
}

/// Returns the lanes of `part` that store to the destination of an earlier copy in flight, and the
/// first such copy. A copy through registers ends with a store by its thread, so a store by that
/// thread counts as the end of the copy.
fn copies_in_flight(
    insts: &[Inst],
    shadow: &Shadow,
    clock: Clock<'_>,
    stamp: Stamp,
    access: &AccessOp,
    part: &TargetLanes,
    action: AccessAction,
) -> Option<(u32, Stamp)> {
    let inst = |site: Pc| insts.get(site as usize);
    let lands = matches!(inst(stamp.site()), Some(Inst::CopyWait(_)));
    if action == AccessAction::Load || lands || !shadow.has_lives() {
        return None;
    }
    let (mut lanes, mut first) = (0, None);
    for lane in lanes_of(part.lanes) {
        let now = stamp.thread_plus(lane as u32);
        let Some(begun) = shadow.copy_in_flight(part.offset[lane], access.bytes(), clock) else { continue };
        let own = begun.thread() == now.thread() && matches!(inst(begun.site()), Some(Inst::MarkUndef(_)));
        if !own && !clock.unordered(begun, now) {
            lanes |= 1 << lane;
            first = first.or(Some(begun));
        }
    }
    first.map(|begun| (lanes, begun))
}

/// The result of checking an access against shadow memory.
#[derive(Default)]
struct RaceResult {
    /// Races with other blocks and warps.
    between_warps: Races,
    /// Races with other lanes of the warp.
    within_warp: Races,
    uninitialized: u32,
}

/// The races of an access with one kind of other access.
#[derive(Default)]
struct Races {
    /// Lanes that race.
    lanes: u32,
    all: Vec<Race>,
}

/// A race of an access with the accesses at one site.
struct Race {
    with: ConflictingAccess,
    /// Lanes that have no earlier race.
    lanes: u32,
    /// The first lane that races with the accesses at that site, and the index of the scalar.
    lane: usize,
    scalar: u32,
}

impl RaceResult {
    #[inline(always)]
    fn conflict(&mut self, clock: Clock<'_>, now: Stamp, scalar: u32, conflict: Option<ConflictingAccess>) {
        if let Some(found) = conflict {
            self.add(clock, now, scalar, found);
        }
    }

    #[cold]
    fn add(&mut self, clock: Clock<'_>, now: Stamp, scalar: u32, with: ConflictingAccess) {
        let races = if clock.within_warp(with.stamp, now) { &mut self.within_warp } else { &mut self.between_warps };
        let lane = now.thread() % 32;
        let new = 1 << lane & !races.lanes;
        races.lanes |= new;
        match races.all.iter_mut().find(|race| (race.with.stamp.site(), race.with.by) == (with.stamp.site(), with.by)) {
            Some(race) => race.lanes |= new,
            None => races.all.push(Race { with, lanes: new, lane: lane as usize, scalar }),
        }
    }
}

/// Records an atomic operation of every lane of `part`, each on one element. The lanes of `part` do
/// not race with each other.
fn touch_atomic<const STORE: bool>(
    shadow: &mut Shadow,
    clock: Clock<'_>,
    stamp: Stamp,
    life: Life,
    access: &AccessOp,
    part: &TargetLanes,
) -> RaceResult {
    let mut seen = RaceResult::default();
    for lane in lanes_of(part.lanes) {
        let now = stamp.thread_plus(lane as u32);
        let mut known = STORE;
        if STORE {
            shadow.live(part.offset[lane], access.bytes(), life);
        } else {
            known = shadow.stored_atomically(part.offset[lane], access.element.bytes(), clock);
        }
        for cell in shadow.cells(part.offset[lane], access.element.bytes()) {
            if !known && !cell.initialized(clock) {
                seen.uninitialized |= 1 << lane;
            }
            seen.conflict(clock, now, 0, cell.store_would(clock, now));
        }
        for with in shadow.further_loads(part.offset[lane], access.element.bytes(), clock, now) {
            seen.add(clock, now, 0, with);
        }
        if !shadow.lives(part.offset[lane], access.element.bytes(), life) {
            seen.uninitialized |= 1 << lane;
        }
        shadow.note_atomic(part.offset[lane], access.element.bytes(), clock, now, STORE);
    }
    seen
}

/// Records an access of every lane of `part`.
fn touch_all<const STORE: bool>(
    shadow: &mut Shadow,
    clock: Clock<'_>,
    stamp: Stamp,
    life: Life,
    access: &AccessOp,
    part: &TargetLanes,
) -> RaceResult {
    let mut seen = RaceResult::default();
    let size = access.element.bytes();
    let among_fences = shadow.is_among_fences();
    for lane in lanes_of(part.lanes) {
        let now = stamp.thread_plus(lane as u32);
        if STORE {
            shadow.live(part.offset[lane], access.bytes(), life);
        } else if !shadow.lives(part.offset[lane], access.bytes(), life) {
            seen.uninitialized |= 1 << lane;
        }
        for i in 0..access.count {
            let offset = part.offset[lane] + u64::from(i * size);
            let mut first = None;
            let mut unknown = false;
            for cell in shadow.cells(offset, size) {
                unknown |= !STORE && !cell.initialized(clock);
                let conflict = match STORE {
                    true => cell.store(clock, now),
                    false if among_fences => cell.load_would(clock, now),
                    false => cell.load(clock, now),
                };
                seen.conflict(clock, now, i, conflict);
                if let (true, Some(found)) = (STORE, conflict) {
                    let further =
                        cell.further_loads(clock, now, found).filter(|with| clock.same_scope(*with, found, now));
                    further.for_each(|with| seen.add(clock, now, i, with));
                    first = first.or(conflict);
                }
            }
            if unknown && !shadow.stored_atomically(offset, size, clock) {
                seen.uninitialized |= 1 << lane;
            }
            if among_fences && STORE {
                for with in shadow.further_loads(offset, size, clock, now) {
                    if clock.same_scope(with, *first.get_or_insert(with), now) {
                        seen.add(clock, now, i, with);
                    }
                }
            } else if among_fences {
                shadow.note_load_among_fences(offset, size, clock, now);
            }
            let conflict = shadow.atomic(offset, size, clock, now);
            seen.conflict(clock, now, i, conflict);
        }
    }
    seen
}
