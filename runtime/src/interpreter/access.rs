//! Loads and stores of a warp.
//!
//! An access goes in steps: addresses of all lanes; indices against extents; addresses against the buffer that they
//! were computed from; alignment; shadow memory; and then the bytes. Each step takes the lanes out that fail it, so that
//! only bytes inside a buffer are ever touched, whatever the checks.

use super::check::Check;
use super::code::{Access, Dim, Offset, Origin, Pc, Place, SharedDim, Within};
use super::describe::Target;
use super::findings::Description;
use super::frame::{FULL, LANES, Register, Row, Word, lanes_of};
use super::lanes::{mask, versions};
use super::machine::{ACCESSES, ALL, Machine, Warp};
use super::memory::{Bytes, argument_at};
use super::shadow::{By, Clock, Conflict, Life, Shadow, Stamp};
use kernel_dsl::compiler::Scalar;
use kernel_dsl::compiler::ir::{Binary, WIDEST};

versions! {
    /// Adds `index` · `stride` · `size` to each address; rows, and `None` is a stride of 1.
    fn add_term(rows: &[Row], address: &mut [u64; LANES], index: u32, stride: Option<u32>, size: u32);
    /// Adds `index` · `factor` to each address.
    fn add_scaled(rows: &[Row], address: &mut [u64; LANES], index: u32, factor: u64);
    /// Lanes where `index` + `n` exceeds `extent`.
    fn beyond(rows: &[Row], index: u32, extent: u32, n: u32) -> u32;
    /// As `beyond`, of a constant extent.
    fn beyond_constant(rows: &[Row], index: u32, extent: u32, n: u32) -> u32;
    /// Takes `base` off each address; lanes where the result exceeds `last`.
    fn outside(address: &mut [u64; LANES], base: u64, last: u64) -> u32;
    /// Lanes where `base` + `offset` has one of the `low` bits.
    fn misaligned(offset: &[u64; LANES], base: u64, low: u64) -> u32;
}

#[inline(always)]
fn add_term(rows: &[Row], address: &mut [u64; LANES], index: u32, stride: Option<u32>, size: u32) {
    let index = u32::lanes(rows, index as usize);
    match stride {
        Some(stride) => {
            let stride = u32::lanes(rows, stride as usize);
            for l in 0..LANES {
                let term = (u64::from(index[l]) * u64::from(stride[l])).wrapping_mul(u64::from(size));
                address[l] = address[l].wrapping_add(term);
            }
        }
        None => {
            for l in 0..LANES {
                address[l] = address[l].wrapping_add(u64::from(index[l]) * u64::from(size));
            }
        }
    }
}

#[inline(always)]
fn add_scaled(rows: &[Row], address: &mut [u64; LANES], index: u32, factor: u64) {
    let index = u32::lanes(rows, index as usize);
    for l in 0..LANES {
        address[l] = address[l].wrapping_add(u64::from(index[l]).wrapping_mul(factor));
    }
}

#[inline(always)]
fn beyond(rows: &[Row], index: u32, extent: u32, n: u32) -> u32 {
    let (index, extent) = (u32::lanes(rows, index as usize), u32::lanes(rows, extent as usize));
    mask(|l| extent[l] < n || index[l] > extent[l] - n)
}

#[inline(always)]
fn beyond_constant(rows: &[Row], index: u32, extent: u32, n: u32) -> u32 {
    let Some(last) = extent.checked_sub(n) else { return FULL };
    let index = u32::lanes(rows, index as usize);
    mask(|l| index[l] > last)
}

#[inline(always)]
fn outside(address: &mut [u64; LANES], base: u64, last: u64) -> u32 {
    for address in address.iter_mut() {
        *address = address.wrapping_sub(base);
    }
    mask(|l| address[l] > last)
}

#[inline(always)]
fn misaligned(offset: &[u64; LANES], base: u64, low: u64) -> u32 {
    let any = offset.iter().fold(0, |any, o| any | base.wrapping_add(*o) & low);
    if any == 0 { 0 } else { mask(|l| base.wrapping_add(offset[l]) & low != 0) }
}

/// What an access does.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Load,
    Store,
    Atomic,
    /// A store of nothing.
    Poison,
}

/// The lanes of an access that go to one target.
pub struct Part {
    pub target: Target,
    /// Bytes from the target's beginning.
    pub offset: [u64; LANES],
    pub lanes: u32,
}

impl Access {
    /// Bytes of all its scalars.
    pub fn bytes(&self) -> u32 {
        self.element.bytes() * self.count
    }

    /// What the address must be a multiple of: the whole access if that is a power of two, as PTX has it, and goes in one.
    fn alignment(&self) -> u32 {
        if self.bytes().is_power_of_two() { self.bytes().min(WIDEST) } else { self.element.bytes() }
    }
}

impl Machine<'_, '_> {
    /// Moves an address.
    pub fn offset<const TIER: u8>(&mut self, site: Pc, warp: &mut Warp, mask: u32, offset: &Offset) {
        for &(index, stride) in &offset.terms {
            if TIER >= ACCESSES
                && offset.checked
                && let Some(stride) = stride
            {
                let bad = self.simd.overflows(&warp.rows, Binary::Mul, Scalar::Usize, index, stride) & mask;
                if bad != 0 {
                    self.report(Check::UsizeOverflow, site, warp.index, bad, |_, lane| {
                        let at = |row| u32::lanes(&warp.rows, row as usize)[lane];
                        let (index, stride) = (at(index), at(stride));
                        Description::new(format!("`{index} * {stride}` overflows `usize` where a view moves"))
                    });
                }
            }
        }
        let base = offset.base.row as usize;
        let mut address =
            if offset.base.wide { *u64::lanes(&warp.rows, base) } else { u32::lanes(&warp.rows, base).map(u64::from) };
        for &(index, stride) in &offset.terms {
            self.simd.add_term(&warp.rows, &mut address, index, stride, offset.size);
        }
        let to = offset.to.row as usize;
        if offset.to.wide {
            *u64::lanes_mut(&mut warp.rows, to) = address;
        } else {
            *u32::lanes_mut(&mut warp.rows, to) = address.map(|a| a as u32);
        }
    }

    /// Loads to the results of `access`.
    pub fn load<const TIER: u8>(&mut self, site: Pc, warp: &mut Warp, mask: u32, access: &Access) {
        if self.load_word::<TIER>(site, warp, mask, access) {
            return;
        }
        let active = self.guarded(warp, mask, access);
        if self.load_row::<TIER>(warp, active, access) {
            return;
        }
        let (address, inside) = self.addresses::<TIER>(site, warp, active, access);
        if inside != FULL {
            for (i, to) in access.values.iter().enumerate() {
                to.fill(&mut warp.rows, 0);
                if let Some(otherwise) = access.otherwise.get(i) {
                    to.copy(&mut warp.rows, *otherwise, !active);
                }
            }
        }
        let mut rest = inside;
        while rest != 0 {
            let mut part = self.part::<TIER>(site, warp, &mut rest, &address, access);
            if TIER >= ALL {
                let before = part.lanes;
                self.note(Action::Load, site, warp, access, &mut part);
                if before != part.lanes {
                    self.undefined(warp, access, before & !part.lanes);
                }
            }
            let memory: &[u8] = match part.target {
                Target::Buffer(b) => self.buffers[b].bytes.get(),
                Target::Shared => bytemuck::cast_slice(&self.shared[..]),
            };
            let size = access.element.bytes();
            for (i, to) in access.values.iter().enumerate() {
                let at = u64::from(size) * i as u64;
                let Part { offset, lanes, .. } = &part;
                match (access.element, size) {
                    (Scalar::Bool, _) => {
                        gather::<1>(memory, offset, at, *lanes, *to, &mut warp.rows, |b| u64::from(b != [0]))
                    }
                    (_, 1) => gather::<1>(memory, offset, at, *lanes, *to, &mut warp.rows, |[b]| b.into()),
                    (_, 2) => gather(memory, offset, at, *lanes, *to, &mut warp.rows, |b| u16::from_le_bytes(b).into()),
                    (_, 4) => gather(memory, offset, at, *lanes, *to, &mut warp.rows, |b| u32::from_le_bytes(b).into()),
                    _ => gather(memory, offset, at, *lanes, *to, &mut warp.rows, u64::from_le_bytes),
                }
            }
        }
    }

    /// Gives the lanes of a load what holds nothing.
    #[cold]
    fn undefined(&self, warp: &mut Warp, access: &Access, lanes: u32) {
        let bits = self.options.filled(access.element);
        for to in &access.values {
            lanes_of(lanes).for_each(|lane| to.set(&mut warp.rows, lane, bits));
        }
    }

    /// Stores the values of `access`.
    pub fn store<const TIER: u8>(&mut self, site: Pc, warp: &mut Warp, mask: u32, access: &Access) {
        if self.store_word::<TIER>(site, warp, mask, access) {
            return;
        }
        let active = self.guarded(warp, mask, access);
        let (address, inside) = self.addresses::<TIER>(site, warp, active, access);
        let mut rest = inside;
        while rest != 0 {
            let mut part = self.part::<TIER>(site, warp, &mut rest, &address, access);
            if !self.may_write::<TIER>(site, warp, access, &part) {
                continue;
            }
            if TIER >= ALL {
                self.same_element(site, warp, access, &part);
                self.note(Action::Store, site, warp, access, &mut part);
            }
            let memory: &mut [u8] = match part.target {
                Target::Buffer(b) => match &mut self.buffers[b].bytes {
                    Bytes::Exclusive(bytes) => bytes,
                    Bytes::Shared(_) => continue,
                },
                Target::Shared => bytemuck::cast_slice_mut(&mut self.shared[..]),
            };
            let size = access.element.bytes();
            for (i, from) in access.values.iter().enumerate() {
                let at = u64::from(size) * i as u64;
                let Part { offset, lanes, .. } = &part;
                match size {
                    1 => scatter(memory, offset, at, *lanes, *from, &warp.rows, |v| [v as u8]),
                    2 => scatter(memory, offset, at, *lanes, *from, &warp.rows, |v| (v as u16).to_le_bytes()),
                    4 => scatter(memory, offset, at, *lanes, *from, &warp.rows, |v| (v as u32).to_le_bytes()),
                    _ => scatter(memory, offset, at, *lanes, *from, &warp.rows, u64::to_le_bytes),
                }
            }
        }
    }

    /// Whether the kernel may write there; reported if not.
    pub fn may_write<const TIER: u8>(&mut self, site: Pc, warp: &Warp, access: &Access, part: &Part) -> bool {
        let may = match part.target {
            Target::Buffer(b) => self.buffers[b].mutable,
            Target::Shared => true,
        };
        if TIER >= ACCESSES && !may {
            self.report(Check::ReadOnlyWrite, site, warp.index, part.lanes, |machine, lane| {
                let object = machine.object(part.target, part.offset[lane], access);
                let name = &object.name;
                Description::new(format!("a store to `{name}`, which the kernel only reads")).about(object)
            });
        }
        may
    }

    pub fn guarded(&self, warp: &Warp, mask: u32, access: &Access) -> u32 {
        access.guard.map_or(mask, |guard| mask & self.simd.truth(&warp.rows, guard))
    }

    /// The address of each lane, and the lanes whose indices are below their extents.
    pub fn addresses<const TIER: u8>(
        &mut self,
        site: Pc,
        warp: &Warp,
        active: u32,
        access: &Access,
    ) -> ([u64; LANES], u32) {
        let (simd, rows) = (self.simd, &warp.rows[..]);
        let Within { unit: size, offset: first, steps, reach: n } = &access.within;
        let (size, n) = (*size, *n);
        let mut bad = 0;
        let mut address;
        let mut swizzled = None;
        match &access.place {
            Place::Global { base, dims, .. } | Place::Dynamic { base, dims, .. } => {
                address = match access.place.is_shared() {
                    true => u32::lanes(rows, *base as usize).map(u64::from),
                    false => *u64::lanes(rows, *base as usize),
                };
                for (i, &Dim { index, extent, stride }) in dims.iter().enumerate() {
                    simd.add_term(rows, &mut address, index, stride, size);
                    if TIER >= ACCESSES {
                        bad |= simd.beyond(rows, index, extent, if i + 1 == dims.len() { n } else { 1 });
                    }
                }
            }
            Place::Shared { offset, dims, swizzle, .. } => {
                address = [u64::from(*offset); LANES];
                if let (Some(swizzle), [.., row, _]) = (swizzle, &dims[..]) {
                    swizzled = Some((*swizzle, row.index, *offset));
                }
                for (i, &SharedDim { index, extent, stride }) in dims.iter().enumerate() {
                    simd.add_scaled(rows, &mut address, index, u64::from(stride) * u64::from(size));
                    if TIER >= ACCESSES {
                        bad |= simd.beyond_constant(rows, index, extent, if i + 1 == dims.len() { n } else { 1 });
                    }
                }
            }
            Place::Address { base, offset, .. } => {
                address = u64::lanes(rows, *base as usize).map(|a| a.wrapping_add_signed((*offset).into()));
            }
            Place::SharedAddress { base, offset } => {
                address = u32::lanes(rows, *base as usize).map(|a| u64::from(a).wrapping_add_signed((*offset).into()));
            }
        }
        if *first > 0 {
            address.iter_mut().for_each(|a| *a = a.wrapping_add(u64::from(*first)));
        }
        let mut outside = 0;
        for (i, &SharedDim { index, extent, stride }) in steps.iter().enumerate() {
            simd.add_scaled(rows, &mut address, index, stride.into());
            if TIER >= ACCESSES {
                let n = if i + 1 == steps.len() && stride == access.element.bytes() { access.count } else { 1 };
                outside |= simd.beyond_constant(rows, index, extent, n);
            }
        }
        if let Some((swizzle, row, offset)) = swizzled {
            // Rows are whole turns of the swizzle, so that the bits that it flips are those of the array's own bytes.
            let rows = u32::lanes(rows, row as usize);
            for l in 0..LANES {
                let byte = address[l].wrapping_sub(offset.into());
                address[l] = (byte ^ u64::from(swizzle.bits(rows[l]))).wrapping_add(offset.into());
            }
        }
        bad &= active;
        outside &= active & !bad;
        if TIER >= ACCESSES && bad != 0 {
            self.out_of_extent(site, warp, bad, access);
        }
        if TIER >= ACCESSES && outside != 0 {
            self.out_of_element(site, warp, outside, access);
        }
        (address, active & !bad & !outside)
    }

    /// Leaves the bytes of `access` undefined.
    pub fn poison<const TIER: u8>(&mut self, site: Pc, warp: &Warp, mask: u32, access: &Access) {
        let active = self.guarded(warp, mask, access);
        let (address, mut rest) = self.addresses::<TIER>(site, warp, active, access);
        while rest != 0 {
            let mut part = self.part::<TIER>(site, warp, &mut rest, &address, access);
            if TIER >= ALL {
                self.note(Action::Poison, site, warp, access, &mut part);
            }
        }
    }

    /// Takes from `rest` the lanes that go where its first lane goes; without those that must not.
    pub fn part<const TIER: u8>(
        &mut self,
        site: Pc,
        warp: &Warp,
        rest: &mut u32,
        address: &[u64; LANES],
        access: &Access,
    ) -> Part {
        let mut lanes = *rest;
        let mut by_address = |address: &[u64; LANES]| {
            let argument = argument_at(address[rest.trailing_zeros() as usize % LANES]);
            lanes = *rest & mask(|l| argument_at(address[l]) == argument);
            argument.and_then(|a| *self.setting.by_argument.get(a as usize)?)
        };
        let target = match access.place {
            Place::Shared { .. } | Place::Dynamic { .. } | Place::SharedAddress { .. } => Some(Target::Shared),
            Place::Global { origin: Origin::Argument(a), .. } | Place::Address { origin: Origin::Argument(a), .. } => {
                self.setting.by_argument.get(a as usize).copied().flatten().map(Target::Buffer)
            }
            Place::Global { .. } | Place::Address { .. } => by_address(address).map(Target::Buffer),
        };
        *rest &= !lanes;
        let mut offset = *address;
        let Some(target) = target else {
            if TIER >= ACCESSES {
                self.report(Check::OutOfBounds, site, warp.index, lanes, |_, lane| {
                    Description::new(format!("an access at address {:#x}, far from every buffer", address[lane]))
                });
            }
            return Part { target: Target::Shared, offset, lanes: 0 };
        };
        let (base, len) = match target {
            Target::Buffer(b) => (self.buffers[b].base, self.buffers[b].bytes.get().len() as u64),
            Target::Shared => (0, u64::from(self.setting.shared_bytes)),
        };
        let size = u64::from(access.bytes());
        let mut bad = self.simd.outside(&mut offset, base, len.saturating_sub(size)) & lanes;
        if len < size {
            bad = lanes;
        }
        if bad != 0 {
            if TIER >= ACCESSES {
                self.report(Check::OutOfBounds, site, warp.index, bad, |machine, lane| {
                    let object = machine.object(target, offset[lane], access);
                    let (name, byte) = (&object.name, offset[lane] as i64);
                    Description::new(format!(
                        "{size} bytes at byte {byte} are outside of `{name}`, which has {len} bytes"
                    ))
                    .about(object)
                });
            }
            lanes &= !bad;
        }
        if TIER >= ACCESSES {
            let low = u64::from(access.alignment()) - 1;
            let bad = self.simd.misaligned(&offset, base, low) & lanes;
            if bad != 0 {
                self.report(Check::Misaligned, site, warp.index, bad, |machine, lane| {
                    let object = machine.object(target, offset[lane], access);
                    let (name, byte, low) = (&object.name, offset[lane], base.wrapping_add(offset[lane]) & 0xff);
                    Description::new(format!(
                        "an access of {size} bytes at byte {byte} of `{name}` is not aligned to {size} bytes \
                         (its address ends in {low:#04x})"
                    ))
                    .about(object)
                });
                lanes &= !bad;
            }
        }
        Part { target, offset, lanes }
    }

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
        let stamp = Stamp::new(self.epoch, site, warp.index * 32);
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

    /// Reports lanes that store different values to one element.
    fn same_element(&mut self, site: Pc, warp: &Warp, access: &Access, part: &Part) {
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
        let (mut bad, mut sides) = (0, None);
        for pair in stores.windows(2) {
            let ([a, b], mine) = ([pair[0], pair[1]], pair[1].1);
            if a.0 == b.0 && a.2 != b.2 {
                bad |= 1 << mine;
                sides = Some(sides.unwrap_or((a, b)).min((a, b)));
            }
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

/// Reads `N` bytes at `offset + at` for each lane of `lanes` into `to`. Offsets were held against `memory` before; what
/// is outside nevertheless reads as 0.
#[inline(always)]
fn gather<const N: usize>(
    memory: &[u8],
    offset: &[u64; LANES],
    at: u64,
    lanes: u32,
    to: Register,
    rows: &mut [Row],
    decode: impl Fn([u8; N]) -> u64,
) {
    let read = |lane: usize| {
        let start = (offset[lane] + at) as usize;
        decode(memory.get(start..start + N).and_then(|b| b.try_into().ok()).unwrap_or([0; N]))
    };
    if to.wide {
        let to = u64::lanes_mut(rows, to.row as usize);
        lanes_of(lanes).for_each(|lane| to[lane] = read(lane));
    } else {
        let to = u32::lanes_mut(rows, to.row as usize);
        if lanes == FULL {
            (0..LANES).for_each(|lane| to[lane] = read(lane) as u32);
        } else {
            lanes_of(lanes).for_each(|lane| to[lane] = read(lane) as u32);
        }
    }
}

/// Writes `N` bytes at `offset + at` for each lane of `lanes` from `from`, in the order of lanes.
#[inline(always)]
fn scatter<const N: usize>(
    memory: &mut [u8],
    offset: &[u64; LANES],
    at: u64,
    lanes: u32,
    from: Register,
    rows: &[Row],
    encode: impl Fn(u64) -> [u8; N],
) {
    for lane in lanes_of(lanes) {
        let start = (offset[lane] + at) as usize;
        if let Some(bytes) = memory.get_mut(start..start + N) {
            bytes.copy_from_slice(&encode(from.get(rows, lane)));
        }
    }
}
