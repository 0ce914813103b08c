//! A single sequence that grows: prompt, decoding by a replayed graph, generation.

use super::batch::Batch;
use super::model::Model;
use super::prompt::{PLACEHOLDER, Prompt};
use super::sampling::{Sampler, Sampling};
use crate::error::{Error, Result};
use crate::image::{Image, ImageProcessor};
use crate::memory::CacheFormat;
use crate::tokenizer::{Encoding, TextDecoderState, Tokenizer};
use std::sync::Arc;

/// How a session is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SessionOptions {
    /// The context size: the maximum number of tokens of a sequence.
    pub context_size: usize,
    /// The chunk size: the number of tokens of a prompt that pass through the layers at once.
    pub chunk_size: usize,
    /// How keys and values are kept.
    pub cache: CacheFormat,
    /// Tokens of a page of the cache, if there are several sequences. Sequences that begin alike
    /// share the full pages of their common tokens.
    pub page: usize,
    /// Computes without approximations, and each token as if it were alone in a step. All devices
    /// then give equal bits if the weights are quantized. With other weights the devices must have
    /// equal [facts](runtime::Device::cpu_with_facts). Features of images have approximations in
    /// either case.
    pub exact: bool,
    /// The maximum number of tokens that are guessed from repetitions in the sequence and verified
    /// in one step; 0 for none, at most 15. With `exact`, drafts do not change the tokens.
    pub drafts: usize,
}

impl Default for SessionOptions {
    /// Returns a context size of 4,096 tokens, chunks of 512, and a cache of F16 in pages of 64.
    fn default() -> SessionOptions {
        SessionOptions {
            context_size: 4096,
            chunk_size: 512,
            cache: CacheFormat::F16,
            page: 64,
            exact: false,
            drafts: 0,
        }
    }
}

/// How tokens are generated after a prompt.
#[derive(Clone, PartialEq, Debug)]
pub struct Generation {
    /// How tokens are drawn.
    pub sampling: Sampling,
    /// The maximum number of generated tokens.
    pub tokens: usize,
    /// Strings at which generation stops, and which are not part of the result.
    pub stops: Vec<String>,
    /// Whether names of control tokens in the prompt become these tokens, as in chat templates.
    pub parse_special: bool,
}

impl Default for Generation {
    /// Returns up to 256 of the likeliest tokens.
    fn default() -> Generation {
        Generation { sampling: Sampling::default(), tokens: 256, stops: Vec::new(), parse_special: false }
    }
}

/// Why generation ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StopReason {
    /// The model generated an end token.
    EndToken,
    /// A stop string was generated.
    StopString,
    /// The requested number of tokens was generated.
    TokenLimit,
    /// The sequence is full.
    ContextFull,
}

/// A generated token, and the text that it completes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GeneratedToken {
    /// The token.
    pub token: u32,
    /// The text that is complete with the token, possibly empty.
    pub text: String,
    /// Why generation ended, at the last token.
    pub stop: Option<StopReason>,
}

/// A sequence of tokens, and its keys and values on a device.
#[derive(Debug)]
pub struct Session(Batch);

impl Session {
    /// Makes a session.
    pub(super) fn new(model: Model, options: SessionOptions) -> Result<Session> {
        Ok(Session(Batch::new(model, options, 1)?))
    }

    /// Returns the model.
    pub fn model(&self) -> &Model {
        self.0.model()
    }

    /// Returns the tokens of the sequence.
    pub fn tokens(&self) -> &[u32] {
        self.0.tokens(0).unwrap_or_default()
    }

    /// Returns −ln of the probability of each token after the first, given those before it. The
    /// session is empty afterwards.
    ///
    /// # Errors
    /// If there are no tokens, or more than the context size, or a launch fails.
    pub fn losses(&mut self, tokens: &[u32]) -> Result<Vec<f32>> {
        self.0.losses(0, tokens)
    }

    /// Returns the likeliest token after each of the tokens. The session is empty afterwards.
    ///
    /// # Errors
    /// If there are no tokens, or more than the context size, or a launch fails.
    pub fn likeliest(&mut self, tokens: &[u32]) -> Result<Vec<u32>> {
        self.0.likeliest(0, tokens)
    }

    /// Returns how many tokens were guessed, and how many of them were right.
    pub fn drafts(&self) -> [usize; 2] {
        self.0.drafts()
    }

    /// Replaces the tokens. Tokens with which the old and the new ones begin are not computed
    /// again, except the last of the new ones.
    ///
    /// # Errors
    /// If there are no tokens, or more than the context size, or a launch fails.
    pub fn set(&mut self, tokens: &[u32]) -> Result<()> {
        self.set_prompt(tokens.to_vec().into())
    }

    /// Replaces the tokens by a prompt, which may have images, as [`set`](Session::set) does.
    /// Images in the common beginning are not computed again.
    ///
    /// # Errors
    /// Returns the errors of [`set`](Session::set). Also if there are images, and the model has no
    /// vision tower.
    pub fn set_prompt(&mut self, prompt: Prompt) -> Result<()> {
        self.0.set_prompt(0, prompt)?;
        while !self.0.prefill(0)? {}
        Ok(())
    }

    /// Returns the logits after the last token.
    ///
    /// # Errors
    /// If the session is empty, or the device fails.
    pub fn logits(&mut self) -> Result<Vec<f32>> {
        self.0.logits(0)
    }

    /// Draws the next token and appends it.
    ///
    /// # Errors
    /// If the session is empty or full, or the device fails.
    pub fn next(&mut self, sampler: &mut Sampler) -> Result<u32> {
        self.0.draw(0, sampler)
    }

    /// Replaces the tokens by a prompt and returns an iterator over the tokens that the model adds.
    ///
    /// # Errors
    /// If the prompt does not fit, or the device fails.
    pub fn generate(&mut self, prompt: &str, generation: &Generation) -> Result<Generate<'_>> {
        let tokens = self.model().prompt(prompt, generation.parse_special)?;
        self.generate_after(tokens.into(), generation)
    }

    /// Replaces the tokens by a prompt with images and returns an iterator over the tokens that the
    /// model adds.
    ///
    /// # Errors
    /// If the prompt does not fit, the model has no vision tower, or the device fails.
    pub fn generate_after(&mut self, prompt: Prompt, generation: &Generation) -> Result<Generate<'_>> {
        self.set_prompt(prompt)?;
        let sampler = self.model().sampler(generation.sampling, self.tokens())?;
        let output = OutputText::new(&self.model().tokenizer, generation);
        Ok(Generate { session: self, sampler, output, has_ended: generation.tokens == 0 })
    }
}

impl Model {
    /// Returns the tokens of a prompt. With `parse_special`, names of control tokens become these
    /// tokens, as in chat templates.
    ///
    /// # Errors
    /// If the text cannot be encoded.
    pub fn prompt(&self, text: &str, parse_special: bool) -> Result<Vec<u32>> {
        let mut tokens = self.tokenizer.encode(text, Encoding { parse_special, add_special: !parse_special })?;
        // An empty prompt begins with the token that begins sequences.
        if tokens.is_empty() {
            tokens.extend(self.tokenizer.special().bos);
        }
        Ok(tokens)
    }
}

impl Model {
    /// Returns how the model prepares images.
    ///
    /// # Errors
    /// If the model has no vision tower.
    pub fn processor(&self) -> Result<ImageProcessor> {
        let tower = self.tower.as_ref().ok_or_else(|| Error::Tokens {
            action: "see an image",
            problem: "the model has no vision tower; that of a GGUF file is a separate file (mmproj)".to_owned(),
        })?;
        Ok(tower.processor)
    }

    /// Returns a prompt with images: in the text each `<|image_pad|>` is the place of the next
    /// image. Names of control tokens become these tokens.
    ///
    /// # Errors
    /// If the text cannot be encoded, the model has no vision tower, or the text does not have a
    /// place for each image. Also if a side of an image is too long for the other.
    pub fn prompt_with(&self, text: &str, images: &[Image], processor: &ImageProcessor) -> Result<Prompt> {
        let placeholder = self.image.ok_or_else(|| Error::Tokens {
            action: "see an image",
            problem: format!("the vocabulary has no token `{}`", PLACEHOLDER[1]),
        })?;
        let pictures = images.iter().map(|image| processor.prepare(image).map(Arc::new));
        let pictures = pictures.collect::<Result<Vec<_>>>()?;
        Prompt::with_images(&self.prompt(text, true)?, placeholder, &pictures)
    }
}

/// The text of generated tokens, up to a stop.
#[derive(Clone, Debug)]
pub struct OutputText {
    stops: Vec<String>,
    /// Tokens that may still be generated.
    remaining: usize,
    /// Text that may be the beginning of a stop string.
    pending: String,
    characters: TextDecoderState,
}

impl OutputText {
    /// Returns the state before the first token.
    pub fn new(tokenizer: &Tokenizer, generation: &Generation) -> OutputText {
        let stops = generation.stops.iter().filter(|stop| !stop.is_empty()).cloned().collect();
        OutputText {
            stops,
            remaining: generation.tokens,
            pending: String::new(),
            characters: tokenizer.decoder_state(false),
        }
    }

    /// Adds a token, and returns the text that is complete with it. `is_full` says that the
    /// sequence cannot take another.
    ///
    /// # Errors
    /// If the number is not a token.
    pub fn push(&mut self, tokenizer: &Tokenizer, token: u32, is_full: bool) -> Result<GeneratedToken> {
        self.remaining = self.remaining.saturating_sub(1);
        let mut stop = tokenizer.special().eos.contains(&token).then_some(StopReason::EndToken);
        if stop.is_none() {
            self.pending.push_str(&self.characters.push(tokenizer, token)?);
            let found = self.stops.iter().filter_map(|stop| self.pending.find(stop.as_str())).min();
            if let Some(at) = found {
                self.pending.truncate(at);
                return Ok(GeneratedToken {
                    token,
                    text: std::mem::take(&mut self.pending),
                    stop: Some(StopReason::StopString),
                });
            }
            if self.remaining == 0 {
                stop = Some(StopReason::TokenLimit);
            } else if is_full {
                stop = Some(StopReason::ContextFull);
            }
        }
        if stop.is_some() {
            self.pending.push_str(&self.characters.finish());
            return Ok(GeneratedToken { token, text: std::mem::take(&mut self.pending), stop });
        }
        let kept = self.stops.iter().map(|stop| overlap(&self.pending, stop)).max().unwrap_or(0);
        let rest = self.pending.split_off(self.pending.len() - kept);
        Ok(GeneratedToken { token, text: std::mem::replace(&mut self.pending, rest), stop })
    }
}

/// An iterator over the tokens that a model adds to a prompt.
#[derive(Debug)]
pub struct Generate<'a> {
    session: &'a mut Session,
    sampler: Sampler,
    output: OutputText,
    has_ended: bool,
}

impl Generate<'_> {
    /// Generates a token.
    fn next_token(&mut self) -> Result<GeneratedToken> {
        let token = self.session.next(&mut self.sampler)?;
        let is_full = self.session.tokens().len() >= self.session.0.context_size();
        self.output.push(&self.session.model().tokenizer, token, is_full)
    }
}

/// Returns the bytes at the end of `text` with which `stop` begins.
fn overlap(text: &str, stop: &str) -> usize {
    let mut lengths = (1..stop.len()).rev().filter(|n| stop.is_char_boundary(*n));
    lengths.find(|n| text.ends_with(&stop[..*n])).unwrap_or(0)
}

impl Iterator for Generate<'_> {
    type Item = Result<GeneratedToken>;

    fn next(&mut self) -> Option<Result<GeneratedToken>> {
        if self.has_ended {
            return None;
        }
        let token = self.next_token();
        self.has_ended = token.as_ref().map_or(true, |token| token.stop.is_some());
        Some(token)
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
