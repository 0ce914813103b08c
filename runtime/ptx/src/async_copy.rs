//! Copies to shared memory that are in flight (`cp.async`).
//!
//! A copy reads its source when the copy begins. The data reach shared memory only when the copy's
//! thread waits for the copy's group. Until then, a load of the destination by any thread is a
//! fault.

use super::Check;
use super::access::CheckedAddresses;
use super::code::{AsyncCopyAccess, Inst, MemoryAccess};
use super::machine::Machine;
use super::memory::MemoryRegion;
use super::races::RaceAccess;
use super::registers::{LANES, Registers, lanes};
use super::warp::Warp;

/// The largest number of bytes that a copy moves.
const MAX_COPIED_BYTES: usize = 16;

/// The state of a byte of shared memory that is the destination of a copy in flight. Other states
/// are 0 for a byte that was never stored, and 1 for a stored byte.
pub const IN_FLIGHT: u8 = 2;

/// The copies of a warp's threads.
#[derive(Debug, Default)]
pub struct Copies {
    /// The number of groups that each lane has closed.
    closed: [u32; LANES],
    /// The copies in flight, in the order in which they began.
    in_flight: Vec<InFlightCopy>,
}

/// A copy of one lane.
#[derive(Debug)]
struct InFlightCopy {
    lane: usize,
    /// The number of the copy's group.
    group: u32,
    /// The destination in the block's shared memory.
    to: usize,
    bytes: usize,
    data: [u8; MAX_COPIED_BYTES],
}

impl Machine<'_, '_> {
    /// Begins a copy.
    pub fn copy<const CHECKED: bool>(&mut self, warp: &mut Warp, inst: &Inst, copy: &AsyncCopyAccess, mask: u32) {
        let bytes = copy.to.bytes();
        let (to, from) = (copy.to.addresses(&warp.registers), copy.from.addresses(&warp.registers));
        let mut faults = Vec::new();
        for lane in lanes(mask) {
            let read = read_bytes(copy, &warp.registers, lane);
            let view = self.memory.view(&mut warp.local);
            let place = |access: &MemoryAccess, address: u64, length: u64| {
                let extent = view.region(access.window, address)?;
                let offset = address.wrapping_sub(extent.base);
                if offset > extent.bytes || length > extent.bytes - offset {
                    Err(Check::OutOfBounds)
                } else if !address.is_multiple_of(bytes) {
                    Err(Check::Misaligned)
                } else {
                    Ok((extent.region, offset as usize))
                }
            };
            let target = match place(&copy.to, to[lane], bytes) {
                Ok((MemoryRegion::Shared, offset)) => offset,
                Ok(_) => {
                    faults.push((Check::WrongSpace, lane, &copy.to, to[lane]));
                    continue;
                }
                Err(check) => {
                    faults.push((check, lane, &copy.to, to[lane]));
                    continue;
                }
            };
            let mut data = [0; MAX_COPIED_BYTES];
            let mut approximate = false;
            if read > 0 {
                match place(&copy.from, from[lane], read as u64) {
                    Ok((region, offset)) => {
                        let source = view.bytes(region, lane).get(offset..offset + read);
                        if let Some(source) = source {
                            data[..read].copy_from_slice(source);
                        }
                        if let MemoryRegion::Buffer(i) = region {
                            approximate = view.buffers[i].approximate;
                            let offset = offset as u64;
                            if CHECKED && view.uninitialized(i, offset..offset + read as u64).is_some() {
                                faults.push((Check::UninitializedBuffer, lane, &copy.from, from[lane]));
                            }
                        }
                    }
                    Err(check) => faults.push((check, lane, &copy.from, from[lane])),
                }
            }
            if CHECKED {
                self.memory.shared.mark(target, bytes as usize, approximate);
                if let Some(state) = self.memory.shared.written.get_mut(target..target + bytes as usize) {
                    state.fill(IN_FLIGHT);
                }
            }
            let group = warp.copies.closed[lane];
            warp.copies.in_flight.push(InFlightCopy { lane, group, to: target, bytes: bytes as usize, data });
        }
        if CHECKED && self.races.is_some() {
            let faulty = faults.iter().fold(0, |all, (_, lane, ..)| all | 1 << lane);
            self.check_copy_races(warp, inst, copy, &(to, from), mask & !faulty);
        }
        let mut reported: Vec<(Check, bool)> = Vec::new();
        for &(check, lane, access, address) in &faults {
            let writes = std::ptr::eq(access, &copy.to);
            if reported.contains(&(check, writes)) {
                continue;
            }
            reported.push((check, writes));
            let alike = |f: &&(Check, usize, &MemoryAccess, u64)| f.0 == check && std::ptr::eq(f.2, access);
            let lanes = faults.iter().filter(alike).fold(0, |mask, f| mask | 1 << f.1);
            let code = &self.program.code;
            let view = self.memory.view(&mut warp.local);
            let length = if writes { bytes } else { read_bytes(copy, &warp.registers, lane) as u64 };
            let place = view.describe(access.window, address, length, &code.shared, &code.local);
            let does = if writes { "begins to copy to" } else { "begins to copy from" };
            let note = match check {
                Check::Misaligned => format!(", at {address:#x}"),
                Check::UninitializedBuffer => ", of which nothing has written some bytes".to_string(),
                _ => String::new(),
            };
            self.report(warp, check, inst.site, lanes, || format!("{does} {length} bytes at {place}{note}"));
        }
    }

    /// Checks the accesses of a copy for races: the loads of its source, and the stores to its
    /// destination, which count as made where the copy begins.
    #[cold]
    fn check_copy_races(
        &mut self,
        warp: &mut Warp,
        inst: &Inst,
        copy: &AsyncCopyAccess,
        (to, from): &([u64; LANES], [u64; LANES]),
        mask: u32,
    ) {
        let whole = |lane: &usize| read_bytes(copy, &warp.registers, *lane) == copy.to.bytes() as usize;
        let loaded = lanes(mask).filter(whole).fold(0, |all, lane| all | 1 << lane);
        let reached = |addresses: &[u64; LANES], mask| CheckedAddresses {
            addresses: *addresses,
            mask,
            common: None,
            distance: None,
        };
        self.check_races(warp, inst, &copy.from, &reached(from, loaded), (RaceAccess::Load, 0));
        self.check_races(warp, inst, &copy.to, &reached(to, mask), (RaceAccess::Store, 0));
    }

    /// Closes the groups of these lanes.
    pub fn commit(&self, warp: &mut Warp, mask: u32) {
        lanes(mask).for_each(|lane| warp.copies.closed[lane] += 1);
    }

    /// Completes all groups of these lanes except the last `pending`. If `pending` is `None`,
    /// completes all copies, including those of open groups.
    pub fn complete(&mut self, warp: &mut Warp, mask: u32, pending: Option<u32>) {
        let Copies { closed, in_flight } = &mut warp.copies;
        if pending.is_none() {
            lanes(mask).for_each(|lane| closed[lane] += 1);
        }
        let shared = &mut self.memory.shared;
        in_flight.retain(|copy| {
            let through = closed[copy.lane].saturating_sub(pending.unwrap_or(0));
            if mask >> copy.lane & 1 == 0 || copy.group >= through {
                return true;
            }
            let place = copy.to..copy.to + copy.bytes;
            if let Some(to) = shared.bytes.get_mut(place.clone()) {
                to.copy_from_slice(&copy.data[..copy.bytes]);
            }
            if let Some(state) = shared.written.get_mut(place) {
                state.fill(1);
            }
            false
        });
    }
}

/// Returns the number of bytes that a lane reads; the rest are zeros.
fn read_bytes(copy: &AsyncCopyAccess, registers: &Registers, lane: usize) -> usize {
    let bytes = copy.to.bytes() as usize;
    copy.read.map_or(bytes, |(place, _)| (registers.get(place, lane) as u32 as usize).min(bytes))
}
