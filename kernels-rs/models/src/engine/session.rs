//! A text that grows: prompt, decoding by a replayed graph, generation.

use super::attention::{KeyValues, Places};
use super::model::{Cached, Memory, Model};
use super::sampling::{Sampler, Sampling};
use crate::error::{Error, Result};
use crate::memory::CacheFormat;
use crate::tokenizer::{Characters, Encoding};
use kernel_dsl::GenericArgument;
use kernel_dsl::prelude::*;
use kernels_rs::attention::cache::Stored;
use kernels_rs::blocks::cache::Tokens;
use kernels_rs::rowwise::CrossEntropy;
use kernels_rs::sampling::Sample;
use runtime::{BufferViewMut, DeviceBuffer, Graph, SlotMut, Stream};

/// How a session is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Tokens that the text may have.
    pub room: usize,
    /// Tokens of a prompt that pass the layers at once.
    pub piece: usize,
    /// How keys and values are kept: F16 or F32.
    pub cache: CacheFormat,
    /// Computes without approximations and token by token, prompts included. All devices then give
    /// equal bits, if the weights are quantized. With other weights the devices must have equal
    /// [facts](runtime::Device::cpu_with_facts).
    pub exact: bool,
}

impl Default for Options {
    /// Returns room for 4,096 tokens, with prompts in pieces of 512 and a cache of F16.
    fn default() -> Options {
        Options { room: 4096, piece: 512, cache: CacheFormat::F16, exact: false }
    }
}

/// How a text is generated.
#[derive(Clone, PartialEq, Debug)]
pub struct Generation {
    /// How tokens are drawn.
    pub sampling: Sampling,
    /// The most tokens.
    pub tokens: usize,
    /// Texts at which generation stops. They are not part of the result.
    pub stops: Vec<String>,
    /// Whether names of control tokens in the prompt are these tokens, as in chat templates.
    pub control: bool,
}

impl Default for Generation {
    /// Returns up to 256 of the likeliest tokens.
    fn default() -> Generation {
        Generation { sampling: Sampling::default(), tokens: 256, stops: Vec::new(), control: false }
    }
}

/// Why generation ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stop {
    /// The model ended its text.
    End,
    /// A stop text was generated.
    Text,
    /// The requested number of tokens was generated.
    Tokens,
    /// The session has no more room.
    Room,
}

/// A part of a generated text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Piece {
    /// The token.
    pub token: u32,
    /// The text that is complete with the token. It may be empty.
    pub text: String,
    /// Set with the last piece.
    pub stop: Option<Stop>,
}

/// The work of a session that depends on the format of its cache.
trait Run: Send {
    /// Runs the model for tokens that follow `before` others.
    fn append(&mut self, model: &Model, tokens: &[u32], before: usize) -> Result<()>;
    /// Runs the model likewise, and returns −ln of the probability of a label after each token.
    fn losses(&mut self, model: &Model, tokens: &[u32], labels: &[u32], before: usize) -> Result<Vec<f32>>;
    /// Draws a token from the logits, and returns it.
    fn draw(&mut self, sampler: &mut Sampler) -> Result<u32>;
    /// Runs the model for the token that was drawn last.
    fn step(&mut self, before: usize) -> Result<()>;
    /// Returns the logits.
    fn logits(&self) -> Result<Vec<f32>>;
}

/// The maximum number of tokens with logits at once: they are wide.
const LOSSES: usize = 128;

/// A text, and the keys and values of its tokens on a device.
pub struct Session {
    model: Model,
    options: Options,
    run: Box<dyn Run>,
    tokens: Vec<u32>,
    /// Tokens whose keys and values are in the cache. The logits are those after the last of them.
    done: usize,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Session({} tokens, {:?} on {})", self.tokens.len(), self.options, self.model.device)
    }
}

impl Session {
    /// Makes a session.
    pub(super) fn new(model: Model, options: Options) -> Result<Session> {
        if options.room == 0 || options.piece == 0 {
            return Err(Error::field("a session", "options", "expected room and pieces of 1 token or more"));
        }
        let run: Box<dyn Run> = match options.cache {
            CacheFormat::F32 => Box::new(Steps::<f32>::new(&model, options)?),
            CacheFormat::F16 => Box::new(Steps::<f16>::new(&model, options)?),
            CacheFormat::Q8_0 => {
                return Err(Error::unsupported("a session", "cache", "a cache of Q8_0", "F16, F32"));
            }
        };
        Ok(Session { model, options, run, tokens: Vec::new(), done: 0 })
    }

    /// Returns the model.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Returns the tokens of the text.
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// Rejects a text that does not fit.
    fn check(&self, tokens: &[u32]) -> Result<()> {
        let vocabulary = self.model.configuration.vocabulary;
        let problem = match tokens.len() {
            0 => "the text has no token: a model needs one to begin with".to_owned(),
            n if n > self.options.room => {
                format!("the text has {n} tokens, and the session room for {}", self.options.room)
            }
            _ => match tokens.iter().find(|token| **token as usize >= vocabulary) {
                Some(token) => format!("the token {token} is beyond the vocabulary of {vocabulary}"),
                None => return Ok(()),
            },
        };
        Err(Error::Tokens { action: "set the text of a session", problem })
    }

    /// Returns −ln of the probability of each token after the first, given those before it. The
    /// session's text is empty afterwards.
    ///
    /// # Errors
    /// If there are no tokens, or more than there is room for, or a launch fails.
    pub fn losses(&mut self, tokens: &[u32]) -> Result<Vec<f32>> {
        self.check(tokens)?;
        self.tokens.clear();
        self.done = 0;
        let piece = if self.options.exact { 1 } else { self.options.piece.min(LOSSES) };
        let mut losses = Vec::with_capacity(tokens.len());
        for (piece, i) in tokens.chunks(piece).zip((0..).step_by(piece)) {
            // A label beyond the vocabulary, after the last token, has no loss.
            let label = |at: usize| tokens.get(at + 1).copied().unwrap_or(u32::MAX);
            let labels: Vec<u32> = (i..i + piece.len()).map(label).collect();
            losses.extend(self.run.losses(&self.model, piece, &labels, i)?);
        }
        losses.pop();
        Ok(losses)
    }

    /// Replaces the text. Tokens at the begin that are already there are not computed again, except
    /// the last.
    ///
    /// # Errors
    /// If there are no tokens, or more than there is room for, or a launch fails.
    pub fn set(&mut self, tokens: &[u32]) -> Result<()> {
        self.check(tokens)?;
        let common = self.tokens.iter().zip(tokens).take(self.done).take_while(|(a, b)| a == b).count();
        let from = common.min(tokens.len() - 1);
        self.tokens.truncate(from);
        self.done = from;
        // A step of one token has the same kernels on all devices.
        let piece = if self.options.exact { 1 } else { self.options.piece };
        for piece in tokens[from..].chunks(piece) {
            self.run.append(&self.model, piece, self.done)?;
            self.tokens.extend(piece);
            self.done += piece.len();
        }
        Ok(())
    }

    /// Returns the logits after the last token of the text.
    ///
    /// # Errors
    /// If the text is empty, or the device fails.
    pub fn logits(&mut self) -> Result<Vec<f32>> {
        self.advance()?;
        self.run.logits()
    }

    /// Computes the keys and values of the last token, if they are not there.
    fn advance(&mut self) -> Result<()> {
        if self.tokens.is_empty() {
            let problem = "the text has no token".to_owned();
            return Err(Error::Tokens { action: "run a session", problem });
        }
        if self.done < self.tokens.len() {
            self.run.step(self.done)?;
            self.done = self.tokens.len();
        }
        Ok(())
    }

    /// Draws the next token and adds it to the text.
    ///
    /// # Errors
    /// If the text is empty, there is no more room, or the device fails.
    pub fn next(&mut self, sampler: &mut Sampler) -> Result<u32> {
        if self.tokens.len() >= self.options.room {
            let problem = format!("the session has room for {} tokens", self.options.room);
            return Err(Error::Tokens { action: "add a token", problem });
        }
        self.advance()?;
        let token = self.run.draw(sampler)?;
        self.tokens.push(token);
        Ok(token)
    }

    /// Sets the text to a prompt and returns an iterator over what the model adds to it.
    ///
    /// # Errors
    /// If the prompt does not fit, or the device fails.
    pub fn generate(&mut self, prompt: &str, generation: &Generation) -> Result<Generate<'_>> {
        let encoding = Encoding { control: generation.control, ends: !generation.control };
        let mut tokens = self.model.tokenizer.encode(prompt, encoding)?;
        // An empty prompt begins with the token that begins texts.
        if tokens.is_empty() {
            tokens.extend(self.model.tokenizer.special().begin);
        }
        self.set(&tokens)?;
        let vocabulary = self.model.configuration.vocabulary;
        let sampler = Sampler::new(&self.model.device, generation.sampling, vocabulary, &self.tokens)?;
        let left = generation.tokens;
        let stops = generation.stops.iter().filter(|stop| !stop.is_empty()).cloned().collect();
        let characters = self.model.tokenizer.characters(false);
        Ok(Generate { session: self, sampler, stops, left, held: String::new(), characters, has_ended: false })
    }
}

/// An iterator over the tokens that a model adds to a text.
#[derive(Debug)]
pub struct Generate<'a> {
    session: &'a mut Session,
    sampler: Sampler,
    stops: Vec<String>,
    /// Tokens that may still be generated.
    left: usize,
    /// Text that may be the begin of a stop text.
    held: String,
    characters: Characters,
    has_ended: bool,
}

impl Generate<'_> {
    /// Generates a token.
    fn piece(&mut self) -> Result<Piece> {
        let token = self.session.next(&mut self.sampler)?;
        self.left -= 1;
        let tokenizer = &self.session.model.tokenizer;
        let mut stop = tokenizer.special().end.contains(&token).then_some(Stop::End);
        if stop.is_none() {
            self.held.push_str(&self.characters.push(tokenizer, token)?);
            let found = self.stops.iter().filter_map(|stop| self.held.find(stop.as_str())).min();
            if let Some(at) = found {
                self.held.truncate(at);
                return Ok(Piece { token, text: std::mem::take(&mut self.held), stop: Some(Stop::Text) });
            }
            if self.left == 0 {
                stop = Some(Stop::Tokens);
            } else if self.session.tokens.len() >= self.session.options.room {
                stop = Some(Stop::Room);
            }
        }
        if stop.is_some() {
            self.held.push_str(&self.characters.finish());
            return Ok(Piece { token, text: std::mem::take(&mut self.held), stop });
        }
        let kept = self.stops.iter().map(|stop| overlap(&self.held, stop)).max().unwrap_or(0);
        let rest = self.held.split_off(self.held.len() - kept);
        Ok(Piece { token, text: std::mem::replace(&mut self.held, rest), stop })
    }
}

/// Returns the bytes at the end of `text` with which `stop` begins.
fn overlap(text: &str, stop: &str) -> usize {
    let mut lengths = (1..stop.len()).rev().filter(|n| stop.is_char_boundary(*n));
    lengths.find(|n| text.ends_with(&stop[..*n])).unwrap_or(0)
}

impl Iterator for Generate<'_> {
    type Item = Result<Piece>;

    fn next(&mut self) -> Option<Result<Piece>> {
        if self.has_ended || self.left == 0 {
            return None;
        }
        let piece = self.piece();
        self.has_ended = piece.as_ref().map_or(true, |piece| piece.stop.is_some());
        Some(piece)
    }
}

/// The device's part of a session, with a cache of `K`.
struct Steps<K: kernel_dsl::Element> {
    stream: Stream,
    /// A step of one token.
    graph: Graph<'static>,
    caches: Vec<SlotMut<K>>,
    /// Extents of the cache of a layer.
    extents: [usize; 4],
    room: usize,
    exact: bool,
    /// The token of the step, its position, and the number of keys that it sees.
    token: SlotMut<u32>,
    position: SlotMut<u32>,
    length: SlotMut<u32>,
    logits: SlotMut<f32>,
    vocabulary: usize,
    drawn: DeviceBuffer<u32>,
    /// The position of the next step that is on the device.
    ready: Option<usize>,
    /// Whether the token on the device is the likeliest one of the logits.
    is_likeliest: bool,
}

/// Moves the position and the number of keys to the next token.
#[kernel(block = 32, grid = 1)]
#[requires(position.len() == 1, length.len() == 1)]
fn advance(position: &mut [u32], length: &mut [u32]) {
    if thread::x() == 0 {
        position[0] += 1;
        length[0] += 1;
    }
}

/// Caches of a graph that is being recorded.
struct Recorded<'a, K: kernel_dsl::Element>(&'a [SlotMut<K>], [usize; 4]);

impl<K: kernel_dsl::Element> Cached<K> for Recorded<'_, K> {
    fn layer(&mut self, layer: usize) -> Result<KeyValues<'_, K>> {
        Ok(self.0[layer].view_mut(self.1)?)
    }
}

/// Caches of a graph between its replays.
struct Owned<'a, K: kernel_dsl::Element>(&'a mut Graph<'static>, &'a [SlotMut<K>], [usize; 4]);

impl<K: kernel_dsl::Element> Cached<K> for Owned<'_, K> {
    fn layer(&mut self, layer: usize) -> Result<KeyValues<'_, K>> {
        Ok(self.0.buffer_mut(self.1[layer])?.view_mut(self.2)?)
    }
}

impl<K: Float + Stored + GenericArgument> Steps<K> {
    /// Allocates the cache and records a step.
    fn new(model: &Model, Options { room, exact, .. }: Options) -> Result<Steps<K>> {
        let device = &model.device;
        let configuration = &model.configuration;
        let (groups, head, vocabulary) = (configuration.groups, configuration.head, configuration.vocabulary);
        let extents = [2, groups, room, head];
        let recording = device.record();
        let layers = 0..configuration.layers;
        let caches = layers.map(|_| Ok(recording.own(device.zeros::<K>(extents.iter().product())?)?));
        let caches = caches.collect::<Result<Vec<SlotMut<K>>>>()?;
        let [token, position, length] =
            [(); 3].map(|()| device.zeros::<u32>(1).and_then(|buffer| recording.own(buffer)));
        let (token, position, length) = (token?, position?, length?);
        let logits = recording.own(device.zeros::<f32>(vocabulary)?)?;
        let pages = recording.own(device.zeros::<u32>(1)?)?;
        let (axes, frequencies) = (recording.share(model.axes.clone())?, recording.share(model.frequencies.clone())?);
        let places = Places {
            tokens: Tokens {
                positions: position.view([1, 1])?,
                axes: axes.view([head / 2])?,
                frequencies: frequencies.view([head / 2])?,
                slots: position.view([1])?,
            },
            lengths: length.view([1])?,
            pages: pages.view([1, 1])?,
            before: None,
        };
        let mut memory = Memory::new(&recording, configuration, 1, room, exact)?;
        let mut cache = Recorded(&caches, extents);
        let of_token = token.view([1])?;
        model.run(&recording, &of_token, &places, &mut cache, &mut logits.view_mut([1, vocabulary])?, &mut memory)?;
        // The likeliest token is that of the next replay, unless another one is drawn.
        let likeliest = Sample::new(0).temperature(0.0);
        likeliest.run(&recording, &logits.view([1, vocabulary])?, &mut token.view_mut([1])?)?;
        // SAFETY: one thread changes one element of each buffer.
        unsafe { advance::launch_unchecked(&recording, position, length)? };
        Ok(Steps {
            stream: device.stream()?,
            graph: recording.finish()?,
            caches,
            extents,
            room,
            exact,
            token,
            position,
            length,
            logits,
            vocabulary,
            drawn: device.zeros(1)?,
            ready: None,
            is_likeliest: false,
        })
    }
}

impl<K: Float + Stored + GenericArgument> Steps<K> {
    /// Queues the model for tokens that follow `before` others. `logits` are those after the last
    /// tokens.
    fn forward(
        &mut self,
        model: &Model,
        tokens: &[u32],
        before: usize,
        logits: &mut BufferViewMut<'_, f32, 2>,
    ) -> Result<()> {
        let (n, head, stream) = (tokens.len(), model.configuration.head, &self.stream);
        let numbers = |from: usize| (from..from + n).map(|i| i as u32).collect::<Vec<u32>>();
        let tokens = stream.upload(tokens)?;
        let (positions, lengths) = (stream.upload(&numbers(before))?, stream.upload(&numbers(before + 1))?);
        let pages = stream.upload(&vec![0u32; n])?;
        let places = Places {
            tokens: Tokens {
                positions: positions.view([1, n])?,
                axes: model.axes.view([head / 2])?,
                frequencies: model.frequencies.view([head / 2])?,
                slots: positions.view([n])?,
            },
            lengths: lengths.view([n])?,
            pages: pages.view([n, 1])?,
            before: Some(before),
        };
        let mut memory = Memory::new(stream, &model.configuration, n, self.room, self.exact)?;
        let mut cache = Owned(&mut self.graph, &self.caches, self.extents);
        model.run(stream, &tokens.view([n])?, &places, &mut cache, logits, &mut memory)
    }
}

impl<K: Float + Stored + GenericArgument> Run for Steps<K> {
    fn append(&mut self, model: &Model, tokens: &[u32], before: usize) -> Result<()> {
        let mut logits = model.device.alloc::<f32>(self.vocabulary)?;
        self.forward(model, tokens, before, &mut logits.view_mut([1, self.vocabulary])?)?;
        self.stream.copy(&logits, self.graph.buffer_mut(self.logits)?)?;
        self.is_likeliest = false;
        Ok(self.stream.wait()?)
    }

    fn losses(&mut self, model: &Model, tokens: &[u32], labels: &[u32], before: usize) -> Result<Vec<f32>> {
        let n = tokens.len();
        let extents = [n, self.vocabulary];
        let mut logits = model.device.alloc::<f32>(n * self.vocabulary)?;
        self.forward(model, tokens, before, &mut logits.view_mut(extents)?)?;
        let labels = self.stream.upload(labels)?;
        let (mut losses, mut log_sums) = (model.device.alloc::<f32>(n)?, model.device.alloc::<f32>(n)?);
        let (to_losses, to_sums) = (&mut losses.view_mut([n])?, &mut log_sums.view_mut([n])?);
        let logits = logits.view(extents)?;
        CrossEntropy::new().run(&self.stream, &logits, &labels.view([n])?, to_losses, to_sums)?;
        self.stream.wait()?;
        Ok(losses.download()?)
    }

    fn draw(&mut self, sampler: &mut Sampler) -> Result<u32> {
        if self.is_likeliest && sampler.is_greedy() {
            self.stream.wait()?;
            return Ok(self.graph.buffer(self.token)?.download()?[0]);
        }
        let logits = self.graph.buffer_mut(self.logits)?;
        let (mut logits, mut drawn) = (logits.view_mut([1, self.vocabulary])?, self.drawn.view_mut([1])?);
        sampler.draw(&self.stream, &mut logits, &mut drawn)?;
        self.stream.copy(&self.drawn, self.graph.buffer_mut(self.token)?)?;
        let token = self.drawn.download()?[0];
        if token as usize >= self.vocabulary {
            let problem = "no logit is a number: the weights or the cache are damaged".to_owned();
            return Err(Error::Tokens { action: "draw a token", problem });
        }
        Ok(token)
    }

    fn step(&mut self, before: usize) -> Result<()> {
        if self.ready != Some(before) {
            for (slot, number) in [(self.position, before), (self.length, before + 1)] {
                self.graph.buffer_mut(slot)?.copy_from(&[number as u32])?;
            }
        }
        self.ready = None;
        self.graph.replay(&self.stream)?;
        self.ready = Some(before + 1);
        self.is_likeliest = true;
        Ok(())
    }

    fn logits(&self) -> Result<Vec<f32>> {
        self.stream.wait()?;
        Ok(self.graph.buffer(self.logits)?.download()?)
    }
}

#[cfg(test)]
mod tests {
    use super::overlap;

    #[test]
    fn begins_of_stops_are_held() {
        assert_eq!(overlap("one\nUs", "\nUser:"), 3);
        assert_eq!(overlap("one\nUser", "User:"), 4);
        assert_eq!(overlap("one", "User:"), 0);
        assert_eq!(overlap("é", "éa"), 2);
        assert_eq!(overlap("a", "é"), 0);
    }
}
