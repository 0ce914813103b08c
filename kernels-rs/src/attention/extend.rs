//! The call that appends new keys and values to a cache.

use super::append::{ROW, cache_append};
use super::cache::{BLOCK, Contiguous, Factors, KvCacheMut, Paged, Pages, StoredElement};
use crate::dispatch::dispatch;
use crate::operand::{ArrayOperand, refused_operand};
use crate::queue::{LibraryCall, renaming_parameters};
use crate::rotary::PairLayout;
use crate::{LaunchStruct, Queue};
use kernel_dsl::half::f16;
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
/// A row of bytes has the scale max |x| / 127. The bytes are x / scale, rounded to nearest, ties to
/// even, and clamped to the range of `i8`. The error is at most half a scale, plus up to 2⁻¹⁴² in a
/// row whose largest magnitude is below 2⁻¹¹⁹. A row of zeros has the scale 0. A NaN becomes 0 and
/// does not affect the scale. A row with ±∞ has the scale ∞, and reads as NaN.
///
/// Blocks of 32 numbers ([`KvCacheMut::blocks`]) have a scale in `f16`. Numbers are divided by the
/// rounded scale. Let A be the largest magnitude of a block:
///
/// | format | scale | numbers | error, in scales |
/// |---|---|---|---|
/// | q8_0 | A / 127 | −127 to 127 | 1/2 |
/// | q4_0 | A / 8, negative if only a positive number has the magnitude A | −8 to 7 | 1/2; 1 beyond 7.5 scales |
///
/// A subnormal scale adds an error of up to 2⁻¹⁸. Zeros and NaNs are as in a row of bytes. A block
/// whose scale exceeds 65,504 has the scale ±∞, and reads as NaN. The last block of a row may have
/// fewer numbers.
///
/// The next call is [`Decode`](super::Decode), with `rotated`, and with lengths that include the
/// new key.
///
/// Any extent may be 0. Up to 65,535 sequences, any number of heads is allowed. With more
/// sequences, sequences × heads must be at most 2³¹ − 1, for query heads and for key heads. The
/// pages of a sequence hold fewer than 2³⁰ keys.
///
/// ```
/// # fn main() -> Result<(), runtime::Error> {
/// use kernels_rs::attention::{Append, KvCacheMut};
/// use kernels_rs::rotary::PairLayout;
/// let device = runtime::Device::cpu();
/// let (new, lengths) = (device.upload(&[1.0f32, 2.0])?, device.upload(&[1u32])?);
/// let frequencies = device.upload(&[0.0f32])?;
/// let (mut rotated, mut k, mut v) = (device.zeros::<f32>(2)?, device.zeros::<f32>(4)?, device.zeros::<f32>(4)?);
/// let (q, rows) = (new.view([1, 1, 2])?, [1, 1, 2, 2]);
/// let append = Append::new(PairLayout::Halves, &frequencies.view([1])?);
/// let cache = KvCacheMut::new(k.view_mut(rows)?, v.view_mut(rows)?);
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

impl<'a> Append<'a> {
    /// Returns a call with a frequency for each rotated pair.
    pub const fn new(layout: PairLayout, frequencies: &BufferView<'a, f32, 1>) -> Append<'a> {
        Append { layout, frequencies: *frequencies }
    }

    /// Queues the call. In a paged cache, the page of the new row must belong to one sequence only.
    ///
    /// # Errors
    /// Returns an error if:
    /// - extents do not match or exceed the limits above,
    /// - the cache or its table has another number of sequences than q,
    /// - an output overlaps another operand, or
    /// - a buffer belongs to another device.
    pub fn run<T: Float + GenericArgument, K: StoredElement + GenericArgument>(
        self,
        on: &impl Queue,
        q: &BufferView<'_, T, 3>,
        rotated: &mut BufferViewMut<'_, T, 3>,
        new: [&BufferView<'_, T, 3>; 2],
        cache: KvCacheMut<'_, K>,
        lengths: &BufferView<'_, u32, 1>,
    ) -> Result<(), Error> {
        cache.check(q.extents()[0])?;
        let Some(table) = cache.table else {
            return self.queue(on, q, rotated, new, cache, Contiguous, lengths);
        };
        // SAFETY: the launch is noted as a reader of the table and queued before its borrow ends.
        let pages = Paged { table: unsafe { table.detached() } };
        on.reading(&table, || self.queue(on, q, rotated, new, cache, pages, lengths))
    }

    /// Queues the call for a cache with the layout `pages`.
    #[allow(clippy::too_many_arguments, reason = "the operands and the queue")]
    fn queue<'c, T: Float + GenericArgument, K: StoredElement + GenericArgument, P: Pages + LaunchStruct>(
        self,
        on: &impl Queue,
        q: &BufferView<'_, T, 3>,
        rotated: &mut BufferViewMut<'_, T, 3>,
        [new_k, new_v]: [&BufferView<'_, T, 3>; 2],
        cache: KvCacheMut<'c, K>,
        pages: P,
        lengths: &BufferView<'_, u32, 1>,
    ) -> Result<(), Error> {
        let KvCacheMut { keys: mut k, values: mut v, scales, .. } = cache;
        let [sequences, heads, width] = q.extents();
        let [planes, groups, rows, _] = k.extents();
        rotated.expected("rotated", [sequences, heads, width], "the extents of q")?;
        row_elements::<T, K, 3>(q)?;
        k.expected("keys of the cache", [planes, groups, rows, width / K::NUMBERS], "rows as long as heads of q")?;
        v.expected("values of the cache", [planes, groups, rows, width / K::NUMBERS], "the extents of its keys")?;
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
        if 2 * self.frequencies.extents()[0] > width {
            let [pairs] = self.frequencies.extents();
            return Err(q.refused_operand(format!(
                "heads of q have {width} elements; {pairs} frequencies need at least {}",
                2 * pairs
            )));
        }
        q.check_grid(
            [heads + groups, sequences, 1],
            format_args!("{sequences} sequences of {heads} heads, {groups} of keys,"),
        )?;
        let interleaved = self.layout == PairLayout::Interleaved;
        macro_rules! append {
            ($S:ty, $PER:expr, $keys:expr, $values:expr) => {
                dispatch!(let INTERLEAVED: bool = interleaved;
                // SAFETY: the launch compares all extents with one another, and the kernel compares
                // lengths with the room of the cache and pages with its planes. The oracle ran the
                // kernel at and around every edge (`kernels check`). There is a plane for each
                // sequence, or a row of the table.
                unsafe {
                    cache_append::<T, K, $S, P, { $PER }, INTERLEAVED>::launch_unchecked(
                        &LibraryCall(on), q, rotated, new_k, new_v, &mut k, &mut v, $keys, $values, pages, lengths,
                        self.frequencies,
                    )
                }
                .map_err(renaming_parameters(&[["k", "keys"], ["v", "values"], ["new_k", "new[0]"], ["new_v", "new[1]"], ["rotated_q", "rotated"]])))
            };
        }
        match scales {
            Factors::None => {
                let (mut no_keys, mut no_values) = (on.scratch::<f32>(0)?, on.scratch::<f32>(0)?);
                append!(f32, 0, &mut no_keys.view_mut([0; 4])?, &mut no_values.view_mut([0; 4])?)
            }
            Factors::Rows([of_keys, of_values]) => {
                let column = |scales: BufferViewMut<'c, f32, 3>| {
                    let [planes, heads, rows] = scales.extents();
                    scales.strided().reshaped([planes, heads, rows, 1])?.side_by_side()
                };
                append!(f32, ROW, &mut column(of_keys)?, &mut column(of_values)?)
            }
            Factors::Blocks([mut of_keys, mut of_values]) => append!(f16, BLOCK, &mut of_keys, &mut of_values),
        }
    }
}

/// Rejects heads of q that do not fill whole elements of a cache.
pub(super) fn row_elements<T: Element, K: StoredElement, const R: usize>(
    q: &BufferView<'_, T, R>,
) -> Result<(), Error> {
    let width = q.extents().last().copied().unwrap_or(0);
    if width.is_multiple_of(K::NUMBERS) {
        return Ok(());
    }
    let why = format!(
        "heads of q have {width} numbers; expected a multiple of {}, the numbers of an element of the cache",
        K::NUMBERS
    );
    Err(q.refused_operand(why))
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
    Err(refused_operand::<K, 4>(cache, why))
}

/// Rejects query heads, axis 1 of q, that are not a multiple of the key heads.
pub(super) fn shared_heads<T: Element, K: Element, const R: usize>(
    q: &BufferView<'_, T, R>,
    k: &BufferView<'_, K, 4>,
) -> Result<(), Error> {
    let (heads, of_keys) = (q.extents()[1], k.extents()[1]);
    if heads == 0 || of_keys > 0 && heads.is_multiple_of(of_keys) {
        return Ok(());
    }
    Err(q.refused_operand(format!("q has {heads} heads; expected a multiple of the {of_keys} key heads")))
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
        return Err(refused_operand::<K, 4>(cache, why));
    }
    if sequences == 0 || rows == sequences && pages > 0 {
        return Ok(());
    }
    let why = if rows != sequences {
        format!("the table has {rows} rows, and there are {sequences} queries: it needs a row for each sequence")
    } else {
        format!("the cache has no page, and there are {sequences} queries: it needs at least one")
    };
    Err(refused_operand::<K, 4>(cache, why))
}
