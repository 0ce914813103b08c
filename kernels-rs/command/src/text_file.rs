//! Reading of text files that a user names.

use std::path::Path;
use std::{fs, io};

/// Returns the text of a file. The error for a binary file states the number of bytes before the
/// first that is not text.
pub(super) fn read(path: &Path) -> io::Result<String> {
    let binary = |e: std::string::FromUtf8Error| {
        let why = format!("byte {} is not text in UTF-8; name a text file", e.utf8_error().valid_up_to());
        io::Error::new(io::ErrorKind::InvalidData, why)
    };
    String::from_utf8(fs::read(path)?).map_err(binary)
}
