//! Tests of the hazard tracker.

use super::{HazardTracker, TimelinePoint, WaitSet};

fn at(stream: u16, count: u64) -> TimelinePoint {
    TimelinePoint { stream, count }
}

fn sorted(mut pending: WaitSet) -> Vec<TimelinePoint> {
    pending.sort_by_key(|m| (m.stream, m.count));
    pending.to_vec()
}

#[test]
fn reads_wait_for_writes_and_writes_for_all() {
    let uses = HazardTracker::default();
    assert!(uses.before_read().is_empty());
    assert!(uses.before_write().is_empty());
    uses.note_write(at(0, 7));
    assert_eq!(uses.before_read().as_slice(), [at(0, 7)]);
    uses.note_read(at(1, 3));
    uses.note_read(at(2, 9));
    uses.note_read(at(1, 5));
    uses.note_read(at(2, 4));
    assert_eq!(uses.before_read().as_slice(), [at(0, 7)]);
    assert_eq!(sorted(uses.before_write()), [at(0, 7), at(1, 5), at(2, 9)]);
    uses.note_write(at(3, 1));
    assert_eq!(sorted(uses.before_write()), [at(3, 1)]);
}

#[test]
fn a_new_owner_waits_for_earlier_uses() {
    let uses = HazardTracker::inherited([at(4, 2), at(5, 6)].into_iter().collect());
    assert_eq!(sorted(uses.before_read()), [at(4, 2), at(5, 6)], "what is read must not be written meanwhile");
    assert_eq!(sorted(uses.before_write()), [at(4, 2), at(5, 6)]);
    uses.note_read(at(6, 1));
    assert_eq!(sorted(uses.before_write()), [at(4, 2), at(5, 6), at(6, 1)]);
    uses.note_write(at(4, 3));
    assert_eq!(sorted(uses.before_read()), [at(4, 3)]);
    assert_eq!(sorted(uses.before_write()), [at(4, 3)]);
    // Without earlier operations there is nothing to wait for.
    let uses = HazardTracker::inherited(WaitSet::new());
    assert!(uses.before_read().is_empty() && uses.before_write().is_empty());
    uses.note_read(at(1, 1));
    assert!(uses.before_read().is_empty());
    // The first write of a part waits for the inherited operations too.
    let uses = HazardTracker::inherited([at(4, 2)].into_iter().collect());
    uses.note_part(at(5, 1));
    assert_eq!(sorted(uses.before_read()), [at(4, 2), at(5, 1)]);
    uses.note_write(at(5, 2));
    assert_eq!(sorted(uses.before_read()), [at(5, 2)]);
}

#[test]
fn writers_of_parts_are_all_waited_for() {
    let uses = HazardTracker::default();
    uses.note_write(at(0, 1));
    std::thread::scope(|s| {
        for stream in 1..5 {
            let parts = uses.parts();
            s.spawn(move || (1..=100).for_each(|count| parts.note_part(at(stream, count))));
        }
        s.spawn(|| uses.note_read(at(5, 1)));
    });
    let all = [at(0, 1), at(1, 100), at(2, 100), at(3, 100), at(4, 100), at(5, 1)];
    assert_eq!(sorted(uses.before_read()), all);
    assert_eq!(sorted(uses.before_write()), all);
    uses.note_write(at(6, 1));
    assert_eq!(sorted(uses.before_read()), [at(6, 1)]);
}

#[test]
fn reads_of_many_threads_are_recorded() {
    let uses = HazardTracker::default();
    std::thread::scope(|s| {
        for stream in 0..8 {
            let uses = &uses;
            s.spawn(move || (1..=1000).for_each(|count| uses.note_read(at(stream, count))));
        }
    });
    let all: Vec<_> = (0..8).map(|stream| at(stream, 1000)).collect();
    assert_eq!(sorted(uses.before_write()), all);
}

#[test]
fn the_last_stream_and_count_fit() {
    let last = at(u16::MAX, (1 << 48) - 1);
    assert_eq!(TimelinePoint::unpacked(last.packed()), Some(last));
}
