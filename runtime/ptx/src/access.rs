//! Loads, stores and atomic operations of a warp.

use super::async_copy::IN_FLIGHT;
use super::code::{AtomicAccess, Data, Inst, MemoryAccess, Window};
use super::halves::load_words;
use super::initialized::Uninitialized;
use super::machine::Machine;
use super::memory::{MemoryRegion, RegionExtent, WarpMemory, read, sized, window_base, write};
use super::races::RaceAccess;
use super::registers::{FULL, LANES, RegisterPlace, RegisterScalar, Registers, UndefinedCause, lanes};
use super::warp::Warp;
use super::{Check, Checks};

/// A finding about one lane's access. The access is suppressed, or executed all the same.
pub struct Fault {
    check: Check,
    lane: usize,
    address: u64,
    /// Text at the end of the message.
    note: &'static str,
}

/// The addresses of an access, after all checks.
pub struct CheckedAddresses {
    /// The address of each lane.
    pub addresses: [u64; LANES],
    /// The lanes whose access is valid.
    pub mask: u32,
    /// The common region of all lanes, if there is one and all accesses are valid.
    pub common: Option<RegionExtent>,
    /// The distance between the addresses of neighboring lanes, if all lanes have `common` and the
    /// same distance: 0, or the size of a lane's access.
    pub distance: Option<usize>,
}

impl CheckedAddresses {
    /// Returns the address of a lane, and the region of memory that has it; `None` if none has it.
    #[inline(always)]
    pub fn place(&self, lane: usize, access: &MemoryAccess, view: &WarpMemory<'_, '_>) -> Option<(u64, RegionExtent)> {
        let address = self.addresses[lane];
        let extent = self.common.or_else(|| view.region(access.window, address).ok())?;
        Some((address, extent))
    }
}

impl MemoryAccess {
    /// Returns the number of bytes that a lane accesses.
    pub fn bytes(&self) -> u64 {
        u64::from(self.element) * self.values.len().max(1) as u64
    }

    /// Returns the number of bytes of a lane's access that must be in a buffer. The unread end of
    /// an aligned vector need not: a GPU allocates memory by multiples of the largest vector.
    fn needed_bytes(&self) -> u64 {
        u64::from(self.element) * u64::from(self.needed.max(1))
    }

    /// Returns the distance between the addresses of neighboring lanes, if all have the same: 0, or
    /// the size of a lane's access.
    #[inline(always)]
    fn distance(&self, registers: &Registers) -> Option<u64> {
        #[inline(always)]
        fn of<L: RegisterScalar + Into<u64>>(row: &[L; LANES], size: u64) -> Option<u64> {
            let distance = row[1].into().wrapping_sub(row[0].into());
            ((distance == 0 || distance == size) && differences(row, distance) == 0).then_some(distance)
        }
        match self.base {
            Some((RegisterPlace::Wide(at), _)) => of(u64::row(registers, at), self.bytes()),
            Some((RegisterPlace::Word(at), _)) => of(u32::row(registers, at), self.bytes()),
            Some((RegisterPlace::Predicate(_), _)) | None => Some(0),
        }
    }

    /// Returns the address of each lane.
    #[inline(always)]
    pub fn addresses(&self, registers: &Registers) -> [u64; LANES] {
        let mut addresses = [self.offset as u64; LANES];
        match self.base {
            Some((RegisterPlace::Wide(at), _)) => {
                let row = u64::row(registers, at);
                for (address, base) in addresses.iter_mut().zip(row) {
                    *address = base.wrapping_add(self.offset as u64);
                }
            }
            Some((RegisterPlace::Word(at), _)) => {
                let row = u32::row(registers, at);
                for (address, base) in addresses.iter_mut().zip(row) {
                    *address = u64::from(*base).wrapping_add(self.offset as u64);
                }
            }
            Some((RegisterPlace::Predicate(_), _)) | None => {}
        }
        addresses
    }
}

/// Checks the addresses of the lanes against the memory and records faults.
#[inline(always)]
fn check(
    access: &MemoryAccess,
    view: &WarpMemory<'_, '_>,
    registers: &Registers,
    mask: u32,
    writes: bool,
    faults: &mut Vec<Fault>,
) -> CheckedAddresses {
    let mut checked = CheckedAddresses { addresses: access.addresses(registers), mask, common: None, distance: None };
    let addresses = &mut checked.addresses;
    let first = addresses[mask.trailing_zeros() as usize & 31];
    if mask != FULL {
        for (lane, address) in addresses.iter_mut().enumerate() {
            *address = if mask >> lane & 1 == 1 { *address } else { first };
        }
    }
    let size = access.bytes();
    if let Ok(extent) = view.region(access.window, first)
        && extent.bytes >= size
        && (!writes || view.writable(extent.region))
    {
        let last = extent.bytes - size;
        let distance = if mask == FULL { access.distance(registers) } else { None };
        let inside = match distance {
            Some(distance) => {
                let start = first.wrapping_sub(extent.base);
                first & (size - 1) == 0 && start <= last && distance * (LANES as u64 - 1) <= last - start
            }
            None => within(addresses, extent.base, last, size - 1),
        };
        if inside {
            checked.common = Some(extent);
            checked.distance = distance.map(|distance| distance as usize);
        }
    }
    if checked.common.is_none() {
        checked.mask = examine(access, view, &checked.addresses, mask, writes, faults);
    }
    checked
}

/// Returns the bits in which the values of a row differ from values that are `distance` apart from
/// lane to lane: a power of two, or 0.
#[inline(always)]
fn differences<L: RegisterScalar + Into<u64>>(row: &[L; LANES], distance: u64) -> u64 {
    #[inline(always)]
    fn of<L: RegisterScalar + Into<u64>>(row: &[L; LANES], distance: u64) -> u64 {
        let first: u64 = row[0].into();
        if distance == 0 {
            return row.iter().fold(0, |bits, value| bits | ((*value).into() ^ first));
        }
        let (shift, mut bits) = (distance.trailing_zeros(), 0);
        for (lane, value) in row.iter().enumerate() {
            bits |= (*value).into() ^ first.wrapping_add((lane as u64) << shift);
        }
        bits
    }
    #[cfg(target_arch = "x86_64")]
    if super::rows::is_wide() {
        #[target_feature(enable = "avx2")]
        fn wide<L: RegisterScalar + Into<u64>>(row: &[L; LANES], distance: u64) -> u64 {
            of(row, distance)
        }
        // SAFETY: the processor supports AVX2, as just checked.
        return unsafe { wide(row, distance) };
    }
    of(row, distance)
}

/// Returns whether all addresses lie at most `last` bytes from `base`, and have none of the bits
/// `aligned`.
#[inline(always)]
fn within(addresses: &[u64; LANES], base: u64, last: u64, aligned: u64) -> bool {
    #[inline(always)]
    fn of(addresses: &[u64; LANES], base: u64, last: u64, aligned: u64) -> bool {
        // The union of the bits of all distances, and of all remaining distances to the last
        // allowed address. A negative distance sets the highest bit.
        let (mut distances, mut bits) = (0, 0);
        for address in addresses {
            let distance = address.wrapping_sub(base);
            distances |= distance | last.wrapping_sub(distance);
            bits |= address;
        }
        distances >> 63 == 0 && bits & aligned == 0
    }
    #[cfg(target_arch = "x86_64")]
    if super::rows::is_wide() {
        #[target_feature(enable = "avx2")]
        fn wide(addresses: &[u64; LANES], base: u64, last: u64, aligned: u64) -> bool {
            of(addresses, base, last, aligned)
        }
        // SAFETY: the processor supports AVX2, as just checked.
        return unsafe { wide(addresses, base, last, aligned) };
    }
    of(addresses, base, last, aligned)
}

/// Checks the addresses lane by lane, and adds faults. Returns the lanes whose access is valid.
#[cold]
fn examine(
    access: &MemoryAccess,
    view: &WarpMemory<'_, '_>,
    addresses: &[u64; LANES],
    mask: u32,
    writes: bool,
    faults: &mut Vec<Fault>,
) -> u32 {
    let size = access.bytes();
    let mut good = 0;
    for lane in lanes(mask) {
        let address = addresses[lane];
        let wrong = match view.region(access.window, address) {
            Err(check) => Some(check),
            Ok(extent) => {
                let offset = address.wrapping_sub(extent.base);
                let needed = match extent.region {
                    MemoryRegion::Buffer(_) if !writes => access.needed_bytes(),
                    _ => size,
                };
                if offset > extent.bytes || needed > extent.bytes - offset {
                    Some(Check::OutOfBounds)
                } else if !address.is_multiple_of(size) {
                    Some(Check::Misaligned)
                } else if writes && !view.writable(extent.region) {
                    Some(Check::ReadOnlyWrite)
                } else {
                    None
                }
            }
        };
        match wrong {
            Some(check) => faults.push(Fault { check, lane, address, note: "" }),
            None => good |= 1 << lane,
        }
    }
    good
}

/// Writes the checked lanes of a row: element `at` of each lane's access of `size` bytes,
/// converted. All accesses are in the region `from`: its bytes and its first address. `place` is
/// `at` and `size`.
#[inline(always)]
fn load_row<const N: usize, L: RegisterScalar>(
    to: (&mut Registers, u32),
    from: (&[u8], u64),
    checked: &CheckedAddresses,
    place: (usize, usize),
    convert: impl Fn(u64) -> L,
) {
    #[inline(always)]
    fn of<const N: usize, L: RegisterScalar>(
        (registers, row): (&mut Registers, u32),
        (bytes, base): (&[u8], u64),
        checked: &CheckedAddresses,
        (at, size): (usize, usize),
        convert: impl Fn(u64) -> L,
    ) {
        let mut values = [L::default(); LANES];
        let start = (checked.addresses[0] - base) as usize;
        let from_start = || bytes.get(start..).unwrap_or_default();
        match checked.distance {
            Some(0) => values.fill(convert(read::<N>(bytes, start + at))),
            Some(_) if size == N => {
                for (value, element) in values.iter_mut().zip(from_start().as_chunks::<N>().0) {
                    *value = convert(read::<N>(element, 0));
                }
            }
            Some(_) => {
                for (value, vector) in values.iter_mut().zip(from_start().chunks_exact(size)) {
                    *value = convert(read::<N>(vector, at));
                }
            }
            None => {
                for (value, address) in values.iter_mut().zip(&checked.addresses) {
                    *value = convert(read::<N>(bytes, (address - base) as usize + at));
                }
            }
        }
        registers.put(row, checked.mask, &values);
    }
    #[cfg(target_arch = "x86_64")]
    if super::rows::is_wide() {
        #[target_feature(enable = "avx2")]
        fn wide<const N: usize, L: RegisterScalar>(
            to: (&mut Registers, u32),
            from: (&[u8], u64),
            checked: &CheckedAddresses,
            place: (usize, usize),
            convert: impl Fn(u64) -> L,
        ) {
            of::<N, L>(to, from, checked, place, convert);
        }
        // SAFETY: the processor supports AVX2, as just checked.
        return unsafe { wide::<N, L>(to, from, checked, place, convert) };
    }
    of::<N, L>(to, from, checked, place, convert);
}

/// Extends a narrow element to the width of its register.
#[inline(always)]
fn extend(value: u64, element: u32, signed: bool, bits: u32) -> u64 {
    let unused = 64 - 8 * element;
    let whole = if signed { ((value << unused) as i64 >> unused) as u64 } else { value };
    whole & u64::MAX >> (64 - bits)
}

impl Machine<'_, '_> {
    /// Executes a load.
    pub fn load<const CHECKED: bool>(&mut self, warp: &mut Warp, inst: &Inst, access: &MemoryAccess, mask: u32) {
        if !CHECKED && mask == FULL && load_words(&self.memory.shared, &mut warp.registers, access) {
            return;
        }
        let mut faults = Vec::new();
        let Warp { registers, local, .. } = warp;
        let mut view = self.memory.view(local);
        let mut checked = check(access, &view, registers, mask, false, &mut faults);
        let mut undefined = UndefinedElements::default();
        if CHECKED {
            let checks = self.options.checks;
            checked.mask &= !unwritten(access, &mut view, &checked, (checks, &mut undefined), &mut faults);
            report_uninitialized(access, &view, &checked, (checks, &mut undefined), &mut faults);
        }
        view.note(access, &checked, false);
        for (k, data) in access.values.iter().enumerate() {
            let Some(data) = *data else { continue };
            let at = k * access.element as usize;
            let (place, bits) = ((at, access.bytes() as usize), data.bits);
            match (checked.common, data.place) {
                (Some(extent), RegisterPlace::Word(row)) if extent.region != MemoryRegion::Local => {
                    let from = (view.bytes(extent.region, 0), extent.base);
                    sized!(access.element, N => load_row::<N, u32>((registers, row), from, &checked, place, |word| {
                        if N == 4 { word as u32 } else { extend(word, N as u32, access.signed, bits) as u32 }
                    }));
                }
                (Some(extent), RegisterPlace::Wide(row)) if extent.region != MemoryRegion::Local => {
                    let from = (view.bytes(extent.region, 0), extent.base);
                    sized!(access.element, N => load_row::<N, u64>((registers, row), from, &checked, place, |word| {
                        if N == 8 { word } else { extend(word, N as u32, access.signed, bits) }
                    }));
                }
                _ => {
                    for lane in lanes(checked.mask) {
                        let word = view.element(access, checked.addresses[lane], at, lane);
                        let value = extend(word, access.element, access.signed, data.bits);
                        registers.set(data.place, lane, value);
                    }
                }
            }
            // Values that could not be loaded are 0.
            for lane in lanes(mask & !checked.mask) {
                registers.set(data.place, lane, 0);
            }
            if CHECKED {
                registers.defined[data.id as usize] |= mask;
                undefined.record(registers, inst, k, data);
            }
        }
        if CHECKED && !self.program.code.bounds.is_empty() {
            let any = approximated(access, &mut view, &checked);
            for data in access.values.iter().flatten() {
                let state = &mut registers.approximate[data.id as usize];
                *state = *state & !mask | any;
                // Memory does not record which approximation a value depends on. The first
                // approximation in the text represents all.
                registers.approximations[data.id as usize] = self.program.code.first_approximation;
            }
        }
        if CHECKED {
            self.check_races(warp, inst, access, &checked, (RaceAccess::Load, 0));
        }
        if !faults.is_empty() || CHECKED {
            self.report_gap_accesses(access, &checked, &mut faults, warp);
            if !faults.is_empty() {
                self.faults(warp, inst, access, faults, "loads");
            }
        }
    }

    /// Executes a store.
    pub fn store<const CHECKED: bool>(&mut self, warp: &mut Warp, inst: &Inst, access: &MemoryAccess, mask: u32) {
        let mut faults = Vec::new();
        let Warp { registers, local, .. } = warp;
        let mut view = self.memory.view(local);
        let checked = check(access, &view, registers, mask, true, &mut faults);
        view.note(access, &checked, true);
        let silent = if CHECKED && self.races.is_some() { silent(access, &view, registers, &checked) } else { 0 };
        for (k, data) in access.values.iter().enumerate() {
            let Some(data) = *data else { continue };
            let at = k * access.element as usize;
            match (checked.common, data.place) {
                (Some(extent), RegisterPlace::Word(row)) if extent.region != MemoryRegion::Local => {
                    let values = u32::row(registers, row);
                    let bytes = view.bytes_mut(extent.region, 0);
                    sized!(access.element, N => {
                        if checked.distance == Some(N) {
                            let start = (checked.addresses[0] - extent.base) as usize;
                            let elements = bytes.get_mut(start..).unwrap_or_default().as_chunks_mut::<N>().0;
                            for (element, value) in elements.iter_mut().zip(values) {
                                write::<N>(element, 0, (*value).into());
                            }
                        } else {
                            for lane in lanes(checked.mask) {
                                let to = (checked.addresses[lane] - extent.base) as usize + at;
                                write::<N>(bytes, to, values[lane].into());
                            }
                        }
                    });
                }
                _ => {
                    for lane in lanes(checked.mask) {
                        let value = registers.get(data.place, lane);
                        view.set_element(access, checked.addresses[lane], at, lane, value);
                    }
                }
            }
        }
        if CHECKED {
            let registers = &warp.registers;
            let of_all = access.values.iter().flatten().map(|data| registers.approximate[data.id as usize]);
            approximate(access, &mut view, &checked, of_all.fold(0, |all, lanes| all | lanes) & mask);
            mark(access, &mut view, &checked);
            view.initialize(access, &checked);
            self.check_races(warp, inst, access, &checked, (RaceAccess::Store, silent));
            self.report_gap_accesses(access, &checked, &mut faults, warp);
        }
        if !faults.is_empty() {
            self.faults(warp, inst, access, faults, "stores");
        }
    }

    /// Executes an atomic operation lane by lane, from the lowest.
    pub fn atomic<const CHECKED: bool>(
        &mut self,
        warp: &mut Warp,
        inst: &Inst,
        atomic: &AtomicAccess,
        mask: u32,
    ) -> bool {
        let access = &atomic.access;
        // An operation without a result cannot be a poll, so it counts as a change.
        let mut changed = atomic.result.is_none();
        let mut faults = Vec::new();
        let Warp { registers, local, .. } = warp;
        let mut view = self.memory.view(local);
        let mut checked = check(access, &view, registers, mask, true, &mut faults);
        if CHECKED {
            // Each lane updates one element, so none is undefined.
            let (checks, mut undefined) = (self.options.checks, UndefinedElements::default());
            checked.mask &= !unwritten(access, &mut view, &checked, (checks, &mut undefined), &mut faults);
            report_uninitialized(access, &view, &checked, (checks, &mut undefined), &mut faults);
            view.initialize(access, &checked);
        }
        for lane in lanes(mask) {
            let mut old = 0;
            if checked.mask >> lane & 1 == 1 {
                let address = checked.addresses[lane];
                let operand = |i: usize| atomic.operands.get(i).map_or(0, |data| registers.get(data.place, lane));
                let shared = view.region(access.window, address).is_ok_and(|e| e.region == MemoryRegion::Shared);
                old = view.element(access, address, 0, lane);
                let new = (atomic.update)(old, operand(0), operand(1), shared);
                // The host may store between the load and the store of a poll.
                if new != old {
                    view.set_element(access, address, 0, lane, new);
                    changed = true;
                }
            }
            if let Some(Data { place, bits, .. }) = atomic.result {
                registers.set(place, lane, extend(old, access.element, access.signed, bits));
            }
        }
        if CHECKED {
            let of_all = atomic.operands.iter().map(|data| registers.approximate[data.id as usize]);
            let any = of_all.fold(0, |all, lanes| all | lanes) & mask;
            if any != 0 {
                approximate(access, &mut view, &checked, any);
            }
            if let Some(data) = atomic.result {
                registers.defined[data.id as usize] |= mask;
            }
            self.check_races(warp, inst, access, &checked, (RaceAccess::Atomic, 0));
            self.report_gap_accesses(access, &checked, &mut faults, warp);
        }
        if !faults.is_empty() {
            self.faults(warp, inst, access, faults, "updates");
        }
        changed
    }

    /// Reports accesses to the gaps between variables.
    fn report_gap_accesses(
        &mut self,
        access: &MemoryAccess,
        checked: &CheckedAddresses,
        faults: &mut Vec<Fault>,
        warp: &mut Warp,
    ) {
        // A constant address is that of a variable, which the assembler has checked.
        if access.base.is_none() || matches!(access.window, Window::Global | Window::Const) {
            return;
        }
        let code = &self.program.code;
        if access.window == Window::Shared && code.shared.variables.len() == 1 {
            return;
        }
        let view = self.memory.view(&mut warp.local);
        let size = access.bytes();
        let mut last: Option<(u64, u64)> = None;
        for lane in lanes(checked.mask) {
            let address = checked.addresses[lane];
            if last.is_some_and(|(start, bytes)| address.wrapping_sub(start) <= bytes - size) {
                continue;
            }
            let Some((_, extent)) = checked.place(lane, access, &view) else { continue };
            let layout = match extent.region {
                MemoryRegion::Shared => &code.shared,
                MemoryRegion::Local => &code.local,
                MemoryRegion::Param => &code.parameters,
                MemoryRegion::Buffer(_) => continue,
            };
            let offset = address.wrapping_sub(extent.base);
            match layout.find(offset, size) {
                Some(v) => last = Some((extent.base + u64::from(v.offset), u64::from(v.bytes))),
                // Shared memory that the launch adds at the end belongs to no variable.
                None if offset >= u64::from(layout.bytes) => {}
                None => faults.push(Fault { check: Check::OutOfBounds, lane, address, note: "" }),
            }
        }
    }

    #[cold]
    fn faults(&mut self, warp: &mut Warp, inst: &Inst, access: &MemoryAccess, faults: Vec<Fault>, does: &str) {
        for check in Check::ALL {
            let same = |f: &&Fault| f.check == check;
            let Some(first) = faults.iter().find(same) else { continue };
            let mask = faults.iter().filter(same).fold(0, |mask, f| mask | 1 << f.lane);
            let code = &self.program.code;
            let view = self.memory.view(&mut warp.local);
            let place = view.describe(access.window, first.address, access.bytes(), &code.shared, &code.local);
            let bytes = access.bytes();
            let message = match check {
                Check::WrongSpace => format!(
                    "{does} {bytes} bytes of {} memory at {:#x}, which is an address in another state space",
                    access.window.name(),
                    first.address
                ),
                Check::Misaligned => format!("{does} {bytes} bytes at {:#x}: {place}", first.address),
                Check::ReadOnlyWrite => format!("{does} {bytes} bytes at {place}, which it may only read"),
                _ => format!("{does} {bytes} bytes at {place}{}", first.note),
            };
            self.report(warp, check, inst.site, mask, || message);
        }
    }
}

impl WarpMemory<'_, '_> {
    /// Returns an element of a valid access.
    fn element(&self, access: &MemoryAccess, address: u64, at: usize, lane: usize) -> u64 {
        let Ok(extent) = self.region(access.window, address) else { return 0 };
        let from = (address - extent.base) as usize + at;
        let bytes = self.bytes(extent.region, lane);
        sized!(access.element, N => read::<N>(bytes, from))
    }

    fn set_element(&mut self, access: &MemoryAccess, address: u64, at: usize, lane: usize, value: u64) {
        let Ok(extent) = self.region(access.window, address) else { return };
        let to = (address - extent.base) as usize + at;
        let bytes = self.bytes_mut(extent.region, lane);
        sized!(access.element, N => write::<N>(bytes, to, value));
    }
}

/// Returns the lanes that load values that depend on an approximation: by address in shared memory,
/// otherwise by buffer.
fn approximated(access: &MemoryAccess, view: &mut WarpMemory<'_, '_>, checked: &CheckedAddresses) -> u32 {
    let mut one = |lane: usize| {
        let (address, extent) = checked.place(lane, access, view)?;
        if extent.region == MemoryRegion::Shared {
            let at = (address - extent.base) as usize;
            return Some(view.shared.is_approximate(at, bytes(access)));
        }
        view.approximate(extent.region).map(|state| *state)
    };
    lanes(checked.mask).filter(|lane| one(*lane) == Some(true)).fold(0, |all, lane| all | 1 << lane)
}

/// Records that the lanes of `of` store values that depend on an approximation, and that the other
/// lanes do not.
fn approximate(access: &MemoryAccess, view: &mut WarpMemory<'_, '_>, checked: &CheckedAddresses, of: u32) {
    if of == 0 && !view.shared.approximate {
        return;
    }
    for lane in lanes(checked.mask) {
        let Some((address, extent)) = checked.place(lane, access, view) else { continue };
        let any = of >> lane & 1 == 1;
        if extent.region == MemoryRegion::Shared {
            view.shared.mark((address - extent.base) as usize, bytes(access), any);
        } else if let (true, Some(state)) = (any, view.approximate(extent.region)) {
            *state = true;
        }
    }
}

/// Returns the number of bytes that a lane accesses.
fn bytes(access: &MemoryAccess) -> usize {
    access.values.len() * access.element as usize
}

/// The elements of a vector load that nothing has written, although other elements were written.
/// The registers of these elements are undefined, and only a use is reported.
#[derive(Default)]
struct UndefinedElements {
    /// The lanes, by element.
    lanes: Vec<u32>,
}

impl UndefinedElements {
    /// Adds an element of a lane.
    fn add(&mut self, element: usize, lane: usize) {
        if self.lanes.len() <= element {
            self.lanes.resize(element + 1, 0);
        }
        self.lanes[element] |= 1 << lane;
    }

    /// Marks the register of an element as undefined.
    #[inline(always)]
    fn record(&self, registers: &mut Registers, inst: &Inst, element: usize, data: Data) {
        if let Some(lanes) = self.lanes.get(element).filter(|lanes| **lanes != 0) {
            let why = "nothing has written this element of the vector";
            registers.defined[data.id as usize] &= !lanes;
            registers.causes[data.id as usize] = UndefinedCause::Instruction { site: inst.site, why };
        }
    }
}

/// Eight state bytes of stored memory.
const WRITTEN: u64 = 0x0101_0101_0101_0101;

/// Returns the lanes that load uninitialized memory only. If a vector has other elements too, its
/// unwritten elements are undefined.
#[inline(always)]
fn unwritten(
    access: &MemoryAccess,
    view: &mut WarpMemory<'_, '_>,
    checked: &CheckedAddresses,
    (checks, undefined): (Checks, &mut UndefinedElements),
    faults: &mut Vec<Fault>,
) -> u32 {
    if let Some(extent) = checked.common
        && matches!(extent.region, MemoryRegion::Buffer(_) | MemoryRegion::Param)
    {
        return 0;
    }
    let size = access.bytes() as usize;
    if let Some(extent) = checked.common
        && extent.region == MemoryRegion::Shared
    {
        let written = &view.shared.written;
        let mut all = WRITTEN;
        sized!(access.element, N => {
            for address in &checked.addresses {
                let from = (address - extent.base) as usize;
                for part in (0..size).step_by(N) {
                    all &= read::<N>(written, from + part) | !(WRITTEN >> (64 - 8 * N));
                }
            }
        });
        if all == WRITTEN {
            return 0;
        }
    }
    let mut missing = 0;
    for lane in lanes(checked.mask) {
        let Some((address, extent)) = checked.place(lane, access, view) else { continue };
        let from = (address - extent.base) as usize;
        let Some(written) = view.written(extent.region, lane) else { continue };
        let Some(states) = written.get(from..from + size) else { continue };
        let (check, note) = match extent.region {
            _ if states.contains(&IN_FLIGHT) => {
                (Check::UnfinishedCopy, ", to which a copy is in flight that its thread has not waited for")
            }
            _ if !states.contains(&0) => continue,
            region => {
                let check = match region {
                    MemoryRegion::Shared => Check::UninitializedShared,
                    _ => Check::UninitializedLocal,
                };
                // An element that goes to no register is not loaded.
                let elements = states.chunks(access.element as usize).enumerate();
                let loaded = elements.filter(|(k, _)| access.values.get(*k).is_none_or(Option::is_some));
                let (some, none): (Vec<_>, Vec<_>) = loaded.partition(|(_, states)| states.contains(&1));
                if some.is_empty() && !none.is_empty() {
                    (check, ", which has not been stored to")
                } else {
                    if checks.enables(Check::UndefinedValue) {
                        none.iter().for_each(|(k, _)| undefined.add(*k, lane));
                    } else if !none.is_empty() {
                        let note = ", of which some elements have not been stored to";
                        faults.push(Fault { check, lane, address, note });
                    }
                    // A copy of a structure also loads its padding.
                    if some.iter().any(|(_, states)| states.contains(&0)) {
                        let note =
                            ", of which only some bytes have been stored to: a structure's padding, or a mistake";
                        faults.push(Fault { check: Check::PartlyUninitialized, lane, address, note });
                    }
                    continue;
                }
            }
        };
        missing |= 1 << lane;
        faults.push(Fault { check, lane, address, note });
    }
    missing
}

/// Returns the lanes that store the values that memory already holds.
fn silent(access: &MemoryAccess, view: &WarpMemory<'_, '_>, registers: &Registers, checked: &CheckedAddresses) -> u32 {
    let holds = |lane: &usize| {
        access.values.iter().enumerate().all(|(k, data)| {
            let Some(data) = data else { return true };
            let held = view.element(access, checked.addresses[*lane], k * access.element as usize, *lane);
            held == extend(registers.get(data.place, *lane), access.element, false, 64)
        })
    };
    lanes(checked.mask).filter(holds).fold(0, |all, lane| all | 1 << lane)
}

/// Adds a fault for each lane that loads bytes of a buffer that nothing has written. The loads are
/// executed all the same. The unwritten elements of a vector are undefined, if others were written.
#[inline(always)]
fn report_uninitialized(
    access: &MemoryAccess,
    view: &WarpMemory<'_, '_>,
    checked: &CheckedAddresses,
    (checks, undefined): (Checks, &mut UndefinedElements),
    faults: &mut Vec<Fault>,
) {
    view.find_uninitialized(access, checked, |lane, address, (buffer, offset), state| {
        if state == Uninitialized::Some && access.values.len() > 1 && checks.enables(Check::UndefinedValue) {
            let bytes = u64::from(access.element);
            let of_element =
                |k: usize| view.uninitialized(buffer, offset + k as u64 * bytes..offset + (k as u64 + 1) * bytes);
            let loaded = access.values.iter().enumerate().filter(|(_, data)| data.is_some());
            let states: Vec<(usize, Option<Uninitialized>)> = loaded.map(|(k, _)| (k, of_element(k))).collect();
            let has = |wanted: Option<Uninitialized>| states.iter().any(|(_, state)| *state == wanted);
            if has(None) && !has(Some(Uninitialized::Some)) {
                let unwritten = states.iter().filter(|(_, state)| state.is_some());
                unwritten.for_each(|(k, _)| undefined.add(*k, lane));
                return;
            }
        }
        let note = match state {
            Uninitialized::All => ", which nothing has written",
            Uninitialized::Some => ", of which nothing has written some bytes",
        };
        faults.push(Fault { check: Check::UninitializedBuffer, lane, address, note });
    });
}

/// Marks the bytes as stored.
#[inline(always)]
fn mark(access: &MemoryAccess, view: &mut WarpMemory<'_, '_>, checked: &CheckedAddresses) {
    if checked.common.is_some_and(|e| matches!(e.region, MemoryRegion::Buffer(_))) {
        return;
    }
    let size = access.bytes() as usize;
    if let Some(extent) = checked.common
        && extent.region == MemoryRegion::Shared
    {
        let written = &mut view.shared.written;
        sized!(access.element, N => {
            // All addresses are valid here: an inactive lane has the address of an active lane.
            for address in &checked.addresses {
                let from = (address - extent.base) as usize;
                for part in (0..size).step_by(N) {
                    write::<N>(written, from + part, WRITTEN);
                }
            }
        });
        return;
    }
    for lane in lanes(checked.mask) {
        let Some((address, extent)) = checked.place(lane, access, view) else { continue };
        let from = (address - extent.base) as usize;
        if let Some(bytes) = view.written(extent.region, lane).and_then(|w| w.get_mut(from..from + size)) {
            bytes.fill(1);
        }
    }
}

/// Returns the generic address of an address in a window.
pub const fn generic(window: Window, address: u64) -> u64 {
    window_base(window).wrapping_add(address)
}
