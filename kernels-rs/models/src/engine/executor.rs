//! The work of devices for the sequences of a batch: prompts and decoding steps.
//!
//! A step passes rows through the model. The rows are the next tokens of several sequences, or the
//! next token of one sequence and its drafts. There is a recorded graph for each width: 1, 2, 4, ….
//! A step replays the narrowest graph that has enough rows. The remaining rows of the graph are
//! padding, which reads and stores no keys. Each buffer of the cache has one owner, so the caches
//! move to the graph that is replayed next.
//!
//! Prompts run without graphs, in chunks. With several devices, the chunks of a prompt overlap:
//!
//! ```text
//!   device 0   chunk 0 │ chunk 1 │ chunk 2 │
//!   device 1           │ chunk 0 │ chunk 1 │ chunk 2
//! ```

use super::attention::{DevicePlaces, TokenPlace};
use super::cache::{CacheElement, SequencePages};
use super::layer_cache::{BorrowedCaches, CacheExtents, StageCaches};
use super::linear::MAX_FIXED_ORDER_ROWS;
use super::model::{ImageTokens, Model, StepMemory};
use super::sampling::Sampler;
use super::session::SessionOptions;
use super::stage::{PipelineStage, RotaryTables, StageStreams};
use super::step_graph::{RecordingOptions, StepGraphs, StepRow, consecutive};
use super::timing::Launches;
use super::vision::ImageFeatures;
use crate::error::{Error, Result};
use crate::image::PreparedImage;
use kernels_rs::QueueMemory;
use kernels_rs::blocks::cache::Tokens;
use kernels_rs::rowwise::CrossEntropy;
use kernels_rs::sampling::Sample;
use runtime::{BufferViewMut, DeviceBuffer, Event, Stream};
use std::collections::VecDeque;

/// Consecutive tokens of a sequence that pass the model together.
#[derive(Debug)]
pub struct SequenceSection<'a> {
    /// The tokens.
    pub tokens: &'a [u32],
    /// The positions of the tokens on one axis; with images, on three axes one after another.
    pub positions: Vec<u32>,
    /// The images with tokens in the section.
    pub images: Vec<ImageTokens>,
    /// The place of the first token.
    pub start: TokenPlace,
}

impl SequenceSection<'_> {
    /// Returns a section of a sequence that has no images.
    pub fn without_images(tokens: &[u32], start: TokenPlace) -> SequenceSection<'_> {
        let positions = (start.index..start.index + tokens.len()).map(|i| i as u32).collect();
        SequenceSection { tokens, positions, images: Vec::new(), start }
    }
}

/// The place of logits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LogitsPlace {
    /// The logits after the last chunk of a prompt.
    Prompt,
    /// The logits after a row of the last step.
    Row(usize),
}

/// The work of devices for a batch. An implementation exists for each format of the cache.
pub trait BatchExecutor: Send {
    /// Returns the features of an image.
    fn features(&mut self, model: &Model, picture: &PreparedImage) -> Result<ImageFeatures>;
    /// Queues the model for a section. The logits after the last token become
    /// [`LogitsPlace::Prompt`]. When a call returns, as many calls as there are stages may still
    /// run: each device can compute another chunk of a prompt.
    fn append(&mut self, model: &Model, section: &SequenceSection<'_>, pages: &SequencePages) -> Result<()>;
    /// Waits for all work, and reports its failures.
    fn wait(&mut self) -> Result<()>;
    /// Runs the model for a section, and returns the loss after each token: −ln of the probability
    /// of the label. A label beyond the vocabulary has the loss 0.
    fn losses(
        &mut self,
        model: &Model,
        section: &SequenceSection<'_>,
        labels: &[u32],
        pages: &SequencePages,
    ) -> Result<Vec<f32>>;
    /// Runs the model for a section, and returns the likeliest next token after each token.
    fn likeliest(&mut self, model: &Model, section: &SequenceSection<'_>, pages: &SequencePages) -> Result<Vec<u32>>;
    /// Queues a step for rows. The logits after row i become [`LogitsPlace::Row`]`(i)`.
    fn step(&mut self, step_tokens: &[StepRow], pages: &SequencePages) -> Result<()>;
    /// Draws a token from the logits at a place, and returns the token.
    fn draw(&mut self, place: LogitsPlace, sampler: &mut Sampler) -> Result<u32>;
    /// Returns the logits at a place, one for each token of the vocabulary.
    fn logits(&self, place: LogitsPlace) -> Result<Vec<f32>>;
}

/// The maximum number of tokens whose logits are in memory at once, to limit that memory.
pub const MAX_LOGITS_ROWS: usize = 128;

impl SessionOptions {
    /// Returns the number of tokens of a prompt that pass the layers at once. With `exact`, at most
    /// the rows for which products add in a fixed order.
    pub(super) fn layer_chunk(&self) -> usize {
        if self.exact { self.chunk_size.min(MAX_FIXED_ORDER_ROWS) } else { self.chunk_size }
    }
}

/// The [`BatchExecutor`] of sequences whose caches have elements of type `K`.
pub struct GraphExecutor<K: kernel_dsl::Element> {
    /// A stream for each stage, on its device.
    streams: StageStreams,
    /// A graph for each width, ascending.
    steps: Vec<StepGraphs<K>>,
    /// The index in `steps` of the graph that has the caches.
    cache_owner: usize,
    options: SessionOptions,
    /// Logits after the last prompt.
    prompt_logits: DeviceBuffer<f32>,
    vocabulary: usize,
    /// The token that was drawn from `prompt_logits`.
    drawn: DeviceBuffer<u32>,
    /// Events at the ends of chunks of prompts that may still run.
    running_chunks: VecDeque<Event>,
}

/// The buffers of a section's [`DevicePlaces`], which describes the fields.
struct SectionPlaces {
    positions: DeviceBuffer<u32>,
    slots: DeviceBuffer<u32>,
    token_indices: DeviceBuffer<u32>,
    lengths: DeviceBuffer<u32>,
    tables: DeviceBuffer<u32>,
    temporary_slots: DeviceBuffer<u32>,
}

impl SectionPlaces {
    /// Uploads the places of a section to the device of a stream.
    fn upload(
        stream: &Stream,
        SequenceSection { tokens, positions, start, .. }: &SequenceSection<'_>,
        pages: &SequencePages,
    ) -> Result<Self> {
        let n = tokens.len();
        let slots: Vec<u32> = (0..n).map(|i| pages.cache_row(start.sequence, start.index + i)).collect();
        Ok(SectionPlaces {
            positions: stream.upload(positions)?,
            slots: stream.upload(&slots)?,
            token_indices: stream.upload(&consecutive(start.index, n))?,
            lengths: stream.upload(&consecutive(start.index + 1, n))?,
            tables: stream.upload(&pages.table(start.sequence).repeat(n))?,
            temporary_slots: stream.upload(&consecutive(0, n))?,
        })
    }

    /// Returns the places for the stage of the device. `before` tokens precede the section.
    fn views<'a>(&'a self, stage: &'a PipelineStage, before: usize) -> Result<DevicePlaces<'a>> {
        let n = self.slots.len().max(1);
        let axes = self.positions.len() / n;
        let RotaryTables { frequencies, axes: pair_axes } = stage.rotary(axes > 1);
        Ok(DevicePlaces {
            rotary_and_slots: Tokens {
                positions: self.positions.view([axes, self.slots.len()])?,
                axes: pair_axes.view([pair_axes.len()])?,
                frequencies: frequencies.view([frequencies.len()])?,
                slots: self.slots.view([self.slots.len()])?,
            },
            token_indices: self.token_indices.view([self.token_indices.len()])?,
            lengths: self.lengths.view([self.lengths.len()])?,
            pages: self.tables.view([self.slots.len(), self.tables.len() / n])?,
            temporary_slots: self.temporary_slots.view([self.temporary_slots.len()])?,
            before: Some(before),
        })
    }
}

/// Queues all stages for a section. `logits`, `[rows, vocabulary]`, are those after each of the
/// last `rows` tokens.
fn queue_stages<K: CacheElement>(
    model: &Model,
    streams: &StageStreams,
    section: &SequenceSection<'_>,
    pages: &SequencePages,
    exact: bool,
    (caches, extents): (&mut StageCaches<K>, CacheExtents),
    logits: &mut BufferViewMut<'_, f32, 2>,
) -> Result<()> {
    let SequenceSection { tokens, images, start, .. } = section;
    let n = tokens.len();
    let context_size = pages.table(start.sequence).len() * pages.extents()[1];
    let mut last: Option<(&Stream, StepMemory)> = None;
    for ((stage, stream), caches) in model.stages.iter().zip(&streams.0).zip(caches) {
        let places = SectionPlaces::upload(stream, section, pages)?;
        let mut memory = StepMemory::new(stream, &model.configuration, n, context_size, exact)?;
        match &mut last {
            None => model.embed(stream, stream.upload(tokens)?.view([n])?, images, &mut memory)?,
            Some((on, before)) => {
                let (from, to) = (before.activations.finished_sum(*on)?, memory.activations.input_memory());
                let (QueueMemory::Buffer(from), QueueMemory::Buffer(to)) = (from, to) else {
                    return Err(Error::field("a stream", "activations", "expected memory of a device"));
                };
                stream.copy(from, to)?;
            }
        }
        let mut cache = BorrowedCaches(caches, extents);
        stage.run(stream, images, &places.views(stage, start.index)?, &mut cache, &mut memory)?;
        last = Some((stream, memory));
    }
    last.map_or(Ok(()), |(stream, mut memory)| model.finish(stream, logits, &mut memory))
}

impl<K: CacheElement> GraphExecutor<K> {
    /// Allocates the caches, and records a graph for each width. The widest graph has a row for
    /// each sequence, and for a token and all its drafts.
    pub fn new(
        model: &Model,
        options: SessionOptions,
        sequences: usize,
        pages: &SequencePages,
    ) -> Result<GraphExecutor<K>> {
        let mut caches = StepGraphs::caches(model, pages)?;
        let mut steps: Vec<StepGraphs<K>> = Vec::new();
        let widest = sequences.max(1 + options.drafts).next_power_of_two();
        for width in (0..).map(|i| 1 << i).take_while(|width| *width <= widest) {
            if let Some(last) = steps.last_mut() {
                caches = last.take_caches()?;
            }
            let recording = RecordingOptions { width, before: None, instance: None, repeats: 1 };
            let caches = std::mem::take(&mut caches);
            steps.push(StepGraphs::record(model, options.exact, caches, pages, recording, &Launches::default())?);
        }
        Ok(GraphExecutor {
            streams: StageStreams::new(model)?,
            cache_owner: steps.len() - 1,
            steps,
            options,
            prompt_logits: model.logits_device().zeros(model.configuration.vocabulary)?,
            vocabulary: model.configuration.vocabulary,
            drawn: model.logits_device().zeros(1)?,
            running_chunks: VecDeque::new(),
        })
    }

    /// Moves the caches to the graph with the index `to`.
    fn move_caches(&mut self, to: usize) -> Result<()> {
        if to != self.cache_owner {
            let caches = self.steps[self.cache_owner].take_caches()?;
            self.steps[to].put_caches(caches)?;
            self.cache_owner = to;
        }
        Ok(())
    }

    /// Queues the model for a section, as [`queue_stages`] does. If work fails, the caches stay
    /// available.
    fn forward(
        &mut self,
        model: &Model,
        section: &SequenceSection<'_>,
        pages: &SequencePages,
        logits: &mut BufferViewMut<'_, f32, 2>,
    ) -> Result<()> {
        let step = &mut self.steps[self.cache_owner];
        let mut caches = step.take_caches()?;
        let run =
            queue_stages(model, &self.streams, section, pages, self.options.exact, (&mut caches, step.extents), logits);
        step.put_caches(caches)?;
        run
    }

    /// Queues the model for a section, and returns the logits after each token,
    /// `[tokens, vocabulary]`.
    fn logits_after_each(
        &mut self,
        model: &Model,
        section: &SequenceSection<'_>,
        pages: &SequencePages,
    ) -> Result<DeviceBuffer<f32>> {
        let n = section.tokens.len();
        let mut logits = model.logits_device().alloc::<f32>(n * self.vocabulary)?;
        self.forward(model, section, pages, &mut logits.view_mut([n, self.vocabulary])?)?;
        Ok(logits)
    }
}

impl<K: CacheElement> BatchExecutor for GraphExecutor<K> {
    fn features(&mut self, model: &Model, picture: &PreparedImage) -> Result<ImageFeatures> {
        let Some(tower) = &model.tower else {
            let problem = "the model has no vision tower";
            return Err(Error::Tokens { action: "see an image", problem: problem.to_owned() });
        };
        let features = tower.run(self.streams.first(), picture)?;
        features.on_devices(|block| {
            let stage = model.stages.iter().rposition(|stage| stage.first_layer <= block);
            &self.streams.0[stage.unwrap_or(0)]
        })
    }

    fn append(&mut self, model: &Model, section: &SequenceSection<'_>, pages: &SequencePages) -> Result<()> {
        let mut logits = std::mem::replace(&mut self.prompt_logits, model.logits_device().zeros(0)?);
        let run = self.forward(model, section, pages, &mut logits.view_mut([1, self.vocabulary])?);
        self.prompt_logits = logits;
        run?;
        self.running_chunks.push_back(self.streams.last().record()?);
        while self.running_chunks.len() > self.streams.0.len() {
            self.running_chunks.pop_front().map_or(Ok(()), |chunk| chunk.wait())?;
        }
        Ok(())
    }

    fn wait(&mut self) -> Result<()> {
        self.running_chunks.clear();
        self.streams.wait()
    }

    fn losses(
        &mut self,
        model: &Model,
        section: &SequenceSection<'_>,
        labels: &[u32],
        pages: &SequencePages,
    ) -> Result<Vec<f32>> {
        let n = section.tokens.len();
        let logits = self.logits_after_each(model, section, pages)?;
        let (device, stream) = (model.logits_device(), self.streams.last());
        let labels = stream.upload(labels)?;
        let (mut losses, mut log_sums) = (device.alloc::<f32>(n)?, device.alloc::<f32>(n)?);
        let (to_losses, to_sums) = (&mut losses.view_mut([n])?, &mut log_sums.view_mut([n])?);
        let logits = logits.view([n, self.vocabulary])?;
        CrossEntropy::new().run(stream, &logits, &labels.view([n])?, to_losses, to_sums)?;
        self.streams.wait()?;
        Ok(losses.download()?)
    }

    fn likeliest(&mut self, model: &Model, section: &SequenceSection<'_>, pages: &SequencePages) -> Result<Vec<u32>> {
        let n = section.tokens.len();
        let logits = self.logits_after_each(model, section, pages)?;
        let mut drawn = model.logits_device().zeros::<u32>(n)?;
        let likeliest = Sample::new(0).temperature(0.0);
        likeliest.run(self.streams.last(), &logits.view([n, self.vocabulary])?, &mut drawn.view_mut([n])?)?;
        self.streams.wait()?;
        Ok(drawn.download()?)
    }

    fn step(&mut self, step_tokens: &[StepRow], pages: &SequencePages) -> Result<()> {
        let wide_enough = self.steps.iter().position(|step| step.width >= step_tokens.len());
        self.move_caches(wide_enough.unwrap_or(self.steps.len() - 1))?;
        self.steps[self.cache_owner].run(&self.streams, step_tokens, pages)
    }

    fn draw(&mut self, place: LogitsPlace, sampler: &mut Sampler) -> Result<u32> {
        let token = match place {
            LogitsPlace::Row(row) => {
                let step = &mut self.steps[self.cache_owner];
                if !sampler.is_greedy() {
                    step.draw(self.streams.last(), row, sampler, self.vocabulary)?;
                }
                step.token(&self.streams, row)?
            }
            LogitsPlace::Prompt => {
                let mut logits = self.prompt_logits.view_mut([1, self.vocabulary])?;
                let stream = self.streams.last();
                sampler.draw(stream, &mut logits, &mut self.drawn.view_mut([1])?)?;
                stream.wait()?;
                self.drawn.download()?[0]
            }
        };
        // If a row has only NaN and −∞, its first token is drawn.
        let is_likely = match token {
            0 => self.logits(place)?.first().is_some_and(|logit| *logit > f32::NEG_INFINITY),
            _ => (token as usize) < self.vocabulary,
        };
        if !is_likely {
            let problem = "all logits are NaN or −∞: the weights or the cache are damaged".to_owned();
            return Err(Error::Tokens { action: "draw a token", problem });
        }
        Ok(token)
    }

    fn logits(&self, place: LogitsPlace) -> Result<Vec<f32>> {
        self.streams.wait()?;
        let step = &self.steps[self.cache_owner];
        Ok(match place {
            LogitsPlace::Prompt => self.prompt_logits.download()?,
            LogitsPlace::Row(row) => step.logits_after(row, self.vocabulary)?,
        })
    }
}
