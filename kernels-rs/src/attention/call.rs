//! The call for attention of many queries, which chooses a tile and launches the kernel.

use super::cache::{Blocks, Contiguous, Factors, KvCache, Paged, Pages, Scaled, Scales, StoredElement, Unscaled};
use super::extend::{row_elements, shared_heads};
use super::layout::{AttentionPass, BatchExtent, Layout, Patterns, Qkv};
use super::mask::DeviceMask;
use super::plan::{AttentionTile, ListInputs, PlanKey, PlannedSchedule, Plans, TABLE_COLUMNS};
use super::prefill::{flash_attention, flash_attention_cached};
use super::score::{Plain, Score};
use super::span::{KEYS, MaskPattern, SequenceSpan, Sequences};
use crate::operand::ArrayOperand;
use crate::queue::renaming_parameters;
use crate::rowwise::plan::queue;
use crate::{LaunchStruct, Queue};
use kernel_dsl::compiler::hir::Constant;
use kernel_dsl::{Element, Float, GenericArgument};
use runtime::{BufferView, BufferViewMut, Device, Error};
use std::sync::Arc;

/// A band limit larger than any sequence.
const UNBOUNDED: usize = 1 << 30;

/// Attention of many queries: O ← softmax(score(scale·Q·Kᵀ))·V, for each query over the keys that
/// it sees. Elements are stored as `f32`, `f16`, `bf16` or a caller-defined format, and computed in
/// `f32`.
///
/// Q and O are [batch, head, query, element], K and V [batch, key head, key, element]. The last
/// stride is 1 and the others are arbitrary, so memory laid out as [batch, row, head, element] has
/// such a view, too. The number of heads of Q is a multiple of that of K. Neighboring heads of Q
/// share a head of K (Ainslie and others, 2023). Heads of Q and K can have any size, and so can
/// heads of V and O. Query i of a sequence is at position keys − queries + i. Any extent may be 0,
/// and a sequence has fewer than 2³⁰ queries and keys.
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
///   Therefore a logit x has the weight exp(x − m), exactly 1 for x = m. The relative error is
///   (3·(m − x) + log₂ n + 7) · 2⁻²⁴, with n the number of keys. For m − x ≥ 64 a weight may be 0.
/// * **`lse`** is m + ln Σ exp(x − m), within 2⁻²⁴ · |lse| and the error of the sum.
/// * **Huge values**: a mean of finite values is finite, because weights are divided by a power of
///   two that is at least n. Only a mean that equals the largest number within its error may become
///   ±∞.
/// * **Tiny values**, subnormals included, are kept within n² · 2⁻¹⁴⁹. The result over a single key
///   is exact.
/// * **Keys that a query does not see** have no effect on it, whatever they contain. Such keys lie
///   outside the band, the sequence's length or the mask's lists, or a [`Score`] gives −∞ for them.
///   An infinity or a NaN among their values costs a warp a second pass over the keys of its tile.
///   That pass takes about three times as long as the first, and adds in another order.
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
/// use kernels_rs::attention::{Attention, Qkv};
/// let device = runtime::Device::cpu();
/// let q = device.upload(&[1.0f32, 0.0])?;
/// let (k, v) = (device.upload(&[0.0f32, 0.0, 0.0, 9.0])?, device.upload(&[1.0f32, 2.0, 3.0, 4.0])?);
/// let mut o = device.zeros::<f32>(2)?;
/// let qkv = Qkv { q: q.view([1, 1, 1, 2])?, k: k.view([1, 1, 2, 2])?, v: v.view([1, 1, 2, 2])? };
/// Attention::new().run(&device, qkv, &mut o.view_mut([1, 1, 1, 2])?, None)?;
/// assert_eq!(o.download()?, [2.0, 3.0]);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Attention<'a, M = Plain> {
    scale: Option<f32>,
    pub(super) left: usize,
    pub(super) right: usize,
    pub(super) layout: Layout<'a>,
    pub(super) mask: Option<&'a DeviceMask>,
    pub(super) score: M,
}

impl Default for Attention<'_> {
    fn default() -> Self {
        Attention::new()
    }
}

impl Attention<'_> {
    /// Returns a call in which every query sees every key and logits are scaled by 1 / √(elements
    /// of a head).
    pub const fn new() -> Self {
        Attention { scale: None, left: UNBOUNDED, right: UNBOUNDED, layout: Layout::Dense, mask: None, score: Plain }
    }
}

impl<'a, M: Score + LaunchStruct> Attention<'a, M> {
    /// Sets the factor of the products.
    pub const fn scale(self, scale: f32) -> Self {
        Attention { scale: Some(scale), ..self }
    }

    /// Limits each query to the keys up to its position.
    pub const fn causal(self) -> Self {
        Attention { right: 0, ..self }
    }

    /// Limits each query to a band: `left` keys before its position, the key at it, and `right`
    /// keys after it. A sliding window of n keys is `band(n - 1, 0)`.
    pub const fn band(self, left: usize, right: usize) -> Self {
        let (left, right) =
            (if left < UNBOUNDED { left } else { UNBOUNDED }, if right < UNBOUNDED { right } else { UNBOUNDED });
        Attention { left, right, ..self }
    }

    /// Sets how the sequences lie in memory. The default is [`Layout::Dense`].
    pub const fn layout(self, layout: Layout<'a>) -> Self {
        Attention { layout, ..self }
    }

    /// Limits each query to the blocks of keys that the mask has for its block. The time is
    /// proportional to the density of the mask. Sequences must have [`Layout::Dense`].
    pub const fn mask(self, mask: &'a DeviceMask) -> Self {
        Attention { mask: Some(mask), ..self }
    }

    /// Applies a score of the library or of the user's crate to each logit. The kernel with this
    /// score is compiled on first use.
    ///
    /// # Safety
    /// Kernels run without checks. For every query and key of each launch, the score must access
    /// memory within its views only. The views must be alive and not be written meanwhile. So
    /// [`Alibi`](super::score::Alibi) needs a slope for each head, and
    /// [`ScoreBias`](super::score::ScoreBias) an element for each sequence, head, query and key. On
    /// the CPU an access outside is an error in any case.
    pub const unsafe fn score<N: Score + LaunchStruct>(self, score: N) -> Attention<'a, N> {
        let Attention { scale, left, right, layout, mask, .. } = self;
        Attention { scale, left, right, layout, mask, score }
    }

    /// Queues the product.
    ///
    /// # Errors
    /// Returns an error if extents do not match, the lists of the layout have a wrong length, or a
    /// mask has other extents. Also returns an error if O overlaps an operand, a buffer belongs to
    /// another device, or memory is insufficient.
    pub fn run<T: Float + GenericArgument>(
        self,
        on: &impl Queue,
        Qkv { q, k, v }: Qkv<'_, T>,
        o: &mut BufferViewMut<'_, T, 4>,
        lse: Option<&mut BufferViewMut<'_, f32, 3>>,
    ) -> Result<(), Error> {
        self.queue(on, &q, k.extents()[2], Forward { attention: self, on, q, keys: Floats { k, v }, o, lse })
    }

    /// Queues the product with keys and values of a [`cache`](super::cache), which are read as they
    /// are stored: the call copies none of them.
    ///
    /// A batch is a number of sequences. A sequence of [`Layout::Dense`] has as many keys as its
    /// plane or its pages have rows. With [`Layout::Padded`] the sequence has the first `keys[i]`
    /// of these rows. Numbers are multiplied with their scales in `f32`. The products are those of
    /// [`run`](Attention::run). Heads of the cache have a multiple of 8 elements. Rows of q, of O
    /// and of a cache of floats or bytes begin at multiples of 4.
    ///
    /// ```
    /// # fn main() -> Result<(), runtime::Error> {
    /// use kernels_rs::attention::{Attention, KvCache};
    /// let device = runtime::Device::cpu();
    /// // Two keys and values of eight numbers, in words of eight numbers, and their scales.
    /// let (k, v) = (device.upload(&[0u32, 0x1111_1111])?, device.upload(&[0x2222_2222u32, 0x4444_4444])?);
    /// let one = kernel_dsl::half::f16::ONE;
    /// let (scales, q) = (device.upload(&[one, one])?, device.zeros::<f32>(8)?);
    /// let (rows, of_rows) = ([1, 1, 2, 1], scales.view([1, 1, 2, 1])?);
    /// let cache = KvCache::new(k.view(rows)?, v.view(rows)?).blocks([of_rows, of_rows]);
    /// let mut o = device.zeros::<f32>(8)?;
    /// Attention::new().run_cached(&device, &q.view([1, 1, 1, 8])?, cache, &mut o.view_mut([1, 1, 1, 8])?, None)?;
    /// assert_eq!(o.download()?, [3.0; 8]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Returns an error if:
    /// - extents do not match, or the lists of the layout have a wrong length,
    /// - a mask has other extents,
    /// - the cache or its table has another number of sequences than q,
    /// - rows are not aligned as above,
    /// - O overlaps an operand,
    /// - a buffer belongs to another device, or memory is insufficient.
    pub fn run_cached<T: Float + GenericArgument, K: StoredElement + GenericArgument>(
        self,
        on: &impl Queue,
        q: &BufferView<'_, T, 4>,
        cache: KvCache<'_, K>,
        o: &mut BufferViewMut<'_, T, 4>,
        lse: Option<&mut BufferViewMut<'_, f32, 3>>,
    ) -> Result<(), Error> {
        cache.check(q.extents()[0])?;
        match cache.scales {
            Factors::None => self.paged(on, q, cache, Unscaled, o, lse),
            Factors::Rows([keys, values]) => {
                // SAFETY: the launch is noted as a reader of the scales and queued before their
                // borrow ends. The scales have an element for each head of each row.
                let scales = unsafe { Scaled { keys: keys.detached(), values: values.detached() } };
                on.reading(&keys, || on.reading(&values, || self.paged(on, q, cache, scales, o, lse)))
            }
            Factors::Blocks([keys, values]) => {
                // SAFETY: as for scales of rows. These scales have an element for each 32 numbers.
                let scales = unsafe { Blocks { keys: keys.detached(), values: values.detached() } };
                on.reading(&keys, || on.reading(&values, || self.paged(on, q, cache, scales, o, lse)))
            }
        }
    }

    /// Queues the product with the scales of the cache.
    fn paged<T: Float + GenericArgument, K: StoredElement + GenericArgument, C: Scales + LaunchStruct>(
        self,
        on: &impl Queue,
        q: &BufferView<'_, T, 4>,
        cache: KvCache<'_, K>,
        scales: C,
        o: &mut BufferViewMut<'_, T, 4>,
        lse: Option<&mut BufferViewMut<'_, f32, 3>>,
    ) -> Result<(), Error> {
        let KvCache { keys: k, values: v, table, .. } = cache;
        let ([_, _, rows, _], [.., width]) = (k.extents(), q.extents());
        row_elements::<T, K, 4>(q)?;
        let [planes, groups, ..] = k.extents();
        let elements = [planes, groups, rows, width / K::NUMBERS];
        k.expected("keys of the cache", elements, "rows as long as heads of q")?;
        v.expected("values of the cache", elements, "the extents of its keys")?;
        if !width.is_multiple_of(8) {
            return Err(
                q.refused_operand(format!("heads of q have {width} elements; expected a multiple of 8 for a cache"))
            );
        }
        o.expected("o", q.extents(), "the extents of q")?;
        if q.extents()[..3].contains(&0) {
            return Ok(());
        }
        // An empty cache may have any strides; the kernel requires rows that begin at multiples of
        // its access width.
        let none = on.scratch::<K>(0)?;
        let of_row = elements[3];
        let [k, v] = match k.extents().contains(&0) {
            true => [(); 2].map(|()| none.view_strided(elements, [of_row, of_row, of_row, 1])),
            false => [Ok(k), Ok(v)],
        };
        let (k, v) = (k?, v?);
        let Some(table) = table else {
            let keys = Cached { k, v, scales, pages: Contiguous, rows };
            return self.queue(on, q, rows, Forward { attention: self, on, q: *q, keys, o, lse });
        };
        let rows = rows * table.extents()[1];
        // SAFETY: the launch is noted as a reader of the table and queued before its borrow ends.
        let pages = Paged { table: unsafe { table.detached() } };
        let keys = Cached { k, v, scales, pages, rows };
        on.reading(&table, || self.queue(on, q, rows, Forward { attention: self, on, q: *q, keys, o, lse }))
    }

    /// Returns the factor of products of `width` elements.
    pub(super) fn factor(&self, width: usize) -> f32 {
        self.scale.unwrap_or(1.0 / (width.max(1) as f32).sqrt())
    }

    /// Returns the work of each block, if all sequences are as long as the longest.
    fn plan(
        &self,
        device: &Device,
        tile: AttentionTile,
        [heads, list_repeats]: [usize; 2],
        [longest, keys]: [usize; 2],
    ) -> Result<Arc<PlannedSchedule>, Error> {
        let (left, right) = (self.left, self.right);
        let span = SequenceSpan { query: 0, queries: longest, key: 0, keys };
        let tiles = |row: usize| {
            let (begin, end) = span.visible_keys(row * tile.height, tile.height, left, right);
            if begin < end { end.div_ceil(KEYS) - begin / KEYS } else { 0 }
        };
        let lists = || (0..longest.div_ceil(tile.height)).map(tiles).collect::<Vec<_>>().repeat(heads);
        let seen = ListInputs::Band { longest, keys, left, right };
        device.get_or_init_extension(Plans::new).plan(PlanKey { tile, heads, list_repeats, seen }, lists)
    }
}

/// Keys and values of a call, and the kernel that reads them.
trait KeysAndValues<T: Float>: Copy {
    /// Returns the number of key heads. Rejects a number of query heads that is not a multiple of
    /// it.
    fn heads(&self, q: &BufferView<'_, T, 4>) -> Result<usize, Error>;

    /// Returns the number of keys of each index of the batch.
    fn keys(&self) -> usize;

    /// Returns the number of elements of a value.
    fn values(&self) -> usize;

    /// Returns whether four neighboring elements of a row can be loaded at once. Some kernels
    /// require such loads.
    fn allows_vectors_of_four(&self) -> bool;

    /// Queues the kernel for tiles of `tile`, with accesses of four elements if `fours`.
    fn launch<M: Score + LaunchStruct, P: MaskPattern + LaunchStruct, S: Sequences + LaunchStruct>(
        self,
        on: &impl Queue,
        of: Operands<'_, '_, '_, '_, T, M, P, S>,
        tile: AttentionTile,
        fours: bool,
    ) -> Result<(), Error>;
}

/// The operands of a kernel other than keys and values.
struct Operands<'c, 'v, 'o, 'l, T: Element, M, P, S> {
    q: BufferView<'v, T, 4>,
    o: &'c mut BufferViewMut<'o, T, 4>,
    lse: &'c mut BufferViewMut<'l, f32, 3>,
    partial: &'c mut BufferViewMut<'l, f32, 3>,
    logs: &'c mut BufferViewMut<'l, f32, 3>,
    ended: &'c mut BufferViewMut<'l, u32, 1>,
    scale: f32,
    band: [usize; 2],
    score: M,
    pattern: P,
    sequences: S,
    work: BufferView<'l, u32, 2>,
}

/// Keys and values as floats.
#[derive(Clone, Copy)]
struct Floats<'v, T: Element> {
    k: BufferView<'v, T, 4>,
    v: BufferView<'v, T, 4>,
}

impl<T: Float + GenericArgument> KeysAndValues<T> for Floats<'_, T> {
    fn heads(&self, q: &BufferView<'_, T, 4>) -> Result<usize, Error> {
        shared_heads(q, &self.k)?;
        Ok(self.k.extents()[1])
    }

    fn keys(&self) -> usize {
        self.k.extents()[2]
    }

    fn values(&self) -> usize {
        self.v.extents()[3]
    }

    fn allows_vectors_of_four(&self) -> bool {
        self.values().is_multiple_of(4) && [self.k, self.v].iter().all(|x| x.aligned(4))
    }

    fn launch<M: Score + LaunchStruct, P: MaskPattern + LaunchStruct, S: Sequences + LaunchStruct>(
        self,
        on: &impl Queue,
        of: Operands<'_, '_, '_, '_, T, M, P, S>,
        tile: AttentionTile,
        fours: bool,
    ) -> Result<(), Error> {
        let Operands { q, o, lse, partial, logs, ended, scale, band: [left, right], score, pattern, sequences, work } =
            of;
        let call = flash_attention::<T, M, P, S, 32, 1, 128, 1, 64, 1, 1, 4>::call(
            q, self.k, self.v, o, lse, partial, logs, ended, scale, left, right, score, pattern, sequences, work,
        );
        let types = [T::CONSTANT, M::CONSTANT, P::CONSTANT, S::CONSTANT];
        let [wide, rest @ ..] = tile.constants();
        let elements = Constant::Usize(if fours { 4 } else { 1 });
        let constants: Vec<_> = types.into_iter().chain([wide, elements]).chain(rest).collect();
        // SAFETY: the launch compares all extents with one another, and the kernel accesses
        // elements within them only, whatever its sequences and its pattern are. The oracle ran the
        // kernel at and around every edge of its tiles (`kernels check`). The caller of
        // `Attention::score` guarantees that the score stays within its views.
        unsafe { queue(on, &call, &constants) }
    }
}

/// Keys and values in a cache.
#[derive(Clone, Copy)]
struct Cached<'v, K: Element, C, G> {
    k: BufferView<'v, K, 4>,
    v: BufferView<'v, K, 4>,
    scales: C,
    pages: G,
    /// The rows of a sequence.
    rows: usize,
}

impl<T: Float + GenericArgument, K: StoredElement + GenericArgument, C: Scales + LaunchStruct, G: Pages + LaunchStruct>
    KeysAndValues<T> for Cached<'_, K, C, G>
{
    fn heads(&self, q: &BufferView<'_, T, 4>) -> Result<usize, Error> {
        shared_heads(q, &self.k)?;
        Ok(self.k.extents()[1])
    }

    fn keys(&self) -> usize {
        self.rows
    }

    fn values(&self) -> usize {
        self.v.extents()[3] * K::NUMBERS
    }

    fn allows_vectors_of_four(&self) -> bool {
        K::NUMBERS > 1 || [self.k, self.v].iter().all(|x| x.aligned(4))
    }

    fn launch<M: Score + LaunchStruct, P: MaskPattern + LaunchStruct, S: Sequences + LaunchStruct>(
        self,
        on: &impl Queue,
        of: Operands<'_, '_, '_, '_, T, M, P, S>,
        tile: AttentionTile,
        fours: bool,
    ) -> Result<(), Error> {
        let Operands { q, o, lse, partial, logs, ended, scale, band: [left, right], score, pattern, sequences, work } =
            of;
        if !fours {
            let why = "rows of q, o or the cache do not begin at multiples of 4 elements, as a call with a cache needs";
            return Err(q.refused_operand(why.into()));
        }
        let Cached { k, v, scales, pages, .. } = self;
        let call = flash_attention_cached::<T, K, C, G, M, P, S, 32, 128, 1, 64, 1, 1, 4>::call(
            q, k, v, scales, pages, o, lse, partial, logs, ended, scale, left, right, score, pattern, sequences, work,
        );
        let types = [T::CONSTANT, K::CONSTANT, C::CONSTANT, G::CONSTANT, M::CONSTANT, P::CONSTANT, S::CONSTANT];
        let constants: Vec<_> = types.into_iter().chain(tile.constants()).collect();
        // SAFETY: as for floats. `KvCache::check` has compared planes and tables with sequences,
        // and scales with rows. The kernel clamps the numbers of pages.
        unsafe { queue(on, &call, &constants) }.map_err(renaming_parameters(&[["k", "keys"], ["v", "values"]]))
    }
}

/// The forward pass.
struct Forward<'c, 'a, 'v, 'o, 'l, T: Element, V, M, Q> {
    attention: Attention<'a, M>,
    on: &'c Q,
    q: BufferView<'v, T, 4>,
    keys: V,
    o: &'c mut BufferViewMut<'o, T, 4>,
    lse: Option<&'c mut BufferViewMut<'l, f32, 3>>,
}

impl<T: Float + GenericArgument, V: KeysAndValues<T>, M: Score + LaunchStruct, Q: Queue> AttentionPass
    for Forward<'_, '_, '_, '_, '_, T, V, M, Q>
{
    fn queue<P: MaskPattern + LaunchStruct, S: Sequences + LaunchStruct>(
        self,
        patterns: Patterns<P>,
        sequences: S,
        extent: BatchExtent,
    ) -> Result<(), Error> {
        let Forward { attention, on, q, keys, o, lse } = self;
        let ([batch, heads, rows, width], values) = (q.extents(), keys.values());
        let of_keys = keys.heads(&q)?;
        o.expected("o", [batch, heads, rows, values], "a row of v's elements for each query of each head")?;
        if heads == 0 && of_keys == 0 {
            return Ok(());
        }
        if values == 0 && lse.as_ref().is_some_and(|lse| !lse.extents().contains(&0)) {
            // The number of blocks depends on the elements of a value: without them, no block
            // writes `lse`.
            return Err(o.refused_operand(
                "rows of v are empty, so that there are no logarithms; pass `None` for `lse`".into(),
            ));
        }
        let mut own;
        let mut lse = match lse {
            Some(lse) => lse.reborrow(),
            None => {
                own = on.scratch::<f32>(batch * heads * rows)?;
                own.view_mut([batch, heads, rows])?
            }
        };
        let fours = width.is_multiple_of(8) && q.aligned(4) && keys.allows_vectors_of_four() && o.aligned(4);
        // Tiles have 128 queries, or 64 if queries are few or values are wide.
        let large = attention.mask.map_or(extent.queries, DeviceMask::size) > 64;
        let form = |width, threads, step| AttentionTile { height: threads / 2, width, step, threads };
        let tile = match (fours, large, values) {
            (true, _, 97..) => form(128, 128, 2),
            (_, true, ..=32) => form(32, 256, 1),
            (_, true, ..=64) => form(64, 256, 1),
            (_, true, ..=96) => form(96, 256, 1),
            (_, true, _) => form(128, 256, 1),
            (_, false, ..=32) => form(32, 128, 1),
            (_, false, ..=64) => form(64, 128, 1),
            (_, false, ..=96) => form(96, 128, 1),
            (_, false, _) => form(128, 128, 1),
        };
        let list_repeats = values.div_ceil(tile.width) * extent.sequences;
        let plan = match attention.mask {
            Some(mask) => mask.plan(tile, list_repeats)?,
            None => attention.plan(on.device(), tile, [heads, list_repeats], [extent.queries, keys.keys()])?,
        };
        let work = on.share(&plan.table)?;
        let slots = plan.slots;
        let mut partial = on.scratch::<f32>(slots * tile.height * tile.width)?;
        let mut logs = on.scratch::<f32>(slots * tile.height * 2)?;
        let mut counters = on.counters(slots.div_ceil(2))?;
        let mut partial =
            partial.view_strided_mut([slots, tile.height, tile.width], [tile.height * tile.width, tile.width, 1])?;
        let mut logs = logs.view_strided_mut([slots, tile.height, 2], [tile.height * 2, 2, 1])?;
        let mut ended = counters.halves(slots)?;
        // Explicit strides keep rows aligned even if there are no rows.
        let work = work.view_strided([plan.blocks, TABLE_COLUMNS], [TABLE_COLUMNS, 1])?;
        let operands = Operands {
            q,
            o,
            lse: &mut lse,
            partial: &mut partial,
            logs: &mut logs,
            ended: &mut ended,
            scale: attention.factor(width),
            band: [attention.left, attention.right],
            score: attention.score,
            pattern: patterns.of_queries,
            sequences,
            work,
        };
        keys.launch(on, operands, tile, fours)
    }
}
