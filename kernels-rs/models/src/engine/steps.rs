//! Work of a device for the texts of a batch: caches, prompts, and steps by replayed graphs.
//!
//! A step passes rows through the model: the next tokens of several sequences, or of one sequence a
//! token and drafts of those after it. There is a graph for each width, 1, 2, 4, …, and a step
//! takes the first that is wide enough. Rows beyond those of a step see no keys and store none. The
//! graphs pass the caches on to each other, because a buffer has one owner.
//!
//! # Tokens stay on the device
//!
//! ```text
//!   graph k ─ logits ─ draws ─ tokens ─▶ graph k + 1 ─ logits ─ draws ─ tokens ─▶ …
//!                                 └─▶ pinned memory ─▶ host
//! ```
//!
//! A graph ends with the likeliest token of each row, and with the places of the next step. Draws
//! of other samplers follow the graph on the stream, and replace the likeliest tokens. The host
//! reads the tokens from pinned memory, and uploads none for the next step.

use super::attention::{After, Places};
use super::cache::{CacheElement, KeyValues, Pages};
use super::linear::ALIKE;
use super::model::{Cached, Input, Inserted, Model, StepMemory};
use super::sampling::Sampler;
use super::session::Options;
use super::timing::{Launches, Selection};
use super::vision::Features;
use crate::error::{Error, Result};
use crate::image::Picture;
use kernel_dsl::half::f16;
use kernel_dsl::prelude::*;
use kernels_rs::blocks::cache::Tokens;
use kernels_rs::rowwise::CrossEntropy;
use kernels_rs::sampling::Sample;
use runtime::{BufferViewMut, Device, DeviceBuffer, Graph, PinnedBuffer, SlotMut, Stream};

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
    fn append(&mut self, model: &Model, section: &Section<'_>, pages: &Pages) -> Result<()>;
    /// Runs the model likewise, and returns −ln of the probability of a label after each token.
    fn losses(&mut self, model: &Model, section: &Section<'_>, labels: &[u32], pages: &Pages) -> Result<Vec<f32>>;
    /// Runs the model likewise, and returns the likeliest token after each token.
    fn likeliest(&mut self, model: &Model, section: &Section<'_>, pages: &Pages) -> Result<Vec<u32>>;
    /// Runs the model for rows.
    fn step(&mut self, rows: &[Row], pages: &Pages) -> Result<()>;
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

/// The content of the graph of a step.
#[derive(Clone, Copy)]
pub(super) struct StepForm<'a> {
    /// The number of rows.
    pub width: usize,
    /// The tokens before a prompt whose tokens the rows are. A step has none.
    pub before: Option<usize>,
    /// The instance of a kernel whose launches alone are recorded.
    pub instance: Option<&'a str>,
    /// How often each launch is recorded.
    pub repeats: usize,
}

/// The cache of a layer, as [`KeyValues`] has it.
pub(super) struct LayerCache<K: kernel_dsl::Element> {
    numbers: DeviceBuffer<K>,
    scales: DeviceBuffer<f16>,
}

/// The cache of a layer in a graph.
#[derive(Clone, Copy)]
struct LayerSlots<K: kernel_dsl::Element> {
    numbers: SlotMut<K>,
    scales: SlotMut<f16>,
}

/// The extents of the cache of a layer: of numbers, and of scales.
#[derive(Clone, Copy)]
struct CacheExtents([[usize; 4]; 2]);

impl CacheExtents {
    fn new<K: CacheElement>(model: &Model, pages: &Pages) -> CacheExtents {
        let ([count, rows], configuration) = (pages.extents(), &model.configuration);
        let of_row = [configuration.head, K::scales(configuration.head)];
        CacheExtents(of_row.map(|numbers| [2 * count, configuration.groups, rows, numbers]))
    }
}

/// A graph that passes some rows through the model.
pub(super) struct Step<K: kernel_dsl::Element> {
    graph: Graph<'static>,
    width: usize,
    caches: Vec<LayerSlots<K>>,
    extents: CacheExtents,
    inputs: Inputs,
    logits: SlotMut<f32>,
    /// The places of the next step that are on the device, and the version of their pages.
    ready: Option<(Vec<RowPlace>, u64)>,
    /// The tokens of the next step that are on the device, if the host knows them.
    tokens: Option<Vec<u32>>,
    /// The host's copy of the tokens.
    copy: PinnedBuffer<u32>,
}

/// The place of a row, and its position.
type RowPlace = (After, usize);

/// The inputs of a graph, with a number for each row.
#[derive(Clone, Copy)]
struct Inputs {
    tokens: SlotMut<u32>,
    positions: SlotMut<u32>,
    /// The row of the cache in which keys and values are stored.
    slots: SlotMut<u32>,
    /// The tokens of the text before the row.
    rows: SlotMut<u32>,
    /// The keys that the row sees.
    lengths: SlotMut<u32>,
    /// The pages of the text.
    pages: SlotMut<u32>,
}

/// Moves each row that sees keys to the next token. Pages have `of_page` tokens.
#[kernel(block = 32, grid = lengths.len().div_ceil(32))]
#[requires(
    positions.len() == lengths.len(), rows.len() == lengths.len(), slots.len() == lengths.len(),
    pages.rows() == lengths.len(), of_page > 0,
)]
fn advance(
    positions: &mut [u32],
    slots: &mut [u32],
    rows: &mut [u32],
    lengths: &mut [u32],
    pages: View<u32, 2>,
    of_page: usize,
) {
    let i = grid::index();
    if i < lengths.len() && lengths[i] > 0 {
        let row = rows[i] + 1;
        positions[i] += 1;
        rows[i] = row;
        lengths[i] += 1;
        let page = row as usize / of_page;
        // Beyond the pages nothing is stored.
        let beyond = page >= pages.cols();
        slots[i] = if beyond { 0xffff_ffff } else { pages[(i, page)] * of_page as u32 + row % of_page as u32 };
    }
}

/// Caches of a graph that is being recorded.
struct RecordedCaches<'a, K: kernel_dsl::Element>(&'a [LayerSlots<K>], CacheExtents);

impl<K: kernel_dsl::Element> Cached<K> for RecordedCaches<'_, K> {
    fn layer(&mut self, layer: usize) -> Result<KeyValues<'_, K>> {
        let CacheExtents([of_numbers, of_scales]) = self.1;
        let LayerSlots { numbers, scales } = self.0[layer];
        Ok(KeyValues { numbers: numbers.view_mut(of_numbers)?, scales: scales.view_mut(of_scales)? })
    }
}

/// Caches of all layers outside a graph.
struct LentCaches<'a, K: kernel_dsl::Element>(&'a mut [LayerCache<K>], CacheExtents);

impl<K: kernel_dsl::Element> Cached<K> for LentCaches<'_, K> {
    fn layer(&mut self, layer: usize) -> Result<KeyValues<'_, K>> {
        let CacheExtents([of_numbers, of_scales]) = self.1;
        let LayerCache { numbers, scales } = &mut self.0[layer];
        Ok(KeyValues { numbers: numbers.view_mut(of_numbers)?, scales: scales.view_mut(of_scales)? })
    }
}

impl<K: CacheElement> Step<K> {
    /// Allocates the caches of all layers.
    pub(super) fn caches(model: &Model, pages: &Pages) -> Result<Vec<LayerCache<K>>> {
        let CacheExtents([of_numbers, of_scales]) = CacheExtents::new::<K>(model, pages);
        let zeros = |_| {
            let (numbers, scales) = (of_numbers.iter().product(), of_scales.iter().product());
            Ok(LayerCache { numbers: model.device.zeros(numbers)?, scales: model.device.zeros(scales)? })
        };
        (0..model.configuration.layers).map(zeros).collect()
    }

    /// Records a step with the caches of all layers, and counts its launches.
    pub(super) fn record(
        model: &Model,
        exact: bool,
        caches: Vec<LayerCache<K>>,
        pages: &Pages,
        StepForm { width, before, instance, repeats }: StepForm<'_>,
        launches: &Launches,
    ) -> Result<Step<K>> {
        let device = &model.device;
        let configuration = &model.configuration;
        let (pairs, vocabulary) = (configuration.head / 2, configuration.vocabulary);
        let ([_, of_page], of_text) = (pages.extents(), pages.table(0).len());
        let extents = CacheExtents::new::<K>(model, pages);
        let recording = device.record();
        let queue = Selection { recording: &recording, instance, repeats, launches };
        let own = |LayerCache { numbers, scales }: LayerCache<K>| {
            Ok(LayerSlots { numbers: recording.own(numbers)?, scales: recording.own(scales)? })
        };
        let caches = caches.into_iter().map(own).collect::<runtime::Result<Vec<LayerSlots<K>>>>()?;
        let zeros = |n: usize| recording.own(device.zeros::<u32>(n)?);
        let inputs = Inputs {
            tokens: zeros(width)?,
            positions: zeros(width)?,
            slots: zeros(width)?,
            rows: zeros(width)?,
            lengths: zeros(width)?,
            pages: zeros(width * of_text)?,
        };
        let Inputs { tokens, positions, slots, rows, lengths, pages } = inputs;
        // Only the last token of a prompt has logits.
        let of_logits = [if before.is_some() { 1 } else { width }, vocabulary];
        let logits = recording.own(device.zeros::<f32>(of_logits.iter().product())?)?;
        let (axes, frequencies) = (recording.share(model.axes.clone())?, recording.share(model.frequencies.clone())?);
        let indices = recording.own(device.upload(&numbers(0, width))?)?;
        let places = Places {
            tokens: Tokens {
                positions: positions.view([1, width])?,
                axes: axes.view([pairs])?,
                frequencies: frequencies.view([pairs])?,
                slots: slots.view([width])?,
            },
            rows: rows.view([width])?,
            lengths: lengths.view([width])?,
            pages: pages.view([width, of_text])?,
            indices: indices.view([width])?,
            before,
        };
        let mut memory = StepMemory::new(&recording, configuration, width, of_text * of_page, exact)?;
        let input = Input { tokens: tokens.view([width])?, images: &[] };
        let mut cache = RecordedCaches(&caches, extents);
        model.run(&queue, input, &places, &mut cache, &mut logits.view_mut(of_logits)?, &mut memory)?;
        if before.is_none() {
            // The likeliest token is that of the next replay, unless another one is drawn.
            let likeliest = Sample::new(0).temperature(0.0);
            likeliest.run(&queue, &logits.view(of_logits)?, &mut tokens.view_mut([width])?)?;
            let pages = pages.view([width, of_text])?;
            // SAFETY: each thread changes an element of each buffer, after comparing its index.
            unsafe { advance::launch_unchecked(&queue, positions, slots, rows, lengths, pages, of_page)? };
        }
        let graph = recording.finish()?;
        Ok(Step {
            graph,
            width,
            caches,
            extents,
            inputs,
            logits,
            ready: None,
            tokens: None,
            copy: device.pinned(width)?,
        })
    }

    /// Takes the caches out of the graph, which gets empty ones.
    pub(super) fn take(&mut self, device: &Device) -> Result<Vec<LayerCache<K>>> {
        let mut taken = Vec::new();
        for LayerSlots { numbers, scales } in &self.caches {
            let numbers = std::mem::replace(self.graph.buffer_mut(*numbers)?, device.zeros(0)?);
            let scales = std::mem::replace(self.graph.buffer_mut(*scales)?, device.zeros(0)?);
            taken.push(LayerCache { numbers, scales });
        }
        Ok(taken)
    }

    /// Puts the caches into the graph.
    fn put(&mut self, caches: Vec<LayerCache<K>>) -> Result<()> {
        for (LayerSlots { numbers, scales }, cache) in self.caches.iter().zip(caches) {
            *self.graph.buffer_mut(*numbers)? = cache.numbers;
            *self.graph.buffer_mut(*scales)? = cache.scales;
        }
        Ok(())
    }

    /// Uploads tokens and places of rows.
    pub(super) fn set_rows(&mut self, rows: &[Row], pages: &Pages) -> Result<()> {
        self.set_places(rows, pages)?;
        self.set_tokens(rows)
    }

    fn set_tokens(&mut self, rows: &[Row]) -> Result<()> {
        let mut tokens: Vec<u32> = rows.iter().map(|row| row.token).collect();
        tokens.resize(self.width, 0);
        Ok(self.graph.buffer_mut(self.inputs.tokens)?.copy_from(&tokens)?)
    }

    /// Replays the graph with what is on the device.
    pub(super) fn replay_again(&mut self, stream: &Stream) -> Result<()> {
        Ok(self.graph.replay(stream)?)
    }

    /// Uploads the places of rows, and the pages of their texts.
    fn set_places(&mut self, rows: &[Row], pages: &Pages) -> Result<()> {
        let padded = |number: &dyn Fn(&Row) -> u32, other: u32| {
            let numbers = rows.iter().map(number);
            numbers.chain(std::iter::repeat(other)).take(self.width).collect::<Vec<u32>>()
        };
        let Inputs { positions, slots, rows: of_rows, lengths, pages: tables, .. } = self.inputs;
        let numbers = [
            (positions, padded(&|row| row.position as u32, 0)),
            // Rows of the cache that do not exist, so that nothing is stored.
            (slots, padded(&|row| pages.slot(row.place.sequence, row.place.tokens), u32::MAX)),
            (of_rows, padded(&|row| row.place.tokens as u32, u32::MAX)),
            (lengths, padded(&|row| row.place.tokens as u32 + 1, 0)),
        ];
        for (slot, numbers) in numbers {
            self.graph.buffer_mut(slot)?.copy_from(&numbers)?;
        }
        let of_text = pages.table(0).len();
        let mut table: Vec<u32> = rows.iter().flat_map(|row| pages.table(row.place.sequence)).copied().collect();
        table.resize(self.width * of_text, 0);
        self.graph.buffer_mut(tables)?.copy_from(&table)?;
        Ok(())
    }

    /// Replays the graph for rows, after uploading places and tokens that the device does not have.
    fn run(&mut self, stream: &Stream, rows: &[Row], pages: &Pages) -> Result<()> {
        let places: Vec<RowPlace> = rows.iter().map(|row| (row.place, row.position)).collect();
        let version = pages.version();
        let has_places = self.ready.take().is_some_and(|ready| ready == (places.clone(), version));
        // A replay that fails leaves unknown numbers.
        let has_tokens = self.tokens.take().is_some_and(|tokens| {
            tokens.len() >= rows.len() && rows.iter().zip(tokens).all(|(row, token)| row.token == token)
        });
        if !has_places {
            self.set_places(rows, pages)?;
        }
        if !has_tokens {
            self.set_tokens(rows)?;
        }
        self.graph.replay(stream)?;
        let next = |(place, position): (After, usize)| (After { tokens: place.tokens + 1, ..place }, position + 1);
        self.ready = Some((places.into_iter().map(next).collect(), version));
        Ok(())
    }

    /// Queues a draw from the logits after a row, which replaces the likeliest token.
    fn draw(&mut self, stream: &Stream, row: usize, sampler: &mut Sampler, vocabulary: usize) -> Result<()> {
        self.tokens = None;
        // The graph lends one buffer at a time.
        let mut logits = std::mem::replace(self.graph.buffer_mut(self.logits)?, stream.device().zeros(0)?);
        let drawn = (|| {
            let mut logits = logits.view_mut([self.width, vocabulary])?.slice(row..row + 1)?;
            let tokens = self.graph.buffer_mut(self.inputs.tokens)?.view_mut([self.width])?;
            sampler.draw(stream, &mut logits, &mut tokens.slice(row..row + 1)?)
        })();
        *self.graph.buffer_mut(self.logits)? = logits;
        drawn
    }

    /// Returns the token after a row of the last step.
    fn token(&mut self, stream: &Stream, row: usize) -> Result<u32> {
        if self.tokens.is_none() {
            stream.download_to(self.graph.buffer(self.inputs.tokens)?, &mut self.copy)?;
            // Also reports violations.
            stream.wait()?;
            self.tokens = Some(self.copy.as_slice()?.to_vec());
        }
        let token = self.tokens.as_ref().and_then(|tokens| tokens.get(row));
        token.copied().ok_or_else(|| Error::Tokens { action: "draw a token", problem: format!("no row {row}") })
    }
}

/// Returns `n` numbers from `first` on.
fn numbers(first: usize, n: usize) -> Vec<u32> {
    (first..first + n).map(|i| i as u32).collect()
}

impl<K: CacheElement> Steps<K> {
    /// Allocates the caches and records a graph for each width up to that of all sequences, or of a
    /// token and its drafts.
    pub fn new(model: &Model, options: Options, sequences: usize, pages: &Pages) -> Result<Steps<K>> {
        let device = &model.device;
        let mut caches = Step::caches(model, pages)?;
        let mut steps: Vec<Step<K>> = Vec::new();
        let widest = sequences.max(1 + options.drafts).next_power_of_two();
        for width in (0..).map(|i| 1 << i).take_while(|width| *width <= widest) {
            if let Some(last) = steps.last_mut() {
                caches = last.take(device)?;
            }
            let form = StepForm { width, before: None, instance: None, repeats: 1 };
            let caches = std::mem::take(&mut caches);
            steps.push(Step::record(model, options.exact, caches, pages, form, &Launches::default())?);
        }
        Ok(Steps {
            stream: device.stream()?,
            home: steps.len() - 1,
            steps,
            options,
            prompt: device.zeros(model.configuration.vocabulary)?,
            vocabulary: model.configuration.vocabulary,
            drawn: device.zeros(1)?,
        })
    }

    /// Moves the caches to the graph number `to`.
    fn enter(&mut self, to: usize) -> Result<()> {
        if to != self.home {
            let device = self.stream.device().clone();
            let caches = self.steps[self.home].take(&device)?;
            self.steps[to].put(caches)?;
            self.home = to;
        }
        Ok(())
    }

    /// Queues the model for consecutive tokens of a sequence. `logits` are those after the last
    /// tokens.
    fn forward(
        &mut self,
        model: &Model,
        section: &Section<'_>,
        pages: &Pages,
        logits: &mut BufferViewMut<'_, f32, 2>,
    ) -> Result<()> {
        let Section { tokens, positions, images, after } = section;
        let (n, head, stream) = (tokens.len(), model.configuration.head, &self.stream);
        let axes = if positions.len() == n { &model.axes } else { &model.image_axes };
        let tokens = stream.upload(tokens)?;
        let positions = stream.upload(positions)?;
        let slots: Vec<u32> = (0..n).map(|i| pages.slot(after.sequence, after.tokens + i)).collect();
        let slots = stream.upload(&slots)?;
        let rows = stream.upload(&numbers(after.tokens, n))?;
        let lengths = stream.upload(&numbers(after.tokens + 1, n))?;
        let table = pages.table(after.sequence);
        let tables = stream.upload(&table.repeat(n))?;
        let indices = stream.upload(&numbers(0, n))?;
        let places = Places {
            tokens: Tokens {
                positions: positions.view([positions.len() / n.max(1), n])?,
                axes: axes.view([head / 2])?,
                frequencies: model.frequencies.view([head / 2])?,
                slots: slots.view([n])?,
            },
            rows: rows.view([n])?,
            lengths: lengths.view([n])?,
            pages: tables.view([n, table.len()])?,
            indices: indices.view([n])?,
            before: Some(after.tokens),
        };
        let [_, of_page] = pages.extents();
        let room = table.len() * of_page;
        let mut memory = StepMemory::new(stream, &model.configuration, n, room, self.options.exact)?;
        let input = Input { tokens: tokens.view([n])?, images };
        let step = &mut self.steps[self.home];
        let mut caches = step.take(self.stream.device())?;
        let mut cache = LentCaches(&mut caches, step.extents);
        let run = model.run(&self.stream, input, &places, &mut cache, logits, &mut memory);
        step.put(caches)?;
        run
    }

    /// Queues the model for consecutive tokens of a sequence, and returns the logits after each.
    fn logits_of_all(&mut self, model: &Model, section: &Section<'_>, pages: &Pages) -> Result<DeviceBuffer<f32>> {
        let n = section.tokens.len();
        let mut logits = model.device.alloc::<f32>(n * self.vocabulary)?;
        self.forward(model, section, pages, &mut logits.view_mut([n, self.vocabulary])?)?;
        Ok(logits)
    }
}

impl<K: CacheElement> Run for Steps<K> {
    fn features(&mut self, model: &Model, picture: &Picture) -> Result<Features> {
        let Some(tower) = &model.tower else {
            let problem = "the model has no vision tower";
            return Err(Error::Tokens { action: "see an image", problem: problem.to_owned() });
        };
        tower.run(&self.stream, picture)
    }

    fn append(&mut self, model: &Model, section: &Section<'_>, pages: &Pages) -> Result<()> {
        let mut logits = std::mem::replace(&mut self.prompt, model.device.zeros(0)?);
        let run = self.forward(model, section, pages, &mut logits.view_mut([1, self.vocabulary])?);
        self.prompt = logits;
        run?;
        Ok(self.stream.wait()?)
    }

    fn losses(&mut self, model: &Model, section: &Section<'_>, labels: &[u32], pages: &Pages) -> Result<Vec<f32>> {
        let n = section.tokens.len();
        let logits = self.logits_of_all(model, section, pages)?;
        let labels = self.stream.upload(labels)?;
        let (mut losses, mut log_sums) = (model.device.alloc::<f32>(n)?, model.device.alloc::<f32>(n)?);
        let (to_losses, to_sums) = (&mut losses.view_mut([n])?, &mut log_sums.view_mut([n])?);
        let logits = logits.view([n, self.vocabulary])?;
        CrossEntropy::new().run(&self.stream, &logits, &labels.view([n])?, to_losses, to_sums)?;
        self.stream.wait()?;
        Ok(losses.download()?)
    }

    fn likeliest(&mut self, model: &Model, section: &Section<'_>, pages: &Pages) -> Result<Vec<u32>> {
        let n = section.tokens.len();
        let logits = self.logits_of_all(model, section, pages)?;
        let mut drawn = model.device.zeros::<u32>(n)?;
        let likeliest = Sample::new(0).temperature(0.0);
        likeliest.run(&self.stream, &logits.view([n, self.vocabulary])?, &mut drawn.view_mut([n])?)?;
        self.stream.wait()?;
        Ok(drawn.download()?)
    }

    fn step(&mut self, rows: &[Row], pages: &Pages) -> Result<()> {
        let of_width = self.steps.iter().position(|step| step.width >= rows.len());
        self.enter(of_width.unwrap_or(self.steps.len() - 1))?;
        self.steps[self.home].run(&self.stream, rows, pages)
    }

    fn draw(&mut self, place: LogitsPlace, sampler: &mut Sampler) -> Result<u32> {
        let token = match place {
            LogitsPlace::Row(row) => {
                let step = &mut self.steps[self.home];
                if !sampler.is_greedy() {
                    step.draw(&self.stream, row, sampler, self.vocabulary)?;
                }
                step.token(&self.stream, row)?
            }
            LogitsPlace::Prompt => {
                let mut logits = self.prompt.view_mut([1, self.vocabulary])?;
                sampler.draw(&self.stream, &mut logits, &mut self.drawn.view_mut([1])?)?;
                self.stream.wait()?;
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
        self.stream.wait()?;
        let step = &self.steps[self.home];
        Ok(match place {
            LogitsPlace::Prompt => self.prompt.download()?,
            LogitsPlace::Row(row) => {
                let n = self.vocabulary;
                step.graph.buffer(step.logits)?.download()?[row * n..(row + 1) * n].to_vec()
            }
        })
    }
}
