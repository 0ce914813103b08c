//! The call that appends new keys and values to a cache.

use super::append::cache_append;
use super::cache::{Contiguous, Paged, Pages, Stored};
use crate::operand::{Operand, refused};
use crate::rotary::PairLayout;
use crate::{Passed, Queue};
use kernel_dsl::{Element, Float, GenericArgument};
use runtime::{BufferView, BufferViewMut, Error};

/// Appends a decoding step's new keys and values to the cache, and rotates keys and queries to
/// their positions, in one kernel.
///
/// q and `rotated` are [sequence, head, element]; new keys and values are
/// [sequence, key head, element], with the same number of elements. `lengths` gives the number of
/// cached keys of each sequence, which is the position of the new key and its row. For a sequence
/// whose cache is full, no key or value is written. The first 2 · pairs elements of a head are
/// rotated, pair i by the position times `frequencies[i]` (Su and others, 2021; see
/// [`Rotary`](crate::rotary::Rotary)). The other elements are copied; without frequencies all are.
/// Results are computed in `f32` and rounded once.
///
/// Finite elements whose rotated values are in range give finite ones. The elements of a pair with
/// a NaN or ±∞ are NaN or ±∞, at position 0 as well. A value beyond the range of the cache's type
/// becomes ±∞, and one below its subnormals 0. A position of 2²⁴ or more is rounded to `f32`.
///
/// A row of bytes has the scale max |x| / 127. Its bytes are x / scale, rounded to nearest, ties to
/// even, and clamped to the range of `i8`. The error is at most half a scale, plus up to 2⁻¹⁴² in a
/// row whose largest magnitude is below 2⁻¹¹⁹. A row of zeros has the scale 0. A NaN becomes 0 and
/// does not affect the scale. A row with ±∞ has the scale ∞, and reads as NaN.
///
/// Then call [`Decode`](super::Decode) with `rotated`, and with lengths that include the new key.
///
/// Any extent may be 0. The numbers of sequences and heads are unlimited up to 65,535 sequences.
/// Beyond, sequences × heads must be at most 2³¹ − 1, for query heads and for key heads. The pages
/// of a sequence hold fewer than 2³⁰ keys.
///
/// ```
/// # fn main() -> Result<(), runtime::Error> {
/// use kernels_rs::attention::Append;
/// use kernels_rs::rotary::PairLayout;
/// let device = runtime::Device::cpu();
/// let (new, lengths) = (device.upload(&[1.0f32, 2.0])?, device.upload(&[1u32])?);
/// let frequencies = device.upload(&[0.0f32])?;
/// let (mut rotated, mut k, mut v) = (device.zeros::<f32>(2)?, device.zeros::<f32>(4)?, device.zeros::<f32>(4)?);
/// let (q, rows) = (new.view([1, 1, 2])?, [1, 1, 2, 2]);
/// let append = Append::new(PairLayout::Halves, &frequencies.view([1])?);
/// let cache = [&mut k.view_mut(rows)?, &mut v.view_mut(rows)?];
/// append.run(&device, &q, &mut rotated.view_mut([1, 1, 2])?, [&q, &q], cache, &lengths.view([1])?)?;
/// assert_eq!(k.download()?, [0.0, 0.0, 1.0, 2.0]);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Append<'a> {
    layout: PairLayout,
    frequencies: BufferView<'a, f32, 1>,
}

/// The scales of a cache of bytes: of keys and of values, [plane, head, row].
pub type AppendedScales<'a, 'b> = [&'a mut BufferViewMut<'b, f32, 3>; 2];

impl<'a> Append<'a> {
    /// Returns a call with a frequency for each rotated pair.
    pub const fn new(layout: PairLayout, frequencies: &BufferView<'a, f32, 1>) -> Append<'a> {
        Append { layout, frequencies: *frequencies }
    }

    /// Queues the call with a cache of [sequence, head, row, element].
    ///
    /// # Errors
    /// Returns an error if extents do not match or exceed the limits above, an output overlaps
    /// another operand, or a buffer belongs to another device.
    pub fn run<T: Float + GenericArgument, K: Stored + GenericArgument>(
        self,
        on: &impl Queue,
        q: &BufferView<'_, T, 3>,
        rotated: &mut BufferViewMut<'_, T, 3>,
        new: [&BufferView<'_, T, 3>; 2],
        cache: [&mut BufferViewMut<'_, K, 4>; 2],
        lengths: &BufferView<'_, u32, 1>,
    ) -> Result<(), Error> {
        contiguous::<K>(q.extents()[0], [cache[0].extents(), cache[0].strides()])?;
        self.any(on, q, rotated, new, cache, None, Contiguous, lengths)
    }

    /// Queues the call with a paged cache, [page, head, row of the page, element]. `table`,
    /// [sequence, page of the sequence], gives the page numbers. The page of the new row must
    /// belong to one sequence only.
    ///
    /// # Errors
    /// As for [`run`](Append::run).
    #[allow(clippy::too_many_arguments, reason = "the operands, and where it runs")]
    pub fn run_paged<T: Float + GenericArgument, K: Stored + GenericArgument>(
        self,
        on: &impl Queue,
        q: &BufferView<'_, T, 3>,
        rotated: &mut BufferViewMut<'_, T, 3>,
        new: [&BufferView<'_, T, 3>; 2],
        cache: [&mut BufferViewMut<'_, K, 4>; 2],
        table: &BufferView<'_, u32, 2>,
        lengths: &BufferView<'_, u32, 1>,
    ) -> Result<(), Error> {
        paged::<K>(q.extents()[0], [cache[0].extents(), cache[0].strides()], table)?;
        // SAFETY: the launch records the table as read, and is queued before its borrow ends.
        let pages = Paged { table: unsafe { table.detached() } };
        on.reading(table, || self.any(on, q, rotated, new, cache, None, pages, lengths))
    }

    /// Queues the call with a cache of bytes, [sequence, head, row, element]. A row's bytes are
    /// multiples of its scale, [sequence, head, row], which is its largest magnitude / 127.
    ///
    /// # Errors
    /// As for [`run`](Append::run).
    #[allow(clippy::too_many_arguments, reason = "the operands, and where it runs")]
    pub fn run_scaled<T: Float + GenericArgument>(
        self,
        on: &impl Queue,
        q: &BufferView<'_, T, 3>,
        rotated: &mut BufferViewMut<'_, T, 3>,
        new: [&BufferView<'_, T, 3>; 2],
        cache: [&mut BufferViewMut<'_, i8, 4>; 2],
        scales: AppendedScales<'_, '_>,
        lengths: &BufferView<'_, u32, 1>,
    ) -> Result<(), Error> {
        contiguous::<i8>(q.extents()[0], [cache[0].extents(), cache[0].strides()])?;
        self.any(on, q, rotated, new, cache, Some(scales), Contiguous, lengths)
    }

    /// Queues the call with a paged cache of bytes, [page, head, row of the page, element], and
    /// scales of [page, head, row of the page].
    ///
    /// # Errors
    /// As for [`run`](Append::run).
    #[allow(clippy::too_many_arguments, reason = "the operands, and where it runs")]
    pub fn run_scaled_paged<T: Float + GenericArgument>(
        self,
        on: &impl Queue,
        q: &BufferView<'_, T, 3>,
        rotated: &mut BufferViewMut<'_, T, 3>,
        new: [&BufferView<'_, T, 3>; 2],
        cache: [&mut BufferViewMut<'_, i8, 4>; 2],
        scales: AppendedScales<'_, '_>,
        table: &BufferView<'_, u32, 2>,
        lengths: &BufferView<'_, u32, 1>,
    ) -> Result<(), Error> {
        paged::<i8>(q.extents()[0], [cache[0].extents(), cache[0].strides()], table)?;
        // SAFETY: as in `run_paged`.
        let pages = Paged { table: unsafe { table.detached() } };
        on.reading(table, || self.any(on, q, rotated, new, cache, Some(scales), pages, lengths))
    }

    #[allow(clippy::too_many_arguments, reason = "the operands, and where it runs")]
    fn any<T: Float + GenericArgument, K: Stored + GenericArgument, P: Pages + Passed>(
        self,
        on: &impl Queue,
        q: &BufferView<'_, T, 3>,
        rotated: &mut BufferViewMut<'_, T, 3>,
        [new_k, new_v]: [&BufferView<'_, T, 3>; 2],
        [k, v]: [&mut BufferViewMut<'_, K, 4>; 2],
        scales: Option<AppendedScales<'_, '_>>,
        pages: P,
        lengths: &BufferView<'_, u32, 1>,
    ) -> Result<(), Error> {
        let [sequences, heads, width] = q.extents();
        let [planes, groups, rows, _] = k.extents();
        rotated.expected("rotated", [sequences, heads, width], "the extents of q")?;
        k.expected("keys of the cache", [planes, groups, rows, width], "rows as long as heads of q")?;
        v.expected("values of the cache", [planes, groups, rows, width], "the extents of its keys")?;
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
                "the scales of the cache",
                [planes, groups, rows],
                "one for each head of each row of the cache",
            )?;
        }
        if 2 * self.frequencies.extents()[0] > width {
            let [pairs] = self.frequencies.extents();
            return Err(q.refused(format!(
                "heads of q have {width} elements; {pairs} frequencies need at least {}",
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
                // SAFETY: the launch checks all extents against each other. The kernel checks
                // lengths against the cache's rows and page numbers against the number of planes.
                // The oracle ran it at and around every edge (`kernels check`). There are as many
                // planes as sequences, or the table has a row for each sequence.
                unsafe {
                    cache_append::<T, K, P, $scaled, $interleaved>::launch_unchecked(
                        on,
                        q,
                        rotated,
                        new_k,
                        new_v,
                        k,
                        v,
                        &mut of_keys,
                        &mut of_values,
                        pages,
                        lengths,
                        &self.frequencies,
                    )
                }
            };
        }
        match (scaled, self.layout) {
            (false, PairLayout::Halves) => launch!(false, false),
            (false, PairLayout::Interleaved) => launch!(false, true),
            (true, PairLayout::Halves) => launch!(true, false),
            (true, PairLayout::Interleaved) => launch!(true, true),
        }
    }
}

/// Rejects a contiguous cache without a plane for each sequence, given its extents and strides.
/// Zero sequences need no planes.
pub(super) fn contiguous<K: Element>(sequences: usize, cache: [[usize; 4]; 2]) -> Result<(), Error> {
    let [[planes, ..], _] = cache;
    if sequences == 0 || planes == sequences {
        return Ok(());
    }
    let why =
        format!("the cache has {planes} planes, and there are {sequences} queries: it needs a plane for each sequence");
    Err(refused::<K, 4>(cache, why))
}

/// Rejects query heads, axis 1 of q, that are no multiple of the key heads.
pub(super) fn shared_heads<T: Element, K: Element, const R: usize>(
    q: &BufferView<'_, T, R>,
    k: &BufferView<'_, K, 4>,
) -> Result<(), Error> {
    let (heads, of_keys) = (q.extents()[1], k.extents()[1]);
    if heads == 0 || of_keys > 0 && heads.is_multiple_of(of_keys) {
        return Ok(());
    }
    Err(q.refused(format!("q has {heads} heads; expected a multiple of the {of_keys} key heads")))
}

/// The limit of the number of keys of a sequence, exclusive. Kernels can count past the last part
/// without overflow.
const MAX_KEYS: usize = 1 << 30;

/// Rejects a table without a row for each sequence, or a cache without pages. The kernel clamps the
/// page numbers of the table.
pub(super) fn paged<K: Element>(
    sequences: usize,
    cache: [[usize; 4]; 2],
    table: &BufferView<'_, u32, 2>,
) -> Result<(), Error> {
    let ([[pages, _, of_page, _], _], [rows, of_sequence]) = (cache, table.extents());
    if of_sequence.saturating_mul(of_page) >= MAX_KEYS {
        let why = format!(
            "the table gives a sequence {of_sequence} pages of {of_page} rows; a sequence must have fewer than 2³⁰ keys"
        );
        return Err(refused::<K, 4>(cache, why));
    }
    if sequences == 0 || rows == sequences && pages > 0 {
        return Ok(());
    }
    let why = if rows != sequences {
        format!("the table has {rows} rows, and there are {sequences} queries: it needs a row for each sequence")
    } else {
        format!("the cache has no page, and there are {sequences} queries: it needs at least one")
    };
    Err(refused::<K, 4>(cache, why))
}
