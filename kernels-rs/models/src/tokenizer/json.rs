//! `tokenizer.json`, by the `tokenizers` crate, and the configuration beside it.

use super::{Encoding, MAX_TOKENS, Special, Token, TokenKind, Tokenizer, alphabet, sentencepiece, unique};
use crate::error::{Error, Result};
use crate::file::bytes::{Bytes, name};
use crate::file::safetensors::json_error;
use serde_json::Value;
use std::path::Path;
use std::sync::OnceLock;

/// The largest configuration beside a tokenizer that is read.
const MAX_CONFIGURATION: u64 = 16 << 20;

/// A tokenizer of the `tokenizers` crate.
#[derive(Debug)]
pub struct Json {
    tokenizer: tokenizers::Tokenizer,
    /// A copy of the tokenizer that treats control tokens as text, built on first use.
    literal: OnceLock<tokenizers::Tokenizer>,
}

/// How a file writes the texts of its tokens.
#[derive(Clone, Copy)]
enum Writing {
    /// Each byte as a character of the byte-level alphabet.
    Bytes,
    /// The form of SentencePiece, with `▁` for a space.
    Pieces,
}

impl Json {
    /// Reads the file. Returns its tokens too, and whether decoding strips a leading space.
    pub fn new(file: &str, bytes: &[u8]) -> Result<(Json, Vec<Token>, bool)> {
        let value: Value =
            serde_json::from_slice(bytes).map_err(|error| json_error(file, bytes, "tokenizer", &error))?;
        let (writing, strips) = writing(file, &value["decoder"])?;
        let mut tokenizer: tokenizers::Tokenizer = serde_json::from_slice(bytes)
            .map_err(|error| Error::field(file, "tokenizer", format!("the tokenizers crate refuses it: {error}")))?;
        // The caller limits the length of texts, so the file's own limit is removed.
        let _ = tokenizer.with_truncation(None);
        tokenizer.with_padding(None);
        let vocabulary = tokenizer.get_vocab(true);
        let count = vocabulary.values().max().map_or(0, |id| *id as usize + 1);
        if count > MAX_TOKENS {
            let problem = format!("expected tokens below {MAX_TOKENS}, found {}", count - 1);
            return Err(Error::field(file, "vocabulary", problem));
        }
        let mut tokens = vec![Token { text: Box::default(), kind: TokenKind::Unused }; count];
        let added = tokenizer.get_added_tokens_decoder();
        for (text, id) in vocabulary {
            let text = text.as_bytes();
            tokens[id as usize] = match (added.get(&id), writing) {
                (Some(token), _) => {
                    let kind = if token.special { TokenKind::Control } else { TokenKind::UserDefined };
                    Token { text: text.into(), kind }
                }
                (None, Writing::Bytes) => alphabet::token(text, TokenKind::Normal),
                (None, Writing::Pieces) => {
                    let byte = text.len() == 6 && text.starts_with(b"<0x");
                    sentencepiece::token(text, if byte { TokenKind::Byte } else { TokenKind::Normal })
                }
            };
        }
        Ok((Json { tokenizer, literal: OnceLock::new() }, tokens, strips))
    }

    /// Splits a text into tokens.
    pub fn encode(&self, text: &str, encoding: Encoding) -> Result<Vec<u32>> {
        let tokenizer = match encoding.control {
            true => &self.tokenizer,
            false => self.literal.get_or_init(|| {
                let mut tokenizer = self.tokenizer.clone();
                tokenizer.set_encode_special_tokens(true);
                tokenizer
            }),
        };
        match tokenizer.encode_fast(text, encoding.ends) {
            Ok(tokens) => Ok(tokens.get_ids().to_vec()),
            Err(error) => Err(Error::Tokens { action: "encode the text", problem: error.to_string() }),
        }
    }
}

/// Finds out from a decoder how tokens are written, and whether it strips a leading space.
fn writing(file: &str, decoder: &Value) -> Result<(Writing, bool)> {
    let steps: Vec<&Value> = match decoder["decoders"].as_array() {
        Some(steps) => steps.iter().collect(),
        None => vec![decoder],
    };
    let names: Vec<&str> = steps.iter().filter_map(|step| step["type"].as_str()).collect();
    if names.contains(&"ByteLevel") {
        return Ok((Writing::Bytes, false));
    }
    let strips = steps.iter().any(|step| match step["type"].as_str() {
        Some("Strip") => step["content"] == " " && step["start"] == 1,
        Some("Metaspace") => step["prepend_scheme"] != "never" && step["add_prefix_space"] != false,
        _ => false,
    });
    let known = ["Replace", "ByteFallback", "Fuse", "Strip", "Metaspace"];
    if !names.is_empty() && names.iter().all(|name| known.contains(name)) {
        return Ok((Writing::Pieces, strips));
    }
    let needed = format!("a decoder of {}", if names.is_empty() { "no type".to_owned() } else { names.join(", ") });
    Err(Error::unsupported(file, "`decoder`", needed, "ByteLevel, and Replace, ByteFallback, Fuse, Strip, Metaspace"))
}

/// Reads a JSON file beside the tokenizer; `Null` if there is none.
pub(crate) fn configuration(path: &Path) -> Result<Value> {
    if !path.exists() {
        return Ok(Value::Null);
    }
    let bytes = Bytes::read(path, MAX_CONFIGURATION)?;
    serde_json::from_slice(&bytes).map_err(|error| json_error(&name(path), &bytes, "configuration", &error))
}

/// Reads the tokens before and after texts from the files beside `tokenizer.json`.
pub fn special(path: &Path, tokenizer: &Tokenizer) -> Result<Special> {
    let tokens = configuration(&path.with_file_name("tokenizer_config.json"))?;
    let generation = configuration(&path.with_file_name("generation_config.json"))?;
    // A token is a string, or an object whose `content` is the string.
    let named = |field: &str| {
        let text = tokens[field].as_str().or_else(|| tokens[field]["content"].as_str())?;
        tokenizer.find(text)
    };
    let number = |value: &Value| u32::try_from(value.as_u64()?).ok().filter(|id| (*id as usize) < tokenizer.len());
    let mut end: Vec<u32> = named("eos_token").into_iter().collect();
    match &generation["eos_token_id"] {
        Value::Array(ids) => end.extend(ids.iter().filter_map(number)),
        id => end.extend(number(id)),
    }
    let begin = named("bos_token").or_else(|| number(&generation["bos_token_id"]));
    Ok(Special { begin, end: unique(end), adds_begin: tokens["add_bos_token"] == true, adds_end: false })
}
