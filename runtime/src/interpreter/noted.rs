//! Accesses held against shadow memory: whether they race, and whether what they load was stored.

use super::access::Action;
use super::address::Part;
use super::check::Check;
use super::code::{Access, Pc, Place};
use super::describe::Target;
use super::findings::Description;
use super::frame::{LANES, lanes_of};
use super::machine::{Machine, Warp};
use super::shadow::{By, Clock, Conflict, Life, Shadow, Stamp};

impl Machine<'_, '_> {
    /// Holds an access against shadow memory; a load of what was not stored is taken out.
    pub fn note(&mut self, action: Action, site: Pc, warp: &Warp, access: &Access, part: &mut Part) {
        let in_shared = part.target == Target::Shared;
        if let Target::Buffer(b) = part.target
            && self.buffers[b].duty.looks()
        {
            self.on_duty(action, site, warp, access, part, b);
        }
        let known = self.order.known(warp.index);
        let clock = Clock { across: !in_shared, known, ..self.clock(warp) };
        let shadow = match part.target {
            Target::Shared => &mut self.shared_shadow,
            Target::Buffer(b) if self.buffers[b].mutable => &mut self.buffers[b].shadow,
            Target::Buffer(_) => return,
        };
        // An atomic operation that hands over what a fence has released is handed over with it.
        let fenced = self.order.fenced(warp.index).filter(|epoch| *epoch >= self.met.max(warp.met));
        let epoch = fenced.filter(|_| matches!(action, Action::Atomic)).unwrap_or(self.epoch);
        let stamp = Stamp::new(epoch, site, warp.index * 32);
        let life = match (&access.place, action) {
            (_, Action::Poison) => Life::POISON,
            (Place::Shared { array, .. }, _) => warp.lives[self.program.code.lifetimes[*array as usize] as usize],
            _ => Life::default(),
        };
        let seen = match action {
            Action::Load => touch_all::<false>(shadow, clock, stamp, life, access, part),
            Action::Store | Action::Poison => touch_all::<true>(shadow, clock, stamp, life, access, part),
            Action::Atomic => touch_atomic(shadow, clock, stamp, life, access, part),
        };
        let apart = if in_shared { Check::SharedRace } else { Check::GlobalRace };
        for (check, Races { lanes, first }) in [(apart, seen.apart), (Check::WarpRace, seen.within_warp)] {
            let Some(conflict) = first else { continue };
            self.report(check, site, warp.index, lanes, |machine, lane| {
                let object = machine.object(part.target, part.offset[lane], access);
                let thread = machine.thread_at(conflict.stamp.epoch(), conflict.stamp.thread());
                let verb = match action {
                    Action::Load => "loads",
                    Action::Store => "stores",
                    Action::Atomic => "changes, atomically,",
                    Action::Poison => "begins a copy to",
                };
                let other = match conflict.by {
                    By::Load => "loads it",
                    By::Store => "stores it",
                    By::Atomic => "changes it atomically",
                };
                let (name, element) = (&object.name, object.element.unwrap_or(0));
                let message = format!(
                    "a race: this {verb} element {element} of `{name}`, another thread {other}, and nothing orders them"
                );
                Description::new(message).about(object).against(Some(conflict.stamp.site()), thread, other)
            });
        }
        if in_shared && matches!(action, Action::Load | Action::Atomic) && seen.uninitialised != 0 {
            self.report(Check::UninitialisedShared, site, warp.index, seen.uninitialised, |machine, lane| {
                let object = machine.object(part.target, part.offset[lane], access);
                let (name, element) = (&object.name, object.element.unwrap_or(0));
                let message =
                    format!("element {element} of `{name}` is loaded, and no thread of the block has stored it");
                Description::new(message).about(object)
            });
            // Such a load gives `Options::fill`, not what an earlier block left there.
            part.lanes &= !seen.uninitialised;
        }
    }

    /// Reports lanes that store different values to one element, and, where notes are asked for, such that store the same.
    pub fn same_element(&mut self, site: Pc, warp: &Warp, access: &Access, part: &Part) {
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
                Description::new(message).about(object)
            });
        }
        if let Some((first, second)) = sides {
            let description = |machine: &Self, _| {
                let object = machine.object(part.target, second.0, access);
                let (name, element) = (&object.name, object.element.unwrap_or(0));
                let message =
                    format!("lanes of one warp store different values to element {element} of `{name}` at once");
                let other = machine.thread(warp.index, first.1);
                Description::new(message).about(object).against(Some(site), other, "stores another value")
            };
            self.report(Check::StoreConflict, site, warp.index, bad, description);
        }
    }
}

/// What shadow memory says of an access.
#[derive(Default)]
struct Seen {
    /// With other blocks and warps.
    apart: Races,
    /// With other lanes of the warp.
    within_warp: Races,
    uninitialised: u32,
}

/// Lanes of an access that race.
#[derive(Clone, Copy, Default)]
struct Races {
    lanes: u32,
    /// The other side of the first of them.
    first: Option<Conflict>,
}

impl Seen {
    fn conflict(&mut self, clock: Clock<'_>, now: Stamp, conflict: Option<Conflict>) {
        let Some(found) = conflict else { return };
        let races = if clock.within_warp(found.stamp, now) { &mut self.within_warp } else { &mut self.apart };
        races.lanes |= 1 << (now.thread() % 32);
        races.first = races.first.or(conflict);
    }
}

/// Notes an atomic operation of every lane of `part`, each on one element. Among themselves they do not race.
fn touch_atomic(shadow: &mut Shadow, clock: Clock<'_>, stamp: Stamp, life: Life, access: &Access, part: &Part) -> Seen {
    let mut seen = Seen::default();
    for lane in lanes_of(part.lanes) {
        let now = stamp.thread_plus(lane as u32);
        for cell in shadow.cells(part.offset[lane], access.element.bytes()) {
            if !cell.initialised(clock) {
                seen.uninitialised |= 1 << lane;
            }
            seen.conflict(clock, now, cell.store_would(clock, now));
        }
        if !shadow.lives(part.offset[lane], access.element.bytes(), life) {
            seen.uninitialised |= 1 << lane;
        }
        shadow.note_atomic(part.offset[lane], access.element.bytes(), clock, now);
    }
    seen
}

/// Notes an access of every lane of `part`.
fn touch_all<const STORE: bool>(
    shadow: &mut Shadow,
    clock: Clock<'_>,
    stamp: Stamp,
    life: Life,
    access: &Access,
    part: &Part,
) -> Seen {
    let mut seen = Seen::default();
    let size = access.element.bytes();
    for lane in lanes_of(part.lanes) {
        let now = stamp.thread_plus(lane as u32);
        if STORE {
            shadow.live(part.offset[lane], access.bytes(), life);
        } else if !shadow.lives(part.offset[lane], access.bytes(), life) {
            seen.uninitialised |= 1 << lane;
        }
        for i in 0..u64::from(access.count) {
            for cell in shadow.cells(part.offset[lane] + i * u64::from(size), size) {
                if !STORE && !cell.initialised(clock) {
                    seen.uninitialised |= 1 << lane;
                }
                seen.conflict(clock, now, if STORE { cell.store(clock, now) } else { cell.load(clock, now) });
            }
            let conflict = shadow.atomic(part.offset[lane] + i * u64::from(size), size, clock, now);
            seen.conflict(clock, now, conflict);
        }
    }
    seen
}
