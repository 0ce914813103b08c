//! The queue of submitted work that is not complete yet.
//!
//! All streams of the process share one queue, which runs one operation at a time in submission
//! order. Streams, events and the legacy stream allow this order, because an operation waits only
//! for earlier submissions. For the same reason, a missing wait for an event goes undetected.
//!
//! A worker thread runs the operations of the queue. A waiting thread runs them too instead of
//! sleeping. A launch followed directly by a wait thus costs no thread switch.

use super::context::Context;
use super::error::{Error, Result};
use super::findings::ProcessFindings;
use super::log::CallLog;
use super::work::{KernelLimits, StreamWork};
use cudarc::driver::sys::CUresult;
use runtime_simt::{Lock, WaitCondition};
use std::cell::Cell;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, MutexGuard};

/// The queue and its worker thread.
#[derive(Debug)]
pub struct Engine {
    state: Lock<EngineState>,
    /// Signaled when an operation is submitted.
    work: WaitCondition,
    /// Signaled after each completed operation.
    progress: WaitCondition,
    limits: KernelLimits,
    log: Arc<CallLog>,
    findings: Arc<ProcessFindings>,
}

/// The number of a submitted operation. The operation and all earlier ones are complete when the
/// number of completed operations reaches the ticket.
pub type Ticket = u64;

/// The queue, and the tickets of the last submitted and the last completed operation.
#[derive(Debug, Default)]
struct EngineState {
    queue: VecDeque<(Arc<Context>, StreamWork)>,
    submitted: Ticket,
    done: Ticket,
    /// Whether an operation is running.
    running: bool,
    has_worker: bool,
    /// The number of threads that wait for `progress`.
    waiting: usize,
    /// Whether the worker waits for `work`.
    idle: bool,
}

thread_local! {
    static IN_HOST_FUNCTION: Cell<bool> = const { Cell::new(false) };
}

/// Returns whether this thread is running a host function of a stream, which may not call the
/// driver.
pub fn in_host_function() -> bool {
    IN_HOST_FUNCTION.with(Cell::get)
}

/// Runs a host function of a stream, and marks this thread during the call.
pub fn as_host_function(call: impl FnOnce()) {
    IN_HOST_FUNCTION.with(|flag| {
        // The end of a user object may be inside the function.
        let outer = flag.replace(true);
        call();
        flag.set(outer);
    });
}

impl Engine {
    /// Creates an engine with an empty queue.
    pub fn new(limits: KernelLimits, log: Arc<CallLog>, findings: Arc<ProcessFindings>) -> Engine {
        Engine {
            state: Lock::default(),
            work: WaitCondition::new(),
            progress: WaitCondition::new(),
            limits,
            log,
            findings,
        }
    }

    /// Submits an operation.
    pub fn submit(self: &Arc<Engine>, context: Arc<Context>, work: StreamWork) -> Result<Ticket> {
        let mut state = self.state.lock();
        if !state.has_worker {
            let engine = self.clone();
            let worker = std::thread::Builder::new().name("cuda-on-cpu".to_string());
            if let Err(e) = worker.spawn(move || engine.serve()) {
                let why = format!("no thread can be started: {e}");
                return Err(Error::new(CUresult::CUDA_ERROR_OPERATING_SYSTEM, why));
            }
            state.has_worker = true;
        }
        state.queue.push_back((context, work));
        state.submitted += 1;
        if state.idle {
            self.work.notify_one();
        }
        Ok(state.submitted)
    }

    /// Returns the ticket of the last submitted operation.
    pub fn last(&self) -> Ticket {
        self.state.lock().submitted
    }

    /// Returns whether the operation of this ticket is complete.
    pub fn is_done(&self, ticket: Ticket) -> bool {
        self.state.lock().done >= ticket
    }

    /// Waits until the operation of this ticket is complete.
    pub fn wait(&self, ticket: Ticket) {
        let mut state = self.state.lock();
        while state.done < ticket {
            if !state.running && !state.queue.is_empty() {
                state = self.step(state);
            } else {
                state.waiting += 1;
                state = self.progress.wait(state);
                state.waiting -= 1;
            }
        }
    }

    /// Runs operations forever, as the worker thread.
    fn serve(&self) {
        let mut state = self.state.lock();
        loop {
            if !state.running && !state.queue.is_empty() {
                state = self.step(state);
            } else {
                state.idle = true;
                state = self.work.wait(state);
                state.idle = false;
            }
        }
    }

    /// Runs the first operation of the queue.
    fn step<'e>(&'e self, mut state: MutexGuard<'e, EngineState>) -> MutexGuard<'e, EngineState> {
        let Some((context, work)) = state.queue.pop_front() else { return state };
        state.running = true;
        drop(state);
        self.perform(&context, work);
        drop(context);
        let mut state = self.state.lock();
        state.running = false;
        state.done += 1;
        if state.waiting > 0 {
            self.progress.notify_all();
        }
        if state.idle && !state.queue.is_empty() {
            self.work.notify_one();
        }
        state
    }

    fn perform(&self, context: &Arc<Context>, work: StreamWork) {
        // A failed context runs no more work, but its events are still recorded.
        if context.failure().is_some() && !matches!(work, StreamWork::Record(..)) {
            return;
        }
        let done = catch_unwind(AssertUnwindSafe(|| work.run(context, &self.limits, (&self.log, &self.findings))));
        let error = match done {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error,
            Err(_) => Error::new(CUresult::CUDA_ERROR_UNKNOWN, "internal error of this library"),
        };
        self.log.refused("in the stream", &error);
        context.fail(error);
    }
}
