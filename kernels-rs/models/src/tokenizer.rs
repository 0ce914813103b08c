//! Tokenizers: from the vocabulary of a GGUF file, and from `tokenizer.json`.
//!
//! | vocabulary | algorithm | module |
//! |---|---|---|
//! | GGUF `gpt2` | byte pairs, merged by rank within the words of a pre-tokenizer | [`pretokenizer`], `bpe` |
//! | GGUF `llama` | SentencePiece pairs, merged by score, with bytes as fallback | `sentencepiece` |
//! | `tokenizer.json` | the file determines it, and the `tokenizers` crate runs it | `json` |
//!
//! Each token is a string of bytes, so that decoding is exact. [`Tokenizer::decode`] joins these
//! bytes, and a [`TextDecoder`] returns each character as soon as all its bytes are there.

mod alphabet;
mod bpe;
mod decoder;
mod json;
mod merge;
pub mod pretokenizer;
mod sentencepiece;

pub use decoder::{TextDecoder, TextDecoderState};
pub(crate) use json::read_json_or_null;

use crate::error::{Error, Result};
use crate::file::bytes::{FileBytes, name};
use crate::file::gguf::{Gguf, MetadataArray, MetadataValue};
use aho_corasick::{AhoCorasick, MatchKind};
use std::collections::HashMap;
use std::path::Path;

/// The most tokens of a vocabulary. Real ones have up to some 260,000.
const MAX_TOKENS: usize = 1 << 22;

/// The largest `tokenizer.json` that is read, in bytes. A file of 260,000 tokens has 33 MB.
const MAX_JSON_BYTES: u64 = 256 << 20;

/// The purpose of a token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TokenType {
    /// A piece of text.
    Normal,
    /// A marker such as `<|im_end|>`, which is not part of a text.
    Control,
    /// A piece of text that is always one token.
    UserDefined,
    /// A single byte, which SentencePiece writes as `<0x0A>`, for characters without a token.
    Byte,
    /// The token for characters that no other token represents.
    Unknown,
    /// A number that the vocabulary does not use.
    Unused,
}

/// Options of [`Tokenizer::encode`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Encoding {
    /// Whether the names of control tokens, such as `<|im_end|>`, become these tokens. Disable the
    /// option for a user's text, which could otherwise end the user's message.
    pub parse_special: bool,
    /// Whether the tokens that the model expects before and after a text are added.
    pub add_special: bool,
}

impl Encoding {
    /// Options for a user's text: control tokens are plain text, and no token is added.
    pub const TEXT: Encoding = Encoding { parse_special: false, add_special: false };
    /// Options for the result of a chat template: names of control tokens become these tokens, and
    /// no token is added.
    pub const PROMPT: Encoding = Encoding { parse_special: true, add_special: false };
}

/// A vocabulary and the algorithm that splits text into its tokens.
#[derive(Debug)]
pub struct Tokenizer {
    tokens: Vec<VocabularyToken>,
    special: SpecialTokens,
    algorithm: Algorithm,
    /// Whether the first token of a text loses one leading space when decoded.
    strips_leading_space: bool,
}

/// The text of a token in bytes, and the type of the token.
#[derive(Clone, Debug)]
struct VocabularyToken {
    text: Box<[u8]>,
    token_type: TokenType,
}

/// Tokens with a special purpose.
#[derive(Clone, Debug, Default)]
pub struct SpecialTokens {
    /// The token before a text (beginning of sequence).
    pub bos: Option<u32>,
    /// The tokens after which generation stops (end of sequence).
    pub eos: Vec<u32>,
    /// Whether encoding adds `bos` before a text, if the vocabulary is that of a GGUF file. A
    /// `tokenizer.json` itself contains the tokens that its encoding adds.
    pub adds_bos: bool,
    /// Whether encoding adds the first of `eos` after a text, under the same condition.
    pub adds_eos: bool,
}

#[derive(Debug)]
enum Algorithm {
    Bpe { bpe: bpe::Bpe, literal: LiteralTokens },
    SentencePiece { pieces: sentencepiece::Pieces, literal: LiteralTokens },
    Json(Box<json::JsonTokenizer>),
}

/// Matchers of the tokens that stay whole, wherever a text contains their names.
#[derive(Debug)]
struct LiteralTokens {
    /// A matcher of control tokens and user-defined tokens.
    with_control: TokenMatcher,
    /// A matcher of user-defined tokens.
    user_defined: TokenMatcher,
}

/// A search for the names of tokens in a text. Of several names at one place, the longest matches.
#[derive(Debug)]
struct TokenMatcher {
    /// The automaton, `None` if there are no names.
    automaton: Option<AhoCorasick>,
    /// The token of each pattern of the automaton.
    ids: Vec<u32>,
}

impl TokenMatcher {
    /// Returns a matcher of the tokens of some types.
    fn new(file: &str, tokens: &[VocabularyToken], types: &[TokenType]) -> Result<TokenMatcher> {
        let chosen = |token: &VocabularyToken| types.contains(&token.token_type) && !token.text.is_empty();
        let (ids, texts): (Vec<u32>, Vec<&[u8]>) =
            (0..).zip(tokens).filter(|(_, token)| chosen(token)).map(|(id, token)| (id, &*token.text)).unzip();
        if ids.is_empty() {
            return Ok(TokenMatcher { automaton: None, ids });
        }
        let automaton = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(texts);
        let automaton = automaton.map_err(|error| Error::field(file, "control tokens", error.to_string()))?;
        Ok(TokenMatcher { automaton: Some(automaton), ids })
    }

    /// Splits a text at the names of tokens. Calls `push_token` for each of these tokens, and
    /// `push_text` for each nonempty part of the text between them.
    fn split<'t, S>(
        &self,
        text: &'t str,
        state: &mut S,
        push_text: impl Fn(&mut S, &'t str),
        push_token: impl Fn(&mut S, u32),
    ) {
        let mut from = 0;
        for found in self.automaton.iter().flat_map(|automaton| automaton.find_iter(text)) {
            // A token's bytes need not be UTF-8, and may match within a character of the text. Such
            // a match does not count.
            let (Some(before), true) = (text.get(from..found.start()), text.is_char_boundary(found.end())) else {
                continue;
            };
            if !before.is_empty() {
                push_text(state, before);
            }
            push_token(state, self.ids[found.pattern().as_usize()]);
            from = found.end();
        }
        if from < text.len() {
            push_text(state, &text[from..]);
        }
    }
}

impl LiteralTokens {
    fn new(file: &str, tokens: &[VocabularyToken]) -> Result<LiteralTokens> {
        Ok(LiteralTokens {
            with_control: TokenMatcher::new(file, tokens, &[TokenType::Control, TokenType::UserDefined])?,
            user_defined: TokenMatcher::new(file, tokens, &[TokenType::UserDefined])?,
        })
    }

    fn matcher(&self, encoding: Encoding) -> &TokenMatcher {
        if encoding.parse_special { &self.with_control } else { &self.user_defined }
    }
}

impl Tokenizer {
    /// Reads the vocabulary of a GGUF file.
    ///
    /// # Errors
    /// If the file has no vocabulary, or a damaged one. Also if the vocabulary needs an algorithm
    /// or pre-tokenizer that this crate lacks.
    pub fn from_gguf(gguf: &Gguf) -> Result<Tokenizer> {
        let model = gguf.required("tokenizer.ggml.model", "the name of a tokenizer", MetadataValue::text)?;
        let texts = gguf.required(TOKENS_KEY, "an array of strings", strings)?;
        let count = texts.length as usize;
        if count == 0 || count > MAX_TOKENS {
            return Err(gguf.unexpected(TOKENS_KEY, format!("1 to {MAX_TOKENS} tokens")));
        }
        let types = match gguf.optional("tokenizer.ggml.token_type", "an array", MetadataValue::array)? {
            Some(array) if array.length == texts.length => array.iter().map(|number| token_type_of(&number)).collect(),
            Some(_) => {
                return Err(gguf.unexpected("tokenizer.ggml.token_type", format!("an array of {count} integers")));
            }
            None => vec![TokenType::Normal; count],
        };
        let texts: Vec<&[u8]> = texts.iter().map(|text| as_bytes(&text)).collect();
        let special = read_special_tokens(gguf, &texts, model == "llama")?;
        let file = gguf.file();
        let (tokens, algorithm, strips_leading_space) = match model {
            "gpt2" => {
                let expected = "the name of a pre-tokenizer";
                let pre = gguf.required("tokenizer.ggml.pre", expected, MetadataValue::text)?;
                let pretokenizer = pretokenizer::Pretokenizer::from_name(pre).ok_or_else(|| {
                    let needed = format!("the pre-tokenizer `{pre}`");
                    Error::unsupported(file, "metadata `tokenizer.ggml.pre`", needed, pretokenizer::Pretokenizer::NAMES)
                })?;
                let merges = gguf.required("tokenizer.ggml.merges", "an array of strings", strings)?;
                let bpe =
                    bpe::Bpe::new(file, pretokenizer, &texts, &types, merges.iter().map(|merge| as_bytes(&merge)))?;
                let tokens: Vec<VocabularyToken> =
                    texts.iter().zip(types).map(|(text, token_type)| alphabet::token(text, token_type)).collect();
                let literal = LiteralTokens::new(file, &tokens)?;
                (tokens, Algorithm::Bpe { bpe, literal }, false)
            }
            "llama" => {
                let scores = gguf.required("tokenizer.ggml.scores", "an array", MetadataValue::array)?;
                let scores: Vec<f32> =
                    scores.iter().filter_map(|score| score.float()).map(|score| score as f32).collect();
                if scores.len() != count {
                    return Err(gguf.unexpected("tokenizer.ggml.scores", format!("an array of {count} float32")));
                }
                let adds_leading_space =
                    gguf.optional("tokenizer.ggml.add_space_prefix", "a bool", MetadataValue::bool)?.unwrap_or(true);
                let pieces = sentencepiece::Pieces::new(file, &texts, &types, &scores, adds_leading_space)?;
                let tokens: Vec<VocabularyToken> =
                    texts.iter().zip(types).map(|(text, token_type)| sentencepiece::token(text, token_type)).collect();
                let literal = LiteralTokens::new(file, &tokens)?;
                (tokens, Algorithm::SentencePiece { pieces, literal }, adds_leading_space)
            }
            other => {
                let needed = format!("the tokenizer `{other}`");
                let supported = "gpt2 (byte pairs) and llama (SentencePiece pairs)";
                return Err(Error::unsupported(file, "metadata `tokenizer.ggml.model`", needed, supported));
            }
        };
        Ok(Tokenizer { tokens, special, algorithm, strips_leading_space })
    }

    /// Reads `tokenizer.json`, and `tokenizer_config.json` and `generation_config.json` beside it
    /// if they are there.
    ///
    /// # Errors
    /// If a file cannot be read or is damaged, or the decoder in `tokenizer.json` is neither that
    /// of byte pairs nor that of SentencePiece.
    pub fn from_json(path: &Path) -> Result<Tokenizer> {
        let bytes = FileBytes::read(path, MAX_JSON_BYTES)?;
        let mut tokenizer = Tokenizer::from_json_bytes(&name(path), &bytes)?;
        tokenizer.special = json::special_tokens(path, &tokenizer)?;
        Ok(tokenizer)
    }

    /// Reads a `tokenizer.json` from memory, without the files beside it: [`special`] is empty.
    /// Error messages use the name `file`.
    ///
    /// [`special`]: Tokenizer::special
    ///
    /// # Errors
    /// Returns the errors of [`Tokenizer::from_json`], except those of reading the file.
    pub fn from_json_bytes(file: &str, bytes: &[u8]) -> Result<Tokenizer> {
        let (json, tokens, strips_leading_space) = json::JsonTokenizer::new(file, bytes)?;
        let algorithm = Algorithm::Json(Box::new(json));
        Ok(Tokenizer { tokens, special: SpecialTokens::default(), algorithm, strips_leading_space })
    }

    /// Returns the count of tokens: the largest token plus 1.
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Tells whether the vocabulary has no tokens.
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// Returns the text of a token in bytes, `None` if the number is not a token. The text of a
    /// control token is its name, which [`decode`](Tokenizer::decode) leaves out.
    pub fn text(&self, token: u32) -> Option<&[u8]> {
        self.tokens.get(token as usize).map(|token| &*token.text)
    }

    /// Returns the type of a token, `None` if the number is not a token.
    pub fn token_type(&self, token: u32) -> Option<TokenType> {
        self.tokens.get(token as usize).map(|token| token.token_type)
    }

    /// Returns the token whose text is exactly `text`. If several tokens have this text, a control
    /// token is preferred.
    pub fn find(&self, text: &str) -> Option<u32> {
        let has = |control: bool| {
            self.tokens.iter().position(|token| {
                *token.text == *text.as_bytes() && (token.token_type == TokenType::Control) == control
            })
        };
        has(true).or_else(|| has(false)).map(|id| id as u32)
    }

    /// Returns the tokens before and after texts.
    pub fn special(&self) -> &SpecialTokens {
        &self.special
    }

    /// Splits a text into tokens. With byte pairs, a byte without a token is left out, as by the
    /// `tokenizers` crate. With SentencePiece, a character without a piece becomes its bytes or the
    /// unknown token.
    ///
    /// # Errors
    /// If the algorithm of a `tokenizer.json` fails.
    pub fn encode(&self, text: &str, encoding: Encoding) -> Result<Vec<u32>> {
        let mut tokens = Vec::new();
        let SpecialTokens { bos, eos, adds_bos, adds_eos } = &self.special;
        match &self.algorithm {
            Algorithm::Json(json) => return json.encode(text, encoding),
            Algorithm::Bpe { .. } | Algorithm::SentencePiece { .. } => {
                tokens.extend(bos.filter(|_| encoding.add_special && *adds_bos));
            }
        }
        match &self.algorithm {
            Algorithm::Json(_) => {}
            Algorithm::Bpe { bpe, literal } => {
                let push_text = |tokens: &mut Vec<u32>, text| bpe.encode(text, tokens);
                literal.matcher(encoding).split(text, &mut tokens, push_text, Vec::push);
            }
            Algorithm::SentencePiece { pieces, literal } => {
                // The part at the beginning or after a control token gets a leading space.
                let mut state = (tokens, true);
                let push_text = |state: &mut (Vec<u32>, bool), text| {
                    pieces.encode(text, state.1, &mut state.0);
                    state.1 = false;
                };
                let push_token = |state: &mut (Vec<u32>, bool), token| {
                    state.0.push(token);
                    state.1 = self.token_type(token) == Some(TokenType::Control);
                };
                literal.matcher(encoding).split(text, &mut state, push_text, push_token);
                tokens = state.0;
            }
        }
        tokens.extend(eos.first().filter(|_| encoding.add_special && *adds_eos));
        Ok(tokens)
    }

    /// Returns the text of tokens in bytes, without control tokens. A leading space is removed if
    /// encoding adds one.
    ///
    /// # Errors
    /// If a number is not a token.
    pub fn decode(&self, tokens: &[u32]) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        for token in tokens {
            bytes.extend_from_slice(self.decoded_bytes(*token)?);
        }
        if self.strips_leading_space && bytes.first() == Some(&b' ') {
            bytes.remove(0);
        }
        Ok(bytes)
    }

    /// Returns the bytes that a token adds to a decoded text, none for a control token.
    fn decoded_bytes(&self, token: u32) -> Result<&[u8]> {
        match self.tokens.get(token as usize) {
            Some(VocabularyToken { token_type: TokenType::Control, .. }) => Ok(&[]),
            Some(VocabularyToken { text, .. }) => Ok(text),
            None => Err(Error::Tokens {
                action: "decode",
                problem: format!("{token} is not a token: the vocabulary has {} tokens, from 0", self.tokens.len()),
            }),
        }
    }
}

/// The key of the tokens' texts.
const TOKENS_KEY: &str = "tokenizer.ggml.tokens";

/// Returns the value if it is an array of strings.
fn strings<'a>(value: &MetadataValue<'a>) -> Option<MetadataArray<'a>> {
    value.array().filter(|array| array.element == crate::file::gguf::ValueType::String)
}

/// Returns the bytes of an element of an array of strings.
fn as_bytes<'a>(value: &MetadataValue<'a>) -> &'a [u8] {
    match value {
        MetadataValue::String(bytes) => bytes,
        _ => &[],
    }
}

/// Returns the type for a number of GGUF's `token_type`.
fn token_type_of(value: &MetadataValue<'_>) -> TokenType {
    match value.unsigned() {
        Some(2) => TokenType::Unknown,
        Some(3) => TokenType::Control,
        Some(4) => TokenType::UserDefined,
        Some(5) => TokenType::Unused,
        Some(6) => TokenType::Byte,
        _ => TokenType::Normal,
    }
}

/// Names of tokens that end an answer in a chat. The metadata may lack some of the tokens with
/// which a model ends its answers.
const CHAT_END_TOKENS: [&str; 5] = ["<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|endoftext|>", "<|end_of_text|>"];

/// Reads the special tokens of a GGUF file. `texts` are the texts of all tokens, and `adds_bos` is
/// the default of `add_bos_token`.
fn read_special_tokens(gguf: &Gguf, texts: &[&[u8]], adds_bos: bool) -> Result<SpecialTokens> {
    let token = |key: &str| {
        let token = gguf.optional(key, "the number of a token", MetadataValue::unsigned)?;
        match token {
            Some(token) if token >= texts.len() as u64 => {
                Err(gguf.unexpected(key, format!("a token below {}", texts.len())))
            }
            token => Ok(token.map(|token| token as u32)),
        }
    };
    let flag =
        |key: &str, default| gguf.optional(key, "a bool", MetadataValue::bool).map(|flag| flag.unwrap_or(default));
    let mut eos = Vec::new();
    for key in ["tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"] {
        eos.extend(token(key)?);
    }
    eos.extend(
        (0..)
            .zip(texts)
            .filter(|(_, text)| CHAT_END_TOKENS.iter().any(|end| end.as_bytes() == **text))
            .map(|(id, _)| id),
    );
    Ok(SpecialTokens {
        bos: token("tokenizer.ggml.bos_token_id")?,
        eos: unique(eos),
        adds_bos: flag("tokenizer.ggml.add_bos_token", adds_bos)?,
        adds_eos: flag("tokenizer.ggml.add_eos_token", false)?,
    })
}

/// Returns the tokens without repetitions, in their order.
fn unique(tokens: Vec<u32>) -> Vec<u32> {
    let mut seen = std::collections::HashSet::new();
    tokens.into_iter().filter(|token| seen.insert(*token)).collect()
}

/// Maps each text to its first token, among the tokens into which a text is split.
fn ids_by_text<'a>(texts: &[&'a [u8]], types: &[TokenType]) -> HashMap<&'a [u8], u32> {
    let mut map = HashMap::with_capacity(texts.len());
    for ((id, text), token_type) in (0..).zip(texts).zip(types) {
        if matches!(token_type, TokenType::Normal | TokenType::UserDefined) {
            map.entry(*text).or_insert(id);
        }
    }
    map
}
