//! SentencePiece vocabularies whose pieces merge by score (Kudo, Richardson, 2018), such as that of
//! Llama 2.

use super::{TokenType, VocabularyToken, ids_by_text, merge};
use crate::error::{Error, Result};
use std::cmp::Reverse;
use std::collections::HashMap;

/// The character by which pieces represent a space.
const SPACE_SYMBOL: char = '▁';

/// The tables of a vocabulary.
#[derive(Debug)]
pub struct Pieces {
    /// The token of each text.
    ids: HashMap<Box<[u8]>, u32>,
    /// The score of each token. The pair whose token has the highest score merges first.
    scores: Vec<f32>,
    /// The text of each token.
    texts: Vec<Box<[u8]>>,
    /// The token of each byte, if the vocabulary has tokens of bytes.
    bytes: [Option<u32>; 256],
    /// The token of unknown characters.
    unknown: Option<u32>,
    /// Whether a space is added before a text.
    adds_leading_space: bool,
}

impl Pieces {
    /// Builds the tables. `adds_leading_space` says whether a space is added before a text.
    ///
    /// # Errors
    /// If a score is NaN.
    pub fn new(
        file: &str,
        texts: &[&[u8]],
        types: &[TokenType],
        scores: &[f32],
        adds_leading_space: bool,
    ) -> Result<Pieces> {
        if let Some(token) = scores.iter().position(|score| score.is_nan()) {
            let field = format!("metadata `tokenizer.ggml.scores`, element {token}");
            return Err(Error::field(file, field, "expected a number, found NaN"));
        }
        let mut bytes = [None; 256];
        for ((id, text), token_type) in (0..).zip(texts).zip(types) {
            if let (TokenType::Byte, Some(byte)) = (token_type, byte(text)) {
                bytes[byte as usize] = Some(id);
            }
        }
        Ok(Pieces {
            ids: ids_by_text(texts, types).into_iter().map(|(text, id)| (text.into(), id)).collect(),
            scores: scores.to_vec(),
            texts: texts.iter().map(|text| (*text).into()).collect(),
            bytes,
            unknown: types.iter().position(|token_type| *token_type == TokenType::Unknown).map(|id| id as u32),
            adds_leading_space,
        })
    }

    /// Appends the tokens of a text without control tokens to `tokens`. `begins` says whether the
    /// text is at the beginning or after a control token, where a space may be added.
    pub fn encode(&self, text: &str, begins: bool, tokens: &mut Vec<u32>) {
        let mut spaced = String::with_capacity(text.len() + 3);
        spaced.extend((begins && self.adds_leading_space).then_some(SPACE_SYMBOL));
        spaced.extend(text.chars().map(|character| if character == ' ' { SPACE_SYMBOL } else { character }));
        // Characters that are not pieces get numbers beyond the vocabulary, and never merge.
        let vocabulary = self.texts.len() as u32;
        let mut symbols: Vec<u32> = spaced
            .char_indices()
            .map(|(_, character)| {
                let mut utf8 = [0; 4];
                let utf8 = character.encode_utf8(&mut utf8).as_bytes();
                self.ids.get(utf8).copied().unwrap_or(vocabulary + character as u32)
            })
            .collect();
        merge::merge(&mut symbols, |left, right| self.pair(left, right));
        let mut after_unknown = false;
        for symbol in symbols {
            let Some(character) = symbol.checked_sub(vocabulary).and_then(char::from_u32) else {
                tokens.push(symbol);
                after_unknown = false;
                continue;
            };
            let mut utf8 = [0; 4];
            let utf8 = character.encode_utf8(&mut utf8).as_bytes();
            let known: Option<Vec<u32>> = utf8.iter().map(|byte| self.bytes[*byte as usize]).collect();
            match known {
                Some(bytes) => tokens.extend(bytes),
                // A run of unknown characters is one token.
                None if after_unknown => continue,
                None => tokens.extend(self.unknown),
            }
            after_unknown = self.bytes[0].is_none();
        }
    }

    /// Returns the rank of a pair, which is lower for higher scores, and the piece that the pair
    /// becomes.
    fn pair(&self, left: u32, right: u32) -> Option<(Reverse<PieceScore>, u32)> {
        let mut whole = self.texts.get(left as usize)?.to_vec();
        whole.extend_from_slice(self.texts.get(right as usize)?);
        let id = *self.ids.get(&*whole)?;
        Some((Reverse(PieceScore(self.scores[id as usize])), id))
    }
}

/// A score that is not NaN.
#[derive(Clone, Copy, PartialEq)]
struct PieceScore(f32);

impl Eq for PieceScore {}

impl PartialOrd for PieceScore {
    fn partial_cmp(&self, other: &PieceScore) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for PieceScore {
    fn cmp(&self, other: &PieceScore) -> std::cmp::Ordering {
        // The table has no NaN, and 0 and −0 are equal.
        self.0.partial_cmp(&other.0).unwrap_or(std::cmp::Ordering::Equal)
    }
}

/// Returns the byte of a text such as `<0x0A>`.
fn byte(text: &[u8]) -> Option<u8> {
    let digits = std::str::from_utf8(text).ok()?.strip_prefix("<0x")?.strip_suffix('>')?;
    (digits.len() == 2).then(|| u8::from_str_radix(digits, 16).ok())?
}

/// Returns a token with its text in bytes: `▁` becomes a space, and `<0x0A>` the byte 10.
pub fn token(text: &[u8], token_type: TokenType) -> VocabularyToken {
    let spaced = |text: &[u8]| match std::str::from_utf8(text) {
        Ok(text) => text.replace(SPACE_SYMBOL, " ").into_bytes().into(),
        Err(_) => text.into(),
    };
    let text = match token_type {
        TokenType::Byte => byte(text).map_or_else(|| text.into(), |byte| [byte].into()),
        TokenType::Normal | TokenType::UserDefined => spaced(text),
        // SentencePiece decodes unknown text as U+2047 between spaces.
        TokenType::Unknown => " \u{2047} ".as_bytes().into(),
        TokenType::Control | TokenType::Unused => text.into(),
    };
    VocabularyToken { text, token_type }
}
