//! Byte-pair encoding (Sennrich and others, 2016) over bytes: the encoding of GPT-2, Llama 3, Qwen
//! and SmolLM.

use super::pretokenizer::Pretokenizer;
use super::{TokenType, alphabet, ids_by_text, merge};
use crate::error::{Error, Result, quoted};
use std::collections::HashMap;
use unicode_normalization::UnicodeNormalization;

/// The most merges of a vocabulary.
const MAX_MERGES: usize = 1 << 22;

/// The tokens of bytes, and the pairs of tokens that merge.
#[derive(Debug)]
pub struct Bpe {
    pretokenizer: Pretokenizer,
    /// The token of each byte, if the vocabulary has one.
    bytes: [Option<u32>; 256],
    /// The rank of each pair, and the token that it becomes. A pair of lower rank merges earlier.
    pairs: HashMap<(u32, u32), (u32, u32)>,
    /// The token of each word that becomes a token at once, without merging. Empty for most
    /// families.
    whole_words: HashMap<Box<[u8]>, u32>,
}

impl Bpe {
    /// Builds the tables. Texts of tokens and merges are in the alphabet of bytes, and a merge is
    /// two tokens with a space between.
    ///
    /// # Errors
    /// If a merge does not consist of two tokens that become a third.
    pub fn new<'a>(
        file: &str,
        pretokenizer: Pretokenizer,
        texts: &[&'a [u8]],
        types: &[TokenType],
        merges: impl Iterator<Item = &'a [u8]>,
    ) -> Result<Bpe> {
        let ids = ids_by_text(texts, types);
        let mut pairs = HashMap::new();
        let mut whole = Vec::new();
        for (rank, merge) in (0u32..).zip(merges) {
            let damaged = |problem: String| {
                Error::field(file, format!("metadata `tokenizer.ggml.merges`, element {rank}"), problem)
            };
            if rank as usize >= MAX_MERGES {
                return Err(damaged(format!("expected at most {MAX_MERGES} merges")));
            }
            // A space at position 0 would belong to the left token, which is not empty.
            let space = merge.iter().skip(1).position(|byte| *byte == b' ').map(|at| at + 1);
            let Some((left, right)) = space.map(|at| (&merge[..at], &merge[at + 1..])) else {
                return Err(damaged(format!("expected two tokens with a space between, found {}", quoted(merge))));
            };
            whole.clear();
            whole.extend_from_slice(left);
            whole.extend_from_slice(right);
            let token = |text: &[u8]| {
                ids.get(text)
                    .copied()
                    .ok_or_else(|| damaged(format!("{} is not a token of the vocabulary", quoted(text))))
            };
            pairs.entry((token(left)?, token(right)?)).or_insert((rank, token(&whole)?));
        }
        let bytes = alphabet::characters().map(|character| {
            let mut utf8 = [0; 4];
            ids.get(character.encode_utf8(&mut utf8).as_bytes()).copied()
        });
        let whole_words = match pretokenizer.keeps_whole_words() {
            false => HashMap::new(),
            true => {
                let text = |text: &[u8]| alphabet::bytes(std::str::from_utf8(text).ok()?);
                ids.iter().filter_map(|(key, id)| Some((text(key)?, *id))).collect()
            }
        };
        Ok(Bpe { pretokenizer, bytes, pairs, whole_words })
    }

    /// Appends the tokens of a text without control tokens to `tokens`.
    pub fn encode(&self, text: &str, tokens: &mut Vec<u32>) {
        let normal: Option<String> = self.pretokenizer.normalizes().then(|| text.nfc().collect());
        let mut word = Vec::new();
        self.pretokenizer.split(normal.as_deref().unwrap_or(text), |word_text| {
            if let Some(token) = self.whole_words.get(word_text.as_bytes()) {
                tokens.push(*token);
                return;
            }
            word.clear();
            word.extend(word_text.bytes().filter_map(|byte| self.bytes[byte as usize]));
            merge::merge(&mut word, |left, right| self.pairs.get(&(left, right)).copied());
            tokens.extend_from_slice(&word);
        });
    }
}
