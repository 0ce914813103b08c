//! Errors of the parser.

use crate::ptx::check::Reason;
use crate::ptx::words::Version;
use std::fmt;

/// An error in a text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Error {
    /// From 1.
    pub line: u32,
    /// The column in characters, from 1.
    pub column: u32,
    /// The kind of error.
    pub mistake: ParseMistake,
}

/// The kind of an error.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ParseMistake {
    /// An unexpected token.
    Expected {
        /// The expected token, described or quoted.
        expected: String,
        /// The found token, quoted.
        found: String,
    },
    /// An undefined name.
    Unknown {
        /// The expected kind of name: `an instruction`, `a register`.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// A name that is already defined.
    Taken {
        /// The name.
        name: String,
    },
    /// An illegal instruction.
    Illegal {
        /// The instruction in normalized form.
        instruction: String,
        /// The reason.
        reason: Reason,
    },
    /// A feature that the module's version or target lacks.
    Later {
        /// The feature.
        what: &'static str,
        /// The first `.version` that has the feature.
        version: Version,
        /// The first target that has the feature.
        target: u16,
    },
    /// A feature of PTX that this parser does not support.
    Unsupported {
        /// The feature.
        what: String,
        /// The replacement to write; empty if there is none.
        help: &'static str,
    },
    /// A violation of a rule beyond the grammar, with its message.
    Wrong(String),
}

/// All errors of a text, in order; never empty.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParseErrors(pub Vec<Error>);

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.mistake)
    }
}

impl fmt::Display for ParseMistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParseMistake::Expected { expected, found } => write!(f, "expected {expected}, found {found}"),
            ParseMistake::Unknown { what, name } => write!(f, "`{name}` is not {what}"),
            ParseMistake::Taken { name } => write!(f, "`{name}` is declared twice"),
            ParseMistake::Illegal { instruction, reason } => write!(f, "`{instruction}` {reason}"),
            ParseMistake::Later { what, version, target: 0 } => write!(f, "{what} needs `.version {version}`"),
            ParseMistake::Later { what, version, target } => {
                write!(f, "{what} needs `.version {version}` and sm_{target}")
            }
            ParseMistake::Unsupported { what, help } => {
                write!(f, "{what} is not supported")?;
                if help.is_empty() { Ok(()) } else { write!(f, "\nhelp: {help}") }
            }
            ParseMistake::Wrong(text) => f.write_str(text),
        }
    }
}

impl fmt::Display for ParseErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, e) in self.0.iter().enumerate() {
            f.write_str(if i > 0 { "\n" } else { "" })?;
            e.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}
impl std::error::Error for ParseErrors {}
