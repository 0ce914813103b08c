//! The call for histograms.

use super::Key;
use super::kernels::{count_global, count_shared};
use crate::Queue;
use crate::axes::{pieces_are_contiguous, widest};
use crate::dispatch::dispatch;
use crate::operand::ArrayOperand;
use crate::permute::fill;
use crate::queue::{LibraryCall, renaming_parameters};
use kernel_dsl::GenericArgument;
use runtime::{BufferView, BufferViewMut, Error};
use std::ops::RangeInclusive;

/// The maximum number of threads of a multiprocessor: eight blocks of 256, or two of 1024, as the
/// kernels declare.
const THREADS: usize = 8 * 256;

/// Counts the keys in each bin: `bins[b]` ← the number of keys with bin b. A key without a bin is
/// not counted.
///
/// | keys | bin |
/// |---|---|
/// | `u8`, `u32` | the key itself; none if it is `bins.len()` or more. `range` is ignored |
/// | `f32` x in `range` | ⌊(x − low) / (high − low) · bins⌋ for `range` = low..=high; `high` itself is in the last bin |
/// | `f32` outside `range`, ±∞, NaN | none |
///
/// The difference, the number of bins per unit, and their product are each rounded to `f32`: a
/// number next to the edge of a bin may be counted in the adjacent bin. If the width exceeds
/// `f32::MAX`, it is computed from halves. −0 counts as 0; subnormal numbers and ranges are exact.
/// If low equals high, that number is in the last bin. A count is below 2³².
///
/// ```
/// # fn main() -> Result<(), runtime::Error> {
/// use kernels_rs::histogram::histogram;
/// let device = runtime::Device::cpu();
/// let keys = device.upload(&[0.1f32, 0.6, 0.9, 1.0, 1.5, f32::NAN])?;
/// let mut bins = device.zeros::<u32>(4)?;
/// histogram(&device, &keys.view([6])?, 0.0..=1.0, &mut bins.view_mut([4])?)?;
/// assert_eq!(bins.download()?, [1, 0, 1, 2]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Returns an error if:
/// - keys are `f32`, and an end of the range is not finite, or low is above high,
/// - keys and bins overlap,
/// - the number of keys plus the threads of the device exceeds 32 bits, or
/// - a buffer belongs to another device.
pub fn histogram<K: Key + GenericArgument>(
    on: &impl Queue,
    keys: &BufferView<'_, K, 1>,
    range: RangeInclusive<f32>,
    bins: &mut BufferViewMut<'_, u32, 1>,
) -> Result<(), Error> {
    let (low, high) = range.into_inner();
    if K::RANGED && !(low.is_finite() && high.is_finite() && low <= high) {
        return Err(keys.refused_operand(format!(
            "the range is {low:?} to {high:?}; both ends must be finite, and the first at most the second"
        )));
    }
    let ([n], [wanted], wide) = (keys.extents(), bins.extents(), widest(size_of::<K>()));
    // A thread advances by the number of threads, even past the end.
    keys.countable(n, THREADS * on.device().facts().multiprocessors as usize)?;
    if wanted == 0 {
        return Ok(());
    }
    if wanted > 4096 {
        fill(on, 0u32, bins.reborrow().strided()).map_err(renaming_parameters(&[["y", "bins"]]))?;
        if n == 0 {
            return Ok(());
        }
        // SAFETY: as below.
        return unsafe { count_global::<K>::launch_unchecked(&LibraryCall(on), keys, low, high, bins) };
    }
    // The remainder of the last 16 bytes is counted one key at a time.
    let aligned =
        pieces_are_contiguous(&keys.slice(0..n / wide * wide)?.strided().reshaped([1, 1, 1, n / wide * wide])?, wide);
    let wide = if aligned { wide } else { 1 };
    let pairs = wanted.div_ceil(2);
    let (mut ended, mut totals) = (on.counters(1)?, on.counters(pairs)?);
    let (ended, totals) = (ended.halves(1)?, totals.words(pairs)?);
    dispatch!(let V: usize = wide, of [1, 4, 16]; let [BINS: usize, COLUMNS: usize] = match wanted {
        0..=256 => [256, 32],
        _ => [4096, 1],
    };
    // SAFETY: the launch compares the number of bins, and the kernel counts within them. The oracle
    // ran the kernel at and around every edge (`kernels check`).
    unsafe {
        count_shared::<K, BINS, COLUMNS, V>::launch_unchecked(&LibraryCall(on), keys, low, high, totals, ended, bins)
    })
}
