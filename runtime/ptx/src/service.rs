//! The functions that a device provides: printing, assertions, and the heap.

use super::Check;
use super::code::{DeviceFunction, Inst, Service, Window};
use super::cooperative::GRID_BARRIER;
use super::machine::Machine;
use super::memory::WarpMemory;
use super::printf::{Arguments, format};
use super::registers::lanes;
use super::warp::{BarrierArrival, Warp};
use std::collections::BTreeMap;

/// The maximum length of a text that a kernel passes.
const MAX_TEXT: usize = 1 << 16;

/// The device's heap: the addresses of `malloc` and `free` in kernels.
#[derive(Clone, Debug)]
pub struct Heap {
    start: u64,
    bytes: u64,
    /// The allocations: the size by address.
    used: BTreeMap<u64, u64>,
}

/// The alignment of allocations of the heap in bytes.
const ALIGNMENT: u64 = 16;

impl Heap {
    /// The size of the heap in bytes, unless the owner chooses another.
    pub const DEFAULT_BYTES: u64 = 8 << 20;

    /// Creates an empty heap in these bytes of the device's memory.
    pub fn new(start: u64, bytes: u64) -> Heap {
        Heap { start, bytes, used: BTreeMap::new() }
    }

    /// Returns the address of the first byte.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// Returns the allocations that were not freed: the address and size of each.
    pub fn allocations(&self) -> impl Iterator<Item = (u64, u64)> {
        self.used.iter().map(|(start, bytes)| (*start, *bytes))
    }

    /// Allocates memory. Returns its address, or 0 if there is none or `bytes` is 0.
    fn allocate(&mut self, bytes: u64) -> u64 {
        let Some(room) = bytes.checked_next_multiple_of(ALIGNMENT).filter(|_| bytes > 0) else { return 0 };
        let mut start = self.start.next_multiple_of(ALIGNMENT);
        for (used, length) in &self.used {
            if used - start >= room {
                break;
            }
            start = (used + length).next_multiple_of(ALIGNMENT);
        }
        if start.checked_add(room).is_none_or(|end| end > self.start + self.bytes) {
            return 0;
        }
        self.used.insert(start, bytes);
        start
    }

    /// Frees memory. Returns the bytes of the allocation, which are 0 for address 0, or `None` if
    /// there is no allocation at `address`.
    fn free(&mut self, address: u64) -> Option<u64> {
        if address == 0 { Some(0) } else { self.used.remove(&address) }
    }
}

/// The arguments of `vprintf`: a structure in memory, each member aligned to its size.
struct Members<'a, 'v, 'm> {
    view: &'a WarpMemory<'v, 'm>,
    lane: usize,
    address: u64,
}

impl Arguments for Members<'_, '_, '_> {
    fn next(&mut self, bytes: u64) -> Option<u64> {
        let at = self.address.checked_next_multiple_of(bytes)?;
        self.address = at.checked_add(bytes)?;
        let from = bytes_at(self.view, self.lane, at)?.get(..bytes as usize)?;
        let mut bits = [0; 8];
        bits[..from.len()].copy_from_slice(from);
        Some(u64::from_le_bytes(bits))
    }

    fn text(&mut self, address: u64) -> Option<Vec<u8>> {
        text_at(self.view, self.lane, address)
    }
}

/// Returns the bytes from a generic address to the end of their region.
fn bytes_at<'a>(view: &'a WarpMemory<'_, '_>, lane: usize, address: u64) -> Option<&'a [u8]> {
    let extent = view.region(Window::Generic, address).ok()?;
    view.bytes(extent.region, lane).get(address.checked_sub(extent.base)? as usize..)
}

/// Returns the text at a generic address, up to its NUL.
fn text_at(view: &WarpMemory<'_, '_>, lane: usize, address: u64) -> Option<Vec<u8>> {
    let bytes = bytes_at(view, lane, address)?;
    let length = bytes.iter().take(MAX_TEXT).position(|byte| *byte == 0)?;
    Some(bytes[..length].to_vec())
}

impl Machine<'_, '_> {
    /// Calls a function of the device, lane by lane.
    pub fn serve(&mut self, warp: &mut Warp, inst: &Inst, service: &Service, mask: u32) {
        let mut failed = 0;
        for lane in lanes(mask) {
            let argument = |n: usize| service.arguments.get(n).map_or(0, |passed| self.argument(warp, *passed, lane));
            let (first, second) = (argument(0), argument(1));
            let result = match service.function {
                DeviceFunction::Print => {
                    let view = self.memory.view(&mut warp.local);
                    let mut members = Members { view: &view, lane, address: second };
                    let text = text_at(&view, lane, first).and_then(|text| format(&text, &mut members));
                    if let Some((text, count)) = text {
                        self.printed.add(text);
                        Some(count.into())
                    } else if first == 0 {
                        Some(u64::MAX)
                    } else {
                        None
                    }
                }
                DeviceFunction::Allocate => Some(self.heap.as_mut().map_or(0, |heap| heap.allocate(first))),
                // The loop over lanes sets the same wait each time: all lanes of the warp arrive
                // together.
                DeviceFunction::GridBarrier if self.workspace != 0 => {
                    let site = inst.site;
                    warp.waits = Some(BarrierArrival { number: GRID_BARRIER, site, mask, reduction: None });
                    Some(0)
                }
                DeviceFunction::GridBarrier => None,
                DeviceFunction::GridHandle => Some(self.workspace),
                DeviceFunction::Free => {
                    let freed = self.heap.as_mut().and_then(|heap| heap.free(first));
                    if let (Some(races), Some(bytes)) = (&mut self.races, freed) {
                        races.forget(first..first.saturating_add(bytes));
                    }
                    freed.map(|_| 0)
                }
                DeviceFunction::Assert => {
                    let (line, function) = (argument(2) as u32, argument(3));
                    let view = self.memory.view(&mut warp.local);
                    let text = |address: u64| {
                        let text = text_at(&view, lane, address).unwrap_or_default();
                        String::from_utf8_lossy(&text).into_owned()
                    };
                    let (message, file, function) = (text(first), text(second), text(function));
                    let thread = self.thread(warp.index, lane);
                    let ([bx, by, bz], [tx, ty, tz]) = (thread.block, thread.thread);
                    self.asserted += &format!(
                        "{file}:{line}: {function}: block: [{bx},{by},{bz}], thread: [{tx},{ty},{tz}] \
                         Assertion `{message}` failed.\n"
                    );
                    None
                }
            };
            match (result, service.result) {
                (None, _) => failed |= 1 << lane,
                (Some(result), Some(to)) => self.give(warp, to, lane, result),
                _ => {}
            }
        }
        if failed == 0 {
            return;
        }
        let (check, message) = match service.function {
            DeviceFunction::Assert => {
                let first = self.asserted.lines().next().unwrap_or_default().to_string();
                (Check::Assertion, format!("fails: {first}"))
            }
            DeviceFunction::GridBarrier => {
                (Check::Trap, "waits for all blocks, and the launch is not cooperative".to_string())
            }
            DeviceFunction::Free => (Check::Trap, "frees an address that `malloc` did not return".to_string()),
            _ => (Check::OutOfBounds, "reads a format string or an argument outside any memory".to_string()),
        };
        self.report(warp, check, inst.site, failed, || message);
        self.stopped = true;
    }
}
