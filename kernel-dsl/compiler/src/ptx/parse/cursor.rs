//! A position in the tokens of a text, and the errors found so far.

use super::error::{Error, ParseErrors, ParseMistake};
use super::lex::{LiteralValue, Punctuation, Token, TokenKind, tokens};

/// Parsing of a part of the text failed; the error has been noted.
#[derive(Clone, Copy, Debug)]
pub(super) struct ParseFailed;

/// A reader of tokens in order. All methods skip comments, except [`comment`](Cursor::comment).
pub(super) struct Cursor<'a> {
    source: &'a str,
    tokens: Vec<Token>,
    at: usize,
    /// The start of each line.
    lines: Vec<u32>,
    /// The errors, each with its byte offset.
    mistakes: Vec<(u32, ParseMistake)>,
}

impl<'a> Cursor<'a> {
    pub fn new(source: &'a str) -> Result<Cursor<'a>, ParseErrors> {
        if u32::try_from(source.len()).is_err() {
            let mistake = ParseMistake::Unsupported { what: "a text of 4 GiB or more".to_string(), help: "" };
            return Err(ParseErrors(vec![Error { line: 1, column: 1, mistake }]));
        }
        let breaks = source.bytes().enumerate().filter(|(_, c)| *c == b'\n').map(|(i, _)| i as u32 + 1);
        let lines = [0].into_iter().chain(breaks).collect();
        let mut cursor = Cursor { source, tokens: tokens(source), at: 0, lines, mistakes: Vec::new() };
        if let Some(at) = source.bytes().position(|c| !c.is_ascii()) {
            let at = Token { kind: TokenKind::Bad(""), start: at as u32, end: at as u32 };
            let text = "PTX must be ASCII, including comments: assemblers reject other characters".to_string();
            cursor.fail(at, ParseMistake::Wrong(text));
        }
        Ok(cursor)
    }

    /// Returns the parsed value, if there were no errors.
    pub fn finish<T>(mut self, parsed: T) -> Result<T, ParseErrors> {
        if self.mistakes.is_empty() {
            return Ok(parsed);
        }
        self.mistakes.sort_by_key(|(start, _)| *start);
        let mut errors: Vec<Error> = Vec::with_capacity(self.mistakes.len());
        // The columns are counted in one pass, because a long line can contain many errors.
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
        Err(ParseErrors(errors))
    }

    /// Returns the text of a token.
    pub fn text(&self, token: Token) -> &'a str {
        &self.source[token.start as usize..token.end as usize]
    }

    /// Returns the text of a dotted word after its dot.
    pub fn dotted_text(&self, token: Token) -> &'a str {
        self.text(token).strip_prefix('.').unwrap_or_default()
    }

    /// Returns the line of a token.
    pub fn line(&self, token: Token) -> u32 {
        self.lines.partition_point(|start| *start <= token.start) as u32
    }

    /// Records an error.
    pub fn fail(&mut self, at: Token, mistake: ParseMistake) -> ParseFailed {
        self.mistakes.push((at.start, mistake));
        ParseFailed
    }

    /// Records that the token `at` is not the expected one.
    pub fn expected_at(&mut self, at: Token, expected: impl Into<String>) -> ParseFailed {
        let expected = expected.into();
        let found = match at.kind {
            TokenKind::End => "the end of the text".to_string(),
            // The start of a long token identifies it.
            _ => format!("`{}`", self.text(at).chars().take(40).collect::<String>().escape_default()),
        };
        let expected = match at.kind {
            TokenKind::Bad(what) => what.to_string(),
            _ => expected,
        };
        self.fail(at, ParseMistake::Expected { expected, found })
    }

    /// Records that the next token is not the expected one.
    pub fn expected(&mut self, expected: impl Into<String>) -> ParseFailed {
        self.expected_at(self.peek(), expected)
    }

    /// Returns the token `ahead` positions after the next.
    pub fn ahead(&self, ahead: usize) -> Token {
        let ended = self.tokens[self.tokens.len() - 1];
        self.tokens[self.at..].iter().filter(|t| t.kind != TokenKind::Comment).nth(ahead).copied().unwrap_or(ended)
    }

    /// Returns the next token.
    pub fn peek(&self) -> Token {
        self.ahead(0)
    }

    /// Takes the next token. The end of the text is never consumed.
    pub fn next(&mut self) -> Token {
        while self.tokens[self.at].kind == TokenKind::Comment {
            self.at += 1;
        }
        let token = self.tokens[self.at];
        if token.kind != TokenKind::End {
            self.at += 1;
        }
        token
    }

    /// Takes the tokens up to the end of the line.
    pub fn skip_line(&mut self) {
        let line = self.line(self.peek());
        while self.peek().kind != TokenKind::End && self.line(self.peek()) == line {
            self.next();
        }
    }

    /// Takes a comment, if one is next.
    pub fn comment(&mut self) -> Option<Token> {
        let token = self.tokens[self.at];
        (token.kind == TokenKind::Comment).then(|| {
            self.at += 1;
            token
        })
    }

    /// Returns whether `mark` is next.
    pub fn is(&self, mark: Punctuation) -> bool {
        self.peek().kind == TokenKind::Punctuation(mark)
    }

    /// Takes `mark`, if it is next.
    pub fn eat(&mut self, mark: Punctuation) -> bool {
        let found = self.is(mark);
        if found {
            self.next();
        }
        found
    }

    /// Takes `mark`.
    pub fn expect(&mut self, mark: Punctuation) -> Result<(), ParseFailed> {
        if self.eat(mark) { Ok(()) } else { Err(self.expected(format!("`{mark}`"))) }
    }

    /// Takes the semicolon at the end of a statement. If it is missing before a new line, the
    /// statement ends nevertheless.
    pub fn end_of_statement(&mut self) -> Result<(), ParseFailed> {
        if self.eat(Punctuation::Semicolon) {
            return Ok(());
        }
        let failed = self.expected("`;`");
        let before = self.tokens[..self.at].last().map_or(0, |t| self.line(*t));
        if self.line(self.peek()) > before { Ok(()) } else { Err(failed) }
    }

    /// Takes the dotted word `word`, if it is next.
    pub fn eat_dotted(&mut self, word: &str) -> bool {
        let next = self.peek();
        let found = next.kind == TokenKind::Dotted && self.text(next) == word;
        if found {
            self.next();
        }
        found
    }

    /// Takes a dotted word that `read` accepts.
    pub fn dotted<T>(&mut self, read: impl Fn(&[u8]) -> Option<T>) -> Option<T> {
        let next = self.peek();
        let found = (next.kind == TokenKind::Dotted).then(|| read(&self.text(next).as_bytes()[1..])).flatten();
        if found.is_some() {
            self.next();
        }
        found
    }

    /// Takes a name.
    pub fn name(&mut self, what: &str) -> Result<Token, ParseFailed> {
        let next = self.peek();
        match next.kind {
            TokenKind::Word => Ok(self.next()),
            _ => Err(self.expected(what)),
        }
    }

    /// Takes an integer literal that fits in 32 bits.
    pub fn literal(&mut self, what: &str) -> Result<u32, ParseFailed> {
        let next = self.peek();
        match next.kind {
            TokenKind::Number(LiteralValue::Integer { bits, .. }) if bits <= u64::from(u32::MAX) => {
                self.next();
                Ok(bits as u32)
            }
            _ => Err(self.expected(what)),
        }
    }

    /// Takes a string, without its quotes.
    pub fn string(&mut self) -> Result<String, ParseFailed> {
        let next = self.peek();
        match next.kind {
            TokenKind::String => {
                self.next();
                Ok(self.text(next).trim_matches('"').to_string())
            }
            _ => Err(self.expected("a string")),
        }
    }

    /// Recovers from an error: skips to after the next semicolon, or to the brace that ends the
    /// block.
    pub fn recover(&mut self) {
        let mut depth = 0u32;
        loop {
            match self.peek().kind {
                TokenKind::End => return,
                TokenKind::Punctuation(Punctuation::Semicolon) => {
                    self.next();
                    return;
                }
                TokenKind::Punctuation(Punctuation::CloseBrace) if depth == 0 => return,
                TokenKind::Punctuation(Punctuation::OpenBrace) => depth += 1,
                TokenKind::Punctuation(Punctuation::CloseBrace) => depth -= 1,
                _ => {}
            }
            self.next();
        }
    }

    /// Recovers from an error outside functions: skips to the next dotted word outside braces that
    /// `begins` an item.
    pub fn recover_item(&mut self, begins: impl Fn(&str) -> bool) {
        let mut depth = 0u32;
        loop {
            let token = self.peek();
            match token.kind {
                TokenKind::End => return,
                TokenKind::Dotted if depth == 0 && begins(self.text(token)) => return,
                TokenKind::Punctuation(Punctuation::OpenBrace) => depth += 1,
                TokenKind::Punctuation(Punctuation::CloseBrace) => depth = depth.saturating_sub(1),
                _ => {}
            }
            self.next();
        }
    }
}
