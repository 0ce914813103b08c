//! A fast path for the common load from a buffer: one word a lane, consecutive in each half of the
//! warp, without errors. Other loads are declined and take the general path.

use crate::code::frame::{FULL, LANES, LaneWord, Row};
use crate::code::lanes::versions;
use crate::code::{AccessLocation, AccessOp, Dim, Origin};
use crate::machine::access::AccessAction;
use crate::machine::shared_fast_path::HALF;
use crate::machine::{ACCESSES, ALL, Machine, Warp};

/// The location of a view in its buffer: the offset of its first element in bytes, and its
/// dimensions. The extent and stride of each are uniform.
#[derive(Clone, Copy)]
pub(crate) struct UniformView<'a> {
    start: u64,
    dims: &'a [Dim],
}

versions! {
    /// `to` ← the words of `memory` that the lanes access. Returns whether the fast path applies.
    fn load_halves(rows: &mut [Row], to: u32, memory: &[u8], flat: UniformView<'_>) -> bool;
}

#[inline(always)]
fn load_halves(rows: &mut [Row], to: u32, memory: &[u8], flat: UniformView<'_>) -> bool {
    let mut words = [0u32; LANES];
    let (mut beyond, mut most) = (0, 0u64);
    for dim in flat.dims {
        let first = |row: u32| u32::lanes(rows, row as usize)[0];
        let (extent, stride) = (first(dim.extent), dim.stride.map_or(1, first));
        let index = u32::lanes(rows, dim.index as usize);
        most = most.saturating_add(u64::from(extent) * u64::from(stride));
        for (word, index) in words.iter_mut().zip(index) {
            *word = word.wrapping_add(index.wrapping_mul(stride));
            beyond |= u32::from(*index >= extent);
        }
    }
    let (low, high) = (words[0], words[HALF]);
    // Declines accesses that are out of bounds, not consecutive, or overflow.
    if beyond | gaps(&words, 0) | gaps(&words, HALF) != 0 || most > u64::from(u32::MAX) {
        return false;
    }
    let half = |first: u32| {
        let at = usize::try_from(flat.start.checked_add(4 * u64::from(first))?).ok()?;
        memory.get(at..)?.first_chunk::<{ 4 * HALF }>()
    };
    let (Some(low), Some(high)) = (half(low), half(high)) else { return false };
    let (low, high): ([u32; HALF], [u32; HALF]) =
        (bytemuck::pod_read_unaligned(low), bytemuck::pod_read_unaligned(high));
    let to = u32::lanes_mut(rows, to as usize);
    for lane in 0..HALF {
        to[lane] = u32::from_le(low[lane]);
    }
    for lane in 0..HALF {
        to[HALF + lane] = u32::from_le(high[lane]);
    }
    true
}

/// Returns 0 if the words of half a warp from lane `first` on are consecutive.
#[inline(always)]
fn gaps(words: &[u32; LANES], first: usize) -> u32 {
    (0..HALF).fold(0, |gaps, l| gaps | words[first + l].wrapping_sub(words[first]) ^ l as u32)
}

impl Machine<'_, '_> {
    /// Loads if the access has no errors, and returns whether it did.
    #[inline(always)]
    pub fn load_row<const TIER: u8>(&mut self, warp: &mut Warp, lanes: u32, access: &AccessOp) -> bool {
        let AccessLocation::Global { base, dims, origin: Origin::Argument(argument) } = &access.place else {
            return false;
        };
        if !access.flat || lanes != FULL {
            return false;
        }
        let Some(Some(buffer)) = self.setting.by_argument.get(*argument as usize) else { return false };
        let buffer = &self.buffers[*buffer];
        let address = u64::lanes(&warp.rows, *base as usize)[0];
        // Shadow memory records loads from writable buffers; uninitialized buffers take the general
        // path.
        if TIER >= ALL && (buffer.mutable || buffer.contract.needs_check(AccessAction::Load))
            || TIER >= ACCESSES && !address.is_multiple_of(4)
        {
            return false;
        }
        let flat = UniformView { start: address.wrapping_sub(buffer.base), dims };
        self.simd.load_halves(&mut warp.rows, access.values[0].row, buffer.bytes.get(), flat)
    }
}
