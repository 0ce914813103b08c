//! Decoding of tokens that arrive one by one.

use super::Tokenizer;
use crate::error::Result;

/// A decoder of tokens that arrive one by one, which returns whole characters.
///
/// The bytes of a character may come from several tokens. Bytes that are not UTF-8 become U+FFFD,
/// as by [`String::from_utf8_lossy`].
#[derive(Debug)]
pub struct TextDecoder<'a> {
    tokenizer: &'a Tokenizer,
    characters: TextDecoderState,
}

/// The state of a [`TextDecoder`], without its tokenizer.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TextDecoderState {
    /// Bytes of a character that is not complete.
    pending: Vec<u8>,
    /// Whether the next byte is removed if it is a space: the first byte of a text.
    strips_leading_space: bool,
}

impl Tokenizer {
    /// Returns a decoder. `begins` says whether the tokens begin a text. If so, the decoder removes
    /// a leading space that encoding adds.
    pub fn decoder(&self, begins: bool) -> TextDecoder<'_> {
        TextDecoder { tokenizer: self, characters: self.decoder_state(begins) }
    }

    /// Returns the state of such a [`decoder`](Tokenizer::decoder), which does not borrow the
    /// tokenizer.
    pub fn decoder_state(&self, begins: bool) -> TextDecoderState {
        TextDecoderState { pending: Vec::new(), strips_leading_space: begins && self.strips_leading_space }
    }
}

impl TextDecoder<'_> {
    /// Adds a token, and returns the characters that are complete with it.
    ///
    /// # Errors
    /// If the number is not a token.
    pub fn push(&mut self, token: u32) -> Result<String> {
        self.characters.push(self.tokenizer, token)
    }

    /// Ends the text. Returns U+FFFD if the last character is not complete, and otherwise nothing.
    pub fn finish(mut self) -> String {
        self.characters.finish()
    }
}

impl TextDecoderState {
    /// Adds a token of `tokenizer`, and returns the characters that are complete with it.
    ///
    /// # Errors
    /// If the number is not a token.
    pub fn push(&mut self, tokenizer: &Tokenizer, token: u32) -> Result<String> {
        let mut bytes = tokenizer.decoded_bytes(token)?;
        if self.strips_leading_space && !bytes.is_empty() {
            bytes = bytes.strip_prefix(b" ").unwrap_or(bytes);
            self.strips_leading_space = false;
        }
        self.pending.extend_from_slice(bytes);
        let mut text = String::new();
        let mut rest = &*self.pending;
        loop {
            match std::str::from_utf8(rest) {
                Ok(all) => {
                    text.push_str(all);
                    rest = &[];
                    break;
                }
                Err(error) => {
                    let (valid, after) = rest.split_at(error.valid_up_to());
                    text.push_str(&String::from_utf8_lossy(valid));
                    match error.error_len() {
                        Some(n) => {
                            text.push(char::REPLACEMENT_CHARACTER);
                            rest = &after[n..];
                        }
                        // The last bytes begin a character, which the next token may complete.
                        None => {
                            rest = after;
                            break;
                        }
                    }
                }
            }
        }
        self.pending.drain(..self.pending.len() - rest.len());
        Ok(text)
    }

    /// Ends the text. Returns U+FFFD if the last character is not complete, and otherwise nothing.
    pub fn finish(&mut self) -> String {
        String::from_utf8_lossy(&std::mem::take(&mut self.pending)).into_owned()
    }
}
