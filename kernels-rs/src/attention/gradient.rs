//! The backward pass, and the logits, as one calls them.

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

/// Where the gradients of Q, K and V go, which have their extents.
#[derive(Debug)]
pub struct Gradients<'a, T: Element> {
    /// Of Q.
    pub d_q: BufferViewMut<'a, T, 4>,
    /// Of K.
    pub d_k: BufferViewMut<'a, T, 4>,
    /// Of V.
    pub d_v: BufferViewMut<'a, T, 4>,
}

/// The tiles of keys that tiles of queries look at, and the other way about.
struct Lists<P> {
    of_queries: P,
    of_keys: P,
}

impl Lists<Dense> {
    /// All look at all.
    const EVERY: Lists<Dense> = Lists { of_queries: Dense, of_keys: Dense };
}

impl Attention {
    /// Queues the gradients of a call of [`run`](Attention::run): from O, its gradient, and the logarithms that the call left, those of Q, K and V,
    /// which have their extents. The same bits each time.
    ///
    /// A weight is exp(logit − lse), from the `f32` that `lse` is: its relative error is |lse| ·
    /// 2⁻²³ and that of the forward pass. From |lse| = 2²⁴ on the weights of equal logits are 1
    /// each, not parts of 1; weights never exceed 1 but for their rounding. dO·V and its difference
    /// from Σ dO·O are computed in `f32`: beyond its range gradients are ±∞ or NaN.
    ///
    /// What a query does not see has no effect on its gradient, nor the query on the gradients of
    /// what it does not see, whatever is there. Such are queries that see nothing. A NaN elsewhere
    /// makes those gradients NaN that depend on it.
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
        // SAFETY: this score accesses nothing.
        unsafe { self.backward_with(on, [q, k, v], [o, d_o], lse, d_q, d_k, d_v, Plain) }
    }

    /// Queues the gradients of a call of [`run_with`](Attention::run_with), with its score, whose
    /// [`slope`](Score::slope) is their factor. What a score adds has no gradient here.
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

    /// Queues the gradients of a call of [`run_padded`](Attention::run_padded). Rows behind those that count stay as they are.
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
        // SAFETY: the buffers are noted as read by the launch, which is queued before their borrow ends; as many sequences are launched as both have.
        let sequences = unsafe { Padded { queries: queries.detached(), keys: keys.detached() } };
        let shape = [count, q.extents()[2], k.extents()[2]];
        let all = || self.gradients(on, [q, k, v], [o, d_o], lse, gradients, Plain, Lists::EVERY, sequences, shape);
        on.reading(queries, || on.reading(keys, all))
    }

    /// Queues the gradients of a call of [`run_packed`](Attention::run_packed), of sequences of `longest` queries and keys at most.
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
        // SAFETY: as in `backward_padded`; a sequence more begins than there are.
        let sequences = unsafe { Packed { queries: queries.detached(), keys: keys.detached() } };
        let shape = [count, longest[0].min(q.extents()[2]), longest[1].min(k.extents()[2])];
        let all = || self.gradients(on, [q, k, v], [o, d_o], lse, gradients, Plain, Lists::EVERY, sequences, shape);
        on.reading(queries, || on.reading(keys, all))
    }

    /// Queues the gradients of a call of [`run_sparse`](Attention::run_sparse): time in proportion to the mask's density, too.
    ///
    /// # Errors
    /// As for [`run`](Attention::run); and where the mask is of other extents.
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
        // SAFETY: the mask's lists are noted as read by the launches, which are queued before the mask's borrow ends; they are of these extents, and within one
        // another.
        let lists = unsafe { Lists { of_queries: rows.pattern(each), of_keys: columns.pattern(each) } };
        let shape = [batch, queries, keys];
        let all = || self.gradients(on, [q, k, v], [o, d_o], lse, gradients, Plain, lists, Whole, shape);
        rows.reading(on, || columns.reading(on, all))
    }

    /// The three of them, of `count` sequences of so many queries and keys at most.
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
            // Nothing has a gradient.
            return Ok(());
        }
        let tiles = queries.max(keys).div_ceil(KEYS).saturating_mul(width.max(v.extents()[3]).div_ceil(64));
        q.startable(
            [tiles.max(rows.div_ceil(4)), heads, count.max(batch)],
            format_args!("{count} sequences of {heads} heads"),
        )?;
        let mut delta = on.scratch::<f32>(batch * heads * rows)?;
        let shape = [batch, heads, rows];
        // SAFETY: the launches compare all extents with one another, and the kernels read and write what lies within them, whatever the sequences and the lists say; the
        // oracle ran them at and around the edges of their tiles (`kernels check`). What the score does is the caller's promise.
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

    /// Queues the logits alone, [batch, head, query, key], as the call would make them, −∞ for keys that a query does not see: to look at.
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
        // SAFETY: as above; this score accesses nothing.
        unsafe {
            if whole {
                attention_scores::<T, Plain, 4>::launch_unchecked(on, q, k, s, scale, self.left, self.right, Plain)
            } else {
                attention_scores::<T, Plain, 1>::launch_unchecked(on, q, k, s, scale, self.left, self.right, Plain)
            }
        }
    }
}
