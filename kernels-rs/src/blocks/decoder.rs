//! The decoder layer of a language model.

use super::cache::{Cache, Tokens};
use super::heads::{Norms, prepare};
use crate::activation::fast_swiglu;
use crate::attention::cache::StoredElement;
use crate::attention::{Attention, Decode, KvCache, Qkv, Scratch};
use crate::gemm::Gemm;
use crate::rowwise::Norm;
use crate::{Queue, QueueMemory, SharedBuffer};
use kernel_dsl::{Element, Float, GenericArgument};
use runtime::{BufferView, BufferViewMut, DeviceBuffer, Error};
use std::sync::Arc;

/// The extents of a decoder's layers.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DecoderShape {
    /// Elements of a token between layers.
    pub width: usize,
    /// Query heads, a multiple of `groups`.
    pub heads: usize,
    /// Heads of keys, and of values.
    pub groups: usize,
    /// Elements of a head: one of [`WIDTHS`](super::heads::WIDTHS).
    pub head: usize,
    /// Elements of a token between the two products of the network.
    pub inner: usize,
    /// The constant that the norms add to the mean square.
    pub epsilon: f32,
}

impl DecoderShape {
    /// The text model of Qwen3-VL-2B.
    pub const QWEN3_VL_2B: DecoderShape =
        DecoderShape { width: 2048, heads: 16, groups: 8, head: 128, inner: 6144, epsilon: 1e-6 };

    /// Returns the number of rows of the matrix that computes queries, keys and values.
    pub const fn projection_rows(&self) -> usize {
        (self.heads + 2 * self.groups) * self.head
    }
}

/// The parameters of a layer. Matrices are row-major `[out, in]`, in the byte format of a
/// checkpoint; some matrices of a checkpoint are concatenated here by rows.
#[derive(Debug)]
pub struct DecoderWeights<T: Element> {
    /// The weight of the norm before attention, `[width]`.
    pub norm: Arc<DeviceBuffer<T>>,
    /// The rows of queries, then keys, then values: `[(heads + 2·groups)·head, width]`.
    pub projection: Arc<DeviceBuffer<T>>,
    /// The weights of the norms of query heads and of key heads, each `[head]`.
    pub head_norms: [Arc<DeviceBuffer<T>>; 2],
    /// The matrix after attention, `[width, heads·head]`.
    pub output: Arc<DeviceBuffer<T>>,
    /// The weight of the norm before the network, `[width]`.
    pub network_norm: Arc<DeviceBuffer<T>>,
    /// The gate's rows, then the up projection's: `[2·inner, width]`.
    pub gate_and_up: Arc<DeviceBuffer<T>>,
    /// The down projection, `[width, inner]`.
    pub down: Arc<DeviceBuffer<T>>,
}

/// A layer in the style of Qwen3: x ← x + attention(norm(x)), x ← x + network(norm(x)).
///
/// ```text
///   x f32 ─┬─ RMS norm ─ q, k, v ─ norm of heads, rotary, cache ─ attention ─ output ─ + ─┬─ RMS norm ─ gate, up ─ SwiGLU ─ down ─ + ─▶ x
///          └──────────────────────────────────────────────────────────────────────────────┘ └──────────────────────────────────────────┘
/// ```
///
/// Between layers x is `f32`, and is updated in place: the last product of each half adds to it.
/// The intermediate results, the weights and the cache are stored as `T`. Sources: RMS norm: Zhang,
/// Sennrich, 2019; SwiGLU: Shazeer, 2020; grouped queries: Ainslie and others, 2023; the whole
/// layer: Qwen3's technical report, 2025.
#[derive(Debug)]
pub struct DecoderLayer<T: Element> {
    shape: DecoderShape,
    weights: DecoderWeights<T>,
}

/// The weights as memory of one queue.
struct Views<T: Element> {
    norm: SharedBuffer<T>,
    projection: SharedBuffer<T>,
    head_norms: [SharedBuffer<T>; 2],
    output: SharedBuffer<T>,
    network_norm: SharedBuffer<T>,
    gate_and_up: SharedBuffer<T>,
    down: SharedBuffer<T>,
}

impl<T: Float + StoredElement + GenericArgument> DecoderLayer<T> {
    /// Returns a layer that has these weights and checks their extents when it runs.
    pub fn new(shape: DecoderShape, weights: DecoderWeights<T>) -> DecoderLayer<T> {
        DecoderLayer { shape, weights }
    }

    /// Returns the layer's extents.
    pub fn shape(&self) -> DecoderShape {
        self.shape
    }

    /// Queues the layer for consecutive tokens of one sequence, after `before` tokens that are
    /// already in the cache. x is `[tokens, width]`. The tokens' keys and values are stored in
    /// their slots of the cache.
    ///
    /// # Errors
    /// Returns an error if extents do not match, the cache has no such sequence or too few rows, or
    /// memory is insufficient.
    pub fn prefill(
        &self,
        on: &impl Queue,
        x: &mut BufferViewMut<'_, f32, 2>,
        tokens: &Tokens<'_>,
        cache: &mut Cache<'_, T>,
        sequence: usize,
        before: usize,
    ) -> Result<(), Error> {
        let weights = self.views(on)?;
        let DecoderShape { heads, head, .. } = self.shape;
        let [n, _] = x.extents();
        let q = self.project(on, &weights, x, tokens, cache)?;
        let mut o = on.scratch::<T>(n * heads * head)?;
        let [keys, values] = cache.of(sequence, before + n)?;
        let q = q.view([1, n, heads, head])?;
        let q = q.strided().permuted([0, 2, 1, 3])?.side_by_side()?;
        let mut o_heads = o.view_mut([1, n, heads, head])?.strided().permuted([0, 2, 1, 3])?.side_by_side()?;
        Attention::new().causal().run(on, Qkv { q, k: keys, v: values }, &mut o_heads, None)?;
        self.finish(on, &weights, x, &o)
    }

    /// Queues the layer for the next token of each sequence. x is `[sequences, width]`. `lengths`
    /// gives the number of keys of each sequence, including the new one. If the queue is a
    /// recording, each replay of the graph repeats the step with the positions, slots and lengths
    /// at that time.
    ///
    /// # Errors
    /// Returns the errors of [`prefill`](DecoderLayer::prefill).
    pub fn decode(
        &self,
        on: &impl Queue,
        x: &mut BufferViewMut<'_, f32, 2>,
        tokens: &Tokens<'_>,
        lengths: &BufferView<'_, u32, 1>,
        cache: &mut Cache<'_, T>,
        scratch: &mut Scratch,
    ) -> Result<(), Error> {
        let weights = self.views(on)?;
        let DecoderShape { heads, head, .. } = self.shape;
        let [n, _] = x.extents();
        let q = self.project(on, &weights, x, tokens, cache)?;
        let mut o = on.scratch::<T>(n * heads * head)?;
        let [keys, values] = cache.views();
        let q = q.view([n, heads, head])?;
        let cache = KvCache::new(keys, values);
        Decode::new().run(on, &q, cache, lengths, &mut o.view_mut([n, heads, head])?, scratch)?;
        self.finish(on, &weights, x, &o)
    }

    fn views(&self, on: &impl Queue) -> Result<Views<T>, Error> {
        let w = &self.weights;
        let [q_norm, k_norm] = &w.head_norms;
        Ok(Views {
            norm: on.share(&w.norm)?,
            projection: on.share(&w.projection)?,
            head_norms: [on.share(q_norm)?, on.share(k_norm)?],
            output: on.share(&w.output)?,
            network_norm: on.share(&w.network_norm)?,
            gate_and_up: on.share(&w.gate_and_up)?,
            down: on.share(&w.down)?,
        })
    }

    /// Computes the queries of the tokens, `[tokens, heads, head]`, and stores keys and values in
    /// the cache.
    fn project(
        &self,
        on: &impl Queue,
        weights: &Views<T>,
        x: &mut BufferViewMut<'_, f32, 2>,
        tokens: &Tokens<'_>,
        cache: &mut Cache<'_, T>,
    ) -> Result<QueueMemory<T>, Error> {
        let DecoderShape { width, heads, head, epsilon, .. } = self.shape;
        let [n, _] = x.extents();
        let projected = self.shape.projection_rows();
        let (norm, projection) = (weights.norm.view([width])?, weights.projection.view([projected, width])?);
        let mut qkv = on.scratch::<T>(n * projected)?;
        let norm = Norm::rms(epsilon).weight(&norm);
        norm.project(on, &x.reborrow().shared(), &projection, None, &mut qkv.view_mut([n, projected])?)?;
        let mut q = on.scratch::<T>(n * heads * head)?;
        let [q_norm, k_norm] = &weights.head_norms;
        let norms = Norms { weights: [&q_norm.view([head])?, &k_norm.view([head])?], epsilon };
        let qkv = qkv.view([n, projected])?;
        prepare(on, &qkv, Some(norms), tokens, &mut q.view_mut([n, heads, head])?, cache)?;
        Ok(q)
    }

    /// Computes the layer from the result of attention, `o`, on.
    fn finish(
        &self,
        on: &impl Queue,
        weights: &Views<T>,
        x: &mut BufferViewMut<'_, f32, 2>,
        o: &QueueMemory<T>,
    ) -> Result<(), Error> {
        let DecoderShape { width, heads, head, inner, epsilon, .. } = self.shape;
        let [n, _] = x.extents();
        self.add(on, o, &weights.output, heads * head, x)?;
        let (norm, both) = (weights.network_norm.view([width])?, weights.gate_and_up.view([2 * inner, width])?);
        let mut gated = on.scratch::<T>(n * inner)?;
        let norm = Norm::rms(epsilon).weight(&norm);
        norm.project_gated(on, fast_swiglu {}, &x.reborrow().shared(), &both, &mut gated.view_mut([n, inner])?)?;
        self.add(on, &gated, &weights.down, inner, x)
    }

    /// Computes x ← x + y·Wᵀ.
    fn add(
        &self,
        on: &impl Queue,
        y: &QueueMemory<T>,
        weight: &SharedBuffer<T>,
        depth: usize,
        x: &mut BufferViewMut<'_, f32, 2>,
    ) -> Result<(), Error> {
        let [n, width] = x.extents();
        let (a, b) = (y.view([1, n, depth])?, weight.view([1, width, depth])?);
        let mut x = x.reborrow().strided().reshaped([1, n, width])?.side_by_side()?;
        Gemm::new().transpose_b().beta(1.0).run(on, &a, &b, &mut x)
    }
}
