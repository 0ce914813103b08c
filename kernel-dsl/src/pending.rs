//! Copies to shared memory that have begun: [`Pending`].

use std::fmt;

/// Copies to shared memory that have begun, and that [`wait`](Self::wait) completes.
///
/// [`Shared::copy_async`](crate::Shared::copy_async) makes it. It moves like any value: a loop begins the next tile's copy, and
/// waits for it in its next iteration. All threads of the block must wait for it together, once, and within the braces of the
/// array that is copied to; what a token is dropped with is never stored, which the oracle tells (`unfinished-copy`).
///
/// Before sm_80 the loads are issued where the copy begins, and their values stay in registers until the wait stores them: a
/// tile that is copied ahead costs each thread as many registers as the elements that it copies. From sm_80 on the machine
/// copies past the registers (`cp.async`), each copy a group; a wait leaves the groups under way that are sure to have
/// begun after its own. Either way the elements are undefined until the wait.
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
#[must_use = "what is copied is stored by `wait`"]
pub struct Pending {
    stores: Vec<Box<dyn FnOnce()>>,
}

impl Pending {
    /// No copy: there is nothing to wait for.
    pub fn none() -> Pending {
        Pending { stores: Vec::new() }
    }

    /// These copies and those.
    pub fn and(mut self, other: Pending) -> Pending {
        self.stores.extend(other.stores);
        self
    }

    /// Completes the copies: this thread's share of them is in shared memory. Other threads see it after a
    /// [`block::sync`](crate::block::sync). In PTX a `st.shared` a piece, or a `cp.async.wait_group`.
    pub fn wait(self) {
        self.stores.into_iter().for_each(|store| store());
    }

    /// The copy that `store` completes.
    pub(crate) fn by(store: impl FnOnce() + 'static) -> Pending {
        Pending { stores: vec![Box::new(store)] }
    }
}

impl fmt::Debug for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pending").field("copies", &self.stores.len()).finish()
    }
}
