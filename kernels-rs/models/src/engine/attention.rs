//! Attention with its matrices: queries, keys and values, rotary positions, the cache, and the
//! matrix after attention.

use super::exact::textbook_decode;
use super::linear::{Linear, convert};
use crate::configuration::Configuration;
use kernel_dsl::{Float, GenericArgument};
use kernels_rs::attention::cache::StoredElement;
use kernels_rs::attention::{self, Decode, KvCache, Qkv, Scratch};
use kernels_rs::blocks::cache::{Cache, Tokens};
use kernels_rs::blocks::heads::{Norms, prepare};
use kernels_rs::{Queue, QueueMemory};
use runtime::{BufferView, BufferViewMut, Device, DeviceBuffer, Error};
use std::sync::Arc;

/// Up to so many tokens of a sequence, each is attended to by itself. More share tiles of 64.
const APART: usize = 16;

/// The extents of attention.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct AttentionShape {
    /// Heads of queries, a multiple of `groups`.
    pub heads: usize,
    /// Heads of keys and of values.
    pub groups: usize,
    /// Numbers of a head: 64, 128 or 256.
    pub head: usize,
    /// The number that norms of heads add to the mean square.
    pub epsilon: f32,
    /// The factor of products of queries and keys.
    pub scale: f32,
}

impl AttentionShape {
    /// Returns the extents of a configuration.
    pub fn of(configuration: &Configuration) -> AttentionShape {
        let Configuration { heads, groups, head, epsilon, ref rotary, .. } = *configuration;
        // Both operands are multiplied by the factor of stretched positions.
        let scale = rotary.attention_factor().powi(2) / (head as f32).sqrt();
        AttentionShape { heads, groups, head, epsilon, scale }
    }

    /// Returns the rows of queries, keys and values together.
    pub fn projected(&self) -> usize {
        (self.heads + 2 * self.groups) * self.head
    }
}

/// Keys and values of a layer for all sequences: `[2·sequences, groups, room, head]`, keys first.
pub type KeyValues<'a, K> = BufferViewMut<'a, K, 4>;

/// The tokens before the first of a step, whose tokens follow one another in a sequence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct After {
    /// The number of the sequence.
    pub sequence: usize,
    /// The tokens of the sequence before the first of the step.
    pub tokens: usize,
}

/// The places of tokens in their sequences, on the device. In a graph the values may change between
/// replays.
#[derive(Clone, Copy, Debug)]
pub struct Places<'a> {
    /// Positions and slots of the cache.
    pub tokens: Tokens<'a>,
    /// For each token the keys that it sees: those before it, and its own.
    pub lengths: BufferView<'a, u32, 1>,
    /// The sequence of each token, `[tokens, 1]`.
    pub pages: BufferView<'a, u32, 2>,
    /// The place of the first token, if it is known while launches are queued and the others
    /// follow. A recording knows `lengths` and `pages` only.
    pub after: Option<After>,
}

/// Memory that the layers of a step use one after another.
#[derive(Debug)]
pub struct Work {
    qkv: QueueMemory<f32>,
    q: QueueMemory<f32>,
    o: QueueMemory<f32>,
    scratch: Scratch,
    /// Weights of the keys for each token and head, where results are exact.
    exact: Option<QueueMemory<f32>>,
}

impl Work {
    /// Allocates memory for up to `tokens` tokens, of sequences up to `room` tokens. With `exact`,
    /// tokens are attended to without approximations, each as if alone.
    ///
    /// # Errors
    /// If memory is short.
    pub fn new(on: &impl Queue, shape: AttentionShape, tokens: usize, room: usize, exact: bool) -> Result<Work, Error> {
        let AttentionShape { heads, groups, head, .. } = shape;
        let apart = tokens.min(APART);
        Ok(Work {
            qkv: on.scratch(tokens * shape.projected())?,
            q: on.scratch(tokens * heads * head)?,
            o: on.scratch(tokens * heads * head)?,
            scratch: Scratch::new(on, [apart, heads, head], groups, room)?,
            exact: if exact { Some(on.scratch(tokens * heads * room)?) } else { None },
        })
    }
}

/// Attention of a block.
#[derive(Debug)]
pub struct Attention {
    shape: AttentionShape,
    projection: Linear,
    /// Weights of the norms of the heads of queries and of keys.
    norms: Option<[Arc<DeviceBuffer<f32>>; 2]>,
    output: Linear,
}

impl Attention {
    /// Makes attention of its matrices: `projection` has the rows of queries, keys and values,
    /// whose rotated pairs are in the two halves of a head. `norms` are the weights of the norms of
    /// heads.
    ///
    /// # Errors
    /// If extents do not match, or memory is short.
    pub fn new(
        device: &Device,
        shape: AttentionShape,
        projection: Linear,
        norms: Option<[&[f32]; 2]>,
        output: Linear,
    ) -> crate::Result<Attention> {
        let wrong = |name: &str, found: String, expected: String| {
            Err(crate::Error::tensor("attention", name, format!("expected {expected}, found {found}")))
        };
        if projection.extents()[0] != shape.projected() {
            return wrong("projection", format!("{:?}", projection.extents()), format!("{} rows", shape.projected()));
        }
        if output.extents()[1] != shape.heads * shape.head {
            let expected = format!("{} columns", shape.heads * shape.head);
            return wrong("output", format!("{:?}", output.extents()), expected);
        }
        let norms = match norms {
            None => None,
            Some([q, k]) => Some([Arc::new(device.upload(q)?), Arc::new(device.upload(k)?)]),
        };
        Ok(Attention { shape, projection, norms, output })
    }

    /// Returns the extents.
    pub fn shape(&self) -> AttentionShape {
        self.shape
    }

    /// Queues y ← attention of x, both `[tokens, width]`. The keys and values of the tokens are
    /// stored in the cache.
    ///
    /// # Errors
    /// If extents do not match, or memory is short.
    pub fn run<K: Float + StoredElement + GenericArgument>(
        &self,
        on: &impl Queue,
        x: &BufferView<'_, f32, 2>,
        places: &Places<'_>,
        cache: KeyValues<'_, K>,
        y: &mut BufferViewMut<'_, f32, 2>,
        work: &mut Work,
    ) -> Result<(), Error> {
        let AttentionShape { heads, head, epsilon, scale, .. } = self.shape;
        let n = x.extents()[0];
        let Work { qkv, q, o, scratch, exact } = work;
        let is_exact = exact.is_some();
        let of_qkv = [n, self.shape.projected()];
        self.projection.run_as(on, is_exact, x, &mut prefix(qkv, of_qkv)?)?;
        let sequences = cache.extents()[0] / 2;
        let (keys, values) = cache.split_at(sequences)?;
        let mut cache = Cache { keys, values };
        let norms = match &self.norms {
            None => None,
            Some([q, k]) => Some([on.share(q)?, on.share(k)?]),
        };
        let of_heads = match &norms {
            None => None,
            Some([q, k]) => Some([q.view([head])?, k.view([head])?]),
        };
        let norms = of_heads.as_ref().map(|[q, k]| Norms { weights: [q, k], epsilon });
        let of_q = [n, heads, head];
        let qkv = prefix(qkv, of_qkv)?.shared();
        prepare(on, &qkv, norms, &places.tokens, &mut prefix(q, of_q)?, &mut cache)?;
        match (places.after.filter(|_| n > APART), exact) {
            (_, Some(weights)) => {
                let [k, v] = cache.views();
                let (lengths, weights) = (places.lengths, prefix(weights, [n, heads, k.extents()[2]])?);
                let (q, mut o) = (prefix(q, of_q)?.shared(), prefix(o, of_q)?);
                // SAFETY: the launch compares the extents, and the kernel stays within them. Each
                // lane writes separate elements before the barrier, and reads all after it.
                unsafe {
                    textbook_decode::<K>::launch_unchecked(on, q, k, v, lengths, places.pages, &mut o, weights, scale)?;
                }
            }
            (Some(After { sequence, tokens: before }), _) => {
                let (mut q_k, mut o_k) = (on.scratch::<K>(n * heads * head)?, on.scratch::<K>(n * heads * head)?);
                convert(on, prefix(q, of_q)?.shared(), q_k.view_mut(of_q)?)?;
                let [k, v] = cache.of(sequence, before + n)?;
                let by_head = [1, n, heads, head];
                let q_heads = q_k.view(by_head)?.strided().permuted([0, 2, 1, 3])?.side_by_side()?;
                let mut o_heads = o_k.view_mut(by_head)?.strided().permuted([0, 2, 1, 3])?.side_by_side()?;
                let causal = attention::Attention::new().scale(scale).causal();
                causal.run(on, Qkv { q: q_heads, k, v }, &mut o_heads, None)?;
                convert(on, o_k.view(of_q)?, prefix(o, of_q)?)?;
            }
            (None, _) => {
                let [k, v] = cache.views();
                let cache = KvCache::new(k, v);
                let cache = if n == 1 && sequences == 1 { cache } else { cache.paged(places.pages) };
                let q = prefix(q, of_q)?.shared();
                Decode::new().scale(scale).run(on, &q, cache, &places.lengths, &mut prefix(o, of_q)?, scratch)?;
            }
        }
        self.output.run_as(on, is_exact, &prefix(o, [n, heads * head])?.shared(), y)
    }
}

/// Returns a view of the first elements of memory.
pub(super) fn prefix<const R: usize>(
    memory: &mut QueueMemory<f32>,
    extents: [usize; R],
) -> Result<BufferViewMut<'_, f32, R>, Error> {
    let mut strides = [1; R];
    for i in (1..R).rev() {
        strides[i - 1] = strides[i] * extents[i];
    }
    memory.view_strided_mut(extents, strides)
}
