//! The time of a step's graph, and of each of its kernels alone.
//!
//! The graph is replayed without a pause, so its time contains no time of the host. A kernel is
//! timed in a graph of all its launches in the step, without other kernels. Each launch reads the
//! weights and keys of another layer, which are not in the L2 cache. A kernel with few launches is
//! repeated. If kernels ran one after another without a pause, a step would take the sum of their
//! times. On several devices the graphs run one after another. The copies between these graphs are
//! part of the time of the step, but of no kernel.
//!
//! A graph orders launches by the memory that they use. In the graph of one kernel, independent
//! launches may run side by side, so that the sum is less than the time of the step. One example is
//! the language model of Qwen3-VL-2B in bf16 on an H100. The graph takes 1.11 times the sum for one
//! sequence (203 launches), and 1.26 times for eight. On the same GPU, chains of kernels that read
//! 16 MB each show the cost of a launch:
//!
//! | property of a chain | µs a launch |
//! |---|---|
//! | an empty kernel | 0.88 |
//! | other kernels, of 4 to 32 KB of code, in between | 0.1 to 0.3 more |
//! | a vector of 8 to 32 KB from the previous kernel | 0.0 to 0.14 more |
//! | kernels with different shared memory or block sizes | 0.02 more |
//! | redundant edges in the graph | at most 0.04 more |
//!
//! These costs explain a third of the difference between step and sum for one sequence. In the
//! rest, memory is idle: a launch waits until the previous one has ended. The launches of the
//! kernel `heads` take 83 µs alone, but a graph without `heads` takes 274 µs less. The launches
//! around `heads` then run side by side.
//!
//! The following designs to reduce the idle time of memory were measured, and are not used. Each
//! figure is one run with one sequence:
//!
//! | design | tokens per second |
//! |---|---|
//! | none of them | 526 |
//! | a kernel beside `heads` and attention reads 8 MB of the next matrices into L2 | 509 |
//! | the same with 16 or 24 MB | 510, 487 |
//! | with 16 MB, and 8 MB of the next layer's projection beside the last product | 506 |
//! | the same, and 8 MB of the last product's matrix beside gate and up | 476 |
//! | `gemv_normed` loads weights before the sums of the norm, and each chunk an iteration ahead | 511 |
//! | the latter, and 8 or 16 MB read beside `heads` and attention | 493, 499 |
//!
//! Figures within about 3 % of each other are not different. With weights loaded ahead, the product
//! with gate and up takes 19.9 µs a layer instead of 16.7.
//!
//! Two further designs, prefetches and a cooperative kernel, were measured in CUDA C on an H200 (a
//! copy moves 4.2 TB/s). The programs read the weights of the same model in bf16, and attention has
//! few keys. Each row is the median time of a replayed graph. *Of a copy* is the rate of reads
//! divided by that of a copy:
//!
//! | design | µs a step | of a copy |
//! |---|---|---|
//! | a chain of 6 kernels a layer | 1351 | 0.61 |
//! | `prefetch.global.L2` of 4, 8, 16 MB of gate and up in more blocks of `heads` | 1332, 1348, 1387 | 0.61, 0.61, 0.59 |
//! | each product prefetches 2, 4, 8 MB of the next matrix when it ends | 1342, 1348, 1372 | 0.61, 0.61, 0.60 |
//! | each product prefetches 2, 4, 8 MB of the next matrix when it begins | 1336, 1346, 1392 | 0.61, 0.61, 0.59 |
//! | one cooperative kernel with 5 barriers a layer, 132 blocks of 1024 threads | 1375 | 0.60 |
//! | the same, and each lane loads 64 bytes of the next matrix before each barrier | 1363 | 0.61 |
//! | the latter in 264 blocks of 512 threads | 1289 | 0.64 |
//! | the latter without attention | 1179 | 0.70 |
//!
//! So reading ahead while memory is idle gains little: with a part of the next matrix in L2,
//! products take as long. Each product takes 2 to 3 µs longer than reading its weights, for its
//! vector, its first weights, and its sums. Barriers of the whole grid cost as much as launches.

use super::attention::TokenPlace;
use super::cache::{CacheElement, SequencePages};
use super::model::Model;
use super::session::SessionOptions;
use super::stage::StageStreams;
use super::step_graph::{RecordingOptions, StepGraphs, StepRow};
use crate::memory::CacheFormat;
use kernel_dsl::compiler::hir::Constant;
use kernel_dsl::half::f16;
use kernel_dsl::{Argument, Artifact, Element, LaunchForm, Launcher};
use kernels_rs::{Queue, QueueMemory, SharedBuffer};
use runtime::{BufferView, Device, DeviceBuffer, Error, Recording};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

/// A step whose kernels are timed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimedStep {
    /// The next token of each of several sequences.
    Decode {
        /// The number of sequences, 1 to [`Batch::MAX_SEQUENCES`](super::Batch::MAX_SEQUENCES).
        sequences: usize,
        /// The number of tokens of each sequence before the step.
        before: usize,
    },
    /// Consecutive tokens of a prompt.
    Prompt {
        /// The number of tokens.
        tokens: usize,
        /// The number of tokens of the sequence before the step.
        before: usize,
    },
}

/// The time of all launches of a kernel instance in a step.
#[derive(Clone, PartialEq, Debug)]
pub struct InstanceTime {
    /// The name of the kernel, with its constants.
    pub instance: String,
    /// The number of launches in a step, on all devices.
    pub launches: usize,
    /// The seconds of all these launches, without other kernels.
    pub seconds: f64,
}

/// The times of a step on the device.
#[derive(Clone, PartialEq, Debug)]
pub struct StepTimes {
    /// The seconds of a replay of the step, without waiting for the host.
    pub graph: f64,
    /// The kernels, timed alone, in descending order of time.
    pub kernels: Vec<InstanceTime>,
}

impl StepTimes {
    /// Returns the sum of the seconds of all kernels, each timed alone.
    pub fn alone(&self) -> f64 {
        self.kernels.iter().map(|kernel| kernel.seconds).sum()
    }
}

/// The number of launches of each kernel instance in a recording.
pub(super) type Launches = RefCell<BTreeMap<String, usize>>;

/// A queue that records the launches of one kernel instance, or of all, and counts all launches.
pub(super) struct FilteredRecording<'r> {
    pub recording: &'r Recording<'static>,
    /// The name of the selected instance; `None` selects all.
    pub instance: Option<&'r str>,
    /// The number of times that each selected launch is recorded.
    pub repeats: usize,
    pub launches: &'r Launches,
}

impl Launcher for FilteredRecording<'_> {
    type Error = Error;

    unsafe fn submit(
        &self,
        form: LaunchForm,
        kernel: &'static Artifact,
        constants: &[Constant],
        block: Option<usize>,
        arguments: &[Argument<'_>],
    ) -> Result<(), Error> {
        let name = kernel.instance_name(constants);
        let is_selected = self.instance.is_none_or(|instance| instance == name);
        *self.launches.borrow_mut().entry(name).or_default() += 1;
        let count = if is_selected { self.repeats } else { 0 };
        // SAFETY: `submit` of the recording has the same requirements, which the caller meets.
        (0..count).try_for_each(|_| unsafe { self.recording.submit(form, kernel, constants, block, arguments) })
    }
}

impl Queue for FilteredRecording<'_> {
    fn device(&self) -> &Device {
        self.recording.device()
    }

    fn reading<T: Element, const R: usize>(
        &self,
        view: &BufferView<'_, T, R>,
        launch: impl FnOnce() -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.recording.reading(view, launch)
    }

    fn keep<T: Element>(&self, buffer: DeviceBuffer<T>) -> Result<QueueMemory<T>, Error> {
        self.recording.keep(buffer)
    }

    fn share<T: Element>(&self, buffer: &Arc<DeviceBuffer<T>>) -> Result<SharedBuffer<T>, Error> {
        Queue::share(self.recording, buffer)
    }
}

/// The least number of launches in a graph. The start of a graph takes some microseconds, which
/// would dominate the time of few launches.
const MIN_LAUNCHES: usize = 16;

/// The seconds for which a graph is replayed to measure its time, with 3 to 500 replays.
const REPLAY_SECONDS: f64 = 0.03;

/// Returns the seconds of one replay of a step: of all stages, or only of `stage`. The first replay
/// computes `step_tokens`. Each replay of a decoding step appends a token to each sequence, so
/// there are at most `limit` replays.
fn seconds_per_replay<K: CacheElement>(
    step: &mut StepGraphs<K>,
    streams: &StageStreams,
    stage: Option<usize>,
    (step_tokens, pages): (&[StepRow], &SequencePages),
    limit: usize,
) -> crate::Result<f64> {
    let mut seconds = |count: usize| {
        step.set_step_tokens(step_tokens, pages)?;
        let start = Instant::now();
        for _ in 0..count {
            match stage {
                None => step.replay_again(streams)?,
                Some(stage) => step.replay_stage(streams, stage)?,
            }
        }
        streams.wait()?;
        Ok::<f64, crate::Error>(start.elapsed().as_secs_f64() / count as f64)
    };
    seconds(1)?;
    let once = seconds(1)?;
    seconds((REPLAY_SECONDS / once).clamp(3.0, 500.0).min(limit as f64).max(1.0) as usize)
}

/// Measures the times of a step with a cache of elements `K`.
fn time_step<K: CacheElement>(model: &Model, options: SessionOptions, step: TimedStep) -> crate::Result<StepTimes> {
    let (width, sequences, before) = match step {
        TimedStep::Decode { sequences, before } => (sequences, sequences, before),
        TimedStep::Prompt { tokens, before } => (tokens, 1, before),
    };
    let is_prompt = matches!(step, TimedStep::Prompt { .. });
    let pages = SequencePages::new(sequences, options.context_size, options.page);
    let streams = StageStreams::new(model)?;
    let launches = Launches::default();
    let row = |i: usize| {
        let (sequence, tokens) = if is_prompt { (0, before + i) } else { (i, before) };
        StepRow { token: i as u32, place: TokenPlace { sequence, index: tokens }, position: tokens }
    };
    let step_tokens: Vec<StepRow> = (0..width).map(row).collect();
    let recording = RecordingOptions { width, before: is_prompt.then_some(before), instance: None, repeats: 1 };
    let mut caches = StepGraphs::<K>::caches(model, &pages)?;
    let mut first = StepGraphs::record(model, options.exact, caches, &pages, recording, &launches)?;
    let graph = seconds_per_replay(
        &mut first,
        &streams,
        None,
        (&step_tokens, &pages),
        options.context_size.saturating_sub(before + 1),
    )?;
    caches = first.take_caches()?;
    drop(first);
    let mut kernels = Vec::new();
    for (instance, launches) in launches.take() {
        let repeats = MIN_LAUNCHES.div_ceil(launches);
        let recording = RecordingOptions { instance: Some(&instance), repeats, ..recording };
        let mut alone = StepGraphs::record(model, options.exact, caches, &pages, recording, &Launches::default())?;
        let mut seconds = 0.0;
        for stage in 0..model.stages.len() {
            seconds += seconds_per_replay(&mut alone, &streams, Some(stage), (&step_tokens, &pages), usize::MAX)?;
        }
        caches = alone.take_caches()?;
        kernels.push(InstanceTime { instance, launches, seconds: seconds / repeats as f64 });
    }
    kernels.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    Ok(StepTimes { graph, kernels })
}

impl Model {
    /// Measures the time of a step's graph, and of each of its kernels alone.
    ///
    /// A step that exceeds the context size of `options` is timed with the keys that fit, except a
    /// prompt of more than 16 tokens.
    ///
    /// # Errors
    /// If a prompt of more than 16 tokens exceeds the context size, or a prompt has no tokens. Also
    /// if a sequence would have 2³² − 1 tokens or more, or memory runs out. Also returns the errors
    /// of [`batch`](Model::batch).
    pub fn step_times(&self, options: SessionOptions, step: TimedStep) -> crate::Result<StepTimes> {
        let (sequences, width, before) = match step {
            TimedStep::Decode { sequences, before } => (sequences, sequences, before),
            TimedStep::Prompt { tokens, before } => (1, tokens, before),
        };
        options.check(sequences)?;
        if width == 0 || before.checked_add(width).is_none_or(|tokens| tokens >= u32::MAX as usize) {
            let problem = format!("expected 1 to 2³² − 2 tokens, found {width} after {before}");
            return Err(crate::Error::Tokens { action: "time a step", problem });
        }
        match options.cache {
            CacheFormat::F32 => time_step::<f32>(self, options, step),
            CacheFormat::F16 => time_step::<f16>(self, options, step),
            CacheFormat::Q8_0 => time_step::<i8>(self, options, step),
        }
    }
}
