//! Errors: what was expected, what was found, and where.

use std::path::PathBuf;

/// The reason why a model cannot be read or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused an action on a file, or on the address of a server.
    #[error("cannot {action} {}: {source}", .path.display())]
    #[allow(missing_docs)]
    Io { action: &'static str, path: PathBuf, source: std::io::Error },

    /// Bytes that contradict the format of the file. `offset` is in bytes.
    #[error("{file}, byte {offset}, {field}: {problem}")]
    #[allow(missing_docs)]
    Damaged { file: String, offset: u64, field: String, problem: String },

    /// A field that is absent, has the wrong type, or contradicts another field. `file` names the
    /// file, or the options that have the field.
    #[error("{file}, {field}: {problem}")]
    #[allow(missing_docs)]
    Field { file: String, field: String, problem: String },

    /// A model that needs something this crate lacks.
    #[error("{file}, {field}: {needed} is not supported; supported: {supported}")]
    #[allow(missing_docs)]
    Unsupported { file: String, field: String, needed: String, supported: String },

    /// A tensor that is absent, occurs twice, or whose extents differ from the configuration.
    #[error("{file}, tensor `{tensor}`: {problem}")]
    #[allow(missing_docs)]
    Tensor { file: String, tensor: String, problem: String },

    /// An action that fails for a text, its tokens or its images.
    #[error("cannot {action}: {problem}")]
    #[allow(missing_docs)]
    Tokens { action: &'static str, problem: String },

    /// A chat template that failed. `line` counts from 1, and is `None` if unknown.
    #[error("chat template{}: {problem}", .line.map_or(String::new(), |line| format!(", line {line}")))]
    #[allow(missing_docs)]
    Template { line: Option<usize>, problem: String },

    /// A device that is absent, or that refused memory or a launch.
    #[error(transparent)]
    Device(#[from] runtime::Error),
}

/// A result with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Returns an error about a field of a file.
    pub(crate) fn field(file: &str, field: impl Into<String>, problem: impl Into<String>) -> Error {
        Error::Field { file: file.to_owned(), field: field.into(), problem: problem.into() }
    }

    /// Returns an error that names what a file needs and what this crate supports.
    pub(crate) fn unsupported(
        file: &str,
        field: impl Into<String>,
        needed: impl Into<String>,
        supported: impl Into<String>,
    ) -> Error {
        Error::Unsupported {
            file: file.to_owned(),
            field: field.into(),
            needed: needed.into(),
            supported: supported.into(),
        }
    }

    /// Returns an error about a tensor.
    pub(crate) fn tensor(file: &str, tensor: &str, problem: impl Into<String>) -> Error {
        Error::Tensor { file: file.to_owned(), tensor: tensor.to_owned(), problem: problem.into() }
    }
}

/// Returns `text` for a message: in backquotes, escaped, and cut after 60 characters.
pub(crate) fn quoted(text: &[u8]) -> String {
    // The bytes may be those of a mapped file, so UTF-8 is checked in a copy.
    let text = text[..text.len().min(240)].to_vec();
    let text = String::from_utf8_lossy(&text);
    let mut shown: String = text.chars().take(60).flat_map(char::escape_debug).collect();
    if text.chars().nth(60).is_some() {
        shown.push('…');
    }
    format!("`{shown}`")
}
