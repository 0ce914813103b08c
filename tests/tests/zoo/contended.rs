//! Bugs that only an interleaving reveals. When blocks and warps run in order, no thread finds a
//! lock taken or a queue empty. Therefore no such run has a finding or a wrong result.
//!
//! [`Schedule::Preempted`] finds these bugs. The first thread of each block takes part, with the
//! others idle, so that the kernels show one protocol each. `fetch_or(i, 0)` is an atomic load.
//!
//! `INTERLEAVED.md` here lists them; `UPDATE=1 cargo test -p tests --test zoo` writes it.

use crate::{FUEL, Specimen, page, title};
use kernel_dsl::compiler::driver;
use kernel_dsl::compiler::hir::{Constant, Instance, monomorphic};
use kernel_dsl::prelude::*;
use kernel_dsl::{Artifact, Kernel};
use runtime::interpreter::{Options, Preemption, Schedule};
use runtime::ptx;
use runtime::testing::{Case, Input, Oracle, PreparedInstance};
use std::fmt::Write;
use std::time::{Duration, Instant};

/// A bug that only an interleaving reveals.
struct Contended {
    artifact: &'static Artifact,
    inputs: fn() -> Vec<Input>,
    /// The arguments whose contents may depend on the order.
    free: &'static [usize],
}

macro_rules! contended {
    ($($kernel:ident [$($input:expr),*] free $free:expr),* $(,)?) => {
        const CONTENDED: &[Contended] = &[$(Contended {
            artifact: <$kernel<false> as Kernel>::ARTIFACT,
            inputs: || vec![$(words($input)),*],
            free: &$free,
        }),*];
    };
}

fn words(words: &[u32]) -> Input {
    Input::slice(words)
}

contended! {
    lock_tested_then_taken [&[0], &[0]] free [],
    lock_that_loses_patience [&[0]] free [],
    lock_with_a_fence_on_the_fast_path [&[0], &[0]] free [],
    lock_released_by_the_loser [&[0], &[0]] free [],
    tickets_drawn_twice [&[0, 0], &[0]] free [],
    exchange_without_a_second_try [&[0]] free [],
    maximum_by_exchange [&[0]] free [],
    stack_with_aba [&[1], &[0, 2, 3, 0], &[0; 4], &[0]] free [0, 1, 3],
    list_without_exchange [&[0], &[0; 4], &[0, 0]] free [0, 1],
    queue_read_before_it_is_filled [&[0], &[0, 0], &[0, 0], &[0, 0]] free [],
    queue_head_advanced_twice [&[0], &[0; 4]] free [],
    last_item_stolen_and_kept [&[0, 2], &[0, 0]] free [0],
    look_back_at_two_words [&[0; 4], &[0; 4], &[0; 4]] free [0, 1],
    look_back_past_the_empty [&[0; 4], &[0; 4]] free [0],
    look_back_that_stops_at_an_aggregate [&[0; 4], &[0; 4]] free [0],
    two_last_blocks [&[0], &[0]] free [],
    snapshot_checked_once [&[0], &[0, 0], &[0]] free [],
    barrier_reset_after_its_release [&[0, 0], &[0; 2]] free [0],
    locks_in_opposite_order [&[0, 0], &[0]] free [],
    slot_tested_then_filled [&[0; 4], &[0, 0]] free [0],
    initialized_while_others_read [&[0, 0], &[0; 3]] free [],
    permits_tested_then_taken [&[1], &[0, 0]] free [],
}

/// a lock is tested and then taken, in two steps
#[kernel(block = 32, grid = 2, instances(MENDED = false | true))]
#[requires(lock.len() == 1, total.len() == 1)]
fn lock_tested_then_taken<const MENDED: bool>(lock: &mut [u32], total: &mut [u32]) {
    if thread::x() == 0 {
        loop {
            if MENDED {
                if lock.compare_exchange(0, 0, 1) == 0 {
                    break;
                }
            } else if lock.fetch_or(0, 0) == 0 {
                lock.exchange(0, 1);
                break;
            }
        }
        fence::grid();
        total[0] += 1;
        fence::grid();
        lock.exchange(0, 0);
    }
}

/// a warp that waits for a lock of its block enters after a few tries without it
#[kernel(block = 64, grid = 1, instances(MENDED = false | true))]
#[requires(total.len() == 1)]
fn lock_that_loses_patience<const MENDED: bool>(total: &mut [u32]) {
    let mut lock = Shared::<u32, 1>::new([1]);
    let mut sum = Shared::<u32, 1>::new([1]);
    let t = thread::x();
    if t == 0 {
        lock[0] = 0;
        sum[0] = 0;
    }
    block::sync();
    if t % 32 == 0 {
        let mut tries = 0u32;
        while lock.compare_exchange(0, 0, 1) != 0 {
            tries += 1;
            if !MENDED && tries == 2 {
                break;
            }
        }
        fence::block();
        sum[0] += 1;
        fence::block();
        lock.exchange(0, 0);
    }
    block::sync();
    if t == 0 {
        total[0] = sum[0];
    }
}

/// a lock is followed by a fence only if the first try succeeds
#[kernel(block = 32, grid = 2, instances(MENDED = false | true))]
#[requires(lock.len() == 1, total.len() == 1)]
fn lock_with_a_fence_on_the_fast_path<const MENDED: bool>(lock: &mut [u32], total: &mut [u32]) {
    if thread::x() == 0 {
        if lock.compare_exchange(0, 0, 1) == 0 {
            fence::grid();
        } else {
            while lock.compare_exchange(0, 0, 1) != 0 {}
            if MENDED {
                fence::grid();
            }
        }
        total[0] += 1;
        fence::grid();
        lock.exchange(0, 0);
    }
}

/// a block that fails to take a lock releases it all the same
#[kernel(block = 32, grid = 3, instances(MENDED = false | true))]
#[requires(lock.len() == 1, total.len() == 1)]
fn lock_released_by_the_loser<const MENDED: bool>(lock: &mut [u32], total: &mut [u32]) {
    if thread::x() == 0 {
        loop {
            let taken = lock.compare_exchange(0, 0, 1) == 0;
            if taken {
                fence::grid();
                total[0] += 1;
                fence::grid();
            }
            if taken || !MENDED {
                lock.exchange(0, 0);
            }
            if taken {
                break;
            }
        }
    }
}

/// tickets of a lock are read and then advanced, in two steps
#[kernel(block = 32, grid = 2, instances(MENDED = false | true))]
#[requires(counters.len() == 2, total.len() == 1)]
fn tickets_drawn_twice<const MENDED: bool>(counters: &mut [u32], total: &mut [u32]) {
    if thread::x() == 0 {
        let ticket = if MENDED {
            counters.fetch_add(0, 1)
        } else {
            let seen = counters.fetch_or(0, 0);
            counters.exchange(0, seen + 1);
            seen
        };
        while counters.fetch_or(1, 0) < ticket {}
        fence::grid();
        total[0] += 1;
        fence::grid();
        counters.fetch_add(1, 1);
    }
}

/// a compare-exchange that fails is not tried again
#[kernel(block = 32, grid = 3, instances(MENDED = false | true))]
#[requires(total.len() == 1)]
fn exchange_without_a_second_try<const MENDED: bool>(total: &mut [u32]) {
    if thread::x() == 0 {
        loop {
            let old = total.fetch_or(0, 0);
            if total.compare_exchange(0, old, old + 1) == old || !MENDED {
                break;
            }
        }
    }
}

/// a maximum is compared and then exchanged, in two steps
#[kernel(block = 32, grid = 3, instances(MENDED = false | true))]
#[requires(top.len() == 1)]
fn maximum_by_exchange<const MENDED: bool>(top: &mut [u32]) {
    if thread::x() == 0 {
        let own = block::x() as u32 + 1;
        if MENDED {
            top.fetch_max(0, own);
        } else if top.fetch_or(0, 0) < own {
            top.exchange(0, own);
        }
    }
}

/// a stack whose top returns to its old value meanwhile: ABA
#[kernel(block = 32, grid = 2, instances(MENDED = false | true))]
#[requires(head.len() == 1, next.len() == 4, owned.len() == 4, ended.len() == 1)]
fn stack_with_aba<const MENDED: bool>(head: &mut [u32], next: &mut [u32], owned: &mut [u32], ended: &mut [u32]) {
    if thread::x() == 0 {
        // The head has the node in its low byte, and above it a version in the mended kernel.
        let version = if MENDED { 256u32 } else { 0u32 };
        let pops = if block::x() == 0 { 1u32 } else { 2u32 };
        let mut first = 0u32;
        for k in 0..pops {
            loop {
                let old = head.fetch_or(0, 0);
                let node = old & 255;
                let after = next.fetch_or(node as usize, 0);
                if head.compare_exchange(0, old, (old & !255) + version + after) == old {
                    if k + 1 == pops {
                        owned.fetch_add(node as usize, 1);
                    } else {
                        first = node;
                    }
                    break;
                }
            }
        }
        if first != 0 {
            loop {
                let old = head.fetch_or(0, 0);
                next.exchange(first as usize, old & 255);
                if head.compare_exchange(0, old, (old & !255) + version + first) == old {
                    break;
                }
            }
        }
        if ended.fetch_add(0, 1) == 1 {
            let mut node = head.fetch_or(0, 0) & 255;
            while node != 0 {
                owned.fetch_add(node as usize, 1);
                node = next.fetch_or(node as usize, 0);
            }
        }
    }
}

/// a node is pushed to a list by a load and a store
#[kernel(block = 32, grid = 3, instances(MENDED = false | true))]
#[requires(head.len() == 1, next.len() == 4, ended.len() == 2)]
fn list_without_exchange<const MENDED: bool>(head: &mut [u32], next: &mut [u32], ended: &mut [u32]) {
    if thread::x() == 0 {
        let own = block::x() + 1;
        loop {
            let old = head.fetch_or(0, 0);
            next.exchange(own, old);
            if MENDED {
                if head.compare_exchange(0, old, own as u32) == old {
                    break;
                }
            } else {
                head.exchange(0, own as u32);
                break;
            }
        }
        if ended.fetch_add(0, 1) == 2 {
            let mut node = head.fetch_or(0, 0);
            while node != 0 {
                ended.fetch_add(1, 1);
                node = next.fetch_or(node as usize, 0);
            }
        }
    }
}

/// an item is read as soon as its slot is reserved, before it is stored
#[kernel(block = 32, grid = 2, instances(MENDED = false | true))]
#[requires(tail.len() == 1, items.len() == 2, ready.len() == 2, taken.len() == 2)]
fn queue_read_before_it_is_filled<const MENDED: bool>(
    tail: &mut [u32],
    items: &mut [u32],
    ready: &mut [u32],
    taken: &mut [u32],
) {
    if thread::x() == 0 {
        for k in 0..2 {
            if block::x() == 0 {
                let slot = tail.fetch_add(0, 1) as usize;
                items.exchange(slot, k as u32 + 7);
                ready.exchange(slot, 1);
            } else {
                if MENDED {
                    while ready.fetch_or(k, 0) == 0 {}
                } else {
                    while tail.fetch_or(0, 0) <= k as u32 {}
                }
                taken[k] = items.fetch_or(k, 0);
            }
        }
    }
}

/// the head of a queue is read and then advanced, in two steps
#[kernel(block = 32, grid = 2, instances(MENDED = false | true))]
#[requires(head.len() == 1, taken.len() == 4)]
fn queue_head_advanced_twice<const MENDED: bool>(head: &mut [u32], taken: &mut [u32]) {
    if thread::x() == 0 {
        loop {
            let item = head.fetch_or(0, 0);
            if item >= 4 {
                break;
            }
            if MENDED {
                if head.compare_exchange(0, item, item + 1) == item {
                    taken.fetch_add(item as usize, 1);
                }
            } else {
                head.exchange(0, item + 1);
                taken.fetch_add(item as usize, 1);
            }
        }
    }
}

/// the owner of a deque takes the last item without a compare-exchange
#[kernel(block = 32, grid = 2, instances(MENDED = false | true))]
#[requires(ends.len() == 2, taken.len() == 2)]
fn last_item_stolen_and_kept<const MENDED: bool>(ends: &mut [u32], taken: &mut [u32]) {
    // Items lie between the top, from which a thief takes, and the bottom, from which the owner
    // takes.
    if thread::x() == 0 && block::x() == 0 {
        let mut left = ends.fetch_or(1, 0);
        while left > 0 {
            left -= 1;
            ends.exchange(1, left);
            let top = ends.fetch_or(0, 0);
            if top < left {
                taken.fetch_add(left as usize, 1);
            } else {
                if top == left {
                    if MENDED {
                        if ends.compare_exchange(0, top, top + 1) == top {
                            taken.fetch_add(left as usize, 1);
                        }
                    } else {
                        taken.fetch_add(left as usize, 1);
                        ends.exchange(0, top + 1);
                    }
                }
                left = 0;
            }
        }
    } else if thread::x() == 0 {
        let top = ends.fetch_or(0, 0);
        let bottom = ends.fetch_or(1, 0);
        if top < bottom {
            if ends.compare_exchange(0, top, top + 1) == top {
                taken.fetch_add(top as usize, 1);
            }
        }
    }
}

/// a look-back reads the state of a block and then its value, which changes meanwhile
#[kernel(block = 32, grid = 4, instances(MENDED = false | true))]
#[requires(state.len() == 4, value.len() == 4, y.len() == 4)]
fn look_back_at_two_words<const MENDED: bool>(state: &mut [u32], value: &mut [u32], y: &mut [u32]) {
    if thread::x() == 0 {
        let b = block::x();
        let own = b as u32 + 1;
        // The state is 1 for an aggregate and 2 for a prefix; mended, one word has both.
        if MENDED {
            state.exchange(b, own * 4 + 1);
        } else {
            value.exchange(b, own);
            state.exchange(b, 1);
        }
        let mut sum = own;
        let mut before = b;
        while before > 0 {
            let seen = state.fetch_or(before - 1, 0);
            if seen != 0 {
                let kind = seen % 4;
                if MENDED {
                    sum += seen / 4;
                } else {
                    sum += value.fetch_or(before - 1, 0);
                }
                before = if kind == 2 { 0 } else { before - 1 };
            }
        }
        if MENDED {
            state.exchange(b, sum * 4 + 2);
        } else {
            value.exchange(b, sum);
            state.exchange(b, 2);
        }
        y[b] = sum;
    }
}

/// a look-back skips blocks that have published nothing yet
#[kernel(block = 32, grid = 4, instances(MENDED = false | true))]
#[requires(state.len() == 4, y.len() == 4)]
fn look_back_past_the_empty<const MENDED: bool>(state: &mut [u32], y: &mut [u32]) {
    if thread::x() == 0 {
        let b = block::x();
        let own = b as u32 + 1;
        state.exchange(b, own * 4 + 1);
        let mut sum = own;
        let mut before = b;
        while before > 0 {
            let seen = state.fetch_or(before - 1, 0);
            if seen != 0 || !MENDED {
                sum += seen / 4;
                before = if seen % 4 == 2 { 0 } else { before - 1 };
            }
        }
        state.exchange(b, sum * 4 + 2);
        y[b] = sum;
    }
}

/// a look-back stops at the aggregate of the block before
#[kernel(block = 32, grid = 4, instances(MENDED = false | true))]
#[requires(state.len() == 4, y.len() == 4)]
fn look_back_that_stops_at_an_aggregate<const MENDED: bool>(state: &mut [u32], y: &mut [u32]) {
    if thread::x() == 0 {
        let b = block::x();
        let own = b as u32 + 1;
        state.exchange(b, own * 4 + 1);
        let mut sum = own;
        let mut before = b;
        while before > 0 {
            let seen = state.fetch_or(before - 1, 0);
            if seen != 0 {
                sum += seen / 4;
                before = if seen % 4 == 2 || !MENDED { 0 } else { before - 1 };
            }
        }
        state.exchange(b, sum * 4 + 2);
        y[b] = sum;
    }
}

/// a block adds itself to the counter and reads the counter afterwards to know whether it is last
#[kernel(block = 32, grid = 3, instances(MENDED = false | true))]
#[requires(ended.len() == 1, last.len() == 1)]
fn two_last_blocks<const MENDED: bool>(ended: &mut [u32], last: &mut [u32]) {
    if thread::x() == 0 {
        let before = ended.fetch_add(0, 1);
        let all = if MENDED { before + 1 } else { ended.fetch_or(0, 0) };
        if all == 3 {
            last.fetch_add(0, 1);
        }
    }
}

/// a reader checks the version of a pair before it reads, and not afterwards
#[kernel(block = 32, grid = 2, instances(MENDED = false | true))]
#[requires(version.len() == 1, pair.len() == 2, torn.len() == 1)]
fn snapshot_checked_once<const MENDED: bool>(version: &mut [u32], pair: &mut [u32], torn: &mut [u32]) {
    if thread::x() == 0 && block::x() == 0 {
        version.fetch_add(0, 1);
        pair.exchange(0, 5);
        pair.exchange(1, 5);
        version.fetch_add(0, 1);
    } else if thread::x() == 0 {
        loop {
            let before = version.fetch_or(0, 0);
            let one = pair.fetch_or(0, 0);
            let other = pair.fetch_or(1, 0);
            let after = if MENDED { version.fetch_or(0, 0) } else { before };
            if before % 2 == 0 && before == after {
                torn[0] = one ^ other;
                break;
            }
        }
    }
}

/// the last warp at a barrier in memory resets the counter after it has released the others
#[kernel(block = 64, grid = 1, instances(MENDED = false | true))]
#[requires(barrier.len() == 2, y.len() == 2)]
fn barrier_reset_after_its_release<const MENDED: bool>(barrier: &mut [u32], y: &mut [u32]) {
    let t = thread::x();
    if t % 32 == 0 {
        for round in 0..2 {
            if barrier.fetch_add(0, 1) == 1 {
                if MENDED {
                    barrier.exchange(0, 0);
                }
                barrier.exchange(1, round + 1);
                if !MENDED {
                    barrier.exchange(0, 0);
                }
            } else {
                while barrier.fetch_or(1, 0) <= round {}
            }
        }
        y[t / 32] = 1;
    }
}

/// two blocks take two locks in opposite orders
#[kernel(block = 32, grid = 2, instances(MENDED = false | true))]
#[requires(locks.len() == 2, total.len() == 1)]
fn locks_in_opposite_order<const MENDED: bool>(locks: &mut [u32], total: &mut [u32]) {
    if thread::x() == 0 {
        let first = if MENDED { 0 } else { block::x() };
        while locks.compare_exchange(first, 0, 1) != 0 {}
        while locks.compare_exchange(1 - first, 0, 1) != 0 {}
        fence::grid();
        total[0] += 1;
        fence::grid();
        locks.exchange(1 - first, 0);
        locks.exchange(first, 0);
    }
}

/// an empty slot of a hash table is found and then filled, in two steps
#[kernel(block = 32, grid = 3, instances(MENDED = false | true))]
#[requires(keys.len() == 4, ended.len() == 2)]
fn slot_tested_then_filled<const MENDED: bool>(keys: &mut [u32], ended: &mut [u32]) {
    if thread::x() == 0 {
        // All keys have the same hash.
        let key = block::x() as u32 + 1;
        let mut slot = 0;
        loop {
            if MENDED {
                if keys.compare_exchange(slot, 0, key) == 0 {
                    break;
                }
            } else if keys.fetch_or(slot, 0) == 0 {
                keys.exchange(slot, key);
                break;
            }
            slot = (slot + 1) % 4;
        }
        if ended.fetch_add(0, 1) == 2 {
            for i in 0..4 {
                if keys.fetch_or(i, 0) != 0 {
                    ended.fetch_add(1, 1);
                }
            }
        }
    }
}

/// blocks read what another block has begun to initialize, and not yet ended
#[kernel(block = 32, grid = 3, instances(MENDED = false | true))]
#[requires(once.len() == 2, y.len() == 3)]
fn initialized_while_others_read<const MENDED: bool>(once: &mut [u32], y: &mut [u32]) {
    if thread::x() == 0 {
        if once.compare_exchange(0, 0, 1) == 0 {
            once.exchange(1, 42);
            once.exchange(0, 2);
        }
        if MENDED {
            while once.fetch_or(0, 0) != 2 {}
        }
        y[block::x()] = once.fetch_or(1, 0);
    }
}

/// a permit is tested and then taken, in two steps
#[kernel(block = 32, grid = 2, instances(MENDED = false | true))]
#[requires(permits.len() == 1, inside.len() == 2)]
fn permits_tested_then_taken<const MENDED: bool>(permits: &mut [u32], inside: &mut [u32]) {
    if thread::x() == 0 {
        loop {
            let left = permits.fetch_or(0, 0);
            if left > 0 {
                if MENDED {
                    if permits.compare_exchange(0, left, left - 1) == left {
                        break;
                    }
                } else {
                    permits.exchange(0, left - 1);
                    break;
                }
            }
        }
        let others = inside.fetch_add(0, 1);
        inside.fetch_max(1, others);
        inside.fetch_add(0, u32::MAX);
        permits.fetch_add(0, 1);
    }
}

/// a warp that waits for a lock of its block enters after `TRIES` tries without it
#[kernel(block = 64, grid = 1, instances(TRIES = 33 | 100 | 1000))]
#[requires(total.len() == 1)]
fn lock_of_many_tries<const TRIES: u32>(total: &mut [u32]) {
    let mut lock = Shared::<u32, 1>::new([1]);
    let mut sum = Shared::<u32, 1>::new([1]);
    let t = thread::x();
    if t == 0 {
        lock[0] = 0;
        sum[0] = 0;
    }
    block::sync();
    if t % 32 == 0 {
        let mut tries = 0;
        while lock.compare_exchange(0, 0, 1) != 0 && tries < TRIES {
            tries += 1;
        }
        fence::block();
        sum[0] += 1;
        fence::block();
        lock.exchange(0, 0);
    }
    block::sync();
    if t == 0 {
        total[0] = sum[0];
    }
}

/// Schedules that are tested for each bug, and for each twin.
const TRIED: [u64; 2] = [256, 64];

const HEAD: &str = "\
# Bugs that only an interleaving reveals

Each row is a kernel of `contended.rs` with one mistake, defined beside its corrected twin. A run in order has no finding.
`UPDATE=1 cargo test -p tests --test zoo` writes this page. Without `UPDATE` the test compares all columns but the last with its results.

- *Found by* is the check of the first finding, or a result that differs from the run in order.
- *Orders* is the number of interleavings until the first that reveals the bug, with the seeds 1, 2, 3 and so on.
  `kernels check --orders N` tries N of them. Without the option it tries at most 128.
- *Shortest* is the shrunk interleaving, which `--order` repeats.
- *Seconds* is the time until the bug is found, in a debug build on one core of the machine that wrote the page.

The oracle reports a data race in any order, if nothing orders the two accesses. In the kernels with a `global-race` or a `shared-race`
here, the lock orders the accesses of a run in order: no block or warp finds the lock taken.

No interleaving reveals anything in a twin. The last line states the numbers of orders.

# What the preemption bound guarantees

Each run has 0 to 3 points at which the running warp loses its priority, and random first priorities. A point follows an atomic operation
or a fence. A bug of depth d needs d orderings between operations of different warps. Let n warps pass k points in total. A run with d − 1
points then finds the bug with probability 1 / (n · k^(d − 1)) or more.

- Every depth from 1 to 4 has a nonzero probability in each four consecutive seeds. Greater depths have no guarantee.
- A run without a finding proves nothing, because the guarantee is a probability. If one run finds a bug with probability p, N runs find
  it with probability 1 − (1 − p)^N.
- At most 16 blocks are resident. A bug that needs more than 16 blocks at once is not found.
- Memory is sequentially consistent in every interleaving. A missing fence is reported as a race and shows no stale value.

";

impl Contended {
    fn specimen(&self, mended: bool) -> Specimen {
        self.instance(Constant::Bool(mended))
    }

    fn instance(&self, constant: Constant) -> Specimen {
        let instance = Instance(vec![constant]);
        let program = self.artifact.program().expect("the kernel's own HIR");
        let program = monomorphic(&program, &instance).expect("a declared instance");
        let lowered = driver::lowered_monomorphic(&program, self.artifact.target).expect("a declared instance");
        let prepared = PreparedInstance::compile(self.artifact, &instance).expect("a declared instance");
        let case = Case::new(self.artifact.name, (self.inputs)());
        let case = self.free.iter().fold(case, |case, argument| case.with_order_dependent(*argument));
        Specimen { prepared, lowered: lowered.into(), case, slow: false }
    }

    /// Returns the kernel's name.
    fn name(&self) -> &'static str {
        self.artifact.name
    }
}

/// The first interleaving that reveals a bug.
struct Revealed {
    /// The number of interleavings tried, this one included.
    orders: u64,
    /// The time until the bug was found, without shrinking.
    time: Duration,
    /// The shrunk interleaving.
    shortest: Schedule,
    /// The check that finds the bug in the shrunk interleaving.
    check: String,
}

impl Specimen {
    /// Searches for an interleaving that reveals a bug.
    fn interleaving(&self, tried: u64) -> Option<Revealed> {
        let oracle = Oracle::new(&self.prepared, &self.lowered).expect("lowered IR is valid");
        let run = |schedule| {
            oracle.run(&self.case, Options { schedule, fuel: FUEL << 8, ..Options::default() }).expect("a valid case")
        };
        let began = Instant::now();
        let first = run(Schedule::InOrder);
        let outcome = first.outcome.as_ref().expect("the grid is not empty");
        assert!(outcome.report.findings.is_empty(), "{}: in order: {}", self.case.name, outcome.report);
        let length = outcome.points;
        let reveals = |preemption| {
            let trial = run(Schedule::Preempted(preemption));
            let report = &trial.outcome.as_ref().expect("the grid is not empty").report;
            match report.findings.first() {
                Some(finding) => Some(finding.check.to_string()),
                None => oracle.differ(&self.case, &[], &first, &trial).then(|| "wrong result".to_string()),
            }
        };
        let found = |seed: &u64| reveals(Preemption::random(*seed, length)).is_some();
        let orders = (1..=tried).find(found)?;
        let time = began.elapsed();
        let shortest = Preemption::random(orders, length).shrunk(|simpler| reveals(simpler).is_some());
        let check = reveals(shortest).expect("a schedule repeats");
        Some(Revealed { orders, time, shortest: Schedule::Preempted(shortest), check })
    }
}

impl Specimen {
    /// Returns whether an interleaving of the PTX fails or gives another result.
    fn ptx_interleaving(&self, tried: u64) -> bool {
        let oracle = Oracle::new(&self.prepared, &self.lowered).expect("lowered IR is valid");
        let first = oracle.run(&self.case, Options::default()).expect("a valid case");
        let length = first.outcome.as_ref().expect("the grid is not empty").points;
        (1..=tried).any(|seed| {
            let schedule = Schedule::Preempted(Preemption::random(seed, length));
            let options = ptx::Options { schedule, fuel: FUEL << 8, ..Default::default() };
            self.prepared.ptx_differs(&self.case, &[], &first, options).expect("the oracle has run it") == Some(true)
        })
    }
}

#[test]
fn interleavings_reveal_each_bug_and_nothing_of_its_twin() {
    let (mut wrong, mut rows, mut most) = (Vec::new(), String::new(), 0);
    for bug in CONTENDED {
        let (specimen, name) = (bug.specimen(false), bug.name());
        match specimen.interleaving(TRIED[0]) {
            Some(Revealed { orders, time, shortest, check }) => {
                let (title, order, seconds) = (title(bug.artifact), shortest.word(), time.as_secs_f64());
                most = orders.max(most);
                let _ = writeln!(rows, "| `{name}` | {title} | {check} | {orders} | `{order}` | {seconds:.2} |");
            }
            None => wrong.push(format!("{name}: not found")),
        }
        if let Some(Revealed { orders, shortest, check, .. }) = bug.specimen(true).interleaving(TRIED[1]) {
            wrong.push(format!("the twin of {name}: seed {orders}, {}: {check}", shortest.word()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let table = "| kernel | bug | found by | orders | shortest | seconds |\n|---|---|---|---|---|---|\n";
    let (count, twins) = (CONTENDED.len(), TRIED[1]);
    let end =
        format!("\nAll {count} bugs are found in at most {most} orders. Nothing is found for a twin in {twins}.\n");
    page::compare("INTERLEAVED.md", &format!("{HEAD}{table}{rows}{end}"), without_seconds);
}

/// Returns a line without the last column of a row, which is a time.
fn without_seconds(line: &str) -> &str {
    if line.starts_with("| `") { line.rsplitn(3, '|').last().unwrap_or(line) } else { line }
}

/// Checks that the PTX interpreter, which looks for no races, finds the bugs that change a result
/// or end in a deadlock.
#[test]
fn interleavings_of_ptx_reveal_wrong_results() {
    // The sum under these locks has no atomic operation, so that no interleaving can switch warps
    // within it. Only the race reveals the bug.
    let unseen = [
        "lock_tested_then_taken",
        "lock_that_loses_patience",
        "lock_with_a_fence_on_the_fast_path",
        "lock_released_by_the_loser",
    ];
    let missed = CONTENDED.iter().filter(|bug| !bug.specimen(false).ptx_interleaving(TRIED[0]));
    assert_eq!(missed.map(Contended::name).collect::<Vec<_>>(), unseen);
    for bug in CONTENDED {
        assert!(!bug.specimen(true).ptx_interleaving(TRIED[1]), "the twin of {}", bug.name());
    }
}

/// Checks that a warp polls so often under some of the interleavings that `kernels check` tries.
#[test]
fn limits_of_polls_are_reached() {
    let artifact = <lock_of_many_tries<33> as Kernel>::ARTIFACT;
    let bug = Contended { artifact, inputs: || vec![words(&[0])], free: &[] };
    for tries in [33, 100, 1000] {
        let specimen = bug.instance(Constant::Integer(tries));
        let found = specimen.interleaving(128).unwrap_or_else(|| panic!("{tries} tries: not found"));
        assert_eq!(found.check, "shared-race", "{tries} tries");
    }
}
