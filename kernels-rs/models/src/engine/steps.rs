//! The device's part of texts: their caches, prompts, and steps by replayed graphs.
//!
//! A step passes rows through the model: the next tokens of several sequences, or of one sequence a
//! token and drafts of those after it. There is a graph for each width, 1, 2, 4, …, and a step
//! takes the first that is wide enough. Rows beyond those of a step see no keys and store none. The
//! graphs pass the caches on to each other, because a buffer has one owner.

use super::attention::{After, KeyValues, Places};
use super::linear::ALIKE;
use super::model::{Cached, Input, Inserted, Model, StepMemory};
use super::sampling::Sampler;
use super::session::Options;
use super::vision::Features;
use crate::error::{Error, Result};
use crate::image::Picture;
use kernel_dsl::GenericArgument;
use kernel_dsl::prelude::*;
use kernels_rs::attention::cache::StoredElement;
use kernels_rs::blocks::cache::Tokens;
use kernels_rs::rowwise::CrossEntropy;
use kernels_rs::sampling::Sample;
use runtime::{BufferViewMut, Device, DeviceBuffer, Graph, SlotMut, Stream};

/// A token of a step, and its place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Row {
    pub token: u32,
    pub place: After,
    /// The position, which differs from the place after an image.
    pub position: usize,
}

/// Consecutive tokens of a sequence.
#[derive(Debug)]
pub struct Section<'a> {
    pub tokens: &'a [u32],
    /// The positions of the tokens on one axis, or on three one after another.
    pub positions: Vec<u32>,
    /// The images with tokens in the section.
    pub images: Vec<Inserted>,
    pub after: After,
}

impl Section<'_> {
    /// Returns tokens without images, in a text without images.
    pub fn of_text(tokens: &[u32], after: After) -> Section<'_> {
        let positions = (after.tokens..after.tokens + tokens.len()).map(|i| i as u32).collect();
        Section { tokens, positions, images: Vec::new(), after }
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

/// The work of texts that depends on the format of their cache.
pub trait Run: Send {
    /// Returns the features of an image.
    fn features(&mut self, model: &Model, picture: &Picture) -> Result<Features>;
    /// Runs the model for consecutive tokens of a sequence.
    fn append(&mut self, model: &Model, section: &Section<'_>) -> Result<()>;
    /// Runs the model likewise, and returns −ln of the probability of a label after each token.
    fn losses(&mut self, model: &Model, tokens: &[u32], labels: &[u32], after: After) -> Result<Vec<f32>>;
    /// Runs the model likewise, and returns the likeliest token after each token.
    fn likeliest(&mut self, model: &Model, tokens: &[u32], after: After) -> Result<Vec<u32>>;
    /// Runs the model for rows.
    fn step(&mut self, rows: &[Row]) -> Result<()>;
    /// Draws a token from logits, and returns it.
    fn draw(&mut self, source: LogitsPlace, sampler: &mut Sampler) -> Result<u32>;
    /// Returns logits.
    fn logits(&self, source: LogitsPlace) -> Result<Vec<f32>>;
}

/// The maximum number of tokens with logits at once: they are wide.
pub const LOSSES: usize = 128;

impl Options {
    /// Returns the number of tokens of a prompt that pass the layers at once.
    pub(super) fn at_once(&self) -> usize {
        if self.exact { self.piece.min(ALIKE) } else { self.piece }
    }
}

/// The device's part of texts, with caches of `K`.
pub struct Steps<K: kernel_dsl::Element> {
    stream: Stream,
    /// A graph for each width, ascending.
    steps: Vec<Step<K>>,
    /// The graph that has the caches.
    home: usize,
    options: Options,
    /// Logits after the last prompt.
    prompt: DeviceBuffer<f32>,
    vocabulary: usize,
    drawn: DeviceBuffer<u32>,
}

/// A graph that passes some rows through the model.
struct Step<K: kernel_dsl::Element> {
    graph: Graph<'static>,
    width: usize,
    caches: Vec<SlotMut<K>>,
    /// Extents of the cache of a layer.
    extents: [usize; 4],
    /// For each row its token, position, row of the cache, number of keys, and sequence.
    inputs: [SlotMut<u32>; 5],
    logits: SlotMut<f32>,
    /// The places and positions of the next step that are on the device.
    ready: Vec<(After, usize)>,
    /// The likeliest tokens of the last step, which are those of the next one on the device. They
    /// are none until the host has read them.
    likeliest: Option<Vec<u32>>,
}

/// Moves each row that sees keys to the next token.
#[kernel(block = 32, grid = lengths.len().div_ceil(32))]
#[requires(positions.len() == lengths.len(), rows.len() == lengths.len())]
fn advance(positions: &mut [u32], rows: &mut [u32], lengths: &mut [u32]) {
    let i = grid::index();
    if i < lengths.len() && lengths[i] > 0 {
        positions[i] += 1;
        rows[i] += 1;
        lengths[i] += 1;
    }
}

/// Caches of a graph that is being recorded.
struct Recorded<'a, K: kernel_dsl::Element>(&'a [SlotMut<K>], [usize; 4]);

impl<K: kernel_dsl::Element> Cached<K> for Recorded<'_, K> {
    fn layer(&mut self, layer: usize) -> Result<KeyValues<'_, K>> {
        Ok(self.0[layer].view_mut(self.1)?)
    }
}

impl<K: kernel_dsl::Element> Cached<K> for Step<K> {
    fn layer(&mut self, layer: usize) -> Result<KeyValues<'_, K>> {
        Ok(self.graph.buffer_mut(self.caches[layer])?.view_mut(self.extents)?)
    }
}

impl<K: Float + StoredElement + GenericArgument> Step<K> {
    /// Records a step of up to `width` rows, with the caches of all layers.
    fn record(
        model: &Model,
        Options { room, exact, .. }: Options,
        caches: Vec<DeviceBuffer<K>>,
        extents: [usize; 4],
        width: usize,
    ) -> Result<Step<K>> {
        let device = &model.device;
        let configuration = &model.configuration;
        let (pairs, vocabulary) = (configuration.head / 2, configuration.vocabulary);
        let recording = device.record();
        let caches = caches.into_iter().map(|cache| recording.own(cache));
        let caches = caches.collect::<runtime::Result<Vec<SlotMut<K>>>>()?;
        let zeros = || recording.own(device.zeros::<u32>(width)?);
        let inputs = [zeros()?, zeros()?, zeros()?, zeros()?, zeros()?];
        let [tokens, positions, rows, lengths, sequences] = inputs;
        let logits = recording.own(device.zeros::<f32>(width * vocabulary)?)?;
        let (axes, frequencies) = (recording.share(model.axes.clone())?, recording.share(model.frequencies.clone())?);
        let places = Places {
            tokens: Tokens {
                positions: positions.view([1, width])?,
                axes: axes.view([pairs])?,
                frequencies: frequencies.view([pairs])?,
                slots: rows.view([width])?,
            },
            lengths: lengths.view([width])?,
            pages: sequences.view([width, 1])?,
            after: None,
        };
        let mut memory = StepMemory::new(&recording, configuration, width, room, exact)?;
        let (of_tokens, of_logits) = (tokens.view([width])?, [width, vocabulary]);
        let mut to_logits = logits.view_mut(of_logits)?;
        let mut cache = Recorded(&caches, extents);
        let input = Input { tokens: of_tokens, images: &[] };
        model.run(&recording, input, &places, &mut cache, &mut to_logits, &mut memory)?;
        // The likeliest token is that of the next replay, unless another one is drawn.
        let likeliest = Sample::new(0).temperature(0.0);
        likeliest.run(&recording, &logits.view(of_logits)?, &mut tokens.view_mut([width])?)?;
        // SAFETY: each thread changes an element of each buffer, after comparing its index.
        unsafe { advance::launch_unchecked(&recording, positions, rows, lengths)? };
        let graph = recording.finish()?;
        Ok(Step { graph, width, caches, extents, inputs, logits, ready: Vec::new(), likeliest: None })
    }

    /// Takes the caches out of the graph, which gets empty ones.
    fn take(&mut self, device: &Device) -> Result<Vec<DeviceBuffer<K>>> {
        let mut taken = Vec::new();
        for slot in &self.caches {
            taken.push(std::mem::replace(self.graph.buffer_mut(*slot)?, device.zeros(0)?));
        }
        Ok(taken)
    }

    /// Replays the graph for rows.
    fn run(&mut self, stream: &Stream, rows: &[Row], room: usize) -> Result<()> {
        let [tokens, inputs @ ..] = self.inputs;
        let padded = |number: &dyn Fn(&Row) -> usize, other: u32| {
            let mut numbers: Vec<u32> = rows.iter().map(|row| number(row) as u32).collect();
            numbers.resize(self.width, other);
            numbers
        };
        let places: Vec<(After, usize)> = rows.iter().map(|row| (row.place, row.position)).collect();
        if self.ready != places {
            let numbers = [
                padded(&|row| row.position, 0),
                // A row of the cache that does not exist, so that nothing is stored.
                padded(&|row| row.place.sequence * room + row.place.tokens, u32::MAX),
                padded(&|row| row.place.tokens + 1, 0),
                padded(&|row| row.place.sequence, 0),
            ];
            for (slot, numbers) in inputs.into_iter().zip(numbers) {
                self.graph.buffer_mut(slot)?.copy_from(&numbers)?;
            }
        }
        let has_tokens = self.likeliest.as_ref().is_some_and(|likeliest| {
            likeliest.len() >= rows.len() && rows.iter().zip(likeliest).all(|(row, token)| row.token == *token)
        });
        if !has_tokens {
            let numbers = padded(&|row| row.token as usize, 0);
            self.graph.buffer_mut(tokens)?.copy_from(&numbers)?;
        }
        // A replay that fails leaves unknown numbers.
        (self.ready, self.likeliest) = (Vec::new(), None);
        self.graph.replay(stream)?;
        let next = |(place, position): (After, usize)| (After { tokens: place.tokens + 1, ..place }, position + 1);
        self.ready = places.into_iter().map(next).collect();
        Ok(())
    }

    /// Returns the likeliest token after a row of the last step.
    fn likeliest(&mut self, stream: &Stream, row: usize) -> Result<u32> {
        if self.likeliest.is_none() {
            stream.wait()?;
            self.likeliest = Some(self.graph.buffer(self.inputs[0])?.download()?);
        }
        let token = self.likeliest.as_ref().and_then(|tokens| tokens.get(row));
        token.copied().ok_or_else(|| Error::Tokens { action: "draw a token", problem: format!("no row {row}") })
    }
}

impl<K: Float + StoredElement + GenericArgument> Steps<K> {
    /// Allocates the caches and records a graph for each width up to that of all sequences, or of a
    /// token and its drafts.
    pub fn new(model: &Model, options: Options, sequences: usize) -> Result<Steps<K>> {
        let device = &model.device;
        let configuration = &model.configuration;
        let extents = [2 * sequences, configuration.groups, options.room, configuration.head];
        let zeros = |_| device.zeros::<K>(extents.iter().product());
        let mut caches = (0..configuration.layers).map(zeros).collect::<runtime::Result<Vec<_>>>()?;
        let mut steps: Vec<Step<K>> = Vec::new();
        let widest = sequences.max(1 + options.drafts).next_power_of_two();
        for width in (0..).map(|i| 1 << i).take_while(|width| *width <= widest) {
            if let Some(last) = steps.last_mut() {
                caches = last.take(device)?;
            }
            steps.push(Step::record(model, options, std::mem::take(&mut caches), extents, width)?);
        }
        Ok(Steps {
            stream: device.stream()?,
            home: steps.len() - 1,
            steps,
            options,
            prompt: device.zeros(configuration.vocabulary)?,
            vocabulary: configuration.vocabulary,
            drawn: device.zeros(1)?,
        })
    }

    /// Moves the caches to the graph number `to`.
    fn enter(&mut self, to: usize) -> Result<()> {
        if let Ok([from, to]) = self.steps.get_disjoint_mut([self.home, to]) {
            for (from_slot, to_slot) in from.caches.iter().zip(&to.caches) {
                std::mem::swap(from.graph.buffer_mut(*from_slot)?, to.graph.buffer_mut(*to_slot)?);
            }
        }
        self.home = to;
        Ok(())
    }

    /// Queues the model for consecutive tokens of a sequence. `logits` are those after the last
    /// tokens.
    fn forward(&mut self, model: &Model, section: &Section<'_>, logits: &mut BufferViewMut<'_, f32, 2>) -> Result<()> {
        let Options { room, exact, .. } = self.options;
        let Section { tokens, positions, images, after } = section;
        let (n, head, stream) = (tokens.len(), model.configuration.head, &self.stream);
        let numbers = |from: usize| (from..from + n).map(|i| i as u32).collect::<Vec<u32>>();
        let axes = if positions.len() == n { &model.axes } else { &model.image_axes };
        let tokens = stream.upload(tokens)?;
        let positions = stream.upload(positions)?;
        let rows = stream.upload(&numbers(after.sequence * room + after.tokens))?;
        let lengths = stream.upload(&numbers(after.tokens + 1))?;
        let pages = stream.upload(&vec![after.sequence as u32; n])?;
        let places = Places {
            tokens: Tokens {
                positions: positions.view([positions.len() / n.max(1), n])?,
                axes: axes.view([head / 2])?,
                frequencies: model.frequencies.view([head / 2])?,
                slots: rows.view([n])?,
            },
            lengths: lengths.view([n])?,
            pages: pages.view([n, 1])?,
            after: Some(*after),
        };
        let mut memory = StepMemory::new(stream, &model.configuration, n, room, exact)?;
        let input = Input { tokens: tokens.view([n])?, images };
        model.run(stream, input, &places, &mut self.steps[self.home], logits, &mut memory)
    }

    /// Queues the model for consecutive tokens of a sequence, and returns the logits after each.
    fn logits_of_all(&mut self, model: &Model, tokens: &[u32], after: After) -> Result<DeviceBuffer<f32>> {
        let mut logits = model.device.alloc::<f32>(tokens.len() * self.vocabulary)?;
        let section = Section::of_text(tokens, after);
        self.forward(model, &section, &mut logits.view_mut([tokens.len(), self.vocabulary])?)?;
        Ok(logits)
    }
}

impl<K: Float + StoredElement + GenericArgument> Run for Steps<K> {
    fn features(&mut self, model: &Model, picture: &Picture) -> Result<Features> {
        let Some(tower) = &model.tower else {
            let problem = "the model has no vision tower";
            return Err(Error::Tokens { action: "see an image", problem: problem.to_owned() });
        };
        tower.run(&self.stream, picture)
    }

    fn append(&mut self, model: &Model, section: &Section<'_>) -> Result<()> {
        let mut logits = std::mem::replace(&mut self.prompt, model.device.zeros(0)?);
        let run = self.forward(model, section, &mut logits.view_mut([1, self.vocabulary])?);
        self.prompt = logits;
        run?;
        Ok(self.stream.wait()?)
    }

    fn losses(&mut self, model: &Model, tokens: &[u32], labels: &[u32], after: After) -> Result<Vec<f32>> {
        let n = tokens.len();
        let logits = self.logits_of_all(model, tokens, after)?;
        let labels = self.stream.upload(labels)?;
        let (mut losses, mut log_sums) = (model.device.alloc::<f32>(n)?, model.device.alloc::<f32>(n)?);
        let (to_losses, to_sums) = (&mut losses.view_mut([n])?, &mut log_sums.view_mut([n])?);
        let logits = logits.view([n, self.vocabulary])?;
        CrossEntropy::new().run(&self.stream, &logits, &labels.view([n])?, to_losses, to_sums)?;
        self.stream.wait()?;
        Ok(losses.download()?)
    }

    fn likeliest(&mut self, model: &Model, tokens: &[u32], after: After) -> Result<Vec<u32>> {
        let n = tokens.len();
        let logits = self.logits_of_all(model, tokens, after)?;
        let mut drawn = model.device.zeros::<u32>(n)?;
        let likeliest = Sample::new(0).temperature(0.0);
        likeliest.run(&self.stream, &logits.view([n, self.vocabulary])?, &mut drawn.view_mut([n])?)?;
        self.stream.wait()?;
        Ok(drawn.download()?)
    }

    fn step(&mut self, rows: &[Row]) -> Result<()> {
        let of_width = self.steps.iter().position(|step| step.width >= rows.len());
        self.enter(of_width.unwrap_or(self.steps.len() - 1))?;
        self.steps[self.home].run(&self.stream, rows, self.options.room)
    }

    fn draw(&mut self, source: LogitsPlace, sampler: &mut Sampler) -> Result<u32> {
        let step = &mut self.steps[self.home];
        let mut logits = match source {
            LogitsPlace::Row(row) if sampler.is_greedy() => return step.likeliest(&self.stream, row),
            LogitsPlace::Row(row) => {
                let logits = step.graph.buffer_mut(step.logits)?.view_mut([step.width, self.vocabulary])?;
                logits.slice(row..row + 1)?
            }
            LogitsPlace::Prompt => self.prompt.view_mut([1, self.vocabulary])?,
        };
        sampler.draw(&self.stream, &mut logits, &mut self.drawn.view_mut([1])?)?;
        self.stream.wait()?;
        let token = self.drawn.download()?[0];
        if token as usize >= self.vocabulary {
            let problem = "no logit is a number: the weights or the cache are damaged".to_owned();
            return Err(Error::Tokens { action: "draw a token", problem });
        }
        Ok(token)
    }

    fn logits(&self, source: LogitsPlace) -> Result<Vec<f32>> {
        self.stream.wait()?;
        let step = &self.steps[self.home];
        Ok(match source {
            LogitsPlace::Prompt => self.prompt.download()?,
            LogitsPlace::Row(row) => {
                let n = self.vocabulary;
                step.graph.buffer(step.logits)?.download()?[row * n..(row + 1) * n].to_vec()
            }
        })
    }
}
