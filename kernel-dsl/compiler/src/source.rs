//! Source text of functions, and ranges in it.
//!
//! A range is stored relative to the line of the `fn`. A kernel that moves within its file
//! therefore keeps its serialized form and its PTX.

use serde::{Deserialize, Serialize};

/// The Rust text of one kernel or device function.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct KernelSource {
    /// The name of the function.
    pub name: String,
    /// The file, relative to its crate and prefixed with the name of the crate:
    /// `kernels-rs/src/gemm.rs`. Empty if unknown.
    pub file: String,
    /// The line of the item's first token, from 1.
    pub line: u32,
    /// The lines of the item, from `line` on, as written, including comments.
    pub text: Vec<String>,
}

impl KernelSource {
    /// Returns the text of the line `offset` lines below the item's first line, if known.
    pub fn line_text(&self, offset: u32) -> Option<&str> {
        self.text.get(offset as usize).map(String::as_str)
    }

    /// Returns the code of the line at `offset`, trimmed and without a trailing comment. Empty if
    /// unknown.
    pub fn line_code(&self, offset: u32) -> &str {
        let line = self.line_text(offset).unwrap_or_default();
        line.split_once("//").map_or(line, |(code, _)| code).trim()
    }

    /// Returns the line at `offset` as a heading for its generated code: `+3 let i =
    /// grid::index();`, preceded by the function's name for device functions. The relative line
    /// number does not change when the function moves.
    pub fn heading(&self, offset: u32, inlined: bool) -> String {
        let name = if inlined { format!("{} ", self.name) } else { String::new() };
        format!("{name}+{offset} {}", self.line_code(offset)).trim_end().to_string()
    }
}

/// A range of tokens in a [`KernelSource`]. Lines count from 0 at the item's first line, columns
/// from 1 in characters; the end is exclusive.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Span {
    pub line: u16,
    pub column: u16,
    pub end_line: u16,
    pub end_column: u16,
}
