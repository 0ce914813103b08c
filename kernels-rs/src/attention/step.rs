//! A decoding step's attention as one calls it.

use super::cache::{Contiguous, Paged, Pages, Scaled, Scales, Stored, Unscaled};
use super::decode::flash_decode;
use super::extend::{contiguous, paged, shared_heads};
use crate::operand::Operand;
use crate::{Memory, Passed, Queue};
use kernel_dsl::{Float, GenericArgument};
use runtime::{BufferView, BufferViewMut, Error};

/// Blocks of a multiprocessor that keep its memory busy where a number has two bytes or one: each has 16 KB under way. Of four bytes half as many
/// do. More of them have more to bring together.
const RESIDENT: usize = 4;
/// What keys of a split are a multiple of, at least.
const TURN: usize = 32;

/// What the parts of a decoding step need between its blocks, of a device or of a graph in the making. It belongs to one stream of work: two steps that run at once need one each.
#[derive(Debug)]
pub struct Scratch {
    parts: Memory<f32>,
    logs: Memory<f32>,
    ended: Memory<u32>,
    shape: [usize; 3],
    splits: Splits,
}

/// Parts of a sequence's keys.
#[derive(Clone, Copy, Debug)]
enum Splits {
    /// So many.
    Exactly(usize),
    /// So many at most, as a cache's numbers make it.
    Filling(usize),
}

impl Splits {
    fn most(self) -> usize {
        let (Splits::Exactly(n) | Splits::Filling(n)) = self;
        n
    }

    /// For a cache of numbers of so many bytes.
    fn of(self, bytes: usize) -> usize {
        match self {
            Splits::Filling(n) if bytes >= 4 => n.div_ceil(2),
            Splits::Exactly(n) | Splits::Filling(n) => n,
        }
    }
}

impl Scratch {
    /// For q of [sequence, head, element] and caches with so many heads and room for so many keys a sequence.
    ///
    /// # Errors
    /// Where memory is short.
    pub fn new(on: &impl Queue, shape: [usize; 3], groups: usize, room: usize) -> Result<Scratch, Error> {
        let [sequences, heads, _] = shape;
        let blocks = sequences * heads.min(groups.max(1) * heads.div_ceil(groups.max(1)).div_ceil(4));
        let full = (RESIDENT * on.device().facts().multiprocessors as usize / blocks.max(1)).max(1);
        let each = room.div_ceil(full).next_multiple_of(TURN).max(TURN);
        Scratch::made(on, shape, Splits::Filling(room.div_ceil(each).max(1)))
    }

    /// The same, with keys in so many splits.
    ///
    /// # Errors
    /// Where memory is short.
    pub fn with_splits(on: &impl Queue, shape: [usize; 3], splits: usize) -> Result<Scratch, Error> {
        Scratch::made(on, shape, Splits::Exactly(splits.max(1)))
    }

    fn made(on: &impl Queue, shape: [usize; 3], splits: Splits) -> Result<Scratch, Error> {
        let [sequences, heads, width] = shape;
        Ok(Scratch {
            parts: on.scratch(sequences * heads * splits.most() * width)?,
            logs: on.scratch(sequences * heads * splits.most() * 2)?,
            ended: on.keep(on.device().zeros(sequences * heads)?)?,
            shape,
            splits,
        })
    }
}

/// O ← softmax(scale·q·Kᵀ)·V of one query a sequence, over keys and values in a cache.
///
/// q and O are [sequence, head, element], of heads of at most 256 elements, a multiple of 8, or of 4 where the cache is of `f32`; heads are a multiple of
/// the cache's, and neighbors share one. `lengths` says how many keys each sequence has. A sequence without keys gives zeros.
///
/// Any extent may be 0. There are any number of sequences and heads, as long as sequences × heads ×
/// parts of their keys ([`Scratch`]) are at most 2³¹ − 1 where sequences or heads are more than
/// 65,535. The pages of a sequence have room for fewer than 2³⁰ keys.
///
/// # Values at the ends of the range
///
/// As of [`Attention`](super::Attention), but that the query is scaled before the product:
///
/// * **Logits** are Σ (q · scale · log₂ e)·k in `f32`. Each factor and the sum are below 2¹²⁸ in
///   magnitude, or become ±∞; a logit is so up to 2.3·10³⁸.
/// * **Weights** are exp(x − m), m the largest logit: exactly 1 for x = m. Each logit has the
///   relative error of a product of `f32`, 2⁻²² and that of the sum.
/// * **Huge values**: a mean of finite values is finite, where logits are below 10⁷ in magnitude;
///   beyond, where the sum of values with the largest logit is in range.
/// * **Tiny values** are kept within n² · 2⁻¹⁴⁹ of n keys.
/// * **What is beyond a sequence's length** is not read: rows, pages and scales.
/// * **NaN and ±∞**: a logit that is NaN or +∞ makes the row NaN; logits of −∞ alone make it 0. A
///   value that is NaN or ±∞ makes its column so; where its weight is 0, too. A scale of a key or
///   value is a factor of its row in `f32`.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
#[must_use]
pub struct Decode {
    scale: Option<f32>,
}

impl Decode {
    /// Logits are scaled by 1 / √(elements of a head).
    pub const fn new() -> Decode {
        Decode { scale: None }
    }

    /// The factor of the products.
    pub const fn scale(self, scale: f32) -> Decode {
        Decode { scale: Some(scale) }
    }

    /// Queues the step, with a cache of [sequence, head, row, element], of as many sequences as there are queries.
    ///
    /// # Errors
    /// Where the extents do not belong together or are beyond the limits above, the cache or its
    /// table is of other sequences than q, rows are not aligned to as many, or a buffer is another
    /// device's.
    #[allow(clippy::too_many_arguments, reason = "the operands, and where it runs")]
    pub fn run<T: Float + GenericArgument, K: Stored + GenericArgument>(
        self,
        on: &impl Queue,
        q: &BufferView<'_, T, 3>,
        [k, v]: [&BufferView<'_, K, 4>; 2],
        lengths: &BufferView<'_, u32, 1>,
        o: &mut BufferViewMut<'_, T, 3>,
        scratch: &mut Scratch,
    ) -> Result<(), Error> {
        contiguous::<K>(q.extents()[0], [k.extents(), k.strides()])?;
        self.any(on, q, [k, v], Unscaled, Contiguous, lengths, o, scratch)
    }

    /// Queues the step, with a cache of pages, [page, head, row of the page, element]; `table` is [sequence, page of the sequence] and says which page
    /// it is.
    ///
    /// # Errors
    /// As for [`run`](Decode::run).
    #[allow(clippy::too_many_arguments, reason = "the operands, and where it runs")]
    pub fn run_paged<T: Float + GenericArgument, K: Stored + GenericArgument>(
        self,
        on: &impl Queue,
        q: &BufferView<'_, T, 3>,
        [k, v]: [&BufferView<'_, K, 4>; 2],
        table: &BufferView<'_, u32, 2>,
        lengths: &BufferView<'_, u32, 1>,
        o: &mut BufferViewMut<'_, T, 3>,
        scratch: &mut Scratch,
    ) -> Result<(), Error> {
        paged::<K>(q.extents()[0], [k.extents(), k.strides()], table)?;
        // SAFETY: the table is noted as read by the launch, which is queued before its borrow ends.
        let pages = Paged { table: unsafe { table.detached() } };
        on.reading(table, || self.any(on, q, [k, v], Unscaled, pages, lengths, o, scratch))
    }

    /// Queues the step, with a cache of bytes: [sequence, head, row, element], and a factor for each of [sequence, head, row].
    ///
    /// # Errors
    /// As for [`run`](Decode::run).
    #[allow(clippy::too_many_arguments, reason = "the operands, and where it runs")]
    pub fn run_scaled<T: Float + GenericArgument>(
        self,
        on: &impl Queue,
        q: &BufferView<'_, T, 3>,
        [k, v]: [&BufferView<'_, i8, 4>; 2],
        [key_scales, value_scales]: [&BufferView<'_, f32, 3>; 2],
        lengths: &BufferView<'_, u32, 1>,
        o: &mut BufferViewMut<'_, T, 3>,
        scratch: &mut Scratch,
    ) -> Result<(), Error> {
        contiguous::<i8>(q.extents()[0], [k.extents(), k.strides()])?;
        let [planes, heads, rows, _] = k.extents();
        for scales in [key_scales, value_scales] {
            scales.expected("a list of scales", [planes, heads, rows], "one for each head of each row of the cache")?;
        }
        // SAFETY: the scales are noted as read by the launch, which is queued before their borrow ends; they have an element for each head of each row.
        let scales = unsafe { Scaled { keys: key_scales.detached(), values: value_scales.detached() } };
        let step = || self.any(on, q, [k, v], scales, Contiguous, lengths, o, scratch);
        on.reading(key_scales, || on.reading(value_scales, step))
    }

    /// There is a plane for each sequence, or a page, and a row of the table for each sequence.
    #[allow(clippy::too_many_arguments, reason = "the operands, and where it runs")]
    fn any<T: Float + GenericArgument, K: Stored + GenericArgument, C: Scales + Passed, P: Pages + Passed>(
        self,
        on: &impl Queue,
        q: &BufferView<'_, T, 3>,
        [k, v]: [&BufferView<'_, K, 4>; 2],
        scales: C,
        pages: P,
        lengths: &BufferView<'_, u32, 1>,
        o: &mut BufferViewMut<'_, T, 3>,
        scratch: &mut Scratch,
    ) -> Result<(), Error> {
        let [sequences, heads, width] = q.extents();
        let [planes, groups, rows, _] = k.extents();
        k.expected("keys of the cache", [planes, groups, rows, width], "rows as long as heads of q")?;
        v.expected("values of the cache", [planes, groups, rows, width], "as its keys are")?;
        lengths.expected("lengths", [sequences], "one for each sequence of q")?;
        o.expected("o", [sequences, heads, width], "as q is")?;
        shared_heads(q, k)?;
        if q.extents().contains(&0) {
            return Ok(());
        }
        let multiple = if size_of::<K>() == 4 { 4 } else { 8 };
        if width > 256 || !width.is_multiple_of(multiple) {
            let why = format!("heads of q have {width} elements; needed are at most 256 and a multiple of {multiple}");
            return Err(q.refused(why));
        }
        if [sequences, heads, width].iter().zip(&scratch.shape).any(|(of_q, made)| of_q > made) {
            let why = format!("q is {:?}, and the scratch memory is for {:?} at most", q.extents(), scratch.shape);
            return Err(q.refused(why));
        }
        // An empty cache may have any strides; the kernel requires rows at multiples of what it
        // loads.
        let none = on.scratch::<K>(0)?;
        let (no_keys, no_values);
        let (mut k, mut v) = (k, v);
        if k.extents().contains(&0) {
            no_keys = none.view_strided(k.extents(), [width, width, width, 1])?;
            k = &no_keys;
        }
        if v.extents().contains(&0) {
            no_values = none.view_strided(v.extents(), [width, width, width, 1])?;
            v = &no_values;
        }
        let Scratch { parts, logs, ended, shape: [_, of_heads, of_width], splits } = scratch;
        // Of fewer sequences than it was made for, the first.
        let splits = splits.of(size_of::<K>());
        // No fewer than there are: a block has four heads of a group at most.
        let work = format_args!("{sequences} sequences of {heads} heads, their keys in {splits} parts,");
        q.startable([splits, heads, sequences], work)?;
        let numbers = sequences.saturating_mul(heads).saturating_mul(splits).saturating_mul(width);
        if numbers > u32::MAX as usize {
            return Err(q.refused(format!(
                "{work} leave {numbers} numbers to be brought together, and a call counts 2³² − 1 of them: make the scratch with fewer splits"
            )));
        }
        let of_width = *of_width;
        let strides = [*of_heads * splits * of_width, splits * of_width, of_width, 1];
        let mut parts = parts.view_strided_mut([sequences, heads, splits, width], strides)?;
        let mut logs = logs.view_strided_mut([sequences, heads, splits, 2], [heads * splits * 2, splits * 2, 2, 1])?;
        let counters = ended.len();
        let mut ended = ended.view_mut([counters])?;
        let scale = self.scale.unwrap_or(1.0 / (width.max(1) as f32).sqrt());
        macro_rules! launch {
            ($lanes:literal, $wide:literal, $e:literal, $group:literal, $u:literal) => {
                // SAFETY: the launch compares all extents with one another, but for planes with sequences, which callers have compared: a sequence has a
                // plane, or a row of the table, and there is a page. So the kernel reads and writes what lies within them, whatever lengths and pages say:
                // the oracle ran it at and around every edge of its splits (`kernels check`).
                unsafe {
                    flash_decode::<T, K, C, P, $lanes, $wide, $e, $group, $u>::launch_unchecked(
                        on, q, k, v, scales, pages, lengths, o, &mut parts, &mut logs, &mut ended, groups, splits, scale,
                    )
                }
            };
        }
        macro_rules! by_group {
            ($lanes:literal, $wide:literal, $e:literal, $u:literal, $less:literal) => {
                match heads.checked_div(groups) {
                    Some(0 | 1) => launch!($lanes, $wide, $e, 1, $u),
                    Some(2) => launch!($lanes, $wide, $e, 2, $u),
                    _ => launch!($lanes, $wide, $e, 4, $less),
                }
            };
        }
        match (size_of::<K>(), width) {
            (4, ..=64) => by_group!(8, 4, 8, 4, 2),
            (4, ..=128) => by_group!(16, 4, 8, 4, 2),
            (4, _) => by_group!(32, 4, 8, 4, 2),
            // As many bytes under way as of 32 bits.
            (2, ..=64) => by_group!(8, 8, 8, 8, 4),
            (2, ..=128) => by_group!(16, 8, 8, 8, 4),
            (2, _) => by_group!(32, 8, 8, 8, 4),
            (_, ..=64) => by_group!(8, 8, 8, 4, 2),
            (_, ..=128) => by_group!(16, 8, 8, 4, 2),
            _ => by_group!(32, 8, 8, 4, 2),
        }
    }
}
