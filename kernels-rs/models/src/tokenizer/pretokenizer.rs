//! Pre-tokenizers, which split a text into words. Byte pairs merge only within a word.
//!
//! Published patterns end with `\s+(?!\S)|\s+`: the last of several blanks before a word belongs to
//! the word. Here, patterns end with `\s+`, and the code splits off the last blank. The patterns
//! then need no look-ahead, so the time is linear in the length of the text.

use regex::Regex;

/// GPT-2: contractions, words, numbers, and runs of other characters.
const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+";

/// Llama 3: numbers in groups of up to three digits; a line break ends a word.
const LLAMA3: &str = concat!(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|",
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+"
);

/// Qwen2: the pattern of Llama 3 with each digit as a separate word.
const QWEN2: &str = concat!(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|",
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+"
);

/// A family of models that share a pre-tokenizer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PretokenizerFamily {
    /// GPT-2.
    Gpt2,
    /// Llama 3, 3.1, 3.2 and 3.3.
    Llama3,
    /// Qwen2, 2.5 and 3, with Unicode text in its composed form (NFC).
    Qwen2,
    /// SmolLM: each digit is a word, and the text between digits has the words of GPT-2.
    SmolLm,
}

/// A splitter of text into words, by the pattern of a family.
#[derive(Clone, Debug)]
pub struct Pretokenizer {
    family: PretokenizerFamily,
    pattern: Regex,
}

impl Pretokenizer {
    /// A name of each family in GGUF files, for messages.
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

    /// Returns the pre-tokenizer with this name in GGUF files, `None` if the name is unknown.
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

    /// Tells whether a word that is a token becomes this token at once, without merging its bytes.
    pub(crate) fn keeps_whole_words(&self) -> bool {
        self.family == PretokenizerFamily::Llama3
    }

    /// Tells whether a text is normalized to NFC before it is split.
    pub(crate) fn normalizes(&self) -> bool {
        self.family == PretokenizerFamily::Qwen2
    }

    /// Calls `word` with each word of a text, in order. The words together are the whole text.
    pub fn split<'t>(&self, text: &'t str, mut word: impl FnMut(&'t str)) {
        if self.family != PretokenizerFamily::SmolLm {
            return self.split_by_pattern(text, &mut word);
        }
        let mut rest = text;
        while let Some(at) = rest.find(char::is_numeric) {
            let (before, from) = rest.split_at(at);
            let digit = from.chars().next().map_or(0, char::len_utf8);
            self.split_by_pattern(before, &mut word);
            word(&from[..digit]);
            rest = &from[digit..];
        }
        self.split_by_pattern(rest, &mut word);
    }

    /// Calls `word` with each match of the pattern. Text before a match belongs to the match.
    fn split_by_pattern<'t>(&self, text: &'t str, word: &mut impl FnMut(&'t str)) {
        let mut from = 0;
        while let Some(found) = self.pattern.find_at(text, from) {
            let (mut end, matched) = (found.end(), found.as_str());
            // The last of several blanks before a word is left for the next match. Blanks that end
            // with a line break stay together: they matched `\s*[\r\n]+`.
            let ends_with_line_break = self.family != PretokenizerFamily::Gpt2
                && self.family != PretokenizerFamily::SmolLm
                && matched.ends_with(['\r', '\n']);
            if end < text.len() && !ends_with_line_break && matched.chars().all(char::is_whitespace) {
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
