//! Pieces of printed text, and JSON.

use crate::error::Error;
use serde::Serialize;
use std::fmt;
use std::io::{self, Write};

/// Returns the number and the noun, plural unless the number is 1: `1 slot`, `2 slots`.
pub(crate) fn counted(n: impl Copy + fmt::Display + PartialEq + From<u8>, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1.into() { "" } else { "s" })
}

/// Prints a value as JSON, followed by a newline.
pub(crate) fn json(out: &mut dyn Write, value: &impl Serialize) -> Result<(), Error> {
    serde_json::to_writer_pretty(&mut *out, value).map_err(io::Error::from)?;
    Ok(writeln!(out)?)
}
