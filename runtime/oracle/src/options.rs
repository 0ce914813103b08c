//! A launch of a program: its arguments, its options and its outcome.

use crate::check::CheckSet;
use crate::report::{Report, Verdict};
use kernel_dsl_compiler::Scalar;
use runtime_simt::{ArgumentBytes, ByteRanges, Schedule, Statistics};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A launch.
#[derive(Debug)]
pub struct Launch<'m> {
    /// Blocks in x, y, z. If one is 0, nothing runs.
    pub grid: [u32; 3],
    /// Threads of a block in x, y, z. `None` selects the kernel's declared block size, if it
    /// declares a single one.
    pub block: Option<[u32; 3]>,
    /// The arguments of the kernel, in the order of its Rust signature.
    pub arguments: Vec<Binding<'m>>,
    /// Options of the run.
    pub options: Options,
}

/// An argument of the kernel.
#[derive(Debug)]
pub enum Binding<'m> {
    /// A scalar's bits, zero-extended.
    Scalar(u64),
    /// A slice or view.
    Memory {
        /// The bytes of all elements that the slice or view spans, from the first.
        bytes: ArgumentBytes<'m>,
        /// Elements in each dimension, outermost first; one for a slice.
        extents: Vec<u32>,
        /// The distance in elements between consecutive indices of each dimension. The last may be
        /// omitted: it is 1.
        strides: Vec<u32>,
    },
}

/// Options of a run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The active checks.
    pub checks: Checks,
    /// The limit of warp instructions in a block: a loop that exceeds it is reported as endless. A
    /// launch of several blocks may run more.
    pub fuel: u64,
    /// The time at which a launch that still runs is reported as endless.
    pub deadline: Option<Deadline>,
    /// The time limit of each run, if there is no deadline. A second run for an analysis has the
    /// same limit.
    pub time_limit: Option<Duration>,
    /// The request of another thread to stop the launch.
    pub interrupt: Option<Interrupt>,
    /// The number of completed blocks, for a display of the progress. The number restarts at 0 if
    /// the launch runs again, on one thread or for a second analysis.
    pub ended: Option<Arc<AtomicU64>>,
    /// The number of errors that ends a run: 1 stops at the first. Warnings and notes do not count.
    pub limit: usize,
    /// The order in which blocks and warps run.
    pub schedule: Schedule,
    /// Whether all blocks are resident at once, as in a cooperative launch, so that a block may
    /// wait for a later one. By default blocks run one after another, until a block waits for a
    /// later one. In a launch of up to 16 blocks, the blocks are resident from then on. In a larger
    /// launch, the wait is reported; [`Schedule::Preempted`] keeps 16 blocks resident.
    pub cooperative: bool,
    /// Checks that report nothing. The accesses that violate these checks are still suppressed.
    /// Checks that end a launch ([`Check::ends_launch`](crate::Check::ends_launch)) report in any
    /// case.
    pub without: CheckSet,
    /// The maximum number of CPU threads that run blocks; `None` is the number of cores. Results
    /// and reports do not depend on it, unless blocks race and races are not checked.
    pub threads: Option<NonZeroUsize>,
    /// The byte that fills shared memory, variables and uninitialized buffers until the first
    /// store. With 0xff, floats are NaNs.
    pub fill: u8,
    /// Arguments, by index, whose memory is uninitialized at launch: loads of elements that no
    /// thread has stored are reported.
    pub uninitialized: Vec<usize>,
    /// Byte ranges of arguments that are uninitialized at launch, counted from the first byte of
    /// the argument.
    pub uninit: Vec<(usize, ByteRanges)>,
    /// The limit of shadow memory for [`Checks::All`], in bytes. A launch that needs more is
    /// rejected with [`LaunchFailure::TooLarge`](crate::LaunchFailure::TooLarge). Each touched
    /// element of writable memory takes:
    ///
    /// - 24 bytes;
    /// - 24 more in a kernel with atomic operations;
    /// - 24 more in a kernel with fences, for each warp beyond the second that loads the element.
    ///
    /// Copies of writable buffers are not counted. There is one copy for each thread that runs
    /// blocks, and one more if a second run may trace NaNs, undefined values or lost digits. A
    /// second run keeps at most one record for each value of a block's threads and one for each
    /// element that the launch stores.
    pub shadow: usize,
    /// The relative error from which [`Check::Cancellation`](crate::Check::Cancellation) reports
    /// canceled digits, such as `Some(1e-3)`. The check runs the launch a second time.
    pub cancellation: Option<f64>,
    /// Whether the checks of [`Severity::Note`](crate::Severity::Note) report. Notes are about
    /// correct code that does redundant work or may be unintended.
    pub notes: bool,
}

/// The time limit of a launch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Deadline {
    at: Instant,
    pub(crate) limit: Duration,
}

impl Deadline {
    /// Returns the deadline `limit` from now.
    pub fn after(limit: Duration) -> Deadline {
        // A time that is not representable is effectively never.
        let now = Instant::now();
        Deadline { at: now.checked_add(limit).unwrap_or(now + Duration::from_secs(u32::MAX.into())), limit }
    }

    /// Returns whether the deadline has passed.
    pub(crate) fn is_over(&self) -> bool {
        Instant::now() >= self.at
    }
}

/// Requests to stop launches, by any thread.
#[derive(Clone, Default, Debug)]
pub struct Interrupts(Arc<AtomicU64>);

impl Interrupts {
    /// Stops the launches whose options have an interrupt that was made before.
    pub fn stop(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the interrupt of a launch that begins now.
    pub fn begin(&self) -> Interrupt {
        Interrupt { requests: self.clone(), before: self.0.load(Ordering::Relaxed) }
    }
}

/// The interrupt of one launch: a later [`Interrupts::stop`] stops the launch.
#[derive(Clone, Debug)]
pub struct Interrupt {
    requests: Interrupts,
    /// The number of requests before the launch.
    before: u64,
}

impl Interrupt {
    fn is_requested(&self) -> bool {
        self.requests.0.load(Ordering::Relaxed) != self.before
    }
}

impl Options {
    /// Counts a block that has ended.
    pub(crate) fn count_block(&self) {
        if let Some(ended) = &self.ended {
            ended.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Begins the count of blocks again.
    pub(crate) fn recount_blocks(&self) {
        if let Some(ended) = &self.ended {
            ended.store(0, Ordering::Relaxed);
        }
    }

    /// Returns whether another thread has stopped the launch.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.interrupt.as_ref().is_some_and(Interrupt::is_requested)
    }

    /// Returns whether the launch has exceeded its deadline, or is interrupted.
    pub(crate) fn is_late(&self) -> bool {
        self.is_interrupted() || self.deadline.is_some_and(|deadline| deadline.is_over())
    }

    /// Returns the number of instructions that a warp may run before the clock is read again.
    pub(crate) fn instructions_to_clock(&self) -> u64 {
        match (self.deadline, &self.interrupt) {
            (None, None) => u64::MAX,
            _ if self.is_late() => 0,
            _ => 1 << 16,
        }
    }

    /// Returns the uninitialized bytes of an argument.
    pub(crate) fn uninit_of(&self, argument: usize, bytes: usize) -> ByteRanges {
        if self.checks < Checks::All {
            return ByteRanges::default();
        }
        let some = self.uninit.iter().find(|(index, _)| *index == argument);
        match self.uninitialized.contains(&argument) {
            true => ByteRanges::whole(bytes as u64),
            false => some.map(|(_, ranges)| ranges.clone()).unwrap_or_default(),
        }
    }

    /// Returns the bits of a scalar in memory that was never stored.
    pub(crate) fn filled(&self, ty: Scalar) -> u64 {
        u64::from_ne_bytes([self.fill; 8]) & ty.mask()
    }
}

/// The extent of the checks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Checks {
    /// Only the termination of loops: values are computed, and accesses outside buffers are
    /// suppressed silently.
    Values,
    /// All checks except those that need shadow memory (races, store conflicts, uninitialized
    /// shared memory).
    Accesses,
    /// All checks.
    All,
}

impl Default for Options {
    /// Returns the defaults: every check, 2³⁰ warp instructions a block (about a minute), 64
    /// errors, blocks and warps in order, and 4 GiB of shadow memory. Uninitialized memory is zero.
    fn default() -> Options {
        Options {
            checks: Checks::All,
            fuel: 1 << 30,
            deadline: None,
            time_limit: None,
            interrupt: None,
            ended: None,
            limit: 64,
            schedule: Schedule::InOrder,
            cooperative: false,
            without: CheckSet::default(),
            threads: None,
            fill: 0,
            uninitialized: Vec::new(),
            uninit: Vec::new(),
            shadow: 4 << 30,
            cancellation: None,
            notes: false,
        }
    }
}

/// The outcome of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    /// Counts of executed operations.
    pub statistics: Statistics,
    /// The findings: errors and warnings, and notes if [`Options::notes`] is set.
    pub report: Report,
    /// The number of points at which a warp could be preempted: executions of atomic operations and
    /// fences.
    pub points: u64,
    /// The bytes that are still uninitialized, by argument.
    pub uninit: Vec<(usize, ByteRanges)>,
    /// The lines that `log!` printed; at most the last MiB.
    pub printed: Vec<u8>,
}

impl Outcome {
    /// Returns the outcome.
    ///
    /// # Errors
    /// Returns the report if it contains an error.
    pub fn result(self) -> Result<Outcome, Box<Report>> {
        match self.report.verdict() {
            Verdict::Pass => Ok(self),
            Verdict::Fail | Verdict::Unsupported => Err(Box::new(self.report)),
        }
    }
}
