//! Loads and stores of a warp.
//!
//! An access has three steps: addresses of all lanes and their validity
//! ([`address`](crate::machine::address)), shadow memory
//! ([`race_check`](crate::machine::race_check)), and the bytes. Each step removes the lanes that
//! fail it, so only bytes inside a buffer are ever touched, whatever the checks.

use crate::check::Check;
use crate::code::frame::{FULL, FrameRegister, LANES, LaneWord, Row, lanes_of};
use crate::code::{AccessOp, Pc};
use crate::machine::address::TargetLanes;
use crate::machine::describe::DescribedTarget;
use crate::machine::{ACCESSES, ALL, Machine, Warp};
use crate::report::{AccessValues, Description};
use kernel_dsl_compiler::Scalar;
use kernel_dsl_compiler::ir;
use runtime_simt::ArgumentBytes;
use runtime_simt::number::short;

/// The kind of an access.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum AccessAction {
    Load,
    Store,
    Atomic,
    /// An atomic load.
    AtomicLoad,
    /// An atomic store.
    AtomicStore,
    /// A store that makes the bytes undefined.
    MarkUndef,
}

impl AccessAction {
    /// Returns the kind of an atomic operation.
    pub fn of(operation: ir::AtomicOperator) -> AccessAction {
        match operation {
            ir::AtomicOperator::Load => AccessAction::AtomicLoad,
            ir::AtomicOperator::Store => AccessAction::AtomicStore,
            _ => AccessAction::Atomic,
        }
    }

    /// Returns whether the access is atomic.
    pub fn is_atomic(self) -> bool {
        matches!(self, AccessAction::Atomic | AccessAction::AtomicLoad | AccessAction::AtomicStore)
    }

    /// Returns whether the access reads memory.
    pub fn reads(self) -> bool {
        matches!(self, AccessAction::Load | AccessAction::Atomic | AccessAction::AtomicLoad)
    }
}

impl Machine<'_, '_> {
    /// Loads into the result registers of `access`.
    pub fn load<const TIER: u8>(&mut self, site: Pc, warp: &mut Warp, mask: u32, access: &AccessOp) {
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
                self.check_access(AccessAction::Load, site, warp, access, &mut part);
                if before != part.lanes {
                    self.undefined(warp, access, before & !part.lanes);
                }
            }
            let memory: &[u8] = match part.target {
                DescribedTarget::Buffer(b) => self.buffers[b].bytes.get(),
                DescribedTarget::Shared => bytemuck::cast_slice(&self.shared[..]),
            };
            let size = access.element.bytes();
            for (i, to) in access.values.iter().enumerate() {
                let at = u64::from(size) * i as u64;
                let TargetLanes { offset, lanes, .. } = &part;
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

    /// Sets the lanes of an uninitialized load to the fill value.
    #[cold]
    fn undefined(&self, warp: &mut Warp, access: &AccessOp, lanes: u32) {
        let bits = self.options.filled(access.element);
        for to in &access.values {
            lanes_of(lanes).for_each(|lane| to.set(&mut warp.rows, lane, bits));
        }
    }

    /// Stores the values of `access`.
    pub fn store<const TIER: u8>(&mut self, site: Pc, warp: &mut Warp, mask: u32, access: &AccessOp) {
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
                self.check_access(AccessAction::Store, site, warp, access, &mut part);
            }
            let memory: &mut [u8] = match part.target {
                DescribedTarget::Buffer(b) => match &mut self.buffers[b].bytes {
                    ArgumentBytes::Exclusive(bytes) => bytes,
                    ArgumentBytes::Shared(_) => continue,
                },
                DescribedTarget::Shared => bytemuck::cast_slice_mut(&mut self.shared[..]),
            };
            let size = access.element.bytes();
            for (i, from) in access.values.iter().enumerate() {
                let at = u64::from(size) * i as u64;
                let TargetLanes { offset, lanes, .. } = &part;
                match size {
                    1 => scatter(memory, offset, at, *lanes, *from, &warp.rows, |v| [v as u8]),
                    2 => scatter(memory, offset, at, *lanes, *from, &warp.rows, |v| (v as u16).to_le_bytes()),
                    4 => scatter(memory, offset, at, *lanes, *from, &warp.rows, |v| (v as u32).to_le_bytes()),
                    _ => scatter(memory, offset, at, *lanes, *from, &warp.rows, u64::to_le_bytes),
                }
            }
        }
    }

    /// Returns whether the kernel may write to the target, and reports a violation.
    pub fn may_write<const TIER: u8>(&mut self, site: Pc, warp: &Warp, access: &AccessOp, part: &TargetLanes) -> bool {
        let may = match part.target {
            DescribedTarget::Buffer(b) => self.buffers[b].mutable,
            DescribedTarget::Shared => true,
        };
        if TIER >= ACCESSES && !may {
            self.report(Check::ReadOnlyWrite, site, warp.index, part.lanes, |machine, lane| {
                let object = machine.object(part.target, part.offset[lane], access);
                let name = &object.name;
                let value = access.values.first();
                let stores = value.map(|value| short(access.element, value.get(&warp.rows, lane)));
                let values = AccessValues { stores, ..AccessValues::default() };
                Description::new(format!("a store to `{name}`, which the kernel only reads")).about(object).with(values)
            });
        }
        may
    }

    /// Returns the lanes of `mask` whose condition for the access is true.
    pub fn guarded(&self, warp: &Warp, mask: u32, access: &AccessOp) -> u32 {
        access.guard.map_or(mask, |guard| mask & self.simd.truth(&warp.rows, guard))
    }

    /// Makes the bytes of `access` undefined.
    pub fn mark_undef<const TIER: u8>(&mut self, site: Pc, warp: &Warp, mask: u32, access: &AccessOp) {
        let active = self.guarded(warp, mask, access);
        let (address, mut rest) = self.addresses::<TIER>(site, warp, active, access);
        while rest != 0 {
            let mut part = self.part::<TIER>(site, warp, &mut rest, &address, access);
            if TIER >= ALL {
                self.check_access(AccessAction::MarkUndef, site, warp, access, &mut part);
            }
        }
    }
}

/// Reads `N` bytes at `offset + at` for each lane of `lanes` into `to`. Offsets have been checked
/// against `memory`; an offset that is outside nevertheless reads as 0.
#[inline(always)]
fn gather<const N: usize>(
    memory: &[u8],
    offset: &[u64; LANES],
    at: u64,
    lanes: u32,
    to: FrameRegister,
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
    from: FrameRegister,
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
