//! The calls for the gradients of attention and for its logits.

use super::backward::{attention_delta, attention_gradient_kv, attention_gradient_q};
use super::call::Attention;
use super::debug::attention_scores;
use super::extend::shared_heads;
use super::layout::{AttentionPass, BatchExtent, Layout, Patterns, Qkv};
use super::score::Score;
use super::span::{KEYS, MaskPattern, Sequences};
use crate::dispatch::dispatch;
use crate::operand::ArrayOperand;
use crate::queue::LibraryCall;
use crate::rowwise::plan::queue;
use crate::{LaunchStruct, Queue};
use kernel_dsl::compiler::hir::Constant;
use kernel_dsl::{Element, Float, GenericArgument};
use runtime::{BufferView, BufferViewMut, Error};

/// The outputs for the gradients of Q, K and V, with the extents of Q, K and V.
#[derive(Debug)]
pub struct Gradients<'a, T: Element> {
    /// The gradient of Q.
    pub d_q: BufferViewMut<'a, T, 4>,
    /// The gradient of K.
    pub d_k: BufferViewMut<'a, T, 4>,
    /// The gradient of V.
    pub d_v: BufferViewMut<'a, T, 4>,
}

impl<M: Score + LaunchStruct> Attention<'_, M> {
    /// Queues the gradients of Q, K and V for a call of [`run`](Attention::run), from O, its
    /// gradient, and the logarithms of that call. Results are deterministic.
    ///
    /// A weight is exp(logit − lse), with the logarithm rounded to `f32`. The weight's relative
    /// error is that of the forward pass plus |lse| · 2⁻²³. For |lse| ≥ 2²⁴ the weights of n equal
    /// logits are 1 each, not 1/n; weights never exceed 1 except by rounding. dO·V and its
    /// difference from Σ dO·O are computed in `f32`: beyond its range gradients are ±∞ or NaN.
    ///
    /// Keys that a query does not see have no effect on its gradient, nor the query on their
    /// gradients, whatever they contain. The same holds for queries that see no key, and for those
    /// whose logits are all −∞. Any other NaN or infinity makes the gradients that depend on it NaN
    /// or ±∞. A weight that underflows to 0 may hide the NaN or infinity.
    ///
    /// Sums that are NaN cost a block of 64 rows a second pass over its keys or queries.
    ///
    /// The [`slope`](Score::slope) of a score is a factor of the gradients. Gradients of a score's
    /// own parameters, such as a bias, are not computed.
    ///
    /// # Errors
    /// Returns the errors of [`run`](Attention::run).
    pub fn backward<T: Float + GenericArgument>(
        self,
        on: &impl Queue,
        qkv: Qkv<'_, T>,
        [o, d_o]: [&BufferView<'_, T, 4>; 2],
        lse: &BufferView<'_, f32, 3>,
        gradients: Gradients<'_, T>,
    ) -> Result<(), Error> {
        self.queue(
            on,
            &qkv.q,
            qkv.k.extents()[2],
            Backward { attention: self, on, qkv, o: *o, d_o: *d_o, lse: *lse, gradients },
        )
    }

    /// Queues the logits alone, [batch, head, query, key], as the call would compute them, for
    /// debugging. Logits are −∞ for keys that a query does not see. Sequences must have
    /// [`Layout::Dense`], without a mask.
    ///
    /// # Errors
    /// Returns the errors of [`run`](Attention::run).
    pub fn scores<T: Float + GenericArgument>(
        self,
        on: &impl Queue,
        q: &BufferView<'_, T, 4>,
        k: &BufferView<'_, T, 4>,
        s: &mut BufferViewMut<'_, f32, 4>,
    ) -> Result<(), Error> {
        if self.mask.is_some() || !matches!(self.layout, Layout::Dense) {
            return Err(
                q.refused_operand("logits are written for sequences of `Layout::Dense` without a mask only".into())
            );
        }
        let ([batch, heads, queries, width], [_, of_keys, keys, _]) = (q.extents(), k.extents());
        shared_heads(q, k)?;
        s.expected("s", [batch, heads, queries, keys], "a logit for each query and key of each head")?;
        if heads == 0 && of_keys == 0 {
            return Ok(());
        }
        let tiles = queries.div_ceil(KEYS).saturating_mul(keys.div_ceil(KEYS));
        q.check_grid([tiles, heads, batch], format_args!("{batch} sequences of {heads} heads"))?;
        let whole = width.is_multiple_of(8) && q.aligned(4) && k.aligned(4);
        let Attention { left, right, score, .. } = self;
        dispatch!(let V: usize = if whole { 4 } else { 1 }, of [1, 4];
            // SAFETY: the launch compares all extents with one another, and the kernel accesses
            // elements within them only. The caller of `Attention::score` guarantees that the score
            // stays within its views.
            unsafe { attention_scores::<T, M, V>::launch_unchecked(&LibraryCall(on), q, k, s, self.factor(width), left, right, score) })
    }
}

/// The backward pass.
struct Backward<'c, 'a, 'v, T: Element, M, Q> {
    attention: Attention<'a, M>,
    on: &'c Q,
    qkv: Qkv<'v, T>,
    o: BufferView<'v, T, 4>,
    d_o: BufferView<'v, T, 4>,
    lse: BufferView<'v, f32, 3>,
    gradients: Gradients<'c, T>,
}

impl<T: Float + GenericArgument, M: Score + LaunchStruct, Q: Queue> AttentionPass for Backward<'_, '_, '_, T, M, Q> {
    fn queue<P: MaskPattern + LaunchStruct, S: Sequences + LaunchStruct>(
        self,
        patterns: Patterns<P>,
        sequences: S,
        extent: BatchExtent,
    ) -> Result<(), Error> {
        let Backward { attention, on, qkv: Qkv { q, k, v }, o, d_o, lse, gradients } = self;
        let Gradients { mut d_q, mut d_k, mut d_v } = gradients;
        let BatchExtent { sequences: count, queries, keys } = extent;
        let [batch, heads, rows, width] = q.extents();
        shared_heads(&q, &k)?;
        if batch == 0 || heads == 0 && k.extents()[1] == 0 {
            // Without heads or sequences, no gradient has an element.
            return Ok(());
        }
        let tiles = queries.max(keys).div_ceil(KEYS).saturating_mul(width.max(v.extents()[3]).div_ceil(64));
        let work = format!("{count} sequences of {heads} heads");
        q.check_grid([rows.div_ceil(4), heads, batch], format_args!("{work}"))?;
        // The kernels number all blocks of the grid with one index.
        q.check_grid([heads.saturating_mul(count).saturating_mul(tiles), 1, 1], format_args!("{work}"))?;
        let mut delta = on.scratch::<f32>(batch * heads * rows)?;
        let shape = [batch, heads, rows];
        // SAFETY: the launch compares all extents with one another, and the kernel accesses
        // elements within them only. The oracle ran the kernel at and around every edge (`kernels
        // check`).
        unsafe { attention_delta::<T>::launch_unchecked(&LibraryCall(on), o, d_o, &mut delta.view_mut(shape)?)? };
        let delta = delta.view(shape)?;
        let fours = width.is_multiple_of(8)
            && v.extents()[3].is_multiple_of(8)
            && [q, k, v, d_o].iter().all(|x| x.aligned(4))
            && [&d_q, &d_k, &d_v].into_iter().all(|x| x.aligned(4));
        let (scale, Attention { left, right, score, .. }) = (attention.factor(width), attention);
        let types = [T::CONSTANT, M::CONSTANT, P::CONSTANT, S::CONSTANT];
        // The constants for rows of this width. A thread has two groups of rows.
        let constants = |width: usize| -> Vec<Constant> {
            let (tile, groups) = (if width <= 64 { 64 } else { 128 }, 2);
            let numbers = [tile, if fours { 4 } else { 1 }, groups, 2 / groups, tile / (32 * groups), tile / 64];
            types.iter().cloned().chain(numbers.map(Constant::Usize)).collect()
        };
        let of_queries = patterns.of_queries;
        let call = attention_gradient_q::<T, M, P, S, 64, 1, 2, 1, 1, 1>::call(
            q, k, v, d_o, lse, delta, &mut d_q, scale, left, right, score, of_queries, sequences, count, queries,
        );
        // SAFETY: the launch compares all extents with one another, and the kernel accesses
        // elements within them only, whatever the sequences and the patterns are. The oracle ran
        // the kernel at and around the edges of its tiles (`kernels check`). The caller of
        // `Attention::score` guarantees that the score stays within its views.
        unsafe { queue(on, &call, &constants(width))? };
        let of_keys = patterns.of_keys;
        let call = attention_gradient_kv::<T, M, P, S, 64, 1, 2, 1, 1, 1>::call(
            q, k, v, d_o, lse, delta, &mut d_k, &mut d_v, scale, left, right, score, of_keys, sequences, count, keys,
        );
        // SAFETY: as for the gradient of Q.
        unsafe { queue(on, &call, &constants(width.max(v.extents()[3]))) }
    }
}
