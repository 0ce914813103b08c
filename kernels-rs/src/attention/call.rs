//! The call for attention of many queries, which chooses a tile and launches the kernel.

use super::extend::shared_heads;
use super::lengths::{packed, padded};
use super::mask::DeviceMask;
use super::plan::{Asked, NUMBERS, Plan, Plans, Seen, Tile};
use super::prefill::flash_attention;
use super::score::{Plain, Score};
use super::span::{Dense, KEYS, Packed, Padded, Pattern, Sequences, Span, Whole};
use crate::access::rows_begin_at;
use crate::operand::Operand;
use crate::permute::fill;
use crate::{Passed, Queue};
use kernel_dsl::{Element, Float, GenericArgument};
use runtime::{BufferView, BufferViewMut, Device, Error};
use std::sync::Arc;

/// A band limit larger than any sequence.
const FAR: usize = 1 << 30;

/// Attention of many queries: O ← softmax(score(scale·Q·Kᵀ))·V, for each query over the keys that
/// it sees. Elements are stored as `f32`, `f16`, `bf16` or a caller-defined format, and computed in
/// `f32`.
///
/// Q and O are [batch, head, query, element], K and V [batch, key head, key, element]. The last
/// stride is 1 and the others are arbitrary, so memory laid out as [batch, row, head, element] has
/// such a view, too. The heads of Q are a multiple of those of K, and neighboring heads share one
/// (Ainslie and others, 2023). Heads of Q and K can have any size, and so can heads of V and O.
/// Query i of a sequence is at position keys − queries + i. Any extent may be 0, and a sequence has
/// fewer than 2³⁰ queries and keys.
///
/// A query that sees no key, or whose logits are all −∞, gives zeros, and −∞ for the logarithm.
/// `lse`, [batch, head, query], receives ln Σ exp(logit), which the backward pass requires.
///
/// # Values at the ends of the range
///
/// `f16` and `bf16` are converted to `f32`, subnormals included, and O is rounded once: to ±∞
/// beyond the range of its type.
///
/// * **Logits** are scale · Σ q·k in `f32`: Σ q·k is rounded before it is scaled. A logit beyond
///   3.4·10³⁸ in magnitude is ±∞. Any finite logits give finite O for finite V.
/// * **Weights**: the largest logit of a row, m, is subtracted before the product with log₂ e.
///   Therefore a logit x has the weight exp(x − m), exactly 1 for x = m. Its relative error is
///   (3·(m − x) + log₂ n + 7) · 2⁻²⁴, with n the number of keys. For m − x ≥ 64 a weight may be 0.
/// * **`lse`** is m + ln Σ exp(x − m), within 2⁻²⁴ · |lse| and the error of the sum.
/// * **Huge values**: a mean of finite values is finite, because weights are divided by a power of
///   two that is at least n. Only a mean that equals the largest number within its error may become
///   ±∞.
/// * **Tiny values**, subnormals included, are kept within n² · 2⁻¹⁴⁹. The result over a single key
///   is exact.
/// * **Keys that a query does not see** have no effect on it, whatever they contain. Such keys lie
///   outside the band, the sequence's length or the mask's lists, or a [`Score`] gives −∞ for them.
/// * **NaN**: a logit that is NaN or +∞ makes the row and its logarithm NaN. A logit of −∞ is a
///   weight of 0.
/// * **A value that is NaN or ±∞**, of a key that the query sees, makes its column NaN or ±∞. If
///   the key's weight is 0, the column is NaN or the mean of the others.
///
/// The softmax is computed online, by tiles of 64 keys (Milakov and Gimelshein, 2018; Dao and
/// others, 2022): no score leaves the multiprocessor.
///
/// ```
/// # fn main() -> Result<(), runtime::Error> {
/// use kernels_rs::attention::Attention;
/// let device = runtime::Device::cpu();
/// let q = device.upload(&[1.0f32, 0.0])?;
/// let (k, v) = (device.upload(&[0.0f32, 0.0, 0.0, 9.0])?, device.upload(&[1.0f32, 2.0, 3.0, 4.0])?);
/// let mut o = device.zeros::<f32>(2)?;
/// let (q, k, v) = (q.view([1, 1, 1, 2])?, k.view([1, 1, 2, 2])?, v.view([1, 1, 2, 2])?);
/// Attention::new().run(&device, &q, &k, &v, &mut o.view_mut([1, 1, 1, 2])?, None)?;
/// assert_eq!(o.download()?, [2.0, 3.0]);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, PartialEq, Debug)]
#[must_use]
pub struct Attention {
    scale: Option<f32>,
    pub(super) left: usize,
    pub(super) right: usize,
}

impl Default for Attention {
    fn default() -> Attention {
        Attention::new()
    }
}

/// The operands that all forms of the call share.
struct Operands<'a, 'q, 'k, 'v, 'o, T: Element> {
    q: &'a BufferView<'q, T, 4>,
    k: &'a BufferView<'k, T, 4>,
    v: &'a BufferView<'v, T, 4>,
    o: &'a mut BufferViewMut<'o, T, 4>,
}

impl Attention {
    /// Returns a call in which every query sees every key and logits are scaled by 1 / √(elements
    /// of a head).
    pub const fn new() -> Attention {
        Attention { scale: None, left: FAR, right: FAR }
    }

    /// Sets the factor of the products.
    pub const fn scale(self, scale: f32) -> Attention {
        Attention { scale: Some(scale), ..self }
    }

    /// Limits each query to the keys up to its position.
    pub const fn causal(self) -> Attention {
        Attention { right: 0, ..self }
    }

    /// Limits each query to a band: `left` keys before its position, the key at it, and `right`
    /// keys after it. A sliding window of n keys is `band(n - 1, 0)`.
    pub const fn band(self, left: usize, right: usize) -> Attention {
        let (left, right) = (if left < FAR { left } else { FAR }, if right < FAR { right } else { FAR });
        Attention { left, right, ..self }
    }

    /// Queues the computation.
    ///
    /// # Errors
    /// Returns an error if extents do not match, O overlaps an operand, a buffer belongs to another
    /// device, or memory is short.
    pub fn run<T: Float + GenericArgument>(
        self,
        on: &impl Queue,
        q: &BufferView<'_, T, 4>,
        k: &BufferView<'_, T, 4>,
        v: &BufferView<'_, T, 4>,
        o: &mut BufferViewMut<'_, T, 4>,
        lse: Option<&mut BufferViewMut<'_, f32, 3>>,
    ) -> Result<(), Error> {
        // SAFETY: this score accesses no memory.
        unsafe { self.run_with(on, q, k, v, o, lse, Plain) }
    }

    /// Queues the computation with a score of this library or a user-defined one. The kernel is
    /// compiled with it on first use.
    ///
    /// # Safety
    /// The kernel runs without checks. For every query and key, the score must access memory within
    /// its views only; the views must be alive and not be written meanwhile.
    /// [`Alibi`](super::score::Alibi) needs a slope for each head, and [`Bias`](super::score::Bias)
    /// an element for each sequence, head, query and key. On the CPU an access out of bounds is an
    /// error in any case.
    ///
    /// # Errors
    /// As for [`run`](Attention::run).
    #[allow(clippy::too_many_arguments, reason = "the operands, and where it runs")]
    pub unsafe fn run_with<T: Float + GenericArgument, M: Score + Passed>(
        self,
        on: &impl Queue,
        q: &BufferView<'_, T, 4>,
        k: &BufferView<'_, T, 4>,
        v: &BufferView<'_, T, 4>,
        o: &mut BufferViewMut<'_, T, 4>,
        lse: Option<&mut BufferViewMut<'_, f32, 3>>,
        score: M,
    ) -> Result<(), Error> {
        let [batch, _, longest, _] = q.extents();
        self.any(on, q, k, v, o, lse, score, Dense, Whole, None, [batch, longest], longest > 64)
    }

    /// Queues the computation for sequences padded to the views' lengths. Sequence i has the first
    /// `queries[i]` queries and the first `keys[i]` keys. Later rows of O are unchanged.
    ///
    /// # Errors
    /// As for [`run`](Attention::run); also if a list does not have one number for each sequence of
    /// the batch.
    #[allow(clippy::too_many_arguments, reason = "the operands, and where it runs")]
    pub fn run_padded<T: Float + GenericArgument>(
        self,
        on: &impl Queue,
        q: &BufferView<'_, T, 4>,
        k: &BufferView<'_, T, 4>,
        v: &BufferView<'_, T, 4>,
        o: &mut BufferViewMut<'_, T, 4>,
        lse: Option<&mut BufferViewMut<'_, f32, 3>>,
        [queries, keys]: [&BufferView<'_, u32, 1>; 2],
    ) -> Result<(), Error> {
        let (count, [_, _, longest, _]) = (padded(q, [queries, keys])?, q.extents());
        // SAFETY: the launch records the buffers as read, and is queued before their borrow ends.
        // The number of launched sequences equals the length of both lists.
        let sequences = unsafe { Padded { queries: queries.detached(), keys: keys.detached() } };
        let attend = || self.any(on, q, k, v, o, lse, Plain, Dense, sequences, None, [count, longest], longest > 64);
        on.reading(queries, || on.reading(keys, attend))
    }

    /// Queues the computation for concatenated sequences, in views with a batch of one. Sequence i
    /// has the queries from `queries[i]` to `queries[i + 1]`, at most `longest`, and likewise keys.
    /// Rows of O that belong to no sequence are unchanged.
    ///
    /// # Errors
    /// As for [`run`](Attention::run); also if the batch is not one, or the lists differ in length.
    #[allow(clippy::too_many_arguments, reason = "the operands, and where it runs")]
    pub fn run_packed<T: Float + GenericArgument>(
        self,
        on: &impl Queue,
        q: &BufferView<'_, T, 4>,
        k: &BufferView<'_, T, 4>,
        v: &BufferView<'_, T, 4>,
        o: &mut BufferViewMut<'_, T, 4>,
        lse: Option<&mut BufferViewMut<'_, f32, 3>>,
        [queries, keys]: [&BufferView<'_, u32, 1>; 2],
        longest: usize,
    ) -> Result<(), Error> {
        let count = packed(q, [queries, keys])?;
        // SAFETY: as in `run_padded`; the lists have one more element than there are sequences.
        let sequences = unsafe { Packed { queries: queries.detached(), keys: keys.detached() } };
        let shape = [count, longest.min(q.extents()[2])];
        let attend = || self.any(on, q, k, v, o, lse, Plain, Dense, sequences, None, shape, longest > 64);
        on.reading(queries, || on.reading(keys, attend))
    }

    /// Queues the computation over the blocks of keys that a mask has for each block of queries.
    /// Within these blocks the band applies, too.
    ///
    /// # Errors
    /// As for [`run`](Attention::run); also if the mask has other extents.
    #[allow(clippy::too_many_arguments, reason = "the operands, and where it runs")]
    pub fn run_sparse<T: Float + GenericArgument>(
        self,
        on: &impl Queue,
        q: &BufferView<'_, T, 4>,
        k: &BufferView<'_, T, 4>,
        v: &BufferView<'_, T, 4>,
        o: &mut BufferViewMut<'_, T, 4>,
        lse: Option<&mut BufferViewMut<'_, f32, 3>>,
        mask: &DeviceMask,
    ) -> Result<(), Error> {
        let ([batch, heads, queries, _], [_, _, keys, _]) = (q.extents(), k.extents());
        let lists = mask.of_queries(heads, [queries, keys])?;
        // SAFETY: the launch records the mask's lists as read, and is queued before the mask's
        // borrow ends. The lists have these extents, and their indices are in bounds.
        let pattern = unsafe { lists.pattern(mask.size()) };
        let large = mask.size() > 64;
        let attend = || self.any(on, q, k, v, o, lse, Plain, pattern, Whole, Some(mask), [batch, queries], large);
        lists.reading(on, attend)
    }

    /// Returns the factor of products of `width` elements.
    pub(super) fn factor(self, width: usize) -> f32 {
        self.scale.unwrap_or(1.0 / (width.max(1) as f32).sqrt())
    }

    /// Launches tiles of 128 queries if `large`, otherwise of 64. Wide values use 64 queries and
    /// steps of 128 keys.
    #[allow(clippy::too_many_arguments, reason = "the kernel's own, and where it runs")]
    fn any<T: Float + GenericArgument, M: Score + Passed, P: Pattern + Passed, S: Sequences + Passed>(
        self,
        on: &impl Queue,
        q: &BufferView<'_, T, 4>,
        k: &BufferView<'_, T, 4>,
        v: &BufferView<'_, T, 4>,
        o: &mut BufferViewMut<'_, T, 4>,
        lse: Option<&mut BufferViewMut<'_, f32, 3>>,
        score: M,
        pattern: P,
        sequences: S,
        mask: Option<&DeviceMask>,
        shape: [usize; 2],
        large: bool,
    ) -> Result<(), Error> {
        let ([batch, heads, rows, _], wide) = (q.extents(), v.extents()[3]);
        shared_heads(q, k)?;
        o.expected("o", [batch, heads, rows, wide], "a row of v's elements for each query of each head")?;
        if heads == 0 && k.extents()[1] == 0 {
            return Ok(());
        }
        if wide == 0 && lse.as_ref().is_some_and(|lse| !lse.extents().contains(&0)) {
            // Blocks are assigned to pieces of values, and there are none.
            return Err(v.refused("values without elements have no logarithms: pass no `lse`".into()));
        }
        let mut own;
        let mut lse = match lse {
            Some(lse) => lse.reborrow(),
            None => {
                own = on.scratch::<f32>(batch * heads * rows)?;
                own.view_mut([batch, heads, rows])?
            }
        };
        let mut operands = Operands { q, k, v, o };
        let fours = q.extents()[3].is_multiple_of(8)
            && wide.is_multiple_of(4)
            && [q, k, v].into_iter().all(|x| rows_begin_at(x, 4))
            && rows_begin_at(&*operands.o, 4);
        macro_rules! launch {
            ($w:literal, $q:literal, $v:literal, $threads:literal, $r:literal, $bm:literal, $l:literal, $nk:literal) => {
                self.launched::<T, M, P, S, $w, $v, $threads, $r, $bm, $q, $l, $nk>(
                    on,
                    &mut operands,
                    &mut lse,
                    score,
                    pattern,
                    sequences,
                    mask,
                    shape,
                )
            };
        }
        match (fours, large, wide) {
            (true, _, 97..) => launch!(128, 2, 4, 128, 2, 64, 2, 4),
            (true, true, ..=32) => launch!(32, 1, 4, 256, 1, 128, 1, 2),
            (true, true, ..=64) => launch!(64, 2, 4, 256, 1, 128, 1, 2),
            (true, true, ..=96) => launch!(96, 3, 4, 256, 1, 128, 1, 2),
            (true, false, ..=32) => launch!(32, 1, 4, 128, 1, 64, 1, 4),
            (true, false, ..=64) => launch!(64, 2, 4, 128, 1, 64, 1, 4),
            (true, false, ..=96) => launch!(96, 3, 4, 128, 1, 64, 2, 4),
            (false, true, ..=32) => launch!(32, 1, 1, 256, 1, 128, 1, 2),
            (false, true, ..=64) => launch!(64, 2, 1, 256, 1, 128, 1, 2),
            (false, true, ..=96) => launch!(96, 3, 1, 256, 1, 128, 1, 2),
            (false, true, _) => launch!(128, 4, 1, 256, 1, 128, 1, 2),
            (false, false, ..=32) => launch!(32, 1, 1, 128, 1, 64, 1, 4),
            (false, false, ..=64) => launch!(64, 2, 1, 128, 1, 64, 1, 4),
            (false, false, ..=96) => launch!(96, 3, 1, 128, 1, 64, 2, 4),
            (false, false, _) => launch!(128, 4, 1, 128, 1, 64, 2, 4),
        }
    }

    #[allow(clippy::too_many_arguments, reason = "the kernel's own, and where it runs")]
    fn launched<
        T: Float + GenericArgument,
        M: Score + Passed,
        P: Pattern + Passed,
        S: Sequences + Passed,
        const W: usize,
        const V: usize,
        const THREADS: usize,
        const R: usize,
        const BM: usize,
        const Q: usize,
        const L: usize,
        const NK: usize,
    >(
        self,
        on: &impl Queue,
        operands: &mut Operands<'_, '_, '_, '_, '_, T>,
        lse: &mut BufferViewMut<'_, f32, 3>,
        score: M,
        pattern: P,
        sequences: S,
        mask: Option<&DeviceMask>,
        [count, longest]: [usize; 2],
    ) -> Result<(), Error> {
        let Operands { q, k, v, o } = operands;
        let scale = self.factor(q.extents()[3]);
        let tile = Tile { height: BM, width: W, step: R, threads: THREADS };
        let others = v.extents()[3].div_ceil(W) * count;
        let plan = match mask {
            Some(mask) => mask.plan(tile, others)?,
            None => self.plan(on.device(), tile, [q.extents()[1], others], [longest, k.extents()[2]])?,
        };
        let work = on.share(&plan.table)?;
        let slots = plan.slots;
        let mut partial = on.scratch::<f32>(slots * BM * W)?;
        let mut logs = on.scratch::<f32>(slots * BM * 2)?;
        let mut ended = on.scratch::<u32>(slots)?;
        fill(on, 0u32, ended.view_mut([slots])?.strided())?;
        // SAFETY: the launch checks all extents against each other, and the kernel's accesses stay
        // within them for any sequences and pattern. The oracle ran it at and around every edge of
        // its tiles (`kernels check`). The caller guarantees what the score accesses.
        unsafe {
            flash_attention::<T, M, P, S, W, V, THREADS, R, BM, Q, L, NK>::launch_unchecked(
                on,
                *q,
                *k,
                *v,
                &mut **o,
                &mut *lse,
                &mut partial.view_strided_mut([slots, BM, W], [BM * W, W, 1])?,
                &mut logs.view_strided_mut([slots, BM, 2], [BM * 2, 2, 1])?,
                &mut ended.view_mut([slots])?,
                scale,
                self.left,
                self.right,
                score,
                pattern,
                sequences,
                // With no blocks, too, the row pitch is a multiple of four numbers: extents are
                // then checked although no block runs.
                work.view_strided([plan.blocks, NUMBERS], [NUMBERS, 1])?,
            )
        }
    }

    /// Returns the blocks' assignments for sequences that are all as long as the longest.
    fn plan(
        self,
        device: &Device,
        tile: Tile,
        [heads, others]: [usize; 2],
        [longest, keys]: [usize; 2],
    ) -> Result<Arc<Plan>, Error> {
        let Attention { left, right, .. } = self;
        let span = Span { query: 0, queries: longest, key: 0, keys };
        let tiles = |row: usize| {
            let (begin, end) = span.seen(row * tile.height, tile.height, left, right);
            if begin < end { end.div_ceil(KEYS) - begin / KEYS } else { 0 }
        };
        let lists = || (0..longest.div_ceil(tile.height)).map(tiles).collect::<Vec<_>>().repeat(heads);
        let seen = Seen::Band { longest, keys, left, right };
        device.get_or_init_extension(Plans::new).plan(Asked { tile, heads, others, seen }, lists)
    }
}
