//! Positions of tokens, and the source text of an item.

use super::Reader;
use crate::source::{KernelSource, Span};
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use quote::ToTokens;
use std::hash::{Hash, Hasher};
use std::path::Path;
use syn::ItemFn;
use syn::spanned::Spanned;

/// A range of tokens: its first and last token for errors, its lines and columns for the HIR.
#[derive(Clone, Copy, Debug)]
pub struct SpanPair {
    /// The first token.
    pub first: proc_macro2::Span,
    /// The last token.
    pub last: proc_macro2::Span,
    /// The range in the source. Lines count from the item's first line, columns from 1.
    pub span: Span,
}

/// Returns the line of the item's first token after the attributes: the visibility, or else `fn`.
pub(super) fn first_line(item: &ItemFn) -> usize {
    first_token(item).start().line
}

fn first_token(item: &ItemFn) -> proc_macro2::Span {
    item.vis.to_token_stream().into_iter().next().map_or(item.sig.fn_token.span, |t| t.span())
}

impl Reader {
    /// Returns the token range of a piece of syntax.
    pub(super) fn mark(&self, tokens: &impl ToTokens) -> SpanPair {
        let (mut first, mut last) = (None, None);
        for token in tokens.to_token_stream() {
            let (open, close) = match &token {
                TokenTree::Group(g) => (g.span_open(), g.span_close()),
                other => (other.span(), other.span()),
            };
            first = first.or(Some(open));
            last = Some(close);
        }
        let first = first.unwrap_or_else(|| tokens.span());
        self.between(first, last.unwrap_or(first))
    }

    /// Returns the range from one token to another.
    pub(super) fn between(&self, first: proc_macro2::Span, last: proc_macro2::Span) -> SpanPair {
        let (start, end) = (first.start(), last.end());
        let small = |n: usize| u16::try_from(n).unwrap_or(u16::MAX);
        let span = Span {
            line: small(start.line.saturating_sub(self.line)),
            column: small(start.column + 1),
            end_line: small(end.line.saturating_sub(self.line)),
            end_column: small(end.column + 1),
        };
        SpanPair { first, last, span }
    }
}

/// Returns the item's text, file and line.
pub(super) fn source(item: &ItemFn) -> KernelSource {
    let first = first_token(item);
    KernelSource {
        name: item.sig.ident.to_string(),
        file: file(first),
        line: first.start().line as u32,
        text: text(item),
    }
}

/// Returns a hash of the item's tokens and position.
pub(super) fn hash(item: &ItemFn, source: &KernelSource) -> u64 {
    let mut hasher = std::hash::DefaultHasher::new();
    (&source.file, source.line, first_token(item).start().column).hash(&mut hasher);
    item.to_token_stream().to_string().hash(&mut hasher);
    hasher.finish()
}

/// Returns the text, file and line of an item that is not a function.
pub(super) fn source_of(name: &proc_macro2::Ident, item: &impl ToTokens) -> KernelSource {
    let span = name.span();
    KernelSource { name: name.to_string(), file: file(span), line: span.start().line as u32, text: vec![written(item)] }
}

/// Returns a hash of an item's tokens and position.
pub(super) fn hash_of(name: &proc_macro2::Ident, item: &impl ToTokens) -> u64 {
    let span = name.span();
    let mut hasher = std::hash::DefaultHasher::new();
    (file(span), span.start().line, span.start().column).hash(&mut hasher);
    item.to_token_stream().to_string().hash(&mut hasher);
    hasher.finish()
}

/// Returns the lines of the item: its signature token by token, its body as written.
fn text(item: &ItemFn) -> Vec<String> {
    let brace = item.block.brace_token.span;
    let Some(body) = brace.join().source_text() else { return Vec::new() };
    let base = first_line(item);
    let mut page = Page { base, lines: Vec::new() };
    let mut signature = item.vis.to_token_stream();
    item.sig.to_tokens(&mut signature);
    page.tokens(signature);
    let open = brace.open().start();
    for (i, line) in body.lines().enumerate() {
        page.put(open.line + i, if i == 0 { open.column } else { 0 }, line);
    }
    page.lines
}

/// Text laid out by line and column.
struct Page {
    base: usize,
    lines: Vec<String>,
}

impl Page {
    fn tokens(&mut self, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Group(g) => {
                    let (open, close) = match g.delimiter() {
                        Delimiter::Parenthesis => ("(", ")"),
                        Delimiter::Brace => ("{", "}"),
                        Delimiter::Bracket => ("[", "]"),
                        Delimiter::None => ("", ""),
                    };
                    let at = g.span_open().start();
                    self.put(at.line, at.column, open);
                    self.tokens(g.stream());
                    let at = g.span_close().start();
                    self.put(at.line, at.column, close);
                }
                other => {
                    let at = other.span().start();
                    self.put(at.line, at.column, &other.to_string());
                }
            }
        }
    }

    fn put(&mut self, line: usize, column: usize, text: &str) {
        let Some(row) = line.checked_sub(self.base) else { return };
        // A macro may combine tokens from distant positions; a function has no such gaps.
        if row > 20_000 || column > 2_000 {
            return;
        }
        if self.lines.len() <= row {
            self.lines.resize(row + 1, String::new());
        }
        let width = self.lines[row].chars().count();
        self.lines[row].extend(std::iter::repeat_n(' ', column.saturating_sub(width)));
        self.lines[row].push_str(text);
    }
}

/// Returns the file of a token, relative to the crate being compiled and prefixed with that crate's
/// name.
fn file(span: proc_macro2::Span) -> String {
    let file = span.file();
    let (Ok(root), Ok(name)) = (std::env::var("CARGO_MANIFEST_DIR"), std::env::var("CARGO_PKG_NAME")) else {
        return file;
    };
    let path = Path::new(&file);
    let absolute = match std::env::current_dir() {
        Ok(here) if path.is_relative() => here.join(path),
        _ => path.to_path_buf(),
    };
    match absolute.strip_prefix(&root) {
        Ok(inside) => format!("{name}/{}", inside.display()).replace('\\', "/"),
        Err(_) => file,
    }
}

/// Returns tokens as in the source, on one line.
pub(super) fn written(tokens: &impl ToTokens) -> String {
    let tokens = tokens.to_token_stream();
    let Some(first) = tokens.clone().into_iter().next() else { return String::new() };
    let mut page = Page { base: first.span().start().line, lines: Vec::new() };
    page.tokens(tokens);
    let words: Vec<_> = page.lines.iter().map(|l| l.trim()).filter(|l| !l.is_empty()).collect();
    words.join(" ")
}
