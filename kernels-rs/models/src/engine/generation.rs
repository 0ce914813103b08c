//! Generated tokens: their text, and the end of generation.

use super::sampling::Sampling;
use crate::error::Result;
use crate::tokenizer::{TextDecoderState, Tokenizer};

/// Options of generation after a prompt.
#[derive(Clone, PartialEq, Debug)]
pub struct Generation {
    /// The parameters by which tokens are drawn.
    pub sampling: Sampling,
    /// The maximum number of generated tokens.
    pub max_tokens: usize,
    /// Strings at which generation stops. A stop string is not part of the result.
    pub stops: Vec<String>,
    /// Whether names of control tokens in the prompt become these tokens, as in chat templates.
    pub parse_special: bool,
}

impl Default for Generation {
    /// Returns options for up to 256 tokens, each the likeliest one, without stop strings.
    fn default() -> Generation {
        Generation { sampling: Sampling::default(), max_tokens: 256, stops: Vec::new(), parse_special: false }
    }
}

/// The reason why generation ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StopReason {
    /// The model generated an end token.
    EndToken,
    /// A stop string was generated.
    StopString,
    /// The requested number of tokens was generated.
    TokenLimit,
    /// The sequence has as many tokens as the context size.
    ContextFull,
}

/// A generated token, and the text that it completes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GeneratedToken {
    /// The token.
    pub token: u32,
    /// The text that is complete with the token, possibly empty.
    pub text: String,
    /// The reason why generation ended, if this is the last token.
    pub stop: Option<StopReason>,
}

/// The state that turns generated tokens into text, and finds the end of generation.
#[derive(Clone, Debug)]
pub struct OutputText {
    stops: Vec<String>,
    /// The number of tokens that may still be generated.
    remaining: usize,
    /// Text that may be the beginning of a stop string.
    pending: String,
    /// The bytes of an incomplete character.
    characters: TextDecoderState,
}

impl OutputText {
    /// Returns the state before the first token.
    pub fn new(tokenizer: &Tokenizer, generation: &Generation) -> OutputText {
        let stops = generation.stops.iter().filter(|stop| !stop.is_empty()).cloned().collect();
        OutputText {
            stops,
            remaining: generation.max_tokens,
            pending: String::new(),
            characters: tokenizer.decoder_state(false),
        }
    }

    /// Adds a token, and returns the text that is complete with this token. `is_full` is true if
    /// the sequence has no space for another token.
    ///
    /// # Errors
    /// If `token` is not a token of the vocabulary.
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

/// Returns the number of bytes at the end of `text` that are a beginning of `stop`.
fn overlap(text: &str, stop: &str) -> usize {
    let mut lengths = (1..stop.len()).rev().filter(|n| stop.is_char_boundary(*n));
    lengths.find(|n| text.ends_with(&stop[..*n])).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::overlap;

    #[test]
    fn beginnings_of_stop_strings_are_kept() {
        assert_eq!(overlap("one\nUs", "\nUser:"), 3);
        assert_eq!(overlap("one\nUser", "User:"), 4);
        assert_eq!(overlap("one", "User:"), 0);
        assert_eq!(overlap("é", "éa"), 2);
        assert_eq!(overlap("a", "é"), 0);
    }
}
