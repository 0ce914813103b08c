//! The calls for the gradients of attention and for its logits.

use super::backward::{attention_delta, attention_gradient};
use super::call::Attention;
use super::debug::attention_scores;
use super::extend::shared_heads;
use super::lengths::{packed, padded};
use super::mask::DeviceMask;
use super::score::{Plain, Score};
use super::span::{Dense, KEYS, Packed, Padded, Pattern, Sequences, Whole};
use crate::access::rows_begin_at;
use crate::operand::Operand;
use crate::{Passed, Queue};
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

/// The tiles of keys that each tile of queries sees, and the transposed lists.
struct Lists<P> {
    of_queries: P,
    of_keys: P,
}

impl Lists<Dense> {
    /// All tiles see all tiles.
    const EVERY: Lists<Dense> = Lists { of_queries: Dense, of_keys: Dense };
}

impl Attention {
    /// Queues the gradients of Q, K and V for a call of [`run`](Attention::run), from O, its
    /// gradient, and the logarithms of that call. Results are deterministic.
    ///
    /// A weight is exp(logit − lse), with the logarithm rounded to `f32`. Its relative error is that
    /// of the forward pass plus |lse| · 2⁻²³. For |lse| ≥ 2²⁴ the weights of n equal logits are 1
    /// each, not 1/n; weights never exceed 1 except by rounding. dO·V and its difference from
    /// Σ dO·O are computed in `f32`: beyond its range gradients are ±∞ or NaN.
    ///
    /// Keys that a query does not see have no effect on its gradient, nor the query on their
    /// gradients, whatever they contain. This includes queries that see no key. Any other NaN makes
    /// the gradients that depend on it NaN.
    ///
    /// # Errors
    /// As for [`run`](Attention::run).
    #[allow(clippy::too_many_arguments, reason = "the operands, and where it runs")]
    pub fn backward<T: Float + GenericArgument>(
        self,
        on: &impl Queue,
        [q, k, v]: [&BufferView<'_, T, 4>; 3],
        [o, d_o]: [&BufferView<'_, T, 4>; 2],
        lse: &BufferView<'_, f32, 3>,
        d_q: &mut BufferViewMut<'_, T, 4>,
        d_k: &mut BufferViewMut<'_, T, 4>,
        d_v: &mut BufferViewMut<'_, T, 4>,
    ) -> Result<(), Error> {
        // SAFETY: this score accesses no memory.
        unsafe { self.backward_with(on, [q, k, v], [o, d_o], lse, d_q, d_k, d_v, Plain) }
    }

    /// Queues the gradients for a call of [`run_with`](Attention::run_with), with its score. The
    /// score's [`slope`](Score::slope) is a factor of them. The terms that a score adds have no
    /// gradient here.
    ///
    /// # Safety
    /// As for [`run_with`](Attention::run_with).
    ///
    /// # Errors
    /// As for [`run`](Attention::run).
    #[allow(clippy::too_many_arguments, reason = "the operands, and where it runs")]
    pub unsafe fn backward_with<T: Float + GenericArgument, M: Score + Passed>(
        self,
        on: &impl Queue,
        [q, k, v]: [&BufferView<'_, T, 4>; 3],
        [o, d_o]: [&BufferView<'_, T, 4>; 2],
        lse: &BufferView<'_, f32, 3>,
        d_q: &mut BufferViewMut<'_, T, 4>,
        d_k: &mut BufferViewMut<'_, T, 4>,
        d_v: &mut BufferViewMut<'_, T, 4>,
        score: M,
    ) -> Result<(), Error> {
        let [batch, _, queries, _] = q.extents();
        let gradients = Gradients { d_q: d_q.reborrow(), d_k: d_k.reborrow(), d_v: d_v.reborrow() };
        let shape = [batch, queries, k.extents()[2]];
        self.gradients(on, [q, k, v], [o, d_o], lse, gradients, score, Lists::EVERY, Whole, shape)
    }

    /// Queues the gradients for a call of [`run_padded`](Attention::run_padded). Rows beyond a
    /// sequence's length are unchanged.
    ///
    /// # Errors
    /// As for [`run_padded`](Attention::run_padded).
    #[allow(clippy::too_many_arguments, reason = "the operands, and where it runs")]
    pub fn backward_padded<T: Float + GenericArgument>(
        self,
        on: &impl Queue,
        [q, k, v]: [&BufferView<'_, T, 4>; 3],
        [o, d_o]: [&BufferView<'_, T, 4>; 2],
        lse: &BufferView<'_, f32, 3>,
        gradients: Gradients<'_, T>,
        [queries, keys]: [&BufferView<'_, u32, 1>; 2],
    ) -> Result<(), Error> {
        let count = padded(q, [queries, keys])?;
        // SAFETY: the launch records the buffers as read, and is queued before their borrow ends.
        // The number of launched sequences equals the length of both lists.
        let sequences = unsafe { Padded { queries: queries.detached(), keys: keys.detached() } };
        let shape = [count, q.extents()[2], k.extents()[2]];
        let all = || self.gradients(on, [q, k, v], [o, d_o], lse, gradients, Plain, Lists::EVERY, sequences, shape);
        on.reading(queries, || on.reading(keys, all))
    }

    /// Queues the gradients for a call of [`run_packed`](Attention::run_packed), with sequences of
    /// at most `longest` queries and keys.
    ///
    /// # Errors
    /// As for [`run_packed`](Attention::run_packed).
    #[allow(clippy::too_many_arguments, reason = "the operands, and where it runs")]
    pub fn backward_packed<T: Float + GenericArgument>(
        self,
        on: &impl Queue,
        [q, k, v]: [&BufferView<'_, T, 4>; 3],
        [o, d_o]: [&BufferView<'_, T, 4>; 2],
        lse: &BufferView<'_, f32, 3>,
        gradients: Gradients<'_, T>,
        [queries, keys]: [&BufferView<'_, u32, 1>; 2],
        longest: [usize; 2],
    ) -> Result<(), Error> {
        let count = packed(q, [queries, keys])?;
        // SAFETY: as in `backward_padded`; the lists have one more element than there are
        // sequences.
        let sequences = unsafe { Packed { queries: queries.detached(), keys: keys.detached() } };
        let shape = [count, longest[0].min(q.extents()[2]), longest[1].min(k.extents()[2])];
        let all = || self.gradients(on, [q, k, v], [o, d_o], lse, gradients, Plain, Lists::EVERY, sequences, shape);
        on.reading(queries, || on.reading(keys, all))
    }

    /// Queues the gradients for a call of [`run_sparse`](Attention::run_sparse). The time is
    /// proportional to the mask's density, too.
    ///
    /// # Errors
    /// As for [`run`](Attention::run); also if the mask has other extents.
    #[allow(clippy::too_many_arguments, reason = "the operands, and where it runs")]
    pub fn backward_sparse<T: Float + GenericArgument>(
        self,
        on: &impl Queue,
        [q, k, v]: [&BufferView<'_, T, 4>; 3],
        [o, d_o]: [&BufferView<'_, T, 4>; 2],
        lse: &BufferView<'_, f32, 3>,
        gradients: Gradients<'_, T>,
        mask: &DeviceMask,
    ) -> Result<(), Error> {
        let ([batch, heads, queries, _], [_, _, keys, _]) = (q.extents(), k.extents());
        let (rows, columns) = (mask.of_queries(heads, [queries, keys])?, mask.of_keys(heads, [queries, keys])?);
        let each = mask.size();
        // SAFETY: the launches record the mask's lists as read, and are queued before the mask's
        // borrow ends. The lists have these extents, and their indices are in bounds.
        let lists = unsafe { Lists { of_queries: rows.pattern(each), of_keys: columns.pattern(each) } };
        let shape = [batch, queries, keys];
        let all = || self.gradients(on, [q, k, v], [o, d_o], lse, gradients, Plain, lists, Whole, shape);
        rows.reading(on, || columns.reading(on, all))
    }

    /// Queues all three gradients, of `count` sequences with at most the given numbers of queries
    /// and keys.
    #[allow(clippy::too_many_arguments, reason = "the kernel's own, and where it runs")]
    fn gradients<T: Float + GenericArgument, M: Score + Passed, P: Pattern + Passed, S: Sequences + Passed>(
        self,
        on: &impl Queue,
        [q, k, v]: [&BufferView<'_, T, 4>; 3],
        [o, d_o]: [&BufferView<'_, T, 4>; 2],
        lse: &BufferView<'_, f32, 3>,
        Gradients { mut d_q, mut d_k, mut d_v }: Gradients<'_, T>,
        score: M,
        lists: Lists<P>,
        sequences: S,
        [count, queries, keys]: [usize; 3],
    ) -> Result<(), Error> {
        let [batch, heads, rows, width] = q.extents();
        shared_heads(q, k)?;
        if batch == 0 || heads == 0 && k.extents()[1] == 0 {
            // No operand has a gradient.
            return Ok(());
        }
        let tiles = queries.max(keys).div_ceil(KEYS).saturating_mul(width.max(v.extents()[3]).div_ceil(64));
        q.startable(
            [tiles.max(rows.div_ceil(4)), heads, count.max(batch)],
            format_args!("{count} sequences of {heads} heads"),
        )?;
        let mut delta = on.scratch::<f32>(batch * heads * rows)?;
        let shape = [batch, heads, rows];
        // SAFETY: the launches check all extents against each other, and the kernels' accesses stay
        // within them for any sequences and lists. The oracle ran them at and around the edges of
        // their tiles (`kernels check`). The caller guarantees what the score accesses.
        unsafe { attention_delta::<T>::launch_unchecked(on, o, d_o, &mut delta.view_mut(shape)?)? };
        let delta = delta.view(shape)?;
        let scale = self.factor(width);
        let eights = width.is_multiple_of(8) && v.extents()[3].is_multiple_of(8);
        let aligned = [q, k, v, d_o].iter().all(|x| rows_begin_at(*x, 4))
            && rows_begin_at(&d_q, 4)
            && rows_begin_at(&d_k, 4)
            && rows_begin_at(&d_v, 4);
        macro_rules! launch {
            ($v:literal, $of:literal, $out:expr, $pattern:ident, $longest:expr) => {
                // SAFETY: as above.
                unsafe {
                    attention_gradient::<T, M, P, S, 64, $v, $of, 2, 1>::launch_unchecked(
                        on,
                        q,
                        k,
                        v,
                        d_o,
                        lse,
                        &delta,
                        $out,
                        scale,
                        self.left,
                        self.right,
                        score,
                        lists.$pattern,
                        sequences,
                        count,
                        $longest,
                    )
                }
            };
        }
        if eights && aligned {
            launch!(4, 0, &mut d_q, of_queries, queries)?;
            launch!(4, 1, &mut d_k, of_keys, keys)?;
            launch!(4, 2, &mut d_v, of_keys, keys)
        } else {
            launch!(1, 0, &mut d_q, of_queries, queries)?;
            launch!(1, 1, &mut d_k, of_keys, keys)?;
            launch!(1, 2, &mut d_v, of_keys, keys)
        }
    }

    /// Queues the logits alone, [batch, head, query, key], as the call would compute them, for
    /// debugging. They are −∞ for keys that a query does not see.
    ///
    /// # Errors
    /// As for [`run`](Attention::run).
    pub fn scores<T: Float + GenericArgument>(
        self,
        on: &impl Queue,
        q: &BufferView<'_, T, 4>,
        k: &BufferView<'_, T, 4>,
        s: &mut BufferViewMut<'_, f32, 4>,
    ) -> Result<(), Error> {
        let ([batch, heads, queries, width], [_, of_keys, keys, _]) = (q.extents(), k.extents());
        shared_heads(q, k)?;
        s.expected("s", [batch, heads, queries, keys], "a logit for each query and key of each head")?;
        if heads == 0 && of_keys == 0 {
            return Ok(());
        }
        let tiles = queries.div_ceil(KEYS).saturating_mul(keys.div_ceil(KEYS));
        q.startable([tiles, heads, batch], format_args!("{batch} sequences of {heads} heads"))?;
        let scale = self.factor(width);
        let whole = width.is_multiple_of(8) && rows_begin_at(q, 4) && rows_begin_at(k, 4);
        // SAFETY: as above; this score accesses no memory.
        unsafe {
            if whole {
                attention_scores::<T, Plain, 4>::launch_unchecked(on, q, k, s, scale, self.left, self.right, Plain)
            } else {
                attention_scores::<T, Plain, 1>::launch_unchecked(on, q, k, s, scale, self.left, self.right, Plain)
            }
        }
    }
}
