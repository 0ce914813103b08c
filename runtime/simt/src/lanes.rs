//! The lanes of a warp, as bits of a mask.

/// The number of lanes of a warp.
pub const LANES: usize = 32;

/// The mask of all lanes of a warp.
pub const FULL: u32 = u32::MAX;

/// Returns the lanes of `mask`, in order.
#[inline]
pub fn lanes_of(mut mask: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lane = mask.trailing_zeros();
        mask &= mask.wrapping_sub(1);
        (lane < 32).then_some(lane as usize)
    })
}
