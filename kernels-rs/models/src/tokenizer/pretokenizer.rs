//! Pre-tokenizers: the words of a text inside which byte pairs merge.
//!
//! Published patterns end with `\s+(?!\S)|\s+`: of several blanks before a word, the last one
//! belongs to the word. A pattern here ends with `\s+`, and the code splits off the last blank. The
//! pattern then needs no look-ahead, and the time is linear in the length of the text.

use regex::Regex;

/// The contractions, words, numbers and signs of GPT-2.
const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+";

/// Llama 3: numbers in groups of up to three digits; a line break ends a word.
const LLAMA3: &str = concat!(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|",
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+"
);

/// Qwen2: as Llama 3, with every digit by itself.
const QWEN2: &str = concat!(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|",
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+"
);

/// A family of models whose text is split into words in one way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PretokenizerFamily {
    /// GPT-2.
    Gpt2,
    /// Llama 3, 3.1, 3.2 and 3.3.
    Llama3,
    /// Qwen2, 2.5 and 3, with Unicode text in its composed form (NFC).
    Qwen2,
    /// SmolLM: the words of GPT-2 between digits, and each digit by itself.
    SmolLm,
}

/// A pre-tokenizer.
#[derive(Clone, Debug)]
pub struct Pretokenizer {
    family: PretokenizerFamily,
    pattern: Regex,
}

impl Pretokenizer {
    /// The names that GGUF files have for the families.
    pub const NAMES: &str = "gpt-2, llama-bpe, qwen2, smollm";

    /// Returns the pre-tokenizer of a family.
    pub fn new(family: PretokenizerFamily) -> Pretokenizer {
        let pattern = match family {
            PretokenizerFamily::Gpt2 | PretokenizerFamily::SmolLm => GPT2,
            PretokenizerFamily::Llama3 => LLAMA3,
            PretokenizerFamily::Qwen2 => QWEN2,
        };
        let pattern = Regex::new(pattern).unwrap_or_else(|error| unreachable!("a constant pattern: {error}"));
        Pretokenizer { family, pattern }
    }

    /// Returns the pre-tokenizer that a GGUF file names.
    pub fn from_name(name: &str) -> Option<Pretokenizer> {
        let family = match name {
            "gpt-2" => PretokenizerFamily::Gpt2,
            "llama-bpe" | "llama3" | "llama-v3" => PretokenizerFamily::Llama3,
            "qwen2" => PretokenizerFamily::Qwen2,
            "smollm" => PretokenizerFamily::SmolLm,
            _ => return None,
        };
        Some(Pretokenizer::new(family))
    }

    /// Tells whether a word that is a token stays whole, instead of being merged from bytes.
    pub(crate) fn keeps_whole_words(&self) -> bool {
        self.family == PretokenizerFamily::Llama3
    }

    /// Tells whether text is brought into its composed form (NFC) before it is split.
    pub(crate) fn normalizes(&self) -> bool {
        self.family == PretokenizerFamily::Qwen2
    }

    /// Calls `word` with each word of a text, in order. Together, the words are the whole text.
    pub fn split<'t>(&self, text: &'t str, mut word: impl FnMut(&'t str)) {
        if self.family != PretokenizerFamily::SmolLm {
            return self.words(text, &mut word);
        }
        let mut rest = text;
        while let Some(at) = rest.find(char::is_numeric) {
            let (before, from) = rest.split_at(at);
            let digit = from.chars().next().map_or(0, char::len_utf8);
            self.words(before, &mut word);
            word(&from[..digit]);
            rest = &from[digit..];
        }
        self.words(rest, &mut word);
    }

    /// Calls `word` with each match of the pattern.
    fn words<'t>(&self, text: &'t str, word: &mut impl FnMut(&'t str)) {
        let mut from = 0;
        while let Some(found) = self.pattern.find_at(text, from) {
            let (mut end, matched) = (found.end(), found.as_str());
            // The last of several blanks before a word is left for the next match.
            let by_line = self.family != PretokenizerFamily::Gpt2
                && self.family != PretokenizerFamily::SmolLm
                && matched.ends_with(['\r', '\n']);
            if end < text.len() && !by_line && matched.chars().all(char::is_whitespace) {
                let last = matched.chars().next_back().map_or(0, char::len_utf8);
                if last < matched.len() {
                    end -= last;
                }
            }
            word(&text[from..end]);
            from = end;
        }
        if from < text.len() {
            word(&text[from..]);
        }
    }
}
