//! A session: a single sequence with its prompt, its logits, and the tokens that follow.

use super::batch::Batch;
use super::generation::{GeneratedToken, Generation, OutputText};
use super::model::Model;
use super::prompt::{IMAGE_MARKUP, Prompt};
use super::sampling::Sampler;
use crate::error::{Error, Result};
use crate::image::{Image, ImageProcessor};
use crate::memory::CacheFormat;
use crate::tokenizer::Encoding;
use std::sync::Arc;

/// The options of a session, or of a batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SessionOptions {
    /// The context size: the maximum number of tokens of a sequence, 1 or more.
    pub context_size: usize,
    /// The chunk size: the maximum number of tokens of a prompt that pass through the layers at
    /// once, 1 or more. With `exact`, at most 8 tokens do.
    pub chunk_size: usize,
    /// The format of keys and values in the cache.
    pub cache: CacheFormat,
    /// The number of tokens of a page of the cache, 1 or more. Sequences that begin with the same
    /// tokens share full pages. A single sequence has one page of the context size instead.
    pub page: usize,
    /// Whether to compute without approximations, and each token as if it were alone in a step. All
    /// devices then give equal bits if all matrices are block-quantized. With other matrices the
    /// devices must have equal [facts](runtime::Device::cpu_with_facts). Features of images have
    /// approximations in either case.
    pub exact: bool,
    /// The maximum number of drafts in a step, 0 to 15: next tokens that are guessed from
    /// repetitions in the sequence, and verified in the same step. Only steps of a single sequence
    /// have drafts. With `exact`, drafts do not change the tokens.
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

impl SessionOptions {
    /// Rejects options that are outside their ranges, or do not fit this number of sequences.
    pub(super) fn check(&self, sequences: usize) -> Result<()> {
        let SessionOptions { context_size, chunk_size, page, drafts, .. } = *self;
        let refused = |what: &str| Err(Error::field("a batch", "options", format!("expected {what}")));
        for (what, tokens) in [("context size", context_size), ("chunk size", chunk_size), ("page", page)] {
            if tokens == 0 {
                return refused(&format!("a {what} of 1 token or more, found 0"));
            }
        }
        if drafts >= Batch::MAX_SEQUENCES {
            return refused(&format!("at most {} drafts, found {drafts}", Batch::MAX_SEQUENCES - 1));
        }
        if !(1..=Batch::MAX_SEQUENCES).contains(&sequences) {
            return refused(&format!("1 to {} sequences, found {sequences}", Batch::MAX_SEQUENCES));
        }
        if context_size.checked_mul(sequences).is_none_or(|rows| rows >= u32::MAX as usize) {
            return refused(&format!("fewer than 2³² − 1 tokens, found {sequences} times {context_size}"));
        }
        Ok(())
    }
}

/// A sequence of tokens, with its keys and values on the devices of a model.
#[derive(Debug)]
pub struct Session(Batch);

impl Session {
    /// Makes a session without tokens, with the errors of [`Model::session`].
    pub(super) fn new(model: Model, options: SessionOptions) -> Result<Session> {
        Ok(Session(Batch::new(model, options, 1)?))
    }

    /// Returns the model.
    pub fn model(&self) -> &Model {
        self.0.model()
    }

    /// Returns the maximum number of tokens of the sequence.
    pub fn context_size(&self) -> usize {
        self.0.context_size()
    }

    /// Returns the tokens of the sequence.
    pub fn tokens(&self) -> &[u32] {
        self.0.tokens(0).unwrap_or_default()
    }

    /// Returns −ln of the probability of each token after the first, given the tokens before it.
    /// The session is empty afterwards.
    ///
    /// # Errors
    /// If there are no tokens, more tokens than the context size, or tokens beyond the vocabulary.
    /// Also if memory runs out, or a launch fails.
    pub fn losses(&mut self, tokens: &[u32]) -> Result<Vec<f32>> {
        self.0.losses(0, tokens)
    }

    /// Returns the likeliest next token after each of the tokens. The session is empty afterwards.
    ///
    /// # Errors
    /// Returns the errors of [`losses`](Session::losses).
    pub fn likeliest(&mut self, tokens: &[u32]) -> Result<Vec<u32>> {
        self.0.likeliest(0, tokens)
    }

    /// Returns the number of guessed tokens, and the number of accepted ones.
    pub fn drafts(&self) -> [usize; 2] {
        self.0.drafts()
    }

    /// Replaces the tokens, and computes them. The common beginning of old and new tokens is not
    /// computed again, except the last new token.
    ///
    /// # Errors
    /// Returns the errors of [`losses`](Session::losses).
    pub fn set(&mut self, tokens: &[u32]) -> Result<()> {
        self.set_prompt(tokens.to_vec().into())
    }

    /// Replaces the tokens by a prompt, which may have images, as [`set`](Session::set) does.
    /// Images in the common beginning are not computed again.
    ///
    /// # Errors
    /// If the prompt has images, and the model has no vision tower. Also returns the errors of
    /// [`set`](Session::set).
    pub fn set_prompt(&mut self, prompt: Prompt) -> Result<()> {
        self.set_prompt_while(prompt, || true).map(drop)
    }

    /// Replaces the tokens by a prompt, as [`set_prompt`](Session::set_prompt) does, while
    /// `continues` returns true, which is called before each chunk. Returns whether the whole
    /// prompt is computed.
    fn set_prompt_while(&mut self, prompt: Prompt, mut continues: impl FnMut() -> bool) -> Result<bool> {
        self.0.set_prompt(0, prompt)?;
        while continues() {
            if self.0.prefill(0)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the logits after the last token, one for each token of the vocabulary.
    ///
    /// # Errors
    /// If the session is empty, memory runs out, or the device fails.
    pub fn logits(&mut self) -> Result<Vec<f32>> {
        self.0.logits(0)
    }

    /// Draws the next token, appends the token, and returns it.
    ///
    /// # Errors
    /// If the session is empty or full, all logits are NaN or −∞, memory runs out, or the device
    /// fails.
    pub fn next(&mut self, sampler: &mut Sampler) -> Result<u32> {
        self.0.draw(0, sampler)
    }

    /// Replaces the tokens by a prompt, and returns an iterator over the tokens that the model
    /// adds.
    ///
    /// # Errors
    /// Returns the errors of [`Model::prompt`] and [`generate_after`](Session::generate_after).
    pub fn generate(&mut self, prompt: &str, generation: &Generation) -> Result<Generate<'_>> {
        let tokens = self.model().prompt(prompt, generation.parse_special)?;
        self.generate_after(tokens.into(), generation)
    }

    /// Replaces the tokens by a prompt, which may have images, and returns an iterator over the
    /// tokens that the model adds.
    ///
    /// # Errors
    /// If a parameter of sampling is outside its range. Also returns the errors of
    /// [`set_prompt`](Session::set_prompt).
    pub fn generate_after(&mut self, prompt: Prompt, generation: &Generation) -> Result<Generate<'_>> {
        let sampler = self.model().sampler(generation.sampling, prompt.tokens())?;
        self.set_prompt(prompt)?;
        Ok(Generate::new(self, sampler, generation))
    }

    /// Replaces the tokens by a prompt, as [`generate_after`](Session::generate_after) does, while
    /// `continues` returns true, which is called before each chunk of the prompt. Returns `None` if
    /// `continues` returns false. A later prompt with the same beginning reuses computed chunks.
    ///
    /// # Errors
    /// Returns the errors of [`generate_after`](Session::generate_after).
    pub fn generate_while(
        &mut self,
        prompt: Prompt,
        generation: &Generation,
        continues: impl FnMut() -> bool,
    ) -> Result<Option<Generate<'_>>> {
        let sampler = self.model().sampler(generation.sampling, prompt.tokens())?;
        let is_computed = self.set_prompt_while(prompt, continues)?;
        Ok(is_computed.then(|| Generate::new(self, sampler, generation)))
    }
}

/// An iterator over the tokens that a model adds to a prompt. The iterator ends at a stop or an
/// error.
#[derive(Debug)]
pub struct Generate<'a> {
    session: &'a mut Session,
    sampler: Sampler,
    output: OutputText,
    has_ended: bool,
}

impl Generate<'_> {
    fn new<'a>(session: &'a mut Session, sampler: Sampler, generation: &Generation) -> Generate<'a> {
        let output = OutputText::new(&session.model().tokenizer, generation);
        Generate { session, sampler, output, has_ended: generation.max_tokens == 0 }
    }

    /// Draws the next token, and returns the token and the text that is complete with it.
    fn next_token(&mut self) -> Result<GeneratedToken> {
        let token = self.session.next(&mut self.sampler)?;
        let is_full = self.session.tokens().len() >= self.session.0.context_size();
        self.output.push(&self.session.model().tokenizer, token, is_full)
    }
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

impl Model {
    /// Returns the tokens of a prompt. With `parse_special`, names of control tokens in the text
    /// become these tokens, as chat templates need. Otherwise the tokenizer adds the tokens that
    /// the model expects around a text.
    ///
    /// # Errors
    /// If the text cannot be encoded.
    pub fn prompt(&self, text: &str, parse_special: bool) -> Result<Vec<u32>> {
        let mut tokens = self.tokenizer.encode(text, Encoding { parse_special, add_special: !parse_special })?;
        // A model needs a token to begin with.
        if tokens.is_empty() {
            tokens.extend(self.tokenizer.special().bos);
        }
        Ok(tokens)
    }
}

impl Model {
    /// Returns the processor that prepares images for the model.
    ///
    /// # Errors
    /// If the model has no vision tower.
    pub fn processor(&self) -> Result<ImageProcessor> {
        let tower = self.tower.as_ref().ok_or_else(|| Error::Tokens {
            action: "see an image",
            problem: "the model has no vision tower; for GGUF, the tower is a separate file (mmproj)".to_owned(),
        })?;
        Ok(tower.processor)
    }

    /// Returns a prompt with images. Each `<|image_pad|>` in the text is the place of the next
    /// image. Names of control tokens become these tokens.
    ///
    /// # Errors
    /// If the vocabulary has no token for images, the text cannot be encoded, or the text does not
    /// have a place for each image. Also if one side of an image is more than 200 times the other.
    pub fn prompt_with(&self, text: &str, images: &[Image], processor: &ImageProcessor) -> Result<Prompt> {
        let placeholder = self.image_token.ok_or_else(|| Error::Tokens {
            action: "see an image",
            problem: format!("the vocabulary has no token `{}`", IMAGE_MARKUP[1]),
        })?;
        let pictures = images.iter().map(|image| processor.prepare(image).map(Arc::new));
        let pictures = pictures.collect::<Result<Vec<_>>>()?;
        Prompt::with_images(&self.prompt(text, true)?, placeholder, &pictures)
    }
}
