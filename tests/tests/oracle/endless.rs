//! Loops that wait: which waits are legal, and the reports of waits that never end.

use super::kernels::{set_and_wait, wait_and_set};
use super::support::{AlignedMemory, checks, run_on};
use kernel_dsl::Kernel;
use kernel_dsl::prelude::*;
use runtime::interpreter::{Check, Checks, Options, Preemption, Schedule};
use std::num::NonZeroUsize;

fn numbers() -> AlignedMemory {
    AlignedMemory::new(|i| i as f32)
}

#[test]
fn warps_may_wait_for_each_other_in_any_order() {
    let expected = numbers().values();
    for schedule in [Schedule::InOrder, Schedule::Reversed, Schedule::Seeded(3)] {
        for tier in [Checks::Values, Checks::Accesses, Checks::All] {
            let options = Options { checks: tier, schedule, fuel: 1 << 20, ..Options::default() };
            let (report, y) = run_on(set_and_wait::ARTIFACT, 1, &numbers(), options);
            assert!(report.findings.is_empty(), "{schedule}, {tier:?}: {report}");
            assert_eq!(y, expected, "{schedule}, {tier:?}");
        }
    }
}

#[test]
fn report_states_what_a_livelock_waits_for() {
    for tier in [Checks::Values, Checks::All] {
        let options = Options { checks: tier, fuel: 1 << 20, ..Options::default() };
        let (report, _) = run_on(wait_and_set::ARTIFACT, 1, &numbers(), options);
        assert_eq!(checks(&report), [Check::Livelock], "{report}");
        let finding = &report.findings[0];
        assert_eq!(
            finding.message,
            "a deadlock: this loop waits for element 0 of `ready`, which is 0, and no thread that can still run changes it"
        );
        let object = finding.object.as_ref().expect("the location it reads");
        assert_eq!((&object.name[..], object.element), ("ready", Some(0)));
        let other = finding.other.as_ref().expect("the other warp");
        assert_eq!((other.thread.warp, other.action), (1, "is in an endless loop too"));
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(json["findings"][0]["check"], "livelock");
        assert_eq!(json["findings"][0]["object"]["name"], "ready");
        assert!(json["findings"][0]["place"]["line"].as_u64() > Some(1));
    }
}

/// Changes in each iteration a counter in memory, so no state repeats.
#[kernel(block = 64, grid = 1)]
fn taken_in_turns(x: &[f32], y: &mut [f32]) {
    let mut ticket = Shared::<u32, 1>::new([1]);
    let i = thread::x();
    if i == 0 {
        ticket[0] = 0;
    }
    block::sync();
    while ticket.fetch_add(0, 1) < 1_000_000 {}
    y[i] = x[i];
}

/// Waits forever in the last block only. Blocks without atomic operations run on several host
/// threads.
#[kernel(block = 32, grid = 64)]
fn stands_in_one_block(x: &[f32], y: &mut [f32]) {
    let mut i = 0;
    while i < 8 {
        if block::x() != 63 || x[i] != 5.0 {
            i += 1;
        }
    }
    if block::x() == 0 {
        y[thread::x()] = x[i];
    }
}

#[test]
fn ending_loops_are_not_reported() {
    let (report, y) = run_on(taken_in_turns::ARTIFACT, 1, &numbers(), Options::default());
    assert!(report.findings.is_empty(), "{report}");
    assert_eq!(y, numbers().values());
}

#[test]
fn livelock_is_reported_on_one_host_thread_and_on_several() {
    for threads in [1, 2] {
        let options = Options { threads: NonZeroUsize::new(threads), ..Options::default() };
        let (report, _) = run_on(stands_in_one_block::ARTIFACT, 64, &numbers(), options);
        assert_eq!(checks(&report), [Check::Livelock], "{report}");
        assert_eq!(report.findings[0].message, "an endless loop: its iterations change nothing");
        assert_eq!(report.findings[0].thread.block, [63, 0, 0]);
    }
}

/// Takes a lock in the lanes of a warp, one after the other. The lane with the lock has left the
/// loop; before sm_70 it would wait there for the other lanes.
#[kernel(target = sm_70, block = 32, grid = 1)]
fn lock_of_lanes(x: &[f32], y: &mut [f32]) {
    let mut lock = Shared::<u32, 1>::new([1]);
    let mut sum = Shared::<f32, 1>::new([1]);
    let lane = thread::x();
    if lane == 0 {
        lock[0] = 0;
        sum[0] = 0.0;
    }
    block::sync();
    while lock.compare_exchange(0, 0, 1) != 0 {}
    fence::block();
    sum[0] += x[lane];
    fence::block();
    lock.exchange(0, 0);
    warp::sync();
    y[lane] = sum[0] + warp::sum(x[lane]);
}

/// Takes a lock in the lanes of a warp before sm_70.
#[kernel(block = 32, grid = 1)]
fn lock_of_lanes_in_lockstep(x: &[f32], y: &mut [f32]) {
    let mut lock = Shared::<u32, 1>::new([1]);
    if thread::x() == 0 {
        lock[0] = 0;
    }
    block::sync();
    while lock.compare_exchange(0, 0, 1) != 0 {}
    lock.exchange(0, 0);
    y[thread::x()] = x[0];
}

/// Lets the lane with the lock wait for all lanes, which wait for the lock.
#[kernel(target = sm_70, block = 32, grid = 1)]
fn lock_over_a_barrier(x: &[f32], y: &mut [f32]) {
    let mut lock = Shared::<u32, 1>::new([1]);
    if thread::x() == 0 {
        lock[0] = 0;
    }
    block::sync();
    while lock.compare_exchange(0, 0, 1) != 0 {}
    y[thread::x()] = warp::sum(x[thread::x()]);
    lock.exchange(0, 0);
}

/// Lets lanes reach different barriers of the warp, some of them after a loop.
#[kernel(target = sm_70, block = 32, grid = 1)]
fn two_barriers(x: &[f32], y: &mut [f32]) {
    let mut flag = Shared::<u32, 1>::new([1]);
    let lane = thread::x();
    if lane == 0 {
        flag[0] = 0;
    }
    block::sync();
    if x[lane] < 16.0 {
        while flag.fetch_or(0, 0) == 0 {}
        warp::sync();
    } else {
        flag.fetch_or(0, 1);
    }
    block::sync();
    y[lane] = x[lane];
}

#[test]
fn lanes_of_a_warp_may_wait_for_one_another_from_sm_70_on() {
    for schedule in [Schedule::InOrder, Schedule::Reversed, Schedule::Seeded(3)] {
        for tier in [Checks::Values, Checks::Accesses, Checks::All] {
            let options = Options { checks: tier, schedule, fuel: 1 << 22, ..Options::default() };
            let (report, y) = run_on(lock_of_lanes::ARTIFACT, 1, &numbers(), options);
            assert!(report.findings.is_empty(), "{schedule}, {tier:?}: {report}");
            // The sum 0 + 1 + … + 31, twice.
            assert_eq!(y[..32], [992.0; 32], "{schedule}, {tier:?}");
        }
    }
    let (report, _) = run_on(lock_of_lanes_in_lockstep::ARTIFACT, 1, &numbers(), Options::default());
    assert_eq!(checks(&report), [Check::Livelock], "{report}");
    let other = report.findings[0].other.as_ref().expect("the lane that has the lock");
    assert_eq!(other.action, "waits for it where the lanes of the warp reconverge");
}

#[test]
fn lanes_may_not_wait_for_each_other_in_a_cycle() {
    let (report, _) = run_on(lock_over_a_barrier::ARTIFACT, 1, &numbers(), Options::default());
    assert_eq!(checks(&report), [Check::Livelock], "{report}");
    let (report, _) = run_on(two_barriers::ARTIFACT, 1, &numbers(), Options::default());
    assert!(checks(&report).contains(&Check::DivergentWarp), "{report}");
}

/// Polls with a counter, so that no state repeats, until the other warp sets the flag.
#[kernel(block = 64, grid = 1)]
fn counts_while_it_waits(x: &[f32], y: &mut [f32]) {
    let mut flag = Shared::<u32, 1>::new([1]);
    let i = thread::x();
    if i == 0 {
        flag[0] = 0;
    }
    block::sync();
    let mut polls = 0u32;
    if i < 32 {
        while flag.fetch_or(0, 0) == 0 {
            polls += 1;
        }
    } else if i == 32 {
        flag.exchange(0, 1);
    }
    y[i] = if polls == u32::MAX { 0.0 } else { x[i] };
}

/// Counts its tries to take a lock that another lane of the warp has.
#[kernel(block = 32, grid = 1)]
fn counts_in_a_deadlock(x: &[f32], y: &mut [f32]) {
    let mut lock = Shared::<u32, 1>::new([1]);
    let i = thread::x();
    if i == 0 {
        lock[0] = 0;
    }
    block::sync();
    let mut tries = 0u32;
    while lock.compare_exchange(0, 0, 1) != 0 {
        tries += 1;
    }
    lock.exchange(0, 0);
    y[i] = if tries == u32::MAX { 0.0 } else { x[i] };
}

#[test]
fn loops_that_count_may_wait_for_other_warps() {
    for schedule in [Schedule::InOrder, Schedule::Reversed] {
        let options = Options { schedule, ..Options::default() };
        let (report, y) = run_on(counts_while_it_waits::ARTIFACT, 1, &numbers(), options);
        assert!(report.findings.is_empty(), "{report}");
        assert_eq!(y, numbers().values());
    }
}

#[test]
fn deadlocks_of_loops_that_count_are_reported() {
    let (report, _) = run_on(counts_in_a_deadlock::ARTIFACT, 1, &numbers(), Options::default());
    assert_eq!(checks(&report), [Check::Livelock], "{report}");
    let finding = &report.findings[0];
    assert!(finding.message.starts_with("a deadlock: this loop waits for element 0 of `lock`, which is 1"), "{report}");
    let other = finding.other.as_ref().expect("the lane that has the lock");
    assert_eq!(other.action, "waits for it where the lanes of the warp reconverge");
}

/// Waits for both blocks: a barrier of the grid in memory.
#[kernel(block = 32, grid = 2)]
fn meets_the_other_block(x: &[f32], y: &mut [f32]) {
    if thread::x() == 0 {
        y.fetch_add(0, 1.0);
        while y.fetch_add(0, 0.0) < 2.0 {}
        y[1 + block::x()] = x[1];
    }
}

#[test]
fn resident_blocks_may_wait_for_each_other() {
    let preempted = |seed| Schedule::Preempted(Preemption::random(seed, 10));
    let orders = [Schedule::InOrder, Schedule::Reversed, preempted(1), preempted(2)];
    for (schedule, tier) in orders.into_iter().flat_map(|order| [(order, Checks::Values), (order, Checks::All)]) {
        let options = Options { schedule, checks: tier, cooperative: true, ..Options::default() };
        let (report, y) = run_on(meets_the_other_block::ARTIFACT, 2, &numbers(), options);
        assert!(report.findings.is_empty(), "{schedule}: {report}");
        assert_eq!(y[..3], [2.0, 1.0, 1.0]);
    }
}
