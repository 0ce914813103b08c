//! The call for attention of a decoding step.

use super::cache::{Blocks, Contiguous, Factors, KvCache, Paged, Pages, Scaled, Scales, StoredElement, Unscaled};
use super::decode::flash_decode;
use super::extend::{row_elements, shared_heads};
use crate::operand::ArrayOperand;
use crate::queue::renaming_parameters;
use crate::rowwise::plan::queue;
use crate::{BlockCounters, LaunchStruct, Queue, QueueMemory};
use kernel_dsl::compiler::hir::Constant;
use kernel_dsl::{Float, GenericArgument};
use runtime::{BufferView, BufferViewMut, Error};

/// The number of blocks per multiprocessor that saturates its memory bandwidth. More blocks only
/// make the reduction more expensive: on an H100, two blocks of 256 threads took 17.8 µs for one
/// token of 8192 keys of `f16`. Four of 128 threads took 18.8 µs, and one of 512 took 18.7 µs.
const BLOCKS_PER_MULTIPROCESSOR: usize = 2;
/// The number of keys of a split is a multiple of this.
const SPLIT_MULTIPLE: usize = 32;

/// The scratch memory for the partial results of a decoding step, on a device or for a graph that
/// is being recorded. Concurrent steps need separate scratch memory.
#[derive(Debug)]
pub struct Scratch {
    parts: QueueMemory<f32>,
    logs: QueueMemory<f32>,
    ended: BlockCounters,
    shape: [usize; 3],
    /// The number of parts that a sequence's keys are split into.
    splits: usize,
}

impl Scratch {
    /// Allocates scratch memory for q of [sequence, head, element], and for caches with `groups`
    /// heads and at most `room` keys per sequence.
    ///
    /// # Errors
    /// Returns an error if memory is insufficient.
    pub fn new(on: &impl Queue, shape: [usize; 3], groups: usize, room: usize) -> Result<Scratch, Error> {
        Scratch::for_tokens(on, shape, 1, groups, room)
    }

    /// Allocates scratch memory for q of [sequence · token, head, element] with `tokens` tokens a
    /// sequence ([`Decode::tokens`]), and for caches as [`new`](Scratch::new) does. The memory
    /// suits calls of fewer tokens as well.
    ///
    /// # Errors
    /// Returns an error if memory is insufficient.
    pub fn for_tokens(
        on: &impl Queue,
        shape: [usize; 3],
        tokens: usize,
        groups: usize,
        room: usize,
    ) -> Result<Scratch, Error> {
        let ([rows, heads, _], groups) = (shape, groups.max(1));
        let sequences = rows.div_ceil(tokens.max(1));
        let blocks = sequences * heads.min(groups * heads.div_ceil(groups).div_ceil(4));
        let full = (BLOCKS_PER_MULTIPROCESSOR * on.device().facts().multiprocessors as usize / blocks.max(1)).max(1);
        let each = room.div_ceil(full).next_multiple_of(SPLIT_MULTIPLE).max(SPLIT_MULTIPLE);
        Scratch::with_splits(on, shape, room.div_ceil(each))
    }

    /// Allocates scratch memory for a fixed number of splits of the keys.
    ///
    /// # Errors
    /// Returns an error if memory is insufficient.
    pub fn with_splits(on: &impl Queue, shape: [usize; 3], splits: usize) -> Result<Scratch, Error> {
        let ([sequences, heads, width], splits) = (shape, splits.max(1));
        Ok(Scratch {
            parts: on.scratch(sequences * heads * splits * width)?,
            logs: on.scratch(sequences * heads * splits * 2)?,
            ended: on.counters((sequences * heads).div_ceil(2))?,
            shape,
            splits,
        })
    }
}

/// Attention of one or a few tokens a sequence, O ← softmax(scale·q·Kᵀ)·V, over keys and values in
/// a cache.
///
/// q and O are [sequence, head, element], or [sequence · token, head, element] for several
/// [`tokens`](Decode::tokens). A head has at most 256 elements, a multiple of 8, or of 4 if the
/// cache stores `f32`. The [`cache`](super::cache) has any of the formats that its module lists;
/// keys and values are read once and multiplied with their scales in registers. The number of heads
/// is a multiple of the cache's, and neighboring heads share a head of the cache. `lengths` gives
/// the number of keys of each sequence, those of its tokens included. A sequence without keys gives
/// zeros.
///
/// Any extent may be 0. Up to 65,535 sequences and 65,535 heads, every combination is allowed. With
/// more of either, sequences × heads × parts of their keys ([`Scratch`]) must be at most 2³¹ − 1.
/// The pages of a sequence hold fewer than 2³⁰ keys.
///
/// # Values at the ends of the range
///
/// As for [`Attention`](super::Attention), except that the query is scaled before the product:
///
/// * **Logits** are Σ (q · scale · log₂ e)·k in `f32`. The factors and the sum become ±∞ at 2¹²⁸ in
///   magnitude. Therefore the largest finite logit is 2.3·10³⁸.
/// * **Weights** are exp(x − m), m the largest logit: exactly 1 for x = m. Each logit has the
///   relative error of a product in `f32`, 2⁻²², plus that of the sum.
/// * **Huge values**: a mean of finite values is finite if logits are below 10⁷ in magnitude. For
///   larger logits the mean is finite if the sum of values with the largest logit is in range.
/// * **Tiny values** are kept within n² · 2⁻¹⁴⁹ for n keys, and within n² · 2⁻¹⁴² in a cache with
///   scales.
/// * **Rows, pages and scales beyond a sequence's length** are not read.
/// * **Scales** multiply sums of 8 or 16 products of a logit, and the weight of a value, in `f32`.
/// * **One token over a cache of integers** (`i8`, `u32`): q · scale · log₂ e is rounded to
///   integers of 16 bits. The integers' unit is at most 2⁻¹⁴ of the largest of 8 or 16 neighboring
///   elements, and at least 2⁻¹²⁶. An element's error is at most 2⁻¹⁵ of that largest one, where
///   the roundoff of `f16` is 2⁻¹¹. Products with the cache's integers are exact. If an element of
///   q is NaN or ±∞, the row is NaN.
/// * **NaN and ±∞**: a logit that is NaN or +∞ makes the row NaN. A row whose logits are all −∞ is
///   zero. A value that is NaN or ±∞ makes its column NaN or ±∞, even if its weight is 0.
#[derive(Clone, Copy, PartialEq, Debug)]
#[must_use]
pub struct Decode {
    scale: Option<f32>,
    tokens: usize,
}

impl Default for Decode {
    fn default() -> Self {
        Decode::new()
    }
}

/// The largest number of tokens of a sequence in a step.
const MAX_TOKENS: usize = 16;

/// The constants of a kernel's instance.
struct StepForm {
    lanes: u32,
    wide: u32,
    each: u32,
    group: u32,
    in_flight: u32,
    tokens: bool,
    sets: u32,
    threads: u32,
}

impl StepForm {
    /// Returns the form for heads of `width` numbers, `of_group` query heads of `tokens` tokens,
    /// and a cache whose numbers have `bytes` bytes. `wide` numbers can be loaded at a time. The
    /// cache is `streamed` if L2 does not keep it.
    fn new(width: usize, of_group: usize, tokens: usize, bytes: usize, wide: u32, streamed: bool) -> StepForm {
        // A lane's keys in flight, for up to two columns and for four. More keys would spill. For
        // loads from L2, four keys suffice.
        let (ahead, few) = match bytes {
            4 => (4, 2),
            2 => (if streamed { 8 } else { 4 }, 4),
            _ => (8, 2),
        };
        let threads = if bytes == 4 { 128 } else { 256 };
        // Sixteen numbers a lane need fewer exchanges than eight; their sums fit for two columns.
        let several = tokens > 1;
        let (wide, each) = if wide == 16 && !several && of_group <= 2 { (16, 16) } else { (wide.min(8), 8) };
        let lanes = match width / (each as usize / 8) {
            0..=32 if each == 16 => 4,
            0..=64 => 8,
            65..=128 => 16,
            _ => 32,
        };
        let form = StepForm { lanes, wide, each, group: 4, in_flight: few, tokens: several, sets: 1, threads };
        if !several {
            let ahead = if each == 16 { 4 } else { ahead };
            let (group, in_flight) = match of_group {
                0 | 1 => (1, ahead),
                2 => (2, ahead),
                _ => (4, few),
            };
            return StepForm { group, in_flight, ..form };
        }
        // The sums of eight columns spill: four columns of several warps share keys instead.
        let sets = match of_group * tokens {
            0..=4 => 1,
            5..=8 => 2,
            _ => 4,
        };
        StepForm { sets, threads: 256, ..form }
    }
}

/// Returns whether L2 of `l2` bytes keeps a cache of keys like `keys`, and of values, until the
/// next step, unless other kernels replace them. On an H100, caches of 64 % of L2 stay, and
/// caches of 72 % do not.
fn stays_in_l2<K: StoredElement, C: Scales>(l2: Option<u64>, keys: &BufferView<'_, K, 4>) -> bool {
    let [planes, heads, rows, elements] = keys.extents().map(|n| n as u64);
    // At most one 16-bit scale for each 32 numbers.
    let scales = if C::SCALED { elements * K::NUMBERS as u64 / 16 } else { 0 };
    let row = elements * size_of::<K>() as u64 + scales;
    let bytes = [planes, heads, rows].into_iter().fold(row, u64::saturating_mul);
    l2.is_some_and(|l2| bytes <= l2 / 3)
}

/// Returns the whole bytes of a number of a cache, 0 for four bits.
fn bytes<K: StoredElement>() -> usize {
    size_of::<K>() / K::NUMBERS
}

impl Decode {
    /// Returns a call that scales logits by 1 / √(elements of a head).
    pub const fn new() -> Decode {
        Decode { scale: None, tokens: 1 }
    }

    /// Sets the factor of the products.
    pub const fn scale(self, scale: f32) -> Decode {
        Decode { scale: Some(scale), ..self }
    }

    /// Sets the number of tokens of each sequence, 1 to 16, such as drafts to be verified. Row
    /// i · tokens + t of q is token t of sequence i. The tokens are the last of their sequence, and
    /// the cache contains their keys: token t sees the first `lengths` − tokens + t + 1 keys. All
    /// tokens and heads that share keys read them together.
    pub const fn tokens(self, tokens: usize) -> Decode {
        Decode { tokens, ..self }
    }

    /// Queues the step. o may have another format than q, such as the one that the next product
    /// reads: its numbers are rounded once.
    ///
    /// # Errors
    /// Returns an error if:
    /// - extents do not match or exceed the limits above,
    /// - the cache or its table has another number of sequences than q,
    /// - rows are not aligned to the access width (4 numbers of `f32`, otherwise 8), or
    /// - a buffer belongs to another device.
    pub fn run<T: Float + GenericArgument, O: Float + GenericArgument, K: StoredElement + GenericArgument>(
        self,
        on: &impl Queue,
        q: &BufferView<'_, T, 3>,
        cache: KvCache<'_, K>,
        lengths: &BufferView<'_, u32, 1>,
        o: &mut BufferViewMut<'_, O, 3>,
        scratch: &mut Scratch,
    ) -> Result<(), Error> {
        let [rows, ..] = q.extents();
        if !(1..=MAX_TOKENS).contains(&self.tokens) || !rows.is_multiple_of(self.tokens) {
            let why = format!(
                "q has {rows} rows for {} tokens a sequence; expected a multiple of 1 to {MAX_TOKENS} tokens",
                self.tokens
            );
            return Err(q.refused_operand(why));
        }
        cache.check(rows / self.tokens)?;
        match cache.scales {
            Factors::None => self.paged(on, q, cache, Unscaled, lengths, o, scratch),
            Factors::Rows([keys, values]) => {
                // SAFETY: the launch is noted as a reader of the scales and queued before their
                // borrow ends. The scales have an element for each head of each row.
                let scales = unsafe { Scaled { keys: keys.detached(), values: values.detached() } };
                on.reading(&keys, || on.reading(&values, || self.paged(on, q, cache, scales, lengths, o, scratch)))
            }
            Factors::Blocks([keys, values]) => {
                // SAFETY: as for scales of rows. These scales have an element for each 32 numbers.
                let scales = unsafe { Blocks { keys: keys.detached(), values: values.detached() } };
                on.reading(&keys, || on.reading(&values, || self.paged(on, q, cache, scales, lengths, o, scratch)))
            }
        }
    }

    /// Queues the step with the scales of the cache.
    #[allow(clippy::too_many_arguments, reason = "the operands and the queue")]
    fn paged<
        T: Float + GenericArgument,
        O: Float + GenericArgument,
        K: StoredElement + GenericArgument,
        C: Scales + LaunchStruct,
    >(
        self,
        on: &impl Queue,
        q: &BufferView<'_, T, 3>,
        cache: KvCache<'_, K>,
        scales: C,
        lengths: &BufferView<'_, u32, 1>,
        o: &mut BufferViewMut<'_, O, 3>,
        scratch: &mut Scratch,
    ) -> Result<(), Error> {
        let kv = [&cache.keys, &cache.values];
        let Some(table) = cache.table else {
            return self.queue(on, q, kv, scales, Contiguous, lengths, o, scratch);
        };
        // SAFETY: the launch is noted as a reader of the table and queued before its borrow ends.
        let pages = Paged { table: unsafe { table.detached() } };
        on.reading(&table, || self.queue(on, q, kv, scales, pages, lengths, o, scratch))
    }

    /// Queues the step with a way to find the keys of a sequence. There is a plane for each
    /// sequence, or a page, and a row of the table for each sequence.
    #[allow(clippy::too_many_arguments, reason = "the operands and the queue")]
    fn queue<
        T: Float + GenericArgument,
        O: Float + GenericArgument,
        K: StoredElement + GenericArgument,
        C: Scales + LaunchStruct,
        P: Pages + LaunchStruct,
    >(
        self,
        on: &impl Queue,
        q: &BufferView<'_, T, 3>,
        [k, v]: [&BufferView<'_, K, 4>; 2],
        scales: C,
        pages: P,
        lengths: &BufferView<'_, u32, 1>,
        o: &mut BufferViewMut<'_, O, 3>,
        scratch: &mut Scratch,
    ) -> Result<(), Error> {
        let [all, heads, width] = q.extents();
        let (tokens, sequences) = (self.tokens, all / self.tokens);
        let [planes, groups, rows, _] = k.extents();
        row_elements::<T, K, 3>(q)?;
        let elements = width / K::NUMBERS;
        k.expected("keys of the cache", [planes, groups, rows, elements], "rows as long as heads of q")?;
        v.expected("values of the cache", [planes, groups, rows, elements], "the extents of its keys")?;
        lengths.expected("lengths", [sequences], "one for each sequence of q")?;
        o.expected("o", [all, heads, width], "the extents of q")?;
        shared_heads(q, k)?;
        if q.extents().contains(&0) {
            return Ok(());
        }
        let wide: u32 = if bytes::<K>() == 4 { 4 } else { 8 };
        let multiple = wide as usize;
        if width > 256 || !width.is_multiple_of(multiple) {
            let why = format!("heads of q have {width} elements; expected a multiple of {multiple}, at most 256");
            return Err(q.refused_operand(why));
        }
        if [all, heads, width].iter().zip(&scratch.shape).any(|(of_q, made)| of_q > made) {
            let why = format!("q has extents {:?}; the scratch memory is for at most {:?}", q.extents(), scratch.shape);
            return Err(q.refused_operand(why));
        }
        // An empty cache may have any strides; the kernel requires row pitches that are multiples
        // of its access width.
        let none = on.scratch::<K>(0)?;
        let (no_keys, no_values);
        let (mut k, mut v) = (k, v);
        if k.extents().contains(&0) {
            no_keys = none.view_strided(k.extents(), [elements, elements, elements, 1])?;
            k = &no_keys;
        }
        if v.extents().contains(&0) {
            no_values = none.view_strided(v.extents(), [elements, elements, elements, 1])?;
            v = &no_values;
        }
        let Scratch { parts, logs, ended, shape: [of_sequences, of_heads, of_width], splits } = scratch;
        // If a step has fewer sequences than the scratch memory allows, it uses the first rows.
        let sixteen =
            K::INTEGERS && width.is_multiple_of(16) && [k, v].into_iter().all(|rows| rows.aligned(16 / K::NUMBERS));
        let wide = if sixteen { 16 } else { wide };
        let streamed = !stays_in_l2::<K, C>(on.device().l2_bytes(), k);
        let form = StepForm::new(width, heads.checked_div(groups).unwrap_or(1), tokens, bytes::<K>(), wide, streamed);
        let splits = *splits;
        // An upper bound: a block has at most four heads of a group.
        let blocks = [splits, heads * tokens, sequences];
        q.check_grid(blocks, format_args!("{sequences} sequences of {heads} heads, their keys in {splits} parts,"))?;
        let numbers = all.saturating_mul(heads).saturating_mul(splits).saturating_mul(width);
        if numbers > u32::MAX as usize {
            return Err(q.refused_operand(format!(
                "{sequences} sequences of {heads} heads, their keys in {splits} parts, have {numbers} partial results, and a call supports at most 2³² − 1: create the scratch memory with fewer splits"
            )));
        }
        let of_width = *of_width;
        let strides = [*of_heads * splits * of_width, splits * of_width, of_width, 1];
        let mut parts = parts.view_strided_mut([all, heads, splits, width], strides)?;
        let mut logs = logs.view_strided_mut([all, heads, splits, 2], [heads * splits * 2, splits * 2, 2, 1])?;
        let mut ended = ended.halves(*of_sequences * *of_heads)?;
        let scale = self.scale.unwrap_or(1.0 / (width.max(1) as f32).sqrt());
        let StepForm { lanes, wide, each, group, in_flight, tokens: several, sets, threads } = form;
        let numbers = [lanes, wide, each, group, in_flight].map(Constant::Usize);
        let of_tokens =
            [Constant::Bool(several), Constant::Usize(sets), Constant::Usize(threads), Constant::Bool(streamed)];
        let derived = [group.min(2), 4 * group, group * in_flight].map(Constant::Usize);
        let types = [T::CONSTANT, O::CONSTANT, K::CONSTANT, C::CONSTANT, P::CONSTANT];
        let constants: Vec<_> = types.into_iter().chain(numbers).chain(of_tokens).chain(derived).collect();
        let call = flash_decode::<T, O, K, C, P, 16, 4, 8, 2, 4, false, 1, 128, true, 2, 8, 8>::call(
            q, k, v, scales, pages, lengths, o, &mut parts, &mut logs, &mut ended, groups, splits, tokens, scale,
        );
        // SAFETY: the launch compares all extents with one another, except planes with sequences,
        // which `KvCache::check` has compared. So the kernel accesses elements within them only,
        // whatever lengths and pages are. The oracle ran the kernel at and around every edge of its
        // splits (`kernels check`).
        unsafe { queue(on, &call, &constants) }.map_err(renaming_parameters(&[["k", "keys"], ["v", "values"]]))
    }
}
