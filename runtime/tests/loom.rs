//! Model checking of concurrent hazard tracking: loom explores every order that locks and atomics
//! permit.

/// Replacements of the runtime's `sync` module, which has the locks and atomics of a program.
mod sync {
    pub use loom::sync::MutexGuard;
    pub use loom::sync::atomic::{AtomicBool, AtomicU64};

    /// A lock of loom in place of the runtime's.
    #[derive(Default, Debug)]
    pub struct Lock<T>(loom::sync::Mutex<T>);

    impl<T> Lock<T> {
        pub fn new(value: T) -> Lock<T> {
            Lock(loom::sync::Mutex::new(value))
        }

        pub fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().expect("a panic ends the model")
        }
    }
}

// The models use only a part of the file.
#[allow(dead_code)]
#[path = "../devices/src/hazard/tracker.rs"]
mod tracker;

use loom::thread;
use std::sync::Arc;
use tracker::{HazardTracker, SubrangeTracker, TimelinePoint, WaitSet};

fn at(stream: u16, count: u64) -> TimelinePoint {
    TimelinePoint { stream, count }
}

fn sorted(mut pending: WaitSet) -> Vec<TimelinePoint> {
    pending.sort_by_key(|m| (m.stream, m.count));
    pending.to_vec()
}

/// Returns the tracker after the threads have used it concurrently, for memory that stream 0 wrote
/// before.
fn left(threads: &[fn(&SubrangeTracker)]) -> HazardTracker {
    let uses = HazardTracker::default();
    uses.note_write(at(0, 1));
    let uses = Arc::new(uses);
    let others: Vec<_> = threads
        .iter()
        .map(|act| {
            let (uses, act) = (uses.clone(), *act);
            thread::spawn(move || act(uses.parts()))
        })
        .collect();
    others.into_iter().for_each(|other| other.join().unwrap());
    Arc::into_inner(uses).unwrap()
}

#[test]
fn readers_of_several_streams_are_all_recorded() {
    loom::model(|| {
        let uses = left(&[
            |parts| (1..=2).for_each(|count| parts.note_read(at(1, count))),
            |parts| (4..=5).for_each(|count| parts.note_read(at(2, count))),
        ]);
        assert_eq!(sorted(uses.before_write()), [at(0, 1), at(1, 2), at(2, 5)]);
        assert_eq!(sorted(uses.before_read()), [at(0, 1)]);
        uses.note_write(at(3, 1));
        assert_eq!(sorted(uses.before_write()), [at(3, 1)]);
    });
}

#[test]
fn last_reader_of_a_stream_is_recorded() {
    loom::model(|| {
        let uses = left(&[|parts| parts.note_read(at(1, 7)), |parts| parts.note_read(at(1, 9))]);
        assert_eq!(sorted(uses.before_write()), [at(0, 1), at(1, 9)]);
    });
}

#[test]
fn writers_of_parts_and_a_reader_are_all_recorded() {
    loom::model(|| {
        let uses = left(&[
            |parts| parts.note_part(at(1, 3)),
            |parts| parts.note_part(at(2, 4)),
            |parts| parts.note_read(at(3, 5)),
        ]);
        let all = [at(0, 1), at(1, 3), at(2, 4), at(3, 5)];
        assert_eq!(sorted(uses.before_read()), all);
        assert_eq!(sorted(uses.before_write()), all);
    });
}

/// Checks that a concurrent query returns only recorded accesses, and always the earlier write.
#[test]
fn concurrent_observer_sees_the_previous_state() {
    loom::model(|| {
        left(&[
            |parts| parts.note_part(at(1, 3)),
            |parts| {
                let seen = sorted(parts.before_write());
                assert!(seen == [at(0, 1)] || seen == [at(0, 1), at(1, 3)], "{seen:?}");
            },
        ]);
    });
}
