//! The lexer. Every text has tokens: text that is not a PTX token becomes a [`TokenKind::Bad`],
//! which the parser reports.

use crate::ptx::words::bytes_equal;
use std::fmt;

words! {
    /// Punctuation and operators.
    Punctuation {
        Comma "," Semicolon ";" Colon ":" Open "(" Close ")" OpenBracket "[" CloseBracket "]" OpenBrace "{"
        CloseBrace "}" Less "<" Greater ">" At "@" Not "!" Bar "|" Plus "+" Minus "-" Times "*" Slash "/"
        Percent "%" And "&" Xor "^" Tilde "~" Question "?" Assign "=" Equal "==" Differs "!=" LessEqual "<="
        GreaterEqual ">=" ShiftLeft "<<" ShiftRight ">>" Both "&&" Either "||"
    }
}

/// A token.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token {
    pub kind: TokenKind,
    /// The range in bytes.
    pub start: u32,
    pub end: u32,
}

/// The kind of a token.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum TokenKind {
    /// A name: `%r1`, `add`, `_`.
    Word,
    /// A word with a leading dot: `.u32`, `.x`, `.L2::128B`.
    Dotted,
    /// A number.
    Number(LiteralValue),
    /// `"…"`
    String,
    /// `// …` or `/* … */`
    Comment,
    /// Punctuation.
    Punctuation(Punctuation),
    /// Text that is no token, with the token that was expected.
    Bad(&'static str),
    /// The end of the text.
    End,
}

/// The value of a literal.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum LiteralValue {
    /// An integer, with whether it is hexadecimal and whether it has the suffix `U`.
    Integer { bits: u64, hexadecimal: bool, unsigned: bool },
    /// `0f3F800000`
    F32(u32),
    /// `0d3FF0000000000000`
    F64(u64),
    /// `1.5e3`
    Decimal(f64),
}

/// Returns the tokens of `text`, the last of which is [`TokenKind::End`].
pub(super) fn tokens(text: &str) -> Vec<Token> {
    let mut lexer = Lexer { text: text.as_bytes(), at: 0 };
    let mut tokens = Vec::with_capacity(text.len() / 4 + 1);
    loop {
        lexer.spaces();
        let start = lexer.at;
        let kind = lexer.token(text);
        // A character that is not ASCII is one token.
        while !text.is_char_boundary(lexer.at) {
            lexer.at += 1;
        }
        tokens.push(Token { kind, start: start as u32, end: lexer.at as u32 });
        if kind == TokenKind::End {
            return tokens;
        }
    }
}

struct Lexer<'a> {
    text: &'a [u8],
    at: usize,
}

/// Returns whether a character can continue a name.
fn follows(c: u8) -> bool {
    c.is_ascii_alphanumeric() || c == b'_' || c == b'$'
}

impl Lexer<'_> {
    fn peek(&self, ahead: usize) -> u8 {
        self.text.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn skip(&mut self, wanted: impl Fn(u8) -> bool) -> usize {
        let start = self.at;
        while self.text.get(self.at).is_some_and(|c| wanted(*c)) {
            self.at += 1;
        }
        self.at - start
    }

    fn spaces(&mut self) {
        self.skip(|c| c.is_ascii_whitespace() || c == 0x0b);
    }

    fn token(&mut self, text: &str) -> TokenKind {
        let Some(&c) = self.text.get(self.at) else { return TokenKind::End };
        let next = self.peek(1);
        match c {
            b'/' if next == b'/' => {
                self.skip(|c| c != b'\n');
                TokenKind::Comment
            }
            b'/' if next == b'*' => match text[self.at + 2..].find("*/") {
                Some(length) => {
                    self.at += length + 4;
                    TokenKind::Comment
                }
                None => {
                    self.at = self.text.len();
                    TokenKind::Bad("`*/` at the end of the comment")
                }
            },
            b'"' => {
                self.at += 1;
                self.skip(|c| c != b'"' && c != b'\n');
                let ended = self.peek(0) == b'"';
                self.at += usize::from(ended);
                if ended {
                    TokenKind::String
                } else {
                    TokenKind::Bad("`\"` at the end of the string, on the same line")
                }
            }
            b'0'..=b'9' => self.number(text),
            // A name may begin with a dot and a digit (`.1d`), but only after another token.
            b'.' if next.is_ascii_digit() && !self.text[..self.at].last().is_some_and(|c| follows(*c)) => {
                self.number(text)
            }
            b'.' if follows(next) => {
                self.at += 1;
                self.skip(follows);
                while self.peek(0) == b':' && self.peek(1) == b':' && follows(self.peek(2)) {
                    self.at += 2;
                    self.skip(follows);
                }
                TokenKind::Dotted
            }
            b'%' if follows(next) => {
                self.at += 1;
                self.skip(follows);
                TokenKind::Word
            }
            c if follows(c) => {
                self.skip(follows);
                TokenKind::Word
            }
            _ => {
                let two = Punctuation::from_spelling(&[c, next]).inspect(|_| self.at += 2);
                let mark = two.or_else(|| Punctuation::from_spelling(&[c]).inspect(|_| self.at += 1));
                match mark {
                    Some(mark) => TokenKind::Punctuation(mark),
                    None => {
                        self.at += 1;
                        TokenKind::Bad("a PTX token")
                    }
                }
            }
        }
    }

    fn number(&mut self, text: &str) -> TokenKind {
        let start = self.at;
        let prefix = (self.peek(0), self.peek(1) | 0x20);
        let exact = match prefix {
            (b'0', b'f') => Some(8),
            (b'0', b'd') => Some(16),
            _ => None,
        };
        if let Some(digits) = exact {
            self.skip(follows);
            let number = &text[start + 2..self.at];
            let bits = Some(number).filter(|n| n.len() == digits).and_then(|n| value(n, 16));
            return match (bits, digits) {
                (Some(bits), 8) => TokenKind::Number(LiteralValue::F32(bits as u32)),
                (Some(bits), _) => TokenKind::Number(LiteralValue::F64(bits)),
                (None, 8) => TokenKind::Bad("a float of eight hexadecimal digits, such as `0f3F800000`"),
                (None, _) => TokenKind::Bad("a float of sixteen hexadecimal digits, such as `0d3FF0000000000000`"),
            };
        }
        let radix = match prefix {
            (b'0', b'x') => 16,
            (b'0', b'b') => 2,
            (b'0', b'0'..=b'9') => 8,
            _ => 10,
        };
        self.skip(|c| c.is_ascii_digit());
        if self.peek(0) == b'.' || (radix == 10 || radix == 8) && self.peek(0) | 0x20 == b'e' {
            self.at += usize::from(self.peek(0) == b'.');
            self.skip(|c| c.is_ascii_digit());
            if self.peek(0) | 0x20 == b'e' {
                self.at += 1;
                self.at += usize::from(matches!(self.peek(0), b'+' | b'-'));
                self.skip(|c| c.is_ascii_digit());
            }
            self.skip(follows);
            return match text[start..self.at].parse() {
                Ok(value) => TokenKind::Number(LiteralValue::Decimal(value)),
                Err(_) => TokenKind::Bad("a number"),
            };
        }
        self.skip(follows);
        let written = &text[start..self.at];
        let digits = written.strip_suffix('U').unwrap_or(written);
        let unsigned = digits.len() < written.len();
        let digits = if matches!(radix, 2 | 16) { &digits[2..] } else { digits };
        if digits.is_empty() || !digits.bytes().all(|c| (c as char).is_digit(radix)) {
            return TokenKind::Bad("a number");
        }
        match value(digits, radix) {
            Some(bits) => TokenKind::Number(LiteralValue::Integer { bits, hexadecimal: radix == 16, unsigned }),
            None => TokenKind::Bad("an integer that fits in 64 bits"),
        }
    }
}

/// Returns the value of `digits`, if they are valid and fit in 64 bits.
fn value(digits: &str, radix: u32) -> Option<u64> {
    // `from_str_radix` also accepts a sign.
    digits.bytes().all(|c| c.is_ascii_alphanumeric()).then(|| u64::from_str_radix(digits, radix).ok())?
}
