//! A place in the tokens of a text, and the mistakes found so far.

use super::error::{Error, Errors, Mistake};
use super::lex::{Kind, Mark, Number, Token, tokens};

/// A part of the text was not understood; the mistake is noted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Failed;

/// Reads tokens in order. Comments are skipped, but by [`comment`](Cursor::comment).
pub(super) struct Cursor<'a> {
    source: &'a str,
    tokens: Vec<Token>,
    at: usize,
    /// Where each line begins.
    lines: Vec<u32>,
    /// Each mistake, with the byte where it is.
    mistakes: Vec<(u32, Mistake)>,
}

impl<'a> Cursor<'a> {
    pub fn new(source: &'a str) -> Result<Cursor<'a>, Errors> {
        if u32::try_from(source.len()).is_err() {
            let mistake = Mistake::Unsupported { what: "a text of 4 GiB or more".to_string(), help: "" };
            return Err(Errors(vec![Error { line: 1, column: 1, mistake }]));
        }
        let breaks = source.bytes().enumerate().filter(|(_, c)| *c == b'\n').map(|(i, _)| i as u32 + 1);
        let lines = [0].into_iter().chain(breaks).collect();
        let mut cursor = Cursor { source, tokens: tokens(source), at: 0, lines, mistakes: Vec::new() };
        if let Some(at) = source.bytes().position(|c| !c.is_ascii()) {
            let at = Token { kind: Kind::Bad(""), start: at as u32, end: at as u32 };
            let text = "PTX must be ASCII, including comments: assemblers reject other characters".to_string();
            cursor.fail(at, Mistake::Wrong(text));
        }
        Ok(cursor)
    }

    /// What was parsed, if there were no mistakes.
    pub fn finish<T>(mut self, parsed: T) -> Result<T, Errors> {
        if self.mistakes.is_empty() {
            return Ok(parsed);
        }
        self.mistakes.sort_by_key(|(start, _)| *start);
        let mut errors: Vec<Error> = Vec::with_capacity(self.mistakes.len());
        // A line can be long and full of mistakes: each character is counted once.
        let (mut from, mut column) = (0, 1);
        for (start, mistake) in self.mistakes {
            let line = self.lines.partition_point(|first| *first <= start) as u32;
            let first = self.lines[line as usize - 1];
            if first > from {
                (from, column) = (first, 1);
            }
            column += self.source[from as usize..start as usize].chars().count() as u32;
            from = start;
            errors.push(Error { line, column, mistake });
        }
        Err(Errors(errors))
    }

    /// The text of a token.
    pub fn text(&self, token: Token) -> &'a str {
        &self.source[token.start as usize..token.end as usize]
    }

    /// The text of a dotted word behind its dot.
    pub fn dotted_text(&self, token: Token) -> &'a str {
        self.text(token).strip_prefix('.').unwrap_or_default()
    }

    /// The line that a token is on.
    pub fn line(&self, token: Token) -> u32 {
        self.lines.partition_point(|start| *start <= token.start) as u32
    }

    /// Notes a mistake.
    pub fn fail(&mut self, at: Token, mistake: Mistake) -> Failed {
        self.mistakes.push((at.start, mistake));
        Failed
    }

    /// Notes that something else stands at `at`.
    pub fn expected_at(&mut self, at: Token, expected: impl Into<String>) -> Failed {
        let expected = expected.into();
        let found = match at.kind {
            Kind::End => "the end of the text".to_string(),
            // The start is enough to know it by.
            _ => format!("`{}`", self.text(at).chars().take(40).collect::<String>().escape_default()),
        };
        let expected = match at.kind {
            Kind::Bad(what) => what.to_string(),
            _ => expected,
        };
        self.fail(at, Mistake::Expected { expected, found })
    }

    /// Notes that something else stands here.
    pub fn expected(&mut self, expected: impl Into<String>) -> Failed {
        self.expected_at(self.peek(), expected)
    }

    /// The token that is `ahead` places from the next.
    pub fn ahead(&self, ahead: usize) -> Token {
        let ended = self.tokens[self.tokens.len() - 1];
        self.tokens[self.at..].iter().filter(|t| t.kind != Kind::Comment).nth(ahead).copied().unwrap_or(ended)
    }

    /// The next token.
    pub fn peek(&self) -> Token {
        self.ahead(0)
    }

    /// Takes the next token. The end stays.
    pub fn next(&mut self) -> Token {
        while self.tokens[self.at].kind == Kind::Comment {
            self.at += 1;
        }
        let token = self.tokens[self.at];
        if token.kind != Kind::End {
            self.at += 1;
        }
        token
    }

    /// Takes a comment, if one is next.
    pub fn comment(&mut self) -> Option<Token> {
        let token = self.tokens[self.at];
        (token.kind == Kind::Comment).then(|| {
            self.at += 1;
            token
        })
    }

    /// Whether `mark` is next.
    pub fn is(&self, mark: Mark) -> bool {
        self.peek().kind == Kind::Mark(mark)
    }

    /// Takes `mark`, if it is next.
    pub fn eat(&mut self, mark: Mark) -> bool {
        let found = self.is(mark);
        if found {
            self.next();
        }
        found
    }

    /// Takes `mark`.
    pub fn expect(&mut self, mark: Mark) -> Result<(), Failed> {
        if self.eat(mark) { Ok(()) } else { Err(self.expected(format!("`{mark}`"))) }
    }

    /// Takes the semicolon that ends a statement. Where it is missing and a new line begins, the statement ended all
    /// the same.
    pub fn end_of_statement(&mut self) -> Result<(), Failed> {
        if self.eat(Mark::Semicolon) {
            return Ok(());
        }
        let failed = self.expected("`;`");
        let before = self.tokens[..self.at].last().map_or(0, |t| self.line(*t));
        if self.line(self.peek()) > before { Ok(()) } else { Err(failed) }
    }

    /// Takes the dotted word `word`, if it is next.
    pub fn eat_dotted(&mut self, word: &str) -> bool {
        let next = self.peek();
        let found = next.kind == Kind::Dotted && self.text(next) == word;
        if found {
            self.next();
        }
        found
    }

    /// Takes a dotted word that `read` knows.
    pub fn dotted<T>(&mut self, read: impl Fn(&[u8]) -> Option<T>) -> Option<T> {
        let next = self.peek();
        let found = (next.kind == Kind::Dotted).then(|| read(&self.text(next).as_bytes()[1..])).flatten();
        if found.is_some() {
            self.next();
        }
        found
    }

    /// Takes a name.
    pub fn name(&mut self, what: &str) -> Result<Token, Failed> {
        let next = self.peek();
        match next.kind {
            Kind::Word => Ok(self.next()),
            _ => Err(self.expected(what)),
        }
    }

    /// Takes an integer literal of at most 32 bits.
    pub fn literal(&mut self, what: &str) -> Result<u32, Failed> {
        let next = self.peek();
        match next.kind {
            Kind::Number(Number::Integer { bits, .. }) if bits <= u64::from(u32::MAX) => {
                self.next();
                Ok(bits as u32)
            }
            _ => Err(self.expected(what)),
        }
    }

    /// Takes a string, without its quotes.
    pub fn string(&mut self) -> Result<String, Failed> {
        let next = self.peek();
        match next.kind {
            Kind::String => {
                self.next();
                Ok(self.text(next).trim_matches('"').to_string())
            }
            _ => Err(self.expected("a string")),
        }
    }

    /// After a mistake: goes on behind the next semicolon, or before the brace that ends the block.
    pub fn recover(&mut self) {
        let mut depth = 0u32;
        loop {
            match self.peek().kind {
                Kind::End => return,
                Kind::Mark(Mark::Semicolon) => {
                    self.next();
                    return;
                }
                Kind::Mark(Mark::CloseBrace) if depth == 0 => return,
                Kind::Mark(Mark::OpenBrace) => depth += 1,
                Kind::Mark(Mark::CloseBrace) => depth -= 1,
                _ => {}
            }
            self.next();
        }
    }

    /// After a mistake outside functions: goes on before the next dotted word that `begins` an item outside braces.
    pub fn recover_item(&mut self, begins: impl Fn(&str) -> bool) {
        let mut depth = 0u32;
        loop {
            let token = self.peek();
            match token.kind {
                Kind::End => return,
                Kind::Dotted if depth == 0 && begins(self.text(token)) => return,
                Kind::Mark(Mark::OpenBrace) => depth += 1,
                Kind::Mark(Mark::CloseBrace) => depth = depth.saturating_sub(1),
                _ => {}
            }
            self.next();
        }
    }
}
