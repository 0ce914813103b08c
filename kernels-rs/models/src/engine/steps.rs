//! Work of devices for the sequences of a batch: caches, prompts, and steps by replayed graphs.
//!
//! A step passes rows through the model. Rows are the next tokens of several sequences, or the next
//! token of one sequence and its drafts. There is a graph for each width, 1, 2, 4, …, and a step
//! takes the first that is wide enough. The other rows of the graph see no keys and store none. The
//! graphs pass the caches on to each other, because a buffer has one owner.
//!
//! A graph belongs to one device. A model on several devices has a graph for each stage, which are
//! replayed in order. Streams copy the activations between two of them. Chunks of a prompt overlap:
//!
//! ```text
//!   device 0   chunk 0 │ chunk 1 │ chunk 2 │
//!   device 1           │ chunk 0 │ chunk 1 │ chunk 2
//! ```
//!
//! # Tokens stay on the device
//!
//! ```text
//!   graph k ─ logits ─ draws ─ tokens ─▶ graph k + 1 ─ logits ─ draws ─ tokens ─▶ …
//!                                 └─▶ pinned memory ─▶ host
//! ```
//!
//! A graph ends with the likeliest token of each row, and with the places of the next step. Other
//! samplers draw on the stream after the graph, and replace the likeliest tokens. The host reads
//! the tokens from pinned memory, and uploads none for the next step. With several devices, a copy
//! brings the tokens from the last device to the first.

use super::attention::{DevicePlaces, TokenPlace};
use super::cache::{CacheElement, KeyValues, SequencePages};
use super::linear::MAX_FIXED_ORDER_ROWS;
use super::model::{ImageTokens, KeyValueLayers, Model, StepMemory};
use super::sampling::Sampler;
use super::session::SessionOptions;
use super::stage::{PipelineStage, RotaryTables};
use super::timing::{FilteredRecording, Launches};
use super::vision::ImageFeatures;
use crate::error::{Error, Result};
use crate::image::PreparedImage;
use kernel_dsl::half::f16;
use kernel_dsl::prelude::*;
use kernels_rs::QueueMemory;
use kernels_rs::blocks::cache::Tokens;
use kernels_rs::rowwise::CrossEntropy;
use kernels_rs::sampling::Sample;
use runtime::{BufferViewMut, DeviceBuffer, Event, Graph, PinnedBuffer, SlotMut, Stream};
use std::collections::VecDeque;

/// A token of a step, and its place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StepToken {
    pub token: u32,
    pub place: TokenPlace,
    /// The position. After an image, the position differs from the place.
    pub position: usize,
}

/// Consecutive tokens of a sequence.
#[derive(Debug)]
pub struct SequenceSection<'a> {
    pub tokens: &'a [u32],
    /// The positions of the tokens on one axis, or on three one after another.
    pub positions: Vec<u32>,
    /// The images with tokens in the section.
    pub images: Vec<ImageTokens>,
    pub start: TokenPlace,
}

impl SequenceSection<'_> {
    /// Returns tokens without images, in a sequence without images.
    pub fn without_images(tokens: &[u32], start: TokenPlace) -> SequenceSection<'_> {
        let positions = (start.index..start.index + tokens.len()).map(|i| i as u32).collect();
        SequenceSection { tokens, positions, images: Vec::new(), start }
    }
}

/// Where logits are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LogitsPlace {
    /// After the last prompt.
    Prompt,
    /// After a row of the last step.
    Row(usize),
}

/// The work of sequences that depends on the format of their cache.
pub trait BatchExecutor: Send {
    /// Returns the features of an image.
    fn features(&mut self, model: &Model, picture: &PreparedImage) -> Result<ImageFeatures>;
    /// Queues the model for consecutive tokens of a sequence. When a call returns, as many calls as
    /// there are stages may still run: each device can compute another chunk of a prompt.
    fn append(&mut self, model: &Model, section: &SequenceSection<'_>, pages: &SequencePages) -> Result<()>;
    /// Waits for all work, and reports its failures.
    fn wait(&mut self) -> Result<()>;
    /// Runs the model for consecutive tokens, and returns −ln of the probability of a label after
    /// each.
    fn losses(
        &mut self,
        model: &Model,
        section: &SequenceSection<'_>,
        labels: &[u32],
        pages: &SequencePages,
    ) -> Result<Vec<f32>>;
    /// Runs the model for consecutive tokens, and returns the likeliest token after each.
    fn likeliest(&mut self, model: &Model, section: &SequenceSection<'_>, pages: &SequencePages) -> Result<Vec<u32>>;
    /// Runs the model for rows.
    fn step(&mut self, step_tokens: &[StepToken], pages: &SequencePages) -> Result<()>;
    /// Draws a token from logits, and returns it.
    fn draw(&mut self, place: LogitsPlace, sampler: &mut Sampler) -> Result<u32>;
    /// Returns logits.
    fn logits(&self, place: LogitsPlace) -> Result<Vec<f32>>;
}

/// The maximum number of tokens with logits at once. More would need too much memory.
pub const MAX_LOGITS_ROWS: usize = 128;

impl SessionOptions {
    /// Returns the number of tokens of a prompt that pass the layers at once.
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
    /// The graph that has the caches.
    cache_owner: usize,
    options: SessionOptions,
    /// Logits after the last prompt.
    prompt_logits: DeviceBuffer<f32>,
    vocabulary: usize,
    drawn: DeviceBuffer<u32>,
    /// The ends of the last chunks of prompts that may still run.
    running_chunks: VecDeque<Event>,
}

/// A stream for each stage of a model.
pub(super) struct StageStreams(Vec<Stream>);

impl StageStreams {
    pub fn new(model: &Model) -> Result<StageStreams> {
        let streams = model.stages.iter().map(|stage| stage.device.stream());
        Ok(StageStreams(streams.collect::<runtime::Result<_>>()?))
    }

    /// Returns the stream of the first stage, which has the embedding.
    fn first(&self) -> &Stream {
        &self.0[0]
    }

    /// Returns the stream of the last stage, which has the logits.
    fn last(&self) -> &Stream {
        &self.0[self.0.len() - 1]
    }

    /// Waits for all work. Also reports violations.
    pub fn wait(&self) -> Result<()> {
        Ok(self.0.iter().try_for_each(Stream::wait)?)
    }
}

/// The content of the graph of a step.
#[derive(Clone, Copy)]
pub(super) struct StepRecording<'a> {
    /// The number of rows.
    pub width: usize,
    /// For rows of a prompt: the number of tokens before them. `None` for a step.
    pub before: Option<usize>,
    /// If set, only launches of this instance of a kernel are recorded.
    pub instance: Option<&'a str>,
    /// How often each launch is recorded.
    pub repeats: usize,
}

/// The cache of a layer, as [`KeyValues`] has it.
pub(super) struct LayerCache<K: kernel_dsl::Element> {
    elements: DeviceBuffer<K>,
    scales: DeviceBuffer<f16>,
}

/// The caches of the layers of each stage.
pub(super) type StageCaches<K> = Vec<Vec<LayerCache<K>>>;

/// The cache of a layer in a graph.
#[derive(Clone, Copy)]
struct LayerSlots<K: kernel_dsl::Element> {
    elements: SlotMut<K>,
    scales: SlotMut<f16>,
}

/// The extents of the cache of a layer: of elements, and of scales.
#[derive(Clone, Copy)]
struct CacheExtents([[usize; 4]; 2]);

impl CacheExtents {
    fn new<K: CacheElement>(model: &Model, pages: &SequencePages) -> CacheExtents {
        let ([count, rows], configuration) = (pages.extents(), &model.configuration);
        let row_extents = [configuration.head, K::scales(configuration.head)];
        CacheExtents(row_extents.map(|elements| [2 * count, configuration.kv_heads, rows, elements]))
    }
}

/// Graphs that pass some rows through the model.
pub(super) struct StepGraphs<K: kernel_dsl::Element> {
    /// The graph of each stage.
    stages: Vec<StageGraph<K>>,
    width: usize,
    extents: CacheExtents,
    /// The logits, in the last graph.
    logits: SlotMut<f32>,
    /// The places that the devices have for the next step, and the version of their pages.
    next_places: Option<(Vec<RowPlace>, u64)>,
    /// The tokens that the first device has for the next step, if the host knows them.
    next_tokens: Option<Vec<u32>>,
    /// The host's copy of the tokens.
    host_tokens: PinnedBuffer<u32>,
}

/// A graph that passes rows through the blocks of a stage.
struct StageGraph<K: kernel_dsl::Element> {
    graph: Graph<'static>,
    caches: Vec<LayerSlots<K>>,
    inputs: GraphInputs,
    /// The activations that enter the stage, and those that leave it.
    activations: [SlotMut<f32>; 2],
}

/// The place of a row, and its position.
type RowPlace = (TokenPlace, usize);

/// The inputs of a graph, with a number for each row.
#[derive(Clone, Copy)]
struct GraphInputs {
    tokens: SlotMut<u32>,
    positions: SlotMut<u32>,
    /// The row of the cache in which keys and values are stored.
    slots: SlotMut<u32>,
    /// The number of tokens of the sequence before the row.
    rows: SlotMut<u32>,
    /// The number of keys that the row sees.
    lengths: SlotMut<u32>,
    /// The pages of the sequence.
    pages: SlotMut<u32>,
}

/// Moves each row with keys to the place of the next token. Pages have `page_tokens` tokens.
#[kernel(block = 32, grid = lengths.len().div_ceil(32))]
#[requires(
    positions.len() == lengths.len(), rows.len() == lengths.len(), slots.len() == lengths.len(),
    pages.rows() == lengths.len(), page_tokens > 0,
)]
fn advance(
    positions: &mut [u32],
    slots: &mut [u32],
    rows: &mut [u32],
    lengths: &mut [u32],
    pages: View<u32, 2>,
    page_tokens: usize,
) {
    let i = grid::index();
    if i < lengths.len() && lengths[i] > 0 {
        let row = rows[i] + 1;
        positions[i] += 1;
        rows[i] = row;
        lengths[i] += 1;
        let page = row as usize / page_tokens;
        // Beyond the pages nothing is stored.
        let beyond = page >= pages.cols();
        slots[i] = if beyond { 0xffff_ffff } else { pages[(i, page)] * page_tokens as u32 + row % page_tokens as u32 };
    }
}

/// Caches of a stage in a graph that is being recorded.
struct RecordedCaches<'a, K: kernel_dsl::Element>(&'a [LayerSlots<K>], CacheExtents);

impl<K: kernel_dsl::Element> KeyValueLayers<K> for RecordedCaches<'_, K> {
    fn layer(&mut self, layer: usize) -> Result<KeyValues<'_, K>> {
        let CacheExtents([element_extents, scale_extents]) = self.1;
        let LayerSlots { elements, scales } = self.0[layer];
        Ok(KeyValues { elements: elements.view_mut(element_extents)?, scales: scales.view_mut(scale_extents)? })
    }
}

/// Caches of a stage outside a graph.
struct LentCaches<'a, K: kernel_dsl::Element>(&'a mut [LayerCache<K>], CacheExtents);

impl<K: kernel_dsl::Element> KeyValueLayers<K> for LentCaches<'_, K> {
    fn layer(&mut self, layer: usize) -> Result<KeyValues<'_, K>> {
        let CacheExtents([element_extents, scale_extents]) = self.1;
        let LayerCache { elements, scales } = &mut self.0[layer];
        Ok(KeyValues { elements: elements.view_mut(element_extents)?, scales: scales.view_mut(scale_extents)? })
    }
}

/// Returns the slot of memory in a graph.
fn slot<T: kernel_dsl::Element>(memory: &QueueMemory<T>) -> Result<SlotMut<T>> {
    match memory {
        QueueMemory::Slot(slot) => Ok(*slot),
        QueueMemory::Buffer(_) => Err(Error::field("a graph", "activations", "expected memory of the graph")),
    }
}

impl<K: CacheElement> StageGraph<K> {
    /// Records a stage with the caches of its layers, and returns the slot of its logits. The first
    /// stage begins with the embedding of tokens. The last one ends with logits and with the
    /// likeliest tokens; the logits of others are empty.
    fn record(
        model: &Model,
        stage: &PipelineStage,
        exact: bool,
        caches: Vec<LayerCache<K>>,
        pages: &SequencePages,
        StepRecording { width, before, instance, repeats }: StepRecording<'_>,
        launches: &Launches,
    ) -> Result<(StageGraph<K>, SlotMut<f32>)> {
        let device = &stage.device;
        let configuration = &model.configuration;
        let (pairs, vocabulary) = (configuration.head / 2, configuration.vocabulary);
        let ([_, page_tokens], pages_per_sequence) = (pages.extents(), pages.table(0).len());
        let extents = CacheExtents::new::<K>(model, pages);
        let is_first = stage.first == 0;
        let is_last = stage.first + stage.blocks.len() == configuration.layers;
        let recording = device.record();
        let queue = FilteredRecording { recording: &recording, instance, repeats, launches };
        let own = |LayerCache { elements, scales }: LayerCache<K>| {
            Ok(LayerSlots { elements: recording.own(elements)?, scales: recording.own(scales)? })
        };
        let caches = caches.into_iter().map(own).collect::<runtime::Result<Vec<LayerSlots<K>>>>()?;
        let zeros = |n: usize| recording.own(device.zeros::<u32>(n)?);
        let inputs = GraphInputs {
            tokens: zeros(width)?,
            positions: zeros(width)?,
            slots: zeros(width)?,
            rows: zeros(width)?,
            lengths: zeros(width)?,
            pages: zeros(width * pages_per_sequence)?,
        };
        let GraphInputs { tokens, positions, slots, rows, lengths, pages } = inputs;
        // Only the last token of a prompt has logits.
        let logits_extents = [if before.is_some() { 1 } else { width }, if is_last { vocabulary } else { 0 }];
        let logits = recording.own(device.zeros::<f32>(logits_extents.iter().product())?)?;
        let RotaryTables { frequencies, axes } = stage.rotary(false);
        let (axes, frequencies) = (recording.share(axes.clone())?, recording.share(frequencies.clone())?);
        let indices = recording.own(device.upload(&consecutive(0, width))?)?;
        let places = DevicePlaces {
            tokens: Tokens {
                positions: positions.view([1, width])?,
                axes: axes.view([pairs])?,
                frequencies: frequencies.view([pairs])?,
                slots: slots.view([width])?,
            },
            rows: rows.view([width])?,
            lengths: lengths.view([width])?,
            pages: pages.view([width, pages_per_sequence])?,
            indices: indices.view([width])?,
            before,
        };
        let mut memory = StepMemory::new(&recording, configuration, width, pages_per_sequence * page_tokens, exact)?;
        if is_first {
            model.embed(&queue, tokens.view([width])?, &[], &mut memory)?;
        }
        let entering = slot(memory.activations.entering())?;
        stage.run(&queue, &[], &places, &mut RecordedCaches(&caches, extents), &mut memory)?;
        if is_last {
            model.finish(&queue, &mut logits.view_mut(logits_extents)?, &mut memory)?;
        }
        let leaving = slot(memory.activations.leaving(&queue)?)?;
        if before.is_none() {
            if is_last {
                // The next replay begins with the likeliest token, unless a sampler replaces it.
                let likeliest = Sample::new(0).temperature(0.0);
                likeliest.run(&queue, &logits.view(logits_extents)?, &mut tokens.view_mut([width])?)?;
            }
            let pages = pages.view([width, pages_per_sequence])?;
            // SAFETY: each thread changes an element of each buffer, after comparing its index.
            unsafe { advance::launch_unchecked(&queue, positions, slots, rows, lengths, pages, page_tokens)? };
        }
        let graph = recording.finish()?;
        Ok((StageGraph { graph, caches, inputs, activations: [entering, leaving] }, logits))
    }

    /// Takes the caches out of the graph, which gets empty ones.
    fn take_caches(&mut self) -> Result<Vec<LayerCache<K>>> {
        let device = self.graph.device().clone();
        let mut taken = Vec::new();
        for LayerSlots { elements, scales } in &self.caches {
            let elements = std::mem::replace(self.graph.buffer_mut(*elements)?, device.zeros(0)?);
            let scales = std::mem::replace(self.graph.buffer_mut(*scales)?, device.zeros(0)?);
            taken.push(LayerCache { elements, scales });
        }
        Ok(taken)
    }

    /// Puts the caches into the graph.
    fn put_caches(&mut self, caches: Vec<LayerCache<K>>) -> Result<()> {
        for (LayerSlots { elements, scales }, cache) in self.caches.iter().zip(caches) {
            *self.graph.buffer_mut(*elements)? = cache.elements;
            *self.graph.buffer_mut(*scales)? = cache.scales;
        }
        Ok(())
    }
}

impl<K: CacheElement> StepGraphs<K> {
    /// Allocates the caches of all layers, stage by stage.
    pub(super) fn caches(model: &Model, pages: &SequencePages) -> Result<StageCaches<K>> {
        let CacheExtents([element_extents, scale_extents]) = CacheExtents::new::<K>(model, pages);
        let (elements, scales) = (element_extents.iter().product(), scale_extents.iter().product());
        let stage_caches = |stage: &PipelineStage| {
            let zeros =
                |_| Ok(LayerCache { elements: stage.device.zeros(elements)?, scales: stage.device.zeros(scales)? });
            stage.blocks.iter().map(zeros).collect()
        };
        model.stages.iter().map(stage_caches).collect()
    }

    /// Records a step with the caches of all layers, and counts its launches.
    pub(super) fn record(
        model: &Model,
        exact: bool,
        caches: StageCaches<K>,
        pages: &SequencePages,
        form: StepRecording<'_>,
        launches: &Launches,
    ) -> Result<StepGraphs<K>> {
        let (mut stages, mut logits) = (Vec::new(), None);
        for (stage, caches) in model.stages.iter().zip(caches) {
            let (graph, stage_logits) = StageGraph::record(model, stage, exact, caches, pages, form, launches)?;
            stages.push(graph);
            logits = Some(stage_logits);
        }
        let logits = logits.ok_or_else(|| Error::field("a model", "stages", "expected at least one"))?;
        Ok(StepGraphs {
            stages,
            width: form.width,
            extents: CacheExtents::new::<K>(model, pages),
            logits,
            next_places: None,
            next_tokens: None,
            host_tokens: model.logits_device().pinned(form.width)?,
        })
    }

    /// Takes the caches out of the graphs, which get empty ones.
    pub(super) fn take_caches(&mut self) -> Result<StageCaches<K>> {
        self.stages.iter_mut().map(StageGraph::take_caches).collect()
    }

    /// Puts the caches into the graphs.
    fn put_caches(&mut self, caches: StageCaches<K>) -> Result<()> {
        self.stages.iter_mut().zip(caches).try_for_each(|(stage, caches)| stage.put_caches(caches))
    }

    fn last(&self) -> &StageGraph<K> {
        &self.stages[self.stages.len() - 1]
    }

    fn last_mut(&mut self) -> &mut StageGraph<K> {
        let last = self.stages.len() - 1;
        &mut self.stages[last]
    }

    /// Uploads tokens and places of rows.
    pub(super) fn set_step_tokens(&mut self, step_tokens: &[StepToken], pages: &SequencePages) -> Result<()> {
        self.set_places(step_tokens, pages)?;
        self.set_tokens(step_tokens)
    }

    fn set_tokens(&mut self, step_tokens: &[StepToken]) -> Result<()> {
        let mut tokens: Vec<u32> = step_tokens.iter().map(|row| row.token).collect();
        tokens.resize(self.width, 0);
        let StageGraph { graph, inputs, .. } = &mut self.stages[0];
        Ok(graph.buffer_mut(inputs.tokens)?.copy_from(&tokens)?)
    }

    /// Replays the graphs with what is on the devices.
    fn replay(&mut self, streams: &StageStreams) -> Result<()> {
        for (i, stream) in streams.0.iter().enumerate() {
            if let [.., before, stage] = &mut self.stages[..=i] {
                let [entering, leaving] = [stage.activations[0], before.activations[1]];
                stream.copy(before.graph.buffer(leaving)?, stage.graph.buffer_mut(entering)?)?;
            }
            self.stages[i].graph.replay(stream)?;
        }
        Ok(())
    }

    /// Replays the graphs with what is on the devices, and queues the copy of the tokens for the
    /// next step.
    pub(super) fn replay_again(&mut self, streams: &StageStreams) -> Result<()> {
        self.replay(streams)?;
        self.copy_tokens(streams)
    }

    /// Replays the graph of one stage with what is on its device.
    pub(super) fn replay_stage(&mut self, streams: &StageStreams, stage: usize) -> Result<()> {
        Ok(self.stages[stage].graph.replay(&streams.0[stage])?)
    }

    /// Queues a copy of the tokens to the first device.
    fn copy_tokens(&mut self, streams: &StageStreams) -> Result<()> {
        if let [first, .., last] = &mut self.stages[..] {
            let [to, from] = [first.inputs.tokens, last.inputs.tokens];
            streams.first().copy(last.graph.buffer(from)?, first.graph.buffer_mut(to)?)?;
        }
        Ok(())
    }

    /// Uploads the places of rows, and the pages of their sequences.
    fn set_places(&mut self, step_tokens: &[StepToken], pages: &SequencePages) -> Result<()> {
        let padded = |number: &dyn Fn(&StepToken) -> u32, other: u32| {
            let values = step_tokens.iter().map(number);
            values.chain(std::iter::repeat(other)).take(self.width).collect::<Vec<u32>>()
        };
        let positions = padded(&|row| row.position as u32, 0);
        // Padding rows have a slot that does not exist, so that nothing is stored.
        let slots = padded(&|row| pages.slot(row.place.sequence, row.place.index), u32::MAX);
        let token_indices = padded(&|row| row.place.index as u32, u32::MAX);
        let lengths = padded(&|row| row.place.index as u32 + 1, 0);
        let pages_per_sequence = pages.table(0).len();
        let mut table: Vec<u32> = step_tokens.iter().flat_map(|row| pages.table(row.place.sequence)).copied().collect();
        table.resize(self.width * pages_per_sequence, 0);
        for StageGraph { graph, inputs, .. } in &mut self.stages {
            let inputs = [
                (inputs.positions, &positions),
                (inputs.slots, &slots),
                (inputs.rows, &token_indices),
                (inputs.lengths, &lengths),
                (inputs.pages, &table),
            ];
            for (slot, values) in inputs {
                graph.buffer_mut(slot)?.copy_from(values)?;
            }
        }
        Ok(())
    }

    /// Replays the graphs for rows, after uploading places and tokens that the devices do not have.
    fn run(&mut self, streams: &StageStreams, step_tokens: &[StepToken], pages: &SequencePages) -> Result<()> {
        let places: Vec<RowPlace> = step_tokens.iter().map(|row| (row.place, row.position)).collect();
        let version = pages.version();
        let has_places = self.next_places.take().is_some_and(|next| next == (places.clone(), version));
        // `take` comes first: if the replay fails, the tokens on the devices are unknown.
        let has_tokens = self.next_tokens.take().is_some_and(|tokens| {
            tokens.len() >= step_tokens.len() && step_tokens.iter().zip(tokens).all(|(row, token)| row.token == token)
        });
        if !has_places {
            self.set_places(step_tokens, pages)?;
        }
        if !has_tokens {
            self.set_tokens(step_tokens)?;
        }
        self.replay(streams)?;
        let next =
            |(place, position): (TokenPlace, usize)| (TokenPlace { index: place.index + 1, ..place }, position + 1);
        self.next_places = Some((places.into_iter().map(next).collect(), version));
        Ok(())
    }

    /// Queues a draw from the logits after a row, which replaces the likeliest token.
    fn draw(&mut self, stream: &Stream, row: usize, sampler: &mut Sampler, vocabulary: usize) -> Result<()> {
        self.next_tokens = None;
        let (width, slot) = (self.width, self.logits);
        let StageGraph { graph, inputs, .. } = self.last_mut();
        // The graph lends one buffer at a time, so the logits are taken out meanwhile.
        let mut logits = std::mem::replace(graph.buffer_mut(slot)?, stream.device().zeros(0)?);
        let drawn = (|| {
            let mut logits = logits.view_mut([width, vocabulary])?.slice(row..row + 1)?;
            let tokens = graph.buffer_mut(inputs.tokens)?.view_mut([width])?;
            sampler.draw(stream, &mut logits, &mut tokens.slice(row..row + 1)?)
        })();
        *graph.buffer_mut(slot)? = logits;
        drawn
    }

    /// Returns the token after a row of the last step.
    fn token(&mut self, streams: &StageStreams, row: usize) -> Result<u32> {
        if self.next_tokens.is_none() {
            let (stream, before) = (streams.last(), &streams.0[..streams.0.len() - 1]);
            // Waiting also reports violations. The last device works meanwhile.
            before.iter().try_for_each(Stream::wait)?;
            let StageGraph { graph, inputs, .. } = &self.stages[self.stages.len() - 1];
            stream.download_to(graph.buffer(inputs.tokens)?, &mut self.host_tokens)?;
            // The copy to the first device runs while the host handles the tokens.
            self.copy_tokens(streams)?;
            stream.wait()?;
            self.next_tokens = Some(self.host_tokens.as_slice()?.to_vec());
        }
        let token = self.next_tokens.as_ref().and_then(|tokens| tokens.get(row));
        token.copied().ok_or_else(|| Error::Tokens { action: "draw a token", problem: format!("no row {row}") })
    }
}

/// Returns `n` elements from `first` on.
fn consecutive(first: usize, n: usize) -> Vec<u32> {
    (first..first + n).map(|i| i as u32).collect()
}

/// The places of a section's tokens on a device.
struct SectionPlaces {
    positions: DeviceBuffer<u32>,
    slots: DeviceBuffer<u32>,
    rows: DeviceBuffer<u32>,
    lengths: DeviceBuffer<u32>,
    tables: DeviceBuffer<u32>,
    indices: DeviceBuffer<u32>,
}

impl SectionPlaces {
    fn upload(
        stream: &Stream,
        SequenceSection { tokens, positions, start, .. }: &SequenceSection<'_>,
        pages: &SequencePages,
    ) -> Result<Self> {
        let n = tokens.len();
        let slots: Vec<u32> = (0..n).map(|i| pages.slot(start.sequence, start.index + i)).collect();
        Ok(SectionPlaces {
            positions: stream.upload(positions)?,
            slots: stream.upload(&slots)?,
            rows: stream.upload(&consecutive(start.index, n))?,
            lengths: stream.upload(&consecutive(start.index + 1, n))?,
            tables: stream.upload(&pages.table(start.sequence).repeat(n))?,
            indices: stream.upload(&consecutive(0, n))?,
        })
    }

    /// Returns the places for the stage of the device. `before` tokens precede the section.
    fn views<'a>(&'a self, stage: &'a PipelineStage, before: usize) -> Result<DevicePlaces<'a>> {
        let n = self.slots.len().max(1);
        let axes = self.positions.len() / n;
        let RotaryTables { frequencies, axes: pair_axes } = stage.rotary(axes > 1);
        Ok(DevicePlaces {
            tokens: Tokens {
                positions: self.positions.view([axes, self.slots.len()])?,
                axes: pair_axes.view([pair_axes.len()])?,
                frequencies: frequencies.view([frequencies.len()])?,
                slots: self.slots.view([self.slots.len()])?,
            },
            rows: self.rows.view([self.rows.len()])?,
            lengths: self.lengths.view([self.lengths.len()])?,
            pages: self.tables.view([self.slots.len(), self.tables.len() / n])?,
            indices: self.indices.view([self.indices.len()])?,
            before: Some(before),
        })
    }
}

/// Queues all stages for consecutive tokens of a sequence. The logits after the last tokens go to
/// `logits`: one row for each.
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
                let (from, to) = (before.activations.leaving(*on)?, memory.activations.entering());
                let (QueueMemory::Buffer(from), QueueMemory::Buffer(to)) = (from, to) else {
                    return Err(Error::field("a stream", "activations", "expected memory of a device"));
                };
                stream.copy(from, to)?;
            }
        }
        let mut cache = LentCaches(caches, extents);
        stage.run(stream, images, &places.views(stage, start.index)?, &mut cache, &mut memory)?;
        last = Some((stream, memory));
    }
    last.map_or(Ok(()), |(stream, mut memory)| model.finish(stream, logits, &mut memory))
}

impl<K: CacheElement> GraphExecutor<K> {
    /// Allocates the caches and records a graph for each width. The widest is wide enough for all
    /// sequences, and for a token and its drafts.
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
            let form = StepRecording { width, before: None, instance: None, repeats: 1 };
            let caches = std::mem::take(&mut caches);
            steps.push(StepGraphs::record(model, options.exact, caches, pages, form, &Launches::default())?);
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

    /// Moves the caches to the graph number `to`.
    fn move_caches(&mut self, to: usize) -> Result<()> {
        if to != self.cache_owner {
            let caches = self.steps[self.cache_owner].take_caches()?;
            self.steps[to].put_caches(caches)?;
            self.cache_owner = to;
        }
        Ok(())
    }

    /// Queues the model for consecutive tokens of a sequence. The logits after the last tokens go
    /// to `logits`: one row for each.
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

    /// Queues the model for consecutive tokens of a sequence, and returns the logits after each.
    fn logits_of_all(
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
            let stage = model.stages.iter().rposition(|stage| stage.first <= block);
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
        let logits = self.logits_of_all(model, section, pages)?;
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
        let logits = self.logits_of_all(model, section, pages)?;
        let mut drawn = model.logits_device().zeros::<u32>(n)?;
        let likeliest = Sample::new(0).temperature(0.0);
        likeliest.run(self.streams.last(), &logits.view([n, self.vocabulary])?, &mut drawn.view_mut([n])?)?;
        self.streams.wait()?;
        Ok(drawn.download()?)
    }

    fn step(&mut self, step_tokens: &[StepToken], pages: &SequencePages) -> Result<()> {
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
        if token as usize >= self.vocabulary {
            let problem = "all logits are NaN: the weights or the cache are damaged".to_owned();
            return Err(Error::Tokens { action: "draw a token", problem });
        }
        Ok(token)
    }

    fn logits(&self, place: LogitsPlace) -> Result<Vec<f32>> {
        self.streams.wait()?;
        let step = &self.steps[self.cache_owner];
        Ok(match place {
            LogitsPlace::Prompt => self.prompt_logits.download()?,
            LogitsPlace::Row(row) => {
                let n = self.vocabulary;
                step.last().graph.buffer(step.logits)?.download()?[row * n..(row + 1) * n].to_vec()
            }
        })
    }
}
