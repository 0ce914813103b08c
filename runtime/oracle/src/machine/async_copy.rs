//! Copies in flight from global to shared memory.
//!
//! The source of a copy is read when the copy begins, because no thread writes the source. The data
//! is stored to shared memory only when the thread waits for the copy's group. Until then, the
//! destination is undefined for all threads.

use crate::code::frame::{FrameRegister, LANES, LaneWord, lanes_of};
use crate::code::lanes::mask;
use crate::code::{AccessOp, AsyncCopyAccess, Pc, RowIndex, WaitGroup};
use crate::machine::access::AccessAction;
use crate::machine::address::TargetLanes;
use crate::machine::describe::DescribedTarget;
use crate::machine::{ALL, Machine, Warp};

/// The maximum size of one thread's copy in bytes.
const MAX_COPY_BYTES: usize = 16;

/// The copies of a warp's threads.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Copies {
    /// The number of groups that each lane has closed.
    closed: [u32; LANES],
    /// The copies in flight, in the order in which they began.
    in_flight: Vec<InFlightCopy>,
}

/// A copy in flight.
#[derive(Clone, PartialEq, Debug)]
struct InFlightCopy {
    /// Index into the code's copies.
    copy: u32,
    /// The instruction that began the copy.
    site: Pc,
    /// Lanes whose copy is not complete.
    lanes: u32,
    /// Lanes whose copy is not only zeros.
    with_data: u32,
    /// The number of the copy's group, by lane.
    group: [u32; LANES],
    /// The offset of the destination in shared memory, by lane.
    offset: [u64; LANES],
    /// The data of the copy, by lane.
    data: [[u8; MAX_COPY_BYTES]; LANES],
}

impl Copies {
    /// Returns the copies in flight that carry data: the instruction, the lanes, and the
    /// destinations.
    pub fn left(&self) -> impl Iterator<Item = (Pc, u32, [u64; LANES])> {
        let left = self.in_flight.iter().map(|one| (one.site, one.lanes & one.with_data, one.offset));
        left.filter(|(_, lanes, _)| *lanes != 0)
    }

    /// Drops the copies of all lanes outside `own`.
    pub fn keep(&mut self, own: u32) {
        self.in_flight.iter_mut().for_each(|one| one.lanes &= own);
        self.in_flight.retain(|one| one.lanes != 0);
    }

    /// Adds the copies of the lanes of `own` from another part of the warp.
    pub fn take(&mut self, other: Copies, own: u32) {
        lanes_of(own).for_each(|lane| self.closed[lane] = other.closed[lane]);
        self.in_flight.extend(other.in_flight);
    }
}

impl Machine<'_, '_> {
    /// Begins a copy.
    pub fn copy_async<const TIER: u8>(&mut self, site: Pc, warp: &mut Warp, lanes: u32, index: u32) {
        let copy = &self.program.code.copies[index as usize];
        let truth = |row: Option<RowIndex>| row.map_or(u32::MAX, |row| self.simd.truth(&warp.rows, row));
        let (active, inside) = (lanes & truth(copy.guard), truth(copy.inside));
        let (address, mut rest) = self.addresses::<TIER>(site, warp, active, &copy.to);
        if rest == 0 {
            return;
        }
        let mut to = self.part::<TIER>(site, warp, &mut rest, &address, &copy.to);
        if TIER >= ALL {
            self.check_access(AccessAction::MarkUndef, site, warp, &copy.to, &mut to);
        }
        let mut data = [[0; MAX_COPY_BYTES]; LANES];
        let with_data = self.fetch::<TIER>(site, warp, to.lanes & inside, copy, &mut data);
        let (group, offset) = (warp.copies.closed, to.offset);
        warp.copies.in_flight.push(InFlightCopy { copy: index, site, lanes: to.lanes, with_data, group, offset, data });
    }

    /// Reads the sources of a copy, up to the size that each lane specifies, and returns lanes that
    /// read any.
    fn fetch<const TIER: u8>(
        &mut self,
        site: Pc,
        warp: &Warp,
        mut lanes: u32,
        copy: &AsyncCopyAccess,
        data: &mut [[u8; MAX_COPY_BYTES]; LANES],
    ) -> u32 {
        let size = copy.from.element.bytes();
        let counts: [u32; LANES] = match copy.bytes {
            Some(row) => u32::lanes(&warp.rows, row as usize).map(|bytes| (bytes / size).min(copy.from.count)),
            None => [copy.from.count; LANES],
        };
        lanes &= mask(|l| counts[l] > 0);
        let with_data = lanes;
        while lanes != 0 {
            // Lanes with equal sizes are copied together.
            let count = counts[lanes.trailing_zeros() as usize];
            let alike = lanes & mask(|l| counts[l] == count);
            lanes &= !alike;
            let shorter;
            let access = if count == copy.from.count {
                &copy.from
            } else {
                shorter = first(&copy.from, count);
                &shorter
            };
            let (address, mut rest) = self.addresses::<TIER>(site, warp, alike, access);
            while rest != 0 {
                let mut part = self.part::<TIER>(site, warp, &mut rest, &address, access);
                if TIER >= ALL {
                    self.check_access(AccessAction::Load, site, warp, access, &mut part);
                }
                let DescribedTarget::Buffer(b) = part.target else { continue };
                let memory: &[u8] = self.buffers[b].bytes.get();
                let bytes = (count * size) as usize;
                for lane in lanes_of(part.lanes) {
                    let start = part.offset[lane] as usize;
                    if let Some(from) = memory.get(start..start + bytes) {
                        data[lane][..bytes].copy_from_slice(from);
                    }
                }
            }
        }
        with_data
    }

    /// Closes the current group of these lanes.
    pub fn copy_commit(&self, warp: &mut Warp, lanes: u32, to: RowIndex) {
        let to = FrameRegister { row: to, wide: false };
        for lane in lanes_of(lanes) {
            to.set(&mut warp.rows, lane, warp.copies.closed[lane].into());
            warp.copies.closed[lane] += 1;
        }
    }

    /// Completes the copies that these lanes wait for.
    pub fn copy_wait<const TIER: u8>(&mut self, site: Pc, warp: &mut Warp, lanes: u32, landing: WaitGroup) {
        // The number of groups to complete, from the first on.
        let through = match landing {
            WaitGroup::UpTo(row) => u32::lanes(&warp.rows, row as usize).map(|group| group.saturating_add(1)),
            WaitGroup::AllBut(n) => warp.copies.closed.map(|closed| closed.saturating_sub(n)),
        };
        let mut in_flight = std::mem::take(&mut warp.copies.in_flight);
        for one in &mut in_flight {
            let landed = one.lanes & lanes & mask(|l| one.group[l] < through[l].min(warp.copies.closed[l]));
            if landed == 0 {
                continue;
            }
            one.lanes &= !landed;
            let access = &self.program.code.copies[one.copy as usize].to;
            if TIER >= ALL {
                let mut part = TargetLanes { target: DescribedTarget::Shared, offset: one.offset, lanes: landed };
                self.check_access(AccessAction::Store, site, warp, access, &mut part);
            }
            let bytes = access.bytes() as usize;
            let memory: &mut [u8] = bytemuck::cast_slice_mut(&mut self.shared[..]);
            for lane in lanes_of(landed) {
                let start = one.offset[lane] as usize;
                if let Some(to) = memory.get_mut(start..start + bytes) {
                    to.copy_from_slice(&one.data[lane][..bytes]);
                }
            }
        }
        in_flight.retain(|one| one.lanes != 0);
        warp.copies.in_flight = in_flight;
    }
}

/// Returns an access to the first scalars of an access.
fn first(access: &AccessOp, count: u32) -> AccessOp {
    let mut access = access.clone();
    access.count = count;
    let within = &mut access.within;
    if within.steps.is_empty() {
        within.reach = (within.offset + count * access.element.bytes()).div_ceil(within.unit.max(1));
    }
    access
}
