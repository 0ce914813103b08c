//! Where things stand in the user's Rust: the text of a function, and places in it.
//!
//! A place is stored as an offset from the line of the `fn`, so that a kernel that moves within its file keeps its
//! serialised form and its PTX.

use serde::{Deserialize, Serialize};

/// The Rust text of one kernel or device function.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Source {
    /// Name of the function.
    pub name: String,
    /// File, relative to the crate that holds it and prefixed with that crate's name: `kernels-rs/src/blas.rs`.
    /// Empty where the compiler that runs the macro does not tell.
    pub file: String,
    /// Line of the item's first token, from 1.
    pub line: u32,
    /// The lines of the item, from `line` on, as written (comments included).
    pub text: Vec<String>,
}

impl Source {
    /// The line of text at `offset` lines below the item's first, if known.
    pub fn line_text(&self, offset: u32) -> Option<&str> {
        self.text.get(offset as usize).map(String::as_str)
    }

    /// The code of that line: without the space around it and without a comment at its end. Empty if not known.
    pub fn line_code(&self, offset: u32) -> &str {
        let line = self.line_text(offset).unwrap_or_default();
        line.split_once("//").map_or(line, |(code, _)| code).trim()
    }

    /// The line at `offset` as it heads what was made from it: `+3 let i = grid::index();`, with the function's name before it where
    /// the function is not the kernel itself. Counting from the function keeps it the same when the function moves.
    pub fn heading(&self, offset: u32, inlined: bool) -> String {
        let name = if inlined { format!("{} ", self.name) } else { String::new() };
        format!("{name}+{offset} {}", self.line_code(offset)).trim_end().to_string()
    }
}

/// A range of tokens in a [`Source`]. Lines count from the item's first (offset 0), columns from 1 in characters; the
/// end is exclusive.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Span {
    pub line: u16,
    pub column: u16,
    pub end_line: u16,
    pub end_column: u16,
}
