//! Sequences that are decoded together.
//!
//! Each sequence has tokens, and pages of the cache for the keys and values of these tokens. A step
//! passes the next token of several sequences through the model at once, and reads each weight once
//! for all sequences. Sequences may begin and end while others continue. If the old and the new
//! prompt of a sequence begin with the same tokens, the sequence keeps their keys and values. A
//! sequence can also share full pages of another sequence that begins with the same tokens.
//!
//! With [`SessionOptions::exact`], the tokens of a sequence do not depend on the other sequences.
//! Otherwise the order of sums, and so the last bits of logits, depends on the number of sequences
//! in a step.

use super::attention::TokenPlace;
use super::cache::SequencePages;
use super::executor::{BatchExecutor, GraphExecutor, LogitsPlace, MAX_LOGITS_ROWS, SequenceSection};
use super::model::{ImageTokens, Model};
use super::prompt::Prompt;
use super::sampling::Sampler;
use super::session::SessionOptions;
use super::step_graph::StepRow;
use super::vision::ImageFeatures;
use crate::error::{Error, Result};
use crate::memory::CacheFormat;
use kernel_dsl::half::f16;
use std::collections::HashMap;
use std::sync::Arc;

/// The tokens of a sequence, and the state of their computation.
#[derive(Clone, Debug, Default)]
struct SequenceState {
    prompt: Prompt,
    /// Features of images, by the number of the image in the prompt, until all tokens of the image
    /// are computed.
    features: HashMap<usize, Arc<ImageFeatures>>,
    /// The number of tokens whose keys and values are in the cache.
    computed: usize,
    /// The place of the logits after the last computed token, until the place is overwritten.
    logits: Option<LogitsPlace>,
    /// Drafts: guesses of the tokens after the computed ones. Keys and values of the drafts are in
    /// the cache. The logits after each draft are in the rows after `logits`.
    drafts: Vec<u32>,
}

impl SequenceState {
    /// Appends a token. If the token is the next draft, the token counts as computed.
    fn push(&mut self, token: u32) {
        self.prompt.push(token);
        self.logits = match self.logits {
            Some(LogitsPlace::Row(row)) if self.drafts.first() == Some(&token) => {
                self.drafts.remove(0);
                self.computed += 1;
                Some(LogitsPlace::Row(row + 1))
            }
            _ => {
                self.drafts.clear();
                None
            }
        };
    }

    fn tokens(&self) -> &[u32] {
        self.prompt.tokens()
    }

    /// Tells whether the token at an index belongs to an image.
    fn is_image(&self, at: usize) -> bool {
        self.prompt.images_in(&(at..at + 1)).next().is_some()
    }
}

/// The least and the largest number of last tokens whose earlier occurrence is searched for.
const LOOKUP_LENGTHS: [usize; 2] = [2, 4];

/// Guesses up to `most` next tokens: those that followed the last earlier occurrence of the last
/// tokens (Saxena, *Prompt Lookup Decoding*, 2023). The longest match of 2 to 4 tokens decides.
fn draft_tokens(tokens: &[u32], most: usize) -> &[u32] {
    let found = (LOOKUP_LENGTHS[0]..=LOOKUP_LENGTHS[1]).rev().filter(|n| *n < tokens.len()).find_map(|n| {
        let (before, end) = (&tokens[..tokens.len() - 1], &tokens[tokens.len() - n..]);
        before.windows(n).rposition(|window| window == end).map(|at| at + n)
    });
    found.map_or(&[], |at| &tokens[at..(at + most).min(tokens.len())])
}

/// Sequences that are decoded together, and their keys and values on the devices of a model.
pub struct Batch {
    model: Model,
    options: SessionOptions,
    executor: Box<dyn BatchExecutor>,
    sequences: Vec<SequenceState>,
    pages: SequencePages,
    /// The number of guessed tokens, and the number of accepted ones.
    drafts: [usize; 2],
}

impl std::fmt::Debug for Batch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let lengths: Vec<usize> = self.sequences.iter().map(|state| state.tokens().len()).collect();
        write!(f, "Batch({lengths:?} tokens, {:?} on {})", self.options, self.model.device_names())
    }
}

impl Batch {
    /// The maximum number of sequences.
    pub const MAX_SEQUENCES: usize = 16;

    /// Makes empty sequences, with the errors of [`Model::batch`].
    pub(super) fn new(model: Model, options: SessionOptions, sequences: usize) -> Result<Batch> {
        options.check(sequences)?;
        let pages = SequencePages::new(sequences, options.context_size, options.page);
        let executor: Box<dyn BatchExecutor> = match options.cache {
            CacheFormat::F32 => Box::new(GraphExecutor::<f32>::new(&model, options, sequences, &pages)?),
            CacheFormat::F16 => Box::new(GraphExecutor::<f16>::new(&model, options, sequences, &pages)?),
            CacheFormat::Q8_0 => Box::new(GraphExecutor::<i8>::new(&model, options, sequences, &pages)?),
        };
        Ok(Batch {
            model,
            options,
            executor,
            sequences: vec![SequenceState::default(); sequences],
            pages,
            drafts: [0; 2],
        })
    }

    /// Returns the model.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Returns the number of sequences.
    pub fn sequences(&self) -> usize {
        self.sequences.len()
    }

    /// Returns the maximum number of tokens of a sequence.
    pub fn context_size(&self) -> usize {
        self.options.context_size
    }

    /// Returns the tokens of a sequence.
    ///
    /// # Errors
    /// If the sequence does not exist.
    pub fn tokens(&self, sequence: usize) -> Result<&[u32]> {
        self.state(sequence).map(SequenceState::tokens)
    }

    fn state(&self, sequence: usize) -> Result<&SequenceState> {
        self.sequences.get(sequence).ok_or_else(|| Error::Tokens {
            action: "read a sequence",
            problem: format!("there is no sequence {sequence} among {}", self.sequences.len()),
        })
    }

    /// Returns the number of leading tokens of a prompt whose keys and values a sequence can reuse:
    /// its own, or those in full pages of another sequence. The last token of a prompt is never
    /// reused.
    ///
    /// # Errors
    /// If the sequence does not exist.
    pub fn reusable_tokens(&self, sequence: usize, prompt: &Prompt) -> Result<usize> {
        self.state(sequence)?;
        Ok(self.longest_prefix(sequence, prompt).1)
    }

    /// Returns the sequence with the most reusable tokens of a prompt, and their number.
    fn longest_prefix(&self, sequence: usize, prompt: &Prompt) -> (usize, usize) {
        // The last token is always computed, because the logits after it are needed.
        let most = prompt.tokens().len().saturating_sub(1);
        let reusable = |from: usize| {
            let state = &self.sequences[from];
            self.pages.reusable(sequence, from, state.prompt.common_prefix(prompt).min(state.computed).min(most))
        };
        let own = (sequence, reusable(sequence));
        (0..self.sequences.len())
            .map(|from| (from, reusable(from)))
            .fold(own, |best, other| if other.1 > best.1 { other } else { best })
    }

    /// Rejects a prompt that does not fit, and images if the model has no vision tower.
    fn check(&self, prompt: &Prompt) -> Result<()> {
        if prompt.images() > 0 && self.model.tower.is_none() {
            let problem = "the prompt has images, but the model has no vision tower".to_owned();
            return Err(Error::Tokens { action: "set the tokens of a sequence", problem });
        }
        self.check_tokens(prompt.tokens())
    }

    /// Rejects tokens that do not fit, or are beyond the vocabulary.
    fn check_tokens(&self, tokens: &[u32]) -> Result<()> {
        let vocabulary = self.model.configuration.vocabulary;
        let problem = match tokens.len() {
            0 => "found no tokens; a model needs at least one".to_owned(),
            n if n > self.options.context_size => {
                format!("found {n} tokens; the context size is {} tokens", self.options.context_size)
            }
            _ => match tokens.iter().find(|token| **token as usize >= vocabulary) {
                Some(token) => format!("the token {token} is beyond the vocabulary of {vocabulary}"),
                None => return Ok(()),
            },
        };
        Err(Error::Tokens { action: "set the tokens of a sequence", problem })
    }

    /// Replaces the tokens of a sequence, and computes nothing. Keys and values of the longest
    /// common beginning of old and new tokens are kept, or shared with another sequence.
    ///
    /// # Errors
    /// If there are no tokens, more tokens than the context size, or tokens beyond the vocabulary,
    /// or the sequence does not exist.
    pub fn set(&mut self, sequence: usize, tokens: &[u32]) -> Result<()> {
        self.set_prompt(sequence, tokens.to_vec().into())
    }

    /// Replaces the tokens of a sequence by a prompt, which may have images, as
    /// [`set`](Batch::set) does.
    ///
    /// # Errors
    /// Returns the errors of [`set`](Batch::set). Also if there are images, and the model has no
    /// vision tower.
    pub fn set_prompt(&mut self, sequence: usize, prompt: Prompt) -> Result<()> {
        self.check(&prompt)?;
        self.state(sequence)?;
        let (from, computed) = self.longest_prefix(sequence, &prompt);
        self.pages.share_prefix(sequence, from, computed);
        self.sequences[sequence] = SequenceState { prompt, computed, ..SequenceState::default() };
        Ok(())
    }

    /// Queues the model for the next chunk of tokens of a sequence that are not computed yet.
    /// Returns whether all tokens of the sequence are computed now, and the device has completed
    /// the work.
    ///
    /// # Errors
    /// If the sequence does not exist, memory runs out, or the device fails.
    pub fn prefill(&mut self, sequence: usize) -> Result<bool> {
        self.state(sequence)?;
        let SequenceState { prompt, features, computed, .. } = &mut self.sequences[sequence];
        let (all, computed) = (prompt.tokens().len(), *computed);
        let range = computed..(computed + self.options.layer_chunk()).min(all);
        let end = range.end;
        if !range.is_empty() {
            let mut images = Vec::new();
            let mut current = HashMap::new();
            for (i, tokens, picture) in prompt.images_in(&range) {
                let features = match features.remove(&i) {
                    Some(features) => features,
                    None => Arc::new(self.executor.features(&self.model, picture)?),
                };
                current.insert(i, features.clone());
                let (first, last) = (tokens.start.max(computed), tokens.end.min(end));
                images.push(ImageTokens {
                    rows: first - computed..last - computed,
                    features,
                    first_image_token: first - tokens.start,
                });
            }
            *features = current;
            let [time, height, width] = prompt.positions(range.clone());
            let positions = if images.is_empty() { time } else { [time, height, width].concat() };
            let tokens = &prompt.tokens()[range];
            let section =
                SequenceSection { tokens, positions, images, start: TokenPlace { sequence, index: computed } };
            self.executor.append(&self.model, &section, &self.pages)?;
            if end == all {
                features.clear();
                self.executor.wait()?;
            }
            self.forget_logits(|place| place == LogitsPlace::Prompt);
            let state = &mut self.sequences[sequence];
            (state.computed, state.logits) = (end, Some(LogitsPlace::Prompt));
        }
        Ok(end == all)
    }

    /// Computes the tokens of `sequences` that are not computed yet. The last tokens of all these
    /// sequences pass through the model in one step. In a step of a single sequence, drafts pass
    /// too.
    ///
    /// # Errors
    /// If a sequence does not exist or is empty, memory runs out, or the device fails.
    pub fn advance(&mut self, sequences: &[usize]) -> Result<()> {
        let mut step_tokens: Vec<StepRow> = Vec::new();
        for sequence in sequences {
            let Some(token) = self.state(*sequence)?.tokens().last().copied() else {
                let problem = format!("sequence {sequence} has no tokens");
                return Err(Error::Tokens { action: "compute a sequence", problem });
            };
            let before = self.sequences[*sequence].tokens().len() - 1;
            while self.sequences[*sequence].computed < before {
                self.prefill(*sequence)?;
            }
            let state = &mut self.sequences[*sequence];
            if state.is_image(before) {
                // The graph of a step cannot compute images, so the token passes as a prompt.
                if state.logits.is_none() {
                    state.computed = before;
                    self.prefill(*sequence)?;
                }
                continue;
            }
            let [position, ..] = state.prompt.positions(before..before + 1);
            let position = position.first().map_or(before, |position| *position as usize);
            let row = StepRow { token, place: TokenPlace { sequence: *sequence, index: before }, position };
            if (state.computed == before || state.logits.is_none()) && !step_tokens.contains(&row) {
                step_tokens.push(row);
            }
        }
        if step_tokens.is_empty() {
            return Ok(());
        }
        // Drafts are rows of one sequence, so only a step of a single sequence has drafts.
        let mut drafts: &[u32] = &[];
        if let [StepRow { place: TokenPlace { sequence, index: before }, position, .. }] = step_tokens[..] {
            let remaining = self.options.context_size - before - 1;
            drafts = draft_tokens(self.sequences[sequence].tokens(), self.options.drafts.min(remaining));
            let row = |(i, token): (usize, &u32)| StepRow {
                token: *token,
                place: TokenPlace { sequence, index: before + 1 + i },
                position: position + 1 + i,
            };
            step_tokens.extend(drafts.iter().enumerate().map(row));
        }
        let drafts = drafts.to_vec();
        self.forget_logits(|place| place != LogitsPlace::Prompt);
        self.executor.step(&step_tokens, &self.pages)?;
        for (i, row) in step_tokens[..step_tokens.len() - drafts.len()].iter().enumerate() {
            let state = &mut self.sequences[row.place.sequence];
            (state.computed, state.logits) = (state.tokens().len(), Some(LogitsPlace::Row(i)));
        }
        self.drafts[0] += drafts.len();
        self.sequences[step_tokens[0].place.sequence].drafts = drafts;
        Ok(())
    }

    /// Forgets logits and drafts of sequences whose logits are in places that are overwritten.
    fn forget_logits(&mut self, is_replaced: impl Fn(LogitsPlace) -> bool) {
        for state in self.sequences.iter_mut().filter(|state| state.logits.is_some_and(&is_replaced)) {
            state.logits = None;
            state.drafts.clear();
        }
    }

    /// Returns the number of guessed tokens, and the number of accepted ones.
    pub fn drafts(&self) -> [usize; 2] {
        self.drafts
    }

    /// Computes a sequence, and returns the place of the logits after its last token.
    fn logits_place(&mut self, sequence: usize) -> Result<LogitsPlace> {
        self.advance(&[sequence])?;
        self.sequences[sequence].logits.ok_or_else(|| Error::Tokens {
            action: "compute a sequence",
            problem: format!("sequence {sequence} has no logits"),
        })
    }

    /// Returns the logits after the last token of a sequence, one for each token of the vocabulary.
    /// Computes the sequence first, as [`advance`](Batch::advance) does.
    ///
    /// # Errors
    /// Returns the errors of [`advance`](Batch::advance).
    pub fn logits(&mut self, sequence: usize) -> Result<Vec<f32>> {
        let place = self.logits_place(sequence)?;
        self.executor.logits(place)
    }

    /// Draws the next token of a sequence, appends the token, and returns it. Computes the sequence
    /// first, as [`advance`](Batch::advance) does.
    ///
    /// # Errors
    /// If the sequence is full, or all logits are NaN or −∞. Also returns the errors of
    /// [`advance`](Batch::advance).
    pub fn draw(&mut self, sequence: usize, sampler: &mut Sampler) -> Result<u32> {
        if self.state(sequence)?.tokens().len() >= self.options.context_size {
            let problem = format!("the context size is {} tokens", self.options.context_size);
            return Err(Error::Tokens { action: "add a token", problem });
        }
        let place = self.logits_place(sequence)?;
        let token = self.executor.draw(place, sampler)?;
        let state = &mut self.sequences[sequence];
        state.push(token);
        // The model has computed this token already only if it was a draft.
        self.drafts[1] += usize::from(state.computed == state.tokens().len());
        Ok(token)
    }

    /// Removes the tokens of a sequence, and gives the sequence pages that no other sequence uses.
    fn clear(&mut self, sequence: usize) {
        self.sequences[sequence] = SequenceState::default();
        self.pages.share_prefix(sequence, sequence, 0);
    }

    /// Returns −ln of the probability of each token after the first, given the tokens before it.
    /// The sequence is empty afterwards.
    ///
    /// # Errors
    /// If there are no tokens, more tokens than the context size, or tokens beyond the vocabulary.
    /// Also if the sequence does not exist, memory runs out, or a launch fails.
    pub fn losses(&mut self, sequence: usize, tokens: &[u32]) -> Result<Vec<f32>> {
        self.check_tokens(tokens)?;
        self.state(sequence)?;
        self.clear(sequence);
        let rows = self.options.layer_chunk().min(MAX_LOGITS_ROWS);
        let mut losses = Vec::with_capacity(tokens.len());
        for (chunk, i) in tokens.chunks(rows).zip((0..).step_by(rows)) {
            // No token follows the last one, whose label is therefore beyond the vocabulary. The
            // loss of this label is dropped below.
            let label = |at: usize| tokens.get(at + 1).copied().unwrap_or(u32::MAX);
            let labels: Vec<u32> = (i..i + chunk.len()).map(label).collect();
            let section = SequenceSection::without_images(chunk, TokenPlace { sequence, index: i });
            losses.extend(self.executor.losses(&self.model, &section, &labels, &self.pages)?);
        }
        losses.pop();
        Ok(losses)
    }

    /// Returns the likeliest next token after each of the tokens. The sequence is empty afterwards.
    ///
    /// # Errors
    /// Returns the errors of [`losses`](Batch::losses).
    pub fn likeliest(&mut self, sequence: usize, tokens: &[u32]) -> Result<Vec<u32>> {
        self.check_tokens(tokens)?;
        self.state(sequence)?;
        self.clear(sequence);
        let rows = self.options.layer_chunk().min(MAX_LOGITS_ROWS);
        let mut likeliest = Vec::with_capacity(tokens.len());
        for (chunk, i) in tokens.chunks(rows).zip((0..).step_by(rows)) {
            let section = SequenceSection::without_images(chunk, TokenPlace { sequence, index: i });
            likeliest.extend(self.executor.likeliest(&self.model, &section, &self.pages)?);
        }
        Ok(likeliest)
    }
}

#[cfg(test)]
mod tests {
    use super::draft_tokens;

    #[test]
    fn drafts_follow_the_last_occurrence_of_the_end() {
        assert_eq!(draft_tokens(&[1, 2, 3, 4, 1, 2, 5, 6, 1, 2], 3), [5, 6, 1]);
        // The longest end that occurs earlier decides.
        assert_eq!(draft_tokens(&[9, 1, 2, 7, 8, 1, 2, 5, 9, 1, 2], 2), [7, 8]);
        // The tokens that follow may be part of the end itself.
        assert_eq!(draft_tokens(&[4, 4, 4], 9), [4]);
        assert!(draft_tokens(&[1, 2, 3], 9).is_empty());
        assert!(draft_tokens(&[1, 2, 3, 1, 2], 0).is_empty());
        assert!(draft_tokens(&[1], 9).is_empty());
    }
}
