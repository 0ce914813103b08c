//! The backward pass, and the logits, as one calls them.

use super::backward::{attention_delta, attention_gradient};
use super::call::Attention;
use super::debug::attention_scores;
use super::score::{Plain, Score};
use crate::access::rows_begin_at;
use crate::{Passed, Queue};
use kernel_dsl::{Float, GenericArgument};
use runtime::{BufferView, BufferViewMut, Error};

impl Attention {
    /// Queues the gradients of a call of [`run`](Attention::run): from O, its gradient, and the logarithms that the call left, those of Q, K and V,
    /// which have their extents. The same bits each time.
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
        let [batch, heads, rows, width] = q.extents();
        let mut delta = on.scratch::<f32>(batch * heads * rows)?;
        let shape = [batch, heads, rows];
        // SAFETY: the launches compare all extents with one another, and the kernels read and write what lies within them; the oracle ran them at
        // and around the edges of their tiles (`kernels check`). What the score does is the caller's promise.
        unsafe { attention_delta::<T>::launch_unchecked(on, o, d_o, &mut delta.view_mut(shape)?)? };
        let delta = delta.view(shape)?;
        let scale = self.factor(width);
        let eights = width.is_multiple_of(8) && v.extents()[3].is_multiple_of(8);
        let aligned = [q, k, v, d_o].iter().all(|x| rows_begin_at(*x, 4))
            && rows_begin_at(&*d_q, 4)
            && rows_begin_at(&*d_k, 4)
            && rows_begin_at(&*d_v, 4);
        macro_rules! launch {
            ($v:literal, $of:literal, $out:expr) => {
                // SAFETY: as above.
                unsafe {
                    attention_gradient::<T, M, 64, $v, $of, 2, 1>::launch_unchecked(
                        on, q, k, v, d_o, lse, &delta, $out, scale, self.left, self.right, score,
                    )
                }
            };
        }
        if eights && aligned {
            launch!(4, 0, d_q)?;
            launch!(4, 1, d_k)?;
            launch!(4, 2, d_v)
        } else {
            launch!(1, 0, d_q)?;
            launch!(1, 1, d_k)?;
            launch!(1, 2, d_v)
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
        let scale = self.factor(q.extents()[3]);
        let whole = q.extents()[3].is_multiple_of(8) && rows_begin_at(q, 4) && rows_begin_at(k, 4);
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
