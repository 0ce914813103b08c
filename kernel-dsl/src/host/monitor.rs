//! The state that the threads of an emulated block share: barriers, values that lanes exchange,
//! shared memory, and the first failure.
//!
//! One rule governs all waiting. A thread at a barrier waits for a *meeting* of its scope, the
//! block or its warp, at that operation and line. A meeting takes place when every thread of the
//! scope waits for it. If no thread of the block can run, the threads have diverged before a
//! barrier: the block fails, and reports where each thread waits. No thread therefore waits for one
//! that has ended or waits elsewhere. After a failure every thread that waits unwinds.

use crate::element::DeviceCopy;
use crate::layout::IndexShape;
use kernel_dsl_compiler::lock::{Lock, WaitCondition};
use std::any::{Any, TypeId};
use std::cell::UnsafeCell;
use std::fmt;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::panic::Location;
use std::ptr::NonNull;
use std::sync::{Arc, MutexGuard};

/// Threads of a warp.
pub(crate) const LANES: usize = 32;

/// A value that a thread offers at a meeting.
pub(super) type Offer = Arc<dyn Any + Send + Sync>;

/// The threads that wait for each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BarrierScope {
    Block,
    Warp,
}

/// The payload with which a thread unwinds because another one failed. Not visible to callers of
/// `run`.
pub(super) struct Canceled;

/// The reason why a block failed, and the thread that failed, if a single thread caused the
/// failure.
#[derive(Clone, Debug)]
pub(super) struct BlockFailure {
    pub thread: Option<usize>,
    pub message: String,
}

/// The barrier that threads wait for.
#[derive(Clone, Copy, PartialEq, Debug)]
struct BarrierWait {
    scope: BarrierScope,
    operation: &'static str,
    place: &'static Location<'static>,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Status {
    Running,
    Waiting(BarrierWait),
    Ended,
}

/// Bytes of an array in shared memory, which may hold elements of any type that lies on them.
#[repr(C, align(16))]
struct Piece(UnsafeCell<[MaybeUninit<u8>; 16]>);

/// An array in shared memory.
struct MonitoredArray {
    shape: Vec<usize>,
    place: &'static Location<'static>,
    element: TypeId,
    memory: Box<[Piece]>,
}

struct BlockState {
    threads: Vec<Status>,
    running: usize,
    /// The value that each thread offers at its meeting.
    offers: Vec<Offer>,
    /// The offers of each warp's last meeting, by its lanes or by all threads of the block. The
    /// warp's lanes read the offers before their next meeting.
    last_offers: Vec<Arc<[Offer]>>,
    arrays: Vec<MonitoredArray>,
    failure: Option<BlockFailure>,
}

/// The threads of one block, by index.
pub(crate) struct Monitor {
    state: Lock<BlockState>,
    /// One condition variable per warp, on which the warp's lanes wait.
    wake: Vec<WaitCondition>,
}

impl Monitor {
    pub(super) fn new(threads: usize) -> Monitor {
        let warps = threads.div_ceil(LANES);
        Monitor {
            state: Lock::new(BlockState {
                threads: vec![Status::Running; threads],
                running: threads,
                offers: (0..threads).map(|_| -> Offer { Arc::new(()) }).collect(),
                last_offers: (0..warps).map(|_| -> Arc<[Offer]> { Arc::new([]) }).collect(),
                arrays: Vec::new(),
                failure: None,
            }),
            wake: (0..warps).map(|_| WaitCondition::new()).collect(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, BlockState> {
        // No code panics with the lock held while the state is inconsistent.
        self.state.lock()
    }

    /// Waits for the threads of `scope`, and returns their offers, in the order of the threads.
    pub(super) fn rendezvous(
        &self,
        thread: usize,
        scope: BarrierScope,
        operation: &'static str,
        place: &'static Location<'static>,
        offer: Offer,
    ) -> Arc<[Offer]> {
        let mut state = self.lock();
        let (all, warp) = (state.threads.len(), thread / LANES);
        let members = match scope {
            BarrierScope::Block => 0..all,
            BarrierScope::Warp => warp * LANES..(warp + 1) * LANES,
        };
        if members.end > all {
            drop(state);
            panic!("{operation} needs whole warps, but the block has {all} threads: make it a multiple of {LANES}");
        }
        if state.failure.is_some() {
            drop(state);
            std::panic::resume_unwind(Box::new(Canceled));
        }

        let meeting = BarrierWait { scope, operation, place };
        state.offers[thread] = offer;
        state.threads[thread] = Status::Waiting(meeting);
        state.running -= 1;
        if state.threads[members.clone()].iter().all(|t| *t == Status::Waiting(meeting)) {
            self.take_place(&mut state, members);
        } else {
            self.fail_if_stuck(&mut state);
        }
        while state.failure.is_none() && state.threads[thread] != Status::Running {
            state = self.wake[warp].wait(state);
        }
        if state.threads[thread] != Status::Running {
            drop(state);
            std::panic::resume_unwind(Box::new(Canceled));
        }
        state.last_offers[warp].clone()
    }

    fn take_place(&self, state: &mut BlockState, members: Range<usize>) {
        let warps = members.start / LANES..members.end.div_ceil(LANES);
        let offers: Arc<[Offer]> = state.offers[members.clone()].into();
        state.last_offers[warps.clone()].fill(offers);
        state.running += members.len();
        state.threads[members].fill(Status::Running);
        self.wake[warps].iter().for_each(WaitCondition::notify_all);
    }

    /// Records that the thread has left the kernel.
    pub(super) fn end(&self, thread: usize) {
        let mut state = self.lock();
        if state.threads[thread] == Status::Running {
            state.running -= 1;
        }
        state.threads[thread] = Status::Ended;
        self.fail_if_stuck(&mut state);
    }

    /// Fails the block if some threads wait and no running thread could end their waiting.
    fn fail_if_stuck(&self, state: &mut BlockState) {
        if state.running > 0 || state.failure.is_some() {
            return;
        }
        let waiting = |(i, t): (usize, &Status)| match t {
            Status::Waiting(m) => Some((i, *m)),
            _ => None,
        };
        let Some((first, meeting)) = state.threads.iter().enumerate().find_map(waiting) else { return };
        let members = match meeting.scope {
            BarrierScope::Block => 0..state.threads.len(),
            BarrierScope::Warp => first / LANES * LANES..(first / LANES + 1) * LANES,
        };
        let (other, status) = members
            .map(|i| (i, state.threads[i]))
            .find(|(_, t)| *t != Status::Waiting(meeting))
            .expect("a thread of the scope does not wait");
        let whom = match meeting.scope {
            BarrierScope::Block => "all threads of the block",
            BarrierScope::Warp => "all lanes of the warp",
        };
        let message = format!(
            "threads diverge before {}: {whom} must reach the same call. \
             Thread {first} waits at {meeting}; thread {other} {}",
            meeting.operation,
            match status {
                Status::Waiting(m) => format!("waits at {m}"),
                Status::Ended | Status::Running => "has left the kernel".to_string(),
            }
        );
        self.fail_in(state, BlockFailure { thread: None, message });
    }

    /// Fails the block, unless it has failed already: all threads that wait unwind.
    pub(super) fn fail(&self, failure: BlockFailure) {
        self.fail_in(&mut self.lock(), failure);
    }

    fn fail_in(&self, state: &mut BlockState, failure: BlockFailure) {
        state.failure.get_or_insert(failure);
        self.wake.iter().for_each(WaitCondition::notify_all);
    }

    /// Returns the block's failure, if it failed.
    pub(super) fn failure(&self) -> Option<BlockFailure> {
        self.lock().failure.clone()
    }

    /// Returns the array that belongs to the `call`-th constructor call of each thread; the first
    /// thread allocates it. Every element starts as all ones, a NaN for floats, so that a read
    /// before a write shows.
    pub(super) fn shared_array<T: DeviceCopy>(
        &self,
        call: usize,
        place: &'static Location<'static>,
        shape: Vec<usize>,
        elements: usize,
    ) -> NonNull<T> {
        let mut state = self.lock();
        if call == state.arrays.len() {
            const { assert!(align_of::<T>() <= align_of::<Piece>()) }
            let pieces = (elements * size_of::<T>()).div_ceil(size_of::<Piece>());
            let memory: Box<[Piece]> =
                (0..pieces).map(|_| Piece(UnsafeCell::new([MaybeUninit::uninit(); 16]))).collect();
            let first = NonNull::from(&*memory).cast::<T>();
            for i in 0..elements {
                // SAFETY: the pieces have room and alignment for all elements, and no other thread
                // has access to them yet.
                unsafe { first.add(i).write(T::undefined()) }
            }
            state.arrays.push(MonitoredArray { shape: shape.clone(), place, element: TypeId::of::<T>(), memory });
        }
        let array = &state.arrays[call];
        match array.element == TypeId::of::<T>() {
            true if array.shape == shape && array.place == place => {
                // An array without pieces has an address too.
                NonNull::from(&*array.memory).cast::<T>()
            }
            _ => {
                let message = format!(
                    "threads of a block must create the same shared arrays in the same order: one creates an array of \
                     {} at {place}, where another created one of {} at {}",
                    IndexShape(&shape),
                    IndexShape(&array.shape),
                    array.place
                );
                drop(state);
                panic!("{message}")
            }
        }
    }
}

impl fmt::Display for BarrierWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in {}", self.operation, self.place)
    }
}
