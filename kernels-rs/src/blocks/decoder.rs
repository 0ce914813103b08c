//! A layer of a decoder: what a language model is a stack of.

use super::cache::{Cache, Tokens};
use super::heads::{Norms, prepare};
use crate::activation::fast_swiglu;
use crate::attention::cache::Stored;
use crate::attention::{Attention, Decode, Scratch};
use crate::gemm::Gemm;
use crate::rowwise::Norm;
use crate::{Memory, Queue, Shared};
use kernel_dsl::{Element, Float, GenericArgument};
use runtime::{BufferView, BufferViewMut, DeviceBuffer, Error};
use std::sync::Arc;

/// Extents of a decoder's layers.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DecoderShape {
    /// Numbers of a token between layers.
    pub width: usize,
    /// Heads of queries, a multiple of `groups`.
    pub heads: usize,
    /// Heads of keys and of values.
    pub groups: usize,
    /// Numbers of a head: 64, 128 or 256.
    pub head: usize,
    /// Numbers of a token between the two products of the network.
    pub inner: usize,
    /// What the norms add to the mean square.
    pub epsilon: f32,
}

impl DecoderShape {
    /// The text model of Qwen3-VL-2B.
    pub const QWEN3_VL_2B: DecoderShape =
        DecoderShape { width: 2048, heads: 16, groups: 8, head: 128, inner: 6144, epsilon: 1e-6 };

    /// Rows of the matrix that makes queries, keys and values.
    pub const fn projected(&self) -> usize {
        (self.heads + 2 * self.groups) * self.head
    }
}

/// What a layer has learnt. Matrices are `[out, in]` by rows; the bytes of a checkpoint as they are, but for those that are one below the other.
#[derive(Debug)]
pub struct DecoderWeights<T: Element> {
    /// Of the norm before attention: `[width]`.
    pub norm: Arc<DeviceBuffer<T>>,
    /// Queries' rows, then keys', then values': `[(heads + 2·groups)·head, width]`.
    pub projection: Arc<DeviceBuffer<T>>,
    /// Of the norm of each head of queries, and of keys: `[head]`.
    pub head_norms: [Arc<DeviceBuffer<T>>; 2],
    /// `[width, heads·head]`
    pub output: Arc<DeviceBuffer<T>>,
    /// Of the norm before the network: `[width]`.
    pub network_norm: Arc<DeviceBuffer<T>>,
    /// The gate's rows, then the others': `[2·inner, width]`.
    pub gate_and_up: Arc<DeviceBuffer<T>>,
    /// `[width, inner]`
    pub down: Arc<DeviceBuffer<T>>,
}

/// A layer of the form of Qwen3: x ← x + attention(norm(x)), x ← x + network(norm(x)).
///
/// ```text
///   x f32 ─┬─ RMS norm ─ q, k, v ─ norm of heads, rotary, cache ─ attention ─ output ─ + ─┬─ RMS norm ─ gate, up ─ SwiGLU ─ down ─ + ─▶ x
///          └──────────────────────────────────────────────────────────────────────────────┘ └──────────────────────────────────────────┘
/// ```
///
/// Between layers x is `f32` and stays in its place: the last product of each half adds to it. What is read of it, weights and cache are
/// stored as `T`. RMS norm: Zhang, Sennrich, 2019; SwiGLU: Shazeer, 2020; grouped queries: Ainslie and others, 2023; the whole: Qwen3's technical
/// report, 2025.
#[derive(Debug)]
pub struct DecoderLayer<T: Element> {
    shape: DecoderShape,
    weights: DecoderWeights<T>,
}

/// The weights as the launches of one queue take them.
struct Views<T: Element> {
    norm: Shared<T>,
    projection: Shared<T>,
    head_norms: [Shared<T>; 2],
    output: Shared<T>,
    network_norm: Shared<T>,
    gate_and_up: Shared<T>,
    down: Shared<T>,
}

impl<T: Float + Stored + GenericArgument> DecoderLayer<T> {
    /// A layer of these weights. That they have the shape's extents is seen when it runs.
    pub fn new(shape: DecoderShape, weights: DecoderWeights<T>) -> DecoderLayer<T> {
        DecoderLayer { shape, weights }
    }

    /// Its extents.
    pub fn shape(&self) -> DecoderShape {
        self.shape
    }

    /// Queues the layer for tokens of one sequence that follow one another, of which `before` are in the cache already: x is `[tokens, width]`. Their keys and values
    /// go to the cache, where the tokens' slots say.
    ///
    /// # Errors
    /// Where extents do not belong together, the cache has no such sequence or no room, or memory is short.
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
        Attention::new().causal().run(on, &q, &keys, &values, &mut o_heads, None)?;
        self.finish(on, &weights, x, &o)
    }

    /// Queues the layer for the next token of each sequence: x is `[sequences, width]`. `lengths` says how many keys each has, the new one among them. With a queue that
    /// records, the graph does the step again whenever it is replayed, with the numbers that positions, slots and lengths have then.
    ///
    /// # Errors
    /// As for [`prefill`](DecoderLayer::prefill).
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
        Decode::new().run(on, &q, [&keys, &values], lengths, &mut o.view_mut([n, heads, head])?, scratch)?;
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

    /// Queries of the tokens, `[tokens, heads, head]`; keys and values go to the cache.
    fn project(
        &self,
        on: &impl Queue,
        weights: &Views<T>,
        x: &mut BufferViewMut<'_, f32, 2>,
        tokens: &Tokens<'_>,
        cache: &mut Cache<'_, T>,
    ) -> Result<Memory<T>, Error> {
        let DecoderShape { width, heads, head, epsilon, .. } = self.shape;
        let [n, _] = x.extents();
        let projected = self.shape.projected();
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

    /// What follows attention, whose outcome `o` is.
    fn finish(
        &self,
        on: &impl Queue,
        weights: &Views<T>,
        x: &mut BufferViewMut<'_, f32, 2>,
        o: &Memory<T>,
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

    /// x ← x + y·Wᵀ
    fn add(
        &self,
        on: &impl Queue,
        y: &Memory<T>,
        weight: &Shared<T>,
        depth: usize,
        x: &mut BufferViewMut<'_, f32, 2>,
    ) -> Result<(), Error> {
        let [n, width] = x.extents();
        let (a, b) = (y.view([1, n, depth])?, weight.view([1, width, depth])?);
        let mut x = x.reborrow().strided().reshaped([1, n, width])?.side_by_side()?;
        Gemm::new().transpose_b().beta(1.0).run(on, &a, &b, &mut x)
    }
}
