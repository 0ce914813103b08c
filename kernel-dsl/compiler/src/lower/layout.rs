//! Where shared arrays lie, and the pitch of those that the compiler is to pad.
//!
//! Shared memory has 32 banks of 4 bytes; lanes of a warp that ask one bank for different words wait for one another. For
//! each access to a padded array whose index is understood, the indices of the 32 lanes of a warp are worked out
//! relative to a part that all lanes share (which moves all of them from bank to bank alike, and so does not matter).
//! The pitch is the row's length plus the smallest pad with the least sum, over those accesses, of the number of words that
//! the worst bank must give, weighted by 8 for each loop around the access. Pads keep the alignment of the widest
//! access of the machine: with them the pitch is a multiple of its width.

use crate::analyses::lanes::{Lanes, Numbers};
use crate::analyses::memory;
use crate::analyses::occupancy::Limits;
use crate::error::{Error, Errors};
use crate::ir::{Kernel, Layout, Op, Place, Region, SharedId, WIDEST};
use crate::target::Target;
use smallvec::SmallVec;

/// Bytes of shared memory that a block may have without asking for more, on every target.
pub(super) const LIMIT: u32 = Limits::of(Target::SM_61).shared_of_block;
/// What to do where that is not enough.
pub(super) const WAY_OUT: &str = "make the tiles smaller, or keep part of them in registers";
/// Pads that are tried, in elements: beyond a full turn around the banks nothing new comes.
const PADS: u32 = 32;
/// Weight of one loop around an access.
const LOOP_WEIGHT: u64 = 8;

/// Elements from one index to the next, for rows that lie `pitch` apart.
pub(super) fn strides(shape: &[u32], pitch: u32) -> SmallVec<[u32; 3]> {
    let mut strides: SmallVec<[u32; 3]> = SmallVec::from_elem(1, shape.len());
    let mut stride = pitch;
    for d in (0..shape.len().saturating_sub(1)).rev() {
        strides[d] = stride;
        stride = stride.saturating_mul(shape[d]);
    }
    strides
}

/// Chooses the pitch of `padded` arrays and gives each array its place.
pub(super) fn assign(kernel: &mut Kernel, padded: &[SharedId]) -> Result<(), Errors> {
    if !padded.is_empty() {
        let mut accesses = Vec::new();
        let lanes = Lanes::of(kernel, 0);
        collect(&lanes, &kernel.body, 1, &mut accesses);
        for id in padded {
            let pad = best_pad(kernel, *id, &accesses);
            let array = &mut kernel.shared[id.0 as usize];
            let row = array.shape[array.shape.len() - 1];
            array.strides = strides(&array.shape, row + pad);
            array.layout = Layout::Padded { pad };
        }
    }
    let mut offset = 0u32;
    for array in &mut kernel.shared {
        array.offset = offset;
        offset = offset.saturating_add(array.bytes().next_multiple_of(16));
    }
    if kernel.shared_bytes() > LIMIT {
        let each: Vec<_> = kernel.shared.iter().map(|s| format!("`{}` {}", s.name, s.bytes())).collect();
        return Err(Error::whole(format!(
            "`{}` needs {} bytes of shared memory ({}), and a block has {LIMIT}",
            kernel.instance,
            kernel.shared_bytes(),
            each.join(", ")
        ))
        .help(WAY_OUT)
        .into());
    }
    Ok(())
}

/// One access to a shared array: the indices of the lanes, by dimension.
struct Access {
    array: SharedId,
    indices: SmallVec<[Numbers; 3]>,
    /// Elements accessed by each lane.
    width: u32,
    weight: u64,
}

fn collect(lanes: &Lanes, region: &Region, weight: u64, found: &mut Vec<Access>) {
    for inst in &region.insts {
        let (place, width) = match &inst.op {
            Op::Load { place, .. } => (Some(place), inst.results.len()),
            Op::Store { place, values, .. } => (Some(place), values.len()),
            Op::Atomic { place, .. } => (Some(place), 1),
            _ => (None, 0),
        };
        if let Some(Place::Shared { array, indices }) = place {
            let indices: Option<_> = indices.iter().map(|v| lanes.get(*v).relative()).collect();
            if let Some(indices) = indices {
                found.push(Access { array: *array, indices, width: width as u32, weight });
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

fn best_pad(kernel: &Kernel, id: SharedId, accesses: &[Access]) -> u32 {
    let array = &kernel.shared[id.0 as usize];
    if array.shape.len() < 2 {
        return 0;
    }
    let row = array.shape[array.shape.len() - 1];
    let widest = accesses.iter().filter(|a| a.array == id).map(|a| a.width).max().unwrap_or(1).max(1);
    // Rows start where an access of the machine may.
    let aligned = widest.min(WIDEST / array.element.bytes());
    let first = row.next_multiple_of(aligned) - row;
    let cost = |pad: u32| -> u64 {
        let strides = strides(&array.shape, row + pad);
        accesses
            .iter()
            .filter(|a| a.array == id)
            .map(|a| a.weight * u64::from(degree(a, &strides, array.element.bytes())))
            .sum()
    };
    (first..first + PADS).step_by(aligned as usize).min_by_key(|pad| (cost(*pad), *pad)).unwrap_or(0)
}

/// Words that the worst bank must give.
fn degree(access: &Access, strides: &[u32], bytes: u32) -> u32 {
    let address = |lane: usize| {
        let element: i64 = access.indices.iter().zip(strides).map(|(i, s)| i[lane] * i64::from(*s)).sum();
        element * i64::from(bytes)
    };
    memory::ways(&std::array::from_fn(address), u32::MAX, access.width * bytes, true)
}
