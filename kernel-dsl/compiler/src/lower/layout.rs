//! The placement of shared arrays, and the pitch of padded arrays.
//!
//! The lifetime of an array starts at its creation and ends with the enclosing braces. Bytes are
//! allocated as on a stack: arrays created in braces free their bytes at the end, so that arrays of
//! blocks that follow or exclude one another share memory. If the bytes of an array may have been
//! used before, by another array or in an earlier iteration, [`Op::LifetimeStart`] stays to inform
//! the oracle.
//!
//! Shared memory has 32 banks of 4 bytes; accesses of a warp to different words of one bank are
//! serialized. The layout considers each access to a padded array with an analyzable index. The
//! layout computes the indices of the 32 lanes relative to a part that all lanes share. That part
//! shifts the banks of all lanes equally, so it does not affect conflicts. The cost of an access is
//! the largest number of its words in one bank, times 8 for each loop around it. The pitch is the
//! row length plus the smallest pad with the lowest sum of costs. Pads keep the alignment of the
//! widest access: the pitch is a multiple of its width.

use super::lowerer::shared_arrays::{Alias, SharedArrayEvent, SharedArrayPlan};
use crate::analyses::lanes::{Lanes, Numbers};
use crate::analyses::memory;
use crate::error::{Error, Errors};
use crate::ir::{AccessPlace, Kernel, MAX_VECTOR_BYTES, Op, Region, SHARED_LIMIT, SharedId};
use smallvec::SmallVec;

/// The help for a kernel that needs too much shared memory.
pub(super) const SHARED_LIMIT_HELP: &str = "use smaller tiles, or keep part of the data in registers";
/// The number of candidate pads, in elements. Larger pads repeat the same banks.
const MAX_PAD: u32 = 32;
/// The weight of one loop around an access.
const LOOP_WEIGHT: u64 = 8;

/// Returns the strides of an array whose rows are `pitch` elements apart.
pub(super) fn strides(shape: &[u32], pitch: u32) -> SmallVec<[u32; 3]> {
    let mut strides: SmallVec<[u32; 3]> = SmallVec::from_elem(1, shape.len());
    let mut stride = pitch;
    for d in (0..shape.len().saturating_sub(1)).rev() {
        strides[d] = stride;
        stride = stride.saturating_mul(shape[d]);
    }
    strides
}

/// Chooses the pitch of padded arrays and the offset of each array.
pub(super) fn assign(kernel: &mut Kernel, plan: &SharedArrayPlan) -> Result<(), Errors> {
    let SharedArrayPlan { padded, events, aliases } = plan;
    if !padded.is_empty() {
        let mut accesses = Vec::new();
        let lanes = Lanes::of(kernel, 0);
        collect(&lanes, &kernel.body, 1, &mut accesses);
        for id in padded {
            let pad = best_pad(kernel, *id, &accesses);
            let array = &mut kernel.shared[id.0 as usize];
            let row = array.shape[array.shape.len() - 1];
            array.strides = strides(&array.shape, row + pad);
            array.layout = crate::ir::SharedLayout::Padded { pad };
        }
    }
    for alias in aliases {
        set_aliased_strides(kernel, alias)?;
    }
    place(kernel, events);
    super::dynamic::sizes(kernel)?;
    if kernel.shared_bytes() > SHARED_LIMIT {
        let each: Vec<_> = kernel.shared.iter().map(|s| format!("`{}` {}", s.name, s.bytes())).collect();
        return Err(Error::without_span(format!(
            "`{}` needs {} bytes of shared memory ({}); the limit is {SHARED_LIMIT} bytes per block",
            kernel.instance,
            kernel.shared_bytes(),
            each.join(", ")
        ))
        .help(SHARED_LIMIT_HELP)
        .into());
    }
    let sharing: Vec<bool> = (0..kernel.shared.len()).map(|i| shares(kernel, i)).collect();
    drop_needless_lifetime_starts(&mut kernel.body, &sharing, false);
    Ok(())
}

/// Sets the outer strides of an array that reuses another array's bytes. The other array's pitch is
/// known at this point.
fn set_aliased_strides(kernel: &mut Kernel, alias: &Alias) -> Result<(), Errors> {
    let array = &kernel.shared[alias.array.0 as usize];
    let Some(under) = array.over.map(|id| &kernel.shared[id.0 as usize]) else { return Ok(()) };
    let size = array.element.bytes();
    // The alignment of the widest access must hold in each plane.
    let unit = if alias.cast { size } else { size.max(MAX_VECTOR_BYTES) };
    let mut strides = array.strides.clone();
    for (d, stride) in strides.iter_mut().enumerate().take(alias.kept) {
        let bytes = under.strides[d].saturating_mul(under.element.bytes());
        if !bytes.is_multiple_of(unit) || !bytes.is_multiple_of(size) {
            let message = format!(
                "`{}` cannot reuse the memory of `{}`: the stride of its dimension {d} is {bytes} bytes, not a multiple of {unit}",
                array.name, under.name
            );
            return Err(kernel
                .error(alias.location, message)
                .help("make the rows or the pitch such a multiple")
                .into());
        }
        *stride = bytes / size;
    }
    let reach = |strides: &[u32], shape: &[u32], bytes: u32| {
        let inner = shape.iter().zip(strides).skip(alias.kept);
        let last = inner.map(|(n, s)| n.saturating_sub(1).saturating_mul(*s)).fold(0, u32::saturating_add);
        last.saturating_add(1).saturating_mul(bytes)
    };
    let needed = reach(&strides, &array.shape, size);
    let there = reach(&under.strides, &under.shape, under.element.bytes());
    if needed > there {
        let message = format!("`{}` needs {needed} bytes; `{}` provides {there}", array.name, under.name);
        return Err(kernel.error(alias.location, message).help("reuse the memory of a larger array").into());
    }
    kernel.shared[alias.array.0 as usize].strides = strides;
    Ok(())
}

/// Assigns the offset of each array.
fn place(kernel: &mut Kernel, events: &[SharedArrayEvent]) {
    let end = |kernel: &Kernel, id: SharedId| {
        let array = &kernel.shared[id.0 as usize];
        array.offset.saturating_add(array.bytes().next_multiple_of(MAX_VECTOR_BYTES))
    };
    let (mut top, mut most, mut open) = (0u32, 0u32, Vec::new());
    for event in events {
        match event {
            SharedArrayEvent::Declare(id) => {
                kernel.shared[id.0 as usize].offset = top;
                top = end(kernel, *id);
                most = most.max(top);
            }
            SharedArrayEvent::Open => open.push(top),
            SharedArrayEvent::Close(kept) => {
                let before = open.pop().unwrap_or(0);
                top = kept.iter().map(|id| end(kernel, root(kernel, *id))).fold(before, u32::max);
            }
            SharedArrayEvent::CloseAll => _ = open.pop(),
        }
    }
    for i in 0..kernel.shared.len() {
        let id = SharedId(i as u32);
        let offset = match kernel.shared[i].over {
            // The array whose bytes it reuses was created before.
            Some(under) => kernel.shared[under.0 as usize].offset,
            None if events.contains(&SharedArrayEvent::Declare(id)) => continue,
            None => most,
        };
        kernel.shared[i].offset = offset;
        if kernel.shared[i].over.is_none() {
            most = end(kernel, id);
        }
    }
}

/// Returns the array whose bytes `id` uses.
fn root(kernel: &Kernel, id: SharedId) -> SharedId {
    kernel.shared[id.0 as usize].over.map_or(id, |under| root(kernel, under))
}

/// Returns whether other arrays use bytes of this one.
fn shares(kernel: &Kernel, i: usize) -> bool {
    let of = |i: usize| {
        let array = &kernel.shared[i];
        (array.offset, array.offset + array.bytes())
    };
    let (start, end) = of(i);
    (0..kernel.shared.len()).any(|j| {
        let (other, last) = of(j);
        j != i && start < last && other < end
    })
}

/// Drops each `LifetimeStart` of an array that shares its bytes with no other array and is created
/// once. The bytes of such an array are undefined at that point anyway.
fn drop_needless_lifetime_starts(region: &mut Region, sharing: &[bool], looped: bool) {
    region.insts.retain(|inst| match inst.op {
        Op::LifetimeStart(array) => looped || sharing[array.0 as usize],
        _ => true,
    });
    for inst in &mut region.insts {
        let looped = looped || matches!(inst.op, Op::For(_) | Op::Loop { .. });
        inst.op.regions_mut().into_iter().for_each(|r| drop_needless_lifetime_starts(r, sharing, looped));
    }
}

/// One access to a shared array, with the indices of the lanes by dimension.
struct PaddedAccess {
    array: SharedId,
    indices: SmallVec<[Numbers; 3]>,
    /// The offset within the element in bytes, by lane.
    within: Numbers,
    /// The number of bytes that each lane accesses.
    bytes: u32,
    weight: u64,
}

fn collect(lanes: &Lanes, region: &Region, weight: u64, found: &mut Vec<PaddedAccess>) {
    for inst in &region.insts {
        let (place, bytes) = match &inst.op {
            Op::Load { place, element, .. } => (Some(place), inst.results.len() as u32 * element.bytes()),
            Op::Store { place, element, values, .. } => (Some(place), values.len() as u32 * element.bytes()),
            Op::Atomic { place, element, .. } => (Some(place), element.bytes()),
            _ => (None, 0),
        };
        if let Some(AccessPlace::Shared { array, indices, within }) = place {
            let indices: Option<_> = indices.iter().map(|v| lanes.get(*v).relative()).collect();
            let within = lanes.offset_within_element(within.as_deref()).relative();
            if let (Some(indices), Some(within)) = (indices, within) {
                found.push(PaddedAccess { array: *array, indices, within, bytes, weight });
            }
        }
        let inner = match inst.op {
            Op::For(_) | Op::Loop { .. } => weight.saturating_mul(LOOP_WEIGHT),
            _ => weight,
        };
        for inner_region in inst.op.regions() {
            collect(lanes, inner_region, inner, found);
        }
    }
}

fn best_pad(kernel: &Kernel, id: SharedId, accesses: &[PaddedAccess]) -> u32 {
    let array = &kernel.shared[id.0 as usize];
    if array.shape.len() < 2 {
        return 0;
    }
    let row = array.shape[array.shape.len() - 1];
    let widest = accesses.iter().filter(|a| a.array == id).map(|a| a.bytes).max().unwrap_or(1);
    // Rows start at the alignment of the widest access.
    let aligned = aligned_pitch(widest, array.element.bytes());
    let first = row.next_multiple_of(aligned) - row;
    let cost = |pad: u32| -> u64 {
        let strides = strides(&array.shape, row + pad);
        accesses
            .iter()
            .filter(|a| a.array == id)
            .map(|a| a.weight * u64::from(degree(a, &strides, array.element.bytes())))
            .sum()
    };
    (first..first + MAX_PAD).step_by(aligned as usize).min_by_key(|pad| (cost(*pad), *pad)).unwrap_or(0)
}

/// Returns the unit of a pitch, in elements of `bytes` bytes: accesses of `widest` bytes are
/// aligned in all rows if the pitch is a multiple of this unit.
pub(super) fn aligned_pitch(widest: u32, bytes: u32) -> u32 {
    let access = widest.clamp(1, MAX_VECTOR_BYTES);
    access >> bytes.trailing_zeros().min(access.ilog2())
}

/// Returns the largest number of different words that the access reads from one bank.
fn degree(access: &PaddedAccess, strides: &[u32], bytes: u32) -> u32 {
    let address = |lane: usize| {
        let element: i64 = access.indices.iter().zip(strides).map(|(i, s)| i[lane] * i64::from(*s)).sum();
        element * i64::from(bytes) + access.within[lane]
    };
    memory::ways(&std::array::from_fn(address), u32::MAX, access.bytes, true)
}
