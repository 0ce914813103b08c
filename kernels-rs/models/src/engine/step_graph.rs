//! The recorded graphs of a step: one for each stage of the model.
//!
//! A graph belongs to one device. The graphs of the stages are replayed in order, and the streams
//! of the stages copy the activations from one graph to the next.
//!
//! # Tokens stay on the device
//!
//! ```text
//!   graph k ─ logits ─ draws ─ tokens ─▶ graph k + 1 ─ logits ─ draws ─ tokens ─▶ …
//!                                 └─▶ pinned memory ─▶ host
//! ```
//!
//! The last graph ends with the likeliest token of each row, and each graph with the places of the
//! next step. Samplers that are not greedy draw on the stream after the graph, and replace the
//! likeliest tokens. The host reads the tokens from pinned memory. For the next step of the same
//! sequences, the host uploads nothing. With several devices, the tokens are copied from the last
//! device to the first.

use super::attention::{DevicePlaces, TokenPlace};
use super::cache::{CacheElement, SequencePages};
use super::layer_cache::{CacheExtents, LayerCache, LayerSlots, RecordedCaches, StageCaches};
use super::model::{Model, StepMemory};
use super::sampling::Sampler;
use super::stage::{PipelineStage, RotaryTables, StageStreams};
use super::timing::{FilteredRecording, Launches};
use crate::error::{Error, Result};
use kernel_dsl::prelude::*;
use kernels_rs::QueueMemory;
use kernels_rs::blocks::cache::Tokens;
use kernels_rs::sampling::Sample;
use runtime::{Graph, PinnedBuffer, SlotMut, Stream};

/// A row of a step: a token, and its place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StepRow {
    /// The token.
    pub token: u32,
    /// The sequence, and the index of the token in this sequence.
    pub place: TokenPlace,
    /// The rotary position of the token, which differs from the index after an image.
    pub position: usize,
}

/// The options of a recording of a step.
#[derive(Clone, Copy)]
pub(super) struct RecordingOptions<'a> {
    /// The number of rows.
    pub width: usize,
    /// For rows of a prompt, the number of tokens before the rows. `None` for a decoding step.
    pub before: Option<usize>,
    /// If set, only launches of this instance of a kernel are recorded.
    pub instance: Option<&'a str>,
    /// The number of times that each launch is recorded.
    pub repeats: usize,
}

/// The graphs of all stages, which together pass up to `width` rows through the model.
pub(super) struct StepGraphs<K: kernel_dsl::Element> {
    /// The graph of each stage.
    stages: Vec<StageGraph<K>>,
    /// The number of rows.
    pub(super) width: usize,
    /// The extents of the cache of a layer.
    pub(super) extents: CacheExtents,
    /// The logits of all rows, in the last graph.
    logits: SlotMut<f32>,
    /// The places that the graphs have for the next step, and the version of the pages then.
    next_places: Option<(Vec<RowPlace>, u64)>,
    /// The tokens that the first graph has for the next step. `None` before the host has read the
    /// tokens.
    next_tokens: Option<Vec<u32>>,
    /// The host's copy of the tokens.
    host_tokens: PinnedBuffer<u32>,
}

/// The graph that passes rows through the blocks of a stage.
struct StageGraph<K: kernel_dsl::Element> {
    graph: Graph<'static>,
    /// The caches of the layers of the stage.
    caches: Vec<LayerSlots<K>>,
    inputs: GraphInputs,
    /// The activations that enter the stage, and those that leave it.
    activations: [SlotMut<f32>; 2],
}

/// The place of a row, and the rotary position of its token.
type RowPlace = (TokenPlace, usize);

/// The inputs of a graph: one element for each row, except `pages`.
#[derive(Clone, Copy)]
struct GraphInputs {
    tokens: SlotMut<u32>,
    positions: SlotMut<u32>,
    /// The rows of the cache in which keys and values are stored.
    slots: SlotMut<u32>,
    /// The index of the token in its sequence.
    token_indices: SlotMut<u32>,
    /// The number of keys that the token attends to; 0 for padding.
    lengths: SlotMut<u32>,
    /// The pages of the token's sequence, `[rows, pages of a sequence]`.
    pages: SlotMut<u32>,
}

/// Advances each row that is not padding to the place of the next token in its sequence. Pages have
/// `page_tokens` tokens.
#[kernel(block = 32, grid = lengths.len().div_ceil(32))]
#[requires(
    positions.len() == lengths.len(), token_indices.len() == lengths.len(), slots.len() == lengths.len(),
    pages.rows() == lengths.len(), page_tokens > 0,
)]
fn advance(
    positions: &mut [u32],
    slots: &mut [u32],
    token_indices: &mut [u32],
    lengths: &mut [u32],
    pages: View<u32, 2>,
    page_tokens: usize,
) {
    let i = grid::index();
    if i < lengths.len() && lengths[i] > 0 {
        let row = token_indices[i] + 1;
        positions[i] += 1;
        token_indices[i] = row;
        lengths[i] += 1;
        let page = row as usize / page_tokens;
        // A row beyond the cache stores nothing.
        let beyond = page >= pages.cols();
        slots[i] = if beyond { 0xffff_ffff } else { pages[(i, page)] * page_tokens as u32 + row % page_tokens as u32 };
    }
}

/// Returns the slot of memory that belongs to a graph.
fn slot<T: kernel_dsl::Element>(memory: &QueueMemory<T>) -> Result<SlotMut<T>> {
    match memory {
        QueueMemory::Slot(slot) => Ok(*slot),
        QueueMemory::Buffer(_) => Err(Error::field("a graph", "activations", "expected memory of the graph")),
    }
}

impl<K: CacheElement> StageGraph<K> {
    /// Records a stage with the caches of its layers, and returns the graph and the slot of its
    /// logits. The first stage begins with the embedding of tokens. The last stage ends with logits
    /// and the likeliest tokens. The logits of other stages are empty.
    fn record(
        model: &Model,
        stage: &PipelineStage,
        exact: bool,
        caches: Vec<LayerCache<K>>,
        pages: &SequencePages,
        RecordingOptions { width, before, instance, repeats }: RecordingOptions<'_>,
        launches: &Launches,
    ) -> Result<(StageGraph<K>, SlotMut<f32>)> {
        let device = &stage.device;
        let configuration = &model.configuration;
        let (pairs, vocabulary) = (configuration.head_size / 2, configuration.vocabulary);
        let ([_, page_tokens], pages_per_sequence) = (pages.extents(), pages.table(0).len());
        let extents = CacheExtents::new::<K>(model, pages);
        let is_first = stage.first_layer == 0;
        let is_last = stage.first_layer + stage.blocks.len() == configuration.layers;
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
            token_indices: zeros(width)?,
            lengths: zeros(width)?,
            pages: zeros(width * pages_per_sequence)?,
        };
        let GraphInputs { tokens, positions, slots, token_indices, lengths, pages } = inputs;
        // Only the last token of a prompt has logits.
        let logits_extents = [if before.is_some() { 1 } else { width }, if is_last { vocabulary } else { 0 }];
        let logits = recording.own(device.zeros::<f32>(logits_extents.iter().product())?)?;
        let RotaryTables { frequencies, axes } = stage.rotary(false);
        let (axes, frequencies) = (recording.share(axes.clone())?, recording.share(frequencies.clone())?);
        let temporary_slots = recording.own(device.upload(&consecutive(0, width))?)?;
        let places = DevicePlaces {
            rotary_and_slots: Tokens {
                positions: positions.view([1, width])?,
                axes: axes.view([pairs])?,
                frequencies: frequencies.view([pairs])?,
                slots: slots.view([width])?,
            },
            token_indices: token_indices.view([width])?,
            lengths: lengths.view([width])?,
            pages: pages.view([width, pages_per_sequence])?,
            temporary_slots: temporary_slots.view([width])?,
            before,
        };
        let mut memory = StepMemory::new(&recording, configuration, width, pages_per_sequence * page_tokens, exact)?;
        if is_first {
            model.embed(&queue, tokens.view([width])?, &[], &mut memory)?;
        }
        let entering = slot(memory.activations.input_memory())?;
        stage.run(&queue, &[], &places, &mut RecordedCaches(&caches, extents), &mut memory)?;
        if is_last {
            model.finish(&queue, &mut logits.view_mut(logits_extents)?, &mut memory)?;
        }
        let leaving = slot(memory.activations.finished_sum(&queue)?)?;
        if before.is_none() {
            if is_last {
                // The next replay begins with the likeliest token, unless a sampler replaces it.
                let likeliest = Sample::new(0).temperature(0.0);
                likeliest.run(&queue, &logits.view(logits_extents)?, &mut tokens.view_mut([width])?)?;
            }
            let pages = pages.view([width, pages_per_sequence])?;
            // SAFETY: each thread changes an element of each buffer, after comparing its index.
            unsafe { advance::launch_unchecked(&queue, positions, slots, token_indices, lengths, pages, page_tokens)? };
        }
        let graph = recording.finish()?;
        Ok((StageGraph { graph, caches, inputs, activations: [entering, leaving] }, logits))
    }

    /// Takes the caches out of the graph, and leaves empty buffers.
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
    /// Allocates the caches of all layers, filled with zeros.
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

    /// Records a step with the caches of all layers. Adds the number of launches of each kernel to
    /// `launches`.
    pub(super) fn record(
        model: &Model,
        exact: bool,
        caches: StageCaches<K>,
        pages: &SequencePages,
        options: RecordingOptions<'_>,
        launches: &Launches,
    ) -> Result<StepGraphs<K>> {
        let (mut stages, mut logits) = (Vec::new(), None);
        for (stage, caches) in model.stages.iter().zip(caches) {
            let (graph, stage_logits) = StageGraph::record(model, stage, exact, caches, pages, options, launches)?;
            stages.push(graph);
            logits = Some(stage_logits);
        }
        let logits = logits.ok_or_else(|| Error::field("a model", "stages", "expected at least one"))?;
        Ok(StepGraphs {
            stages,
            width: options.width,
            extents: CacheExtents::new::<K>(model, pages),
            logits,
            next_places: None,
            next_tokens: None,
            host_tokens: model.logits_device().pinned(options.width)?,
        })
    }

    /// Takes the caches out of the graphs, and leaves empty buffers.
    pub(super) fn take_caches(&mut self) -> Result<StageCaches<K>> {
        self.stages.iter_mut().map(StageGraph::take_caches).collect()
    }

    /// Puts the caches into the graphs.
    pub(super) fn put_caches(&mut self, caches: StageCaches<K>) -> Result<()> {
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
    pub(super) fn set_step_tokens(&mut self, step_tokens: &[StepRow], pages: &SequencePages) -> Result<()> {
        self.set_places(step_tokens, pages)?;
        self.set_tokens(step_tokens)
    }

    fn set_tokens(&mut self, step_tokens: &[StepRow]) -> Result<()> {
        let mut tokens: Vec<u32> = step_tokens.iter().map(|row| row.token).collect();
        tokens.resize(self.width, 0);
        let StageGraph { graph, inputs, .. } = &mut self.stages[0];
        Ok(graph.buffer_mut(inputs.tokens)?.copy_from(&tokens)?)
    }

    /// Queues a replay of all graphs with the inputs that are on the devices.
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

    /// Queues a replay of all graphs with the inputs that are on the devices, and the copy of the
    /// tokens for the next step.
    pub(super) fn replay_again(&mut self, streams: &StageStreams) -> Result<()> {
        self.replay(streams)?;
        self.copy_tokens(streams)
    }

    /// Queues a replay of the graph of one stage with the inputs that are on the device.
    pub(super) fn replay_stage(&mut self, streams: &StageStreams, stage: usize) -> Result<()> {
        Ok(self.stages[stage].graph.replay(&streams.0[stage])?)
    }

    /// Queues a copy of the tokens from the last graph to the first, if there are several.
    fn copy_tokens(&mut self, streams: &StageStreams) -> Result<()> {
        if let [first, .., last] = &mut self.stages[..] {
            let [to, from] = [first.inputs.tokens, last.inputs.tokens];
            streams.first().copy(last.graph.buffer(from)?, first.graph.buffer_mut(to)?)?;
        }
        Ok(())
    }

    /// Uploads the places of rows, and the pages of their sequences, to each graph.
    fn set_places(&mut self, step_tokens: &[StepRow], pages: &SequencePages) -> Result<()> {
        let padded = |number: &dyn Fn(&StepRow) -> u32, other: u32| {
            let values = step_tokens.iter().map(number);
            values.chain(std::iter::repeat(other)).take(self.width).collect::<Vec<u32>>()
        };
        let positions = padded(&|row| row.position as u32, 0);
        // Padding has a slot beyond the cache, so that nothing is stored.
        let slots = padded(&|row| pages.cache_row(row.place.sequence, row.place.index), u32::MAX);
        let token_indices = padded(&|row| row.place.index as u32, u32::MAX);
        let lengths = padded(&|row| row.place.index as u32 + 1, 0);
        let pages_per_sequence = pages.table(0).len();
        let mut table: Vec<u32> = step_tokens.iter().flat_map(|row| pages.table(row.place.sequence)).copied().collect();
        table.resize(self.width * pages_per_sequence, 0);
        for StageGraph { graph, inputs, .. } in &mut self.stages {
            let inputs = [
                (inputs.positions, &positions),
                (inputs.slots, &slots),
                (inputs.token_indices, &token_indices),
                (inputs.lengths, &lengths),
                (inputs.pages, &table),
            ];
            for (slot, values) in inputs {
                graph.buffer_mut(slot)?.copy_from(values)?;
            }
        }
        Ok(())
    }

    /// Queues a step for rows. Uploads only places and tokens that the devices do not have.
    pub(super) fn run(&mut self, streams: &StageStreams, step_tokens: &[StepRow], pages: &SequencePages) -> Result<()> {
        let places: Vec<RowPlace> = step_tokens.iter().map(|row| (row.place, row.position)).collect();
        let version = pages.version();
        let has_places = self.next_places.take().is_some_and(|next| next == (places.clone(), version));
        // Both fields are taken first: if the replay fails, the inputs on the devices are unknown.
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

    /// Queues a draw from the logits after a row. The drawn token replaces the likeliest one.
    pub(super) fn draw(&mut self, stream: &Stream, row: usize, sampler: &mut Sampler, vocabulary: usize) -> Result<()> {
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

    /// Returns the logits after a row of the last step: one for each token of the vocabulary.
    pub(super) fn logits_after(&self, row: usize, vocabulary: usize) -> Result<Vec<f32>> {
        let logits = self.last().graph.buffer(self.logits)?.download()?;
        Ok(logits[row * vocabulary..(row + 1) * vocabulary].to_vec())
    }

    /// Returns the token after a row of the last step. The first call after a step or draw waits
    /// for the devices.
    pub(super) fn token(&mut self, streams: &StageStreams, row: usize) -> Result<u32> {
        if self.next_tokens.is_none() {
            let (stream, before) = (streams.last(), &streams.0[..streams.0.len() - 1]);
            // Waiting also reports failures of these devices. The last device works meanwhile.
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

/// Returns the `n` consecutive integers from `first` on.
pub(super) fn consecutive(first: usize, n: usize) -> Vec<u32> {
    (first..first + n).map(|i| i as u32).collect()
}
