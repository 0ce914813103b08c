//! Copies to shared memory in flight: [`Pending`].

use std::fmt;

/// Copies to shared memory in flight, which [`wait`](Self::wait) completes.
///
/// A token from [`Shared::copy_async`](crate::Shared::copy_async) moves like any value: a loop
/// issues the next tile's copy and waits for it in its next iteration. All threads of the block
/// must wait for a token together, once, and within the braces of the destination array. The data
/// of a dropped token is never stored, which the oracle reports (`unfinished-copy`).
///
/// Before sm_80 the loads are issued at the copy, and their values stay in registers until the wait
/// stores them. A tile copied ahead costs each thread one register for each 32 bits that it copies.
/// From sm_80 on the copy bypasses registers (`cp.async`), and each copy is a group; a wait leaves
/// later groups in flight. Either way the elements are undefined until the wait.
///
/// ```
/// # use kernel_dsl::prelude::*;
/// # fn sums(x: View<f32, 2>, mut y: ViewMut<f32, 1>) {
/// let s = Shared::<f32, 2>::new([2, 64]);
/// let mut coming = s.at(0).copy_async(x.at(0));
/// let mut sum = 0.0;
/// for row in 0..x.rows() {
///     coming.wait();
///     block::sync();
///     coming = if row + 1 < x.rows() { s.at((row + 1) % 2).copy_async(x.at(row + 1)) } else { Pending::none() };
///     sum += s[(row % 2, 63 - thread::x())];
/// }
/// coming.wait();
/// y[thread::x()] = sum;
/// # }
/// # let x: Vec<f32> = (0..192).map(|i| i as f32).collect();
/// # let mut y = vec![0.0; 64];
/// # // SAFETY: no element is touched by two threads without a sync between, and the vectors outlive the run.
/// # unsafe {
/// #     let (x, y) = (View::host(&x, [3, 64]), ViewMut::host(&mut y, [64]));
/// #     kernel_dsl::host::run([1, 1, 1], [64, 1, 1], || sums(x, y));
/// # }
/// # assert_eq!(y[0], 63.0 + 127.0 + 191.0);
/// ```
#[must_use = "the copied data is stored by `wait`"]
pub struct Pending {
    stores: Vec<Box<dyn FnOnce()>>,
}

impl Pending {
    /// Returns a token without copies.
    pub fn none() -> Pending {
        Pending { stores: Vec::new() }
    }

    /// Joins the copies of two tokens.
    pub fn and(mut self, other: Pending) -> Pending {
        self.stores.extend(other.stores);
        self
    }

    /// Completes the copies: this thread's share of them is in shared memory afterwards. Other
    /// threads observe it after a [`block::sync`](crate::block::sync). In PTX: one `st.shared` per
    /// piece, or `cp.async.wait_group`.
    pub fn wait(self) {
        self.stores.into_iter().for_each(|store| store());
    }

    /// Returns a token whose copy `store` completes.
    pub(crate) fn by(store: impl FnOnce() + 'static) -> Pending {
        Pending { stores: vec![Box::new(store)] }
    }
}

impl fmt::Debug for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pending").field("copies", &self.stores.len()).finish()
    }
}
