//! Parallel work on all cores of the host.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{iter, thread};

/// Returns the result of `work` for each item, in order. The items are processed in parallel on all
/// cores, including the calling thread. A panic in `work` propagates to the caller.
pub fn on_every_core<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let some = || {
        let one = || {
            let n = next.fetch_add(1, Ordering::Relaxed);
            items.get(n).map(|item| (n, work(item)))
        };
        iter::from_fn(one).collect::<Vec<_>>()
    };
    let cores = thread::available_parallelism().map_or(1, |cores| cores.get());
    let mut all: Vec<_> = thread::scope(|scope| {
        let others: Vec<_> = (1..cores.min(items.len())).map(|_| scope.spawn(some)).collect();
        let own = some();
        let others = others.into_iter().flat_map(|other| other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        own.into_iter().chain(others).collect()
    });
    all.sort_unstable_by_key(|(n, _)| *n);
    all.into_iter().map(|(_, made)| made).collect()
}
