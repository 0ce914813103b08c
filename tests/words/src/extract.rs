//! Passages of English in a source file or page, without the code around them.

/// The maximum width of a line of a docstring, which is that of code.
const MAX_DOCSTRING_WIDTH: usize = 120;

/// The position of a passage, which determines its rules.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Context {
    /// Documentation of a function or method.
    FunctionDoc,
    /// Documentation of any other item or of a module.
    ItemDoc,
    /// A comment inside code.
    Comment,
    /// A string literal of at least three words: a message, most likely.
    Message,
    /// A paragraph, heading, list item or table cell of a page.
    Page,
}

/// A paragraph of English.
#[derive(Debug)]
pub struct Passage {
    /// The line of its beginning, counted from 1.
    pub line: usize,
    pub context: Context,
    /// Whether the passage is the first paragraph of a piece of documentation.
    pub opens: bool,
    /// The text on one line. Code between backticks is replaced by `` `…` ``.
    pub text: String,
    /// Lines wider than [`crate::rules::MAX_COMMENT_WIDTH`] columns.
    pub wide_lines: Vec<usize>,
}

/// Returns the passages of a page, of source in Rust, Python, JavaScript or C, of IR, or of a
/// script, a list or a file of settings.
pub fn passages(file: &str, text: &str) -> Vec<Passage> {
    // A template has the extension of its result before its own.
    match file.strip_suffix(".in").unwrap_or(file).rsplit_once('.') {
        Some((_, "md")) => page(text),
        Some((_, "rs" | "kir")) => source(text),
        Some((_, "js" | "mjs" | "cu" | "c" | "css")) => javascript(text),
        Some((_, "html")) => html(text),
        Some((_, "py" | "pyi")) => python(text),
        _ => script(text),
    }
}

/// Collects lines into paragraphs.
struct Paragraphs {
    passages: Vec<Passage>,
    lines: Vec<String>,
    wide: Vec<usize>,
    begin: usize,
    context: Context,
    opens: bool,
    in_fence: bool,
}

impl Paragraphs {
    fn new(context: Context) -> Paragraphs {
        let (passages, lines, wide) = Default::default();
        Paragraphs { passages, lines, wide, begin: 0, context, opens: true, in_fence: false }
    }

    /// Ends the current paragraph.
    fn flush(&mut self) {
        let text = mask_code(&self.lines.join(" "));
        if !text.trim().is_empty() || !self.wide.is_empty() {
            let wide_lines = std::mem::take(&mut self.wide);
            let text = text.trim().to_owned();
            self.passages.push(Passage {
                line: self.begin,
                context: self.context,
                opens: self.opens,
                text,
                wide_lines,
            });
            self.opens = false;
        }
        self.lines.clear();
    }

    /// Adds a line of a comment or page, which has too many columns if `wide` is true.
    fn push(&mut self, number: usize, line: &str, wide: bool) {
        let trimmed = line.trim();
        if trimmed.starts_with("```") {
            self.flush();
            self.in_fence = !self.in_fence;
            return;
        }
        if self.in_fence {
            return;
        }
        let is_table = trimmed.starts_with('|');
        let begins_item =
            trimmed.starts_with("- ") || trimmed.starts_with("* ") || trimmed.starts_with('#') || is_numbered(trimmed);
        if trimmed.is_empty() || begins_item || is_table {
            self.flush();
        }
        if wide && !is_table && !trimmed.contains("://") {
            self.wide.push(number);
        }
        if is_table {
            for cell in trimmed.trim_matches('|').split('|') {
                self.begin = number;
                self.lines.push(cell.trim().to_owned());
                self.flush();
            }
            return;
        }
        if self.lines.is_empty() {
            self.begin = number;
        }
        if !trimmed.is_empty() {
            self.lines.push(trimmed.trim_start_matches(['#', '-', '*', '>', ' ']).to_owned());
        }
        if trimmed.starts_with('#') {
            self.flush();
        }
    }
}

/// Returns whether a line begins a numbered list item.
fn is_numbered(line: &str) -> bool {
    let digits = line.chars().take_while(char::is_ascii_digit).count();
    digits > 0 && line[digits..].starts_with(". ")
}

/// Replaces code between backticks by `` `…` ``, and links by their text.
fn mask_code(text: &str) -> String {
    let mut masked = String::new();
    let mut parts = text.split('`');
    masked.push_str(parts.next().unwrap_or_default());
    while let (Some(_code), rest) = (parts.next(), parts.next()) {
        masked.push_str("`…`");
        masked.push_str(rest.unwrap_or_default());
    }
    masked
}

fn page(text: &str) -> Vec<Passage> {
    let mut paragraphs = Paragraphs::new(Context::Page);
    for (index, line) in text.lines().enumerate() {
        paragraphs.push(index + 1, line, false);
    }
    paragraphs.flush();
    paragraphs.passages
}

/// Reads a script, a list or a file of settings, whose comments begin with `#`. The title of a step, `step
/// "…"`, is a message.
fn script(text: &str) -> Vec<Passage> {
    let mut passages = Vec::new();
    let mut paragraphs = Paragraphs::new(Context::Comment);
    for (index, line) in text.lines().enumerate() {
        let comment = line.trim_start().strip_prefix('#').filter(|comment| !comment.starts_with('!'));
        if let Some(comment) = comment {
            paragraphs.push(index + 1, comment, line.chars().count() > crate::rules::MAX_COMMENT_WIDTH);
            continue;
        }
        paragraphs.flush();
        passages.append(&mut std::mem::replace(&mut paragraphs, Paragraphs::new(Context::Comment)).passages);
        if let Some(title) = line.strip_prefix("step \"").and_then(|rest| rest.strip_suffix('"')) {
            let (text, wide_lines) = (title.to_owned(), Vec::new());
            passages.push(Passage { line: index + 1, context: Context::Message, opens: true, text, wide_lines });
        }
    }
    paragraphs.flush();
    passages.append(&mut paragraphs.passages);
    passages
}

/// Reads JavaScript, C or CSS, whose comments begin with `//` or are between `/*` and `*/`.
fn javascript(text: &str) -> Vec<Passage> {
    let mut passages = Vec::new();
    let mut paragraphs = Paragraphs::new(Context::Comment);
    let mut in_comment = false;
    for (index, line) in text.lines().enumerate() {
        let trimmed = line.trim_start();
        let begins = trimmed.starts_with("/*");
        if in_comment || begins || trimmed.starts_with("//") {
            in_comment = (in_comment || begins) && !trimmed.contains("*/");
            let body = trimmed.trim_start_matches(['/', '*']);
            let body = body.split("*/").next().unwrap_or_default();
            paragraphs.push(index + 1, body, line.chars().count() > crate::rules::MAX_COMMENT_WIDTH);
            continue;
        }
        paragraphs.flush();
        passages.append(&mut std::mem::replace(&mut paragraphs, Paragraphs::new(Context::Comment)).passages);
    }
    paragraphs.flush();
    passages.append(&mut paragraphs.passages);
    passages
}

/// Reads HTML: the text between tags, where a line that begins with a tag other than `<kbd>` begins
/// a passage. A style or script has placeholders only.
fn html(text: &str) -> Vec<Passage> {
    let mut paragraphs = Paragraphs::new(Context::Message);
    for (index, line) in text.lines().enumerate() {
        let trimmed = line.trim_start();
        if trimmed.starts_with('<') && !trimmed.starts_with("<kbd>") {
            paragraphs.flush();
        }
        let visible = trimmed.split('<').map(|part| part.split_once('>').map_or(part, |(_tag, text)| text));
        paragraphs.push(index + 1, &visible.collect::<String>(), false);
    }
    paragraphs.flush();
    paragraphs.passages
}

/// Reads Python: comments, which begin with `#`, and docstrings, which begin a line with `"""`.
fn python(text: &str) -> Vec<Passage> {
    let mut passages = Vec::new();
    let mut paragraphs = Paragraphs::new(Context::Comment);
    // Whether the line is inside a string of several lines, and whether that is a docstring.
    let mut open = None;
    let mut item = Context::ItemDoc;
    for (index, line) in text.lines().enumerate() {
        let trimmed = line.trim_start();
        let begins = open.is_none() && trimmed.starts_with("\"\"\"");
        let is_comment = open.is_none() && trimmed.starts_with('#') && !trimmed.starts_with("#!");
        let context = if is_comment { Context::Comment } else { item };
        if begins || !is_comment && open.is_none() || context != paragraphs.context {
            paragraphs.flush();
            passages.append(&mut std::mem::replace(&mut paragraphs, Paragraphs::new(context)).passages);
        }
        let width = if is_comment { crate::rules::MAX_COMMENT_WIDTH } else { MAX_DOCSTRING_WIDTH };
        let wide = line.chars().count() > width;
        if is_comment {
            paragraphs.push(index + 1, trimmed.trim_start_matches('#'), wide);
        } else if begins || open == Some(true) {
            paragraphs.push(index + 1, trimmed.trim_matches('"'), wide);
        } else if open.is_none() && !trimmed.is_empty() {
            let is_function = trimmed.starts_with("def ") || trimmed.starts_with("async def ");
            let continues = item == Context::FunctionDoc && !trimmed.starts_with("class ") && line.starts_with(' ');
            item = if is_function || continues { Context::FunctionDoc } else { Context::ItemDoc };
        }
        if trimmed.matches("\"\"\"").count() % 2 == 1 {
            open = if open.is_some() { None } else { Some(begins) };
        }
    }
    paragraphs.flush();
    passages.append(&mut paragraphs.passages);
    passages
}

/// A piece of a line of source.
enum Piece<'a> {
    Doc(&'a str),
    Comment(&'a str),
    Code,
}

fn source(text: &str) -> Vec<Passage> {
    let lines: Vec<&str> = text.lines().collect();
    let mut passages = Vec::new();
    let mut strings = Strings::default();
    let mut index = 0;
    while index < lines.len() {
        let piece = if strings.is_open() { Piece::Code } else { piece(lines[index]) };
        let (context, is_doc) = match piece {
            Piece::Doc(_) => (doc_context(&lines, index), true),
            Piece::Comment(_) => (Context::Comment, false),
            Piece::Code => {
                strings.read(index + 1, lines[index], &mut passages);
                index += 1;
                continue;
            }
        };
        let mut paragraphs = Paragraphs::new(context);
        while index < lines.len() {
            let body = match piece_of_kind(lines[index], is_doc) {
                Some(body) => body,
                None => break,
            };
            let wide = lines[index].chars().count() > crate::rules::MAX_COMMENT_WIDTH;
            paragraphs.push(index + 1, body, wide);
            index += 1;
        }
        paragraphs.flush();
        passages.append(&mut paragraphs.passages);
    }
    passages
}

fn piece(line: &str) -> Piece<'_> {
    let trimmed = line.trim_start();
    if let Some(body) = trimmed.strip_prefix("///").or_else(|| trimmed.strip_prefix("//!")) {
        Piece::Doc(body)
    } else if let Some(body) = trimmed.strip_prefix("//") {
        Piece::Comment(body)
    } else {
        Piece::Code
    }
}

/// Returns the body of a line that is documentation if `is_doc`, and a comment otherwise.
fn piece_of_kind(line: &str, is_doc: bool) -> Option<&str> {
    match piece(line) {
        Piece::Doc(body) if is_doc => Some(body),
        Piece::Comment(body) if !is_doc => Some(body),
        _ => None,
    }
}

/// Returns the context of the documentation that begins at `index`: that of a function, or of
/// another item.
fn doc_context(lines: &[&str], index: usize) -> Context {
    if lines[index].trim_start().starts_with("//!") {
        return Context::ItemDoc;
    }
    let rest = &lines[index..];
    let mut item = rest.iter().skip_while(|line| {
        let line = line.trim_start();
        line.starts_with("///") || line.starts_with("#[") || line.starts_with(")]") || line.is_empty()
    });
    let words = ["pub", "pub(crate)", "pub(super)", "pub(in", "const", "unsafe", "async", "extern", "\"C\"", "default"];
    let first = item.next().map_or("", |line| line.trim_start());
    let mut words_of_item = first.split_whitespace().skip_while(|word| words.contains(word));
    if words_of_item.next() == Some("fn") { Context::FunctionDoc } else { Context::ItemDoc }
}

/// Finds string literals in code, across lines.
#[derive(Default)]
struct Strings {
    /// The literal that is not closed yet, with the line of its beginning.
    open: Option<(usize, String)>,
    /// The number of `#` that close the open literal if it is raw.
    raw: Option<usize>,
}

impl Strings {
    fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Reads a line of code and adds the messages that end in it.
    fn read(&mut self, number: usize, line: &str, passages: &mut Vec<Passage>) {
        let chars: Vec<char> = line.chars().collect();
        let mut at = 0;
        while at < chars.len() {
            if let Some((_, text)) = &mut self.open {
                match (chars[at], self.raw) {
                    ('\\', None) => {
                        text.push(' ');
                        at += 2;
                        continue;
                    }
                    ('"', None) => self.close(passages),
                    ('"', Some(hashes)) if closes(&chars[at + 1..], hashes) => {
                        self.close(passages);
                        at += hashes;
                    }
                    (c, _) => text.push(c),
                }
                at += 1;
                continue;
            }
            match chars[at] {
                '/' if chars.get(at + 1) == Some(&'/') => return,
                '"' => {
                    self.open = Some((number, String::new()));
                    self.raw = raw_prefix(&chars[..at]);
                }
                // A character literal may hold a quote: `'"'` or `'\"'`.
                '\'' if chars.get(at + 2) == Some(&'\'') => at += 2,
                '\'' if chars.get(at + 1) == Some(&'\\') && chars.get(at + 3) == Some(&'\'') => at += 3,
                _ => {}
            }
            at += 1;
        }
        if let Some((_, text)) = &mut self.open {
            text.push(' ');
        }
    }

    fn close(&mut self, passages: &mut Vec<Passage>) {
        self.raw = None;
        let Some((line, text)) = self.open.take() else { return };
        let text = mask_code(&text);
        let words =
            text.split_whitespace().filter(|word| word.chars().all(|c| c.is_alphabetic() || ",.:;'’-".contains(c)));
        // Three words in a row of plain letters are a message; PTX, patterns and paths are not.
        if words.count() >= 3 && !text.contains([';', '%']) {
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            passages.push(Passage { line, context: Context::Message, opens: true, text, wide_lines: Vec::new() });
        }
    }
}

fn closes(rest: &[char], hashes: usize) -> bool {
    rest.len() >= hashes && rest[..hashes].iter().all(|c| *c == '#')
}

/// Returns the number of `#` of a raw literal whose quote follows `before`; `None` if the literal
/// is not raw.
fn raw_prefix(before: &[char]) -> Option<usize> {
    let hashes = before.iter().rev().take_while(|c| **c == '#').count();
    (before.iter().rev().nth(hashes) == Some(&'r')).then_some(hashes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(file: &str, text: &str) -> Vec<(Context, String)> {
        passages(file, text).into_iter().map(|p| (p.context, p.text)).collect()
    }

    #[test]
    fn documentation_comments_and_messages_are_distinguished() {
        let source = r##"
//! An essay.

/// Returns `x`
/// twice.
///
/// A second paragraph.
#[must_use]
pub const fn twice(x: u32) -> u32 {
    // The reason.
    fail("it was not so simple", r#"raw "with quotes" as well"#, '"');
    2 * x
}
"##;
        assert_eq!(
            texts("a.rs", source),
            [
                (Context::ItemDoc, "An essay.".to_owned()),
                (Context::FunctionDoc, "Returns `…` twice.".to_owned()),
                (Context::FunctionDoc, "A second paragraph.".to_owned()),
                (Context::Comment, "The reason.".to_owned()),
                (Context::Message, "it was not so simple".to_owned()),
                (Context::Message, "raw \"with quotes\" as well".to_owned()),
            ]
        );
    }

    #[test]
    fn scripts_have_comments_and_titles() {
        let script = "#!/bin/sh\n# Why it\n# is so.\nstep \"the first\"\nls # no comment\n";
        let expected = [(Context::Comment, "Why it is so.".to_owned()), (Context::Message, "the first".to_owned())];
        assert_eq!(texts("tests/run", script), expected);
    }

    #[test]
    fn python_has_docstrings_and_comments() {
        let source = "\"\"\"A module.\"\"\"\n\nKERNEL = \"\"\"\n# no comment\n\"\"\"\n\n# Why it\n# is so.\n\
                      def f(a,\n      b):\n    \"\"\"Returns a\n    and b.\n\n    Always.\n    \"\"\"\n    return a, b\n\n\
                      class C:\n    \"\"\"A class.\"\"\"\n";
        let expected = [
            (Context::ItemDoc, "A module."),
            (Context::Comment, "Why it is so."),
            (Context::FunctionDoc, "Returns a and b."),
            (Context::FunctionDoc, "Always."),
            (Context::ItemDoc, "A class."),
        ];
        assert_eq!(texts("a.py", source), expected.map(|(context, text)| (context, text.to_owned())));
    }

    #[test]
    fn javascript_and_templates_have_comments() {
        let comments = |file: &str, text: &str| texts(file, text).into_iter().map(|(_, text)| text).collect::<Vec<_>>();
        let source = "/* Draws\n   a page. */\nlet a = 1;\n// Of one line.\n/* Alone. */\nlet b = 2;\n";
        assert_eq!(comments("page.js", source), ["Draws a page.", "Of one line. Alone."]);
        assert_eq!(comments("main.rs.in", "//! A command.\nfn main() {}\n"), ["A command."]);
        assert_eq!(comments("Cargo.toml.in", "[package]\n# Why.\nname = \"a\"\n"), ["Why."]);
        assert_eq!(comments("fold.kir", "// What it shows.\n// run: fold\nkernel k\n"), ["What it shows. run: fold"]);
    }

    #[test]
    fn kernels_in_c_lists_and_html_have_passages() {
        let comments = |file: &str, text: &str| texts(file, text).into_iter().map(|(_, text)| text).collect::<Vec<_>>();
        let source = "// Sums\n// a row.\n__global__ void f();\n/* Alone. */\n";
        assert_eq!(comments("sum.cu", source), ["Sums a row.", "Alone."]);
        assert_eq!(comments("list.txt", "# The reason\n# of two.\na | b\n\nc | d\n"), ["The reason of two."]);
        assert_eq!(comments("ci.yml", "# Why.\njobs:\n"), ["Why."]);
        let page = "<body>\n<p class=\"keys\"><kbd>Esc</kbd> clears\n  <kbd>x</kbd> marks</p>\n<h2>What to try</h2>\n";
        assert_eq!(comments("page.html", page), ["Esc clears x marks", "What to try"]);
    }

    #[test]
    fn fences_of_pages_are_code() {
        let page = "# Title\n\nText `code`\ngoes on.\n\n```sh\nls\n```\n- item\n\n| a | b |\n";
        let texts: Vec<String> = passages("a.md", page).into_iter().map(|p| p.text).collect();
        assert_eq!(texts, ["Title", "Text `…` goes on.", "item", "a", "b"]);
    }
}
