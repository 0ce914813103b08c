//! Errors found after the front end: in lowering, a pass, or emission.

use crate::source::{KernelSource, Span};
use std::fmt;

/// An error in a kernel: its message, place and help.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Error {
    /// The message.
    pub message: String,
    /// Notes on the cause, in order.
    pub notes: Vec<String>,
    /// Advice, if there is any.
    pub help: Option<String>,
    /// The function, and the range in its source; `None` for an error of the whole kernel.
    pub place: Option<(KernelSource, Span)>,
}

/// All errors that one stage found in a kernel; never empty.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Errors(pub Vec<Error>);

impl Error {
    /// Creates an error at a place.
    pub fn at(source: &KernelSource, span: Span, message: impl Into<String>) -> Error {
        Error { message: message.into(), notes: Vec::new(), help: None, place: Some((source.clone(), span)) }
    }

    /// Creates an error of the whole kernel.
    pub fn without_span(message: impl Into<String>) -> Error {
        Error { message: message.into(), notes: Vec::new(), help: None, place: None }
    }

    /// Returns the text of the error without its place: the message, followed by the notes and the
    /// help.
    pub fn text(&self) -> String {
        let mut text = self.message.clone();
        for note in &self.notes {
            text += &format!("\nnote: {note}");
        }
        if let Some(help) = &self.help {
            text += &format!("\nhelp: {help}");
        }
        text
    }

    /// Adds a help to the error.
    pub fn help(mut self, help: impl Into<String>) -> Error {
        self.help = Some(help.into());
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((source, span)) = &self.place {
            write!(f, "{}:{}:{}: ", source.file, source.line + u32::from(span.line), span.column)?;
        }
        f.write_str(&self.text())
    }
}

impl fmt::Display for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, e) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            e.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}
impl std::error::Error for Errors {}

impl From<Error> for Errors {
    fn from(e: Error) -> Errors {
        Errors(vec![e])
    }
}
