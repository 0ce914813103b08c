//! New keys and values on their way into a cache, as one calls it.

use super::append::cache_append;
use super::cache::{Contiguous, Paged, Pages, Stored};
use crate::operand::{Operand, refused};
use crate::rotary::Layout;
use crate::{Passed, Queue};
use kernel_dsl::{Element, Float, GenericArgument};
use runtime::{BufferView, BufferViewMut, Error};

/// A decoding step's new keys and values into the cache, and its queries, all turned to where they stand: one kernel.
///
/// q and `turned` are [sequence, head, element]; new keys and values [sequence, head of keys, element], of as many elements. `lengths` says how many keys the cache has of each
/// sequence, which is the position of the new one: it goes to the row behind them. A sequence whose cache is full leaves nothing there. Of a head's elements the first 2 · pairs are
/// turned, pair i by the position times `frequencies[i]` ([`Rotary`](crate::rotary::Rotary) says how; Su and others, 2021), and the others stay; without frequencies all do. It is
/// computed in `f32` and rounded once.
///
/// Finite elements whose rotated values are in range give finite ones. The elements of a pair with
/// a NaN or ±∞ are NaN or ±∞, at position 0 as well. What is beyond the range of the cache's type
/// becomes ±∞, and what is below its subnormals 0. A position from 2²⁴ on is rounded to `f32`.
///
/// Bytes are x / scale to the nearest, ties to even, clamped to the range of `i8`, of the scale max
/// |x| / 127: off by half a scale, and by up to 2⁻¹⁴² of a row whose largest magnitude is below
/// 2⁻¹¹⁹. A row of zeros has the scale 0. A NaN becomes 0, and counts for no scale. A row with ±∞
/// has the scale ∞, and is NaN where it is read.
///
/// [`Decode`](super::Decode) then takes `turned`, and lengths that count the new key.
///
/// Any extent may be 0. There are any number of sequences and heads, as long as sequences × heads,
/// of queries and of keys, are at most 2³¹ − 1 where sequences are more than 65,535. The pages of a
/// sequence have room for fewer than 2³⁰ keys.
///
/// ```
/// # fn main() -> Result<(), runtime::Error> {
/// use kernels_rs::attention::Append;
/// use kernels_rs::rotary::Layout;
/// let device = runtime::Device::cpu();
/// let (new, lengths) = (device.upload(&[1.0f32, 2.0])?, device.upload(&[1u32])?);
/// let frequencies = device.upload(&[0.0f32])?;
/// let (mut turned, mut k, mut v) = (device.zeros::<f32>(2)?, device.zeros::<f32>(4)?, device.zeros::<f32>(4)?);
/// let (q, rows) = (new.view([1, 1, 2])?, [1, 1, 2, 2]);
/// let append = Append::new(Layout::Halves, &frequencies.view([1])?);
/// let cache = [&mut k.view_mut(rows)?, &mut v.view_mut(rows)?];
/// append.run(&device, &q, &mut turned.view_mut([1, 1, 2])?, [&q, &q], cache, &lengths.view([1])?)?;
/// assert_eq!(k.download()?, [0.0, 0.0, 1.0, 2.0]);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Append<'a> {
    layout: Layout,
    frequencies: BufferView<'a, f32, 1>,
}

/// The scales of a cache of bytes: of keys and of values, [plane, head, row].
pub type AppendedScales<'a, 'b> = [&'a mut BufferViewMut<'b, f32, 3>; 2];

impl<'a> Append<'a> {
    /// With a frequency for each pair that is turned.
    pub const fn new(layout: Layout, frequencies: &BufferView<'a, f32, 1>) -> Append<'a> {
        Append { layout, frequencies: *frequencies }
    }

    /// Queues it, with a cache of [sequence, head, row, element].
    ///
    /// # Errors
    /// Where the extents do not belong together or are beyond the limits above, what is written
    /// overlaps something else, or a buffer is another device's.
    pub fn run<T: Float + GenericArgument, K: Stored + GenericArgument>(
        self,
        on: &impl Queue,
        q: &BufferView<'_, T, 3>,
        turned: &mut BufferViewMut<'_, T, 3>,
        new: [&BufferView<'_, T, 3>; 2],
        cache: [&mut BufferViewMut<'_, K, 4>; 2],
        lengths: &BufferView<'_, u32, 1>,
    ) -> Result<(), Error> {
        contiguous::<K>(q.extents()[0], [cache[0].extents(), cache[0].strides()])?;
        self.any(on, q, turned, new, cache, None, Contiguous, lengths)
    }

    /// Queues it, with a cache of pages, [page, head, row of the page, element]; `table` is [sequence, page of the sequence] and says which page it is. The row behind the last is of
    /// one sequence alone.
    ///
    /// # Errors
    /// As for [`run`](Append::run).
    #[allow(clippy::too_many_arguments, reason = "the operands, and where it runs")]
    pub fn run_paged<T: Float + GenericArgument, K: Stored + GenericArgument>(
        self,
        on: &impl Queue,
        q: &BufferView<'_, T, 3>,
        turned: &mut BufferViewMut<'_, T, 3>,
        new: [&BufferView<'_, T, 3>; 2],
        cache: [&mut BufferViewMut<'_, K, 4>; 2],
        table: &BufferView<'_, u32, 2>,
        lengths: &BufferView<'_, u32, 1>,
    ) -> Result<(), Error> {
        paged::<K>(q.extents()[0], [cache[0].extents(), cache[0].strides()], table)?;
        // SAFETY: the table is noted as read by the launch, which is queued before its borrow ends.
        let pages = Paged { table: unsafe { table.detached() } };
        on.reading(table, || self.any(on, q, turned, new, cache, None, pages, lengths))
    }

    /// Queues it, with a cache of bytes, [sequence, head, row, element]: a row's bytes are multiples of its scale, [sequence, head, row], which is its largest magnitude over 127.
    ///
    /// # Errors
    /// As for [`run`](Append::run).
    #[allow(clippy::too_many_arguments, reason = "the operands, and where it runs")]
    pub fn run_scaled<T: Float + GenericArgument>(
        self,
        on: &impl Queue,
        q: &BufferView<'_, T, 3>,
        turned: &mut BufferViewMut<'_, T, 3>,
        new: [&BufferView<'_, T, 3>; 2],
        cache: [&mut BufferViewMut<'_, i8, 4>; 2],
        scales: AppendedScales<'_, '_>,
        lengths: &BufferView<'_, u32, 1>,
    ) -> Result<(), Error> {
        contiguous::<i8>(q.extents()[0], [cache[0].extents(), cache[0].strides()])?;
        self.any(on, q, turned, new, cache, Some(scales), Contiguous, lengths)
    }

    /// Queues it, with a cache of bytes in pages, [page, head, row of the page, element], and scales of [page, head, row of the page].
    ///
    /// # Errors
    /// As for [`run`](Append::run).
    #[allow(clippy::too_many_arguments, reason = "the operands, and where it runs")]
    pub fn run_scaled_paged<T: Float + GenericArgument>(
        self,
        on: &impl Queue,
        q: &BufferView<'_, T, 3>,
        turned: &mut BufferViewMut<'_, T, 3>,
        new: [&BufferView<'_, T, 3>; 2],
        cache: [&mut BufferViewMut<'_, i8, 4>; 2],
        scales: AppendedScales<'_, '_>,
        table: &BufferView<'_, u32, 2>,
        lengths: &BufferView<'_, u32, 1>,
    ) -> Result<(), Error> {
        paged::<i8>(q.extents()[0], [cache[0].extents(), cache[0].strides()], table)?;
        // SAFETY: as in `run_paged`.
        let pages = Paged { table: unsafe { table.detached() } };
        on.reading(table, || self.any(on, q, turned, new, cache, Some(scales), pages, lengths))
    }

    #[allow(clippy::too_many_arguments, reason = "the operands, and where it runs")]
    fn any<T: Float + GenericArgument, K: Stored + GenericArgument, P: Pages + Passed>(
        self,
        on: &impl Queue,
        q: &BufferView<'_, T, 3>,
        turned: &mut BufferViewMut<'_, T, 3>,
        [new_k, new_v]: [&BufferView<'_, T, 3>; 2],
        [k, v]: [&mut BufferViewMut<'_, K, 4>; 2],
        scales: Option<AppendedScales<'_, '_>>,
        pages: P,
        lengths: &BufferView<'_, u32, 1>,
    ) -> Result<(), Error> {
        let [sequences, heads, width] = q.extents();
        let [planes, groups, rows, _] = k.extents();
        turned.expected("turned", [sequences, heads, width], "as q is")?;
        k.expected("keys of the cache", [planes, groups, rows, width], "rows as long as heads of q")?;
        v.expected("values of the cache", [planes, groups, rows, width], "as its keys are")?;
        new_k.expected(
            "the new keys",
            [sequences, groups, width],
            "a row of each head of the cache for each sequence of q",
        )?;
        new_v.expected(
            "the new values",
            [sequences, groups, width],
            "a row of each head of the cache for each sequence of q",
        )?;
        lengths.expected("lengths", [sequences], "one for each sequence of q")?;
        for scales in scales.iter().flatten() {
            scales.expected(
                "a list of scales",
                [planes, groups, rows],
                "one for each head of each row of the cache",
            )?;
        }
        if 2 * self.frequencies.extents()[0] > width {
            let [pairs] = self.frequencies.extents();
            return Err(q.refused(format!(
                "heads of q are {width} numbers, and {pairs} frequencies are for {} at least",
                2 * pairs
            )));
        }
        q.startable(
            [heads + groups, sequences, 1],
            format_args!("{sequences} sequences of {heads} heads, {groups} of keys,"),
        )?;
        let (mut no_keys, mut no_values) = (on.scratch::<f32>(0)?, on.scratch::<f32>(0)?);
        let scaled = scales.is_some();
        let [mut of_keys, mut of_values] = match scales {
            Some([keys, values]) => [keys.reborrow(), values.reborrow()],
            None => [no_keys.view_mut([0; 3])?, no_values.view_mut([0; 3])?],
        };
        macro_rules! launch {
            ($scaled:literal, $interleaved:literal) => {
                // SAFETY: the launch compares all extents with one another, and the kernel compares lengths with the cache's room and pages with the planes: the oracle
                // ran it at and around every edge (`kernels check`). Planes are as many as sequences, or the table has a row for each.
                unsafe {
                    cache_append::<T, K, P, $scaled, $interleaved>::launch_unchecked(
                        on, q, turned, new_k, new_v, k, v, &mut of_keys, &mut of_values, pages, lengths, &self.frequencies,
                    )
                }
            };
        }
        match (scaled, self.layout) {
            (false, Layout::Halves) => launch!(false, false),
            (false, Layout::Interleaved) => launch!(false, true),
            (true, Layout::Halves) => launch!(true, false),
            (true, Layout::Interleaved) => launch!(true, true),
        }
    }
}

/// Whether a cache in one piece, of these extents and strides, has a plane for each sequence. Of no sequences nothing is asked.
pub(super) fn contiguous<K: Element>(sequences: usize, cache: [[usize; 4]; 2]) -> Result<(), Error> {
    let [[planes, ..], _] = cache;
    if sequences == 0 || planes == sequences {
        return Ok(());
    }
    let why = format!("it has {planes} sequences, and there are {sequences} queries: give it a plane for each");
    Err(refused::<K, 4>(cache, why))
}

/// Rejects heads of queries, axis 1 of q, that are no multiple of those of keys.
pub(super) fn shared_heads<T: Element, K: Element, const R: usize>(
    q: &BufferView<'_, T, R>,
    k: &BufferView<'_, K, 4>,
) -> Result<(), Error> {
    let (heads, of_keys) = (q.extents()[1], k.extents()[1]);
    if heads == 0 || of_keys > 0 && heads.is_multiple_of(of_keys) {
        return Ok(());
    }
    Err(q.refused(format!("q has {heads} heads, which are no multiple of the {of_keys} heads of keys")))
}

/// Keys of a sequence are fewer, so that the kernels can count past its last part.
const MAX_KEYS: usize = 1 << 30;

/// Whether a sequence has a row of the table, and there is a page: which page a row names is the kernel's to bring within the cache.
pub(super) fn paged<K: Element>(
    sequences: usize,
    cache: [[usize; 4]; 2],
    table: &BufferView<'_, u32, 2>,
) -> Result<(), Error> {
    let ([[pages, _, of_page, _], _], [rows, of_sequence]) = (cache, table.extents());
    if of_sequence.saturating_mul(of_page) >= MAX_KEYS {
        let why = format!(
            "the table gives a sequence {of_sequence} pages of {of_page} rows, and a sequence has fewer than 2³⁰ keys"
        );
        return Err(refused::<K, 4>(cache, why));
    }
    if sequences == 0 || rows == sequences && pages > 0 {
        return Ok(());
    }
    let why = if rows != sequences {
        format!("the table is of {rows} sequences, and there are {sequences} queries: give it a row for each")
    } else {
        format!("it has no page, and there are {sequences} queries: give it one at least")
    };
    Err(refused::<K, 4>(cache, why))
}
