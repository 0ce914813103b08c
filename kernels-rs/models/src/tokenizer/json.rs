//! `tokenizer.json`, which the `tokenizers` crate reads, and the configuration files beside it.

use super::{
    Encoding, MAX_TOKENS, SpecialTokens, TokenType, Tokenizer, VocabularyToken, alphabet, sentencepiece, unique,
};
use crate::error::{Error, Result};
use crate::file::bytes::{FileBytes, name};
use crate::file::safetensors::json_error;
use serde_json::Value;
use std::path::Path;
use std::sync::OnceLock;

/// The largest configuration file that is read, in bytes.
const MAX_CONFIGURATION_BYTES: u64 = 16 << 20;

/// A tokenizer of the `tokenizers` crate.
#[derive(Debug)]
pub struct JsonTokenizer {
    tokenizer: tokenizers::Tokenizer,
    /// A copy of the tokenizer that treats control tokens as text, built on first use.
    without_control: OnceLock<tokenizers::Tokenizer>,
}

/// The notation of token texts in a file.
#[derive(Clone, Copy)]
enum TokenSpelling {
    /// Each byte as a character of the byte-level alphabet.
    Bytes,
    /// The notation of SentencePiece, with `▁` for a space.
    Pieces,
}

impl JsonTokenizer {
    /// Reads a `tokenizer.json`. Returns the tokenizer, the tokens in order, and whether decoding
    /// removes a leading space.
    pub fn new(file: &str, bytes: &[u8]) -> Result<(JsonTokenizer, Vec<VocabularyToken>, bool)> {
        let value: Value =
            serde_json::from_slice(bytes).map_err(|error| json_error(file, bytes, "tokenizer", &error))?;
        let (spelling, strips) = token_spelling(file, &value["decoder"])?;
        let mut tokenizer: tokenizers::Tokenizer = serde_json::from_slice(bytes)
            .map_err(|error| Error::field(file, "tokenizer", format!("the tokenizers crate refuses it: {error}")))?;
        // A limit in the file would silently cut texts. The caller checks their length instead.
        let _ = tokenizer.with_truncation(None);
        tokenizer.with_padding(None);
        let vocabulary = tokenizer.get_vocab(true);
        let count = vocabulary.values().max().map_or(0, |id| *id as usize + 1);
        if count > MAX_TOKENS {
            let problem = format!("expected tokens below {MAX_TOKENS}, found {}", count - 1);
            return Err(Error::field(file, "vocabulary", problem));
        }
        let mut tokens = vec![VocabularyToken { text: Box::default(), token_type: TokenType::Unused }; count];
        let added = tokenizer.get_added_tokens_decoder();
        for (text, id) in vocabulary {
            let text = text.as_bytes();
            tokens[id as usize] = match (added.get(&id), spelling) {
                (Some(token), _) => {
                    let token_type = if token.special { TokenType::Control } else { TokenType::UserDefined };
                    VocabularyToken { text: text.into(), token_type }
                }
                (None, TokenSpelling::Bytes) => alphabet::token(text, TokenType::Normal),
                (None, TokenSpelling::Pieces) => {
                    let byte = text.len() == 6 && text.starts_with(b"<0x");
                    sentencepiece::token(text, if byte { TokenType::Byte } else { TokenType::Normal })
                }
            };
        }
        Ok((JsonTokenizer { tokenizer, without_control: OnceLock::new() }, tokens, strips))
    }

    /// Splits a text into tokens.
    pub fn encode(&self, text: &str, encoding: Encoding) -> Result<Vec<u32>> {
        let tokenizer = match encoding.parse_special {
            true => &self.tokenizer,
            false => self.without_control.get_or_init(|| {
                let mut tokenizer = self.tokenizer.clone();
                tokenizer.set_encode_special_tokens(true);
                tokenizer
            }),
        };
        match tokenizer.encode_fast(text, encoding.add_special) {
            Ok(tokens) => Ok(tokens.get_ids().to_vec()),
            Err(error) => Err(Error::Tokens { action: "encode the text", problem: error.to_string() }),
        }
    }
}

/// Returns the notation of token texts that a decoder expects, and whether the decoder removes a
/// leading space.
fn token_spelling(file: &str, decoder: &Value) -> Result<(TokenSpelling, bool)> {
    let steps: Vec<&Value> = match decoder["decoders"].as_array() {
        Some(steps) => steps.iter().collect(),
        None => vec![decoder],
    };
    let names: Vec<&str> = steps.iter().filter_map(|step| step["type"].as_str()).collect();
    if names.contains(&"ByteLevel") {
        return Ok((TokenSpelling::Bytes, false));
    }
    let strips = steps.iter().any(|step| match step["type"].as_str() {
        Some("Strip") => step["content"] == " " && step["start"] == 1,
        Some("Metaspace") => step["prepend_scheme"] != "never" && step["add_prefix_space"] != false,
        _ => false,
    });
    let known = ["Replace", "ByteFallback", "Fuse", "Strip", "Metaspace"];
    if !names.is_empty() && names.iter().all(|name| known.contains(name)) {
        return Ok((TokenSpelling::Pieces, strips));
    }
    let needed = format!("a decoder of {}", if names.is_empty() { "no type".to_owned() } else { names.join(", ") });
    Err(Error::unsupported(file, "`decoder`", needed, "ByteLevel, and Replace, ByteFallback, Fuse, Strip, Metaspace"))
}

/// Reads a JSON file, and returns `Null` if there is no such file.
pub(crate) fn read_json_or_null(path: &Path) -> Result<Value> {
    if !path.exists() {
        return Ok(Value::Null);
    }
    let bytes = FileBytes::read(path, MAX_CONFIGURATION_BYTES)?;
    serde_json::from_slice(&bytes).map_err(|error| json_error(&name(path), &bytes, "configuration", &error))
}

/// Reads the special tokens from the files beside `tokenizer.json`, whose path is `path`.
pub fn special_tokens(path: &Path, tokenizer: &Tokenizer) -> Result<SpecialTokens> {
    let tokens = read_json_or_null(&path.with_file_name("tokenizer_config.json"))?;
    let generation = read_json_or_null(&path.with_file_name("generation_config.json"))?;
    // A token is a string, or an object whose `content` is the string.
    let named = |field: &str| {
        let text = tokens[field].as_str().or_else(|| tokens[field]["content"].as_str())?;
        tokenizer.find(text)
    };
    let number = |value: &Value| u32::try_from(value.as_u64()?).ok().filter(|id| (*id as usize) < tokenizer.len());
    let mut eos: Vec<u32> = named("eos_token").into_iter().collect();
    match &generation["eos_token_id"] {
        Value::Array(ids) => eos.extend(ids.iter().filter_map(number)),
        id => eos.extend(number(id)),
    }
    let bos = named("bos_token").or_else(|| number(&generation["bos_token_id"]));
    Ok(SpecialTokens { bos, eos: unique(eos), adds_bos: tokens["add_bos_token"] == true, adds_eos: false })
}
