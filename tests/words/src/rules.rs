//! The rules, and the word list that they read.

use crate::extract::{Context, Passage};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::LazyLock;

/// The widest line of a comment, in columns, with its indentation.
pub const MAX_COMMENT_WIDTH: usize = 100;

/// The most words of a sentence.
const MAX_SENTENCE_WORDS: usize = 25;

/// Phrases to replace, a line each: `phrase → replacement`.
const PHRASES: &str = include_str!("../phrases.txt");

/// British spellings, a line each: `behaviour → behavior`.
const SPELLINGS: &str = include_str!("../spellings.txt");

/// First words that need an antecedent or a subject.
const OPENINGS: [&str; 23] = [
    "those",
    "they",
    "that",
    "these",
    "it",
    "its",
    "their",
    "who",
    "whose",
    "whom",
    "of",
    "such",
    "what",
    "which",
    "whoever",
    "whatever",
    "nobody",
    "somebody",
    "something",
    "as",
    "him",
    "them",
    "theirs",
];

/// First words of a sentence whose noun stands in another sentence.
const PRONOUNS: [&str; 6] = ["It", "Its", "They", "Their", "Them", "Theirs"];

/// First words of a sentence that are pronouns if a verb follows, and otherwise belong to a noun.
const DEMONSTRATIVES: [&str; 4] = ["This", "That", "These", "Those"];

/// Verbs after which a demonstrative has no noun.
const AUXILIARIES: [&str; 24] = [
    "is", "are", "was", "were", "has", "have", "had", "does", "do", "can", "could", "may", "might", "must", "will",
    "would", "shall", "should", "makes", "means", "keeps", "gives", "needs", "of",
];

/// Returns whether a file is exempt: the lists of this lint, and evidence that quotes other programs.
pub fn is_exempt(file: &str) -> bool {
    ["tests/words/", "tests/tests/zoo/oclgrind/"].iter().any(|folder| file.starts_with(folder))
}

/// A broken rule.
#[derive(PartialEq, Eq, Debug)]
pub enum Rule {
    WideComment,
    Opening(String),
    FunctionVerb(String),
    Phrase { phrase: &'static str, replacement: &'static str },
    Spelling { word: String, replacement: &'static str },
    LongSentence(usize, String),
}

/// A broken rule and where.
#[derive(PartialEq, Eq, Debug)]
pub struct Violation {
    pub file: String,
    pub line: usize,
    pub rule: Rule,
}

impl Violation {
    /// Returns the folder of the file; `.` at the top level.
    pub fn folder(&self) -> &str {
        self.file.rsplit_once('/').map_or(".", |(folder, _)| folder)
    }

    /// Returns the name of the rule, for summaries.
    pub fn rule_name(&self) -> String {
        match &self.rule {
            Rule::WideComment => "wide comment".to_owned(),
            Rule::Opening(word) => format!("opening `{word}`"),
            Rule::FunctionVerb(_) => "function without a verb".to_owned(),
            Rule::Phrase { phrase, .. } => format!("phrase `{phrase}`"),
            Rule::Spelling { .. } => "spelling".to_owned(),
            Rule::LongSentence(..) => "long sentence".to_owned(),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Violation { file, line, rule } = self;
        write!(f, "{file}:{line}: ")?;
        match rule {
            Rule::WideComment => write!(f, "comment wider than {MAX_COMMENT_WIDTH} columns"),
            Rule::Opening(word) => write!(f, "begins with `{word}`; begin with a verb or a noun phrase"),
            Rule::FunctionVerb(word) => write!(
                f,
                "function documentation begins with `{word}`; begin with a verb: Returns, Computes, Waits until"
            ),
            Rule::Phrase { phrase, replacement } => write!(f, "`{phrase}`: write {replacement}"),
            Rule::Spelling { word, replacement } => write!(f, "`{word}`: write `{replacement}`"),
            Rule::LongSentence(words, begin) => {
                write!(f, "{words} words in a sentence (`{begin} …`); at most {MAX_SENTENCE_WORDS}")
            }
        }
    }
}

/// Splits the lines of a word list.
fn pairs(list: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    list.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(" → "))
}

/// Checks the passages of a file.
pub fn check(file: &str, passages: &[Passage]) -> Vec<Violation> {
    let mut found = Vec::new();
    for passage in passages {
        let mut add = |line, rule| found.push(Violation { file: file.to_owned(), line, rule });
        passage.wide_lines.iter().for_each(|line| add(*line, Rule::WideComment));
        if let Some(rule) = opening(passage) {
            add(passage.line, rule);
        }
        let lower = format!(" {} ", passage.text.to_lowercase());
        for (phrase, replacement) in pairs(PHRASES) {
            if contains_phrase(&lower, phrase) {
                add(passage.line, Rule::Phrase { phrase, replacement });
            }
        }
        for word in passage.text.split(|c: char| !c.is_alphabetic()) {
            if let Some((_, replacement)) = british(&word.to_lowercase()) {
                add(passage.line, Rule::Spelling { word: word.to_owned(), replacement });
            }
        }
        if passage.context != Context::Message {
            for sentence in sentences(&passage.text) {
                if let Some(pronoun) = opening_pronoun(sentence) {
                    add(passage.line, Rule::Opening(pronoun));
                }
                let words: Vec<&str> =
                    sentence.split_whitespace().filter(|word| word.chars().any(char::is_alphanumeric)).collect();
                if words.len() > MAX_SENTENCE_WORDS {
                    add(passage.line, Rule::LongSentence(words.len(), words[..4].join(" ")));
                }
            }
        }
    }
    found
}

/// Checks the spelling of the words of Rust's identifiers, which `_` and capital letters separate.
pub fn check_identifiers(file: &str, source: &str) -> Vec<Violation> {
    let mut found = Vec::new();
    for (line, text) in source.lines().enumerate() {
        // The passages have the text of comments.
        let code = text.split("//").next().unwrap_or_default();
        for identifier in code.split(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
            if let Some((_, replacement)) = words_of(identifier).find_map(|word| british(&word)) {
                let rule = Rule::Spelling { word: identifier.to_owned(), replacement };
                found.push(Violation { file: file.to_owned(), line: line + 1, rule });
            }
        }
    }
    found
}

/// Returns the words of an identifier, in lower case.
fn words_of(identifier: &str) -> impl Iterator<Item = String> {
    let bytes = identifier.as_bytes();
    let begins = |i: &usize| *i == 0 || bytes[*i].is_ascii_uppercase() && bytes[i - 1].is_ascii_lowercase();
    let starts: Vec<usize> = (0..bytes.len()).filter(begins).chain([bytes.len()]).collect();
    let parts: Vec<&str> = starts.windows(2).map(|ends| &identifier[ends[0]..ends[1]]).collect();
    let words: Vec<String> = parts.into_iter().flat_map(|part| part.split('_')).map(str::to_ascii_lowercase).collect();
    words.into_iter()
}

/// Returns a British spelling and the American one, if `word`, in lower case, is British.
fn british(word: &str) -> Option<(&'static str, &'static str)> {
    static ALL: LazyLock<BTreeMap<&str, &str>> = LazyLock::new(|| pairs(SPELLINGS).collect());
    ALL.get_key_value(word).map(|(british, american)| (*british, *american))
}

/// Checks the first word of a passage.
fn opening(passage: &Passage) -> Option<Rule> {
    let first = first_word(&passage.text);
    let lower = first.to_lowercase();
    if passage.text.to_lowercase().starts_with("the same of") {
        return Some(Rule::Opening("The same of".to_owned()));
    }
    if passage.opens && passage.context != Context::Message && OPENINGS.contains(&lower.as_str()) {
        return Some(Rule::Opening(first.to_owned()));
    }
    // A formula begins with a lowercase letter, or has letters beyond ASCII.
    let is_word = first.len() > 1
        && first.starts_with(|c: char| c.is_ascii_uppercase())
        && first.chars().all(|c| c.is_ascii_alphabetic());
    let is_section = ["Safety", "Errors", "Panics"].contains(&first);
    if passage.context == Context::FunctionDoc && passage.opens && is_word && !is_section && !is_verb(first) {
        return Some(Rule::FunctionVerb(first.to_owned()));
    }
    None
}

/// Returns the first word of a sentence if it is a pronoun, with the verb that shows it.
fn opening_pronoun(sentence: &str) -> Option<String> {
    let first = first_word(sentence.trim_start());
    let second = sentence.split_whitespace().nth(1).unwrap_or_default();
    if PRONOUNS.contains(&first) {
        return Some(first.to_owned());
    }
    (DEMONSTRATIVES.contains(&first) && AUXILIARIES.contains(&second)).then(|| format!("{first} {second}"))
}

fn first_word(text: &str) -> &str {
    text.split(|c: char| c.is_whitespace() || c == ',' || c == ':' || c == '.').next().unwrap_or_default()
}

/// Returns whether a word looks like a verb in the third person: it ends in `s`, and `nouns.txt`
/// does not list it.
fn is_verb(word: &str) -> bool {
    const NOUNS: &str = include_str!("../nouns.txt");
    word.ends_with('s') && !word.ends_with("ss") && !NOUNS.split_whitespace().any(|noun| noun == word)
}

/// Returns whether `text`, in lower case, contains `phrase` between word borders. `…` in a phrase
/// is any one word.
fn contains_phrase(text: &str, phrase: &str) -> bool {
    let bytes = text.as_bytes();
    text.match_indices(phrase).any(|(at, _)| {
        let before = at.checked_sub(1).map(|i| bytes[i]);
        let after = bytes.get(at + phrase.len());
        let is_word = |byte: Option<&u8>| byte.is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_' || *b >= 0x80);
        !is_word(before.as_ref()) && !is_word(after)
    })
}

/// Splits a passage at the ends of its sentences: a period, question mark, exclamation mark, colon
/// or semicolon, and a space.
fn sentences(text: &str) -> Vec<&str> {
    let mut sentences = Vec::new();
    let mut begin = 0;
    let chars: Vec<(usize, char)> = text.char_indices().collect();
    for (i, &(at, c)) in chars.iter().enumerate() {
        let ends =
            matches!(c, '.' | '?' | '!' | ':' | ';') && chars.get(i + 1).is_none_or(|(_, next)| next.is_whitespace());
        if ends {
            sentences.push(&text[begin..at]);
            begin = at + c.len_utf8();
        }
    }
    sentences.push(&text[begin..]);
    sentences
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extract::passages;

    fn rules(source: &str) -> Vec<Rule> {
        check("a.rs", &passages("a.rs", source)).into_iter().map(|v| v.rule).collect()
    }

    #[test]
    fn each_rule_finds_its_violation() {
        assert_eq!(rules("/// What it gives.\nfn f() {}\n"), [Rule::Opening("What".to_owned())]);
        assert_eq!(rules("/// The sum.\nfn f() {}\n"), [Rule::FunctionVerb("The".to_owned())]);
        assert_eq!(rules("/// Returns the sum.\nfn f() {}\n"), []);
        assert_eq!(rules("/// The sum.\nstruct S;\n"), []);
        assert_eq!(rules("// A sum. It wraps.\n"), [Rule::Opening("It".to_owned())]);
        assert_eq!(rules("// A sum. This is exact.\n"), [Rule::Opening("This is".to_owned())]);
        assert_eq!(rules("// A sum. This sum is exact.\n"), []);
        assert!(matches!(rules("// The user is told.\n")[..], [Rule::Phrase { phrase: "is told", .. }]));
        assert!(matches!(rules("// The behaviour.\n")[..], [Rule::Spelling { replacement: "behavior", .. }]));
        assert_eq!(rules(&format!("// {}\n", "x".repeat(98))), [Rule::WideComment]);
        let long = format!(
            "// {}.\n",
            ["word"; 26].join(" ").replace("word word word word word ", "word word word word\n// word ")
        );
        assert!(rules(&long).iter().any(|rule| matches!(rule, Rule::LongSentence(..))), "{long}");
    }

    #[test]
    fn identifiers_are_spelled_as_in_america() {
        let spelled =
            |source| check_identifiers("a.rs", source).into_iter().map(|v| (v.line, v.rule)).collect::<Vec<_>>();
        let rule = |word: &str, replacement| Rule::Spelling { word: word.to_owned(), replacement };
        assert_eq!(spelled("const CENTRED: u32 = 1;"), [(1, rule("CENTRED", "centered"))]);
        assert_eq!(spelled("\nfn of_neighbours() {}"), [(2, rule("of_neighbours", "neighbors"))]);
        assert_eq!(spelled("struct BehaviourOf;"), [(1, rule("BehaviourOf", "behavior"))]);
        assert_eq!(spelled("let centered = behavior; // behaviour"), []);
    }

    #[test]
    fn phrases_end_at_words() {
        assert!(contains_phrase(" it is told of ", "is told"));
        assert!(!contains_phrase(" this tolds ", "is told"));
    }
}
