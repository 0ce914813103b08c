//! Concurrent production of results that are consumed in order.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{sync::mpsc, thread};

/// Passes the result of `make` for each item to `take`, in order, until `take` is done or fails. At
/// most `at_once` items are made concurrently, and each begins in order. Results that are in flight
/// when `take` is done are discarded.
pub(super) fn ordered_parallel<T: Sync, R: Send, E>(
    items: &[T],
    at_once: usize,
    make: impl Fn(&T) -> R + Sync,
    mut take: impl FnMut(R) -> Result<ControlFlow<()>, E>,
) -> Result<(), E> {
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        let (made, finished) = mpsc::channel();
        for _ in 0..at_once.min(items.len()) {
            let (made, next, make) = (made.clone(), &next, &make);
            scope.spawn(move || {
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(n) else { break };
                    // The receiver is gone once `take` is done.
                    if made.send((n, make(item))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(made);
        let (mut early, mut due) = (BTreeMap::new(), 0);
        for (n, result) in finished {
            early.insert(n, result);
            while let Some(result) = early.remove(&due) {
                due += 1;
                if take(result)?.is_break() {
                    return Ok(());
                }
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn taken(at_once: usize, enough: u64) -> Result<Vec<u64>, u64> {
        // The first item takes longest.
        let make = |n: &u64| {
            thread::sleep(Duration::from_millis(if *n == 0 { 20 } else { 0 }));
            *n
        };
        let mut taken = Vec::new();
        let items: Vec<u64> = (0..20).collect();
        let take = |n: u64| {
            taken.push(n);
            if n == 13 {
                Err(n)
            } else {
                Ok(if n == enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
            }
        };
        ordered_parallel(&items, at_once, make, take).map(|()| taken)
    }

    #[test]
    fn results_have_the_order_of_the_items_until_a_stop() {
        for at_once in [1, 2, 30] {
            assert_eq!(taken(at_once, 7), Ok((0..=7).collect()));
            assert_eq!(taken(at_once, 20), Err(13));
        }
        assert_eq!(ordered_parallel(&[] as &[u8], 2, |n| *n, |_| Err(())), Ok(()));
    }
}
