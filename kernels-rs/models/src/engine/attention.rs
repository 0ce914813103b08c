//! Attention with its matrices: the projection to queries, keys and values, rotary positions, the
//! cache, and the output matrix.

use super::cache::{CacheElement, KeyValues, QueryKeyValues};
use super::exact::textbook_decode;
use super::linear::{DenseMatrix, LinearLayer, convert};
use super::operand::{ActivationOperand, ActivationSource, OperandMemory};
use crate::configuration::Configuration;
use kernel_dsl::{Element, Float, GenericArgument};
use kernels_rs::attention::{self, Decode, Layout, Scratch};
use kernels_rs::blocks::cache::Tokens;
use kernels_rs::blocks::heads::Norms;
use kernels_rs::{Queue, QueueMemory, rowwise};
use runtime::{BufferView, BufferViewMut, Device, DeviceBuffer, Error};
use std::sync::Arc;

/// The largest number of tokens in a step for which attention computes each token separately. More
/// tokens of a prompt are computed in tiles.
const MAX_DECODE_TOKENS: usize = 16;

/// The extents of attention, with its ε and scale.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct AttentionShape {
    /// The number of heads of queries, a multiple of `kv_heads`.
    pub heads: usize,
    /// The number of heads of keys, and of values.
    pub kv_heads: usize,
    /// The number of elements of a head: one of [`WIDTHS`](kernels_rs::blocks::heads::WIDTHS).
    pub head: usize,
    /// The ε that norms of heads add to the mean square.
    pub epsilon: f32,
    /// The factor by which products of queries and keys are multiplied.
    pub scale: f32,
}

impl AttentionShape {
    /// Returns the extents, ε and scale of a configuration.
    pub fn of(configuration: &Configuration) -> AttentionShape {
        let Configuration { heads, kv_heads, head_size: head, epsilon, ref rotary, .. } = *configuration;
        // Queries and keys are both multiplied by the attention factor, so their products have the
        // square of that factor.
        let scale = rotary.attention_factor().powi(2) / (head as f32).sqrt();
        AttentionShape { heads, kv_heads, head, epsilon, scale }
    }

    /// Returns the number of rows of the projection: those of queries, keys and values.
    pub fn projection_rows(&self) -> usize {
        (self.heads + 2 * self.kv_heads) * self.head
    }
}

/// The place of a token: a sequence, and an index in this sequence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TokenPlace {
    /// The number of the sequence in its batch.
    pub sequence: usize,
    /// The number of tokens of the sequence before this one.
    pub index: usize,
}

/// The places of tokens in their sequences, on the device. In a graph the values may change between
/// replays.
#[derive(Clone, Copy, Debug)]
pub struct DevicePlaces<'a> {
    /// The positions of the tokens, and the rows of the cache in which keys and values are stored.
    pub rotary_and_slots: Tokens<'a>,
    /// For each token, its index in the sequence. Keys and values of an index beyond the pages are
    /// not stored.
    pub token_indices: BufferView<'a, u32, 1>,
    /// For each token, the number of keys that the token attends to: earlier ones and its own. 0
    /// for padding.
    pub lengths: BufferView<'a, u32, 1>,
    /// The pages of the sequence of each token, `[tokens, pages]`.
    pub pages: BufferView<'a, u32, 2>,
    /// 0, 1, …, one for each token: rows of temporary keys and values that are quantized
    /// afterwards.
    pub temporary_slots: BufferView<'a, u32, 1>,
    /// The index of the first token, if all tokens are consecutive in one sequence and the host
    /// knows the index. `None` for a decoding step, whose graph reads `lengths` and `pages`
    /// instead.
    pub before: Option<usize>,
}

/// Memory for attention that the layers of a step use one after another.
#[derive(Debug)]
pub struct AttentionMemory {
    /// The result of the projection: queries, keys and values, `[tokens, rows of the projection]`.
    qkv: QueueMemory<f32>,
    /// Queries after norms and rotation, `[tokens, heads, head]`.
    q: QueueMemory<f32>,
    /// The result of attention, which the output matrix reads.
    attended: OperandMemory,
    scratch: Scratch,
    /// Weights of the keys, `[tokens, heads, context size]`, if results are exact.
    exact_weights: Option<QueueMemory<f32>>,
    /// The number of tokens for which memory is allocated.
    tokens: usize,
}

impl AttentionMemory {
    /// Allocates memory for up to `tokens` tokens, of sequences up to `context_size` tokens. With
    /// `exact`, attention has no approximations and computes each token as if it were alone.
    ///
    /// # Errors
    /// If memory runs out.
    pub fn new(
        on: &impl Queue,
        shape: AttentionShape,
        tokens: usize,
        context_size: usize,
        exact: bool,
    ) -> Result<AttentionMemory, Error> {
        let AttentionShape { heads, kv_heads, head, .. } = shape;
        let separate = tokens.min(MAX_DECODE_TOKENS);
        Ok(AttentionMemory {
            qkv: on.scratch(tokens * shape.projection_rows())?,
            q: on.scratch(tokens * heads * head)?,
            attended: OperandMemory::new(tokens * heads * head),
            scratch: Scratch::new(on, [separate, heads, head], kv_heads, context_size)?,
            exact_weights: if exact { Some(on.scratch(tokens * heads * context_size)?) } else { None },
            tokens,
        })
    }

    /// Returns the number of elements that are allocated for a token: queries, keys and values; the
    /// queries after rotation; and the result of attention in `f32`, its widest form. Memory for
    /// parts of the keys and for exact weights is not counted.
    pub(super) fn elements_per_token(shape: AttentionShape) -> usize {
        shape.projection_rows() + 2 * shape.heads * shape.head
    }
}

/// Attention of few tokens. The kernel of the projection also computes the norm of its input, and
/// the kernel of the output matrix adds to the residual sum.
pub(super) struct FusedAttention<'a> {
    attention: &'a AttentionLayer,
    projection: &'a DenseMatrix,
    output: &'a DenseMatrix,
}

impl FusedAttention<'_> {
    /// Queues x ← x + attention(norm(x)), with the cache of [`run`](AttentionLayer::run). x is
    /// `[tokens, width]`.
    pub(super) fn add<K: CacheElement>(
        &self,
        on: &impl Queue,
        norm: rowwise::Norm<'_, f32>,
        x: &mut BufferViewMut<'_, f32, 2>,
        places: &DevicePlaces<'_>,
        cache: KeyValues<'_, K>,
        memory: &mut AttentionMemory,
    ) -> Result<(), Error> {
        let ([n, _], AttentionLayer { shape, projection, .. }) = (x.extents(), self.attention);
        let mut qkv = contiguous_prefix(&mut memory.qkv, [n, shape.projection_rows()])?;
        self.projection.run_normed(on, norm, projection, &x.reborrow().shared(), &mut qkv)?;
        let attended = self.attention.attend(on, n, places, cache, memory)?;
        self.output.add(on, &attended, x)
    }
}

/// The attention of a block, with its weights.
#[derive(Debug)]
pub struct AttentionLayer {
    shape: AttentionShape,
    projection: LinearLayer,
    /// Weights of the norms of the heads of queries and of keys.
    norms: Option<[Arc<DeviceBuffer<f32>>; 2]>,
    output: LinearLayer,
}

impl AttentionLayer {
    /// Makes attention from its matrices. `projection` has the rows of queries, then those of keys
    /// and of values. The two elements of a rotated pair are in the two halves of a head. `norms`
    /// are the weights of the norms of queries and of keys, one for each element of a head.
    ///
    /// # Errors
    /// If extents do not match, or memory runs out.
    pub fn new(
        device: &Device,
        shape: AttentionShape,
        projection: LinearLayer,
        norms: Option<[&[f32]; 2]>,
        output: LinearLayer,
    ) -> crate::Result<AttentionLayer> {
        let wrong = |name: &str, found: String, expected: String| {
            Err(crate::Error::tensor("attention", name, format!("expected {expected}, found {found}")))
        };
        if projection.extents()[0] != shape.projection_rows() {
            return wrong(
                "projection",
                format!("{:?}", projection.extents()),
                format!("{} rows", shape.projection_rows()),
            );
        }
        if output.extents()[1] != shape.heads * shape.head {
            let expected = format!("{} columns", shape.heads * shape.head);
            return wrong("output", format!("{:?}", output.extents()), expected);
        }
        let norms = match norms {
            None => None,
            Some([q, k]) => Some([Arc::new(device.upload(q)?), Arc::new(device.upload(k)?)]),
        };
        Ok(AttentionLayer { shape, projection, norms, output })
    }

    /// Returns the extents.
    pub fn shape(&self) -> AttentionShape {
        self.shape
    }

    /// Returns the matrix of queries, keys and values, which reads the activations.
    pub(super) fn projection(&self) -> &LinearLayer {
        &self.projection
    }

    /// Queues y ← attention of x, both `[tokens, width]`. x has the form that the
    /// [`projection`](AttentionLayer::projection) reads. The keys and values of the tokens are
    /// stored in the cache.
    ///
    /// # Errors
    /// If extents do not match, or memory runs out.
    pub(super) fn run<K: CacheElement>(
        &self,
        on: &impl Queue,
        x: &ActivationOperand<'_>,
        places: &DevicePlaces<'_>,
        cache: KeyValues<'_, K>,
        y: &mut BufferViewMut<'_, f32, 2>,
        memory: &mut AttentionMemory,
    ) -> Result<(), Error> {
        let (n, is_exact) = (x.tokens(), memory.exact_weights.is_some());
        self.projection.product(
            on,
            is_exact,
            x,
            &mut contiguous_prefix(&mut memory.qkv, [n, self.shape.projection_rows()])?,
        )?;
        let attended = self.attend(on, n, places, cache, memory)?;
        self.output.product(on, is_exact, &attended, y)
    }

    /// Returns the form of attention whose two products include the norm and the residual sum.
    /// `None` if a matrix is block-quantized, or has parts in several formats.
    pub(super) fn fused(&self) -> Option<FusedAttention<'_>> {
        let (projection, output) = (self.projection.dense_matrix()?, self.output.dense_matrix()?);
        Some(FusedAttention { attention: self, projection, output })
    }

    /// Queues attention of the `n` tokens whose projection is in `memory`: norms of heads,
    /// rotation, storage in the cache, and attention over the cache. Returns the result in the form
    /// that the output matrix reads.
    fn attend<'w, K: CacheElement>(
        &self,
        on: &impl Queue,
        n: usize,
        places: &DevicePlaces<'_>,
        mut cache: KeyValues<'_, K>,
        memory: &'w mut AttentionMemory,
    ) -> Result<ActivationOperand<'w>, Error> {
        let AttentionShape { heads, head, epsilon, .. } = self.shape;
        let AttentionMemory { qkv, q, attended, scratch, exact_weights, tokens } = memory;
        let qkv_extents = [n, self.shape.projection_rows()];
        let norms = match &self.norms {
            None => None,
            Some([q, k]) => Some([on.share(q)?, on.share(k)?]),
        };
        let norm_views = match &norms {
            None => None,
            Some([q, k]) => Some([q.view([head])?, k.view([head])?]),
        };
        let norms = norm_views.as_ref().map(|[q, k]| Norms { weights: [q, k], epsilon });
        let q_extents = [n, heads, head];
        let projected = QueryKeyValues { elements: contiguous_prefix(qkv, qkv_extents)?.shared(), norms };
        K::store(on, &projected, places, &mut contiguous_prefix(q, q_extents)?, &mut cache)?;
        let form = self.output.form(n, exact_weights.is_some());
        let (exact_weights, q) = (exact_weights.as_mut(), contiguous_prefix(q, q_extents)?.shared());
        attended.queue_in_form(
            on,
            form,
            CachedAttention { shape: self.shape, q, places, cache, scratch, exact_weights, tokens: *tokens },
        )
    }
}

/// Attention of queries over a cache.
struct CachedAttention<'a, 'c, K: CacheElement> {
    shape: AttentionShape,
    q: BufferView<'a, f32, 3>,
    places: &'a DevicePlaces<'a>,
    cache: KeyValues<'c, K>,
    scratch: &'a mut Scratch,
    /// Memory for the weights of the keys, if results are exact.
    exact_weights: Option<&'a mut QueueMemory<f32>>,
    /// The number of tokens for which memory is allocated.
    tokens: usize,
}

impl<K: CacheElement> ActivationSource for CachedAttention<'_, '_, K> {
    fn extents(&self) -> [usize; 2] {
        let [n, heads, head] = self.q.extents();
        [n, heads * head]
    }

    fn write<T: Float + GenericArgument>(self, on: &impl Queue, y: &mut BufferViewMut<'_, T, 2>) -> Result<(), Error> {
        let CachedAttention { shape, q, places, mut cache, scratch, exact_weights, tokens } = self;
        let (AttentionShape { heads, scale, .. }, q_extents) = (shape, q.extents());
        let (n, elements) = (q_extents[0], q_extents.iter().product());
        let mut y = y.reborrow().strided().reshaped(q_extents)?.side_by_side()?;
        match (places.before.filter(|_| n > MAX_DECODE_TOKENS), exact_weights) {
            (_, Some(weights)) => {
                let context_size = weights.len() / (tokens.max(1) * heads);
                let views = cache.views()?;
                let ([k, v], [k_scales, v_scales]) = (views.elements, views.scales);
                let (lengths, weights) = (places.lengths, contiguous_prefix(weights, [n, heads, context_size])?);
                let mut o = on.scratch::<f32>(elements)?;
                let mut o_view = o.view_mut(q_extents)?;
                // SAFETY: the launch compares the extents, and the kernel stays within them. Each
                // lane writes separate weights before the barrier, and reads all weights after the
                // barrier.
                unsafe {
                    textbook_decode::<K>::launch_unchecked(
                        on,
                        q,
                        k,
                        v,
                        k_scales,
                        v_scales,
                        lengths,
                        places.pages,
                        &mut o_view,
                        weights,
                        scale,
                    )?;
                }
                convert(on, o.view(q_extents)?, y)
            }
            (Some(before), _) => {
                let (mut q_k, mut o_k) =
                    (on.scratch::<K::PromptElement>(elements)?, on.scratch::<K::PromptElement>(elements)?);
                convert(on, q, q_k.view_mut(q_extents)?)?;
                let prompt = PromptAttention { scale, keys: before + n, lengths: places.lengths, pages: places.pages };
                prompt.attend(on, q_k.view(q_extents)?, &mut cache, &mut o_k.view_mut(q_extents)?)?;
                convert(on, o_k.view(q_extents)?, y)
            }
            (None, _) => {
                let is_single = n == 1 && cache.pages() == 1;
                let views = K::attention_operand(cache.views()?);
                let views = if is_single { views } else { views.paged(places.pages) };
                Decode::new().scale(scale).run(on, &q, views, &places.lengths, &mut y, scratch)
            }
        }
    }
}

/// The call of attention for a chunk of a prompt, in which a token attends to the keys up to its
/// own.
#[derive(Clone, Copy)]
struct PromptAttention<'a> {
    /// The factor by which products of queries and keys are multiplied.
    scale: f32,
    /// The number of keys of the sequence, including those of the chunk.
    keys: usize,
    /// The number of keys that each token attends to.
    lengths: BufferView<'a, u32, 1>,
    /// The pages of the sequence, in the first row.
    pages: BufferView<'a, u32, 2>,
}

impl PromptAttention<'_> {
    /// Queues o ← attention of `q`, both `[tokens, heads, head]`. The kernel reads keys and values
    /// in the format of the cache.
    fn attend<K: CacheElement>(
        self,
        on: &impl Queue,
        q: BufferView<'_, K::PromptElement, 3>,
        cache: &mut KeyValues<'_, K>,
        o: &mut BufferViewMut<'_, K::PromptElement, 3>,
    ) -> Result<(), Error> {
        let PromptAttention { scale, keys, lengths, pages } = self;
        let ([tokens, heads, head], [_, _, rows, _]) = (q.extents(), cache.elements.extents());
        let by_head = [1, heads, tokens, head];
        let q = q.strided().permuted([1, 0, 2])?.reshaped(by_head)?.side_by_side()?;
        let mut o = o.reborrow().strided().permuted([1, 0, 2])?.reshaped(by_head)?.side_by_side()?;
        let call = attention::Attention::new().scale(scale).causal();
        if cache.pages() == 1 {
            return call.run_cached(on, &q, K::attention_operand(cache.views()?.first_rows(keys)?), &mut o, None);
        }
        // The last token sees all keys, so its length is that of the sequence. The layout takes
        // this length for queries too, but a sequence has at most the queries of `q`.
        let length = lengths.slice(tokens - 1..tokens)?;
        let layout = Layout::Padded { queries: length, keys: length };
        let pages = pages.slice(0..1)?.strided().permuted([1, 0])?.slice(0..keys.div_ceil(rows))?;
        let table = pages.permuted([1, 0])?.side_by_side()?;
        call.layout(layout).run_cached(on, &q, K::attention_operand(cache.views()?).paged(table), &mut o, None)
    }
}

/// Returns a contiguous view of the first elements of memory.
pub(super) fn contiguous_prefix<T: Element, const R: usize>(
    memory: &mut QueueMemory<T>,
    extents: [usize; R],
) -> Result<BufferViewMut<'_, T, R>, Error> {
    let mut strides = [1; R];
    for i in (1..R).rev() {
        strides[i - 1] = strides[i] * extents[i];
    }
    memory.view_strided_mut(extents, strides)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel_dsl::half::f16;
    use runtime::testing::Random;

    /// The number of heads of keys, and of elements of a head.
    const GROUPS: [usize; 2] = [3, 40];
    /// The numbers of keys, of tokens and of heads of queries.
    const KEYS: usize = 26;
    const TOKENS: usize = 18;
    const HEADS: usize = 6;

    /// Returns the attention of each token in `f64`, for keys and values [head, key, element].
    fn expected(q: &[f16], [keys, values]: [&[f64]; 2], scale: f64) -> Vec<f64> {
        let [kv_heads, head] = GROUPS;
        let mut o = Vec::new();
        for (row, q) in q.chunks(head).enumerate() {
            let (token, group) = (row / HEADS, row % HEADS / (HEADS / kv_heads));
            let seen = KEYS - TOKENS + token + 1;
            let element = |all: &[f64], key: usize, d: usize| all[(group * KEYS + key) * head + d];
            let dot = |key| (0..head).map(|d| f64::from(q[d]) * element(keys, key, d)).sum::<f64>();
            let weights: Vec<f64> = (0..seen).map(|key| (scale * dot(key)).exp()).collect();
            let sum: f64 = weights.iter().sum();
            let mean = |d| (0..seen).map(|key| weights[key] * element(values, key, d)).sum::<f64>() / sum;
            o.extend((0..head).map(mean));
        }
        o
    }

    /// Compares prompts over a cache of bytes with `f64`. `table` names the pages of the sequence
    /// in order. There are `pages` pages of `rows` keys.
    fn prompts(device: &Device, [pages, rows]: [usize; 2], table: &[u32]) {
        let mut random = Random::new(7);
        let ([kv_heads, head], blocks) = (GROUPS, 2);
        let elements: Vec<i8> = (0..2 * pages * kv_heads * rows * head).map(|_| random.bits() as i8).collect();
        let block_count = 2 * pages * kv_heads * rows * blocks;
        let scales: Vec<f16> =
            (0..block_count).map(|_| f16::from_f32((1 + random.below(16)) as f32 / 1024.0)).collect();
        let q: Vec<f16> = random.values::<f32>(TOKENS * HEADS * head).into_iter().map(f16::from_f32).collect();
        let scale = 0.25f32;
        let stored = |keys_or_values: usize| -> Vec<f64> {
            let row = |group: usize, key: usize| {
                ((keys_or_values * pages + table[key / rows] as usize) * kv_heads + group) * rows + key % rows
            };
            let all = (0..kv_heads).flat_map(|group| (0..KEYS).map(move |key| row(group, key)));
            let row_elements =
                |row: usize| (0..head).map(move |d| (row * head + d, row * blocks + d / 32)).collect::<Vec<_>>();
            let number = |(n, s): (usize, usize)| f64::from(elements[n]) * f64::from(scales[s]);
            all.flat_map(row_elements).map(number).collect()
        };
        let expected = expected(&q, [&stored(0), &stored(1)], f64::from(scale));
        let mut memory = (device.upload(&elements).unwrap(), device.upload(&scales).unwrap());
        let mut cache = KeyValues {
            elements: memory.0.view_mut([2 * pages, kv_heads, rows, head]).unwrap(),
            scales: memory.1.view_mut([2 * pages, kv_heads, rows, blocks]).unwrap(),
        };
        let (q, mut o) = (device.upload(&q).unwrap(), device.zeros::<f16>(q.len()).unwrap());
        let q_extents = [TOKENS, HEADS, head];
        let lengths: Vec<u32> = (KEYS - TOKENS + 1..=KEYS).map(|keys| keys as u32).collect();
        let (lengths, table_buffer) = (device.upload(&lengths).unwrap(), device.upload(table).unwrap());
        let (lengths, table) = (lengths.view([TOKENS]).unwrap(), table_buffer.view([1, table.len()]).unwrap());
        let prompt = PromptAttention { scale, keys: KEYS, lengths, pages: table };
        prompt
            .attend::<i8>(device, q.view(q_extents).unwrap(), &mut cache, &mut o.view_mut(q_extents).unwrap())
            .unwrap();
        for (i, (got, exact)) in o.download().unwrap().iter().zip(&expected).enumerate() {
            let error = (f64::from(*got) - exact).abs();
            assert!(error < 1e-3 * exact.abs().max(0.5), "{pages} pages, number {i}: {got} instead of {exact}");
        }
    }

    /// Compares prompts over pages, and over one page with more rows than keys.
    fn all_prompts(device: &Device) {
        prompts(device, [5, 7], &[3, 0, 4, 1]);
        prompts(device, [5, 7], &[3, 0, 4, 1, 2]);
        prompts(device, [1, 31], &[0]);
    }

    #[test]
    fn prompts_read_stored_keys() {
        all_prompts(&Device::cpu());
    }

    #[test]
    #[ignore = "needs an NVIDIA GPU"]
    fn gpu_prompts_read_stored_keys() {
        all_prompts(&Device::cuda(0).unwrap());
    }
}
