//! A mistake found after the tokens are gone: in lowering, a pass, or emission.

use crate::source::{Source, Span};
use std::fmt;

/// What is wrong with a kernel, where, and what to do about it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Error {
    /// What is wrong, in plain words.
    pub message: String,
    /// What led to it, in order.
    pub notes: Vec<String>,
    /// The way out, if there is one to name.
    pub help: Option<String>,
    /// The function and the place in it; `None` where the whole kernel is meant.
    pub place: Option<(Source, Span)>,
}

/// All mistakes of a kernel that one stage found; never empty.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Errors(pub Vec<Error>);

impl Error {
    /// A mistake at a place.
    pub fn at(source: &Source, span: Span, message: impl Into<String>) -> Error {
        Error { message: message.into(), notes: Vec::new(), help: None, place: Some((source.clone(), span)) }
    }

    /// A mistake of the whole kernel.
    pub fn whole(message: impl Into<String>) -> Error {
        Error { message: message.into(), notes: Vec::new(), help: None, place: None }
    }

    /// All that is said of it but the place: the message, and below it the notes and the way out.
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

    /// The same with a way out.
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
